//! Refusals before anything is started: the tests need no server.

use std::process::Command;

use crate::{
    installed::{programs, rotation},
    support::{Bench, err, status},
};

#[test]
fn what_programs_cannot_do() {
    programs::what_programs_cannot_do_is_refused_before_anything_starts();
}

#[test]
fn keys_that_cannot_be_rotated() {
    rotation::what_cannot_be_measured_is_refused_before_anything_starts();
}

/// With few descriptors a search for programs fails, which does not mean that they are not installed.
#[test]
fn few_open_files() {
    let bench = Bench::new("few-open-files");
    let command = bench.command(&["run", "postgres", "--protect", "tls", "--quiet"]);
    for most in [8, 16, 40] {
        let limited = format!("ulimit -n {most}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &limited]).arg(command.get_program()).args(command.get_args()).current_dir(bench.path(""));
        let output = shell.output().expect("a shell");
        let words = err(&output);
        assert_eq!(status(&output), 1, "{most}: {words}");
        assert!(words.contains("open files"), "{most}: {words}");
    }
}
