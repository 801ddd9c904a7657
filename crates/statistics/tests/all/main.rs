//! What must hold of the estimator, by other programs' numbers and by laws.

mod extremes;
mod frames;
mod groups;
mod sequences;
mod starts;
mod vectors;
