//! What an experiment from somebody else would run here, and whether the caller has allowed it.
//!
//! Neither the owner nor the folder of a file shows who wrote it: a user owns the files that they download. What counts
//! is that the caller has seen what it would run and has used `--allow-commands` once. A hash of that, with the content
//! of the files that it names, is kept in the caller's own folder. If anything differs, the caller is asked again.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use tithe_machine::fingerprint::{sha256, sha256_of};
use tithe_model::{
    experiment::{Experiment, Url},
    matrix::script::quoted,
    parse,
    reach::{How, Reached, reached},
};

use crate::{
    asked::{Kind, Source},
    exit::{self, Stop},
    offer, own_files,
};

/// Characters shown of each command or file.
const SHOWN: usize = 160;

/// The option that the user needs if nothing was allowed.
const OPTION: &str = "--allow-commands";

/// What an experiment would run.
pub struct Listing {
    /// The experiment, as messages call it.
    name: String,
    /// For each, as text: its place, what is done with it, and its content.
    lines: Vec<[String; 3]>,
    /// The hash of all of it.
    hash: String,
}

impl Listing {
    /// The listing of `experiment`, which `source` contains; `None` if it would run nothing, or only what is on the
    /// caller's own command line.
    pub fn of(source: &Source, experiment: &Experiment) -> Option<Self> {
        let mut all = reached(experiment, &offer::catalogue());
        match source.kind {
            Kind::BuiltIn => return None,
            // The command line does not contain the files of protections.
            Kind::Words(_) => all.retain(|one| one.in_protection().is_some()),
            Kind::Text => {}
        }
        Self::new(&source.name, &source.text, &source.base, &all)
    }

    /// The listing of the `experiment` of a run folder, with its `text`; its paths are absolute.
    fn of_records(name: &str, text: &str, experiment: &Experiment) -> Option<Self> {
        Self::new(name, text, Path::new(""), &reached(experiment, &offer::catalogue()))
    }

    fn new(name: &str, text: &str, base: &Path, all: &[Reached]) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let line = |one: &Reached| [line(one, text, base), one.how.word().to_owned(), shown(&one.text)];
        let lines = all.iter().map(line).collect();
        let whole: Vec<String> = all.iter().map(|one| whole(one, base)).collect();
        Some(Self { name: name.to_owned(), lines, hash: sha256(whole.join("\0").as_bytes()) })
    }

    /// What it would run, as lines.
    pub fn words(&self) -> String {
        let widths: [usize; 2] =
            std::array::from_fn(|column| self.lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0));
        let line = |[place, how, text]: &[String; 3]| format!("  {place:0$}  {how:1$}  {text}\n", widths[0], widths[1]);
        let state = if self.is_allowed() { "allowed before" } else { "not allowed yet" };
        format!("This file runs ({state})\n{}", self.lines.iter().map(line).collect::<String>())
    }

    /// True if the caller has allowed it.
    pub fn is_allowed(&self) -> bool {
        kept().is_some_and(|kept| kept.lines().any(|line| line.split(' ').next() == Some(&self.hash)))
    }

    /// Records that the caller allows it. If that cannot be recorded, the caller is asked again.
    pub fn allow(&self) {
        if self.is_allowed() {
            return;
        }
        if let Err(error) = keep(&format!("{} {}\n", self.hash, shown(&self.name))) {
            crate::shown::telln!("tithe: your permission cannot be saved ({error}), so tithe will ask again");
        }
    }

    /// Fails unless it is allowed, or the caller `allows` it now.
    ///
    /// # Errors
    /// What it would run, and what to type.
    pub fn check(&self, allows: bool) -> Result<(), Stop> {
        if allows {
            self.allow();
        }
        if allows || self.is_allowed() { Ok(()) } else { Err(self.refusal()) }
    }

    /// What it would run, and which command to type to allow it.
    pub fn refusal(&self) -> Stop {
        let words: Vec<String> = std::env::args().skip(1).map(|word| typed(&word)).collect();
        let message = format!(
            "{}\ntithe: {} would run this with your rights, or in a server with the server's; read it, and if you \
             trust it, allow it once:\n  tithe {} {OPTION}\nnothing was started\n",
            self.words(),
            shown(&self.name),
            words.join(" ")
        );
        Stop { message, status: exit::USAGE }
    }
}

/// Fails if `experiment` from `source` would run something that the caller has not allowed.
///
/// # Errors
/// As [`Listing::check`].
pub fn check(source: &Source, experiment: &Experiment, allows: bool) -> Result<(), Stop> {
    Listing::of(source, experiment).map_or(Ok(()), |listing| listing.check(allows))
}

/// The same for the `experiment` of the run folder at `path`, whose file has `text`.
///
/// # Errors
/// As [`Listing::check`].
pub fn check_records(path: &Path, text: &str, experiment: &Experiment, allows: bool) -> Result<(), Stop> {
    let name = path.join("plan.json").display().to_string();
    Listing::of_records(&name, text, experiment).map_or(Ok(()), |listing| listing.check(allows))
}

/// Records that a run of `experiment` has begun, so that it can continue without another question.
pub fn begin(path: &Path, text: &str, experiment: &Experiment) {
    if let Some(listing) = Listing::of_records(&path.display().to_string(), text, experiment) {
        listing.allow();
    }
}

/// A word of the command line, to be typed again; a URL that may contain a password is not repeated.
fn typed(word: &str) -> String {
    if Url::is_url(word) && Url::new(word).holds_secret() { "URL".to_owned() } else { quoted(word) }
}

/// The place of `one` in an experiment with this `text` in the folder `base`.
fn line(one: &Reached, text: &str, base: &Path) -> String {
    let steps: Vec<&str> = one.place.iter().map(String::as_str).collect();
    if let Some(line) = parse::line_of(text, &steps) {
        return format!("line {line}");
    }
    let in_file = one.in_protection().and_then(|(id, rest)| {
        let steps: Vec<&str> = rest.iter().map(String::as_str).collect();
        let file = |path: String| {
            let text = fs::read_to_string(own_files::place(base, path.as_ref())).ok()?;
            Some(format!("{path}:{}", parse::line_of(&text, &steps).unwrap_or(1)))
        };
        parse::protection_files(id).into_iter().find_map(file)
    });
    let around = || {
        let range = parse::place(text, &steps)?;
        Some(format!("line {}", text[..range.start].matches('\n').count() + 1))
    };
    in_file.or_else(around).unwrap_or_else(|| one.place.join(" "))
}

/// `text` in one line, without control characters that a terminal would obey.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = |sign: char| if sign.is_control() { sign.escape_unicode().to_string() } else { sign.to_string() };
    let count = line.chars().count();
    let cut: String = line.chars().take(SHOWN).map(plain).collect();
    if count > SHOWN { format!("{cut}… ({count} characters)") } else { cut }
}

/// Everything of `one` that the hash covers: its text, and the files that it names.
fn whole(one: &Reached, base: &Path) -> String {
    let places = |path: &Path| [path.to_owned(), base.join(path)];
    let mut files: Vec<PathBuf> = one.files().into_iter().flat_map(places).collect();
    files.dedup();
    // Devices and pipes are not read: they may have no end.
    let content = |path: &PathBuf| match fs::metadata(path) {
        Ok(found) if found.is_file() => File::open(path).and_then(sha256_of).ok(),
        Ok(found) if found.is_dir() && one.how == How::File => folder(path).ok(),
        _ => None,
    };
    let contents: Vec<String> = files.iter().filter_map(content).collect();
    format!("{}\u{1}{}\u{1}{}", one.how.word(), one.text, contents.join(" "))
}

/// The names and contents of all files in the folder at `path`.
fn folder(path: &Path) -> io::Result<String> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(path)?.map(|entry| entry.map(|it| it.path())).collect::<Result<_, _>>()?;
    entries.sort();
    let mut all = String::new();
    for entry in entries.iter().filter(|entry| entry.is_file()) {
        all += &format!("{:?} {}\n", entry.file_name(), sha256_of(File::open(entry)?)?);
    }
    Ok(sha256(all.as_bytes()))
}

/// The file that records what was allowed.
fn record() -> Option<PathBuf> {
    Some(own_files::states()?.join("tithe/allowed"))
}

/// What was allowed; `None` if nothing was, or others could have written the file.
fn kept() -> Option<String> {
    let path = record()?;
    let found = fs::metadata(&path).ok()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
    if is_own { fs::read_to_string(path).ok() } else { None }
}

fn keep(line: &str) -> io::Result<()> {
    let path = record().ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
    file.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn no_password_is_repeated() {
        for word in [
            "postgres://me:secret@db/shop",
            "--plain=postgres://me:secret@db/shop",
            "redis://db?password=secret",
            "host=db user=me password=secret",
        ] {
            assert_eq!(typed(word), "URL", "{word}");
        }
        for word in ["run", "e.toml", "--protect", "postgres://me@db/shop"] {
            assert_eq!(typed(word), word);
        }
    }
}
