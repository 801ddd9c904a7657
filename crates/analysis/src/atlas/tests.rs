use expect_test::expect;
use tithe_model::ending::CellEnding;

use super::{
    entry::{Source, entry},
    sample::{kept, named, offered, on_host, source},
    *,
};
use crate::{Analysis, CellAnalysis, Flag, report::sample};

fn reads() -> Analysis {
    named(sample::full(), "aa11aa11aa11", &[("reads", "in memory")])
}

/// The refusals of a run after a change of its first cell.
fn refused(change: impl Fn(&mut CellAnalysis)) -> String {
    let mut analysis = reads();
    change(&mut analysis.cells[0]);
    entry(&analysis, &source("postgres")).expect_err("it does not qualify").join("\n")
}

#[test]
fn a_run_that_does_not_qualify_is_refused_with_every_reason() {
    let all = [
        refused(|cell| cell.ending = None),
        refused(|cell| cell.ending = Some(CellEnding::Failed("the server ended".to_owned()))),
        refused(|cell| cell.frames = 14),
        refused(|cell| cell.host.steal = Some(0.03)),
        refused(|cell| cell.host.load = 5.1 * f64::from(sample::full().machine.processors)),
        refused(|cell| cell.arms[1].estimates[0].flags.push(Flag::Throttled)),
        refused(|cell| cell.arms[1].estimates[0].flags.push(Flag::Asymmetric)),
        refused(|cell| {
            cell.arms.iter_mut().skip(1).for_each(|arm| arm.proof = Proof::Unproven(vec!["why".to_owned()]))
        }),
        refused(|cell| "others".clone_into(&mut cell.workload)),
    ];
    expect![[r#"
        Cell c/in-memory: it was not measured to its end.
        Cell c/in-memory: it failed: the server ended.
        Cell c/in-memory: it has 14 frames, and an interval needs 15.
        Cell c/in-memory: steal time was 3.0 %, and may be 1.0 %: the hypervisor ran other machines.
        Cell c/in-memory: the load average was 10.2, and may be 10 here: other programs ran.
        Cell c/in-memory: a quota throttled it.
        Cell c/in-memory: the plain arm differs from itself: the set-up is not symmetric.
        No protection was proven to be on.
        No cell is of a kind of work that the atlas has.
    "#]]
    .assert_eq(&(all.join("\n") + "\n"));
    let of =
        |analysis: &Analysis, source: &Source<'_>| entry(analysis, source).expect_err("it does not qualify").join("\n");
    let (damage, good) = (vec!["frame 3 of cell c".to_owned()], source("postgres"));
    let homeless = Analysis { began_unix_s: None, ..reads() };
    let all = [
        of(&reads(), &Source { experiment: None, ..good }),
        of(&reads(), &Source { tithe: "0.2.0", experiment: Some("postgres"), commit: "", damage: &[] }),
        of(&reads(), &Source { damage: &damage, experiment: Some("postgres"), commit: "", tithe: "0.1.0" }),
        of(&homeless, &source("postgres")),
    ];
    expect![[r#"
        Its experiment is none of the atlas, or was changed in the file or by an option: run a file of experiments/atlas as it is, with --profile or without.
        It was measured by tithe 0.1.0, and this is 0.2.0: measure again.
        Records are damaged (frame 3 of cell c): measure again.
        It does not say when, or on which boot of a kernel, it was measured.
    "#]]
    .assert_eq(&(all.join("\n") + "\n"));
}

#[test]
fn a_cell_has_the_column_of_its_work_and_a_run_at_the_bounds_qualifies() {
    let of = |workload: &str| ["in memory", "beyond the cache"].map(|resources| Kind::of(workload, resources));
    assert_eq!(of("reads"), [Some(Kind::ReadsInMemory), Some(Kind::ReadsBeyondCache)]);
    assert_eq!(of("half updates"), [Some(Kind::HalfUpdates); 2]);
    assert_eq!([of("bulk load"), of("scan")], [[Some(Kind::BulkOrScan); 2]; 2]);
    assert_eq!(of("others"), [None; 2]);
    let mut analysis = reads();
    let processors = f64::from(analysis.machine.processors);
    let cell = &mut analysis.cells[0];
    (cell.frames, cell.host.steal, cell.host.load) = (15, Some(0.01), 5.0 * processors);
    assert!(entry(&analysis, &source("postgres")).is_ok());
}

#[test]
fn an_extract_comes_back_and_other_files_do_not() {
    let run = kept(&reads(), "postgres");
    assert_eq!(run.file, "aa11aa-2025-11-21-postgres.json");
    assert_eq!(AtlasRun::read(&run.run.write()), Ok(run.run.clone()));
    let mut torn = run.run.clone();
    torn.cells[0].arms.pop();
    let newer = AtlasRun { format: 2, ..run.run };
    let told =
        [torn.write(), newer.write(), "{}".to_owned()].map(|text| AtlasRun::read(&text).expect_err("no extract"));
    expect![[r#"
        it is damaged: its cells do not belong together
        it is of format 2, and this tithe reads format 1: add its run again
        it is not an extract of a run for the atlas: missing field `format` at line 1 column 2"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn a_place_says_why_it_is_empty() {
    let atlas = super::sample::full();
    let row = |arm: &str| atlas.rows.iter().find(|row| row.arm == arm).expect("a row");
    let empty = |place: &Place| match place {
        Place::Empty(why) => why.clone(),
        Place::Measured(all) => format!("{} figures", all.len()),
    };
    let told = ["tls", "audit", "luks"].map(|arm| row(arm).places.each_ref().map(empty).join(" | "));
    expect![[r#"
        1 figures | not yet measured | 1 figures | 1 figures
        cannot be proven here: every statement is in the audit log: cannot tell after measuring | not yet measured | not yet measured | not yet measured
        cannot be proven here: no field value in the clear below the data folder: fails | not yet measured | not yet measured | not yet measured"#]].assert_eq(&told.join("\n"));
    assert_eq!(
        atlas.unmeasured,
        [
            ("Redis <6>".to_owned(), vec!["tls".to_owned(), "acl".to_owned()]),
            ("PostgreSQL".to_owned(), vec!["scram".to_owned()]),
        ]
    );
    assert_eq!((atlas.hosts(), atlas.false_alarms()), (3, (0, 2)));
    let redis = Analysis { database: "redis".to_owned(), ..reads() };
    let atlas = of(vec![kept(&redis, "redis")], &offered());
    assert_eq!(empty(&atlas.rows[0].places[1]), "not offered: it keeps all records in memory");
}

#[test]
fn two_hosts_have_an_answer_if_theirs_are_the_same() {
    let of_both = |second: f64| {
        let atlas = of(vec![on_host("aa11aa11aa11", 1.0), on_host("bb22bb22bb22", second)], &offered());
        let row = atlas.rows.iter().find(|row| row.arm == "tls").expect("a row");
        let Place::Measured(all) = &row.places[0] else { panic!("{row:?}") };
        (all[0].verdict().expect("two hosts"), all[0].middle().expect("two hosts"))
    };
    // The second host's cost is as high as the first one's, half as high again, or zero.
    let [same, higher, zero] = [1.0, 1.5, 0.0].map(of_both);
    assert_eq!([same.0, higher.0, zero.0], [Verdict::Costs, Verdict::Costs, Verdict::TooNoisy]);
    let own = sample::full().cells[0].arms[1].estimates[0].effect.estimate;
    assert!((same.1 - own).abs() < 1e-9, "{} {own}", same.1);
    let relative = [higher.1, zero.1].map(|middle| middle / same.1);
    assert!((relative[0] - 1.25).abs() < 1e-9 && (relative[1] - 0.5).abs() < 1e-9, "{relative:?}");
}

/// The A/A arm takes savings back and no costs.
#[test]
fn a_saving_that_the_aa_arm_has_as_well_is_none() {
    let verdict = |sign: f64, flag: Option<Flag>| {
        let mut kept = on_host("aa11aa11aa11", 1.0);
        for arm in kept.run.outcome.cells.iter_mut().flat_map(|cell| &mut cell.arms) {
            let ends = [sign * arm.effect.low, sign * arm.effect.high];
            let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            arm.effect = Interval { estimate: sign * arm.effect.estimate, low, high };
            arm.flags.extend(flag);
        }
        let atlas = of(vec![kept], &offered());
        let row = atlas.rows.iter().find(|row| row.arm == "tls").expect("a row");
        let Place::Measured(all) = &row.places[0] else { panic!("{row:?}") };
        all[0].verdict()
    };
    let told = |flag: Option<Flag>| [-1.0, 1.0].map(|sign| verdict(sign, flag));
    assert_eq!(told(None), [Some(Verdict::Gains), Some(Verdict::Costs)]);
    assert_eq!(told(Some(Flag::Drift)), [Some(Verdict::Gains), Some(Verdict::Costs)]);
    assert_eq!(told(Some(Flag::WithinControl)), [Some(Verdict::TooNoisy), Some(Verdict::Costs)]);
}

#[test]
fn products_are_in_the_order_in_which_they_are_offered_and_others_at_the_end() {
    let on =
        |database: &str, experiment: &str| kept(&Analysis { database: database.to_owned(), ..reads() }, experiment);
    let atlas = of(vec![on("other", "a"), on("postgresql", "b"), on("redis", "c")], &offered());
    let mut products: Vec<&str> = atlas.rows.iter().map(|row| row.product.as_str()).collect();
    products.dedup();
    assert_eq!(products, ["Redis <6>", "PostgreSQL", "other"]);
}

#[test]
fn a_control_that_excludes_its_true_cost_is_a_false_alarm() {
    let alarms = |low: f64, high: f64| {
        let mut kept = on_host("aa11aa11aa11", 1.0);
        kept.run.cells[0].control = Some(Interval { estimate: (low + high) / 2.0, low, high });
        of(vec![kept], &offered()).false_alarms()
    };
    assert_eq!([alarms(0.01, 0.03), alarms(-0.03, -0.01), alarms(-0.01, 0.03)], [(1, 1), (1, 1), (0, 1)]);
}

#[test]
fn the_highest_costs_are_the_highest_that_are_costs() {
    let atlas = super::sample::full();
    let told = |count: usize| {
        let highest = atlas.highest(count);
        let told = highest.iter().map(|(row, kind, it)| {
            let sum = it.profile.as_ref().map(|(_, profile)| profile.sum.estimate);
            format!("{} {} {} {sum:?}", row.arm, kind.title(), it.name)
        });
        told.collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        columns reads in memory  None
        tls reads in memory  Some(17.16)
        tls half updates  None
        tls bulk load or scan bulk load None"#]]
    .assert_eq(&told(10));
    expect!["columns reads in memory  None"].assert_eq(&told(1));
}

#[test]
fn the_profile_of_several_runs_is_the_one_that_knows_its_sum_best() {
    let of = |estimate: f64, low: f64, high: f64| AtlasProfile {
        sum: Interval { estimate, low, high },
        parts: Vec::new(),
        beside: Vec::new(),
    };
    let (fine, coarse) = (of(20.0, 19.0, 21.0), of(10.0, 9.0, 11.0));
    assert!(is_finer(Some(&fine), Some(&coarse)) && is_finer(Some(&coarse), None));
    assert!(!is_finer(Some(&coarse), Some(&fine)) && !is_finer(None, Some(&coarse)) && !is_finer(None, None));
    let unknown = of(0.0, f64::NAN, f64::NAN);
    assert!(!is_finer(Some(&unknown), Some(&coarse)));
}

#[test]
fn hosts_are_pooled_and_a_host_counts_once() {
    let atlas = super::sample::full();
    let tls = atlas.rows.iter().find(|row| row.arm == "tls").expect("a row");
    let Place::Measured(all) = &tls.places[0] else { panic!("{tls:?}") };
    assert_eq!((all[0].figure.hosts.len(), all[0].runs.as_slice()), (3, [0, 1, 2].as_slice()));
    let twice = of(vec![kept(&reads(), "postgres"), kept(&reads(), "postgres")], &offered());
    let Place::Measured(all) = &twice.rows[0].places[0] else { panic!("{twice:?}") };
    assert_eq!((all[0].figure.hosts.len(), all[0].runs.len()), (1, 2));
}
