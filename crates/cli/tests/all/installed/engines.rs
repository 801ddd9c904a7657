//! Page encryption of MongoDB's storage engine as a user runs it, with the master key from a key server.

#[path = "../../../../databases/tests/support/pykmip.rs"]
mod pykmip;

use crate::support;

use std::collections::BTreeSet;

use pykmip::TestServer;
use serde_json::Value;
use support::{Bench, assert_valid, err, out, server::found, status};
use tithe_databases::wiredtiger::WiredTiger;

/// A short run with a key of `server`'s, named `key_id`.
fn experiment(server: &TestServer, key_id: &str) -> String {
    let credentials = &server.credentials;
    format!(
        r#"title = "A key server"
database = "wiredtiger"
[data]
records = 2_000
[measure]
budget = "6 s"
precision = "50%"
design = "slices"
slot = "200 ms"
starts = 2
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
    a_key_that_it_does_not_have_is_told_before_anything_starts(&server);
}

fn a_key_that_it_does_not_have_is_told_before_anything_starts(server: &TestServer) {
    let bench = Bench::new("kmip-refused");
    bench.file("e.toml", &experiment(server, "4711"));
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    let told = err(&output);
    assert_eq!(status(&output), 3, "{told}");
    assert!(told.contains("the server says: "), "{told}");
    assert!(!bench.path("tithe-runs").exists());
}

/// Reading and inserting: only one process at a time can open the engine, and each start finds the data of the one
/// before.
#[test]
fn engines_are_opened_in_a_process_of_their_own_for_every_start() {
    if found(&WiredTiger).is_none() {
        return;
    }
    let bench = Bench::new("wiredtiger-starts");
    let text = "title = \"Starts\"\ndatabase = \"wiredtiger\"\n[data]\nrecords = 500\n[measure]\nbudget = \"8 s\"\n\
                precision = \"90%\"\ndesign = \"slices\"\nslot = \"100 ms\"\n[[workload]]\nycsb = \"c\"\n\
                [[workload]]\nycsb = \"d\"\n[[arm]]\nname = \"plain\"\n\
                [[arm]]\nname = \"gcm\"\nprotections = [{ use = \"page-encryption\", cipher = \"aes-256-gcm\" }]\n";
    bench.file("e.toml", text);
    let output = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let read = |file: &str| std::fs::read_to_string(bench.run_folder().join(file)).expect("a file of the run");
    let frames = read("frames.jsonl");
    let frames: Vec<Value> = frames.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let starts = |cell: u64| {
        let of_cell = frames.iter().filter(|frame| frame["cell"] == cell);
        let starts: Vec<u64> = of_cell.map(|frame| frame["start"].as_u64().expect("a number")).collect();
        (starts.iter().collect::<BTreeSet<_>>().len(), starts.len())
    };
    let (reading, inserting) = (starts(0), starts(1));
    assert_eq!(reading.0, reading.1, "a start for every frame");
    assert!(inserting.0 >= 4, "{inserting:?}");
    assert_valid(&frames);
    for frame in &frames {
        assert!(frame["arms"].as_array().expect("arms").iter().all(|arm| arm["failed"] == 0), "{frame}");
    }
    // The engines' cache figures come from the processes that have them open.
    let cell = |number: u32| -> Value { serde_json::from_str(&read(&format!("cells/{number}.json"))).expect("JSON") };
    let cells = [cell(0), cell(1)];
    let arms = cells.iter().flat_map(|cell| cell["arms"].as_array().expect("arms"));
    let hits: Vec<&str> = arms.filter_map(|arm| arm["facts"]["cache hits"].as_str()).collect();
    assert_eq!(hits.len(), 4, "{cells:?}");
    assert!(hits.iter().all(|hits| hits.ends_with("pages, while measuring")), "{hits:?}");
}
