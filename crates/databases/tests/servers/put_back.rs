//! A server can be started again on data that were kept when it was stopped: the rows of that time are there again,
//! whatever was written since, and however the server ended.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tithe_machine::sandbox::copy;
use tithe_model::experiment::Protection as Chosen;
use tithe_plugin::session::{Discard, Fields, KeyValueSession, Request};

use crate::{how, key_value, rows, sandbox::Sandbox, table, tested::Tested};

/// A folder for the kept data, removed when the test ends.
struct Kept(PathBuf);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Kept {
    fn new() -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let folder = std::env::temp_dir().join(format!("tithe-test-put-back-{}-{number}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        Self(folder)
    }

    /// Where `path` is kept, of however many folders.
    fn of(&self, path: &str) -> PathBuf {
        self.0.join(path.replace('/', "-"))
    }
}

/// Keeps the data of `sandbox`, has it write, and restores the kept data.
pub fn data_are_put_back(mut sandbox: Sandbox) {
    let database = sandbox.database;
    database.create(&sandbox.server, &sandbox.setup, &table()).expect("a table");
    let values: [(usize, &[u8]); 3] = [(0, b"a"), (1, b"b"), (2, b"c")];
    let mut session = connect(&sandbox);
    for key in [b"user1", b"user2"] {
        assert_eq!(session.call(&Request::Insert { key, values: &values }, &mut Discard), Ok(1));
    }
    drop(session);
    database.quiesce(&sandbox.server, &sandbox.setup, &table()).expect("quiesced");
    database.condense(&sandbox.server, &sandbox.setup).expect("condensed");
    let stored = database.stored(&sandbox.setup).expect("what is left is known");
    let kept = Kept::new();
    let copied = |from: &dyn Fn(&str) -> PathBuf, to: &dyn Fn(&str) -> PathBuf| {
        for path in stored.paths.iter().filter(|path| from(path).exists()) {
            copy::tree(&from(path), &to(path)).expect("a copy");
        }
    };
    let kept_rows = "user1: 1\n-: 0=a 1=b 2=c\nuser2: 1\n-: 0=a 1=b 2=c\nuser3: 0\n";
    sandbox.start_again(false, |folder| copied(&|path| folder.join(path), &|path| kept.of(path)));
    assert_eq!(seen(&mut *connect(&sandbox)), kept_rows, "after a clean stop");
    for _ in 0..2 {
        write(&mut *connect(&sandbox));
        let (data, journal) = (sandbox.server.paths.data.clone(), sandbox.server.paths.journal.clone());
        sandbox.start_again(true, |folder| {
            let written = stored.paths.iter().map(|path| folder.join(path)).chain(data).chain(journal);
            written.for_each(|path| remove(&path));
            copied(&|path| kept.of(path), &|path| folder.join(path));
        });
        assert_eq!(seen(&mut *connect(&sandbox)), kept_rows, "after it was put back");
    }
}

fn connect(sandbox: &Sandbox) -> Box<dyn KeyValueSession> {
    key_value(sandbox.database.connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session"))
}

fn write(session: &mut dyn KeyValueSession) {
    let value: [(usize, &[u8]); 1] = [(1, b"changed")];
    let all: [(usize, &[u8]); 3] = [(0, b"x"), (1, b"y"), (2, b"z")];
    assert_eq!(session.call(&Request::Update { key: b"user1", values: &value }, &mut Discard), Ok(1));
    assert_eq!(session.call(&Request::Delete { key: b"user2" }, &mut Discard), Ok(1));
    assert_eq!(session.call(&Request::Insert { key: b"user3", values: &all }, &mut Discard), Ok(1));
    assert_eq!(seen(session), "user1: 1\n-: 0=a 1=changed 2=c\nuser2: 0\nuser3: 1\n-: 0=x 1=y 2=z\n");
}

fn seen(session: &mut dyn KeyValueSession) -> String {
    let of = |key: &str| {
        let read = Request::Read { key: key.as_bytes(), fields: Fields::All };
        format!("{key}: {}\n", rows(session, &read))
    };
    ["user1", "user2", "user3"].map(of).concat()
}

fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).expect("removed");
    } else if path.exists() {
        fs::remove_file(path).expect("removed");
    }
}

/// As [`data_are_put_back`], on a server of `tested` with a `protection`, or a plain one.
pub fn put_back_with(tested: &Tested, protection: Option<Chosen>) {
    if let Some(sandbox) = (tested.start)(protection.as_slice()) {
        data_are_put_back(sandbox);
    }
}
