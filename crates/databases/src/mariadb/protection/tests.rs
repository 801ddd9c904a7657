//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Content, Install, Place, Step};
use tithe_model::experiment;
use tithe_plugin::setup::Setup;

use super::ALL;
use crate::{
    mariadb::launch::launch,
    test_setup::{self, difference, every_way, plain},
};

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn shown(setup: &Setup) -> String {
    let install = Install { programs: "/usr/sbin".into(), version: String::new(), facts: BTreeMap::new() };
    test_setup::shown(&launch(&install, setup, &Place::on_loopback("/run/02-arm", 13306)), setup)
}

/// The lines that `protections` remove from a plain server's files and add to them.
fn check(protections: &[experiment::Protection], expect: Expect) {
    test_setup::check(ALL, protections, shown, expect);
}

#[test]
fn a_plain_server() {
    expect![[r#"
        Folder("/run/02-arm/data")
        Folder("/run/02-arm/tmp")
        Folder("/run/02-arm/binlog")
        write /run/02-arm/my.cnf 600
        [mariadbd]
        bind_address = 127.0.0.1
        datadir = /run/02-arm/data
        general_log_file = /run/02-arm/general.log
        innodb_buffer_pool_dump_at_shutdown = OFF
        innodb_buffer_pool_size = 256M
        innodb_log_file_size = 512M
        innodb_stats_auto_recalc = OFF
        max_connections = 300
        max_prepared_stmt_count = 1048576
        pid_file = /run/02-arm/server.pid
        port = 13306
        skip_name_resolve = ON
        socket = server.sock
        tmpdir = /run/02-arm/tmp
        write /run/02-arm/accounts.sql 600 Secret(***)
        run LC_ALL=C mariadb-install-db --defaults-file=/run/02-arm/my.cnf --basedir=/usr --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve
        serve LC_ALL=C /usr/sbin/mariadbd --defaults-file=/run/02-arm/my.cnf --init-file=/run/02-arm/accounts.sql
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 13306 }
        paths Paths { data: ["/run/02-arm/data", "/run/02-arm/tmp"], journal: ["/run/02-arm/data/ib_logfile0", "/run/02-arm/data/aria_log.00000001", "/run/02-arm/binlog"], logs: ["/run/02-arm/server.log", "/run/02-arm/audit.log", "/run/02-arm/general.log"] }
    "#]].assert_eq(&shown(&plain()));
}

#[test]
fn encryption() {
    check(
        &[chosen("encryption", &[])],
        expect![[r#"
        + write /m/mariadb-keys-02-arm 600 Secret(***)
        + aria_encrypt_tables = ON
        + encrypt_binlog = ON
        + encrypt_tmp_disk_tables = ON
        + encrypt_tmp_files = ON
        + file_key_management_encryption_algorithm = AES_CTR
        + file_key_management_filename = /m/mariadb-keys-02-arm
        + innodb_encrypt_log = ON
        + innodb_encrypt_tables = FORCE
        + innodb_encrypt_temporary_tables = ON
        + innodb_encryption_threads = 2
        + plugin_load_add = file_key_management
    "#]],
    );
    check(
        &[chosen("encryption", &[("cipher", "AES_CBC")])],
        expect![[r#"
        + write /m/mariadb-keys-02-arm 600 Secret(***)
        + aria_encrypt_tables = ON
        + encrypt_binlog = ON
        + encrypt_tmp_disk_tables = ON
        + encrypt_tmp_files = ON
        + file_key_management_encryption_algorithm = AES_CBC
        + file_key_management_filename = /m/mariadb-keys-02-arm
        + innodb_encrypt_log = ON
        + innodb_encrypt_tables = FORCE
        + innodb_encrypt_temporary_tables = ON
        + innodb_encryption_threads = 2
        + plugin_load_add = file_key_management
    "#]],
    );
}

/// Except for the second key in the key file, the server is that of an arm that keeps its key.
#[test]
fn keys_that_take_turns() {
    let (mut keeping, mut rotating) = (plain(), plain());
    test_setup::apply(ALL, &[chosen("encryption", &[])], &mut keeping);
    test_setup::apply(ALL, &[chosen("encryption", &[("rotate", "true")])], &mut rotating);
    assert_eq!(shown(&keeping), shown(&rotating));
    let key_file = |setup: &Setup| {
        let install = Install { programs: "/usr/sbin".into(), version: String::new(), facts: BTreeMap::new() };
        let steps = launch(&install, setup, &Place::on_loopback("/run/02-arm", 13306)).steps;
        let secrets = steps.into_iter().filter_map(|step| match step {
            Step::Write { path, content: Content::Secret(secret), .. } if path.starts_with("/m") => Some(secret),
            _ => None,
        });
        secrets.map(|secret| secret.expose_text().to_owned()).collect::<String>()
    };
    expect![[r#"
        1;0707070707070707070707070707070707070707070707070707070707070707
    "#]]
    .assert_eq(&key_file(&keeping));
    expect![[r#"
        1;0707070707070707070707070707070707070707070707070707070707070707
        2;0808080808080808080808080808080808080808080808080808080808080808
    "#]]
    .assert_eq(&key_file(&rotating));
}

#[test]
fn tls() {
    check(
        &[chosen("tls", &[])],
        expect![[r#"
        + require_secure_transport = ON
        + ssl_cert = /m/server.pem
        + ssl_key = /m/server.key
        + tls_version = TLSv1.3
    "#]],
    );
    check(
        &[chosen("tls", &[("version", "1.2"), ("mutual", "true")])],
        expect![[r#"
        + require_secure_transport = ON
        + ssl_ca = /m/ca.pem
        + ssl_cert = /m/server.pem
        + ssl_key = /m/server.key
        + tls_version = TLSv1.2
    "#]],
    );
}

#[test]
fn server_audit() {
    check(
        &[chosen("server-audit", &[])],
        expect![[r#"
        + plugin_load_add = server_audit
        + server_audit = FORCE_PLUS_PERMANENT
        + server_audit_events = CONNECT,QUERY
        + server_audit_file_path = /run/02-arm/audit.log
        + server_audit_file_rotate_size = 9223372036854775807
        + server_audit_logging = ON
        + server_audit_output_type = file
    "#]],
    );
    check(
        &[chosen("server-audit", &[("events", "QUERY_DML_NO_SELECT")])],
        expect![[r#"
        + plugin_load_add = server_audit
        + server_audit = FORCE_PLUS_PERMANENT
        + server_audit_events = QUERY_DML_NO_SELECT
        + server_audit_file_path = /run/02-arm/audit.log
        + server_audit_file_rotate_size = 9223372036854775807
        + server_audit_logging = ON
        + server_audit_output_type = file
    "#]],
    );
}

#[test]
fn general_log() {
    check(
        &[chosen("general-log", &[])],
        expect![[r#"
        + general_log = ON
        + log_output = FILE
    "#]],
    );
}

#[test]
fn a_password() {
    check(&[chosen("password", &[])], expect![[""]]);
    check(
        &[chosen("password", &[("plugin", "ed25519")])],
        expect![[r#"
        + plugin_load_add = auth_ed25519
    "#]],
    );
}

#[test]
fn columns_change_nothing_of_the_server() {
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn several_protections_stand_in_one_arm() {
    let all = [chosen("encryption", &[]), chosen("tls", &[]), chosen("server-audit", &[]), chosen("password", &[])];
    check(
        &all,
        expect![[r#"
        + write /m/mariadb-keys-02-arm 600 Secret(***)
        + aria_encrypt_tables = ON
        + encrypt_binlog = ON
        + encrypt_tmp_disk_tables = ON
        + encrypt_tmp_files = ON
        + file_key_management_encryption_algorithm = AES_CTR
        + file_key_management_filename = /m/mariadb-keys-02-arm
        + innodb_encrypt_log = ON
        + innodb_encrypt_tables = FORCE
        + innodb_encrypt_temporary_tables = ON
        + innodb_encryption_threads = 2
        + plugin_load_add = file_key_management;server_audit
        + require_secure_transport = ON
        + server_audit = FORCE_PLUS_PERMANENT
        + server_audit_events = CONNECT,QUERY
        + server_audit_file_path = /run/02-arm/audit.log
        + server_audit_file_rotate_size = 9223372036854775807
        + server_audit_logging = ON
        + server_audit_output_type = file
        + ssl_cert = /m/server.pem
        + ssl_key = /m/server.key
        + tls_version = TLSv1.3
    "#]],
    );
}

#[test]
fn settings_of_the_experiment_are_kept_but_cannot_add_lines() {
    let mut setup = plain();
    setup.settings.insert("log_bin".to_owned(), "ON".to_owned());
    setup.settings.insert("plugin_load_add".to_owned(), "metadata_lock_info".to_owned());
    setup.settings.insert("sql_mode".to_owned(), "\nssl_ca=/x #".to_owned());
    setup.settings.insert("a = 1\nport".to_owned(), "1".to_owned());
    test_setup::apply(ALL, &[chosen("server-audit", &[])], &mut setup);
    expect![[r#"
        + a___1_port = 1
        + log_bin = /run/02-arm/binlog/log
        + plugin_load_add = metadata_lock_info;server_audit
        + server_audit = FORCE_PLUS_PERMANENT
        + server_audit_events = CONNECT,QUERY
        + server_audit_file_path = /run/02-arm/audit.log
        + server_audit_file_rotate_size = 9223372036854775807
        + server_audit_logging = ON
        + server_audit_output_type = file
        + server_id = 1
        + sql_mode = " ssl_ca=/x #"
    "#]]
    .assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn a_proof_by_a_plugin_needs_the_plugin() {
    let protection = ALL.iter().find(|protection| protection.entry().id == "password").expect("a protection");
    let lacks = |plugin: &str| {
        let needs = protection.needs(&Install::default(), &chosen("password", &[("plugin", plugin)]));
        needs.err().map(|missing| missing.what)
    };
    assert_eq!(lacks("mysql_native_password"), None);
    assert_eq!(lacks("ed25519").as_deref(), Some("the plugin auth_ed25519 of MariaDB"));
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, shown));
}
