//! What findings prove of an arm.

use tithe_analysis::Proof;
use tithe_model::record::{Finding, Phase, Role, Verdict};

use super::*;
use crate::synthetic::finding;

#[test]
fn a_protection_is_proven_by_claims_before_and_after_each_epoch() {
    let proof = |change: &dyn Fn(&mut Records)| {
        let mut records = Invented { frames: 2, effects: vec![0.0, 0.0], ..Invented::default() }.records();
        change(&mut records);
        assess(&records).cells[0].arms[1].proof.clone()
    };
    assert_eq!(proof(&|_| ()), Proof::Proven);
    assert_eq!(
        proof(&|records| records.findings[1].cell = 1),
        Proof::Unproven(vec!["audit: not looked at after epoch 1".to_owned()])
    );
    let stories = [
        proof(&|records| records.findings[0].verdict = Verdict::Fails),
        proof(&|records| records.findings[0].verdict = Verdict::CannotTell),
        proof(&|records| records.findings[0].role = Role::Disclosure),
        proof(&|records| records.frames[1].epoch = 1),
        proof(&|records| records.plan.experiment.arms[1].protections.clear()),
        proof(&|records| {
            records.plan.experiment.arms[1].protections.clear();
            records.plan.experiment.arms[1].on = vec!["SET audit = on".to_owned()];
        }),
        // A disclosure that fails beside claims that hold.
        proof(&|records| {
            let mut disclosure = finding(1, Phase::After);
            (disclosure.role, disclosure.verdict) = (Role::Disclosure, Verdict::Fails);
            records.findings.push(disclosure);
        }),
    ];
    expect![[r#"
        [
            Disproven(
                [
                    "audit, before epoch 1: Every marked operation is in the audit log: does not hold; seen: 100 of 100",
                ],
            ),
            Unproven(
                [
                    "audit, before epoch 1: Every marked operation is in the audit log: cannot tell; protected: 100 of 100; control: 0 of 100",
                ],
            ),
            Unproven(
                [
                    "audit: not looked at before epoch 1",
                ],
            ),
            Unproven(
                [
                    "audit: not looked at before epoch 2",
                    "audit: not looked at after epoch 2",
                ],
            ),
            Baseline,
            Unproven(
                [
                    "the arm names no protection, so nothing was looked at",
                ],
            ),
            Proven,
        ]"#]].assert_eq(&format!("{stories:#?}"));
}

#[test]
fn what_strengthens_a_proof_is_not_missed_where_it_is_out_of_reach() {
    let proof = |role, verdict| {
        let mut records = Invented { frames: 2, effects: vec![0.0, 0.0], ..Invented::default() }.records();
        for phase in [Phase::Before, Phase::After] {
            records.findings.push(Finding { check: "files".to_owned(), role, verdict, ..finding(1, phase) });
        }
        match assess(&records).cells[0].arms[1].proof {
            Proof::Baseline => "baseline",
            Proof::Proven => "proven",
            Proof::Unproven(_) => "unproven",
            Proof::Disproven(_) => "disproven",
        }
    };
    let of = |role| {
        [Verdict::Holds, Verdict::Fails, Verdict::CannotTell, Verdict::OutOfReach].map(|verdict| proof(role, verdict))
    };
    assert_eq!(of(Role::Claim), ["proven", "disproven", "unproven", "unproven"]);
    assert_eq!(of(Role::Strengthens), ["proven", "disproven", "unproven", "proven"]);
    assert_eq!(of(Role::Disclosure), ["proven"; 4]);
}
