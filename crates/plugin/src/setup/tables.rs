//! Where the statements of an arm's sessions find their tables.

use std::path::PathBuf;

use tithe_model::quantity;

/// Where statements find their tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TablePlace {
    /// Among Tithe's.
    #[default]
    Tithe,
    /// Where they are.
    InPlace {
        /// Rows are changed, of the tables that the user named.
        writes: bool,
        /// The account may make tables of Tithe's, where evidence writes.
        makes: bool,
    },
    /// Among Tithe's, as copies.
    Copied {
        /// Their names.
        names: Vec<String>,
        /// What they take.
        room: Room,
    },
}

/// What copies take of a server's disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// The size of the originals with their indexes, bytes.
    pub bytes: u64,
    /// The folder of the server's data on its machine, where the account may know it.
    pub folder: Option<PathBuf>,
}

impl TablePlace {
    /// True where Tithe makes tables of its own.
    pub fn makes_tables(&self) -> bool {
        !matches!(self, Self::InPlace { makes: false, .. })
    }

    /// True where statements run on the user's own tables.
    pub fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace { .. })
    }

    /// True where sessions have read-only transactions.
    pub fn reads_only(&self) -> bool {
        matches!(self, Self::InPlace { writes: false, .. })
    }

    /// The names of copies.
    pub fn copies(&self) -> &[String] {
        if let Self::Copied { names, .. } = self { names } else { &[] }
    }

    /// What a report says of it; `None` where the tables are Tithe's.
    pub fn in_words(&self) -> Option<String> {
        match self {
            Self::Tithe => None,
            Self::InPlace { writes: false, .. } => Some("your tables, in read-only transactions".to_owned()),
            Self::InPlace { writes: true, .. } => Some("your tables, changed in place".to_owned()),
            Self::Copied { names, room } => {
                Some(format!("copies of your tables, {}: {}", quantity::size(room.bytes), names.join(", ")))
            }
        }
    }
}
