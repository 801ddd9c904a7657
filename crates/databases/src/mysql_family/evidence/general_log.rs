//! Does the general log hold every statement?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry, Watch};

use super::count_marked;
use crate::evidence::marked::{Counts, End, Log, LogWatch, marker};

/// Sends numbered statements of each kind from several sessions at once and counts them in the log. Id `statement-log`.
pub struct GeneralLogComplete(pub &'static Log);

/// What to do if the plain arm of an attached server is logged as well.
const LOGGED_TOO: &str = "; where both arms use one server, `SET GLOBAL sql_log_off = ON` leaves sessions out of its log \
                          that do not ask for it (of MySQL those of accounts with CONNECTION_ADMIN)";

/// Counts executions of prepared statements that hold `mark`, by verb. A line is a time or nothing, the connection's
/// number, the command (`Execute`), a tab, and the statement with its values.
fn count(text: &str, mark: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines().filter(|line| line.contains(mark)) {
        let Some((_, statement)) = line.split_once(" Execute\t") else { continue };
        if let Some(verb) = statement.split_whitespace().next() {
            *counts.entry(verb.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Counts statements of either kind, prepared (`Execute`) or sent as text (`Query`), by their first word.
fn count_all(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let statement = line.split_once(" Execute\t").or_else(|| line.split_once(" Query\t"));
        if let Some(verb) = statement.and_then(|(_, sql)| sql.split_whitespace().next()) {
            *counts.entry(verb.to_ascii_uppercase()).or_default() += 1;
        }
    }
    counts
}

impl Check for GeneralLogComplete {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("statement-log")
    }

    fn claim(&self) -> String {
        "every statement is in the log once, with its values".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let marked = match count_marked(context, self.0, &marker(context), Clone::clone, count)? {
            Ok(marked) => marked,
            Err(why) => return Ok(Observation::Unknown(why)),
        };
        let attached = context.server.address.is_attached();
        Ok(helped(marked.observation(context.protected), context.protected, attached))
    }

    fn watch(&self, context: &CheckContext<'_>) -> Option<Box<dyn Watch>> {
        Some(LogWatch::begin(context, self.0, End::Rest, count_all))
    }
}

/// The observation `seen` of an arm that is `protected` or not. For a plain arm whose statements an `attached` server
/// logs, with what to do.
fn helped(seen: Observation, protected: bool, attached: bool) -> Observation {
    match seen {
        Observation::Protected(words) if !protected && attached => Observation::Protected(words + LOGGED_TOO),
        seen => seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::marked::describe;

    #[test]
    fn a_plain_arm_that_a_running_server_logs_is_told_what_to_do() {
        let words = || "sent: SELECT 1; in the log: SELECT 1".to_owned();
        for (protected, attached) in [(false, false), (false, true), (true, false), (true, true)] {
            let expected = if attached && !protected { words() + LOGGED_TOO } else { words() };
            let seen = helped(Observation::Protected(words()), protected, attached);
            assert_eq!(seen, Observation::Protected(expected), "protected: {protected}, attached: {attached}");
            let exposed = || Observation::Exposed(words());
            assert_eq!(helped(exposed(), protected, attached), exposed());
        }
    }

    const LOG: &str = "\
261121  8:00:00\t    12 Execute\tINSERT INTO `tithe`.`t` (`ycsb_key`) VALUES ('audit-1-0')
\t\t    12 Execute\tSELECT `field0` FROM `tithe`.`t` WHERE `ycsb_key` = 'audit-1-0'
\t\t    13 Prepare\tSELECT 'audit-1-0'
\t\t    13 Execute\tSELECT `field0` FROM `tithe`.`t` WHERE `ycsb_key` = 'audit-2-0'
";

    #[test]
    fn marked_executions_are_counted_by_verb() {
        assert_eq!(describe(&count(LOG, "audit-1-")), "INSERT 1, SELECT 1");
        assert_eq!(describe(&count(LOG, "audit-3-")), "none");
        assert_eq!(describe(&count_all(LOG)), "INSERT 1, SELECT 2");
    }
}
