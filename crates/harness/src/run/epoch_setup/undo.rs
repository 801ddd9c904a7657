//! Statements that an administrator runs once the data are loaded, and how they are undone on servers that Tithe does
//! not start.
//!
//! Before such statements are run, the statements that undo them are stored on the server, in Tithe's own space. If a
//! run is killed, the next run of the same experiment undoes its changes. Others may have written there, so only
//! statements that the arm has itself are run. After a run that has executed all of its statements, all of them are
//! expected to be undone. After one that has not, it is unknown which were executed.

use tithe_machine::{
    clock::Clock,
    fault::Fault,
    launch::Server,
    secret::{Secret, hex},
};
use tithe_model::catalogue::KeptUndo;
use tithe_plugin::{
    database::{Connect, Database, Speaker, Statements},
    setup::{Setup, in_space},
    workload::Workload,
};

/// Stored after the others once every statement was run.
const ALL_SAID: &str = "all said";

/// The server of an arm, with its set-up and workload, and an administrator's sessions.
pub(super) struct Administered<'a> {
    pub database: &'a dyn Database,
    pub server: &'a Server,
    pub setup: &'a Setup,
    pub workload: &'a dyn Workload,
}

impl Administered<'_> {
    /// Runs the statements of the arm.
    ///
    /// # Errors
    /// The server's error, with the statement.
    pub(super) fn say(&self) -> Result<(), Fault> {
        self.say_by(self.administrator()?.as_mut())
    }

    fn say_by(&self, administrator: &mut dyn Statements) -> Result<(), Fault> {
        self.setup.after_loading.statements.iter().try_for_each(|statement| {
            let statement = in_space(statement, &self.setup.space);
            let said = administrator.rows(&statement).map(drop);
            said.map_err(|fault| fault.of(format_args!("after loading, `{statement}`")))
        })
    }

    /// As [`Administered::say`], after the statements that undo it were stored on the server.
    ///
    /// # Errors
    /// The same.
    pub(super) fn say_and_keep(&self) -> Result<(), Fault> {
        let Some(kept) = self.kept() else { return Ok(()) };
        let undo = &self.setup.after_loading.undo;
        let mut administrator = self.administrator()?;
        let mut say = |statement: &str| administrator.rows(statement).map(drop);
        kept.make.iter().try_for_each(|statement| say(&in_space(statement, &self.setup.space)))?;
        let add = |number: usize, statement: &str| {
            let words = kept.add.replace("{number}", &number.to_string());
            in_space(&words, &self.setup.space).replace("{statement}", &hex(statement.as_bytes()))
        };
        let own = undo.iter().map(|statement| in_space(statement, &self.setup.space));
        own.enumerate().try_for_each(|(number, statement)| say(&add(number, &statement)))?;
        self.say_by(administrator.as_mut())?;
        administrator.rows(&add(undo.len(), ALL_SAID)).map(drop)
    }

    /// Runs the undo statements that the server stores, if there are some.
    ///
    /// # Errors
    /// [`Fault::Refused`] if one of them is not a statement of this arm. The first statement that failed, once all were
    /// run; they stay stored then.
    pub(super) fn undo(&self) -> Result<(), Fault> {
        let Some(kept) = self.kept() else { return Ok(()) };
        let in_space = |statement: &str| in_space(statement, &self.setup.space);
        let mut administrator = match self.administrator() {
            // Without Tithe's own space nothing is stored.
            Err(Fault::Server(_)) => return Ok(()),
            opened => opened?,
        };
        let is_there = match administrator.rows(&in_space(kept.is_there)) {
            // An account that stores nothing need not have the right to read there.
            Err(Fault::Server(_) | Fault::Refused(_)) if self.setup.after_loading.undo.is_empty() => return Ok(()),
            asked => asked?,
        };
        if is_there.is_empty() {
            return Ok(());
        }
        let rows = administrator.rows(&in_space(kept.read))?;
        let text = |digits: String| String::from_utf8(Secret::of_hex(&digits)?.expose().to_vec()).ok();
        let mut statements: Vec<String> = rows.into_iter().flatten().flatten().filter_map(text).collect();
        let all_said = statements.last().is_some_and(|last| last == ALL_SAID);
        statements.retain(|statement| statement != ALL_SAID);
        let own: Vec<String> = self.setup.after_loading.undo.iter().map(|statement| in_space(statement)).collect();
        if let Some(foreign) = statements.iter().find(|statement| !own.contains(statement)) {
            return Err(Fault::Refused(format!(
                "the server keeps `{foreign}`, which undoes an earlier run, and this arm has no such `undo`: run \
                 that experiment again, or undo it by hand and remove Tithe's own space, {}",
                self.setup.space
            )));
        }
        let mut failed = Ok(());
        for statement in &statements {
            let said = administrator.rows(statement).map(drop);
            failed = failed.and(said.map_err(|fault| fault.of(format_args!("to undo, `{statement}`"))));
        }
        if all_said {
            failed?;
        }
        administrator.rows(&in_space(kept.remove)).map(drop)
    }

    fn kept(&self) -> Option<KeptUndo> {
        self.database.entry().custom?.kept
    }

    fn administrator(&self) -> Result<Box<dyn Statements>, Fault> {
        let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: self.workload.table() };
        self.database.statements(self.server, self.setup, &how, Speaker::Administrator)
    }
}
