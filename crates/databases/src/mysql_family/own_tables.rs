//! Tables of the user's own on a running MariaDB or MySQL.
//!
//! Which tables a statement names is in the note of EXPLAIN, which repeats the statement with every name in full
//! (documentation, "EXPLAIN EXTENDED"), also where the planner leaves out a table. It needs the rights
//! of the statement.

use std::collections::BTreeSet;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    own_tables::{OwnTable, OwnTables, Touched, is_control, keyword, refuse_namesakes},
    session::SqlSession as _,
    setup::Setup,
};

use super::{
    Family,
    schema::{self, MARK},
    session::WireSession,
};

impl OwnTables for Family {
    fn touched(&self, server: &Server, setup: &Setup, statement: &str, parameters: usize) -> Result<Touched, Fault> {
        if is_control(statement) {
            return Ok(Touched::default());
        }
        let mut session = self.0.access.administrator(server, setup)?;
        // An administrator's session begins in none: that of Tithe may not be there.
        let database = self.0.access.product.target(server, setup)?.database;
        if !database.is_empty() {
            session.run(&format!("USE `{}`", database.replace('`', "``")))?;
        }
        session.run(&format!("PREPARE tithe_asks FROM {}", literal(&format!("EXPLAIN EXTENDED {statement}"))))?;
        let values = vec!["1"; parameters].join(", ");
        let using = if parameters > 0 { format!(" USING {values}") } else { String::new() };
        session.run(&format!("EXECUTE tithe_asks{using}"))?;
        let notes = session.run("SHOW WARNINGS")?;
        let note = notes.into_iter().filter_map(|mut row| row.pop().flatten()).next_back().unwrap_or_default();
        let mut touched = Touched::default();
        let word = keyword(statement);
        for (number, (schema, name)) in names(&note).into_iter().enumerate() {
            let known = format!(
                "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
                literal(&schema),
                literal(&name)
            );
            if session.value(&known)? == "0" {
                continue;
            }
            // What UPDATE and DELETE name may all be changed; INSERT names its table first.
            let is_written = match word.as_str() {
                "INSERT" | "REPLACE" => number == 0,
                "SELECT" | "TABLE" | "VALUES" => false,
                _ => true,
            };
            let set = if is_written { &mut touched.writes } else { &mut touched.reads };
            set.insert(OwnTable { schema, name });
        }
        Ok(touched)
    }

    /// EXPLAIN has refused what is missing.
    fn missing(&self, _server: &Server, _setup: &Setup, _touched: &Touched) -> Result<Vec<String>, Fault> {
        Ok(Vec::new())
    }

    fn grant_of(&self, server: &Server, setup: &Setup, refusal: &str) -> Option<String> {
        let (before, after) = refusal.split_once(" command denied to user ")?;
        let right = before.rsplit(' ').next()?;
        let (_, table) = after.split_once("for table ")?;
        let account = self.0.access.administrator(server, setup).ok()?.account().ok()?;
        Some(format!("GRANT {right} ON {} TO {account}", table.trim()))
    }

    fn copy(&self, server: &Server, setup: &Setup, tables: &BTreeSet<OwnTable>) -> Result<(), Fault> {
        refuse_namesakes(tables)?;
        let mut session = schema::own_database(self.0.access, server, setup)?;
        tables.iter().try_for_each(|table| copy(&mut session, &setup.space, table))
    }
}

fn copy(session: &mut WireSession, space: &str, table: &OwnTable) -> Result<(), Fault> {
    let kind = format!(
        "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        literal(&table.schema),
        literal(&table.name)
    );
    if session.value(&kind)? != "BASE TABLE" {
        return Err(Fault::Refused(format!(
            "{table} is no table, and a copy of what it shows would not follow the copies of its tables: let the \
             statements name tables"
        )));
    }
    let (from, to) = (quoted(&table.schema, &table.name), quoted(space, &table.name));
    session.run(&format!("DROP TABLE IF EXISTS {to}"))?;
    session.run(&format!("CREATE TABLE {to} LIKE {from}"))?;
    session.run(&format!("ALTER TABLE {to} COMMENT '{MARK}'"))?;
    // Generated columns take no values.
    let columns = session.value(&format!(
        "SELECT GROUP_CONCAT(CONCAT('`', REPLACE(COLUMN_NAME, '`', '``'), '`') ORDER BY ORDINAL_POSITION SEPARATOR ', ') FROM \
         information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND EXTRA NOT LIKE '%GENERATED%'",
        literal(&table.schema),
        literal(&table.name)
    ))?;
    session.run(&format!("INSERT INTO {to} ({columns}) SELECT {columns} FROM {from}"))?;
    session.run(&format!("ANALYZE TABLE {to}")).map(drop)
}

fn quoted(schema: &str, name: &str) -> String {
    format!("`{}`.`{}`", schema.replace('`', "``"), name.replace('`', "``"))
}

/// `text` as a literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Names of two parts in `note`, in their order, each once: those of tables, and some of columns.
fn names(note: &str) -> Vec<(String, String)> {
    let (mut found, mut parts, mut left): (Vec<(String, String)>, Vec<String>, &str) = (Vec::new(), Vec::new(), note);
    let mut end = |parts: &mut Vec<String>| {
        if let Ok([schema, name]) = <[String; 2]>::try_from(std::mem::take(parts))
            && !found.iter().any(|known| (&known.0, &known.1) == (&schema, &name))
        {
            found.push((schema, name));
        }
    };
    while let Some(sign) = left.chars().next() {
        let rest = &left[sign.len_utf8()..];
        left = match sign {
            '`' => {
                let (part, after) = quotation(rest, '`');
                parts.push(part);
                match after.strip_prefix('.') {
                    Some(more) if more.starts_with('`') => more,
                    _ => {
                        end(&mut parts);
                        after
                    }
                }
            }
            '\'' | '"' => quotation(rest, sign).1,
            _ => rest,
        };
    }
    found
}

/// What stands before the closing `quote`, and what follows it.
fn quotation(text: &str, quote: char) -> (String, &str) {
    let (mut inside, mut signs) = (String::new(), text.char_indices().peekable());
    while let Some((at, sign)) = signs.next() {
        if sign == '\\' && quote != '`' {
            signs.next();
        } else if sign == quote {
            if signs.peek().is_none_or(|(_, next)| *next != quote) {
                return (inside, &text[at + quote.len_utf8()..]);
            }
            signs.next();
            inside.push(quote);
        } else {
            inside.push(sign);
        }
    }
    (inside, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_stand_in_the_note_of_explain() {
        let told = |note: &str| {
            names(note).into_iter().map(|(schema, name)| format!("{schema}.{name}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            told(
                "select NULL AS `total` from `shop`.`orders` `o` join `shop`.`customer` `c` where `shop`.`o`.`id` = 1"
            ),
            "shop.orders shop.customer"
        );
        assert_eq!(told("select 'a\\'`no`.`table`' AS `x`,'it''s `no`.`y`' AS `z` from `a``b`.`c d`"), "a`b.c d");
        assert_eq!(told("delete  from `shop`.`orders` where `shop`.`orders`.`id` = NULL"), "shop.orders");
    }
}
