//! The estimates as CSV (RFC 4180), one row each, for spreadsheets and data frames.
//!
//! Numbers are written in full with a decimal point and no thousands separator. An infinite end of an interval and an
//! unknown level are empty. A `'` is put before names that begin like a formula. Evidence, settings and the machine are
//! left out: they are in the JSON report.

use ::csv::{Terminator, WriterBuilder};

use super::{number, view, words};
use crate::{Analysis, ArmAnalysis, CellAnalysis, Estimate, Interval, OverRun, Proof};

/// Columns in their order, each with a description.
pub const COLUMNS: [(&str, &str); 36] = [
    ("run", "name of the run folder"),
    ("cell", "short name of the cell"),
    ("workload", "name of the workload"),
    ("resources", "name of the resources; empty when unnamed"),
    ("clients", "connections that are busy at the same time, per arm"),
    ("arm", "name of the protected arm"),
    ("protections", "its protections, joined with +"),
    (
        "proof",
        "proven, told, unproven or disproven: was the protection on; baseline of a plain arm, A/A of the plain arm \
         again: its true cost is zero",
    ),
    ("name", "identifier of the figure: net, cpu, latency_p99_READ"),
    ("title", "how the figure reads"),
    ("primary", "true for the figure that was declared before the run to decide"),
    ("unit", "unit of plain, protected and difference"),
    ("plain", "level of the baseline, for orientation"),
    ("protected", "level of the arm, for orientation"),
    ("effect_ln", "natural logarithm of protected/plain; positive is a cost, of throughput negative"),
    ("low_ln", "lower end of its interval"),
    ("high_ln", "upper end of its interval"),
    ("cost_percent", "the same in percent of the baseline"),
    ("low_percent", "lower end of its interval"),
    ("high_percent", "upper end of its interval"),
    ("count", "frames, or groups of frames, behind the figure"),
    ("batch", "frames averaged together because successive frames were correlated; 1 is none"),
    ("starts", "starts of the servers behind the figure"),
    ("spread_ln", "standard deviation of effect_ln from start to start; empty if there were too few starts"),
    ("spread_low_ln", "lower end of its interval"),
    ("spread_high_ln", "upper end of its interval"),
    ("widened", "true where starts are too few and the interval is wider by the spread that is known of the product"),
    ("verdict", "COSTS, GAINS, NONE_FOUND or TOO_NOISY"),
    ("flags", "what limits the figure, joined with +"),
    ("p", "p of no effect (signed-rank test, Student's over starts), adjusted over the arms (Holm)"),
    ("difference", "protected less plain per operation, in unit; empty unless the figure is an amount per operation"),
    ("difference_low", "lower end of its interval"),
    ("difference_high", "upper end of its interval"),
    (
        "run_low_ln",
        "lower end of the interval over all cells, for headlines; only in primary rows of runs with several cells",
    ),
    ("run_high_ln", "upper end of it"),
    ("run_verdict", "the verdict by it"),
];

/// The estimates of `analysis`, with a header; lines end with CR LF as RFC 4180 requires.
pub fn render(analysis: &Analysis) -> String {
    let rows = analysis.cells.iter().flat_map(|cell| {
        cell.arms.iter().flat_map(move |arm| arm.estimates.iter().map(move |it| row(analysis, cell, arm, it)))
    });
    written(std::iter::once(COLUMNS.map(|(name, _)| name.to_owned())).chain(rows))
}

fn row(analysis: &Analysis, cell: &CellAnalysis, arm: &ArmAnalysis, estimate: &Estimate) -> [String; COLUMNS.len()] {
    let effect = &estimate.change();
    let difference = |of: fn(&Interval) -> f64| estimate.difference.as_ref().map(of).map_or(String::new(), finite);
    let spread = |of: fn(&Interval) -> f64| estimate.spread.as_ref().map(of).map_or(String::new(), finite);
    let over_run = |of: fn(&OverRun) -> String| estimate.over_run.as_ref().map(of).unwrap_or_default();
    let flags: Vec<&str> = estimate.flags.iter().map(|flag| words::flag_code(*flag)).collect();
    [
        analysis.run.clone(),
        cell.id.clone(),
        cell.workload.clone(),
        cell.resources.clone(),
        cell.clients.to_string(),
        arm.name.clone(),
        arm.protections.join("+"),
        proof(arm).to_owned(),
        estimate.name.to_string(),
        estimate.title.clone(),
        estimate.primary.to_string(),
        estimate.unit.to_string(),
        estimate.levels.map_or(String::new(), |(plain, _)| finite(plain)),
        estimate.levels.map_or(String::new(), |(_, protected)| finite(protected)),
        finite(effect.estimate),
        finite(effect.low),
        finite(effect.high),
        percent(effect.estimate),
        percent(effect.low),
        percent(effect.high),
        estimate.count.to_string(),
        estimate.batch.to_string(),
        estimate.starts.to_string(),
        spread(|it| it.estimate),
        spread(|it| it.low),
        spread(|it| it.high),
        estimate.widened.to_string(),
        words::outcome_code(estimate.verdict).to_owned(),
        flags.join("+"),
        estimate.p.map_or(String::new(), finite),
        difference(|it| it.estimate),
        difference(|it| it.low),
        difference(|it| it.high),
        over_run(|it| finite(it.effect.low)),
        over_run(|it| finite(it.effect.high)),
        over_run(|it| words::outcome_code(it.verdict).to_owned()),
    ]
}

fn proof(arm: &ArmAnalysis) -> &'static str {
    if arm.aa { "A/A" } else { proof_word(&arm.proof) }
}

/// `proof` in one word.
pub(super) fn proof_word(proof: &Proof) -> &'static str {
    match proof {
        Proof::Baseline => "baseline",
        Proof::Proven => "proven",
        Proof::ByClaim => "by-claim",
        Proof::Setting => "setting",
        Proof::Unproven(_) => "unproven",
        Proof::ToldByProvider(_) => "told",
        Proof::Disproven(_) => "disproven",
    }
}

pub(super) fn finite(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// An infinite end has no percentage, although the lower one would be computed as -100.
pub(super) fn percent(ln_ratio: f64) -> String {
    if ln_ratio.is_finite() { finite(number::percent(ln_ratio)) } else { String::new() }
}

/// Characters that begin a formula in spreadsheets, including their full-width forms.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// `field` in one line, with `'` in front if it is not a number and a spreadsheet would treat it as a formula.
fn inert(mut field: String) -> String {
    view::clean(&mut field);
    let is_formula = field.trim_start().starts_with(FORMULA) && field.parse::<f64>().is_err();
    if is_formula { format!("'{field}") } else { field }
}

/// A table as text, one record per line.
pub(super) fn written<R: IntoIterator<Item = String>>(records: impl IntoIterator<Item = R>) -> String {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    for record in records {
        writer.write_record(record.into_iter().map(inert)).expect("memory takes every record of a table");
    }
    String::from_utf8(writer.into_inner().expect("memory takes all")).expect("texts are a text")
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use proptest::prelude::*;

    use super::*;
    use crate::report::sample;

    /// A reader of RFC 4180, written independently of the writer.
    fn read(text: &str) -> Vec<Vec<String>> {
        let mut records = Vec::new();
        let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match (quoted, character) {
                (true, '"') if characters.peek() == Some(&'"') => field.extend(characters.next()),
                (_, '"') => quoted = !quoted,
                (false, ',') => fields.push(std::mem::take(&mut field)),
                (false, '\r') => {
                    assert_eq!(characters.next(), Some('\n'));
                    fields.push(std::mem::take(&mut field));
                    records.push(std::mem::take(&mut fields));
                }
                (_, other) => field.push(other),
            }
        }
        assert!(fields.is_empty() && field.is_empty() && !quoted, "the last record is complete");
        records
    }

    #[test]
    fn one_row_per_estimate() {
        let text = render(&sample::full());
        expect_file!["golden/full.csv"].assert_eq(&text.replace("\r\n", "\n"));
        let controlled = render(&sample::controlled());
        expect_file!["golden/controlled.csv"].assert_eq(&controlled.replace("\r\n", "\n"));
        let records = read(&text);
        let estimates: usize =
            sample::full().cells.iter().flat_map(|cell| &cell.arms).map(|arm| arm.estimates.len()).sum();
        assert_eq!(records.len(), 1 + estimates);
        assert!(records.iter().all(|fields| fields.len() == COLUMNS.len()));
    }

    #[test]
    fn without_cells_there_is_the_header() {
        assert_eq!(read(&render(&sample::empty())).len(), 1);
    }

    #[test]
    fn no_text_is_a_formula_and_numbers_are_numbers() {
        let inert = |text: &str| inert(text.to_owned());
        assert_eq!(inert("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(
            ["+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "＝1"].map(|text| inert(text).starts_with('\'')),
            [true; 6]
        );
        assert_eq!(["-3.25", "+1e-9", "tls+audit", "a=1", ""].map(inert), ["-3.25", "+1e-9", "tls+audit", "a=1", ""]);
    }

    proptest! {
        #[test]
        fn any_text_survives(fields in proptest::array::uniform3("[a-c,\" ]{0,6}")) {
            prop_assert_eq!(read(&written([fields.clone()])), vec![fields.to_vec()]);
        }
    }
}
