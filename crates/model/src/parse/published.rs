//! `[[published]]`: published figures, to show next to the measured ones.

use super::{
    keys,
    reader::{Item, Problems, Table},
    units,
};
use crate::{
    experiment::{Arm, Published, PublishedFigure, PublishedValue, Resources, Workload},
    wording,
};

const FIGURES: &[(&str, PublishedFigure)] = &[
    ("time", PublishedFigure::Time),
    ("throughput", PublishedFigure::Throughput),
    ("cpu", PublishedFigure::Cpu),
    ("client_cpu", PublishedFigure::ClientCpu),
    ("server_cpu", PublishedFigure::ServerCpu),
];

/// Every published figure; its arm, workload and resources must be in the experiment.
pub(super) fn published(
    top: &Table<'_>,
    workloads: &[Workload],
    resources: &[Resources],
    arms: &[Arm],
    problems: &mut Problems,
) -> Vec<Published> {
    let tables = top.tables("published", &keys::PUBLISHED, &[], problems);
    let workloads: Vec<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
    let resources: Vec<&str> = resources.iter().map(|resources| resources.name.as_str()).collect();
    let protected: Vec<&str> = arms.iter().skip(1).map(|arm| arm.name.as_str()).collect();
    let one = |table: &Table<'_>| {
        let source = table.need("source", problems).and_then(|item| item.name(problems));
        let arm = table.need("arm", problems).and_then(|item| known(&item, &protected, problems));
        let workload = table.get("workload").map(|item| known(&item, &workloads, problems));
        let resources = table.get("resources").map(|item| known(&item, &resources, problems));
        let figure = table.need("figure", problems).and_then(|item| item.choice(FIGURES, problems));
        let value = value(table, problems);
        Some(Published {
            source: source?.into_inner(),
            arm: arm?,
            workload: workload.flatten(),
            resources: resources.flatten(),
            figure: figure?,
            value: value?,
        })
    };
    tables.iter().filter_map(one).collect()
}

/// A name that is one of `names`. If `names` is empty, that is the problem.
fn known(item: &Item<'_>, names: &[&str], problems: &mut Problems) -> Option<String> {
    let name = item.name(problems)?.into_inner();
    if !names.is_empty() && !names.contains(&name.as_str()) {
        let help = wording::suggest(&name, names, "the experiment has");
        problems.at(item.range.clone(), format!("`{}` cannot be {}", item.key, wording::quote(&name)), help);
    }
    Some(name)
}

/// Both levels, or the change.
fn value(table: &Table<'_>, problems: &mut Problems) -> Option<PublishedValue> {
    let level = |item: Option<Item<'_>>, problems: &mut Problems| item?.number(1e-9..=1e15, problems);
    let (plain, protected, change) = (table.get("plain"), table.get("protected"), table.get("change"));
    let unit = table.get("unit").and_then(|item| item.name(problems));
    match (&plain, &protected, change) {
        (None, None, Some(item)) => change_of(&item, problems),
        (Some(_), Some(_), None) => Some(PublishedValue::Levels {
            plain: level(plain, problems)?,
            protected: level(protected, problems)?,
            unit: unit.map(|unit| unit.into_inner()).unwrap_or_default(),
        }),
        _ => {
            let help = "write `plain = 32.4` and `protected = 40.9`, or `change = \"+26%\"`";
            problems.missing(
                table.place.clone(),
                "a published figure has either both levels or the change between them",
                help,
            );
            None
        }
    }
}

/// `"+26.5%"`, or the two ends of a range.
fn change_of(item: &Item<'_>, problems: &mut Problems) -> Option<PublishedValue> {
    let ends = if item.value.as_array().is_some() { item.list(problems) } else { vec![item.clone()] };
    let shares: Vec<Option<f64>> = ends.iter().map(|end| share(end, problems)).collect();
    match shares[..] {
        [Some(share)] => Some(PublishedValue::Change { from: share, to: share }),
        [Some(from), Some(to)] => Some(PublishedValue::Change { from, to }),
        [None] | [_, _] => None,
        _ => {
            item.refuse("is one percentage or the two ends of a range", problems);
            None
        }
    }
}

fn share(item: &Item<'_>, problems: &mut Problems) -> Option<f64> {
    let text = item.text(problems)?;
    let share = units::signed_share(text).filter(|share| (-0.99..=99.0).contains(share));
    if share.is_none() {
        let text = wording::quote(text);
        item.refuse(format!("must be a percentage from -99% to +9900%, this is {text}"), problems);
    }
    share
}
