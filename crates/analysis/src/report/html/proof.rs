//! The evidence: one matrix of claims and arms, and below it, folded, the observations on both arms.
//!
//! An entry shows the worst of all checks, over every cell. Arms that are not proven are unfolded.

use maud::{Markup, html};
use tithe_model::record::{Finding, Role, Verdict};

use super::{
    marks::proof_mark,
    markup::{breakable, section, wide},
};
use crate::{
    Analysis, Proof,
    report::{
        claims, summary,
        view::{
            Seen, Tone,
            evidence::{Across, ClaimAcross, across, reasons},
        },
        words,
    },
};

/// Maximum number of quotations shown for one claim; the others are counted, and are in the JSON report.
const QUOTED: usize = 6;

/// The section; empty without a protected arm.
pub(super) fn evidence(analysis: &Analysis) -> Markup {
    let arms = across(analysis);
    if arms.is_empty() {
        return html! {};
    }
    let counted = summary::evidence(analysis).map_or(String::new(), |(words, _)| format!(" {words}."));
    let lead = format!(
        "A claim holds only if it is seen on the protected arm, before the first frame and after the last. The same check \
         must see its opposite on the plain arm, or find a control that it made itself.{counted}"
    );
    let body = html! { (matrix(analysis, &arms)) @for it in &arms { (arm(it)) } };
    section("evidence", "Was it on?", &lead, &body)
}

/// One claim, with its worst check on each arm and the cell of that check.
struct Row<'a> {
    claim: &'a str,
    role: Role,
    worst: Vec<Option<(&'a Finding, &'a str)>>,
}

/// Claims down, needed ones first, arms across; empty if no claim was checked.
fn matrix(analysis: &Analysis, arms: &[Across<'_>]) -> Markup {
    let mut rows = rows(analysis, arms);
    if rows.is_empty() {
        return html! {};
    }
    rows.sort_by_key(|row| importance(row.role));
    let mut marks: Vec<String> = Vec::new();
    for (finding, _) in rows.iter().flat_map(|row| row.worst.iter().flatten()) {
        let (mark, word, _) = told(finding);
        let said = format!("{mark} {word}");
        if !marks.contains(&said) {
            marks.push(said);
        }
    }
    let place = |arm: &Across<'_>, finding: &Finding, cell: &str| {
        let (mark, word, tone) = told(finding);
        let place = if analysis.cells.len() > 1 && tone != "good" { format!(", {cell}") } else { String::new() };
        html! {
            td.(tone) title={ (arm.name) ": " (word) (place) } {
                span aria-hidden="true" { (mark) }
                span.sr { (word) }
            }
        }
    };
    let table = html! {
        table.matrix {
            thead {
                tr { th scope="col" { "claim" } @for arm in arms { th.arm scope="col" { span { (arm.name) } } } }
            }
            tbody {
                @for row in &rows {
                    tr {
                        th scope="row" { (row.claim) }
                        @for (arm, worst) in arms.iter().zip(&row.worst) {
                            @match worst {
                                Some((finding, cell)) => { (place(arm, finding, cell)) }
                                None => { td {} }
                            }
                        }
                    }
                }
            }
        }
    };
    html! { (wide("claims of every arm", &table)) p.legend { (marks.join(" · ")) } }
}

fn rows<'a>(analysis: &'a Analysis, arms: &[Across<'_>]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| arm.proof != Proof::Baseline) {
            let Some(column) = arms.iter().position(|it| it.name == arm.name) else { continue };
            for finding in &arm.findings {
                let same = |row: &Row<'_>| (row.claim, row.role) == (finding.claim.as_str(), finding.role);
                let known = rows.iter().position(same).unwrap_or_else(|| {
                    rows.push(Row { claim: &finding.claim, role: finding.role, worst: vec![None; arms.len()] });
                    rows.len() - 1
                });
                let worst = &mut rows[known].worst[column];
                if worst.is_none_or(|(known, _)| claims::rank(finding.verdict) > claims::rank(known.verdict)) {
                    *worst = Some((finding, cell.id.as_str()));
                }
            }
        }
    }
    rows
}

fn importance(role: Role) -> u8 {
    match role {
        Role::Claim => 0,
        Role::Strengthens => 1,
        Role::Disclosure => 2,
    }
}

/// Mark, word and class of the worst check of a claim.
fn told(finding: &Finding) -> (&'static str, &'static str, &'static str) {
    match (finding.role, finding.verdict) {
        (Role::Strengthens, Verdict::Holds) => ("+", "holds and strengthens the proof", "good"),
        (Role::Disclosure, Verdict::Holds) => ("i", "yes, reported only", "soft"),
        (Role::Disclosure, Verdict::Fails) => ("!", "no, reported only", "warn"),
        (role, verdict) => {
            let (mark, word, tone) = words::finding(role, verdict);
            (mark, word, class(tone))
        }
    }
}

fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Caution => "warn",
        Tone::Normal | Tone::Strong | Tone::Faint => "soft",
    }
}

/// The observations for the claims of one arm; unfolded if it is not proven.
fn arm(arm: &Across<'_>) -> Markup {
    let proven = arm.proofs.iter().all(|(proof, _)| proof.stands());
    html! {
        details.proof open[!proven] {
            summary {
                (breakable(arm.name))
                @for (proof, cells) in &arm.proofs { " " (proof_mark(proof)) span.mark { (arm.place(cells)) } }
            }
            @if !arm.protections.is_empty() { p { (arm.protections.join(", ")) } }
            @for reason in arm.proofs.iter().flat_map(|(proof, _)| reasons(proof)) { p.doubt { (reason) } }
            @if arm.claims.is_empty() {
                p { "No claim was checked." }
            } @else {
                ul.claims { @for across in &arm.claims { (claim(arm, across)) } }
            }
        }
    }
}

fn claim(arm: &Across<'_>, across: &ClaimAcross<'_>) -> Markup {
    let ClaimAcross { claim, cells } = across;
    html! {
        li {
            span.sign.(class(claim.tone)) { span aria-hidden="true" { (claim.mark) } span.sr { (claim.word) } }
            " "
            @if claim.tone != Tone::Good { b { (claim.word) ":" } " " }
            (claim.claim) " "
            span.mark { (claim.when) @if cells.len() != arm.cells { (arm.place(cells)) } }
            @for seen in claim.seen.iter().take(QUOTED) { (quotation(seen)) }
            @if claim.seen.len() > QUOTED { p { "and " (claim.seen.len() - QUOTED) " more in report.json" } }
        }
    }
}

fn quotation(seen: &Seen) -> Markup {
    html! {
        dl {
            @for (label, quotation) in [("protected arm", &seen.protected), ("plain arm or control", &seen.control)] {
                @if !quotation.is_empty() { dt { (label) } dd { code { (quotation) } } }
            }
        }
    }
}
