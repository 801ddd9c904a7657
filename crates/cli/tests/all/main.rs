//! The program as a user runs it: one binary, so that no processor idles while the last test of a file ends.
//!
//! Tests run in the order of their names: the long ones of `installed` first, the short ones last.

mod apart;
mod documents;
mod edited;
mod listed;
mod refused;
mod simulated;
mod support;
mod tpcc;
mod words;
mod written;

/// What needs something that is installed on the machine: `./check --quick` leaves out modules of this name, and
/// nothing else. What is not installed is skipped, loudly; with `CI` set it fails.
mod installed {
    mod attached;
    mod data_sets;
    mod inspect;
    mod paused;
    mod postgres;
    pub mod programs;
    pub mod rotation;
    mod starts;
    mod volumes;
    #[cfg(feature = "wiredtiger")]
    mod wiredtiger;
    mod words;
}
