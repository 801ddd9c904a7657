//! Run folders that another build wrote or a user edited: whatever is missing, they are read or refused with a message.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;

use crate::support::{Bench, FEW_OPERATIONS, err, known_costs, measured, out, sealed, status};

/// A run that uses up its budget, so that nothing is left to measure when it is resumed.
fn experiment() -> String {
    let arms = sealed(0.05).replace(" }]", " }, { use = \"audit\", cost = 0.2 }]");
    let measure = "precision = \"0.01%\"\nslot = \"50 ms\"";
    let text = known_costs(&format!("{FEW_OPERATIONS}\nnoise = 0.1"), &arms, "15 s");
    text.replace("precision = \"0.2%\"", measure)
}

/// Every key of an object and every element of a list in `value`, as pointers of RFC 6901.
fn places(value: &Value, at: &str) -> Vec<String> {
    let below = |name: &str, value: &Value| {
        let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        [vec![place.clone()], places(value, &place)].concat()
    };
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(name, value)| below(name, value)).collect(),
        Value::Array(values) => {
            values.iter().enumerate().flat_map(|(index, value)| below(&index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// `value` without the element at `place`.
fn without(value: &Value, place: &str) -> Value {
    let (parent, name) = place.rsplit_once('/').expect("a pointer");
    let name = name.replace("~1", "/").replace("~0", "~");
    let mut value = value.clone();
    let gone = match value.pointer_mut(parent).expect("it is there") {
        Value::Object(fields) => fields.remove(&name),
        Value::Array(values) => Some(values.remove(name.parse().expect("an index"))),
        other => panic!("{other} holds nothing"),
    };
    assert!(gone.is_some(), "{place}");
    value
}

/// A copy of the files of the run folder `from`.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a run folder").flatten() {
        let path = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &path),
            false => drop(fs::copy(entry.path(), path).expect("a copy")),
        }
    }
}

/// One of the exit statuses of FORMAT.md; a refusal must have a message.
#[track_caller]
fn ended_well(what: &str, output: &Output) {
    let told = err(output);
    assert!([0, 1, 2, 3, 4, 5, 7].contains(&status(output)), "{what}: {}: {told}", status(output));
    assert!(!told.contains("panicked") && !out(output).contains("panicked"), "{what}: {told}{}", out(output));
    assert!(status(output) != 2 || told.trim().len() > 20, "{what} was refused without a word: {told}");
}

/// Removes every `step`th place of `file` in turn, beginning with number `first`, and reads and resumes the rest of
/// `run`. Returns how many could be read, and of how many.
fn each_in_turn(bench: &Bench, run: &Path, file: &str, (first, step): (usize, usize)) -> (usize, usize) {
    let text = fs::read_to_string(run.join(file)).expect("a file of the run");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    let places: Vec<String> = places(&whole, "").into_iter().skip(first).step_by(step).collect();
    assert!(places.len() > 8, "{places:?}");
    let mut read = 0;
    for place in &places {
        let edited: PathBuf = bench.path("edited");
        copy(run, &edited);
        fs::write(edited.join(file), without(&whole, place).to_string()).expect("written");
        let folder = edited.display().to_string();
        let report = bench.tithe(&["report", &folder]);
        ended_well(&format!("report without {place} of {file}"), &report);
        read += usize::from(status(&report) == 0);
        let resumed = bench.tithe(&["run", "--resume", &folder, "--quiet"]);
        ended_well(&format!("resume without {place} of {file}"), &resumed);
        // A run that cannot be read cannot be resumed.
        assert!(status(&report) == 0 || status(&resumed) != 0, "{place} of {file}: {}", err(&report));
        fs::remove_dir_all(&edited).expect("removed");
    }
    (read, places.len())
}

/// Whatever is missing from `file` of a run folder is filled in or refused with a message.
fn whatever_is_missing(file: &str, part: (usize, usize)) {
    let (bench, output) = measured("edited", &experiment());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let run = bench.run_folder();
    // As if it had been interrupted, so that there is something to resume: arms are set up and proven again.
    let cell = fs::read_to_string(run.join("cells/0.json")).expect("the cell");
    let mut cell: Value = serde_json::from_str(&cell).expect("JSON");
    cell["ending"] = Value::from("");
    fs::write(run.join("cells/0.json"), cell.to_string()).expect("written");
    let (read, all) = each_in_turn(&bench, &run, file, part);
    // Options of protections that an older build may not have had are filled in; what a report needs is not.
    assert!(read > 0 || file == "machine.json", "{file}: nothing could be left out");
    assert!(read < all, "{file}: everything could be left out");
}

/// Two tests that run at the same time: a plan has many places.
#[test]
fn whatever_is_missing_from_a_plan_it_is_read_or_refused_with_words() {
    whatever_is_missing("plan.json", (0, 2));
}

#[test]
fn whatever_else_is_missing_from_a_plan_it_is_read_or_refused_with_words() {
    whatever_is_missing("plan.json", (1, 2));
}

#[test]
fn whatever_is_missing_from_cells_or_machine_they_are_read_or_refused_with_words() {
    whatever_is_missing("cells/0.json", (0, 1));
    whatever_is_missing("machine.json", (0, 1));
}

/// One bucket represents all buckets of a histogram.
#[test]
fn whatever_number_stands_in_a_frame_it_is_read_or_refused_with_words() {
    let (bench, output) = measured("numbers", &experiment());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let run = bench.run_folder();
    let text = fs::read_to_string(run.join("frames.jsonl")).expect("the frames");
    let (first, others) = text.split_once('\n').expect("several frames");
    let first: Value = serde_json::from_str(first).expect("JSON");
    let is_repeated = |place: &str| match place.split('/').collect::<Vec<_>>()[..] {
        ["", "arms", _, "latency" | "intended", _, bucket, _] => bucket != "0",
        _ => false,
    };
    let is_number = |place: &String| first.pointer(place).is_some_and(Value::is_number);
    let numbers: Vec<String> =
        places(&first, "").into_iter().filter(|place| is_number(place) && !is_repeated(place)).collect();
    let mut refused = 0;
    for place in &numbers {
        for value in [Value::from(u64::MAX), Value::from(0), Value::from(-1)] {
            let mut edited = first.clone();
            *edited.pointer_mut(place).expect("it is there") = value.clone();
            fs::write(run.join("frames.jsonl"), format!("{edited}\n{others}")).expect("written");
            let report = bench.tithe(&["report", &run.display().to_string()]);
            ended_well(&format!("report with {value} at {place}"), &report);
            refused += usize::from(status(&report) == 2);
        }
    }
    assert!(numbers.len() > 40 && refused > 20, "{refused} of {}", numbers.len());
}

#[test]
fn an_ending_that_is_none_is_refused_with_its_file() {
    let (bench, _) = measured("bored", &experiment());
    let run = bench.run_folder();
    let cell = fs::read_to_string(run.join("cells/0.json")).expect("the cell");
    let mut cell: Value = serde_json::from_str(&cell).expect("JSON");
    cell["ending"] = Value::from("bored");
    fs::write(run.join("cells/0.json"), cell.to_string()).expect("written");
    let refused = bench.tithe(&["report", &run.display().to_string()]);
    assert_eq!(status(&refused), 2, "{}", out(&refused));
    let told = err(&refused);
    assert!(told.contains("cells/0.json") && told.contains("`bored` is not an ending of a cell"), "{told}");
}

#[test]
fn a_run_whose_budget_is_used_up_measures_nothing_more_when_it_is_resumed() {
    let (bench, output) = measured("used-up", &experiment());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let frames = || bench.kept_lines("frames.jsonl").iter().filter(|frame| frame["free"] != true).count();
    let (run, before) = (bench.run_folder(), frames());
    let mut cell = bench.kept_json("cells/0.json");
    cell["ending"] = Value::from("");
    fs::write(run.join("cells/0.json"), cell.to_string()).expect("written");
    ended_well("resume", &bench.tithe(&["run", "--resume", &run.display().to_string(), "--quiet"]));
    assert_eq!(frames(), before);
}
