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
            no-repeated-ciphertext: Fails
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
              guarded: server: WT_PANIC: WiredTiger library panic (the authentication tag of a page or record is wrong; file:collection-usertable.wt, WT_CURSOR.search: __wt_bm_corrupt_dump, : {, , xdeea}: (chunk  of ):                 f    e     c               b     f ce c     a c  ff   e b        f f db dd ff  c d  f  c  a a d    d ec d    e d    c a a fd  e ec e fd    a e   f   e a   a b bb a   fc e ee  d fc a b b b f ac  bd d b  be ec  f  ea bb  f  bb cd ab e   dc af ca  c a b fe   d db c   b   b d fe   f d     b   a ad a d f d  a  c  c fa  fd   e    d  e  e f d  c e  ea cd bc b  c b   d   f f  d     a   d  c  f d  a f   a   fe f c  bf  b fc  e d  e ff e dc   c ea   e e  e ad cb e e f c b b c d    e ea d f  ed f a a  e d f e a      e d  ac a    a d     f  fd   d ff f e     f bc   d a b a    d c a  c b c d  b b eb d c  b d fc  d b c ec e d ac        e c  f d   c  e ea b f   ac b  ca fd  a  c  b  a  c f b a    c a bd f  eb  e c a b b  f   ed  be c  be a b d  ae a e   f ba d   a fa c  a d cb  b af ca d  a  e e c de    e c d f b db  c  b  c  a   ac b e  fa  b  df     d ae c b ae f  c bf  f   a  f b  dc c a d eb  b f d eb bf e aa fd ed b  e  fd cc c   c ac a  a  e ec  a e c a b   b f d   d d   f  f b  b   d cb    e  e   cb a  c  c   b f bc d   af f  ff f d b  b f ef ab  d b bc d  d  d da c ff b dc fc c a  c ee  f   d e b e f ee   b d cd d be ea    ad   e a    d f  b eb  f  a fc   d e  c f     c f f   a   f    c b af a   f c de ed af  f  e c ef  d e d  ff e c   bd  d  a f e e b  e e f cd   f aa c cb  f a e b b  fa c b  f f   f aa d f  e f  c a  d e f f d   d a ad  e   a  b   a b d c de e b  f d  ab  a  d  c  c    bc   e  bf  a  ba f a b f  d ea a f f b ea  a f c c d   d e  a a     c  f  c    d d   c c d a a d f    e d cf   ee   f b b   a cb f  c  e  c    fb fc e b  b  e b a  b b f  fc  d d   d  f   ac c  d   a    c      e   c  c b e b    fa   d    cf   e c  f f e f d ce f be  ce  c d  e b  de   db c a   eb c      fa    df a af cf  f b f   ce aa ba a ; file:collection-usertable.wt, WT_CURSOR.search: __wt_bm_corrupt_dump, : {, , xdeea}: (chunk  of ): d d ce a e  e e  a     ab f d a  da    d  a c a c cd f a da e e d f ad    e a  a  a c a de   f  ae  a bf   d c a de d da e     d c d fd f    d b   b e  f f be a   c c  c db ac de d   c ed   b  e c ae  ba b d d d  a ea  e c c fa d a  fd  d e bc c  eb f a eb b d  e  b b cb b      f  aa e  b a  c  cf b b  a  be  f  c a   d  a  a a bc   d c f ca d e a c  c e  cf d  d f fb  f     a     c f  d    f  b b f     b d d cb f c  ce   c  a c eb e   c a   c  c    ae c    e d d b f     e  c  c db e b a f  e a  e     a d     d f f     db b    cd d f  eb  ad   a d   c fd a b    e  ed  f  e f  a  d  f b  d c  a  d e d f    d c c f e c b bf     d dd df f c a ab de  c f  e c f bf    df   f      e e d a b  f b d   ab  b b cc ea f a c e ac  c a  b  d  e  df d        bc dd  da c       e    c fa b  c ba  f bd f  e c d    c fe dc e  b b b f    c  af  ad  aa  b d d   d d f fc  fb d  a af  d c  d  f cc   d  d a e d d de  a ed    f d    e    b d c e b   b bb a  a  a e a c f d    de  f    d  c f      a  f  be  b         ec d dd d  f fd   e      ec e a  d b fc fc b d  a c  ba c  b b b d  d fd f c e bc  a  cf  a  af  d    e  c  e   c f    d b   ae d    c e    b df e a b d   a c    e  b b   ce c ed     a  b         e f d d  d    d   b fa f d f d c e   df f    f    a f a f b a a   d  ff   e f d cc  dd f c   e ff   f af a   a e ba   a bf  b c f d   f   e  d  e a e  c d    a d  ae   d   eb c c d d   ea  f  a c eb d e e  b   d fc b c a  f ac ef   fc e    ef   a   ae be   e f d a c c   d e   f a dd c f ed b fe   a   b  cf   a   e  d c a   fd f f da c d  b ed f e e  f de  a   e a e  c a  eb    b a  dc f b b f a  e   eb c f a dc cf  e  d  d a f b   d    e d c e f e d a ae  e  b f   b f  a a  fa f   e d b e a d   d a b  fd a  a  b  d ee  f b    b b e f   e ; file:collection-usertable.wt, WT_CURSOR.search: __wt_bm_corrupt_dump, : {, , xdeea}: (chunk  of ):  de e e e b a a a  d  e fe  a  f b  d  a  f   de f dc a a  ba a e db f f e   fc   db b d a cf ed  a  ad    c f f   b fc a  f  a fb  fd  c f a  cb  e e    a f b b   b   f   ef c a  a c ec c c fc  c d b cb f a d b aa f c a b e a   d b e  b   d   bd d e a dd   e  f d  c    cd e bd     f e ee c f e      f da  a  a c   a f  d ad  dc a ad c a f  e    e   f f   de  bf f fc c c b   d  be d b  a  ac e  de   ae  d d e a   e e c  c  f d    e b b d fe b b  c  a c  e  b    ef a  c a c   d  e e e fb d   d  f  e e  a   b e cf c f e  d b  f c  b bd b c f f b  f d f aa b   f b   ac c  c f f e cd  a df a  f a    a aa a e de f a b   e f c cf e   e b ba  c ef   d       f e  b  f d b e   a a c c f bd f  f fe f  dc  e e    d b f f de  c d     e  d d   a c a  ac cf a c f fd  d  a c fe c  e f dc e a d eb a  d d   a  b  f b d c a  d e dd   e e ec bc ec b  ba  e  b a   fd d c  d   b   e     fa d  f e da fd df     e e  f f fd  a     e f b f    cd  d f a     a   e b    ec  d f fe aa cb f e  ae f  f f fc e a    d  ae f  ee d d b d f a   bf a e    b  aa  d b fb cd   ab  c   d a c  e c de c db b a f   d e f  b f dc  e d f  ae  f ee a fa  a  b d d c  a b   a a d a    f    ac b ee   f ff a  e d fc f a c     d f  c    b a af d f d f aa fe d  a  fa e    c    b ef  e bc a d  ef  bb f d e   c  e c c ae e c  d a   ef  f  c dd a   b a   a   c e  a   b  a d b d  e   d da    d    b  a b   e a a  e e d a b e c   d  b  df c ff b  f d   d  ce  af  ea b c  d d  b a a    c d a  fc c  bd d  a  a c d  b fd c a   b a  f  ea  f   a   e a d    a b d d d a a c d cf ec  cc   d b f e a  d e ee e  a be fb b   cf  e   de eb e     b   e e  d  e e ca c c    c b c d f cf  ad c  f a b  ea e  c c     e c df     e  c   e ea  f     a c  b f a e c aa  a e bf   e  a  d a b  e  b be e a af ec  bc a ec   a  d d     c f dd fb b  d bd  e )
              plain: another value was served
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
              guarded: server: WT_PANIC: WiredTiger library panic (the authentication tag of a page or record is wrong; file:collection-usertable.wt, WT_CURSOR.search: __wt_bm_corrupt_dump, : {, , xce}: (chunk  of ):                 f    e     c               c    d c cc   fd c  c e bb  cf ce c      f d f fe  b  c e  e   c fb c  cb a ec df d    f b  b a  f a cd ab a b f  e f a  f   a a d d a b ae   d eb e c  e f bb   bb     e d a c d bc   aa d a f  b   ec d a   f f e d b  ac  c   e e c b aa  e c   b  c a e d f b    a  d a f  a  c    a c e   b e d  f d  fb   f f d     e e ed  e e  f  f ac  d  f a a  ee c fc b  aa  d c ed ec  d a    b  dc ab d ba  a e  ff fa e  ad c  fc  d   a c a c  b d   d   f   e a b  e db f f c a e d  a ad c  e c    d c  c e  f  f e  c eb a   c  ee b b b   b  f cc da e   f c e c c ef   e    d    bf a ad   d  e c d a f b c d b  d d c ff fd aa  e c fd  f bf b     c  c b        a  cf f d e c eb   d    d c a a a eb e fa c ed  ac e df  f fb fd   d cb b  d e   e b a d d a  c   c d  e  b e  ee d    f d f  bf b   b d b b   d d  ed c d  aa b de a  c    ab  e c  c e  e cd e fa e d    f f    f e a f c ac a a b b   b c f  a b  e   bf  d    bc a  dd  fd fc  f   cc   c   f  f d cb e f  c dc e e   c   d bc e f a d b c e b ca ca ce  e  cd bc  d  b bf  c     f  b  fa d  a  c c  ee ea d a  f  ae ab a de b a  ff   db e c  e f  d  a b   be d b  d a b fa c dc ce c d c  df c c  f b dc fb  c af d  ac   d e       ab d f  c  c  f  c d ee ff b f ff d a   b      f a  c  ee   b c  fb b c f e c b dd d b b  fb  a   c f  f f  f   d cd a     c da c bf e  ff  a  f  d f  b a d e c cf f c    e  a b d d cb a c   de d   ef c d dd f  e ff  e d fd f  a  e  d a a    a a dc  d  e  b   c     ab   a bb   e d    c d e     b d     ec   a a  d a  cb b ac     ba   ab  b ba a a cb  d  a cb  b d bf ae  b a    a c f f  a    b  d a bb  e b  b f ac  a  a  df  fc ae e  e a c fa d   d  c  dd a   bf b  df a  c e b f f ee d eb e b ee e  c     ca  c   f  e a    c  c fb fc a  d a a d   f  e      bb  f ; file:collection-usertable.wt, WT_CURSOR.search: __wt_bm_corrupt_dump, : {, , xce}: (chunk  of ): b f cb d c    b e d  e  f  d c c e b   a ad cd a c cc   c   db d e a  a f a bf fd  e  c ef   e c  d  ef  a ab ec  db f   a a a  c  e b c  fb ee  e  a f eb fc  bb da d d be b   a ae f e c f e  a  fa    b   ce  e  b c db  a ee d a e cf c  d c b c aa f f bd   b e  e   d a c c b  ce  b   c  fe  f   f e b  b e e d  a fb e e a  b fc bf d e  ac  ee f   f c b cc  c cc f d d b  bf  b ea a  a a f cb  e f e  b f f   f    bf   ec  a d   ed c e d d  f  a  f  e   a f d f   c e  d d d a c     b bd f b  c c   d ca  a  b d d c    f b a  ba a b d  fc fa   b a b  e d b  c e    d ab c ca a d bf f   a a  fb f c   e  f f d  c d  dd  e   f eb ff c af c  b b b    a  d ae b a  c c   b ad d     e e  a ab a a  d cf b e a ab e   ca f b  d  e     e c  b e a  d bc e c f f a  ec d db df f c a e f e   a a   db e   d ff  d  fe d f d     be  e    a b c  b  f  e  e  eb  a   db  a  de c f f  e     c c  f c   a  c c d  ac  c   a ea a e a da  f bb  fd ad     af d  c d c  b f e   d  b   f  b    e  d b fa e c  f d c d    d  e  d db  c  bb  b d c   c  b e e  b c  a a e  e   c ce   d  bd a     a    e  a e d    c   fc   c c c  b d  b f a b  fe b  d bb b  e e     c   ff   e c  e fe b b f  e bd  fd f    d e c  e d  df   fe b  f a a fb  a b  df e b f  d  e    de e  ad d e   c  d b   fa  ec  e c a d ab c a db b c dd a c ba b c c e  cf b  e f  c   a   ed e dd cc a   e   ea fb  e c   d b f    f  c e ec  a f e   b   d  d   c ab c f a      a d eb ee c bb  f   bf fe  ca  bf     e e a   ff e   ca   a  f af d   ac  b    af e f b e a  bc   c   a d a dd ed cb b  cc e  a e e  d d  ee d b c ba f b c  c f e  b  d  f f b   a  d   cb   ff bc de  e d   a aa d  cf f b   f  e      d   af de c     a f   b c ba  a ca df  b d d     ff f a f e     fb  a a ae   f  c  b e ea  c    d  fb   f   b ca a f  d  a a c e e c  f  ce  d    b f ; file:collection-usertable.wt, WT_CURSOR.search: __wt_bm_corrupt_dump, : {, , xce}: (chunk  of ):  c  bc c   a f d   fc c e   a  b     c d fd b b b bf  e   ec  da b b e  db   a ea cc f  d   fb fa bd   f c   bb e  fa  b e b   b d b      e c d f b   f a f d bf d b ec d f c  be    b   dd ad cc  f d   f b eb  eb e  b ba ae ea f  eb e e   d cc  e f  dc fb   e  de  b c c d  c c f e b f   f   dd c a   a bb a ad  ce b e e e c d b bd f c ec d    b a a fb c  a ef  a c fa c e e bc  ec  c e b  df  e f    f ce ad ea  b b ef f b  c dc f  c   d b fc  c  f b e  ed c b a  a e a a    e   ca  f  d    b a ac      c a   b e  e   b  f a ff b c eb  b ef eb b dd f f a d a ca dd f     d  b  e  b   bb a a b a b ab a  da a a a d bd e ef  d     a fa  ab e    f c   b c   da  b c  f a d a  a f a f  fd  c d d d d  e e  da d  e e  d f  d f a   ed d ea     d eb   c b a  c  b e ea  a    f a   c a b e   c  ed e d c   b c    d ad c  fc ab dc  a a a   f ee   b  a  d  c  fc  ee    a b  ec e  e a   b e    d  c  f f df    bb   c     fa d    d cd e e  a ae fd a da a f b ef  a c  e b  fd c f b    b   c d   ec  b d d  cd c e     ff ee f  d  e f  b    c e d a ce d c c c f f ae   a df c a  b ea   b af d     ac f f  b c a cb d  f c dd d d  fd  b a e  b fe  c b f ae b b b  a cb c c  bf  d f f c c f a  ed   b a e b       d dc     f  a  e d cf c d a  a  a     b ca f d b bd     be   a d e cf  da  ce b c  e c d    a  a f e  b  b af  f  ae  b d d  b    ed   b e  c f e c fd d  bf  b d   f e   a c  b f f b cb dd c cb ae   d ef b  f  a  e e   c c cf ea d  b b a   eb        e  d        fc d d b  c   d   c   e f   e d a a  a      e d d  c f  da  d     c e d    f bc be a    d aa e d f  cc a    e   e e b  fc c cf   d  d  e c   f a d   aa bd cd b b ef f b  bc  e ec  f  d  b   c a   bc  bc b  bd bf af  f   db e ae c e c a bb f  ed  ee c a  d   c c  b f  f a c a ac c   f ad bb f  e e d ce f fa  c e f   d af  b ac c c  d ec e a  e  b   b  )
              plain: another value was served
            cache-fits: Fails
              guarded:  of  page requests read from a file (. %, . kB); the cache holds . kB of . MB
        "#]],
        );
    }
}
