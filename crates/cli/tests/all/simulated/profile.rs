//! Profiled frames are between the measured ones, count in no other figure, and add up.

use super::*;

#[test]
fn a_profile_changes_no_figure_and_its_parts_are_the_cost() {
    let text = known_costs("noise = 0\ndrift = 0", ARMS, "60 s");
    let bench = |name: &str, arguments: &[&str]| {
        let bench = Bench::new(name);
        bench.file("e.toml", &text);
        let output = bench.tithe(&[&["run", "e.toml", "--quiet"], arguments].concat());
        assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
        let told = bench.whole_report();
        (bench, told)
    };
    let (plain, told) = bench("unprofiled", &[]);
    assert!(!told.contains("Profile:"), "{told}");
    let (profiled, told) = bench("profiled", &["--profile"]);
    assert!(told.contains("The parts add up to the measured cost in processor time"), "{told}");
    assert_eq!(plain.kept("slots.csv"), profiled.kept("slots.csv"));
    assert_eq!(plain.kept_lines("frames.jsonl").len(), profiled.kept_lines("frames.jsonl").len());

    let measured = profiled.kept_lines("frames.jsonl");
    let last = measured.iter().filter_map(|frame| frame["frame"].as_u64()).max();
    let frames = profiled.kept_lines("profile.jsonl");
    assert_eq!(frames.len(), 40);
    assert!(frames.iter().all(|frame| frame["frame"].as_u64() > last), "numbers go on");
    assert_eq!(frames.iter().filter(|frame| frame["sampled"] == true).count(), 20);

    let profile = profiled.report()["cells"][0]["profile"].take();
    // An operation takes 20 µs: 5 % of them, 20 % of them, nothing.
    for (arm, truth) in [(0, 1.0), (1, 4.0), (2, 0.0)] {
        let arm = &profile["arms"][arm];
        let sum = arm["sum"]["estimate"].as_f64().expect("a sum");
        assert!((sum - truth).abs() < 0.01, "{arm}");
        assert_eq!(arm["adds_up"], true, "{arm}");
        let named = arm["components"].as_array().expect("components");
        assert_eq!(named.is_empty(), truth == 0.0, "{arm}");
    }

    let folded = profiled.tithe(&["report", profiled.run_folder().to_str().expect("a path"), "--format", "folded"]);
    let first = out(&folded).lines().next().map(str::to_owned).unwrap_or_default();
    assert!(first.contains(";client;client (simulated) "), "{first}");
    let none = plain.tithe(&["report", plain.run_folder().to_str().expect("a path"), "--format", "folded"]);
    assert!(err(&none).contains("this run has no profile: run it again with --profile"), "{}", err(&none));
}
