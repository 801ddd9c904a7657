use tithe_machine::secret::Secret;

use super::*;
use crate::{
    checks::canary::Collected,
    session::Discard,
    simulated::table_bench::{NUMBERED, TableBench, Value, check_passes_on, copied},
    sql::STANDARD,
};

const READ: &str = "SELECT part, id, iban, note FROM account";
const WRITE: &str = "UPDATE account SET iban = ?, note = ? WHERE part = ? AND id = ?";

/// The session `inner` of a client that encrypts `account.iban`, which statements look up, and `account.note`.
fn wrapped(inner: Box<dyn SqlSession>) -> OwnEncrypted {
    let own = [("account.iban", true), ("account.note", false)];
    let own = own.map(|(name, is_compared)| OwnColumn::new(name, is_compared).expect("a column")).to_vec();
    let columns = Columns { own, ..Columns::of_share(0.0, Secret::random(32)) };
    OwnEncrypted::new(inner, &columns).expect("a key of 32 bytes")
}

fn some(text: &str) -> Value {
    Some(text.as_bytes().to_vec())
}

/// A server with two accounts without values, and a session that encrypts them.
fn opened(dialect: &'static Dialect) -> (TableBench, OwnEncrypted) {
    let mut server = TableBench::new(dialect);
    server.pipelines = true;
    server.fill("account", ["1", "2"].map(|id| vec![some("0"), some(id), None, None]));
    let session = wrapped(server.session());
    (server, session)
}

/// The parameters of [`WRITE`] for the account `id`.
fn written<'a>(iban: Parameter<'a>, note: Parameter<'a>, id: &'a str) -> [Parameter<'a>; 4] {
    [iban, note, Parameter::Text(b"0"), Parameter::Text(id.as_bytes())]
}

/// The rows that the answer to `sent` has.
fn answered(session: &mut OwnEncrypted, sent: Result<(), Fault>) -> Result<Vec<Vec<Value>>, Fault> {
    let mut collected = Collected::default();
    sent.and_then(|()| session.finish(&mut collected)).map(|_| collected.rows)
}

fn read_prepared(session: &mut OwnEncrypted) -> Result<Vec<Vec<Value>>, Fault> {
    let read = session.prepare_text(READ).expect("prepared").statement;
    let sent = session.submit(read, &[]);
    answered(session, sent)
}

fn read_at_once(session: &mut OwnEncrypted) -> Result<Vec<Vec<Value>>, Fault> {
    let sent = session.submit_once(READ, &[]);
    answered(session, sent)
}

#[test]
fn values_come_back_as_they_were_sent_and_are_stored_as_ciphertext() {
    for dialect in [&STANDARD, &NUMBERED] {
        let (server, mut session) = opened(dialect);
        let write = server.written(WRITE);
        let one = written(Parameter::Text(b"DE1"), Parameter::Integer(-7), "1");
        let prepared = session.prepare_text(&write).expect("prepared").statement;
        assert_eq!(session.call(prepared, &one, &mut Discard), Ok(1));
        let two = written(Parameter::Bytes(b"DE1"), Parameter::Null, "2");
        let sent = session.submit_once(&write, &two);
        assert_eq!(sent.and_then(|()| session.finish(&mut Discard)), Ok(1));

        let expected =
            vec![vec![some("0"), some("1"), some("DE1"), some("-7")], vec![some("0"), some("2"), some("DE1"), None]];
        assert_eq!(read_prepared(&mut session), Ok(expected.clone()));
        assert_eq!(read_at_once(&mut session), Ok(expected.clone()));
        let stored = server.rows("account");
        assert_eq!([&stored[0][..2], &stored[1][..2]], [&expected[0][..2], &expected[1][..2]]);
        assert_eq!(stored[0][2], stored[1][2], "equal values of a column that is looked up are equal");
        assert!(stored[0][2] != some("DE1") && stored[0][3] != some("-7") && stored[1][3].is_none());
        // A text whose columns the session does not know is passed on, and its rows are as they are stored.
        let unknown = session.prepare("SELECT iban FROM account").expect("prepared");
        let sent = session.submit(unknown, &[]);
        let raw = answered(&mut session, sent).expect("rows");
        assert!(raw.iter().all(|row| row[0] != some("DE1")));
    }
}

#[test]
fn a_value_that_does_not_decrypt_makes_its_answer_wrong_and_no_other() {
    let (server, mut session) = opened(&STANDARD);
    server.fill("account", [vec![some("0"), some("3"), some("DE1"), None]]);
    let wrong: Result<Vec<Vec<Value>>, Fault> =
        Err(Fault::Wrong("a value of account.iban does not decrypt".to_owned()));
    assert_eq!([read_prepared(&mut session), read_at_once(&mut session)], [wrong.clone(), wrong]);
    let other = session.submit_once("SELECT iban FROM account WHERE id = ?", &[Parameter::Text(b"1")]);
    assert_eq!(answered(&mut session, other), Ok(vec![vec![None]]));
}

#[test]
fn statements_that_cannot_be_encrypted_are_refused_and_not_sent() {
    let (server, mut session) = opened(&STANDARD);
    let refusal = |refused: Result<(), Fault>| match refused {
        Err(Fault::Refused(words)) => words,
        other => panic!("{other:?}"),
    };
    let computing = "SELECT upper(note), id FROM account WHERE iban < 7";
    let reads = "is encrypted, and the server would have to read it in";
    let help = "only clients read it: select it as it is, and compute from it elsewhere";
    let words = format!("account.note {reads} upper(): {help}; account.iban {reads} a range: {help}");
    assert_eq!(refusal(session.prepare_text(computing).map(drop)), words);
    assert_eq!(refusal(session.submit_once(computing, &[])), words);
    let words = "values travel in texts, where they cannot be encrypted";
    for text in ["SELECT iban FROM account", "SELECT id FROM account", computing] {
        assert_eq!(refusal(session.submit_text(text)), words, "{text}");
    }
    assert_eq!(session.submit(Statement(0), &[]), Err(Fault::Protocol("no such statement".to_owned())));
    let notes = server.notes();
    assert!(notes.is_empty(), "{notes:?}");

    // It has four parameters.
    let write = session.prepare_text(WRITE).expect("prepared").statement;
    let one = written(Parameter::Null, Parameter::Null, "1");
    let other = Fault::Protocol("a statement has other parameters than its text".to_owned());
    assert_eq!(session.submit(write, &one[..3]), Err(other.clone()));
    assert_eq!(session.submit_once(WRITE, &one[..3]), Err(other));
    assert_eq!(server.updates(), 0);
    assert_eq!(session.call(write, &one, &mut Discard), Ok(1));
}

#[test]
fn a_pipeline_encrypts_what_it_writes_and_decrypts_nothing() {
    let (server, mut session) = opened(&STANDARD);
    let write = session.prepare_text(WRITE).expect("prepared").statement;
    let read = session.prepare_text(READ).expect("prepared").statement;
    session.begin_pipeline();
    for id in ["1", "2"] {
        let values = written(Parameter::Text(b"DE1"), Parameter::Text(b"a note"), id);
        assert_eq!(session.submit(write, &values), Ok(()));
    }
    assert_eq!(session.submit(read, &[]), Ok(()));
    let ended = session.end_pipeline();
    let stored = server.rows("account");
    assert_eq!(answered(&mut session, ended), Ok(stored.clone()), "a pipeline has one answer");
    assert_eq!(server.notes().last().map(String::as_str), Some("UPDATE 2"));
    let plain = |id: &str| vec![some("0"), some(id), some("DE1"), some("a note")];
    assert_eq!(read_prepared(&mut session), Ok(vec![plain("1"), plain("2")]));
    assert!(stored[0] != plain("1") && stored[1] != plain("2"));
    // The pipeline has ended, so the session decrypts the answers to its statements.
    let sent = session.submit(read, &[]);
    assert_eq!(answered(&mut session, sent), Ok(vec![plain("1"), plain("2")]));
}

#[test]
fn what_is_about_other_tables_is_passed_on() {
    check_passes_on(|session| Box::new(wrapped(session)));
    let (server, mut session) = opened(&NUMBERED);
    assert!(session.hides_values());
    assert_eq!([copied(&mut session), copied(server.session().as_mut())], [Ok(true), Ok(true)]);
    assert_eq!(session.run_all("SET a; SET b"), Ok(()));
    let copy = "copy 1 1 1 1 bytes to thing";
    assert_eq!(server.notes(), [copy, copy, "all: SET a; SET b"]);
    let (server, mut session) = opened(&NUMBERED);
    assert_eq!(session.submit_text("SELECT part FROM thing"), Ok(()));
    assert_eq!(server.notes(), ["at once: SELECT part FROM thing"]);
    let mut without_copies = wrapped(TableBench::new(&NUMBERED).session());
    assert_eq!(copied(&mut without_copies), Ok(false));
}
