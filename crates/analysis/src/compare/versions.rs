//! Versions of one server side by side, which a run has measured in cells of their own.

use super::{Comparison, compare};
use crate::{Analysis, CellAnalysis};

/// How costs differ between the versions of `analysis`, each compared with the first. `None` if it has one version, or
/// if no cost can be compared; the cells then have the reason.
pub fn between_versions(analysis: &Analysis) -> Option<Comparison> {
    let mut versions: Vec<&str> = Vec::new();
    for CellAnalysis { version, .. } in &analysis.cells {
        if !version.is_empty() && !versions.contains(&version.as_str()) {
            versions.push(version);
        }
    }
    if versions.len() < 2 {
        return None;
    }
    let of = |version: &&str| {
        let cells = analysis.cells.iter().filter(|cell| cell.version == *version).map(without_version).collect();
        Analysis { cells, sweeps: Vec::new(), ..analysis.clone() }
    };
    let labels: Vec<Option<String>> = versions.iter().map(|version| Some((*version).to_owned())).collect();
    compare(&versions.iter().map(of).collect::<Vec<_>>(), &labels).ok()
}

/// `cell` by the names that it has in common with those of other versions.
fn without_version(cell: &CellAnalysis) -> CellAnalysis {
    let others: Vec<&str> = cell.resources.split(", ").filter(|part| *part != cell.version).collect();
    let parts = std::iter::once(cell.workload.as_str()).chain(others.iter().copied());
    let id = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    CellAnalysis { id, resources: others.join(", "), ..cell.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn cells_of_versions_are_compared_and_no_others() {
        let compared = between_versions(&sample::versions()).expect("two versions");
        assert_eq!(compared.runs, ["version 15", "version 18"]);
        let told: Vec<_> = compared.matches.iter().map(|it| (it.cell.as_str(), it.arm.as_str())).collect();
        assert_eq!(told, [("c, in-memory", "tls"), ("c, in-memory", "auth")]);
        let [change] = compared.matches[0].changes()[..] else { panic!("one later version") };
        assert!(change.points.high < 0.0, "TLS costs less on the later version: {change:?}");
        assert_eq!(between_versions(&sample::full()), None);
        let alone = Analysis { cells: sample::versions().cells[..1].to_vec(), ..sample::versions() };
        assert_eq!(between_versions(&alone), None);
    }

    #[test]
    fn a_version_that_was_not_measured_is_said() {
        let mut analysis = sample::versions();
        analysis.cells[1].arms[1].estimates.clear();
        let compared = between_versions(&analysis).expect("an arm is left");
        assert_eq!(compared.reasons(), ["Arm tls of cell c, in-memory was not measured in version 18."]);
    }
}
