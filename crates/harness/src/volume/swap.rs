//! Whether memory that a server gives back to the kernel reaches a disk in the clear.

use std::{fs, path::Path};

/// One place that the kernel swaps to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    /// Device or file.
    pub path: String,
    /// What is known about its encryption.
    pub guard: Guard,
}

/// What is known about the encryption of a swap place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// dm-crypt lies below it.
    Encrypted,
    /// It is compressed memory and reaches no disk.
    Memory,
    /// Nothing encrypts the device.
    Open,
    /// A file: as open as its file system.
    File,
}

/// The places that this machine swaps to.
pub fn swaps() -> Vec<Swap> {
    let mapped = |device: &Path| {
        let device = fs::canonicalize(device).unwrap_or_else(|_| device.to_owned());
        let name = device.file_name().unwrap_or_default().to_owned();
        let uuid = fs::read_to_string(Path::new("/sys/block").join(name).join("dm/uuid")).unwrap_or_default();
        uuid.starts_with("CRYPT-")
    };
    parse(&fs::read_to_string("/proc/swaps").unwrap_or_default(), &mapped)
}

/// The places in the text of `/proc/swaps`: path and type are the first two fields, below a line of titles. `mapped` says
/// whether a device is one of dm-crypt.
fn parse(text: &str, mapped: &dyn Fn(&Path) -> bool) -> Vec<Swap> {
    let place = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (path, kind) = (fields.next()?, fields.next()?);
        let guard = match kind {
            "file" => Guard::File,
            _ if path.starts_with("/dev/zram") => Guard::Memory,
            _ if mapped(Path::new(path)) => Guard::Encrypted,
            _ => Guard::Open,
        };
        Some(Swap { path: path.to_owned(), guard })
    };
    text.lines().skip(1).filter_map(place).collect()
}

/// `none`, or each place with what is known about it.
pub fn in_words(swaps: &[Swap]) -> String {
    let one = |swap: &Swap| {
        let guard = match swap.guard {
            Guard::Encrypted => "encrypted by dm-crypt",
            Guard::Memory => "compressed memory, reaches no disk",
            Guard::Open => "not encrypted: keys and data of a server can reach the disk in the clear",
            Guard::File => "a file, as open as its file system",
        };
        format!("{} ({guard})", swap.path)
    };
    if swaps.is_empty() { "none".to_owned() } else { swaps.iter().map(one).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_place_says_how_open_it_is() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/dm-1 partition 100 0 -2\n\
                    /dev/sda2 partition 100 0 -3\n/swapfile file 100 0 -4\n/dev/zram0 partition 100 0 100\n";
        let swaps = parse(text, &|device| device == Path::new("/dev/dm-1"));
        expect![
            "/dev/dm-1 (encrypted by dm-crypt), /dev/sda2 (not encrypted: keys and data of a server can reach the disk in the clear), /swapfile (a file, as open as its file system), /dev/zram0 (compressed memory, reaches no disk)"
        ]
        .assert_eq(&in_words(&swaps));
        assert_eq!(in_words(&parse("Filename Type Size\n", &|_| true)), "none");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "([ -~]|\\n|\\t)*") {
            prop_assert!(parse(&text, &|_| false).len() <= text.lines().count());
        }
    }
}
