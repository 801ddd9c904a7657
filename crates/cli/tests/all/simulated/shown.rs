//! The output of the terminal, the manual and the command line.

use super::*;

#[test]
fn the_last_line_of_a_cell_says_what_the_table_says() {
    let bench = Bench::new("lines");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, ARMS, "30 s").replace("0.2%", "0.01%"));
    let output = bench.tithe(&["run", "e.toml"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    // Format: `  sealed +5.1% [4.2, 6.0], audited +20.1% [19.0, 21.2], …` below the line on the evidence.
    let report = bench.tithe(&["report", &bench.run_folder().display().to_string()]);
    let (told, shown) = (words(&err(&output)), words(&out(&report)));
    let (_, last) = told.rsplit_once("the budget was used up ").expect("the cell's end");
    for arm in ["sealed", "audited"] {
        let figure = last.split_once(arm).and_then(|(_, rest)| rest.split_once(']')).expect("a figure").0;
        assert!(shown.contains(&format!("{arm} proven{figure}]")), "{arm}{figure}] is not in {shown}");
    }
}

#[test]
fn the_last_lines_are_the_answer_and_where_the_rest_is() {
    let (bench, ran) = measured("last", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    assert_eq!(status(&ran), 0, "{}", err(&ran));
    let run = bench.run_folder().display().to_string();
    let again = bench.tithe(&["report", &run, "--format", "short"]);
    for text in [out(&ran), out(&again)] {
        let (before, last) = text.rsplit_once("What it costs").expect("the last lines");
        // Tables are left to `tithe report`, and claims are not listed if all of them hold.
        assert!(before.is_empty() && !last.contains("Evidence"), "{text}");
        let place = |what: &str| last.find(what).unwrap_or_else(|| panic!("no {what:?} in {last}"));
        let places = ["✓ audited", "✓ sealed", "✓ evidence: ", "the rest: "].map(place);
        assert!(places.is_sorted(), "the most expensive arm is not the first: {last}");
        let rest = last.split_once("the rest: ").map_or("", |it| it.1);
        assert!(rest.contains("tithe report ") && rest.lines().count() <= 2, "{last}");
    }
}

#[test]
fn a_budget_on_the_command_line_is_held_to_the_files_limits() {
    let bench = Bench::new("budget");
    bench.file("e.toml", &known_costs("", ARMS, "60 s"));
    let told = |arguments: &[&str]| {
        let output = bench.tithe(arguments);
        (status(&output), words(&err(&output)))
    };
    for budget in ["9999 h", "10", "0.5 s", "much"] {
        let (status, told) = told(&["plan", "e.toml", "--budget", budget]);
        assert_eq!(status, 2, "{budget}: {told}");
        let wanted =
            format!("--budget must be a time from 1 s to 720 h with its unit (ms, s, min, h), this is `{budget}`");
        assert!(told.contains(&wanted), "{budget}: {told}");
    }
    assert_eq!(told(&["plan", "e.toml", "--budget", "720 h"]).0, 0);
    // The built-in experiment can be made shorter or longer, too; a resumed run cannot.
    let (status, told_of) = told(&["plan", "--budget", "20 min"]);
    assert_eq!(status, 0, "{told_of}");
    for given in
        [&["--budget", "20 min"][..], &["--design", "duet"], &["--until-decided"], &["--aa-arm"], &["--plain", "x"]]
    {
        let (status, words) = told(&[&["run", "--resume", "somewhere"][..], given].concat());
        assert!(status == 2 && words.contains("cannot be used with"), "{given:?}: {words}");
    }
    let (status, words) = told(&["calibrate", "--budget", "20 min"]);
    assert!(status == 2 && words.contains("--seconds"), "{words}");
}

#[test]
fn an_experiment_may_come_on_standard_input() {
    use std::io::Write;

    let bench = Bench::new("input");
    let mut child = bench
        .command(&["plan", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tithe starts");
    let text = known_costs("", ARMS, "60 s").replace("[[workload]]", "[[workload]]\nrate = -1");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(status(&output), 2, "{}", out(&output));
    assert!(err(&output).contains("--> standard input:11"), "{}", err(&output));
    let output =
        bench.command(&["plan", "-", "--protect", "seal"]).stdin(Stdio::null()).output().expect("tithe starts");
    assert_eq!(status(&output), 2, "{}", out(&output));
    assert!(err(&output).contains("--protect cannot change an experiment"), "{}", err(&output));
}

#[test]
fn a_folder_of_programs_must_be_there() {
    let output = Bench::new("nowhere").tithe(&["doctor", "--pg-bin", "/nowhere"]);
    assert_eq!(status(&output), 2);
    assert!(err(&output).contains("there is no such folder"), "{}", err(&output));
}

#[test]
fn the_manual_and_completions_name_every_command() {
    let bench = Bench::new("manual");
    for arguments in [&["manual"][..], &["manual", "bash"], &["manual", "zsh"], &["manual", "fish"]] {
        let output = bench.tithe(arguments);
        assert_eq!(status(&output), 0, "{}", err(&output));
        for command in ["run", "plan", "verify", "init", "report", "compare", "history", "doctor"] {
            assert!(out(&output).contains(command), "{arguments:?} does not name {command}");
        }
    }
}

/// On a terminal of 80 columns some lines are redrawn; they stay within its size.
#[test]
fn a_terminal_shows_the_state_of_the_run() {
    let bench = Bench::new("terminal");
    let text = known_costs("", ARMS, "80 s")
        .replace("[[arm]]\nname = \"plain\"", "[[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"");
    bench.file("e.toml", &text);
    // script(1) of every Linux gives the program a terminal.
    let command = format!("stty cols 80 rows 24; exec '{}' run e.toml", env!("CARGO_BIN_EXE_tithe"));
    let output = std::process::Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(bench.path(""))
        .env("TITHE_SIMULATED", "1")
        .env("TERM", "xterm")
        .output()
        .expect("script(1) starts");
    assert_eq!(status(&output), 0, "{}", out(&output));
    let shown = without_escapes(&out(&output));
    let wide = shown.split(['\n', '\r']).find(|line| line.chars().count() > 80);
    assert_eq!(wide, None);
    for wanted in [
        "[1/2] a",
        "frame 1/",
        "━●━",
        "✓ evidence so far: ",
        "client busy ",
        "/s  p99 ",
        " left",
        "to come: c",
        "[2/2] c",
    ] {
        assert!(shown.contains(wanted), "no {wanted:?} in {shown}");
    }
    // The redrawn lines are removed in the end: only the report remains.
    let report = shown.rfind("What it costs").expect("the answer");
    assert!(!shown[report..].contains(" left"), "{}", &shown[report..]);
}

/// `text` without escape sequences for the cursor and colours.
fn without_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(|end: char| end.is_ascii_alphabetic()).map_or("", |it| it.1))
}

#[test]
fn a_terminal_that_takes_nothing_ends_no_run() {
    let bench = Bench::new("deaf");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, ARMS, "30 s"));
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = bench.command(&["run", "e.toml"]).stderr(full).output().expect("tithe starts");
    assert_eq!(status(&output), 0, "{}", out(&output));
}
