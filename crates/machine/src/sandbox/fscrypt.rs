//! The requests of Linux's file encryption (Documentation/filesystems/fscrypt.rst, `linux/fscrypt.h`).

use std::{fs::File, io, path::Path};

use rustix::{
    io::Errno,
    ioctl::{Opcode, Updater, ioctl, opcode},
};

use crate::secret::Secret;

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

/// `FS_IOC_SET_ENCRYPTION_POLICY`: its length is that of version 1 for every version of the policy.
const SET_POLICY: Opcode = opcode::read::<[u8; 12]>(b'f', 19);
/// `FS_IOC_GET_ENCRYPTION_POLICY_EX`: the number of bytes and the first one of the policy.
const GET_POLICY: Opcode = opcode::read_write::<[u8; 9]>(b'f', 22);
/// `FS_IOC_ADD_ENCRYPTION_KEY`: the structure without the key behind it.
const ADD_KEY: Opcode = opcode::read_write::<[u8; 80]>(b'f', 23);

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
///
/// # Errors
/// When the key has another length; the kernel's.
pub fn add_key(folder: &Path, key: &Secret) -> io::Result<KeyName> {
    let raw = <[u8; 32]>::try_from(key.expose()).map_err(|_| io::Error::other("the key has not 32 bytes"))?;
    let mut asked = AddKey { kind: BY_IDENTIFIER, key_bytes: 32, key: raw, ..AddKey::default() };
    let answer = request::<ADD_KEY, _>(folder, &mut asked);
    asked.key.fill(0);
    answer?;
    let mut name = KeyName::default();
    name.copy_from_slice(&asked.name[..16]);
    Ok(name)
}

/// Encrypts everything below the empty folder `folder` with the key of this name: contents with AES-256-XTS, names with
/// AES-256-CTS.
///
/// # Errors
/// The kernel's: without the key, and when the folder is not empty.
pub fn set_policy(folder: &Path, key: KeyName) -> io::Result<()> {
    let mut policy =
        PolicyV2 { version: 2, contents: AES_256_XTS, names: AES_256_CTS, flags: PAD_32, key, ..PolicyV2::default() };
    request::<SET_POLICY, _>(folder, &mut policy)
}

/// How `path` is encrypted: the modes of contents and names. `None` if it is not.
///
/// # Errors
/// The kernel's, and those of opening `path`.
pub fn policy(path: &Path) -> io::Result<Option<(u8, u8)>> {
    let mut asked = GetPolicy { size: size_of::<PolicyV2>() as u64, ..GetPolicy::default() };
    match request::<GET_POLICY, _>(path, &mut asked) {
        Ok(()) => Ok(Some((asked.policy.contents, asked.policy.names))),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NODATA) => Ok(None),
        Err(error) => Err(error),
    }
}

fn request<const REQUEST: Opcode, T>(path: &Path, asked: &mut T) -> io::Result<()> {
    let file = File::open(path)?;
    // SAFETY: the three callers, which are in this file, pass each request its own structure. The kernel reads only the
    // size given in the structure: the version of a policy, the length of the key behind `AddKey`. It writes no more
    // than `GetPolicy` has room for.
    Ok(unsafe { ioctl(file, Updater::<REQUEST, T>::new(asked)) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_the_requests_say() {
        assert_eq!([SET_POLICY, GET_POLICY, ADD_KEY], [0x800c_6613, 0xc009_6616, 0xc050_6617]);
        assert_eq!(size_of::<PolicyV2>(), 24);
        assert_eq!(size_of::<AddKey>() - 32, 80);
        assert_eq!(size_of::<GetPolicy>(), 32);
    }
}
