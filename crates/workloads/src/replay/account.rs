//! Which part of a log is replayed and which is not, by reason, as a share of the logged time.

use std::collections::BTreeMap;

use super::sql::Kind;

/// Why a transaction of a log is not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The values of parameters are not in the log.
    NoParameters,
    /// The log has only the beginning of a text or a value.
    Cut,
    /// It defines or maintains tables, accounts, the server, or reaches others.
    Defines,
    /// The rows that it copies are not in the log.
    Copies,
    /// It changes the state of its session, which would affect later slots.
    SessionState,
    /// It failed.
    Failed,
    /// One text contains statements and ends of transactions, or it prepares a two-phase commit.
    Several,
    /// Its beginning is not in the log.
    NoBegin,
    /// Its end is not in the log.
    NoEnd,
    /// It belongs to another database than the replayed one.
    OtherDatabase,
    /// It does not fit into the memory limit of a replay.
    NoMemory,
}

impl Reason {
    /// Why a statement of `kind` prevents the replay of its transaction.
    pub fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Defines => Some(Self::Defines),
            Kind::Copies => Some(Self::Copies),
            Kind::SessionState | Kind::Implicit(_) => Some(Self::SessionState),
            Kind::Several => Some(Self::Several),
            Kind::Begin | Kind::End | Kind::Whole | Kind::Reads | Kind::Writes | Kind::Nothing => None,
        }
    }

    /// Its text in the report.
    pub fn text(self) -> &'static str {
        match self {
            Self::NoParameters => "values of parameters are not in the log",
            Self::Cut => "texts or values are cut in the log",
            Self::Defines => "defines or maintains tables, accounts or the server",
            Self::Copies => "copies rows that are not in the log",
            Self::SessionState => "sets something in its session",
            Self::Failed => "failed when it was logged",
            Self::Several => "several statements in one text, or two phases",
            Self::NoBegin => "its beginning is not in the log",
            Self::NoEnd => "its end is not in the log",
            Self::OtherDatabase => "another database",
            Self::NoMemory => "more than `memory` holds",
        }
    }
}

/// An amount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions.
    pub transactions: u64,
    /// Statements of them.
    pub statements: u64,
    /// Their time, ns.
    pub ns: u64,
    /// The line of the first.
    pub first_line: u64,
}

impl Tally {
    /// Adds a transaction.
    pub fn add(&mut self, statements: u64, ns: u64, line: u64) {
        if self.transactions == 0 {
            self.first_line = line;
        }
        self.transactions += 1;
        self.statements += statements;
        self.ns = self.ns.saturating_add(ns);
    }
}

/// The replayed and the omitted part of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The replayed part.
    pub replayed: Tally,
    /// The omitted part, by reason.
    pub left_out: BTreeMap<Reason, Tally>,
    /// The line of the record that the log ends in.
    pub cut_at: Option<u64>,
}

impl Account {
    /// True if the log has durations of statements.
    fn has_durations(&self) -> bool {
        self.all().any(|tally| tally.ns > 0)
    }

    /// Everything, replayed or not.
    fn all(&self) -> impl Iterator<Item = &Tally> {
        self.left_out.values().chain([&self.replayed])
    }

    /// The share of `tally` in all: of time, or of statements if the log has no durations. Percent.
    pub fn share(&self, tally: &Tally) -> f64 {
        let size = |tally: &Tally| if self.has_durations() { tally.ns } else { tally.statements };
        let all = self.all().map(size).fold(0, u64::saturating_add);
        if all == 0 { 0.0 } else { size(tally) as f64 / all as f64 * 100.0 }
    }

    /// Lines of a report: the replayed part, and each reason for omissions, the largest first.
    pub fn lines(&self) -> Vec<(String, String)> {
        let of = if self.has_durations() {
            "of the logged time"
        } else {
            "of the logged statements (the log has no durations)"
        };
        let some = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let said = |tally: &Tally| {
            let (transactions, statements) = (tally.transactions, tally.statements);
            let many = format!("{}, {}", some(transactions, "transaction"), some(statements, "statement"));
            format!("{:.1} % {of}: {many}", self.share(tally))
        };
        let mut reasons: Vec<(&Reason, &Tally)> = self.left_out.iter().collect();
        reasons.sort_by(|(_, one), (_, other)| self.share(other).total_cmp(&self.share(one)));
        let mut lines = vec![("replayed".to_owned(), said(&self.replayed))];
        lines.extend(reasons.into_iter().map(|(reason, tally)| {
            let value = format!("{}, {}, the first in line {}", reason.text(), said(tally), tally.first_line);
            ("not replayed".to_owned(), value)
        }));
        let cut = self.cut_at.map(|line| format!("in the middle of the record in line {line}"));
        lines.extend(cut.map(|value| ("the log ends".to_owned(), value)));
        lines
    }
}
