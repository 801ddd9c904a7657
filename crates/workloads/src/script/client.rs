//! A client: draws a script, computes its variables, and runs one statement after the other through its session.

use std::{collections::BTreeMap, sync::Arc, thread, time::Duration};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::{Progress, Protocol, Session, SqlSession, Statement, rows},
    workload::{Answered, Client, PartRecorder},
};

use super::{
    answer::Answer,
    command::{Action, Amount, Keep, LONGEST_SLEEP_US, Sql},
    config::Config,
    evaluation::Evaluation,
    guard,
    observe::{Observed, Observer},
    parameters::with_parameters,
    random::Random,
    value::Value,
    variables::Variables,
};

/// Sent if a transaction ends without a statement, so that it has an answer.
const NOTHING: &str = "SELECT 1";

/// One client.
pub struct ScriptClient {
    config: Arc<Config>,
    variables: Variables,
    random: Random,
    /// Draws scripts.
    choice: Random,
    /// The generator when the transaction began: a retry draws the same values.
    at_begin: Random,
    script: usize,
    /// The next command.
    at: usize,
    /// The next part of a combined statement.
    part: usize,
    tries: u64,
    state: State,
    answer: Answer,
    text: String,
    scratch: String,
    /// For each script, command and part, its prepared form.
    prepared: Vec<Vec<Vec<Ready>>>,
    statements: u64,
    /// Observes answers that are not measured.
    observer: Option<Observer>,
    /// The settings of the session when they were last read.
    settings: Option<BTreeMap<String, String>>,
}

/// The state of a statement in this session.
#[derive(Debug, Clone, Default)]
struct Ready {
    statement: Option<Statement>,
    /// Its text with parameters.
    text: String,
    columns: Vec<String>,
}

/// The activity of the session.
enum State {
    /// The commands of the script.
    Script,
    /// Rolling back, after which this fault is returned, or the transaction retried.
    RollingBack(Option<Fault>),
}

/// The result of running commands.
enum Step {
    /// A statement was sent.
    Sent,
    /// The script has ended.
    Ended,
}

impl ScriptClient {
    /// Client 0, until it gets another number, with the values that `seed` gives to variables.
    pub fn new(config: Arc<Config>, seed: u64) -> Self {
        let mut variables = Variables::new(Arc::clone(&config.program.names));
        let mut base = Random::new(seed);
        // As pgbench with one client draws them: it draws a generator first.
        base.bits();
        for (name, value) in [
            ("scale", config.scale as i64),
            ("client_id", 0),
            ("random_seed", seed as i64),
            ("default_seed", base.bits() as i64),
        ] {
            variables.put_named(name, Value::Integer(value));
        }
        for (number, value) in &config.program.defined {
            variables.put(*number, value.clone());
        }
        Self {
            variables,
            random: Random::new(0),
            choice: Random::new(0),
            at_begin: Random::new(0),
            script: 0,
            at: 0,
            part: 0,
            tries: 1,
            state: State::Script,
            answer: Answer::default(),
            text: String::new(),
            scratch: String::new(),
            prepared: Vec::new(),
            statements: 0,
            observer: None,
            settings: None,
            config,
        }
    }

    /// Starts to observe its answers: it is not measured, and runs in a transaction of its caller's.
    pub fn observe(&mut self) {
        self.observer = Some(Observer::default());
    }

    /// The observations since the last call.
    pub fn observed(&mut self) -> Vec<Answered> {
        self.observer.as_mut().map(Observer::take).unwrap_or_default()
    }

    /// Records the error with which the transaction was refused.
    pub fn refused(&mut self, words: String) {
        let operation = self.script;
        self.observer.iter_mut().for_each(|observer| observer.refused(operation, words.clone()));
    }

    /// True for an action that is skipped because its caller has the transaction.
    fn leaves_out(&self, action: &Action) -> bool {
        let is_bound =
            |sql: &Sql| sql.parts.iter().all(|part| guard::bound(&part.text, part.flavour) != guard::Bound::None);
        self.observer.is_some()
            && match action {
                Action::Sql(sql) => is_bound(sql),
                Action::Sleep(_) => true,
                _ => false,
            }
    }

    /// Begins the transaction that was drawn.
    fn begin(&mut self) {
        (self.at, self.part, self.state) = (0, 0, State::Script);
    }

    /// Continues until a statement is sent.
    fn go_on(&mut self, session: &mut dyn SqlSession) -> Result<Step, Fault> {
        let config = Arc::clone(&self.config);
        let program = &config.program;
        let script = &program.scripts[self.script];
        let mut pipeline = false;
        loop {
            let Some(command) = script.commands.get(self.at) else { return Ok(Step::Ended) };
            if self.leaves_out(&command.action) {
                self.at += 1;
                continue;
            }
            let wrong = |problem: String| {
                let place = command.place;
                Fault::Wrong(format!("{}, line {}, column {}: {problem}", script.name, place.line, place.column))
            };
            let mut evaluation = Evaluation { variables: &self.variables, random: &mut self.random, debugged: None };
            match &command.action {
                Action::Set(variable, expression) => {
                    let value = evaluation.value(expression).map_err(wrong)?;
                    self.variables.put(*variable, value);
                }
                Action::If(expression, otherwise) => {
                    if !evaluation.value(expression).map_err(wrong)?.holds() {
                        self.at = *otherwise;
                        continue;
                    }
                }
                Action::Jump(to) => {
                    self.at = *to;
                    continue;
                }
                Action::Sleep(duration) => {
                    let amount = match duration.amount {
                        Amount::Constant(amount) => amount,
                        Amount::Variable(number) => {
                            let value = self.variables.value(number).and_then(|value| value.integer());
                            value.map_err(wrong)?.try_into().unwrap_or(0)
                        }
                    };
                    let sleep_us = amount.saturating_mul(duration.unit_us);
                    if sleep_us > LONGEST_SLEEP_US {
                        return Err(wrong(format!("a sleep is longer than {} s", LONGEST_SLEEP_US / 1_000_000)));
                    }
                    thread::sleep(Duration::from_micros(sleep_us));
                }
                Action::StartPipeline => {
                    session.begin_pipeline();
                    pipeline = true;
                }
                Action::EndPipeline => {
                    self.answer.expect(&Keep::Nothing, &[]);
                    session.end_pipeline()?;
                    return Ok(Step::Sent);
                }
                Action::Sql(sql) => {
                    self.send(session, sql).map_err(|fault| match fault {
                        Fault::Wrong(problem) => wrong(problem),
                        fault => fault,
                    })?;
                    self.statements += 1;
                    if !pipeline {
                        return Ok(Step::Sent);
                    }
                }
            }
            self.at += 1;
        }
    }

    /// Sends a statement, or its next part.
    fn send(&mut self, session: &mut dyn SqlSession, sql: &Sql) -> Result<(), Fault> {
        let wrong = |problem| Fault::Wrong(problem);
        match self.config.program.protocol {
            Protocol::Simple if sql.parts.len() > 1 && session.offers().combined => {
                self.scratch.clear();
                for (number, part) in sql.parts.iter().enumerate() {
                    part.fill(&self.variables, &mut self.text).map_err(wrong)?;
                    self.scratch.push_str(if number == 0 { "" } else { ";" });
                    self.scratch.push_str(&self.text);
                }
                self.part = sql.parts.len() - 1;
                self.answer.expect(&sql.rows, &[]);
                session.submit_text(&self.scratch)
            }
            Protocol::Simple => {
                sql.parts[self.part].fill(&self.variables, &mut self.text).map_err(wrong)?;
                self.answer.expect(&self.keep(sql), &[]);
                session.submit_text(&self.text)
            }
            Protocol::Extended | Protocol::Prepared => {
                let keep = self.keep(sql);
                let ready = &mut self.prepared[self.script][self.at][self.part];
                if self.config.program.protocol == Protocol::Prepared && ready.statement.is_none() {
                    prepare(session, ready)?;
                }
                self.answer.expect(&keep, &ready.columns);
                let ready = &*ready;
                with_parameters(&sql.parts[self.part], &self.variables, &mut self.scratch, |parameters| {
                    match ready.statement {
                        Some(statement) => session.submit(statement, parameters),
                        None => session.submit_once(&ready.text, parameters),
                    }
                })
            }
        }
    }

    /// The use of the current part's rows.
    fn keep(&self, sql: &Sql) -> Keep {
        match &sql.rows {
            Keep::Last(_) if self.part + 1 < sql.parts.len() => Keep::Nothing,
            keep => keep.clone(),
        }
    }

    /// Records the statement whose answer is complete, and goes to the next.
    fn answered(&mut self) -> Result<Option<usize>, String> {
        let command = &self.config.program.scripts[self.script].commands[self.at];
        let operation = self.config.program.recorded[self.script][self.at];
        let parts = match &command.action {
            Action::Sql(sql) => sql.parts.len(),
            _ => 1,
        };
        self.answer.store(&mut self.variables)?;
        if let Some(observer) = &mut self.observer {
            observer.answered(operation);
        }
        self.part += 1;
        if self.part < parts {
            return Ok(None);
        }
        self.part = 0;
        self.at += 1;
        Ok(operation)
    }

    /// Ends the failed transaction: at once, or after its rollback.
    fn fail(&mut self, session: &mut dyn SqlSession, fault: Option<Fault>) -> Result<Progress, Fault> {
        self.state = State::RollingBack(fault);
        if session.in_transaction() {
            self.answer.expect(&Keep::Nothing, &[]);
            session.submit_text("ROLLBACK")?;
            return Ok(Progress::Pending);
        }
        self.rolled_back(session)
    }

    /// Continues after the rollback.
    fn rolled_back(&mut self, session: &mut dyn SqlSession) -> Result<Progress, Fault> {
        if let State::RollingBack(Some(fault)) = std::mem::replace(&mut self.state, State::Script) {
            return Err(fault);
        }
        self.tries += 1;
        self.random = self.at_begin.clone();
        self.begin();
        self.resume(session)
    }

    /// Sends the next statement, or ends the transaction.
    fn resume(&mut self, session: &mut dyn SqlSession) -> Result<Progress, Fault> {
        match self.go_on(session) {
            Ok(Step::Sent) => Ok(Progress::Pending),
            Ok(Step::Ended) if session.in_transaction() && self.observer.is_none() => {
                let name = &self.config.program.scripts[self.script].name;
                let problem = "end of script reached without completing the last transaction: write COMMIT";
                let fault = Fault::Wrong(format!("{name}: {problem}"));
                self.fail(session, Some(fault))
            }
            Ok(Step::Ended) => Ok(Progress::Done(1)),
            Err(fault @ (Fault::Wrong(_) | Fault::Server(_))) => self.fail(session, Some(fault)),
            Err(fault) => Err(fault),
        }
    }

    /// One step of [`Client::advance`]: reads an answer and sends the next request.
    fn step(&mut self, session: &mut dyn SqlSession, parts: &mut dyn PartRecorder) -> Result<Went, Fault> {
        let taken = match &mut self.observer {
            None => session.advance(&mut self.answer),
            Some(observer) => session.advance(&mut Observed { answer: &mut self.answer, observer }),
        };
        let progress = match (taken, &self.state) {
            (Ok(Progress::Pending), _) => return Ok(Went::Wait),
            (Ok(Progress::Done(_)), State::RollingBack(_)) => {
                self.note_retry(parts);
                self.rolled_back(session)?
            }
            (Err(Fault::Server(_)), State::RollingBack(_)) => {
                return Err(Fault::Connection("the server does not roll a transaction back".to_owned()));
            }
            (Ok(Progress::Done(_)), State::Script) if self.at >= self.commands() => Progress::Done(1),
            (Ok(Progress::Done(_)), State::Script) => match self.answered() {
                Ok(operation) => {
                    if let Some(operation) = operation {
                        parts.part(operation);
                    }
                    self.resume(session)?
                }
                Err(problem) => {
                    let script = &self.config.program.scripts[self.script];
                    let line = script.commands[self.at].place.line;
                    let fault = Fault::Wrong(format!("{}, line {line}: {problem}", script.name));
                    self.fail(session, Some(fault))?
                }
            },
            (Err(Fault::Server(text)), State::Script) => {
                let max_tries = self.config.program.transactions.max_tries;
                let again = (max_tries == 0 || self.tries < max_tries) && (session.dialect().is_conflict)(&text);
                if again && !session.in_transaction() {
                    self.note_retry_now(parts);
                }
                self.fail(session, (!again).then_some(Fault::Server(text)))?
            }
            (Err(fault), _) => return Err(fault),
        };
        Ok(match progress {
            Progress::Pending => Went::Sent,
            Progress::Done(_) => Went::Ended,
        })
    }

    fn commands(&self) -> usize {
        self.config.program.scripts[self.script].commands.len()
    }

    fn note_retry(&self, parts: &mut dyn PartRecorder) {
        if matches!(self.state, State::RollingBack(None)) {
            self.note_retry_now(parts);
        }
    }

    fn note_retry_now(&self, parts: &mut dyn PartRecorder) {
        parts.part(self.config.program.operations.len() - 1);
    }
}

/// The result of a step.
enum Went {
    /// The answer is not complete.
    Wait,
    /// The next statement was sent.
    Sent,
    /// The transaction is over.
    Ended,
}

fn prepare(session: &mut dyn SqlSession, ready: &mut Ready) -> Result<(), Fault> {
    let prepared = session.prepare_text(&ready.text)?;
    (ready.statement, ready.columns) = (Some(prepared.statement), prepared.columns);
    Ok(())
}

impl Client for ScriptClient {
    fn set_number(&mut self, number: u64) {
        if !self
            .config
            .program
            .defined
            .iter()
            .any(|(defined, _)| self.config.program.names.name(*defined) == "client_id")
        {
            self.variables.put_named("client_id", Value::Integer(number as i64));
        }
    }

    fn open(&mut self, session: &mut Session) -> Result<(), Fault> {
        let session = session.sql()?;
        let program = &self.config.program;
        if program.protocol == Protocol::Extended && !session.offers().extended {
            let words = "this product has no request with a text and parameters: write `protocol = \"prepared\"`";
            return Err(Fault::Refused(words.to_owned()));
        }
        if program.pipelines() && !session.offers().pipelines {
            let words = "this product has no pipelines: take \\startpipeline and \\endpipeline out of the script";
            return Err(Fault::Refused(words.to_owned()));
        }
        let placeholder = session.dialect().placeholder;
        let parts = |action: &Action| match action {
            Action::Sql(sql) => sql.parts.iter().map(|part| part.parametrised(placeholder)).collect(),
            _ => Vec::new(),
        };
        self.prepared.clear();
        for script in &program.scripts {
            let mut of_script = Vec::new();
            for command in &script.commands {
                let mut of_command = Vec::new();
                for text in parts(&command.action) {
                    let mut ready = Ready { text, ..Ready::default() };
                    if program.protocol == Protocol::Prepared {
                        // A statement that cannot be prepared yet is tried again in its turn.
                        match prepare(session, &mut ready) {
                            Ok(()) | Err(Fault::Server(_)) => {}
                            Err(fault) => return Err(fault),
                        }
                    }
                    of_command.push(ready);
                }
                of_script.push(of_command);
            }
            self.prepared.push(of_script);
        }
        Ok(())
    }

    /// Settings that a function, a procedure or a block has changed. The guard refuses statements that do so.
    fn lasting_change(&mut self, session: &mut Session) -> Result<Option<String>, Fault> {
        let session = session.sql()?;
        let (query, changing) = session.dialect().settings;
        if query.is_empty() || self.config.built_in_scale.is_some() {
            return Ok(None);
        }
        let read = rows::<2>(session, query)?.into_iter().map(|[name, value]| (name.to_ascii_lowercase(), value));
        let now: BTreeMap<_, _> = read.filter(|(name, _)| !changing.contains(&name.as_str())).collect();
        let Some(before) = self.settings.replace(now.clone()) else { return Ok(None) };
        let mut names = now.keys().chain(before.keys());
        let changed = names.find(|name| now.get(*name) != before.get(*name));
        Ok(changed.map(|name| {
            format!(
                "the script has changed the setting `{name}` of its session for every later transaction: write `SET LOCAL`, or \
                 set it for the account"
            )
        }))
    }

    fn seed(&mut self, seed: u64) {
        let mut base = Random::new(seed);
        self.random = base.fork();
        base.bits();
        self.choice = base.fork();
    }

    fn prepare(&mut self) {
        let scripts = &self.config.program.scripts;
        if scripts.len() > 1 {
            let total: i64 = scripts.iter().map(|script| i64::from(script.weight)).sum();
            let mut drawn = self.choice.uniform(0, total - 1);
            self.script = scripts
                .iter()
                .position(|script| {
                    drawn -= i64::from(script.weight);
                    drawn < 0
                })
                .unwrap_or(0);
        }
        self.at_begin = self.random.clone();
        self.tries = 1;
        self.begin();
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        if self.prepared.is_empty() {
            self.open(session)?;
        }
        let session = session.sql()?;
        match self.resume(session) {
            Ok(Progress::Pending) => Ok(()),
            Ok(Progress::Done(_)) => {
                self.answer.expect(&Keep::Nothing, &[]);
                session.submit_text(NOTHING)
            }
            Err(fault @ (Fault::Wrong(_) | Fault::Server(_))) => {
                // Only an answer can show that an operation failed.
                self.state = State::RollingBack(Some(fault));
                self.answer.expect(&Keep::Nothing, &[]);
                session.submit_text(NOTHING)
            }
            Err(fault) => Err(fault),
        }
    }

    fn advance(&mut self, session: &mut Session, parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        let session = session.sql()?;
        // An embedded database answers at once, so its transactions complete in one call.
        let at_once = session.descriptor().is_none();
        loop {
            match self.step(session, parts)? {
                Went::Wait => return Ok(Progress::Pending),
                Went::Sent if at_once => {}
                Went::Sent => return Ok(Progress::Pending),
                Went::Ended => return Ok(Progress::Done(1)),
            }
        }
    }

    fn statements(&self) -> u64 {
        self.statements
    }

    fn operation(&self) -> usize {
        self.script
    }
}

#[cfg(test)]
mod tests;
