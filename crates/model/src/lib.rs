//! The data that Tithe's other crates pass to each other: experiment, plan, records.
//!
//! Nothing here reads a clock, starts a process, opens a connection or prints. [`experiment`] holds the content of an
//! experiment file, which [`parse`] reads; [`compose`] writes such a file from a few words, and [`schema`] describes it
//! to editors. [`plan`] is what will be done; [`record`] is what was measured; a [`matrix`] is several experiments on
//! several hosts. [`quantity`] formats quantities, [`wrap`] breaks text into lines, and [`direction`] detects
//! characters that change its direction.

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod compose;
pub mod connecting;
pub mod diagnostic;
pub mod direction;
pub mod ending;
pub mod experiment;
pub mod fact;
pub mod histogram;
pub mod idle;
pub mod invalid;
pub mod matrix;
pub mod operation;
pub mod parse;
pub mod plan;
pub mod profile;
pub mod quantity;
pub mod reach;
pub mod record;
pub mod records;
pub mod run_spread;
pub mod schedule;
pub mod schema;
pub mod slots;
pub mod start_spread;
pub mod statement;
pub mod steady;
mod wording;
pub mod wrap;
