//! Start-to-start variation of known size: calibrated, covered by several starts, and by a single start if the spread
//! is known.

use super::*;

/// Standard deviation of ln(arm ÷ plain) from one start to the next.
const LUCK: f64 = 0.03;

/// An experiment on servers whose starts differ by [`LUCK`], drawn from `seed`; `measure` goes into `[measure]`.
fn lucky(seed: u32, measure: &str) -> String {
    let settings = format!("{FEW_OPERATIONS}\nluck = {LUCK}\nluck_seed = {seed}");
    known_costs(&settings, &sealed(0.05), "16 s")
        .replace("\"simulated\"", "\"lucky\"")
        .replace("[measure]", &format!("[measure]\n{measure}"))
}

/// A file of spreads with this line, on line 3.
fn spread_file(bench: &Bench, line: &str) {
    bench.file("spread.csv", &format!("# mine\ndatabase,metric,spread,degrees,source\n{line}\n"));
}

const KNOWN: &str = "lucky,cpu,0.0300,11,\"twelve starts, here\"";

/// Starts of the only run, and the interval of the sealed arm's processor time.
fn measured(seed: u32, measure: &str, arguments: &[&str]) -> (u64, f64, f64) {
    let bench = Bench::new("lucky");
    bench.file("e.toml", &lucky(seed, measure));
    spread_file(&bench, KNOWN);
    let output = bench.tithe(&[&["run", "e.toml", "--quiet"], arguments].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    let cpu = estimate(&report, 1, "cpu");
    let end = |name: &str| cpu["effect"][name].as_f64().expect("an end");
    (cpu["starts"].as_u64().expect("starts"), end("low"), end("high"))
}

/// Of five experiments, how many have the true cost in their interval; and the widest interval.
fn covering(starts: u64, measure: &str, arguments: &[&str]) -> (usize, f64) {
    let truth = 1.05f64.ln();
    let all: Vec<(u64, f64, f64)> = (1..=5).map(|seed| measured(seed, measure, arguments)).collect();
    assert!(all.iter().all(|(seen, ..)| *seen == starts), "{all:?}");
    let widest = all.iter().map(|(_, low, high)| high - low).fold(0.0, f64::max);
    (all.iter().filter(|(_, low, high)| (*low..=*high).contains(&truth)).count(), widest)
}

#[test]
fn the_true_cost_is_covered_over_starts_and_on_one_only_where_their_spread_is_known() {
    // 95 in 100 each: fewer than four of five happens once in forty times, and the seeds are fixed.
    let (covered, width) = covering(8, "starts = 8", &[]);
    assert!(covered >= 4 && width < 0.12, "8 starts: {covered} of 5 covered, {width} wide");
    let (covered, width) = covering(1, "", &[]);
    assert!(covered <= 1 && width < 0.01, "one start: {covered} of 5 covered, {width} wide");
    let (covered, width) = covering(1, "", &["--start-spread", "spread.csv"]);
    assert!(covered >= 4 && (0.1..0.2).contains(&width), "one start, spread known: {covered} of 5, {width} wide");
}

#[test]
fn a_known_spread_is_calibrated_and_its_file_used() {
    let bench = Bench::new("starts");
    bench.file("e.toml", &lucky(3, ""));
    bench.file(
        "spread.csv",
        "# mine\ndatabase,metric,spread,degrees,source\nredis,cpu,0.0162,21,there\nlucky,net,0.5,3,old\n",
    );
    let arguments = ["calibrate", "e.toml", "--starts", "16", "--seconds", "64", "--quiet", "--to", "spread.csv"];
    let output = bench.tithe(&arguments);
    let told = words(&out(&output));
    assert_eq!(status(&output), 0, "{told}{}", err(&output));
    assert!(told.contains("a: 16 starts, 64 frames in 64 s"), "{told}");
    assert!(told.contains("An interval on one start is at least ±"), "{told}");
    // `CPU per op 3.1 % [2.3, 4.8] 3.1 %, 15 degrees ±6.8 %`
    let row = told.split_once(" CPU per op ").expect("a row").1;
    let ends = row.split_once('[').and_then(|(_, rest)| rest.split_once(']')).expect("an interval").0;
    let ends: Vec<f64> = ends.split(", ").map(|end| end.parse().expect("a number")).collect();
    assert!(ends[0] <= 100.0 * LUCK && 100.0 * LUCK <= ends[1], "{row}");

    let file = std::fs::read_to_string(bench.path("spread.csv")).expect("the file");
    assert!(
        file.starts_with("# mine\ndatabase,metric,spread,degrees,source\nredis,cpu,0.0162,21,there\nlucky,"),
        "{file}"
    );
    assert!(!file.contains("old"), "{file}");
    let line = file.lines().find(|line| line.starts_with("lucky,cpu,")).expect("a line");
    let fields: Vec<&str> = line.splitn(5, ',').collect();
    let spread: f64 = fields[2].parse().expect("a number");
    // Chi-squared with 15 degrees of freedom: within 0.65 and 1.36 of the truth 95 times in 100.
    assert!(spread > 0.6 * LUCK && spread < 1.5 * LUCK, "{line}");
    assert_eq!(fields[3], "15", "{line}");
    assert!(
        fields[4].contains("two identical arms over 16 starts, 64 frames, workload a, 500 records, 1 client"),
        "{line}"
    );
    assert!(
        std::fs::read_dir(bench.path("."))
            .expect("the folder")
            .flatten()
            .all(|entry| { !entry.file_name().to_string_lossy().starts_with('.') })
    );

    let planned = |file: &str, arguments: &[&str]| words(&out(&bench.tithe(&[&["plan", file], arguments].concat())));
    let known = planned("e.toml", &["--start-spread", "spread.csv"]);
    assert!(known.contains("Few starts cell a: one start, so its intervals reach ±"), "{known}");
    assert!(
        known.contains("because starts differ by ") && known.contains("two identical arms over 16 starts"),
        "{known}"
    );
    assert!(!planned("e.toml", &[]).contains("Few starts"));
    bench.file("several.toml", &lucky(3, "starts = 8"));
    assert!(!planned("several.toml", &["--start-spread", "spread.csv"]).contains("Few starts"));
    // Its interval does not depend on starts.
    let one_after_the_other = ["--start-spread", "spread.csv", "--design", "sequential"];
    assert!(!planned("e.toml", &one_after_the_other).contains("Few starts"));
}

#[test]
fn what_widens_an_interval_is_told_with_its_source() {
    let bench = Bench::new("source");
    bench.file("e.toml", &lucky(1, ""));
    spread_file(&bench, KNOWN);
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--start-spread", "spread.csv"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    let plan = bench.kept_json("plan.json");
    let known =
        serde_json::json!([{ "metric": "cpu", "spread": 0.03, "degrees": 11.0, "source": "twelve starts, here" }]);
    assert_eq!(plan["start_spread"], known);
    let report = out(&bench.tithe(&["report", &bench.run_folder().display().to_string()]));
    assert!(words(&report).contains("widened by the known 3.0 % (twelve starts, here)"), "{report}");
}

#[test]
fn a_file_that_says_nothing_of_the_database_is_refused_before_anything_starts() {
    let bench = Bench::new("spreads");
    bench.file("e.toml", &lucky(1, ""));
    let advice = "`tithe calibrate lucky --starts` writes such lines";
    for (line, flaw) in [
        ("lucky,cpu,much,11,here", "spread.csv: line 3: \"much\" is not a number from 0 to 1"),
        ("lucky,speed,0.01,11,here", "spread.csv: line 3: \"speed\" is not a metric"),
        ("lucky,cpu,0.01,11", "spread.csv: line 3: 4 fields"),
        ("redis,cpu,0.01,11,here", "spread.csv: no line is of lucky; its lines are of redis"),
    ] {
        spread_file(&bench, line);
        for command in ["run", "plan"] {
            let output = bench.tithe(&[command, "e.toml", "--start-spread", "spread.csv"]);
            assert_eq!((status(&output), out(&output)), (2, String::new()), "{line}");
            let told = err(&output);
            assert!(told.contains(flaw) && told.contains(advice) && told.contains("nothing was started"), "{told}");
        }
    }
    let output = bench.tithe(&["run", "e.toml", "--start-spread", "none.csv"]);
    assert_eq!(status(&output), 2);
    assert!(err(&output).contains("cannot read the start-to-start variation in none.csv: "), "{}", err(&output));
    assert!(!bench.path("tithe-runs").exists());
}

#[test]
fn starts_that_cannot_be_told_or_written_are_refused_before_anything_starts() {
    let bench = Bench::new("no-starts");
    bench.file("e.toml", &lucky(1, ""));
    bench.file("never.toml", &known_costs(FEW_OPERATIONS, ARMS, "60 s"));
    for (arguments, words) in [
        (&["never.toml", "--starts"] as &[&str], "Tithe does not restart simulated while it measures it"),
        (
            &["e.toml", "--starts", "20", "--seconds", "30"],
            "30 frames on 20 starts do not separate starts from frames; write `--seconds 60`",
        ),
        (
            &["e.toml", "--starts", "8", "--to", "e.toml"],
            "it is not a file of start-to-start variation, and nothing is written over it",
        ),
        (&["e.toml", "--starts", "8", "--to", "no/where.csv"], "cannot write no/where.csv"),
        (&["e.toml", "--starts", "3"], "3 is not in 4..=100"),
        (&["e.toml", "--to", "new.csv"], "--starts"),
        (&["no-such-database", "--starts"], "cannot read the experiment no-such-database"),
    ] {
        let output = bench.tithe(&[&["calibrate"], arguments].concat());
        assert_eq!((status(&output), out(&output)), (2, String::new()), "{arguments:?}");
        assert!(err(&output).contains(words), "{arguments:?}: {}", err(&output));
    }
    assert!(!bench.path("tithe-runs").exists() && !bench.path("new.csv").exists());
}

#[test]
fn the_name_of_a_database_stands_for_workload_a_on_it() {
    let bench = Bench::new("named");
    let arguments = ["calibrate", "lucky", "--starts", "--seconds", "40", "--scale", "0.01", "--quiet"];
    let output = bench.tithe(&arguments);
    let told = out(&output);
    assert_eq!(status(&output), 0, "{told}{}", err(&output));
    assert!(told.contains("a: 12 starts, ") && told.contains("lucky,cpu,0.0"), "{told}");
    assert!(told.contains("workload a, 500 records, 2 clients"), "{told}");
}
