//! Are columns of the user's own tables encrypted on the server?
//!
//! The checks read the tables and write nothing: the user's own rows are the canaries.

use std::collections::{BTreeSet, HashSet};

use tithe_machine::{fault::Fault, launch::Server, observation::Observation, secret::Secret};

use crate::{
    checks::{
        canary::Collected,
        needles::NEEDLE_BYTES,
        scan::{Places, search, shows, unseen},
    },
    columns::sql::unhexed,
    data,
    evidence::{Check, CheckContext, CheckEntry},
    session::Session,
    setup::{Columns, OwnColumn, Setup},
    sql::Grammar,
    workload::Workload,
};

/// Rows of a column that are checked.
const ROWS: usize = 200;

/// Length of a block that must not repeat, bytes.
const BLOCK: usize = 16;

/// The columns to check: those that the protected arm encrypts.
#[derive(Clone)]
pub struct OwnSubject<'a> {
    /// The columns.
    pub columns: Vec<OwnColumn>,
    /// The workload with their tables; `None` if only the claims are needed.
    pub workload: Option<&'a dyn Workload>,
}

impl OwnSubject<'_> {
    fn names(&self) -> String {
        self.columns.iter().map(|column| column.whole.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Some values of `column` as a session of `setup` reads them.
    fn read(
        &self,
        context: &CheckContext<'_>,
        (server, setup): (&Server, &Setup),
        column: &OwnColumn,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let none = || Fault::Refused("this workload has no statements".to_owned());
        let workload = self.workload.ok_or_else(none)?;
        let Session::Sql(mut session) = data::connect(context.database, server, setup, &context.how(), workload)?
        else {
            return Err(none());
        };
        let OwnColumn { table, name, .. } = column;
        let text = format!("SELECT {name} FROM {table} WHERE {name} IS NOT NULL LIMIT {ROWS}");
        let statement = session.prepare_text(&text)?.statement;
        let mut collected = Collected::default();
        session.call(statement, &[], &mut collected)?;
        let is_raw = setup.columns.is_none() && session.dialect().grammar == Grammar::Postgres;
        let value = |value: Vec<u8>| if is_raw { unhexed(&value).unwrap_or(value) } else { value };
        Ok(collected.rows.into_iter().flatten().flatten().map(value).collect())
    }
}

fn raw(setup: &Setup) -> Setup {
    Setup { columns: None, ..setup.clone() }
}

/// Another account finds ciphertext in encrypted columns, without repeated blocks if it is randomised. Id
/// `ciphertext-seen`.
pub struct OwnCiphertext<'a>(pub OwnSubject<'a>);

impl Check for OwnCiphertext<'_> {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("ciphertext-seen")
    }

    fn claim(&self) -> String {
        format!("the server holds ciphertext in {}", self.0.names())
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let (mut values, mut random) = (0, 0);
        for column in &self.0.columns {
            let read = self.0.read(context, (context.server, context.setup), column)?;
            let stored = self.0.read(context, (context.server, &raw(context.setup)), column)?;
            if let Some(observation) = exposed(column, &read, &stored) {
                return Ok(observation);
            }
            values += stored.len();
            random += usize::from(!column.is_compared);
        }
        let cipher = context.setup.columns.as_ref().map_or("", |columns| columns.cipher.name());
        Ok(Observation::Protected(format!(
            "{values} values of {} columns are ciphertext; {random} of these columns repeat no block of {BLOCK} bytes \
             ({cipher})",
            self.0.columns.len()
        )))
    }
}

/// The problem with the `stored` values of `column`, which clients read as `read`.
fn exposed(column: &OwnColumn, read: &[Vec<u8>], stored: &[Vec<u8>]) -> Option<Observation> {
    let name = &column.whole;
    if read.is_empty() || stored.is_empty() {
        return Some(Observation::Unknown(format!("{name} holds no value")));
    }
    let plain: BTreeSet<&[u8]> = read.iter().map(Vec::as_slice).collect();
    let shows = |stored: &&Vec<u8>| {
        plain.contains(stored.as_slice())
            || read.iter().any(|plain| {
                plain.len() >= NEEDLE_BYTES && stored.windows(plain.len()).any(|part| part == plain.as_slice())
            })
    };
    if let Some(count) = Some(stored.iter().filter(shows).count()).filter(|count| *count > 0) {
        return Some(Observation::Exposed(format!(
            "{count} of {} values of {name} are as clients read them",
            stored.len()
        )));
    }
    let mut blocks = HashSet::new();
    let repeats = stored.iter().flat_map(|value| value.windows(BLOCK)).any(|block| !blocks.insert(block));
    (repeats && !column.is_compared)
        .then(|| Observation::Exposed(format!("{name} repeats a block of 16 bytes: equal values can be recognised")))
}

/// Reads encrypted columns with a key that is not the arm's, which must be refused. Id `wrong-column-key`.
pub struct OwnWrongKey<'a>(pub OwnSubject<'a>);

impl Check for OwnWrongKey<'_> {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrong-column-key")
    }

    fn claim(&self) -> String {
        format!("the arm's key opens {}, another key does not", self.0.names())
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut refused = 0;
        for column in &self.0.columns {
            let name = &column.whole;
            let count = self.0.read(context, (context.server, context.setup), column)?.len();
            if count == 0 {
                return Ok(Observation::Unknown(format!("{name} holds no value")));
            }
            let mut wrong_key = context.setup.clone();
            let Some(columns) = &mut wrong_key.columns else {
                return Ok(Observation::Exposed(format!("{name} is read without a key")));
            };
            *columns = Columns { key: Secret::random(32), ..columns.clone() };
            match self.0.read(context, (context.server, &wrong_key), column) {
                Err(Fault::Wrong(_)) => refused += 1,
                Err(fault) => return Ok(Observation::Unknown(fault.to_string())),
                Ok(_) => return Ok(Observation::Exposed(format!("{name} is read with another key"))),
            }
        }
        Ok(Observation::Protected(format!("{refused} columns do not decrypt with another key")))
    }
}

/// Searches for clients' values of encrypted columns in the server's data files. Id `disk-canary`.
pub struct OwnDisk<'a>(pub OwnSubject<'a>);

impl Check for OwnDisk<'_> {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("disk-canary")
    }

    fn claim(&self) -> String {
        format!("no value of {} is readable in the {}", self.0.names(), Places::DATA.noun())
    }

    fn looks_into_files(&self) -> bool {
        true
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if !shows(context.server, Places::DATA) {
            return Ok(unseen(context.server));
        }
        let mut values = Vec::new();
        for column in &self.0.columns {
            let read = self.0.read(context, (context.server, context.setup), column)?;
            values.extend(read.into_iter().filter(|value| value.len() >= NEEDLE_BYTES));
        }
        if values.is_empty() {
            return Ok(Observation::Unknown(format!(
                "every value is shorter than {NEEDLE_BYTES} bytes, so a match could be chance"
            )));
        }
        if let Some(workload) = self.0.workload {
            data::quiesce(context.database, context.server, context.setup, workload)?;
        }
        let needles: Vec<_> = values.iter().map(|value| ("value", value.as_slice())).collect();
        let report = search(context.server, Places::DATA, &needles)?;
        Ok(match report.observation(format!("none of {} values in {}", values.len(), report.extent())) {
            Observation::Protected(_) if report.bytes == 0 => {
                Observation::Unknown("nothing is in these files yet".to_owned())
            }
            observation => observation,
        })
    }
}

#[cfg(test)]
mod tests;
