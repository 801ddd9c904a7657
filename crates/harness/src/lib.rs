//! Everything real except the databases themselves: starting servers, offering load, watching processes,
//! gathering evidence, writing the run folder.
//!
//! The plug-in traits are one a file: [`database`], [`protection`], [`product`], [`session`], [`workload`],
//! [`program`], [`volume`], [`rotation`], [`evidence`]; what implements them lies in the folders [`checks`],
//! [`volumes`] and [`workloads`], and in `crates/databases`. Modules import each other in one direction only, which a
//! test holds. Nothing here prints; what happens is told as [`tithe_model::record::Event`]s.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start what they look at"))]

pub mod arms;
pub mod catalogue;
pub mod cgroup;
pub mod checks;
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
pub mod launch;
pub mod limits;
pub mod load;
pub mod materials;
pub mod observation;
pub mod proc;
pub mod product;
pub mod program;
pub mod protection;
pub mod protections;
pub mod rotation;
pub mod run;
pub mod sandbox;
mod saturation;
pub mod secret;
pub mod serve;
pub mod session;
pub mod setup;
pub mod sight;
pub mod simulated;
pub mod sql;
pub mod volume;
pub mod volumes;
pub mod watch;
pub mod wire;
pub mod workload;
pub mod workloads;
