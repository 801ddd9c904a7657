//! The facts of an arm whose names are Tithe's own. Those that a server tells have the server's names and stay text.

use crate::record::ArmFacts;

/// A fact that Tithe itself knows of an arm; [`Fact::name`] is its text in files and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// What answered in place of the product: no figure is the product's.
    StandIn,
    /// Where the data came from, where they are a copy.
    DataSet,
    /// How many times as large as the limit of memory the data are.
    DataPerMemory,
    /// When and how the page cache was emptied.
    Cache,
    /// What the server found in its own cache while measuring.
    CacheHits,
    /// What the server was confined to.
    Limits,
    /// The control group by which the server is counted, where it is not confined.
    ControlGroup,
    /// The processes of an attached server on this machine and how their work is counted, or why they are not seen.
    ServerProcesses,
    /// The machine of an attached server as an observer there says it.
    ServerMachine,
    /// Files of settings on that machine, by length and fingerprint.
    SettingsFiles,
    /// How often the key was changed while measuring, and how long that took.
    KeyRotations,
    /// The layers of the volume under the server's folder.
    Volume,
    /// The kernel driver that encrypts the volume.
    VolumeCipherDriver,
    /// Whether the volume's image is read and written past the page cache.
    VolumeDirectIo,
}

impl Fact {
    /// Its name in `cells.json` and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StandIn => "stand-in",
            Self::DataSet => "data set",
            Self::DataPerMemory => "data per memory",
            Self::Cache => "cache",
            Self::CacheHits => "cache hits",
            Self::Limits => "limits",
            Self::ControlGroup => "control group",
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

impl ArmFacts {
    /// What is told of `fact`; `None` where it does not apply.
    pub fn reported(&self, fact: Fact) -> Option<&str> {
        self.facts.get(fact.name()).map(String::as_str)
    }

    /// Tells `fact`, in place of what was told of it before.
    pub fn tell(&mut self, fact: Fact, text: String) {
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
        facts.tell(Fact::DataSet, "loaded by plain".to_owned());
        facts.tell(Fact::DataSet, "loaded by tls".to_owned());
        assert_eq!(facts.reported(Fact::DataSet), Some("loaded by tls"));
        assert_eq!(facts.facts, [("data set".to_owned(), "loaded by tls".to_owned())].into());
    }
}
