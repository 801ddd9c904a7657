//! TOML → [`Experiment`](super::Experiment), or everything that is wrong with it.

use crate::{catalogue::Catalogue, complaint::Complaint};

use super::Experiment;

/// Reads an experiment file.
///
/// `read` fetches a file that the experiment names (a YCSB property file), by the path as written.
///
/// # Errors
/// Every problem found, in the order of the file.
pub fn parse(
    _text: &str,
    _catalogue: &Catalogue,
    _read: &dyn Fn(&str) -> std::io::Result<String>,
) -> Result<Experiment, Vec<Complaint>> {
    unimplemented!()
}
