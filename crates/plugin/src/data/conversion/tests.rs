use super::*;
use crate::{
    checks::canary::Collected,
    data,
    simulated::{
        table_bench::{NUMBERED, TableBench, Value},
        test_bench::Bench,
    },
    sql::{Dialect, STANDARD},
    test_workload::Described,
};

/// Statements of the user's own.
static STATEMENTS: Described = Described { speaks_sql: true, tables: &[], statements: Vec::new() };

const BOTH: [(&str, bool); 2] = [("account.iban", true), ("account.note", false)];

/// An account: the part of all that it is in, its number there, an IBAN that many have, and a note that is absent,
/// empty or its own.
fn row(number: usize) -> Vec<Value> {
    let value = |text: String| Some(text.into_bytes());
    let note = match number % 5 {
        0 => None,
        1 => value(String::new()),
        _ => value(format!("note of account {number}")),
    };
    vec![value((number % 3).to_string()), value(format!("{number:05}")), value(format!("DE{:020}", number % 7)), note]
}

/// A server with this many rows in the table `account`.
fn filled(dialect: &'static Dialect, rows: usize) -> TableBench {
    let server = TableBench::new(dialect);
    server.fill("account", (0..rows).map(row));
    server
}

/// The set-up of an arm of `bench` whose clients encrypt the columns `names`, each with whether statements look it up.
fn encrypting(bench: &Bench, names: &[(&str, bool)]) -> Setup {
    let column = |(name, is_compared): &(&str, bool)| OwnColumn::new(name, *is_compared).expect("a column");
    let own = names.iter().map(column).collect();
    let columns = Columns { own, ..Columns::of_share(0.0, bench.setup.credentials.key.clone()) };
    Setup { columns: Some(columns), ..bench.setup.clone() }
}

fn converted(server: &TableBench, bench: &Bench, setup: &Setup) -> Result<(), Fault> {
    convert(server, &bench.server, setup, &bench.context().how(), &STATEMENTS)
}

/// The rows of `table` as clients of `setup` read them.
fn read(server: &TableBench, bench: &Bench, setup: &Setup, table: &str) -> Vec<Vec<Value>> {
    let how = bench.context().how();
    let session = data::connect(server, &bench.server, setup, &how, &STATEMENTS).expect("a session");
    let Session::Sql(mut session) = session else { panic!("statements are SQL") };
    let all = session.prepare_text(&format!("SELECT part, id, iban, note FROM {table}")).expect("prepared").statement;
    let mut collected = Collected::default();
    session.call(all, &[], &mut collected).expect("every value decrypts");
    collected.rows
}

/// The sizes of the requests by which `rows` are written that are read [`READ_AHEAD`] at a time.
fn requests(rows: usize, at_once: usize) -> Vec<usize> {
    let parts = |all: usize, most: usize| (0..all).step_by(most).map(move |begin| most.min(all - begin));
    parts(rows, READ_AHEAD).flat_map(|part| parts(part, at_once)).collect()
}

/// What `server` was asked besides updates and queries.
fn others(server: &TableBench) -> Vec<String> {
    let mut notes = server.notes();
    notes.retain(|note| !note.starts_with("UPDATE") && !note.starts_with("SELECT"));
    notes
}

#[test]
fn every_value_is_encrypted_once_whatever_the_product_and_however_many_there_are() {
    let bench = Bench::plain();
    let setup = encrypting(&bench, &BOTH);
    for rows in [0, 1, READ_AHEAD, 2 * READ_AHEAD + 300] {
        for (number, dialect) in [&STANDARD, &NUMBERED].into_iter().enumerate() {
            for [pipelines, renames_rows] in [[false, false], [false, true], [true, false], [true, true]] {
                let mut server = filled(dialect, rows);
                (server.pipelines, server.renames_rows) = (pipelines, renames_rows);
                converted(&server, &bench, &setup).expect("nothing prevents it");
                let case = format!("{rows} rows, dialect {number}, pipelines: {pipelines}, renames: {renames_rows}");

                let notes = server.notes();
                let sizes = notes.iter().filter_map(|note| note.strip_prefix("UPDATE ")?.parse::<usize>().ok());
                let at_once = if pipelines { AT_ONCE } else { 1 };
                assert_eq!(sizes.collect::<Vec<_>>(), requests(rows, at_once), "{case}");
                // A page that is not full is the last one.
                let pages = if renames_rows { 1 } else { rows / READ_AHEAD + 1 };
                assert_eq!(server.queries(), pages, "{case}");
                let second = if renames_rows { &["connect"][..] } else { &[] };
                let begin = &["connect", "open account: iban, note", "BEGIN"][..];
                let expected = [begin, second, &["COMMIT", "settle account"]];
                assert_eq!(others(&server), expected.concat(), "{case}");

                // Each update of a row that is renamed adds a sign to its number.
                let renamed = |number: usize| {
                    let mut row = row(number);
                    row[1].as_mut().expect("a number").extend(renames_rows.then_some(b'\''));
                    row
                };
                let expected: Vec<Vec<Value>> = (0..rows).map(renamed).collect();
                assert!(read(&server, &bench, &setup, "account") == expected, "{case}");
                let stored = server.rows("account");
                let different = |column: usize| {
                    stored.iter().filter_map(|row| row[column].as_deref()).collect::<BTreeSet<&[u8]>>().len()
                };
                // Values that are looked up look equal where they are; NULL stays NULL.
                let notes = (0..rows).filter(|number| number % 5 != 0).count();
                assert_eq!((different(2), different(3)), (rows.min(7), notes), "{case}");
            }
        }
    }
}

#[test]
fn each_table_has_a_transaction_of_its_own_and_keeps_its_other_columns() {
    let bench = Bench::plain();
    let setup = encrypting(&bench, &[("person.note", false), ("account.iban", true), ("account.note", false)]);
    let server = filled(&STANDARD, 10);
    server.fill("person", (0..10).map(row));
    converted(&server, &bench, &setup).expect("nothing prevents it");
    let account = ["open account: iban, note", "BEGIN", "COMMIT", "settle account"];
    let person = ["open person: note", "BEGIN", "COMMIT", "settle person"];
    assert_eq!(others(&server), [&["connect"][..], &account, &person].concat());
    let plain: Vec<Vec<Value>> = (0..10).map(row).collect();
    let kept = |table: &str, column: usize| {
        let stored = server.rows(table);
        stored.iter().zip(&plain).filter(|(stored, plain)| stored[column] == plain[column]).count()
    };
    // Two of ten notes are NULL.
    assert_eq!([0, 1, 2, 3].map(|column| kept("account", column)), [10, 10, 0, 2]);
    assert_eq!([0, 1, 2, 3].map(|column| kept("person", column)), [10, 10, 10, 2]);
}

#[test]
fn without_columns_of_the_users_own_nothing_is_asked() {
    let bench = Bench::plain();
    let server = filled(&STANDARD, 10);
    let of_none = [bench.setup.clone(), encrypting(&bench, &[])];
    assert_eq!(of_none.map(|setup| converted(&server, &bench, &setup)), [Ok(()), Ok(())]);
    assert!(server.notes().is_empty());
    // A workload on records by key has no statements.
    let how = bench.context().how();
    let records = convert(&server, &bench.server, &encrypting(&bench, &BOTH), &how, &Described::default());
    assert!(matches!(records, Err(Fault::Protocol(_))), "{records:?}");
}

#[test]
fn what_prevents_it_is_told_with_the_table_and_ends_it() {
    let bench = Bench::plain();
    let setup = encrypting(&bench, &BOTH);
    let refused = |fault: Fault| {
        let mut server = filled(&STANDARD, 10);
        server.refuses = Some(fault);
        converted(&server, &bench, &setup).expect_err("its columns are not opened")
    };
    let words = || "a CHECK may read it".to_owned();
    let told = Fault::Refused("columns of account cannot be encrypted: a CHECK may read it".to_owned());
    assert_eq!([Fault::Refused(words()), Fault::Server(words())].map(refused), [told.clone(), told]);
    assert_eq!(refused(Fault::Connection(words())), Fault::Connection(words()), "the table is not to blame");

    let full = Fault::Refused("columns of account cannot be encrypted: the disk is full".to_owned());
    for renames_rows in [false, true] {
        for fails_at in [1, 500, READ_AHEAD + 1, 2 * READ_AHEAD + 300] {
            let mut server = filled(&STANDARD, 2 * READ_AHEAD + 300);
            (server.renames_rows, server.fails_at) = (renames_rows, Some(fails_at));
            assert_eq!(converted(&server, &bench, &setup), Err(full.clone()));
            assert_eq!(server.updates(), fails_at, "nothing is written afterwards");
            assert!(!others(&server).iter().any(|note| note == "COMMIT"), "update {fails_at}, renames: {renames_rows}");
        }
    }
}
