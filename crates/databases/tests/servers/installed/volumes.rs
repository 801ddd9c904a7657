//! Servers on volumes: what a claim needs from a real server, which writes as another account and keeps its files open.

use tithe_databases::all;
use tithe_model::experiment::{Arm, OptionValue};
use tithe_plugin::product::Product;

use super::{Sandbox, sandbox::chosen, table, verdicts};

/// Starts a server on a plain volume and one on the volume `id`, and runs every check on both.
fn prove(database: &str, id: &str) {
    let database: &'static dyn Product =
        *all().iter().find(|found| found.id() == database).expect("a database of this build");
    let volume = chosen(database, id, &[("size_mb", OptionValue::Number(1000.0))]);
    let arm = |protections| Arm::new("", protections);
    let arms = [arm(Vec::new()), arm(vec![volume.clone()])];
    let Some(protected) = Sandbox::start_beside(database, std::slice::from_ref(&volume), &arms) else { return };
    let plain = Sandbox::start_beside(database, &[], &arms).expect("a plain server where there is a protected one");
    for sandbox in [&plain, &protected] {
        assert!(sandbox.setup.volume.is_some(), "every arm stands on a volume of the same size");
        database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    }
    let seen = verdicts(&plain, &protected, &volume);
    // Which kernel driver encrypts is reported, and is not a claim.
    let claims: Vec<&str> = seen.lines().filter(|line| line.contains(" Claim ")).collect();
    let proven =
        ["raw-image Claim Holds", "volume-header Claim Holds", "volume-key Claim Holds", "key-apart Claim Holds"];
    assert_eq!(claims, proven);
}

#[test]
fn postgres_on_fscrypt() {
    prove("postgres", "volume-fscrypt");
}

#[test]
fn postgres_on_gocryptfs() {
    prove("postgres", "volume-gocryptfs");
}

#[test]
fn mariadb_on_fscrypt() {
    prove("mariadb", "volume-fscrypt");
}

#[test]
fn redis_on_gocryptfs() {
    prove("redis", "volume-gocryptfs");
}
