//! All of SQLite, plain and with every cipher, on files in a temporary folder.

use std::fs;

use expect_test::{Expect, expect, expect_file};
use tempfile::TempDir;
use tithe_machine::{credentials::Credentials, launch::Launch, observation::Observation, secret::Secret};
use tithe_model::{
    experiment::{self, OptionValue},
    record::Verdict,
};
use tithe_plugin::{
    checks::{canary::Targets, disk_canary::DiskCanary, scan::Places},
    evidence::{Check, CheckContext, judge, seen_by},
    session::{Discard, Fields, KeyValueSession, Request},
    setup::AtRest,
};

use super::*;
use crate::{
    test_operations::{self, insert, seen},
    test_setup::every_way,
};

const CIPHERS: [&str; 4] = ["aegis", "chacha20", "sqlcipher", "aes256cbc"];

/// A server's folder, set up and table, in a temporary folder of its own.
struct Bench {
    _folder: TempDir,
    server: Server,
    setup: Setup,
    table: Table,
}

impl Bench {
    /// Plain, or encrypted with `cipher`. A raw key is used if possible, because deriving one takes time.
    fn new(cipher: Option<&str>) -> Self {
        let key = |cipher| if cipher == connection::NO_RAW_KEY { "passphrase" } else { "raw" };
        Self::with(cipher.map(|cipher| chosen(cipher, key(cipher))))
    }

    fn with(protection: Option<experiment::Protection>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut setup = plain_setup();
        if let Some(chosen) = &protection {
            page_encryption::PageEncryption.apply(chosen, &mut setup);
        }
        let place = Place::on_loopback(folder.path().join("server"), 0);
        let launch = Sqlite.launch(&Install::default(), &setup, &place);
        fs::create_dir(&place.folder).unwrap();
        let server = Server::embedded(&launch, folder.path());
        let table = Table { name: "usertable".to_owned(), fields: 3, field_prefix: "field".to_owned() };
        Self { _folder: folder, server, setup, table }
    }

    /// The same with the table created.
    fn created(cipher: Option<&str>) -> Self {
        let bench = Self::new(cipher);
        bench.create().unwrap();
        bench
    }

    fn create(&self) -> Result<(), Fault> {
        Sqlite.create(&self.server, &self.setup, &self.table)
    }

    fn connect(&self) -> Result<Box<dyn KeyValueSession>, Fault> {
        let how = Connect::blocking(self.table.clone());
        match Sqlite.connect(&self.server, &self.setup, &how)? {
            Session::KeyValue(session) => Ok(session),
            Session::Sql(_) => panic!("SQLite is reached as a key-value store"),
        }
    }

    fn quiesce(&self) {
        Sqlite.quiesce(&self.server, &self.setup, &self.table).unwrap();
    }

    fn file(&self) -> &Path {
        path(&self.server).unwrap()
    }

    fn refusal(&self) -> String {
        let text = self.connect().err().expect("connecting is refused").to_string();
        text.replace(&self.file().display().to_string(), "FILE")
    }

    fn observe(&self, evidence: &dyn Check) -> Observation {
        let mut context = CheckContext {
            database: &Sqlite,
            server: &self.server,
            setup: &self.setup,
            table: &self.table,
            protected: self.setup.at_rest.is_some(),
            nonce: 4711,
            narrowed: None,
        };
        seen_by(evidence, &mut context)
    }
}

fn plain_setup() -> Setup {
    let credentials = Credentials::without_files(
        Secret::new("password of the tests"),
        Secret::new(*b"0123456789abcdef0123456789abcdeF"),
    );
    Setup::plain(BTreeMap::new(), credentials)
}

fn chosen(cipher: &str, key: &str) -> experiment::Protection {
    let option = |name: &str, text: &str| (name.to_owned(), OptionValue::Text(text.to_owned()));
    experiment::Protection::listed("page-encryption", BTreeMap::from([option("cipher", cipher), option("key", key)]))
}

/// What a protection with these options changes: everything that starts and configures an arm, as text.
fn check_launch(protection: Option<experiment::Protection>, expect: Expect) {
    let mut setup = plain_setup();
    if let Some(chosen) = &protection {
        page_encryption::PageEncryption.apply(chosen, &mut setup);
    }
    let place = Place::on_loopback("/run/arm", 0);
    let launch = Sqlite.launch(&Install::default(), &setup, &place);
    let configuration = configuration(&setup).unwrap().join("\n");
    let text = format!("{:?}\n{:?}\n{configuration}\n", launch.steps, launch.paths);
    assert!(!text.contains("0123456789") && !text.contains("3031323334"), "the key is in the configuration");
    expect.assert_eq(&text);
}

#[test]
fn the_plain_arm_is_a_file_and_pragmas() {
    check_launch(
        None,
        expect![[r#"
            []
            Paths { data: ["/run/arm/tithe.db"], journal: ["/run/arm/tithe.db-wal", "/run/arm/tithe.db-shm", "/run/arm/tithe.db-journal"], logs: [] }
            busy_timeout = 5000
            page_size = 4096
            journal_mode = WAL
            synchronous = NORMAL
            cache_size = -2000
            mmap_size = 0
            temp_store = MEMORY
            wal_autocheckpoint = 1000
            journal_size_limit = -1
            secure_delete = OFF
        "#]],
    );
}

#[test]
fn page_encryption_adds_cipher_and_key() {
    check_launch(
        Some(chosen("aegis", "passphrase")),
        expect![[r#"
            []
            Paths { data: ["/run/arm/tithe.db"], journal: ["/run/arm/tithe.db-wal", "/run/arm/tithe.db-shm", "/run/arm/tithe.db-journal"], logs: [] }
            cipher = aegis
            key = ***
            busy_timeout = 5000
            page_size = 4096
            journal_mode = WAL
            synchronous = NORMAL
            cache_size = -2000
            mmap_size = 0
            temp_store = MEMORY
            wal_autocheckpoint = 1000
            journal_size_limit = -1
            secure_delete = OFF
        "#]],
    );
    check_launch(
        Some(chosen("sqlcipher", "raw")),
        expect![[r#"
            []
            Paths { data: ["/run/arm/tithe.db"], journal: ["/run/arm/tithe.db-wal", "/run/arm/tithe.db-shm", "/run/arm/tithe.db-journal"], logs: [] }
            cipher = sqlcipher
            key = ***
            busy_timeout = 5000
            page_size = 4096
            journal_mode = WAL
            synchronous = NORMAL
            cache_size = -2000
            mmap_size = 0
            temp_store = MEMORY
            wal_autocheckpoint = 1000
            journal_size_limit = -1
            secure_delete = OFF
        "#]],
    );
}

/// All operations of a workload, in order, with their results.
fn exercise(bench: &Bench) -> String {
    test_operations::exercise(bench.connect().unwrap().as_mut(), |key| key)
}

#[test]
fn every_arm_answers_alike_and_keeps_what_was_written() {
    let protections = CIPHERS.map(|cipher| Some(chosen(cipher, "passphrase")));
    let answers = [None].into_iter().chain(protections).map(|protection| {
        let bench = Bench::with(protection);
        bench.create().unwrap();
        let text = exercise(&bench);
        bench.quiesce();
        // Fresh connections, after the file was closed.
        let mut session = bench.connect().unwrap();
        text + &seen(session.as_mut(), Request::Read { key: b"user3", fields: Fields::All })
    });
    let answers: Vec<_> = answers.collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    expect![[r#"
        1 rows
        -: 0=a 1= 2=user1
        0 rows
        1 rows
        0 rows
        1 rows
        -: 1=new
        2 rows
        user2: 0=a 1= 2=user2
        user3: 0=a 1= 2=user3
        2 rows
        user1: 2=user1
        user2: 2=user2
        0 rows
        1 rows
        0 rows
        server: UNIQUE constraint failed: usertable.ycsb_key (SQLite error 1555)
        2 rows
        user1: 0=a
        user3: 0=a
        1 rows
        -: 0=a 1= 2=user3
    "#]]
    .assert_eq(&answers[0]);
}

#[test]
fn connections_share_a_file() {
    let bench = Bench::created(Some("aegis"));
    let (mut first, mut second) = (bench.connect().unwrap(), bench.connect().unwrap());
    insert(first.as_mut(), b"user1", [b"x"; 3]).unwrap();
    let text = seen(second.as_mut(), Request::Read { key: b"user1", fields: Fields::One(0) });
    assert_eq!(text, "1 rows\n-: 0=x\n");
    // A reader that has reached its end blocks nothing.
    bench.quiesce();
    assert_eq!(fs::metadata(beside(bench.file(), "-wal")).unwrap().len(), 0);
}

#[test]
fn a_raw_key_opens_without_derivation_and_is_another_key() {
    for cipher in ["aegis", "chacha20", "sqlcipher"] {
        let mut bench = Bench::created(Some(cipher));
        exercise(&bench);
        page_encryption::PageEncryption.apply(&chosen(cipher, "passphrase"), &mut bench.setup);
        assert_eq!(bench.refusal(), "refused: file is not a database (SQLite error 26)", "{cipher}");
    }
}

#[test]
fn how_a_key_is_derived_is_told_by_its_cipher_unless_it_is_raw() {
    let told = |cipher: &str, key: &str| {
        let mut setup = plain_setup();
        page_encryption::PageEncryption.apply(&chosen(cipher, key), &mut setup);
        page_encryption::key_derivation(&setup)
    };
    let derived = [
        "Argon2id, 2 passes over 19 MiB",
        "PBKDF2-HMAC-SHA-256, 64007 rounds",
        "PBKDF2-HMAC-SHA-512, 256000 rounds",
        "SHA-256, 4001 rounds, no salt",
    ];
    assert_eq!(CIPHERS.map(|cipher| told(cipher, "passphrase")), derived);
    assert_eq!(told("aegis", "raw"), "none: raw key");
    assert_eq!(page_encryption::key_derivation(&plain_setup()), "none");
}

#[test]
fn every_other_key_needs_nothing() {
    for (cipher, key) in [("aegis", "raw"), ("aes256cbc", "passphrase"), ("chacha20", "passphrase")] {
        let needs = page_encryption::PageEncryption.needs(&Install::default(), &chosen(cipher, key));
        assert_eq!(needs, Ok(()), "{cipher} {key}");
    }
}

#[test]
fn a_raw_key_for_the_cipher_that_would_halve_it_is_refused() {
    let chosen = chosen("aes256cbc", "raw");
    let missing = page_encryption::PageEncryption.needs(&Install::default(), &chosen).unwrap_err();
    expect!["a raw key for the cipher aes256cbc"].assert_eq(&missing.what);
    let mut bench = Bench::new(None);
    page_encryption::PageEncryption.apply(&chosen, &mut bench.setup);
    expect!["refused: aes256cbc takes no raw key"].assert_eq(&bench.create().unwrap_err().to_string());
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let mut texts = String::new();
    let mut note = |what: &str, bench: &Bench| texts += &format!("{what}: {}\n", bench.refusal());

    let mut bench = Bench::created(Some("aegis"));
    bench.setup.at_rest = None;
    note("encrypted, opened plainly", &bench);
    bench.setup.at_rest = Some(AtRest { cipher: "chacha20".to_owned(), key: bench.setup.credentials.key.clone() });
    note("another cipher", &bench);
    bench.setup.at_rest = Some(AtRest { cipher: "aegis".to_owned(), key: Secret::new("wrong") });
    note("another key", &bench);
    bench.setup.at_rest = Some(AtRest { cipher: "rot13".to_owned(), key: Secret::new("wrong") });
    note("no such cipher", &bench);

    let mut bench = Bench::created(None);
    for cipher in CIPHERS {
        bench.setup.at_rest = Some(AtRest { cipher: cipher.to_owned(), key: bench.setup.credentials.key.clone() });
        note(&format!("plain, opened with {cipher}"), &bench);
    }
    let bench = Bench::new(None);
    note("no file", &bench);
    fs::write(bench.file(), b"").unwrap();
    note("empty file", &bench);
    fs::write(bench.file(), b"not a database, but long enough to be read as one").unwrap();
    note("another file", &bench);
    expect![[r#"
        encrypted, opened plainly: refused: file is not a database (SQLite error 26)
        another cipher: refused: file is not a database (SQLite error 26)
        another key: refused: file is not a database (SQLite error 26)
        no such cipher: refused: this build of SQLite has no cipher `rot13`
        plain, opened with aegis: refused: file is not a database (SQLite error 26)
        plain, opened with chacha20: refused: file is not a database (SQLite error 26)
        plain, opened with sqlcipher: refused: file is not a database (SQLite error 26)
        plain, opened with aes256cbc: refused: file is not a database (SQLite error 26)
        no file: connection: FILE: unable to open database file (SQLite error 14): No such file or directory (os error 2)
        empty file: refused: FILE was not made by Tithe: application_id 0, 0 tables and indexes
        another file: refused: file is not a database (SQLite error 26)
    "#]]
    .assert_eq(&texts);
}

#[test]
fn a_file_that_cannot_be_created_is_not_called_missing() {
    let nowhere = Bench::new(None).file().join("nowhere/tithe.db");
    let told = |mode| Connection::open(&nowhere, mode).map(drop).unwrap_err().to_string();
    assert!(told(Mode::Create).ends_with(
        "(SQLite error 14): a file could not be created: no folder, no permission, a full disk, an I/O error or too many open files"
    ));
    assert!(told(Mode::Existing).ends_with("(SQLite error 14): No such file or directory (os error 2)"));
}

#[test]
fn a_text_with_placeholders_and_no_values_is_refused() {
    let bench = Bench::new(None);
    let mut connection = Connection::open(bench.file(), Mode::Create).unwrap();
    for text in ["SELECT 1 WHERE 2 = ?", "SELECT 1; SELECT :name"] {
        let fault = connection.run_each(text, &[], &mut Discard).unwrap_err();
        assert_eq!(fault.to_string(), "server: 0 parameters for a statement that takes 1", "{text}");
    }
}

#[test]
fn a_file_that_is_not_ours_is_left_as_it_is() {
    let bench = Bench::new(None);
    let mut foreign = Connection::open(bench.file(), Mode::Create).unwrap();
    foreign.run("PRAGMA journal_mode = WAL").unwrap();
    foreign.run("CREATE TABLE precious (everything)").unwrap();
    drop(foreign);
    let before = fs::read(bench.file()).unwrap();
    let text = bench.create().unwrap_err().to_string().replace(&bench.file().display().to_string(), "FILE");
    expect!["refused: FILE was not made by Tithe: application_id 0, 1 tables and indexes"].assert_eq(&text);
    assert!(bench.connect().is_err());
    assert_eq!(fs::read(bench.file()).unwrap(), before);
}

#[test]
fn a_table_is_created_once_and_removed() {
    let bench = Bench::created(Some("chacha20"));
    expect![[r#"server: table "usertable" already exists (SQLite error 1)"#]]
        .assert_eq(&bench.create().unwrap_err().to_string());
    Sqlite.remove(&bench.server, &bench.setup, &bench.table).unwrap();
    expect!["server: no such table: usertable (SQLite error 1)"].assert_eq(&bench.refusal());
    bench.create().unwrap();
    exercise(&bench);
}

#[test]
fn settings_are_in_force() {
    let mut bench = Bench::new(Some("sqlcipher"));
    bench.setup.settings = BTreeMap::from(
        [("page_size", "8192"), ("journal_mode", "truncate"), ("synchronous", "FULL"), ("cache_size", "-65536")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    bench.create().unwrap();
    exercise(&bench);
    bench.quiesce();
    let facts = Sqlite.facts(&bench.server, &bench.setup).unwrap().facts;
    let text: String = ["cipher", "key_derivation", "page_size", "journal_mode", "synchronous", "cache_size"]
        .map(|name| format!("{name}: {}\n", facts[name]))
        .concat();
    expect![[r#"
        cipher: sqlcipher
        key_derivation: none: raw key
        page_size: 8192
        journal_mode: truncate
        synchronous: 2
        cache_size: -65536
    "#]]
    .assert_eq(&text);
    bench.setup.settings.insert("page_size".to_owned(), "4096".to_owned());
    expect!["refused: SQLite keeps page_size = 8192 and does not take 4096"].assert_eq(&bench.refusal());
}

#[test]
fn facts_name_library_cipher_and_flags() {
    let bench = Bench::created(Some("aegis"));
    let facts = Sqlite.facts(&bench.server, &bench.setup).unwrap();
    expect!["SQLite 3.54.0, SQLite3 Multiple Ciphers 2.6.1"].assert_eq(&facts.version);
    assert!(facts.facts["compiler_flags"].starts_with("-O2 -DSQLITE_THREADSAFE=2 "));
    assert!(["hardware", "software"].contains(&facts.facts["aes"].as_str()));
    assert!(facts.configuration.contains(&"key = ***".to_owned()));
}

#[test]
fn errors_hold_neither_key_nor_values() {
    let bench = Bench::created(Some("chacha20"));
    let mut session = bench.connect().unwrap();
    insert(session.as_mut(), b"user1", [b"secret value"; 3]).unwrap();
    let text = insert(session.as_mut(), b"user1", [b"secret value"; 3]).unwrap_err().to_string();
    assert!(!text.contains("secret value") && !text.contains("user1"), "{text}");
    assert_eq!(format!("{:?}", bench.setup.at_rest), "Some(AtRest { cipher: \"chacha20\", key: *** })");
}

/// Each check on the plain arm and on the arm of every cipher.
fn check_evidence(evidence: &dyn Check, expected: [Verdict; 4]) {
    let plain_arm = Bench::created(None);
    exercise(&plain_arm);
    let plain = plain_arm.observe(evidence);
    assert!(matches!(plain, Observation::Exposed(_)), "plain: {plain:?}");
    for (cipher, expected) in CIPHERS.into_iter().zip(expected) {
        let bench = Bench::created(Some(cipher));
        exercise(&bench);
        let protected = bench.observe(evidence);
        assert_eq!(
            judge(evidence.entry().control, &protected, Some(&plain)),
            expected,
            "{cipher}: {protected:?}, {plain:?}"
        );
        // A check leaves no copy and no probe; canaries, which are few, sort before all other keys.
        let mut session = bench.connect().unwrap();
        let keys = seen(session.as_mut(), Request::Scan { start: b"d", count: 9, fields: Fields::One(0) });
        assert_eq!(keys, "2 rows\nuser1: 0=a\nuser3: 0=a\n");
        assert_eq!(fs::read_dir(&bench.server.folder).unwrap().count(), 1);
    }
}

#[test]
fn evidence_holds_on_every_cipher_and_fails_on_the_plain_arm() {
    check_evidence(&evidence::header::Header, [Verdict::Holds; 4]);
    check_evidence(&evidence::wrong_key::WrongKey, [Verdict::Holds; 4]);
    check_evidence(&evidence::repeats::NoRepeats, [Verdict::Holds; 4]);
    check_evidence(&evidence::journal::JournalCanary, [Verdict::Holds; 4]);
    check_evidence(&DiskCanary::new(Places::DATA, Targets::Everything), [Verdict::Holds; 4]);
}

#[test]
fn a_rollback_journal_is_looked_at_while_it_is_in_use() {
    let mut observations = String::new();
    for cipher in [None, Some("aegis")] {
        let mut bench = Bench::new(cipher);
        bench.setup.settings.insert("journal_mode".to_owned(), "DELETE".to_owned());
        bench.create().unwrap();
        observations += &format!("{:?}\n", bench.observe(&evidence::journal::JournalCanary));
    }
    expect![[r#"
        Exposed("1 canary found 3 times, in server/tithe.db-journal (3)")
        Protected("no canary in 1 file, 8.7 kB")
    "#]]
    .assert_eq(&observations);
}

#[test]
fn authenticated_ciphers_notice_a_changed_byte() {
    let [aegis, chacha20, sqlcipher] = [Verdict::Holds; 3];
    check_evidence(&evidence::tamper::Tamper, [aegis, chacha20, sqlcipher, Verdict::Fails]);
}

#[test]
fn quotations_say_what_was_seen() {
    let (plain, protected) = (Bench::created(None), Bench::created(Some("chacha20")));
    let mut text = String::new();
    for check in page_encryption::PageEncryption.evidence(&chosen("chacha20", "passphrase")) {
        let (id, claim) = (check.id(), check.claim());
        // The header is a random salt.
        if id != "header" {
            text += &format!("{id}: {claim}\n  plain: {:?}\n", plain.observe(check.as_ref()));
            text += &format!("  protected: {:?}\n", protected.observe(check.as_ref()));
        }
    }
    expect![[r#"
        disk-canary: no key or field value is readable in the data files
          plain: Exposed("8 canaries found 10 times, in server/tithe.db (10)")
          protected: Protected("none of 12 canaries in 1 file, 12.3 kB")
        journal-canary: no field value is readable in the journal while it is in use
          plain: Exposed("1 canary found 3 times, in server/tithe.db-wal (3)")
          protected: Protected("no canary in 2 files, 41.0 kB")
        wrong-key: the file does not open without a key or with a wrong one
          plain: Exposed("without a key: 2 tables and indexes read")
          protected: Protected("without a key: file is not a database (SQLite error 26); with a wrong key: file is not a database (SQLite error 26)")
        no-repeated-ciphertext: equal values leave no equal blocks of 16 bytes in the file
          plain: Exposed("1133 of 1254 blocks in 8 changed pages repeat an earlier one")
          protected: Protected("0 of 2048 blocks in 8 changed pages repeat an earlier one")
        key-apart: no file of the server or of its folder holds the data key
          plain: Protected("no data key in 2 files, 32.8 kB; the marker was found")
          protected: Protected("no data key in 2 files, 32.8 kB; the marker was found")
        tamper: a changed byte in the file is noticed on reading
          plain: Exposed("page 66: another value was served")
          protected: Protected("page 66: server: database disk image is malformed (SQLite error 11)")
    "#]].assert_eq(&text);
}

#[test]
fn every_way_to_ask_for_a_protection() {
    let launched = |setup: &Setup| {
        let Launch { steps, paths, .. } = Sqlite.launch(&Install::default(), setup, &Place::on_loopback("/run/arm", 0));
        let is_raw =
            setup.at_rest.as_ref().is_some_and(|at_rest| at_rest.key.expose().starts_with(connection::RAW_KEY));
        format!("{steps:?}\n{paths:?}\n{}\nraw key {is_raw}\n", configuration(setup).unwrap().join("\n"))
    };
    expect_file!["every_way.txt"].assert_eq(&every_way(Sqlite.protections(), launched));
}
