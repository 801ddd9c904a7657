//! The evidence for each arm, claim by claim.

use std::collections::BTreeSet;

use tithe_model::record::{Finding, Phase, Role};

use super::{Block, Claim, Seen, Tone};
use crate::{Analysis, ArmAnalysis, CellAnalysis, Proof, report::words};

/// The evidence for the arm of one name, over all cells.
pub(in crate::report) struct Across<'a> {
    /// The arm's name.
    pub name: &'a str,
    /// Identifiers of its protections.
    pub protections: &'a [String],
    /// The results of its proof, with the cells of each.
    pub proofs: Vec<(&'a Proof, Vec<&'a str>)>,
    /// Its claims; those with equal results in several cells appear once.
    pub claims: Vec<ClaimAcross<'a>>,
    /// Number of cells that have the arm.
    pub cells: usize,
}

/// A claim with the same result in some cells.
pub(in crate::report) struct ClaimAcross<'a> {
    /// The claim with all observations in these cells.
    pub claim: Claim,
    /// The cells.
    pub cells: Vec<&'a str>,
}

/// The evidence for each protected arm, in the order of the experiment.
pub(in crate::report) fn across(analysis: &Analysis) -> Vec<Across<'_>> {
    let mut arms: Vec<Across<'_>> = Vec::new();
    for cell in &analysis.cells {
        for arm in cell.arms.iter().filter(|arm| arm.proof != Proof::Baseline) {
            let known = arms.iter().position(|known| known.name == arm.name).unwrap_or_else(|| {
                let (name, protections) = (&arm.name, &arm.protections);
                arms.push(Across { name, protections, proofs: Vec::new(), claims: Vec::new(), cells: 0 });
                arms.len() - 1
            });
            arms[known].add(cell, arm);
        }
    }
    arms
}

impl<'a> Across<'a> {
    fn add(&mut self, cell: &'a CellAnalysis, arm: &'a ArmAnalysis) {
        self.cells += 1;
        match self.proofs.iter_mut().find(|(proof, _)| **proof == arm.proof) {
            Some((_, cells)) => cells.push(&cell.id),
            None => self.proofs.push((&arm.proof, vec![&cell.id])),
        }
        for claim in claims(arm, |_| true) {
            let same = |known: &&mut ClaimAcross<'_>| {
                (&known.claim.claim, known.claim.word, &known.claim.when) == (&claim.claim, claim.word, &claim.when)
            };
            match self.claims.iter_mut().find(same) {
                Some(known) => known.add(cell, claim),
                None => self.claims.push(ClaimAcross { claim, cells: vec![&cell.id] }),
            }
        }
    }

    /// `proven in all 4 cells`; with the reasons if it is not.
    pub fn in_words(&self) -> String {
        let reported = self.proofs.iter().map(|(proof, cells)| {
            let mark = words::proof(proof).0;
            match reasons(proof) {
                [] => format!("{mark}{}", self.place(cells)),
                reasons => format!("{mark}{}: {}", self.place(cells), reasons.join("; ")),
            }
        });
        reported.collect::<Vec<_>>().join(". ")
    }

    /// ` in all 4 cells`, ` in c.in-memory`; empty if there is one cell.
    pub fn place(&self, cells: &[&str]) -> String {
        match cells.len() {
            _ if self.cells == 1 => String::new(),
            2 if self.cells == 2 => " in both cells".to_owned(),
            all if all == self.cells => format!(" in all {all} cells"),
            _ => format!(" in {}", cells.join(", ")),
        }
    }
}

impl<'a> ClaimAcross<'a> {
    fn add(&mut self, cell: &'a CellAnalysis, claim: Claim) {
        self.cells.push(&cell.id);
        for seen in claim.seen {
            if !self.claim.seen.contains(&seen) {
                self.claim.seen.push(seen);
            }
        }
    }
}

/// For an arm that is not proven one line per claim, with the observations if it does not hold; for a proven one only
/// its open claims. Arms with the same proof share their lines.
pub(super) fn summary(analysis: &Analysis) -> Vec<Block> {
    let arms = across(analysis);
    let mut reported: Vec<(Vec<&str>, String, Vec<Claim>)> = Vec::new();
    for arm in &arms {
        let proven = arm.proofs.iter().all(|(proof, _)| proof.stands());
        let told = arm.claims.iter().filter(|across| !proven || across.claim.tone == Tone::Caution);
        let (words, claims) = (arm.in_words(), told.map(|claim| brief(arm, claim)).collect::<Vec<_>>());
        if proven && claims.is_empty() {
            continue;
        }
        match reported.iter_mut().find(|(_, same_words, same)| *same_words == words && *same == claims) {
            Some((names, ..)) => names.push(arm.name),
            None => reported.push((vec![arm.name], words, claims)),
        }
    }
    if reported.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Heading(2, "Evidence".to_owned())];
    for (names, words, claims) in reported {
        let each = if names.len() > 1 { "each " } else { "" };
        blocks.push(Block::Heading(3, format!("{}: {each}{words}", names.join(", "))));
        match claims.is_empty() {
            true => blocks.push(Block::Paragraph("no claim was checked".to_owned())),
            false => blocks.push(Block::Claims(claims)),
        }
    }
    blocks
}

/// A claim without observations if it holds, and with its cells unless it was the same in all.
fn brief(arm: &Across<'_>, across: &ClaimAcross<'_>) -> Claim {
    let ClaimAcross { claim, cells } = across;
    let place = if cells.len() == arm.cells { String::new() } else { arm.place(cells) };
    let holds = claim.tone == Tone::Good;
    Claim {
        claim: format!("{}{place}", claim.claim),
        seen: if holds { Vec::new() } else { claim.seen.clone() },
        when: if holds && claim.when == BOTH { String::new() } else { claim.when.clone() },
        ..*claim
    }
}

/// When a claim was checked if no check is missing.
const BOTH: &str = "before and after";

/// Why the arm is not proven; empty when it is.
pub(in crate::report) fn reasons(proof: &Proof) -> &[String] {
    match proof {
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => &[],
        Proof::Unproven(reasons) | Proof::ToldByProvider(reasons) | Proof::Disproven(reasons) => reasons,
    }
}

/// The findings of `arm` for which `keep` is true; equal observations appear once.
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

/// True if both are about the same claim.
fn same(one: &Finding, other: &Finding) -> bool {
    (&one.protection, &one.check, &one.claim, one.role) == (&other.protection, &other.check, &other.claim, other.role)
}

/// One line for findings on the same claim with the same outcome; there is at least one.
fn claim(arm: &ArmAnalysis, group: &[&Finding]) -> Claim {
    let (mark, word, tone) = words::finding(group[0].role, group[0].verdict);
    let mut seen: Vec<Seen> = Vec::new();
    for finding in group {
        let observe = Seen { protected: finding.protected.clone(), control: finding.control.clone() };
        if !seen.contains(&observe) {
            seen.push(observe);
        }
    }
    let mut claim = group[0].claim.clone();
    if group[0].role == Role::Strengthens {
        claim += " (strengthens the proof)";
    }
    if arm.protections.len() > 1 {
        claim += &format!(" ({})", group[0].protection);
    }
    let looks = arm.findings.iter().filter(|finding| same(finding, group[0])).count();
    Claim { mark, word, tone, claim, when: when(group, looks), seen }
}

/// `before and after`, with the epochs if there are several; `5 of 6 looks` if the others had another outcome, so that
/// no outcome covers more than was seen.
fn when(group: &[&Finding], looks: usize) -> String {
    let looked = |phase: Phase| -> BTreeSet<u32> {
        group.iter().filter(|finding| finding.phase == phase).map(|finding| finding.epoch).collect()
    };
    let (before, after) = (looked(Phase::Before), looked(Phase::After));
    let phases = match (before.is_empty(), after.is_empty()) {
        (false, false) if group.len() < looks => return format!("{} of {looks} looks", group.len()),
        // An epoch that was cut short has no look after it.
        (false, false) if before != after => {
            let epochs = before.union(&after).count();
            return format!("before {} and after {} of {epochs} epochs", before.len(), after.len());
        }
        (false, false) => BOTH,
        (false, true) => "before",
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
    use tithe_model::record::Verdict;

    use super::*;
    use crate::report::sample;

    /// One line per claim: mark, when, number of different quotations.
    fn reported(change: impl Fn(&mut Vec<Finding>)) -> String {
        let mut arm = sample::open_loop().cells[0].arms[1].clone();
        change(&mut arm.findings);
        let lines = claims(&arm, |_| true).into_iter();
        let lines = lines.map(|claim| format!("{} {} · {} seen", claim.mark, claim.when, claim.seen.len()));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn observations_that_agree_are_told_once() {
        expect!["✓ before and after, 3 epochs · 1 seen"].assert_eq(&reported(|_| ()));
        expect!["✓ before 3 and after 2 of 3 epochs · 1 seen"]
            .assert_eq(&reported(|findings| drop(findings.remove(3))));
        expect!["✓ before · 1 seen"].assert_eq(&reported(|findings| findings.truncate(1)));
        expect!["✓ after, epoch 1 · 1 seen"].assert_eq(&reported(|findings| *findings = vec![findings[3].clone()]));
    }

    #[test]
    fn observations_that_differ_are_told_apart() {
        let reported = reported(|findings| {
            findings[5].verdict = Verdict::Fails;
            findings[1].protected = "0 of 21 canaries".to_owned();
        });
        expect![[r#"
            ✓ 5 of 6 looks · 2 seen
            ✗ after, epoch 2 · 1 seen"#]]
        .assert_eq(&reported);
    }
}
