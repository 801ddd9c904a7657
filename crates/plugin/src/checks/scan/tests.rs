use std::os::unix::fs::symlink;

use expect_test::expect;
use tithe_machine::{launch::Address, paths::Paths, sandbox::certificates};

use super::*;
use crate::simulated::test_bench::test_folder;

const TOKEN: &[u8] = b"sYcU6u9zqT-canary_0Zk1Lw";

#[test]
fn files_belong_to_the_deepest_path_and_count_once() {
    let folder = test_folder();
    let path = |name: &str| folder.join(name);
    fs::create_dir_all(path("data/wal")).unwrap();
    fs::create_dir_all(path("elsewhere")).unwrap();
    for (name, content) in [("data/table", TOKEN), ("data/wal/1", TOKEN), ("elsewhere/space", b"x"), ("log", TOKEN)] {
        fs::write(path(name), content).unwrap();
    }
    symlink(path("elsewhere"), path("data/link")).unwrap();
    symlink(path("data"), path("data/loop")).unwrap();
    symlink(path("nowhere"), path("data/broken")).unwrap();
    let server = Server {
        address: Address::Nowhere,
        remote: None,
        process: None,
        paths: Paths {
            data: vec![path("data")],
            journal: vec![path("data/wal")],
            logs: vec![path("log"), path("none")],
        },
        folder: folder.clone(),
    };
    let list = |places| -> Vec<String> {
        files_of(&server, places).iter().map(|file| format!("{:?} {}", file.kind, file.name)).collect()
    };
    assert_eq!(list(Places::DATA), ["Data data/link/space", "Data data/table"]);
    assert_eq!(list(Places::JOURNAL), ["Journal data/wal/1"]);
    assert_eq!(list(Places::ALL).len(), 4);

    let report = scan(&Needles::new([("canary", TOKEN)]), files_of(&server, Places::FILES));
    assert!(report.found_in(FileKind::Data) && report.found_in(FileKind::Journal) && !report.found_in(FileKind::Log));
    expect!["canary ×1: 2 times, in data/wal/1 (1), data/table (1); 3 files, 49 B"].assert_eq(&format!(
        "{}; {}",
        report.describe_found(),
        report.extent()
    ));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_vanished_holds_nothing_and_a_closed_one_is_told() {
    let folder = test_folder();
    let file = |name: &str| File { path: folder.join(name), name: name.to_owned(), kind: FileKind::Data };
    // A folder cannot be read as a file by any user: unlike permissions, which root ignores.
    fs::create_dir(folder.join("closed")).unwrap();
    let report = scan(&Needles::new([("canary", TOKEN)]), vec![file("vanished"), file("closed")]);
    assert_eq!((report.files, report.found.len()), (0, 0));
    expect![[r#"["closed: Is a directory (os error 21)"]"#]].assert_eq(&format!("{:?}", report.unreadable));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn places_are_told_in_words() {
    let places: Vec<_> = [Places::DATA, Places::FILES, Places::ALL].into_iter().map(Places::noun).collect();
    assert_eq!(places, ["data files", "data files and journal", "data files, journal and logs"]);
}

#[test]
fn holes_are_passed_over_and_keep_their_sides_apart() {
    let folder = test_folder();
    let path = folder.join("journal");
    let file = fs::File::create(&path).unwrap();
    let (first, second) = TOKEN.split_at(10);
    const HOLE: u64 = 64 << 20;
    // A needle on the last bytes before a hole and one on the first after it; a third one is split by a hole.
    let whole = HOLE - TOKEN.len() as u64;
    file.write_all_at(TOKEN, whole).unwrap();
    file.write_all_at(TOKEN, 2 * HOLE).unwrap();
    file.write_all_at(first, 3 * HOLE - first.len() as u64).unwrap();
    file.write_all_at(second, 4 * HOLE).unwrap();
    file.set_len(5 * HOLE).unwrap();
    let report = scan(&Needles::new([("canary", TOKEN)]), files_below(&folder));
    assert_eq!(report.total().hits(), 2);
    assert!(report.bytes < HOLE, "{} bytes were read", report.bytes);
    fs::remove_dir_all(folder).unwrap();
}

proptest::proptest! {
    #[test]
    fn a_file_with_holes_is_read_as_one_without(
        parts in proptest::collection::vec((proptest::bool::ANY, 0usize..3 * 4096, proptest::bool::ANY), 0..8)
    ) {
        let folder = test_folder();
        let path = folder.join("file");
        let file = fs::File::create(&path).unwrap();
        let mut at = 0;
        for (kept, length, needle) in parts {
            if kept {
                let mut bytes = vec![7; length];
                if needle {
                    bytes.extend_from_slice(TOKEN);
                }
                file.write_all_at(&bytes, at).unwrap();
                at += bytes.len() as u64;
            } else {
                at += 16 * length as u64;
            }
        }
        file.set_len(at).unwrap();
        let needles = Needles::new([("canary", TOKEN)]);
        let (plain, _) = needles.count_in(&mut fs::File::open(&path).unwrap()).unwrap();
        let (kept, bytes) = needles.count_in(&mut Kept::of(fs::File::open(&path).unwrap())).unwrap();
        proptest::prop_assert_eq!(kept.hits(), plain.hits());
        proptest::prop_assert!(bytes <= at);
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn secrets_of_a_run_are_fresh_and_in_no_file() {
    let folder = test_folder();
    let prepare = |name: &str| certificates::prepare(&folder.join(name), std::net::Ipv4Addr::LOCALHOST.into()).unwrap();
    let (one, two) = (prepare("1"), prepare("2"));
    assert!(one.key != two.key && one.password != two.password);
    let needles = Needles::new([("data key", one.key.expose()), ("password", one.password.expose())]);
    let report = scan(&needles, files_below(&folder));
    assert_eq!((report.files, report.total().describe()), (14, "nothing".to_owned()));
    fs::remove_dir_all(folder).unwrap();
}
