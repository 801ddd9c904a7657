//! What proves that a protection was on.
//!
//! A check looks at one arm and says what it saw. Whether that proves anything is decided here, once, for
//! all checks: it must be protected on the protected arm *and* exposed on the plain arm of the same cell.

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
    secret::Secret,
};
use tithe_model::record::{Role, Verdict};

use crate::{
    database::{Connect, Database},
    session::{Session, Table},
    setup::Setup,
};

/// A check. One file below `checks/` where several databases share it, else beside its database.
pub trait Check: Send + Sync {
    /// What it is, as data.
    fn entry(&self) -> CheckEntry;

    /// What must hold, one sentence without a full stop: `no field value of an encrypted column on disk`.
    fn claim(&self) -> String;

    /// Looks at the arm of `context`. Called outside measured slots; may write canaries, open connections, run
    /// statements.
    ///
    /// # Errors
    /// The fault on its way: it saw nothing then, see [`seen_by`].
    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault>;

    /// Begins to look at what other clients do there, until [`Watch::end`]; `None` where it has no such look.
    fn watch(&self, _context: &CheckContext<'_>) -> Option<Box<dyn Watch>> {
        None
    }

    /// True where it has something to say of a server at `address`: what can be asked of one that Tithe launched is
    /// not always what can be asked of an attached one.
    fn concerns(&self, _address: &Address) -> bool {
        true
    }

    /// True where it looks into files of the server, which are not seen from elsewhere.
    fn looks_into_files(&self) -> bool {
        false
    }

    /// Its name: [`CheckEntry::id`].
    fn id(&self) -> &'static str {
        self.entry().id
    }
}

/// A look at what other clients do on a server.
pub trait Watch {
    /// What it was checked for, one sentence without a full stop.
    fn claim(&self) -> String;

    /// What there was of it.
    ///
    /// # Errors
    /// The fault on its way: nothing can be said then.
    fn end(self: Box<Self>, context: &CheckContext<'_>) -> Result<Observation, Fault>;
}

/// What a check is.
#[derive(Debug, Clone, Copy)]
pub struct CheckEntry {
    /// Its name, unique among the checks of one arm: `disk-canary`.
    pub id: &'static str,
    /// Claim, needed or strengthening, or disclosure.
    pub role: Role,
    /// Where the positive control comes from.
    pub control: Control,
}

impl CheckEntry {
    /// A check that must hold for the arm to be proven, with the plain arm as its control.
    pub const fn claim(id: &'static str) -> Self {
        Self { id, role: Role::Claim, control: Control::PlainArm }
    }

    /// A check that only tells, with the plain arm as its control.
    pub const fn disclosure(id: &'static str) -> Self {
        Self { id, role: Role::Disclosure, control: Control::PlainArm }
    }

    /// The same with a control that the check plants itself.
    pub const fn own_control(self) -> Self {
        Self { control: Control::Own, ..self }
    }
}

/// A claim that adds to a proof and is not needed for one: [`Role::Strengthens`].
pub struct Strengthens<E>(pub E);

impl<E: Check> Check for Strengthens<E> {
    fn entry(&self) -> CheckEntry {
        CheckEntry { role: Role::Strengthens, ..self.0.entry() }
    }

    fn claim(&self) -> String {
        self.0.claim()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        self.0.observe(context)
    }

    fn watch(&self, context: &CheckContext<'_>) -> Option<Box<dyn Watch>> {
        self.0.watch(context)
    }

    fn concerns(&self, address: &Address) -> bool {
        self.0.concerns(address)
    }

    fn looks_into_files(&self) -> bool {
        self.0.looks_into_files()
    }
}

/// Where the positive control of a check comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The same look at the plain arm must find it exposed.
    PlainArm,
    /// The check plants its own control on the protected arm, and says [`Observation::Unknown`] when it does not see
    /// it.
    Own,
}

/// What a report says of the control where it is the check's own.
pub const OWN_CONTROL: &str = "the check wrote it itself";

/// One arm, as a check sees it.
pub struct CheckContext<'a> {
    /// The database.
    pub database: &'a dyn Database,
    /// The arm's server.
    pub server: &'a Server,
    /// The arm's set-up.
    pub setup: &'a Setup,
    /// The measured table.
    pub table: &'a Table,
    /// True for the protected arm.
    pub protected: bool,
    /// A number that is fresh for every look, so that canaries are never those of an earlier look.
    pub nonce: u64,
    /// Set by a check that could judge less than its claim says: the words that the claim gets then.
    pub narrowed: Option<&'static str>,
}

/// A [`nonce`](CheckContext::nonce), from the operating system: not from the seed of a run, with which the next run of
/// an experiment would look for what the last one has left in logs and journals.
pub fn fresh_nonce() -> u64 {
    Secret::random(8).expose().iter().fold(0, |nonce, byte| (nonce << 8) | u64::from(*byte))
}

impl CheckContext<'_> {
    /// Opens a session as the measured clients do.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub fn connect(&self) -> Result<Session, Fault> {
        self.connect_as(self.server, self.setup)
    }

    /// Opens a session to `server` (the arm's own, or a relay before it) as `setup` says, column encryption included.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub fn connect_as(&self, server: &Server, setup: &Setup) -> Result<Session, Fault> {
        crate::columns::connect(self.database, server, setup, &self.how())
    }

    /// Opens a session that shows what the server itself holds: the arm's own set-up, but without the client-side
    /// encryption of columns. The set-up reaches the driver unchanged, so column types are those of the arm.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub fn connect_raw(&self) -> Result<Session, Fault> {
        self.database.connect(self.server, self.setup, &self.how())
    }

    /// How a session to the measured table is opened.
    pub fn how(&self) -> Connect {
        Connect { blocking: true, lane: 0, clock: tithe_machine::clock::Clock::Real, table: self.table.clone() }
    }
}

/// What `check` sees on the arm of `context`: nothing, where it failed on its way.
pub fn seen_by(check: &dyn Check, context: &mut CheckContext<'_>) -> Observation {
    check.observe(context).unwrap_or_else(Observation::from)
}

/// The claim of `check`, narrowed to what its look at the protected arm could judge.
pub fn claimed(check: &dyn Check, narrowed: Option<&str>) -> String {
    narrowed.map_or_else(|| check.claim(), |words| format!("{} ({words})", check.claim()))
}

/// Decides what two looks prove together.
pub fn judge(control: Control, protected: &Observation, plain: Option<&Observation>) -> Verdict {
    match (protected, control, plain) {
        (Observation::Exposed(_), _, _) => Verdict::Fails,
        (Observation::Unknown(_), _, _) => Verdict::CannotTell,
        (Observation::OutOfReach(_), _, _) => Verdict::OutOfReach,
        (Observation::Protected(_), Control::Own, _) => Verdict::Holds,
        (Observation::Protected(_), Control::PlainArm, Some(Observation::Exposed(_))) => Verdict::Holds,
        (Observation::Protected(_), Control::PlainArm, _) => Verdict::CannotTell,
    }
}

#[cfg(test)]
mod tests;
