//! All of DuckDB, plain and encrypted, on files in a temporary folder: tests that need its library.

use std::{fs, thread};

use expect_test::expect;
use tempfile::TempDir;
use tithe_machine::{credentials::Credentials, observation::Observation, secret::Secret};
use tithe_model::{experiment, record::Verdict};
use tithe_plugin::{
    evidence::{Check, CheckContext, judge, seen_by},
    session::{Discard, Fields, KeyValueSession, Request, SqlSession},
};

use super::*;
use crate::{
    test_operations::{self, insert, seen},
    test_setup::chosen,
};

/// Options of every protected arm.
const ARMS: [&[(&str, &str)]; 3] =
    [&[], &[("cipher", "ctr")], &[("provider", "mbedtls"), ("temporary_files", "false")]];

/// A server's folder, set-up and table, in a temporary folder of its own.
struct Bench {
    _folder: TempDir,
    server: Server,
    setup: Setup,
    table: Table,
}

impl Bench {
    /// Plain, or encrypted with these options.
    fn new(options: Option<&[(&str, &str)]>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let credentials = Credentials::without_files(Secret::new("password"), Secret::new([7; 32]));
        let mut setup = Setup::plain(BTreeMap::new(), credentials);
        if let Some(options) = options {
            encryption::Encryption.apply(&asked(options), &mut setup);
        }
        let place = Place::on_loopback(folder.path(), 0);
        let launch = DuckDb.launch(&Install::default(), &setup, &place);
        let server = Server::embedded(&launch, &place.folder);
        let table = Table { name: "usertable".to_owned(), fields: 3, field_prefix: "field".to_owned() };
        Self { _folder: folder, server, setup, table }
    }

    /// The same with the table created.
    fn created(options: Option<&[(&str, &str)]>) -> Self {
        let bench = Self::new(options);
        bench.create().expect("created");
        bench
    }

    /// The same, whose sessions begin with `statement`.
    fn beginning_with(statement: &str, options: Option<&[(&str, &str)]>) -> Self {
        let mut bench = Self::new(options);
        bench.setup.session_statements = vec![statement.to_owned()];
        bench.create().expect("created");
        bench
    }

    fn create(&self) -> Result<(), Fault> {
        DuckDb.create(&self.server, &self.setup, &self.table)
    }

    fn how(&self) -> Connect {
        Connect::blocking(self.table.clone())
    }

    fn connect(&self) -> Result<Box<dyn KeyValueSession>, Fault> {
        match DuckDb.connect(&self.server, &self.setup, &self.how())? {
            Session::KeyValue(session) => Ok(session),
            Session::Sql(_) => panic!("YCSB's records are reached by key"),
        }
    }

    fn sql(&self) -> Box<dyn SqlSession> {
        Box::new(session(&self.server, &self.setup).expect("a session"))
    }

    /// As another process finds it: everything is in the file.
    fn close(&self) {
        DuckDb.close(&self.server);
        assert!(!journal(self.file()).exists(), "the log is in the file");
    }

    fn file(&self) -> &Path {
        path(&self.server).expect("a file")
    }

    fn refusal(&self) -> String {
        let text = self.connect().err().expect("connecting is refused").to_string();
        text.replace(&self.file().display().to_string(), "FILE")
    }

    /// What the check called `id` of the arm with `options` sees here.
    fn sees(&self, id: &str, options: &[(&str, &str)]) -> Observation {
        let checks = encryption::Encryption.evidence(&asked(options));
        self.observe(&**checks.iter().find(|check| check.id() == id).expect("a check of the protection"))
    }

    fn observe(&self, check: &dyn Check) -> Observation {
        let mut context = CheckContext {
            database: &DuckDb,
            server: &self.server,
            setup: &self.setup,
            table: &self.table,
            protected: self.setup.at_rest.is_some(),
            nonce: 4711,
            narrowed: None,
        };
        seen_by(check, &mut context)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        DuckDb.close(&self.server);
    }
}

fn asked(options: &[(&str, &str)]) -> experiment::Protection {
    chosen(DuckDb.protections(), "encryption", options)
}

/// All operations of a workload, in order, with their results.
fn exercise(bench: &Bench) -> String {
    let last_field = |_| &b"\xff longer than twelve bytes"[..];
    test_operations::exercise(bench.connect().expect("a session").as_mut(), last_field)
}

#[test]
fn every_arm_answers_alike_and_keeps_what_was_written() {
    let answers = [None].into_iter().chain(ARMS.map(Some)).map(|options| {
        let bench = Bench::created(options);
        let text = exercise(&bench);
        bench.close();
        let mut session = bench.connect().expect("it is opened again");
        session.warm().expect("warmed");
        text + &seen(session.as_mut(), Request::Read { key: b"user3", fields: Fields::All })
    });
    let answers: Vec<_> = answers.collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    expect![[r#"
        1 rows
        -: 0=a 1= 2=\xff longer than twelve bytes
        0 rows
        1 rows
        0 rows
        1 rows
        -: 1=new
        2 rows
        user2: 0=a 1= 2=\xff longer than twelve bytes
        user3: 0=a 1= 2=\xff longer than twelve bytes
        2 rows
        user1: 2=\xff longer than twelve bytes
        user2: 2=\xff longer than twelve bytes
        0 rows
        1 rows
        0 rows
        server: Constraint Error: Duplicate key … violates primary key constraint.
        2 rows
        user1: 0=a
        user3: 0=a
        1 rows
        -: 0=a 1= 2=\xff longer than twelve bytes
    "#]]
    .assert_eq(&answers[0]);
}

#[test]
fn values_of_every_kind_are_text() {
    let bench = Bench::created(None);
    let mut session = bench.sql();
    let row = session
        .run(
            "SELECT true, 1::TINYINT, -2::SMALLINT, 3, 4::BIGINT, 5::UTINYINT, 6::USMALLINT, 7::UINTEGER, 8::UBIGINT, \
             1.5::FLOAT, 2.25::DOUBLE, -9::HUGEINT, 10::UHUGEINT, 'a', 'more than twelve bytes', NULL, 'b'::BLOB",
        )
        .expect("a row");
    let row: Vec<String> = row.into_iter().flatten().map(|value| value.unwrap_or_else(|| "NULL".to_owned())).collect();
    assert_eq!(row.join(" "), "true 1 -2 3 4 5 6 7 8 1.5 2.25 -9 10 a more than twelve bytes NULL b");
    let fault = session.run("SELECT [1, 2]").expect_err("a list");
    assert_eq!(fault.to_string(), "server: values of DuckDB's type 24 are not read: cast them to VARCHAR");
    // More rows than a chunk, and the receiver that has had enough.
    assert_eq!(session.run("SELECT i FROM range(5000) t(i)").expect("rows").len(), 5000);
}

#[test]
fn a_row_that_another_client_changes_is_tried_again_outside_a_transaction() {
    let bench = Bench::created(None);
    insert(bench.connect().expect("a session").as_mut(), b"user1", [b"a"; 3]).expect("inserted");
    thread::scope(|scope| {
        for _ in 0..2 {
            let mut session = bench.connect().expect("a session");
            scope.spawn(move || {
                for _ in 0..20 {
                    let update = Request::Update { key: b"user1", values: &[(1, b"new")] };
                    assert_eq!(session.call(&update, &mut Discard), Ok(1));
                }
            });
        }
    });
    let (mut first, mut second) = (bench.sql(), bench.sql());
    let update = "UPDATE usertable SET field0 = 'x'::BLOB";
    for session in [&mut first, &mut second] {
        session.run("BEGIN").expect("begun");
        assert!(session.in_transaction());
    }
    first.run(update).expect("the first wins");
    let Fault::Server(words) = second.run(update).expect_err("a conflict") else { panic!("a server's error") };
    assert!((second.dialect().is_conflict)(&words), "{words}");
    second.run("ROLLBACK").expect("rolled back");
    assert!(!second.in_transaction() && first.in_transaction());
}

#[test]
fn what_was_not_asked_for_is_refused() {
    let refused = |bench: &Bench, words: &str| {
        let said = bench.refusal();
        assert!(said.contains(words), "{said}");
    };
    let mut bench = Bench::created(Some(&[]));
    let own = bench.setup.clone();
    bench.setup.at_rest = None;
    refused(&bench, "the database is open with another key, cipher or settings");
    bench.close();
    refused(&bench, "without a key");
    for (cipher, key, words) in [
        ("CTR", own.credentials.key.clone(), "with a different cipher (CTR) than the one used to create it (GCM)"),
        ("GCM", Secret::new("wrong"), "Wrong encryption key"),
        ("ROT13", own.credentials.key.clone(), "is not a valid cipher"),
    ] {
        bench.setup.at_rest = Some(AtRest { cipher: cipher.to_owned(), key });
        refused(&bench, words);
    }
    let mut bench = Bench::created(None);
    bench.close();
    bench.setup.at_rest = own.at_rest;
    refused(&bench, "is not encrypted");
    refused(&Bench::new(None), "there is no file");
    let mut bench = Bench::new(None);
    fs::write(bench.file(), b"not a database, but long enough to be read as one").expect("written");
    refused(&bench, "not a valid DuckDB database file");
    bench.setup.settings.insert("threads".to_owned(), "4".to_owned());
    refused(&bench, "`threads` is not a setting of DuckDB here");
}

#[test]
fn facts_name_library_cipher_and_provider() {
    for (options, cipher, provider, temporary) in [
        (None, "none", "none", "false"),
        (Some(&[][..]), "GCM", "openssl", "true"),
        (Some(ARMS[2]), "GCM", "mbedtls", "false"),
    ] {
        let bench = Bench::created(options);
        let ArmFacts { version, facts, configuration } = DuckDb.facts(&bench.server, &bench.setup).expect("facts");
        assert!(version.starts_with("DuckDB v1.5."), "{version}");
        let expected = [("cipher", cipher), ("provider", provider), ("temp_file_encryption", temporary)];
        assert!(expected.iter().all(|(name, value)| facts[*name] == *value), "{facts:?}");
        assert_eq!(configuration.iter().any(|line| line.ends_with("ENCRYPTION_KEY ***")), options.is_some());
    }
}

#[test]
fn evidence_holds_on_every_arm_and_fails_on_the_plain_one() {
    for options in ARMS {
        let plain = Bench::created(None);
        exercise(&plain);
        let bench = Bench::created(Some(options));
        exercise(&bench);
        for check in encryption::Encryption.evidence(&asked(options)) {
            let (here, there) = (bench.observe(&*check), plain.observe(&*check));
            let verdict = judge(check.entry().control, &here, Some(&there));
            assert_eq!(verdict, Verdict::Holds, "{options:?} {}: {here:?}, {there:?}", check.id());
        }
        // A check leaves no copy; the few canaries of the first one sort before all other keys.
        let mut session = bench.connect().expect("a session");
        let keys = seen(session.as_mut(), Request::Scan { start: b"d", count: 9, fields: Fields::One(0) });
        assert_eq!(keys, "2 rows\nuser1: 0=a\nuser3: 0=a\n");
        drop(session);
        bench.close();
        assert_eq!(fs::read_dir(&bench.server.folder).expect("a folder").count(), 1);
    }
}

/// Arms that look protected and are not, or look open and are: for each, the check that tells, and what it must say.
mod deceptions {
    use super::*;

    /// The check `id`, told to look for `options`, sees on `bench` an observation of this kind that says `words`.
    fn tells(bench: &Bench, id: &str, options: &[(&str, &str)], kind: &str, words: &str) {
        let observation = bench.sees(id, options);
        let said = format!("{observation:?}");
        assert!(said.starts_with(kind) && said.contains(words), "{id}: {said}");
    }

    #[test]
    fn a_plain_file_behind_an_arm_that_is_named_encrypted() {
        let mut bench = Bench::created(None);
        bench.close();
        encryption::Encryption.apply(&asked(&[]), &mut bench.setup);
        tells(&bench, "header", &[], "Exposed", "not encrypted");
        for id in ["disk-canary", "journal-canary", "temporary-canary", "wrong-key", "crypto-provider"] {
            tells(&bench, id, &[], "Unknown", "is not encrypted");
        }
    }

    #[test]
    fn a_flag_that_says_encrypted_on_a_plain_file() {
        use std::os::unix::fs::FileExt as _;
        let mut bench = Bench::created(None);
        bench.close();
        let file = fs::File::options().write(true).open(bench.file()).expect("the file");
        file.write_all_at(&[1], 0x14).and_then(|()| file.write_all_at(&[1], 0x76)).expect("written");
        encryption::Encryption.apply(&asked(&[]), &mut bench.setup);
        // The header alone is deceived; nothing that opens the file is.
        tells(&bench, "header", &[], "Protected", "GCM");
        for id in ["disk-canary", "wrong-key", "crypto-provider"] {
            tells(&bench, id, &[], "Unknown", "refused");
        }
    }

    #[test]
    fn ctr_where_gcm_was_asked_for() {
        let bench = Bench::created(Some(&[("cipher", "ctr")]));
        tells(&bench, "header", &[], "Exposed", "AES-CTR");
    }

    #[test]
    fn mbedtls_where_openssl_was_asked_for() {
        let bench = Bench::created(Some(&[("provider", "mbedtls")]));
        tells(&bench, "crypto-provider", &[], "Exposed", "mbedTLS");
    }

    #[test]
    fn openssl_that_is_loaded_and_passed_over() {
        let bench = Bench::beginning_with("SET force_mbedtls_unsafe = true", Some(&[]));
        tells(&bench, "crypto-provider", &[], "Exposed", "mbedTLS: force_mbedtls_unsafe is true, httpfs is 827222f");
    }

    /// Looks off: the setting for mbedTLS was on for a moment.
    #[test]
    fn mbedtls_that_was_switched_off_again() {
        let bench =
            Bench::beginning_with("SET force_mbedtls_unsafe = true; SET force_mbedtls_unsafe = false", Some(&[]));
        tells(&bench, "crypto-provider", &[], "Protected", "OpenSSL");
    }

    #[test]
    fn temporary_files_stay_plain_beside_an_encrypted_file() {
        let bench = Bench::created(Some(&[("temporary_files", "false")]));
        tells(&bench, "temporary-canary", &[], "Exposed", "canaries found");
        tells(&bench, "disk-canary", &[], "Protected", "none");
    }

    #[test]
    fn a_session_that_switches_temporary_files_back_to_plain() {
        let bench = Bench::beginning_with("SET temp_file_encryption = false", Some(&[]));
        tells(&bench, "temporary-canary", &[], "Exposed", "canaries found");
    }

    #[test]
    fn temporary_files_that_are_written_elsewhere() {
        let elsewhere = tempfile::tempdir().expect("a folder");
        let statement = format!("SET temp_directory = '{}'", elsewhere.path().join("tmp").display());
        let bench = Bench::beginning_with(&statement, Some(&[]));
        tells(&bench, "temporary-canary", &[], "Unknown", "are elsewhere");
    }

    #[test]
    fn a_key_that_is_kept_beside_the_file() {
        let bench = Bench::created(Some(&[]));
        fs::write(bench.server.folder.join("notes.sql"), format!("-- {}", bench.setup.credentials.key.expose_hex()))
            .expect("written");
        tells(&bench, "key-apart", &[], "Exposed", "notes.sql");
    }

    #[test]
    fn a_log_that_a_checkpoint_has_emptied_proves_nothing() {
        let bench = Bench::beginning_with("SET checkpoint_threshold = '1 byte'", Some(&[]));
        tells(&bench, "journal-canary", &[], "Unknown", "less than was written");
    }
}
