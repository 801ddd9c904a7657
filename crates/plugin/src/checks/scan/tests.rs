use std::{os::unix::fs::symlink, sync::Arc};

use expect_test::expect;
use tithe_machine::{
    launch::Address,
    paths::Paths,
    remote::{Ends, Known, RemoteServer, RemoteUsage, ServerMachine},
    sandbox::certificates,
};

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
    expect!["1 canary found 2 times, in data/wal/1 (1), data/table (1); 3 files, 49 B"].assert_eq(&format!(
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
fn a_file_that_may_not_be_looked_at_is_told_beside_others() {
    let folder = test_folder();
    // No user can look at it: unlike permissions, which root ignores.
    symlink(folder.join("round"), folder.join("round")).unwrap();
    assert_eq!(files_below(&folder), [], "nothing is seen");
    fs::write(folder.join("table"), b"x").unwrap();
    let report = scan(&Needles::new([("canary", TOKEN)]), files_below(&folder));
    expect![[r#"["round: Too many levels of symbolic links (os error 40)"]"#]]
        .assert_eq(&format!("{:?}", report.unreadable));
    assert!(matches!(report.observation("none".to_owned()), Observation::Unknown(_)));
    fs::remove_dir_all(folder).unwrap();
}

/// Reading a pipe or a socket waits for somebody who writes.
#[test]
fn what_is_neither_a_file_nor_a_folder_is_left_out() {
    let folder = test_folder();
    drop(std::os::unix::net::UnixListener::bind(folder.join("socket")).expect("bound"));
    fs::write(folder.join("table"), TOKEN).unwrap();
    let names: Vec<String> = files_below(&folder).into_iter().map(|file| file.name).collect();
    assert_eq!(names, ["table"]);
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

/// A machine whose observer finds the second needle in every data file, and the first in all others.
#[derive(Debug)]
struct Elsewhere;

impl ServerMachine for Elsewhere {
    fn name(&self) -> &str {
        "db1"
    }

    fn server_at(&self, _ends: Ends, _known: Known<'_>) -> Result<Result<i32, String>, Fault> {
        panic!("a search asks for no process")
    }

    fn usage(&self, _process: i32, _paths: &Paths) -> Result<RemoteUsage, Fault> {
        panic!("a search asks for no usage")
    }

    fn search(&self, _needles: &[(&'static str, &[u8])], paths: &Paths) -> Result<RemoteMatches, Fault> {
        let file = |path: &PathBuf, holds_data: bool, needles: Vec<usize>| RemoteFile {
            name: path.display().to_string(),
            holds_data,
            hits: 2,
            needles,
            forms: vec!["hexadecimal".to_owned()],
        };
        let data = paths.data.iter().map(|path| file(path, true, vec![1]));
        // A needle that nobody has asked for is left out.
        let others = paths.journal.iter().chain(&paths.logs).map(|path| file(path, false, vec![0, 9]));
        let found = data.chain(others).collect();
        Ok(RemoteMatches { files: 3, bytes: 70, found, unreadable: vec!["x: closed".to_owned()] })
    }
}

#[test]
fn files_of_another_machine_are_searched_where_they_are_asked_for() {
    let server = |paths: Paths| Server {
        address: Address::Nowhere,
        process: None,
        remote: Some(RemoteServer { by: Arc::new(Elsewhere), process: 7, paths }),
        paths: Paths::default(),
        folder: PathBuf::new(),
    };
    let all = Paths { data: vec!["/d".into()], journal: vec!["/j".into()], logs: vec!["/l".into()] };
    const KEY: &[u8] = &[7; 32];
    let told = |places: Places| {
        let needles = [("canary", TOKEN), ("data key", KEY)];
        let report = search(&server(all.clone()), places, &needles).unwrap();
        assert_eq!((report.files, report.bytes, report.unreadable.len()), (3, 70, 1));
        let files: Vec<_> = report.found.iter().map(|(file, _)| format!("{:?} {}", file.kind, file.name)).collect();
        format!("{}: {}", files.join(", "), report.total().describe())
    };
    assert_eq!(told(Places::DATA), "Data /d: 1 data key found 2 times as hexadecimal");
    assert_eq!(told(Places::JOURNAL), "Log /j: 1 canary found 2 times as hexadecimal");
    assert_eq!(told(Places::LOGS), "Log /l: 1 canary found 2 times as hexadecimal");
    assert_eq!(told(Places::FILES), "Data /d, Log /j: 1 canary, 1 data key found 4 times as hexadecimal");
    let logs = server(Paths { logs: all.logs.clone(), ..Paths::default() });
    let shown = [Places::DATA, Places::JOURNAL, Places::LOGS, Places::ALL].map(|places| shows(&logs, places));
    assert_eq!(shown, [false, false, true, true]);
}

#[test]
fn four_files_are_named_and_what_cannot_be_read_leaves_it_open() {
    let needles = Needles::new([("canary", TOKEN)]);
    let report = |count: usize| {
        let file = |number: usize| File { path: PathBuf::new(), name: number.to_string(), kind: FileKind::Data };
        let found = (0..count).map(|number| (file(number), needles.count(TOKEN))).collect();
        Report { found, ..Report::default() }
    };
    expect!["1 canary found 4 times, in 0 (1), 1 (1), 2 (1), 3 (1)"].assert_eq(&report(4).describe_found());
    expect!["1 canary found 5 times, in 0 (1), 1 (1), 2 (1), 3 (1), 1 further files"]
        .assert_eq(&report(5).describe_found());
    expect!["1 canary found 7 times, in 0 (1), 1 (1), 2 (1), 3 (1), 3 further files"]
        .assert_eq(&report(7).describe_found());
    let closed = |count: usize| Report { unreadable: vec!["9: no".to_owned()], ..report(count) };
    assert!(matches!(closed(1).observation(String::new()), Observation::Exposed(_)));
    assert_eq!(closed(0).observation(String::new()), Observation::Unknown("cannot read 9: no".to_owned()));
    assert_eq!(report(0).observation("none".to_owned()), Observation::Protected("none".to_owned()));
}
