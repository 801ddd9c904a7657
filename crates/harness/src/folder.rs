//! The run folder: everything that a run saw, written as it happens, and read back for reports.
//!
//! Files only grow, line by line, so that a killed run keeps what it measured; the file of a cell is replaced as a
//! whole. A frame counts once `frames.jsonl` has its line. Its slots and its intervals in the HdrHistogram logs are
//! written before that line, and removed if the line was never written. FORMAT.md documents every file.

mod hdr_log;
mod json;
mod parts;
mod seal;

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tithe_machine::{fault::Fault, sandbox::held::try_lock};
use tithe_model::{
    experiment::mask_passwords,
    plan::{FORMAT, Plan},
    profile::ProfiledFrame,
    record::{Event, Finding, Frame, Machine, Slot},
    records::{CellFacts, Records},
    slots,
};

use json::{json, line, lines, records, text, write_json};

pub use parts::{CellRecords, Parts};

/// Records of profiled frames; created with the first of them.
const PROFILE: &str = "profile.jsonl";

/// Folder of the HdrHistogram logs in a run folder.
const HISTOGRAMS: &str = "histograms";

/// Folder with the facts of each cell, by its number.
const CELLS: &str = "cells";

/// An open run folder. Only one process writes to it at a time.
pub struct RunFolder {
    path: PathBuf,
    frames: Growing,
    slots: Growing,
    findings: Growing,
    events: Growing,
    cells: Vec<CellFacts>,
    names: FileNames,
    /// Lengths of the HdrHistogram logs that this process has written. They are closed: there may be more than a
    /// process may have open.
    histograms: HashMap<String, u64>,
    _lock: Lock,
}

impl RunFolder {
    /// Makes the folder of a new run.
    ///
    /// # Errors
    /// When it already exists, or cannot be written.
    pub fn create(path: &Path, experiment: &str, plan: &Plan, machine: &Machine) -> Result<Self, Fault> {
        let failed = |error| cannot_make(path, error);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::create_dir(path).map_err(failed)?;
        Self::fill(path, experiment, plan, machine).inspect_err(|_| {
            // Nothing was measured, and half a folder is not a run.
            let _ = fs::remove_dir_all(path);
        })
    }

    /// Writes the files that a run folder has from the beginning into the empty folder at `path`.
    fn fill(path: &Path, experiment: &str, plan: &Plan, machine: &Machine) -> Result<Self, Fault> {
        let failed = |error| cannot_make(path, error);
        for folder in [CELLS, HISTOGRAMS, "logs"] {
            fs::create_dir(path.join(folder)).map_err(failed)?;
        }
        fs::write(path.join("experiment.toml"), mask_passwords(experiment)).map_err(failed)?;
        write_json(&path.join("machine.json"), machine)?;
        let cells = vec![CellFacts::default(); plan.cells.len()];
        fs::write(path.join("slots.csv"), format!("{}\n", slots::COLUMNS)).map_err(failed)?;
        let folder = Self::open(path, plan, cells, lock(path)?)?;
        // Last: a folder that has a plan has everything else.
        write_json(&path.join("plan.json"), plan)?;
        Ok(folder)
    }

    /// Opens the folder of a run that ended early, to continue it. The remains of an unfinished frame are removed.
    /// Damaged records are kept as copies: `slots.csv.damaged`, `frames.jsonl.damaged`.
    ///
    /// # Errors
    /// When it is not a run folder, is of another format, or another process writes to it.
    pub fn resume(path: &Path) -> Result<(Self, Records), Fault> {
        // Nothing is written into a folder that is not a run.
        text(&path.join("plan.json"))?;
        // Locked before it is read: otherwise another process could still write after that.
        let lock = lock(path)?;
        let records = read(path)?;
        if !records.damage.is_empty() {
            ["slots.csv", "frames.jsonl"].into_iter().try_for_each(|name| keep_damaged(path, name))?;
        }
        let mut text = format!("{}\n", slots::COLUMNS);
        let mut rows: BTreeMap<(u32, u32), String> = BTreeMap::new();
        for slot in &records.slots {
            let row = slots::line(slot);
            text.push_str(&row);
            rows.entry((slot.cell, slot.frame)).or_default().push_str(&row);
        }
        replace(&path.join("slots.csv"), text.as_bytes())?;
        // A line that a kill cut in half would make the next line invalid.
        let frames = records.frames.iter().map(|frame| {
            let rows = rows.get(&(frame.cell, frame.frame)).map_or("", String::as_str);
            line(frame, rows.as_bytes())
        });
        replace(&path.join("frames.jsonl"), &frames.collect::<Result<Vec<_>, _>>()?.concat())?;
        replace(&path.join("evidence.jsonl"), &lines(&records.findings)?)?;
        replace(&path.join("events.jsonl"), &lines(&records.events)?)?;
        if path.join(PROFILE).exists() {
            // As it was written: records leave out the stacks of frames that do not fit the plan.
            replace(&path.join(PROFILE), &lines(&json::records::<ProfiledFrame>(path, PROFILE)?)?)?;
        }
        replace_histograms(&path.join(HISTOGRAMS), &records.plan, &records.frames)?;
        Ok((Self::open(path, &records.plan, records.cells.clone(), lock)?, records))
    }

    fn open(path: &Path, plan: &Plan, cells: Vec<CellFacts>, lock: Lock) -> Result<Self, Fault> {
        Ok(Self {
            path: path.to_owned(),
            frames: Growing::open(append(path, "frames.jsonl")?)?,
            slots: Growing::open(append(path, "slots.csv")?)?,
            findings: Growing::open(append(path, "evidence.jsonl")?)?,
            events: Growing::open(append(path, "events.jsonl")?)?,
            cells,
            names: FileNames::of(plan),
            histograms: HashMap::new(),
            _lock: lock,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a profiled frame, which is kept apart from the others.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn profiled(&mut self, frame: &ProfiledFrame) -> Result<(), Fault> {
        Growing::open(append(&self.path, PROFILE)?)?.add(&lines(std::slice::from_ref(frame))?, "a profiled frame")
    }

    /// Adds a complete frame with its slots.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn frame(&mut self, frame: &Frame, slots: &[Slot]) -> Result<(), Fault> {
        let rows: String = slots.iter().map(slots::line).collect();
        self.slots.add(rows.as_bytes(), "the slots of a frame")?;
        for (name, intervals) in intervals_of(&self.names, frame)? {
            self.intervals(&name, frame, &intervals)?;
        }
        self.frames.add(&line(frame, rows.as_bytes())?, "the records of a frame")
    }

    /// Adds the finding of an evidence check.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn finding(&mut self, finding: &Finding) -> Result<(), Fault> {
        self.findings.add(&line(finding, b"")?, "evidence")
    }

    /// Adds an event.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn event(&mut self, event: &Event) -> Result<(), Fault> {
        self.events.add(&line(event, b"")?, "an event")
    }

    /// Changes the facts of cell `cell`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn cell(&mut self, cell: usize, change: impl FnOnce(&mut CellFacts)) -> Result<(), Fault> {
        change(&mut self.cells[cell]);
        write_json(&cell_path(&self.path, cell), &self.cells[cell])
    }

    /// Checks that all that this process has written is there.
    ///
    /// # Errors
    /// When another program has removed or changed a file.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let files = [
            (&self.frames, "frames.jsonl"),
            (&self.slots, "slots.csv"),
            (&self.findings, "evidence.jsonl"),
            (&self.events, "events.jsonl"),
        ];
        for (file, name) in files {
            let place = || self.path.join(name).display().to_string();
            if !file.is_ours().map_err(|error| Fault::machine(place(), error))? {
                return Err(Fault::Machine(format!("{}: {CHANGED}", place())));
            }
        }
        Ok(())
    }

    /// Replaces the plan: from now on `plan` is carried out.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn plan(&self, plan: &Plan) -> Result<(), Fault> {
        write_json(&self.path.join("plan.json"), plan)
    }

    /// Keeps a copy of a server's log under `logs/`; a missing log is no error.
    pub fn keep_log(&self, name: &str, log: &Path) {
        let _ = fs::copy(log, self.path.join("logs").join(name));
    }

    /// Adds the `intervals` of `frame` to the HdrHistogram log `name`.
    fn intervals(&mut self, name: &str, frame: &Frame, intervals: &str) -> Result<(), Fault> {
        let mut file = Growing::open(append(&self.path.join(HISTOGRAMS), name)?)?;
        file.length = self.histograms.get(name).copied().unwrap_or(file.length);
        // Only the top of the file has the header.
        let header = if file.length == 0 { hdr_log::header(frame) } else { String::new() };
        let added = file.add((header + intervals).as_bytes(), name);
        self.histograms.insert(name.to_owned(), file.length);
        added
    }
}

fn cannot_make(path: &Path, error: std::io::Error) -> Fault {
    Fault::machine(format!("cannot make the run folder {}", path.display()), error)
}

/// The lock for writing into a run folder, until it is dropped.
struct Lock(File);

impl Drop for Lock {
    /// Closing the file would keep the lock for as long as a child has it open that was forked, and has not executed
    /// its program yet.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Takes the lock of the run folder `path`.
fn lock(path: &Path) -> Result<Lock, Fault> {
    let lock = append(path, "lock")?;
    match try_lock(&lock) {
        Ok(true) => Ok(Lock(lock)),
        Ok(false) => Err(Fault::Machine(format!("another tithe is writing to {}", path.display()))),
        Err(error) => {
            let words = format!("cannot lock {}: use a folder on a file system that keeps locks", path.display());
            Err(Fault::machine(words, error))
        }
    }
}

/// The file `name` of the run folder `path`, to add to.
fn append(path: &Path, name: &str) -> Result<File, Fault> {
    let file = OpenOptions::new().create(true).append(true).open(path.join(name));
    file.map_err(|error| Fault::machine(format!("cannot write {name} in {}", path.display()), error))
}

/// The facts of cell `cell` in the run folder `path`.
fn cell_path(path: &Path, cell: usize) -> PathBuf {
    path.join(CELLS).join(format!("{cell}.json"))
}

/// The facts of the cells of `plan` in the run folder `path`. A cell that has not begun has no file, no frame in
/// `parts` and none of the `findings`.
fn cells(path: &Path, plan: &Plan, parts: &Parts, findings: &[Finding]) -> Result<Vec<CellFacts>, Fault> {
    let mut flaws = foreign_cells(path, plan.cells.len())?;
    let mut cells = Vec::new();
    for cell in 0..plan.cells.len() {
        let (file, name) = (cell_path(path, cell), format!("{CELLS}/{cell}.json"));
        let is_there = file.try_exists().map_err(|error| Fault::machine(file.display(), error))?;
        let has_begun = || parts.has_frames(cell) || findings.iter().any(|finding| finding.cell as usize == cell);
        if !is_there && has_begun() {
            flaws.push(format!("{name} is missing"));
        }
        cells.push(if is_there { json(&text(&file)?, &name)? } else { CellFacts::default() });
    }
    refuse("its files do not belong together", path, &flaws)?;
    Ok(cells)
}

/// The files of cells in the run folder `path` whose numbers are `count` or above.
fn foreign_cells(path: &Path, count: usize) -> Result<Vec<String>, Fault> {
    let folder = path.join(CELLS);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Fault::machine(folder.display(), error)),
    };
    let number = |name: &str| name.strip_suffix(".json").and_then(|number| number.parse::<usize>().ok());
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut foreign: Vec<String> = names.filter(|name| number(name).is_some_and(|number| number >= count)).collect();
    foreign.sort();
    Ok(foreign.iter().map(|name| format!("{CELLS}/{name} is of no cell of plan.json")).collect())
}

/// The lines that `frame` adds to the HdrHistogram logs, by their names.
fn intervals_of(names: &FileNames, frame: &Frame) -> Result<Vec<(String, String)>, Fault> {
    let mut all = Vec::new();
    for (arm, seen) in frame.arms.iter().enumerate().take(names.arms.len()) {
        let name = names.log(frame.cell as usize, arm);
        let latency = seen.latency.iter().map(|(operation, histogram)| (operation.clone(), histogram));
        let intended = seen.intended.iter().map(|(operation, histogram)| (format!("Intended-{operation}"), histogram));
        let mut intervals = String::new();
        for (tag, histogram) in latency.chain(intended) {
            let interval = hdr_log::interval(&tag, frame, histogram);
            intervals +=
                &interval.ok_or_else(|| Fault::Machine(format!("cannot write {name}: {tag:?} is not a tag")))?;
        }
        if !intervals.is_empty() {
            all.push((name, intervals));
        }
    }
    Ok(all)
}

/// Rewrites the HdrHistogram logs in `folder` with the intervals of `frames` and no others. A frame that was
/// interrupted by a kill has its intervals in some logs, the last of them incomplete, and another frame gets its
/// number.
fn replace_histograms(folder: &Path, plan: &Plan, frames: &[Frame]) -> Result<(), Fault> {
    fs::create_dir_all(folder).map_err(|error| Fault::machine(folder.display(), error))?;
    let names = FileNames::of(plan);
    let mut logs: BTreeMap<String, String> = BTreeMap::new();
    for cell in 0..names.cells.len() {
        logs.extend((0..names.arms.len()).map(|arm| (names.log(cell, arm), String::new())));
    }
    for frame in frames {
        for (name, intervals) in intervals_of(&names, frame)? {
            let log = logs.entry(name).or_default();
            if log.is_empty() {
                *log = hdr_log::header(frame);
            }
            log.push_str(&intervals);
        }
    }
    for (name, log) in logs {
        let path = folder.join(name);
        match log.is_empty() {
            true => remove(&path)?,
            false => replace(&path, log.as_bytes())?,
        }
    }
    Ok(())
}

/// Keeps a copy of the file called `name`, unless an earlier copy exists: a user may repair by hand what cannot be read
/// now.
fn keep_damaged(path: &Path, name: &str) -> Result<(), Fault> {
    let kept = path.join(format!("{name}.damaged"));
    if !kept.exists() {
        fs::copy(path.join(name), &kept)
            .map_err(|error| Fault::machine(format!("cannot write {}", kept.display()), error))?;
    }
    Ok(())
}

/// Reads a run folder. Lines that a kill cut in half, and slots of frames that did not complete, are left out. A frame
/// whose slots are damaged is invalid. Frames and slots come cell by cell.
///
/// # Errors
/// When it is not a run folder, of another format, or its files do not belong together.
pub fn read(path: &Path) -> Result<Records, Fault> {
    let (mut records, parts) = open(path)?;
    for cell in 0..records.plan.cells.len() {
        let CellRecords { frames, slots, damage } = parts.cell(cell)?;
        records.frames.extend(frames);
        records.slots.extend(slots);
        records.damage.extend(damage);
    }
    Ok(records)
}

/// Reads a run folder without its frames and slots, which can be read from its parts.
///
/// # Errors
/// As [`read`].
pub fn open(path: &Path) -> Result<(Records, Parts), Fault> {
    let plan_text = text(&path.join("plan.json"))?;
    let format: FormatOnly = json(&plan_text, "plan.json")?;
    if format.format != FORMAT {
        return Err(Fault::Machine(format!(
            "{} was written in format {}, this tithe reads format {FORMAT}, whose files are others: \
             use the version that wrote it, or measure again (`tithe run {}`)",
            path.display(),
            format.format,
            path.join("experiment.toml").display()
        )));
    }
    let plan: Plan = json(&plan_text, "plan.json")?;
    refuse("plan.json makes no sense", path, &plan.flaws())?;
    let parts = Parts::open(path, &plan)?;
    let run = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let findings: Vec<Finding> = records(path, "evidence.jsonl")?;
    let records = Records {
        run: run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        machine: json(&text(&path.join("machine.json"))?, "machine.json")?,
        cells: cells(path, &plan, &parts, &findings)?,
        findings,
        events: records(path, "events.jsonl")?,
        profile: profile(path, &plan)?,
        plan,
        frames: Vec::new(),
        slots: Vec::new(),
        damage: Vec::new(),
    };
    refuse("its files do not belong together", path, &mismatches(&records))?;
    Ok((records, parts))
}

/// The profiled frames of the run folder at `path`; empty if nothing was profiled.
fn profile(path: &Path, plan: &Plan) -> Result<Vec<ProfiledFrame>, Fault> {
    if !path.join(PROFILE).exists() {
        return Ok(Vec::new());
    }
    let mut frames: Vec<ProfiledFrame> = records(path, PROFILE)?;
    let arms = plan.experiment.arms.len();
    for frame in frames.iter_mut().filter(|frame| !frame.is_whole(arms)) {
        frame.invalid = Some(format!("its line in {PROFILE} does not fit the plan"));
        frame.stacks.clear();
    }
    Ok(frames)
}

/// Refuses the run folder at `path` if there are `flaws`.
fn refuse(what: &str, path: &Path, flaws: &[String]) -> Result<(), Fault> {
    match flaws {
        [] => Ok(()),
        flaws => Err(Fault::Machine(format!(
            "{}: {what}, so it was changed or damaged: {}; take the folder from a copy, or measure again (`tithe run {}`)",
            path.display(),
            flaws.join("; "),
            path.join("experiment.toml").display()
        ))),
    }
}

/// Records of cells and arms that the plan does not have.
fn mismatches(records: &Records) -> Vec<String> {
    let Records { plan, cells, findings, .. } = records;
    let arms = plan.experiment.arms.len();
    let mut mismatches = Vec::new();
    let of_others = |(_, facts): &(usize, &CellFacts)| !facts.arms.is_empty() && facts.arms.len() != arms;
    for (cell, facts) in cells.iter().enumerate().filter(of_others) {
        mismatches.push(format!("{CELLS}/{cell}.json has {} arms, plan.json {arms}", facts.arms.len()));
    }
    let unknown = |finding: &Finding| finding.cell as usize >= plan.cells.len() || finding.arm as usize >= arms;
    if let Some(line) = findings.iter().position(unknown) {
        mismatches.push(format!(
            "line {} of evidence.jsonl is about a cell or an arm that plan.json does not have",
            line + 1
        ));
    }
    mismatches
}

#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

/// A file that lines are added to, with its length according to this process.
struct Growing {
    file: File,
    length: u64,
}

impl Growing {
    fn open(file: File) -> Result<Self, Fault> {
        let seen = file.metadata().map_err(|error| Fault::machine("cannot read a file of the run folder", error))?;
        Ok(Self { file, length: seen.len() })
    }

    /// False if another program has removed or changed the file.
    fn is_ours(&self) -> std::io::Result<bool> {
        let seen = self.file.metadata()?;
        Ok(seen.nlink() > 0 && seen.len() == self.length)
    }

    /// Adds `bytes` as a whole. If the disk is full, the part that was written is removed, so that the next line is
    /// intact. Nothing is added if another program has removed or changed the file: the rest of the run would be lost.
    fn add(&mut self, bytes: &[u8], what: &str) -> Result<(), Fault> {
        let failed = |error| Fault::machine(format!("cannot write {what}"), error);
        if !self.is_ours().map_err(failed)? {
            return Err(Fault::Machine(format!("cannot write {what}: {CHANGED}")));
        }
        let written = self.file.write_all(bytes);
        // If that fails too, the incomplete line is the last one, and readers leave it out.
        let taken_back = written.is_err() && self.file.set_len(self.length).is_ok();
        if !taken_back {
            self.length = self.file.metadata().map_err(failed)?.len();
        }
        written.map_err(failed)
    }
}

/// Why nothing is added to a file, and why its run is not reported.
const CHANGED: &str = "another program has removed or changed its file since this run began to write it";

/// Replaces a file as a whole: a reader sees the old or the new one, never a mixture.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    let failed = |error| Fault::machine(format!("cannot write {}", path.display()), error);
    let next = path.with_extension("next");
    fs::write(&next, bytes).map_err(failed)?;
    fs::rename(&next, path).map_err(failed)
}

/// Removes the file `path`, if there is one.
fn remove(path: &Path) -> Result<(), Fault> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Fault::machine(path.display(), error)),
        _ => Ok(()),
    }
}

/// The names of cells and arms in the names of files.
pub struct FileNames {
    /// By number.
    pub cells: Vec<String>,
    /// By number.
    pub arms: Vec<String>,
}

impl FileNames {
    /// Those of `plan`.
    pub fn of(plan: &Plan) -> Self {
        Self {
            cells: file_names(plan.cells.iter().map(|cell| cell.id.as_str())),
            arms: file_names(plan.experiment.arms.iter().map(|arm| arm.name.as_str())),
        }
    }

    /// Name of the HdrHistogram log of an arm in a cell, by their numbers.
    fn log(&self, cell: usize, arm: usize) -> String {
        format!("{}--{}.hlog", self.cells[cell], self.arms[arm])
    }
}

/// `name` with everything but letters, digits, `-` and `_` replaced.
pub fn plain_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '-' };
    name.chars().map(plain).collect()
}

/// The plain forms of `names`. A full stop and the number are added where another name has the same plain form.
fn file_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<String> = names.map(plain_name).collect();
    let mut alike: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *alike.entry(name).or_default() += 1);
    let of = |(number, name): (usize, &String)| {
        if alike[name.as_str()] > 1 { format!("{name}.{number}") } else { name.clone() }
    };
    names.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use tithe_model::{
        histogram::Histogram,
        plan::Cell,
        record::{ArmFacts, ArmFrame, Phase, Role, Stalls, Verdict},
    };
    use tithe_plugin::simulated::Simulated;

    use super::*;

    const EXPERIMENT: &str = "title = \"Logs\"\ndatabase = \"simulated\"\n[data]\nrecords = 1000\n[load]\nclients = 3\n\
        [measure]\nbudget = \"30 s\"\nslot = \"20 ms\"\nprecision = \"0.01%\"\naa_arm = false\n\
        [[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"dearer\"\nprotections = [{ use = \"seal\" }]\n";

    fn plan() -> Plan {
        let kinds = tithe_workloads::KINDS.iter().map(|kind| (kind.entry)()).collect();
        let catalogue = crate::catalogue::catalogue(&[&Simulated], kinds);
        let experiment = tithe_model::parse::parse(EXPERIMENT, &catalogue, &|_| Err(std::io::Error::other("no file")));
        tithe_model::plan::plan(experiment.expect("an experiment"), &catalogue).expect("a plan")
    }

    /// Frame `number` of two arms, with one operation.
    fn frame(number: u32) -> Frame {
        let mut seen = Histogram::default();
        seen.record(1000 + u64::from(number));
        let arm = ArmFrame { latency: [("READ".to_owned(), seen)].into(), ..ArmFrame::default() };
        Frame {
            frame: number,
            start_unix_ns: 1_700_000_000_000_000_000 + u64::from(number) * 1_000_000_000,
            duration_ns: 1_000_000_000,
            slot_ns: 20_000_000,
            settling_ns: 1_000_000,
            stalls: Stalls::Waits,
            arms: vec![arm.clone(), arm],
            ..Frame::default()
        }
    }

    /// Frame `number` of two arms, each with one slot of one operation.
    fn counted(number: u32) -> Frame {
        let mut frame = frame(number);
        frame.arms.iter_mut().for_each(|arm| arm.operations = 1);
        frame
    }

    /// The slots of frame `number`.
    fn slots_of(number: u32) -> Vec<Slot> {
        let slot = |arm| Slot { frame: number, arm, operations: 1, counted: 1, wall_ns: 20_000_000, ..Slot::default() };
        vec![slot(0), slot(1)]
    }

    fn finding() -> Finding {
        Finding {
            cell: 0,
            epoch: 0,
            arm: 1,
            phase: Phase::Before,
            protection: "seal".to_owned(),
            check: "sealed".to_owned(),
            claim: "Records are sealed.".to_owned(),
            role: Role::Claim,
            verdict: Verdict::Holds,
            protected: "all".to_owned(),
            control: "none".to_owned(),
        }
    }

    #[test]
    fn names_that_differ_in_signs_alone_have_files_of_their_own() {
        let names = ["tls 1.2", "plain", "tls-1.2", "ключ", "ключи"];
        assert_eq!(file_names(names.into_iter()), ["tls-1-2.0", "plain", "tls-1-2.2", "----", "-----"]);
    }

    #[test]
    fn the_logs_of_a_run_that_is_resumed_hold_its_frames_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, plan) = (folder.path().join("run"), plan());
        let logs = || -> Vec<Option<String>> {
            let names = FileNames::of(&plan);
            let logs = (0..names.arms.len()).map(|arm| names.log(0, arm));
            logs.map(|name| fs::read_to_string(path.join(HISTOGRAMS).join(name)).ok()).collect()
        };
        let mut run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
        run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
        run.frame(&frame(0), &[]).expect("written");
        run.frame(&frame(1), &[]).expect("written");
        let whole = logs();
        assert!(whole.iter().flatten().all(|log| log.matches("StartTime").count() == 1), "{whole:?}");
        assert_eq!(whole.iter().flatten().map(|log| log.matches("Tag=READ,").count()).sum::<usize>(), 4);

        // Killed in its third frame: one log has the frame, the other a part of it, and `frames.jsonl` has no line of
        // it.
        let next = intervals_of(&FileNames::of(&plan), &frame(2)).expect("intervals");
        run.intervals(&next[0].0, &frame(2), &next[0].1).expect("written");
        run.intervals(&next[1].0, &frame(2), &next[1].1[..20]).expect("written");
        assert_ne!(logs(), whole);
        drop(run);
        let (mut run, records) = RunFolder::resume(&path).expect("resumed");
        assert_eq!((records.frames.len(), logs()), (2, whole.clone()));
        run.frame(&frame(2), &[]).expect("written");
        let longer = whole.iter().zip(&next).map(|(log, (_, interval))| Some(log.clone()? + interval));
        assert_eq!(logs(), longer.collect::<Vec<_>>());
        drop(run);

        // Killed in its first frame.
        fs::write(path.join("frames.jsonl"), "").expect("written");
        let (mut run, _) = RunFolder::resume(&path).expect("resumed");
        assert!(logs().iter().all(Option::is_none), "{:?}", logs());
        run.frame(&frame(0), &[]).expect("written");
        run.frame(&frame(1), &[]).expect("written");
        assert_eq!(logs(), whole);
    }

    #[test]
    fn nothing_is_added_to_a_file_that_another_program_has_changed_or_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, plan) = (folder.path().join("run"), plan());
        let mut run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
        run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
        run.frame(&frame(0), &[]).expect("written");
        assert_eq!(run.check(), Ok(()));
        fs::write(path.join("frames.jsonl"), "").expect("emptied");
        let told = run.check().expect_err("frame 0 is lost").to_string();
        assert!(told.contains("frames.jsonl: another program has removed or changed its file"), "{told}");
        let refused = run.frame(&frame(1), &[]).expect_err("frame 0 is lost").to_string();
        assert!(refused.contains("another program has removed or changed its file"), "{refused}");
        fs::remove_file(path.join("events.jsonl")).expect("removed");
        assert!(run.event(&Event::CellStarted { cell: 0 }).is_err(), "nobody would read it");
    }

    #[test]
    fn what_a_cell_costs_does_not_grow_with_their_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, mut plan) = (folder.path().join("run"), plan());
        let cell = |number: u32| Cell { id: format!("c.{number}"), ..plan.cells[0].clone() };
        plan.cells = (0..100).map(cell).collect();
        let mut run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
        let entries = |of: &Path| fs::read_dir(of).expect("a folder").flatten().map(|entry| entry.path());
        // Other tests open files meanwhile.
        let is_ours = |file: &PathBuf| fs::read_link(file).is_ok_and(|opened| opened.starts_with(&path));
        let open = || entries(Path::new("/proc/self/fd")).filter(is_ours).count();
        let mut before = None;
        for number in 0..3 {
            run.cell(number, |facts| facts.mode = format!("mode {number}")).expect("written");
            run.frame(&Frame { cell: number as u32, ..frame(0) }, &[]).expect("written");
            assert_eq!(*before.get_or_insert(open()), open(), "logs of earlier cells stay open");
            assert_eq!(entries(&path.join(CELLS)).count(), number + 1, "cells that have not begun are written");
        }
        assert!(before > Some(0));
        drop(run);
        let records = read(&path).expect("readable");
        let modes: Vec<&str> = records.cells.iter().map(|cell| cell.mode.as_str()).collect();
        assert_eq!((&modes[..4], modes.len()), (&["mode 0", "mode 1", "mode 2", ""][..], 100));
        fs::remove_file(cell_path(&path, 1)).expect("removed");
        let refused = read(&path).expect_err("it has frames").to_string();
        assert!(refused.contains("cells/1.json is missing"), "{refused}");
        fs::write(path.join("cells/100.json"), "{}").expect("written");
        let refused = read(&path).expect_err("it is another run's").to_string();
        assert!(refused.contains("cells/100.json is of no cell of plan.json"), "{refused}");
    }

    /// A run folder with one frame, and the folder around it.
    fn with_frame() -> (tempfile::TempDir, PathBuf, RunFolder) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run");
        let mut run = RunFolder::create(&path, EXPERIMENT, &plan(), &Machine::default()).expect("a run folder");
        run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
        run.frame(&counted(0), &slots_of(0)).expect("written");
        (folder, path, run)
    }

    /// Why `path` is no run folder; empty if it is one.
    fn refusal(path: &Path) -> String {
        read(path).map_or_else(|fault| fault.to_string(), |_| String::new())
    }

    #[test]
    fn facts_and_findings_of_cells_and_arms_that_the_plan_does_not_have_are_refused() {
        let (_folder, path, mut run) = with_frame();
        for (arms, is_refused) in [(0, false), (1, true), (2, false), (3, true)] {
            run.cell(0, |facts| facts.arms = vec![ArmFacts::default(); arms]).expect("written");
            let told = refusal(&path);
            assert_eq!(told.contains(&format!("cells/0.json has {arms} arms, plan.json 2")), is_refused, "{told}");
            assert_eq!(told.is_empty(), !is_refused, "{told}");
        }
        run.cell(0, |facts| facts.arms.clear()).expect("written");
        run.finding(&finding()).expect("written");
        assert_eq!(refusal(&path), "");
        let whole = fs::read(path.join("evidence.jsonl")).expect("bytes");
        for other in [Finding { arm: 2, ..finding() }, Finding { cell: 1, ..finding() }] {
            fs::write(path.join("evidence.jsonl"), [whole.clone(), line(&other, b"").expect("JSON")].concat())
                .expect("written");
            let told = refusal(&path);
            assert!(told.contains("line 2 of evidence.jsonl is about a cell or an arm that plan.json"), "{told}");
        }
    }

    #[test]
    fn frames_of_other_cells_and_of_another_number_of_arms_are_refused() {
        let (_folder, path, mut run) = with_frame();
        run.frame(&Frame { arms: vec![ArmFrame::default()], ..frame(1) }, &[]).expect("written");
        let foreign = "does not belong to its plan.json";
        assert!(refusal(&path).ends_with(foreign), "{}", refusal(&path));
        drop(run);
        let (_folder, path, _run) = with_frame();
        let mut frames = fs::read(path.join("frames.jsonl")).expect("bytes");
        frames.extend(line(&Frame { cell: 1, ..frame(0) }, b"").expect("JSON"));
        fs::write(path.join("frames.jsonl"), frames).expect("written");
        assert!(refusal(&path).ends_with(foreign), "{}", refusal(&path));
        let (_folder, path, mut run) = with_frame();
        let mut many = frame(1);
        many.arms[0].failed = u64::MAX;
        run.frame(&many, &[]).expect("written");
        assert!(refusal(&path).ends_with("frame 1 of cell 0 has more operations than there can be"));
    }

    /// Its load would count twice, and its pair of sides would not be whole.
    #[test]
    fn a_frame_that_is_there_twice_is_refused() {
        let (_folder, path, mut run) = with_frame();
        run.frame(&counted(1), &slots_of(1)).expect("written");
        drop(run);
        let lines = fs::read(path.join("frames.jsonl")).expect("bytes");
        assert_eq!(refusal(&path), "");
        fs::write(path.join("frames.jsonl"), lines.repeat(2)).expect("written");
        let told = refusal(&path);
        assert!(told.ends_with("frame 0 of cell 0 is there twice"), "{told}");
    }

    #[test]
    fn a_profiled_frame_that_does_not_fit_the_plan_is_kept_and_not_used() {
        let (_folder, path, mut run) = with_frame();
        assert!(read(&path).expect("readable").profile.is_empty(), "nothing was profiled");
        for arms in [2, 3] {
            run.profiled(&ProfiledFrame::without_samples((0, arms as u32), arms, &slots_of(0))).expect("written");
        }
        let profile = read(&path).expect("readable").profile;
        let invalid: Vec<(u32, bool)> = profile.iter().map(|frame| (frame.frame, frame.invalid.is_some())).collect();
        assert_eq!(invalid, [(2, false), (3, true)]);
        // A kill cut the line of a third one.
        drop(run);
        let whole = fs::read(path.join(PROFILE)).expect("bytes");
        fs::write(path.join(PROFILE), [&whole[..], &b"{\"cell\":0"[..]].concat()).expect("written");
        let (mut run, _) = RunFolder::resume(&path).expect("resumed");
        run.profiled(&ProfiledFrame::without_samples((0, 4), 2, &slots_of(0))).expect("written");
        assert_eq!(read(&path).expect("readable").profile.len(), 3);
    }

    #[test]
    fn a_folder_is_free_once_it_is_dropped_also_while_a_forked_child_has_its_file() {
        let (_folder, path, run) = with_frame();
        drop(run);
        let held = lock(&path).expect("nobody writes");
        let of_child = held.0.try_clone().expect("as fork does");
        assert!(lock(&path).is_err());
        drop(held);
        lock(&path).expect("nobody writes any more");
        drop(of_child);
    }

    #[test]
    fn one_process_at_a_time_writes_to_a_folder_that_is_new() {
        let (_folder, path, run) = with_frame();
        let told = RunFolder::resume(&path).err().expect("it is being written").to_string();
        assert!(told.starts_with("another tithe is writing to "), "{told}");
        drop(run);
        let whole = fs::read(path.join("frames.jsonl")).expect("bytes");
        let again = RunFolder::create(&path, EXPERIMENT, &plan(), &Machine::default());
        assert!(again.err().expect("it is there").to_string().starts_with("cannot make the run folder "));
        assert_eq!(fs::read(path.join("frames.jsonl")).expect("bytes"), whole, "what is there stays");
        let (run, records) = RunFolder::resume(&path).expect("nobody writes any more");
        assert_eq!((run.path(), records.frames.len(), run.check()), (path.as_path(), 1, Ok(())));
    }

    #[test]
    fn damaged_records_are_kept_as_they_were_first_found() {
        let (_folder, path, run) = with_frame();
        drop(run);
        let kept = |name: &str| fs::read_to_string(path.join(format!("{name}.damaged"))).ok();
        drop(RunFolder::resume(&path).expect("resumed"));
        assert_eq!((kept("slots.csv"), kept("frames.jsonl")), (None, None), "nothing was damaged");
        let damage = |sign: &str| {
            let text = fs::read_to_string(path.join("slots.csv")).expect("a text");
            let damaged = text.trim_end().rsplit_once(',').expect("fields").0.to_owned() + sign + "\n";
            fs::write(path.join("slots.csv"), &damaged).expect("written");
            damaged
        };
        let first = damage(",?");
        let (mut run, records) = RunFolder::resume(&path).expect("resumed");
        assert_eq!(records.damage.len(), 1);
        assert_eq!(kept("slots.csv"), Some(first.clone()));
        assert!(kept("frames.jsonl").is_some_and(|frames| frames.lines().count() == 1));
        run.frame(&counted(1), &slots_of(1)).expect("written");
        drop(run);
        damage(",!");
        let (_, records) = RunFolder::resume(&path).expect("resumed");
        assert_eq!(records.damage.len(), 1, "another frame is damaged");
        assert_eq!(kept("slots.csv"), Some(first), "a user may repair it by hand");
    }

    #[test]
    fn a_cell_without_facts_has_no_findings() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, mut plan) = (folder.path().join("run"), plan());
        plan.cells.push(Cell { id: "other".to_owned(), ..plan.cells[0].clone() });
        let mut run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
        assert_eq!(refusal(&path), "", "no cell has begun");
        run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
        run.finding(&finding()).expect("written");
        assert_eq!(refusal(&path), "", "the second one has not begun");
        run.finding(&Finding { cell: 1, ..finding() }).expect("written");
        let told = refusal(&path);
        assert!(told.contains("cells/1.json is missing") && !told.contains("cells/0.json"), "{told}");
    }

    #[test]
    fn a_run_that_has_measured_nothing_is_continued_by_the_plan_that_replaced_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, plan) = (folder.path().join("run"), plan());
        let run = RunFolder::create(&path, EXPERIMENT, &plan, &Machine::default()).expect("a run folder");
        let mut other = plan.clone();
        other.cells[0].frames_max += 1;
        run.plan(&other).expect("written");
        drop(run);
        fs::remove_dir(path.join(CELLS)).expect("no cell has begun");
        let (run, records) = RunFolder::resume(&path).expect("resumed");
        assert_eq!((records.plan, records.frames.len(), run.check()), (other, 0, Ok(())));
        fs::write(path.join(CELLS), "").expect("written");
        assert!(refusal(&path).contains(CELLS), "a file in place of the folder: {}", refusal(&path));
    }

    #[test]
    fn logs_of_servers_are_kept_by_their_names() {
        let (folder, path, run) = with_frame();
        let log = folder.path().join("server.log");
        fs::write(&log, "started\n").expect("written");
        run.keep_log("c--epoch0--plain.log", &log);
        run.keep_log("missing.log", &folder.path().join("nowhere.log"));
        let kept: Vec<_> = fs::read_dir(path.join("logs")).expect("a folder").flatten().collect();
        assert_eq!(kept.iter().map(fs::DirEntry::file_name).collect::<Vec<_>>(), ["c--epoch0--plain.log"]);
        assert_eq!(fs::read_to_string(kept[0].path()).expect("a text"), "started\n");
    }

    #[test]
    fn a_row_of_an_arm_that_is_not_there_damages_its_own_frame() {
        let (_folder, path, mut run) = with_frame();
        run.frame(&counted(1), &slots_of(1)).expect("written");
        drop(run);
        let rows = fs::read_to_string(path.join("slots.csv")).expect("a text");
        let foreign = slots::line(&Slot { arm: 2, ..slots_of(0)[0] });
        fs::write(path.join("slots.csv"), rows + &foreign).expect("written");
        let records = read(&path).expect("readable");
        assert_eq!(records.frames.iter().map(|frame| frame.invalid.is_some()).collect::<Vec<_>>(), [true, false]);
        assert_eq!(records.damage, ["cell 0, frame 0: line 6 of slots.csv is damaged: there is no arm 2"]);
        assert!(records.slots.iter().all(|slot| slot.arm < 2), "{:?}", records.slots);
    }

    #[test]
    fn rows_of_a_damaged_frame_are_no_load_of_a_run_that_is_resumed() {
        let (_folder, path, mut run) = with_frame();
        run.frame(&counted(1), &slots_of(1)).expect("written");
        drop(run);
        let rows = fs::read_to_string(path.join("slots.csv")).expect("a text");
        let century = rows.replacen(",20000000,", ",3000000000000000000,", 1);
        fs::write(path.join("slots.csv"), century).expect("written");
        let (_, records) = RunFolder::resume(&path).expect("resumed");
        assert_eq!(records.frames.iter().map(|frame| frame.invalid.is_some()).collect::<Vec<_>>(), [true, false]);
        assert_eq!((records.slots, records.damage.len()), (slots_of(1), 1));
        let again = read(&path).expect("readable");
        assert_eq!((again.slots, again.damage.len()), (slots_of(1), 0), "it is told once");
    }

    #[test]
    fn a_line_that_was_changed_is_named_by_its_number() {
        let (_folder, path, mut run) = with_frame();
        (0..2).for_each(|_| run.finding(&finding()).expect("written"));
        let text = fs::read_to_string(path.join("evidence.jsonl")).expect("a text");
        let (first, second) = text.split_once('\n').expect("two lines");
        let changed = format!("{first}\n{}", second.replace("\"seal\"", "\"sear\""));
        fs::write(path.join("evidence.jsonl"), changed).expect("written");
        let told = refusal(&path);
        assert!(told.contains("line 2 of evidence.jsonl does not match its checksum"), "{told}");
        let cut = format!("{first}\n{}\n{first}\n", &first[..20]);
        fs::write(path.join("evidence.jsonl"), cut).expect("written");
        let told = refusal(&path);
        assert!(told.contains("line 2 of evidence.jsonl cannot be read"), "{told}");
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_reported_or_changes_nothing(file in 0usize..6, place: proptest::sample::Index, byte: u8) {
            static RUN: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
                let folder = tempfile::tempdir().expect("a folder");
                let plan = plan();
                let run = RunFolder::create(&folder.path().join("run"), EXPERIMENT, &plan, &Machine::default());
                let mut run = run.expect("a run folder");
                run.cell(0, |facts| facts.mode = "twin".to_owned()).expect("written");
                for number in 0..2 {
                    run.frame(&counted(number), &slots_of(number)).expect("written");
                }
                run.event(&Event::CellStarted { cell: 0 }).expect("written");
                run.finding(&finding()).expect("written");
                folder
            });
            let path = RUN.path().join("run");
            let whole = read(&path).expect("readable");
            let name = ["plan.json", "machine.json", "cells/0.json", "frames.jsonl", "slots.csv", "evidence.jsonl"][file];
            let bytes = fs::read(path.join(name)).expect("bytes");
            let mut changed = bytes.clone();
            changed[place.index(bytes.len())] = byte;
            fs::write(path.join(name), &changed).expect("written");
            let seen = read(&path);
            fs::write(path.join(name), &bytes).expect("written");
            if let Ok(seen) = seen && seen.damage.is_empty() {
                prop_assert_eq!(format!("{seen:?}"), format!("{whole:?}"), "{}", String::from_utf8_lossy(&changed));
            }
        }
    }

    #[test]
    fn a_folder_of_another_format_is_refused_before_anything_of_it_is_read() {
        let folder = std::env::temp_dir().join(format!("tithe-test-format-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for format in [FORMAT - 1, FORMAT + 1] {
            fs::write(folder.join("plan.json"), format!("{{\"format\": {format}}}")).expect("written");
            let Err(Fault::Machine(reason)) = open(&folder) else { panic!("format {format} is read") };
            let expected = format!("was written in format {format}, this tithe reads format {FORMAT}");
            assert!(reason.contains(&expected) && reason.contains("measure again"), "{reason}");
        }
        fs::remove_dir_all(&folder).expect("clean up");
    }

    #[test]
    fn a_line_cut_by_a_kill_is_left_out_and_any_other_bad_line_is_an_error() {
        let read = |text| json::json_lines::<serde_json::Value>(text, "x").map(|values| values.len());
        assert_eq!(read("1\n2\n{\"cu").expect("the last line may be cut"), 2);
        assert!(read("1\n{\"cu\n2\n").is_err());
        assert!(read("1\n2x").is_err(), "no kill writes that");
    }
}
