//! Where a column key comes from: made for the run, in a file, or in an environment variable.
//!
//! An experiment names the place and never the key, so neither the experiment nor any record contains it.

use std::{fs::File, io::Read, path::PathBuf};

use tithe_machine::{
    fault::Fault,
    secret::{Secret, owners_alone, unhex},
};

/// Length of a column key, bytes.
pub const KEY_BYTES: usize = 32;

/// Where a column key comes from. Without either place, the run makes a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyPlace {
    /// A file that only its owner can read, with 32 bytes or 64 hexadecimal digits.
    pub file: Option<PathBuf>,
    /// The name of an environment variable with 64 hexadecimal digits.
    pub variable: Option<String>,
}

impl KeyPlace {
    /// The key; `None` if the run makes one.
    ///
    /// # Errors
    /// [`Fault::Refused`] for two places, a path that is not absolute, a file that others can read, and a key of
    /// another length; [`Fault::Machine`] if the file cannot be read. None quotes any part of a key.
    pub fn fetch(&self) -> Result<Option<Secret>, Fault> {
        match (&self.file, &self.variable) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                Err(Fault::Refused("`key_file` and `key_variable` are two places for one key: give one".to_owned()))
            }
            (Some(path), None) => of_file(path).map(Some),
            (None, Some(name)) => {
                // Its value is never quoted, whatever is wrong with it.
                let text = std::env::var(name).map_err(|_| {
                    Fault::Refused(format!(
                        "the environment variable {name} holds no column key: it is not set or not text"
                    ))
                })?;
                let key = unhex::<KEY_BYTES>(text.trim()).map(Secret::new);
                key.map(Some).ok_or_else(|| {
                    Fault::Refused(format!("the environment variable {name} does not hold 64 hexadecimal digits"))
                })
            }
        }
    }
}

fn of_file(path: &PathBuf) -> Result<Secret, Fault> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(Fault::Refused(format!("the column key's file {shown} has no absolute path")));
    }
    let unreadable = |error| Fault::machine(format!("the column key's file {shown}"), error);
    let file = File::open(path).map_err(unreadable)?;
    owners_alone(&file, path)?;
    let mut bytes = Vec::new();
    file.take(4 * KEY_BYTES as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() == KEY_BYTES {
        return Ok(Secret::new(bytes));
    }
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let key = unhex::<KEY_BYTES>(text.strip_suffix('\n').unwrap_or(text)).map(Secret::new);
    key.ok_or_else(|| {
        Fault::Refused(format!("{shown} holds neither {KEY_BYTES} bytes nor {} hexadecimal digits", 2 * KEY_BYTES))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use expect_test::{Expect, expect};

    use super::*;

    fn fetched(content: &[u8], mode: u32) -> Result<Option<Secret>, Fault> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tithe-test-prices-key-{}-{number}", std::process::id()));
        std::fs::write(&path, content).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
        let place = KeyPlace { file: Some(path.clone()), variable: None };
        let fetched = place.fetch();
        std::fs::remove_file(&path).expect("removed");
        fetched.map_err(|fault| match fault {
            Fault::Refused(words) => Fault::Refused(words.replace(&path.display().to_string(), "KEY")),
            other => other,
        })
    }

    fn refused(place: Result<Option<Secret>, Fault>, expected: Expect) {
        expected.assert_eq(&place.expect_err("refused").to_string());
    }

    #[test]
    fn a_key_is_bytes_or_digits_of_the_right_number() {
        let key: Vec<u8> = (0..32).collect();
        let digits = Secret::new(key.clone()).expose_hex();
        for content in [key.as_slice(), digits.as_bytes(), format!("{digits}\n").as_bytes()] {
            assert_eq!(fetched(content, 0o600), Ok(Some(Secret::new(key.clone()))));
        }
        refused(fetched(&key[1..], 0o600), expect!["refused: KEY holds neither 32 bytes nor 64 hexadecimal digits"]);
        refused(
            fetched(&digits.as_bytes()[2..], 0o600),
            expect!["refused: KEY holds neither 32 bytes nor 64 hexadecimal digits"],
        );
        refused(
            fetched(&key, 0o640),
            expect!["refused: KEY is readable by others than its owner (mode 640): chmod 600"],
        );
    }

    #[test]
    fn a_place_is_one_and_is_there() {
        let place = |file: Option<&str>, variable: Option<&str>| {
            KeyPlace { file: file.map(PathBuf::from), variable: variable.map(str::to_owned) }.fetch()
        };
        assert_eq!(place(None, None), Ok(None));
        refused(
            place(Some("/key"), Some("KEY")),
            expect!["refused: `key_file` and `key_variable` are two places for one key: give one"],
        );
        refused(place(Some("key"), None), expect!["refused: the column key's file key has no absolute path"]);
        refused(
            place(Some("/nowhere/key"), None),
            expect!["the column key's file /nowhere/key: No such file or directory (os error 2)"],
        );
        refused(
            place(None, Some("TITHE_TEST_NO_SUCH_VARIABLE")),
            expect![
                "refused: the environment variable TITHE_TEST_NO_SUCH_VARIABLE holds no column key: it is not set or not text"
            ],
        );
        refused(
            place(None, Some("PATH")),
            expect!["refused: the environment variable PATH does not hold 64 hexadecimal digits"],
        );
    }
}
