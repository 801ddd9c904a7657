//! Counters as ratios per operation: bytes of log and wire, context switches, the whole server's processor time.
//!
//! They have almost no noise and are precise after seconds. The interval is from the jackknife over frames.

use tithe_model::{experiment::Metric, record::ArmFrame};
use tithe_statistics::{
    pairing::{Spent, ratio_effect, total_difference},
    starts::IntervalOptions,
};

use super::{
    estimate::{ratio, stated},
    measured::Measured,
    sizes::Read,
    sums::Sums,
};
use crate::{Estimate, Figure, Interval, Outcome, figures::Counter};

/// A counter that is divided by the operations.
pub(super) struct Counted {
    /// Which counter it is.
    pub counter: Counter,
    title: &'static str,
    /// Unit of the level.
    pub unit: &'static str,
    /// The level's unit in words.
    noun: &'static str,
    /// Factor from the counter's base unit to the level's.
    pub scale: f64,
    /// It is counted in ticks, so a count of zero does not mean zero time.
    sampled: bool,
    /// Reads it from the record.
    pub read: Read,
}

const fn bytes(counter: Counter, title: &'static str, read: Read) -> Counted {
    Counted { counter, title, unit: "bytes/op", noun: "bytes per op", scale: 1.0, sampled: false, read }
}

const fn mode(counter: Counter, title: &'static str, read: Read) -> Counted {
    Counted { counter, title, unit: "µs/op", noun: "µs per op", scale: 1e-3, sampled: true, read }
}

/// All of them, in the order of the report.
pub(super) const COUNTERS: [Counted; 13] = [
    Counted {
        counter: Counter::ServerTreeCpu,
        title: "CPU of all server processes per op",
        unit: "µs/op",
        noun: "µs per op",
        scale: 1e-3,
        sampled: false,
        read: |counters| counters.server_cpu_ns,
    },
    mode(Counter::ClientUserCpu, "client CPU in user mode per op", |counters| counters.client_user_ns),
    mode(Counter::ClientSystemCpu, "client CPU in the kernel per op", |counters| counters.client_system_ns),
    mode(Counter::ServerUserCpu, "server CPU in user mode per op", |counters| counters.server_user_ns),
    mode(Counter::ServerSystemCpu, "server CPU in the kernel per op", |counters| counters.server_system_ns),
    bytes(Counter::WalBytes, "write-ahead log per op", |counters| counters.wal_bytes),
    bytes(Counter::LogBytes, "server and audit log per op", |counters| counters.log_bytes),
    bytes(Counter::ReadBytes, "bytes read from storage per op", |counters| counters.read_bytes),
    bytes(Counter::WrittenBytes, "bytes written to storage per op", |counters| counters.written_bytes),
    bytes(Counter::SentBytes, "bytes sent by the client per op", |counters| counters.sent_bytes),
    bytes(Counter::ReceivedBytes, "bytes received by the client per op", |counters| counters.received_bytes),
    Counted {
        counter: Counter::Statements,
        title: "statements per op",
        unit: "statements/op",
        noun: "statements per op",
        scale: 1.0,
        sampled: false,
        read: |counters| counters.statements,
    },
    Counted {
        counter: Counter::Switches,
        title: "context switches of the server per op",
        unit: "switches/op",
        noun: "context switches per op",
        scale: 1.0,
        sampled: false,
        read: |counters| counters.switches,
    },
];

impl Counted {
    /// The count in `frame`; `None` if unknown.
    pub fn spent(&self, frame: &ArmFrame) -> Option<Spent> {
        let cost = (self.read)(&frame.counters)? as f64 * self.scale;
        Some(Spent { cost, operations: frame.all_operations() as f64 })
    }

    /// `interval`, widened by `asked` if starts are few. This is only for processor time, which varies from start to
    /// start; counted amounts do not.
    fn over_starts(&self, sums: &Sums, interval: Interval, asked: IntervalOptions) -> Interval {
        if self.has_luck() { sums.widened(interval, asked) } else { interval }
    }

    /// True for processor time.
    fn has_luck(&self) -> bool {
        self.scale < 1.0
    }

    fn estimate(&self, measured: &Measured<'_>, arm: usize) -> Option<Estimate> {
        let figure = || Figure::Counter(self.counter);
        let alone: Vec<Spent> = measured.arm(arm).filter_map(|frame| self.spent(frame)).collect();
        let pairs = measured.pairs(arm).map(|(plain, protected)| Some((self.spent(plain)?, self.spent(protected)?)));
        let sums = Sums::new(measured, measured.start_numbers().zip(pairs));
        let both = &sums.values;
        let (plain, protected): (Spent, Spent) = (both.iter().map(|it| it.0).sum(), both.iter().map(|it| it.1).sum());
        let amount = |spent: Spent| format!("{} {}", significant(spent.per_operation()), self.noun);
        let in_all = total_difference(both, measured.alpha);
        let asked = measured.asked(Metric::Cpu);
        let difference = self.over_starts(&sums, in_all, asked.at_level(protected.per_operation()));
        let with_difference = |estimate| Estimate { difference: Some(difference), unit: self.unit.into(), ..estimate };
        // If only one arm has any, there is no ratio. The difference shows whether this is more than an accident, such
        // as one page read in one frame.
        let state = |ratio: f64, outcome, text: String| {
            let open = Interval { estimate: ratio, low: f64::NEG_INFINITY, high: f64::INFINITY };
            let (effect, outcome, text) = match difference.holds(0.0) {
                true => (open, Outcome::TooNoisy, format!("too noisy to tell: {text}")),
                false => (Interval { low: ratio, high: ratio, ..open }, outcome, text),
            };
            Some(with_difference(stated(figure(), self.title, effect, outcome, text, alone.len())))
        };
        match (plain.cost > 0.0, protected.cost > 0.0) {
            (true, true) => {
                let effect = self.over_starts(&sums, ratio_effect(both, measured.alpha), asked);
                let estimate = || {
                    let widened = self.has_luck() && sums.known(asked).is_some();
                    let estimate = ratio(measured, figure(), self.title, effect, sums.stands_on(), widened);
                    let mut estimate = with_difference(estimate);
                    estimate.text += &estimate.on_starts();
                    estimate
                };
                effect.estimate.is_finite().then(estimate)
            }
            _ if self.sampled => None,
            (false, true) => {
                let text = format!("{}, none on the plain arm", amount(protected));
                state(f64::INFINITY, Outcome::Costs, text)
            }
            (true, false) => {
                let text = format!("none, {} on the plain arm", amount(plain));
                state(f64::NEG_INFINITY, Outcome::Gains, text)
            }
            (false, false) => {
                let protected: Spent = alone.into_iter().sum();
                let unseen = measured.arm(0).all(|frame| (self.read)(&frame.counters).is_none());
                (unseen && protected.cost > 0.0).then(|| {
                    let effect = Interval { estimate: f64::NAN, low: f64::NEG_INFINITY, high: f64::INFINITY };
                    let text = format!("{}, not to be seen on the plain arm", amount(protected));
                    stated(figure(), self.title, effect, Outcome::TooNoisy, text, measured.frames.len())
                })
            }
        }
    }
}

/// Every counter of which arm `arm` has any.
pub(super) fn estimates(measured: &Measured<'_>, arm: usize) -> Vec<Estimate> {
    COUNTERS.iter().filter_map(|counter| counter.estimate(measured, arm)).collect()
}

/// Three significant digits, but no more than two decimals: `156`, `15.6`, `1.56`, `0.16`.
fn significant(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn amounts_have_three_digits_and_two_decimals_at_most() {
        let told = [156.4, 100.0, 99.94, 15.64, 10.0, 9.994, 1.564, 0.157].map(significant);
        assert_eq!(told, ["156", "100", "99.9", "15.6", "10.0", "9.99", "1.56", "0.16"]);
    }
}
