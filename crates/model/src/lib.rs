//! The data that Tithe's other crates pass to each other: experiment, plan, records.
//!
//! Nothing here reads a clock, starts a process, opens a connection or prints. What an experiment file says is in
//! [`experiment`], which [`parse`] makes of it; [`compose`] writes such a file from a few words, and [`schema`]
//! describes it to editors. What will be done about it is in [`plan`]; what was seen in [`record`]; a [`matrix`] is
//! several experiments on several hosts; how a quantity is written is in [`quantity`], how text is broken into lines in
//! [`wrap`], and what turns its [`direction`] there.

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
