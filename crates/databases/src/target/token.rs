//! Passwords that a command prints again from time to time, such as cloud tokens.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, sandbox::process, secret::Secret};

/// How long a token is used for new connections: the shortest-lived, AWS's, are valid for fifteen minutes.
const RENEWED_AFTER: Duration = Duration::from_secs(300);

/// How long a command may take: those of clouds use the network.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The result of a command.
struct Said {
    begun: Instant,
    secret: Secret,
    /// Its earlier output, which a server has refused.
    refused: Option<Secret>,
}

/// The results of commands, by command.
static SAID: Mutex<BTreeMap<String, Said>> = Mutex::new(BTreeMap::new());

/// The output of `command`, which a shell runs: one line.
///
/// # Errors
/// [`Fault::Refused`] if it fails, does not end in time, or prints anything but one line. Its output is not quoted.
pub fn of(command: &str) -> Result<Secret, Fault> {
    within(command, TIMEOUT)
}

/// The output of `command` now that a server has `refused` its earlier output; `None` if that was not its output, or if
/// the output is the same.
///
/// # Errors
/// As [`of`].
pub fn after_refusal(command: &str, refused: &Secret) -> Result<Option<Secret>, Fault> {
    let mut all = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    match all.get(command) {
        Some(said) if said.secret == *refused => {}
        // Another connection was refused before this one.
        Some(said) if said.refused.as_ref() == Some(refused) => return Ok(Some(said.secret.clone())),
        _ => return Ok(None),
    }
    let said = Said { refused: Some(refused.clone()), ..ask(command, TIMEOUT)? };
    let secret = said.secret.clone();
    all.insert(command.to_owned(), said);
    Ok(Some(secret).filter(|secret| secret != refused))
}

fn within(command: &str, timeout: Duration) -> Result<Secret, Fault> {
    let mut all = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(said) = all.get(command)
        && said.begun.elapsed() < RENEWED_AFTER
    {
        return Ok(said.secret.clone());
    }
    let said = ask(command, timeout)?;
    let secret = said.secret.clone();
    all.insert(command.to_owned(), said);
    Ok(secret)
}

fn ask(command: &str, timeout: Duration) -> Result<Said, Fault> {
    let begun = Instant::now();
    let refused = |why: &str| Fault::Refused(format!("password_command {why}"));
    let late = || refused(&format!("did not end within {} s and was killed", timeout.as_secs()));
    let output = process::ask_within(Path::new("/bin/sh"), &["-c", command], timeout).map_err(|_| late())?;
    if !output.status.success() {
        return Err(refused(&format!("ended with {}", output.status)));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| refused("says no text"))?;
    let line = text.strip_suffix('\n').unwrap_or(&text).trim_end_matches('\r');
    match line {
        "" => Err(refused("says nothing")),
        line if line.contains('\n') => Err(refused("prints more than one line: have it print the password alone")),
        line => Ok(Said { begun, secret: Secret::new(line), refused: None }),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_command_says_one_line_or_is_refused() {
        let said = |command: &str| of(command).map(|secret| secret.expose_text().to_owned());
        assert_eq!(said("echo a token"), Ok("a token".to_owned()));
        let refused = ["false", "true", "echo hunter2; echo hunter3", "printf '\\377'"]
            .map(|command| said(command).expect_err("refused").to_string());
        expect![[r#"
            refused: password_command ended with exit status: 1
            refused: password_command says nothing
            refused: password_command prints more than one line: have it print the password alone
            refused: password_command says no text"#]]
        .assert_eq(&refused.join("\n"));
        let late = within("sleep 600", Duration::from_secs(1)).expect_err("too late").to_string();
        expect!["refused: password_command did not end within 1 s and was killed"].assert_eq(&late);
        // The command runs once for all connections of some minutes.
        let folder = tempfile::tempdir().expect("a folder");
        let count = format!("echo x >> {0}/calls; wc -l < {0}/calls", folder.path().display());
        assert_eq!((said(&count), said(&count)), (Ok("1".to_owned()), Ok("1".to_owned())));
    }

    #[test]
    fn a_refused_one_is_asked_for_once_more() {
        let folder = tempfile::tempdir().expect("a folder");
        let count = format!("echo x >> {0}/calls; wc -l < {0}/calls", folder.path().display());
        let text = |secret: Result<Option<Secret>, Fault>| {
            secret.map(|secret| secret.map(|secret| secret.expose_text().to_owned()))
        };
        let first = of(&count).expect("said");
        assert_eq!(text(after_refusal(&count, &first)), Ok(Some("2".to_owned())));
        // A thread that had the first one also has the second.
        assert_eq!(text(after_refusal(&count, &first)), Ok(Some("2".to_owned())));
        // A password that is not from a command, such as that of a check, stays refused.
        assert_eq!(text(after_refusal(&count, &Secret::new("wrong"))), Ok(None));
        let same = "echo the same";
        let said = of(same).expect("said");
        assert_eq!(text(after_refusal(same, &said)), Ok(None));
    }
}
