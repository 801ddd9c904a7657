//! FORMAT.md and GLOSSARY.md agree with the code.

#[path = "experiment/catalogue.rs"]
mod catalogue;

use std::collections::{BTreeMap, BTreeSet};

use expect_test::expect_file;
use serde_json::Value;
use tithe_model::{
    catalogue::Catalogue,
    connecting::Connecting,
    ending::CellEnding,
    histogram::{Histogram, bounds},
    parse::{Key, MATRIX_TABLES, TABLES, TableFormat, parse},
    plan::plan,
    record::{
        AgentFrame, ArmFacts, ArmFrame, Event, Finding, Frame, Host, Machine, Phase, Role, Slot, Stalls, Steadied,
        Verdict, WarmedUp,
    },
    steady::Steadiness,
};

const FORMAT: &str = include_str!("../../../FORMAT.md");
const GLOSSARY: &str = include_str!("../../../GLOSSARY.md");

/// The part of FORMAT.md below `heading`, up to the next heading.
fn section(heading: &str) -> &'static str {
    let rest = FORMAT.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    rest.split("\n#").next().unwrap_or_default()
}

fn examples() -> Vec<&'static str> {
    FORMAT.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// The `names` in the first column of the tables in `text`, in order.
fn first_column(text: &str) -> Vec<&str> {
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    cells.flat_map(|cell| cell.split("`, `").map(|name| name.trim_end_matches('`'))).collect()
}

/// The field names of a JSON object.
fn fields(value: &impl serde::Serialize) -> Vec<String> {
    match serde_json::to_value(value).expect("a record is JSON") {
        Value::Object(fields) => fields.into_iter().map(|(name, _)| name).collect(),
        other => panic!("{other} is not an object"),
    }
}

/// `heading` has a row for each of `names` and, if `only`, no other rows.
fn check_rows(heading: &str, names: &[String], only: bool) {
    let rows = first_column(section(heading));
    for name in names {
        assert!(rows.contains(&name.as_str()), "{heading} of FORMAT.md has no row for {name}");
    }
    for row in rows.iter().filter(|_| only) {
        assert!(names.iter().any(|name| name == row), "{heading} of FORMAT.md has a row for {row}: there is no such");
    }
}

#[test]
fn examples_are_experiments() {
    let catalogue: Catalogue = catalogue::catalogue();
    assert_eq!(examples().len(), 1, "an example was not found");
    for example in examples() {
        let experiment = parse(example, &catalogue, &catalogue::read);
        let experiment = experiment.unwrap_or_else(|diagnostics| panic!("{example}\n{diagnostics:#?}"));
        plan(experiment, &catalogue).expect("what was parsed can be planned");
    }
}

/// Examples in the tables of keys are valid TOML.
#[test]
fn key_examples_are_toml() {
    let rows = FORMAT.lines().filter_map(|line| line.strip_suffix("` |")?.rsplit_once("| `"));
    let examples: Vec<&str> = rows.map(|(_, example)| example).filter(|example| example.contains(" = ")).collect();
    assert!(examples.len() > 20, "{examples:?}");
    for example in examples {
        assert!(toml::de::DeTable::parse(example).is_ok(), "{example}");
    }
}

/// The heading above the keys of `table`.
fn heading(table: &TableFormat) -> String {
    match table.header {
        "" => "### Top of the file".to_owned(),
        "matrix" => "## The matrix file".to_owned(),
        header => format!("### {header}"),
    }
}

/// The rows of `table`, as FORMAT.md has them.
fn rows(table: &TableFormat) -> String {
    let row = |key: &Key| {
        let Key { name, kind, default, meaning, example } = key;
        format!("| `{name}` | {kind} | {default} | {meaning} | `{name} = {example}` |\n")
    };
    format!("{TABLE_OF_KEYS}\n|---|---|---|---|---|\n") + &table.keys.iter().map(row).collect::<String>()
}

const TABLE_OF_KEYS: &str = "| key | type | default | meaning | example |";

/// The tables of keys are generated from the parser's own. `UPDATE_EXPECT=1` updates them.
#[test]
fn tables_of_keys_are_those_of_the_parser() {
    let mut text = FORMAT.to_owned();
    let mut tables = 0;
    for table in TABLES.iter().chain(MATRIX_TABLES) {
        let heading = heading(table);
        let at = text.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no heading {heading}"));
        let start = at + text[at..].find(TABLE_OF_KEYS).unwrap_or_else(|| panic!("{heading} has no table of keys"));
        let length: usize =
            text[start..].split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
        text.replace_range(start..start + length, &rows(table));
        tables += 1;
    }
    assert_eq!(text.matches(TABLE_OF_KEYS).count(), tables, "FORMAT.md has a table of keys that nobody writes");
    expect_file!["../../../FORMAT.md"].assert_eq(&text);
}

/// The keys that name a workload are the catalogue's.
#[test]
fn every_kind_of_workload_has_its_row() {
    let kinds = catalogue::catalogue().workloads;
    let sources = kinds.iter().flat_map(|kind| [kind.id.to_owned(), kind.file_key()]);
    check_rows("### Sources of a workload", &sources.collect::<Vec<_>>(), true);
}

#[test]
fn every_column_of_a_slot_in_its_order() {
    let json = serde_json::to_string(&Slot::default()).expect("a slot is JSON");
    let columns: Vec<&str> = json.split('"').skip(1).step_by(2).collect();
    assert_eq!(first_column(section("### slots.csv")), columns);
}

#[test]
fn every_field_of_a_frame() {
    let frame = Frame {
        cell: 0,
        frame: 0,
        epoch: 0,
        start: 0,
        start_unix_ns: 0,
        duration_ns: 0,
        invalid: None,
        free: false,
        slot_ns: 0,
        settling_ns: 0,
        stalls: Stalls::Pressure,
        arms: vec![ArmFrame {
            connecting: Connecting { connections: 1, ..Connecting::default() },
            ..ArmFrame::default()
        }],
        agents: vec![AgentFrame {
            name: "rack1".to_owned(),
            lanes: 1,
            clock_offset_ns: 0,
            clock_bound_ns: 0,
            clients: None,
        }],
        host: Host::default(),
    };
    let arm = &frame.arms[0];
    let all = [fields(&frame), fields(arm), fields(&arm.counters), fields(&frame.host)].concat();
    check_rows("### frames.jsonl", &all, true);
}

/// The text describes the same histogram as the code.
#[test]
fn buckets_are_as_described() {
    for bucket in [0usize, 5, 127, 128, 200, 255, 256, 1000, 3000] {
        let (low, high) = bounds(bucket);
        let expected = match bucket {
            0..128 => (bucket as u64, bucket as u64 + 1),
            _ => {
                let (exponent, mantissa) = (bucket / 128 - 1, bucket as u64 % 128 + 128);
                (mantissa << exponent, (mantissa + 1) << exponent)
            }
        };
        assert_eq!((low, high), expected, "{bucket}");
    }
    let mut histogram = Histogram::default();
    histogram.record(5);
    assert_eq!(serde_json::to_string(&histogram).expect("a histogram is JSON"), "[[5,1]]");
}

fn warmed_up() -> WarmedUp {
    WarmedUp {
        start: 0,
        duration_ns: 0,
        windows: 0,
        ended: Steadiness::Steady,
        quantity: Steadied::Log,
        arm: 0,
        change: 0.0,
        as_before: false,
    }
}

fn finding() -> Finding {
    Finding {
        cell: 0,
        epoch: 0,
        arm: 0,
        phase: Phase::Before,
        protection: String::new(),
        check: String::new(),
        claim: String::new(),
        role: Role::Claim,
        verdict: Verdict::CannotTell,
        protected: String::new(),
        control: String::new(),
    }
}

#[test]
fn every_field_of_the_other_files() {
    check_rows("### evidence.jsonl", &fields(&finding()), true);
    // Fields missing from records of earlier versions have their rows, too.
    check_rows(
        "### machine.json",
        &fields(&Machine { boot: "it".to_owned(), storage: "a disk".to_owned(), ..Machine::default() }),
        true,
    );
    check_rows("### cells/*.json", &fields(&ArmFacts { facts: BTreeMap::new(), ..ArmFacts::default() }), false);
    for word in
        ["before", "after", "claim", "strengthens", "disclosure", "holds", "fails", "cannot-tell", "out-of-reach"]
    {
        assert!(section("### evidence.jsonl").contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn every_field_of_a_plan() {
    let catalogue = catalogue::catalogue();
    let experiment = parse(examples()[0], &catalogue, &catalogue::read).expect("an example");
    let mut plan = plan(experiment, &catalogue).expect("what was parsed can be planned");
    // Fields that are left out by default have their rows, too.
    (plan.cells[0].reconnect_every, plan.cells[0].gaps) = (Some(1), true);
    plan.one_server_spread = Some(Vec::new());
    check_rows("### plan.json", &[fields(&plan), fields(&plan.cells[0])].concat(), true);
    for field in fields(&plan.experiment) {
        assert!(section("### plan.json").contains(&format!("`{field}`")), "{field}");
    }
}

/// An example of every event, and whether it is stored. A missing event is a compile error.
macro_rules! events {
    ($($event:ident $example:tt => $is_kept:literal,)*) => {{
        let _every = |event: &Event| match event { $(Event::$event { .. } => (),)* };
        [$((Event::$event $example, $is_kept),)*]
    }};
}

#[test]
fn every_event() {
    let (cell, arm, epoch, frame) = (0, 0, 0, 0);
    let events = events! {
        RunStarted { tithe: String::new(), resumed: false } => true,
        CellStarted { cell } => true,
        StartsShared { cell } => true,
        ArmStarted { cell, epoch, arm, version: String::new() } => true,
        Loading { cell, arm, done: 0, of: 0 } => false,
        WarmingUp { cell, done_s: 0.0, at_most_s: 0.0 } => false,
        WarmedUp (warmed_up()) => false,
        Idle { cell, length_s: 0.0 } => false,
        Looking { cell, arm, phase: Phase::Before, claim: String::new() } => false,
        StartedAnew { cell, start: 0, took_s: 0.0, stop_s: 0.0, put_back_s: 0.0, start_s: 0.0, warm_up_s: 0.0 } => true,
        Switching { cell, arm, done_s: 0.0, at_most_s: 0.0 } => false,
        Switched { cell, arm, took_s: 0.0 } => true,
        Evidence (finding()) => true,
        FrameDone { cell, frame, invalid: None } => true,
        CellDone { cell, reason: CellEnding::Budget } => true,
        Warning { message: String::new() } => true,
        RunDone { interrupted: false } => true,
    };
    let text = section("### events.jsonl");
    // The first is the table's heading.
    let mut rows: BTreeSet<&str> = first_column(text).into_iter().skip(1).collect();
    for (event, is_kept) in &events {
        let value = serde_json::to_value(event).expect("an event is JSON");
        let name = value["event"].as_str().expect("an event has a name");
        assert_eq!(rows.remove(name), *is_kept, "{name} has a row where it is kept, and nowhere else");
        let row = text.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap_or_default();
        let of_finding = matches!(event, Event::Evidence(_));
        assert!(!of_finding || row.contains("the fields of a finding"), "{row}");
        for field in fields(event).iter().filter(|field| *is_kept && !of_finding && *field != "event") {
            assert!(row.contains(&format!("`{field}`")), "{name} has no {field}");
        }
    }
    assert!(rows.is_empty(), "events.jsonl has rows for {rows:?}: there are no such events");
}

#[test]
fn glossary_is_sorted_says_each_word_once_and_asks_for_fifty_at_most() {
    let words: Vec<String> = GLOSSARY
        .split("\n\n**")
        .skip(1)
        .filter_map(|entry| entry.split_once(".**"))
        .map(|(word, _)| word.to_lowercase())
        .collect();
    assert!((41..=50).contains(&words.len()), "{} words to learn: {words:?}", words.len());
    assert!(words.is_sorted_by(|a, b| a < b), "{words:?}");
}
