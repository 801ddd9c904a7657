//! Does the audit log hold the statements that define tables?

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    database::sql_of,
    evidence::{Check, CheckContext, CheckEntry},
};

use super::marked::{Counts, Log, LogGrowth, describe, marker};

/// Makes and removes a table, and looks for both in the log. Id `definitions-logged`.
pub struct DefinitionsLogged {
    /// The log.
    pub log: &'static Log,
    /// Counts the records of a text with a mark, by command.
    pub count: fn(&str, &str) -> Counts,
}

/// How long a record may take into the log.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Check for DefinitionsLogged {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("definitions-logged")
    }

    fn claim(&self) -> String {
        "statements that define tables are in the audit log".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let growth = match LogGrowth::begin(context, self.log) {
            Ok(growth) => growth,
            Err(why) => return Ok(Observation::Unknown(why)),
        };
        let sql = sql_of(context.database)?;
        let name = marker(context).replace('-', "_");
        sql.create(context.server, context.setup, &name, &format!("CREATE TABLE {name} (a INTEGER)"), &[])?;
        sql.remove(context.server, context.setup, &[&name])?;
        let begun = Instant::now();
        loop {
            let gained = growth.so_far(context)?;
            let logged = (self.count)(&gained.text, &name);
            let words = format!("made and removed a table; in the log: {}", describe(&logged));
            if ["CREATE", "DROP"].iter().all(|verb| logged.keys().any(|command| command.starts_with(verb))) {
                return Ok(Observation::Protected(words));
            }
            if begun.elapsed() > TIMEOUT {
                return Ok(match gained.doubt {
                    Some(why) => Observation::Unknown(format!("{words}; {why}")),
                    None => Observation::Exposed(words),
                });
            }
            sleep(Duration::from_millis(20));
        }
    }
}
