//! Does the difference between identical arms persist over the starts of a cell? The statistic, and the rows that it is
//! computed from.
//!
//! In each start, an arm's time per operation differs from the plain arm's by a varying amount. *t* is the mean of
//! these differences over their standard error. If arms are exchangeable from start to start, it is Student's, with a
//! root mean square of √(ν / (ν − 2)) for ν degrees of freedom. A larger one shows that something is drawn once per
//! cell and not once per start: more starts do not average it out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use tithe_model::{records::Records, schedule::SplitMix64};
use tithe_statistics::{mean, persistence::Persistence};

/// First line of a file of rows.
const HEADER: &str = "product,workload,cell,start,arm,operations,wall_ns,cpu_ns,stalled_ns";

/// Number of draws for the range of chance.
const DRAWS: usize = 4000;

/// Totals of one arm on one start.
#[derive(Clone)]
pub struct Row {
    product: String,
    workload: String,
    cell: u32,
    start: u32,
    arm: usize,
    operations: u64,
    wall_ns: u64,
    cpu_ns: u64,
    /// Time taken by background load, as far as known.
    stalled_ns: u64,
}

impl Row {
    /// Processor time, µs per operation.
    fn cpu_us(&self) -> f64 {
        self.cpu_ns as f64 / self.operations as f64 / 1e3
    }

    /// Wall time without processor time and background load, µs per operation.
    fn waiting_us(&self) -> f64 {
        (self.wall_ns as f64 - self.cpu_ns as f64 - self.stalled_ns as f64) / self.operations as f64 / 1e3
    }

    fn line(&self) -> String {
        let Self { product, workload, cell, start, arm, operations, wall_ns, cpu_ns, stalled_ns } = self;
        format!("{product},{workload},{cell},{start},{arm},{operations},{wall_ns},{cpu_ns},{stalled_ns}\n")
    }

    fn read(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [product, workload, numbers @ ..] = &fields[..] else { return None };
        let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let [cell, start, arm, operations, wall_ns, cpu_ns, stalled_ns] = numbers[..] else { return None };
        Some(Self {
            product: (*product).to_owned(),
            workload: (*workload).to_owned(),
            cell: cell as u32,
            start: start as u32,
            arm: arm as usize,
            operations,
            wall_ns,
            cpu_ns,
            stalled_ns,
        })
    }
}

/// The rows of a run, from frames that count.
pub fn rows(records: &Records, product: &str, workload: &str) -> Vec<Row> {
    let used = records.frames.iter().filter(|frame| frame.is_used());
    let starts: BTreeMap<(u32, u32), u32> = used.map(|frame| ((frame.cell, frame.frame), frame.start)).collect();
    let mut rows: BTreeMap<(u32, u32, u32), Row> = BTreeMap::new();
    for slot in &records.slots {
        let Some(start) = starts.get(&(slot.cell, slot.frame)) else { continue };
        let row = rows.entry((slot.cell, *start, slot.arm)).or_insert_with(|| Row {
            product: product.to_owned(),
            workload: workload.to_owned(),
            cell: slot.cell,
            start: *start,
            arm: slot.arm as usize,
            operations: 0,
            wall_ns: 0,
            cpu_ns: 0,
            stalled_ns: 0,
        });
        row.operations += slot.operations;
        row.wall_ns += slot.wall_ns;
        row.cpu_ns += slot.client_cpu_ns + slot.server_cpu_ns;
        row.stalled_ns += slot.stalled_ns.unwrap_or_default();
    }
    rows.into_values().filter(|row| row.operations > 0).collect()
}

/// Appends `rows` to the file at `path`; their cells are numbered after those in the file.
pub fn keep(rows: &[Row], path: &Path) -> Result<(), String> {
    let before = if path.exists() { read(path)? } else { Vec::new() };
    let first = before.iter().map(|row| row.cell + 1).max().unwrap_or(0);
    let mut text = format!("{HEADER}\n");
    let added = rows.iter().map(|row| Row { cell: row.cell + first, ..row.clone() });
    before.into_iter().chain(added).for_each(|row| text.push_str(&row.line()));
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The rows in the file at `path`.
pub fn read(path: &Path) -> Result<Vec<Row>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        return Err(format!("{}: its first line must be {HEADER}", path.display()));
    }
    let numbered = lines.enumerate();
    let rows = numbered.map(|(number, line)| {
        Row::read(line).ok_or_else(|| format!("{}, line {}: not a row", path.display(), number + 2))
    });
    rows.collect()
}

/// Prints the statistic of each of the `files`.
pub fn again(files: &[String]) -> Result<(), String> {
    println!("{TABLE}");
    for file in files {
        print!("{}", table(&read(&PathBuf::from(file))?));
    }
    Ok(())
}

/// Prints the statistic of `rows`.
pub fn print(rows: &[Row]) {
    println!("\n{TABLE}\n{}", table(rows));
}

const TABLE: &str = "| product, workload | cells | starts | waiting per op, µs | root mean square of t: waiting | CPU | \
                     allowed by chance (95 %) | \\|t\\| beyond 1 % : waiting | CPU |\n|---|---|---|---|---|---|---|---|---|";

/// The line of one product and workload.
fn table(rows: &[Row]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let cells: Vec<u32> = distinct(rows.iter().map(|row| row.cell));
    let (waiting, cpu) = (ts(rows, Row::waiting_us), ts(rows, Row::cpu_us));
    let starts: Vec<usize> = waiting.iter().map(|cell| cell.starts).collect();
    let (low, high) = chance(&waiting);
    let plain: Vec<f64> = rows.iter().filter(|row| row.arm == 0).map(Row::waiting_us).collect();
    let beyond = |cells: &[CellTs]| {
        let all = || cells.iter().flat_map(|cell| &cell.arms);
        format!("{} of {}", all().filter(|found| found.p < 0.01).count(), all().count())
    };
    format!(
        "| {}, {} | {} | {} to {} | {:.2} | {:.2} | {:.2} | {low:.2} to {high:.2} | {} | {} |\n",
        first.product,
        first.workload,
        cells.len(),
        starts.iter().min().unwrap_or(&0),
        starts.iter().max().unwrap_or(&0),
        mean(&plain),
        root_mean_square(&waiting),
        root_mean_square(&cpu),
        beyond(&waiting),
        beyond(&cpu),
    )
}

/// The differences of each arm of one cell from the plain one over its starts.
struct CellTs {
    starts: usize,
    arms: Vec<Persistence>,
}

/// For all cells with enough starts.
fn ts(rows: &[Row], of: fn(&Row) -> f64) -> Vec<CellTs> {
    let cells = distinct(rows.iter().map(|row| row.cell));
    let of_cell = |cell: u32| {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.cell == cell).collect();
        let arms = distinct(rows.iter().map(|row| row.arm));
        let value =
            |start: u32, arm: usize| rows.iter().find(|row| (row.start, row.arm) == (start, arm)).map(|row| of(row));
        let starts = distinct(rows.iter().map(|row| row.start));
        let whole: Vec<u32> =
            starts.into_iter().filter(|start| arms.iter().all(|arm| value(*start, *arm).is_some())).collect();
        let of_arm = |arm: &usize| {
            let differences: Vec<f64> =
                whole.iter().filter_map(|start| Some(value(*start, *arm)? - value(*start, 0)?)).collect();
            Persistence::of(&differences)
        };
        CellTs { starts: whole.len(), arms: arms.iter().filter(|arm| **arm > 0).filter_map(of_arm).collect() }
    };
    cells.into_iter().map(of_cell).filter(|cell| !cell.arms.is_empty()).collect()
}

fn root_mean_square(cells: &[CellTs]) -> f64 {
    let squares: Vec<f64> = cells.iter().flat_map(|cell| cell.arms.iter().map(|found| found.t.powi(2))).collect();
    mean(&squares).sqrt()
}

/// The range of 95 % of the root mean squares for cells of this form with exchangeable arms, by simulation: every arm's
/// value on every start is normal and independent.
fn chance(cells: &[CellTs]) -> (f64, f64) {
    let mut random = SplitMix64::new(1);
    let mut drawn: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let cells: Vec<CellTs> = cells.iter().map(|cell| exchangeable(cell, &mut random)).collect();
            root_mean_square(&cells)
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    (drawn[DRAWS / 40], drawn[DRAWS - 1 - DRAWS / 40])
}

fn exchangeable(like: &CellTs, random: &mut SplitMix64) -> CellTs {
    let mut arm = || (0..like.starts).map(|_| normal(random)).collect::<Vec<f64>>();
    let plain = arm();
    let arms = like.arms.iter().filter_map(|_| {
        let differences: Vec<f64> = arm().into_iter().zip(&plain).map(|(one, other)| one - other).collect();
        Persistence::of(&differences)
    });
    CellTs { starts: like.starts, arms: arms.collect() }
}

/// A standard normal value (Box and Muller 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - random.next_f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.next_f64()).cos()
}

fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.collect::<BTreeSet<T>>().into_iter().collect()
}
