//! The proof that a protection was on.
//!
//! A check inspects one arm and reports its observation. This file decides, for all checks, whether that proves
//! anything: the protected arm must be protected *and* the plain arm of the same cell exposed.

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

/// A check. One file below `checks/` if several databases share it, else next to its database.
pub trait Check: Send + Sync {
    /// Its description, as data.
    fn entry(&self) -> CheckEntry;

    /// What must be true, one sentence without a full stop: `no field value of an encrypted column on disk`.
    fn claim(&self) -> String;

    /// Inspects the arm of `context`. Called outside measured slots; may write canaries, open connections, run
    /// statements.
    ///
    /// # Errors
    /// A fault before it could observe anything, see [`seen_by`].
    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault>;

    /// Begins to watch other clients there, until [`Watch::end`]; `None` if it does not watch.
    fn watch(&self, _context: &CheckContext<'_>) -> Option<Box<dyn Watch>> {
        None
    }

    /// True if it applies to a server at `address`: some checks work on servers that Tithe launched but not on attached
    /// ones.
    fn concerns(&self, _address: &Address) -> bool {
        true
    }

    /// True if it reads files of the server, which are not visible from another machine.
    fn looks_into_files(&self) -> bool {
        false
    }

    /// Its name: [`CheckEntry::id`].
    fn id(&self) -> &'static str {
        self.entry().id
    }
}

/// Watches other clients on a server.
pub trait Watch {
    /// The watched claim, one sentence without a full stop.
    fn claim(&self) -> String;

    /// The result.
    ///
    /// # Errors
    /// The fault that prevented it: then there is no result.
    fn end(self: Box<Self>, context: &CheckContext<'_>) -> Result<Observation, Fault>;
}

/// The description of a check.
#[derive(Debug, Clone, Copy)]
pub struct CheckEntry {
    /// Its name, unique among the checks of one arm: `disk-canary`.
    pub id: &'static str,
    /// Claim, required or strengthening, or disclosure.
    pub role: Role,
    /// The source of the positive control.
    pub control: Control,
}

impl CheckEntry {
    /// A check that must hold for the arm to be proven, with the plain arm as its control.
    pub const fn claim(id: &'static str) -> Self {
        Self { id, role: Role::Claim, control: Control::PlainArm }
    }

    /// A check that is only reported, with the plain arm as its control.
    pub const fn disclosure(id: &'static str) -> Self {
        Self { id, role: Role::Disclosure, control: Control::PlainArm }
    }

    /// The same with a control that the check writes itself.
    pub const fn own_control(self) -> Self {
        Self { control: Control::Own, ..self }
    }
}

/// A claim that strengthens a proof but is not required for one: [`Role::Strengthens`].
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

/// The source of a check's positive control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The same check must find the plain arm exposed.
    PlainArm,
    /// The check writes its own control on the protected arm, and returns [`Observation::Unknown`] if it does not find
    /// it.
    Own,
}

/// The report's text for a check's own control.
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
    /// A number that is fresh for every check, so that canaries are never those of an earlier check.
    pub nonce: u64,
    /// Set by a check that could judge only a part of its claim: the words that limit the claim.
    pub narrowed: Option<&'static str>,
}

/// A [`nonce`](CheckContext::nonce), from the operating system. From a run's seed, the next run of an experiment would
/// search for canaries that the last one left in logs and journals.
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

    /// Opens a session to `server` (the arm's own, or a relay before it) with `setup`, column encryption included.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub fn connect_as(&self, server: &Server, setup: &Setup) -> Result<Session, Fault> {
        crate::columns::connect(self.database, server, setup, &self.how())
    }

    /// Opens a session that reads the stored values of the server: the arm's own set-up, but without the client-side
    /// encryption of columns. The set-up reaches the driver unchanged, so column types are those of the arm.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub fn connect_raw(&self) -> Result<Session, Fault> {
        self.database.connect(self.server, self.setup, &self.how())
    }

    /// How a session to the measured table is opened.
    pub fn how(&self) -> Connect {
        Connect::blocking(self.table.clone())
    }
}

/// The observation of `check` on the arm of `context`: none if it failed.
pub fn seen_by(check: &dyn Check, context: &mut CheckContext<'_>) -> Observation {
    check.observe(context).unwrap_or_else(Observation::from)
}

/// The claim of `check`, limited to what could be judged on the protected arm.
pub fn claimed(check: &dyn Check, narrowed: Option<&str>) -> String {
    narrowed.map_or_else(|| check.claim(), |words| format!("{} ({words})", check.claim()))
}

/// Decides what two observations prove together.
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
