//! Runs contestants in rounds and compares their processor time per operation.

use std::{
    io::Read,
    path::PathBuf,
    process::{Command, Stdio},
};

use tithe_machine::fault::Fault;
use tithe_statistics::order::quantile7;

use crate::server::Loaded;

/// One load generator with one job.
pub struct Contestant {
    /// Name in the report.
    pub name: String,
    /// True for Tithe, which all others are compared with.
    pub ours: bool,
    /// The program.
    pub program: PathBuf,
    /// Arguments of every run.
    pub arguments: Vec<String>,
    /// Further arguments of the short run.
    pub short: Vec<String>,
    /// Further arguments of the long run.
    pub long: Vec<String>,
    /// Parses the number of successful operations from the program's output; `None` if it failed.
    pub operations: fn(&str) -> Option<u64>,
    /// It takes part in one of this many rounds: long runs take time.
    pub every: usize,
}

/// Contestants with the same job.
pub struct Case {
    /// Name in the report.
    pub name: String,
    /// The contestants; Tithe is in the list twice.
    pub contestants: Vec<Contestant>,
}

/// A server with what runs on it.
pub struct Contest {
    /// All its cases.
    pub cases: Vec<Case>,
    /// The versions of its peers.
    pub versions: Vec<String>,
    /// It ends when dropped.
    pub server: Loaded,
}

/// Result of a case: for each contestant the processor time per operation of each round, ns.
pub struct Outcome {
    /// Name of the case.
    pub case: String,
    /// Name, whether it is Tithe, and a value for each round in which it took part.
    pub rows: Vec<(String, bool, Vec<Option<PerOperation>>)>,
}

/// Processor time of one operation.
#[derive(Debug, Clone, Copy)]
pub struct PerOperation {
    /// User and system, ns.
    pub cpu_ns: f64,
    /// User alone, ns.
    pub user_ns: f64,
}

/// Processor time and operations of one run.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_ns: f64,
    user_ns: f64,
    operations: f64,
}

impl Case {
    /// Runs `rounds` rounds, with a rotating order.
    ///
    /// # Errors
    /// A contestant that cannot be started, or failed.
    pub fn run(&self, rounds: usize) -> Result<Outcome, Fault> {
        let mut rows: Vec<_> =
            self.contestants.iter().map(|contestant| (contestant.name.clone(), contestant.ours, Vec::new())).collect();
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..self.contestants.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for place in order {
                let contestant = &self.contestants[place];
                let value = if round % contestant.every == 0 { Some(contestant.cost_ns()?) } else { None };
                if let Some(value) = value {
                    eprintln!("{}, round {}: {} {:.2} µs", self.name, round + 1, contestant.name, value.cpu_ns / 1e3);
                }
                rows[place].2.push(value);
            }
        }
        Ok(Outcome { case: self.name.clone(), rows })
    }
}

impl Contestant {
    /// Client processor time per operation, ns: the long run less the short one.
    fn cost_ns(&self) -> Result<PerOperation, Fault> {
        let short = self.run(&self.short)?;
        let long = self.run(&self.long)?;
        if long.operations <= short.operations {
            return Err(Fault::Wrong(format!("{}: the long run did no more than the short one", self.name)));
        }
        let each = |long_ns: f64, short_ns: f64| (long_ns - short_ns) / (long.operations - short.operations);
        Ok(PerOperation { cpu_ns: each(long.cpu_ns, short.cpu_ns), user_ns: each(long.user_ns, short.user_ns) })
    }

    fn run(&self, length: &[String]) -> Result<Cost, Fault> {
        let failed = |error: std::io::Error| Fault::machine(self.program.display(), error);
        let (mut output, into) = std::io::pipe().map_err(failed)?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(length).stdin(Stdio::null());
        command.stdout(into.try_clone().map_err(failed)?).stderr(into);
        let child = command.spawn().map_err(failed)?;
        // The pipe ends only when all writers are closed, and `command` holds two of them.
        drop(command);
        let mut text = String::new();
        output.read_to_string(&mut text).map_err(failed)?;
        let (status, user_ns, system_ns) = wait(child.id() as i32).map_err(failed)?;
        match (self.operations)(&text) {
            Some(operations) if status == 0 => {
                Ok(Cost { cpu_ns: user_ns + system_ns, user_ns, operations: operations as f64 })
            }
            _ => Err(Fault::Wrong(format!("{} failed: {text}", self.name))),
        }
    }
}

/// Waits for a child; its status and its processor time, user and system, ns.
fn wait(process: i32) -> std::io::Result<(i32, f64, f64)> {
    let mut status = 0;
    // SAFETY: `usage` is plain data; it and `status` live through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::wait4(process, &raw mut status, 0, &raw mut usage) < 0 {
            return Err(std::io::Error::last_os_error());
        }
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    Ok((status, ns(usage.ru_utime), ns(usage.ru_stime)))
}

/// The number that follows `name` in `text`.
pub fn number_after(text: &str, name: &str) -> Option<u64> {
    let rest = &text[text.find(name)? + name.len()..];
    let rest = rest.trim_start_matches([' ', ',', ':']);
    rest[..rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

/// The number before `name` in `text`.
pub fn number_before(text: &str, name: &str) -> Option<u64> {
    let rest = &text[..text.find(name)?];
    rest[rest.rfind(|sign: char| !sign.is_ascii_digit()).map_or(0, |at| at + 1)..].parse().ok()
}

/// Median with quartiles and their number.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Lower and upper quartile.
    pub quartiles: (f64, f64),
    /// Number of values.
    pub count: usize,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let quantile = |share| quantile7(values, share);
        Self { median: quantile(0.5), quartiles: (quantile(0.25), quantile(0.75)), count: values.len() }
    }
}

impl Outcome {
    /// Processor time per operation of row `row`, ns.
    pub fn cost_ns(&self, row: usize) -> Spread {
        Spread::of(&self.rows[row].2.iter().flatten().map(|each| each.cpu_ns).collect::<Vec<_>>())
    }

    /// The same, outside the kernel.
    pub fn user_ns(&self, row: usize) -> Spread {
        Spread::of(&self.rows[row].2.iter().flatten().map(|each| each.user_ns).collect::<Vec<_>>())
    }

    /// Tithe's processor time per operation as a multiple of that of row `row`, round by round. The geometric mean of
    /// Tithe's two runs is used, which cancels effects of the order; the second run against the first is A/A.
    pub fn ratio(&self, row: usize) -> Spread {
        let ours: Vec<&Vec<Option<PerOperation>>> =
            self.rows.iter().filter(|(_, ours, _)| *ours).map(|row| &row.2).collect();
        let base = |round: usize| {
            if self.rows[row].1 {
                return ours[0][round].map(|each| each.cpu_ns);
            }
            let logarithm = |values: &&Vec<Option<PerOperation>>| values[round].map(|each| each.cpu_ns.ln());
            let logarithms = ours.iter().map(logarithm).sum::<Option<f64>>()?;
            Some((logarithms / ours.len() as f64).exp())
        };
        let ratios =
            self.rows[row].2.iter().enumerate().filter_map(|(round, value)| Some(base(round)? / (*value)?.cpu_ns));
        Spread::of(&ratios.collect::<Vec<_>>())
    }
}
