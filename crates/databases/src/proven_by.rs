//! By which checks each protection is proven, and that they claim what its options ask for. No server is needed.

use std::collections::BTreeSet;

use tithe_machine::launch::Install;
use tithe_model::{experiment, record::Role};
use tithe_plugin::protection::{Protection, ways};

use super::{all, left_out, test_setup};

/// Product, protection, options, and the ids of the checks: disclosures in parentheses.
type Proven = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const PROVEN: &[Proven] = &[
    (
        "sqlite",
        "page-encryption",
        &[],
        "header disk-canary journal-canary wrong-key no-repeated-ciphertext key-apart (tamper)",
    ),
    (
        "duckdb",
        "encryption",
        &[],
        "header disk-canary journal-canary temporary-canary wrong-key crypto-provider key-apart",
    ),
    (
        "duckdb",
        "encryption",
        &[("temporary_files", "false")],
        "header disk-canary journal-canary wrong-key crypto-provider key-apart",
    ),
    ("postgres", "pgaudit", &[], "audit-complete (logs-free) (pgcrypto-trap)"),
    ("postgres", "pgaudit", &[("by", "object")], "audit-complete (logs-free)"),
    ("postgres", "pgaudit", &[("log", "ddl,role")], "definitions-logged (logs-free)"),
    ("postgres", "log-statement", &[], "statement-log (logs-free) (pgcrypto-trap)"),
    ("postgres", "row-security", &[], "rows-apart (row-plan)"),
    ("postgres", "scram", &[], "password-asked (recorders)"),
    ("postgres", "scram", &[("iterations", "4096")], "password-asked scram-iterations (recorders)"),
    ("postgres", "checksums", &[], "checksums-on"),
    ("mariadb", "encryption", &[], "encryption-in-force disk-canary journal-canary key-apart (recorders)"),
    (
        "mariadb",
        "encryption",
        &[("rotate", "true")],
        "encryption-in-force disk-canary journal-canary key-apart key-rotated (recorders)",
    ),
    ("mariadb", "server-audit", &[], "audit-complete (logs-free)"),
    ("mariadb", "general-log", &[], "statement-log (logs-free)"),
    ("mariadb", "password", &[], "password-asked (recorders)"),
    ("mysql", "encryption", &[], "encryption-in-force disk-canary keyring-apart journal-canary (recorders)"),
    (
        "mysql",
        "encryption",
        &[("redo", "false"), ("undo", "false"), ("binlog", "false")],
        "encryption-in-force disk-canary keyring-apart (recorders)",
    ),
    ("mysql", "general-log", &[], "statement-log (logs-free)"),
    ("mysql", "password", &[], "password-asked (recorders)"),
    ("redis", "requirepass", &[], "password-asked"),
    ("redis", "acl", &[], "password-asked rights-enforced"),
    ("redis", "aof", &[], "aof-written"),
    ("memcached", "auth-file", &[], "password-asked"),
    ("etcd", "peer-tls", &[], "peer-tls"),
    ("etcd", "password", &[], "password-asked rights-enforced"),
    ("cassandra", "internode-tls", &[], "internode-tls"),
    ("cassandra", "password", &[], "password-asked rights-enforced auth-caching"),
    ("cassandra", "audit-file", &[], "audit-complete (logs-free)"),
    ("cassandra", "audit-bin", &[], "audit-complete (logs-free)"),
    ("cassandra", "commitlog-encryption", &[], "commitlog-encrypted (data-files-clear)"),
    ("opensearch", "internode-tls", &[], "internode-tls"),
    ("opensearch", "password", &[], "password-asked rights-enforced"),
    ("opensearch", "documents", &[], "rows-apart"),
    ("opensearch", "audit", &[], "audit-complete (logs-free)"),
    ("mongodb", "scram", &[], "password-asked"),
    ("mongodb", "audit", &[], "audit-complete"),
    ("mongodb", "encryption", &[], "encryption-in-force disk-canary journal-canary (recorders)"),
];

/// Product and protection, and an option of which each value is another claim.
const CLAIMED: &[(&str, &str, &str)] = &[
    ("duckdb", "encryption", "cipher"),
    ("duckdb", "encryption", "provider"),
    ("duckdb", "encryption", "temporary_files"),
    ("postgres", "pgaudit", "log"),
    ("postgres", "pgaudit", "by"),
    ("postgres", "scram", "iterations"),
    ("mariadb", "encryption", "cipher"),
    ("mariadb", "encryption", "rotate"),
    ("mariadb", "server-audit", "events"),
    ("mysql", "encryption", "redo"),
    ("mysql", "encryption", "undo"),
    ("mysql", "encryption", "binlog"),
    ("redis", "aof", "fsync"),
    ("cassandra", "password", "caching"),
    ("opensearch", "audit", "layers"),
    ("mongodb", "audit", "operations"),
    ("mongodb", "encryption", "cipher"),
    ("postgres", "tls", "version"),
    ("postgres", "tls", "mutual"),
    ("postgres", "tls", "suite"),
    ("postgres", "tls", "key"),
    ("postgres", "tls", "chain"),
    ("postgres", "tls", "resumption"),
];

/// Product and protection that needs more than the server, such as a library or a program; TLS is left out.
const NEEDING: [(&str, &str); 12] = [
    ("duckdb", "encryption"),
    ("postgres", "pgaudit"),
    ("mariadb", "encryption"),
    ("mariadb", "server-audit"),
    ("mysql", "encryption"),
    ("cassandra", "commitlog-encryption"),
    ("opensearch", "internode-tls"),
    ("opensearch", "password"),
    ("opensearch", "documents"),
    ("opensearch", "audit"),
    ("mongodb", "audit"),
    ("mongodb", "encryption"),
];

/// The protections of `product`; none if this build does not have it.
fn protections(product: &str) -> &'static [&'static dyn Protection] {
    match all().iter().find(|database| database.id() == product) {
        Some(database) => database.protections(),
        None => {
            assert!(left_out().contains(&product), "{product} is no product");
            &[]
        }
    }
}

fn named(protections: &[&'static dyn Protection], id: &str) -> &'static dyn Protection {
    *protections.iter().find(|protection| protection.entry().id == id).expect("a protection")
}

fn checks(protection: &dyn Protection, chosen: &experiment::Protection) -> String {
    let name = |id: &str, role: Role| match role {
        Role::Claim => id.to_owned(),
        Role::Strengthens => format!("+{id}"),
        Role::Disclosure => format!("({id})"),
    };
    let checks = protection.evidence(chosen);
    checks.iter().map(|check| name(check.id(), check.entry().role)).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_protection_has_its_checks() {
    for (product, id, options, expected) in PROVEN {
        let protections = protections(product);
        if protections.is_empty() {
            continue;
        }
        let chosen = test_setup::chosen(protections, id, options);
        assert_eq!(checks(named(protections, id), &chosen), *expected, "{product} {id} {options:?}");
    }
}

#[test]
fn tls_is_proven_alike_for_each_product() {
    const TLS: &str = "tls-negotiated tls-spoken wire-canary (tls-enforced)";
    for database in all() {
        for protection in database.protections().iter().filter(|protection| protection.entry().id == "tls") {
            for chosen in ways(*protection) {
                let resumes = chosen.options.get("resumption") == Some(&experiment::OptionValue::Flag(true));
                let expected = if resumes { format!("{TLS} (tls-resumed)") } else { TLS.to_owned() };
                assert_eq!(checks(*protection, &chosen), expected, "{} {:?}", database.id(), chosen.options);
            }
        }
    }
}

#[test]
fn every_way_to_choose_a_protection_has_a_claim() {
    for database in all() {
        for protection in database.protections() {
            for chosen in ways(*protection) {
                let is_claimed = protection.evidence(&chosen).iter().any(|check| check.entry().role == Role::Claim);
                assert!(is_claimed, "{} {} {:?}", database.id(), chosen.id, chosen.options);
            }
        }
    }
}

#[test]
fn what_an_installation_lacks_for_a_protection_is_told() {
    for database in all() {
        for protection in database.protections().iter().filter(|protection| protection.entry().id != "tls") {
            let (product, id) = (database.id(), protection.entry().id);
            let lacks = protection.needs(&Install::default(), &ways(*protection)[0]).is_err();
            assert_eq!(lacks, NEEDING.contains(&(product, id)), "{product} {id}");
        }
    }
}

#[test]
fn what_an_option_asks_for_is_claimed() {
    for (product, id, option) in CLAIMED {
        let protections = protections(product);
        if protections.is_empty() {
            continue;
        }
        let protection = named(protections, id);
        let ways = ways(protection);
        let usual = &ways[0].options;
        let is_usual = |name: &String, value: &experiment::OptionValue| usual.get(name) == Some(value);
        let values =
            ways.iter().filter(|way| way.options.iter().all(|(name, value)| name == option || is_usual(name, value)));
        let claims = |way: &experiment::Protection| {
            protection.evidence(way).iter().map(|check| check.claim() + "\n").collect::<String>()
        };
        let claims: Vec<String> = values.map(claims).collect();
        let different: BTreeSet<&String> = claims.iter().collect();
        assert!(claims.len() > 1, "{product} {id} {option}");
        assert_eq!(different.len(), claims.len(), "{product} {id} {option}: {claims:#?}");
    }
}
