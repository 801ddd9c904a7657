//! A published cost of a protection, to show next to the measured one.
//!
//! A published figure decides nothing: every report shows it with its source. Its method is unknown here, so it has no
//! interval.

use serde::{Deserialize, Serialize};

use super::Metric;

/// One published figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Who published it, where and when.
    pub source: String,
    /// Name of the arm that the figure is about.
    pub arm: String,
    /// Name of the workload; `None` if the figure is about every workload.
    pub workload: Option<String>,
    /// Name of the resources; `None` if the figure is about all of them.
    pub resources: Option<String>,
    /// What was published.
    pub figure: PublishedFigure,
    /// Its value.
    pub value: PublishedValue,
}

/// The quantity that a published figure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedFigure {
    /// Mean latency of an operation, or the time that a fixed number of operations took.
    Time,
    /// Operations per second at a fixed number of clients: less of it is a cost.
    Throughput,
    /// Processor time per operation, client and server together.
    Cpu,
    /// Processor time per operation of the client.
    ClientCpu,
    /// Processor time per operation of the server.
    ServerCpu,
}

impl PublishedFigure {
    /// The metric of the measured estimate to show it next to. In a closed loop throughput and time are equivalent.
    pub fn metric(self) -> Metric {
        match self {
            Self::Time | Self::Throughput => Metric::Time,
            Self::Cpu => Metric::Cpu,
            Self::ClientCpu => Metric::ClientCpu,
            Self::ServerCpu => Metric::ServerCpu,
        }
    }

    /// Its name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Throughput => "throughput",
            Self::Cpu => "CPU",
            Self::ClientCpu => "client CPU",
            Self::ServerCpu => "server CPU",
        }
    }
}

/// The value of a published figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedValue {
    /// Both levels as they were printed.
    Levels {
        /// Without the protection, in `unit`; above 0.
        plain: f64,
        /// With it, in `unit`; above 0.
        protected: f64,
        /// Unit, as printed; may be empty.
        unit: String,
    },
    /// The change as a share of the plain level (0.2 is 20 % more, -0.2 is 20 % less), or the range that was given.
    Change {
        /// One end, above -1.
        from: f64,
        /// The other end; the same if one figure was given.
        to: f64,
    },
}

impl Published {
    /// The cost that was published, from the least to the most, as natural-log ratios; positive is a cost.
    ///
    /// A closed loop does 1/(1 + c) times the operations when each takes 1 + c times as long, so a change of the
    /// throughput by the share s is a cost of −ln(1 + s).
    pub fn cost(&self) -> (f64, f64) {
        let (one, other) = match self.value {
            PublishedValue::Levels { plain, protected, .. } => ((protected / plain).ln(), (protected / plain).ln()),
            PublishedValue::Change { from, to } => (from.ln_1p(), to.ln_1p()),
        };
        let sign = if self.figure == PublishedFigure::Throughput { -1.0 } else { 1.0 };
        let (one, other) = (sign * one, sign * other);
        (one.min(other), one.max(other))
    }

    /// True for the arm, workload and resources with these names.
    pub fn is_about(&self, arm: &str, workload: &str, resources: &str) -> bool {
        let holds = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
        self.arm == arm && holds(&self.workload, workload) && holds(&self.resources, resources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(figure: PublishedFigure, value: PublishedValue) -> Published {
        let source = "a report".to_owned();
        Published { source, arm: "tls".to_owned(), workload: Some("c".to_owned()), resources: None, figure, value }
    }

    #[test]
    fn a_loss_of_throughput_is_a_cost_in_time() {
        let cost = published(PublishedFigure::Throughput, PublishedValue::Change { from: -0.2, to: -0.5 }).cost();
        assert!((cost.0 - 1.25f64.ln()).abs() < 1e-12 && (cost.1 - 2f64.ln()).abs() < 1e-12, "{cost:?}");
        let levels = PublishedValue::Levels { plain: 32.4, protected: 40.9, unit: "µs".to_owned() };
        let (low, high) = published(PublishedFigure::Time, levels).cost();
        assert!(low == high && (low.exp() - 1.26235).abs() < 1e-4, "{low}");
    }

    #[test]
    fn a_figure_without_resources_is_about_all_of_them() {
        let figure = published(PublishedFigure::Cpu, PublishedValue::Change { from: 0.1, to: 0.1 });
        assert!(figure.is_about("tls", "c", "small") && figure.is_about("tls", "c", ""));
        assert!(!figure.is_about("tls", "a", "") && !figure.is_about("audit", "c", ""));
    }
}
