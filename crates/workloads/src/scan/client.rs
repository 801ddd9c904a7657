//! A client that scans.

use std::sync::Arc;

use tithe_machine::fault::Fault;
use tithe_model::schedule::SplitMix64;
use tithe_plugin::{
    columns::sql::unreadable,
    session::{Parameter, Progress, Session, Statement, wait_ready},
    workload::{Client, PartRecorder},
};

use super::{
    Shared,
    answer::{Answer, Reading},
    config::Query,
};

/// One client.
pub(super) struct Scanner {
    query: Query,
    shared: Arc<Shared>,
    random: SplitMix64,
    /// First row that the scan reads.
    first: u64,
    statement: Option<Statement>,
    answer: Answer,
    statements: u64,
}

impl Scanner {
    /// A client whose scans are of this kind.
    pub(super) fn of(query: Query, shared: Arc<Shared>) -> Self {
        let random = SplitMix64::new(0);
        Self { query, shared, random, first: 0, statement: None, answer: Answer::default(), statements: 0 }
    }

    /// Rows that a scan reads.
    fn count(&self) -> u64 {
        let all = self.shared.rows.count();
        if self.query == Query::Range { self.shared.config.range.min(all) } else { all }
    }

    fn text(&self) -> String {
        match self.query {
            Query::Aggregate => {
                "SELECT count(*), sum(s_number), avg(s_number), min(s_text), max(s_text) FROM scan".to_owned()
            }
            Query::Group => "SELECT s_group, count(*), sum(s_number) FROM scan GROUP BY s_group".to_owned(),
            Query::Range => "SELECT s_id, s_number, s_text FROM scan WHERE s_id >= ? AND s_id < ?".to_owned(),
            Query::Sort => {
                let last = self.shared.rows.count().saturating_sub(1);
                format!("SELECT s_id FROM scan ORDER BY s_text LIMIT 1 OFFSET {last}")
            }
        }
    }

    /// Runs one scan to its end: for checks.
    pub(super) fn scan(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.submit(session)?;
        while self.take(session)? == Progress::Pending {
            wait_ready(session.connection())?;
        }
        Ok(())
    }

    fn take(&mut self, session: &mut Session) -> Result<Progress, Fault> {
        let count = self.count();
        let Self { query, shared, answer, .. } = self;
        let progress = session.sql()?.advance(&mut Reading { query: *query, groups: &shared.groups, answer })?;
        if progress != Progress::Pending {
            answer.check(*query, &shared.rows, (self.first, count), shared.groups.len())?;
        }
        Ok(progress)
    }
}

impl Client for Scanner {
    fn open(&mut self, session: &mut Session) -> Result<(), Fault> {
        let session = session.sql()?;
        if session.hides_values() {
            return Err(unreadable());
        }
        self.statement = Some(session.prepare(&self.text())?);
        Ok(())
    }

    fn seed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
    }

    fn prepare(&mut self) {
        self.first = self.random.below(self.shared.rows.count() - self.count() + 1);
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        if self.statement.is_none() {
            self.open(session)?;
        }
        let unprepared = || Fault::Machine("no statement is prepared".to_owned());
        let statement = self.statement.ok_or_else(unprepared)?;
        self.answer.clear();
        self.statements += 1;
        let bounds = [self.first, self.first + self.count()].map(|bound| Parameter::Integer(bound as i64));
        let parameters = if self.query == Query::Range { &bounds[..] } else { &[] };
        session.sql()?.submit(statement, parameters)
    }

    fn advance(&mut self, session: &mut Session, _parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        self.take(session)
    }

    fn statements(&self) -> u64 {
        self.statements
    }

    fn operation(&self) -> usize {
        0
    }
}
