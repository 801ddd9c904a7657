use expect_test::expect;

use super::*;
use crate::{
    session::{Discard, Parameter},
    simulated::sql_bench::SqlBench,
    test_workload::Described,
};

#[test]
fn plaintext_and_repetitions_are_exposed() {
    let told = |is_compared, read: &[&str], stored: &[&[u8]]| -> String {
        let column = OwnColumn::new("t.c", is_compared).expect("a column");
        let read: Vec<Vec<u8>> = read.iter().map(|value| value.as_bytes().to_vec()).collect();
        let stored: Vec<Vec<u8>> = stored.iter().map(|value| value.to_vec()).collect();
        exposed(&column, &read, &stored).map_or("nothing".to_owned(), |observation| format!("{observation:?}"))
    };
    let (one, other): (Vec<u8>, Vec<u8>) = ((0..40).collect(), (100..140).collect());
    let within = [b"before a long plaintext".as_slice(), &one].concat();
    let all = [
        told(false, &["plain"], &[&one, &other]),
        told(false, &["plain"], &[&one, b"plain"]),
        told(false, &["a long plaintext"], &[&within]),
        told(false, &["plain"], &[&one, &one]),
        told(true, &["plain"], &[&one, &one]),
        told(true, &[], &[]),
    ];
    expect![[r#"
        nothing
        Exposed("1 of 2 values of t.c are as clients read them")
        Exposed("1 of 1 values of t.c are as clients read them")
        Exposed("t.c repeats a block of 16 bytes: equal values can be recognised")
        nothing
        Unknown("t.c holds no value")"#]]
    .assert_eq(&all.join("\n"));
}

/// Statements of the user's own.
static STATEMENTS: Described = Described { speaks_sql: true, tables: &[], statements: Vec::new() };

const COLUMNS: [(&str, bool); 2] = [("account.iban", true), ("account.note", false)];

/// The columns of `names`; the checks are about all of them.
fn columns(names: &[&str]) -> Vec<OwnColumn> {
    let chosen = COLUMNS.iter().filter(|(name, _)| names.contains(name));
    chosen.map(|(name, is_compared)| OwnColumn::new(name, *is_compared).unwrap()).collect()
}

/// An arm that encrypts the columns of `names`, with `rows` in its table and in its file.
fn arm(names: &[&str], rows: &[[&str; 2]]) -> SqlBench {
    let mut arm = if names.is_empty() { SqlBench::plain() } else { SqlBench::encrypted(0.0) };
    if let Some(encrypted) = &mut arm.bench.setup.columns {
        encrypted.own = columns(names);
    }
    let SqlBench { bench, database } = &arm;
    let how = bench.context().how();
    let session = data::connect(database, &bench.server, &bench.setup, &how, &STATEMENTS).unwrap();
    let Session::Sql(mut session) = session else { panic!("statements are SQL") };
    let insert = session.prepare_text("INSERT INTO account (iban, note) VALUES (?, ?)").unwrap().statement;
    for row in rows {
        let row = row.map(|value| Parameter::Text(value.as_bytes()));
        session.call(insert, &row, &mut Discard).unwrap();
    }
    crate::database::SqlDatabase::quiesce(database, &bench.server, &bench.setup, &[]).unwrap();
    arm
}

const ROWS_OF_TWO: [[&str; 2]; 2] = [["DE89370400440532013000", "pays late, always"], ["GB29NWBK60161331926819", "-"]];

/// The observations of the three checks on `arm`.
fn seen(arm: &SqlBench) -> String {
    let subject = OwnSubject { columns: columns(&["account.iban", "account.note"]), workload: Some(&STATEMENTS) };
    let checks: [&dyn Check; 3] = [&OwnCiphertext(subject.clone()), &OwnWrongKey(subject.clone()), &OwnDisk(subject)];
    let mut text = String::new();
    for check in checks {
        let (on, off) = (arm.look(check, true).0, arm.look(check, false).0);
        text += &format!("{}: {}: {on:?}\n", check.id(), check.claim());
        if on != off {
            text += &format!("  as the plain arm: {off:?}\n");
        }
    }
    text
}

#[test]
fn each_column_counts_and_each_check_is_told_from_its_opposite() {
    let both = ["account.iban", "account.note"];
    let told = [
        seen(&arm(&[], &ROWS_OF_TWO)),
        seen(&arm(&both, &ROWS_OF_TWO)),
        seen(&arm(&both[..1], &ROWS_OF_TWO)),
        seen(&arm(&both[1..], &ROWS_OF_TWO)),
        seen(&arm(&both, &[])),
        seen(&arm(&both, &[["short", "-"]])),
    ];
    expect![[r#"
        ciphertext-seen: the server holds ciphertext in account.iban, account.note: Exposed("2 of 2 values of account.iban are as clients read them")
        wrong-column-key: the arm's key opens account.iban, account.note, another key does not: Exposed("account.iban is read without a key")
        disk-canary: no value of account.iban, account.note is readable in the data files: Exposed("3 values found 3 times, in data/tables (3)")

        ciphertext-seen: the server holds ciphertext in account.iban, account.note: Protected("4 values of 2 columns are ciphertext; 1 of these columns repeat no block of 16 bytes (AES-256-GCM)")
        wrong-column-key: the arm's key opens account.iban, account.note, another key does not: Protected("2 columns do not decrypt with another key")
        disk-canary: no value of account.iban, account.note is readable in the data files: Protected("none of 3 values in 2 files, 150 B")

        ciphertext-seen: the server holds ciphertext in account.iban, account.note: Exposed("2 of 2 values of account.note are as clients read them")
        wrong-column-key: the arm's key opens account.iban, account.note, another key does not: Exposed("account.note is read with another key")
        disk-canary: no value of account.iban, account.note is readable in the data files: Exposed("1 value found once, in data/tables (1)")

        ciphertext-seen: the server holds ciphertext in account.iban, account.note: Exposed("2 of 2 values of account.iban are as clients read them")
        wrong-column-key: the arm's key opens account.iban, account.note, another key does not: Exposed("account.iban is read with another key")
        disk-canary: no value of account.iban, account.note is readable in the data files: Exposed("2 values found 2 times, in data/tables (2)")

        ciphertext-seen: the server holds ciphertext in account.iban, account.note: Unknown("account.iban holds no value")
        wrong-column-key: the arm's key opens account.iban, account.note, another key does not: Unknown("account.iban holds no value")
        disk-canary: no value of account.iban, account.note is readable in the data files: Unknown("every value is shorter than 12 bytes, so a match could be chance")

        ciphertext-seen: the server holds ciphertext in account.iban, account.note: Protected("2 values of 2 columns are ciphertext; 1 of these columns repeat no block of 16 bytes (AES-256-GCM)")
        wrong-column-key: the arm's key opens account.iban, account.note, another key does not: Protected("2 columns do not decrypt with another key")
        disk-canary: no value of account.iban, account.note is readable in the data files: Unknown("every value is shorter than 12 bytes, so a match could be chance")
    "#]].assert_eq(&told.join("\n"));
}

#[test]
fn what_cannot_be_read_is_not_judged() {
    let mut gone = arm(&[], &ROWS_OF_TWO);
    let folder = gone.bench.server.paths.data[0].clone();
    let told = |arm: &SqlBench| seen(arm).lines().last().unwrap_or_default().to_owned();
    std::fs::write(folder.join("tables"), "").unwrap();
    std::fs::write(folder.join("records"), "").unwrap();
    let empty = told(&gone);
    gone.bench.server.paths = Default::default();
    let launched = told(&gone);
    let attached = told(&gone.attached());
    expect![[r#"
        disk-canary: no value of account.iban, account.note is readable in the data files: Unknown("nothing is in these files yet")
        disk-canary: no value of account.iban, account.note is readable in the data files: Unknown("no such file of the server can be seen from here")
        disk-canary: no value of account.iban, account.note is readable in the data files: OutOfReach("no such file of the server can be seen from here")"#]].assert_eq(&[empty, launched, attached].join("\n"));
}

#[test]
fn files_of_the_journal_are_not_looked_into() {
    let mut moved = arm(&[], &ROWS_OF_TWO);
    moved.bench.server.paths.journal = std::mem::take(&mut moved.bench.server.paths.data);
    expect![[r#"
        ciphertext-seen: the server holds ciphertext in account.iban, account.note: Exposed("2 of 2 values of account.iban are as clients read them")
        wrong-column-key: the arm's key opens account.iban, account.note, another key does not: Exposed("account.iban is read without a key")
        disk-canary: no value of account.iban, account.note is readable in the data files: Unknown("no such file of the server can be seen from here")
    "#]].assert_eq(&seen(&moved));
}
