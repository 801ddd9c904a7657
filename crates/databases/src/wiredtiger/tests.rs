//! The whole of WiredTiger, plain and with every cipher, on folders in a temporary folder.

use std::{fs, os::unix::fs::PermissionsExt};

use expect_test::{Expect, expect};
use tempfile::TempDir;
use tithe_harness::{
    clock::Clock,
    evidence::{Control, Evidence, Scene, Sight, judge},
    protection::Materials,
    session::{Discard, Fields, KeyValueSession, Request, Rows},
};
use tithe_model::experiment::{self, OptionValue};

use super::{encryptor::CIPHERS, *};

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
        let place = Place { folder: folder.path().join("server"), port: 0 };
        fs::create_dir(&place.folder).unwrap();
        let Launch { steps, address, paths, .. } = WiredTiger.launch(&Install::default(), &setup, &place);
        steps.iter().for_each(carry_out);
        let server = Server { address, process: None, paths, folder: place.folder };
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
        let how = Connect { blocking: true, lane: 0, clock: Clock::Real, table: self.table.clone() };
        match WiredTiger.connect(&self.server, &self.setup, &how)? {
            Session::KeyValue(session) => Ok(session),
            Session::Sql(_) => panic!("WiredTiger is reached as a key-value store"),
        }
    }

    fn settle(&self) {
        WiredTiger.settle(&self.server, &self.setup, &self.table).unwrap();
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

    fn look(&self, evidence: &dyn Evidence) -> Sight {
        let mut scene = Scene {
            database: &WiredTiger,
            server: &self.server,
            setup: &self.setup,
            table: &self.table,
            guarded: self.setup.at_rest.is_some(),
            nonce: 4711,
        };
        evidence.look(&mut scene)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.close();
    }
}

/// True when the library is there; else says loudly what is missing, and fails where everything must be there.
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
    let materials = Materials {
        authority: PathBuf::new(),
        server_certificate: PathBuf::new(),
        server_key: PathBuf::new(),
        client_certificate: PathBuf::new(),
        client_key: PathBuf::new(),
        stranger: PathBuf::new(),
        password: Secret::new("password of the tests"),
        key: Secret::new(*b"0123456789abcdef0123456789abcdeF"),
    };
    let settings = [("journal_file_mb", "1"), ("cache_size_mb", "10"), ("checkpoint_interval_s", "0")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut setup = Setup::plain(BTreeMap::from(settings), materials);
    if let Some(cipher) = cipher {
        page_encryption::PageEncryption.apply(&chosen(cipher), &mut setup);
    }
    setup
}

fn chosen(cipher: &str) -> experiment::Protection {
    experiment::Protection {
        id: "page-encryption".to_owned(),
        options: BTreeMap::from(
            [("cipher", cipher), ("aes", "processor")]
                .map(|(name, text)| (name.to_owned(), OptionValue::Text(text.to_owned()))),
        ),
    }
}

fn insert(session: &mut dyn KeyValueSession, key: &[u8], values: [&[u8]; 3]) -> Result<u64, Fault> {
    let values = [(0, values[0]), (1, values[1]), (2, values[2])];
    session.call(&Request::Insert { key, values: &values }, &mut Discard)
}

/// Writes rows down, one a line.
#[derive(Default)]
struct Seen(String);

impl Rows for Seen {
    fn row(&mut self, key: Option<&[u8]>) {
        self.0 += &format!("\n{}:", key.map_or("-".into(), String::from_utf8_lossy));
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        self.0 += &format!(" {field}={}", value.map_or("null".into(), String::from_utf8_lossy));
    }
}

fn seen(session: &mut dyn KeyValueSession, request: Request<'_>) -> String {
    let mut seen = Seen::default();
    let count = session.call(&request, &mut seen).unwrap();
    format!("{count} rows{}\n", seen.0)
}

/// Everything that a workload does, in order, with what comes back.
fn exercise(bench: &Bench) -> String {
    let mut session = bench.connect().unwrap();
    let session = session.as_mut();
    session.begin_bulk().unwrap();
    for key in [&b"user3"[..], b"user1", b"user2"] {
        assert_eq!(insert(session, key, [b"a", b"", key]).unwrap(), 1);
    }
    session.end_bulk().unwrap();
    let mut text = String::new();
    text += &seen(session, Request::Read { key: b"user1", fields: Fields::All });
    text += &seen(session, Request::Read { key: b"user9", fields: Fields::All });
    text += &seen(session, Request::Update { key: b"user1", values: &[(1, b"new")] });
    text += &seen(session, Request::Update { key: b"user9", values: &[(1, b"new")] });
    text += &seen(session, Request::Read { key: b"user1", fields: Fields::One(1) });
    text += &seen(session, Request::Scan { start: b"user2", count: 9, fields: Fields::All });
    text += &seen(session, Request::Scan { start: b"", count: 2, fields: Fields::One(2) });
    text += &seen(session, Request::Scan { start: b"user4", count: 2, fields: Fields::All });
    text += &seen(session, Request::Delete { key: b"user2" });
    text += &seen(session, Request::Delete { key: b"user2" });
    text += &format!("{}\n", insert(session, b"user1", [b"a"; 3]).unwrap_err());
    text += &seen(session, Request::Scan { start: b"", count: 9, fields: Fields::One(0) });
    text
}

#[test]
fn every_arm_answers_alike_and_keeps_what_was_written() {
    if !installed() {
        return;
    }
    let answers = [None].into_iter().chain(CIPHERS.map(Some)).map(|cipher| {
        let bench = Bench::created(cipher);
        let text = exercise(&bench);
        bench.settle();
        let mut session = bench.connect().unwrap();
        insert(session.as_mut(), b"user4", [b"late"; 3]).unwrap();
        drop(session);
        // Another engine, another launch, after the first has closed its files.
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
                    // Everybody writes to one record: transactions lose and are tried again.
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

/// What every check sees on the plain arm and on the arm of `cipher`; numbers of files and bytes are left out.
fn check_evidence(cipher: &str, expect: Expect) {
    let (plain, guarded) = (Bench::created(None), Bench::created(Some(cipher)));
    exercise(&plain);
    exercise(&guarded);
    let mut text = String::new();
    for check in page_encryption::PageEncryption.evidence(&chosen(cipher)) {
        let (on_guarded, on_plain) = (guarded.look(check.as_ref()), plain.look(check.as_ref()));
        let verdict = judge(check.control(), &on_guarded, Some(&on_plain));
        let told =
            |sight: &Sight| sight.quotation().chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>();
        text += &format!("{}: {verdict:?}\n  guarded: {}\n", check.id(), told(&on_guarded));
        if check.control() == Control::PlainArm {
            text += &format!("  plain: {}\n", told(&on_plain));
        }
        // Looking leaves no copy and no probe; canaries, which are few, sort before all other keys.
        let mut session = guarded.connect().unwrap();
        let keys = seen(session.as_mut(), Request::Scan { start: b"d", count: 9, fields: Fields::One(0) });
        assert_eq!(keys, "2 rows\nuser1: 0=a\nuser3: 0=a\n", "{}", check.id());
        assert_eq!(fs::read_dir(&guarded.server.folder).unwrap().count(), 1, "{}", check.id());
    }
    expect.assert_eq(&text);
}

#[test]
fn evidence_holds_with_gcm() {
    if installed() {
        check_evidence(
            "aes-256-gcm",
            expect![[r#"
                disk-canary: Holds
                  guarded: none of  canaries in  files, . kB
                  plain: canary ×:  times, in data/collection-usertable.wt (), data/index-usertable.wt ()
                journal-canary: Holds
                  guarded: none of  canaries in  files, . MB
                  plain: canary ×:  times, in data/journal/WiredTigerLog. ()
                no-repeated-ciphertext: Holds
                  guarded:  of  blocks in  changed units repeat an earlier one
                  plain:  of  blocks in  changed units repeat an earlier one
                wrong-key: Holds
                  guarded: with a wrong master key: the master key is not the one of this database; with a wrong data key: WT_TRY_SALVAGE: database corruption detected (the authentication tag of a page or record is wrong; file:WiredTiger.wt, connection: __wt_btree_tree_open, : unable to read root page from file:WiredTiger.wt: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : WiredTiger has failed to open its metadata: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : This may be due to the database files being encrypted, being from an older version or due to corruption on disk: WT_ERROR: non-specific WiredTiger error); without an encryptor: WT_TRY_SALVAGE: database corruption detected (file:WiredTiger.wt, connection: __wt_btree_tree_open, : unable to read root page from file:WiredTiger.wt: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : WiredTiger has failed to open its metadata: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : This may be due to the database files being encrypted, being from an older version or due to corruption on disk: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : You should confirm that you have opened the database with the correct options including all encryption and compression options: WT_ERROR: non-specific WiredTiger error)
                  plain: without an encryptor: opened,  documents read
                key-apart: Holds
                  guarded: no data key in  files, . MB; the marker was found
                data-key-wrapped: Holds
                  guarded: no data key in  files, . MB; the wrapped key was found
                keys-locked: Holds
                  guarded:  of  keys are on locked pages; VmLck is  kB
                tamper: Holds
                  guarded: server: WT_PANIC: WiredTiger library panic (the authentication tag of a page or record is wrong; file:collection-usertable.wt, WT_CURSOR.search: __wt_bt_read, : file:collection-usertable.wt: fatal read error: block decryption failed: WT_ERROR: non-specific WiredTiger error; file:collection-usertable.wt, WT_CURSOR.search: __wt_panic, : the process must exit and restart: WT_PANIC: WiredTiger library panic)
                  plain: another value was served
                key-rotation: Holds
                  guarded: master key: wrapped anew in . ms, the old one is refused; data key:  documents dumped and loaded in . s
                cache-fits: Fails
                  guarded:  of  page requests read from a file (. %, . kB); the cache holds . kB of . MB
            "#]],
        );
    }
}

#[test]
fn evidence_holds_with_cbc_and_names_what_it_lacks() {
    if installed() {
        check_evidence(
            "aes-256-cbc",
            expect![[r#"
                disk-canary: Holds
                  guarded: none of  canaries in  files, . kB
                  plain: canary ×:  times, in data/collection-usertable.wt (), data/index-usertable.wt ()
                journal-canary: Holds
                  guarded: none of  canaries in  files, . MB
                  plain: canary ×:  times, in data/journal/WiredTigerLog. ()
                no-repeated-ciphertext: Holds
                  guarded:  of  blocks in  changed units repeat an earlier one
                  plain:  of  blocks in  changed units repeat an earlier one
                wrong-key: Holds
                  guarded: with a wrong master key: the master key is not the one of this database; with a wrong data key: WT_TRY_SALVAGE: database corruption detected (the padding of a page or record is wrong; file:WiredTiger.wt, connection: __wt_btree_tree_open, : unable to read root page from file:WiredTiger.wt: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : WiredTiger has failed to open its metadata: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : This may be due to the database files being encrypted, being from an older version or due to corruption on disk: WT_ERROR: non-specific WiredTiger error); without an encryptor: WT_TRY_SALVAGE: database corruption detected (file:WiredTiger.wt, connection: __wt_btree_tree_open, : unable to read root page from file:WiredTiger.wt: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : WiredTiger has failed to open its metadata: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : This may be due to the database files being encrypted, being from an older version or due to corruption on disk: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : You should confirm that you have opened the database with the correct options including all encryption and compression options: WT_ERROR: non-specific WiredTiger error)
                  plain: without an encryptor: opened,  documents read
                key-apart: Holds
                  guarded: no data key in  files, . MB; the marker was found
                data-key-wrapped: Holds
                  guarded: no data key in  files, . MB; the wrapped key was found
                keys-locked: Holds
                  guarded:  of  keys are on locked pages; VmLck is  kB
                tamper: Fails
                  guarded: another value was served
                  plain: another value was served
                key-rotation: Holds
                  guarded: master key: wrapped anew in . ms, the old one is refused; data key:  documents dumped and loaded in . s
                cache-fits: Fails
                  guarded:  of  page requests read from a file (. %, . kB); the cache holds . kB of . MB
            "#]],
        );
    }
}

#[test]
fn evidence_holds_with_authenticated_cbc() {
    if installed() {
        check_evidence(
            "aes-256-cbc-hmac",
            expect![[r#"
                disk-canary: Holds
                  guarded: none of  canaries in  files, . kB
                  plain: canary ×:  times, in data/collection-usertable.wt (), data/index-usertable.wt ()
                journal-canary: Holds
                  guarded: none of  canaries in  files, . MB
                  plain: canary ×:  times, in data/journal/WiredTigerLog. ()
                no-repeated-ciphertext: Holds
                  guarded:  of  blocks in  changed units repeat an earlier one
                  plain:  of  blocks in  changed units repeat an earlier one
                wrong-key: Holds
                  guarded: with a wrong master key: the master key is not the one of this database; with a wrong data key: WT_TRY_SALVAGE: database corruption detected (the authentication tag of a page or record is wrong; file:WiredTiger.wt, connection: __wt_btree_tree_open, : unable to read root page from file:WiredTiger.wt: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : WiredTiger has failed to open its metadata: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : This may be due to the database files being encrypted, being from an older version or due to corruption on disk: WT_ERROR: non-specific WiredTiger error); without an encryptor: WT_TRY_SALVAGE: database corruption detected (file:WiredTiger.wt, connection: __wt_btree_tree_open, : unable to read root page from file:WiredTiger.wt: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : WiredTiger has failed to open its metadata: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : This may be due to the database files being encrypted, being from an older version or due to corruption on disk: WT_ERROR: non-specific WiredTiger error; file:WiredTiger.wt, connection: __wt_btree_tree_open, : You should confirm that you have opened the database with the correct options including all encryption and compression options: WT_ERROR: non-specific WiredTiger error)
                  plain: without an encryptor: opened,  documents read
                key-apart: Holds
                  guarded: no data key in  files, . MB; the marker was found
                data-key-wrapped: Holds
                  guarded: no data key in  files, . MB; the wrapped key was found
                keys-locked: Holds
                  guarded:  of  keys are on locked pages; VmLck is  kB
                tamper: Holds
                  guarded: server: WT_PANIC: WiredTiger library panic (the authentication tag of a page or record is wrong; file:collection-usertable.wt, WT_CURSOR.search: __wt_bt_read, : file:collection-usertable.wt: fatal read error: block decryption failed: WT_ERROR: non-specific WiredTiger error; file:collection-usertable.wt, WT_CURSOR.search: __wt_panic, : the process must exit and restart: WT_PANIC: WiredTiger library panic)
                  plain: another value was served
                key-rotation: Holds
                  guarded: master key: wrapped anew in . ms, the old one is refused; data key:  documents dumped and loaded in . s
                cache-fits: Fails
                  guarded:  of  page requests read from a file (. %, . kB); the cache holds . kB of . MB
            "#]],
        );
    }
}
