//! Everything real except the databases themselves: starting servers, offering load, watching processes,
//! gathering evidence, writing the run folder.
//!
//! The five plug-in traits are one a file: [`database`], [`protection`], [`session`], [`workload`],
//! [`evidence`]. Nothing here prints; what happens is told as [`tithe_model::record::Event`]s.

pub mod catalogue;
pub mod clock;
pub mod columns;
pub mod configuration;
pub mod data;
pub mod database;
mod descriptors;
pub mod evidence;
pub mod fault;
pub mod folder;
pub mod inspect;
pub mod limits;
pub mod load;
pub mod protection;
pub mod rotation;
pub mod run;
pub mod sandbox;
mod saturation;
pub mod secret;
pub mod session;
pub mod simulated;
pub mod sql;
pub mod volume;
pub mod watch;
pub mod wire;
pub mod workload;
