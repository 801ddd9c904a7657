//! Arms of known cost: on the simulated database, and as loops of known length on this machine.

use crate::{
    analysis::{holds, interval, percent_or_dash},
    experiment::{KNOWN, known_arms},
    run::Run,
};

/// How many intervals contain the truth on the simulated database.
pub fn coverage() -> Result<(), String> {
    let (mut right, mut runs) = ([0; KNOWN.len()], 0);
    for seed in 1..=25 {
        let report = Run::new("coverage", &known_arms("simulated", seed, "32 s")).wait()?;
        runs += 1;
        for (arm, cost) in KNOWN.iter().enumerate() {
            let held = interval(&report, 0, arm + 1, "net").is_some_and(|found| holds(found, cost.ln_1p()));
            right[arm] += u32::from(held);
        }
    }
    for (cost, right) in KNOWN.iter().zip(right) {
        println!("+{:.0} %: {right} of {runs} intervals hold it", 100.0 * cost);
    }
    println!("together: {} of {}", right.iter().sum::<u32>(), runs * KNOWN.len());
    Ok(())
}

/// Every interval for loops of known length.
pub fn spin(seconds: u32) -> Result<(), String> {
    let report = Run::new("spin", &known_arms("spinning", 1, &format!("{seconds} s"))).wait()?;
    for name in ["net", "cpu", "time"] {
        for (arm, cost) in KNOWN.iter().enumerate() {
            let found = interval(&report, 0, arm + 1, name);
            let verdict = match found {
                None => "has no interval",
                Some(found) if holds(found, cost.ln_1p()) => "holds it",
                Some(_) => "MISSES it",
            };
            println!("{name:<4} +{:.0} %: {} {verdict}", 100.0 * cost, percent_or_dash(found));
        }
    }
    Ok(())
}
