//! The estimator against golden vectors, laws and simulated experiments, and the analysis of a synthetic run.

#![allow(clippy::disallowed_methods, reason = "a browser shows the page")]

mod assessment;
mod comparison;
mod control;
mod coverage;
mod designs;
mod documents;
mod golden;
mod hostile;
mod hosts;
/// Tests that need installed programs: `./check --quick` skips modules of this name only.
mod installed {
    mod browser;
    mod python;
    mod sarif;
}
mod laws;
mod live;
mod orders;
mod pages;
mod proofs;
mod statements;
mod synthetic;
