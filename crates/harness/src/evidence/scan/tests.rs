use std::os::unix::fs::symlink;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::{
    database::{Address, Paths},
    simulated::test_bench::test_folder,
};

const TOKEN: &[u8] = b"sYcU6u9zqT-canary_0Zk1Lw";

fn check(haystack: &[u8], expected: Expect) {
    let needles = Needles::new([("canary", TOKEN), ("data key", [7; 32].as_slice())]);
    expected.assert_eq(&needles.count(haystack).describe());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn needles_are_found_in_every_form() {
    check(b"", expect!["nothing"]);
    check(&TOKEN[1..], expect!["nothing"]);
    check(&[b"k\0", TOKEN, TOKEN].concat(), expect!["canary ×1: 2 times"]);
    check(
        format!("'\\x{}'", hex(TOKEN)).as_bytes(),
        expect!["canary ×1: once as hexadecimal"],
    );
    check(
        hex(TOKEN).to_uppercase().as_bytes(),
        expect!["canary ×1: once as hexadecimal"],
    );
    check(&[TOKEN, &[7; 33]].concat(), expect!["canary ×1, data key ×1: 3 times"]);
    check(
        &[TOKEN, hex(&[7; 32]).as_bytes()].concat(),
        expect!["canary ×1, data key ×1: 2 times as raw and hexadecimal"],
    );
    // What `base64` of GNU coreutils 9.1 says of the token after "", "a" and "ab", before "bc".
    check(
        b"c1ljVTZ1OXpxVC1jYW5hcnlfMFprMUx3YmM=",
        expect!["canary ×1: once as base64"],
    );
    check(
        b"YXNZY1U2dTl6cVQtY2FuYXJ5XzBaazFMd2Jj",
        expect!["canary ×1: once as base64"],
    );
    check(
        b"YWJzWWNVNnU5enFULWNhbmFyeV8wWmsxTHdiYw==",
        expect!["canary ×1: once as base64"],
    );
}

/// Delivers a few bytes at a time, as pipes and network file systems may.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (now, later) = self.0.split_at(self.0.len().min(self.1).min(buffer.len()));
        buffer[..now.len()].copy_from_slice(now);
        self.0 = later;
        Ok(now.len())
    }
}

proptest! {
    /// Reading in pieces of any size finds what one look finds, no more and no less.
    #[test]
    fn pieces_hide_and_double_nothing(
        gaps in prop::collection::vec(0usize..90, 0..6),
        piece in 1usize..120,
        as_hex in any::<bool>(),
    ) {
        let token = if as_hex { hex(TOKEN).into_bytes() } else { TOKEN.to_vec() };
        let haystack: Vec<u8> = gaps.iter().flat_map(|gap| [vec![b's'; *gap], token.clone()].concat()).collect();
        let needles = Needles::new([("canary", TOKEN)]);
        let (tally, bytes) = needles.count_in(&mut Trickle(&haystack, piece)).unwrap();
        prop_assert_eq!(tally.hits(), gaps.len() as u64);
        prop_assert_eq!(&tally, &needles.count(&haystack));
        prop_assert_eq!(bytes, haystack.len() as u64);
    }
}

#[test]
fn a_needle_across_the_border_of_two_pieces_is_found_once() {
    let needles = Needles::new([("canary", TOKEN)]);
    // The buffer of the first read is longer than a piece by the longest form.
    for offset in 0..2 * needles.longest {
        let mut haystack = vec![b'.'; PIECE + 4 * needles.longest];
        let start = PIECE - needles.longest / 2 + offset;
        haystack[start..start + TOKEN.len()].copy_from_slice(TOKEN);
        let (tally, _) = needles.count_in(&mut haystack.as_slice()).unwrap();
        assert_eq!(tally.hits(), 1, "at {start}");
    }
}

#[test]
#[should_panic(expected = "met by chance")]
fn short_needles_are_a_mistake() {
    Needles::new([("password", b"hunter2".as_slice())]);
}

#[test]
fn files_belong_to_the_deepest_path_and_count_once() {
    let folder = test_folder();
    let path = |name: &str| folder.join(name);
    fs::create_dir_all(path("data/wal")).unwrap();
    fs::create_dir_all(path("elsewhere")).unwrap();
    for (name, content) in [
        ("data/table", TOKEN),
        ("data/wal/1", TOKEN),
        ("elsewhere/space", b"x"),
        ("log", TOKEN),
    ] {
        fs::write(path(name), content).unwrap();
    }
    symlink(path("elsewhere"), path("data/link")).unwrap();
    symlink(path("data"), path("data/loop")).unwrap();
    symlink(path("nowhere"), path("data/broken")).unwrap();
    let server = Server {
        address: Address::Nowhere,
        process: None,
        paths: Paths {
            data: vec![path("data")],
            journal: vec![path("data/wal")],
            logs: vec![path("log"), path("none")],
        },
        folder: folder.clone(),
    };
    let list = |places| -> Vec<String> {
        files_of(&server, places)
            .iter()
            .map(|file| format!("{:?} {}", file.kind, file.name))
            .collect()
    };
    assert_eq!(list(Places::DATA), ["Data data/link/space", "Data data/table"]);
    assert_eq!(list(Places::JOURNAL), ["Journal data/wal/1"]);
    assert_eq!(list(Places::ALL).len(), 4);

    let report = scan(&Needles::new([("canary", TOKEN)]), files_of(&server, Places::FILES));
    assert!(report.found_in(Kind::Data) && report.found_in(Kind::Journal) && !report.found_in(Kind::Log));
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
    let file = |name: &str| File {
        path: folder.join(name),
        name: name.to_owned(),
        kind: Kind::Data,
    };
    // A folder cannot be read as a file, whoever asks: unlike permissions, which root ignores.
    fs::create_dir(folder.join("closed")).unwrap();
    let report = scan(
        &Needles::new([("canary", TOKEN)]),
        vec![file("vanished"), file("closed")],
    );
    assert_eq!((report.files, report.found.len()), (0, 0));
    expect![[r#"["closed: Is a directory (os error 21)"]"#]].assert_eq(&format!("{:?}", report.unreadable));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn sizes_and_places_are_told_in_words() {
    let sizes: Vec<_> = [0, 999, 1000, 38_125_000, 1_200_000_000]
        .into_iter()
        .map(size)
        .collect();
    assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "38.1 MB", "1.2 GB"]);
    let places: Vec<_> = [Places::DATA, Places::FILES, Places::ALL]
        .into_iter()
        .map(Places::noun)
        .collect();
    assert_eq!(
        places,
        ["data files", "data files and journal", "data files, journal and logs"]
    );
}
