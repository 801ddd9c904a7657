//! Marks for proofs and outcomes next to an arm: a class, a small mark, a word.

use maud::{Markup, html};

use crate::{ArmAnalysis, Estimate, Outcome, Proof, report::words};

/// The class of an outcome.
pub(super) fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Costs => "costs",
        Outcome::Gains => "gains",
        Outcome::NoneFound => "nil",
        Outcome::TooNoisy => "noisy",
    }
}

/// The class of an arm that is not proven.
pub(super) fn doubt_class(arm: &ArmAnalysis) -> Option<&'static str> {
    match arm.proof {
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => None,
        Proof::Unproven(_) | Proof::ToldByProvider(_) | Proof::Disproven(_) => Some("doubted"),
    }
}

/// True if the arm is not proven.
pub(super) fn is_doubted(arm: &ArmAnalysis) -> bool {
    doubt_class(arm).is_some()
}

/// The mark of an arm: the plain one again, or the result of its proof.
pub(super) fn arm_mark(arm: &ArmAnalysis) -> Markup {
    if arm.aa { mark("plain", "≡", words::PLAIN_AGAIN) } else { proof_mark(&arm.proof) }
}

/// The mark, only if the arm is not proven; proofs are on the first screen.
pub(super) fn doubt_mark(arm: &ArmAnalysis) -> Markup {
    html! { @if arm.aa || is_doubted(arm) { " " (arm_mark(arm)) } }
}

/// The text of `estimate` of `arm`.
pub(super) fn outcome(estimate: &Estimate, arm: &ArmAnalysis, margin: f64) -> String {
    match &arm.proof {
        _ if arm.aa => words::control(estimate).to_owned(),
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => words::outcome(estimate, margin),
        Proof::Unproven(_) => "unproven".to_owned(),
        Proof::ToldByProvider(_) => "reported by the provider".to_owned(),
        Proof::Disproven(_) => "disproven".to_owned(),
    }
}

/// The state of an arm's proof as a small mark with its word.
pub(super) fn proof_mark(proof: &Proof) -> Markup {
    let (class, sign) = match proof {
        Proof::Baseline => ("plain", "·"),
        Proof::Setting => ("plain", "·"),
        Proof::Proven | Proof::ByClaim => ("good", "✓"),
        Proof::Unproven(_) | Proof::ToldByProvider(_) => ("warn", "?"),
        Proof::Disproven(_) => ("bad", "✗"),
    };
    mark(class, sign, &words::proof(proof).0.to_lowercase())
}

/// A small mark: a `sign`, and its text.
pub(super) fn mark(class: &str, sign: &str, words: &str) -> Markup {
    html! { span.mark.(class) { span aria-hidden="true" { (sign) } " " (words) } }
}
