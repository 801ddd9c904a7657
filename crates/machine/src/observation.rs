//! The result of a check of one arm. The verdict needs a second one, that of the positive control.

use crate::fault::Fault;

/// The result of a check of one arm, with a quotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// The claim holds here.
    Protected(String),
    /// The claim does not hold here.
    Exposed(String),
    /// The check was not possible, or its control was missing.
    Unknown(String),
    /// The check was not possible because of the location of an attached server.
    OutOfReach(String),
}

impl Observation {
    /// The quotation.
    pub fn quotation(&self) -> &str {
        match self {
            Self::Protected(text) | Self::Exposed(text) | Self::Unknown(text) | Self::OutOfReach(text) => text,
        }
    }
}

impl From<Fault> for Observation {
    /// A check that failed gives no result.
    fn from(fault: Fault) -> Self {
        Self::Unknown(fault.to_string())
    }
}
