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

/// The keys of a `[[workload]]`: one of YCSB's letters, `u` for updates only, which wait for the disk, or `i` for
/// inserts only.
pub fn ycsb(workload: &str) -> String {
    let only = |operation: &str| {
        let properties =
            ["read", "update", "insert"].map(|of| format!("{of}proportion = \"{}\"", u8::from(of == operation)));
        format!("name = \"{workload}\"\nycsb = \"a\"\nproperties = {{ {} }}", properties.join(", "))
    };
    match workload {
        "u" => only("update"),
        "i" => only("insert"),
        letter => format!("ycsb = \"{letter}\""),
    }
}

/// The `[settings]` of `database` for `workload`. Updates only must wait for the disk, which SQLite does only if
/// configured. SQLite's pages must be decrypted, which happens only if its cache does not hold them all. Redis writes
/// to the disk only with an append-only file.
pub fn settings(database: &str, workload: &str) -> String {
    let synchronous = if workload == "u" { "FULL" } else { "NORMAL" };
    match database {
        "redis" | "valkey" if workload != "c" => "[settings]\nappendonly = \"yes\"\n".to_owned(),
        "sqlite" => format!("[settings]\ncache_size = \"-2000\"\nsynchronous = \"{synchronous}\"\n"),
        _ => String::new(),
    }
}
