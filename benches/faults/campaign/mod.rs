//! The campaign: cases by their seeds, each a run with one fault and what is judged of it.

mod case;
mod disk;
mod draw;
mod fault;
mod folders;
mod interposed;
mod judge;
mod machine;
mod network;
mod product;
mod relay;
mod resources;
mod server;
mod signals;
mod volume;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use case::{Case, Outputs};
use draw::Draw;
use fault::{Fault, How};
use product::{Product, Reference};

/// What to carry out.
pub struct Asked {
    /// So many faults …
    pub count: u64,
    /// … with the seeds from here on.
    pub seed: u64,
    /// On products other than the simulated database.
    pub servers: bool,
    /// Only faults and products with this in their name.
    pub only: Option<String>,
    /// Cases at once.
    pub jobs: usize,
}

/// What became of one case.
pub struct Outcome {
    pub seed: u64,
    pub fault: &'static str,
    pub product: &'static str,
    /// How the run ended.
    pub ended: String,
    /// False where the run had ended before its fault could strike.
    pub struck: bool,
    /// Each invariant that does not hold, in words.
    pub broken: Vec<String>,
}

/// All faults, family by family.
fn faults() -> Vec<&'static Fault> {
    let families: [&'static [Fault]; 7] = [
        signals::FAULTS,
        disk::FAULTS,
        folders::FAULTS,
        network::FAULTS,
        server::FAULTS,
        resources::FAULTS,
        volume::FAULTS,
    ];
    families.into_iter().flatten().collect()
}

/// Carries out what is asked, and calls `tell` after each case.
pub fn carry_out(asked: &Asked, tell: &(dyn Fn(&Outcome) + Sync)) -> Vec<Outcome> {
    let products: Vec<&'static dyn Product> = product::installed(asked.servers);
    let all: Vec<(&'static Fault, &'static dyn Product)> = faults()
        .into_iter()
        .flat_map(|fault| products.iter().map(move |product| (fault, *product)))
        .filter(|(fault, product)| (fault.on)(product.kind()))
        .filter(|(fault, product)| {
            let name = format!("{} {}", fault.name, product.name());
            asked.only.as_ref().is_none_or(|word| name.contains(word.as_str()))
        })
        .collect();
    assert!(!all.is_empty(), "no fault strikes any product that is installed here");
    let tools = interposed::Tools::make();
    let mut references: BTreeMap<&str, Reference> = BTreeMap::new();
    for (_, product) in &all {
        references.entry(product.name()).or_insert_with(|| Reference::take(*product, &tools));
    }
    let next = AtomicU64::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..asked.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= asked.count {
                        break;
                    }
                    let seed = asked.seed + number;
                    let mut draw = Draw::new(seed);
                    let (fault, product) = *draw.pick(&all);
                    let outcome = one(seed, fault, product, &references[product.name()], &tools, draw);
                    tell(&outcome);
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// One case: the run, its fault, and the judgement.
fn one(
    seed: u64,
    fault: &'static Fault,
    product: &'static dyn Product,
    reference: &Reference,
    tools: &interposed::Tools,
    mut draw: Draw,
) -> Outcome {
    let mut case = Case::new(product);
    let mut command = case.command(&["run", "e.toml", "--quiet"]);
    let mut struck = true;
    let mut outputs = Outputs::default();
    if let How::From(begin_with) = fault.how {
        let (command, outputs) = (&mut command, &mut outputs);
        begin_with(&mut fault::Begin { command, draw: &mut draw, reference, tools, case: &case, outputs });
    }
    let mut run = case.start(command, outputs);
    if let How::At(strike) = fault.how {
        struck = fault::wait(&mut run, &case, reference, &mut draw) && strike(&mut run, &case, &mut draw);
        run.has_been_struck();
    }
    let ended = case.end(run, fault.patience);
    // What was mounted, filled or moved for the fault is as before: what is judged comes after it.
    case.over();
    let broken = judge::judge(&mut case, fault, reference, &ended, struck);
    if broken.is_empty() {
        case.remove();
    }
    Outcome { seed, fault: fault.name, product: product.name(), ended: ended.in_words(), struck, broken }
}
