use tithe_machine::secret::Secret;

use super::*;
use crate::{
    simulated::table_bench::{NUMBERED, TABLES as COPIED, TableBench, check_passes_on, copied},
    test_workload,
};

/// A table with a key that is compared with a column of another table, which has no key.
static TABLES: [SqlTable; 2] = [
    SqlTable {
        name: "thing",
        columns: &[
            Column::new("t_id", ColumnType::Integer, Sensitivity::Identifier).compared("thing"),
            Column::new("t_price", ColumnType::Long, Sensitivity::Figure),
            Column::new("t_name", ColumnType::Text(24), Sensitivity::Remark),
        ],
        key: &["t_id"],
        indexes: &[],
    },
    SqlTable {
        name: "note",
        columns: &[
            Column::new("n_thing", ColumnType::Integer, Sensitivity::Identifier).compared("thing"),
            Column::new("n_text", ColumnType::Text(40), Sensitivity::Remark),
        ],
        key: &[],
        indexes: &[],
    },
];

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Columns of this share, or those called `names`.
fn columns(share: f64, names: &[&str]) -> Columns {
    Columns { names: owned(names), ..Columns::of_share(share, Secret::random(32)) }
}

#[test]
fn a_share_is_a_set_of_columns_by_what_their_values_reveal() {
    let names = |share: f64| {
        let chosen = Chosen::of(share, &[], &TABLES).expect("a set of columns");
        let all = TABLES.iter().flat_map(|table| table.columns);
        let names: Vec<&str> = all.filter(|column| chosen.treatment(column).is_some()).map(|it| it.name).collect();
        assert_eq!((chosen.len(), chosen.is_empty()), (names.len(), names.is_empty()));
        names
    };
    assert_eq!(names(0.0), [""; 0]);
    assert_eq!(names(0.2), ["t_id", "n_thing"]);
    assert_eq!(names(0.5), ["t_id", "t_price", "n_thing"]);
    assert_eq!(names(1.0), ["t_id", "t_price", "t_name", "n_thing", "n_text"]);
    let refused = Chosen::of(0.3, &[], &TABLES).expect_err("no such set").to_string();
    assert!(refused.starts_with("refused: share = 0.3 is not a set of columns"), "{refused}");
}

#[test]
fn columns_that_are_compared_look_equal_and_have_room_for_their_ciphertext() {
    let [thing, _] = &TABLES;
    let told = |names: &[&str]| {
        let chosen = Chosen::of(0.0, &owned(names), &TABLES).expect("columns");
        let all = thing.columns.iter().map(|column| (chosen.treatment(column), chosen.stored_bytes(column)));
        all.collect::<Vec<_>>()
    };
    // A number has 8 bytes, a synthetic vector 16, and the longest nonce and tag together 40.
    let (compared, other) = (Some(Treatment::Deterministic), Some(Treatment::Randomised));
    assert_eq!(told(&["t_id", "n_thing", "t_price"]), [(compared, Some(24)), (other, Some(48)), (None, None)]);
    assert_eq!(told(&["t_name"]), [(None, None), (None, None), (other, Some(64))]);
}

#[test]
fn columns_are_named_as_they_are_and_with_all_that_are_compared_with_them() {
    let told = |names: &[&str]| {
        let chosen = Chosen::of(1.0, &owned(names), &TABLES);
        chosen.map_or_else(|fault| fault.to_string(), |chosen| chosen.len().to_string())
    };
    assert_eq!(told(&["t_nam"]), "refused: no column is called `t_nam`: there are t_id, t_price, t_name");
    assert_eq!(told(&["t_name", "iban"]), "refused: no column is called `iban`: names are like c_last");
    let together = "refused: columns that are compared with each other must be encrypted together: add";
    assert_eq!(told(&["t_id"]), format!("{together} n_thing"));
    assert_eq!(told(&["n_thing", "n_text"]), format!("{together} t_id"));
    assert_eq!([told(&["n_thing", "t_id"]), told(&["n_text"])], ["2", "1"]);
}

/// Why clients do not work with `columns` on `tables`; empty if they do.
fn refused(columns: Option<Columns>, compute: Option<Compute>, tables: &'static [SqlTable]) -> String {
    let setup = Setup { columns, compute, ..Setup::bare() };
    let workload = test_workload::Described { tables, ..Default::default() };
    Chosen::check(&setup, &workload).map_or_else(|fault| fault.to_string(), |()| String::new())
}

#[test]
fn a_server_computes_only_with_values_that_it_can_read() {
    for compute in [None, Some(Compute::Server), Some(Compute::Client)] {
        for share in [0.0, 1.0] {
            let works = share == 0.0 || compute == Some(Compute::Client);
            let expected = if works { String::new() } else { unreadable().to_string() };
            assert_eq!(refused(Some(columns(share, &[])), compute, &TABLES), expected, "{share} {compute:?}");
        }
        assert_eq!(refused(None, compute, &TABLES), "");
        assert_eq!(refused(Some(columns(1.0, &[])), compute, &[]), "", "it stores records by key");
    }
}

#[test]
fn some_chosen_column_can_be_found_again() {
    let of =
        |names: &[&str], tables: &'static [SqlTable]| refused(Some(columns(0.0, names)), Some(Compute::Client), tables);
    assert!(of(&["n_text"], &TABLES).starts_with("refused: no chosen column is in a table with a key"));
    assert_eq!([of(&["n_text", "t_name"], &TABLES), of(&["t_price"], &TABLES)], ["", ""]);
    assert_eq!(of(&["field9"], &[]), "");
    assert!(of(&["field10"], &[]).starts_with("refused: "), "a record has ten fields");
}

/// A session around `inner` that encrypts the columns of [`COPIED`] called `names`.
fn wrapped(inner: Box<dyn SqlSession>, names: &[&str]) -> Encrypted {
    let chosen = Chosen::of(0.0, &owned(names), &COPIED).expect("columns");
    Encrypted::new(inner, &columns(0.0, names), chosen).expect("a key of 32 bytes")
}

#[test]
fn a_session_without_encrypted_columns_passes_everything_on() {
    check_passes_on(|session| Box::new(wrapped(session, &[])));
    for pipelines in [false, true] {
        let mut server = TableBench::new(&NUMBERED);
        server.pipelines = pipelines;
        assert_eq!(copied(&mut wrapped(server.session(), &[])), Ok(pipelines));
        assert_eq!(server.notes(), ["copy 1 1 1 1 bytes to thing"]);
        assert_eq!(copied(&mut wrapped(server.session(), &["id"])), Ok(pipelines));
        assert_eq!(server.notes()[1..], ["copy 1 29 1 29 bytes to thing"], "each value belongs to its column");
    }
}

#[test]
fn texts_whose_columns_are_unknown_are_not_sent_where_columns_are_encrypted() {
    const READ: &str = "SELECT part, id FROM thing";
    let server = TableBench::new(&NUMBERED);
    let mut session = wrapped(server.session(), &["id"]);
    assert!(session.hides_values() && !wrapped(server.session(), &[]).hides_values());
    assert_eq!(session.prepare_text(READ).map(drop), Err(unreadable()));
    assert_eq!([session.submit_text(READ), session.submit_once(READ, &[])], [Err(unreadable()), Err(unreadable())]);
    assert_eq!(session.submit_lines("thing", &["part", "id"], b"1\tc\n"), Err(unreadable()));
    assert_eq!(session.submit(Statement(0), &[]), Err(Fault::Protocol("no such statement".to_owned())));
    assert!(server.notes().is_empty());
}
