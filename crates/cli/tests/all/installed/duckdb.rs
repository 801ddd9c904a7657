//! DuckDB as a user runs it: a process for every start, every arm proven.

use tithe_databases::duckdb::DuckDb;

use crate::support::{Bench, err, out, server::found, status};

#[test]
fn every_arm_is_proven_before_and_after() {
    if found(&DuckDb).is_none() {
        return;
    }
    let bench = Bench::new("duckdb");
    bench.file(
        "e.toml",
        "title = \"DuckDB\"\ndatabase = \"duckdb\"\n[data]\nrecords = 2000\n[measure]\nbudget = \"3 s\"\nprecision = \"90%\"\n\
         design = \"slices\"\nslot = \"50 ms\"\nstarts = 1\nwarmup = \"0 s\"\n[[workload]]\nycsb = \"c\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"GCM\"\nprotections = [{ use = \"encryption\" }]\n[[arm]]\nname = \"CTR\"\n\
         protections = [{ use = \"encryption\", cipher = \"ctr\", provider = \"mbedtls\" }]\n",
    );
    let output = bench.tithe(&["run", "e.toml", "--quiet", "--json"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let kept = bench.kept("evidence.jsonl");
    let holds = |check: &str| {
        let lines = kept.lines().filter(|line| line.contains(&format!("\"{check}\"")));
        lines.filter(|line| line.contains("\"holds\"")).count()
    };
    for check in
        ["header", "disk-canary", "journal-canary", "temporary-canary", "wrong-key", "crypto-provider", "key-apart"]
    {
        assert_eq!(holds(check), 4, "{check}, two arms, before and after: {kept}");
    }
    assert!(!kept.contains("\"fails\""), "{kept}");
}
