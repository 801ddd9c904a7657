//! The program as a user runs it: one binary, so that no processor is idle while the last test of a file ends.
//!
//! Tests run in the order of their names, so a module whose tests take long has a name that is not among the last.

mod agents_urls;
mod allowed;
mod apart;
mod atlas;
mod bulk;
mod continuous;
mod documents;
mod edited;
mod faults;
mod files;
mod foreign;
mod hostile;
mod listed;
mod matrix;
mod promised;
mod refused;
mod schema;
mod scripts;
mod simulated;
mod support;
mod tpcc;
mod witness;
mod words;
mod written;

/// Tests that need installed programs: `./check --quick` leaves out modules of this name, and nothing else. A test
/// whose program is not installed is skipped with a notice; with `CI` set it fails.
mod installed {
    mod addresses;
    #[cfg(feature = "agents")]
    mod agents;
    #[cfg(feature = "agents")]
    mod agents_killed;
    mod attached;
    mod attached_products;
    mod attached_refused;
    mod attached_resumed;
    mod bound;
    mod custom;
    mod data_sets;
    mod doctor;
    #[cfg(feature = "duckdb")]
    mod duckdb;
    mod encrypted_volumes;
    #[cfg(feature = "wiredtiger")]
    mod engines;
    mod evicted;
    mod given;
    mod hosts;
    mod inspect;
    mod listen;
    mod logins;
    #[cfg(feature = "agents")]
    mod observer;
    mod outside;
    mod own_tables;
    mod paused;
    mod pooler;
    mod postgres;
    mod printed;
    mod profile;
    pub mod programs;
    mod replay;
    pub mod rotation;
    mod secrets;
    mod slurm;
    mod starts;
    mod switched;
    mod witness;
    mod words;
}
