//! Was the protection of an arm on?

use std::collections::BTreeSet;

use tithe_model::{
    experiment::Arm,
    record::{AS_PROTECTED, Finding, Phase, Role, SETTING_DIFFERS, TOLD_BY_PROVIDER, Verdict},
};

use crate::Proof;

/// The proof of `arm`, which was measured in `epochs`, from `findings`.
///
/// Every protection needs a claim before each epoch's frames, and all of these claims again after them; every claim
/// must hold. A claim that fails outweighs one that could not be decided. A claim that only strengthens a proof may be
/// out of reach. Disclosures do not count. If nothing fails but needed claims are open, and the provider reports that
/// the protection is on, the result names the provider; that is no proof. An epoch that was killed and followed by
/// another needs no checks after it: see [`cut_short`]. A setting needs no proof, but another value than on the plain
/// arm.
pub(super) fn proof(arm: &Arm, findings: &[Finding], epochs: &BTreeSet<u32>) -> Proof {
    if arm.is_setting() {
        let same = same_settings(arm, findings);
        return if same.is_empty() { Proof::Setting } else { Proof::Unproven(same) };
    }
    if arm.protections.is_empty() && arm.switch.is_none() {
        return Proof::Unproven(vec!["the arm names no protection, so nothing was checked".to_owned()]);
    }
    let claims: Vec<&Finding> = findings.iter().filter(|finding| finding.role.is_claim()).collect();
    let quoted = |verdict: Verdict| {
        let such = claims.iter().filter(|finding| finding.verdict == verdict);
        such.map(|finding| quote(finding)).collect::<Vec<_>>()
    };
    let failed = quoted(Verdict::Fails);
    if !failed.is_empty() {
        return Proof::Disproven(failed);
    }
    let mut open = quoted(Verdict::CannotTell);
    let missed = |finding: &&&Finding| (finding.role, finding.verdict) == (Role::Claim, Verdict::OutOfReach);
    open.extend(claims.iter().filter(missed).map(|finding| quote(finding)));
    open.extend(not_looked_at(arm, &claims, epochs));
    if arm.protections.is_empty() {
        open.push("the arm names no protection, so only its provider's switch was checked".to_owned());
    }
    // The weakest of the proofs of several protections.
    let is_by_claim = arm.rests_on_claims() || arm.protections.iter().all(|it| it.custom.is_some());
    match () {
        () if open.is_empty() && is_by_claim => Proof::ByClaim,
        () if open.is_empty() => Proof::Proven,
        () if is_told_by_provider(&claims, epochs) => Proof::ToldByProvider(open),
        () => Proof::Unproven(open),
    }
}

/// The settings of `arm`, quoted, if it differs from the plain arm by nothing else, and both servers report the same
/// value of each: the figures are then those of nothing.
fn same_settings(arm: &Arm, findings: &[Finding]) -> Vec<String> {
    let mut own = arm.protections.iter().filter_map(|protection| protection.custom.as_deref());
    let differs_otherwise =
        own.any(|custom| !custom.statements.is_empty() || !custom.session.is_empty() || !custom.files.is_empty());
    let read: Vec<&Finding> = findings.iter().filter(|finding| finding.check == SETTING_DIFFERS).collect();
    let differs = read.iter().any(|finding| !finding.control.ends_with(AS_PROTECTED));
    if differs || differs_otherwise || !arm.on.is_empty() {
        return Vec::new();
    }
    read.into_iter().map(quote).collect()
}

/// True if the provider reported the state of both sides of every pair, before and after each.
fn is_told_by_provider(claims: &[&Finding], epochs: &BTreeSet<u32>) -> bool {
    let told = |epoch: u32, phase: Phase| {
        claims.iter().any(|it| {
            (it.check.as_str(), it.verdict) == (TOLD_BY_PROVIDER, Verdict::Holds)
                && (it.epoch, it.phase) == (epoch, phase)
        })
    };
    !epochs.is_empty() && epochs.iter().all(|epoch| told(*epoch, Phase::Before) && told(*epoch, Phase::After))
}

fn not_looked_at(arm: &Arm, claims: &[&Finding], epochs: &BTreeSet<u32>) -> Vec<String> {
    if epochs.is_empty() {
        return vec!["nothing was checked yet".to_owned()];
    }
    let mut missing = Vec::new();
    for protection in arm.protections.iter().filter(|protection| !protection.is_setting()) {
        for epoch in epochs {
            let in_phase = |phase: Phase| checks(claims, &protection.id, (*epoch, phase));
            let (before, after) = (in_phase(Phase::Before), in_phase(Phase::After));
            if before.is_empty() {
                missing.push(format!("{}: not checked {}", protection.id, when(Phase::Before, *epoch)));
            }
            let when = when(Phase::After, *epoch);
            match () {
                () if epochs.last() != Some(epoch) && is_cut_short(claims, *epoch) => {}
                () if after.is_empty() => missing.push(format!("{}: not checked {when}", protection.id)),
                () => missing.extend(before.difference(&after).map(|(check, claim)| {
                    let known_by = if claim.is_empty() { check } else { claim };
                    format!("{}: {known_by} not checked {when}", protection.id)
                })),
            }
        }
    }
    missing
}

/// The needed claims about `protection` that were checked in this phase of an epoch, as [`Finding::about`].
fn checks<'a>(claims: &[&'a Finding], protection: &str, (epoch, phase): (u32, Phase)) -> BTreeSet<(&'a str, &'a str)> {
    let such = claims
        .iter()
        .filter(|it| (it.epoch, it.phase, it.role, it.protection.as_str()) == (epoch, phase, Role::Claim, protection));
    such.map(|it| it.about()).collect()
}

/// Epochs in which not everything was checked again after the frames, although a later epoch was measured: the run was
/// killed in them and resumed.
pub(super) fn cut_short(findings: &[Finding], epochs: &BTreeSet<u32>) -> Vec<u32> {
    let claims: Vec<&Finding> = findings.iter().filter(|finding| finding.role.is_claim()).collect();
    let earlier = epochs.iter().filter(|epoch| epochs.last() != Some(epoch));
    earlier.copied().filter(|epoch| is_cut_short(&claims, *epoch)).collect()
}

fn is_cut_short(claims: &[&Finding], epoch: u32) -> bool {
    let in_phase = |phase: Phase| -> BTreeSet<(u32, &str, (&str, &str))> {
        let such = claims.iter().filter(|it| (it.epoch, it.phase) == (epoch, phase));
        such.map(|it| (it.arm, it.protection.as_str(), it.about())).collect()
    };
    !in_phase(Phase::Before).is_subset(&in_phase(Phase::After))
}

fn quote(finding: &Finding) -> String {
    let Finding { protection, claim, epoch, phase, protected, control, .. } = finding;
    let when = when(*phase, *epoch);
    let claim = claim.trim_end_matches('.');
    match finding.verdict {
        Verdict::CannotTell | Verdict::OutOfReach => {
            format!("{protection}, {when}: {claim}: cannot tell; protected: {protected}; control: {control}")
        }
        _ => format!("{protection}, {when}: {claim}: does not hold; seen: {protected}"),
    }
}

/// Epochs are shown from 1.
fn when(phase: Phase, epoch: u32) -> String {
    format!("{} epoch {}", phase.word(), epoch + 1)
}
