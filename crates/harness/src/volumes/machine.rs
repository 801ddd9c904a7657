//! The requirements of volumes and encrypted swap on the machine, checked before anything is started.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tithe_machine::{
    launch::Missing,
    sandbox::tools::{SYSTEM_FOLDERS, tool},
};

/// A program that volumes run.
pub struct Tool {
    /// Its name.
    pub program: &'static str,
    /// The Debian package that brings it.
    pub package: &'static str,
}

/// Needed by everything in a file behind a loop device.
const LOSETUP: Tool = Tool { program: "losetup", package: "mount" };

/// Makes file systems.
pub const MKFS_EXT4: Tool = Tool { program: "mkfs.ext4", package: "e2fsprogs" };

/// Sets up dm-crypt.
pub const CRYPTSETUP: Tool = Tool { program: "cryptsetup", package: "cryptsetup-bin" };

/// Resumes devices that a killed `cryptsetup` leaves suspended.
pub const DMSETUP: Tool = Tool { program: "dmsetup", package: "dmsetup" };

/// Makes swap.
pub const MKSWAP: Tool = Tool { program: "mkswap", package: "util-linux" };

/// Begins to use swap; `swapoff`, which ends it, is in the same package.
pub const SWAPON: Tool = Tool { program: "swapon", package: "mount" };

/// Checks for a feature of the kernel; if it is missing, returns what was seen and what to do.
pub type KernelCheck = fn() -> Result<(), (String, String)>;

/// Something that this machine does not have: its name, what was checked, what to do.
struct Lack {
    what: String,
    seen: String,
    remedy: String,
}

/// Checks what `asked`, as experiments call it, needs: root's rights, loop devices, `tools` and the `kernel` checks,
/// which return what they saw and what to do.
///
/// # Errors
/// Everything that is missing, in one error.
pub fn needs(asked: &str, tools: &[Tool], kernel: &[(&str, KernelCheck)]) -> Result<(), Missing> {
    let mut lacks: Vec<Lack> = root().into_iter().collect();
    if !Path::new("/dev/loop-control").exists() {
        lacks.push(Lack {
            what: "a loop device".to_owned(),
            seen: "/dev/loop-control does not exist".to_owned(),
            remedy: "as root: modprobe loop; in a container: pass the loop devices of the host on".to_owned(),
        });
    }
    lacks.extend(std::iter::once(&LOSETUP).chain(tools).filter(|needed| tool(needed.program).is_none()).map(
        |needed| Lack {
            what: format!("the program {}", needed.program),
            seen: format!("{} in PATH, {}", needed.program, SYSTEM_FOLDERS.join(", ")),
            remedy: format!("Debian, Ubuntu: apt install {}", needed.package),
        },
    ));
    for (what, check) in kernel {
        if let Err((seen, remedy)) = check() {
            lacks.push(Lack { what: (*what).to_owned(), seen, remedy });
        }
    }
    if lacks.is_empty() {
        return Ok(());
    }
    let what: Vec<String> = lacks.iter().map(|lack| lack.what.clone()).collect();
    Err(Missing {
        what: format!("what {asked} needs ({})", what.join(", ")),
        looked_in: lacks.iter().map(|lack| lack.seen.clone()).collect(),
        how_to_install: lacks.into_iter().map(|lack| lack.remedy).collect(),
    })
}

/// CAP_SYS_ADMIN, the capability that mounting needs (capabilities(7)).
const CAP_SYS_ADMIN: u32 = 21;

fn root() -> Option<Lack> {
    let user = rustix::process::geteuid().as_raw();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let seen = match user {
        0 if may_mount(&status) => return None,
        0 => "the capabilities of this process (CapEff in /proc/self/status) lack CAP_SYS_ADMIN".to_owned(),
        _ => format!("tithe runs as user {user}"),
    };
    let remedy = "run tithe as root, on a machine or in a container that may mount".to_owned();
    Some(Lack { what: "root's right to mount".to_owned(), seen, remedy })
}

/// True when the text of `/proc/self/status` grants CAP_SYS_ADMIN.
fn may_mount(status: &str) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set >> CAP_SYS_ADMIN & 1 == 1)
}

/// Checks whether this kernel has the device mapper and its target `crypt`, or modules of them to load.
///
/// # Errors
/// What was found instead, and what to do.
pub fn dm_crypt() -> Result<(), (String, String)> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
    let modules = PathBuf::from("/lib/modules").join(&release);
    let list = |name: &str| fs::read_to_string(modules.join(name)).unwrap_or_default();
    let modules_text = list("modules.dep") + &list("modules.builtin");
    let misc = fs::read_to_string("/proc/misc").unwrap_or_default();
    let loaded = |name: &str| Path::new("/sys/module").join(name).exists();
    let reason = dm_crypt_lack(&misc, &modules_text, loaded("dm_mod"), loaded("dm_crypt"));
    reason.map_or(Ok(()), |reason| {
        let seen = format!("Linux {release}: {reason} (searched {})", modules.display());
        Err((seen, "use a kernel with CONFIG_DM_CRYPT: Debian's own has it as a module".to_owned()))
    })
}

/// What is missing according to `/proc/misc` and the lists of modules.
fn dm_crypt_lack(misc: &str, modules: &str, mapper_loaded: bool, crypt_loaded: bool) -> Option<String> {
    let module = |name: &str| {
        let file = format!("/{name}.ko");
        modules.lines().any(|line| line.split(':').next().is_some_and(|path| path.contains(&file)))
    };
    let mapper = misc.lines().any(|line| line.split_ascii_whitespace().nth(1) == Some("device-mapper"));
    if !mapper && !mapper_loaded && !module("dm-mod") {
        return Some(
            "no device mapper: /proc/misc lists none, so /dev/mapper/control has no driver, and there is no module \
             dm-mod to load"
                .to_owned(),
        );
    }
    let crypt = crypt_loaded || module("dm-crypt");
    (!crypt).then(|| {
        "the device mapper is there, its target crypt is not, and there is no module dm-crypt to load".to_owned()
    })
}

/// Checks whether ext4 of this kernel encrypts files.
///
/// # Errors
/// As [`dm_crypt`].
pub fn ext4_encryption() -> Result<(), (String, String)> {
    let path = "/sys/fs/ext4/features/encryption";
    if Path::new(path).exists() {
        return Ok(());
    }
    Err((format!("{path} does not exist"), "use a kernel with CONFIG_FS_ENCRYPTION: Debian's own has it".to_owned()))
}

/// Checks whether programs can serve file systems (FUSE).
///
/// # Errors
/// As [`dm_crypt`].
pub fn fuse() -> Result<(), (String, String)> {
    if Path::new("/dev/fuse").exists() {
        return Ok(());
    }
    Err((
        "/dev/fuse does not exist".to_owned(),
        "as root: modprobe fuse; in a container: --device /dev/fuse".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_mapper_is_found_or_its_lack_is_named() {
        let misc = "235 loop-control\n236 device-mapper\n";
        let modules =
            "kernel/drivers/md/dm-crypt.ko.xz: kernel/drivers/md/dm-mod.ko.xz\nkernel/drivers/md/dm-mod.ko.xz:\n";
        assert_eq!(dm_crypt_lack("237 loop-control\n", modules, false, false), None, "modules can be loaded");
        assert_eq!(dm_crypt_lack(misc, "", true, true), None, "loaded or built in");
        let told = |misc, modules| dm_crypt_lack(misc, modules, false, false).expect("a lack");
        assert!(told("237 loop-control\n", "").starts_with("no device mapper: /proc/misc lists none"));
        assert!(told(misc, "kernel/drivers/md/dm-mod.ko:\n").starts_with("the device mapper is there"));
        // A module that only depends on dm-crypt does not count.
        assert!(told(misc, "kernel/x.ko: kernel/drivers/md/dm-crypt.ko\n").contains("its target crypt is not"));
    }

    #[test]
    fn the_right_to_mount_is_one_bit() {
        assert!(may_mount("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(may_mount("CapEff:\t0000000000200000\n"));
        // The capabilities that Docker gives to root.
        assert!(!may_mount("CapEff:\t00000000a80425fb\n"));
        assert!(!may_mount(""));
    }
}
