//! Whether memory that a server gives back to the kernel reaches a disk in the clear.
//!
//! Swap that Tithe did not make is looked at and left alone; what Tithe sets up where an experiment asks for it is
//! recognised by the name of its mapping.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use crate::sandbox::SANDBOX_PREFIX;

/// One place that the kernel swaps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// Device or file.
    pub path: String,
    /// What is known about its encryption.
    pub exposure: Exposure,
}

/// What is known about the encryption of a swap place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// dm-crypt lies below it.
    Encrypted,
    /// Tithe set it up for a run.
    Own,
    /// It is compressed memory and reaches no disk.
    Memory,
    /// Nothing encrypts the device.
    Open,
    /// A file: as open as its file system.
    File,
}

/// The places that this machine swaps to.
pub fn swaps() -> Vec<Swap> {
    parse(&fs::read_to_string("/proc/swaps").unwrap_or_default(), &crypt_name)
}

/// The name of the mapping of dm-crypt that `device` is; `None` for any other device.
fn crypt_name(device: &Path) -> Option<String> {
    let number = fs::metadata(device).ok()?.rdev();
    let folder = format!("/sys/dev/block/{}:{}/dm", libc::major(number), libc::minor(number));
    let line = |file: &str| fs::read_to_string(Path::new(&folder).join(file)).ok();
    line("uuid")?.starts_with("CRYPT-").then(|| line("name").unwrap_or_default())
}

/// The places in the text of `/proc/swaps`: path and type are the first two fields, below a line of titles.
/// `crypt_name` names the mapping that a device is, if it is one of dm-crypt.
fn parse(text: &str, crypt_name: &dyn Fn(&Path) -> Option<String>) -> Vec<Swap> {
    let place = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (path, kind) = (fields.next()?, fields.next()?);
        let exposure = match (kind, crypt_name(Path::new(path))) {
            ("file", _) => Exposure::File,
            (_, Some(name)) if name.starts_with(SANDBOX_PREFIX) => Exposure::Own,
            (_, Some(_)) => Exposure::Encrypted,
            _ if path.starts_with("/dev/zram") => Exposure::Memory,
            _ => Exposure::Open,
        };
        Some(Swap { path: path.to_owned(), exposure })
    };
    text.lines().skip(1).filter_map(place).collect()
}

/// `none`, or each place with what is known about it.
pub fn in_words(swaps: &[Swap]) -> String {
    let one = |swap: &Swap| {
        let exposure = match swap.exposure {
            Exposure::Encrypted => "encrypted by dm-crypt",
            Exposure::Own => "encrypted by dm-crypt, set up by Tithe for a run",
            Exposure::Memory => "compressed memory, reaches no disk",
            Exposure::Open => "not encrypted: keys and data of a server can reach the disk in the clear",
            Exposure::File => "a file, as open as its file system",
        };
        format!("{} ({exposure})", swap.path)
    };
    if swaps.is_empty() { "none".to_owned() } else { swaps.iter().map(one).collect::<Vec<_>>().join(", ") }
}

/// What the reader of a report should know where data are protected at rest; `None` where every place is known to be
/// encrypted or reaches no disk.
pub fn warning(swaps: &[Swap]) -> Option<String> {
    let open = |swap: &&Swap| matches!(swap.exposure, Exposure::Open | Exposure::File);
    let open: Vec<Swap> = swaps.iter().filter(open).cloned().collect();
    (!open.is_empty()).then(|| {
        format!(
            "this machine swaps to {}: what is encrypted in files may reach the disk from memory; Tithe leaves alone swap \
             that it did not make: switch it off, encrypt it, or give each server a limit of `memory`, with which it does \
             not swap",
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
                    /dev/sda2 partition 100 0 -3\n/swapfile file 100 0 -4\n/dev/zram0 partition 100 0 100\n";
        let crypt_name = |device: &Path| match device.to_str() {
            Some("/dev/dm-1") => Some("swap".to_owned()),
            Some("/dev/dm-2") => Some("tithe-sandbox-1-2-swap".to_owned()),
            _ => None,
        };
        let swaps = parse(text, &crypt_name);
        let shown: Vec<String> = swaps.iter().map(|swap| in_words(std::slice::from_ref(swap)) + "\n").collect();
        expect![[r#"
            /dev/dm-1 (encrypted by dm-crypt)
            /dev/dm-2 (encrypted by dm-crypt, set up by Tithe for a run)
            /dev/sda2 (not encrypted: keys and data of a server can reach the disk in the clear)
            /swapfile (a file, as open as its file system)
            /dev/zram0 (compressed memory, reaches no disk)
        "#]]
        .assert_eq(&shown.concat());
        assert_eq!(in_words(&parse("Filename Type Size\n", &|_| None)), "none");
        expect!["this machine swaps to /dev/sda2 (not encrypted: keys and data of a server can reach the disk in the clear), /swapfile (a file, as open as its file system): what is encrypted in files may reach the disk from memory; Tithe leaves alone swap that it did not make: switch it off, encrypt it, or give each server a limit of `memory`, with which it does not swap"].assert_eq(&warning(&swaps).expect("two places are open"));
        let protected =
            "Filename Type Size\n/dev/dm-1 partition 100\n/dev/dm-2 partition 100\n/dev/zram0 partition 100\n";
        assert_eq!(warning(&parse(protected, &crypt_name)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "([ -~]|\\n|\\t)*") {
            prop_assert!(parse(&text, &|_| None).len() <= text.lines().count());
        }
    }
}
