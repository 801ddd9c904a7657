//! The vocabulary of the reports: one word or sentence per outcome, the same in every medium.

use serde::{Deserialize, de::IntoDeserializer};
use tithe_model::{
    ending::CellEnding,
    record::{Role, Verdict},
    wrap::wrapped,
};
use tithe_statistics::verdict;

use super::{number, tone::Tone, width::width};
use crate::{AgentAnalysis, Analysis, ArmAnalysis, CellAnalysis, Estimate, Figure, Flag, Interval, Outcome, Proof};

/// What is compared between versions of a server.
pub const BETWEEN_VERSIONS: &str = "Versions are measured one after the other. So their times are not compared, only \
     their costs: each is relative to the plain arm of its own version.";

/// The heading of the log per operation over a start.
pub const LOG_OVER_START: &str = "Log per operation from the first frame of a start to the last";

/// The unit of the log per operation.
pub const LOG_UNIT: &str = "bytes/op";

/// The name of the outcome in machine-readable reports.
pub fn outcome_code(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Costs => "COSTS",
        Outcome::Gains => "GAINS",
        Outcome::NoneFound => "NONE_FOUND",
        Outcome::TooNoisy => "TOO_NOISY",
    }
}

/// The answer of one estimate in words: `costs 3.1 %`, `costs 3.1 % on this start`; `margin` is a natural-log ratio.
pub fn outcome(estimate: &Estimate, margin: f64) -> String {
    let (effect, on_starts) = (&estimate.effect, estimate.on_starts());
    match estimate.verdict {
        _ if !estimate.is_symmetric() => "set-up not symmetric".to_owned(),
        Outcome::Costs if !effect.estimate.is_finite() => "costs, none on plain".to_owned(),
        Outcome::Costs if effect.high <= margin => format!("{}{on_starts}, below margin", moved(estimate)),
        Outcome::Costs => format!("{}{on_starts}", moved(estimate)),
        Outcome::Gains if !effect.estimate.is_finite() => "saves all of it".to_owned(),
        Outcome::Gains if estimate.flags.contains(&Flag::WithinControl) => {
            format!("{}{on_starts}, but A/A over all cells differs as much", moved(estimate))
        }
        Outcome::Gains => format!("{}{on_starts}: check set-up", moved(estimate)),
        Outcome::NoneFound if estimate.name == Figure::Throughput => {
            let change = estimate.change();
            format!("no loss found{on_starts}, at most {}", unsigned(change.low.min(0.0), &change))
        }
        Outcome::NoneFound => {
            format!("no cost found{on_starts}, at most {}", number::bound(effect.high.max(0.0), effect))
        }
        Outcome::TooNoisy if estimate.flags.contains(&Flag::NotEnoughFrames) => estimate.text.clone(),
        Outcome::TooNoisy if estimate.flags.contains(&Flag::WithinControl) => {
            "too noisy: A/A differs as much".to_owned()
        }
        Outcome::TooNoisy => no_answer(estimate, margin, &on_starts),
    }
}

/// Why there is no answer: the interval is too wide for one, or does not hold the cost.
fn no_answer(estimate: &Estimate, margin: f64, on_starts: &str) -> String {
    let is_wide = verdict::outcome(estimate.effect, margin) == Outcome::TooNoisy;
    let reasons = [
        (Flag::Moved, "no answer: the cost moved"),
        (Flag::NotSteady, "no answer: servers not steady"),
        (Flag::WaitingAlone, "no answer: only waiting fell"),
    ];
    let reason = reasons.into_iter().find(|(flag, _)| !is_wide && estimate.flags.contains(flag));
    reason.map_or_else(|| format!("too noisy to tell{on_starts}"), |(_, words)| words.to_owned())
}

/// The size of a certain difference: `costs 3.1 %`, `saves 4.9 %`, for throughput `28.8 % fewer operations`.
fn moved(estimate: &Estimate) -> String {
    let change = estimate.change();
    let size = unsigned(change.estimate, &change);
    match (&estimate.name, estimate.verdict) {
        (Figure::Throughput, Outcome::Costs) => format!("{size} fewer operations"),
        (Figure::Throughput, _) if size.starts_with('×') => format!("{size} as many operations"),
        (Figure::Throughput, _) => format!("{size} more operations"),
        (_, Outcome::Costs) => format!("costs {size}"),
        _ => format!("saves {size}"),
    }
}

/// An end of a change without its sign, which a word expresses.
fn unsigned(end: f64, of: &Interval) -> String {
    number::bound(end, of).trim_start_matches('−').to_owned()
}

/// The addition to a text about several estimates, as [`Estimate::on_starts`] for one. It names the smallest number of
/// starts, and "in part" if other estimates have enough.
pub fn on_starts_of<'a>(estimates: impl Iterator<Item = &'a Estimate> + Clone) -> String {
    let few = estimates.clone().filter(|it| it.widened).min_by_key(|it| it.starts);
    let part = if estimates.clone().all(|it| it.widened) { "" } else { ", in part" };
    few.map_or(String::new(), |few| format!("{part}{}", few.on_starts()))
}

/// The text for an estimate of the A/A arm, whose true cost is known.
pub fn control(estimate: &Estimate) -> &'static str {
    let effect = &estimate.effect;
    match estimate.verdict {
        _ if !estimate.is_symmetric() => "set-up not symmetric",
        _ if estimate.flags.contains(&Flag::NotEnoughFrames) => "not enough frames",
        _ if !effect.half_width().is_finite() => "its true cost is zero",
        _ if effect.holds(0.0) => "holds zero, the truth",
        _ => "misses zero, the truth",
    }
}

impl Estimate {
    /// The figure in one line, with its difference if it has one.
    pub(super) fn reported(&self) -> String {
        number::in_line(&self.effect, self.difference.as_ref(), &self.unit, self.verdict)
    }
}

/// From this share of waiting for a processor on, readers of percentages are warned of background load.
const MUCH_WAIT: f64 = 0.1;

/// The same for pressure, if the clients' waiting is unknown.
const MUCH_PRESSURE: f64 = 0.5;

/// The effect of other programs on the percentages of `cell`; `None` if it is negligible.
pub fn neighbours(cell: &CellAnalysis) -> Option<String> {
    // Where it is unknown because servers wait for each other, the pressure is theirs as well, and shows nothing.
    let unseen = cell.wait_share == 0.0;
    let pressure = cell.host.cpu_pressure.filter(|share| unseen && *share >= MUCH_PRESSURE && cell.frames > 0);
    let seen = match pressure {
        Some(share) => format!("Processor pressure was {}", number::share(share)),
        None if cell.wait_share >= MUCH_WAIT && cell.frames > 0 => {
            format!("Clients waited {} of their time for a processor", number::share(cell.wait_share))
        }
        None => return None,
    };
    Some(format!(
        "{seen}. Background load makes operations slower in every arm, so a percentage holds for this load only: compare differences \
         per operation, which change less."
    ))
}

/// The same without its number, if there is little room and the number is shown separately.
pub fn outcome_short(estimate: &Estimate, margin: f64) -> String {
    let on_starts = estimate.on_starts();
    match estimate.verdict {
        _ if !estimate.is_symmetric() => "set-up not symmetric".to_owned(),
        Outcome::Costs if estimate.effect.high <= margin => format!("costs{on_starts}, below margin"),
        Outcome::Costs => format!("costs{on_starts}"),
        Outcome::Gains | Outcome::TooNoisy if estimate.flags.contains(&Flag::WithinControl) => {
            "A/A differs as much".to_owned()
        }
        Outcome::Gains => format!("saves{on_starts}: check set-up"),
        Outcome::NoneFound => format!("no cost found{on_starts}"),
        Outcome::TooNoisy if estimate.flags.contains(&Flag::NotEnoughFrames) => "not enough frames".to_owned(),
        Outcome::TooNoisy => no_answer(estimate, margin, &on_starts),
    }
}

/// The text `said` about the deciding figure of arm `arm` in the cell called `cell`, with the difference if it has one.
pub fn with_difference(analysis: &Analysis, arm: &str, cell: &str, said: &str) -> String {
    let of_cell = analysis.cells.iter().find(|it| it.id == cell);
    let of_arm = of_cell.and_then(|cell| cell.arms.iter().find(|it| it.name == arm));
    let decided = of_arm.and_then(|arm| arm.primary());
    let beside = decided.and_then(|it| number::both(&it.effect, it.difference.as_ref(), &it.unit, it.verdict).1);
    beside.map_or(said.to_owned(), |difference| format!("{said}, {difference}"))
}

/// The tone of an outcome.
pub fn outcome_tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Costs | Outcome::NoneFound => Tone::Normal,
        Outcome::Gains => Tone::Caution,
        Outcome::TooNoisy => Tone::Faint,
    }
}

/// The mark of an arm. An unproven one is in capitals, because colour does not survive a pipe.
pub fn proof(proof: &Proof) -> (&'static str, Tone) {
    match proof {
        Proof::Baseline => ("baseline", Tone::Normal),
        Proof::Proven => ("proven", Tone::Good),
        Proof::ByClaim => ("proven (by your claim)", Tone::Good),
        Proof::Setting => ("a setting", Tone::Normal),
        Proof::Unproven(_) => ("UNPROVEN", Tone::Caution),
        Proof::ToldByProvider(_) => (TOLD_BY_PROVIDER, Tone::Caution),
        Proof::Disproven(_) => ("DISPROVEN", Tone::Bad),
    }
}

/// The mark of an arm whose protection is only reported by the provider of its server.
pub const TOLD_BY_PROVIDER: &str = "REPORTED BY THE PROVIDER";

/// The mark of `arm`: its proof, which an A/A arm does not need.
pub fn mark(arm: &ArmAnalysis) -> (&'static str, Tone) {
    if arm.aa { (PLAIN_AGAIN, Tone::Normal) } else { proof(&arm.proof) }
}

/// The mark of an A/A arm, in place of a proof.
pub const PLAIN_AGAIN: &str = "plain again";

/// The purpose of the A/A arm of a table, written after its name.
pub const CONTROL: &str = "is the plain arm again, whose true cost is zero: it shows what differences mean here. A \
                           saving counts only if its interval lies below that of this arm.";

/// Mark, word and tone of a finding.
pub fn finding(role: Role, verdict: Verdict) -> (&'static str, &'static str, Tone) {
    match (role, verdict) {
        (Role::Claim | Role::Strengthens, Verdict::Holds) => ("✓", "holds", Tone::Good),
        (Role::Claim | Role::Strengthens, Verdict::Fails) => ("✗", "FAILS", Tone::Bad),
        (Role::Strengthens, Verdict::OutOfReach) => ("·", "out of reach, not needed", Tone::Normal),
        (_, Verdict::CannotTell | Verdict::OutOfReach) => ("?", "cannot tell", Tone::Caution),
        (Role::Disclosure, Verdict::Holds) => ("i", "yes", Tone::Normal),
        (Role::Disclosure, Verdict::Fails) => ("i", "no", Tone::Caution),
    }
}

/// Smallest width of a paragraph in columns, however far it is indented.
const PARAGRAPH_MIN: usize = 20;

/// The name of the flag in machine-readable reports.
pub fn flag_code(flag: Flag) -> &'static str {
    match flag {
        Flag::TailDriven => "TAIL_DRIVEN",
        Flag::NeighboursInTail => "NEIGHBOURS_IN_TAIL",
        Flag::Drift => "DRIFT",
        Flag::NotEnoughData => "NOT_ENOUGH_DATA",
        Flag::NotEnoughFrames => "NOT_ENOUGH_FRAMES",
        Flag::NotAtRate => "NOT_AT_RATE",
        Flag::ClientSaturated => "CLIENT_SATURATED",
        Flag::ServerUnseen => "SERVER_UNSEEN",
        Flag::CarryOver => "CARRY_OVER",
        Flag::ChangesInFrame => "CHANGES_IN_FRAME",
        Flag::Asymmetric => "ASYMMETRIC",
        Flag::Throttled => "THROTTLED",
        Flag::Stolen => "STOLEN",
        Flag::SlowCipher => "SLOW_CIPHER",
        Flag::WithinControl => "WITHIN_CONTROL",
        Flag::NotSteady => "NOT_STEADY",
        Flag::WaitingAlone => "WAITING_ALONE",
        Flag::Moved => "MOVED",
    }
}

/// The flag with this code of [`flag_code`], in upper or lower case.
///
/// # Errors
/// A message with all codes.
pub fn flag_of(code: &str) -> Result<Flag, String> {
    let code = code.to_uppercase().replace('-', "_");
    let known = Flag::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(code.as_str()));
    known.map_err(|error| {
        // The message of serde has the name in backticks, then all codes.
        let error = error.to_string();
        let codes: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        format!("no flag is called {code}; there are {}", codes.join(", "))
    })
}

/// The meaning of the flag and how to remove it, one sentence.
pub fn flag_advice(flag: Flag) -> &'static str {
    match flag {
        Flag::TailDriven => {
            "The cost comes from rare stalls, not from the typical operation: read the total too, and look \
             for checkpoints, flushes and slow storage."
        }
        Flag::NeighboursInTail => {
            "More than 20 % of the time went into waiting for a processor, which dilutes tail latencies: \
             rely on p50 and CPU, or measure again with processors to spare."
        }
        Flag::Drift => {
            "The cost moved while it was measured: measure again with a longer `warmup` or more epochs, and look for growing \
             data or caches that still fill."
        }
        Flag::NotEnoughData => {
            "Too few samples lie beyond this percentile: raise the budget or read a lower percentile."
        }
        Flag::NotEnoughFrames => {
            "An interval needs 15 frames, and this figure has fewer: continue the run, raise the budget, or make slots \
             longer where they hold too few operations."
        }
        Flag::NotAtRate => "The offered rate was not sustained: offer at most 70 % of what the slowest arm can serve.",
        Flag::ClientSaturated => {
            "The client was busy most of the time, so the figure may be the client's: \
             use fewer clients, a lower rate or more processors."
        }
        Flag::ServerUnseen => {
            "The server's processes could not be seen, so processor time is the client's alone: \
             let Tithe launch the server, or run Tithe on its machine as root or as its user. The reason is under \
             *Versions and facts*, `server processes`. A server that its provider switches is never observed."
        }
        Flag::CarryOver => {
            "Effects of the previous arm (filled caches, deferred work) change this figure by more than 0.5 %: set a \
             longer `slot`."
        }
        Flag::ChangesInFrame => {
            "The cost is more than 5 % higher or lower at the end of a frame than at its beginning, mostly because caches \
             fill meanwhile, so it depends on how long a frame is: use more data than `memory` holds (`data_per_memory`)."
        }
        Flag::Asymmetric => {
            "A second instance of the baseline differs from the first, so the set-up is not symmetric and this is no answer: \
             measure again with more epochs, and look for what the arms do not share."
        }
        Flag::Throttled => {
            "A processor quota kept Tithe from running for part of the time: raise the quota of its control group."
        }
        Flag::Stolen => {
            "The hypervisor took processor time away, which counts as if the database had used it: \
             rely on figures that many frames agree on, or measure on a quieter host."
        }
        Flag::SlowCipher => {
            "This kernel encrypts without the processor's AES instructions, so the volume looks slower than it is \
             elsewhere: measure with a kernel whose /proc/crypto lists an AES-NI driver."
        }
        Flag::WithinControl => {
            "The plain arm differs from itself by as much (A/A): do not believe a saving, and do not rely on a cost of this \
             size; measure longer."
        }
        Flag::NotSteady => {
            "Servers still changed when measuring began, too few other starts are left, and the cost may have changed by \
             as much: set a longer `warmup` in `[measure]`."
        }
        Flag::WaitingAlone => {
            "The arm waits less than its processor time explains. The place of its files on the disk can explain \
             that: measure over several loads (`epochs = 4` or more)."
        }
        Flag::Moved => {
            "The cost moved by more than half of itself while it was measured, so it depends on how long that was and \
             is no answer: do as for `DRIFT`."
        }
    }
}

/// Why a cell ended; the text for a running cell if `None`.
pub fn ending(ending: Option<&CellEnding>) -> String {
    match ending {
        None => "not ended: interrupted, or still running".to_owned(),
        Some(CellEnding::Precision) => "the asked precision was reached".to_owned(),
        Some(CellEnding::Decided) => "every arm's answer was certain".to_owned(),
        Some(CellEnding::Budget) => "the budget was used up".to_owned(),
        Some(other @ (CellEnding::Interrupted | CellEnding::Failed(_))) => other.to_string(),
    }
}

/// The repetitions in a cell: `30 frames, a start each`, `48 frames in 8 starts`, with epochs if there are several.
pub fn repetitions(cell: &CellAnalysis) -> String {
    let frames = plural(cell.frames as u64, "frame");
    if cell.pairs > 0 {
        return format!("{frames} in {} of sides", plural(cell.pairs as u64, "pair"));
    }
    let starts = match cell.starts {
        0 => frames,
        starts if starts == cell.frames && starts > 1 => format!("{frames}, a start each"),
        starts => format!("{frames} in {}", plural(starts as u64, "start")),
    };
    if cell.epochs > 1 { format!("{starts}, {} epochs", cell.epochs) } else { starts }
}

/// `text` in lines of at most `columns`, the first after `lead` and the others indented by its width.
pub fn paragraph(lead: &str, text: &str, columns: usize) -> String {
    let before = " ".repeat(width(lead));
    let mut lines = wrapped(text, [lead, &before], columns.max(before.len() + PARAGRAPH_MIN), width);
    if lines.is_empty() {
        lines.push(lead.to_owned());
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// `1 frame`, `30 frames`.
pub fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", number::count(count), if count == 1 { "" } else { "s" })
}

/// The machines that offer the load of a cell, and the uncertainty of their clocks.
pub fn agents(agents: &[AgentAnalysis]) -> String {
    let (loading, observing): (Vec<&AgentAnalysis>, Vec<&AgentAnalysis>) =
        agents.iter().partition(|agent| agent.lanes > 0);
    let named = |agents: &[&AgentAnalysis], noun: &str| {
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        format!("{} ({})", plural(agents.len() as u64, noun), names.join(", "))
    };
    let bound_ns = agents.iter().map(|agent| agent.clock_bound_ns).max().unwrap_or(0);
    let mut parts = vec![named(&loading, "agent")];
    if !observing.is_empty() {
        parts.push(format!("servers seen by {}", named(&observing, "observer")));
    }
    parts.push(format!("clocks known within {:.1} µs", bound_ns as f64 / 1e3));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use tithe_model::experiment::Metric;

    use super::*;
    use crate::assess::estimate::stated;

    #[test]
    fn a_saving_that_only_the_control_of_the_run_doubts_is_doubted() {
        let effect = Interval { estimate: -0.027, low: -0.0325, high: -0.0212 };
        let mut saving = stated(Figure::Metric(Metric::Net), "", effect, Outcome::Gains, String::new(), 30);
        assert_eq!(outcome(&saving, 0.03), "saves 2.7 %: check set-up");
        saving.flags.push(Flag::WithinControl);
        assert_eq!(outcome(&saving, 0.03), "saves 2.7 %, but A/A over all cells differs as much");
        assert_eq!(outcome_short(&saving, 0.03), "A/A differs as much");
    }

    #[test]
    fn an_answer_that_was_withdrawn_is_not_called_noisy() {
        let said = |low: f64, high: f64, flag: Flag| {
            let effect = Interval { estimate: (low + high) / 2.0, low, high };
            let name = Figure::Metric(Metric::Net);
            let estimate = stated(name, "", effect, Outcome::TooNoisy, String::new(), 30);
            let estimate = Estimate { flags: vec![flag], ..estimate };
            assert_eq!(outcome(&estimate, 0.03), outcome_short(&estimate, 0.03));
            outcome(&estimate, 0.03)
        };
        assert_eq!(said(-0.05, -0.02, Flag::WaitingAlone), "no answer: only waiting fell");
        assert_eq!(said(0.5, 0.9, Flag::Moved), "no answer: the cost moved");
        assert_eq!(said(-0.01, 0.02, Flag::NotSteady), "no answer: servers not steady");
        assert_eq!(said(-0.01, 0.05, Flag::NotSteady), "too noisy to tell");
        assert_eq!(said(0.5, 0.9, Flag::Drift), "too noisy to tell");
    }

    #[test]
    fn fewer_operations_are_what_throughput_costs() {
        let told = |name: Figure, [estimate, low, high]: [f64; 3], verdict: Outcome| {
            let effect = Interval { estimate, low, high };
            outcome(&stated(name, "", effect, verdict, String::new(), 30), 0.03)
        };
        let throughput = |effect: [f64; 3], verdict: Outcome| told(Figure::Throughput, effect, verdict);
        // 25,000 and 17,800 operations per second.
        assert_eq!(throughput([0.34, 0.33, 0.35], Outcome::Costs), "28.8 % fewer operations");
        assert_eq!(throughput([0.01, 0.005, 0.015], Outcome::Costs), "1.0 % fewer operations, below margin");
        assert_eq!(throughput([-0.1, -0.12, -0.08], Outcome::Gains), "10.5 % more operations: check set-up");
        assert_eq!(throughput([-0.8, -0.82, -0.78], Outcome::Gains), "×2.23 as many operations: check set-up");
        assert_eq!(throughput([0.0, -0.02, 0.025], Outcome::NoneFound), "no loss found, at most 2.5 %");
        assert_eq!(told(Figure::Metric(Metric::Time), [0.34, 0.33, 0.35], Outcome::Costs), "costs 40.5 %");
        assert_eq!(
            told(Figure::Metric(Metric::Time), [-0.1, -0.12, -0.08], Outcome::Gains),
            "saves 9.5 %: check set-up"
        );
    }
}
