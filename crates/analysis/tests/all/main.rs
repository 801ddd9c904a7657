//! The estimator against golden vectors, laws and simulated experiments, and the analysis of a synthetic run.

mod coverage;
mod golden;
mod laws;
mod synthetic;
