//! A PostgreSQL behind a pooler: the client's own connection is proven up to the pooler, and the part behind it is
//! reported separately.

use crate::support;

use support::{Bench, err, out, pooler::Pooler, server::Server, status, words};

use super::{
    attached::{CAREFUL, arm, in_slices, schemas, verified},
    attached_refused::{accepted, refused},
};

/// The text of a check about a connection that ends at a pooler, without line breaks.
const AS_FAR_AS: &str =
    "by the client's own handshake, and only up to there: a pooler answers, and behind it pg_stat_ssl reports off";

const TLS: &str = r#"protections = [{ use = "tls" }]"#;

#[test]
fn a_pooler_that_lends_connections_for_a_transaction_is_refused() {
    let Some(server) = Server::start() else { return };
    let url = |pooler: &Pooler| pooler.url_of(&server, "tithe", false);
    let Some(pooler) = Pooler::start(&server, "transaction") else { return };
    refused("postgres", &url(&pooler), &["a pooler in front of it", "`pool_mode = session`"]);
    // A pooler that uses another connection each time, so that two sessions rarely have the same one.
    let by_turns = "transaction\nmin_pool_size = 4\nserver_round_robin = 1";
    let Some(pooler) = Pooler::start(&server, by_turns) else { return };
    refused("postgres", &url(&pooler), &["a pooler in front of it"]);
    let Some(pooler) = Pooler::start(&server, "session") else { return };
    accepted("postgres", &url(&pooler));
    assert_eq!(schemas(&server), "0");
}

#[test]
fn tls_is_proven_as_far_as_the_pooler_and_measured() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    let Some(pooler) = Pooler::start(&server, "session") else { return };
    // Only the pooler has TLS.
    server.psql("ALTER SYSTEM SET ssl = off");
    server.psql("SELECT pg_reload_conf()");
    let url = |tls: bool| pooler.url_of(&server, "careful", tls);
    let arms = [arm("plain", &url(false), ""), arm("tls", &url(true), TLS)].concat();
    let bench = Bench::new("pooler");
    let lacks = out(&bench.tithe(&["doctor", &url(true)]));
    assert!(!lacks.contains("speaks no TLS"), "{lacks}");
    let (verified, told) = verified(&bench, "postgres", &arms);
    assert_eq!(verified, 0, "{told}");
    assert!(words(&told).contains(AS_FAR_AS), "{told}");
    bench.file("run.toml", &in_slices("postgres", &arms));
    let output = bench.tithe(&["run", "run.toml"]);
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let report = out(&bench.tithe(&["report", &bench.run_folder().display().to_string(), "--format", "json"]));
    assert!(report.contains(AS_FAR_AS), "{report}");
    assert_eq!(schemas(&server), "0");
}

#[test]
fn a_command_is_accompanied_as_far_as_the_pooler() {
    let Some(server) = Server::start() else { return };
    server.psql(CAREFUL);
    let Some(pooler) = Pooler::start(&server, "session") else { return };
    let (url, psql) = (pooler.url_of(&server, "careful", true), server.program("psql"));
    let asked = ["witness", url.as_str(), "--protect", "tls", "--"];
    let output =
        Bench::new("pooler-witness").tithe(&[&asked[..], &[&psql, "{url}", "-Xqc", "SELECT pg_sleep(1)"]].concat());
    let told = words(&out(&output));
    assert_eq!(status(&output), 0, "{told}{}", err(&output));
    assert!(told.contains(AS_FAR_AS), "{told}");
    assert_eq!(schemas(&server), "0");
}
