//! Tables of the user's own that are loaded unchanged, and whose columns are encrypted before anything is measured.

use std::collections::BTreeSet;

use tithe_machine::{fault::Fault, launch::Server};

use crate::{
    columns::sql::{Ciphers, Place, unhexed},
    database::{Connect, Database, sql_of},
    own_tables::Opened,
    session::{Discard, Parameter, Rows, Session, SqlSession, Statement},
    setup::{Columns, OwnColumn, Setup},
    sql::Grammar,
    workload::Workload,
};

/// Rows that are updated in one request, if the product takes several.
const AT_ONCE: usize = 256;

/// Rows in memory: those that are read before they are written.
const READ_AHEAD: usize = 1_000;

/// Encrypts the loaded values in the user's own columns that `setup` encrypts.
///
/// # Errors
/// [`Fault::Refused`] with why a table cannot hold ciphertext; the server's error.
pub fn convert(
    database: &dyn Database,
    server: &Server,
    setup: &Setup,
    how: &Connect,
    workload: &dyn Workload,
) -> Result<(), Fault> {
    let Some(columns) = setup.columns.as_ref().filter(|columns| !columns.own.is_empty()) else { return Ok(()) };
    let sql = sql_of(database)?;
    let tables: BTreeSet<&str> = columns.own.iter().map(|column| column.table.as_str()).collect();
    let plain = Setup { columns: None, ..setup.clone() };
    let open = || match super::connect(database, server, &plain, how, workload)? {
        Session::Sql(session) => Ok(session),
        _ => Err(Fault::Protocol("statements are not those of records by key".to_owned())),
    };
    let mut session = open()?;
    for table in tables {
        let of_table: Vec<&OwnColumn> = columns.own.iter().filter(|column| column.table == table).collect();
        let failed = |fault: Fault| match fault {
            Fault::Server(words) | Fault::Refused(words) => {
                Fault::Refused(format!("columns of {table} cannot be encrypted: {words}"))
            }
            fault => fault,
        };
        let opened = sql.open_columns(session.as_mut(), table, &of_table).map_err(failed)?;
        session.run("BEGIN")?;
        let reader = opened.renames_rows.then(open).transpose()?;
        encrypt((reader, session.as_mut()), columns, (table, &of_table), &opened).map_err(failed)?;
        session.run("COMMIT")?;
        opened.settle.iter().try_for_each(|statement| session.run(statement).map(drop))?;
    }
    Ok(())
}

/// Encrypts every value of `columns` of a `table` whose rows `row` identifies. `session` writes what `reader` reads.
/// Without a reader, `session` reads page by page in the order of `row`: if tables are locked as a whole (MyISAM,
/// Aria), a second session would wait for the first one.
fn encrypt(
    (reader, session): (Option<Box<dyn SqlSession>>, &mut dyn SqlSession),
    setup: &Columns,
    (table, columns): (&str, &[&OwnColumn]),
    Opened { row, into, .. }: &Opened,
) -> Result<(), Fault> {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let placeholder = session.dialect().placeholder;
    let equal = |(number, name): (usize, &str)| format!("{name} = {}", placeholder(number + 1));
    let sets: Vec<String> = into.iter().map(String::as_str).enumerate().map(equal).collect();
    let is_row: Vec<String> =
        row.iter().enumerate().map(|(number, name)| equal((names.len() + number, name.as_str()))).collect();
    let text = format!("UPDATE {table} SET {} WHERE {}", sets.join(", "), is_row.join(" AND "));
    let update = session.prepare_text(&text)?.statement;
    let all = format!("SELECT {}, {} FROM {table}", names.join(", "), row.join(", "));
    let kept = Kept { width: names.len() + row.len(), ..Kept::default() };
    let writer = Writer { columns, update, ciphers: Ciphers::new(setup)?, session };
    let Some(mut reader) = reader else { return page_by_page(writer, kept, (&all, row)) };
    let read = reader.prepare_text(&all)?;
    let mut through = Through { kept, writer, written: Ok(()) };
    reader.call(read.statement, &[], &mut through)?;
    through.written?;
    through.writer.write(&through.kept)
}

/// Encrypts the rows that `all` selects, in pages in the order of `row`, which identifies each row.
fn page_by_page(mut writer: Writer<'_>, mut kept: Kept, (all, row): (&str, &[String])) -> Result<(), Fault> {
    let placeholder = writer.session.dialect().placeholder;
    let mut parameters = 0;
    // Not `(a, b) > (?, ?)`: MariaDB and MySQL would read the index from its beginning for each page.
    let behind = (0..row.len()).map(|last| {
        let column = |(at, name): (usize, &String)| {
            let number = parameters + at + 1;
            format!("{name} {} {}", if at == last { ">" } else { "=" }, placeholder(number))
        };
        let places: Vec<String> = row[..=last].iter().enumerate().map(column).collect();
        parameters += last + 1;
        format!("({})", places.join(" AND "))
    });
    let behind = behind.collect::<Vec<_>>().join(" OR ");
    let page = format!("ORDER BY {} LIMIT {READ_AHEAD}", row.join(", "));
    let first = writer.session.prepare_text(&format!("{all} {page}"))?.statement;
    let next = writer.session.prepare_text(&format!("{all} WHERE {behind} {page}"))?.statement;
    writer.session.call(first, &[], &mut kept)?;
    while let Some(last) = kept.fields.len().checked_sub(row.len()) {
        writer.write(&kept)?;
        if kept.fields.len() < READ_AHEAD * kept.width {
            break;
        }
        let place: Vec<Vec<u8>> =
            kept.fields[last..].iter().map(|field| kept.value(*field).unwrap_or_default().to_vec()).collect();
        let place = (0..row.len()).flat_map(|last| &place[..=last]).map(|value| Parameter::Text(value));
        kept.clear();
        writer.session.call(next, &place.collect::<Vec<_>>(), &mut kept)?;
    }
    Ok(())
}

/// Replaces the values that were read by ciphertext.
struct Writer<'a> {
    columns: &'a [&'a OwnColumn],
    /// Takes the stored values of the columns, and the row's identifier.
    update: Statement,
    ciphers: Ciphers,
    session: &'a mut dyn SqlSession,
}

impl Writer<'_> {
    fn write(&mut self, kept: &Kept) -> Result<(), Fault> {
        let Self { columns, update, ciphers, session } = self;
        let as_hex = session.dialect().grammar == Grammar::Postgres;
        let at_once = if session.offers().pipelines { AT_ONCE } else { 1 };
        let rows: Vec<&[Option<(usize, usize)>]> = kept.fields.chunks(kept.width).collect();
        for several in rows.chunks(at_once) {
            if at_once > 1 {
                session.begin_pipeline();
            }
            for fields in several {
                let mut stored = vec![Vec::new(); columns.len()];
                for ((field, column), sealed) in fields.iter().zip(*columns).zip(&mut stored) {
                    let Some(value) = kept.value(*field) else { continue };
                    let bytes = if as_hex { unhexed(value) } else { None };
                    ciphers.seal(&Place::of_own(column), bytes.as_deref().unwrap_or(value), sealed);
                }
                let sealed = stored.iter().map(|sealed| match sealed.as_slice() {
                    [] => Parameter::Null,
                    sealed => Parameter::Bytes(sealed),
                });
                let of_row = fields[columns.len()..].iter();
                let of_row = of_row.map(|field| kept.value(*field).map_or(Parameter::Null, Parameter::Text));
                let parameters: Vec<Parameter<'_>> = sealed.chain(of_row).collect();
                session.submit(*update, &parameters)?;
                if at_once == 1 {
                    session.finish(&mut Discard)?;
                }
            }
            if at_once > 1 {
                session.end_pipeline()?;
                session.finish(&mut Discard)?;
            }
        }
        Ok(())
    }
}

/// Rows that are written while further ones are read.
struct Through<'a> {
    kept: Kept,
    writer: Writer<'a>,
    /// The result of the rows before.
    written: Result<(), Fault>,
}

impl Rows for Through<'_> {
    fn row(&mut self, _key: Option<&[u8]>) {
        let is_full = self.kept.fields.len() >= READ_AHEAD * self.kept.width;
        if is_full && self.written.is_ok() {
            self.written = self.writer.write(&self.kept);
            self.kept.clear();
        }
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        if self.written.is_ok() {
            self.kept.field(field, value);
        }
    }
}

/// Rows of a table, one value after the other.
#[derive(Default)]
struct Kept {
    /// Values per row.
    width: usize,
    bytes: Vec<u8>,
    /// Where each value begins and ends; `None` for NULL.
    fields: Vec<Option<(usize, usize)>>,
}

impl Kept {
    fn value(&self, field: Option<(usize, usize)>) -> Option<&[u8]> {
        field.map(|(start, end)| &self.bytes[start..end])
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.fields.clear();
    }
}

impl Rows for Kept {
    fn row(&mut self, _key: Option<&[u8]>) {}

    fn field(&mut self, _field: usize, value: Option<&[u8]>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.fields.push(value.map(|_| (start, self.bytes.len())));
    }
}

#[cfg(test)]
mod tests;
