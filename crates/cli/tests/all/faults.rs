//! A short part of `cargo bench --bench faults`, with fixed seeds: nothing is lost, left behind or damaged.

#[path = "../../../../benches/faults/campaign/mod.rs"]
mod campaign;

use campaign::Asked;

#[test]
fn drawn_faults_lose_leave_and_harm_nothing() {
    let asked = Asked { count: 12, seed: 1, servers: false, only: None, jobs: 2 };
    let outcomes = campaign::carry_out(&asked, &|_| ());
    let broken: Vec<String> = outcomes
        .iter()
        .flat_map(|it| it.broken.iter().map(move |broken| format!("{}, seed {}: {broken}", it.fault, it.seed)))
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(outcomes.iter().filter(|outcome| outcome.struck).count() > 6, "hardly anything was struck");
    assert!(
        outcomes.iter().any(|outcome| outcome.ended != "unharmed"),
        "nothing was harmed on {}",
        outcomes[0].product
    );
}
