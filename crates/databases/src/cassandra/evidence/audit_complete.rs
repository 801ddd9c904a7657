//! Does the audit log hold every request that it must hold, and no other?

use std::time::Duration;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use super::{audited, dial};
use crate::evidence::{
    marked::{Counts, Tally, send},
    open_logs::{Growth, doubted},
    settled::{Patience, settled},
};

/// A separate thread writes the binary log.
const PATIENCE: Patience = Patience {
    most: Duration::from_secs(10),
    afterwards: Duration::from_millis(300),
    nothing: Duration::from_millis(1500),
    pause: Duration::from_millis(50),
};

/// Why a node that shows no record may still write records.
const ELSEWHERE: &str = "in the logs that its process has open there is none: the audit log is off, or goes elsewhere, as to \
                         syslog: have logback write it to a file";

/// Sends requests of each kind from several sessions at once and counts the records about the measured table in the
/// audit log: nothing else uses it then. Id `audit-complete`.
///
/// Both kinds of log hold a record as the same text, so both are counted alike. For a prepared statement that is its
/// text without values, so a single request cannot be distinguished from others of its kind.
pub struct AuditComplete {
    categories: String,
}

impl AuditComplete {
    /// A check of a log of `categories`: `QUERY`, `DML` or both.
    pub fn new(categories: &str) -> Self {
        Self { categories: categories.to_owned() }
    }

    /// Which of the sent requests must be in the log.
    fn expected(&self, sent: &Counts) -> Counts {
        let has = |category: &str| self.categories.split(',').any(|known| known == category);
        let mut expected = sent.clone();
        expected.retain(|verb, _| has(if verb == "SELECT" { "QUERY" } else { "DML" }));
        expected
    }
}

impl Check for AuditComplete {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("audit-complete")
    }

    fn claim(&self) -> String {
        format!("every request of {} is in the audit log once, and no other", self.categories)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let growth = match Growth::begin(context, dial)? {
            Ok(growth) => growth,
            Err(why) => return Ok(Observation::Unknown(why)),
        };
        let mark = audited(context)?;
        let sent = send(context)?;
        let expected = self.expected(&sent);
        let look = || growth.so_far(context).map(|gained| (count(&gained.text, &mark), gained.doubt));
        let (logged, doubt) = settled(&expected, PATIENCE, look)?;
        let doubt = doubted(doubt, (context.protected, logged.is_empty(), growth.may_miss()), ELSEWHERE);
        Ok(Tally { sent, logged, doubt }.against(&expected, context.protected))
    }
}

/// Counts records that hold `mark`, by the first word of their statement. A record is
/// `user:…|host:…|…|type:SELECT|category:QUERY|ks:…|scope:…|operation:SELECT …` (documentation, "Audit Logging").
/// Statements that are only prepared are left out.
fn count(text: &str, mark: &str) -> Counts {
    let mut counts = Counts::new();
    for record in text.split("|type:").skip(1) {
        let Some((head, rest)) = record.split_once("|category:") else { continue };
        let is_request = ["QUERY|", "DML|"].iter().any(|category| rest.starts_with(category));
        let Some((_, operation)) = rest.split_once("|operation:") else { continue };
        let about_table = rest.find("|operation:").is_some_and(|end| rest[..=end].contains(mark));
        if head.len() < 40 && is_request && about_table {
            let verb: String = operation.chars().take_while(char::is_ascii_alphabetic).collect();
            *counts.entry(verb).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evidence::marked::describe;

    const MARK: &str = "|ks:tithe|scope:usertable|";
    const LOG: &str = "\
2026-11-21 12:00:00,000 user:anonymous|host:/127.0.0.1:1|source:/127.0.0.1|port:2|timestamp:3|type:SELECT|category:QUERY|ks:tithe|scope:usertable|operation:SELECT \"field0\" FROM \"tithe\".\"usertable\" WHERE y_id = ?
2026-11-21 12:00:00,000 user:anonymous|host:/127.0.0.1:1|source:/127.0.0.1|port:2|timestamp:3|type:PREPARE_STATEMENT|category:PREPARE|ks:tithe|scope:usertable|operation:SELECT 1
2026-11-21 12:00:00,000 user:anonymous|host:/127.0.0.1:1|source:/127.0.0.1|port:2|timestamp:3|type:UPDATE|category:DML|ks:tithe|scope:usertable|operation:INSERT INTO x
2026-11-21 12:00:00,000 user:anonymous|host:/127.0.0.1:1|source:/127.0.0.1|port:2|timestamp:3|type:DELETE|category:DML|ks:other|scope:usertable|operation:DELETE FROM x
";

    #[test]
    fn records_are_counted_by_verb() {
        assert_eq!(describe(&count(LOG, MARK)), "INSERT 1, SELECT 1");
        // In the binary log a record does not end with a line break, but with bytes that are not text.
        let binary = LOG.replace('\n', "\u{fffd}\0\u{fffd}");
        assert_eq!(describe(&count(&binary, MARK)), "INSERT 1, SELECT 1");
    }

    #[test]
    fn what_is_expected_follows_the_categories() {
        let sent: Counts = ["SELECT", "INSERT", "UPDATE", "DELETE"].map(|verb| (verb.to_owned(), 100)).into();
        let expected = |categories: &str| describe(&AuditComplete::new(categories).expected(&sent));
        assert_eq!(expected("QUERY,DML"), "DELETE 100, INSERT 100, SELECT 100, UPDATE 100");
        assert_eq!(expected("QUERY"), "SELECT 100");
        assert_eq!(expected("DML"), "DELETE 100, INSERT 100, UPDATE 100");
    }

    proptest! {
        #[test]
        fn foreign_text_is_never_too_much(text in "(\\||type:|category:|DML|ks:tithe|scope:usertable|operation:|x|\u{e9}){0,40}") {
            prop_assert!(count(&text, MARK).values().sum::<usize>() <= text.matches("|type:").count());
        }
    }
}
