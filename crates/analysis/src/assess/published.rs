//! Figures that others published about an arm of a cell, as costs that can be compared with the measured ones.

use tithe_model::{
    experiment::{Experiment, Published, PublishedValue},
    plan::Cell,
};

use crate::{Figure, PublishedCost};

/// The experiment's quotations about the arm called `arm` under the conditions of `cell`.
pub(super) fn of(experiment: &Experiment, cell: &Cell, arm: &str) -> Vec<PublishedCost> {
    let workload = experiment.workloads.get(cell.workload).map_or("", |workload| &workload.name);
    let resources = experiment.resources.get(cell.resources).map_or("", |resources| &resources.name);
    let about = experiment.published.iter().filter(|published| published.is_about(arm, workload, resources));
    about.map(cost).collect()
}

fn cost(published: &Published) -> PublishedCost {
    let (low, high) = published.cost();
    PublishedCost {
        source: published.source.clone(),
        estimate: Figure::Metric(published.figure.metric()),
        printed: format!("{} {}", published.figure.title(), printed(&published.value)),
        low,
        high,
    }
}

/// The figures as they were printed.
fn printed(value: &PublishedValue) -> String {
    match value {
        PublishedValue::Levels { plain, protected, unit } => {
            format!("{plain} → {protected} {unit}").trim_end().to_owned()
        }
        PublishedValue::Change { from, to } if from == to => change(*from),
        PublishedValue::Change { from, to } => format!("{} to {}", change(*from), change(*to)),
    }
}

/// `−16 %`, `+26.5 %`; with the given number of decimals, up to two.
fn change(share: f64) -> String {
    let percent = (share.abs() * 1e4).round() / 1e2;
    format!("{}{percent} %", if share < 0.0 { "−" } else { "+" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_they_were_printed() {
        let levels = PublishedValue::Levels { plain: 32.4, protected: 40.9, unit: "µs".to_owned() };
        assert_eq!(printed(&levels), "32.4 → 40.9 µs");
        assert_eq!(printed(&PublishedValue::Change { from: -0.05, to: -0.2 }), "−5 % to −20 %");
        assert_eq!(printed(&PublishedValue::Change { from: 0.265, to: 0.265 }), "+26.5 %");
        assert_eq!(printed(&PublishedValue::Change { from: 0.0, to: 0.0 }), "+0 %");
    }
}
