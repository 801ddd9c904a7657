//! The estimator against golden vectors, laws and simulated experiments, and the analysis of a synthetic run.

mod assessment;
mod browser;
mod coverage;
mod designs;
mod golden;
mod laws;
mod live;
mod orders;
mod pages;
mod synthetic;
