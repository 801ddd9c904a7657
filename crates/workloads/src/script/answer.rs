//! The rows of a statement: counted, and stored if the script takes them as variables.

use tithe_plugin::session::Rows;

use super::{
    command::Keep,
    value::Value,
    variables::{Variables, is_valid},
};

/// Largest accepted answer, bytes: a larger one fills the slots of several blocks.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Receives the rows of one statement.
#[derive(Debug, Default)]
pub struct Answer {
    /// True if rows become variables.
    keeps: bool,
    /// True if the last row of each result does.
    all: bool,
    prefix: String,
    columns: Vec<String>,
    /// Stored values of the last row.
    row: Vec<Option<String>>,
    rows: u64,
    bytes: u64,
    /// Earlier results, of which the last row is stored.
    before: Vec<(Vec<String>, Vec<Option<String>>)>,
}

impl Answer {
    /// Prepares for an answer whose rows are stored as in `keep` and have these `columns`, if they are known; clears
    /// the answer before.
    pub fn expect(&mut self, keep: &Keep, columns: &[String]) {
        (self.rows, self.bytes) = (0, 0);
        self.keeps = *keep != Keep::Nothing;
        if let Keep::Last(prefix) | Keep::All(prefix) = keep {
            self.all = matches!(keep, Keep::All(_));
            self.prefix.clone_from(prefix);
            self.columns = columns.to_vec();
            self.row.clear();
            self.before.clear();
        }
    }

    /// Moves the stored values to `variables`.
    ///
    /// # Errors
    /// An answer that is too large; one that does not have exactly one row if one is taken; a column whose name is not
    /// valid for a variable.
    pub fn store(&mut self, variables: &mut Variables) -> Result<(), String> {
        if let Some(words) = self.enough() {
            return Err(words);
        }
        if !self.keeps {
            return Ok(());
        }
        if !self.all && self.rows != 1 {
            return Err(format!("expected one row, got {}", self.rows));
        }
        if self.rows > 0 {
            self.before.push((std::mem::take(&mut self.columns), std::mem::take(&mut self.row)));
        }
        for (columns, row) in self.before.drain(..) {
            for (column, value) in columns.iter().zip(row) {
                let name = format!("{}{column}", self.prefix);
                if !is_valid(&name) {
                    return Err(format!("error storing into variable {name}: name the column by AS"));
                }
                variables.put_named(&name, value.map_or(Value::Null, Value::Text));
            }
        }
        Ok(())
    }
}

impl Rows for Answer {
    #[inline]
    fn row(&mut self, _key: Option<&[u8]>) {
        self.rows += 1;
        if self.keeps {
            self.row.clear();
        }
    }

    #[inline]
    fn field(&mut self, _field: usize, value: Option<&[u8]>) {
        self.bytes += value.map_or(0, |value| value.len() as u64);
        if self.keeps {
            self.row.push(value.map(|value| String::from_utf8_lossy(value).into_owned()));
        }
    }

    fn enough(&self) -> Option<String> {
        (self.bytes > LARGEST).then(|| {
            let most = LARGEST / 1_000_000;
            format!("a statement returned more than {most} MB, which is the most that fits into a slot: limit its rows")
        })
    }

    fn column(&mut self, column: usize, name: &[u8]) {
        if !self.keeps {
            return;
        }
        if column == 0 {
            if self.all && self.rows > 0 {
                self.before.push((std::mem::take(&mut self.columns), std::mem::take(&mut self.row)));
            }
            self.columns.clear();
            self.rows = 0;
        }
        self.columns.push(String::from_utf8_lossy(name).into_owned());
    }
}
