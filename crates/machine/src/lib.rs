//! The machine under a measurement: starts, stops, limits and watches processes on it.
//!
//! [`sandbox`] is the only place that starts anything; [`cgroup`] limits and counts; [`proc`], [`watch`] and [`clock`]
//! read processor time, memory, bytes, pressure and clocks, and [`perf`] samples what processors run. [`launch`],
//! [`credentials`] and [`observation`] are plain data for its input and results. It knows no database, no protection
//! and no workload.

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
#[cfg(any(test, feature = "test-bench"))]
pub mod soon;
pub mod threads;
pub mod watch;
