//! Protections and settings of the user's own on real servers.

use std::{collections::BTreeMap, fs};

use serde_json::Value;
use tithe_databases::{
    cassandra::Cassandra, mariadb::MariaDb, memcached::Memcached, mysql::MySql, postgres::Postgres, redis::Redis,
    sqlite::Sqlite,
};
use tithe_plugin::product::Product;

use super::attached::{self, CAREFUL, arm, schemas, verified};
use crate::support::{
    Bench, err, out,
    server::{Server, found, installed},
    status, wait_until,
};

/// The page about protections of the user's own.
const PAGE: &str = include_str!("../../../../../docs/your-protection.md");

/// The file in the documentation, unchanged.
fn documented() -> &'static str {
    let page = PAGE;
    let from = page.split_once("description = ").expect("a file").0.len();
    page[from..].split("```").next().expect("its end")
}

/// An experiment on PostgreSQL whose second arm has `lines`.
fn experiment(lines: &str) -> String {
    on("postgres", lines)
}

/// An experiment whose second arm has `lines`.
fn on(database: &str, lines: &str) -> String {
    format!(
        "title = \"Own\"\ndatabase = \"{database}\"\n[data]\nrecords = 300\n[load]\nrate = 400\n[measure]\nbudget = \"1 min\"\n\
         design = \"slices\"\nslot = \"250 ms\"\nwarmup = \"0 s\"\nstarts = 1\nprecision = \"50%\"\n[[workload]]\nycsb = \"a\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"own\"\n{lines}\n"
    )
}

/// Status and output of a run of `lines`, as text and as JSON.
fn run(bench: &Bench, lines: &str) -> (i32, String, Value) {
    bench.file("e.toml", &experiment(lines));
    let run = bench.tithe(&["run", "e.toml"]);
    assert!(status(&run) != 2, "{}{}", out(&run), err(&run));
    (status(&run), bench.whole_report(), bench.report())
}

fn own(report: &Value) -> &Value {
    &report["cells"][0]["arms"][1]
}

#[test]
fn another_tenant_sees_nothing_which_a_claim_proves() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("custom-rls");
    fs::create_dir(bench.path("protections")).expect("a folder");
    bench.file("protections/row-level-security.toml", documented());
    let (status, told, report) = run(&bench, "protections = [{ use = \"row-level-security\" }]");
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("proven (by your claim)"), "{told}");
    assert_eq!(own(&report)["proof"]["proof"], "by-claim", "{told}");
    // The same without its claim is a setting, in a folder of its own.
    let bench = Bench::new("custom-setting");
    fs::create_dir(bench.path("protections")).expect("a folder");
    let without = documented().split("[[claims]]").next().expect("a file");
    bench.file("protections/row-level-security.toml", without);
    let (status, told, report) = run(&bench, "protections = [{ use = \"row-level-security\" }]");
    assert_eq!((status, own(&report)["proof"]["proof"].as_str()), (0, Some("setting")), "{told}");
    assert!(!told.to_lowercase().contains("unproven"), "{told}");
    assert!(told.contains("without the setting (plain)") && !told.contains("without protection"), "{told}");
}

#[test]
fn a_setting_is_read_back_and_claims_are_judged() {
    if installed().is_none() {
        return;
    }
    let bench = Bench::new("custom-claims");
    let verified = |lines: &str| {
        bench.file("e.toml", &experiment(lines));
        let output = bench.tithe(&["verify", "e.toml"]);
        (status(&output), format!("{}{}", out(&output), err(&output)))
    };
    let claim = |claim: &str| {
        verified(&format!(
            "protections = [{{ use = \"custom\", name = \"x\", settings = {{ wal_compression = \"on\" }}, claims = [{{ {claim} }}] }}]"
        ))
    };
    let (status, told) = claim("statement = \"SHOW wal_compression\", equals = \"pglz\"");
    assert!(
        status == 0 && told.contains("every claim holds") && told.contains("i own, yes: wal_compression"),
        "{told}"
    );
    for (words, expected, said) in [
        ("statement = \"SELECT 1\", rows = 1", 7, "the claim holds on the plain arm, too"),
        ("statement = \"SHOW wal_compression\", matches = \"o*f\"", 5, "it answers pglz"),
        ("statement = \"SELECT pg_sleep(60)\", rows = 1", 7, "has not ended within 10 s"),
        ("statement = \"CREATE TABLE x (a int)\", rows = 0", 7, "read-only transaction"),
        ("statement = \"SELEKT\", rows = 1", 7, "syntax error"),
    ] {
        let (status, told) = claim(words);
        assert!(status == expected && told.contains(said), "{words}: {status} {told}");
    }
    let (status, told) = verified("settings = { jitt = \"off\", wal_compresion = \"on\" }");
    let both = ["`jitt`", "`wal_compresion`"].iter().all(|name| told.contains(&format!("knows no setting {name}")));
    assert!(status == 2 && both && told.contains("20:21"), "{status} {told}");
}

/// Verifies `lines` on a product; the output must contain all of `said`.
fn verify(database: &'static dyn Product, lines: &str, expected: i32, said: &[&str]) {
    if found(database).is_none() {
        return;
    }
    let bench = Bench::new(&format!("custom-{}", database.id()));
    bench.file("own.txt", "mine");
    bench.file("e.toml", &on(database.id(), lines));
    let output = bench.tithe(&["verify", "e.toml"]);
    let told = format!("{}{}", out(&output), err(&output));
    assert_eq!(status(&output), expected, "{told}");
    said.iter().for_each(|words| assert!(told.contains(words), "no `{words}` in {told}"));
}

#[test]
fn files_and_checks_by_name_on_postgres() {
    let own = "{ use = \"custom\", name = \"file\", files = { \"x/own.txt\" = \"own.txt\" }, \
               settings = { \"my.path\" = \"{files}/x/own.txt\", log_statement = \"all\" }, \
               statements = [\"CREATE ROLE guest LOGIN\", \"GRANT USAGE ON SCHEMA {space} TO guest\"] }";
    let claims = "[{ statement = \"SELECT pg_read_file(current_setting('my.path', true))\", equals = \"mine\" }, \
                  { check = \"counted-in-log\", matches = \"*execute *: SELECT*\", rows = 100 }, \
                  { check = \"refused-as\", account = \"guest\", statement = \"SELECT 1 FROM {space}.usertable\", \
                  fails_with = \"permission denied\" }, \
                  { check = \"not-on-the-wire\" }, { check = \"canary-not-in-files\", files = [\"data\"] }, \
                  { check = \"refused-without-password\" }]";
    verify(
        &Postgres,
        &format!("protections = [{own}]\nclaims = {claims}"),
        5,
        &[
            "✓ own: `SELECT pg_read_file(current_setting('my.path', true))` answers `mine`",
            "protected: 100 such lines",
            "✓ own: `SELECT 1 FROM {space}.usertable` as guest fails with `permission denied`, and not as a measured client",
            "✗ own: no key or field value is readable on the wire",
            "✗ own: no key or field value is readable in the data files",
            "✗ own: clients without the password",
        ],
    );
}

#[test]
fn statements_settings_and_claims_on_sqlite() {
    let own = "{ use = \"custom\", name = \"trail\", statements = [\"CREATE TABLE trail (what TEXT)\", \
               \"CREATE TRIGGER kept AFTER UPDATE ON usertable BEGIN INSERT INTO trail VALUES (old.YCSB_KEY); END\"], \
               session = [\"PRAGMA recursive_triggers = ON\", \"PRAGMA foreign_keys = ON\"] }";
    let claims = "[{ statement = \"SELECT count(*) FROM sqlite_master WHERE type = 'trigger'\", equals = \"1\" }, \
                  { statement = \"PRAGMA foreign_keys\", equals = \"1\" }, \
                  { statement = \"DELETE FROM usertable\", fails_with = \"readonly\" }]";
    let lines = format!("settings = {{ secure_delete = \"ON\" }}\nprotections = [{own}]\nclaims = {claims}");
    verify(
        &Sqlite,
        &lines,
        7,
        &[
            "i own, yes: secure_delete = ON",
            "control: it answers 0",
            "✓ own: `PRAGMA foreign_keys` answers `1`",
            "the claim holds on the plain arm, too",
        ],
    );
}

/// Settings that an arm cannot have, by product: all of them are named at once, with their places, and nothing is
/// started.
const REFUSED: &[(&str, &str, &[&str])] = &[
    ("postgres", "jitt = \"off\", wal_compresion = \"on\"", &["no setting `jitt`", "no setting `wal_compresion`"]),
    // Evidence would be read from the wrong place.
    ("postgres", "log_directory = \"/tmp\", hba_file = \"/tmp/x\"", &["`log_directory` cannot", "`hba_file` cannot"]),
    (
        "mariadb",
        "foo = \"1\", \"validate_password.policy\" = \"LOW\"",
        &["no setting `foo`", "`validate_password.policy`"],
    ),
    (
        "mysql",
        "foo = \"1\", \"validate_password.policy\" = \"LOW\"",
        &["no setting `foo`", "`statements` have installed it"],
    ),
    // Its threads would use processors in other arms' slots.
    ("redis", "io-threads = \"4\"", &["`io-threads` cannot be set"]),
    ("redis", "maxmemori = \"1\", hzz = \"1\"", &["no setting `maxmemori`", "no setting `hzz`"]),
    ("memcached", "ext_path = \"/tmp/x:1G\"", &["`ext_path` cannot be set"]),
    ("memcached", "idle_timeou = \"1\", foo = \"1\"", &["no setting `idle_timeou`", "no setting `foo`"]),
    ("sqlite", "foreign_keys = \"ON\"", &["no setting `foreign_keys`", "`session = [\"PRAGMA foreign_keys = …\"]`"]),
];

#[test]
fn what_an_arm_cannot_set_is_named_at_once_before_anything_starts() {
    let bench = Bench::new("custom-refused");
    for (product, settings, words) in REFUSED {
        let database = tithe_databases::all().iter().find(|database| database.id() == *product).expect("a product");
        if found(*database).is_none() {
            continue;
        }
        bench.file("e.toml", &on(product, &format!("settings = {{ {settings} }}")));
        let output = bench.tithe(&["plan", "e.toml"]);
        let told = err(&output);
        assert_eq!(status(&output), 2, "{product}: {told}");
        words.iter().for_each(|words| assert!(told.contains(words), "{product}: no {words} in {told}"));
    }
}

#[test]
fn what_is_let_be_by_a_memcached_is_no_protection() {
    let claims = "[{ statement = \"watch fetchers\", fails_with = \"watch commands not allowed\" }, \
                  { statement = \"flush_all\", fails_with = \"not allowed\" }]";
    let lines = format!("settings = {{ disable-flush-all = \"\", threads = \"2\" }}\nclaims = {claims}");
    let said = [
        "✗ own: `watch fetchers`",
        "i own, yes: threads = 2",
        // On the plain arm it would remove everything.
        "`flush_all` may change something, and a claim changes nothing",
    ];
    verify(&Memcached, &lines, 5, &said);
}

#[test]
fn commands_that_may_change_something_are_not_carried_out_on_redis() {
    let own = "{ use = \"custom\", name = \"selectors\", statements = [\"ACL SETUSER client on nopass -@all +@connection \
               +@transaction +command (~{space}:* +@read) (~{space}:* +@write)\"], session = [\"AUTH client x\"] }";
    let claims = "[{ statement = \"GET other\", fails_with = \"NOPERM\" }, \
                  { statement = \"FLUSHALL\", fails_with = \"unknown command\" }]";
    let settings = "{ rename-command = \"FLUSHALL \\\"\\\"\", maxmemory-policy = \"volatile-lru\" }";
    // A command that an account may not call still exists for another one.
    let denied = "[[arm]]\nname = \"denied\"\nprotections = [{ use = \"custom\", name = \"rights\", statements = \
                  [\"ACL SETUSER default -flushall\"], claims = [{ statement = \"FLUSHALL\", fails_with = \"unknown command\" }] }]";
    let lines = format!("settings = {settings}\nprotections = [{own}]\nclaims = {claims}\n{denied}");
    verify(
        &Redis,
        &lines,
        7,
        &["control: it answers QUEUED", "i own, yes: maxmemory-policy", "✓ own: `FLUSHALL`", "? denied: `FLUSHALL`"],
    );
}

#[test]
fn a_file_with_settings_statements_and_claims_on_cassandra() {
    if found(&Cassandra).is_none() {
        return;
    }
    let bench = Bench::new("custom-cassandra");
    fs::create_dir(bench.path("protections")).expect("a folder");
    let captured = "FROM system_schema.tables WHERE keyspace_name = '{space}' AND cdc = true ALLOW FILTERING";
    bench.file(
        "protections/change-capture.toml",
        &format!(
            "description = \"changes are kept for other programs\"\nsettings = {{ cdc_enabled = \"true\" }}\n\
             statements = [\"ALTER TABLE {{space}}.{{table}} WITH cdc = true\"]\n[options]\ntable = \"usertable\"\n\
             [[claims]]\nstatement = \"SELECT table_name {captured}\"\nequals = \"{{table}}\"\n"
        ),
    );
    bench.file("e.toml", &on("cassandra", "protections = [{ use = \"change-capture\" }]"));
    let output = bench.tithe(&["verify", "e.toml"]);
    let told = format!("{}{}", out(&output), err(&output));
    let said = [format!("✓ own: `SELECT table_name {captured}`"), "i own, yes: cdc_enabled = true".to_owned()];
    assert!(status(&output) == 0 && said.iter().all(|words| told.contains(words)), "{told}");
}

#[test]
fn what_statements_leave_on_an_attached_server_is_undone_also_after_a_kill() {
    let Some(server) = Server::start() else { return };
    let bench = Bench::new("custom-attached");
    let url = server.url("");
    let switched = "on = [\"SET work_mem = '5MB'\"]\noff = [\"RESET work_mem\"]\n\
                    claims = [{ statement = \"SHOW work_mem\", equals = \"5MB\" }]";
    let own = "protections = [{ use = \"custom\", name = \"guest\", statements = [\"CREATE ROLE guest\", \
               \"GRANT USAGE ON SCHEMA {space} TO guest\"], undo = [\"REVOKE ALL ON SCHEMA {space} FROM guest\", \
               \"DROP ROLE guest\"], claims = [{ statement = \"SELECT count(*) FROM pg_namespace, aclexplode(nspacl) AS \
               it WHERE nspname = '{space}' AND it.grantee = to_regrole('guest')\", equals = \"1\" }] }]";
    let arms = [arm("plain", &url, ""), arm("switched", &url, switched), arm("own", &url, own)].concat();
    server.psql(CAREFUL);
    let careful = server.url_of("careful", false);
    let policies = "protections = [{ use = \"row-security\", policies = 50 }]";
    let tenants = [arm("plain", &careful, ""), arm("tenants", &careful, policies)].concat();
    // An arm that only reads would have its data once for all arms.
    bench.file("e.toml", &attached::experiment("postgres", &tenants).replace("ycsb = \"a\"", "ycsb = \"c\""));
    let told = out(&bench.tithe(&["verify", "e.toml"]));
    assert!(
        told.contains("✓ tenants: a client sees and changes rows of its own tenant") && told.contains("i tenants, "),
        "{told}"
    );
    // The owner of the tables has no tenant: its plan is left out.
    assert!(told.contains("by key: ") && !told.contains("unrecognized configuration parameter"), "{told}");
    assert_eq!(schemas(&server), "0", "{told}");
    // Costs as on launched servers, with those of each connection by part.
    let tls = arm("tls", &server.url_of("careful", true), "protections = [{ use = \"tls\" }]");
    let text = attached::at_a_rate("postgres", &(tenants + &tls)).replace("ycsb = \"a\"", "ycsb = \"c\"");
    bench.file("e.toml", &text.replace("[measure]", "reconnect_every = 10\n[measure]"));
    let output = bench.tithe(&["run", "e.toml"]);
    let (told, report) = (out(&output) + &err(&output), bench.report());
    for number in [1, 2] {
        assert_eq!(report["cells"][0]["arms"][number]["proof"]["proof"], "proven", "{told}");
    }
    let whole = bench.whole_report();
    assert!(
        ["tls: TCP ", "; TLS ", "; login ", ", its client "].iter().all(|part| whole.contains(part)),
        "{told}{whole}"
    );
    assert_eq!(schemas(&server), "0", "{told}");
    let roles = || server.psql("SELECT count(*) FROM pg_roles WHERE rolname = 'guest'");
    let (status, told) = verified(&bench, "postgres", &arms);
    assert!(status == 0 && told.contains("✓ switched: `SHOW work_mem` answers `5MB`"), "{status} {told}");
    assert_eq!((roles().as_str(), schemas(&server).as_str()), ("0", "0"));
    let mut running = bench.command(&["run", "e.toml"]).spawn().expect("started");
    wait_until(|| roles() == "1");
    running.kill().expect("killed");
    running.wait().expect("ended");
    assert_eq!(roles(), "1", "a killed run undoes nothing");
    let kept = server
        .psql("SELECT table_schema || '.tithe_undo' FROM information_schema.tables WHERE table_name = 'tithe_undo'");
    server.psql(&format!("INSERT INTO {kept} VALUES (9, encode('DROP ROLE careful', 'hex'))"));
    let (status, told) = verified(&bench, "postgres", &arms);
    assert!(status != 0 && told.contains("the server keeps `DROP ROLE careful`"), "{status} {told}");
    server.psql(&format!("DELETE FROM {kept} WHERE number = 9"));
    let (status, told) = verified(&bench, "postgres", &arms);
    assert_eq!((status, roles().as_str(), schemas(&server).as_str()), (0, "0", "0"), "{told}");
}

/// Built-in protections described in files, each with variants that defeat it: further keys of the arm's protection.
const ENTRIES: &[(&str, &str, &[&str])] = &[
    ("postgres", "column-rights", &["statements = [\"GRANT SELECT ON usertable TO tithe_columns\"]"]),
    (
        "postgres",
        "audit-trigger",
        &[
            "statements = [\"ALTER TABLE usertable DISABLE TRIGGER tithe_trail\"]",
            "statements = [\"CREATE OR REPLACE FUNCTION tithe_trail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'\"]",
        ],
    ),
    ("postgres", "view-rights", &["statements = [\"GRANT SELECT ON tithe_behind TO tithe_views\"]"]),
    (
        "postgres",
        "pgcrypto",
        &["statements = [\"CREATE INDEX ON tithe_sealed (public.pgp_sym_decrypt_bytea(field0, 'tithe'))\"]"],
    ),
    ("postgres", "statement-timeout", &["session = [\"SET statement_timeout = 0\"]"]),
    ("mariadb", "audit-accounts", &["statements = [\"SET GLOBAL server_audit_incl_users = 'nobody'\"]"]),
    (
        "mariadb",
        "audit-trigger",
        &[
            "statements = [\"CREATE OR REPLACE TRIGGER tithe_delete AFTER DELETE ON usertable FOR EACH ROW SET @kept = OLD.FIELD0\"]",
        ],
    ),
    (
        "mariadb",
        "row-history",
        &[
            "statements = [\"SET system_versioning_alter_history = KEEP\", \"ALTER TABLE usertable MODIFY FIELD0 mediumblob WITHOUT SYSTEM VERSIONING\"]",
        ],
    ),
    ("mariadb", "statement-timeout", &["session = [\"SET max_statement_time = 0\"]"]),
    ("mysql", "audit-trigger", &["statements = [\"DROP TRIGGER tithe_update\"]"]),
    ("sqlite", "secure-delete", &["session = [\"PRAGMA secure_delete = OFF\"]"]),
    ("sqlite", "audit-trigger", &["statements = [\"DROP TRIGGER tithe_delete\"]"]),
    ("memcached", "no-watching", &[]),
    ("redis", "renamed-command", &[]),
    ("redis", "key-selectors", &["statements = [\"ACL SETUSER tithe_client (~* +@all)\"]"]),
];

/// Verifies every entry of a product and all variants that defeat one: the entries are proven, the variants are
/// disproven.
fn entries_hold(database: &'static dyn Product) {
    let entries = ENTRIES.iter().filter(|(of, ..)| *of == database.id());
    let (mut arms, mut proven, mut disproven) = (String::new(), Vec::new(), Vec::new());
    for (_, entry, defeats) in entries {
        arms += &format!("[[arm]]\nname = \"{entry}\"\nprotections = [{{ use = \"{entry}\" }}]\n");
        proven.push(format!("✓ {entry}: "));
        for (number, keys) in defeats.iter().enumerate() {
            let further = format!("{{ use = \"custom\", name = \"defeat\", {keys} }}");
            arms +=
                &format!("[[arm]]\nname = \"{entry} {number}\"\nprotections = [{{ use = \"{entry}\" }}, {further}]\n");
            disproven.push(format!("✗ {entry} {number}: "));
        }
    }
    let lines = arms.strip_prefix("[[arm]]\nname = \"").expect("an arm").split_once("\"\n").expect("its name");
    let text = on(database.id(), "").replace("name = \"own\"", &format!("name = \"{}\"\n{}", lines.0, lines.1));
    if found(database).is_none() {
        return;
    }
    let bench = Bench::new(&format!("custom-entries-{}", database.id()));
    bench.file("e.toml", &text);
    let output = bench.tithe(&["verify", "e.toml"]);
    let told = format!("{}{}", out(&output), err(&output));
    for words in proven.iter().chain(&disproven) {
        assert!(told.contains(words.as_str()), "no `{words}` in {told}");
    }
    for words in &proven {
        let open = ["✗", "?"].map(|mark| words.replace('✓', mark));
        assert!(!open.iter().any(|words| told.contains(words.as_str())), "{words}: {told}");
    }
}

#[test]
fn entries_of_postgres_are_proven_and_what_defeats_them_is_seen() {
    entries_hold(&Postgres);
}

#[test]
fn entries_of_other_products_are_proven_and_what_defeats_them_is_seen() {
    for database in [&MariaDb as &'static dyn Product, &MySql, &Sqlite, &Redis, &Memcached] {
        entries_hold(database);
    }
}

#[test]
fn the_arms_of_the_documentation_run_as_they_stand() {
    let mut arms: BTreeMap<&str, String> = BTreeMap::new();
    let blocks = PAGE.split("```toml\n# ").skip(1).map(|block| block.split("```").next().expect("its end"));
    for (product, arm) in blocks.map(|block| block.split_once('\n').expect("a product")) {
        *arms.entry(product).or_default() += arm;
    }
    assert_eq!(arms.values().map(|arms| arms.matches("[[arm]]").count()).sum::<usize>(), 7);
    let all = [&Postgres as &'static dyn Product, &MariaDb, &MySql, &Redis, &Sqlite];
    for (product, arms) in arms {
        let bench = Bench::new(&format!("custom-page-{product}"));
        let text = on(product, "").replace("[[arm]]\nname = \"own\"\n", &arms);
        bench.file("e.toml", &text);
        let database = all.iter().find(|database| database.id() == product).expect("a product");
        if found(*database).is_none() {
            continue;
        }
        let output = bench.tithe(&["verify", "e.toml"]);
        assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    }
}
