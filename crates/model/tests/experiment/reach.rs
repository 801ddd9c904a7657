//! What an experiment makes servers, clients and programs run, open or load: every such text is listed with its place.

use std::{collections::BTreeMap, path::PathBuf};

use expect_test::expect;
use tithe_model::{
    experiment::{Custom, Experiment, Workload},
    parse::{line_of, parse},
    reach::reached,
};

use crate::catalogue;

const EVERYTHING: &str = r#"
title = "everything that is run"
database = "postgres"
settings = { archive_command = "cp %p /x", work_mem = "1MB" }
[data]
records = 1000
[[resources]]
name = "some"
settings = { restore_command = "fetch", fsync = "on" }
[[workload]]
ycsb = "c"
[[arm]]
name = "plain"
[[arm]]
name = "own"
settings = { shared_preload_libraries = "mine", wal_compression = "on" }
claims = [{ statement = "SELECT own", equals = "1" }]
[[arm]]
name = "protected"
protections = [{ use = "tls" }, { use = "custom", name = "rows", description = "rows", session = ["SET ROLE a", "SET b"],
    settings = { log_directory = "/etc", jit = "on" }, files = { ca = "ca.pem" },
    statements = ["CREATE ROLE a"], undo = ["DROP ROLE a"],
    claims = [{ statement = "SELECT 1", rows = 0 }, { check = "not-on-the-wire" },
        { check = "refused-as", account = "guest", statement = "SELECT 2", fails_with = "denied" }] }]
"#;

fn read(text: &str) -> Experiment {
    parse(text, &catalogue::catalogue(), &catalogue::read)
        .unwrap_or_else(|diagnostics| panic!("{}", crate::render(text, &diagnostics)))
}

/// Every text with its place, the words of what is done with it, and the files that it may name.
fn told(experiment: &Experiment) -> String {
    let mut catalogue = catalogue::catalogue();
    let kind = &mut catalogue.workloads[0];
    (kind.commands, kind.by_path, kind.scripts) = (&["run"], "log", "script");
    let line = |one: &tithe_model::reach::Reached| {
        let of = one.in_protection().map_or(String::new(), |(id, rest)| format!(" [{id}: {}]", rest.join(" ")));
        let files: Vec<String> = one.files().iter().map(|path| path.display().to_string()).collect();
        format!("{} ({}): {}{of}; files {files:?}\n", one.place.join(" "), one.how.word(), one.text)
    };
    reached(experiment, &catalogue).iter().map(line).collect()
}

#[test]
fn everything_that_is_run_is_listed_with_its_place() {
    expect![[r#"
        settings archive_command (setting): archive_command = cp %p /x; files ["archive_command", "cp", "%p", "/x"]
        resources 0 settings restore_command (setting): restore_command = fetch; files ["restore_command", "fetch"]
        arm 1 settings shared_preload_libraries (setting): shared_preload_libraries = mine; files ["shared_preload_libraries", "mine"]
        arm 1 claims 0 (statement): SELECT own; files []
        arm 2 protections rows settings log_directory (setting): log_directory = /etc [rows: settings log_directory]; files ["log_directory", "/etc"]
        arm 2 protections rows files ca (file): ca.pem [rows: files ca]; files ["ca.pem"]
        arm 2 protections rows statements 0 (statement): CREATE ROLE a [rows: statements 0]; files []
        arm 2 protections rows undo 0 (statement): DROP ROLE a [rows: undo 0]; files []
        arm 2 protections rows session 0 (statement): SET ROLE a [rows: session 0]; files []
        arm 2 protections rows session 1 (statement): SET b [rows: session 1]; files []
        arm 2 protections rows claims 0 (statement): SELECT 1 [rows: claims 0]; files []
        arm 2 protections rows claims 2 (statement): SELECT 2 [rows: claims 2]; files []
    "#]].assert_eq(&told(&read(EVERYTHING)));
}

#[test]
fn commands_of_attached_servers_are_listed() {
    let arm = |name: &str| {
        format!("[[arm]]\nname = \"{name}\"\nurl = \"postgres://h/db?password_command=cat%20/run/word\"\n")
    };
    let head = EVERYTHING.split("settings").next().unwrap_or_default();
    let rest = "[data]\nrecords = 1000\n[[workload]]\nycsb = \"c\"\n";
    let statements = "on = [\"SET a = 1\", \"SET b = 1\"]\noff = [\"RESET a\"]\n";
    expect![[r#"
        arm 0 url (command): cat /run/word; files ["cat", "/run/word"]
        arm 1 url (command): cat /run/word; files ["cat", "/run/word"]
        arm 1 on 0 (statement): SET a = 1; files []
        arm 1 on 1 (statement): SET b = 1; files []
        arm 1 off 0 (statement): RESET a; files []
    "#]]
    .assert_eq(&told(&read(&format!("{head}{rest}{}{}{statements}", arm("plain"), arm("more")))));
    let switch =
        "switch = { on = [\"./a\", \"on\"], off = [\"./a\", \"off\"], ready = \"SELECT true\", side = \"10 s\" }\n";
    let switched = read(&format!("{head}{rest}{}{}{switch}", arm("plain"), arm("more")));
    expect![[r#"
        arm 0 url (command): cat /run/word; files ["cat", "/run/word"]
        arm 1 url (command): cat /run/word; files ["cat", "/run/word"]
        arm 1 switch on (command): ./a on; files ["./a", "on"]
        arm 1 switch off (command): ./a off; files ["./a", "off"]
        arm 1 switch ready (statement): SELECT true; files []
    "#]]
    .assert_eq(&told(&switched));
    let asked = switch.replace("\"SELECT true\"", "[\"./a\", \"ready\"]");
    expect![[r#"
        arm 0 url (command): cat /run/word; files ["cat", "/run/word"]
        arm 1 url (command): cat /run/word; files ["cat", "/run/word"]
        arm 1 switch on (command): ./a on; files ["./a", "on"]
        arm 1 switch off (command): ./a off; files ["./a", "off"]
        arm 1 switch ready (command): ./a ready; files ["./a", "ready"]
    "#]]
    .assert_eq(&told(&read(&format!("{head}{rest}{}{}{asked}", arm("plain"), arm("more")))));
}

#[test]
fn files_commands_and_scripts_of_workloads_are_listed() {
    let mut experiment = read(EVERYTHING);
    experiment.settings.clear();
    experiment.resources[0].settings.clear();
    experiment.arms.truncate(2);
    experiment.arms[1].protections.clear();
    let properties = [
        ("run", "./load --all"),
        ("log", "/var/log/statements.csv"),
        ("script", "SELECT 1;"),
        ("script_2", "SELECT 2;"),
        ("script_name", "mine"),
        // A preset of Tithe's own has this text.
        ("script_3", "0.5"),
        ("readproportion", "1"),
    ];
    let properties: BTreeMap<String, String> =
        properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let prepare = Some(PathBuf::from("data.dump"));
    experiment.workloads = vec![
        Workload { properties, prepare, ..experiment.workloads[0].clone() },
        Workload { kind: "unknown".to_owned(), ..experiment.workloads[0].clone() },
    ];
    expect![[r#"
        workload 0 prepare (file): data.dump; files ["data.dump"]
        workload 0 ycsb (file): /var/log/statements.csv; files ["/var/log/statements.csv"]
        workload 0 properties run (command): ./load --all; files ["./load", "--all"]
        workload 0 ycsb (script): SELECT 1;; files []
        workload 0 ycsb (script): SELECT 2;; files []
    "#]]
    .assert_eq(&told(&experiment));
}

#[test]
fn nothing_is_listed_of_a_copy_of_the_baseline() {
    let mut experiment = read(EVERYTHING);
    let all = told(&experiment);
    experiment.arms.push(tithe_model::experiment::Arm { aa: true, ..experiment.arms[2].clone() });
    assert_eq!(told(&experiment), all);
    let custom: Vec<&Custom> =
        experiment.arms.iter().flat_map(|arm| &arm.protections).filter_map(|it| it.custom.as_deref()).collect();
    assert_eq!(custom.len(), 3, "the arm's own keys, its protection, and the copy's");
}

#[test]
fn lines_are_those_of_whole_paths() {
    let text = "a = 1\nb = { c = [1,\n 2] }\n[[d]]\nname = \"x\"\ne = 1\n[[d]]\nuse = \"y\"\ne = 2\n";
    let at = |path: &str| line_of(text, &path.split(' ').collect::<Vec<_>>());
    assert_eq!(["a", "b c 1", "d x e", "d y e", "d 1 e"].map(at), [Some(1), Some(3), Some(6), Some(9), Some(9)]);
    assert_eq!(["z", "a b", "b d", "b c 2", "d z e"].map(at), [None; 5]);
}
