use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const TOKEN: &[u8] = b"sYcU6u9zqT-canary_0Zk1Lw";

fn check(haystack: &[u8], expected: Expect) {
    let needles = Needles::new([("canary", TOKEN), ("data key", [7; 32].as_slice())]);
    expected.assert_eq(&needles.count(haystack).describe());
}

#[test]
fn needles_are_found_in_every_form() {
    check(b"", expect!["nothing"]);
    check(&TOKEN[1..], expect!["nothing"]);
    check(&[b"k\0", TOKEN, TOKEN].concat(), expect!["1 canary found 2 times"]);
    check(format!("'\\x{}'", hex(TOKEN)).as_bytes(), expect!["1 canary found once as hexadecimal"]);
    check(hex(TOKEN).to_uppercase().as_bytes(), expect!["1 canary found once as hexadecimal"]);
    check(&[TOKEN, &[7; 33]].concat(), expect!["1 canary, 1 data key found 3 times"]);
    check(
        &[TOKEN, hex(&[7; 32]).as_bytes()].concat(),
        expect!["1 canary, 1 data key found 2 times as raw and hexadecimal"],
    );
    // The output of `base64` of GNU coreutils 9.1 for the token after "", "a" and "ab", before "bc".
    check(b"c1ljVTZ1OXpxVC1jYW5hcnlfMFprMUx3YmM=", expect!["1 canary found once as base64"]);
    check(b"YXNZY1U2dTl6cVQtY2FuYXJ5XzBaazFMd2Jj", expect!["1 canary found once as base64"]);
    check(b"YWJzWWNVNnU5enFULWNhbmFyeV8wWmsxTHdiYw==", expect!["1 canary found once as base64"]);
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

/// Each of the first two bytes matters, so that most of a haystack is skipped.
#[test]
fn every_pair_of_bytes_has_a_number_of_its_own() {
    let numbers: BTreeSet<usize> = (0..=u16::MAX).map(|bytes| pair(&bytes.to_le_bytes())).collect();
    assert!(numbers.into_iter().eq(0..1 << 16));
}

/// A signal may interrupt a read; any other failure ends the search.
#[test]
fn a_read_that_was_interrupted_is_repeated() {
    struct Failing<'a>(Vec<io::ErrorKind>, &'a [u8]);

    impl Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.pop().map_or_else(|| self.1.read(buffer), |kind| Err(kind.into()))
        }
    }

    let needles = Needles::new([("canary", TOKEN)]);
    let found = |failures: &[io::ErrorKind]| {
        let (tally, bytes) = needles.count_in(&mut Failing(failures.to_vec(), TOKEN))?;
        Ok::<_, io::Error>((tally.hits(), bytes))
    };
    let interrupted = [io::ErrorKind::Interrupted; 2];
    assert_eq!(found(&interrupted).expect("it goes on"), (1, TOKEN.len() as u64));
    let refused = found(&[io::ErrorKind::PermissionDenied]).expect_err("it cannot be read");
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
}

proptest! {
    /// Reading in pieces of any size finds exactly what a single read finds.
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
fn zeros_hide_no_needle() {
    // One that begins with a zero, one with two of them, and one with none.
    for needle in [&b"\0needle-of-zeros"[..], b"\0\0needle-of-zeros", b"needle-of-zeros"] {
        let needles = Needles::new([("canary", needle)]);
        for zeros in 0..40 {
            let mut haystack = vec![0; zeros];
            haystack.extend(needle);
            haystack.extend(vec![0; zeros]);
            haystack.extend(needle);
            assert_eq!(needles.count(&haystack).hits(), 2, "{needle:?} behind {zeros} zeros");
        }
    }
}
