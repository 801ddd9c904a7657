//! The replayed part of a log: its transactions in memory, by session.

use std::{collections::HashMap, ops::Range};

use tithe_plugin::session::Parameter;

use super::entry::Sent;

/// Transactions that can be replayed. Texts are stored once, values one after the other.
#[derive(Debug, Default)]
pub struct Recording {
    /// Texts of statements.
    pub texts: Vec<String>,
    /// Kinds of transactions, by descending time; all others are one kind, the last.
    pub classes: Vec<Class>,
    /// Kinds of statements, by descending time; all others are one kind, the last.
    pub digests: Vec<Class>,
    /// The kind of statement of each text.
    pub digest_of: Vec<usize>,
    /// The transactions, session by session, in the order of each session.
    pub transactions: Vec<Transaction>,
    /// The range of each session's transactions.
    pub sessions: Vec<Range<usize>>,
    /// The log's records have times, so that it is known which sessions were there at once.
    pub has_times: bool,
    pub(super) statements: Vec<Step>,
    pub(super) values: Vec<Option<Range<usize>>>,
    pub(super) bytes: String,
    /// Bytes of all texts.
    pub(super) text_bytes: usize,
    /// Numbers of texts.
    pub(super) numbers: HashMap<String, usize>,
}

/// Transactions with the same statements, or statements with the same text, ignoring their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// The shapes of its statements.
    pub text: String,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its kind, by number.
    pub class: usize,
    /// Its session, by number.
    pub session: usize,
    /// When it began, µs of the log's clock; 0 if the log has no times.
    pub start_us: i64,
    /// When it ended, µs.
    pub end_us: i64,
    /// True if `BEGIN` has to be added, because its session begins transactions implicitly.
    pub begins: bool,
    pub(super) statements: Range<usize>,
}

/// A statement of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The number of its text.
    pub text: usize,
    /// How it was sent.
    pub sent: Sent,
    /// True if it ends the transaction.
    pub ends: bool,
    /// True if it is a whole transaction in one text.
    pub whole: bool,
    pub(super) values: Range<usize>,
}

impl Recording {
    /// All kinds: those of transactions, then those of statements.
    pub fn kinds(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter().chain(&self.digests)
    }

    /// The number among all [kinds](Self::kinds) of statements with the text of this number; with `None`, of statements
    /// that are not in the log.
    pub fn statement_kind(&self, text: Option<usize>) -> usize {
        let digest = text.map_or(self.digests.len() - 1, |text| self.digest_of[text]);
        self.classes.len() + digest
    }

    /// The statements of `transaction`.
    pub fn steps(&self, transaction: &Transaction) -> &[Step] {
        &self.statements[transaction.statements.clone()]
    }

    /// The parameters of `step`.
    pub fn parameters<'r>(&'r self, step: &Step) -> impl Iterator<Item = Parameter<'r>> {
        self.values(step).map(|value| value.map_or(Parameter::Null, |it| Parameter::Text(it.as_bytes())))
    }

    /// The values of the parameters of `step`.
    pub fn values<'r>(&'r self, step: &Step) -> impl ExactSizeIterator<Item = Option<&'r str>> {
        self.values[step.values.clone()].iter().map(|value| value.clone().map(|range| &self.bytes[range]))
    }

    /// The number of `text`, which is stored.
    pub(super) fn number_of(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.text_bytes += text.len();
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.texts.len() - 1);
        self.texts.len() - 1
    }

    /// Stores a value; stores nothing for NULL.
    pub(super) fn keep(&mut self, value: Option<&str>) {
        let kept = value.map(|value| {
            let start = self.bytes.len();
            self.bytes.push_str(value);
            start..self.bytes.len()
        });
        self.values.push(kept);
    }

    /// Groups the transactions by session, in the order in which they began.
    pub(super) fn sort(&mut self) {
        // Within a session they were added in that order.
        self.transactions.sort_by_key(|transaction| transaction.session);
        let mut start = 0;
        for chunk in self.transactions.chunk_by(|one, other| one.session == other.session) {
            self.sessions.push(start..start + chunk.len());
            start += chunk.len();
        }
        self.numbers = HashMap::new();
    }

    /// Assigns sessions to seats, so that no two of one seat overlap: as many seats as concurrent sessions. Sessions
    /// are assigned in the order in which they began.
    pub fn seats(&self) -> Vec<Vec<usize>> {
        let span = |session: usize| {
            let transactions = &self.transactions[self.sessions[session].clone()];
            let ends = transactions.iter().map(|transaction| transaction.end_us).max().unwrap_or(0);
            (transactions.first().map_or(0, |first| first.start_us), ends)
        };
        let mut order: Vec<usize> = (0..self.sessions.len()).collect();
        order.sort_by_key(|&session| span(session).0);
        let mut seats: Vec<(i64, Vec<usize>)> = Vec::new();
        for session in order {
            let (start, end) = span(session);
            match seats.iter_mut().find(|(free, _)| *free <= start) {
                Some((free, sessions)) => {
                    *free = end;
                    sessions.push(session);
                }
                None => seats.push((end, vec![session])),
            }
        }
        seats.into_iter().map(|(_, sessions)| sessions).collect()
    }
}
