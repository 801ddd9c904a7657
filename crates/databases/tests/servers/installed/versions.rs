//! Versions of servers in addition to those of packages: what `tithe get` downloads.

use expect_test::expect;
use tithe_databases::{mariadb::MariaDb, postgres::Postgres, redis::Redis};
use tithe_machine::{
    launch::{Install, Search},
    observation::Observation,
};
use tithe_model::experiment::Protection as Chosen;
use tithe_plugin::{
    database::Database,
    matrix::{Feature, State},
};

use super::{
    how,
    mariadb::MARIADB,
    observe,
    postgres::POSTGRES,
    redis::REDIS,
    sandbox::{Sandbox, protection},
    table,
};
use crate::tested::{Tested, chosen, prove_between};

/// The installation whose version contains these words; `None`, with a message, if there is none.
fn installed(tested: &Tested, words: &str, get: &str) -> Option<Install> {
    let found = tested.database.find_all(&Search::default()).into_iter().find(|it| it.version.contains(words));
    if found.is_none() {
        eprintln!("SKIPPED: no {words}: tithe get {get}");
        assert!(std::env::var_os("CI").is_none(), "{words} is missing: tithe get {get}");
    }
    found
}

fn start(tested: &Tested, install: &Install, protections: &[Chosen]) -> Sandbox {
    let search = Search { folders: vec![install.programs.clone()] };
    Sandbox::start_of(tested.database, &search, protections, &[], &[]).expect("a server")
}

/// What an inspection sees of the server with these protections: the states, one per line.
fn states(sandbox: &Sandbox) -> String {
    let seen = sandbox.database.inspect(&sandbox.server, &sandbox.setup).expect("an inspection");
    seen.iter().map(|row| format!("{}: {}\n", row.feature.id(), row.state.words())).collect()
}

/// A setting applies to passwords that are set from now on. This one was set with another value.
fn keeps_less_than_it_is_set_to(sandbox: &Sandbox, scram: &Chosen) {
    let sql = Postgres.sql().expect("SQL");
    let mut session = sql.connect(&sandbox.server, &sandbox.setup, &how(true)).expect("the administrator");
    let password = sandbox.setup.credentials.password.expose_text();
    let mut say = |statement: &str| drop(session.run(statement).expect("said"));
    say("SET scram_iterations = 4096");
    say(&format!("ALTER ROLE tithe PASSWORD '{password}'"));
    let checks = protection(&Postgres, "scram").evidence(scram);
    let check = checks.iter().find(|check| check.id() == "scram-iterations").expect("the check");
    let words = "a login took 4096 iterations; what pg_authid keeps has 4096";
    assert_eq!(observe(sandbox, true, &**check), Observation::Exposed(words.to_owned()));
}

#[test]
fn iterations_of_scram_need_a_newer_server() {
    let Some(install) = installed(&POSTGRES, "(PostgreSQL) 15.", "postgres") else { return };
    let needs = |chosen: Chosen| protection(&Postgres, "scram").needs(&install, &chosen);
    needs(chosen!(POSTGRES, "scram" {})).expect("nothing");
    let missing = needs(chosen!(POSTGRES, "scram" { iterations = "4096" })).expect_err("no such setting");
    assert_eq!(missing.what, "the setting scram_iterations, which PostgreSQL 15 does not have");
}

/// Each protection of PostgreSQL that this build has is proven, and the plain server has none of them.
fn postgres(major: &str) {
    let Some(install) = installed(&POSTGRES, &format!("(PostgreSQL) {major}."), &format!("postgres --version {major}"))
    else {
        return;
    };
    let missing = protection(&Postgres, "pgaudit").needs(&install, &chosen!(POSTGRES, "pgaudit" {}));
    assert_eq!(missing.expect_err("no pgaudit").what, format!("the extension pgaudit for PostgreSQL {major}"));

    let plain = start(&POSTGRES, &install, &[]);
    Postgres.create(&plain.server, &plain.setup, &table()).expect("a table");
    let facts = Postgres.facts(&plain.server, &plain.setup).expect("facts");
    assert!(facts.version.starts_with(&format!("PostgreSQL {major}.")), "{facts:?}");
    let by_tithe = if major == "18" { ", by Tithe: initdb switches them on from PostgreSQL 18 on" } else { "" };
    assert_eq!(facts.facts["data_checksums"], format!("off{by_tithe}"));

    let tls = chosen!(POSTGRES, "tls" { mutual = true, suite = "chacha20-poly1305" });
    let (scram, checksums) = (
        chosen!(POSTGRES, "scram" { channel_binding = "require", iterations = "10000" }),
        chosen!(POSTGRES, "checksums" {}),
    );
    let log = chosen!(POSTGRES, "log-statement" {});
    let protected = start(&POSTGRES, &install, &[tls.clone(), scram.clone(), checksums.clone(), log.clone()]);
    prove_between(&POSTGRES, &plain, &protected, &tls, &["tls-negotiated Claim Holds", "wire-canary Claim Holds"]);
    // The log repeats passwords that statements set.
    let asked = ["password-asked Claim Holds", "scram-iterations Claim Holds", "recorders Disclosure Fails"];
    prove_between(&POSTGRES, &plain, &protected, &scram, &asked);
    keeps_less_than_it_is_set_to(&protected, &scram);
    prove_between(&POSTGRES, &plain, &protected, &checksums, &["checksums-on Claim Holds"]);
    let logged = ["statement-log Claim Holds", "logs-free Disclosure Fails", "pgcrypto-trap Disclosure Fails"];
    prove_between(&POSTGRES, &plain, &protected, &log, &logged);
    expect![[r#"
        authentication: enforced
        tls: enforced
        client-to-node: enforced
        authorisation: off
        proxy-roles: off
        audit: enforced
        node-to-node: cannot tell
        at-rest: not offered by this product
        jmx-authentication: not offered by this product
        authentication-caching: not offered by this product
    "#]]
    .assert_eq(&states(&protected));

    let (rows, columns) = (chosen!(POSTGRES, "row-security" {}), chosen!(POSTGRES, "columns" {}));
    let protected = start(&POSTGRES, &install, std::slice::from_ref(&rows));
    prove_between(&POSTGRES, &plain, &protected, &rows, &["rows-apart Claim Holds", "row-plan Disclosure Holds"]);
    let protected = start(&POSTGRES, &install, std::slice::from_ref(&columns));
    let seen = [
        "ciphertext-seen Claim Holds",
        "wrong-column-key Claim Holds",
        "disk-canary Strengthens Holds",
        "wire-canary Strengthens Holds",
        "recorders Disclosure Holds",
    ];
    prove_between(&POSTGRES, &plain, &protected, &columns, &seen);
}

#[test]
fn postgres_16_is_proven() {
    postgres("16");
}

#[test]
fn postgres_17_is_proven() {
    postgres("17");
}

#[test]
fn postgres_18_is_proven() {
    postgres("18");
}

/// MariaDB 11.4 without plugins: what needs one is refused, and the rest is proven.
#[test]
fn mariadb_11_is_proven() {
    let Some(install) = installed(&MARIADB, "Ver 11.4.", "mariadb") else { return };
    for (id, chosen, plugin) in [
        ("encryption", chosen!(MARIADB, "encryption" {}), "file_key_management"),
        ("server-audit", chosen!(MARIADB, "server-audit" {}), "server_audit"),
    ] {
        let missing = protection(&MariaDb, id).needs(&install, &chosen).expect_err("no plugin");
        assert_eq!(missing.what, format!("the plugin {plugin} of MariaDB"));
    }
    let plain = start(&MARIADB, &install, &[]);
    MariaDb.create(&plain.server, &plain.setup, &table()).expect("a table");
    let facts = MariaDb.facts(&plain.server, &plain.setup).expect("facts");
    assert!(facts.version.contains("11.4."), "{facts:?}");
    let (tls, password, log) = (
        chosen!(MARIADB, "tls" { mutual = true }),
        chosen!(MARIADB, "password" {}),
        chosen!(MARIADB, "general-log" {}),
    );
    let protected = start(&MARIADB, &install, &[tls.clone(), password.clone(), log.clone()]);
    prove_between(&MARIADB, &plain, &protected, &tls, &["tls-negotiated Claim Holds", "wire-canary Claim Holds"]);
    // The binary log repeats passwords that statements set.
    let asked = ["password-asked Claim Holds", "recorders Disclosure Fails"];
    prove_between(&MARIADB, &plain, &protected, &password, &asked);
    let logged = ["statement-log Claim Holds", "logs-free Disclosure Fails"];
    prove_between(&MARIADB, &plain, &protected, &log, &logged);
    expect![[r#"
        authentication: enforced
        tls: enforced
        client-to-node: enforced
        authorisation: off
        at-rest: off
        audit: available but not enforced
        node-to-node: cannot tell
        proxy-roles: off
        authentication-caching: not offered by this product
        jmx-authentication: not offered by this product
    "#]]
    .assert_eq(&states(&protected));
}

/// Valkey is reported as Valkey. Its build without TLS is refused if TLS is requested, although it knows the settings
/// of TLS.
#[test]
fn valkey_is_proven() {
    let Some(install) = installed(&REDIS, "Valkey server v=9.", "valkey") else { return };
    let missing = protection(&Redis, "tls").needs(&install, &chosen!(REDIS, "tls" {}));
    assert_eq!(missing.expect_err("no TLS").what, "a Redis or Valkey server that was built with TLS (BUILD_TLS=yes)");

    let plain = start(&REDIS, &install, &[]);
    Redis.create(&plain.server, &plain.setup, &table()).expect("a table");
    let facts = Redis.facts(&plain.server, &plain.setup).expect("facts");
    assert!(facts.version.starts_with("Valkey 9."), "{facts:?}");
    let (acl, aof) = (chosen!(REDIS, "acl" {}), chosen!(REDIS, "aof" {}));
    let protected = start(&REDIS, &install, &[acl.clone(), aof.clone()]);
    prove_between(&REDIS, &plain, &protected, &acl, &["password-asked Claim Holds", "rights-enforced Claim Holds"]);
    prove_between(&REDIS, &plain, &protected, &aof, &["aof-written Claim Holds"]);
    let seen = Redis.inspect(&protected.server, &protected.setup).expect("an inspection");
    let state = |feature| seen.iter().find(|row| row.feature == feature).map(|row| row.state);
    assert_eq!(state(Feature::Authentication), Some(State::Enforced));
}
