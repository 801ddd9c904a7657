//! The evidence, arm by arm and claim by claim, with what was seen on both arms; the same in several cells once.

use super::{
    costs::proof_mark,
    markup::{section, text},
};
use crate::{
    Analysis,
    report::view::{
        Seen, Tone,
        evidence::{Across, ClaimAcross, across, reasons},
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
    let lead = "A claim holds only if it is seen on the protected arm and its opposite on the plain arm, before the first \
                frame and after the last.";
    section("evidence", "Was it on?", lead, &arms.iter().map(arm).collect::<String>())
}

fn arm(arm: &Across<'_>) -> String {
    let mut html = format!("<div class=\"proof\">\n<h3>{}", text(arm.name));
    for (proof, cells) in &arm.proofs {
        html.push_str(&format!(" {}<span class=\"mark\">{}</span>", proof_mark(proof), text(&arm.place(cells))));
    }
    html.push_str("</h3>\n");
    if !arm.protections.is_empty() {
        html.push_str(&format!("<p>{}</p>\n", text(&arm.protections.join(", "))));
    }
    for reason in arm.proofs.iter().flat_map(|(proof, _)| reasons(proof)) {
        html.push_str(&format!("<p class=\"doubt\">{}</p>\n", text(reason)));
    }
    if arm.claims.is_empty() {
        return html + "<p>No claim was looked at.</p>\n</div>\n";
    }
    let claims: String = arm.claims.iter().map(|across| claim(arm, across)).collect();
    html + "<ul class=\"claims\">\n" + &claims + "</ul>\n</div>\n"
}

fn claim(arm: &Across<'_>, across: &ClaimAcross<'_>) -> String {
    let ClaimAcross { claim, cells } = across;
    let tone = match claim.tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Caution => "warn",
        Tone::Normal | Tone::Strong | Tone::Faint => "soft",
    };
    let place = if cells.len() == arm.cells { String::new() } else { arm.place(cells) };
    let mut seen: String = claim.seen.iter().take(QUOTED).map(quotation).collect();
    if claim.seen.len() > QUOTED {
        seen.push_str(&format!("<p>and {} more in report.json</p>\n", claim.seen.len() - QUOTED));
    }
    let word = if claim.tone == Tone::Good { String::new() } else { format!("<b>{}:</b> ", claim.word) };
    let line = format!(
        "<span class=\"sign {tone}\"><span aria-hidden=\"true\">{}</span><span class=\"sr\">{}</span></span> {word}{} \
         <span class=\"mark\">{}{}</span>",
        claim.mark,
        claim.word,
        text(&claim.claim),
        text(&claim.when),
        text(&place)
    );
    // What holds is opened on demand; what does not is there to be read.
    let open = if claim.tone == Tone::Good { "" } else { " open" };
    format!("<li><details{open}><summary>{line}</summary>\n{seen}</details></li>\n")
}

fn quotation(seen: &Seen) -> String {
    let line = |label: &str, quotation: &str| match quotation {
        "" => String::new(),
        quotation => format!("<dt>{label}</dt><dd><code>{}</code></dd>", text(quotation)),
    };
    format!("<dl>{}{}</dl>\n", line("protected arm", &seen.protected), line("plain arm or control", &seen.control))
}
