//! Files of the user's own protections: next to the experiment, and in the configuration folder.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use tithe_model::parse;

/// The configuration folder, as the beginning of paths in experiments.
const CONFIGURATIONS: &str = "~/.config";

/// The file or folder that `path` of an experiment in the folder `base` means.
pub fn place(base: &Path, path: &Path) -> PathBuf {
    match (path.strip_prefix(CONFIGURATIONS), configurations()) {
        (Ok(below), Some(folder)) => folder.join(below),
        _ => base.join(path),
    }
}

/// The user's configuration folder (XDG Base Directory Specification).
fn configurations() -> Option<PathBuf> {
    of_variables(env::var_os("XDG_CONFIG_HOME"), env::var_os("HOME"), ".config")
}

/// The user's folder for state that programs keep, by the same specification.
pub fn states() -> Option<PathBuf> {
    of_variables(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"), ".local/state")
}

/// The folder that a variable names, or `below` the user's home.
fn of_variables(named: Option<OsString>, home: Option<OsString>, below: &str) -> Option<PathBuf> {
    let set = |variable: Option<OsString>| variable.map(PathBuf::from).filter(|path| path.is_absolute());
    set(named).or_else(|| Some(set(home)?.join(below)))
}

/// A protection of the user's own, with its first mistake.
pub struct Yours {
    /// Its description.
    pub described: parse::Described,
    /// Its first mistake, with the place.
    pub wrong: Option<String>,
}

/// The protections that files describe for experiments in the folder `base`, by name.
pub fn yours(base: &Path) -> Vec<Yours> {
    let mut names: Vec<String> =
        parse::FOLDERS.iter().flat_map(|folder| names(&place(base, folder.as_ref()))).collect();
    names.sort();
    names.dedup();
    let read = |name: &String| {
        let files = parse::protection_files(name);
        let bytes = files.iter().find_map(|path| std::fs::read(place(base, path.as_ref())).ok())?;
        let (described, problems) = parse::custom_file(name, &bytes);
        let wrong = problems.into_iter().next().map(|(at, problem)| format!("{at}: {}", problem.problem));
        Some(Yours { described, wrong })
    };
    names.iter().filter_map(read).collect()
}

/// The names of the protection files in `folder`.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_where_the_specification_has_them() {
        let of = |one: &str, home: &str| of_variables(Some(one.into()), Some(home.into()), ".config");
        assert_eq!(of("/c", "/h"), Some("/c".into()));
        assert_eq!(of("", "/h"), Some("/h/.config".into()));
        assert_eq!(of("relative", "/h"), Some("/h/.config".into()));
        assert_eq!(of("", ""), None);
    }
}
