//! What stood behind each arm, claim by claim.

use std::collections::BTreeSet;

use tithe_model::record::{Finding, Phase, Role, Verdict};

use super::{Block, Claim, Seen};
use crate::{ArmAnalysis, CellAnalysis, Proof, report::words};

/// Per arm one line, then every finding that does not support it.
pub(super) fn summary(cell: &CellAnalysis) -> Vec<Block> {
    let guarded = || cell.arms.iter().filter(|arm| arm.proof != Proof::Baseline);
    let lines: Vec<(String, String)> = guarded().map(|arm| (arm.name.clone(), in_one_line(arm))).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Heading(3, "Evidence".to_owned()), Block::Facts(lines)];
    let mut doubtful = Vec::new();
    for arm in guarded() {
        let findings: Vec<Finding> = arm.findings.iter().filter(|finding| doubts(finding)).cloned().collect();
        let claims = claims(arm, &findings).into_iter();
        doubtful.extend(claims.map(|claim| Claim { claim: format!("{}: {}", arm.name, claim.claim), ..claim }));
    }
    if !doubtful.is_empty() {
        blocks.push(Block::Claims(doubtful));
    }
    blocks
}

fn doubts(finding: &Finding) -> bool {
    finding.verdict != Verdict::Holds
}

fn in_one_line(arm: &ArmAnalysis) -> String {
    let (mark, _) = words::proof(&arm.proof);
    let looked_at: BTreeSet<(&str, &str)> = (arm.findings.iter())
        .filter(|finding| finding.role == Role::Claim)
        .map(|finding| (finding.protection.as_str(), finding.check.as_str()))
        .collect();
    let in_doubt = |(protection, check): &&(&str, &str)| {
        let same = |finding: &&Finding| finding.protection == *protection && finding.check == *check;
        arm.findings.iter().filter(same).any(doubts)
    };
    let doubts = looked_at.iter().filter(in_doubt).count();
    let claims = match (looked_at.len(), doubts) {
        (0, _) => ", no claim was looked at".to_owned(),
        (1, 0) => ", its claim holds".to_owned(),
        (1, _) => String::new(),
        (all, 0) => format!(", all {all} claims hold"),
        (all, _) => format!(", {} of {all} claims hold", all - doubts),
    };
    match reasons(&arm.proof) {
        [] => format!("{mark}{claims}"),
        reasons => format!("{mark}{claims}: {}", reasons.join("; ")),
    }
}

/// Why the arm is not proven; empty when it is.
pub(super) fn reasons(proof: &Proof) -> &[String] {
    match proof {
        Proof::Baseline | Proof::Proven => &[],
        Proof::Unproven(reasons) | Proof::Disproven(reasons) => reasons,
    }
}

/// Findings of `arm`, with looks that agree told once.
pub(super) fn claims(arm: &ArmAnalysis, findings: &[Finding]) -> Vec<Claim> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let same = |group: &&mut Vec<&Finding>| key(group[0]) == key(finding);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups.iter().map(|group| claim(arm, group)).collect()
}

fn key(finding: &Finding) -> (&str, &str, &str, Role, Verdict) {
    (&finding.protection, &finding.check, &finding.claim, finding.role, finding.verdict)
}

/// One line for findings on the same claim with the same outcome; there is at least one.
fn claim(arm: &ArmAnalysis, group: &[&Finding]) -> Claim {
    let (mark, word, tone) = words::finding(group[0].role, group[0].verdict);
    let mut seen: Vec<Seen> = Vec::new();
    for finding in group {
        let look = Seen { guarded: finding.guarded.clone(), control: finding.control.clone() };
        if !seen.contains(&look) {
            seen.push(look);
        }
    }
    let claim = match arm.protections.len() {
        0 | 1 => group[0].claim.clone(),
        _ => format!("{} ({})", group[0].claim, group[0].protection),
    };
    Claim { mark, word, tone, claim, when: when(group), seen }
}

/// `before and after`, with the epochs where there are several.
fn when(group: &[&Finding]) -> String {
    let looked = |phase: Phase| group.iter().any(|finding| finding.phase == phase);
    let phases = match (looked(Phase::Before), looked(Phase::After)) {
        (true, true) => "before and after",
        (true, false) => "before",
        _ => "after",
    };
    let epochs: BTreeSet<u32> = group.iter().map(|finding| finding.epoch).collect();
    match epochs.len() {
        1 if epochs.contains(&0) => phases.to_owned(),
        1 => format!("{phases}, epoch {}", group[0].epoch),
        several => format!("{phases}, {several} epochs"),
    }
}
