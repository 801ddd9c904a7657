//! Does the general log hold every statement?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{CheckContext, CheckEntry, Evidence};

use super::count_marked;
use crate::evidence::marked::{Counts, Log, marker};

/// Sends numbered statements of each kind from several sessions at once and counts them in the log. Id `statement-log`.
pub struct GeneralLogComplete(pub &'static Log);

/// Counts executions of prepared statements that hold `mark`, by verb. A line is time or nothing, the connection's
/// number, the command (`Execute`), a tabulator and the statement with its values.
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

impl Evidence for GeneralLogComplete {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("statement-log")
    }

    fn claim(&self) -> String {
        "every statement is in the log once, with its values".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        count_marked(context, self.0, &marker(context), Clone::clone, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::marked::describe;

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
    }
}
