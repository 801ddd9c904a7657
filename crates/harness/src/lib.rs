//! The run: from names in an experiment to servers, load, evidence and a folder of records.
//!
//! [`arms`] makes set-ups of names, [`serve`] starts a server, [`load`] offers operations frame by frame, [`run`]
//! stages cells and epochs, [`folder`] holds the records, [`volumes`] are file systems under a server's folder,
//! [`agents`] are further load machines. Modules import each other in one direction only, which a test checks. Nothing
//! here prints; events are reported as [`tithe_model::record::Event`]s.

#![forbid(unsafe_code)]

pub mod agents;
pub mod arms;
pub mod catalogue;
pub mod folder;
pub mod inspect;
mod limits;
pub mod load;
pub mod run;
mod saturation;
pub mod serve;
pub mod volumes;
pub mod witness;
