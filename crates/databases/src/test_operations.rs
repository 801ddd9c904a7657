//! Shared code for tests of embedded databases: the operations of a workload, with their results as text.

use tithe_machine::fault::Fault;
use tithe_plugin::session::{Discard, Fields, KeyValueSession, Request};

use self::seen_rows::Seen;

#[path = "../tests/support/seen_rows.rs"]
mod seen_rows;

/// Inserts a record of three fields; returns how many records were inserted.
///
/// # Errors
/// The database's.
pub fn insert(session: &mut dyn KeyValueSession, key: &[u8], values: [&[u8]; 3]) -> Result<u64, Fault> {
    let values = [(0, values[0]), (1, values[1]), (2, values[2])];
    session.call(&Request::Insert { key, values: &values }, &mut Discard)
}

/// The number of rows that `request` returns or changes, and the rows, one a line.
pub fn seen(session: &mut dyn KeyValueSession, request: Request<'_>) -> String {
    let mut seen = Seen::default();
    let count = session.call(&request, &mut seen).expect("an answer");
    format!("{count} rows{}\n", seen.0)
}

/// All operations of a workload, in order, with their results. `last_field` is the last field of the record with this
/// key.
pub fn exercise(session: &mut dyn KeyValueSession, last_field: impl Fn(&'static [u8]) -> &'static [u8]) -> String {
    session.begin_bulk().expect("begun");
    for key in [&b"user3"[..], b"user1", b"user2"] {
        assert_eq!(insert(session, key, [b"a", b"", last_field(key)]), Ok(1));
    }
    session.end_bulk().expect("ended");
    let mut text = String::new();
    text += &seen(session, Request::Read { key: b"user1", fields: Fields::All });
    text += &seen(session, Request::Read { key: b"user9", fields: Fields::All });
    text += &seen(session, Request::Update { key: b"user1", values: &[(1, b"new")] });
    text += &seen(session, Request::Update { key: b"user9", values: &[(1, b"new")] });
    text += &seen(session, Request::Read { key: b"user1", fields: Fields::One(1) });
    text += &seen(session, Request::Scan { start: b"user2", count: 9, fields: Fields::All });
    text += &seen(session, Request::Scan { start: b"", count: 2, fields: Fields::One(2) });
    text += &seen(session, Request::Scan { start: b"user4", count: 2, fields: Fields::All });
    text += &seen(session, Request::Delete { key: b"user2" });
    text += &seen(session, Request::Delete { key: b"user2" });
    text += &format!("{}\n", insert(session, b"user1", [b"a"; 3]).expect_err("it is there"));
    text + &seen(session, Request::Scan { start: b"", count: 9, fields: Fields::One(0) })
}
