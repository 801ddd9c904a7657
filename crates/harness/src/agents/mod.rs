//! Many load machines in one experiment: a coordinator that keeps servers, evidence and records, and *agents* that
//! offer the lanes of their machines.
//!
//! The [`coordinator`] is `tithe run`; an [`agent`] is the same program on another machine. They talk over a [`link`]
//! in [`message`]s, and only between frames: the arm that a lane serves follows from the clock and the seed alone. So
//! an agent gets the start of the first slot on *its* clock, and no further message until the last slot has ended. The
//! offset of its clock is measured before and after every frame ([`offset`]). If an agent or the transport is lost, the
//! frame is invalid and measured again once all are back; it never goes on with fewer agents.
//!
//! Servers that Tithe did not start may be on a machine of their own. An [`observer`] there sees what clients cannot:
//! processor time, files, settings. The coordinator sends it [`query`] messages.
//!
//! An agent opens connections to the servers that its user allows and runs the workload of the plan. It starts no
//! program, and opens only files that it made itself. An observer reads and never writes.

pub mod agent;
pub mod coordinator;
pub mod link;
pub mod message;
pub mod observer;
pub mod offset;
pub mod query;
pub mod server_watch;
#[cfg(test)]
mod tests;
