//! Keys of an experiment whose defaults come from property files.

use expect_test::expect;
use tithe_model::{
    parse::parse,
    plan::{outline, plan},
};

use crate::catalogue;

fn experiment(data: &str, load: &str, files: &[&str]) -> String {
    let workloads: String =
        files.iter().map(|file| format!("[[workload]]\nycsb_file = \"workloads/{file}.properties\"\n")).collect();
    format!(
        "title = \"t\"\ndatabase = \"redis\"\n[data]\n{data}\n[load]\n{load}\n{workloads}[[arm]]\nname = \"plain\"\n\
         [[arm]]\nname = \"tls\"\nprotections = [{{ use = \"tls\" }}]\n"
    )
}

/// Records and load of the experiment, and the plan's words about the file; else the problems.
fn told(text: &str) -> String {
    let catalogue = catalogue::catalogue();
    match parse(text, &catalogue, &catalogue::read) {
        Ok(experiment) => {
            let sizes = format!(
                "{} records, {} clients, {}\n",
                experiment.data.records, experiment.load.clients, experiment.load.arrivals
            );
            let plan = plan(experiment, &catalogue).expect("a plan");
            let words = outline(&plan, &catalogue);
            let said = words.lines().skip_while(|line| *line != "Properties of workloads").skip(1);
            let said: String = said.take_while(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
            sizes + &said
        }
        Err(diagnostics) => diagnostics
            .iter()
            .map(|it| format!("{} ({}; {:?})\n", it.problem, it.help, &text[it.range.clone().unwrap_or(0..0)]))
            .collect(),
    }
}

#[test]
fn a_property_file_gives_what_the_experiment_leaves_out() {
    expect![[r#"
        2000 records, 8 clients, 500/s, even arrivals
          asks  recordcount = 2000  is `records` of the experiment
          asks  threadcount = 8     is `clients` of the experiment
          asks  target = 500        is `rate` of the experiment
    "#]]
    .assert_eq(&told(&experiment("", "", &["asks"])));
    // Neither table is required.
    let without = experiment("", "", &["asks"]).replace("[data]\n\n[load]\n\n", "");
    expect![[r#"
        2000 records, 8 clients, 500/s, even arrivals
          asks  recordcount = 2000  is `records` of the experiment
          asks  threadcount = 8     is `clients` of the experiment
          asks  target = 500        is `rate` of the experiment
    "#]]
    .assert_eq(&told(&without));
}

#[test]
fn the_experiments_own_keys_win_and_the_plan_says_so() {
    expect![[r#"
        500 records, 2 clients, 50/s, even arrivals
          asks  recordcount = 2000  overridden by `records` of the experiment
          asks  threadcount = 8     overridden by `clients` of the experiment
          asks  target = 500        overridden by `rate` of the experiment
    "#]]
    .assert_eq(&told(&experiment("records = 500", "clients = 2\nrate = 50", &["asks"])));
    expect![[r#"
        500 records, 1 clients, closed loop
          asks  recordcount = 2000  overridden by `records` of the experiment
          asks  threadcount = 8     overridden by `clients` of the experiment
          asks  target = 500        overridden by `rate` of the experiment
    "#]]
    .assert_eq(&told(&experiment("records = 500", "clients = [1, 4]", &["asks"])));
    let own = experiment("", "", &["asks"])
        .replace("asks.properties\"\n", "asks.properties\"\nproperties = { target = 250, threadcount = 3 }\n");
    expect![[r#"
        2000 records, 3 clients, 250/s, even arrivals
          asks  recordcount = 2000  is `records` of the experiment
          asks  threadcount = 3     is `clients` of the experiment
          asks  target = 250        is `rate` of the experiment
    "#]]
    .assert_eq(&told(&own));
}

#[test]
fn numbers_of_clients_by_resources_override_the_clients_of_a_file_alone() {
    let text = experiment("", "", &["asks"]) + "[[resources]]\nclients = 4\n";
    expect![[r#"
        2000 records, 8 clients, 500/s, even arrivals
          asks  recordcount = 2000  is `records` of the experiment
          asks  threadcount = 8     overridden by `clients` of the experiment
          asks  target = 500        is `rate` of the experiment
    "#]]
    .assert_eq(&told(&text));
}

#[test]
fn files_that_disagree_and_numbers_that_cannot_be_are_told() {
    expect![[r#"
        `recordcount` is 2000 in workload `asks` and 3000 in workload `more`, and one experiment has one `records` (write `records` in `[data]`, which takes precedence; "\"workloads/more.properties\"")
    "#]].assert_eq(&told(&experiment("", "clients = 4", &["asks", "more"])));
    expect![[r#"
        `threadcount` of workload `more` is 5000, and `clients` must be from 1 to 1024 (write `clients` in `[load]`, which takes precedence; "\"workloads/more.properties\"")
    "#]].assert_eq(&told(&experiment("records = 9", "", &["more"])));
    expect![[r#"
        `[data]` has no `records` (add for example `records = 100_000`; "[data]")
    "#]]
    .assert_eq(&told(&experiment("", "", &["mine"])));
    let several = experiment("", "", &["asks"])
        .replace("\"workloads/asks.properties\"", "[\"workloads/more.properties\", \"workloads/asks.properties\"]");
    expect![[r#"
        2000 records, 8 clients, 500/s, even arrivals
          more  recordcount = 2000  is `records` of the experiment
          more  threadcount = 8     is `clients` of the experiment
          more  target = 500        is `rate` of the experiment
    "#]]
    .assert_eq(&told(&several));
    expect![[r#"
        line 2 of `workloads/wrong.properties`: `scanproportion`: is not a number (write for example 0.5; "[\"workloads/wrong.properties\", \"workloads/asks.properties\"]")
    "#]].assert_eq(&told(&several.replace("more", "wrong")));
    let none = experiment("records = 1", "", &["asks"]).replace("\"workloads/asks.properties\"", "[]");
    expect![[r#"
        `ycsb_file` names no file (write for example `ycsb_file = "FILE"`; "[]")
    "#]]
    .assert_eq(&told(&none));
}
