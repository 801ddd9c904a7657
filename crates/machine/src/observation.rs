//! What a look at one arm saw.

use crate::fault::Fault;

/// What a check saw on one arm, with a quotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// The claim holds here.
    Protected(String),
    /// The claim does not hold here.
    Exposed(String),
    /// It could not look, or what it looked for was not where it must be.
    Unknown(String),
    /// It could not look because of where an attached server is.
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
    /// A check that failed on its way saw nothing.
    fn from(fault: Fault) -> Self {
        Self::Unknown(fault.to_string())
    }
}
