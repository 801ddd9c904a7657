//! The plan of an experiment.

mod aa_arm;
mod sides;

use expect_test::{Expect, expect};
use tithe_model::{
    catalogue::{Catalogue, Properties, WorkloadShape},
    invalid::Invalid,
    parse::parse_unmeasured,
    plan::{Cell, Plan, Starts, WarmUp, outline, plan, starting_share},
    record::{Event, Frame, Machine, Slot},
    records::Records,
};

use crate::{FULL, SHORT, catalogue, read_experiment, render};

fn planned(text: &str) -> Plan {
    let experiment = read_experiment(text).unwrap_or_else(|diagnostics| panic!("{}", render(text, &diagnostics)));
    plan(experiment, &catalogue::catalogue()).expect("what was parsed can be planned")
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&serde_json::to_string_pretty(&planned(text).cells).expect("cells are JSON"));
}

fn check_outline(text: &str, expected: Expect) {
    expected.assert_eq(&outline(&planned(text), &catalogue::catalogue()));
}

#[test]
fn cells_of_one_sweep_differ_by_load_alone() {
    let sets = "[load]\nclients = [1, 2]\n[[resources]]\nname = \"two\"\ncpus = 2\n[[resources]]\nname = \"one\"\n\
                cpus = 1\n[[resources]]\nname = \"fresh\"\nreconnect_every = 10\n[[workload]]";
    let plan = planned(&SHORT.replacen("[[workload]]", sets, 1));
    let set = |cell: &Cell| plan.experiment.resources[cell.resources].name.split(',').next().unwrap_or_default();
    for one in &plan.cells {
        let alike = plan.cells.iter().filter(|other| plan.differ_by_load_alone(one, other));
        let alike: Vec<&str> = alike.map(set).collect();
        assert_eq!(alike, [set(one); 3], "two numbers of clients, and a share of saturation");
    }
    assert_eq!(plan.cells.len(), 9);
}

#[test]
fn each_version_is_a_cell_of_its_own() {
    let cells = |text: &str| {
        let plan = planned(&format!("versions = [\"15\", \"18.6\"]\n{text}"));
        let told = |cell: &Cell| {
            let resources = &plan.experiment.resources[cell.resources];
            format!("{}: {} {:?}", cell.id, resources.name, resources.version)
        };
        let [first, .., last] = &plan.cells[..] else { panic!("two cells") };
        assert!(!plan.differ_by_load_alone(first, last), "they are other servers");
        plan.cells.iter().map(told).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        c.version-15: version 15 Some("15")
        c.version-18-6: version 18.6 Some("18.6")"#]]
    .assert_eq(&cells(SHORT));
    let small = "[load]\nclients = [1, 2]\n[[resources]]\nname = \"small\"\ncpus = 2\n[[workload]]";
    expect![[r#"
        c.small-version-15-clients-1: small, version 15, clients 1 Some("15")
        c.small-version-15-clients-2: small, version 15, clients 2 Some("15")
        c.small-version-15-70-of-saturation: small, version 15, 70 % of saturation Some("15")
        c.small-version-18-6-clients-1: small, version 18.6, clients 1 Some("18.6")
        c.small-version-18-6-clients-2: small, version 18.6, clients 2 Some("18.6")
        c.small-version-18-6-70-of-saturation: small, version 18.6, 70 % of saturation Some("18.6")"#]]
    .assert_eq(&cells(&SHORT.replacen("[[workload]]", small, 1)));
}

#[test]
fn cells_of_everything() {
    check(
        FULL,
        expect![[r#"
            [
              {
                "id": "c.in-memory",
                "workload": 0,
                "resources": 0,
                "clients": 4,
                "arrivals": {
                  "poisson": 2000.0
                },
                "seed": 10451216379200822465,
                "slot_ns": 250000000,
                "settling_ns": 1000000,
                "warmup_ns": 100000000,
                "blocks": 4,
                "frames_max": 75,
                "epochs": 3,
                "design": "interleaved",
                "starts": "once",
                "after_start": "none",
                "pinned": true,
                "free_frames": 0,
                "program": false
              },
              {
                "id": "c.on-disk",
                "workload": 0,
                "resources": 1,
                "clients": 2,
                "arrivals": {
                  "poisson": 2000.0
                },
                "seed": 13757245211066428519,
                "slot_ns": 250000000,
                "settling_ns": 1000000,
                "warmup_ns": 100000000,
                "blocks": 4,
                "frames_max": 75,
                "epochs": 3,
                "design": "interleaved",
                "starts": "once",
                "after_start": "none",
                "pinned": true,
                "free_frames": 0,
                "program": false
              },
              {
                "id": "mine.in-memory",
                "workload": 1,
                "resources": 0,
                "clients": 4,
                "arrivals": {
                  "poisson": 2000.0
                },
                "seed": 17911839290282890590,
                "slot_ns": 250000000,
                "settling_ns": 1000000,
                "warmup_ns": 100000000,
                "blocks": 4,
                "frames_max": 75,
                "epochs": 3,
                "design": "interleaved",
                "starts": "once",
                "after_start": {
                  "until-steady": {
                    "window_ns": 133333333,
                    "at_most_ns": 4800000000
                  }
                },
                "pinned": true,
                "free_frames": 0,
                "program": false
              },
              {
                "id": "mine.on-disk",
                "workload": 1,
                "resources": 1,
                "clients": 2,
                "arrivals": {
                  "poisson": 2000.0
                },
                "seed": 8196980753821780235,
                "slot_ns": 250000000,
                "settling_ns": 1000000,
                "warmup_ns": 100000000,
                "blocks": 4,
                "frames_max": 75,
                "epochs": 3,
                "design": "interleaved",
                "starts": "once",
                "after_start": {
                  "until-steady": {
                    "window_ns": 133333333,
                    "at_most_ns": 4800000000
                  }
                },
                "pinned": true,
                "free_frames": 0,
                "program": false
              }
            ]"#]],
    );
}

#[test]
fn reads_of_one_client() {
    check(
        SHORT,
        expect![[r#"
            [
              {
                "id": "c",
                "workload": 0,
                "resources": 0,
                "clients": 1,
                "arrivals": "closed",
                "seed": 10451216379200822465,
                "slot_ns": 20000000,
                "settling_ns": 1000000,
                "warmup_ns": 100000000,
                "blocks": 25,
                "frames_max": 300,
                "epochs": 1,
                "design": "interleaved",
                "starts": {
                  "several": 24
                },
                "after_start": "none",
                "pinned": true,
                "free_frames": 5,
                "program": false
              }
            ]"#]],
    );
}

/// Slots, blocks and settling time follow from the workload, the database and the load.
#[test]
fn slots() {
    let rows = [
        ("reads", SHORT.to_owned()),
        ("writes of a server", SHORT.replace("ycsb = \"c\"", "ycsb = \"a\"")),
        ("writes of two clients", SHORT.replace("ycsb = \"c\"", "ycsb = \"a\"\n[load]\nclients = 2")),
        (
            "writes until decided",
            SHORT.replace("ycsb = \"c\"", "ycsb = \"a\"\n[measure]\nuntil_decided = true\nmargin = \"3 %\""),
        ),
        (
            "writes of a running server",
            SHORT
                .replace("ycsb = \"c\"", "ycsb = \"a\"")
                .replace("name = \"", "url = \"postgres://u@h/db\"\nname = \""),
        ),
        (
            "writes of an embedded database",
            SHORT
                .replace("ycsb = \"c\"", "ycsb = \"a\"")
                .replace("postgres", "sqlite")
                .replace("\"tls\" }", "\"columns\" }"),
        ),
        ("open loop", SHORT.replace("ycsb = \"c\"", "ycsb = \"c\"\n[load]\nrate = 1000")),
        ("slow open loop", SHORT.replace("ycsb = \"c\"", "ycsb = \"c\"\n[load]\nrate = 50")),
        ("chosen slot", SHORT.replace("ycsb = \"c\"", "ycsb = \"c\"\n[measure]\nslot = \"5 ms\"")),
        ("seven epochs", SHORT.replace("ycsb = \"c\"", "ycsb = \"c\"\n[measure]\nepochs = 7")),
    ];
    let line = |(name, text): &(&str, String)| {
        let cell = &planned(text).cells[0];
        let (slot, settling) = (cell.slot_ns as f64 / 1e6, cell.settling_ns as f64 / 1e6);
        format!("{name}: slot {slot} ms, settling {settling} ms, {} blocks, {} frames\n", cell.blocks, cell.frames_max)
    };
    expect![[r#"
        reads: slot 20 ms, settling 1 ms, 25 blocks, 300 frames
        writes of a server: slot 100 ms, settling 1 ms, 20 blocks, 75 frames
        writes of two clients: slot 100 ms, settling 1 ms, 20 blocks, 75 frames
        writes until decided: slot 100 ms, settling 1 ms, 10 blocks, 150 frames
        writes of a running server: slot 100 ms, settling 1 ms, 10 blocks, 150 frames
        writes of an embedded database: slot 50 ms, settling 1 ms, 10 blocks, 300 frames
        open loop: slot 250 ms, settling 1 ms, 8 blocks, 75 frames
        slow open loop: slot 800 ms, settling 1 ms, 8 blocks, 23 frames
        chosen slot: slot 5 ms, settling 1 ms, 100 blocks, 300 frames
        seven epochs: slot 20 ms, settling 1 ms, 25 blocks, 294 frames
    "#]]
    .assert_eq(&rows.iter().map(line).collect::<String>());
}

/// A workload that reads.
const SHAPE: WorkloadShape =
    WorkloadShape { writes: false, record_bytes: 1000, program: false, gaps: false, batch: Some(1), slot_ns: None };

#[test]
fn a_slot_of_an_open_loop_has_room_for_some_requests_also_of_many_operations() {
    fn slot_ms(rate: u32, shape: fn(&Properties) -> WorkloadShape) -> u64 {
        let mut catalogue = catalogue::catalogue();
        catalogue.workloads[0].shape = shape;
        let text = SHORT.replace("ycsb = \"c\"", &format!("ycsb = \"c\"\n[load]\nrate = {rate}"));
        let experiment = tithe_model::parse::parse(&text, &catalogue, &catalogue::read).expect("an experiment");
        plan(experiment, &catalogue).expect("a plan").cells[0].slot_ns / 1_000_000
    }
    assert_eq!(slot_ms(10_000, |_| SHAPE), 250);
    // Ten requests of 1,000 rows are due in a second, and four in a slot.
    assert_eq!(slot_ms(10_000, |_| WorkloadShape { batch: Some(1000), ..SHAPE }), 400);
    // All of 1,000 records.
    assert_eq!(slot_ms(10_000, |_| WorkloadShape { batch: None, ..SHAPE }), 400);
    // Eight requests of five rows hold forty operations; the plan would refuse fewer.
    assert_eq!(slot_ms(50, |_| WorkloadShape { batch: Some(5), ..SHAPE }), 800);
}

#[test]
fn names_that_look_alike_stay_apart() {
    let workload = |name: &str| format!("[[workload]]\nycsb = \"c\"\nname = \"{name}\"\n");
    let workloads = ["C: reads", "c reads", "読", "../c"].map(workload).concat();
    let text = SHORT.replace("[[workload]]\nycsb = \"c\"\n", &workloads);
    let ids: Vec<String> = planned(&text).cells.into_iter().map(|cell| cell.id).collect();
    expect![[r#"
        [
            "c-reads",
            "c-reads-2",
            "cell",
            "c",
        ]
    "#]]
    .assert_debug_eq(&ids);
}

#[test]
fn more_arms_share_the_warm_up() {
    let arms: String = (0..18).map(|index| format!("[[arm]]\nname = \"copy {index}\"\n")).collect();
    let cell = &planned(&format!("{SHORT}{arms}[measure]\naa_arm = false\n")).cells[0];
    assert_eq!((cell.warmup_ns, cell.frames_max), (50_000_000, 30));
}

#[test]
fn outline_of_everything() {
    check_outline(
        FULL,
        expect![[r#"
            What TLS and the audit log of PostgreSQL cost
            PostgreSQL, 100,000 records, incompressible values, seed 1

            Arms
              plain  plain, the baseline
              tls    tls
              all    tls, pgaudit (catalogue = false, log = read,write), columns (share = 0.5)

            Cells
              cell            clients  load                       slot    frame  frames    starts
              c.in-memory     4        2,000/s, Poisson arrivals  250 ms  3 s    15 to 75  3
              c.on-disk       2        2,000/s, Poisson arrivals  250 ms  3 s    15 to 75  3
              mine.in-memory  4        2,000/s, Poisson arrivals  250 ms  3 s    15 to 75  3
              mine.on-disk    2        2,000/s, Poisson arrivals  250 ms  3 s    15 to 75  3

            A cell ends when net time per operation (processor time where net time is unknown) is known to ±1.00 %, or with its last frame.
            Measured load     at most 15 min
            Everything else   roughly 15 min: starting, loading, warming up, evidence, idle servers
            Starting          roughly 41 % of the time of cell mine.in-memory, more than 20 %: fewer starts or a larger budget leave more to the load
            Starting          roughly 41 % of the time of cell mine.on-disk, more than 20 %: fewer starts or a larger budget leave more to the load
            Disk              roughly 1.5 GB at a time
        "#]],
    );
}

#[test]
fn outline_of_attached_arms() {
    check_outline(
        &SHORT
            .replace("name = \"plain\"", "name = \"plain\"\nurl = \"postgres://u:hunter2@h/db\"")
            .replace("name = \"tls\"", "name = \"tls\"\nurl = \"postgres://u:hunter2@h/db\""),
        expect![[r#"
            TLS
            PostgreSQL, 1,000 records, YCSB's printable values, seed 1

            Arms
              plain  plain, the baseline, attached to postgres://u:***@h/db
              tls    tls, attached to postgres://u:***@h/db

            Cells
              cell  clients  load         slot   frame  frames     starts
              c     1        closed loop  20 ms  1 s    15 to 300  1

            A cell ends when net time per operation (processor time where net time is unknown) is known to ±1.00 %, or with its last frame.
            Measured load     at most 5 min
            Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
            Disk              roughly 5.0 MB at a time
        "#]],
    );
}

/// Tables of each arm share the server's cache, and are not equally in it at first.
#[test]
fn running_servers_that_are_written_to_are_warmed_up_for_a_part_of_the_budget() {
    let after_start = |ycsb: &str, budget: &str| {
        let text =
            with_arms(2, &format!("budget = \"{budget}\"")).replace("ycsb = \"c\"", &format!("ycsb = \"{ycsb}\""));
        let attached = |text: String, arm: &str| {
            let name = format!("name = \"{arm}\"");
            text.replace(&name, &format!("{name}\nurl = \"postgres://u@h/db\""))
        };
        planned(&attached(attached(text, "plain"), "tls")).cells[0].after_start
    };
    let until = |at_most_ns| WarmUp::UntilSteady { window_ns: 200_000_000, at_most_ns };
    assert_eq!(after_start("a", "10 min"), until(30_000_000_000));
    assert_eq!(after_start("a", "1 min"), until(15_000_000_000));
    assert_eq!(after_start("c", "10 min"), WarmUp::None);
}

/// The last lines of the outline of `SHORT` with `measure` in `[measure]`, from its times on.
fn check_starting(measure: &str, expected: Expect) {
    let text = outline(&planned(&with_arms(2, measure)), &catalogue::catalogue());
    let (_, times) = text.split_once("Measured load").expect("times");
    let lines = times.lines().skip(2).filter(|line| !line.starts_with("Disk"));
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

/// A server of this catalogue takes two seconds to start, and both arms take two thirds of 300 s for 50 starts.
#[test]
fn an_outline_names_cells_of_which_starting_takes_too_much() {
    check_starting("", expect![""]);
    check_starting("starts = 50", expect![""]);
    check_starting(
        "starts = 75",
        expect![
            "Starting          roughly 50 % of the time of cell c, more than 40 %: fewer starts or a larger budget leave more to the load"
        ],
    );
    check_starting(
        "epochs = 20",
        expect![
            "Starting          roughly 49 % of the time of cell c, more than 40 %: fewer starts or a larger budget leave more to the load"
        ],
    );
}

/// `SHORT` with arms added until it has `arms` of them, and `measure` in `[measure]`.
fn with_arms(arms: usize, measure: &str) -> String {
    let more: String = (2..arms).map(|index| format!("[[arm]]\nname = \"arm {index}\"\n")).collect();
    format!("{SHORT}{more}[measure]\n{measure}\n")
}

#[test]
fn what_is_not_measured_has_budget_enough() {
    for measure in ["budget = \"2 s\"", "budget = \"2 s\"\nepochs = 20", "budget = \"2 s\"\nslot = \"7 s\""] {
        let text = with_arms(3, measure);
        let refused = read_experiment(&text).expect_err("too little to be measured");
        assert!(refused[0].problem.contains("an interval needs"), "{refused:?}");
        let experiment =
            parse_unmeasured(&text, &catalogue::catalogue(), &catalogue::read).expect("enough to be checked");
        plan(experiment, &catalogue::catalogue()).expect("a plan");
    }
    let wrong = with_arms(2, "slot = \"1 us\"");
    assert!(parse_unmeasured(&wrong, &catalogue::catalogue(), &catalogue::read).is_err());
}

#[test]
fn operations_that_outlast_their_slots_count_as_load() {
    let plan = planned(SHORT);
    let (cell, arms) = (&plan.cells[0], plan.experiment.arms.len());
    let frame = Frame { slot_ns: cell.slot_ns, ..Frame::default() };
    let load_ns = |wall_ns: u64| {
        let slot =
            |block, arm, lane| Slot { block, arm, lane, wall_ns: wall_ns / u64::from(lane + 1), ..Slot::default() };
        let blocks = (0..cell.blocks).flat_map(|block| (0..arms as u32).map(move |arm| (block, arm)));
        let slots: Vec<Slot> = blocks.flat_map(|(block, arm)| [slot(block, arm, 0), slot(block, arm, 1)]).collect();
        cell.load_ns(&frame, &slots, arms)
    };
    let meant_ns = cell.frame_ns(arms);
    for percent in [0, 50, 100, 105, 110] {
        assert_eq!(load_ns(cell.slot_ns * percent / 100), meant_ns, "{percent}");
    }
    assert_eq!(load_ns(3 * cell.slot_ns), 3 * meant_ns);
    // Another program reports its own time, which is longer than its slice by starting and ending.
    let program = Cell { program: true, ..cell.clone() };
    let slot = Slot { block: cell.blocks - 1, wall_ns: 3 * meant_ns, ..Slot::default() };
    assert_eq!((program.load_ns(&frame, &[slot], arms), cell.load_ns(&frame, &[slot], arms)), (meant_ns, 3 * meant_ns));
    // Without slots the length is that of the plan, with longer ones than planned that of the frame.
    let longer = Frame { slot_ns: 2 * cell.slot_ns, ..frame.clone() };
    assert_eq!((cell.load_ns(&frame, &[], arms), cell.load_ns(&longer, &[], arms)), (meant_ns, 2 * meant_ns));
}

#[test]
fn connections_last_as_long_as_the_resources_say() {
    let text = SHORT.replace("[data]", "[load]\nreconnect_every = 10\n\n[data]");
    let resources = "\n[[resources]]\nname = \"ten\"\n\n[[resources]]\nname = \"one\"\nreconnect_every = 1\n";
    let plan = planned(&(text + resources));
    assert_eq!(plan.cells.iter().map(|cell| cell.reconnect_every).collect::<Vec<_>>(), [Some(10), Some(1)]);
    let outline = outline(&plan, &catalogue::catalogue());
    let loads: Vec<&str> = outline.lines().filter(|line| line.contains("reconnecting")).map(str::trim).collect();
    expect![[r#"
        c.ten  1        closed loop, reconnecting every 10  20 ms  1 s    15 to 150  24
        c.one  1        closed loop, reconnecting every 1   20 ms  1 s    15 to 150  24"#]]
    .assert_eq(&loads.join("\n"));
}

/// Epochs and starts of a cell of the embedded database of `catalogue`.
fn repetitions_embedded(catalogue: &Catalogue, ycsb: &str, measure: &str) -> (u32, Starts) {
    let text = SHORT.replace("\"postgres\"", "\"sqlite\"").replace("protections = [{ use = \"tls\" }]", "");
    let text = text.replace("[data]", &format!("[measure]\n{measure}\n[data]"));
    let experiment = read_experiment(&text.replace("ycsb = \"c\"", &format!("ycsb = \"{ycsb}\"")));
    let plan = plan(experiment.expect("an experiment"), catalogue).expect("a plan");
    (plan.cells[0].epochs, plan.cells[0].starts)
}

/// The process of an embedded database starts fast, but written data would have to be restored for each start.
#[test]
fn an_embedded_database_that_keeps_its_data_starts_anew_too() {
    let mut catalogue = catalogue::catalogue();
    let starts = |catalogue: &Catalogue, ycsb: &str| repetitions_embedded(catalogue, ycsb, "").1;
    assert_eq!((starts(&catalogue, "c"), starts(&catalogue, "a")), (Starts::Once, Starts::Once));
    catalogue.databases[0].entry.keeps_data = true;
    assert_eq!((starts(&catalogue, "c"), starts(&catalogue, "a")), (Starts::EveryFrame, Starts::Several(24)));
}

/// How a load lays out pages is chance, which all frames and starts on it share.
#[test]
fn every_load_is_one_start_where_data_are_loaded_anew() {
    let mut catalogue = catalogue::catalogue();
    (catalogue.databases[0].entry.keeps_data, catalogue.databases[0].copies_data) = (true, false);
    assert_eq!(repetitions_embedded(&catalogue, "a", ""), (8, Starts::Once));
    assert_eq!(
        repetitions_embedded(&catalogue, "a", "budget = \"1 min\""),
        (1, Starts::Several(10)),
        "two loads are too few"
    );
    assert_eq!(repetitions_embedded(&catalogue, "c", ""), (1, Starts::EveryFrame));
    assert_eq!(repetitions_embedded(&catalogue, "c", "epochs = 3"), (3, Starts::Once));
    assert_eq!(repetitions_embedded(&catalogue, "c", "epochs = 3\nstarts = 6"), (6, Starts::Once));
    assert_eq!(repetitions_embedded(&catalogue, "c", "starts = 6"), (1, Starts::Several(6)));
    catalogue.databases[0].copies_data = true;
    assert_eq!(repetitions_embedded(&catalogue, "a", ""), (1, Starts::Several(24)));
    assert_eq!(repetitions_embedded(&catalogue, "c", "epochs = 3"), (3, Starts::EveryFrame));
}

#[test]
fn servers_start_anew_for_each_frame_where_memory_holds_the_data() {
    let mut catalogue = catalogue::catalogue();
    for database in &mut catalogue.databases {
        (database.entry.restarts, database.entry.start_s) = (true, 0.1);
    }
    let plan = |text: &str, resources: &str| {
        let experiment = read_experiment(&format!("{text}[[resources]]\nname = \"some\"\n{resources}"));
        plan(experiment.expect("an experiment"), &catalogue).expect("a plan")
    };
    let sequential = SHORT.replace("[data]", "[measure]\ndesign = \"sequential\"\n[data]");
    assert_eq!(plan(&sequential, "").cells[0].starts, Starts::Once);
    assert_eq!(plan(&sequential, "cache = \"cold\"").cells[0].starts, Starts::EveryFrame);
    for (resources, anew) in [
        ("", true),
        ("memory = \"16 MiB\"", true),
        ("memory = \"1 MiB\"", false),
        ("data_per_memory = 0.4", true),
        ("data_per_memory = 0.5", true),
        ("data_per_memory = 1.5", false),
        ("data_per_memory = 1.5\ncache = \"cold\"", true),
    ] {
        assert_eq!(plan(SHORT, resources).cells[0].starts == Starts::EveryFrame, anew, "{resources}");
    }
}

#[test]
fn starts_of_a_reading_workload_take_no_more_than_the_load_pays_for() {
    let mut catalogue = catalogue::catalogue();
    let mut planned = |start_s: f64, budget: &str, resources: &str| {
        catalogue.databases.iter_mut().for_each(|it| (it.entry.restarts, it.entry.start_s) = (true, start_s));
        let budget = format!("[measure]\nbudget = \"{budget}\"\n[data]");
        let experiment = read_experiment(&format!("{}{resources}", SHORT.replace("[data]", &budget)));
        let plan = plan(experiment.expect("an experiment"), &catalogue).expect("a plan");
        (plan.cells[0].starts, starting_share(&plan, &catalogue, &plan.cells[0]) <= 0.4)
    };
    // Two arms whose servers take 5 s to start, for 80 s of the 120 s of load.
    assert_eq!(planned(2.5, "2 min", ""), (Starts::Several(16), true));
    assert_eq!(planned(0.1, "2 min", ""), (Starts::EveryFrame, true));
    // Eight in any case, and a start for each frame if caches have to be cold.
    assert_eq!(planned(2.5, "40 s", ""), (Starts::Several(8), false));
    assert_eq!(planned(2.5, "30 s", ""), (Starts::Several(8), false), "fifteen frames");
    let cold = "[[resources]]\nname = \"some\"\ncache = \"cold\"\n";
    assert_eq!(planned(2.5, "2 min", cold), (Starts::EveryFrame, false));
}

/// A server that its provider switches, by a file with these lines of `[measure]` and of `switch`.
fn switched(measure: &str, switch: &str) -> String {
    let arm = |name: &str| format!("[[arm]]\nname = \"{name}\"\nurl = \"postgres://user:secret@host/name\"\n");
    let head =
        SHORT.split("[[arm]]").next().unwrap_or_default().replace("[data]", &format!("[measure]\n{measure}\n[data]"));
    let switch = format!(
        "switch = {{ on = [\"aws\", \"rds\", \"on\"], off = [\"aws\", \"rds\", \"off\"], ready = \"SELECT true\"{switch} }}"
    );
    format!("{head}{}{}protections = [{{ use = \"pgaudit\" }}]\n{switch}\n", arm("plain"), arm("audit"))
}

#[test]
fn records_come_by_cell_and_with_what_the_reader_should_know() {
    const CELLS: [u32; 6] = [0, 0, 1, 3, 3, 3];
    let mut records = Records {
        run: "run".to_owned(),
        plan: planned(SHORT),
        machine: Machine::default(),
        cells: Vec::new(),
        frames: CELLS.map(|cell| Frame { cell, ..Frame::default() }).to_vec(),
        slots: CELLS.map(|cell| Slot { cell, ..Slot::default() }).to_vec(),
        findings: Vec::new(),
        events: Vec::new(),
        profile: Vec::new(),
        damage: vec!["a line is damaged".to_owned()],
    };
    for (cell, count) in [2, 1, 0, 3, 0].into_iter().enumerate() {
        let (frames, slots) = (records.frames_of(cell), records.slots_of(cell));
        assert_eq!((frames.len(), slots.len()), (count, count), "{cell}");
        assert!(frames.iter().all(|frame| frame.cell as usize == cell), "{cell}");
        assert!(slots.iter().all(|slot| slot.cell as usize == cell), "{cell}");
    }
    assert_eq!((records.tithe(), records.warnings()), ("", vec!["a line is damaged".to_owned()]));
    let started = |tithe: &str| Event::RunStarted { tithe: tithe.to_owned(), resumed: false };
    let warning = Event::Warning { message: "the disk is full".to_owned() };
    records.events = vec![started("0.1"), warning, started("0.2"), Event::CellStarted { cell: 0 }];
    assert_eq!(records.tithe(), "0.2", "the version that measured last");
    assert_eq!(records.warnings(), ["the disk is full", "a line is damaged"]);
    // A frame counts if it is valid and its threads were bound.
    let [invalid, free] = [true, false].map(|is_invalid| Frame {
        invalid: is_invalid.then(|| Invalid::Other("busy".to_owned())),
        free: !is_invalid,
        ..Frame::default()
    });
    assert_eq!([Frame::default(), invalid, free].map(|frame| frame.is_used()), [true, false, false]);
}

#[test]
fn an_arm_of_a_provider_and_an_option_that_nobody_gave_are_told_in_words() {
    let told = |text: &str, of: &str| {
        let outline = outline(&planned(text), &catalogue::catalogue());
        outline.lines().find(|line| line.trim_start().starts_with(of)).map(|line| line.trim().to_owned())
    };
    let unnamed = switched("", ", side = \"10 s\"").replace("protections = [{ use = \"pgaudit\" }]\n", "");
    let words = "audit  no protection is named, attached to postgres://user:***@host/name, switched by its provider";
    assert_eq!(told(&unnamed, "audit").as_deref(), Some(words));
    let empty = SHORT.replace("use = \"tls\"", "use = \"pgaudit\", log = \"\"");
    assert_eq!(told(&empty, "tls").as_deref(), Some("tls    pgaudit (catalogue = false)"));
}

#[test]
fn no_arm_of_a_sequential_design_is_warmed_up_in_the_time_of_another() {
    let mut catalogue = catalogue::catalogue();
    let after_start = |catalogue: &Catalogue, ycsb: &str, design: &str| {
        let text = with_arms(2, &format!("design = \"{design}\"")).replace("\"c\"", &format!("\"{ycsb}\""));
        plan(read_experiment(&text).expect("an experiment"), catalogue).expect("a plan").cells[0].after_start
    };
    assert_ne!(after_start(&catalogue, "a", "slices"), WarmUp::None);
    assert_eq!(after_start(&catalogue, "a", "sequential"), WarmUp::None);
    catalogue.databases[1].entry.compiles = true;
    assert_ne!(after_start(&catalogue, "c", "slices"), WarmUp::None);
    assert_eq!(after_start(&catalogue, "c", "sequential"), WarmUp::None);
}

#[test]
fn one_start_of_a_running_server_is_no_start_of_ours() {
    let attached = with_arms(2, "starts = 1").replace("name = \"", "url = \"postgres://u@h/db\"\nname = \"");
    assert_eq!(planned(&attached).cells[0].starts, Starts::Once);
}

/// What starts have taken and what is still left for starts are together what the load allows.
#[test]
fn starts_that_were_made_are_no_longer_left() {
    for warm_up in [WarmUp::None, WarmUp::Fixed { ns: 1 }] {
        let borne = warm_up.starts_borne(300.0, 5.0);
        assert!(borne > 10, "{warm_up:?}");
        for made in 0..=borne {
            let left = warm_up.starts_still_borne(300.0, 5.0, 5.0 * f64::from(made));
            assert_eq!(made + left, borne, "{warm_up:?}");
        }
        assert_eq!(warm_up.starts_still_borne(300.0, 5.0, 1000.0), 0, "{warm_up:?}");
    }
}

#[test]
fn short_slots_settle_for_a_quarter_and_frames_of_an_embedded_database_last_two_seconds_at_most() {
    let mut experiment = read_experiment(SHORT).expect("an experiment");
    for (slot_ms, settling_ns) in [(2.0, 500_000), (4.0, 1_000_000), (20.0, 1_000_000)] {
        experiment.measure.slot_ms = Some(slot_ms);
        let plan = plan(experiment.clone(), &catalogue::catalogue()).expect("a plan");
        assert_eq!(plan.cells[0].settling_ns, settling_ns, "{slot_ms} ms");
    }
    let blocks = |arms: usize| {
        let text = with_arms(arms, "aa_arm = false").replace("postgres", "sqlite");
        planned(&text.replace("use = \"tls\"", "use = \"columns\"")).cells[0].blocks
    };
    // Slots of 20 ms, half a second of each arm.
    assert_eq!([2, 4, 5, 10].map(blocks), [25, 25, 20, 10]);
}

#[test]
fn connections_are_those_of_the_cell_with_most_clients() {
    let plan = planned(&SHORT.replace("[data]", "[load]\nclients = [1, 5]\n[data]"));
    assert_eq!((plan.connections(), plan.cells.len()), (10, 3));
}

#[test]
fn the_spread_of_one_server_is_that_of_arms_that_share_it() {
    let attached = SHORT.replace("name = \"", "url = \"postgres://u@h/db\"\nname = \"");
    let (own, running) = (planned(SHORT), planned(&attached));
    let of_one_server = running.one_server_spread.as_deref().expect("it is known");
    assert!(!of_one_server.is_empty() && of_one_server != running.start_spread, "they are not alike");
    assert_eq!(running.spread_between_starts(true), of_one_server);
    assert_eq!(running.spread_between_starts(false), running.start_spread);
    assert_eq!([true, false].map(|shared| own.spread_between_starts(shared)), [&own.start_spread[..]; 2]);
}

/// That time is rounded up to five minutes, so there are many starts and sides here.
#[test]
fn the_time_besides_the_load_is_that_of_all_starts_frames_and_sides() {
    let besides = |plan: &Plan, catalogue: &Catalogue| {
        let outline = outline(plan, catalogue);
        let line = outline.lines().find_map(|line| line.strip_prefix("Everything else   roughly ")).unwrap_or_default();
        line.split_once(':').map(|(length, _)| length.to_owned())
    };
    let mut catalogue = catalogue::catalogue();
    catalogue.databases[1].entry.start_s = 15.0;
    let started = with_arms(2, "epochs = 20\nstarts = 100\nidle = \"30 s\"");
    let started = plan(read_experiment(&started).expect("an experiment"), &catalogue).expect("a plan");
    // 20 × 40.2 s for epochs, 80 × 30 s for further starts, 300 × 0.22 s for connecting and warming up in frames, 5 ×
    // 1.22 s for frames that bind nothing, 30 s for idle servers: the last two are more than the 30 s to 55 min.
    assert_eq!(besides(&started, &catalogue).as_deref(), Some("1 h"));
    let never_idle = with_arms(2, "epochs = 20\nstarts = 100\nidle = \"0 s\"\npin = false");
    let never_idle = plan(read_experiment(&never_idle).expect("an experiment"), &catalogue).expect("a plan");
    assert_eq!(besides(&never_idle, &catalogue).as_deref(), Some("55 min"));
    // 26.2 s for the epoch, 60 × 22 s for pairs of sides, 3600 × 0.22 s for frames.
    let switched = planned(&switched("budget = \"2 h\"", ""));
    assert_eq!(besides(&switched, &catalogue::catalogue()).as_deref(), Some("40 min"));
}
