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
        let (gained, is_there) = growth.of_one(context, |text| has_both(&(self.count)(text, &name)))?;
        Ok(judged(&(self.count)(&gained.text, &name), is_there, gained.doubt))
    }
}

/// True if a table was made and removed, according to what was `logged`.
fn has_both(logged: &Counts) -> bool {
    ["CREATE", "DROP"].iter().all(|verb| logged.keys().any(|command| command.starts_with(verb)))
}

/// What a log shows in which both statements are, or in which some records may be missing for the reason `doubt`.
fn judged(logged: &Counts, is_there: bool, doubt: Option<&str>) -> Observation {
    let words = format!("made and removed a table; in the log: {}", describe(logged));
    match doubt {
        _ if is_there => Observation::Protected(words),
        Some(why) => Observation::Unknown(format!("{words}; {why}")),
        None => Observation::Exposed(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(commands: &[&str]) -> Counts {
        commands.iter().map(|command| ((*command).to_owned(), 1)).collect()
    }

    #[test]
    fn both_statements_are_in_the_log_or_it_is_not_complete() {
        assert!(has_both(&counts(&["CREATE", "DROP"])) && has_both(&counts(&["CREATE TABLE", "DROP TABLE", "SELECT"])));
        for logged in [&["CREATE"][..], &["DROP"], &["SELECT"], &[], &["RECREATE", "DROP"]] {
            assert!(!has_both(&counts(logged)), "{logged:?}");
        }
        let logged = counts(&["CREATE", "DROP"]);
        let words = "made and removed a table; in the log: CREATE 1, DROP 1";
        for doubt in [None, Some("it was rotated")] {
            assert_eq!(judged(&logged, true, doubt), Observation::Protected(words.to_owned()));
        }
        assert_eq!(judged(&logged, false, None), Observation::Exposed(words.to_owned()));
        let unknown = Observation::Unknown(format!("{words}; it was rotated"));
        assert_eq!(judged(&logged, false, Some("it was rotated")), unknown);
    }
}
