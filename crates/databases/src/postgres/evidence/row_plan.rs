//! How the server reads by key with its policies, and without.

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    session::SqlSession as _,
};

use super::rows_apart::{client, tables};
use crate::postgres::{schema::administrator, session::PostgresSession};

/// Shows the plans of a read by key and of a range read. It shows them for a client and for the table's administrator,
/// whom no policy restricts on a server that Tithe started. A disclosure: a policy that stops the server from using its
/// index makes every read a scan of the whole table.
pub struct RowPlan;

impl Check for RowPlan {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("row-plan").own_control()
    }

    fn claim(&self) -> String {
        "with the policies, reads by key use the index, too".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let (mut client, space) = (client(context.server, context.setup)?, &context.setup.space);
        let Some((table, key)) = keyed(&mut client, space)? else {
            return Ok(Observation::Unknown("no table has a key".to_owned()));
        };
        let mut free = administrator(context.server, context.setup)?;
        let mut told = Vec::new();
        let mut by_index = None;
        for (name, sql) in reads(&table, &key) {
            let held = plan(&mut client, &sql)?;
            // An owner whom the policies restrict as well has no tenant, and so no plan.
            let usual = match plan(&mut free, &sql) {
                Err(Fault::Server(_)) => None,
                usual => Some(usual?),
            };
            // For a range, the planner chooses by size; for a single row, a plan without an index is a finding.
            by_index.get_or_insert(is_by_index(&held, usual.as_deref()));
            told.push(match usual {
                Some(usual) if usual != held => format!("{name}: {held} | without: {usual}"),
                _ => format!("{name}: {held}"),
            });
        }
        let quotation = told.join("; ");
        Ok(match by_index.flatten() {
            Some(true) => Observation::Protected(quotation),
            Some(false) => Observation::Exposed(quotation),
            None => Observation::Unknown(quotation),
        })
    }
}

/// True if the policies do not keep the server from its index, by the plan with them and the `usual` one; `None` if the
/// second is not known.
fn is_by_index(held: &str, usual: Option<&str>) -> Option<bool> {
    match usual {
        _ if held.contains("Index") => Some(true),
        Some(usual) => Some(!usual.contains("Index")),
        None => None,
    }
}

/// The workload's largest table (in pages) that has a primary key, and the columns of that key.
fn keyed(session: &mut PostgresSession, space: &str) -> Result<Option<(String, Vec<String>)>, Fault> {
    let known = tables(session, space)?;
    let listed = format!(
        "SELECT relname, (SELECT string_agg(attname, ' ' ORDER BY place) FROM unnest(indkey) WITH ORDINALITY AS key \
         (number, place) JOIN pg_attribute ON attrelid = indrelid AND attnum = key.number) FROM pg_index JOIN pg_class \
         ON pg_class.oid = indrelid WHERE indisprimary AND relnamespace = '{space}'::regnamespace ORDER BY relpages DESC"
    );
    let keyed = session.run(&listed)?.into_iter().find_map(|row| match row.as_slice() {
        [Some(table), Some(key)] if known.contains(table) => {
            let columns = key.split(' ').map(|column| format!("\"{column}\"")).collect();
            Some((format!("\"{space}\".\"{table}\""), columns))
        }
        _ => None,
    });
    Ok(keyed)
}

/// A read of one row of `table` and one of a range, by the columns of its key.
fn reads(table: &str, key: &[String]) -> [(&'static str, String); 2] {
    let last = key.last().map_or("", String::as_str);
    let where_all = |of_last: &str| {
        let before = key.iter().take(key.len().saturating_sub(1)).map(|column| format!("{column} = '0' AND "));
        format!("{}{last} {of_last} '0'", before.collect::<String>())
    };
    [
        ("by key", format!("SELECT * FROM {table} WHERE {}", where_all("="))),
        ("a range", format!("SELECT * FROM {table} WHERE {} ORDER BY {last} LIMIT 10", where_all(">="))),
    ]
}

/// Characters of a plan line that are shown: the condition of many policies fills pages.
const LINE: usize = 120;

/// The plan of `sql` in one line.
fn plan(session: &mut PostgresSession, sql: &str) -> Result<String, Fault> {
    let lines = session.run(&format!("EXPLAIN (COSTS OFF) {sql}"))?;
    let short = |line: String| {
        let line = line.trim().trim_start_matches("->").trim();
        if line.chars().count() > LINE { line.chars().take(LINE).chain(['…']).collect() } else { line.to_owned() }
    };
    Ok(lines.into_iter().flatten().flatten().map(short).collect::<Vec<String>>().join(", "))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        postgres::told::server,
        told::{Rows, Told},
    };

    /// A server with one table and these plans of a read by its key and of a range.
    fn planning(by_key: Rows, range: Rows) -> Told {
        server(
            Vec::new(),
            vec![
                ("relkind = 'r'", Ok(&[&["orders"]])),
                ("FROM pg_index", Ok(&[&["others", "id"], &["orders", "id"]])),
                ("LIMIT 10", Ok(range)),
                ("EXPLAIN", Ok(by_key)),
            ],
        )
    }

    #[test]
    fn the_plan_of_a_single_row_decides() {
        const INDEX: Rows = &[&["Index Scan"], &["  ->  Filter"]];
        const SCAN: Rows = &[&["Seq Scan"]];
        let seen = planning(INDEX, SCAN).observed(&RowPlan);
        assert_eq!(seen, "protected: by key: Index Scan, Filter; a range: Seq Scan", "equal plans appear once");
        let without_key = planning(INDEX, SCAN).telling("FROM pg_index", &[&["others", "id"]]);
        assert_eq!(without_key.observed(&RowPlan), "unknown: no table has a key");
    }

    #[test]
    fn policies_are_blamed_for_a_scan_that_the_server_does_not_make_without_them() {
        let (index, scan) = ("Index Scan using t_pkey on t", "Seq Scan on t");
        assert_eq!(is_by_index(index, Some(index)), Some(true));
        assert_eq!(is_by_index(index, None), Some(true));
        assert_eq!(is_by_index(scan, Some(index)), Some(false));
        assert_eq!(is_by_index(scan, Some(scan)), Some(true), "a small table");
        assert_eq!(is_by_index(scan, None), None);
    }

    #[test]
    fn reads_use_every_column_of_the_key() {
        let text = |key: &[&str]| {
            let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
            reads("t", &key).map(|(name, sql)| format!("{name}: {sql}\n")).concat()
        };
        expect![[r#"
            by key: SELECT * FROM t WHERE a = '0'
            a range: SELECT * FROM t WHERE a >= '0' ORDER BY a LIMIT 10
            by key: SELECT * FROM t WHERE a = '0' AND b = '0' AND c = '0'
            a range: SELECT * FROM t WHERE a = '0' AND b = '0' AND c >= '0' ORDER BY c LIMIT 10
        "#]]
        .assert_eq(&(text(&["a"]) + &text(&["a", "b", "c"])));
    }
}
