//! The run folder: everything that a run saw, written as it happens, and read back for reports.
//!
//! Files only grow, line by line, so that a killed run keeps what it measured; the file of a cell is replaced as a
//! whole. A frame counts once `frames.jsonl` has its line. Its slots and its intervals in the HdrHistogram logs are
//! written before that line, and removed if the line was never written. FORMAT.md documents every file.

mod growing;
mod hdr_log;
mod json;
mod parts;
mod seal;

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions},
    io::ErrorKind,
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

use growing::{CHANGED, Growing};
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
    Fault::machine(format!("cannot create the run folder {}", path.display()), error)
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

/// Replaces a file as a whole: a reader sees the old or the new one, never a mixture. On a full disk the old one stays.
///
/// # Errors
/// When the disk refuses.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    let next = path.with_extension("next");
    fs::write(&next, bytes).and_then(|()| fs::rename(&next, path)).map_err(|error| {
        // An incomplete file is useless.
        let _ = fs::remove_file(&next);
        Fault::machine(format!("cannot write {}", path.display()), error)
    })
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
mod tests;
