//! A comparison of runs, or of gathered matrices, as a page: the sentence, then for each arm all costs on one scale,
//! and the sentences about them.

use maud::{Markup, html};
use tithe_model::record::ArmFacts;

use super::{
    answer::listed,
    first_screen::{framed, row, scale},
    markup::{concat, is_empty, notes, section},
    page,
    scale::Scale,
};
use crate::{
    Analysis, ArmAnalysis, CONFIDENCE,
    compare::{Comparison, Counted, Match, Side, between_versions},
    matrix::against::Named,
    report::{
        comparison::{answer, rests_on, sentences},
        number,
        words::BETWEEN_VERSIONS,
    },
};

/// The page on a comparison of `subjects`.
pub fn comparison(comparison: &Comparison, subjects: &[Analysis]) -> String {
    let Some(first) = subjects.first() else { return String::new() };
    let titles: Vec<&str> = subjects.iter().map(|subject| subject.run.as_str()).collect();
    told(comparison, first.confidence, &titles)
}

/// The page on a comparison of gathered `matrices`.
pub fn compared_matrices(comparison: &Comparison, matrices: &[Named]) -> String {
    let sources: Vec<&str> = matrices.iter().map(|matrix| matrix.source.as_str()).collect();
    told(comparison, CONFIDENCE, &sources)
}

/// The page on a comparison with intervals of `confidence`; `sources` names what was compared.
fn told(comparison: &Comparison, confidence: f64, sources: &[&str]) -> String {
    let runs: Vec<&str> = comparison.runs.iter().map(String::as_str).collect();
    let plots = plots(comparison);
    let lead = lead(comparison, confidence);
    let body = html! {
        @if !is_empty(&plots) { (section("told", "Run against run", &lead, &html! { div.plots { (plots) } })) }
        @for (id, title, texts) in
            [("refused", "Not compared", &comparison.reasons()), ("notes", "To know", &comparison.notes)]
        {
            @if !texts.is_empty() { (section(id, title, "", &notes(texts))) }
        }
    };
    let header = html! {
        p.over { "Where does the protection cost less: " (listed(&runs, "or")) "?" }
        h1 { (listed(&runs, "and")) }
        p.answer { (answer(comparison)) }
    };
    page(&listed(&runs, "and"), &header, &body, &sources.join(" · "))
}

/// The section on how costs differ between versions of the server; nothing of a run of one.
pub(super) fn versions(analysis: &Analysis) -> Markup {
    let Some(comparison) = between_versions(analysis) else { return html! {} };
    let texts = [comparison.reasons(), vec![BETWEEN_VERSIONS.to_owned()], comparison.notes.clone()].concat();
    let body = html! {
        p { (answer(&comparison)) }
        div.plots { (plots(&comparison)) }
        (notes(texts))
    };
    section("versions", "Between versions", &lead(&comparison, analysis.confidence), &body)
}

/// Every arm in all runs that have it.
fn plots(comparison: &Comparison) -> Markup {
    let of_match = |matched: &Match| matched.sides.iter().map(|side| arm(comparison, side)).collect::<Vec<_>>();
    let arms: Vec<Vec<ArmAnalysis>> = comparison.matches.iter().map(of_match).collect();
    let decided = arms.iter().flatten().flat_map(|arm| arm.estimates.iter().map(move |estimate| (arm, estimate)));
    let scale = scale(comparison.margin, decided);
    let plot = |(matched, arms): (&Match, &Vec<ArmAnalysis>)| plot(comparison, matched, arms, &scale);
    concat(comparison.matches.iter().zip(&arms).map(plot))
}

/// How to read the plots of a comparison of intervals of that `confidence`.
fn lead(comparison: &Comparison, confidence: f64) -> String {
    format!(
        "Dot: what a protection adds to an operation, against the plain arm {}; bar: its {} interval; hatched: too noisy to tell. \
         Shaded: up to the margin of {} %.",
        if over_hosts(comparison) { "of the same host, on the mean of hosts of a kind" } else { "of the same run" },
        number::share(confidence),
        number::digits(number::percent(comparison.margin))
    )
}

/// True if the costs are those of gathered matrices.
fn over_hosts(comparison: &Comparison) -> bool {
    comparison.matches.iter().flat_map(|matched| &matched.sides).any(|side| side.counted != Counted::Frames)
}

/// One arm in every run that has it, with its sentences.
fn plot(comparison: &Comparison, matched: &Match, arms: &[ArmAnalysis], scale: &Scale) -> Markup {
    let head = if over_hosts(comparison) { "rests on" } else { "plain → protected" };
    let row = |(side, arm): (&Side, &ArmAnalysis)| {
        let levels = html! { td.of data-of=(head) { (rests_on(side)) } };
        row(comparison.margin, arm, &side.estimate, scale, &levels)
    };
    let rows = concat(matched.sides.iter().zip(arms).map(row));
    let heads = html! { th.of scope="col" { (head) } };
    html! {
        div.compared {
            (framed(&format!("{} · {}", matched.cell, matched.arm), &matched.title, &heads, &rows, scale))
            (notes(sentences(comparison, matched)))
        }
    }
}

/// The cost of one run in the form for the plot.
fn arm(comparison: &Comparison, side: &Side) -> ArmAnalysis {
    ArmAnalysis {
        name: comparison.runs[side.run].clone(),
        aa: false,
        protections: Vec::new(),
        facts: ArmFacts::default(),
        difference: Vec::new(),
        proof: side.proof.clone(),
        findings: Vec::new(),
        levels: Vec::new(),
        estimates: vec![side.estimate.clone()],
        published: Vec::new(),
        course: Vec::new(),
        idle: None,
        connecting: None,
    }
}
