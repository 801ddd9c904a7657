//! Reports: an [`Analysis`](crate::Analysis) in, text out.
//!
//! [`view`] decides what is said and in which order, as a list of blocks that know no medium; [`terminal`]
//! and [`markdown`] only lay the blocks out; [`html`] draws. [`json`], [`csv`], [`benchstat`] and [`ycsb`] are for
//! programs; of these [`json`] and [`csv`] are the whole analysis: they write the analysis itself, with nothing rounded and nothing left out. [`live`] is the
//! status line while a run is under way. [`number`] and [`words`] are the only places that turn figures
//! and outcomes into text, so that every medium says the same thing in the same words.
//!
//! All of it is pure, and none of it decides anything: proofs, verdicts and flags come from the analysis.

pub mod benchstat;
pub mod calibration;
pub mod comparison;
pub mod csv;
pub mod html;
pub mod json;
pub mod live;
pub mod markdown;
pub mod number;
pub mod terminal;
pub mod view;
pub mod words;
pub mod ycsb;

mod table;

#[cfg(test)]
pub(crate) mod sample;
