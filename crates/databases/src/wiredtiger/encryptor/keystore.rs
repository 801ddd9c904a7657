//! Where the keys of a database come from. A master key is in a separate file or on a key server (see
//! [`super::super::kmip`]). A data key next to the tables is wrapped with it (RFC 3394, AES-256 key wrap, which also
//! detects a wrong master key).
//!
//! The keystore is text: a first line that names the format, then the cipher and the wrapped key. The cipher could be
//! changed there without the key. But every cipher derives its own keys from the data key, so this ends in an error and
//! never in a weaker cipher.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use aes_kw::{KeyInit, KwAes256};
use tithe_machine::{
    fault::Fault,
    secret::{hex, owners_alone, unhex},
};
use zeroize::Zeroizing;

use super::cipher::{KEY_BYTES, Key};

/// Name of the keystore in the data folder.
pub const FILE_NAME: &str = "keystore";

/// First line of a keystore.
const FORM: &str = "tithe keystore 1";
/// A wrapped key is one semiblock longer than the key (RFC 3394, section 2.2.1).
const WRAPPED_BYTES: usize = KEY_BYTES + aes_kw::IV_LEN;

/// The content of a keystore file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keystore {
    /// The cipher that the database is encrypted with.
    pub cipher: String,
    wrapped: [u8; WRAPPED_BYTES],
}

impl Keystore {
    /// Wraps `data_key` for a database encrypted with `cipher`.
    pub fn wrap(cipher: &str, data_key: &Key, master: &Key) -> Self {
        let mut wrapped = [0; WRAPPED_BYTES];
        // The lengths are right by their types.
        let fits = KwAes256::new((&**master).into()).wrap_key(&data_key[..], &mut wrapped).is_ok();
        debug_assert!(fits);
        Self { cipher: cipher.to_owned(), wrapped }
    }

    /// The wrapped key as in the file, where it is in hexadecimal.
    pub fn wrapped(&self) -> &[u8] {
        &self.wrapped
    }

    /// The data key.
    ///
    /// # Errors
    /// [`Fault::Refused`] when `master` is not the key that wrapped it.
    pub fn unwrap(&self, master: &Key) -> Result<Key, Fault> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        KwAes256::new((&**master).into())
            .unwrap_key(&self.wrapped, &mut key[..])
            .map_err(|_| Fault::Refused("the master key is not the one of this database".to_owned()))?;
        Ok(key)
    }

    /// The keystore of the database in `folder`; `None` if there is none: the database is not encrypted.
    ///
    /// # Errors
    /// When the file cannot be read or is no keystore.
    pub fn read(folder: &Path) -> Result<Option<Self>, Fault> {
        let path = folder.join(FILE_NAME);
        match fs::read_to_string(&path) {
            Ok(text) => match parse(&text) {
                Some(keystore) => Ok(Some(keystore)),
                None => Err(Fault::Refused(format!("{} is not a keystore of Tithe", path.display()))),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Fault::machine(path.display(), error)),
        }
    }

    /// Writes it into the database in `folder`, in place of an older one, completely or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Fault> {
        let (path, fresh) = (folder.join(FILE_NAME), folder.join("keystore.new"));
        let text = format!("{FORM}\ncipher {}\nwrapped {}\n", self.cipher, hex(&self.wrapped));
        let mut options = File::options();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&fresh, &path))
            // The new name is durable only with its folder.
            .and_then(|()| File::open(folder)?.sync_all())
            .map_err(|error| Fault::machine(path.display(), error))
    }
}

pub fn parse(text: &str) -> Option<Keystore> {
    let mut lines = text.lines();
    if lines.next()? != FORM {
        return None;
    }
    let cipher = lines.next()?.strip_prefix("cipher ")?.to_owned();
    let wrapped = unhex(lines.next()?.strip_prefix("wrapped ")?)?;
    lines.next().is_none().then_some(Keystore { cipher, wrapped })
}

/// A fresh data key.
///
/// # Errors
/// If the operating system provides no random bytes.
pub fn random_key() -> Result<Key, Fault> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(&mut key[..]).map_err(|error| Fault::machine("random bytes", error))?;
    Ok(key)
}

/// The master key in the file at `path`: 64 hexadecimal digits, with or without a newline.
///
/// # Errors
/// [`Fault::Refused`] if others than its owner may read the file, or it holds something else. Its content is never
/// quoted.
pub fn read_master_key(path: &Path) -> Result<Key, Fault> {
    let mut file = File::open(path).map_err(|error| Fault::machine(path.display(), error))?;
    owners_alone(&file, path)?;
    let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES + 2));
    let unfit = || Fault::Refused(format!("{} does not hold 64 hexadecimal digits", path.display()));
    Read::by_ref(&mut file).take(2 * KEY_BYTES as u64 + 1).read_to_string(&mut text).map_err(|_| unfit())?;
    let key = unhex(text.strip_suffix('\n').unwrap_or(&text)).map(Zeroizing::new);
    key.filter(|_| file.read(&mut [0]).is_ok_and(|more| more == 0)).ok_or_else(unfit)
}

/// The file of the master key of the server in `folder`: outside the folder, so that no copy of the folder holds it.
pub fn master_key_path(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".master-key");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> Key {
        Zeroizing::new([byte; KEY_BYTES])
    }

    #[test]
    fn wrapping_is_that_of_the_rfc() {
        // RFC 3394, section 4.6: 256 bits of key data with a 256-bit key.
        let master = Zeroizing::new(std::array::from_fn(|index| index as u8));
        let data =
            unhex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F").map(Zeroizing::new).unwrap();
        let store = Keystore::wrap("aes-256-gcm", &data, &master);
        assert_eq!(
            hex(&store.wrapped),
            "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"
        );
        assert_eq!(store.unwrap(&master).unwrap(), data);
    }

    #[test]
    fn a_wrong_master_key_is_told() {
        let store = Keystore::wrap("aes-256-gcm", &key(1), &key(2));
        let text = store.unwrap(&key(3)).unwrap_err().to_string();
        expect!["refused: the master key is not the one of this database"].assert_eq(&text);
    }

    #[test]
    fn a_keystore_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Keystore::read(folder.path()).unwrap(), None);
        let store = Keystore::wrap("aes-256-cbc", &key(1), &key(2));
        store.write(folder.path()).unwrap();
        assert_eq!(Keystore::read(folder.path()).unwrap(), Some(store.clone()));
        assert_eq!(fs::metadata(folder.path().join(FILE_NAME)).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(folder.path().join(FILE_NAME), "something else").unwrap();
        let text = Keystore::read(folder.path()).unwrap_err().to_string();
        assert!(text.ends_with("keystore is not a keystore of Tithe"), "{text}");
    }

    #[test]
    fn a_key_file_is_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let mut texts = String::new();
        let mut note = |what: &str, content: &str, mode: u32| {
            // A plain user cannot write to the file of before.
            let _ = fs::remove_file(&path);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let text = match read_master_key(&path) {
                Ok(key) => format!("{} bytes", key.len()),
                Err(fault) => fault.to_string().replace(&path.display().to_string(), "FILE"),
            };
            texts += &format!("{what}: {text}\n");
        };
        note("as it must be", &"0f".repeat(32), 0o600);
        note("with a newline", &("0f".repeat(32) + "\n"), 0o400);
        note("for all", &"0f".repeat(32), 0o644);
        note("for the group", &"0f".repeat(32), 0o640);
        note("too short", &"0f".repeat(31), 0o600);
        note("too long", &"0f".repeat(33), 0o600);
        note("no digits", &"0g".repeat(32), 0o600);
        note("not text", "\u{fe}", 0o600);
        note("empty", "", 0o600);
        fs::remove_file(&path).unwrap();
        texts += &read_master_key(&path).unwrap_err().to_string().replace(&path.display().to_string(), "FILE");
        expect![[r#"
            as it must be: 32 bytes
            with a newline: 32 bytes
            for all: refused: FILE is readable by others than its owner (mode 644): chmod 600
            for the group: refused: FILE is readable by others than its owner (mode 640): chmod 600
            too short: refused: FILE does not hold 64 hexadecimal digits
            too long: refused: FILE does not hold 64 hexadecimal digits
            no digits: refused: FILE does not hold 64 hexadecimal digits
            not text: refused: FILE does not hold 64 hexadecimal digits
            empty: refused: FILE does not hold 64 hexadecimal digits
            FILE: No such file or directory (os error 2)"#]]
        .assert_eq(&texts);
    }

    proptest! {
        #[test]
        fn foreign_text_is_no_keystore(text in "(tithe keystore 1\n)?(cipher )?[ -~\n]{0,120}") {
            prop_assert_eq!(parse(&text), None);
        }

        #[test]
        fn bytes_survive_hexadecimal(bytes: [u8; 32]) {
            prop_assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        }
    }
}
