//! The facts of an arm and the notes of a cell that have names of Tithe's own. Facts from a server or a workload have
//! their own names and stay text.

use crate::{record::ArmFacts, records::CellFacts};

/// The words after the limits in [`Fact::Limits`]: the kernel interface that enforces them.
pub const BY_CONTROL_GROUPS: &str = ", by control groups";

/// The words in [`Fact::Cache`] before the way in which caches were emptied, if servers were started on empty ones.
pub const SERVERS_STOPPED: &str = "servers stopped, then ";

/// A fact that Tithe itself knows of an arm; [`Fact::name`] is its text in files and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// A stand-in answered in place of the product: no figure is the product's.
    StandIn,
    /// Where the data came from, if they are a copy.
    DataSet,
    /// How many times as large as the limit of memory the data are.
    DataPerMemory,
    /// When and how the page cache was emptied.
    Cache,
    /// What the server found in its own cache while measuring.
    CacheHits,
    /// The limits of the server.
    Limits,
    /// The control group that counts the server, if it has no limits.
    ControlGroup,
    /// How an attached server is reached, which parts of its URL have no effect, and what is not checked.
    Connection,
    /// The processes of an attached server on this machine and how their work is counted, or why they are not seen.
    ServerProcesses,
    /// The machine of an attached server as reported by its observer.
    ServerMachine,
    /// Files of settings on that machine, with length and fingerprint.
    SettingsFiles,
    /// How often the key was changed while measuring, and how long that took.
    KeyRotations,
    /// The layers of the volume under the server's folder.
    Volume,
    /// The kernel driver that encrypts the volume.
    VolumeCipherDriver,
    /// Whether the volume's image is read and written with direct I/O.
    VolumeDirectIo,
}

impl Fact {
    /// Its name in `cells/*.json` and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StandIn => "stand-in",
            Self::DataSet => "data set",
            Self::DataPerMemory => "data per memory",
            Self::Cache => "cache",
            Self::CacheHits => "cache hits",
            Self::Limits => "limits",
            Self::ControlGroup => "control group",
            Self::Connection => "connection",
            Self::ServerProcesses => "server processes",
            Self::ServerMachine => "server machine",
            Self::SettingsFiles => "settings files",
            Self::KeyRotations => "key rotations",
            Self::Volume => "volume",
            Self::VolumeCipherDriver => "volume cipher driver",
            Self::VolumeDirectIo => "volume direct I/O",
        }
    }
}

/// A note that Tithe adds to a cell, besides those of its workload; [`Note::name`] is its text in files and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The rate of offered operations per second, if the run itself found it.
    Rate,
    /// When the arms' servers run, if they do not run all the time.
    Servers,
    /// Where servers listen, if other machines can reach them.
    Listen,
    /// What process an embedded database runs in.
    Process,
    /// Which arms share their data.
    Data,
    /// The layers of the encrypted swap.
    EncryptedSwap,
    /// After how many operations clients connect again.
    Connections,
    /// What happens to the data between two starts.
    DataBetweenStarts,
}

impl Note {
    /// All of them.
    const ALL: [Self; 8] = [
        Self::Rate,
        Self::Servers,
        Self::Listen,
        Self::Process,
        Self::Data,
        Self::EncryptedSwap,
        Self::Connections,
        Self::DataBetweenStarts,
    ];

    /// True of the name of any of them; the names of all others are those of workloads.
    pub fn has(name: &str) -> bool {
        Self::ALL.into_iter().any(|note| note.is(name))
    }

    /// Its name in `cells/*.json` and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Servers => "servers",
            Self::Listen => "listen",
            Self::Process => "process",
            Self::Data => "data",
            Self::EncryptedSwap => "encrypted swap",
            Self::Connections => "connections",
            Self::DataBetweenStarts => "data between starts",
        }
    }

    /// True of the note called `name`.
    pub fn is(self, name: &str) -> bool {
        self.name() == name
    }
}

impl CellFacts {
    /// Adds `note`.
    pub fn note(&mut self, note: Note, text: String) {
        self.notes.push((note.name().to_owned(), text));
    }
}

impl ArmFacts {
    /// The text of `fact`; `None` if it does not apply.
    pub fn reported(&self, fact: Fact) -> Option<&str> {
        self.facts.get(fact.name()).map(String::as_str)
    }

    /// Sets `fact`; replaces its earlier text.
    pub fn set(&mut self, fact: Fact, text: String) {
        self.facts.insert(fact.name().to_owned(), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_stands_under_its_name() {
        let mut facts = ArmFacts::default();
        assert_eq!(facts.reported(Fact::DataSet), None);
        facts.set(Fact::DataSet, "loaded by plain".to_owned());
        facts.set(Fact::DataSet, "loaded by tls".to_owned());
        assert_eq!(facts.reported(Fact::DataSet), Some("loaded by tls"));
        assert_eq!(facts.facts, [("data set".to_owned(), "loaded by tls".to_owned())].into());
    }

    #[test]
    fn notes_of_tithes_own_are_known_by_name() {
        assert!(Note::ALL.into_iter().all(|note| Note::has(note.name())));
        assert!(!["READ", "connection", "readallfields", ""].into_iter().any(Note::has));
    }
}
