//! A gathered matrix as CSV (RFC 4180): a row for each figure, for each of its hosts, and for each missing task, cell
//! and arm.
//!
//! Numbers are written as in [`csv`](crate::report::csv): in full, and empty if unknown.

use super::{Absence, absences, ranges, tasks};
use crate::{
    Interval,
    matrix::{Answer, Basis, Gathered, HostFigure, MatrixFigure},
    report::csv::{finite, percent, proof_word, written},
};

/// Columns in their order, each with a description.
pub const COLUMNS: [(&str, &str); 25] = [
    (
        "row",
        "together: all hosts or repeats of a figure; host: one of its hosts; missing: a task, a cell of one or an arm of a cell that left nothing",
    ),
    ("machine", "kind of machine"),
    ("experiment", "path of the experiment, as the matrix file has it"),
    ("database", "the database"),
    ("cell", "short name of the cell"),
    ("arm", "name of the protected arm"),
    ("protections", "its protections, joined with +"),
    ("figure", "how the figure reads: net time per op"),
    ("host", "beginning of the fingerprint of the host's boot; of a host"),
    ("tasks", "numbers of the tasks behind the row"),
    ("of", "what count counts: hosts, or repeats on one host"),
    ("count", "hosts or repeats that count"),
    ("proof", "proven, told, unproven or disproven: was the protection on; of a host"),
    ("effect_ln", "natural logarithm of protected/plain; positive is a cost; empty where nothing is pooled"),
    ("low_ln", "lower end of its interval"),
    ("high_ln", "upper end of its interval"),
    ("cost_percent", "the same in percent of the baseline"),
    ("low_percent", "lower end of its interval"),
    ("high_percent", "upper end of its interval"),
    ("spread_ln", "standard deviation of the true effect between hosts or repeats"),
    ("spread_low_ln", "lower end of its interval"),
    ("spread_high_ln", "upper end of its interval"),
    ("another_low_ln", "lower end of where another host or repeat lies; empty below five"),
    ("another_high_ln", "upper end of it"),
    ("reason", "why it is missing"),
];

/// The rows, with a header; lines end with CR LF as RFC 4180 requires.
pub fn render(gathered: &Gathered, figures: &[MatrixFigure]) -> String {
    let of_figure = |figure| {
        let hosts = |figure: &MatrixFigure| figure.hosts.iter().map(|host| host_row(figure, host)).collect::<Vec<_>>();
        std::iter::once(together_row(figure)).chain(hosts(figure))
    };
    let absences = absences(gathered, figures);
    let rows = figures.iter().flat_map(of_figure).chain(absences.iter().map(missing_row));
    written(std::iter::once(COLUMNS.map(|(name, _)| name.to_owned())).chain(rows))
}

/// The fields of a row by column name.
type Fields = Vec<(&'static str, String)>;

/// `fields` in the order of the columns; the others are empty.
fn row(fields: &[(&str, String)]) -> [String; COLUMNS.len()] {
    let of = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    COLUMNS.map(|(name, _)| of(name).unwrap_or_default())
}

fn together_row(figure: &MatrixFigure) -> [String; COLUMNS.len()] {
    let repeats = figure.counting().flat_map(|host| &host.repeats);
    let mut numbers: Vec<usize> = repeats.map(|repeat| repeat.task).collect();
    numbers.sort_unstable();
    let mut fields = about(figure, "together");
    fields.push(("tasks", ranges(&numbers)));
    fields.extend(answered(&figure.answer, "hosts"));
    fields.extend(figure.together().map(effect).unwrap_or_default());
    row(&fields)
}

fn host_row(figure: &MatrixFigure, host: &HostFigure) -> [String; COLUMNS.len()] {
    let mut fields = about(figure, "host");
    fields.extend([("host", host.host.clone()), ("tasks", tasks(host)), ("proof", proof_word(&host.proof).to_owned())]);
    fields.extend(answered(&host.answer, "repeats"));
    fields.extend(effect(host.effect()));
    row(&fields)
}

fn missing_row(absence: &Absence<'_>) -> [String; COLUMNS.len()] {
    let Absence { row: task, cell, figure, reason } = *absence;
    let mut fields = match figure {
        Some(figure) => about(figure, "missing"),
        None => vec![
            ("row", "missing".to_owned()),
            ("machine", task.machine.clone()),
            ("experiment", task.experiment.clone()),
            ("cell", cell.unwrap_or_default().to_owned()),
        ],
    };
    fields.extend([("tasks", task.task.to_string()), ("reason", reason.to_owned())]);
    row(&fields)
}

fn about(figure: &MatrixFigure, kind: &str) -> Fields {
    vec![
        ("row", kind.to_owned()),
        ("machine", figure.machine.clone()),
        ("experiment", figure.experiment.clone()),
        ("database", figure.database.clone()),
        ("cell", figure.cell.clone()),
        ("arm", figure.arm.clone()),
        ("protections", figure.protections.join("+")),
        ("figure", figure.title().to_owned()),
    ]
}

/// The number of values behind an answer and its results besides the effect. The values are `units` unless the answer
/// names others.
fn answered(answer: &Answer, units: &'static str) -> Fields {
    let (of, count) = match answer {
        Answer::Nothing => (units, 0),
        Answer::One(_) => (units, 1),
        Answer::Two(Basis::Hosts(count), _) | Answer::Over(Basis::Hosts(count), _) => ("hosts", *count),
        Answer::Two(Basis::Repeats(count), _) | Answer::Over(Basis::Repeats(count), _) => ("repeats", *count),
    };
    let mut fields = vec![("of", of.to_owned()), ("count", count.to_string())];
    if let Answer::Over(_, together) = answer {
        fields.extend([
            ("spread_ln", finite(together.spread.estimate)),
            ("spread_low_ln", finite(together.spread.low)),
            ("spread_high_ln", finite(together.spread.high)),
        ]);
        let next = together.next.iter();
        fields.extend(next.flat_map(|it| [("another_low_ln", finite(it.low)), ("another_high_ln", finite(it.high))]));
    }
    fields
}

fn effect(effect: Interval) -> Fields {
    vec![
        ("effect_ln", finite(effect.estimate)),
        ("low_ln", finite(effect.low)),
        ("high_ln", finite(effect.high)),
        ("cost_percent", percent(effect.estimate)),
        ("low_percent", percent(effect.low)),
        ("high_percent", percent(effect.high)),
    ]
}
