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
        let claims = claims(arm, doubts).into_iter();
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

/// The findings of `arm` that `keep` wants, with looks that agree told once.
pub(super) fn claims(arm: &ArmAnalysis, keep: fn(&Finding) -> bool) -> Vec<Claim> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in arm.findings.iter().filter(|finding| keep(finding)) {
        let agrees = |group: &&mut Vec<&Finding>| same(group[0], finding) && group[0].verdict == finding.verdict;
        match groups.iter_mut().find(agrees) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups.iter().map(|group| claim(arm, group)).collect()
}

/// True when both look at the same claim.
fn same(one: &Finding, other: &Finding) -> bool {
    (&one.protection, &one.check, &one.claim, one.role) == (&other.protection, &other.check, &other.claim, other.role)
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
    let looks = arm.findings.iter().filter(|finding| same(finding, group[0])).count();
    Claim { mark, word, tone, claim, when: when(group, looks), seen }
}

/// `before and after`, with the epochs where there are several; `5 of 6 looks` where the others came out
/// otherwise, so that no outcome claims more than was seen.
fn when(group: &[&Finding], looks: usize) -> String {
    let looked = |phase: Phase| group.iter().any(|finding| finding.phase == phase);
    let phases = match (looked(Phase::Before), looked(Phase::After)) {
        (true, true) if group.len() < looks => return format!("{} of {looks} looks", group.len()),
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::report::sample;

    /// One line for each claim: mark, when, number of different quotations.
    fn told(change: impl Fn(&mut Vec<Finding>)) -> String {
        let mut arm = sample::open_loop().cells[0].arms[1].clone();
        change(&mut arm.findings);
        let lines = claims(&arm, |_| true).into_iter();
        let lines = lines.map(|claim| format!("{} {} · {} seen", claim.mark, claim.when, claim.seen.len()));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn looks_that_agree_are_told_once() {
        expect!["✓ before and after, 3 epochs · 1 seen"].assert_eq(&told(|_| ()));
        expect!["✓ before · 1 seen"].assert_eq(&told(|findings| findings.truncate(1)));
        expect!["✓ after, epoch 1 · 1 seen"].assert_eq(&told(|findings| *findings = vec![findings[3].clone()]));
    }

    #[test]
    fn looks_that_differ_are_told_apart() {
        let told = told(|findings| {
            findings[5].verdict = Verdict::Fails;
            findings[1].guarded = "0 of 21 canaries".to_owned();
        });
        expect![[r#"
            ✓ 5 of 6 looks · 2 seen
            ✗ after, epoch 2 · 1 seen"#]]
        .assert_eq(&told);
    }
}
