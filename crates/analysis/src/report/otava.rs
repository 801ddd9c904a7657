//! The deciding costs as a line of CSV with a header, as Apache Otava (formerly Hunter) reads series: a column for the
//! time, columns that identify the run, and a column for each arm of each cell.
//!
//! Lines of several runs form the series, under one header. The format has no place for a proof or an interval. A cost
//! is an empty field if it is not proven, has no interval, has an asymmetric set-up, or is not held by its interval.

use tithe_model::quantity::moment;

use super::{csv::written, number};
use crate::Analysis;

/// The header and the run's line; lines end with CR LF (RFC 4180).
pub fn render(analysis: &Analysis) -> String {
    let version = analysis.cells.iter().flat_map(|cell| &cell.arms).next().map(|arm| arm.facts.version.clone());
    let mut columns = vec![
        ("time".to_owned(), analysis.began_unix_s.map_or(String::new(), moment)),
        ("run".to_owned(), analysis.run.clone()),
        ("version".to_owned(), version.unwrap_or_default()),
        ("tithe".to_owned(), analysis.tithe.clone()),
    ];
    for cell in &analysis.cells {
        for arm in &cell.arms {
            if let Some(estimate) = arm.primary() {
                let name = format!("{}.{}.{}_cost_percent", cell.id, arm.name, estimate.name);
                let percent = || number::percent(estimate.effect.estimate).to_string();
                columns.push((name, if estimate.counts(&arm.proof) { percent() } else { String::new() }));
            }
        }
    }
    let (names, values): (Vec<String>, Vec<String>) = columns.into_iter().unzip();
    written([names, values])
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;
    use crate::{Flag, report::sample};

    #[test]
    fn a_line_for_a_run() {
        let analysis = Analysis { began_unix_s: Some(1_763_712_720), ..sample::full() };
        let text = render(&analysis);
        expect_file!["golden/full.otava.csv"].assert_eq(&text.replace("\r\n", "\n"));
        assert_eq!(text.lines().count(), 2);
        // A run without measurements has a time and no figures.
        assert_eq!(render(&sample::empty()).lines().next(), Some("time,run,version,tithe"));
    }

    #[test]
    fn a_cost_that_does_not_count_is_an_empty_field() {
        let analysis = sample::full();
        let tls = |analysis: &Analysis| {
            let text = render(analysis);
            let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
            let (names, values) = (lines.next().expect("a header"), lines.next().expect("a run"));
            let place = names.iter().position(|name| name == "c/in-memory.tls.net_cost_percent").expect("a column");
            values[place].clone()
        };
        assert!(!tls(&analysis).is_empty());
        for flag in [Flag::Asymmetric, Flag::NotSteady, Flag::WaitingAlone, Flag::Moved] {
            let mut flagged = analysis.clone();
            flagged.cells[0].arms[1].estimates[0].flags.push(flag);
            assert_eq!(tls(&flagged), "", "{flag:?}");
        }
    }
}
