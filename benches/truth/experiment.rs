//! Experiment files as texts.

/// Extra cost of the known arms.
pub const KNOWN: [f64; 4] = [0.01, 0.02, 0.05, 0.10];

/// With arms of the simulated database that have the costs [`KNOWN`].
pub fn known_arms(database: &str, seed: u64, budget: &str) -> String {
    let arms: String = KNOWN
        .iter()
        .map(|cost| {
            format!("[[arm]]\nname = \"plus {cost}\"\nprotections = [{{ use = \"placebo\", cost = {cost} }}]\n")
        })
        .collect();
    format!(
        "title = \"Known costs\"\ndatabase = \"{database}\"\n[settings]\nservice_us = 100\n[data]\nrecords = 500\n[measure]\n\
         budget = \"{budget}\"\nprecision = \"0.1%\"\nseed = {seed}\n[[workload]]\nycsb = \"c\"\n[[arm]]\nname = \"plain\"\n{arms}"
    )
}

/// With PostgreSQL against itself.
pub fn against_itself(
    design: &str,
    pin: bool,
    workload: &str,
    clients: u32,
    slot_ms: Option<u32>,
    seconds: u32,
) -> String {
    let slot = slot_ms.map_or(String::new(), |slot| format!("slot = \"{slot} ms\"\n"));
    let workload = ycsb(workload);
    format!(
        "title = \"The same twice\"\ndatabase = \"postgres\"\n[data]\nrecords = 20_000\n[load]\nclients = {clients}\n[measure]\n\
         budget = \"{seconds} s\"\nprecision = \"0.01%\"\nepochs = 1\ndesign = \"{design}\"\npin = {pin}\n{slot}[[workload]]\n{workload}\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"again\"\n"
    )
}

/// The keys of a `[[workload]]`: one of YCSB's letters, or `u` for updates only, which wait for the disk.
pub fn ycsb(workload: &str) -> String {
    match workload {
        "u" => {
            "name = \"u\"\nycsb = \"a\"\nproperties = { readproportion = \"0\", updateproportion = \"1\" }".to_owned()
        }
        letter => format!("ycsb = \"{letter}\""),
    }
}

/// The `[settings]` of `database` for `workload`. Updates only must wait for the disk, which SQLite does only if
/// configured. SQLite's pages must be decrypted, which happens only if its cache does not hold them all.
pub fn settings(database: &str, workload: &str) -> String {
    let synchronous = if workload == "u" { "FULL" } else { "NORMAL" };
    match database {
        "sqlite" => format!("[settings]\ncache_size = \"-2000\"\nsynchronous = \"{synchronous}\"\n"),
        _ => String::new(),
    }
}
