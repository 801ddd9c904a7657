//! Does the audit log hold every operation that it must hold, and no other?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::canary::key_value,
    evidence::{Check, CheckContext, CheckEntry},
    session::{Discard, Fields, Request},
};

use crate::evidence::marked::{Counts, Log, NO_LOG, Tally, describe, marker, send_and_count};

/// Sends marked operations of each kind from several sessions at once and counts their records in the audit log. Id
/// `audit-complete`.
pub struct AuditComplete {
    commands: &'static [&'static str],
}

/// How MongoDB's log is reached: a file of a launched server only.
static LOG: Log = Log { plant, served: |_| Err(NO_LOG.to_owned()) };

/// Runs one of each operation with `token` as the key: at least one of them is of a recorded kind.
fn plant(context: &CheckContext<'_>, token: &str) -> Result<(), Fault> {
    let mut session = key_value(context.connect()?)?;
    let key = token.as_bytes();
    let values: Vec<(usize, &[u8])> = (0..context.table.fields).map(|field| (field, &b"planted"[..])).collect();
    for request in [
        Request::Insert { key, values: &values },
        Request::Update { key, values: &values[..1] },
        Request::Read { key, fields: Fields::All },
        Request::Delete { key },
    ] {
        session.call(&request, &mut Discard)?;
    }
    Ok(())
}

/// The command for each verb of [`Counts`].
const COMMANDS: [(&str, &str); 4] =
    [("INSERT", "insert"), ("SELECT", "find"), ("UPDATE", "update"), ("DELETE", "delete")];

impl AuditComplete {
    /// A check of a log of `commands`.
    pub fn new(commands: &'static [&'static str]) -> Self {
        Self { commands }
    }

    /// Which of the sent operations must be in the log.
    fn expected(&self, sent: &Counts) -> Counts {
        let recorded =
            |verb: &str| COMMANDS.iter().any(|(name, command)| *name == verb && self.commands.contains(command));
        sent.iter().filter(|(verb, _)| recorded(verb)).map(|(verb, count)| (verb.clone(), *count)).collect()
    }
}

impl Check for AuditComplete {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("audit-complete")
    }

    fn claim(&self) -> String {
        format!("every {} is in the audit log once, and no other operation", self.commands.join(", "))
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mark = marker(context);
        let Tally { sent, logged: found, .. } = match send_and_count(context, &LOG, |text| count(text, &mark))? {
            Ok(tally) => tally,
            Err(why) => return Ok(Observation::Unknown(why.to_owned())),
        };
        let expected = self.expected(&sent);
        let quotation = format!(
            "sent {}; must be recorded: {}; in the log: {}",
            describe(&sent),
            describe(&expected),
            describe(&found)
        );
        Ok(if found == expected { Observation::Protected(quotation) } else { Observation::Exposed(quotation) })
    }
}

/// Counts records of operations on keys that hold `mark`, by verb. A record is one line of JSON with the kind of event
/// in `atype` and the command in `param` (documentation, "System Event Audit Messages"). An unfinished last line is not
/// counted, and neither is the end mark of the check.
fn count(text: &str, mark: &str) -> Counts {
    let mut counts = Counts::new();
    let planted = format!("end-of-{mark}");
    for line in text.lines().filter(|line| line.contains(mark) && !line.contains(&planted)) {
        let Ok(record) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let command = record["param"]["command"].as_str().filter(|_| record["atype"] == "authCheck");
        if let Some((verb, _)) = COMMANDS.iter().find(|(_, name)| Some(*name) == command) {
            *counts.entry((*verb).to_owned()).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOG: &str = r#"{"atype":"authenticate","ts":{},"param":{"user":"tithe","db":"admin"},"result":0}
{"atype":"authCheck","param":{"command":"insert","ns":"tithe.t","args":{"insert":"t","documents":[{"_id":"audit-1-g-0-000"}]}},"result":0}
{"atype":"authCheck","param":{"command":"find","ns":"tithe.t","args":{"find":"t","filter":{"_id":"audit-1-g-0-000"}}},"result":0}
{"atype":"authCheck","param":{"command":"find","ns":"tithe.t","args":{"find":"t","filter":{"_id":"audit-1-p-0-000"}}},"result":0}
{"atype":"authCheck","param":{"command":"insert","ns":"tithe.t","args":{"documents":[{"_id":"end-of-audit-1-g"}]}},"result":0}
{"atype":"authCheck","param":{"command":"update","args":{"updates":[{"q":{"_id":"audit-1-g-0-0
"#;

    #[test]
    fn records_are_counted_by_verb() {
        assert_eq!(describe(&count(LOG, "audit-1-g")), "INSERT 1, SELECT 1");
    }

    #[test]
    fn what_is_expected_follows_the_filter() {
        let sent: Counts = ["SELECT", "INSERT", "UPDATE"].map(|verb| (verb.to_owned(), 100)).into();
        let expected = |commands| describe(&AuditComplete::new(commands).expected(&sent));
        assert_eq!(expected(&["insert"]), "INSERT 100");
        assert_eq!(expected(&["update", "find", "getMore"]), "SELECT 100, UPDATE 100");
    }

    proptest! {
        #[test]
        fn no_log_is_counted_beyond_its_lines(text in ".{0,400}", mark in "[a-z]{1,4}") {
            prop_assert!(count(&text, &mark).values().sum::<usize>() <= text.lines().count());
        }
    }
}
