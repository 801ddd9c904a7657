//! What the profilers of single databases record now, however the server was started.

use mongodb::bson::{Document, doc};
use tithe_machine::fault::Fault;

use super::{
    super::{build::at, link::Link},
    options::RIGHT,
};
use crate::inspect::named;

/// How many databases are queried, each by its own command.
const MOST: usize = 1000;

/// The profilers of all databases that the account may ask.
#[derive(Debug, Default)]
pub struct Profilers {
    /// Databases in which every command is recorded, with its values.
    every: Vec<String>,
    /// Databases in which slow ones are.
    slow: Vec<String>,
    /// Databases in which those that pass a filter are.
    by_filter: Vec<String>,
    /// Databases with a filter: it also decides, in place of the duration, which of their commands the log repeats.
    pub filtered: Vec<String>,
    /// The duration from which on a command is slow, for profilers and for the log, ms; `None` if no database reported
    /// it.
    pub slow_ms: Option<i64>,
    /// What was not judged.
    pub doubt: Option<String>,
}

impl Profilers {
    /// Asks the profiler of each database.
    pub fn ask(link: &Link) -> Self {
        let listed = match link.admin(doc! { "listDatabases": 1, "nameOnly": true }) {
            Ok(listed) => listed,
            Err(fault) => return Self::unseen(format!("profilers of single databases ({})", why(&fault))),
        };
        let databases = listed.get_array("databases").map(Vec::as_slice).unwrap_or_default();
        let names = databases.iter().filter_map(|one| one.as_document()?.get_str("name").ok());
        let names: Vec<&str> = names.filter(|name| *name != "local" && *name != "config").collect();
        let told = names.iter().take(MOST).map(|name| (*name, link.run(name, doc! { "profile": -1 })));
        Self::of(told, names.len().saturating_sub(MOST))
    }

    /// From what each database has `told`; `more` were not queried.
    fn of<'a>(told: impl Iterator<Item = (&'a str, Result<Document, Fault>)>, more: usize) -> Self {
        let mut all = Self::default();
        let (mut unseen, mut refusal) = (more, None);
        for (name, told) in told {
            let number = |told: &Document, field: &str| at(told, &[field])?.parse::<f64>().ok();
            match told {
                Ok(told) => {
                    let has_filter = told.contains_key("filter");
                    all.filtered.extend(has_filter.then(|| name.to_owned()));
                    match number(&told, "was") {
                        Some(level) if level >= 2.0 => all.every.push(name.to_owned()),
                        Some(level) if level >= 1.0 && has_filter => all.by_filter.push(name.to_owned()),
                        Some(level) if level >= 1.0 => all.slow.push(name.to_owned()),
                        _ => {}
                    }
                    all.slow_ms = number(&told, "slowms").map(|ms| ms as i64).or(all.slow_ms);
                }
                Err(fault) => {
                    unseen += 1;
                    refusal.get_or_insert(fault);
                }
            }
        }
        if unseen > 0 {
            let why = refusal.map_or("too many".to_owned(), |fault| why(&fault));
            all.doubt = Some(format!("profilers of {unseen} databases ({why})"));
        }
        all
    }

    fn unseen(doubt: String) -> Self {
        Self { doubt: Some(doubt), ..Self::default() }
    }

    /// What they record, and whether one of them records every command.
    pub fn repeats(&self) -> (Vec<String>, bool) {
        let slow_ms = self.slow_ms.unwrap_or(100);
        let of_all = if slow_ms > 0 { self.every.clone() } else { [self.every.as_slice(), &self.slow].concat() };
        let mut repeats = Vec::new();
        if !of_all.is_empty() {
            repeats.push(format!("system.profile of {} repeats values of every command (profile)", named(&of_all)));
        }
        if slow_ms > 0 && !self.slow.is_empty() {
            let slow = named(&self.slow);
            repeats.push(format!(
                "system.profile of {slow} repeats values of commands slower than {slow_ms} ms (profile)"
            ));
        }
        if !self.by_filter.is_empty() {
            let filtered = named(&self.by_filter);
            repeats.push(format!(
                "system.profile of {filtered} repeats values of commands that pass a filter, however fast (profile)"
            ));
        }
        (repeats, !of_all.is_empty())
    }
}

/// The text of `fault`, with the right that would help if one is missing.
fn why(fault: &Fault) -> String {
    match fault {
        Fault::Refused(_) => format!("{fault}: {RIGHT}"),
        _ => fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn profilers(told: &[(&str, Document)]) -> Profilers {
        Profilers::of(told.iter().map(|(name, told)| (*name, Ok(told.clone()))), 0)
    }

    #[test]
    fn each_database_is_said_by_its_own_level() {
        let text = |profilers: &Profilers| format!("{:?} {:?}\n", profilers.repeats(), profilers.doubt);
        let off = || doc! { "was": 0, "slowms": 100 };
        let refused = ("shop", Err(Fault::Refused("not authorized".to_owned())));
        let said = [
            text(&profilers(&[("admin", off()), ("shop", off())])),
            text(&profilers(&[("admin", off()), ("shop", doc! { "was": 2.0, "slowms": 100 })])),
            text(&profilers(&[("shop", doc! { "was": 1, "slowms": 20 }), ("web", doc! { "was": 2, "slowms": 20 })])),
            text(&profilers(&[("shop", doc! { "was": 1, "slowms": -1 })])),
            text(&profilers(&[("shop", doc! { "was": 1, "slowms": 100, "filter": { "op": "query" } })])),
            text(&Profilers::of([("admin", Ok(off())), refused].into_iter(), 0)),
            text(&Profilers::of([("admin", Ok(off()))].into_iter(), 7)),
        ];
        expect![[r#"
            ([], false) None
            (["system.profile of shop repeats values of every command (profile)"], true) None
            (["system.profile of web repeats values of every command (profile)", "system.profile of shop repeats values of commands slower than 20 ms (profile)"], true) None
            (["system.profile of shop repeats values of every command (profile)"], true) None
            (["system.profile of shop repeats values of commands that pass a filter, however fast (profile)"], false) None
            ([], false) Some("profilers of 1 databases (refused: not authorized: the account needs the role clusterMonitor)")
            ([], false) Some("profilers of 7 databases (too many)")
        "#]].assert_eq(&said.concat());
    }
}
