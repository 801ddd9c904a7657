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

/// Writes canaries and looks for them in the commit log until the server has written it after them: an encrypted log is
/// filled in the server's memory first, and would hold nothing of them for that reason alone, where one in the clear is
/// mapped and holds them at once. Beside that every segment's head must name the cipher. Id `commitlog-encrypted`.
pub struct CommitlogEncrypted {
    cipher: String,
}

impl CommitlogEncrypted {
    /// A check of a log that `cipher` encrypts, in Java's words.
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
            // Looked at before the log is: what is written in between is not taken for what was checked.
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
        let wanted = format!("\"encCipher\":\"{}\"", self.cipher);
        let heads: Vec<String> = segments(context).iter().map(|file| head(&file.path)).collect();
        let (count, all) = (heads.iter().filter(|head| head.contains(&wanted)).count(), heads.len());
        let seen = format!(
            "none of {} canaries in the commit log ({}); {count} of {all} segments name {} in their head",
            tokens.len(),
            report.extent(),
            self.cipher
        );
        Ok(if count == all { Observation::Protected(seen) } else { Observation::Exposed(seen) })
    }
}

/// Segments of the commit log of every node; not the hints, which lie beside them.
fn segments(context: &CheckContext<'_>) -> Vec<File> {
    let is_segment = |file: &File| {
        let name = file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("CommitLog-") && name.ends_with(".log")
    };
    files_of(context.server, Places::JOURNAL).into_iter().filter(is_segment).collect()
}

fn written_since(path: &Path, moment: SystemTime) -> bool {
    fs::metadata(path).and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified > moment)
}

/// The head of a segment, as text: it is in the clear, with the cipher and the name of the key. A segment that was made
/// in advance and not begun has none.
fn head(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).replace("\\/", "/"))
}
