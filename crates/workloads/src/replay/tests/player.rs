//! A client on a session that refuses what a test asks it to refuse.

use std::{
    os::fd::BorrowedFd,
    sync::{Mutex, PoisonError},
};

use tithe_machine::{fault::Fault, proc::ServerTask};
use tithe_plugin::{
    session::{Connection, Parameter, PreparedText, Progress, Rows, Session, SqlSession, Statement},
    workload::PartRecorder,
};

use super::*;

/// A session that records its requests.
struct Told {
    sent: Arc<Mutex<Vec<String>>>,
    /// Errors, by the number of their request.
    errors: Vec<(usize, &'static str)>,
    in_transaction: bool,
}

impl Told {
    fn note(&self, request: String) {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }
}

fn values(parameters: &[Parameter<'_>]) -> String {
    let value = |parameter: &Parameter<'_>| match parameter {
        Parameter::Text(text) => format!(" {}", String::from_utf8_lossy(text)),
        other => format!(" {other:?}"),
    };
    parameters.iter().map(value).collect()
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

    fn prepare_text(&mut self, _sql: &str) -> Result<PreparedText, Fault> {
        Ok(PreparedText { statement: Statement(9), columns: Vec::new() })
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.note(format!("statement {}:{}", statement.0, values(parameters)));
        Ok(())
    }

    fn submit_once(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.note(format!("{sql}:{}", values(parameters)));
        Ok(())
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.note(sql.to_owned());
        Ok(())
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn advance(&mut self, _rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, words)) = self.errors.iter().find(|(number, _)| number + 1 == sent.len()) {
            return Err(Fault::Server((*words).to_owned()));
        }
        match sent.last().map(|text| text.to_ascii_lowercase()).as_deref() {
            Some("begin") => self.in_transaction = true,
            Some("commit" | "rollback") => self.in_transaction = false,
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

/// What the only transaction of `replayed` sends and records, and how it ends.
fn played(
    replayed: Replayed,
    is_open: bool,
    errors: &[(usize, &'static str)],
) -> (Vec<String>, Vec<usize>, Result<Progress, Fault>) {
    let mut player = Player::new(Arc::new(replayed));
    let sent: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Told { sent: Arc::clone(&sent), errors: errors.to_vec(), in_transaction: false };
    let (mut session, mut ended) = (Session::Sql(Box::new(told)), Ended(Vec::new()));
    if is_open {
        player.open(&mut session).expect("prepared");
    }
    player.seed(1);
    player.prepare();
    player.submit(&mut session).expect("sent");
    let outcome = player.advance(&mut session, &mut ended);
    let sent = sent.lock().expect("one thread").clone();
    assert_eq!(player.statements(), sent.len() as u64);
    (sent, ended.0, outcome)
}

/// A log of these `statements` in one session, which ends as `finish` says.
fn logged(statements: &[&str], finish: &str) -> Replayed {
    let line = |text: &&str| format!("2026-11-28 05:36:07.075 UTC [1] u@d LOG:  duration: 0.1 ms  statement: {text}\n");
    let log: String = statements.iter().map(line).collect();
    read(log, &[("finish", finish)]).expect("a log")
}

#[test]
fn a_transaction_is_sent_as_it_was_logged_or_undone() {
    const SINGLE: &[&str] = &["select 1"];
    const SEVERAL: &[&str] = &["begin", "update t set a = 1", "commit"];
    // Operation 0 is the transaction; its statements follow in their order, then those that the log does not have.
    for (statements, finish, expected, parts) in [
        (SINGLE, "as-logged", "select 1", vec![1]),
        (SINGLE, "rollback", "BEGIN; select 1; ROLLBACK", vec![2, 1, 2]),
        (SEVERAL, "as-logged", "begin; update t set a = 1; commit", vec![1, 2, 3]),
        (SEVERAL, "rollback", "begin; update t set a = 1; ROLLBACK", vec![1, 2, 4]),
    ] {
        let (sent, seen, ended) = played(logged(statements, finish), false, &[]);
        let requests = sent.len() as u64;
        assert_eq!((sent.join("; ").as_str(), seen), (expected, parts), "{finish}");
        assert_eq!(ended, Ok(Progress::Done(requests)), "the rows of all of them");
    }
    // A session that begins transactions implicitly has no `BEGIN` in its log.
    let mut implicit = logged(SEVERAL, "as-logged");
    implicit.recording.transactions[0].begins = true;
    assert_eq!(played(implicit, false, &[]).0.join("; "), "BEGIN; begin; update t set a = 1; commit");
}

#[test]
fn a_transaction_that_fails_is_undone_and_counts_no_further_statement() {
    let several = || logged(&["begin", "update t set a = 1", "commit"], "as-logged");
    let single = || logged(&["select 1"], "as-logged");
    let undone = "begin; update t set a = 1; ROLLBACK";
    for (replayed, errors, expected, parts, words) in [
        (several(), vec![(1, "no")], undone, vec![1], "no"),
        (several(), vec![(1, "no"), (2, "gone")], undone, vec![1], "gone"),
        (single(), vec![(0, "no")], "select 1", vec![], "no"),
    ] {
        let (sent, seen, ended) = played(replayed, false, &errors);
        assert_eq!((sent.join("; ").as_str(), seen), (expected, parts));
        assert_eq!(ended, Err(Fault::Server(words.to_owned())));
    }
}

#[test]
fn statements_with_parameters_are_sent_as_their_clients_did() {
    let sent = |name: &str, is_open: bool| {
        let at = "2026-11-28 05:36:07.075 UTC [1] u@d";
        let statement = format!("{at} LOG:  duration: 0.1 ms  execute {name}: select $1, $2\n");
        let log = format!("{statement}{at} DETAIL:  parameters: $1 = '5', $2 = NULL\n");
        played(read(log, &[]).expect("a log"), is_open, &[]).0.join("; ")
    };
    let once = "select $1, $2: 5 Null";
    assert_eq!([sent("<unnamed>", true), sent("p1", false)], [once, once]);
    assert_eq!(sent("p1", true), "statement 9: 5 Null");
}
