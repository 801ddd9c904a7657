//! Observations about protections, one at a time, for auditors' documents.
//!
//! An observation has the claim, the result, the method, the time, and the hash of the seen text, so that a document
//! can be compared with the records. Its identifier is computed from its content (UUID version 5, RFC 9562), so the
//! same records give the same bytes. Nothing is decided here: outcomes are those of the evidence.

use std::fmt::Write;

use ring::digest;
use tithe_model::{
    ending::CellEnding,
    record::{Finding, Phase, Role, Verdict},
};

use super::{
    controls::{self, Property},
    view,
};
use crate::{Analysis, CellAnalysis};

/// The namespace of the names in this program's documents (RFC 9562, 6.6): a random value, fixed for ever.
const NAMESPACE: [u8; 16] =
    [0x6f, 0x1d, 0x0c, 0x53, 0x2b, 0x9a, 0x4e, 0x71, 0x8c, 0x44, 0xd5, 0x90, 0x3e, 0xa7, 0x12, 0xbf];

/// A set of checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// Its title.
    pub title: String,
    /// Its origin: a run folder, an experiment, servers.
    pub source: String,
    /// Version of the program.
    pub tithe: String,
    /// When it began, s since 1970.
    pub unix_s: u64,
    /// True if all planned checks were done.
    pub complete: bool,
    /// The observations, in order.
    pub observations: Vec<Observation>,
}

/// One observation.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The server or arm: `c · tls, PostgreSQL 15.14`.
    pub subject: String,
    /// Identifier of the check: `wire-canary`.
    pub check: String,
    /// What must hold, one sentence.
    pub claim: String,
    /// The property that the claim is about, if a control asks for it.
    pub property: Option<Property>,
    /// How it was checked.
    pub method: Method,
    /// Before or after the load, or empty without a load.
    pub phase: &'static str,
    /// Its outcome.
    pub outcome: Outcome,
    /// The seen text.
    pub seen: String,
    /// The seen text of the positive control; empty without one.
    pub control: String,
    /// The findings, by the stable names that `tithe explain` knows.
    pub findings: Vec<String>,
    /// When it was checked, s since 1970.
    pub unix_s: u64,
}

/// The method of a check, in the terms of NIST SP 800-53A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By reading settings, lists and files.
    Examine,
    /// By trying it.
    Test,
}

impl Method {
    /// Its word in OSCAL.
    pub fn word(self) -> &'static str {
        match self {
            Self::Examine => "EXAMINE",
            Self::Test => "TEST",
        }
    }
}

/// The outcome of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The claim holds.
    Holds,
    /// The claim does not hold.
    Fails,
    /// It is unknown.
    CannotTell,
    /// Information only; there is no claim.
    Informs,
}

impl Outcome {
    /// Its word in documents.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::CannotTell => "cannot-tell",
            Self::Informs => "informs",
        }
    }

    fn of(role: Role, verdict: Verdict) -> Self {
        match (role, verdict) {
            (_, Verdict::CannotTell | Verdict::OutOfReach) => Self::CannotTell,
            (Role::Disclosure, _) => Self::Informs,
            (_, Verdict::Holds) => Self::Holds,
            (_, Verdict::Fails) => Self::Fails,
        }
    }
}

impl Observation {
    /// The observation of `finding` about `subject`, checked `unix_s` seconds after 1970.
    pub fn of(finding: &Finding, subject: &str, unix_s: u64) -> Self {
        Self {
            subject: subject.to_owned(),
            check: finding.check.clone(),
            claim: finding.claim.clone(),
            property: controls::property(&finding.check),
            method: Method::Test,
            phase: match finding.phase {
                Phase::Before => "before the load",
                Phase::After => "after the load",
            },
            outcome: Outcome::of(finding.role, finding.verdict),
            seen: finding.protected.clone(),
            control: finding.control.clone(),
            findings: Vec::new(),
            unix_s,
        }
    }

    /// SHA-256 of the seen texts: of both, with a line break between them.
    pub fn hash(&self) -> String {
        hexadecimal(digest::digest(&digest::SHA256, format!("{}\n{}", self.seen, self.control).as_bytes()).as_ref())
    }

    /// A description for people.
    pub fn description(&self) -> String {
        let outcome = match self.outcome {
            Outcome::Holds => "holds",
            Outcome::Fails => "does not hold",
            Outcome::CannotTell => "cannot be decided",
            Outcome::Informs => "to know",
        };
        let control = if self.control.is_empty() { String::new() } else { format!("; control: {}", self.control) };
        let phase = if self.phase.is_empty() { String::new() } else { format!(", {}", self.phase) };
        line(&format!("{} ({outcome}{phase}). Seen: {}{control}", self.claim, self.seen))
    }
}

/// The observations in the records of a run.
///
/// # Errors
/// If the time of the run is unknown: auditors' documents require a time.
pub fn of_run(analysis: &Analysis) -> Result<Assessment, String> {
    let unix_s = analysis.began_unix_s.ok_or(
        "the report does not say when it was measured, and a document for auditors has to: no frame was measured, or an \
         earlier version made the report; make it again from its run folder",
    )?;
    let is_whole = |cell: &CellAnalysis| {
        !matches!(cell.ending, None | Some(CellEnding::Failed(_) | CellEnding::Interrupted)) && cell.frames > 0
    };
    let arms = analysis.cells.iter().flat_map(|cell| cell.arms.iter().map(move |arm| (cell, arm)));
    let observations = arms.flat_map(|(cell, arm)| {
        let subject = format!("{} · {}, {}", cell.id, arm.name, arm.facts.version);
        arm.findings.iter().map(move |finding| Observation::of(finding, &subject, unix_s)).collect::<Vec<_>>()
    });
    Ok(Assessment {
        title: analysis.title.clone(),
        source: analysis.run.clone(),
        tithe: analysis.tithe.clone(),
        unix_s,
        complete: analysis.cells.iter().all(is_whole),
        observations: observations.collect(),
    })
}

/// The identifier of `name`, a path of names joined by line breaks: a UUID of version 5.
pub(super) fn uuid(name: &[&str]) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(&NAMESPACE);
    context.update(name.join("\n").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&context.finish().as_ref()[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x50;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let digits = hexadecimal(&bytes);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// The identifier of an observation with index `index` in its assessment.
pub(super) fn uuid_of(assessment: &Assessment, index: usize, observation: &Observation) -> String {
    let (number, hash) = (index.to_string(), observation.hash());
    let Observation { subject, check, claim, phase, .. } = observation;
    uuid(&["observation", &assessment.source, &number, subject, check, claim, phase, &hash])
}

/// `foreign` text as one line that is not empty, without terminal control characters.
pub(super) fn line(foreign: &str) -> String {
    let mut cleaned = foreign.to_owned();
    view::clean(&mut cleaned);
    let words: Vec<&str> = cleaned.split_whitespace().collect();
    if words.is_empty() { "none".to_owned() } else { words.join(" ") }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::sample as analyses;

    /// The observations of a run with every kind of arm.
    pub fn sample() -> Assessment {
        let analysis = Analysis { began_unix_s: Some(1_763_712_720), ..analyses::full() };
        let mut assessment = of_run(&analysis).expect("it says when");
        let mut informs = assessment.observations[0].clone();
        (informs.outcome, informs.check, informs.property) = (Outcome::Informs, "cipher-driver".to_owned(), None);
        informs.seen = "two\nlines, <b>bold</b> \u{1b}[31m".to_owned();
        assessment.observations.push(informs);
        assessment
    }

    #[test]
    fn a_run_that_does_not_say_when_is_refused() {
        assert!(of_run(&analyses::full()).expect_err("no time").contains("does not say when"));
    }

    #[test]
    fn what_is_seen_is_hashed() {
        let mut observation = sample().observations[0].clone();
        (observation.seen, observation.control) = ("abc".to_owned(), String::new());
        // Expected: `printf 'abc\n' | sha256sum` of GNU coreutils.
        assert_eq!(observation.hash(), "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb");
    }

    #[test]
    fn names_are_hashed_as_rfc_9562_has_it() {
        // Expected: `uuid.uuid5` of Python 3.
        assert_eq!(uuid(&["a", "b"]), "96547378-3c1f-5032-b060-ed105098ea30");
    }

    #[test]
    fn identifiers_follow_from_the_content() {
        let assessment = sample();
        let all = |assessment: &Assessment| {
            let numbered = assessment.observations.iter().enumerate();
            numbered.map(|(index, it)| uuid_of(assessment, index, it)).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(all(&assessment).len(), assessment.observations.len(), "none twice");
        assert_eq!(all(&assessment), all(&sample()));
        for uuid in all(&assessment) {
            let parts: Vec<&str> = uuid.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uuid}");
            assert!(parts[2].starts_with('5') && parts[3].starts_with(['8', '9', 'a', 'b']), "{uuid}");
        }
    }
}
