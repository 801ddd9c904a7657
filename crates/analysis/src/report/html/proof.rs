//! The evidence: one matrix of claims and arms, and below it, folded, what was seen on both arms.
//!
//! A place shows the worst of all looks, in every cell. What is not proven lies open.

use std::fmt::Write;

use tithe_model::record::{Finding, Role, Verdict};

use super::{
    marks::proof_mark,
    markup::{section, text, wide},
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

/// Quotations of one claim that are shown at most; the others are counted, and stand in the JSON report.
const QUOTED: usize = 6;

/// The section; nothing where there is no protected arm.
pub(super) fn evidence(analysis: &Analysis) -> String {
    let arms = across(analysis);
    if arms.is_empty() {
        return String::new();
    }
    let counted = summary::evidence(analysis).map_or(String::new(), |(words, _)| format!(" {words}."));
    let lead = format!(
        "A claim holds only if it is seen on the protected arm and its opposite on the plain arm, before the first frame \
         and after the last.{counted}"
    );
    let seen: String = arms.iter().map(arm).collect();
    section("evidence", "Was it on?", &lead, &(matrix(analysis, &arms) + &seen))
}

/// One claim, with the worst look at it on each arm and the cell of that look.
struct Row<'a> {
    claim: &'a str,
    role: Role,
    worst: Vec<Option<(&'a Finding, &'a str)>>,
}

/// Claims down, needed ones first, arms across; nothing where no claim was looked at.
fn matrix(analysis: &Analysis, arms: &[Across<'_>]) -> String {
    let mut rows = rows(analysis, arms);
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by_key(|row| importance(row.role));
    let mut html = String::from("<table class=\"matrix\"><thead><tr><th scope=\"col\">claim</th>");
    for arm in arms {
        let _ = write!(html, "<th scope=\"col\" class=\"arm\"><span>{}</span></th>", text(arm.name));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let mut marks: Vec<(&str, &str)> = Vec::new();
    for row in &rows {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", text(row.claim));
        for (arm, worst) in arms.iter().zip(&row.worst) {
            let Some((finding, cell)) = worst else {
                html.push_str("<td></td>");
                continue;
            };
            let (mark, word, tone) = told(finding);
            if !marks.contains(&(mark, word)) {
                marks.push((mark, word));
            }
            let place = if analysis.cells.len() > 1 && tone != "good" { format!(", {cell}") } else { String::new() };
            let title = text(&format!("{}: {word}{place}", arm.name));
            let _ = write!(
                html,
                "<td class=\"{tone}\" title=\"{title}\"><span aria-hidden=\"true\">{mark}</span><span class=\"sr\">{word}</span></td>"
            );
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n");
    let marks: Vec<String> = marks.into_iter().map(|(mark, word)| format!("{mark} {word}")).collect();
    format!("{}<p class=\"legend\">{}</p>\n", wide("claims of every arm", &html), text(&marks.join(" · ")))
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

/// Mark, word and class of the worst look at a claim.
fn told(finding: &Finding) -> (&'static str, &'static str, &'static str) {
    match (finding.role, finding.verdict) {
        (Role::Strengthens, Verdict::Holds) => ("+", "holds and strengthens the proof", "good"),
        (Role::Disclosure, Verdict::Holds) => ("i", "yes, told only", "soft"),
        (Role::Disclosure, Verdict::Fails) => ("!", "no, told only", "warn"),
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

/// What was seen of the claims of one arm; open where it is not proven.
fn arm(arm: &Across<'_>) -> String {
    let proven = arm.proofs.iter().all(|(proof, _)| **proof == Proof::Proven);
    let mut html = format!("<details class=\"proof\"{}><summary>{}", if proven { "" } else { " open" }, text(arm.name));
    for (proof, cells) in &arm.proofs {
        let _ = write!(html, " {}<span class=\"mark\">{}</span>", proof_mark(proof), text(&arm.place(cells)));
    }
    html.push_str("</summary>\n");
    if !arm.protections.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", text(&arm.protections.join(", ")));
    }
    for reason in arm.proofs.iter().flat_map(|(proof, _)| reasons(proof)) {
        let _ = writeln!(html, "<p class=\"doubt\">{}</p>", text(reason));
    }
    if arm.claims.is_empty() {
        return html + "<p>No claim was looked at.</p>\n</details>\n";
    }
    let claims: String = arm.claims.iter().map(|across| claim(arm, across)).collect();
    html + "<ul class=\"claims\">\n" + &claims + "</ul>\n</details>\n"
}

fn claim(arm: &Across<'_>, across: &ClaimAcross<'_>) -> String {
    let ClaimAcross { claim, cells } = across;
    let place = if cells.len() == arm.cells { String::new() } else { arm.place(cells) };
    let mut seen: String = claim.seen.iter().take(QUOTED).map(quotation).collect();
    if claim.seen.len() > QUOTED {
        seen.push_str(&format!("<p>and {} more in report.json</p>\n", claim.seen.len() - QUOTED));
    }
    let word = if claim.tone == Tone::Good { String::new() } else { format!("<b>{}:</b> ", claim.word) };
    format!(
        "<li><span class=\"sign {}\"><span aria-hidden=\"true\">{}</span><span class=\"sr\">{}</span></span> {word}{} \
         <span class=\"mark\">{}{}</span>\n{seen}</li>\n",
        class(claim.tone),
        claim.mark,
        claim.word,
        text(&claim.claim),
        text(&claim.when),
        text(&place)
    )
}

fn quotation(seen: &Seen) -> String {
    let line = |label: &str, quotation: &str| match quotation {
        "" => String::new(),
        quotation => format!("<dt>{label}</dt><dd><code>{}</code></dd>", text(quotation)),
    };
    format!("<dl>{}{}</dl>\n", line("protected arm", &seen.protected), line("plain arm or control", &seen.control))
}
