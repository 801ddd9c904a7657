//! Statements that an administrator runs once the data are loaded, and how they are undone on servers that Tithe does
//! not start.
//!
//! Before such statements are run, the statements that undo them are stored on the server, in Tithe's own space. If a
//! run is killed, the next run of the same experiment undoes its changes. Others may have written there, so only
//! statements that the arm has itself are run. After a run that has executed all of its statements, all of them are
//! expected to be undone, each once: `DROP ROLE` fails if the role is gone. After one that has not, it is unknown which
//! were executed.

use tithe_machine::{
    fault::Fault,
    launch::Server,
    secret::{Secret, hex},
};
use tithe_model::{catalogue::KeptUndo, statement::lasts_until_restart};
use tithe_plugin::{
    database::{Connect, Database, Speaker, Statements},
    setup::{Setup, in_space},
    workload::Workload,
};

/// Stored after the others once every statement was run.
const ALL_SAID: &str = "all said";

/// Stored with the place of each statement that was undone since then.
const UNDONE: &str = "undone ";

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
        self.say_those(|_| true)
    }

    /// Runs again those of its statements whose effect ended with the last restart of the server.
    ///
    /// # Errors
    /// The same.
    pub(super) fn say_again(&self) -> Result<(), Fault> {
        self.say_those(lasts_until_restart)
    }

    /// Runs the chosen ones of its statements. If there are none, no session is opened.
    fn say_those(&self, is_chosen: impl Fn(&str) -> bool) -> Result<(), Fault> {
        let statements = self.setup.after_loading.statements.iter();
        let chosen: Vec<&String> = statements.filter(|statement| is_chosen(statement)).collect();
        if chosen.is_empty() {
            return Ok(());
        }
        let mut administrator = self.administrator()?;
        chosen.into_iter().try_for_each(|statement| self.say_one(administrator.as_mut(), statement))
    }

    fn say_one(&self, administrator: &mut dyn Statements, statement: &str) -> Result<(), Fault> {
        let statement = in_space(statement, &self.setup.space);
        let said = administrator.rows(&statement).map(drop);
        said.map_err(|fault| fault.of(format_args!("after loading, `{statement}`")))
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
        let own = undo.iter().map(|statement| in_space(statement, &self.setup.space));
        own.enumerate().try_for_each(|(number, statement)| say(&self.adds(&kept, number, &statement)))?;
        for (number, statement) in self.setup.after_loading.statements.iter().enumerate() {
            let said = self.say_one(administrator.as_mut(), statement);
            if number == 0 && matches!(said, Err(Fault::Server(_) | Fault::Refused(_))) {
                // Nothing was changed: what `undo` names belongs to others, such as a role that existed before.
                let forgotten = administrator.rows(&in_space(kept.remove, &self.setup.space)).map(drop);
                return said.and(forgotten);
            }
            said?;
        }
        administrator.rows(&self.adds(&kept, undo.len(), ALL_SAID)).map(drop)
    }

    /// The statement that stores `text` as the one with this `number`.
    fn adds(&self, kept: &KeptUndo, number: usize, text: &str) -> String {
        let words = kept.add.replace("{number}", &number.to_string());
        in_space(&words, &self.setup.space).replace("{statement}", &hex(text.as_bytes()))
    }

    /// Runs the undo statements that the server stores, if there are some.
    ///
    /// # Errors
    /// [`Fault::Refused`] if one of them is not a statement of this arm. The first statement that failed, once all were
    /// run; they stay stored then, and the next call runs those that failed.
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
        let all_said = statements.iter().any(|statement| statement == ALL_SAID);
        let place = |statement: &String| statement.strip_prefix(UNDONE)?.parse::<usize>().ok();
        let undone: Vec<usize> = statements.iter().filter_map(place).collect();
        statements.retain(|statement| statement != ALL_SAID && place(statement).is_none());
        let own: Vec<String> = self.setup.after_loading.undo.iter().map(|statement| in_space(statement)).collect();
        if let Some(foreign) = statements.iter().find(|statement| !own.contains(statement)) {
            return Err(Fault::Refused(format!(
                "the server keeps `{foreign}`, which undoes an earlier run, and this arm has no such `undo`: run \
                 that experiment again, or undo it by hand and remove Tithe's own space, {}",
                self.setup.space
            )));
        }
        let mut failed = Ok(());
        let left = statements.iter().enumerate().filter(|(number, _)| !undone.contains(number));
        for (number, statement) in left {
            let said = administrator.rows(statement).map(drop);
            let said = said.map_err(|fault| fault.of(format_args!("to undo, `{statement}`")));
            let is_undone = all_said && said.is_ok();
            failed = failed.and(said);
            if is_undone {
                let note = self.adds(&kept, statements.len() + 1 + number, &format!("{UNDONE}{number}"));
                failed = failed.and(administrator.rows(&note).map(drop));
            }
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
        let how = Connect::blocking(self.workload.table());
        self.database.statements(self.server, self.setup, &how, Speaker::Administrator)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    use tithe_machine::launch::{Address, Install, Launch, Missing, Place, Search};
    use tithe_model::{
        catalogue::{AskedOfCustom, DatabaseEntry},
        record::ArmFacts,
    };
    use tithe_plugin::{
        database::Row,
        session::{Session, Table},
        setup::AfterLoading,
    };

    use super::*;
    use crate::load::frame::tests::Idle;

    const KEPT: KeptUndo = KeptUndo {
        is_there: "IS {space}",
        make: &["MAKE {space}"],
        add: "ADD {space} {number} {statement}",
        read: "READ {space}",
        remove: "REMOVE {space}",
    };

    static ENTRY: DatabaseEntry = DatabaseEntry {
        custom: Some(AskedOfCustom { setting: "SHOW {setting}", between: '_', careful: &[], kept: Some(KEPT) }),
        ..DatabaseEntry::BARE
    };

    /// A server that runs statements, and stores some for Tithe.
    #[derive(Clone, Default)]
    struct Storing(Arc<Mutex<State>>);

    #[derive(Default)]
    struct State {
        /// Numbers and digits of what it stores; `None` without a place for them.
        stored: Option<Vec<(usize, String)>>,
        /// All other statements that it ran.
        said: Vec<String>,
        /// Statements that it refuses.
        refuses: Vec<&'static str>,
        /// Why it opens no session.
        closed: Option<Fault>,
    }

    impl Storing {
        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// The number of statements that it stores, and what it ran since the last call.
        fn seen(&self) -> (Option<usize>, Vec<String>) {
            let mut state = self.state();
            (state.stored.as_ref().map(Vec::len), std::mem::take(&mut state.said))
        }

        /// What `work` makes of an arm with these statements to `undo` its own.
        fn with<T>(&self, undo: &[&str], work: impl FnOnce(&Administered<'_>) -> T) -> T {
            let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
            let statements = owned(&["do a", "do {space}"]);
            let after_loading = AfterLoading { statements, undo: owned(undo), ..AfterLoading::default() };
            let setup = Setup { after_loading, space: "mine".to_owned(), ..Setup::bare() };
            let server = Server::at(Address::Nowhere);
            let workload = Idle { writes: false };
            work(&Administered { database: self, server: &server, setup: &setup, workload: &workload })
        }
    }

    impl Statements for Storing {
        fn rows(&mut self, statement: &str) -> Result<Vec<Row>, Fault> {
            let mut state = self.state();
            if state.refuses.contains(&statement) {
                return Err(Fault::Server("no".to_owned()));
            }
            let row = |text: &str| vec![Some(text.to_owned())];
            match statement.split(' ').collect::<Vec<_>>().as_slice() {
                ["MAKE", "mine"] => {
                    state.stored.get_or_insert_default();
                }
                ["ADD", "mine", number, digits] => {
                    let one = (number.parse::<usize>().expect("a number"), (*digits).to_owned());
                    state.stored.as_mut().expect("a place").push(one);
                }
                ["IS", "mine"] => return Ok(state.stored.iter().map(|_| row("1")).collect()),
                ["READ", "mine"] => {
                    let stored = state.stored.as_ref().expect("a place");
                    return Ok(stored.iter().map(|(_, digits)| row(digits)).collect());
                }
                ["REMOVE", "mine"] => state.stored = None,
                _ => state.said.push(statement.to_owned()),
            }
            Ok(Vec::new())
        }
    }

    impl Database for Storing {
        fn entry(&self) -> &'static DatabaseEntry {
            &ENTRY
        }

        fn statements(
            &self,
            _server: &Server,
            _setup: &Setup,
            _how: &Connect,
            speaker: Speaker,
        ) -> Result<Box<dyn Statements>, Fault> {
            assert_eq!(speaker, Speaker::Administrator);
            self.state().closed.clone().map_or_else(|| Ok(Box::new(self.clone()) as Box<dyn Statements>), Err)
        }

        fn find(&self, _search: &Search) -> Result<Install, Missing> {
            Ok(Install::default())
        }

        fn launch(&self, _install: &Install, _setup: &Setup, _place: &Place) -> Launch {
            Launch::default()
        }

        fn connect(&self, _server: &Server, _setup: &Setup, _how: &Connect) -> Result<Session, Fault> {
            Err(Fault::Refused("not asked".to_owned()))
        }

        fn create(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
            Ok(())
        }

        fn remove(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
            Ok(())
        }

        fn quiesce(&self, _server: &Server, _setup: &Setup, _table: &Table) -> Result<(), Fault> {
            Ok(())
        }

        fn facts(&self, _server: &Server, _setup: &Setup) -> Result<ArmFacts, Fault> {
            Err(Fault::Refused("not asked".to_owned()))
        }
    }

    const UNDO: [&str; 2] = ["undo a", "undo {space}"];

    fn said(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn what_was_said_is_undone_in_its_order_and_only_once() {
        let server = Storing::default();
        assert_eq!(server.with(&UNDO, |arm| arm.undo()), Ok(()), "nothing is stored");
        assert_eq!(server.seen(), (None, said(&[])));
        assert_eq!(server.with(&UNDO, |arm| arm.say()), Ok(()));
        assert_eq!(server.seen(), (None, said(&["do a", "do mine"])), "a server of Tithe's own ends with its run");
        assert_eq!(server.with(&UNDO, |arm| arm.say_and_keep()), Ok(()));
        // The third one tells that all was said.
        assert_eq!(server.seen(), (Some(3), said(&["do a", "do mine"])));
        let numbers = server.state().stored.iter().flatten().map(|(number, _)| *number).collect::<Vec<_>>();
        assert_eq!(numbers, [0, 1, 2]);
        for undone in [&["undo a", "undo mine"][..], &[]] {
            assert_eq!(server.with(&UNDO, |arm| arm.undo()), Ok(()));
            assert_eq!(server.seen(), (None, said(undone)));
        }
    }

    #[test]
    fn what_cannot_be_undone_stays_stored_if_all_was_said() {
        let refused = |words: &str| Err(Fault::Server(format!("{words}: no")));
        for (refuses, outcome, stored) in
            [("do mine", refused("after loading, `do mine`"), 2), ("never said", Ok(()), 3)]
        {
            let server = Storing::default();
            server.state().refuses = vec![refuses, "undo a"];
            assert_eq!(server.with(&UNDO, |arm| arm.say_and_keep()), outcome);
            assert_eq!(server.seen().0, Some(stored), "{refuses}");
            let (undone, left) = match outcome {
                Ok(()) => (refused("to undo, `undo a`"), Some(4)),
                // It is unknown which statements were said.
                Err(_) => (Ok(()), None),
            };
            assert_eq!(server.with(&UNDO, |arm| arm.undo()), undone);
            assert_eq!(server.seen(), (left, said(&["undo mine"])), "all others are undone");
            server.state().refuses.clear();
            assert_eq!(server.with(&UNDO, |arm| arm.undo()), Ok(()));
            let last: &[&str] = if left.is_some() { &["undo a"] } else { &[] };
            assert_eq!(server.seen(), (None, said(last)), "what was undone is not undone again");
        }
    }

    #[test]
    fn what_a_restart_forgets_is_said_again() {
        let server = Storing::default();
        let again = |arm: &Administered<'_>| {
            let mut setup = arm.setup.clone();
            setup.after_loading.statements.push("SET GLOBAL {space} = 1".to_owned());
            Administered { setup: &setup, ..*arm }.say_again()
        };
        assert_eq!((server.with(&[], again), server.seen().1), (Ok(()), said(&["SET GLOBAL mine = 1"])));
        server.state().closed = Some(Fault::Connection("lost".to_owned()));
        assert_eq!(server.with(&[], |arm| arm.say_again()), Ok(()), "nothing is forgotten, so nobody is asked");
    }

    #[test]
    fn nothing_is_undone_where_the_first_statement_was_refused() {
        let server = Storing::default();
        server.state().refuses = vec!["do a"];
        let refused = Err(Fault::Server("after loading, `do a`: no".to_owned()));
        assert_eq!(server.with(&UNDO, |arm| arm.say_and_keep()), refused);
        assert_eq!(server.with(&UNDO, |arm| arm.undo()), Ok(()));
        assert_eq!(server.seen(), (None, said(&[])), "a role of that name was there before");
    }

    #[test]
    fn nothing_is_run_that_is_not_this_arms() {
        let server = Storing::default();
        assert_eq!(server.with(&UNDO, |arm| arm.say_and_keep()), Ok(()));
        let before = server.seen().0;
        let told = server.with(&["undo a", "undo b"], |arm| arm.undo()).expect_err("another arm").to_string();
        assert!(told.starts_with("refused: the server keeps `undo mine`, which undoes an earlier run"), "{told}");
        assert_eq!(server.seen(), (before, said(&[])));
    }

    #[test]
    fn an_account_that_stores_nothing_need_not_read_there() {
        let server = Storing::default();
        server.state().refuses = vec!["IS mine"];
        let no = || Err(Fault::Server("no".to_owned()));
        assert_eq!([server.with(&[], |arm| arm.undo()), server.with(&UNDO, |arm| arm.undo())], [Ok(()), no()]);
        // Without Tithe's own space it has no administrator there.
        for (closed, outcome) in [
            (Fault::Server("no space".to_owned()), Ok(())),
            (Fault::Connection("lost".to_owned()), Err(Fault::Connection("lost".to_owned()))),
        ] {
            server.state().closed = Some(closed);
            assert_eq!(server.with(&UNDO, |arm| arm.undo()), outcome);
        }
    }
}
