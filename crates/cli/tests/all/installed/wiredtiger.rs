//! Page encryption of MongoDB's storage engine as a user runs it, with the master key from a key server.

#[path = "../../../../databases/tests/support/pykmip.rs"]
mod pykmip;

use crate::support;

use pykmip::TestServer;
use support::{Bench, err, out, status};

/// A short run with a key of `server`'s, named `key_id`.
fn experiment(server: &TestServer, key_id: &str) -> String {
    let credentials = &server.credentials;
    format!(
        r#"title = "A key server"
database = "wiredtiger"
[data]
records = 2_000
[measure]
budget = "20 s"
precision = "50%"
[[workload]]
ycsb = "a"
[[arm]]
name = "plain"
[[arm]]
name = "encrypted"
[[arm.protections]]
use = "page-encryption"
cipher = "aes-256-gcm"
kmip_server = "{}"
kmip_key_id = "{key_id}"
kmip_certificate = "{}"
kmip_private_key = "{}"
kmip_authority = "{}"
"#,
        server.address,
        credentials.client_certificate.display(),
        credentials.client_key.display(),
        credentials.authority.display()
    )
}

#[test]
fn a_run_takes_its_master_key_from_a_key_server() {
    let Some(server) = TestServer::start() else { return };
    let bench = Bench::new("kmip");
    bench.file("e.toml", &experiment(&server, &server.make_key(256)));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    let told = format!("{}{}", out(&output), err(&output));
    assert_eq!(status(&output), 0, "{told}");
    let run = bench.run_folder().display().to_string();
    let told = out(&bench.tithe(&["report", &run, "--format", "markdown"]));
    for words in ["KMIP server", "trusting another authority", "without a certificate"] {
        assert!(told.contains(words), "{words} is not in {told}");
    }
}

#[test]
fn a_key_that_the_server_does_not_have_is_told_before_anything_starts() {
    let Some(server) = TestServer::start() else { return };
    let bench = Bench::new("kmip-refused");
    bench.file("e.toml", &experiment(&server, "4711"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    let told = err(&output);
    assert_eq!(status(&output), 3, "{told}");
    assert!(told.contains("the server says: "), "{told}");
    assert!(!bench.path("tithe-runs").exists());
}
