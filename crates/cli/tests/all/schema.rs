//! The JSON Schema of experiment files: it accepts experiments, and nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use crate::support::{Bench, err, out, status};

fn schema() -> Value {
    let output = Bench::new("schema").tithe(&["schema"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    serde_json::from_str(&out(&output)).expect("JSON")
}

fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::meta::validate(schema).expect("the schema is a schema");
    jsonschema::validator_for(schema).expect("a schema")
}

/// A text in TOML as the JSON that editors validate.
fn of_toml(text: &str) -> Value {
    of_table(DeTable::parse(text).expect("TOML").get_ref())
}

fn of_table(table: &DeTable<'_>) -> Value {
    table
        .iter()
        .map(|(key, value)| (key.get_ref().to_string(), of_value(value.get_ref())))
        .collect::<Map<_, _>>()
        .into()
}

fn of_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => json!(i64::from_str_radix(number.as_str(), number.radix()).expect("a number")),
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().expect("a number")),
        DeValue::Boolean(flag) => json!(flag),
        DeValue::Datetime(time) => json!(time.to_string()),
        DeValue::Array(values) => values.iter().map(|value| of_value(value.get_ref())).collect(),
        DeValue::Table(table) => of_table(table),
    }
}

/// The experiments of the repository, by their files.
fn experiments() -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["experiments", "experiments/attached", "experiments/compliance", "experiments/hosts"];
    let folders = folders.into_iter().chain(["experiments/atlas", "experiments/published", "tools"]);
    let entries = folders.flat_map(|folder| fs::read_dir(root.join(folder)).expect("a folder").flatten());
    let files = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let all = files.map(|path| (path.clone(), of_toml(&fs::read_to_string(path).expect("a text"))));
    // A matrix names experiments but is not one.
    all.filter(|(_, experiment)| experiment.get("experiments").is_none()).collect()
}

#[test]
fn every_experiment_of_the_repository_follows_the_schema() {
    let schema = schema();
    let built = schema["properties"]["database"]["enum"].as_array().expect("databases");
    let validator = validator(&schema);
    let mut count = 0;
    for (path, experiment) in experiments().iter().filter(|(_, experiment)| built.contains(&experiment["database"])) {
        let errors: Vec<String> = validator.iter_errors(experiment).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
        count += 1;
    }
    assert!(count > 25, "{count} experiments");
    let format = include_str!("../../../../FORMAT.md");
    for example in format.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let errors: Vec<String> = validator.iter_errors(&of_toml(example)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{example}: {errors:?}");
    }
}

const EXPERIMENT: &str = r#"
title = "What seal costs"
database = "simulated"
[data]
records = 100
[load]
clients = 1
[measure]
budget = "5 min"
[[resources]]
name = "usual"
[[workload]]
ycsb = "c"
[[arm]]
name = "plain"
[[arm]]
name = "sealed"
protections = [{ use = "seal", cost = 0.05 }]
[[published]]
source = "a report"
arm = "sealed"
figure = "time"
change = "+5%"
"#;

#[test]
fn what_is_no_experiment_does_not_follow_it() {
    let validator = validator(&schema());
    let whole = of_toml(EXPERIMENT);
    assert!(validator.is_valid(&whole), "{:?}", validator.iter_errors(&whole).map(|it| it.to_string()).next());
    for table in [
        "",
        "/data",
        "/load",
        "/measure",
        "/resources/0",
        "/workload/0",
        "/arm/0",
        "/arm/1/protections/0",
        "/published/0",
    ] {
        let mut wrong = whole.clone();
        wrong.pointer_mut(table).expect("a table")["nonsense"] = json!(1);
        assert!(!validator.is_valid(&wrong), "{table}/nonsense");
    }
    for (place, value) in [
        ("/database", json!("simulatd")),
        ("/data/records", json!(0)),
        ("/data/records", json!("many")),
        ("/load/clients", json!([1])),
        ("/load/clients", json!(1025)),
        ("/measure/budget", json!("5 m")),
        ("/workload/0/ycsb", json!("z")),
        ("/arm/1/protections/0", json!({ "use": "tls" })),
        ("/arm/1/protections/0", json!({ "use": "placebo", "lose": 0.5 })),
        ("/arm/1/protections/0/cost", json!(1000)),
        ("/published/0/change", json!("5")),
        ("/arm", json!([{ "name": "plain" }])),
    ] {
        let mut wrong = whole.clone();
        *wrong.pointer_mut(place).expect("a value") = value.clone();
        assert!(!validator.is_valid(&wrong), "{place} = {value}");
    }
    for (table, key) in [("", "title"), ("", "workload"), ("/workload/0", "ycsb"), ("/arm/0", "name")] {
        let mut wrong = whole.clone();
        let table = wrong.pointer_mut(table).and_then(Value::as_object_mut).expect("a table");
        assert!(table.remove(key).is_some() && !validator.is_valid(&wrong), "without {key}");
    }
}
