//! What proves that a protection was on.
//!
//! A check looks at one arm and says what it saw. Whether that proves anything is decided here, once, for
//! all checks: it must be protected on the guarded arm *and* exposed on the plain arm of the same cell.

use tithe_model::record::{Role, Verdict};

use crate::{
    database::{Connect, Database},
    fault::Fault,
    launch::Server,
    session::{Session, Table},
    setup::Setup,
    sight::Sight,
};

/// A check. One file below `checks/` where several databases share it, else beside its database.
pub trait Evidence: Send + Sync {
    /// Name of the check, unique among the checks of one arm: `disk-canary`.
    fn id(&self) -> &'static str;

    /// What must hold, one sentence without a full stop: `no field value of an encrypted column on disk`.
    fn claim(&self) -> String;

    /// Claim or disclosure.
    fn role(&self) -> Role {
        Role::Claim
    }

    /// Where the positive control comes from.
    fn control(&self) -> Control {
        Control::PlainArm
    }

    /// Looks at the arm of `scene`. Called outside measured slots; may write canaries, open connections, run
    /// statements.
    fn look(&self, scene: &mut Scene<'_>) -> Sight;
}

/// Where the positive control of a check comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The same look at the plain arm must find it exposed.
    PlainArm,
    /// The check plants its own control on the guarded arm, and says [`Sight::Unknown`] when it does not see it.
    Own,
}

/// One arm, as a check sees it.
pub struct Scene<'a> {
    /// The database.
    pub database: &'a dyn Database,
    /// The arm's server.
    pub server: &'a Server,
    /// The arm's set-up.
    pub setup: &'a Setup,
    /// The measured table.
    pub table: &'a Table,
    /// True for the guarded arm.
    pub guarded: bool,
    /// A number that is fresh for every look, so that canaries are never those of an earlier look.
    pub nonce: u64,
    /// Set by a check that could judge less than its claim says: the words that the claim gets then.
    pub narrowed: Option<&'static str>,
}

impl Scene<'_> {
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
        Connect { blocking: true, lane: 0, clock: crate::clock::Clock::Real, table: self.table.clone() }
    }
}

/// The claim of `check`, narrowed to what its look at the guarded arm could judge.
pub fn claimed(check: &dyn Evidence, narrowed: Option<&str>) -> String {
    narrowed.map_or_else(|| check.claim(), |words| format!("{} ({words})", check.claim()))
}

/// Decides what two looks prove together.
pub fn judge(control: Control, guarded: &Sight, plain: Option<&Sight>) -> Verdict {
    match (guarded, control, plain) {
        (Sight::Exposed(_), _, _) => Verdict::Fails,
        (Sight::Unknown(_), _, _) => Verdict::CannotTell,
        (Sight::Protected(_), Control::Own, _) => Verdict::Holds,
        (Sight::Protected(_), Control::PlainArm, Some(Sight::Exposed(_))) => Verdict::Holds,
        (Sight::Protected(_), Control::PlainArm, _) => Verdict::CannotTell,
    }
}

#[cfg(test)]
mod tests;
