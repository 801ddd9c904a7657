use std::{collections::BTreeMap, os::unix::fs::PermissionsExt, path::PathBuf};

use proptest::prelude::*;

use super::*;

/// Contents of a folder.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    File(Vec<u8>, u32),
    Link(String),
    Folder(BTreeMap<String, Entry>, u32),
}

fn entries() -> impl Strategy<Value = Entry> {
    let mode = prop::sample::select(vec![0o400, 0o600, 0o640, 0o777]);
    let bytes = prop_oneof![prop::collection::vec(any::<u8>(), 0..64), Just(vec![7; 200_000])];
    let leaf = prop_oneof![
        (bytes, mode).prop_map(|(bytes, mode)| Entry::File(bytes, mode)),
        "[a-z/.]{1,12}".prop_map(Entry::Link),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let mode = prop::sample::select(vec![0o500, 0o700, 0o755]);
        (prop::collection::btree_map("[a-zé ]{1,6}", inner, 0..5), mode)
            .prop_map(|(entries, mode)| Entry::Folder(entries, mode))
    })
}

fn mode(mode: u32) -> fs::Permissions {
    fs::Permissions::from_mode(mode)
}

fn write(entry: &Entry, path: &Path) {
    match entry {
        Entry::File(bytes, bits) => {
            fs::write(path, bytes).expect("a file");
            fs::set_permissions(path, mode(*bits)).expect("a mode");
        }
        Entry::Link(target) => symlink(target, path).expect("a link"),
        Entry::Folder(entries, bits) => {
            fs::create_dir(path).expect("a folder");
            entries.iter().for_each(|(name, entry)| write(entry, &path.join(name)));
            fs::set_permissions(path, mode(*bits)).expect("a mode");
        }
    }
}

fn read(path: &Path) -> Entry {
    let metadata = fs::symlink_metadata(path).expect("what was written");
    let bits = metadata.permissions().mode() & 0o7777;
    if metadata.is_symlink() {
        return Entry::Link(fs::read_link(path).expect("a link").display().to_string());
    }
    if metadata.is_file() {
        return Entry::File(fs::read(path).expect("a file"), bits);
    }
    let entries = fs::read_dir(path).expect("a folder").map(|entry| {
        let entry = entry.expect("an entry");
        (entry.file_name().into_string().expect("a name"), read(&entry.path()))
    });
    Entry::Folder(entries.collect(), bits)
}

/// A plain user removes nothing from a folder that may not be written to.
fn allow_removal(path: &Path) {
    if fs::symlink_metadata(path).expect("what was written").is_dir() {
        fs::set_permissions(path, mode(0o700)).expect("a mode");
        fs::read_dir(path).expect("a folder").for_each(|entry| allow_removal(&entry.expect("an entry").path()));
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tithe-test-copy-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_copy_equals_what_it_is_of_and_shares_nothing_with_it(entry in entries()) {
        let folder = folder("equal");
        let (from, to) = (folder.join("from"), folder.join("to"));
        write(&entry, &from);
        tree(&from, &to).expect("a copy");
        prop_assert_eq!(read(&to), entry.clone());
        if let Entry::File(bytes, _) = &entry {
            fs::set_permissions(&to, mode(0o600)).expect("a mode");
            fs::write(&to, [bytes.as_slice(), b"more"].concat()).expect("a change");
        }
        prop_assert_eq!(read(&from), entry);
        [from, to].iter().for_each(|path| allow_removal(path));
        fs::remove_dir_all(&folder).expect("clean up");
    }
}

#[test]
fn what_is_there_is_not_written_over_and_what_is_missing_is_told() {
    let folder = folder("refused");
    fs::write(folder.join("one"), "1").expect("a file");
    fs::write(folder.join("two"), "2").expect("a file");
    let refused = tree(&folder.join("one"), &folder.join("two")).expect_err("a file is there");
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(folder.join("two")).expect("the file"), b"2");
    let missing = tree(&folder.join("three"), &folder.join("four")).expect_err("nothing is there");
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    fs::remove_dir_all(&folder).expect("clean up");
}

#[test]
fn a_socket_is_left_out() {
    let folder = folder("socket");
    fs::create_dir(folder.join("from")).expect("a folder");
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("from/s")).expect("a socket");
    tree(&folder.join("from"), &folder.join("to")).expect("a copy");
    assert_eq!(fs::read_dir(folder.join("to")).expect("the copy").count(), 0);
    fs::remove_dir_all(&folder).expect("clean up");
}
