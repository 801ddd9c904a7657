//! Passes outside of the load: transactions that are run, observed and rolled back.

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::{Session, wait_ready},
    workload::{Answered, Client as _, PartRecorder},
};

use super::{client::ScriptClient, guard, program::Program};

/// Transactions of a pass.
const TRANSACTIONS: usize = 20;

/// Why the answers of `program` are not compared; `None` if they are.
pub fn refuses(program: &Program) -> Option<&'static str> {
    let bounds = |parts: &[super::statement::Template]| {
        parts.iter().filter(|part| guard::bound(&part.text, part.flavour) != guard::Bound::None).count()
    };
    let mixed = |parts: &[super::statement::Template]| (1..parts.len()).contains(&bounds(parts));
    program.sent().any(mixed).then_some("a request joins statements with the beginning or the end of a transaction")
}

/// The answers to the first transactions of `client`, drawn with `seed`, through `session`; each is rolled back. A
/// transaction that the server refuses ends with its error.
///
/// # Errors
/// A broken connection.
pub fn answers(mut client: ScriptClient, session: &mut Session, seed: u64) -> Result<Vec<Vec<Answered>>, Fault> {
    client.observe();
    client.open(session)?;
    client.seed(seed);
    let mut all = Vec::new();
    for _ in 0..TRANSACTIONS {
        session.sql()?.run("BEGIN")?;
        client.prepare();
        let ended = run(&mut client, session);
        session.sql()?.run("ROLLBACK")?;
        match ended {
            Ok(()) => {}
            Err(Fault::Server(words) | Fault::Wrong(words) | Fault::Refused(words)) => client.refused(words),
            Err(fault) => return Err(fault),
        }
        all.push(client.observed());
    }
    Ok(all)
}

fn run(client: &mut ScriptClient, session: &mut Session) -> Result<(), Fault> {
    client.submit(session)?;
    while client.advance(session, &mut Nobody)? == tithe_plugin::session::Progress::Pending {
        wait_ready(session.connection())?;
    }
    Ok(())
}

/// Records nothing.
struct Nobody;

impl PartRecorder for Nobody {
    fn part(&mut self, _operation: usize) {}
}
