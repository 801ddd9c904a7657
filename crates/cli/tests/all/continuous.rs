//! Continuous integration: the action for GitHub and the template for GitLab. They are run as in a job, in a repository
//! whose build becomes slower.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::support::{Bench, FEW_OPERATIONS, err, known_costs, out, sealed, status};

/// The checkout of Tithe in a job.
fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

fn text(path: &str) -> String {
    fs::read_to_string(home().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The experiment of a repository whose build makes an operation more expensive by `cost`.
fn experiment(cost: f64, seed: u32) -> String {
    known_costs(FEW_OPERATIONS, &sealed(cost), "15 s").replace("precision", &format!("seed = {seed}\nprecision"))
}

/// The lines below `key` of a YAML file with a deeper indentation, without that indentation; a list's hyphens and the
/// quotes around a value are removed.
fn below(yaml: &str, key: &str) -> Vec<(usize, String)> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut lines = yaml.lines().skip_while(|line| line.trim() != format!("{key}:"));
    let own = lines.next().map(depth).unwrap_or_else(|| panic!("no {key}"));
    let bare = |line: &str| {
        let value = line.trim().trim_start_matches("- ");
        value.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')).unwrap_or(value).to_owned()
    };
    lines.take_while(|line| depth(line) > own).map(|line| (depth(line) - own, bare(line))).collect()
}

/// `name: value` lines directly below `key`.
fn values(yaml: &str, key: &str) -> BTreeMap<String, String> {
    let lines = below(yaml, key);
    let pairs = lines.iter().filter(|(depth, _)| *depth == 2).filter_map(|(_, line)| line.split_once(':'));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().trim_matches('"').to_owned())).collect()
}

/// One step of a job in the folder of `bench`.
fn step(bench: &Bench, line: &str, variables: &BTreeMap<String, String>) -> Output {
    Command::new("bash")
        .args(["-c", line])
        .current_dir(bench.path(""))
        .env("TITHE_SIMULATED", "1")
        .env("NO_COLOR", "1")
        .env("TITHE_PROGRAM", env!("CARGO_BIN_EXE_tithe"))
        .envs(variables)
        .output()
        .expect("bash starts")
}

/// Runs the action with these inputs like GitHub's runner; the job's further outputs are in the files `summary` and
/// `outputs`.
fn act(bench: &Bench, inputs: &[(&str, &str)]) -> Output {
    let action = text("ci/github/action.yml");
    let known = values(&action, "inputs");
    let of_input = |name: &str| {
        assert!(known.contains_key(name), "the action has no input {name}");
        let given = inputs.iter().find(|(input, _)| *input == name).map(|(_, value)| (*value).to_owned());
        given.unwrap_or_else(|| values(&action, name).get("default").cloned().unwrap_or_default())
    };
    let mut variables: BTreeMap<String, String> = values(&action, "env")
        .into_iter()
        .map(|(name, value)| {
            let input = value.trim_start_matches("${{ inputs.").trim_end_matches(" }}").to_owned();
            (name, of_input(&input))
        })
        .collect();
    variables.insert("TITHE_PROGRAM".to_owned(), env!("CARGO_BIN_EXE_tithe").to_owned());
    variables.insert("GITHUB_ACTION_PATH".to_owned(), home().join("ci/github").display().to_string());
    for (name, file) in [("GITHUB_STEP_SUMMARY", "summary"), ("GITHUB_OUTPUT", "outputs")] {
        variables.insert(name.to_owned(), bench.file(file, "").display().to_string());
    }
    let run = action.lines().find_map(|line| line.trim().strip_prefix("run: ")).expect("a step that runs");
    step(bench, run.trim_matches('\''), &variables)
}

fn read(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_job_fails_for_a_build_that_got_slower_and_for_no_other() {
    let bench = Bench::new("github");
    bench.file("experiment.toml", &experiment(0.05, 1));
    let first = act(&bench, &[("experiment", "experiment.toml"), ("output", "main")]);
    assert_eq!(status(&first), 0, "{}{}", out(&first), err(&first));
    assert!(read(&bench, "summary").contains("sealed"), "{}", read(&bench, "summary"));
    assert!(!read(&bench, "outputs").contains("junit="), "nothing was compared");

    let compared = [
        ("experiment", "experiment.toml"),
        ("before", "main/report.json"),
        ("threshold", "1%"),
        ("false-alarms-per-year", "1"),
        ("comparisons-per-year", "365"),
    ];
    for seed in 2..22 {
        bench.file("experiment.toml", &experiment(0.05, seed));
        let same = act(&bench, &compared);
        assert_eq!(status(&same), 0, "seed {seed}: {}{}", out(&same), err(&same));
    }
    assert!(read(&bench, "tithe-output/junit.xml").contains("failures=\"0\""));

    bench.file("experiment.toml", &experiment(0.1, 22));
    let slower = act(&bench, &compared);
    assert_eq!(status(&slower), 6, "{}{}", out(&slower), err(&slower));
    assert!(err(&slower).contains("grew by +"), "{}", err(&slower));
    assert!(read(&bench, "summary").contains("grew by +"), "{}", read(&bench, "summary"));
    assert!(read(&bench, "summary").contains("At most 1 false alarms a year in 365 comparisons of one cost"));
    assert!(read(&bench, "tithe-output/junit.xml").contains("<failure message"));
    let outputs = read(&bench, "outputs");
    for line in ["report=tithe-output/report.json", "junit=tithe-output/junit.xml", "status=6"] {
        assert!(outputs.lines().any(|it| it == line), "no {line} in {outputs}");
    }
    for line in outputs.lines().filter_map(|line| line.split_once('=')).filter(|(name, _)| *name != "status") {
        assert!(bench.path(line.1).is_file(), "{line:?}");
    }
}

#[test]
fn a_job_whose_tests_cannot_be_written_fails_and_leaves_none() {
    let bench = Bench::new("no-junit");
    bench.file("experiment.toml", &experiment(0.05, 1));
    let first = act(&bench, &[("experiment", "experiment.toml"), ("output", "main")]);
    assert_eq!(status(&first), 0, "{}{}", out(&first), err(&first));
    let program = bench.program(
        "program",
        concat!(
            "#!/bin/sh\ncase \"$*\" in *'--format junit'*) echo 'no space is left' >&2; exit 1;; esac\nexec '",
            env!("CARGO_BIN_EXE_tithe"),
            "' \"$@\"\n"
        ),
    );
    let variables = [
        ("TITHE_EXPERIMENT", "experiment.toml".to_owned()),
        ("TITHE_BEFORE", "main/report.json".to_owned()),
        ("TITHE_PROGRAM", program.display().to_string()),
        ("GITHUB_OUTPUT", bench.path("outputs").display().to_string()),
    ];
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let failed = step(&bench, &format!("'{}'", home().join("ci/measure").display()), &variables);
    assert_eq!(status(&failed), 1, "{}{}", out(&failed), err(&failed));
    for words in ["no junit.xml was written (status 1)", "no space is left"] {
        assert!(err(&failed).contains(words), "no {words:?} in {}", err(&failed));
    }
    assert!(!bench.path("tithe-output/junit.xml").exists(), "what is empty would be read as no failure");
    assert!(read(&bench, "outputs").contains("status=1") && !read(&bench, "outputs").contains("junit="));
    assert!(!read(&bench, "tithe-output/summary.md").is_empty(), "the summary stands all the same");
}

#[test]
fn a_job_that_measures_nothing_or_proves_nothing_fails_by_that() {
    let bench = Bench::new("github-fails");
    let nothing = act(&bench, &[("experiment", "nowhere.toml")]);
    assert_eq!(status(&nothing), 2, "{}", err(&nothing));
    assert!(err(&nothing).contains("nothing was measured (status 2)"), "{}", err(&nothing));
    // A run whose servers do not start has records, and no page.
    bench.file("experiment.toml", &known_costs("refuses_to_start = true", &sealed(0.05), "60 s"));
    let refused = act(&bench, &[("experiment", "experiment.toml")]);
    assert_eq!(status(&refused), 4, "{}", err(&refused));
    assert!(err(&refused).contains("ci/measure: nothing was measured (status 4)"), "{}", err(&refused));
    assert!(!bench.path("tithe-output/report.json").exists(), "a later job would be compared with it");
    let lost = experiment(0.05, 1).replace("\"seal\", cost = 0.05", "\"audit\", lose = 0.5");
    bench.file("experiment.toml", &lost);
    let disproven = act(&bench, &[("experiment", "experiment.toml"), ("options", "--until-decided\n")]);
    assert_eq!(status(&disproven), 5, "{}{}", out(&disproven), err(&disproven));
    assert!(read(&bench, "outputs").contains("status=5"));
}

#[test]
fn a_job_is_compared_with_its_own_output_of_the_job_before() {
    let bench = Bench::new("own-output");
    for (seed, is_compared) in [(1, false), (2, true)] {
        bench.file("experiment.toml", &experiment(0.05, seed));
        let inputs = [("experiment", "experiment.toml"), ("before", "tithe-output/report.json"), ("threshold", "1%")];
        let job = act(&bench, &inputs);
        assert_eq!(status(&job), 0, "{}{}", out(&job), err(&job));
        assert_eq!(read(&bench, "outputs").contains("junit="), is_compared);
    }
}

#[test]
fn the_template_for_gitlab_keeps_the_default_branch_to_compare_with() {
    let template = text("ci/gitlab/tithe.yml");
    let bench = Bench::new("gitlab");
    let job = |branch: &str, cost: f64, seed: u32| {
        bench.file("experiment.toml", &experiment(cost, seed));
        let mut variables = values(&template, "variables");
        variables.insert("TITHE_HOME".to_owned(), home().display().to_string());
        variables.insert("CI_COMMIT_BRANCH".to_owned(), branch.to_owned());
        variables.insert("CI_DEFAULT_BRANCH".to_owned(), "main".to_owned());
        let run = |key: &str| {
            let lines: Vec<String> = below(&template, key).into_iter().map(|(_, line)| line).collect();
            step(&bench, &lines.join("\n"), &variables)
        };
        let [output, after] = ["script", "after_script"].map(run);
        assert_eq!(status(&after), 0, "{}", err(&after));
        output
    };
    let first = job("main", 0.05, 1);
    assert_eq!(status(&first), 0, "{}{}", out(&first), err(&first));
    let kept = read(&bench, "tithe-before/report.json");
    let slower = job("feature", 0.12, 2);
    assert_eq!(status(&slower), 6, "{}{}", out(&slower), err(&slower));
    assert_eq!(kept, read(&bench, "tithe-before/report.json"), "only the default branch is compared with");
    // The template's artifacts are the files that were written.
    let junit = values(&template, "reports")["junit"].clone();
    assert!(bench.path(&junit).is_file(), "{junit}");
}

/// Every input of a job is read by the script, and the reverse.
#[test]
fn every_variable_of_the_script_can_be_said() {
    let script = text("ci/measure");
    let documented = |name: &str| script.lines().any(|line| line.starts_with(&format!("#   {name} ")));
    let action = values(&text("ci/github/action.yml"), "env");
    for name in action.keys() {
        assert!(documented(name), "ci/measure does not say what {name} is");
    }
    for line in script.lines().filter_map(|line| line.strip_prefix("#   TITHE_")) {
        let name = format!("TITHE_{}", line.split_whitespace().next().unwrap_or_default());
        assert!(action.contains_key(&name), "the action has no input for {name}");
        assert!(script.matches(&name).count() > 1, "ci/measure does not read {name}");
    }
    let template = values(&text("ci/gitlab/tithe.yml"), "variables");
    for name in template.keys() {
        assert!(documented(name), "ci/measure does not say what {name} is");
    }
}
