//! Collects entries into transactions by session, one entry at a time.

use std::collections::{BTreeMap, HashMap};

use super::{
    account::{Account, Reason},
    entry::{Entry, Event, Logged, Problem, Sent, Values},
    names::name,
    recording::{Class, Recording, Step, Transaction},
    sql::{Flavour, Kind, kind, shape},
};

/// Kinds of transactions that are counted separately; all others are counted as one kind.
const CLASSES: usize = 12;

/// Kinds of statements that are timed separately; all others are timed as one kind.
const DIGESTS: usize = 24;

/// Prefix of the names of kinds of statements.
pub const DIGEST: &str = "log:";

/// Kinds that are counted before those with the most time are chosen.
const COUNTED: usize = 10_000;

/// After this many sessions, those without an open transaction are removed: a log may not show when sessions end.
const SESSIONS: usize = 10_000;

/// How far a log's clock may go back, µs: records of a busy server are not fully in order, and summer time ends.
const BACK_US: i64 = 2 * 3_600_000_000;

/// Options of gathering.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The selected database; `None` for any, if there is only one.
    pub database: Option<String>,
    /// Memory limit of the recording, bytes.
    pub memory: u64,
    /// True if each transaction is rolled back, which is impossible for a whole transaction in one text.
    pub undoes: bool,
}

/// Gathers the transactions of a log.
pub struct Gather {
    choice: Choice,
    flavour: Flavour,
    sessions: HashMap<String, Session>,
    /// Sessions so far.
    count: usize,
    recording: Recording,
    account: Account,
    /// Shapes of transactions.
    classes: Counted,
    /// Shapes of statements.
    digests: Counted,
    /// Statements by database.
    databases: BTreeMap<String, u64>,
    latest: Option<(i64, u64)>,
    /// Plans so far.
    plans: u64,
}

/// Kinds by their shape, and the time of each.
#[derive(Default)]
struct Counted {
    numbers: HashMap<String, usize>,
    /// Nanoseconds, and number of occurrences.
    took: Vec<(u64, u64)>,
}

impl Counted {
    /// Counts one of this shape with the time `ns`; returns the kind's number, `usize::MAX` if there are too many.
    fn add(&mut self, shape: String, ns: u64) -> usize {
        let kinds = self.took.len();
        let number = match self.numbers.get(&shape) {
            Some(number) => *number,
            None if kinds >= COUNTED => return usize::MAX,
            None => {
                self.took.push((0, 0));
                self.numbers.insert(shape, kinds);
                kinds
            }
        };
        let (all_ns, count) = &mut self.took[number];
        (*all_ns, *count) = (all_ns.saturating_add(ns), *count + 1);
        number
    }

    /// The shapes of the `most` kinds with the most time, sorted by it, and for each kind its place among them.
    fn ranked(self, most: usize) -> (Vec<String>, Vec<usize>) {
        let mut texts = vec![String::new(); self.took.len()];
        self.numbers.into_iter().for_each(|(text, number)| texts[number] = text);
        let mut order: Vec<usize> = (0..self.took.len()).collect();
        order.sort_by_key(|&kind| (std::cmp::Reverse(self.took[kind]), kind));
        order.truncate(most);
        let mut places = vec![order.len(); self.took.len()];
        order.iter().enumerate().for_each(|(place, &kind)| places[kind] = place);
        (order.into_iter().map(|kind| std::mem::take(&mut texts[kind])).collect(), places)
    }
}

#[derive(Default)]
struct Session {
    number: usize,
    database: String,
    /// A statement whose duration may follow.
    pending: Option<Pending>,
    /// Time of preparing the next statement, ns.
    aside_ns: u64,
    open: Option<Open>,
    /// True if transactions begin implicitly.
    implicit: bool,
}

struct Pending {
    line: u64,
    at_us: Option<i64>,
    logged: Logged,
}

/// A transaction that has not ended.
struct Open {
    line: u64,
    start_us: i64,
    end_us: i64,
    ns: u64,
    /// Statements so far.
    count: u64,
    /// Bytes of them.
    bytes: u64,
    /// The statements, as long as the transaction can be replayed.
    steps: Vec<(Logged, Kind)>,
    reason: Option<Reason>,
    begins: bool,
}

impl Open {
    fn new(pending: &Pending, begins: bool) -> Self {
        let start_us = pending.at_us.unwrap_or(0);
        Self {
            line: pending.line,
            start_us,
            end_us: start_us,
            ns: 0,
            count: 0,
            bytes: 0,
            steps: Vec::new(),
            reason: None,
            begins,
        }
    }

    /// Adds a statement; `memory` is the limit for a transaction, bytes.
    fn push(&mut self, pending: Pending, kind: Kind, memory: u64) {
        let Pending { at_us, logged, .. } = pending;
        let took_ns = logged.duration_ns.unwrap_or(0);
        self.ns = self.ns.saturating_add(took_ns);
        // A clock of whole seconds does not show the duration of statements.
        let took_us = |ns: u64| (ns / 1000) as i64;
        let (from_first, from_last) = (self.start_us + took_us(self.ns), at_us.unwrap_or(0) + took_us(took_ns));
        self.end_us = self.end_us.max(from_first).max(from_last);
        let reason = match logged.values {
            Values::Absent => Some(Reason::NoParameters),
            Values::Cut => Some(Reason::Cut),
            Values::InText | Values::Known(_) => Reason::of(kind),
        };
        self.count += 1;
        let values: usize = match &logged.values {
            Values::Known(values) => values.iter().flatten().map(String::len).sum(),
            _ => 0,
        };
        self.bytes += (logged.sql.len() + values + size_of::<Logged>()) as u64;
        let too_large = || (self.bytes > memory).then_some(Reason::NoMemory);
        self.reason = self.reason.or(reason).or_else(too_large);
        match self.reason {
            Some(_) => self.steps = Vec::new(),
            None => self.steps.push((logged, kind)),
        }
    }
}

impl Gather {
    /// Gathers a log of `flavour` according to `choice`.
    pub fn new(choice: Choice, flavour: Flavour) -> Self {
        Self {
            choice,
            flavour,
            sessions: HashMap::new(),
            count: 0,
            recording: Recording::default(),
            account: Account::default(),
            classes: Counted::default(),
            digests: Counted::default(),
            databases: BTreeMap::new(),
            latest: None,
            plans: 0,
        }
    }

    /// Takes the next entry.
    ///
    /// # Errors
    /// An entry that cannot come from the same server as the earlier ones.
    pub fn take(&mut self, entry: Entry) -> Result<(), Problem> {
        self.follows(&entry)?;
        let Entry { line, session: name, database, at_us, event } = entry;
        let mut session = match self.sessions.remove(&name) {
            Some(session) => session,
            None => {
                self.count += 1;
                if self.count.is_multiple_of(SESSIONS) {
                    self.forget_sessions();
                }
                Session { number: self.count - 1, ..Session::default() }
            }
        };
        if !database.is_empty() && session.database != database {
            // A statement whose duration might have followed ran in the database before.
            if let Some(pending) = session.pending.take() {
                self.ran(&mut session, pending);
            }
            session.database = database;
        }
        match event {
            Event::Statement(logged) => {
                let pending = Pending { line, at_us, logged };
                self.statement(&mut session, pending);
            }
            Event::Duration(ns) => match session.pending.take() {
                Some(mut pending) => {
                    pending.logged.duration_ns = Some(ns.saturating_add(std::mem::take(&mut session.aside_ns)));
                    self.ran(&mut session, pending);
                }
                None => session.aside_ns = session.aside_ns.saturating_add(ns),
            },
            Event::Aside(ns) => session.aside_ns = session.aside_ns.saturating_add(ns),
            Event::Plan => self.plans += 1,
            Event::Failed(statement) => self.failed(&mut session, line, statement.as_deref()),
            Event::Begins | Event::Ends => {
                // A change of database or user ends nothing that a replay depends on.
                if let Some(pending) = session.pending.take() {
                    self.ran(&mut session, pending);
                }
                if event == Event::Ends {
                    self.end_of(session);
                    return Ok(());
                }
            }
        }
        self.sessions.insert(name, session);
        Ok(())
    }

    /// Removes sessions without an open transaction, if each record fully identifies its session: a session that occurs
    /// again is then a new one.
    fn forget_sessions(&mut self) {
        if self.flavour == Flavour::Postgres {
            self.sessions.retain(|_, it| it.implicit || it.open.is_some() || it.pending.is_some());
        }
    }

    /// Checks whether `entry` can follow the earlier ones.
    fn follows(&mut self, entry: &Entry) -> Result<(), Problem> {
        let Some(at_us) = entry.at_us else { return Ok(()) };
        match self.latest {
            Some((latest, line)) if at_us < latest - BACK_US && entry.event != Event::Begins => {
                // The start of a statement is its record's time minus its duration.
                let took_us = match &entry.event {
                    Event::Statement(logged) => logged.duration_ns.unwrap_or(0) / 1000,
                    _ => 0,
                };
                if at_us.saturating_add_unsigned(took_us) < latest - BACK_US {
                    let hours = (latest - at_us) as f64 / 3.6e9;
                    return Err(Problem::new(
                        entry.line,
                        format!(
                            "was written {hours:.1} h before line {line}: the log is of two servers, or out of order"
                        ),
                        "give the log of one server, its files in the order of time",
                    ));
                }
            }
            Some((latest, _)) if at_us <= latest => {}
            _ => self.latest = Some((at_us, entry.line)),
        }
        Ok(())
    }

    /// A statement: unless its duration is there, only the next record of its session shows whether it ran.
    fn statement(&mut self, session: &mut Session, mut pending: Pending) {
        if let Some(before) = session.pending.take() {
            // pgaudit's record and the server's own may be about one statement. For several statements in one text
            // pgaudit writes one record each, with the whole text. For several tables it may write several records,
            // with one number.
            let (one, other) = (&before.logged, &pending.logged);
            let is_one = one.number.is_some() && one.number == other.number;
            let several = || one.sql.trim_end_matches(';').contains(';');
            let is_same = one.sql == other.sql && (one.audited != other.audited || is_one || one.audited && several());
            if !is_same {
                self.ran(session, before);
            } else if pending.logged.audited {
                pending = before;
            }
        }
        if let Some(ns) = &mut pending.logged.duration_ns {
            *ns = ns.saturating_add(std::mem::take(&mut session.aside_ns));
            self.ran(session, pending);
        } else {
            session.pending = Some(pending);
        }
    }

    fn failed(&mut self, session: &mut Session, line: u64, statement: Option<&str>) {
        session.aside_ns = 0;
        match session.pending.take() {
            Some(pending) if statement.is_none_or(|statement| statement == pending.logged.sql) => {
                self.add(session, pending, Some(Reason::Failed));
            }
            before => {
                if let Some(before) = before {
                    self.ran(session, before);
                }
                match &mut session.open {
                    Some(open) => open.reason = Some(Reason::Failed),
                    None if statement.is_some() => self.leave_out(Reason::Failed, 1, 0, line),
                    None => {}
                }
            }
        }
    }

    fn ran(&mut self, session: &mut Session, pending: Pending) {
        self.add(session, pending, None);
    }

    fn add(&mut self, session: &mut Session, pending: Pending, reason: Option<Reason>) {
        *self.databases.entry(session.database.clone()).or_default() += 1;
        let (kind, memory) = (kind(&pending.logged.sql, self.flavour), self.choice.memory);
        let mark = |open: &mut Open| open.reason = reason.or(open.reason);
        match kind {
            Kind::Nothing => {}
            Kind::Begin => {
                self.close(session, Some(Reason::NoEnd));
                let mut open = Open::new(&pending, false);
                open.push(pending, kind, memory);
                mark(&mut open);
                session.open = Some(open);
            }
            Kind::End => match &mut session.open {
                Some(open) => {
                    open.push(pending, kind, memory);
                    mark(open);
                    self.close(session, None);
                }
                // MySQL's clients may end transactions that they have not begun.
                None if session.implicit => {}
                None => self.leave_out(Reason::NoBegin, 1, pending.logged.duration_ns.unwrap_or(0), pending.line),
            },
            Kind::Implicit(implicit) => {
                // The change back commits what is open.
                if session.implicit
                    && !implicit
                    && let Some(open) = &mut session.open
                {
                    let Pending { line, at_us, .. } = pending;
                    open.push(Pending { line, at_us, logged: Logged::commit() }, Kind::End, memory);
                    self.close(session, None);
                }
                session.implicit = implicit;
                self.leave_out(Reason::SessionState, 1, pending.logged.duration_ns.unwrap_or(0), pending.line);
            }
            _ => match &mut session.open {
                Some(open) => {
                    open.push(pending, kind, memory);
                    mark(open);
                }
                None => {
                    let in_transaction = session.implicit && matches!(kind, Kind::Reads | Kind::Writes);
                    let mut open = Open::new(&pending, in_transaction);
                    open.push(pending, kind, memory);
                    mark(&mut open);
                    session.open = Some(open);
                    if !in_transaction {
                        self.close(session, None);
                    }
                }
            },
        }
    }

    /// Ends the transaction of `session`: it is replayed, or omitted for a reason.
    fn close(&mut self, session: &mut Session, reason: Option<Reason>) {
        let Some(open) = session.open.take() else { return };
        let other = self.choice.database.as_ref().is_some_and(|database| *database != session.database);
        let reason = if other { Some(Reason::OtherDatabase) } else { open.reason.or(reason) };
        let is_whole = || self.choice.undoes && open.steps.iter().any(|(_, kind)| *kind == Kind::Whole);
        let reason = reason.or_else(|| is_whole().then_some(Reason::Several));
        let reason = reason.or_else(|| (self.size() > self.choice.memory).then_some(Reason::NoMemory));
        let count = open.count;
        match reason {
            Some(reason) => self.leave_out(reason, count, open.ns, open.line),
            None => {
                self.account.replayed.add(count, open.ns, open.line);
                self.keep(open, session.number);
            }
        }
    }

    fn leave_out(&mut self, reason: Reason, statements: u64, ns: u64, line: u64) {
        self.account.left_out.entry(reason).or_default().add(statements, ns, line);
    }

    /// Approximate size of the recording, bytes.
    fn size(&self) -> u64 {
        let recording = &self.recording;
        let texts: usize = recording.texts.len() * 64 + self.recording.text_bytes * 2;
        let rows =
            recording.statements.len() * size_of::<Step>() + recording.transactions.len() * size_of::<Transaction>();
        (texts + rows + recording.bytes.len() + recording.values.len() * 24) as u64
    }

    fn keep(&mut self, open: Open, session: usize) {
        let shapes: Vec<String> = open.steps.iter().map(|(logged, _)| shape(&logged.sql, self.flavour)).collect();
        let class = self.classes.add(shapes.join("; "), open.ns);
        let first = self.recording.statements.len();
        for ((logged, kind), shape) in open.steps.iter().zip(shapes) {
            let digest = self.digests.add(shape, logged.duration_ns.unwrap_or(0));
            let text = self.recording.number_of(&logged.sql);
            if text == self.recording.digest_of.len() {
                self.recording.digest_of.push(digest);
            }
            let start = self.recording.values.len();
            let sent = match &logged.values {
                Values::Known(values) => {
                    values.iter().for_each(|value| self.recording.keep(value.as_deref()));
                    logged.sent
                }
                _ => {
                    if logged.sent == Sent::Prepared {
                        Sent::Prepared
                    } else {
                        Sent::Text
                    }
                }
            };
            let values = start..self.recording.values.len();
            let (ends, whole) = (*kind == Kind::End, *kind == Kind::Whole);
            self.recording.statements.push(Step { text, sent, ends, whole, values });
        }
        let statements = first..self.recording.statements.len();
        let Open { start_us, end_us, begins, .. } = open;
        self.recording.transactions.push(Transaction { class, session, start_us, end_us, begins, statements });
    }

    fn end_of(&mut self, mut session: Session) {
        if let Some(pending) = session.pending.take() {
            self.ran(&mut session, pending);
        }
        // A transaction ends with its session.
        self.close(&mut session, Some(Reason::NoEnd));
    }

    /// The recording of a complete log; `cut_at` is the line of the incomplete record.
    ///
    /// # Errors
    /// A log without statements, one with nothing to replay, several databases without a selection.
    pub fn finish(mut self, cut_at: Option<u64>) -> Result<(Recording, Account), Problem> {
        let mut sessions: Vec<Session> = std::mem::take(&mut self.sessions).into_values().collect();
        sessions.sort_by_key(|session| session.number);
        sessions.into_iter().for_each(|session| self.end_of(session));
        self.account.cut_at = cut_at;
        self.is_one_database()?;
        if self.recording.transactions.is_empty() {
            let lines: Vec<String> =
                self.account.lines().into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
            let help = "log every statement: PostgreSQL by log_min_duration_statement = 0 with lc_messages = C, MariaDB and \
                        MySQL by general_log, or slow_query_log with long_query_time = 0";
            let what = match self.account.left_out.is_empty() {
                true if self.plans > 0 => "the log has plans of auto_explain, and no statements".to_owned(),
                true => "the log has no statements".to_owned(),
                false => format!("the log has no transaction that can be replayed; {}", lines.join("; ")),
            };
            return Err(Problem::new(cut_at.unwrap_or(1), what, help));
        }
        self.name_classes();
        self.recording.has_times = self.latest.is_some();
        self.recording.sort();
        Ok((self.recording, self.account))
    }

    fn is_one_database(&self) -> Result<(), Problem> {
        let named: Vec<(&String, &u64)> = self.databases.iter().filter(|(name, _)| !name.is_empty()).collect();
        let told =
            named.iter().map(|(name, count)| format!("{name} ({count} statements)")).collect::<Vec<_>>().join(", ");
        match &self.choice.database {
            Some(chosen) if !named.is_empty() && named.iter().all(|(name, _)| *name != chosen) => Err(Problem::new(
                1,
                format!("the log has no statement in the database {chosen}: it has {told}"),
                "choose one that it has",
            )),
            None if named.len() > 1 => Err(Problem::new(
                1,
                format!("the log is of several databases: {told}"),
                format!(
                    "choose one: `database = {:?}`",
                    named.iter().max_by_key(|(_, count)| **count).map_or("", |(name, _)| name)
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Names the kinds of transactions and of statements with the most time, and combines all others.
    fn name_classes(&mut self) {
        let recording = &mut self.recording;
        let (texts, places) = std::mem::take(&mut self.classes).ranked(CLASSES);
        for text in texts {
            let name = name(&text, &recording.classes);
            recording.classes.push(Class { name, text });
        }
        let others = recording.classes.len();
        for transaction in &mut recording.transactions {
            transaction.class = places.get(transaction.class).copied().unwrap_or(others);
        }
        let other = |name: &str| Class { name: name.to_owned(), text: "all others".to_owned() };
        if recording.transactions.iter().any(|transaction| transaction.class == others) {
            recording.classes.push(other("OTHER"));
        }
        let (texts, places) = std::mem::take(&mut self.digests).ranked(DIGESTS);
        let named = (1..).zip(texts).map(|(number, text)| Class { name: format!("{DIGEST}{number}"), text });
        recording.digests = named.chain([other(&format!("{DIGEST}other"))]).collect();
        let others = recording.digests.len() - 1;
        recording.digest_of.iter_mut().for_each(|digest| *digest = places.get(*digest).copied().unwrap_or(others));
    }
}
