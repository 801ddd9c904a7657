//! Changes known inputs at random for as long as asked, without instrumentation: ten times as many executions as the
//! fuzzer, which leaves it the inputs that reach new code. `fuzz/run --changes` builds and runs it.
//!
//! `changes NAME SECONDS CORPUS FOUND`: the target, how long, a folder with inputs beside the seeds, and the folder for
//! an input that panics or takes 5 s. Prints `NAME EXECUTIONS SECONDS`; without arguments, all targets.

#[path = "targets/mod.rs"]
mod targets;

use std::{
    fs,
    panic::catch_unwind,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use targets::changes::{LARGEST, Random, changed};

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// An input that takes so long is a finding.
const TOO_LONG: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, corpus, found] = arguments.as_slice() else {
        targets::all().iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::from(u8::from(!arguments.is_empty()));
    };
    let target = targets::all().into_iter().find(|(known, _)| known == name).expect("a target of the list").1;
    let seconds = Duration::from_secs(seconds.parse().expect("whole seconds"));
    let mut known = targets::seeds(name);
    let collected = fs::read_dir(corpus).into_iter().flatten().flatten();
    known.extend(collected.filter_map(|entry| fs::read(entry.path()).ok()));
    known.retain(|input| input.len() <= LARGEST);
    known.push(Vec::new());

    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut random = Random(now.as_nanos() as u64);
    let begun = Instant::now();
    let mut executions = 0_u64;
    let mut bad = false;
    while begun.elapsed() < seconds && !bad {
        let input = changed(&known[random.below(known.len())], &mut random);
        let before = Instant::now();
        let panicked = catch_unwind(|| target(&input)).is_err();
        executions += 1;
        bad = panicked || before.elapsed() > TOO_LONG;
        if bad {
            let file = Path::new(found).join(format!("{name}-{}", now.as_nanos()));
            fs::write(&file, &input).expect("the folder is there");
        }
    }
    targets::clean_up();
    println!("{name} {executions} {}", begun.elapsed().as_secs());
    ExitCode::from(u8::from(bad))
}
