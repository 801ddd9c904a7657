//! Plans from a file: written by another build, or edited by someone.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tithe_model::{
    experiment::{Metric, OptionValue},
    parse::parse,
    plan::Plan,
};

use crate::{
    SHORT,
    catalogue::{self, catalogue},
    read_experiment,
};

const EXPERIMENT: &str = r#"
title = "Audit and volume"
database = "postgres"
[data]
records = 1000
[measure]
budget = "10 min"
[[workload]]
ycsb = "a"
[[arm]]
name = "plain"
[[arm]]
name = "protected"
protections = [{ use = "pgaudit", log = "read" }, { use = "volume", kind = "luks" }]
"#;

/// The plan in the file of [`EXPERIMENT`], after `change`.
fn changed(change: impl FnOnce(&mut Value)) -> Plan {
    let experiment = parse(EXPERIMENT, &catalogue(), &catalogue::read).expect("an experiment");
    let plan = tithe_model::plan::plan(experiment, &catalogue()).expect("a plan");
    let mut value = serde_json::to_value(plan).expect("JSON");
    change(&mut value);
    serde_json::from_value(value).expect("a plan still")
}

fn options(plan: &mut Value, protection: usize) -> &mut serde_json::Map<String, Value> {
    plan["experiment"]["arms"][1]["protections"][protection]["options"].as_object_mut().expect("options")
}

fn check(change: impl FnOnce(&mut Value), expected: Expect) {
    let mut plan = changed(change);
    let told = match plan.fit(&catalogue()) {
        Ok(filled) => format!("filled: {}", filled.join("\n")),
        Err(flaws) => format!("refused: {}", flaws.join("\n")),
    };
    expected.assert_eq(&told);
    // A filled-in option is now present, and stays.
    if told.starts_with("filled") {
        assert_eq!(plan.fit(&catalogue()), Ok(Vec::new()));
    }
}

#[test]
fn a_plan_of_this_build_is_taken_as_it_is() {
    check(|_| {}, expect!["filled: "]);
    assert_eq!(changed(|_| {}).flaws(), Vec::<String>::new());
}

/// The kernel or a process of its own does a volume's work, which is in no processor time per operation.
#[test]
fn the_clock_decides_over_a_volume() {
    let primary = |text: &str| parse(text, &catalogue(), &catalogue::read).expect("an experiment").measure.primary;
    assert_eq!(primary(EXPERIMENT), Metric::Time);
    assert_eq!(primary(&EXPERIMENT.replace(r#", { use = "volume", kind = "luks" }"#, "")), Metric::Net);
    assert_eq!(primary(&EXPERIMENT.replace("[measure]", "[measure]\nprimary = \"cpu\"")), Metric::Cpu, "as asked");
}

#[test]
fn an_option_that_an_older_build_did_not_have_gets_its_default() {
    check(
        |plan| _ = options(plan, 0).remove("catalogue"),
        expect!["filled: experiment.arms[1].protections[0].options.catalogue: taken as its default, `false`"],
    );
}

#[test]
fn what_this_build_cannot_carry_out_is_refused_with_its_place() {
    check(
        |plan| _ = options(plan, 1).remove("kind"),
        expect!["refused: experiment.arms[1].protections[1].options.kind: it is missing, and has no default"],
    );
    check(
        |plan| {
            options(plan, 1).insert("kind".to_owned(), json!({"text": "rot13"}));
            options(plan, 0).insert("log".to_owned(), json!({"flag": true}));
            options(plan, 0).insert("level".to_owned(), json!({"number": 3.0}));
            plan["experiment"]["workloads"][0]["kind"] = json!("tpch");
        },
        expect![[r#"
            refused: experiment.arms[1].protections[0].options.level: `pgaudit` has no such option in this build
            experiment.arms[1].protections[0].options.log: `true` is not what it takes
            experiment.arms[1].protections[1].options.kind: `rot13` is not what it takes
            experiment.workloads[0].kind: this build has no workload "tpch""#]],
    );
    check(
        |plan| plan["experiment"]["arms"][1]["protections"][0]["id"] = json!("shield"),
        expect![[
            r#"refused: experiment.arms[1].protections[0].id: this build has no protection "shield" of postgres"#
        ]],
    );
    check(
        |plan| plan["experiment"]["database"] = json!("oracle"),
        expect![[r#"refused: experiment.database: this build has no database "oracle""#]],
    );
}

#[test]
fn indexes_out_of_range_and_amounts_that_cannot_be_are_named() {
    let flaws = |change: fn(&mut Value)| changed(change).flaws().join("\n");
    let both = flaws(|plan| {
        plan["cells"][0]["workload"] = json!(7);
        plan["cells"][0]["resources"] = json!(1);
        plan["cells"][0]["clients"] = json!(0);
        plan["cells"][0]["blocks"] = json!(0);
        plan["cells"][0]["settling_ns"] = json!(u64::MAX);
    });
    expect![[r#"
        cells[0].workload: there is no such workload
        cells[0].resources: there are no such resources
        cells[0].clients: no such number of clients can be busy
        cells[0].settling_ns: it is not part of the slot
        cells[0].blocks: no frame has so many"#]]
    .assert_eq(&both);
    assert_eq!(flaws(|plan| plan["cells"] = json!([])), "cells: there is none");
    let spreads = "start_spread, one_server_spread, cost_spread: a spread is 0 or more, with 1 degree of freedom \
                   or more";
    let none = |name: &'static str| move |plan: &mut Value| plan[name]["degrees"] = json!(0);
    assert_eq!(changed(none("cost_spread")).flaws(), [spreads]);
    assert_eq!(changed(|plan| plan["start_spread"][0]["spread"] = json!(-0.1)).flaws(), [spreads]);
    assert_eq!(
        flaws(|plan| {
            let arm = plan["experiment"]["arms"][1].clone();
            plan["experiment"]["arms"] = json!([arm]);
        }),
        "experiment.arms: there are fewer than two\n\
         experiment.arms[0]: the first arm is the baseline and has no protections"
    );
}

#[test]
fn an_option_takes_in_a_plan_what_it_takes_in_an_experiment() {
    let mut taken = 0;
    for (id, option, usual) in [
        ("pgaudit", "log", "\"read\""),
        ("pgaudit", "catalogue", "true"),
        ("columns", "share", "0.5"),
        ("volume", "kind", "\"gocryptfs\""),
    ] {
        let with = |value: &str| SHORT.replace("use = \"tls\"", &format!("use = \"{id}\", {option} = {value}"));
        let experiment = read_experiment(&with(usual)).expect("an experiment");
        let plan = tithe_model::plan::plan(experiment, &catalogue()).expect("a plan");
        for value in [
            OptionValue::Number(-0.1),
            OptionValue::Number(0.0),
            OptionValue::Number(1.0),
            OptionValue::Number(1.1),
            OptionValue::Text("luks".to_owned()),
            OptionValue::Text("rot13".to_owned()),
            OptionValue::Flag(true),
        ] {
            let written = match &value {
                OptionValue::Text(text) => format!("{text:?}"),
                other => other.to_string(),
            };
            let is_read = read_experiment(&with(&written)).is_ok();
            let mut plan = plan.clone();
            plan.experiment.arms[1].protections[0].options.insert(option.to_owned(), value);
            assert_eq!(plan.fit(&catalogue()).is_ok(), is_read, "{option} = {written}");
            taken += u32::from(is_read);
        }
    }
    assert_eq!(taken, 6, "two texts, one flag, two numbers, one word");
}
