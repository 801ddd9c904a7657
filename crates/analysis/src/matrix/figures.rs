//! From tasks to the cost of each arm on each kind of machine, host by host and pooled.
//!
//! Hosts are distinguished by the boot of their kernel, which is shared only by programs on the same kernel: a host
//! that was measured repeatedly counts once. Runs without a known boot count as one host. Hosts on which the protection
//! was not proven are shown and not pooled. Tasks whose set-up was not symmetric are left out. So are those with
//! another deciding figure: net time and processor time are different costs.

use std::collections::BTreeSet;

use tithe_model::{
    experiment::Metric,
    plan::STARTS_MIN,
    record::{Host, Machine},
};
use tithe_statistics::{
    distribution::t_upper,
    hosts::{PooledEffect, UnitEffect, combined, together},
    inference::sidak,
    verdict,
};

use super::{ArmOutcome, CellOutcome, Gathered, Outcome, Row};
use crate::{
    Flag, Interval, Outcome as Verdict, Proof,
    deciding::{self, EndsBy},
    figures::metric_title,
};

/// Digits of the boot's fingerprint in the name of a host in reports.
const HOST_DIGITS: usize = 6;

/// The cost of one arm of one cell on one kind of machine.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixFigure {
    /// The kind of machine.
    pub machine: String,
    /// Path of the experiment, as the matrix file has it.
    pub experiment: String,
    /// The database.
    pub database: String,
    /// Short name of the cell.
    pub cell: String,
    /// The arm.
    pub arm: String,
    /// Its protections.
    pub protections: Vec<String>,
    /// Its metric; `None` if no task has a result.
    pub figure: Option<Metric>,
    /// The largest cost that counts as none, natural-log ratio.
    pub margin: f64,
    /// The hosts, most expensive first.
    pub hosts: Vec<HostFigure>,
    /// The result of all that count.
    pub answer: Answer,
    /// True if a task with a proof saved no more than its A/A arm.
    pub within_control: bool,
    /// Completed tasks without a result for it, each with the reason.
    pub left_out: Vec<(usize, String)>,
}

/// The result of one host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostFigure {
    /// Its name in reports.
    pub host: String,
    /// Its measurements, in the order of the tasks.
    pub repeats: Vec<Repeat>,
    /// Their combined result.
    pub answer: Answer,
    /// The mean of its repeats as a unit.
    pub unit: UnitEffect,
    /// Was the protection proven in all of them? The worst of their proofs.
    pub proof: Proof,
    /// Its description.
    pub machine: Machine,
    /// Its state during the first measurement.
    pub state: Host,
}

/// One measurement of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    /// The task.
    pub task: usize,
    /// When it began, s since 1970.
    pub started_unix_s: u64,
    /// Its result, with the run's own interval.
    pub effect: Interval,
    /// Number of starts of the servers.
    pub starts: usize,
    /// Degrees of freedom by which its interval is widened for a smaller error.
    pub degrees: f64,
    /// The result as a unit.
    pub unit: UnitEffect,
}

/// The combined result of several measurements.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// None counts.
    Nothing,
    /// There is one: its own interval, which does not apply to other hosts.
    One(Interval),
    /// There are two, hosts or repeats on one: both are shown, and nothing is pooled.
    Two(Basis, [Interval; 2]),
    /// An interval over all of them.
    Over(Basis, PooledEffect),
}

/// The kind and number of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Number of hosts.
    Hosts(usize),
    /// Number of repeats on one host.
    Repeats(usize),
}

impl Answer {
    /// The combined result of `units`, each with its own interval.
    fn of(units: &[(Interval, UnitEffect)], alpha: f64, basis: fn(usize) -> Basis) -> Self {
        match units {
            [] => Self::Nothing,
            [(interval, _)] => Self::One(*interval),
            several => {
                let all: Vec<UnitEffect> = several.iter().map(|(_, unit)| *unit).collect();
                let both = [several[0].0, several[1].0];
                let basis = basis(all.len());
                together(&all, alpha).map_or(Self::Two(basis, both), |it| Self::Over(basis, it))
            }
        }
    }
}

impl HostFigure {
    /// The cost on this host with its interval; for two repeats their mean, with the range of both.
    pub fn effect(&self) -> Interval {
        match self.answer {
            Answer::Nothing => Interval { estimate: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY },
            Answer::One(interval) => interval,
            Answer::Two(_, [one, other]) => {
                let (low, high) = (one.low.min(other.low), one.high.max(other.high));
                Interval { estimate: self.unit.effect, low, high }
            }
            Answer::Over(_, PooledEffect { effect, .. }) => effect,
        }
    }

    /// True if the host counts: without evidence there is no number.
    pub fn counts(&self) -> bool {
        self.proof.stands()
    }
}

impl MatrixFigure {
    /// The title of its metric: `net time per op`; empty if no task has a result.
    pub fn title(&self) -> &'static str {
        self.figure.map_or("", metric_title)
    }

    /// The hosts that count.
    pub fn counting(&self) -> impl Iterator<Item = &HostFigure> {
        self.hosts.iter().filter(|host| host.counts())
    }

    /// The worst of the proofs of the hosts that count; `None` if none does.
    pub fn proof(&self) -> Option<Proof> {
        self.counting().map(|host| host.proof.clone()).reduce(|one, other| worse(one, &other))
    }

    /// The resulting cost, natural-log ratio; `None` if nothing is pooled.
    pub fn together(&self) -> Option<Interval> {
        match &self.answer {
            Answer::One(interval) => Some(*interval),
            Answer::Over(_, PooledEffect { effect, .. }) => Some(*effect),
            Answer::Nothing | Answer::Two(..) => None,
        }
    }

    /// The answer in one word; `None` if nothing counts. An answer that every host gives is the answer: the interval of
    /// the mean of a few hosts is wide because they differ, and may hold zero although no host does. If each finds no
    /// cost but their mean is certainly one, there is a cost. Two that give different answers are too noisy to tell,
    /// and so is a saving that the A/A arm of a task has as well.
    pub fn verdict(&self) -> Option<Verdict> {
        let verdict = self.by_hosts()?;
        Some(if verdict == Verdict::Gains && self.within_control { Verdict::TooNoisy } else { verdict })
    }

    /// The answer by the intervals alone.
    fn by_hosts(&self) -> Option<Verdict> {
        let of = |interval: Interval| verdict::outcome(interval, self.margin);
        match &self.answer {
            Answer::Nothing => None,
            Answer::One(interval) => Some(of(*interval)),
            Answer::Two(_, [one, other]) => {
                let (one, other) = (of(*one), of(*other));
                Some(if one == other { one } else { Verdict::TooNoisy })
            }
            Answer::Over(Basis::Repeats(_), pooled) => Some(of(pooled.effect)),
            Answer::Over(Basis::Hosts(_), pooled) => {
                let mut each = self.counting().map(|host| of(host.effect()));
                let first = each.next().filter(|first| *first != Verdict::TooNoisy);
                let mean = of(pooled.effect);
                // All hosts together may show what is too small for each of them.
                let is_sharper =
                    |first: &Verdict| *first == Verdict::NoneFound && matches!(mean, Verdict::Costs | Verdict::Gains);
                let of_each = first.filter(|first| each.all(|other| other == *first));
                Some(of_each.filter(|first| !is_sharper(first)).unwrap_or(mean))
            }
        }
    }
}

/// Every figure of `gathered`: by kind of machine and experiment in the order of the tasks, then by cell and arm.
pub fn figures(gathered: &Gathered) -> Vec<MatrixFigure> {
    at_error(gathered, 1)
}

/// The figures with the error also divided over all cells of `gathered`, for answers about all of them. The interval of
/// a run is widened to that error.
pub(super) fn over_all(gathered: &Gathered) -> Vec<MatrixFigure> {
    let cells = |rows: &Vec<&Row>| shapes(rows).into_iter().map(|(cell, _)| cell).collect::<BTreeSet<_>>().len();
    at_error(gathered, groups(gathered).iter().map(cells).sum())
}

fn at_error(gathered: &Gathered, cells: usize) -> Vec<MatrixFigure> {
    let mut figures = Vec::new();
    for rows in groups(gathered) {
        let shapes = shapes(&rows);
        for (cell, arm) in &shapes {
            let protected = shapes.iter().filter(|(other, _)| other == cell).count();
            let error = Divided { of_cell: deciding::alpha(protected, EndsBy::Budget), cells };
            figures.push(figure(&rows, cell, arm, error));
        }
    }
    figures
}

/// The error of an interval: that of a cell, which is simultaneous over its arms, divided over `cells` cells.
#[derive(Debug, Clone, Copy)]
struct Divided {
    of_cell: f64,
    cells: usize,
}

impl Divided {
    fn alpha(self) -> f64 {
        sidak(self.of_cell, self.cells)
    }

    /// The interval of one run, widened from the error of its cell by the ratio of Student's quantiles. A run that
    /// ended by its precision, or had an A/A arm, has a smaller error in its cell. The ratio falls with the error, so
    /// its interval is then wider than needed.
    fn widened(self, repeat: &Repeat) -> Interval {
        if self.cells < 2 {
            return repeat.effect;
        }
        let quantile = |alpha: f64| t_upper(alpha / 2.0, repeat.degrees);
        repeat.effect.scaled(quantile(self.alpha()) / quantile(self.of_cell))
    }
}

/// The tasks of each experiment on each kind of machine.
fn groups(gathered: &Gathered) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in &gathered.tasks {
        let alike = |group: &&mut Vec<&Row>| group[0].machine == row.machine && group[0].experiment == row.experiment;
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// Every cell with each of its arms for which some task of `rows` has an estimate.
fn shapes(rows: &[&Row]) -> Vec<(String, String)> {
    let mut shapes = Vec::new();
    for outcome in rows.iter().filter_map(|row| row.outcome()) {
        for cell in &outcome.cells {
            for arm in &cell.arms {
                let shape = (cell.cell.clone(), arm.arm.clone());
                if !shapes.contains(&shape) {
                    shapes.push(shape);
                }
            }
        }
    }
    shapes
}

/// The result of one task for one arm.
struct TaskEffect<'a> {
    outcome: &'a Outcome,
    cell: &'a CellOutcome,
    arm: &'a ArmOutcome,
    unit: UnitEffect,
}

/// The result of `outcome` for `arm` in `cell`, or why there is none.
fn said<'a>(outcome: &'a Outcome, cell: &str, arm: &str) -> Result<TaskEffect<'a>, String> {
    let cell = outcome.cells.iter().find(|it| it.cell == cell).ok_or("it has no such cell")?;
    let found = cell.arms.iter().find(|it| it.arm == arm);
    match found.and_then(|arm| Some((arm, arm.unit()?))) {
        Some((arm, _)) if arm.flags.contains(&Flag::Asymmetric) => Err("set-up not symmetric".to_owned()),
        Some((arm, _)) if arm.flags.contains(&Flag::NotSteady) => Err("servers were not steady yet".to_owned()),
        Some((arm, _)) if arm.flags.contains(&Flag::Moved) => {
            Err("the cost moved by more than half of itself while it was measured".to_owned())
        }
        Some((arm, unit)) => Ok(TaskEffect { outcome, cell, arm, unit }),
        None => Err(cell.failed.clone().unwrap_or_else(|| "too few frames for an interval".to_owned())),
    }
}

/// The deciding figure of most tasks with a proof, and the first of several with equally many; without any proof, that
/// of the first task.
fn deciding(all: &[TaskEffect<'_>]) -> Option<Metric> {
    let tasks = |figure: Metric| {
        let alike = all.iter().filter(|said| said.arm.figure == figure && said.arm.proof.stands());
        alike.count()
    };
    // `max_by_key` returns the last of several largest, hence the reverse order.
    all.iter().rev().map(|said| said.arm.figure).max_by_key(|figure| tasks(*figure))
}

fn figure(rows: &[&Row], cell: &str, arm: &str, error: Divided) -> MatrixFigure {
    let mut all: Vec<TaskEffect<'_>> = Vec::new();
    let mut left_out = Vec::new();
    for (row, outcome) in rows.iter().filter_map(|row| Some((row, row.outcome()?))) {
        match said(outcome, cell, arm) {
            Ok(said) => all.push(said),
            Err(reason) => left_out.push((row.task, reason)),
        }
    }
    let deciding = deciding(&all);
    if let Some(metric) = deciding {
        for other in all.extract_if(.., |said| said.arm.figure != metric) {
            let [its, most] = [other.arm.figure, metric].map(metric_title);
            left_out.push((other.outcome.task, format!("decided by {its}, not {most}")));
        }
    }
    // Each task has a load of the data of its own. Without a proof it does not count.
    let is_proven = |said: &&TaskEffect<'_>| said.arm.proof.stands();
    if all.iter().filter(is_proven).count() < STARTS_MIN as usize {
        let reason = format!("only waiting fell, on fewer than {STARTS_MIN} loads of the data");
        let waiting = all.extract_if(.., |said| said.arm.flags.contains(&Flag::WaitingAlone));
        left_out.extend(waiting.map(|said| (said.outcome.task, reason.clone())));
    }
    left_out.sort_by_key(|(task, _)| *task);
    let hosts = hosts(&all, error);
    let counting: Vec<&HostFigure> = hosts.iter().filter(|host| host.counts()).collect();
    let answer = match counting.as_slice() {
        [only] => only.answer.clone(),
        several => {
            let units: Vec<(Interval, UnitEffect)> = several.iter().map(|host| (host.effect(), host.unit)).collect();
            Answer::of(&units, error.alpha(), Basis::Hosts)
        }
    };
    let first = all.first();
    MatrixFigure {
        machine: rows[0].machine.clone(),
        experiment: rows[0].experiment.clone(),
        database: first.map(|said| said.outcome.database.clone()).unwrap_or_default(),
        cell: cell.to_owned(),
        arm: arm.to_owned(),
        protections: first.map(|said| said.arm.protections.clone()).unwrap_or_default(),
        figure: deciding,
        margin: first.map(|said| said.outcome.margin).unwrap_or_default(),
        hosts,
        answer,
        within_control: all.iter().filter(is_proven).any(|said| said.arm.flags.contains(&Flag::WithinControl)),
        left_out,
    }
}

/// The results host by host, most expensive first.
fn hosts(all: &[TaskEffect<'_>], error: Divided) -> Vec<HostFigure> {
    let mut by_host: Vec<Vec<&TaskEffect<'_>>> = Vec::new();
    for said in all {
        let boot = &said.outcome.machine.boot;
        match by_host.iter_mut().find(|host| host[0].outcome.machine.boot == *boot) {
            Some(host) => host.push(said),
            None => by_host.push(vec![said]),
        }
    }
    let mut hosts: Vec<HostFigure> = by_host.iter().filter_map(|of_host| host(of_host, error)).collect();
    hosts.sort_by(|one, other| other.unit.effect.total_cmp(&one.unit.effect));
    hosts
}

fn host(of_host: &[&TaskEffect<'_>], error: Divided) -> Option<HostFigure> {
    let first = of_host.first()?;
    let repeats: Vec<Repeat> = of_host.iter().map(|said| Repeat::of(said)).collect();
    let units: Vec<UnitEffect> = repeats.iter().map(|repeat| repeat.unit).collect();
    let pairs: Vec<(Interval, UnitEffect)> =
        repeats.iter().map(|repeat| (error.widened(repeat), repeat.unit)).collect();
    let boot = &first.outcome.machine.boot;
    Some(HostFigure {
        host: if boot.is_empty() { "unknown".to_owned() } else { boot.chars().take(HOST_DIGITS).collect() },
        answer: Answer::of(&pairs, error.alpha(), Basis::Repeats),
        unit: combined(&units)?,
        proof: of_host.iter().map(|said| &said.arm.proof).fold(first.arm.proof.clone(), worse),
        machine: first.outcome.machine.clone(),
        state: first.cell.host,
        repeats,
    })
}

impl Repeat {
    fn of(said: &TaskEffect<'_>) -> Self {
        let TaskEffect { outcome, arm, unit, .. } = *said;
        Self {
            task: outcome.task,
            started_unix_s: outcome.started_unix_s,
            effect: arm.effect,
            starts: arm.starts,
            degrees: arm.degrees(),
            unit,
        }
    }
}

/// The weaker of two proofs.
fn worse(one: Proof, other: &Proof) -> Proof {
    let rank = |proof: &Proof| match proof {
        Proof::Baseline | Proof::Proven => 0,
        Proof::ByClaim => 1,
        Proof::Setting => 2,
        Proof::ToldByProvider(_) => 3,
        Proof::Unproven(_) => 4,
        Proof::Disproven(_) => 5,
    };
    if rank(other) > rank(&one) { other.clone() } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{matrix::State, report::matrix::sample};

    /// The cost of TLS on five hosts, after a `change` of the third's result.
    fn changed(change: impl Fn(&mut ArmOutcome)) -> MatrixFigure {
        changed_in(2, change)
    }

    /// The same with a `change` in `task`.
    fn changed_in(task: usize, change: impl Fn(&mut ArmOutcome)) -> MatrixFigure {
        let mut gathered = sample::full();
        let State::Whole(outcome) = &mut gathered.tasks[task].state else { panic!("the task is whole") };
        change(&mut outcome.cells[0].arms[0]);
        figures(&gathered).remove(0)
    }

    #[test]
    fn what_stands_without_a_proof_is_not_called_proven() {
        let of = |proof: Proof| {
            let figure = changed(|arm| arm.proof = proof.clone());
            let third = figure.hosts.iter().find(|host| host.repeats[0].task == 2).expect("the third host");
            (third.proof.clone(), third.counts(), figure.proof())
        };
        for standing in [Proof::Proven, Proof::ByClaim, Proof::Setting] {
            assert_eq!(of(standing.clone()), (standing.clone(), true, Some(standing)));
        }
        let off = Proof::Disproven(vec!["it was off".to_owned()]);
        assert_eq!(of(off.clone()), (off, false, Some(Proof::Proven)));
        // The first host has two repeats.
        for repeat in [0, 5] {
            let figure = changed_in(repeat, |arm| arm.proof = Proof::Setting);
            assert_eq!(figure.proof(), Some(Proof::Setting), "{repeat}");
        }
    }

    #[test]
    fn costs_in_two_figures_are_not_pooled() {
        assert!(matches!(changed(|_| ()).answer, Answer::Over(Basis::Hosts(5), _)));
        let figure = changed(|arm| arm.figure = Metric::Cpu);
        assert_eq!(figure.figure, Some(Metric::Net));
        assert_eq!(figure.left_out, [(2, "decided by CPU per op, not net time per op".to_owned())]);
        assert!(matches!(figure.answer, Answer::Over(Basis::Hosts(4), _)), "{:?}", figure.answer);
        // The task with the number 0 is an arbitrary choice; its host was measured once more.
        let figure = changed_in(0, |arm| arm.figure = Metric::Cpu);
        assert_eq!(figure.left_out, [(0, "decided by CPU per op, not net time per op".to_owned())]);
        assert!(matches!(figure.answer, Answer::Over(Basis::Hosts(5), _)), "{:?}", figure.answer);
        let figure = changed_in(0, |arm| arm.proof = Proof::Disproven(vec!["it was off".to_owned()]));
        assert!(matches!(figure.answer, Answer::Over(Basis::Hosts(4), _)), "{:?}", figure.answer);
    }

    #[test]
    fn no_run_is_taken_to_stand_on_more_than_it_does() {
        let gathered = sample::full();
        let arm = &gathered.tasks[0].outcome().expect("the task is whole").cells[0].arms[0];
        let degrees = |(starts, count): (usize, usize)| ArmOutcome { starts, count, ..arm.clone() }.degrees();
        // Shared starts, one start per frame, few starts, few frames.
        let found = [(8, 30), (4, 30), (30, 30), (2, 30), (5, 5), (1, 1)].map(degrees);
        assert_eq!(found, [7.0, 3.0, 7.0, 3.0, 4.0, 1.0]);
    }

    /// Quantiles of t with seven degrees of freedom at 1 − 0.95^(1/cells), two-sided (Abramowitz and Stegun, 26.7.3).
    #[test]
    fn a_run_is_widened_by_the_number_of_cells_that_share_the_error() {
        let figure = changed(|_| ());
        let repeat = &figure.hosts[0].repeats[0];
        assert_eq!(repeat.degrees, 7.0);
        let quantile = [2.364_624_251_592_78, 2.832_354_496_195_87, 3.115_403_812_270_26];
        for (cells, quantile) in (1..).zip(quantile) {
            let wider = Divided { of_cell: 0.05, cells }.widened(repeat);
            let ratio = wider.half_width() / repeat.effect.half_width();
            assert!((ratio * 2.364_624_251_592_78 - quantile).abs() < 1e-9, "{cells}: {wider:?}");
            assert!((wider.estimate - repeat.effect.estimate).abs() < 1e-12, "{cells}: {wider:?}");
        }
    }

    #[test]
    fn of_two_proofs_the_worse_one_is_left_and_of_equal_ones_the_first() {
        let why = |words: &str| vec![words.to_owned()];
        let rising = [
            Proof::Proven,
            Proof::ByClaim,
            Proof::Setting,
            Proof::ToldByProvider(why("told")),
            Proof::Unproven(why("unproven")),
            Proof::Disproven(why("disproven")),
        ];
        for (rank, worst) in rising.iter().enumerate() {
            for better in &rising[..rank] {
                assert_eq!(worse(better.clone(), worst), *worst);
                assert_eq!(worse(worst.clone(), better), *worst);
            }
        }
        assert_eq!(worse(Proof::Baseline, &Proof::Proven), Proof::Baseline);
        let [first, second] = ["first", "second"].map(|words| Proof::Unproven(why(words)));
        assert_eq!(worse(first.clone(), &second), first);
    }

    #[test]
    fn a_set_up_that_was_not_symmetric_is_left_out() {
        let figure = changed(|arm| arm.flags.push(Flag::Asymmetric));
        assert_eq!(figure.left_out, [(2, "set-up not symmetric".to_owned())]);
        assert!(matches!(figure.answer, Answer::Over(Basis::Hosts(4), _)), "{:?}", figure.answer);
        let figure = changed(|arm| arm.flags.push(Flag::NotSteady));
        assert_eq!(figure.left_out, [(2, "servers were not steady yet".to_owned())]);
        let figure = changed(|arm| arm.flags.push(Flag::Moved));
        let moved = "the cost moved by more than half of itself while it was measured";
        assert_eq!(figure.left_out, [(2, moved.to_owned())]);
    }

    /// Costs of `effects` on as many hosts, each known to ±1 %.
    fn on_hosts(effects: &[f64]) -> MatrixFigure {
        let mut gathered = sample::full();
        gathered.tasks.truncate(effects.len());
        for (row, effect) in gathered.tasks.iter_mut().zip(effects) {
            let State::Whole(outcome) = &mut row.state else { panic!("the task is whole") };
            let arm = &mut outcome.cells[0].arms[0];
            arm.effect = Interval { estimate: *effect, low: effect - 0.01, high: effect + 0.01 };
        }
        figures(&gathered).remove(0)
    }

    /// A further host with the same answer as all others does not take the answer back.
    #[test]
    fn an_answer_that_every_host_gives_is_the_answer() {
        let told = |effects: &[f64]| on_hosts(effects).verdict();
        for some in [&[0.45, 0.24][..], &[0.45, 0.24, 0.35], &[0.45, 0.24, 0.35, 0.6]] {
            assert_eq!(told(some), Some(Verdict::Costs), "{some:?}");
            let opposite: Vec<f64> = some.iter().map(|effect| -effect).collect();
            assert_eq!(told(&opposite), Some(Verdict::Gains), "{some:?}");
        }
        let mean = on_hosts(&[0.45, 0.24, 0.35]).together().expect("three hosts are pooled");
        assert!(mean.low < 0.0, "the interval of the mean holds zero: {mean:?}");
        // One host finds no cost, and the mean may be none.
        assert_eq!(told(&[0.45, 0.24, 0.0]), Some(Verdict::TooNoisy));
        assert_eq!(told(&[0.45, 0.0]), Some(Verdict::TooNoisy));
        // Where hosts differ in their answers, the mean decides.
        assert_eq!(told(&[0.011, 0.009, 0.01, 0.012]), Some(Verdict::Costs));
        assert_eq!(told(&[0.0]), Some(Verdict::NoneFound));
        // Each finds none up to 1.9 %, and all together find one.
        assert_eq!([told(&[0.009]), told(&[0.009; 5])], [Some(Verdict::NoneFound), Some(Verdict::Costs)]);
        assert_eq!(told(&[0.0; 5]), Some(Verdict::NoneFound));
    }

    #[test]
    fn less_waiting_alone_is_a_saving_over_four_tasks_and_not_over_fewer() {
        let of = |tasks: usize| {
            let mut gathered = sample::full();
            gathered.tasks.retain(|row| matches!(row.state, State::Whole(_)));
            gathered.tasks.truncate(tasks);
            for row in &mut gathered.tasks {
                let State::Whole(outcome) = &mut row.state else { panic!("the task is whole") };
                outcome.cells[0].arms[0].flags.push(Flag::WaitingAlone);
            }
            let waiting = figures(&gathered).remove(0);
            // Loads on which the protection was not proven do not count.
            let State::Whole(outcome) = &mut gathered.tasks[0].state else { panic!("the task is whole") };
            outcome.cells[0].arms[0].proof = Proof::Unproven(vec!["no log was found".to_owned()]);
            let unproven = figures(&gathered).remove(0);
            assert_eq!(matches!(unproven.answer, Answer::Nothing), tasks < 5, "{tasks}");
            (waiting.left_out.len(), matches!(waiting.answer, Answer::Nothing))
        };
        assert_eq!((of(3), of(4), of(5)), ((3, true), (0, false), (0, false)));
    }

    #[test]
    fn a_saving_that_the_control_of_a_task_has_as_well_is_no_answer() {
        let mut saving = on_hosts(&[-0.05, -0.06, -0.04]);
        assert_eq!(saving.verdict(), Some(Verdict::Gains));
        saving.within_control = true;
        assert_eq!(saving.verdict(), Some(Verdict::TooNoisy));
        let flagged = |proof: Proof| {
            let figure = changed(|arm| {
                arm.flags.push(Flag::WithinControl);
                arm.proof = proof.clone();
            });
            (figure.within_control, figure.verdict())
        };
        assert_eq!(flagged(Proof::Proven), (true, Some(Verdict::Costs)), "a cost stands");
        assert!(!flagged(Proof::Unproven(Vec::new())).0);
    }
}
