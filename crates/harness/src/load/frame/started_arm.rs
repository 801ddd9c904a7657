//! An arm as a frame sees it: its server, and how to reach it.

use tithe_machine::launch::Server;
use tithe_plugin::setup::Setup;

/// One arm of a cell, started and loaded.
pub struct StartedArm {
    /// Its server.
    pub server: Server,
    /// The arm whose data it works on: itself, or one before it on the same attached server.
    pub data: usize,
    /// Other arms use its server at the same time, so the server's counters are not this arm's.
    pub shares_server: bool,
    /// How it is set up.
    pub setup: Setup,
    /// Statements before a slot.
    pub on: Vec<String>,
    /// Statements after a slot.
    pub off: Vec<String>,
}
