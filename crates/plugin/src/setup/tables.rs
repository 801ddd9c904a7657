//! Where the statements of an arm's sessions find their tables.

use std::path::PathBuf;

use tithe_model::quantity;

/// Where statements find their tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TablePlace {
    /// In Tithe's own place.
    #[default]
    Tithe,
    /// In their own place.
    InPlace {
        /// Rows of the tables that the user named are changed.
        writes: bool,
        /// The account may create Tithe's tables, to which evidence writes.
        makes: bool,
    },
    /// In Tithe's own place, as copies.
    Copied {
        /// Their names.
        names: Vec<String>,
        /// Their size.
        room: Room,
    },
}

/// The space that copies need on a server's disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    /// The size of the originals with their indexes, bytes.
    pub bytes: u64,
    /// The folder of the server's data on its machine, if the account may read it.
    pub folder: Option<PathBuf>,
}

impl TablePlace {
    /// True if Tithe makes its own tables.
    pub fn makes_tables(&self) -> bool {
        !matches!(self, Self::InPlace { makes: false, .. })
    }

    /// True if statements run on the user's own tables.
    pub fn is_in_place(&self) -> bool {
        matches!(self, Self::InPlace { .. })
    }

    /// True if sessions have read-only transactions.
    pub fn reads_only(&self) -> bool {
        matches!(self, Self::InPlace { writes: false, .. })
    }

    /// The names of copies.
    pub fn copies(&self) -> &[String] {
        if let Self::Copied { names, .. } = self { names } else { &[] }
    }

    /// The report's text; `None` if the tables are Tithe's.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_of_tables_says_what_is_made_what_is_changed_and_what_is_copied() {
        let in_place = |writes, makes| TablePlace::InPlace { writes, makes };
        let room = Room { bytes: 2_000_000, folder: None };
        let copied = TablePlace::Copied { names: vec!["a".to_owned(), "b".to_owned()], room };
        // Makes tables, is in place, only reads, number of copies.
        let all = [
            (TablePlace::Tithe, (true, false, false, 0), None),
            (in_place(false, false), (false, true, true, 0), Some("your tables, in read-only transactions")),
            (in_place(false, true), (true, true, true, 0), Some("your tables, in read-only transactions")),
            (in_place(true, false), (false, true, false, 0), Some("your tables, changed in place")),
            (in_place(true, true), (true, true, false, 0), Some("your tables, changed in place")),
            (copied, (true, false, false, 2), Some("copies of your tables, 2.0 MB: a, b")),
        ];
        for (place, expected, words) in all {
            let told = (place.makes_tables(), place.is_in_place(), place.reads_only(), place.copies().len());
            assert_eq!((told, place.in_words().as_deref()), (expected, words), "{place:?}");
        }
    }
}
