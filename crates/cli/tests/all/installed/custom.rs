//! Protections and settings of the reader's own on real servers.

use std::fs;

use serde_json::Value;

use crate::support::{Bench, err, out, server::installed, status};

/// The file of the documentation, as it stands there.
fn documented() -> &'static str {
    let page = include_str!("../../../../../docs/your-protection.md");
    let from = page.split_once("description = ").expect("a file").0.len();
    page[from..].split("```").next().expect("its end")
}

/// An experiment whose second arm has `lines`.
fn experiment(lines: &str) -> String {
    format!(
        "title = \"Own\"\ndatabase = \"postgres\"\n[data]\nrecords = 300\n[load]\nrate = 400\n[measure]\nbudget = \"1 min\"\n\
         design = \"slices\"\nslot = \"250 ms\"\nwarmup = \"0 s\"\nstarts = 1\nprecision = \"50%\"\n[[workload]]\nycsb = \"a\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"own\"\n{lines}\n"
    )
}

/// Status and output of a run of `lines`, in words and as JSON.
fn run(bench: &Bench, lines: &str) -> (i32, String, Value) {
    bench.file("e.toml", &experiment(lines));
    let run = bench.tithe(&["run", "e.toml"]);
    let told = format!("{}{}", out(&run), err(&run));
    assert!(status(&run) != 2, "{told}");
    (status(&run), told, bench.report())
}

fn own(report: &Value) -> &Value {
    &report["cells"][0]["arms"][1]
}

#[test]
fn another_tenant_sees_nothing_which_a_claim_proves() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("custom-rls");
    fs::create_dir(bench.path("protections")).expect("a folder");
    bench.file("protections/row-level-security.toml", documented());
    let (status, told, report) = run(&bench, "protections = [{ use = \"row-level-security\" }]");
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("proven (by your claim)"), "{told}");
    assert_eq!(own(&report)["proof"]["proof"], "by-claim", "{told}");
    // The same without its claim is a setting, in a folder of its own.
    let bench = Bench::new("custom-setting");
    fs::create_dir(bench.path("protections")).expect("a folder");
    let without = documented().split("[[claims]]").next().expect("a file");
    bench.file("protections/row-level-security.toml", without);
    let (status, told, report) = run(&bench, "protections = [{ use = \"row-level-security\" }]");
    assert_eq!((status, own(&report)["proof"]["proof"].as_str()), (0, Some("setting")), "{told}");
    assert!(!told.to_lowercase().contains("unproven"), "{told}");
}

#[test]
fn a_setting_is_read_back_and_claims_are_judged() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("custom-claims");
    let verified = |lines: &str| {
        bench.file("e.toml", &experiment(lines));
        let output = bench.tithe(&["verify", "e.toml"]);
        (status(&output), format!("{}{}", out(&output), err(&output)))
    };
    let claim = |claim: &str| {
        verified(&format!(
            "protections = [{{ use = \"custom\", name = \"x\", settings = {{ wal_compression = \"on\" }}, claims = [{{ {claim} }}] }}]"
        ))
    };
    let (status, told) = claim("statement = \"SHOW wal_compression\", equals = \"pglz\"");
    assert!(
        status == 0 && told.contains("every claim holds") && told.contains("i own, yes: wal_compression"),
        "{told}"
    );
    for (words, expected, said) in [
        ("statement = \"SELECT 1\", rows = 1", 7, "the claim holds on the plain arm, too"),
        ("statement = \"SHOW wal_compression\", matches = \"o*f\"", 5, "it says pglz"),
        ("statement = \"SELECT pg_sleep(60)\", rows = 1", 7, "has not ended within 10 s"),
        ("statement = \"CREATE TABLE x (a int)\", rows = 0", 7, "read-only transaction"),
        ("statement = \"SELEKT\", rows = 1", 7, "syntax error"),
    ] {
        let (status, told) = claim(words);
        assert!(status == expected && told.contains(said), "{words}: {status} {told}");
    }
    let (status, told) = verified("settings = { jitt = \"off\" }");
    assert!(status == 2 && told.contains("knows no setting `jitt`") && told.contains("20:21"), "{status} {told}");
}
