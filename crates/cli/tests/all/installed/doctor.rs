//! `tithe doctor URL` at servers of every product. An account without privileges gets the list of everything that it
//! lacks in one call. Once an administrator has pasted the output, nothing is missing and everything is proven. The
//! server is left unchanged.

use std::process::Command;

use crate::support::{
    Bench, err, out,
    server::{OtherServer, Server, free_port},
    status,
};

use super::attached_products::{CAREFUL, PASSWORD, brought_along, verified};

/// The output of `tithe doctor` about `url`, with its exit status. It does not change the output of `catalogue` about
/// the server.
fn seen(url: &str, catalogue: &dyn Fn() -> String) -> (i32, String) {
    let before = catalogue();
    assert!(before.len() > 20, "a catalogue: {before}");
    let bench = Bench::new("doctor");
    let mut command = bench.command(&["doctor", url]);
    let passwords = ["REDISCLI_AUTH", "CASSANDRA_PASSWORD"].map(|variable| (variable, PASSWORD));
    let output = command.envs(passwords).output().expect("tithe starts");
    assert_eq!(err(&output), "", "{}", out(&output));
    assert_eq!(catalogue(), before, "{}", out(&output));
    (status(&output), out(&output))
}

/// The output for an account without privileges names all of `expected`, and is enough once `paste` has run it.
fn suffices(
    url: &str,
    comment: &str,
    expected: &[&str],
    catalogue: &dyn Fn() -> String,
    paste: &mut dyn FnMut(&[String]),
) {
    let (found, told) = seen(url, catalogue);
    assert_eq!(found, 4, "{told}");
    assert!(expected.iter().all(|words| told.contains(words)), "{expected:?}: {told}");
    let statements: Vec<String> = told
        .lines()
        .filter(|line| !line.starts_with(comment))
        .map(|line| line.trim_end_matches(';').to_owned())
        .collect();
    assert!(!statements.is_empty(), "{told}");
    paste(&statements);
    let (found, told) = seen(url, catalogue);
    assert_eq!(found, 0, "{statements:#?}\n{told}");
    assert!(told.starts_with(&format!("{comment} {url}: nothing is missing\n")), "{told}");
    assert!(told.lines().all(|line| line.starts_with(comment)), "{told}");
    assert!(told.contains("the server's files cannot be read from here"), "{told}");
}

#[test]
fn what_it_prints_suffices_on_postgres() {
    let Some(server) = Server::start() else { return };
    server.psql("CREATE ROLE bare LOGIN");
    let catalogue = || {
        server.psql(
            "SELECT string_agg(line, ' ' ORDER BY line) FROM (SELECT rolname || rolconfig::text AS line FROM pg_roles \
             UNION ALL SELECT nspname || coalesce(nspacl::text, '') FROM pg_namespace \
             UNION ALL SELECT relname || coalesce(relacl::text, '') FROM pg_class \
             UNION ALL SELECT datname || coalesce(datacl::text, '') FROM pg_database) AS lines",
        )
    };
    let expected = [
        "GRANT CREATE ON DATABASE postgres TO bare;\n",
        "GRANT SET ON PARAMETER pgaudit.log, pgaudit.log_parameter, pgaudit.log_catalog TO bare;\n",
        "GRANT SET ON PARAMETER log_statement TO bare;\n",
        "GRANT EXECUTE ON FUNCTION pg_current_logfile(text)",
        "without it pgaudit and log-statement cannot be proven\n",
    ];
    suffices(&server.url_of("bare", false), "--", &expected, &catalogue, &mut |statements| {
        statements.iter().for_each(|statement| drop(server.psql(statement)));
    });
    server.psql("CREATE ROLE other LOGIN");
    let asked = |word: &str| {
        let output = Bench::new("doctor-asked").tithe(&["doctor", &server.url_of("other", false), "--protect", word]);
        (status(&output), out(&output) + &err(&output))
    };
    let (status, told) = asked("columns:names=shop.name,equal=shop.iban+pgaudit:log=read,write");
    assert!(status == 4 && told.contains("log-statement cannot be proven") && told.contains("GRANT CREATE"), "{told}");
    let (status, told) = asked("columns:names=shop.name");
    assert!(status == 4 && !told.contains("log-statement cannot be proven") && told.contains("GRANT CREATE"), "{told}");
    let (_, told) = asked("pgaudit:by=object");
    assert!(told.contains("\nCREATE ROLE tithe_auditor NOLOGIN;\n"), "{told}");
    assert!(told.contains("\nGRANT SET ON PARAMETER pgaudit.role TO other;\n"), "{told}");
    let (status, told) = asked("columns:namez=shop.name");
    assert!(status == 2 && told.contains("`namez`") && told.contains("--protect columns:namez"), "{told}");
    let tls = server.url_of("bare", true);
    let authority = tls.rsplit('=').next().expect("a file");
    let places = [("careful@", "bare@"), ("db.example:5432", &server.place())];
    let (status, told) = verified(&brought_along("postgres", &places, authority));
    assert_eq!(status, 0, "{told}");
}

/// The rows that a MariaDB or MySQL returns to the account [`OWNER`].
fn rows(server: &OtherServer, question: &str) -> String {
    let place = server.place("127.0.0.1");
    let port = place.rsplit(':').next().expect("a port");
    let output = Command::new("mariadb")
        .args(["--no-defaults", "-h127.0.0.1", "-uowner", "-N", &format!("-P{port}"), "-e", question])
        .output()
        .expect("mariadb runs");
    assert!(output.status.success(), "{}", err(&output));
    out(&output)
}

/// An account that may do everything, and grant it.
const OWNER: &str = "CREATE USER owner@'127.0.0.1';\nGRANT ALL ON *.* TO owner@'127.0.0.1' WITH GRANT OPTION;\n";

fn of_the_family(database: &str, settings: &str, expected: &[&str]) {
    let accounts = format!("CREATE USER careful@'127.0.0.1';\n{OWNER}");
    let Some(server) = OtherServer::mariadb_with(database == "mysql", settings, &accounts) else { return };
    let catalogue = || {
        rows(
            &server,
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES ORDER BY 1, 2; \
             SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1; SELECT User, Host FROM mysql.user \
             ORDER BY 1, 2; SHOW GRANTS FOR careful@'127.0.0.1'",
        )
    };
    let url = format!("{database}://careful@{}", server.place("127.0.0.1"));
    suffices(&url, "--", expected, &catalogue, &mut |statements| {
        statements.iter().for_each(|statement| drop(rows(&server, statement)));
    });
    if database == "mysql" {
        let place = server.place("127.0.0.1");
        let (status, told) = verified(&brought_along(database, &[("db.example:3306", &place)], &server.authority()));
        assert_eq!(status, 0, "{told}");
    }
    // The missing part of privileges that an account has partly.
    rows(&server, "CREATE USER half@'127.0.0.1'; GRANT CREATE, SELECT, INSERT ON `tithe%`.* TO half@'127.0.0.1'");
    let (_, told) = seen(&url.replace("careful", "half"), &catalogue);
    assert!(told.contains("\nGRANT DROP, INDEX, UPDATE, DELETE ON `tithe%`.* TO 'half'@'127.0.0.1';\n"), "{told}");
}

#[test]
fn what_it_prints_suffices_on_mariadb() {
    let expected = [
        "GRANT ALL ON `tithe%`.* TO 'careful'@'127.0.0.1';\n",
        "INSTALL SONAME 'server_audit'",
        "SET GLOBAL general_log = ON;\n",
        "without it no session can switch general-log\n",
    ];
    of_the_family("mariadb", "", &expected);
}

#[test]
fn what_it_prints_suffices_on_mysql() {
    let expected = [
        "GRANT ALL ON `tithe%`.* TO 'careful'@'127.0.0.1';\n",
        "GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'careful'@'127.0.0.1';\n",
        "GRANT SELECT ON performance_schema.threads TO 'careful'@'127.0.0.1';\n",
        "without it general-log cannot be proven\n",
    ];
    of_the_family("mysql", "log_output = NONE\n", &expected);
}

#[test]
fn what_it_prints_suffices_on_redis() {
    let port = free_port();
    let account = "user careful on >an-account-of-the-tests resetkeys resetchannels -@all +auth";
    let settings = format!("tls-port {}\nCERTIFICATES\ntls-auth-clients no\n{account}\n", port.number());
    let Some(server) = OtherServer::redis_with(&settings) else { return };
    let place = server.place("127.0.0.1");
    let told = |command: &str| {
        let port = place.rsplit(':').next().expect("a port");
        let output = Command::new("redis-cli").args(["-p", port]).args(command.split(' ')).output().expect("redis-cli");
        out(&output)
    };
    let catalogue = || ["ACL LIST", "DBSIZE", "CONFIG GET *"].map(told).concat();
    let expected = ["# Tithe makes, reads", "\nACL SETUSER careful +get +set", "\nACL SETUSER careful ~tithe*\n"];
    let url = format!("redis://careful@{place}");
    suffices(&url, "#", &expected, &catalogue, &mut |statements| {
        statements.iter().for_each(|statement| assert_eq!(told(statement), "OK\n", "{statement}"));
    });
    // The refusal names everything that was missing, too.
    let half =
        CAREFUL.replace("user careful", "ACL SETUSER half").replace("~tithe*", "~other*").replace("@write", "set");
    assert_eq!(told(half.trim_end()), "OK\n");
    let tls = format!("127.0.0.1:{}", port.number());
    let places = [("careful@", "half@"), ("db.example:6379", place.as_str()), ("db.example:6380", &tls)];
    let (status, refused) = verified(&brought_along("redis", &places, &server.authority()));
    assert_eq!(status, 4, "{refused}");
    let all = ["`ACL SETUSER half +del +unlink +hset +zadd +zrem`; besides, ", "`ACL SETUSER half ~tithe*`"];
    assert!(all.iter().all(|words| refused.contains(words)), "{refused}");
    let places = places.map(|(from, to)| (from, if to == "half@" { "careful@" } else { to }));
    let (status, proven) = verified(&brought_along("redis", &places, &server.authority()));
    assert_eq!(status, 0, "{proven}");
}

#[test]
fn what_it_prints_suffices_on_cassandra() {
    let role = format!("CREATE ROLE bare WITH PASSWORD = '{PASSWORD}' AND LOGIN = true");
    let Some(server) = OtherServer::cassandra_with(&[role]) else { return };
    let catalogue = || {
        let named = |table: &str, column: &str| {
            server.asked(&format!("SELECT JSON {column} FROM system_schema.{table} LIMIT 1"))
                + &server.asked(&format!("SELECT count(*) FROM system_schema.{table}"))
        };
        named("keyspaces", "keyspace_name") + &named("tables", "table_name") + &named("columns", "column_name")
    };
    let expected = [
        "GRANT CREATE ON ALL KEYSPACES TO bare;\n",
        "GRANT SELECT ON TABLE system_views.clients TO bare;\n",
        "GRANT SELECT ON TABLE system_views.settings TO bare;\n",
        "without it tls cannot be proven\n",
    ];
    let url = format!("cassandra://bare@{}", server.place("127.0.0.1"));
    suffices(&url, "--", &expected, &catalogue, &mut |statements| server.as_administrator(statements));
}
