//! Watches processes and the machine: processor time, memory, bytes, pressure. Reads `/proc`, changes nothing.
//!
//! What a container, a hypervisor or another user hides is told as `None`, never as 0.

pub mod host;
pub mod process;
