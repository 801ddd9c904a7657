//! Option files, as the programs of MySQL and MariaDB read them with `--defaults-file`.
//!
//! Source: MySQL documentation, "Using Option Files"; MariaDB's, "Configuring MariaDB with Option Files".

use std::{fs, path::Path};

use tithe_machine::fault::Fault;

use crate::target::refused;

/// Groups that every client program reads.
const GROUPS: [&str; 3] = ["client", "client-server", "client-mariadb"];

/// Files that are included by a file, at most.
const DEPTH: u32 = 8;

/// The options of the client groups in `file`, and of the same groups with `suffix`, in their order; names with dashes.
///
/// # Errors
/// [`Fault::Refused`] for a file that cannot be read.
pub fn of_clients(file: &Path, suffix: &str) -> Result<Vec<(String, String)>, Fault> {
    let mut options = Vec::new();
    read(file, suffix, DEPTH, &mut options)?;
    Ok(options)
}

fn read(file: &Path, suffix: &str, depth: u32, options: &mut Vec<(String, String)>) -> Result<(), Fault> {
    let text =
        fs::read_to_string(file).map_err(|error| refused(&format!("option file {}: {error}", file.display())))?;
    let lines = lines(&text, suffix).map_err(|why| refused(&format!("option file {}: {why}", file.display())))?;
    for line in lines {
        let deeper = || {
            let too_deep = format!("option file {}: too many files within each other", file.display());
            depth.checked_sub(1).ok_or_else(|| refused(&too_deep))
        };
        match line {
            Line::Option(name, value) => options.push((name, value)),
            Line::Include(other) => read(other.as_ref(), suffix, deeper()?, options)?,
            Line::IncludeFolder(folder) => read_folder(folder.as_ref(), suffix, deeper()?, options)?,
        }
    }
    Ok(())
}

/// A line of an option file.
pub enum Line<'t> {
    /// An option with its value.
    Option(String, String),
    /// The path of another option file.
    Include(&'t str),
    /// The path of a folder with option files.
    IncludeFolder(&'t str),
}

/// Options that are on or off, of those that matter here: the programs read `skip-ssl` as `ssl=0`.
const SWITCHES: [&str; 3] = ["ssl", "ssl-verify-server-cert", "compress"];

/// The lines of `text` that concern the client groups, and the same groups with `suffix`.
///
/// # Errors
/// The line that the programs refuse, and why, without its text: it may hold a password.
pub fn lines<'t>(text: &'t str, suffix: &str) -> Result<Vec<Line<'t>>, String> {
    let (mut inside, mut lines) = (None, Vec::new());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let wrong = |why: &str| format!("line {}: {why}", number + 1);
        if let Some(directive) = line.strip_prefix('!') {
            match directive.split_once(char::is_whitespace) {
                Some(("include", file)) => lines.push(Line::Include(file.trim())),
                Some(("includedir", folder)) => lines.push(Line::IncludeFolder(folder.trim())),
                _ => {}
            }
        } else if let Some(group) = line.strip_prefix('[') {
            let (group, _) = group.split_once(']').ok_or_else(|| wrong("a group has no ]"))?;
            let is_of_clients =
                |known: &&str| group.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest == suffix);
            inside = Some(GROUPS.iter().any(is_of_clients));
        } else if inside.ok_or_else(|| wrong("an option is before the first group, as [client]"))? {
            let line = without_comment(line);
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let (name, value) = switched(name.trim(), unquoted(value.trim()));
            lines.push(Line::Option(name, value));
        }
    }
    Ok(lines)
}

/// `line` up to its comment, which any `#` outside of quotes begins.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, sign) in line.char_indices() {
        if ['"', '\''].contains(&sign) && !is_escaped {
            quote = match quote {
                None => Some(sign),
                Some(open) if open == sign => None,
                other => other,
            };
        }
        if quote.is_none() && sign == '#' {
            return &line[..at];
        }
        is_escaped = quote.is_some() && sign == '\\' && !is_escaped;
    }
    line
}

/// The option `name` with dashes and without the prefixes of the programs.
fn switched(name: &str, value: String) -> (String, String) {
    let name = name.replace('_', "-");
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    for (prefix, switch) in [("skip-", "0"), ("disable-", "0"), ("enable-", "1")] {
        if let Some(known) = name.strip_prefix(prefix).filter(|rest| SWITCHES.contains(rest)) {
            return (known.to_owned(), switch.to_owned());
        }
    }
    (name.to_owned(), value)
}

/// The files of a folder that end in `.cnf`, by their names.
fn read_folder(folder: &Path, suffix: &str, depth: u32, options: &mut Vec<(String, String)>) -> Result<(), Fault> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "cnf")).collect();
    files.sort();
    files.iter().try_for_each(|file| read(file, suffix, depth, options))
}

/// `value` without the quotes around it, and with its escapes replaced.
fn unquoted(value: &str) -> String {
    let inner = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    let inner = inner.unwrap_or(value);
    let mut text = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('b') => text.push('\u{8}'),
                Some('t') => text.push('\t'),
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('s') => text.push(' '),
                Some(other) if ['\\', '"', '\''].contains(&other) => text.push(other),
                Some(other) => text.extend(['\\', other]),
                None => text.push('\\'),
            },
            (character, false) => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::Url;

    use super::*;
    use crate::{mysql_family::target::product, test_setup::plain};

    #[test]
    fn the_groups_of_clients_are_read_as_the_programs_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, other) = (folder.path().join("my.cnf"), folder.path().join("more.cnf"));
        let text = format!(
            "[mysqld]\nport=1\n\n# a comment\n[client]\nuser = app # of the shop\npassword=\"a # b\\\\c\"\nssl_ca='/etc/my ca.pem'\n\
             [client_dev]\nhost=dev\n!include {}\n",
            other.display()
        );
        fs::write(&file, text).expect("written");
        fs::write(&other, "[client]\nport=3307\nskip-column-names\n").expect("written");
        let shown = |suffix: &str| {
            let options = of_clients(&file, suffix).expect("options");
            options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("|")
        };
        assert_eq!(shown(""), "user=app|password=a # b\\c|ssl-ca=/etc/my ca.pem|port=3307|skip-column-names=");
        assert_eq!(
            shown("_dev"),
            "user=app|password=a # b\\c|ssl-ca=/etc/my ca.pem|host=dev|port=3307|skip-column-names="
        );
        assert!(of_clients(&folder.path().join("none"), "").is_err());
    }

    #[test]
    fn what_the_programs_refuse_is_refused_by_its_line_without_its_text() {
        let why = |text: &str| lines(text, "").err().unwrap_or_default();
        assert_eq!(why("# ours\npassword=pw\n[client]\n"), "line 2: an option is before the first group, as [client]");
        assert_eq!(why("[mysqld]\nport=1\n[client\npassword=pw\n"), "line 3: a group has no ]");
        assert_eq!(why("\u{feff}[client]\r\nuser=app\r\n"), "");
    }

    #[test]
    fn what_a_url_may_not_ask_for_a_file_may_not_either() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("my.cnf");
        let refused = |option: &str| {
            fs::write(&file, format!("[client]\n{option}\n")).expect("written");
            let url = Url::new(format!("mysql://app@db/?defaults-file={}", file.display()));
            product("MySQL").check_url(&url, &plain()).err().map(|fault| fault.to_string())
        };
        assert_eq!(refused("compress=OFF"), None);
        for option in ["compress", "compress=TRUE", "init-command='SET x = 1'", "sql_mode=ANSI"] {
            let name = option.split('=').next().unwrap_or_default().replace('_', "-");
            assert!(refused(option).is_some_and(|words| words.contains(&format!("{name}: "))), "{option}");
        }
    }

    #[test]
    fn a_folder_is_included_by_its_files_of_options_in_their_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, more) = (folder.path().join("my.cnf"), folder.path().join("conf.d"));
        fs::create_dir(&more).expect("made");
        fs::write(&file, format!("[client]\nuser=app\n!includedir {}\n", more.display())).expect("written");
        for (name, port) in [("b.cnf", 2), ("a.cnf", 1), ("c.cnf~", 3), ("cnf", 4)] {
            fs::write(more.join(name), format!("[client]\nport={port}\n")).expect("written");
        }
        let options = of_clients(&file, "").expect("options");
        let told: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(told, ["user=app", "port=1", "port=2"]);
        fs::write(&file, format!("[client]\n!include {}\n", file.display())).expect("written");
        let endless = of_clients(&file, "").expect_err("it includes itself").to_string();
        assert!(endless.ends_with("too many files within each other"), "{endless}");
    }

    #[test]
    fn quotes_comments_and_escapes_are_those_of_the_programs() {
        for (written, value) in [
            (r"a\bb", "a\u{8}b"),
            (r"\t\n\r\s", "\t\n\r "),
            (r#"\\ \" \'"#, r#"\ " '"#),
            (r"\x\", r"\x\"),
            ("'a # b' # c", "a # b"),
            ("a # b", "a"),
            ("a#b", "a"),
            ("it's # 1", "it's # 1"),
            ("\"a\\\"#b\" # c", "a\"#b"),
            ("\"", "\""),
        ] {
            assert_eq!(unquoted(without_comment(written).trim_end()), value, "{written}");
        }
    }
}
