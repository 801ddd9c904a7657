//! Checks whether swapped-out memory of a server reaches a disk unencrypted.
//!
//! Swap that Tithe did not make is checked and left alone. Swap that Tithe set up for an experiment is recognised by
//! the name of its mapping.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::{major, minor};

use crate::sandbox::SANDBOX_PREFIX;

/// One swap device or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// Device or file.
    pub path: String,
    /// What is known about its encryption.
    pub exposure: Exposure,
}

/// Encryption of a swap place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// dm-crypt lies below it, with a cipher that encrypts.
    Encrypted,
    /// dm-crypt lies below it, and its cipher may be one that encrypts nothing.
    Doubtful,
    /// Encrypted swap that Tithe set up for a run.
    Own,
    /// It is compressed memory and reaches no disk.
    Memory,
    /// Nothing encrypts the device.
    Open,
    /// A file: encrypted only if its file system is.
    File,
}

/// The swap places of this machine.
pub fn swaps() -> Vec<Swap> {
    let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let may_be_null = fs::read_to_string("/proc/crypto").ok().is_none_or(|text| uses_null_cipher(&text));
    parse(&text, may_be_null, &crypt_name, &written_back_to)
}

/// True if something on this machine uses a cipher that encrypts nothing, by the text of `/proc/crypto`. The cipher of
/// a mapping is shown to root alone; an algorithm without users has one reference, the kernel's own.
fn uses_null_cipher(text: &str) -> bool {
    text.split("\n\n").any(|block| {
        let entry = |key: &str| {
            let mut entries = block.lines().filter_map(|line| line.split_once(':'));
            entries.find(|(found, _)| found.trim() == key).map(|(_, value)| value.trim())
        };
        let references = || entry("refcnt").and_then(|count| count.parse::<u64>().ok());
        entry("name").is_some_and(|name| name.contains("cipher_null")) && references().is_none_or(|count| count > 1)
    })
}

/// Kinds of mappings that encrypt, by the text after `CRYPT-` in the UUIDs that libcryptsetup gives them.
const ENCRYPTING: [&str; 7] = ["PLAIN-", "LUKS1-", "LUKS2-", "LOOPAES-", "TCRYPT-", "BITLK-", "FVAULT2-"];

/// The name of a dm-crypt mapping that `device` is or lies on; `None` if any part of it reaches a disk without one.
fn crypt_name(device: &Path) -> Option<String> {
    let number = fs::metadata(device).ok()?.rdev();
    crypt_name_at(Path::new(&format!("/sys/dev/block/{}:{}", major(number), minor(number))))
}

/// The same for the device that the kernel describes in `folder`.
fn crypt_name_at(folder: &Path) -> Option<String> {
    let line = |file: &str| fs::read_to_string(folder.join("dm").join(file)).ok();
    // libcryptsetup gives mappings that only protect integrity the same prefix.
    let hides = |kind: &str| ENCRYPTING.iter().any(|known| kind.starts_with(known));
    if line("uuid").is_some_and(|uuid| uuid.strip_prefix("CRYPT-").is_some_and(hides)) {
        return Some(line("name").unwrap_or_default());
    }
    // A logical volume or an array is encrypted only if all devices below it are.
    let below = fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten();
    let names: Option<Vec<String>> = below.map(|device| crypt_name_at(&device.path())).collect();
    names?.into_iter().next()
}

/// The device that compressed memory is written to if it does not fit; `None` if there is none (Linux,
/// blockdev/zram.rst, "writeback").
fn written_back_to(zram: &Path) -> Option<PathBuf> {
    let device = fs::read_to_string(Path::new("/sys/block").join(zram.file_name()?).join("backing_dev")).ok()?;
    let device = device.trim();
    (!device.is_empty() && device != "none").then(|| PathBuf::from(device))
}

/// The places in the text of `/proc/swaps`: path and type are the first two fields, below a heading line.
/// `may_be_null`: the cipher of a mapping may encrypt nothing. `crypt_name` returns the dm-crypt mapping of a device,
/// if it has one, and `written_back_to` the device behind compressed memory.
fn parse(
    text: &str,
    may_be_null: bool,
    crypt_name: &dyn Fn(&Path) -> Option<String>,
    written_back_to: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Vec<Swap> {
    let place = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (path, kind) = (fields.next()?, fields.next()?);
        let device = match path.starts_with("/dev/zram") {
            true => written_back_to(Path::new(path)),
            false => Some(PathBuf::from(path)),
        };
        let exposure = match (kind, device.as_deref().map(crypt_name)) {
            ("file", _) => Exposure::File,
            (_, None) => Exposure::Memory,
            (_, Some(Some(name))) if name.starts_with(SANDBOX_PREFIX) => Exposure::Own,
            (_, Some(Some(_))) if may_be_null => Exposure::Doubtful,
            (_, Some(Some(_))) => Exposure::Encrypted,
            (_, Some(None)) => Exposure::Open,
        };
        Some(Swap { path: path.to_owned(), exposure })
    };
    text.lines().skip(1).filter_map(place).collect()
}

/// `none`, or each place with its encryption.
pub fn in_words(swaps: &[Swap]) -> String {
    let one = |swap: &Swap| {
        let exposure = match swap.exposure {
            Exposure::Encrypted => "encrypted by dm-crypt",
            Exposure::Doubtful => "dm-crypt, perhaps without encryption: cipher_null is in use on this machine",
            Exposure::Own => "encrypted by dm-crypt, set up by Tithe for a run",
            Exposure::Memory => "compressed memory, reaches no disk",
            Exposure::Open => "not encrypted: keys and data of a server can reach the disk in the clear",
            Exposure::File => "a file, as open as its file system",
        };
        format!("{} ({exposure})", swap.path)
    };
    if swaps.is_empty() { "none".to_owned() } else { swaps.iter().map(one).collect::<Vec<_>>().join(", ") }
}

/// A warning for reports on data protected at rest; `None` if every place is encrypted or reaches no disk.
pub fn warning(swaps: &[Swap]) -> Option<String> {
    let open = |swap: &&Swap| matches!(swap.exposure, Exposure::Open | Exposure::File | Exposure::Doubtful);
    let open: Vec<Swap> = swaps.iter().filter(open).cloned().collect();
    (!open.is_empty()).then(|| {
        format!(
            "this machine swaps to {}: data that are encrypted in files may reach the disk from memory: switch swap \
             off, encrypt it, or give each server a limit of `memory`, so that it does not swap",
            in_words(&open)
        )
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_place_says_how_open_it_is() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/dm-1 partition 100 0 -2\n\
                    /dev/dm-2 partition 100 0 32767\n\
                    /dev/sda2 partition 100 0 -3\n/swapfile file 100 0 -4\n/dev/zram0 partition 100 0 100\n\
                    /dev/zram1 partition 100 0 99\n/dev/zram2 partition 100 0 98\n";
        let crypt_name = |device: &Path| match device.to_str() {
            Some("/dev/dm-1") => Some("swap".to_owned()),
            Some("/dev/dm-2") => Some("tithe-sandbox-1-2-swap".to_owned()),
            _ => None,
        };
        let written_back_to = |zram: &Path| match zram.to_str() {
            Some("/dev/zram1") => Some(PathBuf::from("/dev/sda3")),
            Some("/dev/zram2") => Some(PathBuf::from("/dev/dm-1")),
            _ => None,
        };
        let swaps = parse(text, false, &crypt_name, &written_back_to);
        let shown: Vec<String> = swaps.iter().map(|swap| in_words(std::slice::from_ref(swap)) + "\n").collect();
        expect![[r#"
            /dev/dm-1 (encrypted by dm-crypt)
            /dev/dm-2 (encrypted by dm-crypt, set up by Tithe for a run)
            /dev/sda2 (not encrypted: keys and data of a server can reach the disk in the clear)
            /swapfile (a file, as open as its file system)
            /dev/zram0 (compressed memory, reaches no disk)
            /dev/zram1 (not encrypted: keys and data of a server can reach the disk in the clear)
            /dev/zram2 (encrypted by dm-crypt)
        "#]]
        .assert_eq(&shown.concat());
        assert_eq!(in_words(&parse("Filename Type Size\n", false, &|_| None, &|_| None)), "none");
        expect!["this machine swaps to /dev/sda2 (not encrypted: keys and data of a server can reach the disk in the clear), /swapfile (a file, as open as its file system), /dev/zram1 (not encrypted: keys and data of a server can reach the disk in the clear): data that are encrypted in files may reach the disk from memory: switch swap off, encrypt it, or give each server a limit of `memory`, so that it does not swap"].assert_eq(&warning(&swaps).expect("two places are open"));
        let protected =
            "Filename Type Size\n/dev/dm-1 partition 100\n/dev/dm-2 partition 100\n/dev/zram0 partition 100\n";
        assert_eq!(warning(&parse(protected, false, &crypt_name, &written_back_to)), None);
        // What Tithe set up has the cipher that Tithe asked for.
        let doubtful = parse(protected, true, &crypt_name, &written_back_to);
        let exposures: Vec<Exposure> = doubtful.iter().map(|swap| swap.exposure).collect();
        assert_eq!(exposures, [Exposure::Doubtful, Exposure::Own, Exposure::Memory]);
        let warning = warning(&doubtful).expect("one place may be open");
        assert!(warning.contains("/dev/dm-1 (dm-crypt, perhaps without encryption"), "{warning}");
    }

    #[test]
    fn a_cipher_that_encrypts_nothing_is_known_by_its_users() {
        let block = |name: &str, references: &str| {
            format!("name         : {name}\ndriver       : d\n{references}selftest     : passed\n")
        };
        let [unused, used] = ["refcnt       : 1\n", "refcnt       : 2\n"];
        let text = |null: &str| [block("xts(aes)", used), block("ecb(cipher_null)", null)].join("\n");
        assert!(!uses_null_cipher(&text(unused)));
        assert!(uses_null_cipher(&text(used)));
        assert!(uses_null_cipher(&text("")), "without a count it may be used");
        assert!(!uses_null_cipher(&block("xts(aes)", used)), "the kernel has none");
    }

    #[test]
    fn a_logical_volume_is_as_encrypted_as_all_that_it_lies_on() {
        let devices = tempfile::tempdir().expect("a folder");
        let device = |path: &str, uuid: &str, name: &str| {
            let folder = devices.path().join(path).join("dm");
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("uuid"), format!("{uuid}\n")).expect("written");
            fs::write(folder.join("name"), name).expect("written");
        };
        device("swap", "LVM-abc", "vg-swap");
        let at = || crypt_name_at(&devices.path().join("swap"));
        assert_eq!(at(), None, "it lies on nothing that is known");
        device("swap/slaves/dm-0", "CRYPT-LUKS2-1-sda3_crypt", "sda3_crypt");
        assert_eq!(at().as_deref(), Some("sda3_crypt"));
        fs::create_dir_all(devices.path().join("swap/slaves/sdb1")).expect("a folder");
        assert_eq!(at(), None, "half of it reaches a disk in the clear");
        device("whole", "CRYPT-INTEGRITY-1-whole", "whole");
        let at = || crypt_name_at(&devices.path().join("whole"));
        assert_eq!(at(), None, "integrity alone hides nothing");
        device("whole/slaves/dm-1", "CRYPT-LUKS2-2-below", "below");
        assert_eq!(at().as_deref(), Some("below"));
        let hiding = ["PLAIN", "LUKS1", "LUKS2", "LOOPAES", "TCRYPT", "BITLK", "FVAULT2"];
        for kind in hiding.into_iter().chain(["VERITY", "INTEGRITY", "SUBDEV"]) {
            device(kind, &format!("CRYPT-{kind}-3-{kind}"), kind);
            let hides = crypt_name_at(&devices.path().join(kind)).is_some();
            assert_eq!(hides, hiding.contains(&kind), "{kind}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "([ -~]|\\n|\\t)*") {
            prop_assert!(parse(&text, false, &|_| None, &|_| None).len() <= text.lines().count());
            prop_assert!(!uses_null_cipher(&text) || text.contains("cipher_null"));
        }
    }
}
