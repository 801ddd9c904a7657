//! Findings in, proofs out: when a protection counts as proven, and what findings say about its figures.

use expect_test::expect;
use tithe_analysis::{Flag, Proof, assess::assess};
use tithe_model::{
    experiment::{Claim, Custom, Says},
    record::{CIPHER_DRIVER, Finding, Phase, Role, Verdict, YOUR_CLAIM},
    records::Records,
};

use crate::synthetic::{Invented, finding};

/// Two frames of a plain arm and a protected one, whose claim holds before and after them.
fn two_frames() -> Records {
    Invented { frames: 2, effects: vec![0.0, 0.0], ..Invented::default() }.records()
}

/// The proof of the protected arm.
fn proof_of(records: &Records) -> Proof {
    assess(records).cells[0].arms[1].proof.clone()
}

#[test]
fn a_protection_is_proven_by_claims_before_and_after_each_epoch() {
    let proof = |change: &dyn Fn(&mut Records)| {
        let mut records = two_frames();
        change(&mut records);
        proof_of(&records)
    };
    assert_eq!(proof(&|_| ()), Proof::Proven);
    assert_eq!(
        proof(&|records| records.findings[1].cell = 1),
        Proof::Unproven(vec!["audit: not checked after epoch 1".to_owned()])
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
        // A disclosure that fails, with claims that hold.
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
                    "audit: not checked before epoch 1",
                ],
            ),
            Unproven(
                [
                    "audit: not checked before epoch 2",
                    "audit: not checked after epoch 2",
                ],
            ),
            Baseline,
            Setting,
            Proven,
        ]"#]].assert_eq(&format!("{stories:#?}"));
}

#[test]
fn what_the_reader_describes_is_proven_by_claims_or_is_a_setting() {
    let claim = Claim::Statement { statement: "SHOW jit".to_owned(), says: Says::Equals("off".to_owned()) };
    let claimed = Custom { claims: vec![claim], ..Custom::default() };
    let proof = |custom: &Custom, change: &dyn Fn(&mut Records)| {
        let mut records = two_frames();
        records.plan.experiment.arms[1].protections[0].custom = Some(Box::new(custom.clone()));
        change(&mut records);
        proof_of(&records)
    };
    assert_eq!(proof(&claimed, &|_| ()), Proof::ByClaim);
    assert!(matches!(proof(&claimed, &|records| records.findings.clear()), Proof::Unproven(_)));
    let fails = |records: &mut Records| records.findings[0].verdict = Verdict::Fails;
    assert!(matches!(proof(&claimed, &fails), Proof::Disproven(_)));
    assert_eq!(proof(&Custom::default(), &|records| records.findings.clear()), Proof::Setting);
    let read_back = |custom: &Custom, controls: &[&str]| {
        let read = |control: &&str| Finding {
            check: "setting-differs".to_owned(),
            role: Role::Disclosure,
            control: (*control).to_owned(),
            ..finding(1, Phase::Before)
        };
        proof(custom, &|records| records.findings = controls.iter().map(read).collect())
    };
    let same = "on, as on the protected arm";
    assert!(matches!(read_back(&Custom::default(), &[same]), Proof::Unproven(_)), "the arms are the same");
    assert_eq!(read_back(&Custom::default(), &[same, "off"]), Proof::Setting);
    assert_eq!(read_back(&Custom::default(), &["unknown to the server, on both arms"]), Proof::Setting);
    let by_session = Custom { session: vec!["SET a = 1".to_owned()], ..Custom::default() };
    assert_eq!(read_back(&by_session, &[same]), Proof::Setting);
    // In addition to a protection of Tithe's, which has to be proven.
    let beside = |records: &mut Records| {
        let mut listed = records.plan.experiment.arms[1].protections[0].clone();
        listed.custom = None;
        records.plan.experiment.arms[1].protections[0].id = "mine".to_owned();
        records.plan.experiment.arms[1].protections.push(listed);
    };
    assert_eq!(proof(&Custom::default(), &beside), Proof::Proven);
    // The same with claims, which hold.
    let both = |records: &mut Records| {
        beside(records);
        let of_mine = |phase| Finding { protection: "mine".to_owned(), ..finding(1, phase) };
        records.findings.extend([Phase::Before, Phase::After].map(of_mine));
    };
    let changes = Custom { session: vec!["SET a = 1".to_owned()], ..Custom::default() };
    assert_eq!(proof(&claimed, &both), Proof::Proven, "claims that change nothing ask more of the other");
    assert_eq!(proof(&changes, &both), Proof::Proven, "a setting");
    assert_eq!(proof(&Custom { session: changes.session.clone(), ..claimed.clone() }, &both), Proof::ByClaim);
    // Claims of the arm, beside what they are about.
    let apart = |records: &mut Records| {
        both(records);
        let mut watch = records.plan.experiment.arms[1].protections[1].clone();
        (watch.id, watch.custom) = ("watch".to_owned(), Some(Box::new(changes.clone())));
        records.plan.experiment.arms[1].protections.push(watch);
    };
    assert_eq!(proof(&claimed, &apart), Proof::ByClaim);
    let fails = |records: &mut Records| {
        apart(records);
        records.findings[0].verdict = Verdict::Fails;
    };
    assert!(matches!(proof(&claimed, &fails), Proof::Disproven(_)));
}

#[test]
fn every_claim_is_looked_at_again_after_the_frames_unless_the_run_was_killed_there() {
    let proof = |change: &dyn Fn(&mut Records)| {
        let mut records = two_frames();
        records.findings.push(Finding { check: "files".to_owned(), ..finding(1, Phase::Before) });
        change(&mut records);
        proof_of(&records)
    };
    let missing = Proof::Unproven(vec!["audit: files not checked after epoch 1".to_owned()]);
    assert_eq!(proof(&|_| ()), missing);
    let in_epoch = |records: &mut Records, epoch: u32| {
        records.findings.extend([Phase::Before, Phase::After].map(|phase| Finding { epoch, ..finding(1, phase) }));
    };
    // It was killed during the checks, and continued in a new epoch.
    let went_on = |records: &mut Records| {
        in_epoch(records, 1);
        records.frames[1].epoch = 1;
    };
    assert_eq!(proof(&went_on), Proof::Proven);
    // Nothing was left to measure, so there were only checks.
    assert_eq!(proof(&|records| in_epoch(records, 1)), Proof::Proven);
    // An epoch that was given up before its first frame needs no proof.
    let given_up = |records: &mut Records| {
        went_on(records);
        records.findings.push(Finding { epoch: 2, ..finding(1, Phase::Before) });
    };
    assert_eq!(proof(&given_up), Proof::Proven);
}

#[test]
fn each_claim_of_the_users_own_is_looked_at_again_after_the_frames() {
    let proof = |seen: &[(&str, Phase)]| {
        let mut records = two_frames();
        let of = |(claim, phase): &(&str, Phase)| Finding {
            check: YOUR_CLAIM.to_owned(),
            claim: (*claim).to_owned(),
            ..finding(1, *phase)
        };
        records.findings = seen.iter().map(of).collect();
        proof_of(&records)
    };
    let [one, two] = ["`a` answers `1`", "`b` answers `2`"];
    let before = [(one, Phase::Before), (two, Phase::Before), (one, Phase::After)];
    assert_eq!(proof(&before), Proof::Unproven(vec!["audit: `b` answers `2` not checked after epoch 1".to_owned()]));
    assert_eq!(proof(&[&before[..], &[(two, Phase::After)]].concat()), Proof::Proven);
}

#[test]
fn a_run_that_was_killed_before_its_last_checks_says_in_which_epoch() {
    let told = |whole: [bool; 2]| {
        let mut records = two_frames();
        records.frames[1].epoch = 1;
        records.findings.clear();
        for (epoch, whole) in (0..).zip(whole) {
            let phases: &[Phase] = if whole { &[Phase::Before, Phase::After] } else { &[Phase::Before] };
            records.findings.extend(phases.iter().map(|phase| Finding { epoch, ..finding(1, *phase) }));
        }
        assess(&records).warnings.join("\n")
    };
    assert_eq!(told([true, true]), "");
    let words = "c: the run was killed in epoch 1, so not every protection was checked again after its frames.";
    assert_eq!(told([false, true]), words);
    assert_eq!(told([true, false]), "", "no later epoch shows that it was killed");
}

#[test]
fn what_strengthens_a_proof_is_not_missed_where_it_is_out_of_reach() {
    let proof = |role, verdict| {
        let mut records = two_frames();
        for phase in [Phase::Before, Phase::After] {
            records.findings.push(Finding { check: "files".to_owned(), role, verdict, ..finding(1, phase) });
        }
        match proof_of(&records) {
            Proof::Baseline => "baseline",
            Proof::Proven => "proven",
            Proof::ToldByProvider(_) => "told",
            Proof::Unproven(_) => "unproven",
            Proof::Disproven(_) => "disproven",
            Proof::ByClaim | Proof::Setting => "not tithe's own",
        }
    };
    let of = |role| {
        [Verdict::Holds, Verdict::Fails, Verdict::CannotTell, Verdict::OutOfReach].map(|verdict| proof(role, verdict))
    };
    assert_eq!(of(Role::Claim), ["proven", "disproven", "unproven", "unproven"]);
    assert_eq!(of(Role::Strengthens), ["proven", "disproven", "unproven", "proven"]);
    assert_eq!(of(Role::Disclosure), ["proven"; 4]);
}

#[test]
fn figures_of_a_kernel_that_encrypted_slowly_are_flagged_and_no_others() {
    let flagged = |check: &str, verdict| {
        let mut records = Invented { frames: 16, latencies: false, ..Invented::default() }.records();
        let found = Finding { check: check.to_owned(), role: Role::Disclosure, verdict, ..finding(1, Phase::Before) };
        records.findings.push(found);
        let analysis = assess(&records);
        [1, 2].map(|arm: usize| {
            let estimates = &analysis.cells[0].arms[arm].estimates;
            let slow = estimates.iter().filter(|it| it.flags.contains(&Flag::SlowCipher)).count();
            (slow > 0, slow == estimates.len())
        })
    };
    let none = [(false, false); 2];
    assert_eq!(flagged(CIPHER_DRIVER, Verdict::Fails), [(true, true), (false, false)]);
    assert_eq!(flagged(CIPHER_DRIVER, Verdict::Holds), none);
    assert_eq!(flagged("disk-canary", Verdict::Fails), none);
}
