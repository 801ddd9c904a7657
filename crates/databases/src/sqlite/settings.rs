//! The settings of SQLite that an experiment may set: PRAGMAs, each with its default and its accepted values.
//!
//! SQLite ignores unknown PRAGMAs and invalid values. So names and values are checked here, and every value is read
//! back after it was set.

use std::collections::BTreeMap;

use tithe_machine::fault::Fault;

use super::connection::Connection;

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Name of the PRAGMA.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Used if the experiment does not set it. If it differs from SQLite's default, the help gives the reason.
    pub default: &'static str,
    values: Values,
}

/// The values of a setting.
#[derive(Debug)]
enum Values {
    /// A whole number.
    Number,
    /// One of these words, each with SQLite's answer when the value is read.
    Words(&'static [(&'static str, &'static str)]),
}

/// Every setting, in the order in which they are set: the page size must come before the journal mode, which writes a
/// page.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "busy_timeout",
        help: "how long a connection waits for another's write lock, ms; SQLite itself would not wait at all",
        default: "5000",
        values: Values::Number,
    },
    Setting {
        name: "page_size",
        help: "bytes of a page, a power of two from 512 to 65536; what is encrypted at once",
        default: "4096",
        values: Values::Number,
    },
    Setting {
        name: "journal_mode",
        help: "WAL (so that readers and a writer do not exclude each other), DELETE, TRUNCATE or PERSIST",
        default: "WAL",
        values: Values::Words(&[
            ("WAL", "wal"),
            ("DELETE", "delete"),
            ("TRUNCATE", "truncate"),
            ("PERSIST", "persist"),
        ]),
    },
    Setting {
        name: "synchronous",
        help: "OFF, NORMAL (what SQLite's documentation advises for WAL: a power cut may cost the last commits, \
               never the file), FULL or EXTRA",
        default: "NORMAL",
        values: Values::Words(&[("OFF", "0"), ("NORMAL", "1"), ("FULL", "2"), ("EXTRA", "3")]),
    },
    Setting {
        name: "cache_size",
        help: "page cache of each connection, pages, or KiB when negative; cached pages are not decrypted again",
        default: "-2000",
        values: Values::Number,
    },
    Setting {
        name: "mmap_size",
        help: "bytes of the file that are mapped into memory",
        default: "0",
        values: Values::Number,
    },
    Setting {
        name: "temp_store",
        help: "MEMORY, or FILE: the library encrypts temporary files in every arm, the plain one too, so that both pay",
        default: "MEMORY",
        values: Values::Words(&[("MEMORY", "2"), ("FILE", "1")]),
    },
    Setting {
        name: "wal_autocheckpoint",
        help: "pages in the write-ahead log after which a commit moves them into the file; 0 is never",
        default: "1000",
        values: Values::Number,
    },
    Setting {
        name: "journal_size_limit",
        help: "bytes to which a journal is cut after use; -1 is no limit",
        default: "-1",
        values: Values::Number,
    },
    Setting {
        name: "secure_delete",
        help: "OFF, or ON to overwrite deleted content with zeros",
        default: "OFF",
        values: Values::Words(&[("OFF", "0"), ("ON", "1")]),
    },
];

/// Names and sentences of [`SETTINGS`].
pub const HELP: [(&str, &str); SETTINGS.len()] = {
    let mut help = [("", ""); SETTINGS.len()];
    let mut index = 0;
    while index < SETTINGS.len() {
        help[index] = (SETTINGS[index].name, SETTINGS[index].help);
        index += 1;
    }
    help
};

/// The value of every setting: the experiment's, or the default. Words use the spelling of [`SETTINGS`].
///
/// # Errors
/// [`Fault::Refused`] for a name or a value that is not in [`SETTINGS`].
pub fn resolve(given: &BTreeMap<String, String>) -> Result<Vec<(&'static Setting, String)>, Fault> {
    if let Some(name) = given.keys().find(|name| SETTINGS.iter().all(|setting| setting.name != *name)) {
        let known: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
        return Err(Fault::Refused(format!("`{name}` is not a setting of SQLite here; {} are", known.join(", "))));
    }
    SETTINGS
        .iter()
        .map(|setting| {
            Ok((setting, setting.spelling(given.get(setting.name).map_or(setting.default, String::as_str))?))
        })
        .collect()
}

/// Sets all values of `given` and the defaults, and reads each one back.
///
/// # Errors
/// As [`resolve`]; [`Fault::Refused`] when SQLite keeps another value.
pub fn apply(connection: &mut Connection, given: &BTreeMap<String, String>) -> Result<(), Fault> {
    for (setting, value) in resolve(given)? {
        let name = setting.name;
        connection.run(&format!("PRAGMA {name} = {value}"))?;
        let kept = connection.scalar(&format!("PRAGMA {name}"))?;
        if kept != setting.answer(&value) {
            return Err(Fault::Refused(format!("SQLite keeps {name} = {kept} and does not take {value}")));
        }
    }
    Ok(())
}

impl Setting {
    /// `value` as it is written into the statement.
    fn spelling(&self, value: &str) -> Result<String, Fault> {
        let spelling = match self.values {
            Values::Number => value.parse::<i64>().ok().map(|number| number.to_string()),
            Values::Words(words) => {
                words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value)).map(|(word, _)| (*word).to_owned())
            }
        };
        spelling.ok_or_else(|| Fault::Refused(format!("`{value}` is not a value of {}: {}", self.name, self.help)))
    }

    /// SQLite's answer if it holds `spelling`.
    fn answer<'a>(&self, spelling: &'a str) -> &'a str {
        match self.values {
            Values::Number => spelling,
            Values::Words(words) => words.iter().find(|(word, _)| *word == spelling).map_or("", |(_, answer)| answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(given: &[(&str, &str)], expect: Expect) {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let text = match resolve(&given) {
            Ok(all) => all.iter().map(|(setting, value)| format!("{} = {value}\n", setting.name)).collect(),
            Err(fault) => fault.to_string(),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn every_setting_has_a_value() {
        check(
            &[("synchronous", "full"), ("cache_size", "-65536")],
            expect![[r#"
                busy_timeout = 5000
                page_size = 4096
                journal_mode = WAL
                synchronous = FULL
                cache_size = -65536
                mmap_size = 0
                temp_store = MEMORY
                wal_autocheckpoint = 1000
                journal_size_limit = -1
                secure_delete = OFF
            "#]],
        );
    }

    #[test]
    fn the_help_of_temp_store_says_what_the_library_does() {
        // `SQLITE3MC_ENCRYPT_TEMP_FILES` is 1 in the library: it encrypts each file without a name.
        let setting = SETTINGS.iter().find(|setting| setting.name == "temp_store").expect("a setting");
        assert!(setting.help.contains("encrypts temporary files in every arm"), "{}", setting.help);
    }

    #[test]
    fn unknown_names_and_values_are_refused() {
        check(
            &[("jornal_mode", "WAL")],
            expect![
                "refused: `jornal_mode` is not a setting of SQLite here; busy_timeout, page_size, journal_mode, synchronous, cache_size, mmap_size, temp_store, wal_autocheckpoint, journal_size_limit, secure_delete are"
            ],
        );
        check(
            &[("journal_mode", "OFF")],
            expect![
                "refused: `OFF` is not a value of journal_mode: WAL (so that readers and a writer do not exclude each other), DELETE, TRUNCATE or PERSIST"
            ],
        );
        check(
            &[("cache_size", "1; DROP TABLE usertable")],
            expect![
                "refused: `1; DROP TABLE usertable` is not a value of cache_size: page cache of each connection, pages, or KiB when negative; cached pages are not decrypted again"
            ],
        );
    }
}
