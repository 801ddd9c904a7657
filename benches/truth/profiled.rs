//! Are profiles right? For arms whose cost is counted, and for identical arms.

use serde_json::Value;

use crate::{
    Arguments,
    analysis::{ends, holds, load},
    beside::Beside,
    experiment::{settings, ycsb},
    known_cost,
    run::{Run, report},
    share::share,
};

/// Component of the extension with the counted loop.
const EXTENSION: &str = "known_cost";

/// Profiles the arms of the counted costs `runs` times: how much of the loop's time is attributed to its functions.
pub fn known(asked: &Arguments<'_>) -> Result<(), String> {
    let (runs, seconds) = (asked.number(0, "runs", 20)?, asked.number(1, "seconds", 60)?);
    println!(
        "| run | arm | counted | given to the loop | of it | | parts add up | load |\n|---|---|---|---|---|---|---|---|"
    );
    let (mut held, mut added_up, mut of) = (0, 0, 0);
    for run in 1..=runs {
        let profiled = known_cost::profile(seconds)?;
        let cell = &profiled.report["cells"][0];
        for (number, (name, counted_us)) in (1..).zip(&profiled.loops_us) {
            let arm = &cell["profile"]["arms"][number - 1];
            let (given_us, within) = of_object(arm, EXTENSION);
            let is_held = within.is_some_and(|within| holds(within, *counted_us));
            let adds_up = arm["adds_up"].as_bool() == Some(true);
            (held, added_up, of) = (held + u64::from(is_held), added_up + u64::from(adds_up), of + 1);
            let within = within.map_or("—".to_owned(), |(low, high)| format!("[{low:.2}, {high:.2}]"));
            println!(
                "| {run} | {name} | {counted_us:.2} µs | {given_us:.2} {within} µs | {:.0} % | {} | {} | {:.1} |",
                100.0 * given_us / counted_us,
                if is_held { "holds" } else { "MISSES" },
                if adds_up { "yes" } else { "NO" },
                load(cell)
            );
        }
    }
    println!(
        "\nIntervals that hold what was counted: {}. Parts that add up: {}.",
        share(held, of),
        share(added_up, of)
    );
    Ok(())
}

/// Profiles two identical arms `runs` times: how often a part is reported as different.
pub fn identical(asked: &Arguments<'_>) -> Result<(), String> {
    let product = asked.word(0).ok_or("profile-identical needs a product: sqlite, postgres, …")?;
    let (runs, seconds): (u64, u32) = (asked.number(1, "runs", 20)?, asked.number(2, "seconds", 30)?);
    let beside = Beside::Hogs(asked.number(3, "hogs", 0)?);
    let experiment = format!(
        "title = \"The same twice\"\ndatabase = \"{product}\"\n{}[data]\nrecords = 20_000\n[load]\nclients = 1\n[measure]\n\
         budget = \"{seconds} s\"\nprofile = true\naa_arm = false\n[[workload]]\n{}\n[[arm]]\nname = \"plain\"\n[[arm]]\n\
         name = \"again\"\n",
        settings(product, "c"),
        ycsb("c")
    );
    println!("{product}, reads only, {seconds} s of load, beside {beside}\n");
    println!("| run | components named | functions named | parts add up | load |\n|---|---|---|---|---|");
    let (mut with_component, mut with_function, mut added_up) = (0, 0, 0);
    for run in 1..=runs {
        let report = report(&Run::new("profile-identical", &experiment).finish_beside(beside)?);
        let cell = &report["cells"][0];
        let arm = &cell["profile"]["arms"][0];
        let named = |what: &str| arm[what].as_array().map_or(0, Vec::len);
        let (components, functions) = (named("components"), named("functions"));
        let adds_up = arm["adds_up"].as_bool() == Some(true);
        with_component += u64::from(components > 0);
        with_function += u64::from(functions > 0);
        added_up += u64::from(adds_up);
        println!("| {run} | {components} | {functions} | {} | {:.1} |", if adds_up { "yes" } else { "NO" }, load(cell));
    }
    println!(
        "\nProfiles that name a component: {}; a function: {}. Parts that add up: {}.",
        share(with_component, runs),
        share(with_function, runs),
        share(added_up, runs)
    );
    Ok(())
}

/// The time that a profile of `arm` attributes to the component `object`, µs per operation, and its interval; 0 if it
/// is not named.
fn of_object(arm: &Value, object: &str) -> (f64, Option<(f64, f64)>) {
    let components = arm["components"].as_array().into_iter().flatten();
    let part = components.filter(|part| part["component"] == object).map(|part| &part["difference"]).next();
    part.map_or((0.0, None), |difference| (difference["estimate"].as_f64().unwrap_or(f64::NAN), Some(ends(difference))))
}
