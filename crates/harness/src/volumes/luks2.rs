//! LUKS2: dm-crypt between the image and its file system.

use std::path::Path;

use tithe_machine::{
    fault::Fault,
    launch::{Install, Missing},
    observation::Observation,
    sandbox::{
        mounts,
        sidecar::Sidecar,
        volume_builder::{Layout, VolumeBuilder},
    },
};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment::Protection as Chosen,
};
use tithe_plugin::{
    evidence::Check,
    protection::Protection,
    rotation::Rotator,
    setup::Setup,
    volume::{Volume, VolumeSpec},
};

use super::{
    SIZE,
    evidence::keys_tried,
    luks_header::Header,
    machine,
    reencryption::{HOW, Reencryption, VolumeKeyRotated},
};

/// The whole disk encrypted by the kernel.
#[derive(Debug)]
pub struct Luks2;

impl Protection for Luks2 {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "volume-luks2",
            title: "Encrypted volume, LUKS2",
            protects_against: "attackers who read the disk while the volume is closed: a stolen or discarded disk, an image \
                             of it, a copy made by the storage.",
            leaves_open: "everyone who can read the files while the volume is open, administrators and backups \
                          included; undetected changes of the ciphertext; which blocks are written and when.",
            options: &[
                OptionEntry {
                    name: "cipher",
                    kind: OptionKind::Choice(&["aes-xts-plain64", "serpent-xts-plain64", "twofish-xts-plain64"]),
                    default: Some(DefaultValue::Text("aes-xts-plain64")),
                    help: "Cipher, mode and initialisation vector, as cryptsetup names them.",
                },
                OptionEntry {
                    name: "key_bits",
                    kind: OptionKind::Choice(&["256", "512"]),
                    default: Some(DefaultValue::Text("512")),
                    help: "Length of the key; XTS uses one half for the data: 512 is AES-256.",
                },
                OptionEntry {
                    name: "sector",
                    kind: OptionKind::Choice(&["512", "4096"]),
                    default: Some(DefaultValue::Text("512")),
                    help: "Bytes that are encrypted as one.",
                },
                OptionEntry {
                    name: "no_read_workqueue",
                    kind: OptionKind::Flag,
                    default: Some(DefaultValue::Flag(false)),
                    help: "Reads are decrypted by the thread that reads, not by threads of the kernel.",
                },
                OptionEntry {
                    name: "no_write_workqueue",
                    kind: OptionKind::Flag,
                    default: Some(DefaultValue::Flag(false)),
                    help: "Writes are encrypted by the thread that writes, not by threads of the kernel.",
                },
                OptionEntry {
                    name: "rotate",
                    kind: OptionKind::Flag,
                    default: Some(DefaultValue::Flag(false)),
                    help: "The volume is encrypted with another key, again and again, while it is measured (cryptsetup \
                           reencrypt).",
                },
                SIZE,
            ],
            at_rest: true,
            elsewhere: true,
            rotated_by: Some("rotate"),
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, _install: &Install, _chosen: &Chosen) -> Result<(), Missing> {
        let tools = [machine::MKFS_EXT4, machine::CRYPTSETUP, machine::DMSETUP];
        machine::needs(self.entry().id, &tools, &[("dm-crypt", machine::dm_crypt)])
    }

    fn apply(&self, chosen: &Chosen, setup: &mut Setup) {
        let spec = VolumeSpec::of(&Luks2, chosen, super::bytes(chosen), &setup.credentials.key);
        setup.volume = Some(VolumeSpec { rotates: chosen.flag("rotate"), ..spec });
    }

    fn evidence(&self, chosen: &Chosen) -> Vec<Box<dyn Check>> {
        let mut checks = super::checks(true);
        if chosen.flag("rotate") {
            checks.push(Box::new(VolumeKeyRotated));
        }
        checks
    }
}

impl Volume for Luks2 {
    fn layers(&self, spec: &VolumeSpec) -> Vec<String> {
        let (format, open) = (format_arguments(spec), open_arguments(spec));
        let mut layers = vec![
            super::image_in_words(spec),
            format!("cryptsetup luksFormat {}", format.join(" ")),
            format!("cryptsetup open {}", open.join(" ")),
            "ext4".to_owned(),
        ];
        if spec.rotates {
            layers.push(format!("while measured, again and again: cryptsetup reencrypt {HOW}"));
        }
        layers
    }

    fn set_up(&self, spec: &VolumeSpec, builder: &mut VolumeBuilder<'_>) -> Result<(), Fault> {
        let key = builder.layout.key();
        builder.write_key(&key, &spec.key)?;
        let key = key.display().to_string();
        let device = builder.loop_device()?;
        let device_text = device.display().to_string();
        let name = builder.layout.mapping();
        let mut format = vec!["luksFormat".to_owned()];
        format.extend(format_arguments(spec));
        format.extend(["--batch-mode", "--key-file", &key, &device_text].map(str::to_owned));
        builder.run("cryptsetup", &texts(&format))?;
        builder.note_mapping(&name)?;
        let mut open = vec!["open".to_owned()];
        open.extend(open_arguments(spec));
        open.extend(["--key-file", &key, &device_text, &name].map(str::to_owned));
        builder.run("cryptsetup", &texts(&open))?;
        builder.release_loop(&device)?;
        let mapped = Path::new("/dev/mapper").join(&name);
        builder.make_ext4(&mapped, &[])?;
        let folder = builder.layout.folder.clone();
        builder.mount_ext4(&mapped, &folder)
    }

    fn kernel_cipher(&self, spec: &VolumeSpec) -> Option<String> {
        kernel_name(spec.text("cipher"))
    }

    fn header(&self, spec: &VolumeSpec, layout: &Layout) -> Result<Observation, Fault> {
        let header = Header::read(&layout.image())?;
        if let Some(deviation) = deviation(&header, spec.text("cipher"), spec.text("key_bits"), spec.text("sector")) {
            return Ok(Observation::Exposed(deviation));
        }
        let name = layout.mapping();
        if !mounts::mappings().iter().any(|mapping| mapping.name == name) {
            return Ok(Observation::Exposed(format!("no mapping {name} is open over the disk")));
        }
        Ok(Observation::Protected(format!("{}; open as {name}", header.in_words())))
    }

    fn wrong_key(&self, spec: &VolumeSpec, layout: &Layout) -> Result<Observation, Fault> {
        let sandbox = layout.folder.parent().unwrap_or(Path::new("/"));
        let builder = VolumeBuilder::new(layout.clone(), sandbox)?;
        let wrong_key = layout.wrong_key();
        builder.write_key(&wrong_key, &spec.wrong_key())?;
        let (image, image_key) = (layout.image().display().to_string(), layout.key());
        let test = |key: &Path| {
            let key = key.display().to_string();
            builder.run("cryptsetup", &["open", "--test-passphrase", "--key-file", &key, &image]).map(drop)
        };
        Ok(keys_tried(WRONG_PASSPHRASE, test(&wrong_key), test(&image_key)))
    }

    fn rotator(&self, layout: &Layout, sidecar: Sidecar) -> Result<Box<dyn Rotator>, Fault> {
        Ok(Box::new(Reencryption::new(layout.clone(), sidecar)))
    }
}

/// How `header` differs from what was asked for; `None` if it does not.
fn deviation(header: &Header, cipher: &str, bits: &str, sector: &str) -> Option<String> {
    let (key_bits, sector_bytes) = (header.key_bits.to_string(), header.sector_bytes.to_string());
    let is_as_asked = (header.cipher.as_str(), key_bits.as_str(), sector_bytes.as_str()) == (cipher, bits, sector);
    (!is_as_asked).then(|| {
        format!(
            "asked for {cipher} with a key of {bits} bits and sectors of {sector} bytes; the disk has {}",
            header.in_words()
        )
    })
}

/// Exit status if no keyslot opens with the passphrase: cryptsetup(8), "RETURN CODES".
const WRONG_PASSPHRASE: u8 = 2;

fn format_arguments(spec: &VolumeSpec) -> Vec<String> {
    let (cipher, bits, sector) = (spec.text("cipher"), spec.text("key_bits"), spec.text("sector"));
    // The key is random and already strong, so key stretching protects nothing and uses memory.
    let text = format!(
        "--type luks2 --cipher {cipher} --key-size {bits} --sector-size {sector} --pbkdf pbkdf2 --pbkdf-force-iterations 1000"
    );
    text.split(' ').map(str::to_owned).collect()
}

fn open_arguments(spec: &VolumeSpec) -> Vec<String> {
    let flags =
        [("no_read_workqueue", "--perf-no_read_workqueue"), ("no_write_workqueue", "--perf-no_write_workqueue")];
    let set = flags.into_iter().filter(|(option, _)| spec.flag(option)).map(|(_, argument)| argument.to_owned());
    ["--type".to_owned(), "luks2".to_owned()].into_iter().chain(set).collect()
}

fn texts(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// The kernel's name for `aes-xts-plain64` in its list of ciphers: `xts(aes)`.
fn kernel_name(cipher: &str) -> Option<String> {
    let mut parts = cipher.split('-');
    let (cipher, mode) = (parts.next()?, parts.next()?);
    Some(format!("{mode}({cipher})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_are_called_as_the_kernel_calls_them() {
        assert_eq!(kernel_name("aes-xts-plain64").as_deref(), Some("xts(aes)"));
        assert_eq!(kernel_name("aes"), None);
    }

    #[test]
    fn a_disk_with_another_cipher_key_or_sector_is_not_as_asked() {
        let header = |cipher: &str, key_bits: u64, sector_bytes: u64| Header {
            cipher: cipher.to_owned(),
            key_bits,
            sector_bytes,
            data_offset: 0,
            digest: String::new(),
        };
        let deviates = |header: Header| deviation(&header, "aes-xts-plain64", "512", "4096").is_some();
        assert!(!deviates(header("aes-xts-plain64", 512, 4096)));
        for cipher in ["cipher_null-ecb", "aes-ecb", "aes-xts-plain", "des-cbc-essiv:sha256", ""] {
            assert!(deviates(header(cipher, 512, 4096)), "{cipher}");
        }
        for (key_bits, sector_bytes) in [(256, 4096), (0, 4096), (512, 512)] {
            assert!(deviates(header("aes-xts-plain64", key_bits, sector_bytes)), "{key_bits} {sector_bytes}");
        }
    }

    #[test]
    fn mappings_are_named_by_sandbox_and_server() {
        let layout = Layout::of(Path::new("/var/tmp/tithe-sandbox-12-ab/02-luks"));
        assert_eq!(layout.mapping(), "tithe-sandbox-12-ab-02-luks");
    }
}
