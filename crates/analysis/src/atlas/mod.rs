//! The atlas: what protections cost, product by product, for four kinds of work, from runs of several hosts.
//!
//! [`entry::entry`] makes the small extract that is kept of a run ([`AtlasRun`]), or refuses a run that does not
//! qualify. [`of`] combines all extracts into an [`Atlas`], whose figures are those of [`matrix`](crate::matrix): a run
//! is a task, and a host counts once. Nothing else is stored, so an atlas is always a function of its extracts.

pub mod entry;

use serde::{Deserialize, Serialize};

use crate::{
    Interval, Outcome as Verdict, Proof,
    matrix::{Answer, Gathered, MatrixFigure, Outcome, Row, State, figures},
};

/// Version of an extract; increased when a reader of the old one could be misled.
pub const FORMAT: u32 = 1;

/// Kinds of work: the columns of the atlas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Reads of data that the cache holds.
    ReadsInMemory,
    /// Reads of data that the cache does not hold.
    ReadsBeyondCache,
    /// Half reads, half updates.
    HalfUpdates,
    /// Rows loaded, or scanned, in large numbers.
    BulkOrScan,
}

/// All kinds, in the order of the columns.
pub const KINDS: [Kind; 4] = [Kind::ReadsInMemory, Kind::ReadsBeyondCache, Kind::HalfUpdates, Kind::BulkOrScan];

/// The name of the resources with which data do not fit the cache.
const BEYOND: &str = "beyond the cache";

impl Kind {
    /// The heading of its column.
    pub fn title(self) -> &'static str {
        match self {
            Self::ReadsInMemory => "reads in memory",
            Self::ReadsBeyondCache => "reads beyond the cache",
            Self::HalfUpdates => "half updates",
            Self::BulkOrScan => "bulk load or scan",
        }
    }

    /// The kind of a cell by the names of its workload and of its resources; `None` if it is none of the four. The
    /// experiments of the atlas use these names and no others.
    pub fn of(workload: &str, resources: &str) -> Option<Self> {
        match (workload, resources) {
            ("reads", BEYOND) => Some(Self::ReadsBeyondCache),
            ("reads", _) => Some(Self::ReadsInMemory),
            ("half updates", _) => Some(Self::HalfUpdates),
            ("bulk load" | "scan", _) => Some(Self::BulkOrScan),
            _ => None,
        }
    }

    fn column(self) -> usize {
        KINDS.iter().position(|kind| *kind == self).unwrap_or_default()
    }
}

/// The extract of a run that is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasRun {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name of its experiment: `postgres`.
    pub experiment: String,
    /// Name of the run folder.
    pub run: String,
    /// Commit of the program that measured, as the person who kept it named it.
    pub commit: String,
    /// The host and the deciding estimate of each arm. Its plan is the experiment, its task is not used.
    pub outcome: Outcome,
    /// What the atlas shows beyond that, one for each cell of `outcome`.
    pub cells: Vec<AtlasCell>,
}

/// What the atlas shows of a cell beyond its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasCell {
    /// Its kind of work; `None` if it has no place in the atlas.
    #[serde(deserialize_with = "Option::deserialize")]
    pub kind: Option<Kind>,
    /// What distinguishes it from other cells of the kind: `bulk load`, `half updates, beyond the cache`.
    pub name: String,
    /// Product and version, as the server reports it.
    pub version: String,
    /// Number of clients.
    pub clients: u32,
    /// What the A/A arm cost, whose true cost is zero; `None` without one.
    #[serde(deserialize_with = "Option::deserialize")]
    pub control: Option<Interval>,
    /// One for each arm of the cell's outcome.
    pub arms: Vec<AtlasArm>,
}

/// What the atlas shows of an arm beyond its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasArm {
    /// The added amount per operation, in the unit of the outcome's levels; `None` if it is unknown.
    #[serde(deserialize_with = "Option::deserialize")]
    pub difference: Option<Interval>,
    /// Where its processor time comes from; `None` if the run was not profiled, or found no part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<AtlasProfile>,
}

/// The parts of a cost in processor time, µs per operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasProfile {
    /// The sum of all parts, of client and server.
    pub sum: Interval,
    /// The largest parts, the largest first: side and component, and what they add.
    pub parts: Vec<(String, Interval)>,
    /// The same of other processes and of threads of the kernel, which the sum does not include.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<(String, Interval)>,
}

impl AtlasRun {
    /// Reads an extract.
    ///
    /// # Errors
    /// Why it cannot be used, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct FormatOnly {
            format: u32,
        }
        let damaged = |error: serde_json::Error| format!("it is not an extract of a run for the atlas: {error}");
        let FormatOnly { format } = serde_json::from_str(text).map_err(damaged)?;
        if format != FORMAT {
            return Err(format!("it is of format {format}, and this tithe reads format {FORMAT}: add its run again"));
        }
        let run: Self = serde_json::from_str(text).map_err(damaged)?;
        let cells = run.outcome.cells.iter().map(|cell| cell.arms.len());
        if !cells.eq(run.cells.iter().map(|cell| cell.arms.len())) {
            return Err("it is damaged: its cells do not belong together".to_owned());
        }
        Ok(run)
    }

    /// Writes it, ending with a line break.
    ///
    /// # Panics
    /// Never: every map of an extract has text for keys.
    pub fn write(&self) -> String {
        serde_json::to_string_pretty(self).expect("an extract has only texts for keys") + "\n"
    }

    /// The name of its file: host, date and experiment.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.json", self.host(), self.date(), self.experiment)
    }

    /// Its host: the first digits of the boot's fingerprint.
    pub fn host(&self) -> &str {
        let boot = &self.outcome.machine.boot;
        boot.get(..HOST_DIGITS).unwrap_or(boot)
    }

    /// The day on which it began: `2026-11-29`.
    pub fn date(&self) -> String {
        tithe_model::quantity::moment(self.outcome.started_unix_s).chars().take(10).collect()
    }
}

/// Digits of a host's name, as in reports of matrices.
const HOST_DIGITS: usize = 6;

/// What a product offers, for the places without a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Identifier of the product: `postgres`.
    pub database: String,
    /// Its name in reports.
    pub title: String,
    /// Its protections that have evidence: identifiers.
    pub protections: Vec<String>,
    /// Kinds of work that it does not have, with the reason.
    pub without: Vec<(Kind, &'static str)>,
}

/// The atlas.
#[derive(Debug, Clone, PartialEq)]
pub struct Atlas {
    /// The runs, in the order of their files.
    pub runs: Vec<KeptRun>,
    /// The rows, product by product.
    pub rows: Vec<AtlasRow>,
    /// Products with protections that no row is about.
    pub unmeasured: Vec<(String, Vec<String>)>,
    /// Costs of the A/A arms of all cells that have one.
    pub controls: Vec<Interval>,
}

/// A run and its file.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptRun {
    /// Name of its file.
    pub file: String,
    /// Its extract.
    pub run: AtlasRun,
}

/// A protection of a product.
#[derive(Debug, Clone, PartialEq)]
pub struct AtlasRow {
    /// Name of the product in reports.
    pub product: String,
    /// Its versions, as servers reported them.
    pub versions: Vec<String>,
    /// Name of the arm.
    pub arm: String,
    /// Identifiers of its protections.
    pub protections: Vec<String>,
    /// One for each of [`KINDS`].
    pub places: [Place; 4],
}

/// A place of the atlas.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// What was measured: one for each experiment and cell of this kind.
    Measured(Vec<Measured>),
    /// Why there is nothing.
    Empty(String),
}

/// A cost in one cell of one experiment, on all hosts that measured it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What distinguishes the cell from others of the kind; empty if nothing does.
    pub name: String,
    /// The cost, host by host and pooled.
    pub figure: MatrixFigure,
    /// The runs behind it: their places in [`Atlas::runs`].
    pub runs: Vec<usize>,
    /// The added amounts per operation, one for each run that has one.
    pub differences: Vec<Interval>,
    /// Unit of the differences.
    pub unit: String,
    /// Numbers of frames, one for each run.
    pub frames: Vec<usize>,
    /// Numbers of starts, one for each run.
    pub starts: Vec<usize>,
    /// Where its processor time comes from, by the profiled run that knows it best, and that run's place in
    /// [`Atlas::runs`].
    pub profile: Option<(usize, AtlasProfile)>,
}

impl Measured {
    /// The answer in one word; `None` if nothing counts.
    pub fn verdict(&self) -> Option<Verdict> {
        self.figure.verdict()
    }

    /// The cost by which it is sorted, natural-log ratio: of two hosts the mean; `None` if nothing counts.
    pub fn middle(&self) -> Option<f64> {
        let intervals = self.intervals();
        let sum: f64 = intervals.iter().map(|interval| interval.estimate).sum();
        (!intervals.is_empty()).then(|| sum / intervals.len() as f64)
    }

    /// The interval over all hosts; those of both if there are two.
    fn intervals(&self) -> Vec<Interval> {
        match &self.figure.answer {
            Answer::Nothing => Vec::new(),
            Answer::One(interval) => vec![*interval],
            Answer::Two(_, both) => both.to_vec(),
            Answer::Over(_, pooled) => vec![pooled.effect],
        }
    }
}

impl Atlas {
    /// Number of costs of protections that were proven to be on.
    pub fn proven(&self) -> usize {
        self.costs().len()
    }

    /// Number of those that are too noisy to tell.
    pub fn too_noisy(&self) -> usize {
        self.costs().iter().filter(|(_, _, it)| it.verdict() == Some(Verdict::TooNoisy)).count()
    }

    /// All costs, each with its row and the kind of work.
    fn costs(&self) -> Vec<(&AtlasRow, Kind, &Measured)> {
        let mut costs = Vec::new();
        for row in &self.rows {
            for (kind, place) in KINDS.into_iter().zip(&row.places) {
                if let Place::Measured(all) = place {
                    costs.extend(all.iter().map(|it| (row, kind, it)));
                }
            }
        }
        costs
    }

    /// The `count` highest costs, the highest first, each with its row and the kind of work.
    pub fn highest(&self, count: usize) -> Vec<(&AtlasRow, Kind, &Measured)> {
        let is_cost = |(_, _, it): &(&AtlasRow, Kind, &Measured)| it.verdict() == Some(Verdict::Costs);
        let mut costs: Vec<_> = self.costs().into_iter().filter(is_cost).collect();
        let middle = |it: &Measured| it.middle().unwrap_or(f64::MIN);
        costs.sort_by(|one, other| middle(other.2).total_cmp(&middle(one.2)));
        costs.truncate(count);
        costs
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.runs.iter().map(|kept| kept.run.host()).collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Number of processor models of these hosts: those of one model show little about another.
    pub fn processors(&self) -> usize {
        let models = self.runs.iter().map(|kept| kept.run.outcome.machine.processor.as_str());
        models.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Number of A/A arms whose interval excludes their true cost of zero, of how many.
    pub fn false_alarms(&self) -> (usize, usize) {
        (self.controls.iter().filter(|interval| interval.exceeds(0.0)).count(), self.controls.len())
    }
}

/// The atlas of `runs`, each with the name of its file, for products that `offered` describes.
pub fn of(runs: Vec<KeptRun>, offered: &[Offered]) -> Atlas {
    let task = |(task, kept): (usize, &KeptRun)| Row {
        task,
        experiment: kept.run.experiment.clone(),
        machine: "any".to_owned(),
        replicate: 0,
        state: State::Whole(Box::new(Outcome { task, ..kept.run.outcome.clone() })),
    };
    let mut tasks: Vec<Row> = runs.iter().enumerate().map(task).collect();
    tasks.sort_by(|one, other| one.experiment.cmp(&other.experiment));
    let gathered =
        Gathered { title: String::new(), plan: String::new(), tithe: String::new(), tasks, strays: Vec::new() };
    let mut rows: Vec<AtlasRow> = Vec::new();
    for figure in figures(&gathered) {
        add(&mut rows, &runs, offered, figure);
    }
    for row in &mut rows {
        row.versions = versions(&runs, row, offered);
    }
    let place = |row: &AtlasRow| offered.iter().position(|it| it.title == row.product).unwrap_or(offered.len());
    rows.sort_by_key(place);
    let controls = runs.iter().flat_map(|kept| &kept.run.cells).filter_map(|cell| cell.control).collect();
    let unmeasured = offered.iter().filter_map(|it| unmeasured(it, &rows)).collect();
    Atlas { runs, rows, unmeasured, controls }
}

/// The name of the product `database` in reports.
fn title<'a>(database: &'a str, offered: &'a [Offered]) -> &'a str {
    offered.iter().find(|it| it.database == database).map_or(database, |it| &it.title)
}

/// Adds a figure to the row of its arm.
fn add(rows: &mut Vec<AtlasRow>, runs: &[KeptRun], offered: &[Offered], figure: MatrixFigure) {
    let of_cell = |kept: &KeptRun| {
        let place = kept.run.outcome.cells.iter().position(|cell| cell.cell == figure.cell)?;
        (kept.run.experiment == figure.experiment).then(|| kept.run.cells.get(place)).flatten().cloned()
    };
    let Some(cell) = runs.iter().find_map(of_cell) else { return };
    let Some(kind) = cell.kind else { return };
    let product = title(&figure.database, offered).to_owned();
    let same =
        |row: &AtlasRow| (&row.product, &row.arm, &row.protections) == (&product, &figure.arm, &figure.protections);
    let index = rows.iter().position(same).unwrap_or_else(|| {
        let without = offered.iter().find(|it| it.database == figure.database).map(|it| it.without.as_slice());
        let empty = |kind: Kind| {
            let known = without.unwrap_or_default().iter().find(|(other, _)| *other == kind);
            Place::Empty(known.map_or(NOT_YET.to_owned(), |(_, why)| format!("not offered: {why}")))
        };
        rows.push(AtlasRow {
            product: product.clone(),
            versions: Vec::new(),
            arm: figure.arm.clone(),
            protections: figure.protections.clone(),
            places: KINDS.map(empty),
        });
        rows.len() - 1
    });
    let place = &mut rows[index].places[kind.column()];
    let name = if cell.name == kind.title() { String::new() } else { cell.name };
    match (measured(runs, name, figure), &mut *place) {
        (Ok(measured), Place::Measured(all)) => all.push(measured),
        (Ok(measured), Place::Empty(_)) => *place = Place::Measured(vec![measured]),
        (Err(why), Place::Empty(empty)) => *empty = why,
        (Err(_), Place::Measured(_)) => (),
    }
}

/// Why there is nothing where somebody has yet to measure.
const NOT_YET: &str = "not yet measured";

/// The figure with what its runs show beyond it, or why it has no cost.
fn measured(runs: &[KeptRun], name: String, figure: MatrixFigure) -> Result<Measured, String> {
    if figure.answer == Answer::Nothing {
        let unproven = figure.hosts.iter().find_map(|host| match &host.proof {
            Proof::Unproven(why) | Proof::ToldByProvider(why) | Proof::Disproven(why) => Some(why.join("; ")),
            Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => None,
        });
        let left_out = figure.left_out.first().map(|(_, reason)| reason.clone());
        let unproven = unproven.map(|why| format!("cannot be proven here: {why}"));
        return Err(unproven.or(left_out).unwrap_or_else(|| NOT_YET.to_owned()));
    }
    let mut measured = Measured {
        name,
        runs: figure.counting().flat_map(|host| &host.repeats).map(|repeat| repeat.task).collect(),
        figure,
        differences: Vec::new(),
        unit: String::new(),
        frames: Vec::new(),
        starts: Vec::new(),
        profile: None,
    };
    measured.runs.sort_unstable();
    for run in &measured.runs {
        let AtlasRun { outcome, cells, .. } = &runs[*run].run;
        let of_cell = outcome.cells.iter().zip(cells).find(|(cell, _)| cell.cell == measured.figure.cell);
        let arms = of_cell.iter().flat_map(|(outcome, cell)| outcome.arms.iter().zip(&cell.arms));
        for (outcome, arm) in arms.filter(|(outcome, _)| outcome.arm == measured.figure.arm) {
            measured.differences.extend(arm.difference);
            measured.unit.clone_from(&outcome.unit);
            measured.frames.push(outcome.count);
            measured.starts.push(outcome.starts);
            let best = measured.profile.as_ref().map(|(_, profile)| profile);
            if is_finer(arm.profile.as_ref(), best) {
                measured.profile = arm.profile.clone().map(|profile| (*run, profile));
            }
        }
    }
    Ok(measured)
}

/// True if the profile `one` knows its sum with a narrower interval than the `other` does, relative to the sum.
fn is_finer(one: Option<&AtlasProfile>, other: Option<&AtlasProfile>) -> bool {
    let width = |profile: &AtlasProfile| (profile.sum.high - profile.sum.low) / profile.sum.estimate.abs();
    one.is_some_and(|one| other.is_none_or(|other| width(one) < width(other)))
}

/// The versions of a row's product in the runs that have its arm.
fn versions(runs: &[KeptRun], row: &AtlasRow, offered: &[Offered]) -> Vec<String> {
    let of_product = runs.iter().filter(|kept| title(&kept.run.outcome.database, offered) == row.product);
    let has_arm =
        |kept: &&KeptRun| kept.run.outcome.cells.iter().flat_map(|cell| &cell.arms).any(|arm| arm.arm == row.arm);
    let cells = of_product.filter(has_arm).flat_map(|kept| &kept.run.cells);
    let versions: std::collections::BTreeSet<&String> =
        cells.map(|cell| &cell.version).filter(|version| !version.is_empty()).collect();
    versions.into_iter().cloned().collect()
}

/// A product's protections that no row is about; `None` if there are none.
fn unmeasured(offered: &Offered, rows: &[AtlasRow]) -> Option<(String, Vec<String>)> {
    let measured = |id: &&String| {
        let of_product = |row: &&AtlasRow| row.product == offered.title;
        !rows.iter().filter(of_product).any(|row| row.protections.contains(id))
    };
    let protections: Vec<String> = offered.protections.iter().filter(measured).cloned().collect();
    (!protections.is_empty()).then(|| (offered.title.clone(), protections))
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
