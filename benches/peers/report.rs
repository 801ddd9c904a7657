//! The result as CSV, whose lines that begin with `#` are remarks, and the table of its ratios. Rows and remarks of
//! what was not measured stay as they are.

use std::fmt::Write as _;

use tithe_model::{quantity, record::Machine};

use crate::contest::{Outcome, Spread};

/// Names of the columns.
const COLUMNS: &str = "case,client,rounds,us,us_low,us_high,user_us,ratio,ratio_low,ratio_high";

/// Column of the ratio, counted from the client's name.
const RATIO: usize = 6;

/// What is between a contest's name and the date in the remark about one that was measured without the others.
const APART: &str = ", apart on ";

/// The lines around the table in `benches/RESULTS.md`.
const MARKS: [&str; 2] = ["<!-- table of results/peers.csv -->\n", "<!-- end of table -->\n"];

/// A contest that was measured.
pub struct Measured {
    /// Its name.
    pub contest: &'static str,
    /// The versions of its server and its peers.
    pub versions: Vec<String>,
}

/// `kept`, the earlier result, with the rows of `outcomes` in place of those of the same clients. Machine and versions
/// are remarks: of all if the `whole` result is new, else of each contest that was `measured`.
pub fn csv(kept: &str, machine: &Machine, measured: &[Measured], outcomes: &[Outcome], whole: bool) -> String {
    let machine = described(machine);
    let mut remarks: Vec<String> = kept.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect();
    remarks.retain(|line| !measured.iter().any(|new| line.starts_with(&format!("# {}{APART}", new.contest))));
    if whole {
        remarks.retain(|line| line.contains(APART));
        let mut versions: Vec<&str> = Vec::new();
        for version in measured.iter().flat_map(|new| &new.versions) {
            if !versions.contains(&version.as_str()) {
                versions.push(version);
            }
        }
        let of_all = [format!("# Machine: {machine}."), format!("# Versions: {}.", versions.join("; "))];
        remarks = of_all.into_iter().chain(remarks).collect();
    } else {
        let (year, month, day) = time::OffsetDateTime::now_utc().to_calendar_date();
        let today = format!("{year:04}-{:02}-{day:02}", u8::from(month));
        remarks.extend(measured.iter().map(|Measured { contest, versions }| {
            format!("# {contest}{APART}{today}: {machine}; {}.", versions.join("; "))
        }));
    }
    let mut all: Vec<String> = kept.lines().filter(|line| line.starts_with('"')).map(str::to_owned).collect();
    let new: String = outcomes.iter().map(rows).collect();
    for row in new.lines() {
        match all.iter().position(|old| client(old) == client(row)) {
            Some(same) => all[same] = row.to_owned(),
            None => {
                let last = all.iter().rposition(|old| client(old).0 == client(row).0);
                all.insert(last.map_or(all.len(), |last| last + 1), row.to_owned());
            }
        }
    }
    let lines = remarks.into_iter().chain([COLUMNS.to_owned()]).chain(all);
    lines.flat_map(|line| [line, "\n".to_owned()]).collect()
}

fn described(machine: &Machine) -> String {
    let memory = quantity::memory(machine.memory_bytes);
    let virtualised = if machine.virtualised { ", virtual" } else { "" };
    format!(
        "{}, {} logical processors{virtualised}, {memory}, Linux {}, {}, clock {}",
        machine.processor, machine.processors, machine.kernel, machine.system, machine.clock
    )
}

/// Case and client of a row.
fn client(row: &str) -> (&str, &str) {
    let (case, rest) = row.split_once("\",").unwrap_or((row, ""));
    (case.trim_start_matches('"'), rest.split(',').next().unwrap_or_default())
}

/// A row per client of one case: processor time per operation, the part outside the kernel, and the ratio of Tithe's to
/// it; medians, those of whole and ratio with their quartiles.
pub fn rows(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (row, (name, ours, _)) in outcome.rows.iter().enumerate() {
        let ratio = match (row, ours) {
            (0, true) => ",,".to_owned(),
            _ => quartiles(outcome.ratio(row), 1.0),
        };
        let cost = outcome.cost_ns(row);
        let user = outcome.user_ns(row).median / 1e3;
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "\"{}\",{name},{},{},{user:.2},{ratio}", outcome.case, cost.count, quartiles(cost, 1e-3));
    }
    text
}

fn quartiles(spread: Spread, factor: f64) -> String {
    let Spread { median, quartiles: (low, high), .. } = spread;
    format!("{:.2},{:.2},{:.2}", median * factor, low * factor, high * factor)
}

/// The smallest and the largest ratio of each client, by what it does.
type Ratios<'a> = Vec<(String, Vec<(&'a str, f64, f64)>)>;

/// `page` with the table of the ratios in `csv` between its marks; `None` without them.
pub fn with_table(page: &str, csv: &str) -> Option<String> {
    let [begins, ends] = MARKS;
    let (before, rest) = page.split_once(begins)?;
    let (_, after) = rest.split_once(ends)?;
    let mut text = format!("{before}{begins}| work | Tithe as a multiple of |\n|---|---|\n");
    for (work, clients) in ratios(csv) {
        let cells: Vec<String> = clients
            .iter()
            .map(|(name, low, high)| match format!("{low:.2}") == format!("{high:.2}") {
                true => format!("{name} {low:.2}"),
                false => format!("{name} {low:.2} to {high:.2}"),
            })
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {work} | {} |", cells.join("; "));
    }
    Some(text + ends + after)
}

fn ratios(csv: &str) -> Ratios<'_> {
    let mut all: Ratios<'_> = Vec::new();
    for row in csv.lines().filter(|line| line.starts_with('"')) {
        let (case, name) = client(row);
        let cells = row.split_once("\",").map_or("", |(_, cells)| cells);
        let Some(Ok(ratio)) = cells.split(',').nth(RATIO).map(str::parse::<f64>) else { continue };
        let work = work(case);
        let at = all.iter().position(|(known, _)| *known == work).unwrap_or_else(|| {
            all.push((work, Vec::new()));
            all.len() - 1
        });
        let clients = &mut all[at].1;
        let name = if name == "Tithe again" { "itself" } else { name };
        match clients.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, low, high)) => (*low, *high) = (f64::min(*low, ratio), f64::max(*high, ratio)),
            None => clients.push((name, ratio, ratio)),
        }
    }
    all
}

/// Database and work of a case, without its clients; YCSB's workloads are one.
fn work(case: &str) -> String {
    let mut parts = case.split(", ");
    let (database, work) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if work.starts_with("workload ") { format!("{database}, YCSB") } else { format!("{database}, {work}") }
}
