//! `tithe witness` without a server that it can observe: then nothing is started.

use crate::support::{Bench, err, out, status};

/// Its output for `arguments`, in front of a command that would leave a file.
fn refused(arguments: &[&str]) -> (i32, String) {
    let bench = Bench::new("witness");
    let output = bench.tithe(&[&["witness"], arguments, &["--", "touch", "started"]].concat());
    assert_eq!(out(&output), "");
    assert!(!bench.path("started").exists(), "{arguments:?}: the command was started");
    (status(&output), err(&output))
}

#[test]
fn what_is_no_server_or_cannot_be_witnessed_is_refused() {
    let place = "postgres://me@127.0.0.1:1/shop";
    for (arguments, words) in [
        (&["postgres"] as &[&str], "name a server by its URL"),
        (&["file.toml"], "name a server by its URL"),
        (&["postgrs://db"], "did you mean postgres?"),
        (&["postgres://me:secret@db/shop"], "the URL contains a password"),
        (&[place, "--protect", "columns"], "columns is done by clients"),
        (&[place, "--protect", "tls"], "arm `tls` asks for TLS"),
        (&[place, "--protect", "tsl"], "there is no protection"),
        (&[place, "--protect", "checksums"], "`checksums` cannot be measured on a server that Tithe does not start"),
    ] {
        let (status, told) = refused(arguments);
        assert_eq!(status, 2, "{arguments:?}: {told}");
        assert!(told.contains(words) && !told.contains("secret"), "{arguments:?}: {told}");
    }
}

#[test]
fn without_the_server_the_command_is_not_started() {
    let (status, told) = refused(&["postgres://me@127.0.0.1:1/shop"]);
    assert_eq!(status, 4, "{told}");
    assert!(told.contains("the command was not started"), "{told}");
}
