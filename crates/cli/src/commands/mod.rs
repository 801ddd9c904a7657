//! One file per command.

#[cfg(feature = "agents")]
pub mod agent;
pub mod atlas;
pub mod calibrate;
pub mod child;
pub mod compare;
pub mod doctor;
pub mod explain;
pub mod get;
pub mod history;
pub mod init;
pub mod inspect;
pub mod ls;
pub mod manual;
pub mod matrix;
#[cfg(feature = "agents")]
pub mod observe;
pub mod plan;
pub mod report;
pub mod run;
pub mod schema;
pub mod verify;
pub mod witness;
