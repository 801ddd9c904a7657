//! Mounts, loop devices and mappings of this machine, from the kernel's own lists; and unmounting.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use rustix::mount::UnmountFlags;

/// Unmounts what is at `at`, without following a link there. With `lazily`, it is detached at once, and the kernel
/// releases it once it is unused.
///
/// A file system in user space is aborted first, as `/sys/fs/fuse/connections/N/abort` would do if that is mounted:
/// every process that waits for it gets an error (umount2(2), `MNT_FORCE`; the kernel's `fuse_umount_begin`). The file
/// system itself is not accessed, because that would block too. Other file systems ignore the flag.
///
/// # Errors
/// The kernel's: when nothing is mounted there, and when it is in use and not `lazily` detached.
pub fn unmount(at: &Path, lazily: bool) -> io::Result<()> {
    let lazy = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    Ok(rustix::mount::unmount(at, UnmountFlags::NOFOLLOW | UnmountFlags::FORCE | lazy)?)
}

/// All mount points, in the order in which they were mounted.
pub fn mount_points() -> Vec<PathBuf> {
    parse_mountinfo(&fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// The mount points in the text of `/proc/self/mountinfo`: the fifth field of each line, in which the kernel writes
/// white space and backslashes as three octal digits (proc_pid_mountinfo(5)). Lines without such a field are skipped.
fn parse_mountinfo(text: &[u8]) -> Vec<PathBuf> {
    let point = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(unescaped);
    text.split(|byte| *byte == b'\n').filter_map(point).collect()
}

fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let octal = |digit: &u8| (b'0'..=b'7').contains(digit).then(|| u16::from(digit - b'0'));
        let code = match rest {
            [b'\\', a, b, c, ..] => octal(a).zip(octal(b)).zip(octal(c)).map(|((a, b), c)| a * 64 + b * 8 + c),
            _ => None,
        };
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// A loop device in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopDevice {
    /// `/dev/loop0`.
    pub device: PathBuf,
    /// The file behind it.
    pub image: PathBuf,
    /// It bypasses the page cache of the file.
    pub direct: bool,
}

/// The loop devices in use.
pub fn loops() -> Vec<LoopDevice> {
    let of = |name: &str, folder: &Path| {
        let line = |file: &str| fs::read_to_string(folder.join("loop").join(file)).ok();
        let image = line("backing_file")?;
        Some(LoopDevice {
            device: Path::new("/dev").join(name),
            image: image.trim_end_matches('\n').into(),
            direct: line("dio").is_some_and(|dio| dio.trim() == "1"),
        })
    };
    block_devices("loop").iter().filter_map(|(name, folder)| of(name, folder)).collect()
}

/// A mapping of the device mapper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The kernel's name of its device: `dm-0`.
    pub device: String,
    /// Its name below `/dev/mapper`.
    pub name: String,
    /// Kernel names of the devices below it: `loop0`.
    pub below: Vec<String>,
    /// Processes that read or write it are blocked.
    pub suspended: bool,
}

/// The mappings of the device mapper.
pub fn mappings() -> Vec<Mapping> {
    let of = |device: String, folder: &Path| {
        let name = fs::read_to_string(folder.join("dm/name")).ok()?.trim().to_owned();
        let below = fs::read_dir(folder.join("slaves")).ok()?.flatten();
        let below = below.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let suspended = fs::read_to_string(folder.join("dm/suspended")).is_ok_and(|text| text.trim() == "1");
        Some(Mapping { device, name, below, suspended })
    };
    block_devices("dm-").into_iter().filter_map(|(device, folder)| of(device, &folder)).collect()
}

/// True if the device called `device` is one of `loops` or lies on one, directly or over other `mappings`.
pub fn stands_on(device: &str, loops: &[&str], mappings: &[Mapping]) -> bool {
    let of_device = |mapping: &&Mapping| mapping.device == device;
    let mut below = mappings.iter().filter(of_device).flat_map(|mapping| &mapping.below);
    loops.contains(&device) || below.any(|below| stands_on(below, loops, mappings))
}

/// Block devices whose kernel name starts with `prefix`, with their folders in `/sys`, in the order of their names.
fn block_devices(prefix: &str) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let named = entries.flatten().filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let mut devices: Vec<_> = named.filter(|(name, _)| name.starts_with(prefix)).collect();
    devices.sort();
    devices
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn mount_points_are_the_fifth_field() {
        let text = b"22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                     99 22 7:0 / /var/tmp/a\\040b\\134c rw shared:1 - ext4 /dev/loop0 rw\n\nshort line\n";
        assert_eq!(parse_mountinfo(text), [PathBuf::from("/"), PathBuf::from("/var/tmp/a b\\c")]);
    }

    #[test]
    fn a_mapping_stands_on_a_loop_device_through_others() {
        let mapping = |device: &str, below: &[&str]| Mapping {
            device: device.to_owned(),
            name: String::new(),
            below: below.iter().map(|below| (*below).to_owned()).collect(),
            suspended: false,
        };
        let mappings = [mapping("dm-0", &["dm-2"]), mapping("dm-1", &["sda"]), mapping("dm-2", &["dm-1", "loop3"])];
        assert!(stands_on("dm-0", &["loop3"], &mappings) && stands_on("loop3", &["loop3"], &[]));
        assert!(!stands_on("dm-1", &["loop3"], &mappings) && !stands_on("dm-0", &["loop4"], &mappings));
    }

    proptest! {
        #[test]
        fn what_the_kernel_escapes_comes_back(path in "/[ -~\\t\\n]{0,40}") {
            let escaped: String = path.bytes().map(|byte| match byte {
                b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}"),
                _ => char::from(byte).to_string(),
            }).collect();
            let line = format!("1 2 3:4 / {escaped} rw - ext4 /dev/x rw\n");
            prop_assert_eq!(parse_mountinfo(line.as_bytes()), [PathBuf::from(path)]);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let longest = parse_mountinfo(&bytes).iter().map(|path| path.as_os_str().as_bytes().len()).max();
            prop_assert!(longest.unwrap_or(0) <= bytes.len());
        }
    }
}
