//! Tables of the user's own on a server that Tithe did not start: what statements do to them, as the server says, and
//! copies of them where Tithe keeps its tables.
//!
//! Nobody parses SQL here: each product is asked which tables a statement names, without carrying it out.

use std::{collections::BTreeSet, fmt};

use tithe_machine::{fault::Fault, launch::Server};

use crate::setup::Setup;

/// A table, or a view.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnTable {
    /// The schema or the database that it is in.
    pub schema: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for OwnTable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.schema, self.name)
    }
}

/// What a statement names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    /// Tables and views that it reads.
    pub reads: BTreeSet<OwnTable>,
    /// Tables that it writes to.
    pub writes: BTreeSet<OwnTable>,
    /// What else the account must be allowed to do there: `UPDATE`, with the table.
    pub needs: BTreeSet<(&'static str, OwnTable)>,
}

/// What a product does with tables that Tithe did not make.
pub trait OwnTables: Sync {
    /// What `statement` names, which has so many `parameters`, written as the product writes them. It is not carried
    /// out.
    ///
    /// # Errors
    /// [`Fault::Server`] where the server does not understand it, or a table is missing.
    fn touched(&self, server: &Server, setup: &Setup, statement: &str, parameters: usize) -> Result<Touched, Fault>;

    /// The rights that the account lacks for what is `touched`, all at once, as statements that an administrator can
    /// paste.
    ///
    /// # Errors
    /// The server's error.
    fn missing(&self, server: &Server, setup: &Setup, touched: &Touched) -> Result<Vec<String>, Fault>;

    /// The statement that gives the account what it lacks, where the `refusal` of [`OwnTables::touched`] says it;
    /// `None` where it says nothing of the kind.
    fn grant_of(&self, _server: &Server, _setup: &Setup, _refusal: &str) -> Option<String> {
        None
    }

    /// Copies `tables` with their rows, indexes and checks to where Tithe keeps its tables; foreign keys and triggers
    /// are left out, because they would lead back to the originals.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a view, and where two tables have the same name; the server's error.
    fn copy(&self, server: &Server, setup: &Setup, tables: &BTreeSet<OwnTable>) -> Result<(), Fault>;
}

/// A statement of the user's own.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Where it stands: `app.sql:3`.
    pub place: &'a str,
    /// Its text, with parameters as the product writes them.
    pub text: &'a str,
    /// How many parameters it has.
    pub parameters: usize,
}

/// What all of `statements` name together.
///
/// # Errors
/// [`Fault::Refused`] with every statement that the server does not understand, by its place, and every right that the
/// account lacks, as statements that an administrator can paste; a broken connection.
pub fn survey(
    own: &dyn OwnTables,
    (server, setup): (&Server, &Setup),
    statements: &[Asked<'_>],
) -> Result<Touched, Fault> {
    let (mut all, mut refused, mut missing) = (Touched::default(), Vec::new(), Vec::new());
    for Asked { place, text, parameters } in statements {
        match own.touched(server, setup, text, *parameters) {
            Ok(Touched { reads, writes, needs }) => {
                all.reads.extend(reads);
                all.writes.extend(writes);
                all.needs.extend(needs);
            }
            Err(Fault::Refused(words) | Fault::Server(words)) => match own.grant_of(server, setup, &words) {
                Some(grant) if missing.contains(&grant) => {}
                Some(grant) => missing.push(grant),
                None => refused.push(format!("{place}: {words}")),
            },
            Err(fault) => return Err(fault),
        }
    }
    for grant in own.missing(server, setup, &all)? {
        if !missing.contains(&grant) {
            missing.push(grant);
        }
    }
    if !missing.is_empty() {
        refused.push(format!("the account lacks rights; an administrator gives them by: {}", missing.join("; ")));
    }
    if refused.is_empty() { Ok(all) } else { Err(Fault::Refused(refused.join("; "))) }
}

/// The keyword that a statement begins with, in capitals; behind comments.
pub fn keyword(statement: &str) -> String {
    let mut left = statement.trim_start();
    loop {
        left = if let Some(rest) = left.strip_prefix("--") {
            rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start()
        } else if let Some(rest) = left.strip_prefix("/*") {
            rest.split_once("*/").map_or("", |(_, rest)| rest).trim_start()
        } else {
            break;
        };
    }
    left.chars().take_while(char::is_ascii_alphabetic).collect::<String>().to_ascii_uppercase()
}

/// True for statements that begin, end or configure a transaction or a session and name no table.
pub fn is_control(statement: &str) -> bool {
    const CONTROL: [&str; 11] =
        ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET", "SHOW", "RESET"];
    CONTROL.contains(&keyword(statement).as_str())
}

/// The rights that a statement with this `keyword` needs on the tables that it writes to.
pub fn rights(keyword: &str) -> &'static [&'static str] {
    match keyword {
        "INSERT" => &["INSERT"],
        "UPDATE" => &["UPDATE"],
        "DELETE" => &["DELETE"],
        "REPLACE" => &["INSERT", "DELETE"],
        // What is locked only is updated by nobody, and the right is needed all the same.
        "SELECT" => &["UPDATE"],
        _ => &["INSERT", "UPDATE", "DELETE"],
    }
}

/// Refuses two `tables` of the same name, of which a copy would take the place of the other.
///
/// # Errors
/// [`Fault::Refused`] with both.
pub fn refuse_namesakes(tables: &BTreeSet<OwnTable>) -> Result<(), Fault> {
    let mut all = tables.iter();
    while let Some(table) = all.next() {
        if let Some(other) = all.clone().find(|other| other.name == table.name) {
            return Err(Fault::Refused(format!(
                "{table} and {other} have the same name: only one of them can be copied"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyword_of_a_statement_stands_behind_comments() {
        assert_eq!(keyword("  -- why\n /* and /* how */ update t"), "UPDATE");
        assert_eq!(keyword("-- nothing else"), "");
        assert!(is_control("begin isolation level serializable") && is_control("SET LOCAL x = 1"));
        assert!(!is_control("SETTLE") && !is_control("WITH x AS (SELECT 1) DELETE FROM t"));
    }

    #[test]
    fn tables_of_the_same_name_are_not_copied() {
        let table = |schema: &str, name: &str| OwnTable { schema: schema.to_owned(), name: name.to_owned() };
        refuse_namesakes(&BTreeSet::from([table("a", "t"), table("a", "u")])).expect("different names");
        let refused = refuse_namesakes(&BTreeSet::from([table("a", "t"), table("a", "u"), table("b", "t")]));
        assert!(refused.expect_err("the same name").to_string().contains("a.t and b.t"));
    }
}
