//! Known costs are recovered, and no cost is found if there is none.

use tithe_model::histogram::Histogram;

use super::*;

#[test]
fn known_costs_are_recovered_and_none_is_found_where_there_is_none() {
    let (bench, output) = measured("known", &known_costs("", ARMS, "60 s"));
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    for (arm, truth) in [(1, 1.05f64), (2, 1.2), (3, 1.0)] {
        for name in ["net", "time", "cpu"] {
            let effect = &estimate(&report, arm, name)["effect"];
            let (low, high) = (effect["low"].as_f64().expect("low"), effect["high"].as_f64().expect("high"));
            assert!(low <= truth.ln() && truth.ln() <= high, "arm {arm} {name}: {effect} does not hold {}", truth.ln());
            assert!(high - low < 0.04, "arm {arm} {name}: {effect} says little");
        }
        assert_eq!(report["cells"][0]["arms"][arm]["proof"]["proof"], "proven", "arm {arm}");
    }
    assert_eq!(estimate(&report, 3, "net")["verdict"], "NONE_FOUND");
    assert_eq!(estimate(&report, 1, "net")["verdict"], "COSTS");
}

#[test]
fn known_costs_are_recovered_in_microseconds_too() {
    let bench = Bench::new("micros");
    bench.file("e.toml", &known_costs("noise = 0\ndrift = 0", ARMS, "60 s"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    // An operation takes 20 µs: 5 % of them, 20 % of them, nothing.
    for (arm, truth) in [(1, 1.0), (2, 4.0), (3, 0.0)] {
        for name in ["net", "time", "cpu", "latency_p50_READ"] {
            let difference = &estimate(&report, arm, name)["difference"];
            let found = difference["estimate"].as_f64().expect("a difference");
            let tolerance = if name.starts_with("latency") { 0.15 } else { 0.01 };
            assert!((found - truth).abs() < tolerance, "arm {arm} {name}: {difference} is not {truth}");
        }
    }
    let told = bench.whole_report();
    // Invented times are whole nanoseconds.
    assert!(told.contains("+20.0 % [20.0, 20.0]") && told.contains("costs 20.0 % +4.00 µs [4.00, 4.00]"), "{told}");

    let (bench, _) = measured("micros", &known_costs("", ARMS, "60 s"));
    let report = bench.report();
    for (arm, share) in [(1, 0.05), (2, 0.2), (3, 0.0)] {
        let net = estimate(&report, arm, "net");
        let truth = share * net["levels"][0].as_f64().expect("the plain level");
        let (low, high) = (net["difference"]["low"].as_f64(), net["difference"]["high"].as_f64());
        let (low, high) = (low.expect("low"), high.expect("high"));
        assert!(low <= truth && truth <= high && high - low < 0.8, "arm {arm}: {} and {truth}", net["difference"]);
    }
    let csv = bench.kept("report.csv");
    assert!(csv.lines().next().is_some_and(|head| head.contains(",difference,difference_low,difference_high")));
}

/// Load of all frames of the only cell, s, and their number.
fn load_s(bench: &Bench, arms: f64) -> (f64, usize) {
    let slots = bench.kept("slots.csv");
    let mut rows = slots.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a head");
    let place = |name: &str| head.iter().position(|column| *column == name).expect("a column");
    let (frame, block) = (place("frame"), place("block"));
    let mut blocks = std::collections::BTreeMap::<u64, u64>::new();
    for row in rows {
        let number = |place: usize| row[place].parse::<u64>().expect("a number");
        let most = blocks.entry(number(frame)).or_default();
        *most = (*most).max(number(block) + 1);
    }
    let frames = bench.kept_lines("frames.jsonl");
    let load = |frame: &Value| {
        let blocks = blocks[&frame["frame"].as_u64().expect("a number")] as f64;
        frame["slot_ns"].as_f64().expect("a length") * blocks * arms / 1e9
    };
    (frames.iter().map(load).sum(), frames.len())
}

#[test]
fn slots_that_grow_keep_the_budget() {
    // Operations of 8 ms: a slot must grow to 640 ms to hold enough of them, and the frame grows with it.
    for (budget_s, fewest) in [(60.0, 15), (90.0, 15), (240.0, 20)] {
        let bench = Bench::new("grown");
        let text = known_costs("service_us = 8000", ARMS, &format!("{budget_s} s")).replace("0.2%", "0.01%");
        bench.file("e.toml", &text);
        let output = bench.tithe(&["run", "e.toml", "--quiet"]);
        assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
        let report = bench.report();
        assert!(report["cells"][0]["slot_ms"].as_f64().is_some_and(|slot| slot >= 320.0), "{}", report["cells"][0]);
        let (load_s, frames) = load_s(&bench, 4.0);
        assert!(load_s <= 1.1 * budget_s, "{load_s} s of load for a budget of {budget_s} s");
        assert!(load_s >= 0.8 * budget_s, "{load_s} s of load for a budget of {budget_s} s");
        assert!(frames >= fewest, "{frames} frames of {load_s} s");
        assert_eq!(estimate(&report, 2, "net")["verdict"], "COSTS");
    }
}

#[test]
fn too_much_noise_is_not_called_the_same() {
    let bench = Bench::new("calibrate");
    bench.file(
        "e.toml",
        &known_costs(FEW_OPERATIONS, ARMS, "60 s").replace("precision", "margin = \"0.01%\"\nprecision"),
    );
    let output = bench.tithe(&["calibrate", "e.toml", "--seconds", "30", "--quiet"]);
    let told = out(&output);
    assert!(told.contains("Too noisy to tell"), "{told}");
    assert!(!told.contains("finds no difference"), "{told}");
    assert_eq!(status(&output), 5, "{told}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = known_costs(FEW_OPERATIONS, ARMS, "30 s");
    let ((one, _), two) = (measured("seed", &text), Bench::new("seed"));
    two.file("e.toml", &text);
    two.tithe(&["run", "e.toml", "--quiet"]);
    let slots = one.kept("slots.csv");
    assert_eq!(slots, two.kept("slots.csv"));
    assert!(slots.lines().count() > 100);
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_from_the_intended_start() {
    const RATE: f64 = 500.0;
    let bench = Bench::new("open");
    // A tenth of the time is busy, so some operations must wait for others.
    let load = format!("[load]\nclients = 1\nrate = {RATE}\narrivals = \"poisson\"\n[measure]");
    bench.file("e.toml", &known_costs("service_us = 200", ARMS, "150 s").replace("[measure]", &load));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    estimate(&report, 1, "intended_p50_READ");
    let frames = bench.kept_lines("frames.jsonl");
    // Operations are intended in four fifths of a slot, for all arms alike.
    let offered_s = 0.8 * load_s(&bench, 1.0).0;
    let intended = |arm: usize| {
        let count = |frame: &Value, name: &str| frame["arms"][arm][name].as_u64().expect("a count");
        frames.iter().map(|frame| count(frame, "operations") + count(frame, "unfinished")).sum::<u64>()
    };
    let of_rate = intended(0) as f64 / offered_s / RATE;
    assert!((0.9..1.1).contains(&of_rate), "{of_rate} of the rate");
    for arm in 0..4 {
        assert_eq!(intended(arm), intended(0), "arm {arm}");
        let [begun, due] = ["latency", "intended"].map(|from| {
            let mut all = Histogram::default();
            for frame in &frames {
                let of_frame: Histogram =
                    serde_json::from_value(frame["arms"][arm][from]["READ"].clone()).expect("a histogram");
                all.merge(&of_frame);
            }
            all
        });
        assert_eq!(begun.total(), due.total(), "arm {arm}");
        for share in [0.1, 0.5, 0.9, 0.99] {
            assert!(due.quantile(share) >= begun.quantile(share), "arm {arm}: quantile {share}");
        }
        assert!(due.quantile(0.99) > begun.quantile(0.99), "arm {arm}: nothing had to wait");
    }
}

#[test]
fn a_sweep_finds_saturation_and_measures_below_it() {
    let bench = Bench::new("sweep");
    let text = known_costs(FEW_OPERATIONS, &sealed(0.1), "240 s")
        .replace("[measure]", "[load]\nclients = [1, 2, 4]\n[measure]");
    bench.file("e.toml", &text);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    let cells = report["cells"].as_array().expect("cells");
    let names: Vec<&str> = cells.iter().filter_map(|cell| cell["id"].as_str()).collect();
    assert_eq!(names, ["a.clients-1", "a.clients-2", "a.clients-4", "a.70-of-saturation"]);
    let rate = cells[3]["notes"].as_array().expect("notes").iter().find(|note| note[0] == "rate").expect("a rate");
    let rate: f64 = rate[1].as_str().and_then(|text| text.trim_end_matches("/s").parse().ok()).expect("a number");
    let sweep = &report["sweeps"][0]["arms"];
    let most = |arm: usize| sweep[arm]["most"].as_f64().expect("a rate");
    // The sealed arm is slower, and the rate is 70 % of its highest throughput.
    assert!(most(1) < most(0));
    assert!((rate / most(1) - 0.7).abs() < 0.05, "{rate} of {}", most(1));
    assert!(sweep[1]["costs"].as_array().is_some_and(|costs| costs.len() >= 2), "{sweep}");
    assert!(bench.whole_report().contains("saturated at"));
}

#[test]
fn the_same_twice_is_found_to_be_the_same() {
    let bench = Bench::new("calibrate");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, ARMS, "60 s"));
    let output = bench.tithe(&["calibrate", "e.toml", "--seconds", "30", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    assert!(out(&output).contains("finds no difference where there is none"), "{}", out(&output));
}

#[test]
fn an_aa_arm_joins_and_an_answer_can_be_waited_for() {
    let bench = Bench::new("a-a");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, &sealed(0.1), "60 s"));
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--aa-arm", "--until-decided"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    assert_eq!(report["cells"][0]["ending"], "decided");
    assert_eq!(report["cells"][0]["arms"][2]["name"], "A/A");
    assert_eq!(report["cells"][0]["arms"][2]["proof"]["proof"], "baseline");
    assert_eq!(estimate(&report, 1, "net")["verdict"], "COSTS");
}

#[test]
fn the_aa_arm_is_asked_for_or_refused_where_servers_are_not_launched() {
    // With four arms, a simulated database gets no A/A arm unless it is asked for.
    let arms = |text: &str| {
        let bench = Bench::new("a-a-asked");
        bench.file("e.toml", text);
        let told = out(&bench.tithe(&["plan", "e.toml"]));
        told.lines().any(|line| line.contains("A/A") && line.contains("its true cost is zero"))
    };
    let text = known_costs(FEW_OPERATIONS, ARMS, "60 s");
    assert!(!arms(&text));
    assert!(arms(&text.replace("[measure]", "[measure]\naa_arm = true")));
    assert!(!arms(&text.replace("[measure]", "[measure]\naa_arm = false")));
    let told = out(&Bench::new("a-a-told").tithe(&["ls"]));
    assert!(words(&told).contains("The arm \"A/A\" is the plain arm again"), "{told}");
}

#[test]
fn a_true_saving_is_found_and_the_plain_arm_again_stands_beside_it() {
    let bench = Bench::new("a-a-saves");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, &arm("faster", "placebo", "cost = -0.1"), "60 s"));
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--aa-arm"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    assert_eq!(estimate(&report, 1, "net")["verdict"], "GAINS");
    assert_eq!(report["cells"][0]["arms"][2]["aa"], true);
    let told = bench.whole_report();
    assert!(told.contains("A/A plain again") && told.contains("A/A is the plain arm again"), "{told}");
    let csv = bench.kept("report.csv");
    assert!(csv.lines().any(|line| line.contains(",A/A,,A/A,net,")), "{csv}");
}

#[test]
fn every_design_recovers_a_known_cost_where_nothing_drifts() {
    for design in ["duet", "slices", "sequential"] {
        let bench = Bench::new("design");
        bench.file("e.toml", &known_costs(&format!("drift = 0\n{FEW_OPERATIONS}"), ARMS, "150 s"));
        let output = bench.tithe(&["run", "e.toml", "--quiet", "--design", design]);
        assert_eq!(status(&output), 0, "{design}: {}{}", out(&output), err(&output));
        let report = bench.report();
        assert!(report["cells"][0]["mode"].as_str().is_some_and(|mode| mode.contains(design)), "{design}");
        let effect = &estimate(&report, 2, "cpu")["effect"];
        let found = effect["estimate"].as_f64().expect("an estimate");
        assert!((found - 1.2_f64.ln()).abs() < 0.01, "{design}: {effect}");
    }
}

/// In every design, each arm has operations before it is checked.
#[test]
fn every_design_is_verified() {
    for design in ["interleaved", "duet", "slices", "sequential"] {
        let bench = Bench::new("verified");
        let asked = format!("design = \"{design}\"\nprecision");
        bench.file("e.toml", &known_costs(FEW_OPERATIONS, ARMS, "30 s").replace("precision", &asked));
        let output = bench.tithe(&["verify", "e.toml"]);
        assert_eq!(status(&output), 0, "{design}: {}{}", out(&output), err(&output));
        assert!(out(&output).contains("every claim holds and every answer was right"), "{design}: {}", out(&output));
    }
}

/// An experiment on servers that compile code at run time, with three starts. `settings` set how slowly, `measure`
/// configures the warm-up.
fn compiling(settings: &str, measure: &str) -> String {
    let settings = format!("{FEW_OPERATIONS}\ndrift = 0\n{settings}");
    known_costs(&settings, &sealed(0.05), "30 s")
        .replace("\"simulated\"", "\"compiling\"")
        .replace("[measure]", &format!("[measure]\nepochs = 3\n{measure}"))
}

/// Operations of the baseline in the last frame of a start divided by those in the first; the largest of all starts.
fn gained_over_a_start(bench: &Bench) -> f64 {
    let frames = bench.kept_lines("frames.jsonl");
    let operations = |frame: &Value| frame["arms"][0]["operations"].as_f64().expect("operations");
    let starts = frames.chunk_by(|one, other| one["start"] == other["start"]);
    let gains = starts.map(|frames| operations(&frames[frames.len() - 1]) / operations(&frames[0]));
    gains.fold(0.0, f64::max)
}

#[test]
fn servers_that_compile_are_measured_when_they_are_steady() {
    let run = |text: &str| {
        let bench = Bench::new("compiling");
        bench.file("e.toml", text);
        let output = bench.tithe(&["run", "e.toml", "--quiet"]);
        assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
        let (report, told) = (bench.report(), bench.whole_report());
        (gained_over_a_start(&bench), report, told)
    };
    let slow = "slow_start = 8\nslow_operations = 10000";
    let (gained, report, told) = run(&compiling(slow, ""));
    assert!(gained < 1.1, "{gained}");
    assert!(told.contains("warm-up steady after ") && told.contains("(median of 3 starts; "), "{told}");
    assert!(!told.contains("were not steady"), "{told}");
    let effect = &estimate(&report, 1, "cpu")["effect"];
    let (low, high) = (effect["low"].as_f64().expect("low"), effect["high"].as_f64().expect("high"));
    assert!(low <= 1.05_f64.ln() && 1.05_f64.ln() <= high, "{effect}");

    // The control: without a warm-up the same servers become much faster during the measurement.
    let (gained, _, told) = run(&compiling(slow, "warmup = \"0 s\""));
    assert!(gained > 1.5, "{gained}");
    assert!(told.contains("warm-up none was asked for"), "{told}");

    // At a fixed rate the load does not grow with the compilation: half of the rest remains after every 20 s.
    let text = compiling("slow_start = 100\nslow_operations = 1000", "");
    let text = text.replace("[measure]", "[load]\nrate = 50\n[measure]").replace("\"30 s\"", "\"300 s\"");
    let (_, _, told) = run(&text);
    assert!(told.contains("not steady within 2 min in 3 of 3 starts"), "{told}");
    assert!(told.contains("the servers were not steady in 3 of 3 starts: operations per processor second"), "{told}");
}
