//! Sessions of the user's own statements, whose parameters and results are encrypted according to their texts.

use std::{collections::HashMap, sync::Arc};

use tithe_machine::fault::Fault;

use super::{
    rewriting::{Plan, plan},
    sql::{Ciphers, Decrypt, Place, Sealing, judged},
};
use crate::{
    session::{Connection, Offers, Parameter, PreparedText, Progress, Rows, SessionWrapper, SqlSession, Statement},
    setup::{Columns, OwnColumn},
    sql::{Described, Dialect, Grammar, SqlTable},
};

/// A session that encrypts columns of the user's own. Statements that load Tithe's own tables pass unchanged: the
/// loaded data are encrypted afterwards.
pub(super) struct OwnEncrypted {
    inner: Box<dyn SqlSession>,
    own: Vec<OwnColumn>,
    ciphers: Ciphers,
    sealing: Sealing,
    /// The plans of known texts, so that each is parsed once.
    plans: HashMap<String, Arc<Plan>>,
    /// The plan of each prepared statement.
    statements: Vec<(Statement, Option<Arc<Plan>>)>,
    /// The plan of the statement whose answer is awaited.
    current: Option<Arc<Plan>>,
    in_pipeline: bool,
    wrong: Option<String>,
}

impl OwnEncrypted {
    /// Wraps `inner`.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the key does not have 32 bytes.
    pub(super) fn new(inner: Box<dyn SqlSession>, columns: &Columns) -> Result<Self, Fault> {
        Ok(Self {
            inner,
            own: columns.own.clone(),
            ciphers: Ciphers::new(columns)?,
            sealing: Sealing::default(),
            plans: HashMap::new(),
            statements: Vec::new(),
            current: None,
            in_pipeline: false,
            wrong: None,
        })
    }

    /// The plan of `sql`; `None` if nothing is encrypted.
    fn plan(&mut self, sql: &str) -> Result<Option<Arc<Plan>>, Fault> {
        if !self.plans.contains_key(sql) {
            let plan = plan(sql, &self.own, self.inner.dialect().grammar).map_err(|refusals| {
                let words = refusals.into_iter().map(|refusal| format!("{}: {}", refusal.problem, refusal.help));
                Fault::Refused(words.collect::<Vec<_>>().join("; "))
            })?;
            self.plans.insert(sql.to_owned(), Arc::new(plan));
        }
        let hides = |plan: &&Arc<Plan>| plan.parameters.iter().chain(&plan.results).any(Option::is_some);
        Ok(self.plans.get(sql).filter(hides).cloned())
    }

    fn keep(&mut self, inner: Statement, plan: Option<Arc<Plan>>) -> Statement {
        self.statements.push((inner, plan));
        Statement(self.statements.len() - 1)
    }

    /// Sends by `send` the stored form of `parameters`, for a statement with this plan.
    fn send(
        &mut self,
        plan: Option<Arc<Plan>>,
        parameters: &[Parameter<'_>],
        send: impl FnOnce(&mut dyn SqlSession, &[Parameter<'_>]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.wrong = None;
        let Self { inner, own, ciphers, sealing, .. } = self;
        let sent = match &plan {
            None => send(inner.as_mut(), parameters),
            Some(plan) if plan.parameters.len() != parameters.len() => {
                Err(Fault::Protocol("a statement has other parameters than its text".to_owned()))
            }
            Some(plan) => {
                let place = |number: usize| place(own, &plan.parameters, number);
                sealing.with(ciphers, parameters, place, |stored| send(inner.as_mut(), stored))
            }
        };
        self.current = plan.filter(|_| !self.in_pipeline);
        sent
    }
}

fn place<'a>(own: &'a [OwnColumn], columns: &[Option<usize>], number: usize) -> Option<Place<'a>> {
    Some(Place::of_own(&own[(*columns.get(number)?)?]))
}

impl SqlSession for OwnEncrypted {
    fn prepare(&mut self, sql: &str) -> Result<Statement, Fault> {
        let inner = self.inner.prepare(sql)?;
        Ok(self.keep(inner, None))
    }

    fn prepare_described(&mut self, statement: &Described) -> Result<Statement, Fault> {
        let inner = self.inner.prepare_described(statement)?;
        Ok(self.keep(inner, None))
    }

    fn dialect(&self) -> &'static Dialect {
        self.inner.dialect()
    }

    fn hides_values(&self) -> bool {
        true
    }

    fn pipelines(&self) -> bool {
        self.inner.pipelines()
    }

    fn submit(&mut self, statement: Statement, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let known = self.statements.get(statement.0).cloned();
        let (inner, plan) = known.ok_or_else(|| Fault::Protocol("no such statement".to_owned()))?;
        self.send(plan, parameters, |session, stored| session.submit(inner, stored))
    }

    fn prepare_text(&mut self, sql: &str) -> Result<PreparedText, Fault> {
        let plan = self.plan(sql)?;
        let PreparedText { statement, columns } = self.inner.prepare_text(sql)?;
        Ok(PreparedText { statement: self.keep(statement, plan), columns })
    }

    /// A text that contains values, none of which is encrypted.
    fn submit_text(&mut self, sql: &str) -> Result<(), Fault> {
        match plan(sql, &self.own, self.inner.dialect().grammar) {
            Ok(plan) if plan.touched.is_empty() => {
                self.current = None;
                self.inner.submit_text(sql)
            }
            _ => Err(Fault::Refused("values travel in texts, where they cannot be encrypted".to_owned())),
        }
    }

    fn submit_once(&mut self, sql: &str, parameters: &[Parameter<'_>]) -> Result<(), Fault> {
        let plan = self.plan(sql)?;
        self.send(plan, parameters, |session, stored| session.submit_once(sql, stored))
    }

    fn offers(&self) -> Offers {
        self.inner.offers()
    }

    fn begin_pipeline(&mut self) {
        self.in_pipeline = true;
        self.inner.begin_pipeline();
    }

    fn end_pipeline(&mut self) -> Result<(), Fault> {
        self.in_pipeline = false;
        self.inner.end_pipeline()
    }

    fn in_transaction(&self) -> bool {
        self.inner.in_transaction()
    }

    fn submit_copy(&mut self, table: &'static SqlTable, values: &[Parameter<'_>]) -> Result<bool, Fault> {
        self.inner.submit_copy(table, values)
    }

    fn submit_lines(&mut self, table: &str, columns: &[&str], lines: &[u8]) -> Result<bool, Fault> {
        self.inner.submit_lines(table, columns, lines)
    }

    fn advance(&mut self, rows: &mut dyn Rows) -> Result<Progress, Fault> {
        let Self { inner, own, ciphers, current, wrong, .. } = self;
        let Some(plan) = current else { return inner.advance(rows) };
        let as_hex = inner.dialect().grammar == Grammar::Postgres;
        let place = |field: usize| place(own, &plan.results, field);
        let progress = inner.advance(&mut Decrypt { rows, place, as_hex, ciphers, wrong })?;
        judged(progress, wrong)
    }

    fn run(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Fault> {
        self.inner.run(sql)
    }

    fn run_all(&mut self, text: &str) -> Result<(), Fault> {
        self.inner.run_all(text)
    }
}

impl SessionWrapper for OwnEncrypted {
    fn inner(&self) -> &dyn Connection {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn Connection {
        self.inner.as_mut()
    }
}

#[cfg(test)]
mod tests;
