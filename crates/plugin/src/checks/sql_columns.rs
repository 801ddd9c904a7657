//! Are the columns of SQL tables encrypted, at the right places and in the right way?
//!
//! The checks add rows to every table that has a key, with numbers that no workload uses, and remove them again, so
//! that the workload's rules hold before and after. A table without a key is left out: its rows could not be removed
//! once its columns are encrypted.

use std::collections::HashSet;

use tithe_machine::{fault::Fault, launch::Server, observation::Observation, secret::Secret};

use crate::{
    checks::{
        canary::{Collected, Source},
        needles::{NEEDLE_BYTES, Needles, Tally},
        relay::{Conversation, Relay},
        scan::{FileKind, Places, Report, search, shows, unseen},
        wire_canary::below_tls,
    },
    columns::{Chosen, connect_sql, sql::Treatment},
    database::sql_of,
    evidence::{Check, CheckContext, CheckEntry},
    session::{Discard, Parameter, SqlSession, Table},
    setup::{Columns, Setup},
    sql::{Column, ColumnType, Described, SqlTable, describe, insert},
};

/// Length of a block that must not repeat, bytes.
const BLOCK: usize = 16;

/// The result of a search without canaries.
const NOT_LONG_ENOUGH: &str = "no encrypted column holds a value long enough to search for";

/// The columns to check: those that the protected arm encrypts.
#[derive(Debug, Clone)]
pub struct Subject {
    /// As [`Columns::share`].
    pub share: f64,
    /// As [`Columns::names`].
    pub names: Vec<String>,
    /// The tables.
    pub tables: &'static [SqlTable],
}

impl Subject {
    fn chosen(&self) -> Result<Chosen, Fault> {
        Chosen::of(self.share, &self.names, self.tables)
    }

    fn connect(
        &self,
        context: &CheckContext<'_>,
        server: &Server,
        setup: &Setup,
    ) -> Result<Box<dyn SqlSession>, Fault> {
        connect_sql(context.database, server, setup, &context.how(), self.tables)
    }

    /// A session that reads the stored values of the server.
    fn connect_raw(&self, context: &CheckContext<'_>) -> Result<Box<dyn SqlSession>, Fault> {
        sql_of(context.database)?.connect(context.server, context.setup, &context.how())
    }

    /// Makes a server that Tithe did not launch write to its files every table that a check adds rows to.
    fn write_out(&self, context: &CheckContext<'_>) -> Result<(), Fault> {
        self.keyed().try_for_each(|keyed| {
            // Only the name is needed.
            let table = Table { name: keyed.name.to_owned(), ..context.table.clone() };
            context.database.write_out(context.server, context.setup, &table)
        })
    }

    /// As [`chosen`](Self::chosen), for a check that adds rows: if a chosen column is in a table without a key, the
    /// claim is narrowed, because a row of that table could not be found again.
    fn chosen_of_keyed(&self, context: &mut CheckContext<'_>) -> Result<Chosen, Fault> {
        let chosen = self.chosen()?;
        let unseen = chosen.is_in(self.tables.iter().filter(|table| table.key.is_empty()));
        context.narrowed = unseen.then_some("in tables with a key");
        Ok(chosen)
    }

    fn keyed(&self) -> impl Iterator<Item = &'static SqlTable> {
        self.tables.iter().filter(|table| !table.key.is_empty())
    }

    fn describe(&self, template: &str, session: &dyn SqlSession) -> Described {
        describe(template, self.tables, session.dialect())
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(i64),
    Text(Vec<u8>),
}

impl Value {
    fn draw(column: &Column, source: &mut Source) -> Self {
        let bits = |source: &mut Source| {
            // Six random bits a character.
            source.text(10).iter().fold(0i64, |sum, byte| (sum << 6) | i64::from(byte & 63))
        };
        match column.kind {
            // Numbers of the full width, so that every product stores all their bytes.
            ColumnType::Integer => Self::Number(0x4000_0000 | (bits(source) & 0x3fff_ffff)),
            ColumnType::Long => Self::Number(0x4000_0000_0000_0000 | (bits(source) & 0x3fff_ffff_ffff_ffff)),
            // Equal blocks reveal a cipher that encrypts each block by itself.
            ColumnType::Text(length) => {
                let mut text = source.text(BLOCK).repeat(length.div_ceil(BLOCK).min(6));
                text.truncate(length);
                Self::Text(text)
            }
        }
    }

    fn parameter(&self) -> Parameter<'_> {
        match self {
            Self::Number(number) => Parameter::Integer(*number),
            Self::Text(text) => Parameter::Text(text),
        }
    }

    /// As a session delivers it.
    fn delivered(&self) -> Vec<u8> {
        match self {
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// A row that a check adds.
struct Row {
    table: &'static SqlTable,
    values: Vec<Value>,
}

impl Row {
    fn draw(table: &'static SqlTable, source: &mut Source) -> Self {
        Self { table, values: table.columns.iter().map(|column| Value::draw(column, source)).collect() }
    }

    /// A row with the same values under another key.
    fn twin(&self, source: &mut Source) -> Self {
        let value = |(column, value): (&Column, &Value)| {
            if self.table.key.contains(&column.name) { Value::draw(column, source) } else { value.clone() }
        };
        Self { table: self.table, values: self.table.columns.iter().zip(&self.values).map(value).collect() }
    }

    fn key(&self) -> Vec<Parameter<'_>> {
        self.key_places().map(|place| self.values[place].parameter()).collect()
    }

    /// Places of the key's columns, in the key's order.
    fn key_places(&self) -> impl Iterator<Item = usize> {
        let place = |name: &&str| self.table.columns.iter().position(|column| column.name == *name);
        self.table.key.iter().filter_map(place)
    }

    fn by_key(&self, verb: &str) -> String {
        let conditions: Vec<_> = self.table.key.iter().map(|name| format!("{name} = ?{name}")).collect();
        format!("{verb} FROM {} WHERE {}", self.table.name, conditions.join(" AND "))
    }

    fn write(&self, subject: &Subject, session: &mut dyn SqlSession) -> Result<(), Fault> {
        let described = subject.describe(&insert(self.table, 1), session);
        let statement = session.prepare_described(&described)?;
        let parameters: Vec<_> = self.values.iter().map(Value::parameter).collect();
        session.call(statement, &parameters, &mut Discard).map(drop)
    }

    fn remove(&self, subject: &Subject, session: &mut dyn SqlSession) -> Result<(), Fault> {
        let described = subject.describe(&self.by_key("DELETE"), session);
        let statement = session.prepare_described(&described)?;
        match session.call(statement, &self.key(), &mut Discard)? {
            1 => Ok(()),
            rows => Err(Fault::Wrong(format!("{rows} rows of {} removed in place of one", self.table.name))),
        }
    }

    /// The row as `session` reads it; if `raw`, as the server stores it, found by its encrypted key.
    fn read(&self, subject: &Subject, session: &mut dyn SqlSession, raw: bool) -> Result<Vec<Vec<u8>>, Fault> {
        let names: Vec<&str> = self.table.columns.iter().map(|column| column.name).collect();
        let mut described = subject.describe(&self.by_key(&format!("SELECT {}", names.join(", "))), session);
        if raw {
            described.results.fill(None);
        }
        let statement = session.prepare_described(&described)?;
        let mut collected = Collected::default();
        session.call(statement, &self.key(), &mut collected)?;
        match <[_; 1]>::try_from(collected.rows) {
            Ok([row]) => Ok(row.into_iter().map(Option::unwrap_or_default).collect()),
            Err(rows) => Err(Fault::Wrong(format!("{} rows of {} for one key", rows.len(), self.table.name))),
        }
    }

    fn is_read_back(&self, subject: &Subject, session: &mut dyn SqlSession) -> Result<bool, Fault> {
        let expected: Vec<_> = self.values.iter().map(Value::delivered).collect();
        Ok(self.read(subject, session, false)? == expected)
    }

    /// The bytes that must not be readable: texts, and runs of adjacent numbers in the form that products store and
    /// send. Runs are in the order of the columns, or in InnoDB's order, which stores a row in its primary key, the key
    /// first.
    fn tokens(&self, chosen: &Chosen) -> Vec<Vec<u8>> {
        let key: Vec<usize> = self.key_places().collect();
        let (all, rest): (Vec<usize>, Vec<usize>) =
            ((0..self.values.len()).collect(), (0..self.values.len()).filter(|place| !key.contains(place)).collect());
        [all, key, rest].iter().flat_map(|places| self.tokens_of(places, chosen)).collect()
    }

    /// The tokens of the columns at `places`, as if they were adjacent.
    fn tokens_of(&self, places: &[usize], chosen: &Chosen) -> Vec<Vec<u8>> {
        let mut tokens = Vec::new();
        let mut run = (ColumnType::Integer, Vec::new());
        for (column, value) in places.iter().map(|place| (&self.table.columns[*place], &self.values[*place])) {
            let hidden = chosen.treatment(column).is_some();
            if !hidden || column.kind != run.0 {
                tokens.extend(forms(&run.1, run.0));
                run = (column.kind, Vec::new());
            }
            match value {
                Value::Number(number) if hidden => run.1.push(*number),
                Value::Text(text) if hidden && text.len() >= BLOCK => tokens.push(text[..BLOCK].to_vec()),
                _ => {}
            }
        }
        tokens.extend(forms(&run.1, run.0));
        tokens
    }
}

/// Adjacent numbers of one kind in their usual forms; too few of them could not be distinguished from chance.
fn forms(run: &[i64], kind: ColumnType) -> Vec<Vec<u8>> {
    let width = if kind == ColumnType::Integer { 4 } else { 8 };
    if run.len() * width < NEEDLE_BYTES {
        return Vec::new();
    }
    let big = |number: i64| number.to_be_bytes()[8 - width..].to_vec();
    let join = |form: &dyn Fn(i64) -> Vec<u8>| run.iter().flat_map(|number| form(*number)).collect::<Vec<u8>>();
    vec![
        join(&big),
        join(&|number| number.to_le_bytes()[..width].to_vec()),
        // InnoDB inverts the sign bit, so that bytes sort as numbers do.
        join(&|number| big(number ^ 1 << (width * 8 - 1))),
        // PostgreSQL's messages: each value after its length.
        join(&|number| [&(width as u32).to_be_bytes(), big(number).as_slice()].concat()),
    ]
}

/// A row and its twin.
type Pair = (Row, Row);

/// Writes a row and a twin of it into every table, through `session`; passes them to `observe` and removes them.
fn with_rows(
    subject: &Subject,
    session: &mut dyn SqlSession,
    source: &mut Source,
    observe: impl FnOnce(&mut dyn SqlSession, &[Pair]) -> Result<Observation, Fault>,
) -> Result<Observation, Fault> {
    let pair = |table| {
        let row = Row::draw(table, source);
        let twin = row.twin(source);
        (row, twin)
    };
    let rows: Vec<Pair> = subject.keyed().map(pair).collect();
    let each = || rows.iter().flat_map(|(row, twin)| [row, twin]);
    let written = each().try_for_each(|row| row.write(subject, session));
    let observation = written.and_then(|()| observe(session, &rows));
    // None of them may stay after a failure: the measured transactions would read it.
    let removed = each().map(|row| row.remove(subject, session)).fold(Ok(()), Result::and);
    observation.and_then(|observation| removed.map(|()| observation))
}

/// Stored values of encrypted columns must not be plaintext, must repeat no block if randomised, and must be equal for
/// equal values only if deterministic. Id `ciphertext-seen`.
pub struct SqlCiphertext(pub Subject);

impl Check for SqlCiphertext {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("ciphertext-seen")
    }

    fn claim(&self) -> String {
        "the server holds ciphertext in encrypted columns, randomised unless the column is compared".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let subject = &self.0;
        let chosen = subject.chosen_of_keyed(context)?;
        let cipher = context.setup.columns.as_ref().map(|columns| columns.cipher);
        let mut session = subject.connect(context, context.server, context.setup)?;
        with_rows(subject, session.as_mut(), &mut Source::new(context, self.id()), |session, rows| {
            let mut seen = Seen::default();
            for (row, twin) in rows {
                if !row.is_read_back(subject, session)? || !twin.is_read_back(subject, session)? {
                    return Ok(Observation::Unknown(format!("{} is not read as it was written", row.table.name)));
                }
                let stored = [row.read(subject, session, true)?, twin.read(subject, session, true)?];
                for (place, column) in row.table.columns.iter().enumerate() {
                    let ours = [&stored[0][place], &stored[1][place]];
                    let is_key = row.table.key.contains(&column.name);
                    seen.column(column, chosen.treatment(column), &row.values[place], ours, is_key);
                }
            }
            let names = cipher.map_or(("", ""), |cipher| (cipher.name(), cipher.deterministic_name()));
            Ok(seen.conclude(names))
        })
    }
}

#[derive(Default)]
struct Seen {
    randomised: usize,
    deterministic: usize,
    clear: usize,
    plain: Vec<&'static str>,
    repeats: Vec<&'static str>,
    blocks: HashSet<Vec<u8>>,
}

impl Seen {
    fn column(
        &mut self,
        column: &Column,
        treatment: Option<Treatment>,
        value: &Value,
        stored: [&Vec<u8>; 2],
        is_key: bool,
    ) {
        let Some(treatment) = treatment else { return self.clear += 1 };
        if *stored[0] == value.delivered() {
            return self.plain.push(column.name);
        }
        match treatment {
            Treatment::Deterministic => {
                self.deterministic += 1;
                if !is_key && stored[0] != stored[1] {
                    self.repeats.push(column.name);
                }
            }
            Treatment::Randomised => {
                self.randomised += 1;
                let mut blocks = stored.iter().flat_map(|bytes| bytes.windows(BLOCK));
                if blocks.any(|block| !self.blocks.insert(block.to_vec())) {
                    self.repeats.push(column.name);
                }
            }
        }
    }

    fn conclude(&self, (randomised, deterministic): (&str, &str)) -> Observation {
        if !self.plain.is_empty() {
            let (count, first) = (self.plain.len(), self.plain[0]);
            return Observation::Exposed(format!("{count} columns hold what was sent, the first of them {first}"));
        }
        if let Some(first) = self.repeats.first() {
            return Observation::Exposed(format!("{first}: a block of 16 bytes repeats, or equal values differ"));
        }
        Observation::Protected(format!(
            "{} columns randomised ({randomised}), no block of 16 bytes twice; {} deterministic ({deterministic}), \
             which show equal values; {} in the clear",
            self.randomised, self.deterministic, self.clear
        ))
    }
}

/// Reads encrypted columns with a key that is not the arm's, which must be refused, and with the arm's own, which must
/// work. On the plain arm they are read without any key. Id `wrong-column-key`.
pub struct SqlWrongKey(pub Subject);

impl Check for SqlWrongKey {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrong-column-key")
    }

    fn claim(&self) -> String {
        "the arm's key opens encrypted columns, another key does not".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let subject = &self.0;
        let chosen = subject.chosen()?;
        let all = subject.tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)));
        let Some((table, column)) = all.into_iter().find(|(_, column)| chosen.treatment(column).is_some()) else {
            return Ok(Observation::Unknown("no column is encrypted".to_owned()));
        };
        let template = format!("SELECT {} FROM {} LIMIT 1", column.name, table.name);
        let read = |setup: &Setup| -> Result<u64, Fault> {
            let mut session = subject.connect(context, context.server, setup)?;
            let described = subject.describe(&template, session.as_ref());
            let statement = session.prepare_described(&described)?;
            session.call(statement, &[], &mut Discard)
        };
        if read(context.setup)? == 0 {
            return Ok(Observation::Unknown(format!("{} is empty", table.name)));
        }
        let mut wrong_key = context.setup.clone();
        let Some(columns) = &mut wrong_key.columns else {
            return Ok(Observation::Exposed(format!("{} is read without a key", column.name)));
        };
        *columns = Columns { key: Secret::random(32), ..columns.clone() };
        Ok(match read(&wrong_key) {
            Err(Fault::Wrong(refusal)) => Observation::Protected(format!("with another key: {refusal}")),
            Err(fault) => Observation::Unknown(fault.to_string()),
            Ok(_) => Observation::Exposed(format!("{} is read with another key", column.name)),
        })
    }
}

/// Searches for values of encrypted columns in the files of the server. Id `disk-canary`.
pub struct SqlDiskCanary(pub Subject);

impl Check for SqlDiskCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("disk-canary")
    }

    fn claim(&self) -> String {
        format!("no value of an encrypted column is readable in the {}", Places::ALL.noun())
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let subject = &self.0;
        if !shows(context.server, Places::ALL) {
            return Ok(unseen(context.server));
        }
        let chosen = subject.chosen_of_keyed(context)?;
        let names: Vec<&str> = subject.tables.iter().map(|table| table.name).collect();
        let mut session = subject.connect(context, context.server, context.setup)?;
        with_rows(subject, session.as_mut(), &mut Source::new(context, self.id()), |_, rows| {
            sql_of(context.database)?.quiesce(context.server, context.setup, &names)?;
            context.database.quiesce(context.server, context.setup, context.table)?;
            let written = subject.write_out(context);
            let tokens = tokens(rows, &chosen);
            let needles: Vec<_> = tokens.iter().map(|token| ("canary", token.as_slice())).collect();
            let report = search(context.server, Places::ALL, &needles)?;
            Ok(conclude_on_disk(&report, tokens.len(), written, context.protected))
        })
    }
}

/// The conclusion from a `report` on this many `canaries`, if the server has `written` its tables to its files or
/// refused. For the plain arm (not `protected`) it also shows that data files are readable.
fn conclude_on_disk(report: &Report, canaries: usize, written: Result<(), Fault>, protected: bool) -> Observation {
    // Found data were written. Data that were not found may not have been written.
    if report.total().hits() > 0 {
        let found = report.describe_found();
        if !protected && !report.found_in(FileKind::Data) {
            return Observation::Unknown(format!("not in the data files; {found}"));
        }
        return Observation::Exposed(found);
    }
    match (written, report.unreadable.first()) {
        (Err(fault), _) => Observation::Unknown(format!("the server could not be made to write the tables: {fault}")),
        (Ok(()), Some(file)) => Observation::Unknown(format!("cannot read {file}")),
        (Ok(()), None) if report.bytes == 0 => Observation::Unknown("nothing is in these files yet".to_owned()),
        (Ok(()), None) if canaries == 0 => Observation::Unknown(NOT_LONG_ENOUGH.to_owned()),
        (Ok(()), None) => Observation::Protected(format!("none of {canaries} canaries in {}", report.extent())),
    }
}

fn tokens(rows: &[Pair], chosen: &Chosen) -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> =
        rows.iter().flat_map(|(row, twin)| [row.tokens(chosen), twin.tokens(chosen)].concat()).collect();
    tokens.sort();
    tokens.dedup();
    tokens
}

/// Searches for values of encrypted columns in the traffic between client and server. Id `wire-canary`.
pub struct SqlWireCanary(pub Subject);

impl Check for SqlWireCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wire-canary")
    }

    fn claim(&self) -> String {
        "no value of an encrypted column is readable on the wire".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let subject = &self.0;
        let chosen = subject.chosen_of_keyed(context)?;
        let (relay, server) = match Relay::before(context.database, context.server)? {
            Ok(through) => through,
            Err(unseen) => return Ok(unseen),
        };
        let mut session = subject.connect(context, &server, context.setup)?;
        let mut wanted = Vec::new();
        let mut source = Source::new(context, self.id());
        let passed = with_rows(subject, session.as_mut(), &mut source, |session, rows| {
            wanted = tokens(rows, &chosen);
            let mut same = true;
            for (row, twin) in rows {
                same &= row.is_read_back(subject, session)? && twin.is_read_back(subject, session)?;
            }
            Ok(if same {
                Observation::Protected(String::new())
            } else {
                Observation::Unknown("rows are not read as they were written".to_owned())
            })
        })?;
        drop(session);
        if let Observation::Unknown(_) = passed {
            return Ok(passed);
        }
        let conversations = relay.finish();
        let unseen = below_tls(context.setup.transport, &server.address, &conversations);
        Ok(unseen.unwrap_or_else(|| conclude_on_wire(&conversations, &wanted)))
    }
}

/// The conclusion from `conversations`, of which none may hold one of the `canaries`.
fn conclude_on_wire(conversations: &[Conversation], canaries: &[Vec<u8>]) -> Observation {
    let needles = Needles::new(canaries.iter().map(|canary| ("canary", canary.as_slice())));
    let (mut tally, mut bytes) = (Tally::default(), 0);
    for half in conversations.iter().flat_map(|it| [&it.sent, &it.received]) {
        tally.merge(&needles.count(half));
        bytes += half.len();
    }
    if tally.hits() > 0 {
        Observation::Exposed(tally.describe())
    } else if bytes == 0 || conversations.iter().any(|it| it.truncated) {
        Observation::Unknown("not everything that passed was kept".to_owned())
    } else if canaries.is_empty() {
        Observation::Unknown(NOT_LONG_ENOUGH.to_owned())
    } else {
        Observation::Protected(format!("none of {} canaries in {bytes} bytes", canaries.len()))
    }
}

/// For a share of 0, which measures the cost of the wrapper alone: the server stores what the wrapped session sent,
/// unchanged. Id `wrapper-idle`.
pub struct SqlWrapperIdle(pub Subject);

impl Check for SqlWrapperIdle {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wrapper-idle").own_control()
    }

    fn claim(&self) -> String {
        "the sessions are wrapped and nothing is encrypted".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let subject = &self.0;
        if !context.setup.columns.as_ref().is_some_and(|columns| columns.selection().is_none()) {
            return Ok(Observation::Exposed("this arm's sessions are not wrapped with a share of 0".to_owned()));
        }
        let mut session = subject.connect(context, context.server, context.setup)?;
        let mut raw = subject.connect_raw(context)?;
        with_rows(subject, session.as_mut(), &mut Source::new(context, self.id()), |_, rows| {
            for (row, twin) in rows {
                if !row.is_read_back(subject, raw.as_mut())? || !twin.is_read_back(subject, raw.as_mut())? {
                    return Ok(Observation::Exposed(format!("{} does not hold what was sent", row.table.name)));
                }
            }
            Ok(Observation::Protected(format!("rows of {} tables are in the server as they were sent", rows.len())))
        })
    }
}

#[cfg(test)]
mod tests;
