//! Scripts on the user's own tables, on attached servers: tables that are read are read in place, changes go to a copy
//! or are rolled back, and all other tables stay unchanged.

use crate::support;

use support::{
    Bench, err, out,
    server::{OtherServer, Server, found},
    status, words,
};
use tithe_databases::{mariadb::MariaDb, mysql::MySql, postgres::Postgres};
use tithe_plugin::product::Product;

/// Runs `workload` once at `plain` and at `tls`, with its evidence; the exit status and all output.
fn run(bench: &Bench, (plain, tls): (&str, &str), workload: &str) -> (i32, String) {
    let database = plain.split(':').next().unwrap_or_default();
    let arms = (format!("url = \"{plain}\""), format!("url = \"{tls}\"\nprotections = [{{ use = \"tls\" }}]"));
    asked(bench, "verify", database, workload, arms)
}

/// Runs `command` for `workload` with a plain arm and another one.
fn asked(bench: &Bench, command: &str, database: &str, workload: &str, arms: (String, String)) -> (i32, String) {
    let (plain, other) = arms;
    let text = format!(
        r#"title = "Own tables"
database = "{database}"
[data]
records = 100
[load]
clients = 2
rate = 400
[measure]
budget = "24 s"
design = "slices"
slot = "250 ms"
warmup = "0 s"
starts = 1
precision = "50%"
[[workload]]
{workload}
[[arm]]
name = "plain"
{plain}
[[arm]]
name = "other"
{other}
"#
    );
    bench.file("e.toml", &text);
    let output = bench.tithe(&[command, "e.toml"]);
    (status(&output), words(&(out(&output) + &err(&output))))
}

const READS: &str =
    "\\set id random(1, 3)\nSELECT o.total FROM orders o JOIN customer c ON c.id = o.customer WHERE c.id = :id;\n";
const WRITES: &str = "\\set id random(1, 3)\nBEGIN;\nUPDATE orders SET total = total + 1 WHERE id = :id;\nINSERT INTO orders (customer, total) VALUES (1, :id);\nCOMMIT;\n";

const LIKE_PRODUCTION: &str = "like_production = \"calls\"";

const COLUMNS: &str = "\\set id random(1, 3)\nSELECT name AS n FROM customer WHERE id = :id \\gset\nSELECT id FROM customer WHERE name = :n;\nUPDATE customer SET name = :n WHERE id = :id;\n";

/// Runs statements about a column that clients encrypt, compared with plain columns: on servers with the data that
/// `prepare` brings, or on copies at a `url`.
fn columns_are_encrypted(bench: &Bench, database: &str, keys: &str, arm: &str) {
    bench.file("columns.sql", COLUMNS);
    let workload = format!("script = \"columns.sql\"\nprotocol = \"prepared\"\n{keys}");
    let encrypted = format!("{arm}\nprotections = [{{ use = \"columns\", equal = \"customer.name\" }}]");
    let (code, told) = asked(bench, "run", database, &workload, (arm.to_owned(), encrypted));
    assert!(code == 0 && told.contains(" of 3 claims hold"), "{code} {told}");
    let report = bench.report();
    assert_eq!(report["cells"][0]["arms"][1]["proof"]["proof"], "proven", "{told}");
}

#[test]
fn columns_of_the_users_own_are_encrypted_on_servers_that_tithe_starts() {
    for (database, collation) in
        [(&Postgres as &'static dyn Product, ""), (&MariaDb, " COLLATE utf8mb4_bin"), (&MySql, " COLLATE utf8mb4_bin")]
    {
        if found(database).is_none() {
            continue;
        }
        let bench = Bench::new(&format!("own-columns-{}", database.id()));
        let rows =
            "INSERT INTO customer VALUES (1, 'Ann of the shop'), (2, 'Bob of the shop'), (3, 'Eve of the shop');";
        bench.file(
            "shop.sql",
            &format!("CREATE TABLE customer (id int PRIMARY KEY, name varchar(40){collation});\n{rows}\n"),
        );
        columns_are_encrypted(&bench, database.id(), "prepare = \"shop.sql\"", "");
    }
}

/// The server's own logs of reads and of changes.
fn logs(bench: &Bench, line: fn(&str) -> String) {
    const READS: [&str; 2] = ["SELECT total FROM orders WHERE id = 2", "SELECT count(*) FROM orders, customer"];
    const WRITES: [&str; 5] = [
        "BEGIN",
        "UPDATE orders SET total = total + 1 WHERE id = 2",
        "INSERT INTO orders (customer, total) VALUES (1, 5)",
        "COMMIT",
        "SELECT name FROM customer WHERE id = 1",
    ];
    bench.file("reads.log", &READS.map(line).concat());
    bench.file("writes.log", &WRITES.map(line).concat());
}

const TABLES: &str = "CREATE SCHEMA shop; CREATE TABLE shop.customer (id int PRIMARY KEY, name text); CREATE TABLE \
                      shop.orders (id serial PRIMARY KEY, customer int REFERENCES shop.customer, total numeric); INSERT \
                      INTO shop.customer VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO shop.orders (customer, total) \
                      SELECT 1 + n % 3, n FROM generate_series(1, 30) AS n; CREATE TABLE shop.other AS SELECT * FROM \
                      shop.orders; CREATE ROLE reader LOGIN; ALTER ROLE reader SET search_path = shop";

/// Hashes of all tables of the shop, and the state of their sequence.
const HASH: &str = "SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (SELECT orders::text FROM shop.orders UNION ALL \
                    SELECT customer::text FROM shop.customer UNION ALL SELECT other::text FROM shop.other UNION ALL SELECT \
                    last_value::text FROM shop.orders_id_seq) AS all_of_it (line)";

#[test]
fn scripts_on_postgres_read_in_place_and_change_copies() {
    let Some(server) = Server::counting() else { return };
    server.psql(TABLES);
    let before = server.psql(HASH);
    let bench = Bench::new("own-tables");
    bench.file("reads.sql", READS);
    bench.file("writes.sql", WRITES);
    let urls = (server.url_of("reader", false), server.url_of("reader", true));
    let urls = (urls.0.as_str(), urls.1.as_str());
    let reads = "script = \"reads.sql\"";
    let (code, told) = run(&bench, urls, reads);
    assert_eq!(code, 4, "{told}");
    for grant in ["GRANT USAGE ON SCHEMA shop", "GRANT SELECT ON shop.customer", "GRANT SELECT ON shop.orders"] {
        assert!(told.contains(grant), "{told}");
    }
    for lacking in
        [&["CREATE EXTENSION"][..], &["GRANT pg_read_all_stats", "GRANT SELECT ON shop.orders", "GRANT USAGE"]]
    {
        let (code, told) = run(&bench, urls, LIKE_PRODUCTION);
        assert!(code == 2 && lacking.iter().all(|words| told.contains(words)), "{told}");
        server.psql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
    }
    server.psql("GRANT USAGE ON SCHEMA shop TO reader; GRANT SELECT ON shop.customer, shop.orders TO reader");
    let (code, told) = run(&bench, urls, reads);
    assert_eq!(code, 0, "{told}");
    logs(&bench, |text| format!("2026-11-28 05:36:07.075 UTC [7] u@d LOG:  duration: 1.000 ms  statement: {text}\n"));
    let (code, told) = run(&bench, urls, "replay = \"reads.log\"");
    assert_eq!(code, 0, "{told}");
    assert_eq!(server.psql(HASH), before);

    like_production(&bench, &server, urls, "SELECT total FROM orders WHERE id = 2");
    assert_eq!(server.psql(HASH), before);

    let writes = "script = \"writes.sql\"";
    let (code, told) = run(&bench, urls, writes);
    assert!(code == 4 && told.contains("GRANT CREATE ON DATABASE postgres TO reader"), "{told}");
    server.psql("GRANT CREATE ON DATABASE postgres TO reader; GRANT UPDATE ON shop.other TO reader");
    let (code, told) = run(&bench, urls, writes);
    assert!(code == 4 && told.contains("may change more than the statements need (shop.other)"), "{told}");
    server.psql("REVOKE UPDATE ON shop.other FROM reader");
    server.psql("INSERT INTO shop.orders SELECT 1000 + n, 1, n FROM generate_series(1, 20000) AS n");
    let (code, told) = run(&bench, urls, &format!("{writes}\ncopy_limit = \"1 MiB\""));
    server.psql("DELETE FROM shop.orders WHERE id > 1000");
    server.psql("VACUUM FULL shop.orders");
    assert!(code == 4 && told.contains("how much its disk has free is not known: write `copy_limit = "), "{told}");
    for workload in [writes, "replay = \"writes.log\""] {
        let (code, told) = run(&bench, urls, workload);
        assert_eq!(code, 0, "{told}");
        assert_eq!(server.psql(HASH), before);
    }
    like_production(&bench, &server, urls, "UPDATE orders SET total = total + 1 WHERE id = 2");
    columns_are_encrypted(&bench, "postgres", "", &format!("url = \"{}\"", urls.0));
    assert_eq!(server.psql(HASH), before);
    assert_eq!(server.psql("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'tithe%'"), "0");
    changed_in_place(&bench, &server, urls);
}

/// The load of `statement` and another one is drawn again after the server has counted them.
fn like_production(bench: &Bench, server: &Server, urls: (&str, &str), statement: &str) {
    server.psql(
        "GRANT pg_read_all_stats TO reader; ANALYZE shop.orders, shop.customer; SELECT pg_stat_statements_reset()",
    );
    server.psql(&format!(
        "BEGIN; SET LOCAL search_path = shop; {statement}; SELECT name FROM customer WHERE id = 3; ROLLBACK"
    ));
    let (code, told) = run(bench, urls, LIKE_PRODUCTION);
    assert_eq!(code, 0, "{told}");
    let planned = words(&out(&bench.tithe(&["plan", "e.toml"])));
    assert!(planned.contains("like production: 2 statements of "), "{planned}");
    assert!(planned.contains("parameters: drawn from pg_stats, not the ones that were used"), "{planned}");
}

/// Changes that are allowed in place are rolled back or stay, and nothing else may be changed.
fn changed_in_place(bench: &Bench, server: &Server, urls: (&str, &str)) {
    const ROWS: &str = "SELECT md5(string_agg(orders::text, ' ' ORDER BY id)) FROM shop.orders";
    const OTHERS: &str = "SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (SELECT customer::text FROM shop.customer \
                          UNION ALL SELECT other::text FROM shop.other) AS all_of_it (line)";
    let (rows, others) = (server.psql(ROWS), server.psql(OTHERS));
    server.psql(
        "GRANT INSERT, UPDATE, DELETE ON shop.orders TO reader; GRANT USAGE ON SEQUENCE shop.orders_id_seq TO reader; \
         CREATE TABLE shop.line (o int REFERENCES shop.orders ON DELETE CASCADE)",
    );
    let workload = "script = \"writes.sql\"\nwrite_in_place = \"orders\"";
    let (code, told) = run(bench, urls, workload);
    assert!(code == 4 && told.contains("foreign key line_o_fkey of line"), "{told}");
    server.psql("DROP TABLE shop.line");
    let (code, told) = run(bench, urls, workload);
    assert_eq!(code, 0, "{told}");
    assert_eq!((server.psql(ROWS), server.psql(OTHERS)), (rows.clone(), others.clone()));
    let (code, told) = run(bench, urls, &format!("{workload}\ncommit = true"));
    assert_eq!(code, 0, "{told}");
    assert_ne!(server.psql(ROWS), rows);
    assert_eq!(server.psql(OTHERS), others);
}

/// A shop with accounts of increasing privileges: one statement per line.
const SHOP: &str = "
CREATE DATABASE IF NOT EXISTS shop;
CREATE TABLE IF NOT EXISTS shop.customer (id int PRIMARY KEY, name varchar(9) COLLATE utf8mb4_bin);
CREATE TABLE IF NOT EXISTS shop.orders (id int AUTO_INCREMENT PRIMARY KEY, customer int, total int, half int AS (total / 2) STORED, \
                    FOREIGN KEY (customer) REFERENCES shop.customer (id));
INSERT IGNORE INTO shop.customer VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT IGNORE INTO shop.orders (id, customer, total) VALUES (1, 1, 10), (2, 2, 20), (3, 3, 30);
CREATE USER IF NOT EXISTS poor@'127.0.0.1', reader@'127.0.0.1', counter@'127.0.0.1', copier@'127.0.0.1', writer@'127.0.0.1';
GRANT SELECT ON shop.customer TO poor@'127.0.0.1';
GRANT SELECT ON shop.* TO reader@'127.0.0.1';
GRANT SELECT ON shop.* TO counter@'127.0.0.1';
GRANT SELECT ON performance_schema.* TO counter@'127.0.0.1';
GRANT SELECT ON shop.* TO copier@'127.0.0.1';
GRANT ALL ON `tithe%`.* TO copier@'127.0.0.1';
GRANT SELECT ON performance_schema.* TO copier@'127.0.0.1';
GRANT SELECT, UPDATE ON shop.* TO writer@'127.0.0.1';
GRANT ALL ON `tithe%`.* TO writer@'127.0.0.1';
GRANT SELECT ON performance_schema.* TO writer@'127.0.0.1';
";

fn scripts_read_in_place_and_change_copies(mysql: bool) {
    let Some(server) = OtherServer::mariadb_with(mysql, "performance_schema = ON\n", SHOP) else { return };
    let hash = || {
        let of_orders = "SELECT GROUP_CONCAT(id, customer, total, half ORDER BY id) FROM shop.orders";
        [of_orders, "SELECT GROUP_CONCAT(id, name ORDER BY id) FROM shop.customer"].map(|sql| server.asked(sql))
    };
    let before = hash();
    let bench = Bench::new(if mysql { "own-tables-mysql" } else { "own-tables-mariadb" });
    bench.file("reads.sql", READS);
    bench.file("writes.sql", WRITES);
    let verified = |account: &str, workload: &str| {
        let scheme = if mysql { "mysql" } else { "mariadb" };
        let plain = format!("{scheme}://{account}@{}/shop", server.place("127.0.0.1"));
        let tls = format!("{plain}?ssl-mode=verify_identity&ssl-ca={}", server.authority());
        run(&bench, (&plain, &tls), workload)
    };
    let (code, told) = verified("poor", "script = \"reads.sql\"");
    assert!(code == 4 && told.contains("GRANT SELECT ON `shop`.`orders` TO 'poor'@'127.0.0.1'"), "{told}");
    logs(&bench, |text| format!("260101 00:00:00\t1 Query\t{text}\n"));
    for (account, workload) in [
        ("reader", "script = \"reads.sql\""),
        ("reader", "replay = \"reads.log\""),
        ("copier", "replay = \"writes.log\""),
    ] {
        let (code, told) = verified(account, workload);
        assert_eq!(code, 0, "{told}");
    }
    let (code, told) = verified("reader", LIKE_PRODUCTION);
    assert!(code == 2 && told.contains("GRANT SELECT ON performance_schema.* TO 'reader'@'127.0.0.1'"), "{told}");
    let (code, told) = verified("counter", LIKE_PRODUCTION);
    assert_eq!(code, 0, "{told}");
    let (code, told) = verified("writer", "script = \"writes.sql\"");
    assert!(code == 4 && told.contains("GRANT SELECT, UPDATE ON `shop`.*"), "{told}");
    let (code, told) = verified("copier", "script = \"writes.sql\"");
    assert_eq!(code, 0, "{told}");
    // Counted statements that change rows change copies.
    server.tell_mariadb(
        "USE shop; BEGIN; UPDATE orders SET total = total + 1 WHERE id = 2; INSERT INTO orders (customer, total) VALUES \
         (1, 5); ROLLBACK",
    );
    let (code, told) = verified("copier", LIKE_PRODUCTION);
    assert_eq!(code, 0, "{told}");
    let (code, told) = verified("writer", LIKE_PRODUCTION);
    assert!(code == 4 && told.contains("GRANT SELECT, UPDATE ON `shop`.*"), "{told}");
    let (scheme, place) = (if mysql { "mysql" } else { "mariadb" }, server.place("127.0.0.1"));
    columns_are_encrypted(&bench, scheme, "", &format!("url = \"{scheme}://copier@{place}/shop\""));
    let (code, told) = verified("copier", "script = \"writes.sql\"\nwrite_in_place = \"`orders`\"");
    assert!(code == 4 && told.contains("cascades and triggers"), "{told}");
    assert_eq!(hash(), before);
    assert_eq!(server.asked("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'tithe%'"), "0");
}

#[test]
fn a_server_that_counts_no_statements_is_refused_in_words() {
    let Some(server) = OtherServer::mariadb_with(false, "", "CREATE DATABASE shop;\n") else { return };
    let url = format!("mariadb://tithe@{}/shop", server.place("127.0.0.1"));
    let tls = format!("{url}?ssl-mode=verify_identity&ssl-ca={}", server.authority());
    let (code, told) = run(&Bench::new("own-tables-uncounted"), (&url, &tls), LIKE_PRODUCTION);
    let words = "performance_schema is off, as MariaDB has it by default: write `performance_schema = ON`";
    assert!(code == 2 && told.contains(words), "{code} {told}");
}

#[test]
fn scripts_on_mariadb_read_in_place_and_change_copies() {
    scripts_read_in_place_and_change_copies(false);
}

#[test]
fn scripts_on_mysql_read_in_place_and_change_copies() {
    scripts_read_in_place_and_change_copies(true);
}
