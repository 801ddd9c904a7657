//! A client that draws one statement after the other at random.

use std::sync::Arc;

use tithe_machine::fault::Fault;
use tithe_model::schedule::SplitMix64;
use tithe_plugin::{
    session::{Discard, Progress, Session},
    workload::{Client, PartRecorder},
};

use super::learned::Learned;

/// One client.
pub struct Drawer {
    /// Its source; `None` if nothing was learned.
    learned: Option<Arc<Learned>>,
    random: SplitMix64,
    current: usize,
    text: String,
    statements: u64,
}

impl Drawer {
    /// A client that draws from `learned`.
    pub fn new(learned: Option<Arc<Learned>>) -> Self {
        Self { learned, random: SplitMix64::new(0), current: 0, text: String::new(), statements: 0 }
    }
}

impl Client for Drawer {
    fn seed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
    }

    fn prepare(&mut self) {
        let Some(learned) = &self.learned else { return };
        self.current = learned.choose(&mut self.random);
        learned.fill(self.current, &mut self.random, &mut self.text);
    }

    fn submit(&mut self, session: &mut Session) -> Result<(), Fault> {
        self.statements += 1;
        session.sql()?.submit_text(&self.text)
    }

    fn advance(&mut self, session: &mut Session, _parts: &mut dyn PartRecorder) -> Result<Progress, Fault> {
        session.sql()?.advance(&mut Discard)
    }

    fn statements(&self) -> u64 {
        self.statements
    }

    fn operation(&self) -> usize {
        self.current
    }
}
