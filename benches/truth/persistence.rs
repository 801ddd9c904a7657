//! Does what identical arms differ by persist over the starts of a cell? The statistic, and the rows that it is made
//! from.
//!
//! Per start, an arm's time per operation differs from the plain arm's by an amount that varies from start to start.
//! *t* is the mean of these differences over their standard error. For arms that are exchangeable from start to start
//! it is Student's, with a root mean square of √(ν / (ν − 2)) for ν degrees of freedom. A larger one shows that
//! something is drawn once a cell and not once a start: no number of starts averages it.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use tithe_model::{records::Records, schedule::SplitMix64};
use tithe_statistics::{mean, variance};

/// First line of a file of rows.
const HEADER: &str = "product,workload,cell,start,arm,operations,wall_ns,cpu_ns,stalled_ns";

/// Draws from which the range of chance is taken.
const DRAWS: usize = 4000;

/// All that one arm did on one start.
#[derive(Clone, PartialEq)]
pub struct Row {
    product: String,
    workload: String,
    cell: u32,
    start: u32,
    arm: usize,
    operations: u64,
    wall_ns: u64,
    cpu_ns: u64,
    /// What neighbours took, as far as it was seen.
    stalled_ns: u64,
}

impl Row {
    /// Processor time, µs an operation.
    fn cpu_us(&self) -> f64 {
        self.cpu_ns as f64 / self.operations as f64 / 1e3
    }

    /// Wall time without processor time and what neighbours took, µs an operation.
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

/// The rows of a run, of frames that count.
pub fn rows(records: &Records, product: &str, workload: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for slot in &records.slots {
        let mut frames = records.frames.iter().filter(|frame| frame.is_used());
        let Some(frame) = frames.find(|frame| (frame.cell, frame.frame) == (slot.cell, slot.frame)) else { continue };
        let (cell, start, arm) = (slot.cell, frame.start, slot.arm as usize);
        let found = rows.iter_mut().rev().find(|row| (row.cell, row.start, row.arm) == (cell, start, arm));
        let row = match found {
            Some(row) => row,
            None => {
                let (product, workload) = (product.to_owned(), workload.to_owned());
                rows.push(Row {
                    product,
                    workload,
                    cell,
                    start,
                    arm,
                    operations: 0,
                    wall_ns: 0,
                    cpu_ns: 0,
                    stalled_ns: 0,
                });
                rows.last_mut().expect("a row was added")
            }
        };
        row.operations += slot.operations;
        row.wall_ns += slot.wall_ns;
        row.cpu_ns += slot.client_cpu_ns + slot.server_cpu_ns;
        row.stalled_ns += slot.stalled_ns.unwrap_or_default();
    }
    rows.retain(|row| row.operations > 0);
    rows
}

/// Adds `rows` to the file at `path`; their cells are numbered on from those that it has.
pub fn keep(rows: &[Row], path: &Path) -> Result<(), String> {
    let before = if path.exists() { read(path)? } else { Vec::new() };
    let first = before.iter().map(|row| row.cell + 1).max().unwrap_or(0);
    let mut text = format!("{HEADER}\n");
    let added = rows.iter().map(|row| Row { cell: row.cell + first, ..row.clone() });
    before.into_iter().chain(added).for_each(|row| text.push_str(&row.line()));
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The rows that are kept at `path`.
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
        let all: usize = cells.iter().map(|cell| cell.ts.len()).sum();
        let cut = |cell: &CellTs| tithe_statistics::distribution::t_upper(0.005, cell.starts as f64 - 1.0);
        let beyond: usize = cells.iter().map(|cell| cell.ts.iter().filter(|t| t.abs() > cut(cell)).count()).sum();
        format!("{beyond} of {all}")
    };
    let mut line = String::new();
    let _ = writeln!(
        line,
        "| {}, {} | {} | {} to {} | {:.2} | {:.2} | {:.2} | {low:.2} to {high:.2} | {} | {} |",
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
    );
    line
}

/// The *t* of each arm of one cell against the plain one.
struct CellTs {
    starts: usize,
    ts: Vec<f64>,
}

/// Those of all cells that have three starts or more.
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
        let t_of = |arm: &usize| {
            let differences: Vec<f64> =
                whole.iter().filter_map(|start| Some(value(*start, *arm)? - value(*start, 0)?)).collect();
            t(&differences)
        };
        CellTs { starts: whole.len(), ts: arms.iter().filter(|arm| **arm > 0).map(t_of).collect() }
    };
    cells.into_iter().map(of_cell).filter(|cell| cell.starts >= 3).collect()
}

fn t(differences: &[f64]) -> f64 {
    mean(differences) / (variance(differences) / differences.len() as f64).sqrt()
}

fn root_mean_square(cells: &[CellTs]) -> f64 {
    let squares: Vec<f64> = cells.iter().flat_map(|cell| cell.ts.iter().map(|t| t * t)).collect();
    mean(&squares).sqrt()
}

/// The range in which 95 % of the root mean squares lie of cells of this form whose arms are exchangeable, by drawing
/// them: every arm's value on every start is normal and independent.
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
    let ts = like.ts.iter().map(|_| {
        let differences: Vec<f64> = arm().into_iter().zip(&plain).map(|(one, other)| one - other).collect();
        t(&differences)
    });
    CellTs { starts: like.starts, ts: ts.collect() }
}

/// A standard normal value (Box and Muller 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - random.next_f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.next_f64()).cos()
}

fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.collect::<std::collections::BTreeSet<T>>().into_iter().collect()
}
