//! Uses of Tithe with other tools: installing its package, reading its folders in a notebook, planning the experiments
//! on compliance.

#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tithe_databases::{mariadb::MariaDb, postgres::Postgres, redis::Redis};
use tithe_machine::launch::Search;
use tithe_plugin::database::Database as _;

use crate::support::{
    Bench, FEW_OPERATIONS, arm, err, known_costs, out, sealed,
    server::{found, installed},
    status,
};

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Does `program` have what the test needs? If not, a notice is printed, and with `CI` set the test fails.
fn is_offered(program: &Path, arguments: &[&str]) -> bool {
    let works = Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success());
    if !works {
        let missing = format!("{} {} does not work here", program.display(), arguments.join(" "));
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        eprintln!("SKIPPED: {missing}; tools/install-test-needs");
    }
    works
}

/// The Python of the tests' own folder, if it is installed; otherwise that of the machine.
fn python() -> PathBuf {
    let own = home().join("target/test-needs/notebook/bin/python");
    if own.exists() { own } else { "python3".into() }
}

fn works(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    output
}

#[test]
fn the_package_has_the_program_its_manual_and_completions() {
    if !is_offered("dpkg-deb".as_ref(), &["--version"]) {
        return;
    }
    let bench = Bench::new("package");
    // Compressed content is not checked, and takes long.
    works(
        Command::new(home().join("tools/package-deb"))
            .args([env!("CARGO_BIN_EXE_tithe"), "made"])
            .current_dir(bench.path(""))
            .env("DPKG_DEB_COMPRESSOR_TYPE", "none"),
    );
    let package = fs::read_dir(bench.path("made")).expect("a folder").flatten().next().expect("a package").path();
    let told = out(&works(Command::new("dpkg-deb").arg("--info").arg(&package)));
    for field in
        ["Package: tithe", concat!("Version: ", env!("CARGO_PKG_VERSION")), "Depends: libc6 (>= 2.", ", libgcc-s1\n"]
    {
        assert!(told.contains(field), "no {field} in {told}");
    }
    let root = bench.path("root");
    works(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root));
    let version = works(Command::new(root.join("usr/bin/tithe")).arg("--version"));
    assert_eq!(out(&version).trim(), concat!("tithe ", env!("CARGO_PKG_VERSION")));
    let manual = works(Command::new("gzip").arg("-dc").arg(root.join("usr/share/man/man1/tithe.1.gz")));
    assert!(out(&manual).contains(".TH tithe 1"), "{}", out(&manual));
    for completions in [
        "bash-completion/completions/tithe",
        "zsh/vendor-completions/_tithe",
        "fish/vendor_completions.d/tithe.fish",
        "doc/tithe/copyright",
    ] {
        assert!(
            fs::metadata(root.join("usr/share").join(completions)).is_ok_and(|it| it.len() > 1000),
            "{completions}"
        );
    }
}

/// The files for Kubernetes satisfy its own schemas: no unknown field, none missing.
#[test]
fn manifests_follow_the_schemas_of_kubernetes() {
    let validate = home().join("target/test-needs/kubernetes/bin/kubernetes-validate");
    if !is_offered(&validate, &["--version"]) {
        return;
    }
    let bench = Bench::new("kubernetes");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, &sealed(0.2), "30 s"));
    let kind = "[[machine]]\nname = \"small\"\nkubernetes = { \"node.kubernetes.io/instance-type\" = \"c7i.large\" }\n";
    bench.file("m.toml", &format!("title = \"x\"\nexperiments = [\"e.toml\"]\nreplicates = 3\n{kind}"));
    let script = bench.tithe(&["matrix", "script", "m.toml", "--for", "kubernetes", "--into", "/shared"]);
    bench.file("jobs.yaml", &out(&script));
    let agents = home().join("docs/agents/kubernetes.yaml");
    let validated = |file: &Path| Command::new(&validate).arg("--strict").arg(file).output().expect("it starts");
    for file in [&bench.path("jobs.yaml"), &agents] {
        let output = validated(file);
        assert!(output.status.success(), "{}: {}{}", file.display(), out(&output), err(&output));
    }
    bench.file("wrong.yaml", &out(&script).replace("completionMode", "completionmode"));
    assert!(!validated(&bench.path("wrong.yaml")).status.success(), "a field that Kubernetes does not know");
}

/// The scripts next to docs/agents.md are valid scripts.
#[test]
fn scripts_that_start_agents_can_be_read_by_a_shell() {
    for name in ["by-hand.sh", "ssh.sh", "slurm.sh"] {
        works(Command::new("bash").arg("-n").arg(home().join("docs/agents").join(name)));
    }
}

/// Without compiling Rust, which takes minutes: a `cargo` of the test's own links a program with the arguments that it
/// gets.
#[test]
fn a_static_program_is_given_and_one_that_asks_for_a_loader_is_refused() {
    if !is_offered("cc".as_ref(), &["--version"]) || !is_offered("readelf".as_ref(), &["--version"]) {
        return;
    }
    let bench = Bench::new("static");
    bench.file("main.c", "int main(void) { return 0; }\n");
    fs::create_dir(bench.path("bin")).expect("a folder");
    let cargo = r#"#!/bin/sh
set -e
echo "$*" >"$CARGO_TARGET_DIR/asked"
while [ "$1" != --target ]; do shift; done
mkdir -p "$CARGO_TARGET_DIR/$2/release"
cc $LINKED "$CARGO_TARGET_DIR/main.c" -o "$CARGO_TARGET_DIR/$2/release/tithe"
"#;
    for (name, text) in [("cargo", cargo), ("rustup", "#!/bin/sh\n"), ("musl-gcc", "#!/bin/sh\n")] {
        bench.program(&format!("bin/{name}"), text);
    }
    let path = format!("{}:{}", bench.path("bin").display(), std::env::var("PATH").expect("a path"));
    let build = |linked: &str| {
        let mut command = Command::new(home().join("tools/build-static"));
        command.args(["--features", "agents"]).env("PATH", &path);
        command.env("CARGO_TARGET_DIR", bench.path("")).env("LINKED", linked).output().expect("it starts")
    };
    let built = build("-static");
    assert_eq!(status(&built), 0, "{}", err(&built));
    let program = out(&built);
    assert!(program.trim().ends_with("-unknown-linux-musl/release/tithe"), "{program}");
    works(&mut Command::new(program.trim()));
    let asked = fs::read_to_string(bench.path("asked")).expect("what was asked");
    assert!(asked.contains("--release --locked") && asked.contains("--features agents"), "{asked}");
    let dynamic = build("");
    assert_eq!(status(&dynamic), 1, "{}", out(&dynamic));
    assert!(err(&dynamic).contains("asks for a loader, so it is not static"), "{}", err(&dynamic));
}

/// The code of docs/notebook.md, on a run.
#[test]
fn the_notebook_reads_a_run_and_draws_it() {
    let python = python();
    if !is_offered(&python, &["-c", "import pandas, matplotlib"]) {
        return;
    }
    let bench = Bench::new("notebook");
    let arms = sealed(0.2) + &arm("lossy", "audit", "lose = 0.5");
    bench.file("e.toml", &known_costs(FEW_OPERATIONS, &arms, "30 s"));
    let ran = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&ran), 5, "{}", err(&ran));
    let page = fs::read_to_string(home().join("docs/notebook.md")).expect("the page");
    let blocks: Vec<&str> = page.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let named = "run = Path(\"tithe-runs/2026-03-03T02-07-09-sqlite\")";
    let code = blocks.concat();
    assert!(blocks.len() > 3 && code.contains(named), "{code}");
    let here = format!("run = Path({:?})", bench.run_folder());
    bench.file("notebook.py", &code.replace(named, &here));
    let drawn = works(Command::new(&python).arg("notebook.py").current_dir(bench.path("")).env("MPLBACKEND", "Agg"));
    let told = out(&drawn);
    assert!(told.contains("sealed") && told.contains("COSTS") && !told.contains("lossy"), "{told}");
    assert!(told.contains("disk-canary") && told.contains("holds"), "{told}");
    for picture in ["costs.png", "frames.png"] {
        assert!(fs::read(bench.path(picture)).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG")), "{picture}");
    }
}

#[test]
fn the_ways_to_satisfy_a_requirement_can_be_planned() {
    let bench = Bench::new("compliance");
    let mut plannable = vec!["sqlite"];
    plannable.extend(installed().map(|_| "postgres"));
    plannable.extend(found(&MariaDb).map(|_| "mariadb"));
    for database in plannable {
        let file = home().join(format!("experiments/compliance/pci-dss-3.5.1.2-{database}.toml"));
        let planned = bench.tithe(&["plan", &file.display().to_string()]);
        assert_eq!(status(&planned), 0, "{database}: {}", err(&planned));
        assert!(out(&planned).contains("columns, one field in ten"), "{}", out(&planned));
    }
}

/// Each version is measured in a cell of its own, with its own programs and data. Features that a version lacks are
/// refused by name before anything is started.
#[test]
fn versions_of_a_server_are_cells_of_one_experiment() {
    let all = Postgres.find_all(&Search::default());
    let is_there =
        |version: &str| all.iter().any(|install| install.version.contains(&format!("(PostgreSQL) {version}.")));
    if let Some(missing) = ["15", "18"].into_iter().find(|version| !is_there(version)) {
        eprintln!("SKIPPED: no PostgreSQL {missing}: tithe get postgres --version {missing}");
        assert!(std::env::var_os("CI").is_none(), "PostgreSQL {missing} is missing");
        return;
    }
    let bench = Bench::new("versions");
    let experiment = |settings: &str, protection: &str| {
        format!(
            "title = \"Versions\"\ndatabase = \"postgres\"\nversions = [\"15\", \"18\"]\nsettings = {{ max_wal_size = \
             \"64MB\", min_wal_size = \"32MB\"{settings} }}\n[data]\nrecords = 500\n[measure]\nbudget = \"12 s\"\ndesign = \
             \"slices\"\nslot = \"200 ms\"\nstarts = 1\nwarmup = \"0 s\"\n[[workload]]\nycsb = \"c\"\n[[arm]]\nname = \
             \"plain\"\n[[arm]]\nname = \"other\"\nprotections = [{{ use = \"{protection}\" }}]\n"
        )
    };
    bench.file("e.toml", &experiment("", "checksums"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = bench.report();
    for (cell, version) in [(0, "15"), (1, "18")] {
        let cell = &report["cells"][cell];
        assert_eq!(cell["version"], format!("version {version}"));
        let facts = |arm: usize| &cell["arms"][arm]["facts"];
        assert!(facts(0)["version"].as_str().is_some_and(|it| it.starts_with(&format!("PostgreSQL {version}."))));
        // The assumed settings of the plain arm.
        assert!(facts(0)["facts"]["data_checksums"].as_str().is_some_and(|it| it.starts_with("off")), "{}", facts(0));
        assert_eq!(facts(1)["facts"]["data_checksums"], "on");
        assert_eq!(cell["arms"][1]["proof"]["proof"], "proven", "{}", cell["arms"][1]["proof"]);
    }
    assert!(out(&output).contains("Between versions"), "{}", out(&output));

    bench.file("gone.toml", &experiment("", "tls").replace("\"18\"", "\"12\""));
    let gone = bench.tithe(&["run", "gone.toml", "--quiet"]);
    assert_eq!(status(&gone), 3, "{}", err(&gone));
    let told = err(&gone);
    assert!(told.contains("PostgreSQL 12 (line 3)") && told.contains("tithe get postgres --version 12"), "{told}");
    bench.file("audit.toml", &experiment("", "pgaudit"));
    let audit = bench.tithe(&["run", "audit.toml", "--quiet"]);
    let told = err(&audit);
    assert_eq!(status(&audit), 3, "{told}");
    assert!(told.contains("the extension pgaudit for PostgreSQL 18, which arm other (line "), "{told}");
    bench.file("setting.toml", &experiment(", io_method = \"sync\"", "tls"));
    let setting = bench.tithe(&["run", "setting.toml", "--quiet"]);
    let told = err(&setting);
    assert_eq!(status(&setting), 2, "{told}");
    assert!(told.contains("(PostgreSQL) 15.") && told.contains("knows no setting `io_method`"), "{told}");
}

/// Two builds of one server in one experiment: the installed one, and a copy of it elsewhere.
#[test]
fn two_builds_of_a_server_are_arms_of_one_experiment() {
    let Some(install) = found(&Redis) else { return };
    let bench = Bench::new("against");
    // A place that the servers' accounts may read.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(elsewhere.path(), everybody).expect("its rights");
    let program = elsewhere.path().join(&install.facts["program"]);
    // By a program: this process must not have it open, as in `write_program`.
    works(Command::new("cp").arg(install.programs.join(&install.facts["program"])).arg(&program));
    let experiment = r#"title = "Passwords"
database = "redis"
[data]
records = 500
[measure]
budget = "10 s"
design = "slices"
slot = "200 ms"
starts = 2
[[workload]]
ycsb = "c"
[[arm]]
name = "plain"
[[arm]]
name = "password"
protections = [{ use = "requirepass" }]
"#;
    bench.file("e.toml", experiment);
    let run = ["run", "e.toml", "--quiet", "--until-decided", "--aa-arm", "--against"];
    let output = bench.tithe(&[&run[..], &[program.display().to_string().as_str()]].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let arms = &bench.kept_json("plan.json")["experiment"]["arms"];
    let names: Vec<&str> = arms.as_array().expect("arms").iter().filter_map(|arm| arm["name"].as_str()).collect();
    assert_eq!(names, ["against", "installed", "A/A"]);
    let folder = elsewhere.path().canonicalize().expect("a path").display().to_string();
    assert_eq!(
        [&arms[0], &arms[1], &arms[2]].map(|arm| arm["programs"].as_str()),
        [Some(&*folder), None, Some(&*folder)]
    );
    let installed = bench.report()["cells"][0]["arms"][1].take();
    assert_eq!(installed["estimates"][0]["primary"], true);
    // A comparison of two builds can be checked against a threshold.
    let compared = bench.tithe(&["compare", &bench.run_folder().display().to_string(), "--threshold", "1000%"]);
    // On a busy machine the plain arm may differ from itself by chance.
    let by_chance = status(&compared) == 4 && err(&compared).contains("its set-up was not symmetric");
    assert!(status(&compared) == 0 || by_chance, "{}", err(&compared));
    let told = out(&compared);
    assert!(told.contains("· installed") && !told.contains("· A/A"), "{told}");
    assert!(told.contains("the plain arm again (A/A), whose true cost is zero: in "), "{told}");

    let nothing = tempfile::tempdir().expect("a folder");
    let refused = bench.tithe(&[&run[..], &[nothing.path().display().to_string().as_str()]].concat());
    assert_eq!(status(&refused), 3, "{}{}", out(&refused), err(&refused));
    assert!(err(&refused).contains("a server of Redis in "), "{}", err(&refused));
    let itself = bench.tithe(&[&run[..], &[install.programs.display().to_string().as_str()]].concat());
    assert_eq!(status(&itself), 2, "{}{}", out(&itself), err(&itself));
    assert!(err(&itself).contains("it is the installed build itself"), "{}", err(&itself));
}
