//! What a running MariaDB or MySQL has counted in `performance_schema`, and a sample of its columns' values.

use std::collections::{BTreeMap, BTreeSet};

use tithe_machine::fault::Fault;
use tithe_model::catalogue::WireProtocol;
use tithe_plugin::{
    own_tables::{OwnStatement, Refusal, Survey as _},
    production::{ColumnValues, Counted, Production},
    session::{SqlSession as _, rows},
};

use super::{Asking, literal, quoted};

/// Most rows of a table that are read for the values of its columns.
const SAMPLE: usize = 1000;

/// Most statements for whose tables the account's privileges are checked.
const ASKED: usize = 500;

/// For a change in a read-only transaction.
const READ_ONLY: &str = "1792 ";

/// Whole numbers.
const WHOLE: [&str; 5] = ["tinyint", "smallint", "mediumint", "int", "bigint"];

impl Production for Asking {
    fn protocol(&self) -> WireProtocol {
        WireProtocol::MySql
    }

    fn sources(&self) -> (&'static str, &'static str) {
        ("performance_schema", "smallest and largest values of indexed numbers and the first 1,000 rows")
    }

    fn counted(&mut self) -> Result<Vec<Counted>, Fault> {
        if self.session.value("SELECT @@performance_schema")? == "0" {
            let words = "performance_schema is off, as MariaDB has it by default: write `performance_schema = ON` into the \
                         server's settings and restart it";
            return Err(Fault::Refused(words.to_owned()));
        }
        let sql = "SELECT DIGEST_TEXT, COUNT_STAR, SUM_TIMER_WAIT DIV 1000, SUM_ROWS_SENT FROM \
                   performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = DATABASE() AND DIGEST_TEXT IS \
                   NOT NULL ORDER BY 3 DESC, 1";
        let counted = rows(&mut self.session, sql).map_err(|fault| match fault {
            Fault::Server(_) | Fault::Refused(_) => {
                let account = &self.account;
                Fault::Refused(format!(
                    "the account may not see what was counted: run `GRANT SELECT ON performance_schema.* TO {account}; GRANT \
                     SELECT ON {}.* TO {account}`",
                    self.database
                ))
            }
            fault => fault,
        })?;
        let counted = counted.into_iter().map(Counted::of);
        // In a digest a function's name is followed by a space, which is not allowed elsewhere.
        Ok(counted.map(|it| Counted { text: it.text.trim_end().replace(" (", "("), ..it }).collect())
    }

    fn columns(&mut self, names: &BTreeSet<String>) -> Result<Vec<ColumnValues>, Fault> {
        let all = names.iter().map(|name| literal(name)).collect::<Vec<_>>().join(", ");
        let of_tables = format!("TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({all}) AND COLUMN_NAME IN ({all})");
        let indexed = format!(
            "SELECT TABLE_NAME, COLUMN_NAME, MIN(NON_UNIQUE) = 0, MIN(SEQ_IN_INDEX) = 1 FROM information_schema.STATISTICS \
             WHERE {of_tables} GROUP BY 1, 2"
        );
        let indexed = rows(&mut self.session, &indexed)?.into_iter();
        let indexed: BTreeMap<_, _> = indexed
            .map(|[table, column, is_key, is_first]: [String; 4]| ((table, column), (is_key == "1", is_first == "1")))
            .collect();
        let sql = format!(
            "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE {of_tables} ORDER BY 1, \
             ORDINAL_POSITION"
        );
        let (mut columns, mut sampled) = (Vec::new(), BTreeMap::<String, Vec<usize>>::new());
        for [table, column, kind] in rows::<3>(&mut self.session, &sql)? {
            let (is_key, is_first) = indexed.get(&(table.clone(), column.clone())).copied().unwrap_or_default();
            let is_whole = WHOLE.contains(&kind.to_ascii_lowercase().as_str());
            let mut known = ColumnValues { table, column, is_whole, is_key, ..ColumnValues::default() };
            if is_whole && is_first {
                let (column, table) = (quoted(&known.column), quoted(&known.table));
                let ends = format!("SELECT MIN({column}), MAX({column}) FROM {table}");
                let ends = rows::<2>(&mut self.session, &ends)?.into_iter().flatten();
                known.bounds = ends.filter(|value| !value.is_empty()).collect();
            } else {
                sampled.entry(known.table.clone()).or_default().push(columns.len());
            }
            columns.push(known);
        }
        for (table, numbers) in sampled {
            let names = numbers.iter().map(|number| quoted(&columns[*number].column)).collect::<Vec<_>>().join(", ");
            let sample = self.session.run(&format!("SELECT {names} FROM {} LIMIT {SAMPLE}", quoted(&table)))?;
            let share = 1.0 / sample.len().max(1) as f64;
            for row in sample {
                for (number, value) in numbers.iter().zip(row) {
                    columns[*number].common.extend(value.map(|value| (value, share)));
                }
            }
        }
        Ok(columns)
    }

    fn grants(&mut self, statements: &[&Counted], _names: &BTreeSet<String>) -> Result<BTreeSet<String>, Fault> {
        let mut grants = BTreeSet::new();
        for counted in statements.iter().take(ASKED) {
            let statement = OwnStatement { place: String::new(), text: counted.text.clone(), parameters: 0 };
            if let Some(Refusal::Denied { grant, .. }) = self.refusal(&statement)? {
                // Copied tables only need to be readable, whatever the statement does.
                grants.extend(grant.filter(|_| counted.text.starts_with("SELECT")));
            }
        }
        Ok(grants)
    }

    fn refuses(&mut self, text: &str) -> Result<Option<String>, Fault> {
        match self.session.prepare_text(text) {
            Ok(_) => Ok(None),
            // Copies are changed with other rights, and by sessions that may write.
            Err(Fault::Server(words) | Fault::Refused(words)) => {
                let is_denied = super::DENIED.iter().chain(&[READ_ONLY]).any(|code| words.starts_with(code));
                Ok((!is_denied).then_some(words))
            }
            Err(fault) => Err(fault),
        }
    }
}
