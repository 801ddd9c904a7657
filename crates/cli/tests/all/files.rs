//! Files in their usual forms, and other things that users give in place of a file.

use std::fs;

use expect_test::{Expect, expect};

use crate::support::{Bench, err, status};

/// An experiment about `database` whose workload is the file `file`.
fn experiment(database: &str, workload: &str, file: &str, protection: &str) -> String {
    format!(
        "title = \"t\"\ndatabase = \"{database}\"\n[data]\nrecords = 2_000\n[measure]\nbudget = \"3 min\"\n[[workload]]\n\
         {workload} = \"{file}\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"with\"\n\
         protections = [{{ use = \"{protection}\" }}]\n"
    )
}

/// The refusal of `arguments` by `tithe plan`, in one line each.
fn refused(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.tithe(&[&["plan"], arguments].concat());
    assert_eq!(status(&output), 2, "{arguments:?}");
    let told = err(&output);
    let kept = |line: &&str| ["error: ", "tithe: ", "  = help: "].iter().any(|start| line.starts_with(start));
    told.lines()
        .map(|line| line.replace("   = help", "  = help"))
        .filter(|line| kept(&line.as_str()))
        .fold(String::new(), |text, line| text + &line + "\n")
}

fn check(files: &[(&str, &[u8])], arguments: &[&str], expected: Expect) {
    let bench = Bench::new("files");
    fs::create_dir(bench.path("folder")).expect("a folder");
    for (name, bytes) in files {
        fs::write(bench.path(name), bytes).expect("written");
    }
    expected.assert_eq(&refused(&bench, arguments));
}

#[test]
fn what_is_no_experiment_is_named() {
    check(
        &[],
        &["folder"],
        expect![[r#"
        tithe: folder is a folder: name the experiment file in it
    "#]],
    );
    check(
        &[("e.toml", b"# a comment\ntitle = \"d\xe9j\xe0\"\n")],
        &["e.toml"],
        expect![[r#"
            tithe: line 2 of e.toml is not UTF-8: save the file as UTF-8
        "#]],
    );
    check(
        &[("e.toml", b"")],
        &["e.toml"],
        expect![[r#"
        error: the experiment has no `title`
          = help: add for example `title = "What TLS costs"`
        error: the experiment has no `database`
          = help: add for example `database = "postgres"`
        error: the experiment has no arms
          = help: add at least two `[[arm]]`: first the plain one, then one with `protections`
        error: the experiment has no `[[workload]]`
          = help: add `[[workload]]` and below it `ycsb = "a"`
        error: the experiment has no `[data]`
          = help: add `[data]` and below it for example `records = 100_000`
        tithe: 5 problems in e.toml; nothing was started
    "#]],
    );
}

#[test]
fn a_folder_in_place_of_a_workload_is_named() {
    for (database, workload, protection) in [
        ("sqlite", "ycsb_file", "page-encryption"),
        ("postgres", "pgbench_file", "tls"),
        ("mariadb", "sysbench_file", "tls"),
    ] {
        let text = experiment(database, workload, "folder", protection);
        check(
            &[("e.toml", text.as_bytes())],
            &["e.toml"],
            expect![[r#"
                error: the file `folder` cannot be read: it is a folder
                  = help: name the file in it
                tithe: 1 problem in e.toml; nothing was started
            "#]],
        );
    }
}

#[test]
fn a_script_of_ones_own_is_asked_for_by_its_file() {
    let text = experiment("mariadb", "sysbench", "one.lua", "tls");
    check(
        &[("e.toml", text.as_bytes())],
        &["e.toml"],
        expect![[r#"
        error: `sysbench` has no preset `one.lua`
          = help: for a file of your own write `sysbench_file = …`; the presets are: `oltp_read_write`, `oltp_read_only`, `oltp_write_only`, `oltp_point_select`, `oltp_update_index`, `oltp_update_non_index`, `oltp_insert`, `oltp_delete`
        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
    let text = experiment("postgres", "pgbench_file", "empty.sql", "tls");
    check(
        &[("e.toml", text.as_bytes()), ("empty.sql", b"")],
        &["e.toml"],
        expect![[r#"
        error: line 1 of `empty.sql`: the script is empty
          = help: write what a transaction does
        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
    let text = experiment("postgres", "pgbench_file", "latin.sql", "tls");
    check(
        &[("e.toml", text.as_bytes()), ("latin.sql", b"SELECT 1;\n-- \xe9\n")],
        &["e.toml"],
        expect![[r#"
        error: line 2 of `latin.sql`: is not UTF-8
          = help: save the file as UTF-8
        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
}

/// Property files from Windows editors and older tools are read as Java reads them.
#[test]
fn marks_of_editors_change_nothing() {
    let bench = Bench::new("files-read");
    let planned = |name: &str, bytes: &[u8]| {
        fs::write(bench.path(name), bytes).expect("written");
        bench.file("e.toml", &experiment("sqlite", "ycsb_file", name, "page-encryption"));
        let output = bench.tithe(&["plan", "e.toml"]);
        assert_eq!(status(&output), 0, "{name}: {}", err(&output));
        crate::support::out(&output)
    };
    let plain = planned("w.properties", b"# deja\nrecordcount=2000\nreadproportion=1.0\nupdateproportion=0\n");
    assert!(plain.contains("recordcount = 2000  is `records` of the experiment"), "{plain}");
    let marked = b"\xef\xbb\xbf# deja\r\nrecordcount=2000\r\nreadproportion=1.0\r\nupdateproportion=0\r\n";
    assert_eq!(planned("w.properties", marked), plain);
    let latin = b"# d\xe9j\xe0\nrecordcount=2000\nreadproportion=1.0\nupdateproportion=0\n";
    assert_eq!(planned("w.properties", latin), plain);
}
