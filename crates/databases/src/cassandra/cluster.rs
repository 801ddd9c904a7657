//! How many nodes there are, how many hold each record, and how many must answer: an experiment's settings for a
//! cluster.

use std::collections::BTreeMap;

use tithe_machine::fault::Fault;
use tithe_plugin::setup::Setup;

use super::protocol::Consistency;

/// Setting: number of nodes.
pub const NODES: &str = "nodes";
/// Setting: number of nodes that hold each record.
pub const REPLICATION: &str = "replication_factor";
/// Setting: how many of them must answer.
pub const CONSISTENCY: &str = "consistency";

/// Most nodes that are launched.
pub const MOST_NODES: usize = 4;
/// Rows that show that a node has written its files, if every node holds every row: one of them may be cut in two.
const MARKS: usize = 8;
/// As [`MARKS`], if each row is only on some nodes: with this many, every node holds several.
const MARKS_SPREAD: usize = 64;

/// A cluster, as an experiment describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Nodes.
    pub nodes: usize,
    /// Nodes that hold each record.
    pub replication: usize,
    /// How many of them must answer.
    pub level: Consistency,
    /// Its name.
    pub level_name: String,
}

impl Cluster {
    /// The cluster that `setup` describes. Defaults: one node, each record on up to three nodes, and QUORUM, as in
    /// YCSB's own binding.
    ///
    /// # Errors
    /// [`Fault::Refused`] for numbers that do not fit together, and for an unknown level.
    pub fn of(setup: &Setup) -> Result<Self, Fault> {
        Self::of_settings(&setup.settings)
    }

    /// As [`Cluster::of`], of settings alone.
    ///
    /// # Errors
    /// As [`Cluster::of`].
    pub fn of_settings(settings: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let number = |name: &str, default: usize, most: usize| match settings.get(name) {
            None => Ok(default.min(most)),
            Some(value) => value
                .parse()
                .ok()
                .filter(|number| (1..=most).contains(number))
                .ok_or_else(|| Fault::Refused(format!("the setting {name} is a whole number from 1 to {most}"))),
        };
        let nodes = number(NODES, 1, MOST_NODES)?;
        let replication = number(REPLICATION, 3, nodes)?;
        let level_name = settings.get(CONSISTENCY).map_or("QUORUM", String::as_str).to_ascii_uppercase();
        let level = Consistency::named(&level_name).ok_or_else(|| {
            let known: Vec<&str> = Consistency::ALL.iter().map(|(name, _)| *name).collect();
            Fault::Refused(format!("the setting {CONSISTENCY} is one of {}", known.join(", ")))
        })?;
        Ok(Self { nodes, replication, level, level_name })
    }

    /// Number of rows that show that every node has written its files.
    pub fn marks(&self) -> usize {
        if self.nodes == self.replication { MARKS } else { MARKS_SPREAD }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_setup::plain;

    fn of(settings: &[(&str, &str)]) -> Result<(usize, usize, String), String> {
        let mut setup = plain();
        setup.settings.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Cluster::of(&setup)
            .map(|cluster| (cluster.nodes, cluster.replication, cluster.level_name))
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn defaults_fit_the_number_of_nodes() {
        let quorum = || "QUORUM".to_owned();
        assert_eq!(of(&[]), Ok((1, 1, quorum())));
        assert_eq!(of(&[(NODES, "2")]), Ok((2, 2, quorum())));
        assert_eq!(of(&[(NODES, "4")]), Ok((4, 3, quorum())));
        assert_eq!(of(&[(NODES, "3"), (REPLICATION, "1"), (CONSISTENCY, "one")]), Ok((3, 1, "ONE".to_owned())));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(of(&[(NODES, "5")]), Err("refused: the setting nodes is a whole number from 1 to 4".to_owned()));
        assert_eq!(
            of(&[(NODES, "2"), (REPLICATION, "3")]),
            Err("refused: the setting replication_factor is a whole number from 1 to 2".to_owned())
        );
        assert!(of(&[(CONSISTENCY, "MOST")]).is_err());
    }
}
