//! Matrix files: their meaning, their problems, and the scripts made from them.

use expect_test::{Expect, expect, expect_file};
use proptest::prelude::*;
use tithe_model::{
    matrix::{
        Matrix, TASKS_MAX,
        script::{ENGINES, Names, script},
    },
    parse::{MATRIX_TABLES, matrix},
};

use crate::render;

const FULL: &str = r#"
title = "What TLS and pages cost on our hosts"
experiments = ["tls.toml", "page encryption.toml"]
replicates = 5
every = "6 h"

[[machine]]
name = "small"
slurm = "--constraint=c7i.large --partition=cloud"
kubernetes = { "node.kubernetes.io/instance-type" = "c7i.large" }

[[machine]]
name = "large"
"#;

fn check(text: &str, expected: Expect) {
    match matrix(text) {
        Ok(matrix) => panic!("no diagnostic about {matrix:?}"),
        Err(diagnostics) => expected.assert_eq(&render(text, &diagnostics)),
    }
}

#[test]
fn replicates_of_an_experiment_follow_each_other() {
    let matrix = matrix(FULL).expect("a matrix");
    assert_eq!((matrix.len(), matrix.every_s), (20, 21_600.0));
    let told = matrix.tasks().map(|task| (task.machine, task.experiment, task.replicate)).collect::<Vec<_>>();
    assert_eq!(told[..6], [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 0, 4), (0, 1, 0)]);
    assert_eq!((told[10], told[19], matrix.first(1, 1)), ((1, 0, 0), (1, 1, 4), 15));
    assert_eq!(matrix.task(20), None);
}

#[test]
fn what_is_left_out_has_a_default() {
    let matrix = matrix("title = \"One\"\nexperiments = [\"a.toml\"]\n").expect("a matrix");
    assert_eq!((matrix.len(), matrix.every_s, matrix.machines[0].name.as_str()), (1, 0.0, "any host"));
}

#[test]
fn every_mistake_has_its_place() {
    check(
        r#"titel = "One"
database = "postgres"
experiments = ["a.toml", "a.toml", 3]
replicates = 0
every = "soon"

[[machine]]
slurm = "-C big"
kubernetes = "big"

[[machine]]
name = "x"
cpus = 2

[[machine]]
name = "x"
"#,
        expect![[r#"
            1:1 the matrix has no key `titel` (did you mean `title`? its keys are: `title`, `experiments`, `replicates`, `every`, `machine`)
            1:1 the matrix has no `title` (add for example `title = "What TLS costs on our hosts"`)
            2:1 the matrix has no key `database` (its keys are: `title`, `experiments`, `replicates`, `every`, `machine`)
            3:26 there are two experiments called `a.toml` (give each its own name: reports tell them apart by it)
            3:36 `experiments` must be a text in quotes, this is a whole number (write for example `experiments = ["postgres-tls-audit.toml"]`)
            4:14 `replicates` must be from 1 to 10000, this is `0` (write for example `replicates = 5`)
            5:9 `every` must be a time from 0 s to 720 h with its unit (ms, s, min, h), this is `soon` (write for example `every = "6 h"`)
            7:1 `[[machine]]` has no `name` (add for example `name = "small"`)
            8:9 `slurm` must be long options of sbatch, each as --name=value; this is `-C` (write for example `slurm = "--constraint=c7i.large"`)
            9:14 `kubernetes` must be a table, this is a text (write for example `kubernetes = { "node.kubernetes.io/instance-type" = "c7i.large" }`)
            13:1 `[[machine]]` has no key `cpus` (its keys are: `name`, `slurm`, `kubernetes`)
            16:8 there are two kinds of machine called `x` (give each its own name: reports tell them apart by it)
        "#]],
    );
    check(
        "title = \"One\"\nexperiments = []\n",
        expect![[r#"
        2:15 `experiments` is empty: a matrix needs at least one experiment (write for example `experiments = ["postgres-tls-audit.toml"]`)
    "#]],
    );
    check(
        "title = \"One\nexperiments = [\"a.toml\"]\n",
        expect![[r#"
        1:13 not TOML: invalid basic string, expected `"` (a line is `key = value`, `[table]` or `[[table]]`; text is in quotes; the rules are at https://toml.io)
    "#]],
    );
    let many: Vec<String> = (0..11).map(|number| number.to_string()).collect();
    check(
        &format!("title = \"Many\"\nexperiments = {many:?}\nreplicates = 10_000\n"),
        expect![[r#"
        1:1 110000 tasks are too many, at most 100000 (take fewer experiments, kinds of machine or replicates)
    "#]],
    );
    let most = format!("title = \"Many\"\nexperiments = {:?}\nreplicates = 10_000\n", &many[..10]);
    assert_eq!(matrix(&most).map(|matrix| matrix.len()), Ok(TASKS_MAX));
}

#[test]
fn examples_of_keys_are_read() {
    for table in MATRIX_TABLES {
        for key in table.keys {
            let line = format!("{} = {}\n", key.name, key.example);
            let text = match (table.header, key.name) {
                ("[[machine]]", "name") => format!("title = \"x\"\nexperiments = [\"a\"]\n[[machine]]\n{line}"),
                ("[[machine]]", _) => {
                    format!("title = \"x\"\nexperiments = [\"a\"]\n[[machine]]\nname = \"m\"\n{line}")
                }
                (_, "title") => format!("experiments = [\"a\"]\n{line}"),
                (_, "experiments") => format!("title = \"x\"\n{line}"),
                _ => format!("title = \"x\"\nexperiments = [\"a\"]\n{line}"),
            };
            assert!(matrix(&text).is_ok(), "{line}: {:?}", matrix(&text));
        }
    }
}

#[test]
fn scripts_for_every_engine() {
    let matrix = matrix(FULL).expect("a matrix");
    let names = Names { file: "my matrix.toml", into: "/shared/tithe", plan: "0123456789abcdef", allowed: "" };
    for (name, engine) in ENGINES {
        let text = script(&matrix, names, *engine);
        match *name {
            "shell" => expect_file!["matrix/shell.sh"].assert_eq(&text),
            "slurm" => expect_file!["matrix/slurm.sh"].assert_eq(&text),
            _ => expect_file!["matrix/kubernetes.yaml"].assert_eq(&text),
        }
    }
}

proptest! {
    /// Every number belongs to one task, and every task has one number.
    #[test]
    fn numbers_and_tasks_belong_together(machines in 1usize..5, experiments in 1usize..5, replicates in 1u32..8) {
        let text = format!(
            "title = \"x\"\nexperiments = {:?}\nreplicates = {replicates}\n{}",
            (0..experiments).map(|it| format!("{it}.toml")).collect::<Vec<_>>(),
            (0..machines).map(|it| format!("[[machine]]\nname = \"m{it}\"\n")).collect::<String>()
        );
        let matrix: Matrix = matrix(&text).expect("a matrix");
        prop_assert_eq!(matrix.tasks().count(), machines * experiments * replicates as usize);
        for task in matrix.tasks() {
            prop_assert_eq!(matrix.first(task.machine, task.experiment) + task.replicate as usize, task.index);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "(title|experiments|machine|[\\[\\]=\"'{},0-9a-z \n]){0,60}") {
        let _ = matrix(&text);
    }
}
