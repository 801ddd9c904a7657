//! Does the audit log hold the statements that define tables?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    database::sql_of,
    evidence::{Check, CheckContext, CheckEntry},
};

use super::marked::{Counts, Log, LogGrowth, describe, marker};

/// Creates and removes a table, and searches for both statements in the log. Id `definitions-logged`.
pub struct DefinitionsLogged {
    /// The log.
    pub log: &'static Log,
    /// Counts the records of a text with a mark, by command.
    pub count: fn(&str, &str) -> Counts,
}

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
        let (gained, is_there) = growth.of_one(context, |text| {
            let logged = (self.count)(text, &name);
            ["CREATE", "DROP"].iter().all(|verb| logged.keys().any(|command| command.starts_with(verb)))
        })?;
        let logged = (self.count)(&gained.text, &name);
        let words = format!("made and removed a table; in the log: {}", describe(&logged));
        Ok(match gained.doubt {
            _ if is_there => Observation::Protected(words),
            Some(why) => Observation::Unknown(format!("{words}; {why}")),
            None => Observation::Exposed(words),
        })
    }
}
