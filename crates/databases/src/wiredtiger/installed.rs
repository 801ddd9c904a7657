//! All of WiredTiger, plain and with every cipher, on folders in a temporary folder: tests that need its library.

use std::{fs, os::unix::fs::PermissionsExt};

use expect_test::{Expect, expect};
use tempfile::TempDir;
use tithe_machine::{credentials::Credentials, observation::Observation};
use tithe_model::experiment::{self, OptionValue};
use tithe_plugin::{
    evidence::{Check, CheckContext, judge, seen_by},
    session::{Discard, Fields, KeyValueSession, Request},
};

use super::{encryptor::CIPHERS, *};
use crate::test_operations::{self, insert, seen};

/// A server's folder, set up and table, in a temporary folder of its own.
struct Bench {
    _folder: TempDir,
    server: Server,
    setup: Setup,
    table: Table,
}

impl Bench {
    /// Plain, or encrypted with `cipher`; the journal is small, so that many benches fit on a disk.
    fn new(cipher: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let setup = setup(cipher);
        let place = Place::on_loopback(folder.path().join("server"), 0);
        fs::create_dir(&place.folder).unwrap();
        let launch = WiredTiger.launch(&Install::default(), &setup, &place);
        launch.steps.iter().for_each(carry_out);
        let server = Server::embedded(&launch, &place.folder);
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
        WiredTiger.create(&self.server, &self.setup, &self.table)
    }

    fn connect(&self) -> Result<Box<dyn KeyValueSession>, Fault> {
        let how = Connect::blocking(self.table.clone());
        match WiredTiger.connect(&self.server, &self.setup, &how)? {
            Session::KeyValue(session) => Ok(session),
            Session::Sql(_) => panic!("WiredTiger is reached as a key-value store"),
        }
    }

    fn quiesce(&self) {
        WiredTiger.quiesce(&self.server, &self.setup, &self.table).unwrap();
    }

    fn close(&self) {
        WiredTiger.close(&self.server);
    }

    fn folder(&self) -> &Path {
        folder(&self.server).unwrap()
    }

    fn refusal(&self) -> String {
        let text = self.connect().err().expect("connecting is refused").to_string();
        text.replace(&self.server.folder.display().to_string(), "SERVER")
    }

    fn observe(&self, evidence: &dyn Check) -> Observation {
        let mut context = CheckContext {
            database: &WiredTiger,
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

impl Drop for Bench {
    fn drop(&mut self) {
        self.close();
    }
}

/// True if the library is installed; otherwise prints what is missing, and fails if everything must be installed.
fn installed() -> bool {
    match library::library(&Search::default()) {
        Ok(_) => true,
        Err(missing) => {
            assert!(std::env::var_os("CI").is_none(), "{missing:?}");
            #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
            {
                eprintln!("SKIPPED: {} is missing; {}", missing.what, missing.how_to_install.join("; "));
            }
            false
        }
    }
}

fn carry_out(step: &Step) {
    match step {
        Step::Folder(path) => fs::create_dir(path).unwrap(),
        Step::Write { path, content, mode } => {
            let bytes = match content {
                Content::Text(text) => text.as_bytes(),
                Content::Secret(secret) => secret.expose(),
            };
            fs::write(path, bytes).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        other => panic!("{other:?}"),
    }
}

fn setup(cipher: Option<&str>) -> Setup {
    let credentials = Credentials::without_files(
        Secret::new("password of the tests"),
        Secret::new(*b"0123456789abcdef0123456789abcdeF"),
    );
    let settings = [("journal_file_mb", "1"), ("cache_size_mb", "10"), ("checkpoint_interval_s", "0")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut setup = Setup::plain(BTreeMap::from(settings), credentials);
    if let Some(cipher) = cipher {
        page_encryption::PageEncryption.apply(&chosen(cipher), &mut setup);
    }
    setup
}

/// The protection as an experiment chooses it: with `cipher`, and the default of every other option.
fn chosen(cipher: &str) -> experiment::Protection {
    let options = page_encryption::PageEncryption.entry().options.iter();
    let options = options.filter_map(|option| Some((option.name.to_owned(), option.default?.value())));
    let mut chosen = experiment::Protection::listed("page-encryption", options.collect());
    choose(&mut chosen, "cipher", cipher);
    chosen
}

fn choose(chosen: &mut experiment::Protection, name: &str, text: &str) {
    chosen.options.insert(name.to_owned(), OptionValue::Text(text.to_owned()));
}

/// All operations of a workload, in order, with their results.
fn exercise(bench: &Bench) -> String {
    test_operations::exercise(bench.connect().unwrap().as_mut(), |key| key)
}

#[test]
fn every_arm_answers_alike_and_keeps_what_was_written() {
    if !installed() {
        return;
    }
    let answers = [None].into_iter().chain(CIPHERS.map(Some)).map(|cipher| {
        let bench = Bench::created(cipher);
        let text = exercise(&bench);
        bench.quiesce();
        let mut session = bench.connect().unwrap();
        insert(session.as_mut(), b"user4", [b"late"; 3]).unwrap();
        drop(session);
        // Another engine, another salt, after the first has closed its files.
        bench.close();
        let mut session = bench.connect().unwrap();
        insert(session.as_mut(), b"user5", [b"later"; 3]).unwrap();
        text + &seen(session.as_mut(), Request::Scan { start: b"user3", count: 9, fields: Fields::One(0) })
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
        server: there is a document with this _id already
        2 rows
        user1: 0=a
        user3: 0=a
        3 rows
        user3: 0=a
        user4: 0=late
        user5: 0=later
    "#]]
    .assert_eq(&answers[0]);
}

#[test]
fn what_was_not_asked_for_is_refused() {
    if !installed() {
        return;
    }
    let mut texts = String::new();
    let mut note = |what: &str, bench: &Bench| texts += &format!("{what}: {}\n", bench.refusal());

    let mut bench = Bench::created(Some("aes-256-gcm"));
    let own = bench.setup.clone();
    bench.setup = setup(None);
    note("open, asked for plainly", &bench);
    bench.close();
    note("encrypted, opened plainly", &bench);
    bench.setup = setup(Some("aes-256-cbc"));
    note("another cipher", &bench);
    bench.setup = own;
    let key_file = keystore::master_key_path(&bench.server.folder);
    fs::write(&key_file, "00".repeat(32)).unwrap();
    note("another master key", &bench);
    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o644)).unwrap();
    note("a key file for all", &bench);
    fs::remove_file(&key_file).unwrap();
    note("no key file", &bench);

    let mut bench = Bench::created(None);
    bench.close();
    bench.setup = setup(Some("aes-256-gcm"));
    fs::copy(bench.folder().join(MARK), keystore::master_key_path(&bench.server.folder)).unwrap();
    note("an empty key file", &bench);
    fs::write(keystore::master_key_path(&bench.server.folder), "00".repeat(32)).unwrap();
    note("plain, opened with a key", &bench);
    bench.setup = setup(None);
    fs::remove_file(bench.folder().join(MARK)).unwrap();
    note("not ours", &bench);
    expect![[r#"
        open, asked for plainly: refused: the database is open with other keys or settings
        encrypted, opened plainly: refused: SERVER/data is encrypted with aes-256-gcm, and no encryption was asked for
        another cipher: refused: SERVER/data is encrypted with aes-256-gcm, and aes-256-cbc was asked for
        another master key: refused: the master key is not the one of this database
        a key file for all: refused: SERVER.master-key is readable by others than its owner (mode 644): chmod 600
        no key file: SERVER.master-key: No such file or directory (os error 2)
        an empty key file: refused: SERVER.master-key does not hold 64 hexadecimal digits
        plain, opened with a key: refused: SERVER/data is not encrypted, and encryption was asked for
        not ours: refused: SERVER/data was not made by Tithe
    "#]]
    .assert_eq(&texts);
}

#[test]
fn threads_of_one_table_do_not_lose_writes() {
    if !installed() {
        return;
    }
    let bench = Bench::created(Some("aes-256-gcm"));
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let bench = &bench;
            scope.spawn(move || {
                let mut session = bench.connect().unwrap();
                for number in 0..50 {
                    let key = format!("user{thread}-{number:02}");
                    assert_eq!(insert(session.as_mut(), key.as_bytes(), [b"x"; 3]).unwrap(), 1);
                    // All write to one record: transactions conflict and are repeated.
                    let hot = Request::Update { key: b"user0-00", values: &[(1, key.as_bytes())] };
                    session.call(&hot, &mut Discard).unwrap();
                }
            });
        }
    });
    let mut session = bench.connect().unwrap();
    let count = session.call(&Request::Scan { start: b"", count: 999, fields: Fields::One(0) }, &mut Discard);
    assert_eq!(count.unwrap(), 200);
}

/// The result of every check on the arm with `cipher` and the plain arm together. The engine's cache with a table of
/// two documents is covered by another test.
fn check_evidence(cipher: &str, expect: Expect) {
    let (plain, protected) = (Bench::created(None), Bench::created(Some(cipher)));
    exercise(&plain);
    exercise(&protected);
    let mut text = String::new();
    let checks = page_encryption::PageEncryption.evidence(&chosen(cipher));
    for check in checks.iter().filter(|check| check.id() != "cache-fits") {
        let (on_protected, on_plain) = (protected.observe(check.as_ref()), plain.observe(check.as_ref()));
        text += &format!("{}: {:?}\n", check.id(), judge(check.entry().control, &on_protected, Some(&on_plain)));
        // A check leaves no copy and no probe; canaries, which are few, sort before all other keys.
        let mut session = protected.connect().unwrap();
        let keys = seen(session.as_mut(), Request::Scan { start: b"d", count: 9, fields: Fields::One(0) });
        assert_eq!(keys, "2 rows\nuser1: 0=a\nuser3: 0=a\n", "{}", check.id());
        assert_eq!(fs::read_dir(&protected.server.folder).unwrap().count(), 1, "{}", check.id());
    }
    expect.assert_eq(&text);
}

#[test]
fn evidence_holds_with_every_cipher_and_names_what_bare_cbc_lacks() {
    if !installed() {
        return;
    }
    check_evidence(
        "aes-256-gcm",
        expect![[r#"
        disk-canary: Holds
        journal-canary: Holds
        no-repeated-ciphertext: Holds
        wrong-key: Holds
        key-apart: Holds
        data-key-wrapped: Holds
        keys-locked: Holds
        tamper: Holds
        key-rotation: Holds
    "#]],
    );
    check_evidence(
        "aes-256-cbc-hmac",
        expect![[r#"
        disk-canary: Holds
        journal-canary: Holds
        no-repeated-ciphertext: Holds
        wrong-key: Holds
        key-apart: Holds
        data-key-wrapped: Holds
        keys-locked: Holds
        tamper: Holds
        key-rotation: Holds
    "#]],
    );
    check_evidence(
        "aes-256-cbc",
        expect![[r#"
        disk-canary: Holds
        journal-canary: Holds
        no-repeated-ciphertext: Holds
        wrong-key: Holds
        key-apart: Holds
        data-key-wrapped: Holds
        keys-locked: Holds
        tamper: Fails
        key-rotation: Holds
    "#]],
    );
    check_evidence(
        "none",
        expect![[r#"
        encryptor-idle: Holds
    "#]],
    );
}

#[test]
fn quotations_say_who_refused() {
    if !installed() {
        return;
    }
    let bench = Bench::created(Some("aes-256-gcm"));
    exercise(&bench);
    let observation = bench.observe(&evidence::wrong_key::WrongKey);
    let parts = [
        "with a wrong master key: the master key is not the one of this database",
        "with a wrong data key: ",
        "the authentication tag of a page or record is wrong",
        "without an encryptor: ",
    ];
    assert!(parts.iter().all(|part| observation.quotation().contains(part)), "{observation:?}");
    let observation = bench.observe(&evidence::tamper::Tamper);
    assert!(observation.quotation().contains("the authentication tag of a page or record is wrong"), "{observation:?}");
    // The engine prints damaged pages; they must not get into a report.
    assert!(!observation.quotation().contains("corrupt_dump"), "{observation:?}");
}

#[test]
fn the_engine_tells_whether_the_cache_holds_the_data() {
    if !installed() {
        return;
    }
    // The engine evicts unwritten pages when they are a twentieth of the cache: never with the larger cache.
    for (cache_mb, fits) in [("1024", true), ("4", false)] {
        let mut bench = Bench::new(None);
        bench.setup.settings.insert("cache_size_mb".to_owned(), cache_mb.to_owned());
        bench.setup.settings.insert("compressor".to_owned(), "none".to_owned());
        bench.create().unwrap();
        let mut session = bench.connect().unwrap();
        let key = |number: u32| format!("user{number:05}").into_bytes();
        for number in 0..10_000 {
            insert(session.as_mut(), &key(number), [&[7; 1000]; 3]).unwrap();
        }
        // Unwritten pages may only take a fifth of the cache.
        bench.quiesce();
        // Consecutive reads are far apart, so that they do not share a page.
        for number in 0..60_000 {
            let key = key(number * 7919 % 10_000);
            assert_eq!(session.call(&Request::Read { key: &key, fields: Fields::All }, &mut Discard).unwrap(), 1);
        }
        assert!(WiredTiger.cache_use(&bench.server, &bench.setup).is_some_and(|cache| cache.asked >= 60_000));
        let observation = bench.observe(&evidence::cache::CacheFits);
        assert_eq!(matches!(observation, Observation::Protected(_)), fits, "{cache_mb} MB: {observation:?}");
        let usage = WiredTiger.usage(&bench.server, &bench.setup).unwrap();
        assert!(usage.cpu_ns > 0 && usage.written_bytes > Some(20_000_000), "{usage:?}");
        drop(session);
        bench.close();
        assert_eq!(WiredTiger.cache_use(&bench.server, &bench.setup), Some(CacheUse::default()));
        assert!(!all_opened().contains_key(bench.folder()), "a closed engine is not opened to be asked");
    }
}

#[test]
fn an_engine_that_failed_is_left_and_not_waited_for() {
    if !installed() {
        return;
    }
    for damaged in [false, true] {
        let bench = Bench::created(Some("aes-256-gcm"));
        exercise(&bench);
        bench.close();
        if damaged {
            let file = bench.folder().join(session::records_file(&bench.table));
            let mut bytes = fs::read(&file).unwrap();
            bytes.iter_mut().skip(FILE_UNIT).for_each(|byte| *byte ^= 0xff);
            fs::write(&file, bytes).unwrap();
        }
        assert_eq!(bench.connect().is_err(), damaged);
        let engine = Arc::downgrade(&opened(&bench.server, &bench.setup).unwrap().engine);
        // Closing an engine that cannot read its pages may never end: this call returns, and the engine stays open.
        bench.close();
        assert_eq!(engine.upgrade().is_some_and(|engine| engine.failed()), damaged);
        assert_eq!(engine.upgrade().is_some(), damaged);
    }
}

#[test]
fn a_key_server_gives_the_master_key() {
    if !installed() {
        return;
    }
    let Some(key_server) = kmip::installed::TestServer::start() else { return };
    let new_key = || kmip::installed::key(&key_server, &key_server.make_key(256));
    let (own, other) = (new_key(), new_key());
    let mut choice = chosen("aes-256-gcm");
    for (name, text) in [
        ("kmip_server", own.address.clone()),
        ("kmip_key_id", own.key_id.clone()),
        ("kmip_certificate", own.certificate.display().to_string()),
        ("kmip_private_key", own.key.display().to_string()),
        ("kmip_authority", own.authority.display().to_string()),
    ] {
        choose(&mut choice, name, &text);
    }
    assert_eq!(page_encryption::PageEncryption.needs(&Install::default(), &choice), Ok(()));

    let mut protected = Bench::new(None);
    page_encryption::PageEncryption.apply(&choice, &mut protected.setup);
    assert_eq!(protected.setup.key_server.as_ref(), Some(&own));
    protected.setup.credentials.untrusted_authority = key_server.credentials.untrusted_authority.clone();
    protected.create().unwrap();
    exercise(&protected);
    assert!(!keystore::master_key_path(&protected.server.folder).exists());
    let plain = Bench::created(None);
    exercise(&plain);
    let checks = page_encryption::PageEncryption.evidence(&choice);
    let ids = ["key-served", "wrong-key", "data-key-wrapped", "key-rotation"];
    for check in checks.iter().filter(|check| ids.contains(&check.id())) {
        let (on_protected, on_plain) = (protected.observe(check.as_ref()), plain.observe(check.as_ref()));
        let judgement = judge(check.entry().control, &on_protected, Some(&on_plain));
        assert_eq!(format!("{judgement:?}"), "Holds", "{}: {on_protected:?}", check.id());
    }

    // The database opens again with its own key, and with no other.
    protected.close();
    drop(protected.connect().unwrap());
    protected.close();
    protected.setup.key_server = Some(other);
    assert_eq!(protected.refusal(), "refused: the master key is not the one of this database");

    choose(&mut choice, "kmip_key_id", "4711");
    let missing = page_encryption::PageEncryption.needs(&Install::default(), &choice).unwrap_err();
    assert!(missing.looked_in[0].contains("the server says: "), "{missing:?}");
    choose(&mut choice, "kmip_authority", "");
    let missing = page_encryption::PageEncryption.needs(&Install::default(), &choice).unwrap_err();
    assert_eq!(missing.what, "the option kmip_authority of page-encryption");
}
