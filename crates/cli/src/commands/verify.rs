//! `tithe verify`: every arm once, with its evidence; nothing is timed.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::IsTerminal,
    path::Path,
};

use tithe_analysis::report::{
    claims::Claims,
    observation::{Assessment, Observation},
    oscal, sarif, words,
};
use tithe_harness::{
    folder::RunFolder,
    run::{Advice, Ending, EventListener, Run},
};
use tithe_machine::watch::host;
use tithe_model::{
    ending::CellEnding,
    experiment::{Arm, Design, Limits},
    invalid::Invalid,
    plan::{Starts, WarmUp},
    record::{Event, Finding, Frame, Role, Slot, Verdict},
};

use crate::{
    MachineArgs, VerifyArgs,
    commands::{child, run},
    exit::{self, Stop},
    interrupt,
    prepare::{self, Prepared},
    progress,
};

/// Most records: enough to check, and quick to load.
const RECORDS: u64 = 1000;

/// Shortest slot, ns: on a busy machine a lane may sleep through a shorter one, and a frame without an operation would
/// look like a server that serves none.
const SLOT_NS: u64 = 200_000_000;

/// Most frames of a cell: one is enough, unless the machine was too busy for it.
const FRAMES_MAX: u32 = 5;

/// Runs the command; returns the exit status.
pub fn verify(arguments: &VerifyArgs) -> Result<i32, Stop> {
    let prepared = prepare::prepare_unmeasured(&arguments.asked, "verify")?;
    let format = arguments.format.as_str();
    let arguments = &arguments.asked.experiment;
    let prepared = small(prepared, &arguments.machine)?;
    let cancelled = interrupt::listen();
    let Prepared { plan, database, installs, workloads, .. } = &prepared;
    let run = Run::new(*database, installs.clone(), plan, workloads, cancelled)?;
    let run = child::may_start(run, &arguments.machine);
    // From here on there is a folder, which is removed at the end.
    let machine = host::machine(&arguments.runs);
    std::fs::create_dir_all(&arguments.runs)
        .map_err(|error| Stop::new(exit::MACHINE, format!("cannot create {}: {error}", arguments.runs.display())))?;
    // In containers every process may have the same number.
    let path = arguments.runs.join(format!("verify-{}", std::process::id()));
    let make = |path: &Path| RunFolder::create(path, &prepared.text, &prepared.plan, &machine);
    let mut folder = run::at_free_name(&path, make)?;
    let path = folder.path().to_owned();
    let mut verifier = Verifier::new(&prepared, format == "text");
    let ending = run.carry_out(&mut folder, None, &mut verifier);
    // The findings of a cell that ended early.
    verifier.print_findings();
    let Verifier { claims, invalid, mut observed, .. } = verifier;
    observed.complete = matches!(ending, Ok(Ending::Complete));
    drop(folder);
    // Nothing was measured, so there is nothing to keep.
    let _ = std::fs::remove_dir_all(&path);
    // A provider's statement is no proof, even if everything else holds.
    let told = prepared.plan.experiment.arms.iter().any(|arm| arm.switch.is_some() && arm.protections.is_empty());
    let (status, words) = conclude(&ending?, &claims, (invalid.0.len() as u64, told));
    match format {
        "oscal" => crate::shown::show!("{}", oscal::render(&observed)),
        "sarif" => crate::shown::show!("{}", sarif::render(&observed)),
        _ => crate::shown::show!("{words}"),
    }
    Ok(status)
}

/// The exit status, and the conclusion as text.
fn conclude(ending: &Ending, claims: &Claims, (invalid, told): (u64, bool)) -> (i32, String) {
    let invalid_frames = (invalid > 0).then(|| words::plural(invalid, "invalid frame"));
    let amiss: Vec<String> = claims.amiss().into_iter().chain(invalid_frames).collect();
    let mut words = if amiss.is_empty() { String::new() } else { format!("\n{}\n", amiss.join("; ")) };
    let status = match ending {
        Ending::Interrupted => exit::INTERRUPTED,
        Ending::Failed => exit::FAILED,
        Ending::Complete if claims.count(Verdict::Fails) > 0 => exit::DISPROVEN,
        Ending::Complete if invalid > 0 => exit::FAILED,
        Ending::Complete if !claims.all_hold() => exit::CANNOT_TELL,
        Ending::Complete if told => {
            words += "\nthe server reports the state that its provider was asked for, and nothing else was checked\n";
            exit::CANNOT_TELL
        }
        Ending::Complete => {
            let seen = if claims.count(Verdict::OutOfReach) > 0 { " that could be checked" } else { "" };
            words += &format!("\nevery claim{seen} holds and every answer was right; nothing was timed\n");
            exit::OK
        }
    };
    (status, words)
}

/// The same experiment with little data and one short frame per cell, with servers that are started once and not warmed
/// up.
fn small(prepared: Prepared, machine: &MachineArgs) -> Result<Prepared, Stop> {
    let mut plan = prepared.plan;
    // Another program's data sets have their own sizes.
    if !plan.cells.iter().any(|cell| cell.program) {
        plan.experiment.data.records = plan.experiment.data.records.min(RECORDS);
    }
    // For so little data, a relative memory limit would be close to zero.
    plan.experiment.resources.iter_mut().for_each(|resources| resources.limits = Limits::default());
    plan.experiment.measure.profile = false;
    for cell in &mut plan.cells {
        (cell.blocks, cell.frames_max, cell.free_frames, cell.epochs) = (1, FRAMES_MAX, 0, 1);
        cell.slot_ns = cell.slot_ns.max(SLOT_NS);
        // Without timing, no warm-up is needed.
        cell.after_start = WarmUp::None;
        if let Starts::Several(_) = cell.starts {
            cell.starts = Starts::Once;
        }
        match cell.design {
            // One pair of sides with one frame each.
            Design::Switched { .. } => {
                (cell.design, cell.frames_max) = (Design::Switched { frames_a_side: 1 }, 2);
            }
            // A frame has all arms, so that each does some work.
            Design::Sequential if cell.program => cell.design = Design::Slices,
            Design::Sequential => cell.design = Design::Interleaved,
            Design::Interleaved | Design::Slices | Design::Duet => {}
        }
    }
    prepare::of_plan(prepared.text, plan, machine)
}

/// Prints the findings of each cell at its end, so that equal findings are printed once.
struct Verifier<'a> {
    prepared: &'a Prepared,
    /// The findings of the current cell.
    findings: Vec<Finding>,
    claims: Claims,
    invalid: InvalidFrames,
    /// The observations so far, for a document instead of text.
    observed: Assessment,
    /// Version of each arm's server in the current cell, if it was started.
    versions: BTreeMap<u32, String>,
    /// True if text is printed as it comes to standard output; otherwise it goes to standard error.
    is_told: bool,
}

impl<'a> Verifier<'a> {
    fn new(prepared: &'a Prepared, is_told: bool) -> Self {
        let experiment = &prepared.plan.experiment;
        let observed = Assessment {
            title: experiment.title.clone(),
            source: format!("experiment {:?} on {}", experiment.title, experiment.database),
            tithe: env!("CARGO_PKG_VERSION").to_owned(),
            unix_s: now_unix_s(),
            // False until it has ended.
            complete: false,
            observations: Vec::new(),
        };
        let (findings, claims, versions) = (Vec::new(), Claims::default(), BTreeMap::new());
        Self { prepared, findings, claims, invalid: InvalidFrames::default(), observed, versions, is_told }
    }

    fn print_findings(&mut self) {
        let findings = std::mem::take(&mut self.findings);
        findings.iter().for_each(|finding| self.claims.add(finding));
        // Output for a program is not broken into lines.
        let columns = if std::io::stdout().is_terminal() { progress::columns() } else { usize::MAX };
        self.say(&reported(&findings, &self.prepared.plan.experiment.arms, columns));
    }

    /// Prints `text`; to standard error if standard output has a document.
    fn say(&self, text: &str) {
        if self.is_told {
            crate::shown::show!("{text}");
        } else {
            crate::shown::tell!("{text}");
        }
    }

    fn observe(&mut self, finding: &Finding) {
        let plan = &self.prepared.plan;
        let (cell, arm) = (&plan.cells[finding.cell as usize], &plan.experiment.arms[finding.arm as usize]);
        let version = self.versions.get(&finding.arm).map_or("", String::as_str);
        let subject = format!("{} · {}, {version}", cell.id, arm.name);
        self.observed.observations.push(Observation::of(finding, &subject, now_unix_s()));
    }
}

/// Seconds since 1970.
pub(super) fn now_unix_s() -> u64 {
    time::OffsetDateTime::now_utc().unix_timestamp().unsigned_abs()
}

impl EventListener for Verifier<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::CellStarted { cell } => self.say(&format!("{}\n", self.prepared.plan.cells[*cell as usize].id)),
            Event::ArmStarted { arm, version, .. } => drop(self.versions.insert(*arm, version.clone())),
            Event::Evidence(finding) => {
                self.observe(finding);
                self.findings.push(finding.clone());
            }
            Event::FrameDone { cell, invalid, .. } => {
                let repeats = !self.prepared.plan.cells[*cell as usize].design.is_switched();
                self.invalid.add(*cell, invalid.as_ref(), repeats);
                if let Some(why) = invalid {
                    let mark = if repeats && why.is_of_a_busy_machine() { "!" } else { "✗" };
                    self.say(&format!("  {mark} {why}\n"));
                }
            }
            Event::CellDone { reason, .. } => {
                if let CellEnding::Failed(why) = reason {
                    self.say(&format!("  ✗ {why}\n"));
                }
                self.print_findings();
            }
            Event::Warning { message } => self.say(&format!("  warning: {message}\n")),
            _ => {}
        }
    }

    fn frame(&mut self, frame: &Frame, _slots: &[Slot]) -> Advice {
        Advice { enough: !frame.invalid.as_ref().is_some_and(Invalid::is_of_a_busy_machine), starts: None }
    }
}

/// The cell of each invalid frame, and whether the only reason was that the machine was too busy. Frames that were
/// repeated for that reason are left out.
#[derive(Debug, Default)]
struct InvalidFrames(Vec<(u32, bool)>);

impl InvalidFrames {
    /// Adds the next frame of `cell`. If the cell `repeats` frames, it replaces the ones before it that were invalid
    /// because the machine was busy.
    fn add(&mut self, cell: u32, invalid: Option<&Invalid>, repeats: bool) {
        match invalid {
            Some(why) => self.0.push((cell, why.is_of_a_busy_machine())),
            None if repeats => self.0.retain(|invalid| *invalid != (cell, true)),
            None => {}
        }
    }
}

/// `findings` as text, claim by claim, in lines of at most `columns`; equal findings are combined.
fn reported(findings: &[Finding], arms: &[Arm], columns: usize) -> String {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        match groups.iter_mut().find(|observed| is_same(observed[0], finding)) {
            Some(observed) => observed.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    // The findings of one claim next to each other, in the order of the first.
    let first =
        |observed: &Vec<&Finding>| findings.iter().position(|finding| claim_of(finding) == claim_of(observed[0]));
    groups.sort_by_key(first);
    groups.iter().map(|observed| lines(observed, &arms[observed[0].arm as usize].name, columns)).collect()
}

/// What is checked.
fn claim_of(finding: &Finding) -> (u32, &str, &str) {
    (finding.arm, &finding.protection, &finding.check)
}

fn is_same(one: &Finding, other: &Finding) -> bool {
    let seen = |finding: &Finding| (finding.claim.clone(), finding.protected.clone(), finding.control.clone());
    claim_of(one) == claim_of(other) && one.verdict == other.verdict && seen(one) == seen(other)
}

fn lines(observed: &[&Finding], arm: &str, columns: usize) -> String {
    let Finding { role, verdict, claim, protected, control, .. } = observed[0];
    let (mark, outcome, _) = words::finding(*role, *verdict);
    // A disclosure is a question with its answer.
    let (mark, answer) = if *role == Role::Disclosure { ("i", format!(", {outcome}")) } else { (mark, String::new()) };
    let phases: BTreeSet<&str> = observed.iter().map(|finding| finding.phase.word()).collect();
    let when = if phases.len() > 1 { "before and after" } else { observed[0].phase.word() };
    let told = [
        (format!("  {mark} "), format!("{arm}{answer}: {claim} ({when})")),
        ("      protected: ".to_owned(), protected.clone()),
        ("      control: ".to_owned(), control.clone()),
    ];
    told.iter().map(|(lead, text)| words::paragraph(lead, text, columns)).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_model::record::Phase;

    use super::*;

    fn arm(name: &str) -> Arm {
        Arm::new(name, Vec::new())
    }

    fn finding(check: &str, phase: Phase, verdict: Verdict, protected: &str) -> Finding {
        Finding {
            cell: 0,
            epoch: 0,
            arm: 1,
            phase,
            protection: "tls".to_owned(),
            check: check.to_owned(),
            claim: format!("claim of {check}"),
            role: Role::Claim,
            verdict,
            protected: protected.to_owned(),
            control: "seen".to_owned(),
        }
    }

    #[test]
    fn observations_that_agree_are_one_and_others_say_when() {
        let findings = [
            finding("a", Phase::Before, Verdict::Holds, "0 of 9"),
            finding("b", Phase::Before, Verdict::Holds, "0 of 9"),
            Finding { role: Role::Disclosure, ..finding("c", Phase::Before, Verdict::CannotTell, "no log") },
            finding("a", Phase::After, Verdict::Holds, "0 of 9"),
            finding("b", Phase::After, Verdict::Fails, "1 of 9"),
        ];
        // A line without indentation, so that the macro does not remove the indentation of the others.
        expect![[r#"
            told
              ✓ tls: claim of a (before and after)
                  protected: 0 of 9
                  control: seen
              ✓ tls: claim of b (before)
                  protected: 0 of 9
                  control: seen
              ✗ tls: claim of b (after)
                  protected: 1 of 9
                  control: seen
              i tls, cannot tell: claim of c (before)
                  protected: no log
                  control: seen
        "#]]
        .assert_eq(&format!("told\n{}", reported(&findings, &[arm("plain"), arm("tls")], 80)));
    }

    #[test]
    fn a_frame_that_was_offered_once_more_stands_for_those_before_it_in_its_cell() {
        let left = |frames: &[(u32, Option<&Invalid>)], repeats| {
            let mut invalid = InvalidFrames::default();
            frames.iter().for_each(|(cell, why)| invalid.add(*cell, *why, repeats));
            invalid.0.into_iter().map(|(cell, _)| cell).collect::<Vec<u32>>()
        };
        let of_arm = |why| Invalid::OfArm(1, Box::new(why));
        let (busy, wrong) = (of_arm(Invalid::NothingDone), of_arm(Invalid::Other("wrong answer".to_owned())));
        let (busy, wrong) = (Some(&busy), Some(&wrong));
        assert!(left(&[(0, busy), (0, busy), (0, None)], true).is_empty());
        assert_eq!(left(&[(0, wrong), (1, busy), (1, None)], true), [0]);
        assert_eq!(left(&[(0, busy), (0, wrong), (0, None)], true), [0], "what was wrong once was wrong");
        assert_eq!(left(&[(0, busy), (0, None)], false), [0], "a side of a switched server does not stand for another");
        assert_eq!(left(&[(0, busy); 5], true), [0; 5]);
    }

    #[test]
    fn disproven_outranks_invalid_and_unproven() {
        let status = |verdicts: &[Verdict], invalid| {
            let mut claims = Claims::default();
            for (number, verdict) in verdicts.iter().enumerate() {
                claims.add(&finding(&number.to_string(), Phase::Before, *verdict, ""));
            }
            conclude(&Ending::Complete, &claims, (invalid, false)).0
        };
        assert_eq!(status(&[Verdict::Holds], 0), exit::OK);
        assert_eq!(status(&[Verdict::Holds, Verdict::CannotTell], 0), exit::CANNOT_TELL);
        assert_eq!(conclude(&Ending::Complete, &Claims::default(), (0, true)).0, exit::CANNOT_TELL);
        assert_eq!(status(&[Verdict::CannotTell], 1), exit::FAILED);
        assert_eq!(status(&[Verdict::CannotTell, Verdict::Fails], 1), exit::DISPROVEN);
    }
}
