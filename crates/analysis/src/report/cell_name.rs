//! Cell names for readers: from the load, and from the differences to the other cells.
//!
//! Files and warnings use a cell's identifier (`c.larger-than-the-cache`).

use std::collections::{BTreeMap, BTreeSet};

use tithe_model::operation::{READ, Share};

use super::words;
use crate::{Analysis, CellAnalysis};

/// The names of the cells of `analysis`, in its order; all are different.
pub fn names(analysis: &Analysis) -> Vec<String> {
    let cells = &analysis.cells;
    let differ = |of: fn(&CellAnalysis) -> String| cells.iter().map(of).collect::<BTreeSet<_>>().len() > 1;
    let told: Vec<fn(&CellAnalysis) -> String> =
        [resources, clients, arrivals].into_iter().filter(|of| differ(*of)).collect();
    let name = |cell: &CellAnalysis| {
        let parts = std::iter::once(load(cell)).chain(told.iter().map(|of| of(cell)));
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    cells.iter().for_each(|cell| *times.entry(name(cell)).or_default() += 1);
    let own = |cell: &CellAnalysis| match name(cell) {
        shared if times[&shared] > 1 => format!("{shared} ({})", cell.id),
        own => own,
    };
    cells.iter().map(own).collect()
}

fn resources(cell: &CellAnalysis) -> String {
    cell.resources.clone()
}

fn clients(cell: &CellAnalysis) -> String {
    words::plural(cell.clients.into(), "client")
}

fn arrivals(cell: &CellAnalysis) -> String {
    cell.arrivals.clone()
}

/// `reads only`, `half updates`, `20 % updates, 10 % inserts`; the name of a workload without shares of operations.
fn load(cell: &CellAnalysis) -> String {
    let shares: Vec<Share<'_>> = cell.notes.iter().filter_map(|(name, value)| Share::of_note(name, value)).collect();
    let reads = shares.iter().any(|share| share.operation == READ);
    match shares.as_slice() {
        [] => format!("workload {}", cell.workload),
        [share] => format!("{} only", many(share.operation)),
        // The rest are reads.
        all => {
            let told = all.iter().filter(|share| !reads || share.operation != READ);
            told.map(of_all).collect::<Vec<_>>().join(", ")
        }
    }
}

fn of_all(share: &Share<'_>) -> String {
    let part = if share.percent == 50.0 { "half".to_owned() } else { format!("{} %", share.percent) };
    format!("{part} {}", many(share.operation))
}

/// `updates`
fn many(operation: &str) -> String {
    format!("{}s", operation.to_lowercase())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::report::sample;

    fn cell(notes: &[(&str, &str)], resources: &str) -> CellAnalysis {
        let notes = notes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        CellAnalysis { notes, resources: resources.to_owned(), ..sample::full().cells[0].clone() }
    }

    fn named(cells: &[CellAnalysis]) -> String {
        names(&Analysis { cells: cells.to_vec(), ..sample::empty() }).join("\n")
    }

    #[test]
    fn cells_are_called_by_what_they_do() {
        let all: &[(&str, &str)] = &[("requestdistribution", "zipfian"), ("READ", "100 %"), ("values", "ycsb")];
        let mixed = &[("READ", "70 %"), ("UPDATE", "20 %"), ("INSERT", "10 %")];
        let scans = &[("SCAN", "95 %"), ("INSERT", "5 %")];
        expect!["reads only"].assert_eq(&named(&[cell(all, "in memory")]));
        expect!["half updates"].assert_eq(&named(&[cell(&[("READ", "50 %"), ("UPDATE", "50 %")], "")]));
        expect![[r#"
            20 % updates, 10 % inserts
            95 % scans, 5 % inserts
            workload c"#]]
        .assert_eq(&named(&[cell(mixed, ""), cell(scans, ""), cell(&[("program", "pgbench")], "")]));
    }

    #[test]
    fn what_differs_tells_cells_apart_and_at_last_their_identifiers() {
        let reads: &[(&str, &str)] = &[("READ", "100 %")];
        let two = [cell(reads, "in memory"), cell(reads, "on disk")];
        expect![[r#"
            reads only, in memory
            reads only, on disk"#]]
        .assert_eq(&named(&two));
        let more = [CellAnalysis { clients: 8, ..two[0].clone() }, two[0].clone()];
        expect![[r#"
            reads only, 8 clients
            reads only, 2 clients"#]]
        .assert_eq(&named(&more));
        let alike = [two[0].clone(), CellAnalysis { id: "other".to_owned(), ..two[0].clone() }];
        expect![[r#"
            reads only (c/in-memory)
            reads only (other)"#]]
        .assert_eq(&named(&alike));
    }
}
