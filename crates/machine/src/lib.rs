//! The machine under a measurement: what may be started, stopped, limited and watched on it.
//!
//! [`sandbox`] is the only place that starts anything; [`cgroup`] limits and counts; [`proc`], [`watch`] and [`clock`]
//! look at processor time, memory, bytes, pressure and clocks, and [`perf`] samples what processors run. [`launch`],
//! [`credentials`] and [`observation`] are plain data that are handed to it and come back. It knows no database, no
//! protection and no workload.

pub mod cgroup;
pub mod clock;
pub mod credentials;
pub mod descriptors;
pub mod fault;
pub mod fingerprint;
pub mod launch;
pub mod observation;
pub mod paths;
pub mod perf;
pub mod proc;
pub mod remote;
pub mod sandbox;
pub mod secret;
pub mod watch;
