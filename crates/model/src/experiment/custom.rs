//! A protection that an experiment or a file beside it describes, or a setting that protects nothing.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// A protection of the reader's own. Without claims it is a setting: what it costs is measured, and nothing is proven.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    /// What it is, one line; empty where nobody said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Settings of this arm's server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Statements that an administrator says once, after loading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<String>,
    /// Statements that every measured client says when its session is opened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<String>,
    /// What tells its arm from the plain one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// A statement, and what it says on the protected arm and does not say on the plain one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement; it changes nothing.
    pub statement: String,
    /// What it says.
    pub says: Says,
}

/// What a statement must say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Says {
    /// This: values of a row are separated by `, `, rows by `; `.
    Equals(String),
    /// The same with `*` for any text.
    Matches(String),
    /// It fails, and the server's words have these in them.
    FailsWith(String),
    /// So many rows.
    Rows(u64),
}

impl Says {
    /// True where an answer with these words in so many `rows` is the expected one.
    pub fn is_met(&self, words: &str, rows: u64) -> bool {
        match self {
            Self::Equals(expected) => words == expected,
            Self::Matches(pattern) => matches(pattern, words),
            Self::FailsWith(_) => false,
            Self::Rows(expected) => rows == *expected,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { statement, says } = self;
        match says {
            Says::Equals(words) => write!(formatter, "`{statement}` says `{words}`"),
            Says::Matches(pattern) => write!(formatter, "`{statement}` says what matches `{pattern}`"),
            Says::FailsWith(words) => write!(formatter, "`{statement}` fails with `{words}`"),
            Says::Rows(1) => write!(formatter, "`{statement}` brings 1 row"),
            Says::Rows(rows) => write!(formatter, "`{statement}` brings {rows} rows"),
        }
    }
}

/// True where `text` is `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
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
}
