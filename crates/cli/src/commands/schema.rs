//! `tithe schema`: what experiment files may contain, for editors.

use crate::{
    exit::{self, Stop},
    offer,
};

/// Runs the command; returns the exit status.
pub fn schema() -> Result<i32, Stop> {
    crate::shown::showln!("{:#}", tithe_model::schema::schema(&offer::catalogue()));
    Ok(exit::OK)
}
