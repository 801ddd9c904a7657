//! What volumes ask for, as data. Volumes themselves: `installed`.

mod installed;

use std::collections::BTreeMap;

use expect_test::expect;
use tithe_machine::sandbox::{SANDBOX_PREFIX, journal, volume_builder};
use tithe_model::experiment::OptionValue;
use tithe_plugin::simulated::test_bench::credentials;

use super::*;

fn protection(id: &str) -> &'static dyn Protection {
    *PROTECTIONS.iter().find(|protection| protection.entry().id == id).expect("a volume")
}

fn chosen(id: &str, options: &[(&str, OptionValue)]) -> Chosen {
    let defaults = protection(id).entry().options.iter();
    let mut all: BTreeMap<String, OptionValue> =
        defaults.filter_map(|option| Some((option.name.to_owned(), option.default?.value()))).collect();
    all.insert("size_mb".to_owned(), OptionValue::Number(64.0));
    all.extend(options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Chosen::listed(id, all)
}

/// The set-up of an arm with the volume `id`, or with the plain volume that it is compared with.
fn setup(id: &str, protected: bool) -> Setup {
    setup_of(chosen(id, &[]), protected)
}

fn setup_of(chosen: Chosen, protected: bool) -> Setup {
    let mut setup = Setup::plain(BTreeMap::new(), credentials());
    if protected {
        protection(&chosen.id).apply(&chosen, &mut setup);
    }
    let arm = |protections| Arm::new("", protections);
    equalise(&[arm(Vec::new()), arm(vec![chosen])], &mut setup);
    setup
}

#[test]
fn sandboxes_are_found_by_what_is_mounted_in_them() {
    let all = journal::sandboxes_in_use();
    assert!(
        all.iter().all(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SANDBOX_PREFIX)))
    );
}

#[test]
fn layers_are_what_a_reader_could_do_by_hand() {
    let layers = |id: &str, options: &[(&str, OptionValue)]| {
        let chosen = chosen(id, options);
        let mut setup = Setup::plain(BTreeMap::new(), credentials());
        protection(id).apply(&chosen, &mut setup);
        let asked = setup.volume.expect("a volume");
        format!("{id}: {}\n", asked.kind.layers(&asked).join(", "))
    };
    let text = |text: &str| OptionValue::Text(text.to_owned());
    let on = OptionValue::Flag(true);
    let shown = [
        layers("volume-luks2", &[]),
        layers(
            "volume-luks2",
            &[("sector", text("4096")), ("no_read_workqueue", on.clone()), ("no_write_workqueue", on)],
        ),
        layers("volume-luks2", &[("rotate", OptionValue::Flag(true))]),
        layers("volume-fscrypt", &[]),
        layers("volume-gocryptfs", &[("cipher", text("xchacha20-poly1305"))]),
    ];
    expect![[r#"
        volume-luks2: image file of 64 MB, loop device with direct I/O, cryptsetup luksFormat --type luks2 --cipher aes-xts-plain64 --key-size 512 --sector-size 512 --pbkdf pbkdf2 --pbkdf-force-iterations 1000, cryptsetup open --type luks2, ext4
        volume-luks2: image file of 64 MB, loop device with direct I/O, cryptsetup luksFormat --type luks2 --cipher aes-xts-plain64 --key-size 512 --sector-size 4096 --pbkdf pbkdf2 --pbkdf-force-iterations 1000, cryptsetup open --type luks2 --perf-no_read_workqueue --perf-no_write_workqueue, ext4
        volume-luks2: image file of 64 MB, loop device with direct I/O, cryptsetup luksFormat --type luks2 --cipher aes-xts-plain64 --key-size 512 --sector-size 512 --pbkdf pbkdf2 --pbkdf-force-iterations 1000, cryptsetup open --type luks2, ext4, while measured, again and again: cryptsetup reencrypt --resilience checksum --hotzone-size 1M --pbkdf pbkdf2 --pbkdf-force-iterations 1000
        volume-fscrypt: image file of 64 MB, loop device with direct I/O, ext4 with -O encrypt, fscrypt policy of version 2: contents AES-256-XTS, names AES-256-CTS
        volume-gocryptfs: image file of 64 MB, loop device with direct I/O, ext4, gocryptfs -init -quiet -scryptn 10 -xchacha, gocryptfs -fg -nosyslog -allow_other
    "#]].assert_eq(&shown.concat());
}

#[test]
fn all_volumes_of_an_experiment_are_as_large_as_the_largest() {
    let size = |mb: f64| chosen("volume-fscrypt", &[("size_mb", OptionValue::Number(mb))]);
    let arm = |protections| Arm::new("", protections);
    let arms = [arm(Vec::new()), arm(vec![size(100.0)]), arm(vec![size(300.0)])];
    assert_eq!(bytes_of(&arms[..1]), None);
    for protected in [false, true] {
        let mut setup = setup("volume-fscrypt", protected);
        equalise(&arms, &mut setup);
        assert_eq!(setup.volume.map(|volume| (volume.bytes, volume.chosen.is_some())), Some((300_000_000, protected)));
    }
    let mut bare = Setup::plain(BTreeMap::new(), credentials());
    equalise(&arms[..1], &mut bare);
    assert!(bare.volume.is_none());
}
