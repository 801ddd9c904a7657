//! The simulated database on real time: an operation is a loop of known length on a real processor.
//!
//! Its noise is the machine's own, and its truth is known: an arm whose protection costs 5 % goes through 5 % more
//! turns of the same loop. With it the whole instrument can be checked on the machine where it is to measure.

use std::{
    hint::black_box,
    sync::OnceLock,
    time::{Duration, Instant},
};

use tithe_model::record::ArmFacts;

use super::{Model, Simulated, session::SimulatedSession, store};
use crate::{
    database::{Connect, Database},
    fault::Fault,
    launch::{Install, Launch, Missing, Place, Search, Server},
    product::Product,
    protection::Protection,
    session::{Session, Table},
    setup::Setup,
};

/// The simulated database on real time. Id `spinning`. Settings as [`Simulated`]; invented noise and faults do not
/// apply.
pub struct Spinning;

impl Database for Spinning {
    fn id(&self) -> &'static str {
        "spinning"
    }

    fn title(&self) -> &'static str {
        "simulated database on real time"
    }

    fn embedded(&self) -> bool {
        true
    }

    fn reserved_settings(&self) -> &'static [(&'static str, &'static str)] {
        Simulated.reserved_settings()
    }

    fn find(&self, search: &Search) -> Result<Install, Missing> {
        Simulated.find(search)
    }

    fn launch(&self, install: &Install, setup: &Setup, place: &Place) -> Launch {
        Simulated.launch(install, setup, place)
    }

    fn connect(&self, server: &Server, setup: &Setup, how: &Connect) -> Result<Session, Fault> {
        let model = Model::of(&setup.settings)?;
        let turns = turns(model.service_ns * model.cost);
        let session = SimulatedSession::new(store::find(server)?, model, server, how)?;
        Ok(Session::KeyValue(Box::new(session.spinning(turns))))
    }

    fn create(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.create(server, setup, table)
    }

    fn remove(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.remove(server, setup, table)
    }

    fn settle(&self, server: &Server, setup: &Setup, table: &Table) -> Result<(), Fault> {
        Simulated.settle(server, setup, table)
    }

    fn facts(&self, server: &Server, setup: &Setup) -> Result<ArmFacts, Fault> {
        Simulated.facts(server, setup)
    }
}

impl Product for Spinning {
    fn protections(&self) -> &'static [&'static dyn Protection] {
        Simulated.protections()
    }
}

/// Turns of the loop that take about `length_ns`. Their ratio is exact, whatever a turn takes.
fn turns(length_ns: f64) -> u64 {
    const TRIAL: u64 = 200_000;
    static TURN_NS: OnceLock<f64> = OnceLock::new();
    let turn_ns = TURN_NS.get_or_init(|| {
        let trial = || {
            let begun = Instant::now();
            spin(TRIAL);
            begun.elapsed()
        };
        // The fastest of some: the others were disturbed.
        let fastest = (0..20).map(|_| trial()).min().unwrap_or(Duration::from_millis(1));
        fastest.as_nanos().max(1) as f64 / TRIAL as f64
    });
    (length_ns / turn_ns).round() as u64
}

/// A chain of multiplications, each of which needs the one before.
pub(super) fn spin(turns: u64) {
    let mut value = black_box(1_u64);
    for _ in 0..turns {
        value = value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
    }
    black_box(value);
}
