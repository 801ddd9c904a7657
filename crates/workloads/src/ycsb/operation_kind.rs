//! The kinds of operation.

use tithe_model::operation::READ;

/// The kinds of operation, in the order in which YCSB weighs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// Fetch a record.
    Read,
    /// Overwrite one field or all.
    Update,
    /// Add a record.
    Insert,
    /// Fetch records in key order.
    Scan,
    /// Fetch a record, then overwrite one field or all.
    ReadModifyWrite,
}

impl OperationKind {
    /// All kinds, in order.
    pub const ALL: [Self; 5] = [Self::Read, Self::Update, Self::Insert, Self::Scan, Self::ReadModifyWrite];

    /// The name in YCSB's reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => READ,
            Self::Update => "UPDATE",
            Self::Insert => "INSERT",
            Self::Scan => "SCAN",
            Self::ReadModifyWrite => "READ-MODIFY-WRITE",
        }
    }

    /// True when it changes data.
    pub fn writes(self) -> bool {
        matches!(self, Self::Update | Self::Insert | Self::ReadModifyWrite)
    }
}
