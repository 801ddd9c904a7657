//! What a client program finds outside of a URL: variables, the user's files, the user's name.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt, path::PathBuf};

/// Sources of values that a URL does not have. [`Outside::default`] is empty.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    variables: BTreeMap<String, String>,
    user: Option<String>,
}

impl Outside {
    /// What this process finds.
    pub fn of_process() -> Self {
        // Variables that are not text are ignored.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { variables: std::env::vars_os().filter_map(text).collect(), user: user() }
    }

    /// One that has only `variables`.
    #[cfg(test)]
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { variables: variables.collect(), user: None }
    }

    /// The environment variable `name`, if it is not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// `name` below the home of the user.
    pub fn at_home(&self, name: &str) -> Option<PathBuf> {
        self.variable("HOME").map(|home| PathBuf::from(home).join(name))
    }

    /// The account of this process.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }
}

/// The name of the account that owns this process.
fn user() -> Option<String> {
    let id = fs::metadata("/proc/self").ok()?.uid().to_string();
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let is_own = |line: &&str| line.split(':').nth(2) == Some(id.as_str());
    accounts.lines().find(is_own)?.split(':').next().map(str::to_owned)
}
