//! Many load machines in one experiment: a coordinator that keeps servers, evidence and records, and *agents* that
//! offer the lanes of their machines.
//!
//! The [`coordinator`] is `tithe run`; an [`agent`] is the same program on another machine. They talk over a [`link`]
//! in [`message`]s, and only between frames: which arm a lane serves at a time follows from the clock and the seed
//! alone, so an agent is told when the first slot begins on *its* clock, and nothing more until the last one has ended.
//! What its clock says is measured before and after every frame ([`offset`]). Where an agent, or what carries the
//! messages, is lost, the frame is invalid and measured again once all are back; it never goes on with fewer.
//!
//! Where servers were running before on a machine of their own, an [`observer`] there sees what clients cannot:
//! processor time, files, settings. It is asked in [`look`]s.
//!
//! An agent opens connections to the servers that its user allows, speaks the workload of the plan, and does
//! nothing else: it starts no program, and opens no file but those that it made itself. An observer reads and never
//! writes.

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
