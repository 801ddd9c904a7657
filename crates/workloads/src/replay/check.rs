//! Whether a server has all objects in the statements of a log: one transaction of each kind is run and rolled back
//! before anything is measured.

use std::collections::BTreeSet;

use tithe_machine::fault::Fault;
use tithe_plugin::session::{Discard, Parameter, Progress, SqlSession};

use super::{config::Replayed, recording::Step};

/// Most missing objects that are named.
const NAMED: usize = 10;

/// SQL states for missing or forbidden objects, by their beginning in PostgreSQL and MySQL: class 42, and databases and
/// schemas.
const MISSING: [&str; 3] = ["42", "3D", "3F"];

/// Runs the first transaction of each kind through a blocking `session`, and rolls it back.
///
/// # Errors
/// [`Fault::Wrong`] with everything that the statements name and the server does not have, or this account may not use;
/// the session's own.
pub fn check(session: &mut dyn SqlSession, replayed: &Replayed) -> Result<String, Fault> {
    let recording = &replayed.recording;
    let (mut missing, mut failed) = (BTreeSet::new(), 0);
    for class in 0..recording.classes.len() {
        let Some(transaction) = recording.transactions.iter().find(|it| it.class == class) else { continue };
        session.run("BEGIN")?;
        let mut steps = recording.steps(transaction).iter().filter(|step| !step.ends && !step.whole);
        match steps.try_for_each(|step| run(session, replayed, step)) {
            Ok(()) => {}
            Err(Fault::Server(words) | Fault::Refused(words)) if is_missing(&words) => {
                missing.insert(words);
            }
            Err(Fault::Server(_)) => failed += 1,
            Err(fault) => return Err(fault),
        }
        session.run("ROLLBACK")?;
    }
    if missing.is_empty() {
        let of = recording.classes.len();
        return Ok(format!("of {of} kinds of transactions {} succeed; each was undone", of - failed));
    }
    let more = missing.len().saturating_sub(NAMED);
    let mut words: Vec<String> = missing.into_iter().take(NAMED).collect();
    words.extend((more > 0).then(|| format!("and {more} more")));
    Err(Fault::Wrong(format!(
        "the log's statements do not find their data: {}; name a dump of the server's data by `prepare` (`--prepare DATA`)",
        words.join("; ")
    )))
}

/// True for an error about a missing object, or one that this account may not use.
fn is_missing(words: &str) -> bool {
    let state = words.split_once(" (").filter(|(code, _)| code.bytes().all(|it| it.is_ascii_digit()));
    let state = state.map_or(words, |(_, state)| state);
    MISSING.iter().any(|class| state.starts_with(class))
}

/// Runs one statement in the way it was sent.
fn run(session: &mut dyn SqlSession, replayed: &Replayed, step: &Step) -> Result<(), Fault> {
    let text = &replayed.recording.texts[step.text];
    let parameters: Vec<Parameter<'_>> = replayed.recording.parameters(step).collect();
    if parameters.is_empty() {
        session.submit_text(text)?
    } else {
        session.submit_once(text, &parameters)?
    }
    done(session)
}

/// Reads an answer.
fn done(session: &mut dyn SqlSession) -> Result<(), Fault> {
    while session.advance(&mut Discard)? == Progress::Pending {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_missing;

    #[test]
    fn what_is_missing_is_told_from_what_fails() {
        for words in [
            "42P01: relation \"t\" does not exist",
            "42501: permission denied for table t",
            "1146 (42S02): Table 'app.t' doesn't exist",
            "1142 (42000): SELECT command denied to user",
            "1046 (3D000): No database selected",
        ] {
            assert!(is_missing(words), "{words}");
        }
        for words in ["23505: duplicate key", "1062 (23000): Duplicate entry '42'", "40001: could not serialize"] {
            assert!(!is_missing(words), "{words}");
        }
    }
}
