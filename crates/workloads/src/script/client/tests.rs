//! A client on a session that refuses what a test asks it to refuse.

use std::{
    os::fd::BorrowedFd,
    sync::{LazyLock, Mutex},
};

use tithe_machine::proc::ServerTask;
use tithe_plugin::{
    session::{Connection, Parameter, Rows},
    sql::{Dialect, STANDARD},
};

use super::*;
use crate::script::{
    program::{Program, Source, Transactions},
    statement::Flavour,
};

/// A session that records its requests.
struct Told {
    sent: Arc<Mutex<Vec<String>>>,
    /// Errors, by the number of their request.
    errors: Vec<(usize, &'static str)>,
    /// The rows of each query, in one column.
    rows: &'static [&'static str],
    in_transaction: bool,
}

impl Connection for Told {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn server_task(&self) -> ServerTask {
        ServerTask::Caller
    }

    fn wire_bytes(&self) -> (u64, u64) {
        (0, 0)
    }
}

impl SqlSession for Told {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        panic!("`{sql}` is a text")
    }

    fn dialect(&self) -> &'static Dialect {
        static CONFLICTING: LazyLock<Dialect> =
            LazyLock::new(|| Dialect { is_conflict: |text| text == "conflict", ..STANDARD });
        &CONFLICTING
    }

    fn submit(&mut self, _statement: Statement, _parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        panic!("nothing is prepared")
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.sent.lock().expect("one thread").push(sql.to_owned());
        Ok(())
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let sent = self.sent.lock().expect("one thread");
        if let Some((_, words)) = self.errors.iter().find(|(number, _)| number + 1 == sent.len()) {
            return Err(Fault::Server((*words).to_owned()));
        }
        match sent.last().map_or("", String::as_str) {
            "BEGIN" => self.in_transaction = true,
            "COMMIT" | "ROLLBACK" => self.in_transaction = false,
            text if text.starts_with("SELECT ") => {
                rows.column(0, b"one");
                for value in self.rows {
                    rows.row(None);
                    rows.field(0, Some(value.as_bytes()));
                }
            }
            _ => {}
        }
        Ok(Progress::Done(1))
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        panic!("`{sql}` is outside of the load")
    }
}

/// The operations that ended.
struct Ended(Vec<usize>);

impl PartRecorder for Ended {
    fn part(&mut self, operation: usize) {
        self.0.push(operation);
    }
}

/// A client of scripts with these weights and texts, by `protocol`.
fn client(scripts: &[(u32, &str)], protocol: Protocol, max_tries: u64) -> ScriptClient {
    let sources: Vec<Source<'_>> =
        scripts.iter().map(|(weight, text)| Source { name: "a.sql", weight: *weight, text }).collect();
    let transactions = Transactions { max_tries, ..Transactions::default() };
    let program = Program::new(&sources, Flavour::Postgres, &[], protocol, transactions).expect("scripts");
    let mut client = ScriptClient::new(Arc::new(Config { program, built_in_scale: None, scale: 1 }), 1);
    client.seed(7);
    client
}

/// What one transaction of the script `text` sends and records, and how it ends.
fn carried_out(
    (text, max_tries): (&str, u64),
    errors: &[(usize, &'static str)],
    rows: &'static [&'static str],
) -> (Vec<String>, Vec<usize>, Result<Progress, Fault>) {
    let mut client = client(&[(1, text)], Protocol::Simple, max_tries);
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Told { sent: Arc::clone(&sent), errors: errors.to_vec(), rows, in_transaction: false };
    let (mut session, mut ended) = (Session::Sql(Box::new(told)), Ended(Vec::new()));
    client.prepare();
    client.submit(&mut session).expect("sent");
    let outcome = client.advance(&mut session, &mut ended);
    let sent = sent.lock().expect("one thread").clone();
    (sent, ended.0, outcome)
}

#[test]
fn a_transaction_is_tried_again_after_conflicts_alone_and_with_the_same_values() {
    const SCRIPT: &str = "\\set id random(1, 1000000000)\nBEGIN;\nUPDATE t SET a = :id;\nCOMMIT;\n";
    // Operation 0 is the script, 1 to 3 are its statements, 4 is a retry.
    let done: Result<Progress, Fault> = Ok(Progress::Done(1));
    let failed = |words: &str| Err(Fault::Server(words.to_owned()));
    let lost = Err(Fault::Connection("the server does not roll a transaction back".to_owned()));
    for (max_tries, errors, parts, outcome) in [
        (1, vec![], vec![1, 2, 3], done.clone()),
        (1, vec![(1, "conflict")], vec![1], failed("conflict")),
        (2, vec![(1, "conflict")], vec![1, 4, 1, 2, 3], done.clone()),
        (2, vec![(2, "conflict")], vec![1, 2, 4, 1, 2, 3], done.clone()),
        (2, vec![(1, "conflict"), (4, "conflict")], vec![1, 4, 1], failed("conflict")),
        (0, vec![(1, "conflict"), (4, "conflict"), (7, "conflict")], vec![1, 4, 1, 4, 1, 4, 1, 2, 3], done),
        (2, vec![(1, "no such table")], vec![1], failed("no such table")),
        (2, vec![(1, "conflict"), (2, "gone")], vec![1], lost),
    ] {
        let (sent, seen, ended) = carried_out((SCRIPT, max_tries), &errors, &[]);
        assert_eq!((seen, &ended), (parts, &outcome), "{max_tries} {errors:?}");
        let updates: Vec<&String> = sent.iter().filter(|text| text.starts_with("UPDATE ")).collect();
        assert!(updates.iter().all(|text| *text == updates[0]), "{sent:?}");
        let rolled_back = sent.iter().filter(|text| *text == "ROLLBACK").count();
        assert_eq!(rolled_back, errors.iter().filter(|(_, words)| *words != "gone").count(), "{sent:?}");
        assert_eq!(sent.last().map(String::as_str), Some(if ended.is_ok() { "COMMIT" } else { "ROLLBACK" }));
    }
}

#[test]
fn a_statement_by_itself_is_tried_again_without_a_rollback() {
    let (sent, parts, ended) = carried_out(("UPDATE t SET a = 1;\n", 2), &[(0, "conflict")], &[]);
    assert_eq!((sent, parts, ended), (vec!["UPDATE t SET a = 1".to_owned(); 2], vec![2, 1], Ok(Progress::Done(1))));
}

#[test]
fn a_transaction_that_a_script_leaves_open_is_rolled_back_and_wrong() {
    let (sent, parts, ended) = carried_out(("BEGIN;\nSELECT 1;\n", 1), &[], &["1"]);
    assert_eq!((sent, parts), (["BEGIN", "SELECT 1", "ROLLBACK"].map(str::to_owned).to_vec(), vec![1, 2]));
    let words = "a.sql: end of script reached without completing the last transaction: write COMMIT";
    assert_eq!(ended, Err(Fault::Wrong(words.to_owned())));
}

#[test]
fn a_row_becomes_variables_that_decide_what_follows() {
    const SCRIPT: &str = "SELECT one FROM t \\gset\n\\if :one > 4\nUPDATE t SET a = :one;\n\\elif :one > 2\nUPDATE t SET b = \
                          :one;\n\\else\nDELETE FROM t;\n\\endif\n";
    let after = |rows: &'static [&'static str]| {
        let (sent, parts, ended) = carried_out((SCRIPT, 1), &[], rows);
        (sent.last().cloned().unwrap_or_default(), parts, ended.err().map(|fault| fault.to_string()))
    };
    assert_eq!(after(&["5"]), ("UPDATE t SET a = 5".to_owned(), vec![1, 2], None));
    assert_eq!(after(&["4"]), ("UPDATE t SET b = 4".to_owned(), vec![1, 3], None));
    assert_eq!(after(&["2"]), ("DELETE FROM t".to_owned(), vec![1, 4], None));
    let others: [(&'static [&'static str], usize); 2] = [(&[], 0), (&["5", "5"], 2)];
    for (rows, count) in others {
        let wrong = format!("wrong answer: a.sql, line 1: expected one row, got {count}");
        assert_eq!(after(rows), ("SELECT one FROM t".to_owned(), vec![], Some(wrong)));
    }
}

#[test]
fn scripts_are_drawn_by_their_weights() {
    let mut client = client(&[(1, "SELECT 1;"), (0, "SELECT 2;"), (3, "SELECT 3;")], Protocol::Simple, 1);
    let mut counts = [0; 3];
    for _ in 0..400 {
        client.prepare();
        counts[client.operation()] += 1;
    }
    // 100 and 300 with a standard deviation of nine.
    assert!(counts[1] == 0 && (60..140).contains(&counts[0]), "{counts:?}");
}

#[test]
fn what_a_product_does_not_offer_is_refused_before_anything_is_sent() {
    let opened = |text: &str, protocol: Protocol| {
        let told = Told { sent: Arc::default(), errors: Vec::new(), rows: &[], in_transaction: false };
        client(&[(1, text)], protocol, 1).open(&mut Session::Sql(Box::new(told))).map_err(|fault| fault.to_string())
    };
    let refused = |opened: Result<(), String>, words: &str| opened.is_err_and(|why| why.contains(words));
    assert_eq!(opened("SELECT 1;", Protocol::Simple), Ok(()));
    assert!(refused(opened("SELECT 1;", Protocol::Extended), "no request with a text and parameters"));
    let pipeline = "\\startpipeline\nSELECT 1;\n\\endpipeline\n";
    assert!(refused(opened(pipeline, Protocol::Prepared), "this product has no pipelines"));
}
