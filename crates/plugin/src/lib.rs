//! The interfaces of a database, a protection, a workload or a kind of volume: the plug-in traits, the plain data that
//! they exchange, and code that several of them share.
//!
//! There is one trait per file: [`database`], [`protection`], [`product`], [`session`], [`workload`], [`program`],
//! [`volume`], [`rotation`], [`restore`], [`own_tables`], [`production`], [`evidence`]. [`checks`] are those that
//! databases share, [`columns`] is column encryption for every database, [`wire`] is TCP and TLS for wire clients, and
//! [`simulated`] is a database with known costs, for tests. Nothing here measures: that is the harness.

#![forbid(unsafe_code)]

pub mod checks;
pub mod claim;
pub mod columns;
pub mod configuration;
pub mod connections;
pub mod custom;
pub mod data;
pub mod database;
pub mod evidence;
pub mod matrix;
pub mod own_tables;
pub mod product;
pub mod production;
pub mod program;
pub mod protection;
pub mod protections;
pub mod reach;
pub mod recording;
pub mod restore;
pub mod rotation;
pub mod session;
pub mod setup;
pub mod simulated;
pub mod sql;
#[cfg(test)]
pub mod test_workload;
pub mod volume;
pub mod wire;
pub mod workload;
pub mod workspace;
