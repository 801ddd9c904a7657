//! Do the clients of an arm let the server compute, and those of the plain arm not?
//!
//! A client of the workload runs transactions through a recording session: the statements that are sent count, not the
//! settings of the client.

use std::sync::{Arc, Mutex, PoisonError};

use tithe_machine::{fault::Fault, observation::Observation};

use crate::{
    columns::connect_sql,
    evidence::{Check, CheckContext, CheckEntry},
    session::{
        Connection, Offers, Parameter, PreparedText, Progress, Rows, Session, SessionWrapper, SqlSession, Statement,
        wait_ready,
    },
    sql::{Described, Dialect},
    workload::{Load, PartRecorder, Workload},
};

/// Recorded transactions: enough for the rarest of a usual mix to occur.
const TRANSACTIONS: usize = 100;

/// Words that occur only in statements that make the server compute, order or compare.
const COMPUTING: [&str; 6] = [" + ", " - ", "ORDER BY", "sum(", "DISTINCT", " < ?"];

/// The clients of the arm run statements that compute in the server, those of the plain arm none. Id
/// `statements-ordinary`.
pub struct StatementsOrdinary<'a> {
    /// Its clients are recorded; `None` if only the claim is needed.
    pub workload: Option<&'a dyn Workload>,
}

impl Check for StatementsOrdinary<'_> {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("statements-ordinary")
    }

    fn claim(&self) -> String {
        "the clients of this arm have the server compute, those of the plain arm do not".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let with_statements = self.workload.filter(|workload| workload.speaks_sql());
        let Some((workload, Load::Clients(clients))) =
            with_statements.map(|workload| (workload, workload.offered_by()))
        else {
            return Ok(Observation::Unknown("the workload has no statements".to_owned()));
        };
        let inner = connect_sql(context.database, context.server, context.setup, &context.how(), workload.tables())?;
        let heard = StatementTexts::default();
        let mut session =
            Session::Sql(Box::new(RecordingSession { inner, prepared: Vec::new(), heard: Arc::clone(&heard) }));
        let mut client = clients.client(&clients.arm_state());
        if let Some(compute) = context.setup.compute {
            client.compute_in(compute);
        }
        client.seed(context.nonce);
        for _ in 0..TRANSACTIONS {
            client.prepare();
            client.submit(&mut session)?;
            while client.advance(&mut session, &mut DiscardParts)? == Progress::Pending {
                wait_ready(session.connection())?;
            }
        }
        let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(judged(&heard))
    }
}

/// The result for the recorded statements `heard`: some compute in the server, or none does.
pub fn judged(heard: &[String]) -> Observation {
    let computing = |sql: &&String| COMPUTING.iter().any(|sign| sql.contains(sign));
    let count = heard.iter().filter(computing).count();
    let of = format!("of {} statements of {TRANSACTIONS} transactions", heard.len());
    match heard.iter().find(computing) {
        Some(first) => Observation::Protected(format!("{count} {of} compute in the server, the first: {first}")),
        None => Observation::Exposed(format!("none {of} computes in the server")),
    }
}

/// Texts of the executed statements, in order.
type StatementTexts = Arc<Mutex<Vec<String>>>;

/// A session that records the statements to execute.
struct RecordingSession {
    inner: Box<dyn SqlSession>,
    prepared: Vec<String>,
    heard: StatementTexts,
}

impl SqlSession for RecordingSession {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        self.prepared.push(sql.to_owned());
        self.inner.prepare(sql)
    }

    fn prepare_described(&mut self, statement: &Described) -> Result<Statement, Fault> {
        self.prepared.push(statement.sql.clone());
        self.inner.prepare_described(statement)
    }

    fn dialect(&self) -> &'static Dialect {
        self.inner.dialect()
    }

    fn hides_values(&self) -> bool {
        self.inner.hides_values()
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let heard = self.prepared.get(statement.0).cloned();
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).extend(heard);
        self.inner.submit(statement, parameters)
    }

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        self.prepared.push(sql.to_owned());
        self.inner.prepare_text(sql)
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(sql.to_owned());
        self.inner.submit_text(sql)
    }

    fn submit_once(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(sql.to_owned());
        self.inner.submit_once(sql, parameters)
    }

    fn submit_lines(&mut self, table: &str, columns: &[&str], lines: &[u8]) -> Result<bool, Fault> {
        self.inner.submit_lines(table, columns, lines)
    }

    fn pipelines(&self) -> bool {
        self.inner.pipelines()
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

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        self.inner.advance(rows)
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        self.inner.run(sql)
    }
}

impl SessionWrapper for RecordingSession {
    fn inner(&self) -> &dyn Connection {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn Connection {
        self.inner.as_mut()
    }
}

/// Discards the times of parts.
struct DiscardParts;

impl PartRecorder for DiscardParts {
    fn part(&mut self, _operation: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        session::Discard,
        simulated::table_bench::{NUMBERED, TableBench, check_passes_on},
    };

    fn recording(inner: Box<dyn SqlSession>) -> RecordingSession {
        RecordingSession { inner, prepared: Vec::new(), heard: StatementTexts::default() }
    }

    #[test]
    fn a_session_that_is_recorded_is_what_it_is_without() {
        check_passes_on(|session| Box::new(recording(session)));
    }

    #[test]
    fn statements_are_heard_when_they_are_executed_and_as_often() {
        let texts = ["a", "b", "c", "d", "e"].map(|table| format!("SELECT id FROM {table}"));
        let mut session = recording(TableBench::new(&NUMBERED).session());
        let described = Described { sql: texts[1].clone(), parameters: Vec::new(), results: Vec::new() };
        let prepared = [
            session.prepare(&texts[0]).expect("prepared"),
            session.prepare_described(&described).expect("prepared"),
            session.prepare_text(&texts[2]).expect("prepared").statement,
        ];
        for number in [1, 0, 2, 1] {
            assert_eq!(session.call(prepared[number], &[], &mut Discard), Ok(0));
        }
        assert_eq!(session.submit_text(&texts[3]).and_then(|()| session.finish(&mut Discard)), Ok(0));
        assert_eq!(session.submit_once(&texts[4], &[]), Ok(()));
        let heard = session.heard.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(*heard, [1, 0, 2, 1, 3, 4].map(|number: usize| texts[number].as_str()));
    }

    #[test]
    fn one_statement_that_the_server_computes_for_is_enough_and_none_is_too_few() {
        let told = |statements: &[&str]| {
            let heard: Vec<String> = statements.iter().map(|sql| (*sql).to_owned()).collect();
            judged(&heard)
        };
        let plain = "SELECT a FROM t WHERE b = ?";
        for computing in [
            "UPDATE t SET a = a + ?",
            "UPDATE t SET a = a - ?",
            "SELECT a FROM t ORDER BY a",
            "SELECT sum(a) FROM t",
            "SELECT DISTINCT a FROM t",
            "SELECT a FROM t WHERE b < ?",
        ] {
            let words = format!("2 of 3 statements of 100 transactions compute in the server, the first: {computing}");
            assert_eq!(told(&[plain, computing, computing]), Observation::Protected(words));
        }
        let none = |heard: usize| {
            Observation::Exposed(format!("none of {heard} statements of 100 transactions computes in the server"))
        };
        assert_eq!([told(&[plain, "UPDATE t SET a = ?"]), told(&[])], [none(2), none(0)]);
    }

    #[test]
    fn a_workload_without_statements_shows_nothing() {
        let bench = crate::simulated::test_bench::Bench::plain();
        let seen = bench.observe(&StatementsOrdinary { workload: None });
        assert_eq!(seen, Observation::Unknown("the workload has no statements".to_owned()));
    }
}
