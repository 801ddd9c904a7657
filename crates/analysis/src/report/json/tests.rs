//! Tests of the document: against its schema, parsed again, and damaged in many ways.

use std::collections::BTreeSet;

use expect_test::{expect, expect_file};
use proptest::prelude::*;
use serde_json::Value;
use tithe_model::schedule::SplitMix64;

use super::*;
use crate::{
    Interval,
    report::{benchstat, csv, html, markdown, sample, terminal, view::Form, words},
};

fn validator() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(schema()).unwrap();
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::validator_for(&schema).unwrap()
}

fn document(analysis: &Analysis) -> String {
    render(analysis, &sample::page_data(analysis))
}

fn parsed(analysis: &Analysis) -> Value {
    serde_json::from_str(&document(analysis)).unwrap()
}

/// Every report that is made from an analysis and its page data.
fn reports(analysis: &Analysis, page_data: &PageData) -> Vec<(&'static str, String)> {
    let text = |form, width| terminal::render(analysis, terminal::Options { form, width, colour: true });
    vec![
        ("text", text(Form::Long, 120)),
        ("short", text(Form::Answer, 80)),
        ("html", html::render(analysis, page_data)),
        ("markdown", markdown::render(analysis, Form::Long)),
        ("pull-request", markdown::render(analysis, Form::Short)),
        ("json", render(analysis, page_data)),
        ("csv", csv::render(analysis)),
        ("benchstat", benchstat::render(analysis)),
    ]
}

/// A sample with every figure that JSON has no number for.
fn infinite() -> Analysis {
    const INFINITY: f64 = f64::INFINITY;
    let mut analysis = sample::full();
    analysis.title = "What is not finite".to_owned();
    analysis.began_unix_s = Some(1_763_712_720);
    let cell = &mut analysis.cells[0];
    cell.wait_share = f64::NAN;
    (cell.arms[0].levels[0].low, cell.arms[0].levels[0].high) = (-INFINITY, INFINITY);
    let estimates = &mut cell.arms[1].estimates;
    for (estimate, (middle, low, high)) in estimates.iter_mut().zip([
        (0.1, -INFINITY, INFINITY),
        (f64::NAN, -INFINITY, INFINITY),
        (INFINITY, INFINITY, INFINITY),
        (-INFINITY, -INFINITY, -INFINITY),
    ]) {
        estimate.effect = Interval { estimate: middle, low, high };
    }
    analysis
}

fn all() -> Vec<Analysis> {
    sample::all().into_iter().chain([infinite()]).collect()
}

#[test]
fn everything_is_told() {
    expect_file!["../golden/full.json"].assert_eq(&document(&sample::full()));
    expect_file!["../golden/controlled.json"].assert_eq(&document(&sample::controlled()));
    expect_file!["../golden/failed.json"].assert_eq(&document(&sample::failed()));
    expect_file!["../golden/empty.json"].assert_eq(&document(&sample::empty()));
}

#[test]
fn every_document_follows_the_schema() {
    let validator = validator();
    for analysis in all() {
        let errors: Vec<String> = validator
            .iter_errors(&parsed(&analysis))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", analysis.title);
    }
}

#[test]
fn the_schema_refuses_what_is_not_in_it() {
    let validator = validator();
    let good = parsed(&sample::full());
    let invalidate = |change: &dyn Fn(&mut Value)| {
        let mut bad = good.clone();
        change(&mut bad);
        assert_ne!(bad, good);
        assert!(!validator.is_valid(&bad));
    };
    invalidate(&|report| report["format"] = 1.into());
    invalidate(&|report| report["tithe_report"]["more"] = 1.into());
    invalidate(&|report| report["tithe_report"]["cells"][0]["arms"][1]["estimates"][0]["more"] = 1.into());
    invalidate(&|report| report["tithe_report"]["cells"][0]["arms"][1]["estimates"][0]["verdict"] = "costs".into());
    invalidate(&|report| report["tithe_report"]["cells"][0]["arms"][1]["estimates"][0]["effect"]["low"] = "low".into());
    invalidate(&|report| report["tithe_report"]["cells"][0]["arms"][2]["proof"]["proof"] = "maybe".into());
    invalidate(&|report| report["page"]["curves"][0]["points"][0] = Value::Array(vec![1.into()]));
    invalidate(&|report| report["page"]["moments"][0]["load"] = Value::Null);
    invalidate(&|report| {
        report["tithe_report"]["cells"][0]["arms"][1]["estimates"][0].as_object_mut().unwrap().remove("count");
    });
}

#[test]
fn the_schema_has_every_flag() {
    let schema: Value = serde_json::from_str(schema()).expect("JSON");
    let known = words::flag_of("").expect_err("no flag has an empty name");
    let (_, known) = known.split_once("there are ").expect("all codes");
    let known: BTreeSet<&str> = known.split(", ").collect();
    let mut found = BTreeSet::new();
    fn flags<'s>(value: &'s Value, found: &mut BTreeSet<&'s str>) {
        if let Some(list) = value.pointer("/flags/items/enum").and_then(Value::as_array) {
            found.extend(list.iter().filter_map(Value::as_str));
        }
        let children: Vec<&Value> = match value {
            Value::Object(map) => map.values().collect(),
            Value::Array(list) => list.iter().collect(),
            _ => Vec::new(),
        };
        children.into_iter().for_each(|child| flags(child, found));
    }
    flags(&schema, &mut found);
    assert!(known.len() > 10, "{known:?}");
    assert_eq!(found, known);
}

#[test]
fn reports_of_a_document_are_those_of_the_run() {
    for analysis in all() {
        let page_data = sample::page_data(&analysis);
        let (analysis_again, story_again) = read(&render(&analysis, &page_data)).expect("a document");
        for (made, again) in reports(&analysis, &page_data).into_iter().zip(reports(&analysis_again, &story_again)) {
            assert_eq!(made, again, "{}", analysis.title);
        }
        assert_eq!(page_data, story_again);
        if analysis.title != infinite().title {
            assert_eq!(analysis, analysis_again, "what is equal to itself");
        }
    }
}

#[test]
fn the_format_is_the_documented_one() {
    let documented = include_str!("../../../../../FORMAT.md");
    assert!(documented.contains(&format!("version of the document, {FORMAT};")), "FORMAT.md");
    let schema: Value = serde_json::from_str(schema()).expect("JSON");
    assert_eq!(schema["properties"]["format"]["const"], FORMAT);
}

#[test]
fn infinite_ends_are_null() {
    let report = parsed(&infinite());
    let effect = |index: usize| &report["tithe_report"]["cells"][0]["arms"][1]["estimates"][index]["effect"];
    expect![[r#"{"estimate":0.1,"high":null,"low":null}"#]].assert_eq(&effect(0).to_string());
    expect![[r#"{"estimate":"Infinity","high":null,"low":"Infinity"}"#]].assert_eq(&effect(2).to_string());
}

#[test]
fn what_is_no_document_is_refused_in_words() {
    let whole = document(&sample::full());
    let with = |one: &str, other: &str| {
        assert_eq!(whole.matches(one).count(), 1, "{one}");
        whole.replacen(one, other, 1)
    };
    let refused = [
        String::new(),
        "title = \"an experiment\"\n".to_owned(),
        "[1, 2]".to_owned(),
        "{\"title\": \"something else\"}".to_owned(),
        "{\"tithe_report\": {}}".to_owned(),
        with("\"format\": 3", "\"format\": \"two\""),
        with("\"format\": 3", "\"format\": 1"),
        with("\"format\": 3", "\"format\": 4"),
        with("\"format\": 3", "\"format\": 3, \"format\": 3"),
        with("\"seed\": 42", "\"seed\": 42, \"sed\": 42"),
        with("\"seed\": 42", "\"seed\": -42"),
        with("\"seed\": 42", "\"seed\": 1e999"),
        with("\"seed\": 42,", ""),
        with("\"ending\": \"precision\"", "\"ending\": null"),
        with("\"slot_ms\": 20.0", "\"slot_ms\": \"Infinity\""),
        whole.replacen("\"total\":null,", "", 1),
        whole.replacen("\"COSTS\"", "\"Costs\"", 1),
        whole.replacen("\"unit\":\"µs\"", "\"unit\":\"µs<img src=x>\"", 1),
        whole.replacen("\"frames\": 30", "\"frames\": 30000000000", 1),
        whole.replacen("\"operation\":\"READ\",\"arm\":3", "\"operation\":\"READ\",\"arm\":7", 1),
        whole.replacen("\"moments\": [\n      {\"cell\":0", "\"moments\": [\n      {\"cell\":1", 1),
        format!("{whole}{whole}"),
        whole[..whole.len() / 2].to_owned(),
    ];
    let told: String = refused
        .iter()
        .map(|text| {
            assert_ne!(*text, whole);
            read(text).expect_err("no document") + "\n"
        })
        .collect();
    expect![[r#"
        it ends at line 1, column 0 in the middle of a value: it is cut short
        line 1, column 2 is not JSON: expected ident
        it is JSON and no report of tithe, which has a `tithe_report`
        it is JSON and no report of tithe, which has a `tithe_report`
        it does not say its `format` as a whole number
        it does not say its `format` as a whole number
        it is of format 1, which an older tithe wrote and which lacks what reports are made from; this one reads format 3: make the document again from its run folder (tithe report RUN --format json)
        it is of format 4, which a newer tithe wrote; this one reads format 3
        line 2, column 23 is damaged: duplicate field `format`
        line 8, column 21 is damaged: unknown field `sed`, expected one of `run`, `title`, `database`, `tithe`, `seed`, `records`, `began_unix_s`, `confidence`, `margin`, `precision`, `machine`, `cells`, `sweeps`, `warnings`
        line 8, column 15 is damaged: invalid value: integer `-42`, expected u64
        line 8, column 17 is not JSON: number out of range
        line 157, column 3 is damaged: missing field `seed`
        line 27, column 22 is damaged: invalid type: null, expected a string
        line 22, column 29 is damaged: invalid type: string "Infinity", expected f64
        line 57, column 444 is damaged: missing field `total`
        line 56, column 479 is damaged: unknown variant `Costs`, expected one of `COSTS`, `GAINS`, `NONE_FOUND`, `TOO_NOISY`
        tithe_report.cells[0] is damaged: it has a figure with an invalid unit
        tithe_report.cells[0] is damaged: it has more frames than a cell can have
        page.curves[3] is damaged: it names a cell or an arm that is not in the report
        page.moments[0] is damaged: it names a cell that is not in the report
        line 197, column 1 is not JSON: trailing characters
        it ends at line 97, column 159 in the middle of a value: it is cut short
    "#]].assert_eq(&told);
}

#[test]
fn what_is_cut_short_is_refused_wherever_it_ends() {
    let whole = document(&sample::full());
    let ends = (0..whole.trim_end().len()).filter(|end| end % 97 == 0 && whole.is_char_boundary(*end));
    for end in ends {
        let told = read(&whole[..end]).expect_err("cut short");
        assert!(told.contains("line "), "{end}: {told}");
    }
}

/// The node of `value` with index `number` in depth-first order; `number` is counted down on the way.
fn node<'a>(value: &'a mut Value, number: &mut u64) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|part| node(part, number)),
        Value::Object(map) => map.values_mut().find_map(|part| node(part, number)),
        _ => None,
    }
}

fn nodes(value: &Value) -> u64 {
    1 + match value {
        Value::Array(list) => list.iter().map(nodes).sum::<u64>(),
        Value::Object(map) => map.values().map(nodes).sum(),
        _ => 0,
    }
}

/// A document with one to three changed parts, mostly of the same kind as before.
fn mutated(seed: u64) -> String {
    let mut random = SplitMix64::new(seed);
    let mut below = |most: usize| (random.next_u64() % most as u64) as usize;
    let samples = all();
    let mut value = parsed(&samples[below(samples.len())]);
    for _ in 0..=below(3) {
        let mut number = below(nodes(&value) as usize) as u64;
        let Some(part) = node(&mut value, &mut number) else { continue };
        let numbers = [0.0, -1.0, 1.0, 7.0, 1e-300, 5e-324, -1e308, 1e308, 4_294_967_295.0, 1e18].map(Value::from);
        let wholes = [0, 1, 2, 1 << 20, u64::from(u32::MAX), u64::MAX].map(Value::from);
        let texts = ["", "Infinity", "-Infinity", "NaN", "_p_", "latency_pé_", "\u{1b}[2J\r\n", "µ"].map(Value::from);
        let others = [Value::Null, Value::Bool(true), Value::Array(Vec::new()), Value::Object(serde_json::Map::new())];
        match part {
            Value::Number(known) if known.is_u64() && below(8) > 0 => *part = wholes[below(wholes.len())].clone(),
            Value::Number(_) if below(8) > 0 => *part = numbers[below(numbers.len())].clone(),
            Value::String(_) if below(8) > 0 => *part = texts[below(texts.len())].clone(),
            Value::Array(list) if below(8) > 0 => match below(3) {
                0 => list.clear(),
                1 => list.reverse(),
                _ => list.extend(list.clone()),
            },
            Value::Object(map) if below(2) > 0 => {
                let key = map.keys().nth(below(map.len().max(1))).cloned();
                key.and_then(|key| map.remove(&key));
            }
            _ => *part = others[below(others.len())].clone(),
        }
    }
    value.to_string()
}

#[test]
fn some_damage_can_be_read_and_some_cannot() {
    let readable = (0..100).filter(|seed| read(&mutated(*seed)).is_ok()).count();
    assert!((20..=80).contains(&readable), "{readable} of 100: the property below tests one kind only");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_that_is_read_makes_a_report_panic(seed in any::<u64>()) {
        match read(&mutated(seed)) {
            Ok((analysis, page_data)) => prop_assert!(reports(&analysis, &page_data).iter().all(|(_, text)| !text.is_empty())),
            Err(told) => prop_assert!(!told.is_empty()),
        }
    }
}
