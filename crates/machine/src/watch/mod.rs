//! Watches processes and the machine: processor time, waits, pressure, clocks, swap; [`peer`] finds the process that
//! a connection leads to. Reads `/proc` and changes nothing, but that [`stalls`] puts lanes into control groups that
//! limit nothing, and that [`process`] and [`borrowed_threads`] bind threads to processors.
//!
//! What a container, a hypervisor or another user hides is told as `None`, never as 0.

pub mod borrowed_threads;
pub mod host;
pub mod peer;
pub mod process;
pub mod stalls;
pub mod swap;
