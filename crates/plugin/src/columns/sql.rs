//! Column encryption in SQL sessions.
//!
//! A statement comes with the columns of its parameters and results ([`Described`]). A column that statements compare
//! for equality is encrypted deterministically (SIV), with its domain as additional data, so that joined columns have
//! equal ciphertexts; every other column is encrypted with a fresh nonce (GCM), with its name as additional data.
//! Numbers are encrypted as 8 bytes, so that their size is hidden. NULL stays NULL.
//!
//! Not covered: ciphertext is not bound to its row, because a statement does not identify its row.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    ops::Range,
};

use tithe_machine::{fault::Fault, secret::unhex_byte};

use super::cipher::{DETERMINISTIC_OVERHEAD, Deterministic, Nonces, OVERHEAD, Randomised, open, seal};
use crate::{
    session::{Connection, Offers, Parameter, PreparedText, Progress, Rows, SessionWrapper, SqlSession, Statement},
    setup::{Columns, OwnColumn, Setup},
    sql::{Column, ColumnType, Compute, Described, Dialect, Sensitivity, SqlTable},
    workload::Workload,
};

/// How a column is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Equal values look equal.
    Deterministic,
    /// Equal values look different.
    Randomised,
}

/// The columns that an arm encrypts.
#[derive(Debug, Clone, Default)]
pub struct Chosen(BTreeMap<&'static str, Treatment>);

impl Chosen {
    /// The columns of `tables` that `setup` encrypts; none if there are no SQL tables.
    ///
    /// # Errors
    /// [`Fault::Refused`] for an unknown column, a share without a set of columns, and a list that omits a column which
    /// is compared with one on it.
    pub fn new(setup: &Setup, tables: &'static [SqlTable]) -> Result<Self, Fault> {
        match &setup.columns {
            Some(columns) if !tables.is_empty() => Self::of(columns.share, &columns.names, tables),
            _ => Ok(Self::default()),
        }
    }

    /// Checks whether clients of `workload` work with the columns that `setup` encrypts, before anything is started.
    ///
    /// # Errors
    /// As [`Chosen::new`]; [`Fault::Refused`] if the server would have to compute with values that it cannot read.
    pub fn check(setup: &Setup, workload: &dyn Workload) -> Result<(), Fault> {
        let chosen = Self::new(setup, workload.tables())?;
        if let (Some(columns), []) = (&setup.columns, workload.tables()) {
            columns.selection().check(&workload.table())?;
        }
        // Only a row that can be found again shows its stored values.
        if !chosen.is_empty() && !chosen.is_in(workload.tables().iter().filter(|table| !table.key.is_empty())) {
            return Err(Fault::Refused(
                "no chosen column is in a table with a key, so no claim could be checked: choose one that is, too"
                    .to_owned(),
            ));
        }
        match setup.compute.unwrap_or(workload.compute()) {
            Compute::Server if !chosen.is_empty() => Err(unreadable()),
            _ => Ok(()),
        }
    }

    /// The columns of `tables` called `names`; without names, those of `share`.
    ///
    /// # Errors
    /// As [`Chosen::new`].
    pub fn of(share: f64, names: &[String], tables: &'static [SqlTable]) -> Result<Self, Fault> {
        let all = || tables.iter().flat_map(|table| table.columns);
        let chosen: Vec<&'static Column> = if names.is_empty() {
            let most = match share {
                0.0 => None,
                0.2 => Some(Sensitivity::Identifier),
                0.5 => Some(Sensitivity::Figure),
                1.0 => Some(Sensitivity::Remark),
                other => {
                    return Err(Fault::Refused(format!(
                        "share = {other} is not a set of columns of SQL tables: write 0, 0.2 (identifiers), 0.5 \
                         (prices, dates and quantities too) or 1 (all), or name the columns"
                    )));
                }
            };
            all().filter(|column| Some(column.holds) <= most).collect()
        } else {
            named(names, &all)?
        };
        let treatment = |column: &&Column| match column.domain {
            Some(_) => (column.name, Treatment::Deterministic),
            None => (column.name, Treatment::Randomised),
        };
        Ok(Self(chosen.iter().map(treatment).collect()))
    }

    /// How `column` is encrypted; `None` if it is not.
    pub fn treatment(&self, column: &Column) -> Option<Treatment> {
        self.0.get(column.name).copied()
    }

    /// True if some chosen column is in one of `tables`.
    pub fn is_in<'a>(&self, tables: impl Iterator<Item = &'a SqlTable>) -> bool {
        tables.flat_map(|table| table.columns).any(|column| self.treatment(column).is_some())
    }

    /// Longest stored value of `column`, bytes; `None` if it is not encrypted.
    pub fn stored_bytes(&self, column: &Column) -> Option<usize> {
        let plain = match column.kind {
            ColumnType::Integer | ColumnType::Long => NUMBER_BYTES,
            ColumnType::Text(length) => length,
        };
        self.treatment(column).map(|treatment| match treatment {
            Treatment::Deterministic => plain + DETERMINISTIC_OVERHEAD,
            Treatment::Randomised => plain + OVERHEAD,
        })
    }

    /// How many columns are encrypted.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn named<I: Iterator<Item = &'static Column>>(
    names: &[String],
    all: &dyn Fn() -> I,
) -> Result<Vec<&'static Column>, Fault> {
    for name in names {
        if all().all(|column| column.name != name) {
            let of_table =
                all().map(|column| column.name).filter(|known| known.split('_').next() == name.split('_').next());
            let like = of_table.collect::<Vec<_>>().join(", ");
            let help = if like.is_empty() { "names are like c_last".to_owned() } else { format!("there are {like}") };
            return Err(Fault::Refused(format!("no column is called `{name}`: {help}")));
        }
    }
    let is_named = |column: &&Column| names.iter().any(|name| name == column.name);
    let domains: BTreeSet<&str> = all().filter(is_named).filter_map(|column| column.domain).collect();
    let compared = |column: &&Column| column.domain.is_some_and(|domain| domains.contains(domain));
    let forgotten: Vec<&str> =
        all().filter(compared).filter(|column| !is_named(column)).map(|column| column.name).collect();
    if !forgotten.is_empty() {
        return Err(Fault::Refused(format!(
            "columns that are compared with each other must be encrypted together: add {}",
            forgotten.join(", ")
        )));
    }
    Ok(all().filter(is_named).collect())
}

/// The refusal of computing in the server on encrypted columns.
pub fn unreadable() -> Fault {
    Fault::Refused(
        "encrypted columns cannot be computed with in the server: give the workload `compute = \"client\"`, where it \
         has that; `bulk` encrypts by `multi` and `single`"
            .to_owned(),
    )
}

/// Length of a number before encryption, bytes.
const NUMBER_BYTES: usize = 8;

/// The facts about an encrypted parameter or result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(super) treatment: Treatment,
    /// Numbers are encrypted as 8 bytes; other values as they are written.
    pub(super) is_number: bool,
    /// The column, for messages.
    pub(super) name: &'a str,
    /// The additional data, which bind the ciphertext to this place.
    pub(super) domain: &'a str,
}

impl<'a> Place<'a> {
    /// The place of a column of the user's own.
    pub(crate) fn of_own(column: &'a OwnColumn) -> Self {
        let treatment = if column.is_compared { Treatment::Deterministic } else { Treatment::Randomised };
        Self { treatment, is_number: false, name: &column.whole, domain: &column.whole }
    }
}

/// A statement with its encrypted places.
struct EncryptedStatement {
    inner: Statement,
    parameters: Vec<Option<Place<'static>>>,
    results: Vec<Option<Place<'static>>>,
}

/// A session whose columns are encrypted. All buffers are reused for the next statement.
pub(super) struct Encrypted {
    inner: Box<dyn SqlSession>,
    chosen: Chosen,
    ciphers: Ciphers,
    statements: Vec<EncryptedStatement>,
    /// The statement whose answer is awaited.
    current: usize,
    sealing: Sealing,
    /// The first value of the current answer that did not decrypt.
    wrong: Option<String>,
}

/// The ciphers of a session, with buffers.
pub(crate) struct Ciphers {
    randomised: Randomised,
    deterministic: Deterministic,
    nonces: Nonces,
    opened: Vec<u8>,
    text: Vec<u8>,
}

impl Ciphers {
    /// # Errors
    /// [`Fault::Refused`] if the key does not have 32 bytes.
    pub(crate) fn new(columns: &Columns) -> Result<Self, Fault> {
        Ok(Self {
            randomised: Randomised::new(columns.cipher, &columns.key)?,
            deterministic: Deterministic::new(columns.cipher, &columns.key),
            nonces: Nonces::new(),
            opened: Vec::new(),
            text: Vec::new(),
        })
    }

    pub(crate) fn seal(&mut self, place: &Place<'_>, plaintext: &[u8], sealed: &mut Vec<u8>) {
        let domain = place.domain.as_bytes();
        match place.treatment {
            Treatment::Deterministic => self.deterministic.seal(domain, plaintext, sealed),
            Treatment::Randomised => seal(&self.randomised, self.nonces.next(), domain, plaintext, sealed),
        }
    }

    /// The plaintext of `stored` as the inner session would give it: numbers as text.
    fn open(&mut self, place: &Place<'_>, stored: &[u8]) -> Option<&[u8]> {
        let domain = place.domain.as_bytes();
        let plaintext = match place.treatment {
            Treatment::Deterministic => self.deterministic.open(domain, stored, &mut self.opened),
            Treatment::Randomised => open(&self.randomised, domain, stored, &mut self.opened),
        }?;
        if !place.is_number {
            return Some(plaintext);
        }
        let number = i64::from_be_bytes(plaintext.try_into().ok()?);
        self.text.clear();
        // Writing to memory cannot fail.
        let _ = write!(self.text, "{number}");
        Some(&self.text)
    }
}

/// The stored values of one request.
#[derive(Default)]
pub(super) struct Sealing {
    /// One after the other.
    sealed: Vec<u8>,
    /// The range of each; `None` for a value that is not encrypted.
    ranges: Vec<Option<Range<usize>>>,
    /// A number as text.
    text: Vec<u8>,
    /// Empty between statements; keeps its capacity.
    parameters: Vec<Parameter<'static>>,
}

impl Sealing {
    /// Passes on the stored form of `parameters`, each of which belongs to the place with its number.
    pub(super) fn with<'p, T>(
        &mut self,
        ciphers: &mut Ciphers,
        parameters: &[Parameter<'_>],
        place: impl Fn(usize) -> Option<Place<'p>>,
        then: impl FnOnce(&[Parameter<'_>]) -> T,
    ) -> T {
        self.sealed.clear();
        self.ranges.clear();
        for (number, parameter) in parameters.iter().enumerate() {
            let start = self.sealed.len();
            let is_sealed = match (place(number), parameter) {
                (None, _) | (_, Parameter::Null) => false,
                (Some(place), Parameter::Integer(number)) if place.is_number => {
                    ciphers.seal(&place, &number.to_be_bytes(), &mut self.sealed);
                    true
                }
                (Some(place), Parameter::Integer(number)) => {
                    self.text.clear();
                    // Writing to memory cannot fail.
                    let _ = write!(self.text, "{number}");
                    ciphers.seal(&place, &self.text, &mut self.sealed);
                    true
                }
                (Some(place), Parameter::Text(bytes) | Parameter::Bytes(bytes)) => {
                    ciphers.seal(&place, bytes, &mut self.sealed);
                    true
                }
            };
            self.ranges.push(is_sealed.then_some(start..self.sealed.len()));
        }
        let mut stored: Vec<Parameter<'_>> = std::mem::take(&mut self.parameters);
        stored.extend(parameters.iter().zip(&self.ranges).map(|(parameter, range)| match range {
            Some(range) => Parameter::Bytes(&self.sealed[range.clone()]),
            None => *parameter,
        }));
        let outcome = then(&stored);
        stored.clear();
        // An empty list borrows nothing; collecting a mapped vector of the same element size reuses its memory.
        self.parameters = stored.into_iter().map(|_| Parameter::Null).collect();
        outcome
    }
}

impl Encrypted {
    /// Wraps `inner`, in which the columns `chosen` are encrypted.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the key does not have 32 bytes.
    pub(super) fn new(inner: Box<dyn SqlSession>, columns: &Columns, chosen: Chosen) -> Result<Self, Fault> {
        Ok(Self {
            inner,
            chosen,
            ciphers: Ciphers::new(columns)?,
            statements: Vec::new(),
            current: 0,
            sealing: Sealing::default(),
            wrong: None,
        })
    }

    fn place(&self, column: &'static Column) -> Option<Place<'static>> {
        let is_number = !matches!(column.kind, ColumnType::Text(_));
        let treatment = self.chosen.treatment(column)?;
        let domain = match treatment {
            Treatment::Deterministic => column.domain.unwrap_or(column.name),
            Treatment::Randomised => column.name,
        };
        Some(Place { treatment, is_number, name: column.name, domain })
    }

    /// Refuses statements that are only text if columns are encrypted.
    fn readable(&self) -> Result<(), Fault> {
        if self.chosen.is_empty() { Ok(()) } else { Err(unreadable()) }
    }

    fn keep(&mut self, statement: EncryptedStatement) -> Statement {
        self.statements.push(statement);
        Statement(self.statements.len() - 1)
    }
}

impl SqlSession for Encrypted {
    /// A statement without a description of its columns is passed on unchanged: it must have no encrypted ones.
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        let inner = self.inner.prepare(sql)?;
        Ok(self.keep(EncryptedStatement { inner, parameters: Vec::new(), results: Vec::new() }))
    }

    fn prepare_described(&mut self, statement: &Described) -> Result<Statement, Fault> {
        let inner = self.inner.prepare_described(statement)?;
        let parameters = statement.parameters.iter().map(|column| self.place(column)).collect();
        let results = statement.results.iter().map(|column| self.place((*column)?)).collect();
        Ok(self.keep(EncryptedStatement { inner, parameters, results }))
    }

    fn dialect(&self) -> &'static Dialect {
        self.inner.dialect()
    }

    fn hides_values(&self) -> bool {
        !self.chosen.is_empty()
    }

    fn pipelines(&self) -> bool {
        self.inner.pipelines()
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let unknown = || Fault::Protocol("no such statement".to_owned());
        let encrypted = self.statements.get(statement.0).ok_or_else(unknown)?;
        self.current = statement.0;
        self.wrong = None;
        let Self { inner, ciphers, sealing, .. } = self;
        let place = |number: usize| encrypted.parameters.get(number).copied().flatten();
        sealing.with(ciphers, parameters, place, |stored| inner.submit(encrypted.inner, stored))
    }

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        self.readable()?;
        let PreparedText { statement, columns } = self.inner.prepare_text(sql)?;
        let statement = self.keep(EncryptedStatement { inner: statement, parameters: Vec::new(), results: Vec::new() });
        Ok(PreparedText { statement, columns })
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.readable()?;
        self.current = usize::MAX;
        self.inner.submit_text(sql)
    }

    fn submit_once(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.readable()?;
        self.current = usize::MAX;
        self.inner.submit_once(sql, parameters)
    }

    fn offers(&self) -> Offers {
        self.inner.offers()
    }

    fn begin_pipeline(&mut self) {
        self.inner.begin_pipeline();
    }

    fn end_pipeline(&mut self) -> Result<(), Fault> {
        self.inner.end_pipeline()
    }

    fn in_transaction(&self) -> bool {
        self.inner.in_transaction()
    }

    fn submit_lines(&mut self, table: &str, columns: &[&str], lines: &[u8]) -> Result<bool, Fault> {
        self.readable()?;
        self.inner.submit_lines(table, columns, lines)
    }

    fn submit_copy(&mut self, table: &'static SqlTable, values: &[Parameter<'_>]) -> Result<bool, Fault> {
        let places: Vec<Option<Place<'_>>> = table.columns.iter().map(|column| self.place(column)).collect();
        let Self { inner, ciphers, sealing, .. } = self;
        let place = |number: usize| places[number % places.len()];
        sealing.with(ciphers, values, place, |stored| inner.submit_copy(table, stored))
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let results = self.statements.get(self.current).map_or(&[][..], |statement| &statement.results);
        let place = |field: usize| results.get(field).copied().flatten();
        let mut decrypt = Decrypt { rows, place, as_hex: false, ciphers: &mut self.ciphers, wrong: &mut self.wrong };
        let progress = self.inner.advance(&mut decrypt)?;
        judged(progress, &mut self.wrong)
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        self.inner.run(sql)
    }
}

impl SessionWrapper for Encrypted {
    fn inner(&self) -> &dyn Connection {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn Connection {
        self.inner.as_mut()
    }
}

/// The end of an answer whose first value that does not decrypt is `wrong`: the rest of the answer must be read before
/// the session can continue, so the diagnostic waits for its end.
pub(super) fn judged(progress: Progress, wrong: &mut Option<String>) -> Result<Progress, Fault> {
    match (progress, &wrong) {
        (Progress::Done(_), Some(_)) => Err(Fault::Wrong(wrong.take().unwrap_or_default())),
        _ => Ok(progress),
    }
}

/// Decrypts rows on their way to the client.
pub(super) struct Decrypt<'a, P> {
    pub(super) rows: &'a mut dyn Rows,
    /// The place of a field, if it is encrypted.
    pub(super) place: P,
    /// Bytes arrive in PostgreSQL's text form: `\x` and hexadecimal digits.
    pub(super) as_hex: bool,
    pub(super) ciphers: &'a mut Ciphers,
    pub(super) wrong: &'a mut Option<String>,
}

impl<'p, P: Fn(usize) -> Option<Place<'p>>> Rows for Decrypt<'_, P> {
    fn row(&mut self, key: Option<&[u8]>) {
        self.rows.row(key);
    }

    fn column(&mut self, column: usize, name: &[u8]) {
        self.rows.column(column, name);
    }

    fn enough(&self) -> Option<String> {
        self.rows.enough()
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        let (Some(stored), Some(place)) = (value, (self.place)(field)) else {
            return self.rows.field(field, value);
        };
        let unhexed = if self.as_hex { unhexed(stored) } else { None };
        match self.ciphers.open(&place, unhexed.as_deref().unwrap_or(stored)) {
            Some(plaintext) => self.rows.field(field, Some(plaintext)),
            None => {
                let name = place.name;
                self.wrong.get_or_insert_with(|| format!("a value of {name} does not decrypt"));
                // The row stays complete; its values are not used after the diagnostic.
                self.rows.field(field, Some(&[]));
            }
        }
    }
}

/// The bytes that PostgreSQL writes as `text`; `None` if it is in none of its forms.
pub(crate) fn unhexed(text: &[u8]) -> Option<Vec<u8>> {
    text.strip_prefix(b"\\x")?.chunks(2).map(unhex_byte).collect()
}

#[cfg(test)]
mod tests;
