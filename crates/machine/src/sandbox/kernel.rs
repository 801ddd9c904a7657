//! System calls that volumes need and the standard library does not have: mount(2), umount2(2), syncfs(2), swapon(2),
//! posix_fallocate(3), and the requests of Linux's file encryption (Documentation/filesystems/fscrypt.rst,
//! `linux/fscrypt.h`).

use std::{
    ffi::CString,
    fs::File,
    io,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::Path,
    ptr,
};

use crate::secret::Secret;

/// Mounts `device`, a file system of type `kind`, at `at`.
pub fn mount(device: &Path, at: &Path, kind: &str, flags: libc::c_ulong, options: &str) -> io::Result<()> {
    let (device, at) = (c_path(device)?, c_path(at)?);
    let (kind, options) = (CString::new(kind)?, CString::new(options)?);
    // SAFETY: all four are C strings that live through the call, which copies what it keeps.
    let status = unsafe { libc::mount(device.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) };
    answer(status)
}

/// Makes the folder `from` appear at `at` as well.
pub fn bind(from: &Path, at: &Path) -> io::Result<()> {
    let (from, at) = (c_path(from)?, c_path(at)?);
    // SAFETY: both are C strings that live through the call; a bind mount reads neither type nor options.
    answer(unsafe { libc::mount(from.as_ptr(), at.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null()) })
}

/// Unmounts what is at `at`, itself and not what a link there points to. `lazily`: out of sight at once, and let go of
/// by the kernel once nobody uses it.
///
/// A file system in user space is aborted first, as `/sys/fs/fuse/connections/N/abort` would do where that is mounted:
/// what waits for it is answered with an error (umount2(2), `MNT_FORCE`; the kernel's `fuse_umount_begin`). Nothing of
/// the file system itself is looked at, which would wait, too. Others know no force.
pub fn unmount(at: &Path, lazily: bool) -> io::Result<()> {
    let at = c_path(at)?;
    let flags = libc::UMOUNT_NOFOLLOW | libc::MNT_FORCE | if lazily { libc::MNT_DETACH } else { 0 };
    // SAFETY: a C string that lives through the call.
    answer(unsafe { libc::umount2(at.as_ptr(), flags) })
}

/// Writes everything that the file system of `path` still holds back to its device.
pub fn sync_file_system(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the descriptor is open for the whole call.
    answer(unsafe { libc::syncfs(file.as_raw_fd()) })
}

/// Gives `file` its first `bytes` bytes on the disk.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open for the whole call.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// `SWAP_FLAG_PREFER` with the highest priority there is (swapon(2), `linux/swap.h`): a page goes to the first place
/// that has room.
const BEFORE_ALL_OTHERS: libc::c_int = 0x8000 | 0x7fff;

/// Has the kernel swap to `device`, before it does to any other.
pub fn swap_on(device: &Path) -> io::Result<()> {
    let device = c_path(device)?;
    // SAFETY: a C string that lives through the call.
    answer(unsafe { libc::swapon(device.as_ptr(), BEFORE_ALL_OTHERS) })
}

/// Has the kernel take back into memory what is in `device`, and swap there no more.
pub fn swap_off(device: &Path) -> io::Result<()> {
    let device = c_path(device)?;
    // SAFETY: a C string that lives through the call.
    answer(unsafe { libc::swapoff(device.as_ptr()) })
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn answer(status: libc::c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The name that the kernel gives to a key: a hash of it.
pub type KeyName = [u8; 16];

/// `FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER`: keys of policies of version 2.
const BY_IDENTIFIER: u32 = 2;

/// Contents: `FSCRYPT_MODE_AES_256_XTS`.
pub const AES_256_XTS: u8 = 1;

/// Names of files: `FSCRYPT_MODE_AES_256_CTS`.
pub const AES_256_CTS: u8 = 4;

/// Names are padded to a multiple of 32 bytes: `FSCRYPT_POLICY_FLAGS_PAD_32`.
const PAD_32: u8 = 3;

/// `FS_IOC_SET_ENCRYPTION_POLICY`: `_IOR('f', 19, 12 bytes)`, whatever the version of the policy.
const SET_POLICY: libc::Ioctl = 0x800c_6613u32 as libc::Ioctl;
/// `FS_IOC_GET_ENCRYPTION_POLICY_EX`: `_IOWR('f', 22, 9 bytes)`.
const GET_POLICY: libc::Ioctl = 0xc009_6616u32 as libc::Ioctl;
/// `FS_IOC_ADD_ENCRYPTION_KEY`: `_IOWR('f', 23, 80 bytes)`.
const ADD_KEY: libc::Ioctl = 0xc050_6617u32 as libc::Ioctl;

/// `struct fscrypt_policy_v2`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct PolicyV2 {
    version: u8,
    contents: u8,
    names: u8,
    flags: u8,
    log2_data_unit: u8,
    reserved: [u8; 3],
    key: KeyName,
}

/// `struct fscrypt_get_policy_ex_arg`.
#[repr(C)]
#[derive(Default)]
struct GetPolicy {
    size: u64,
    policy: PolicyV2,
}

/// `struct fscrypt_add_key_arg` with room for a key of 32 bytes.
#[repr(C)]
#[derive(Default)]
struct AddKey {
    kind: u32,
    reserved: u32,
    name: [u8; 32],
    key_bytes: u32,
    key_id: u32,
    flags: u32,
    reserved_too: [u32; 7],
    key: [u8; 32],
}

/// Gives the file system of `folder` a key of 32 bytes; returns the name of the key.
pub fn add_key(folder: &Path, key: &Secret) -> io::Result<KeyName> {
    let raw = <[u8; 32]>::try_from(key.expose()).map_err(|_| io::Error::other("the key has not 32 bytes"))?;
    let mut asked = AddKey { kind: BY_IDENTIFIER, key_bytes: 32, key: raw, ..AddKey::default() };
    let file = File::open(folder)?;
    // SAFETY: `asked` is the request's structure followed by as many bytes of key as it announces, and lives through
    // it.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), ADD_KEY, &raw mut asked) };
    asked.key.fill(0);
    answer(status)?;
    let mut name = KeyName::default();
    name.copy_from_slice(&asked.name[..16]);
    Ok(name)
}

/// Has everything below the empty folder `folder` encrypted with the key of this name: contents with AES-256-XTS, names
/// with AES-256-CTS.
pub fn set_policy(folder: &Path, key: KeyName) -> io::Result<()> {
    let policy =
        PolicyV2 { version: 2, contents: AES_256_XTS, names: AES_256_CTS, flags: PAD_32, key, ..PolicyV2::default() };
    let file = File::open(folder)?;
    // SAFETY: the request reads a policy of the version that its first byte says, and this is a whole one.
    answer(unsafe { libc::ioctl(file.as_raw_fd(), SET_POLICY, &raw const policy) })
}

/// How `path` is encrypted: the modes of contents and names. `None` where it is not.
pub fn policy(path: &Path) -> io::Result<Option<(u8, u8)>> {
    let mut asked = GetPolicy { size: size_of::<PolicyV2>() as u64, ..GetPolicy::default() };
    let file = File::open(path)?;
    // SAFETY: the kernel writes at most as many bytes of policy as `size` says, and there are as many.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), GET_POLICY, &raw mut asked) };
    match answer(status) {
        Ok(()) => Ok(Some((asked.policy.contents, asked.policy.names))),
        Err(error) if error.raw_os_error() == Some(libc::ENODATA) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_the_requests_say() {
        assert_eq!(size_of::<PolicyV2>(), 24);
        assert_eq!(size_of::<AddKey>() - 32, 80);
        assert_eq!(size_of::<GetPolicy>(), 32);
    }
}
