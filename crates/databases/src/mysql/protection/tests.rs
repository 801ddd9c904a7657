//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Install, Place};
use tithe_model::experiment;
use tithe_plugin::setup::Setup;

use super::ALL;
use crate::{
    mysql::launch::{launch, memory_needed, stored},
    mysql_family::PLUGINS,
    test_setup::{self, difference, every_way, plain},
};

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn install(version: &str) -> Install {
    let facts = BTreeMap::from([(PLUGINS.to_owned(), "/usr/lib/mysql/plugin".to_owned())]);
    Install { programs: "/usr/sbin".into(), version: version.to_owned(), facts }
}

fn shown(setup: &Setup) -> String {
    let place = Place::on_loopback("/run/02-arm", 13306);
    test_setup::shown(&launch(&install(""), setup, &place), setup)
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
        [mysqld]
        auto_generate_certs = OFF
        basedir = /usr
        bind_address = 127.0.0.1
        datadir = /run/02-arm/data
        general_log_file = /run/02-arm/general.log
        innodb_buffer_pool_dump_at_shutdown = OFF
        innodb_buffer_pool_size = 256M
        innodb_redo_log_capacity = 512M
        innodb_stats_auto_recalc = OFF
        log_bin = /run/02-arm/binlog/log
        max_connections = 300
        max_prepared_stmt_count = 1048576
        mysqlx = OFF
        pid_file = /run/02-arm/server.pid
        port = 13306
        server_id = 1
        skip_name_resolve = ON
        socket = server.sock
        tmpdir = /run/02-arm/tmp
        write /run/02-arm/accounts.sql 600 Secret(***)
        run LC_ALL=C UMASK=0600 /usr/sbin/mysqld --defaults-file=/run/02-arm/my.cnf --initialize-insecure
        serve LC_ALL=C UMASK=0600 /usr/sbin/mysqld --defaults-file=/run/02-arm/my.cnf --init-file=/run/02-arm/accounts.sql
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 13306 }
        paths Paths { data: ["/run/02-arm/data", "/run/02-arm/tmp"], journal: ["/run/02-arm/data/#innodb_redo", "/run/02-arm/data/undo_001", "/run/02-arm/data/undo_002", "/run/02-arm/binlog"], logs: ["/run/02-arm/server.log", "/run/02-arm/general.log"] }
    "#]].assert_eq(&shown(&plain()));
}

#[test]
fn encryption() {
    check(
        &[chosen("encryption", &[])],
        expect![[r#"
        - run LC_ALL=C UMASK=0600 /usr/sbin/mysqld --defaults-file=/run/02-arm/my.cnf --initialize-insecure
        - serve LC_ALL=C UMASK=0600 /usr/sbin/mysqld --defaults-file=/run/02-arm/my.cnf --init-file=/run/02-arm/accounts.sql
        + Folder("/run/02-arm/keyring")
        + Folder("/run/02-arm/program")
        + Folder("/run/02-arm/plugins")
        + Link { path: "/run/02-arm/program/mysqld", to: "/usr/sbin/mysqld" }
        + write /run/02-arm/program/mysqld.my 400
        + { "components": "file://component_keyring_file" }
        + Link { path: "/run/02-arm/plugins/component_keyring_file.so", to: "/usr/lib/mysql/plugin/component_keyring_file.so" }
        + Link { path: "/run/02-arm/plugins/component_reference_cache.so", to: "/usr/lib/mysql/plugin/component_reference_cache.so" }
        + write /run/02-arm/plugins/component_keyring_file.cnf 400
        + { "path": "/run/02-arm/keyring/keys", "read_only": false }
        + binlog_encryption = ON
        + default_table_encryption = ON
        + innodb_redo_log_encrypt = ON
        + innodb_undo_log_encrypt = ON
        + plugin_dir = /run/02-arm/plugins
        + table_encryption_privilege_check = ON
        + run LC_ALL=C UMASK=0600 /run/02-arm/program/mysqld --defaults-file=/run/02-arm/my.cnf --initialize-insecure
        + serve LC_ALL=C UMASK=0600 /run/02-arm/program/mysqld --defaults-file=/run/02-arm/my.cnf --init-file=/run/02-arm/accounts.sql
    "#]],
    );
    check(
        &[chosen("encryption", &[("redo", "false"), ("undo", "false"), ("binlog", "false")])],
        expect![[r#"
        - run LC_ALL=C UMASK=0600 /usr/sbin/mysqld --defaults-file=/run/02-arm/my.cnf --initialize-insecure
        - serve LC_ALL=C UMASK=0600 /usr/sbin/mysqld --defaults-file=/run/02-arm/my.cnf --init-file=/run/02-arm/accounts.sql
        + Folder("/run/02-arm/keyring")
        + Folder("/run/02-arm/program")
        + Folder("/run/02-arm/plugins")
        + Link { path: "/run/02-arm/program/mysqld", to: "/usr/sbin/mysqld" }
        + write /run/02-arm/program/mysqld.my 400
        + { "components": "file://component_keyring_file" }
        + Link { path: "/run/02-arm/plugins/component_keyring_file.so", to: "/usr/lib/mysql/plugin/component_keyring_file.so" }
        + Link { path: "/run/02-arm/plugins/component_reference_cache.so", to: "/usr/lib/mysql/plugin/component_reference_cache.so" }
        + write /run/02-arm/plugins/component_keyring_file.cnf 400
        + { "path": "/run/02-arm/keyring/keys", "read_only": false }
        + binlog_encryption = OFF
        + default_table_encryption = ON
        + innodb_redo_log_encrypt = OFF
        + innodb_undo_log_encrypt = OFF
        + plugin_dir = /run/02-arm/plugins
        + table_encryption_privilege_check = ON
        + run LC_ALL=C UMASK=0600 /run/02-arm/program/mysqld --defaults-file=/run/02-arm/my.cnf --initialize-insecure
        + serve LC_ALL=C UMASK=0600 /run/02-arm/program/mysqld --defaults-file=/run/02-arm/my.cnf --init-file=/run/02-arm/accounts.sql
    "#]],
    );
}

/// Accounts are created by statements that are not shown, so their files are checked here.
#[test]
fn accounts() {
    use tithe_machine::launch::{Content, Step};
    let statements = |listen: &str, protections: &[experiment::Protection]| {
        let mut setup = plain();
        test_setup::apply(ALL, protections, &mut setup);
        let place = Place { listen: listen.parse().expect("an address"), ..Place::on_loopback("/run/02-arm", 13306) };
        let launch = launch(&install(""), &setup, &place);
        let secrets = launch.steps.into_iter().filter_map(|step| match step {
            Step::Write { content: Content::Secret(secret), .. } => Some(secret.expose_text().to_owned()),
            _ => None,
        });
        secrets.collect::<String>()
    };
    expect![[r#"
        SET sql_log_bin = 0;
        DROP USER IF EXISTS root@localhost, tithe@'127.0.0.1';
        CREATE USER tithe@'127.0.0.1';
        GRANT ALL ON *.* TO tithe@'127.0.0.1';
    "#]]
    .assert_eq(&statements("127.0.0.2", &[]));
    let all = [chosen("encryption", &[]), chosen("tls", &[("mutual", "true")]), chosen("password", &[])];
    expect![[r#"
        SET sql_log_bin = 0;
        DROP USER IF EXISTS root@localhost, tithe@'127.0.0.1';
        CREATE USER tithe@'127.0.0.1' IDENTIFIED WITH caching_sha2_password BY 'correct horse' REQUIRE X509;
        GRANT ALL ON *.* TO tithe@'127.0.0.1';
        ALTER TABLESPACE mysql ENCRYPTION = 'Y';
        ALTER TABLE sys.sys_config ENCRYPTION = 'Y';
    "#]]
    .assert_eq(&statements("127.0.0.1", &all));
    expect![[r#"
        SET sql_log_bin = 0;
        DROP USER IF EXISTS root@localhost, tithe@'%';
        CREATE USER tithe@'%' IDENTIFIED WITH caching_sha2_password BY 'correct horse';
        GRANT ALL ON *.* TO tithe@'%';
    "#]]
    .assert_eq(&statements("192.0.2.5", &[chosen("password", &[])]));
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
fn passwords_and_columns_change_nothing_of_the_configuration() {
    check(&[chosen("password", &[])], expect![[""]]);
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn a_proof_that_a_version_lacks_is_told_before_anything_starts() {
    let native = chosen("password", &[("plugin", "mysql_native_password")]);
    let protection = ALL.iter().find(|protection| protection.entry().id == "password").expect("a protection");
    let needs =
        |version: &str| protection.needs(&install(&format!("mysqld  Ver {version} for Linux on x86_64")), &native);
    assert_eq!(needs("8.0.33"), Ok(()));
    assert!(needs("8.4.0").is_err());
    let other = chosen("password", &[("plugin", "caching_sha2_password")]);
    assert_eq!(protection.needs(&install("mysqld  Ver 8.4.6 for Linux on x86_64"), &other), Ok(()));
    assert_eq!(
        needs("8.4.6").expect_err("off").what,
        "mysql_native_password, which is off in MySQL 8.4 and gone from later ones"
    );
}

#[test]
fn settings_of_the_experiment_are_kept_but_cannot_add_lines() {
    let mut setup = plain();
    setup.settings.insert("log_bin".to_owned(), "off".to_owned());
    setup.settings.insert("innodb_buffer_pool_size".to_owned(), "1G".to_owned());
    setup.settings.insert("sql_mode".to_owned(), "\nssl_ca=/x #".to_owned());
    setup.settings.insert("a = 1\nport".to_owned(), "1".to_owned());
    setup.clients = 500;
    expect![[r#"
        - innodb_buffer_pool_size = 256M
        - log_bin = /run/02-arm/binlog/log
        - max_connections = 300
        - server_id = 1
        + a___1_port = 1
        + disable_log_bin = ON
        + innodb_buffer_pool_size = 1G
        + max_connections = 1100
        + sql_mode = " ssl_ca=/x #"
        + table_open_cache = 11000
    "#]]
    .assert_eq(&difference(&shown(&plain()), &shown(&setup)));
    assert_eq!(memory_needed(&setup.settings), Some(3 << 29));
    assert_eq!(memory_needed(&BTreeMap::new()), Some(3 << 28));
    let unwatched = [("performance_schema", "off"), ("innodb_buffer_pool_size", "64M")];
    assert_eq!(
        memory_needed(&unwatched.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
        Some(1 << 28)
    );
}

/// Keys are kept with the data that they open, and a server that logs more stores the same data.
#[test]
fn what_is_kept_of_a_stopped_server() {
    let mut setup = plain();
    let all = [chosen("encryption", &[]), chosen("general-log", &[])];
    test_setup::apply(ALL, &all, &mut setup);
    expect![[r#"
        Stored {
            paths: [
                "data",
                "keyring",
            ],
            storage_settings: [
                "binlog_encryption = ON",
                "default_table_encryption = ON",
                "innodb_redo_log_encrypt = ON",
                "innodb_undo_log_encrypt = ON",
                "table_encryption_privilege_check = ON",
            ],
        }
    "#]]
    .assert_eq(&format!("{:#?}\n", stored(&setup)));
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, shown));
}
