//! Watches processes and the machine: processor time, waits, pressure, clocks, swap; [`peer`] finds the process that a
//! connection leads to. It reads `/proc` and changes nothing, with two exceptions: [`stalls`] puts lanes into control
//! groups that limit nothing, and [`process`] and [`borrowed_threads`] bind threads to processors.
//!
//! Values hidden by a container, a hypervisor or another user are `None`, never 0.

pub mod borrowed_threads;
pub mod host;
pub mod peer;
pub mod process;
pub mod stalls;
pub mod swap;
