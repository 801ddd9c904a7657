//! One file a command.

pub mod calibrate;
pub mod doctor;
pub mod ls;
pub mod plan;
pub mod report;
pub mod run;
pub mod verify;
