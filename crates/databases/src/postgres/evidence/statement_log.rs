//! Does the statement log hold every statement?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry, Watch};

use super::logs_free::LOG;
use crate::evidence::{
    long,
    marked::{Counts, End, LONG_VALUES, LogWatch, Tally, describe, marker, send_and_count},
};

/// Sends numbered statements of each kind from several sessions at once and counts them in the log, which holds them
/// because of `log_statement` or their duration.
pub struct StatementLog;

impl Check for StatementLog {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("statement-log")
    }

    fn claim(&self) -> String {
        "every statement is in the log once, with its parameters".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mark = marker(context);
        let (mut bare, mut lost, mut is_other) = (0, None, false);
        let counting = |text: &str| {
            bare = text.lines().filter_map(executed).count();
            lost = long::lost(text, &mark, LONG_VALUES);
            is_other = is_of_another_form(text, &mark);
            count(text, &mark)
        };
        Ok(match send_and_count(context, &LOG, counting)? {
            Ok(tally) if context.protected && is_other => Observation::Unknown(format!(
                "sent: {}; in the log they are in messages of another language: set lc_messages = 'C'",
                describe(&tally.sent)
            )),
            Ok(tally) => judged(&tally, context.protected, bare, lost),
            Err(why) => Observation::Unknown(why),
        })
    }

    fn watch(&self, context: &CheckContext<'_>) -> Option<Box<dyn Watch>> {
        Some(LogWatch::begin(context, &LOG, End::Planted, count_all))
    }
}

/// What `tally` shows of an arm that is `protected` or not: `bare` records are those of any executed statement, and
/// `lost` is what is missing of long values.
fn judged(tally: &Tally, protected: bool, bare: usize, lost: Option<String>) -> Observation {
    if tally.logged.is_empty() && bare > 0 {
        return Observation::Exposed(format!(
            "sent: {}; in the log: {bare} statements without the parameters that were sent: they are cut or left out \
             (log_parameter_max_length)",
            describe(&tally.sent)
        ));
    }
    match (tally.against(&tally.sent, protected), lost) {
        (Observation::Protected(words), Some(lost)) if protected => {
            Observation::Exposed(format!("{words}; {lost} (log_parameter_max_length)"))
        }
        (seen, _) => seen,
    }
}

/// Counts statements of either kind, prepared (`LOG:  execute NAME: SQL`) or sent as text (`LOG:  statement: SQL`), by
/// their first word.
fn count_all(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let prepared = line.split_once("LOG:  execute ").and_then(|(_, rest)| rest.split_once(": "));
        let Some((_, sql)) = prepared.or_else(|| line.split_once("LOG:  statement: ")) else { continue };
        if let Some(verb) = sql.split_whitespace().next() {
            *counts.entry(verb.to_ascii_uppercase()).or_default() += 1;
        }
    }
    counts
}

/// The text after `execute` in a record of `log_statement` or of a duration.
fn executed(line: &str) -> Option<&str> {
    let (_, message) = line.split_once("LOG:  ")?;
    let message = match message.strip_prefix("duration: ") {
        Some(duration) => duration.split_once(" ms  ")?.1,
        None => message,
    };
    message.strip_prefix("execute ")
}

/// True if `text` holds `mark`, and no record as the server writes it in English: with `lc_messages` of another
/// language nothing can be said about the statements.
fn is_of_another_form(text: &str, mark: &str) -> bool {
    text.contains(mark) && text.lines().filter_map(executed).next().is_none()
}

/// Counts executions of prepared statements whose parameters hold `mark`, by verb. The server writes the statement and
/// its parameters as two lines in one write: `LOG:  execute NAME: SQL` and `DETAIL:  parameters: …` (from PostgreSQL 16
/// on with a capital letter). So the second line belongs to the first, even if many sessions log.
fn count(text: &str, mark: &str) -> Counts {
    let mut counts = Counts::new();
    let mut verb = None;
    for line in text.lines() {
        if let Some(statement) = executed(line) {
            verb = statement.split_once(": ").and_then(|(_, sql)| sql.split_whitespace().next());
        } else if let (Some(verb), true) = (verb.take(), line.contains("DETAIL:  ") && line.contains(mark)) {
            *counts.entry(verb.to_owned()).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
2026-11-21 08:00:00.000 UTC [7] LOG:  execute s0: SELECT \"a\" FROM t WHERE k = $1
2026-11-21 08:00:00.000 UTC [7] DETAIL:  parameters: $1 = 'audit-1-0'
2026-11-21 08:00:00.000 UTC [8] LOG:  execute s12: DELETE FROM t WHERE k = $1
2026-11-21 08:00:00.000 UTC [8] DETAIL:  Parameters: $1 = 'audit-1-0'
2026-11-21 08:00:00.000 UTC [8] LOG:  statement: SELECT 'audit-1-0'
2026-11-21 08:00:00.000 UTC [9] LOG:  execute s0: SELECT \"a\" FROM t WHERE k = $1
2026-11-21 08:00:00.000 UTC [9] DETAIL:  parameters: $1 = 'user1'
";

    /// What is judged of a log that holds this many of two statements, in an arm that is `protected` or not.
    fn seen(logged: usize, protected: bool, bare: usize, lost: Option<&str>) -> Observation {
        let counts = |count: usize| (count > 0).then(|| ("SELECT".to_owned(), count)).into_iter().collect::<Counts>();
        let tally = Tally { sent: counts(2), logged: counts(logged), doubt: None };
        judged(&tally, protected, bare, lost.map(str::to_owned))
    }

    #[test]
    fn every_statement_and_all_of_every_value_is_in_the_log_or_it_is_not_complete() {
        let whole = "sent: SELECT 2; in the log: SELECT 2";
        for bare in [0, 2] {
            assert_eq!(seen(2, true, bare, None), Observation::Protected(whole.to_owned()));
        }
        let cut = Observation::Exposed(format!("{whole}; values are cut (log_parameter_max_length)"));
        assert_eq!(seen(2, true, 2, Some("values are cut")), cut);
        // A plain arm whose log holds the statements is no control, whatever is cut.
        assert_eq!(seen(2, false, 2, Some("values are cut")), Observation::Protected(whole.to_owned()));
        let one = "sent: SELECT 2; in the log: SELECT 1".to_owned();
        assert_eq!(seen(1, true, 2, Some("values are cut")), Observation::Exposed(one));
        let none = |bare: &str| Observation::Exposed(format!("sent: SELECT 2; in the log: {bare}"));
        assert_eq!(seen(0, true, 0, None), none("none"));
        let bare = "2 statements without the parameters that were sent: they are cut or left out \
                    (log_parameter_max_length)";
        assert_eq!([seen(0, true, 2, None), seen(0, false, 2, None)], [none(bare), none(bare)]);
    }

    #[test]
    fn marked_executions_are_counted_by_verb() {
        assert_eq!(describe(&count(LOG, "audit-1-")), "DELETE 1, SELECT 1");
        assert_eq!(describe(&count(LOG, "audit-2-")), "none");
        let by_duration = LOG.replace("LOG:  execute", "LOG:  duration: 0.042 ms  execute");
        assert_eq!(count(&by_duration, "audit-1-"), count(LOG, "audit-1-"));
        assert_eq!(describe(&count_all(LOG)), "DELETE 1, SELECT 3");
    }

    #[test]
    fn a_log_in_another_language_is_not_one_without_statements() {
        let german = LOG.replace("LOG:  execute", "LOG:  ausführen").replace(":  parameters", ":  Parameter");
        assert!(is_of_another_form(&german, "audit-1-"));
        assert!(!is_of_another_form(&german, "audit-3-"));
        assert!(!is_of_another_form(LOG, "audit-1-"));
    }
}
