//! A gathered matrix as a document, for programs and for archives: `{"format": 1, "tithe_matrix": …, "figures": …}`.
//!
//! Every report is made from `tithe_matrix`; `figures` is computed from it, for programs that do not want to compute
//! it, and is ignored when a document is read. Effects and spreads are natural-log ratios; values that are not finite
//! are null, as in [`null`](tithe_statistics::null).

use serde::Deserialize;
use serde_json::{Value, json};
use tithe_model::matrix::FORMAT;
use tithe_statistics::hosts::PooledEffect;

use super::basis;
use crate::{
    Interval,
    matrix::{Answer, Basis, Gathered, HostFigure, MatrixFigure, facts},
    report::words,
};

/// The JSON Schema (draft 2020-12) that every document of [`render`] follows.
pub fn schema() -> &'static str {
    include_str!("../../../schema/matrix.schema.json")
}

/// The document, one task or figure per line, ending with a line break.
pub fn render(gathered: &Gathered, figures: &[MatrixFigure]) -> String {
    let Gathered { title, plan, tithe, tasks, strays } = gathered;
    let line = |value: &Value| format!("\n    {value}");
    let lines = |values: Vec<Value>| values.iter().map(line).collect::<Vec<_>>().join(",");
    format!(
        "{{\n  \"format\": {FORMAT},\n  \"tithe_matrix\": {{\"title\": {}, \"plan\": {}, \"tithe\": {}, \
         \"strays\": {}, \"tasks\": [{}\n  ]}},\n  \"figures\": [{}\n  ]\n}}\n",
        json!(title),
        json!(plan),
        json!(tithe),
        json!(strays),
        lines(tasks.iter().map(|row| json!(row)).collect()),
        lines(figures.iter().map(figure).collect()),
    )
}

fn figure(figure: &MatrixFigure) -> Value {
    let left_out = |(task, reason): &(usize, String)| json!({ "task": task, "reason": reason });
    json!({
        "machine": figure.machine,
        "experiment": figure.experiment,
        "database": figure.database,
        "cell": figure.cell,
        "arm": figure.arm,
        "protections": figure.protections,
        "figure": figure.title(),
        "answer": answer(&figure.answer, "hosts"),
        "hosts": figure.hosts.iter().map(host).collect::<Vec<_>>(),
        "left_out": figure.left_out.iter().map(left_out).collect::<Vec<_>>(),
    })
}

/// The combined result of several measurements, which are `units` unless the answer names others.
fn answer(answer: &Answer, units: &str) -> Value {
    let (units, count) = match answer {
        Answer::Nothing => (units, 0),
        Answer::One(_) => (units, 1),
        Answer::Two(Basis::Hosts(count), _) | Answer::Over(Basis::Hosts(count), _) => ("hosts", *count),
        Answer::Two(Basis::Repeats(count), _) | Answer::Over(Basis::Repeats(count), _) => ("repeats", *count),
    };
    let together = match answer {
        Answer::Over(_, together) => Some(together),
        _ => None,
    };
    let effect = match answer {
        Answer::One(effect) | Answer::Over(_, PooledEffect { effect, .. }) => Some(effect),
        Answer::Nothing | Answer::Two(..) => None,
    };
    json!({
        "of": units,
        "count": count,
        "words": basis(answer),
        "effect": effect.map(interval),
        "spread": together.map(|it| interval(&it.spread)),
        "another": together.and_then(|it| it.next.as_ref()).map(interval),
    })
}

fn host(host: &HostFigure) -> Value {
    let facts: serde_json::Map<String, Value> =
        facts::of(host).into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect();
    json!({
        "host": host.host,
        "tasks": host.repeats.iter().map(|repeat| repeat.task).collect::<Vec<_>>(),
        "counts": host.counts(),
        "proof": words::proof(&host.proof).0.to_lowercase(),
        "effect": interval(&host.effect()),
        "answer": answer(&host.answer, "repeats"),
        "facts": facts,
    })
}

/// Values that are not finite are null.
fn interval(of: &Interval) -> Value {
    json!({ "estimate": of.estimate, "low": of.low, "high": of.high })
}

/// The part of a document that is read; the rest is computed from it.
#[derive(Deserialize)]
struct Document {
    tithe_matrix: Gathered,
}

/// True if `text` looks like such a document.
pub fn is_one(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.get("tithe_matrix").is_some())
}

/// Parses the document `text`.
///
/// # Errors
/// Why it cannot be shown: it is of another format, cut short, or damaged.
pub fn read(text: &str) -> Result<Gathered, String> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let damaged = |error: serde_json::Error| format!("it is not a gathered matrix, or damaged: {error}");
    let Format { format } = serde_json::from_str(text).map_err(damaged)?;
    if format != FORMAT {
        return Err(format!("it is of format {format}, this tithe reads format {FORMAT}: gather the matrix again"));
    }
    let Document { tithe_matrix } = serde_json::from_str(text).map_err(damaged)?;
    Ok(tithe_matrix)
}
