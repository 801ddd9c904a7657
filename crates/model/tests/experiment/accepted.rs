//! What a good file resolves to.

use expect_test::{Expect, expect};

use crate::{FULL, SHORT, read_experiment, render};

fn check(text: &str, expected: Expect) {
    let shown = match read_experiment(text) {
        Ok(experiment) => serde_json::to_string_pretty(&experiment).expect("an experiment is JSON"),
        Err(complaints) => render(text, &complaints),
    };
    expected.assert_eq(&shown);
}

#[test]
fn everything() {
    check(FULL, expect![[]]);
}

#[test]
fn defaults() {
    check(SHORT, expect![[]]);
}

#[test]
fn attached_arms_of_one_server() {
    check(
        r#"
title = "Audit log of a managed server"
database = "postgres"
data.records = 1000
workload = [{ ycsb = "c" }]
arm = [
    { name = "plain", url = "postgres://user:hunter2@host:5432/db" },
    { name = "audit", url = "postgres://user:hunter2@host:5432/db", protections = [{ use = "pgaudit" }],
      on = ["SET pgaudit.log = 'read'"], off = ["RESET pgaudit.log"] },
]
"#,
        expect![[]],
    );
}
