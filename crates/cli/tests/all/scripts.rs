//! Statements of the user's own on the built-in SQLite: the same work on every arm.

use crate::support::{Bench, err, out, status, words};

/// Checks the evidence of a script on a plain arm and on one with `other`: the exit status and all output.
fn verified(bench: &Bench, script: &str, other: &str) -> (i32, String) {
    bench.file("app.sql", script);
    let text = format!(
        "title = \"Own\"\ndatabase = \"sqlite\"\n[measure]\nbudget = \"3 s\"\nstarts = 1\n[[workload]]\nscript = \"app.sql\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"other\"\n{other}\n"
    );
    bench.file("e.toml", &text);
    let output = bench.tithe(&["verify", "e.toml"]);
    (status(&output), words(&(out(&output) + &err(&output))))
}

#[test]
fn an_arm_that_answers_something_else_is_named_with_the_statement_and_both_answers() {
    let bench = Bench::new("other-answers");
    let script = "\\set a random(1, 9)\nSELECT :a;\nSELECT cache_size + :a - :a FROM pragma_cache_size;\n";
    let (code, told) = verified(&bench, script, "settings = { cache_size = \"-1000\" }");
    let expected = "arm other does other work than the plain arm: app.sql:3 `SELECT cache_size + :a - :a FROM \
                    pragma_cache_size` answered (-2000) there and (-1000) here";
    assert!(code == 4 && told.contains(expected), "{code} {told}");
    let (code, told) = verified(&bench, script, "protections = [{ use = \"page-encryption\" }]");
    assert_eq!(code, 0, "{told}");
}

#[test]
fn every_protocol_runs_on_data_of_the_users_own() {
    let bench = Bench::new("protocols");
    bench.file("t.sql", "CREATE TABLE t (id int PRIMARY KEY, a int);\nINSERT INTO t VALUES (1, 0), (2, 0), (3, 0);\n");
    let script = "\\set id random(1, 3)\nBEGIN;\nSELECT a AS old FROM t WHERE id = :id \\gset\nUPDATE t SET a = :old + 1 WHERE \
                  id = :id;\nSELECT 1 AS one \\; SELECT 2 AS two \\aset\nCOMMIT;\n\\if :one + :two <> 3\nSELECT nothing FROM \
                  nowhere;\n\\endif\nSELECT random();\n";
    bench.file("app.sql", script);
    let workload = |protocol| {
        format!(
            "[[workload]]\nname = \"{protocol}\"\nscript = \"app.sql\"\nprotocol = \"{protocol}\"\nprepare = \"t.sql\"\n"
        )
    };
    let text = format!(
        "title = \"Own\"\ndatabase = \"sqlite\"\n[measure]\nbudget = \"6 s\"\nprecision = \"90%\"\ndesign = \
         \"slices\"\nslot = \"50 ms\"\nstarts = 1\nwarmup = \"0 s\"\n{}[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"sealed\"\n\
         protections = [{{ use = \"page-encryption\" }}]\n",
        ["simple", "extended", "prepared"].map(workload).concat()
    );
    bench.file("e.toml", &text);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let cells = bench.report()["cells"].take();
    assert_eq!(cells.as_array().map(Vec::len), Some(3));
    let kept = bench.kept("evidence.jsonl");
    assert!(kept.contains("left out, because they differ on one server too: app.sql:10"), "{kept}");
    let frames = bench.kept_lines("frames.jsonl");
    for arm in 0..2 {
        // On a busy machine a single slot may end before its first operation.
        let of_arm = || frames.iter().map(|frame| &frame["arms"][arm]);
        assert!(of_arm().any(|slot| slot["operations"].as_u64() > Some(0)), "arm {arm}");
        assert!(of_arm().all(|slot| slot["failed"] == 0), "arm {arm}");
    }
}

/// A workload with data of its own needs no `[data]`, and no limit can be a share of data that Tithe does not generate.
#[test]
fn no_records_are_asked_for_where_none_are_generated() {
    let bench = Bench::new("own-data");
    bench.file("app.sql", "SELECT 1;\n");
    let experiment = |workloads: &str, resources: &str| {
        format!(
            "title = \"Own\"\ndatabase = \"postgres\"\n{resources}{workloads}[[arm]]\nname = \"plain\"\n[[arm]]\nname = \
             \"tls\"\nprotections = [{{ use = \"tls\" }}]\n"
        )
    };
    let said = |workloads: &str, resources: &str| {
        bench.file("e.toml", &experiment(workloads, resources));
        let output = bench.tithe(&["plan", "e.toml"]);
        (status(&output), words(&(out(&output) + &err(&output))))
    };
    let (code, told) = said("[[workload]]\nscript = \"app.sql\"\n", "");
    assert!(code == 0 && told.contains("PostgreSQL, the workload's own data, seed 1"), "{code} {told}");
    let both = "[[workload]]\nscript = \"app.sql\"\n[[workload]]\nycsb = \"c\"\n";
    let (code, told) = said(both, "");
    assert!(code == 2 && told.contains("the experiment has no `[data]`"), "{code} {told}");
    let (code, told) = said(both, "[data]\nrecords = 100\n[[resources]]\ndata_per_memory = 2\n");
    assert!(code == 2 && told.contains("`data_per_memory` needs `records`"), "{code} {told}");
}

#[test]
fn a_variable_of_a_script_may_hold_a_quote() {
    let bench = Bench::new("quote");
    bench.file("app.sql", "SELECT :name;\n");
    let text = "title = \"Own\"\ndatabase = \"sqlite\"\n[[workload]]\nscript = \"app.sql\"\n\
                define = { name = \"O'Neill\" }\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"sealed\"\n\
                protections = [{ use = \"page-encryption\" }]\n";
    bench.file("e.toml", text);
    let output = bench.tithe(&["plan", "e.toml"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
}
