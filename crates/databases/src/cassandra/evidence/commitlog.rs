//! Is the commit log encrypted?

use std::{
    fs,
    io::Read,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{
        canary::{Canaries, Targets, key_value},
        needles::Needles,
        scan::{File, Places, files_of, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

/// How long the server may take to write its commit log: longer than its own period of 10 s.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The head of a segment fits into this.
const HEAD_BYTES: u64 = 1024;

/// Writes canaries and searches for them in the commit log until the server has written past them. An encrypted log is
/// first filled in memory, so early reads would not find canaries there in any case; a plaintext log is mapped and
/// holds them at once. In addition, every segment's header must name the cipher. Id `commitlog-encrypted`.
pub struct CommitlogEncrypted {
    cipher: String,
}

impl CommitlogEncrypted {
    /// A check of a log that `cipher` (Java's name) encrypts.
    pub fn new(cipher: &str) -> Self {
        Self { cipher: cipher.to_owned() }
    }
}

impl Check for CommitlogEncrypted {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("commitlog-encrypted")
    }

    fn claim(&self) -> String {
        format!("no key or field value is readable in the commit log, whose segments name {}", self.cipher)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        if segments(context).is_empty() {
            return Ok(Observation::Unknown("no commit log of the server can be seen from here".to_owned()));
        }
        let canaries = Canaries::new(context, self.id());
        let mut session = key_value(context.connect()?)?;
        canaries.write(session.as_mut())?;
        canaries.read_back(session.as_mut())?;
        let after = SystemTime::now();
        let begun = Instant::now();
        let tokens = canaries.tokens(&Targets::Everything);
        let needles = Needles::new(tokens.iter().map(|token| ("canary", *token)));
        let report = loop {
            // Checked before the log is read: what is written in between does not count as checked.
            let written = segments(context).iter().any(|file| written_since(&file.path, after));
            let report = scan(&needles, segments(context));
            if report.total().hits() > 0 {
                return Ok(Observation::Exposed(report.describe_found()));
            }
            if written {
                break report;
            }
            if begun.elapsed() > TIMEOUT {
                return Ok(Observation::Unknown(format!(
                    "the commit log was not written within {} s",
                    TIMEOUT.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(200));
        };
        if let Some(file) = report.unreadable.first() {
            return Ok(Observation::Unknown(format!("cannot read {file}")));
        }
        let heads: Vec<String> = segments(context).iter().map(|file| head(&file.path)).collect();
        Ok(judged(
            &format!("none of {} canaries in the commit log ({})", tokens.len(), report.extent()),
            &self.cipher,
            &heads,
        ))
    }
}

/// The result from the `heads` of all segments, with `seen` from before: every one of them must name the cipher.
fn judged(seen: &str, cipher: &str, heads: &[String]) -> Observation {
    let wanted = format!("\"encCipher\":\"{cipher}\"");
    let (count, all) = (heads.iter().filter(|head| head.contains(&wanted)).count(), heads.len());
    let seen = format!("{seen}; {count} of {all} segments name {cipher} in their head");
    if count == all && count > 0 { Observation::Protected(seen) } else { Observation::Exposed(seen) }
}

/// Segments of the commit log of every node; not the hints next to them.
fn segments(context: &CheckContext<'_>) -> Vec<File> {
    files_of(context.server, Places::JOURNAL).into_iter().filter(|file| is_segment(&file.path)).collect()
}

fn is_segment(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.starts_with("CommitLog-") && name.ends_with(".log")
}

fn written_since(path: &Path, moment: SystemTime) -> bool {
    fs::metadata(path).and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified > moment)
}

/// The header of a segment, as text. It is in plaintext, with the cipher and the name of the key. A segment that was
/// allocated and not started has none.
fn head(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).replace("\\/", "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CIPHER: &str = "AES/CBC/PKCS5Padding";

    #[test]
    fn every_segment_names_the_cipher() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = |cipher: &str| {
            let path = folder.path().join("CommitLog-7-1.log");
            // As Java writes it, and of a segment only the head counts.
            let text = format!("\0\u{7}{{\"encCipher\":\"{}\"}}", cipher.replace('/', "\\/"));
            fs::write(&path, text + &"x".repeat(2000) + &format!("\"encCipher\":\"{CIPHER}\"")).expect("written");
            head(&path)
        };
        let (right, other) = (named(CIPHER), named("AES/ECB/NoPadding"));
        assert_eq!(right.len(), HEAD_BYTES as usize - 2, "two signs that Java writes are left out");
        let none = head(&folder.path().join("missing"));
        let judged = |heads: &[&String]| judged("x", CIPHER, &heads.iter().map(|it| (*it).clone()).collect::<Vec<_>>());
        let said = |count: usize, all: usize| format!("x; {count} of {all} segments name {CIPHER} in their head");
        assert_eq!(judged(&[&right, &right]), Observation::Protected(said(2, 2)));
        assert_eq!(judged(&[&right, &other]), Observation::Exposed(said(1, 2)));
        assert_eq!(judged(&[&right, &none]), Observation::Exposed(said(1, 2)));
        assert_eq!(judged(&[&other]), Observation::Exposed(said(0, 1)));
        // Segments that were removed in the meantime prove nothing.
        assert_eq!(judged(&[]), Observation::Exposed(said(0, 0)));
    }

    #[test]
    fn segments_are_told_from_hints_and_what_was_written_before() {
        let segment = |name: &str| is_segment(&Path::new("/c").join(name));
        assert!(segment("CommitLog-7-1.log"));
        assert!(!segment("CommitLog-7-1_cdc.idx") && !segment("9b1c-1-1.hints") && !segment("system.log"));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("CommitLog-7-1.log");
        fs::write(&path, "x").expect("written");
        let written = fs::metadata(&path).and_then(|it| it.modified()).expect("a time");
        assert!(written_since(&path, written - Duration::from_nanos(1)) && !written_since(&path, written));
        assert!(!written_since(&folder.path().join("missing"), SystemTime::UNIX_EPOCH));
    }
}
