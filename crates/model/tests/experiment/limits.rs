//! The limits of every amount in a plan that is read: each value is accepted or refused by name.

use std::collections::BTreeSet;

use expect_test::expect;
use serde_json::{Value, json};
use tithe_model::plan::{Plan, plan};

use crate::{SHORT, catalogue};

/// The plan of [`SHORT`] after `change`, as another build or a person might have left it.
fn changed(change: impl FnOnce(&mut Value)) -> Plan {
    let experiment = crate::read_experiment(SHORT).expect("an experiment");
    let plan = plan(experiment, &catalogue::catalogue()).expect("a plan");
    let mut value = serde_json::to_value(plan).expect("JSON");
    change(&mut value);
    serde_json::from_value(value).expect("a plan still")
}

/// Each amount of a plan has a limit, and the limit itself is accepted: at the end of its name, what is accepted and
/// what is not.
#[test]
fn every_amount_of_a_plan_has_its_limits() {
    const HOUR: u64 = 3_600_000_000_000;
    let cell: [(&str, &[Value], &[Value]); 12] = [
        ("clients", &[json!(1), json!(1_000_000)], &[json!(0), json!(1_000_001)]),
        ("slot_ns", &[json!(1_000_001), json!(HOUR)], &[json!(1_000_000), json!(0), json!(HOUR + 1)]),
        ("settling_ns", &[json!(0), json!(19_999_999)], &[json!(20_000_000)]),
        ("warmup_ns", &[json!(0), json!(HOUR)], &[json!(HOUR + 1)]),
        ("blocks", &[json!(1), json!(1_000_000)], &[json!(0), json!(1_000_001)]),
        ("epochs", &[json!(1)], &[json!(0)]),
        ("starts", &[json!("once"), json!({"several": 1})], &[json!({"several": 0})]),
        ("reconnect_every", &[json!(1)], &[json!(0)]),
        (
            "after_start",
            &[
                json!("none"),
                json!({"fixed": {"ns": HOUR}}),
                json!({"until-steady": {"window_ns": 1, "at_most_ns": 24 * HOUR}}),
                json!({"until-steady": {"window_ns": HOUR, "at_most_ns": 0}}),
            ],
            &[
                json!({"fixed": {"ns": HOUR + 1}}),
                json!({"until-steady": {"window_ns": 0, "at_most_ns": HOUR}}),
                json!({"until-steady": {"window_ns": HOUR + 1, "at_most_ns": HOUR}}),
                json!({"until-steady": {"window_ns": 1, "at_most_ns": 24 * HOUR + 1}}),
            ],
        ),
        (
            "arrivals",
            &[json!("closed"), json!({"even": 0.001}), json!({"poisson": 1e9}), json!({"of-saturation": 1.0})],
            &[
                json!({"even": 0.0}),
                json!({"poisson": -1.0}),
                json!({"of-saturation": 0.0}),
                json!({"of-saturation": 1.1}),
            ],
        ),
        ("workload", &[json!(0)], &[json!(1)]),
        ("resources", &[json!(0)], &[json!(1)]),
    ];
    let mut flaws = BTreeSet::new();
    for (name, accepted, refused) in cell {
        for value in accepted {
            assert_eq!(changed(|plan| plan["cells"][0][name] = value.clone()).flaws(), [""; 0], "{name} {value}");
        }
        for value in refused {
            let said = changed(|plan| plan["cells"][0][name] = value.clone()).flaws();
            assert!(!said.is_empty(), "{name} {value}");
            flaws.extend(said);
        }
    }
    let limits = |limits: Value| changed(|plan| plan["experiment"]["resources"][0]["limits"] = limits).flaws();
    for possible in
        [json!({}), json!({"cpus": 0.5}), json!({"memory": {"bytes": 1}}), json!({"memory": {"data-per": 0.1}})]
    {
        assert_eq!(limits(possible.clone()), [""; 0], "{possible}");
    }
    for impossible in [
        json!({"cpus": 0.0}),
        json!({"memory": {"bytes": 0}}),
        json!({"memory": {"data-per": 0.0}}),
        json!({"memory": {"bytes": 1}, "cpus": -1.0}),
        json!({"memory": {"bytes": 0}, "cpus": 1.0}),
    ] {
        let said = limits(impossible.clone());
        assert!(!said.is_empty(), "{impossible}");
        flaws.extend(said);
    }
    for name in ["precision", "margin", "budget_s", "warmup_s", "idle_s"] {
        assert_eq!(changed(|plan| plan["experiment"]["measure"][name] = json!(0.0)).flaws(), [""; 0], "{name}");
        let said = changed(|plan| plan["experiment"]["measure"][name] = json!(-1.0)).flaws();
        assert!(!said.is_empty(), "{name}");
        flaws.extend(said);
    }
    for (spread, degrees, sound) in [(0.0, 0.0, true), (0.1, 1.0, true), (0.1, 0.5, false), (-0.1, 5.0, false)] {
        let said = changed(|plan| {
            plan["start_spread"][0]["spread"] = json!(spread);
            plan["start_spread"][0]["degrees"] = json!(degrees);
        });
        let said = said.flaws();
        assert_eq!(said.is_empty(), sound, "{spread} {degrees}");
    }
    expect![[r#"
        cells[0].after_start: no warm-up is that long
        cells[0].arrivals: no operations can start at that rate
        cells[0].blocks: no frame has so many
        cells[0].clients: no such number of clients can be busy
        cells[0].epochs: there is none
        cells[0].reconnect_every: a connection lasts for one operation at least
        cells[0].resources: there are no such resources
        cells[0].settling_ns: it is not part of the slot
        cells[0].slot_ns: no slot is that long
        cells[0].starts: there is none
        cells[0].warmup_ns: no warm-up is that long
        cells[0].workload: there is no such workload
        experiment.measure: a size is below 0
        experiment.resources[0].limits: nothing runs within them"#]]
    .assert_eq(&flaws.into_iter().collect::<Vec<_>>().join("\n"));
}
