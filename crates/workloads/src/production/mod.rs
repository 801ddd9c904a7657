//! A production-like load: the statements that a running server has counted, in proportion to their calls, with
//! parameters drawn from its statistics of column values.
//!
//! Differences from production: statements run one by one, because a server counts no transactions. Values of a
//! statement's parameters are drawn independently, as if columns did not depend on each other.

mod client;
mod learned;
pub(crate) mod parameters;
#[cfg(test)]
mod tests;
mod values;

use std::sync::{Arc, OnceLock, atomic::AtomicU64};

use tithe_machine::fault::Fault;
use tithe_model::{
    catalogue::{
        DatabaseEntry, LineProblem, Preset, Properties, PropertyFile, PropertyProblem, WorkloadEntry, WorkloadShape,
    },
    experiment,
};
use tithe_plugin::{
    own_tables::{Asked, OwnStatement},
    production::{Learns, Production},
    session::{Discard, Session, Table},
    workload::{ArmState, Client, Clients, Load, NoState, Workload},
};

use self::{
    client::Drawer,
    learned::{Drawn, Learned, learn},
};
use crate::{COPY_LIMIT, copy_limit, replay::sql::Flavour};

const PRESETS: &[Preset] = &[("calls", "The statements that the server has counted, by their calls", &[])];

/// A production-like load.
#[derive(Default)]
pub struct LikeProduction {
    /// Size limit of copies of tables, bytes.
    copy_limit: Option<u64>,
    learned: OnceLock<Arc<Learned>>,
}

/// The production-like load, for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "like_production",
        title: "the statements that a running server has counted (pg_stat_statements, performance_schema), with parameters drawn \
                from its columns' values",
        presets: PRESETS,
        file: "none: a server is asked",
        weighted: false,
        scripts: "",
        by_path: "",
        commands: &[],
        read,
        asks: |_| Vec::new(),
        check: |properties| {
            let unknown = |name: &String| {
                (name.clone(), "is not a property of this workload".to_owned(), "it has none".to_owned())
            };
            let mut problems = properties.keys().filter(|name| *name != COPY_LIMIT).map(unknown).collect();
            copy_limit(properties, &mut problems);
            problems
        },
        shape: |_| WorkloadShape {
            writes: true,
            record_bytes: 0,
            program: false,
            gaps: false,
            batch: Some(1),
            slot_ns: None,
        },
    }
}

fn read(_file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    let help = "write `like_production = \"calls\"`".to_owned();
    Err(vec![(1, "is a file, and a server is asked in its place".to_owned(), help)])
}

/// Makes the workload, which learns its load from a server.
///
/// # Errors
/// A limit that is no number.
pub fn make(
    described: &experiment::Workload,
    _data: &experiment::Data,
    _seed: u64,
) -> Result<Box<dyn Workload>, Vec<PropertyProblem>> {
    let mut problems = Vec::new();
    let copy_limit = copy_limit(&described.properties, &mut problems);
    if problems.is_empty() {
        Ok(Box::new(LikeProduction { copy_limit, ..LikeProduction::default() }))
    } else {
        Err(problems)
    }
}

impl LikeProduction {
    fn statements(&self) -> &[Drawn] {
        self.learned.get().map_or(&[], |learned| &learned.statements)
    }
}

impl Learns for LikeProduction {
    fn learn(&self, production: &mut dyn Production) -> Result<(), Fault> {
        let learned = Arc::new(learn(production)?);
        self.learned.get_or_init(|| learned);
        Ok(())
    }
}

impl Workload for LikeProduction {
    fn offered_by(&self) -> Load<'_> {
        Load::Clients(self)
    }

    fn operations(&self) -> Vec<&str> {
        self.statements().iter().map(|statement| statement.name.as_str()).collect()
    }

    fn texts(&self) -> Vec<&str> {
        self.statements().iter().map(|statement| statement.text.as_str()).collect()
    }

    fn speaks_sql(&self) -> bool {
        true
    }

    fn refuses(&self, database: &DatabaseEntry, running: bool) -> Option<String> {
        let title = database.title;
        match (running, database.wire_protocol.and_then(Flavour::of)) {
            (_, None) => Some(format!("{title} counts no statements of SQL")),
            (false, _) => {
                Some("a load like production's is learned from a running server: give every arm its `url`".to_owned())
            }
            (true, Some(_)) => None,
        }
    }

    fn learns(&self) -> Option<&dyn Learns> {
        Some(self)
    }

    fn writes(&self) -> bool {
        self.learned.get().is_none_or(|learned| learned.writes())
    }

    fn table(&self) -> Table {
        Table::of_canaries()
    }

    fn own_tables(&self, _placeholder: fn(usize) -> String) -> Option<Asked> {
        let Some(learned) = self.learned.get() else { return Some(Asked::default()) };
        let statement = |(number, drawn): (usize, &Drawn)| OwnStatement {
            place: drawn.name.clone(),
            text: learned.sample(number),
            parameters: 0,
        };
        let names = learned.names();
        let statements = learned.statements.iter().enumerate().map(statement).collect();
        let (writes, copy_limit) = (learned.writes(), self.copy_limit);
        Some(Asked { statements, names, writes, copy_limit, ..Asked::default() })
    }

    fn rows(&self, _records: u64) -> u64 {
        0
    }

    fn describe(&self) -> Vec<(String, String)> {
        self.learned.get().map_or(Vec::new(), |learned| learned.lines.clone())
    }
}

impl Clients for LikeProduction {
    fn load(&self, _session: &mut Session, _partition: u64, _of: u64, _done: &AtomicU64) -> Result<(), Fault> {
        Ok(())
    }

    fn check(&self, session: &mut Session, fresh: bool) -> Result<Option<String>, Fault> {
        let Some(learned) = self.learned.get().filter(|_| fresh) else { return Ok(None) };
        let (session, mut failed) = (session.sql()?, Vec::new());
        for (number, drawn) in learned.statements.iter().enumerate() {
            session.run("BEGIN")?;
            let ran = session.submit_text(&learned.sample(number)).and_then(|()| session.finish(&mut Discard));
            match ran {
                Ok(_) => {}
                Err(Fault::Server(words) | Fault::Refused(words)) => failed.push(format!("{}: {words}", drawn.name)),
                Err(fault) => return Err(fault),
            }
            session.run("ROLLBACK")?;
        }
        let of = learned.statements.len();
        if failed.len() == of {
            return Err(Fault::Wrong(format!("no statement succeeds: {}", failed.join("; "))));
        }
        Ok(Some(format!("of {of} statements {} succeed; each was undone", of - failed.len())))
    }

    fn arm_state(&self) -> Arc<dyn ArmState> {
        Arc::new(NoState)
    }

    fn client(&self, _state: &Arc<dyn ArmState>) -> Box<dyn Client> {
        Box::new(Drawer::new(self.learned.get().cloned()))
    }
}
