//! The fuzzer, which `fuzz/run` builds and runs: TITHE_FUZZ names the target, and without it the targets are listed.
//! `TITHE_FUZZ_SEEDS=FOLDER` writes the seeds of the target there. The options are those of libFuzzer.

#![no_main]

#[path = "targets/mod.rs"]
mod targets;

use std::{fs, path::Path, process::exit, sync::LazyLock};

use tithe_plugin::wire::foreign::Parser;

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

static CHOSEN: LazyLock<Parser> = LazyLock::new(|| {
    let name = std::env::var("TITHE_FUZZ").unwrap_or_default();
    targets::all().into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| {
        targets::all().iter().for_each(|(name, _)| println!("{name}"));
        exit(i32::from(!name.is_empty()));
    })
});

libfuzzer_sys::fuzz_target!(
    init: {
        let (name, _) = *CHOSEN;
        if let Some(folder) = std::env::var_os("TITHE_FUZZ_SEEDS") {
            for (number, seed) in targets::seeds(name).iter().enumerate() {
                fs::write(Path::new(&folder).join(format!("seed-{number}")), seed).expect("the folder is there");
            }
            targets::clean_up();
            exit(0);
        }
    },
    |bytes: &[u8]| (CHOSEN.1)(bytes)
);
