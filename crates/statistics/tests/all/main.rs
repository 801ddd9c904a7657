//! Tests of the estimator against other programs' numbers and against laws.

mod extremes;
mod frames;
mod groups;
mod sequences;
mod starts;
mod vectors;
