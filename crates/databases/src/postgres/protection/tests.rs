//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Install, Place};
use tithe_model::experiment;
use tithe_plugin::setup::{Authentication, Setup, TlsVersion, Transport};

use super::ALL;
use crate::{
    postgres::launch::launch,
    test_setup::{self, difference, every_way, plain},
};

fn install(version: &str) -> Install {
    Install { programs: "/pg/bin".into(), version: version.to_owned(), facts: BTreeMap::new() }
}

fn place() -> Place {
    Place::on_loopback("/run/arm", 15432)
}

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn apply(protections: &[experiment::Protection], setup: &mut Setup) {
    test_setup::apply(ALL, protections, setup);
}

/// Everything that starts a server, as text.
fn shown(setup: &Setup, version: &str) -> String {
    test_setup::shown(&launch(&install(version), setup, &place()), setup)
}

/// The lines that `protections` remove from a plain server's files and add to them.
fn check(protections: &[experiment::Protection], expect: Expect) {
    test_setup::check(ALL, protections, |setup| shown(setup, "postgres (PostgreSQL) 15.18"), expect);
}

/// What changes if a server listens on `address`.
fn listening(address: &str, setup: &Setup) -> String {
    let there = Place { listen: address.parse().expect("an address"), ..place() };
    let shown =
        |place: &Place| test_setup::shown(&launch(&install("postgres (PostgreSQL) 15.18"), setup, place), setup);
    difference(&shown(&place()), &shown(&there))
}

#[test]
fn clients_come_from_where_the_server_is_reached() {
    let mut setup = plain();
    let mut told = String::new();
    for address in ["127.0.0.2", "::1", "192.0.2.5"] {
        told += &format!("{address}\n{}", listening(address, &setup));
    }
    setup.authentication = Authentication::Password { mechanism: "scram-sha-256".to_owned() };
    for address in ["192.0.2.5", "2001:db8::5"] {
        told += &format!("with a password, {address}\n{}", listening(address, &setup));
    }
    setup.transport = Transport::tls(TlsVersion::V1_3, true);
    told += &format!("and with TLS\n{}", listening("192.0.2.5", &setup));
    expect![[r#"
        127.0.0.2
        - listen_addresses = '127.0.0.1'
        - stop by signal 2 at Tcp { host: "127.0.0.1", port: 15432 }
        + listen_addresses = '127.0.0.2'
        + stop by signal 2 at Tcp { host: "127.0.0.2", port: 15432 }
        ::1
        - listen_addresses = '127.0.0.1'
        - host all all 127.0.0.1/32 trust
        - stop by signal 2 at Tcp { host: "127.0.0.1", port: 15432 }
        + listen_addresses = '::1'
        + host all all ::1/128 trust
        + stop by signal 2 at Tcp { host: "::1", port: 15432 }
        192.0.2.5
        - listen_addresses = '127.0.0.1'
        - stop by signal 2 at Tcp { host: "127.0.0.1", port: 15432 }
        + listen_addresses = '192.0.2.5'
        + stop by signal 2 at Tcp { host: "192.0.2.5", port: 15432 }
        with a password, 192.0.2.5
        - listen_addresses = '127.0.0.1'
        - host all all 127.0.0.1/32 scram-sha-256
        - stop by signal 2 at Tcp { host: "127.0.0.1", port: 15432 }
        + listen_addresses = '192.0.2.5'
        + host all all 0.0.0.0/0 scram-sha-256
        + stop by signal 2 at Tcp { host: "192.0.2.5", port: 15432 }
        with a password, 2001:db8::5
        - listen_addresses = '127.0.0.1'
        - host all all 127.0.0.1/32 scram-sha-256
        - stop by signal 2 at Tcp { host: "127.0.0.1", port: 15432 }
        + listen_addresses = '2001:db8::5'
        + host all all ::/0 scram-sha-256
        + stop by signal 2 at Tcp { host: "2001:db8::5", port: 15432 }
        and with TLS
        - listen_addresses = '127.0.0.1'
        - hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
        - stop by signal 2 at Tcp { host: "127.0.0.1", port: 15432 }
        + listen_addresses = '192.0.2.5'
        + hostssl all all 0.0.0.0/0 scram-sha-256 clientcert=verify-ca
        + stop by signal 2 at Tcp { host: "192.0.2.5", port: 15432 }
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_plain_server() {
    expect![[r#"
        run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A trust --no-locale -E UTF8 --no-sync
        write /run/arm/data/postgresql.conf 600
        autovacuum = 'off'
        checkpoint_timeout = '1h'
        dynamic_shared_memory_type = 'mmap'
        jit = 'off'
        listen_addresses = '127.0.0.1'
        log_destination = 'stderr'
        log_timezone = 'UTC'
        logging_collector = 'off'
        max_connections = '300'
        max_wal_size = '16GB'
        port = '15432'
        shared_buffers = '256MB'
        ssl = 'off'
        timezone = 'UTC'
        unix_socket_directories = ''
        write /run/arm/data/pg_hba.conf 600
        host all all 127.0.0.1/32 trust
        serve LC_ALL=C /pg/bin/postgres -D /run/arm/data
        stop by signal 2 at Tcp { host: "127.0.0.1", port: 15432 }
        paths Paths { data: ["/run/arm/data/base", "/run/arm/data/global", "/run/arm/data/pg_logical", "/run/arm/data/pg_replslot", "/run/arm/data/pg_stat_tmp", "/run/arm/data/pg_twophase"], journal: ["/run/arm/data/pg_wal"], logs: ["/run/arm/server.log"] }
    "#]].assert_eq(&shown(&plain(), "postgres (PostgreSQL) 15.18"));
}

#[test]
fn a_log_that_a_process_of_the_server_writes() {
    let changes = |value: &str| {
        let mut setup = plain();
        setup.settings.insert("logging_collector".to_owned(), value.to_owned());
        let version = "postgres (PostgreSQL) 15.18";
        difference(&shown(&plain(), version), &shown(&setup, version))
    };
    expect![[r#"
        - logging_collector = 'off'
        + log_directory = '/run/arm'
        + log_filename = 'server.log'
        + log_rotation_age = '0'
        + log_rotation_size = '0'
        + logging_collector = 'on'
    "#]]
    .assert_eq(&changes("on"));
    for off in ["Off", "of", "F", "no", "0"] {
        assert!(!changes(off).contains("log_directory"), "{off}");
    }
    for on in ["o", "yes", "1", ""] {
        assert!(changes(on).contains("log_directory"), "{on}");
    }
}

#[test]
fn tls() {
    check(
        &[chosen("tls", &[])],
        expect![[r#"
        - ssl = 'off'
        - host all all 127.0.0.1/32 trust
        + ssl = 'on'
        + ssl_cert_file = '/m/server.pem'
        + ssl_key_file = '/m/server.key'
        + ssl_max_protocol_version = 'TLSv1.3'
        + ssl_min_protocol_version = 'TLSv1.3'
        + hostssl all all 127.0.0.1/32 trust
    "#]],
    );
}

#[test]
fn tls_1_2() {
    check(
        &[chosen("tls", &[("version", "1.2")])],
        expect![[r#"
        - ssl = 'off'
        - host all all 127.0.0.1/32 trust
        + ssl = 'on'
        + ssl_cert_file = '/m/server.pem'
        + ssl_key_file = '/m/server.key'
        + ssl_max_protocol_version = 'TLSv1.2'
        + ssl_min_protocol_version = 'TLSv1.2'
        + hostssl all all 127.0.0.1/32 trust
    "#]],
    );
}

#[test]
fn mutual_tls() {
    check(
        &[chosen("tls", &[("mutual", "true")])],
        expect![[r#"
        - ssl = 'off'
        - host all all 127.0.0.1/32 trust
        + ssl = 'on'
        + ssl_ca_file = '/m/ca.pem'
        + ssl_cert_file = '/m/server.pem'
        + ssl_key_file = '/m/server.key'
        + ssl_max_protocol_version = 'TLSv1.3'
        + ssl_min_protocol_version = 'TLSv1.3'
        + hostssl all all 127.0.0.1/32 trust clientcert=verify-ca
    "#]],
    );
}

#[test]
fn pgaudit() {
    check(
        &[chosen("pgaudit", &[])],
        expect![[r#"
        + pgaudit.log = 'read,write'
        + pgaudit.log_catalog = 'off'
        + pgaudit.log_parameter = 'on'
        + shared_preload_libraries = 'pgaudit'
        + then CREATE EXTENSION IF NOT EXISTS pgaudit SCHEMA public
    "#]],
    );
}

#[test]
fn pgaudit_of_writes_without_parameters() {
    check(
        &[chosen("pgaudit", &[("log", "write"), ("parameter", "false")])],
        expect![[r#"
        + pgaudit.log = 'write'
        + pgaudit.log_catalog = 'off'
        + pgaudit.log_parameter = 'off'
        + shared_preload_libraries = 'pgaudit'
        + then CREATE EXTENSION IF NOT EXISTS pgaudit SCHEMA public
    "#]],
    );
}

#[test]
fn log_statement() {
    check(
        &[chosen("log-statement", &[])],
        expect![[r#"
        + log_statement = 'all'
    "#]],
    );
}

#[test]
fn scram() {
    check(
        &[chosen("scram", &[])],
        expect![[r#"
        - run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A trust --no-locale -E UTF8 --no-sync
        - host all all 127.0.0.1/32 trust
        + write /run/arm/password 600 Secret(***)
        + run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A scram-sha-256 --pwfile=/run/arm/password --no-locale -E UTF8 --no-sync
        + password_encryption = 'scram-sha-256'
        + host all all 127.0.0.1/32 scram-sha-256
    "#]],
    );
}

#[test]
fn iterations_of_scram() {
    check(
        &[chosen("scram", &[("iterations", "10000")])],
        expect![[r#"
        - run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A trust --no-locale -E UTF8 --no-sync
        - host all all 127.0.0.1/32 trust
        + write /run/arm/password 600 Secret(***)
        + run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A scram-sha-256 --pwfile=/run/arm/password --no-locale -E UTF8 --no-sync -c scram_iterations=10000
        + password_encryption = 'scram-sha-256'
        + scram_iterations = '10000'
        + host all all 127.0.0.1/32 scram-sha-256
    "#]],
    );
}

#[test]
fn checksums() {
    check(
        &[chosen("checksums", &[])],
        expect![[r#"
        - run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A trust --no-locale -E UTF8 --no-sync
        + run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A trust --no-locale -E UTF8 --no-sync --data-checksums
    "#]],
    );
}

#[test]
fn columns_change_nothing_of_the_server() {
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn several_protections_stand_in_one_arm() {
    check(
        &[chosen("tls", &[("mutual", "true")]), chosen("scram", &[]), chosen("pgaudit", &[("log", "read")])],
        expect![[r#"
            - run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A trust --no-locale -E UTF8 --no-sync
            - ssl = 'off'
            - host all all 127.0.0.1/32 trust
            + write /run/arm/password 600 Secret(***)
            + run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A scram-sha-256 --pwfile=/run/arm/password --no-locale -E UTF8 --no-sync
            + password_encryption = 'scram-sha-256'
            + pgaudit.log = 'read'
            + pgaudit.log_catalog = 'off'
            + pgaudit.log_parameter = 'on'
            + shared_preload_libraries = 'pgaudit'
            + ssl = 'on'
            + ssl_ca_file = '/m/ca.pem'
            + ssl_cert_file = '/m/server.pem'
            + ssl_key_file = '/m/server.key'
            + ssl_max_protocol_version = 'TLSv1.3'
            + ssl_min_protocol_version = 'TLSv1.3'
            + hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
            + then CREATE EXTENSION IF NOT EXISTS pgaudit SCHEMA public
        "#]],
    );
}

#[test]
fn from_18_on_checksums_are_switched_off_where_not_asked_for() {
    let (old, new) = ("postgres (PostgreSQL) 17.5", "postgres (PostgreSQL) 18.1");
    expect![[r#"
        - run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A trust --no-locale -E UTF8 --no-sync
        + run LC_ALL=C /pg/bin/initdb -D /run/arm/data -U tithe -A trust --no-locale -E UTF8 --no-sync --no-data-checksums
    "#]].assert_eq(&difference(&shown(&plain(), old), &shown(&plain(), new)));
    let mut setup = plain();
    apply(&[chosen("checksums", &[])], &mut setup);
    assert_eq!(shown(&setup, old), shown(&setup, new));
}

#[test]
fn settings_of_the_experiment_are_kept_but_cannot_add_lines() {
    let mut setup = plain();
    setup.settings.insert("shared_preload_libraries".to_owned(), "pg_stat_statements".to_owned());
    setup.settings.insert("shared_buffers".to_owned(), "1GB".to_owned());
    setup.settings.insert("application_name".to_owned(), "it's\nssl = off \\".to_owned());
    setup.settings.insert("work_mem = 1\nssl".to_owned(), "on".to_owned());
    apply(&[chosen("pgaudit", &[])], &mut setup);
    expect![[r#"
        - shared_buffers = '256MB'
        + application_name = 'it''s ssl = off \\'
        + pgaudit.log = 'read,write'
        + pgaudit.log_catalog = 'off'
        + pgaudit.log_parameter = 'on'
        + shared_buffers = '1GB'
        + shared_preload_libraries = 'pg_stat_statements,pgaudit'
        + work_mem___1_ssl = 'on'
        + then CREATE EXTENSION IF NOT EXISTS pgaudit SCHEMA public
    "#]]
    .assert_eq(&difference(
        &shown(&plain(), "postgres (PostgreSQL) 15.18"),
        &shown(&setup, "postgres (PostgreSQL) 15.18"),
    ));
}

#[test]
fn what_is_missing_is_named_with_its_package() {
    let pgaudit = ALL.iter().find(|protection| protection.entry().id == "pgaudit").expect("a protection");
    let mut install = install("postgres (PostgreSQL) 16.2");
    install.facts.insert("libraries".to_owned(), "/nowhere/lib".to_owned());
    let missing = pgaudit.needs(&install, &chosen("pgaudit", &[])).expect_err("nothing there");
    expect![[r#"
        Missing {
            what: "the extension pgaudit for PostgreSQL 16",
            looked_in: [
                "/nowhere/lib/pgaudit.so",
                "/nowhere/lib/pgaudit.dylib",
            ],
            how_to_install: [
                "Debian, Ubuntu: apt-get install postgresql-16-pgaudit",
                "Fedora, RHEL (repository of postgresql.org): dnf install 'pgaudit*_16'",
            ],
        }
    "#]]
    .assert_debug_eq(&missing);
}

#[test]
fn iterations_need_a_server_of_16_and_pgaudit_needs_its_library() {
    let is_met = |id: &str, options: &[(&str, &str)], install: &Install| {
        let protection = ALL.iter().find(|protection| protection.entry().id == id).expect("a protection");
        protection.needs(install, &chosen(id, options)).is_ok()
    };
    for (version, iterations, met) in
        [("15.18", "any", true), ("15.18", "4096", false), ("16.0", "4096", true), ("17.2", "any", true)]
    {
        let install = install(&format!("postgres (PostgreSQL) {version}"));
        assert_eq!(is_met("scram", &[("iterations", iterations)], &install), met, "{version} {iterations}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut install = install("postgres (PostgreSQL) 16.2");
    install.facts.insert("libraries".to_owned(), folder.path().display().to_string());
    assert!(!is_met("pgaudit", &[], &install));
    std::fs::write(folder.path().join("pgaudit.so"), b"").expect("written");
    assert!(is_met("pgaudit", &[], &install));
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, |setup| shown(setup, "postgres (PostgreSQL) 15.18")));
}

#[test]
fn row_security() {
    check(
        &[chosen("row-security", &[])],
        expect![[r#"
        + each table ALTER TABLE {table} ADD COLUMN tithe_tenant text NOT NULL; ALTER TABLE {table} ALTER COLUMN tithe_tenant SET DEFAULT current_setting('tithe.tenant')
        + each table ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY of_tenant ON {table} USING (tithe_tenant = current_setting('tithe.tenant'))
        + each table DO $$ BEGIN IF (SELECT oid = 10 FROM pg_roles WHERE rolname = session_user AND rolname = 'tithe') THEN IF to_regrole('tithe_client') IS NULL THEN CREATE ROLE tithe_client; END IF; GRANT USAGE ON SCHEMA {space} TO tithe_client; GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO tithe_client; END IF; END $$
    "#]],
    );
    check(
        &[chosen("row-security", &[("lookup", "subquery")])],
        expect![[r#"
        + each table CREATE TABLE {members} (member text PRIMARY KEY, tenant text NOT NULL); COMMENT ON TABLE {members} IS 'made by tithe'; INSERT INTO {members} SELECT 'member ' || n, 'tenant ' || n FROM generate_series(1, 999) AS n UNION ALL SELECT 'one', 'one'; ANALYZE {members}
        + each table ALTER TABLE {table} ADD COLUMN tithe_tenant text NOT NULL; ALTER TABLE {table} ALTER COLUMN tithe_tenant SET DEFAULT current_setting('tithe.tenant')
        + each table ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY of_tenant ON {table} USING (tithe_tenant IN (SELECT tenant FROM {members} WHERE member = current_setting('tithe.tenant')))
        + each table DO $$ BEGIN IF (SELECT oid = 10 FROM pg_roles WHERE rolname = session_user AND rolname = 'tithe') THEN IF to_regrole('tithe_client') IS NULL THEN CREATE ROLE tithe_client; END IF; GRANT USAGE ON SCHEMA {space} TO tithe_client; GRANT SELECT ON {members} TO tithe_client; GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO tithe_client; END IF; END $$
    "#]],
    );
}
