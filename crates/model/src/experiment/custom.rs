//! A protection that an experiment, or a file next to it, describes; or a setting that protects nothing.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::OptionValue;

/// A protection described by data. Without claims it is a setting: its cost is measured, and nothing is proven.
///
/// In its texts `{space}` is replaced by the place of the arm's tables, and `{files}` by the folder of its files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// What it is, one line; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Settings of this arm's server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Files that Tithe puts into a folder of this arm's server, by their names there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, PathBuf>,
    /// Statements that an administrator runs once, after loading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<String>,
    /// Statements that undo those, on a server that Tithe does not start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<String>,
    /// Statements that every measured client runs when it opens its session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<String>,
    /// What distinguishes its arm from the plain one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

impl Custom {
    /// The same with `{option}` replaced by its value, for each of `options`.
    #[must_use]
    pub fn filled(mut self, options: &BTreeMap<String, OptionValue>) -> Self {
        for (name, value) in options {
            self.replace(&format!("{{{name}}}"), &value.to_string());
        }
        self
    }

    /// True if it makes its arm differ from the plain one.
    pub fn changes(&self) -> bool {
        let is_same = self.settings.is_empty() && self.files.is_empty();
        !(is_same && self.statements.is_empty() && self.session.is_empty())
    }

    fn replace(&mut self, from: &str, to: &str) {
        let mut texts: Vec<&mut String> = Vec::new();
        texts.extend(self.settings.values_mut());
        texts.extend([&mut self.statements, &mut self.undo, &mut self.session].into_iter().flatten());
        texts.extend(self.claims.iter_mut().flat_map(Claim::texts));
        texts.into_iter().filter(|text| text.contains(from)).for_each(|text| *text = text.replace(from, to));
    }
}

/// What distinguishes a protected arm from the plain one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// A statement, and an answer that the protected arm gives and the plain one does not.
    Statement {
        /// The statement; it changes nothing.
        statement: String,
        /// The expected answer.
        says: Says,
    },
    /// One of Tithe's checks.
    Check(NamedCheck),
}

/// One of Tithe's checks, named by a claim. Their names and keys: `parse/claims.rs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamedCheck {
    /// No canary is readable in these files.
    CanaryNotInFiles(Vec<FilePlace>),
    /// No field value is readable in these files; keys may be.
    ValuesNotInFiles(Vec<FilePlace>),
    /// Nothing of rows that a client changed and removed is readable in these files.
    RemovedNotInFiles(Vec<FilePlace>),
    /// A statement returns rows for the value `{canary}`, which a client replaced or removed.
    RemovedFound {
        /// The statement; it changes nothing.
        statement: String,
    },
    /// No canary is readable between client and server.
    NotOnTheWire,
    /// Clients without the password, or with a wrong one, are refused.
    RefusedWithoutPassword,
    /// The log gains this many lines that match the pattern, for a hundred statements of each kind.
    CountedInLog {
        /// A line, with `*` for any text.
        pattern: String,
        /// Lines.
        count: u64,
    },
    /// Another account, which has no password, is refused a statement with these words.
    RefusedAs {
        /// The account.
        account: String,
        /// The statement; it changes nothing.
        statement: String,
        /// Words that the server's error contains.
        words: String,
    },
}

/// Which files of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilePlace {
    /// Tables and indexes.
    Data,
    /// Write-ahead log, redo log, journal.
    Journal,
    /// Server and audit logs.
    Logs,
}

/// The expected answer of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// This text: values of a row are separated by `, `, rows by `; `.
    Equals(String),
    /// The same with `*` for any text.
    Matches(String),
    /// It fails, and the server's error contains these words.
    FailsWith(String),
    /// This many rows.
    Rows(u64),
}

impl Claim {
    fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::Statement { statement, says: Says::Equals(text) | Says::Matches(text) | Says::FailsWith(text) } => {
                vec![statement, text]
            }
            Self::Statement { statement, says: Says::Rows(_) } => vec![statement],
            Self::Check(NamedCheck::CountedInLog { pattern, .. }) => vec![pattern],
            Self::Check(NamedCheck::RemovedFound { statement }) => vec![statement],
            Self::Check(NamedCheck::RefusedAs { account, statement, words }) => vec![account, statement, words],
            Self::Check(_) => Vec::new(),
        }
    }
}

impl Says {
    /// True if an answer with these words and this number of `rows` is the expected one.
    pub fn is_met(&self, words: &str, rows: u64) -> bool {
        match self {
            Self::Equals(expected) => words == expected,
            Self::Matches(pattern) => matches(pattern, words),
            Self::FailsWith(_) => false,
            Self::Rows(expected) => rows == *expected,
        }
    }
}

impl fmt::Display for Says {
    /// The words after a statement.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equals(words) => write!(formatter, "answers `{words}`"),
            Self::Matches(pattern) => write!(formatter, "answers with text like `{pattern}`"),
            Self::FailsWith(words) => write!(formatter, "fails with `{words}`"),
            Self::Rows(1) => write!(formatter, "brings 1 row"),
            Self::Rows(rows) => write!(formatter, "brings {rows} rows"),
        }
    }
}

/// True if `text` matches `pattern`, in which `*` matches any text.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = text.split_once(part) else { return false };
        text = behind;
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let met = |pattern: &str, text| Says::Matches(pattern.to_owned()).is_met(text, 1);
        assert!(met("a*", "abc") && met("*c", "abc") && met("a*c", "abc") && met("a*b*c", "abbc") && met("*", ""));
        assert!(!met("a*", "ba") && !met("a*a", "a") && !met("a*b*c", "acb") && !met("abc", "abcd"));
    }

    #[test]
    fn claims_alone_change_nothing() {
        let claims = vec![Claim::Check(NamedCheck::NotOnTheWire)];
        let plain = Custom { claims, ..Custom::default() };
        let one = || vec!["SET a = 1".to_owned()];
        assert!(!plain.changes() && !Custom { undo: one(), ..plain.clone() }.changes());
        for changed in [
            Custom { settings: [("a".to_owned(), "1".to_owned())].into(), ..plain.clone() },
            Custom { files: [("a".to_owned(), "b".into())].into(), ..plain.clone() },
            Custom { statements: one(), ..plain.clone() },
            Custom { session: one(), ..plain.clone() },
        ] {
            assert!(changed.changes(), "{changed:?}");
        }
    }

    #[test]
    fn options_stand_in_every_text() {
        let says = Says::Equals("{who}".to_owned());
        let custom = Custom {
            settings: [("a".to_owned(), "{who}{space}".to_owned())].into(),
            session: vec!["SET x = '{who}'".to_owned()],
            claims: vec![Claim::Statement { statement: "SHOW {who}".to_owned(), says }],
            ..Custom::default()
        };
        let filled = custom.filled(&[("who".to_owned(), OptionValue::Text("ann".to_owned()))].into());
        assert_eq!((filled.settings["a"].as_str(), filled.session[0].as_str()), ("ann{space}", "SET x = 'ann'"));
        let says = Says::Equals("ann".to_owned());
        assert_eq!(filled.claims, [Claim::Statement { statement: "SHOW ann".to_owned(), says }]);
    }
}
