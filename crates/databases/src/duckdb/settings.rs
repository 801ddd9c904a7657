//! The settings of DuckDB that an experiment may set, and those that a protection sets.

use std::collections::BTreeMap;

use tithe_machine::fault::Fault;

/// Encrypts temporary files; DuckDB's default leaves them plain beside an encrypted database.
pub const TEMPORARY: &str = "temp_file_encryption";

/// Has the built-in mbedTLS write, whose random numbers DuckDB itself calls insecure.
pub const MBEDTLS: &str = "force_mbedtls_unsafe";

/// Values of the option `provider`: which library encrypts.
pub mod provider {
    /// OpenSSL, by the extension httpfs.
    pub const OPENSSL: &str = "openssl";
    /// The built-in mbedTLS.
    pub const MBEDTLS: &str = "mbedtls";
}

/// Name, sentence and default of each setting of an experiment.
const SETTINGS: [(&str, &str, &str); 2] = [
    (
        "memory_limit",
        "most memory of an arm's engine, cached blocks included, with a unit; DuckDB's own default is 80 % of the \
         machine's, which several arms cannot share",
        "1GiB",
    ),
    (
        "checkpoint_threshold",
        "size of the write-ahead log, with a unit, from which a commit moves it into the file",
        "16MiB",
    ),
];

/// Settings that only a protection sets, all off by default.
const OF_PROTECTIONS: [&str; 2] = [TEMPORARY, MBEDTLS];

/// Names and sentences of the settings of an experiment.
pub const HELP: [(&str, &str); SETTINGS.len()] = [(SETTINGS[0].0, SETTINGS[0].1), (SETTINGS[1].0, SETTINGS[1].1)];

/// The value of every setting: the given one, or the default.
///
/// # Errors
/// [`Fault::Refused`] for a name or a value that DuckDB does not have.
pub fn resolve(given: &BTreeMap<String, String>) -> Result<Vec<(&'static str, String)>, Fault> {
    let known = || SETTINGS.iter().map(|(name, ..)| *name).chain(OF_PROTECTIONS);
    if let Some(name) = given.keys().find(|name| known().all(|known| known != *name)) {
        let all: Vec<_> = SETTINGS.iter().map(|(name, ..)| *name).collect();
        return Err(Fault::Refused(format!("`{name}` is not a setting of DuckDB here; {} are", all.join(" and "))));
    }
    let mut all = Vec::new();
    for (name, help, default) in SETTINGS {
        let value = given.get(name).map_or(default, String::as_str);
        if !is_size(value) {
            return Err(Fault::Refused(format!("`{value}` is not a value of {name}: {help}")));
        }
        all.push((name, value.to_owned()));
    }
    for name in OF_PROTECTIONS {
        all.push((name, given.get(name).map_or("false", String::as_str).to_owned()));
    }
    Ok(all)
}

/// True for a whole number with a unit of bytes.
fn is_size(value: &str) -> bool {
    let digits = value.chars().take_while(char::is_ascii_digit).count();
    let unit = value[digits..].trim_start().to_ascii_lowercase();
    digits > 0 && ["kb", "mb", "gb", "kib", "mib", "gib"].contains(&unit.as_str())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(given: &[(&str, &str)], expect: Expect) {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let text = match resolve(&given) {
            Ok(all) => all.iter().map(|(name, value)| format!("{name} = {value}\n")).collect(),
            Err(fault) => fault.to_string(),
        };
        expect.assert_eq(&text);
    }

    #[test]
    fn settings_have_values_and_anything_else_is_refused() {
        check(
            &[("memory_limit", "64 MB"), (TEMPORARY, "true")],
            expect![[r#"
            memory_limit = 64 MB
            checkpoint_threshold = 16MiB
            temp_file_encryption = true
            force_mbedtls_unsafe = false
        "#]],
        );
        check(
            &[("thread", "4")],
            expect!["refused: `thread` is not a setting of DuckDB here; memory_limit and checkpoint_threshold are"],
        );
        check(
            &[("memory_limit", "1GB'; DROP TABLE usertable")],
            expect![
                "refused: `1GB'; DROP TABLE usertable` is not a value of memory_limit: most memory of an arm's engine, cached blocks included, with a unit; DuckDB's own default is 80 % of the machine's, which several arms cannot share"
            ],
        );
        check(
            &[("checkpoint_threshold", "16")],
            expect![
                "refused: `16` is not a value of checkpoint_threshold: size of the write-ahead log, with a unit, from which a commit moves it into the file"
            ],
        );
    }
}
