//! What each single change of an experiment, or of what its database can do, changes in its plan.

use expect_test::expect;
use tithe_model::{
    catalogue::{Catalogue, DefaultValue, OptionEntry, OptionKind, ProtectionEntry, WorkloadShape},
    plan::{afford, head, idle_s, least_budget_s, outline, plan, starting_share},
};

use crate::{SHORT, catalogue, render};

/// Everything that follows from the experiment in `text`, a line each.
fn told(text: &str, catalogue: &Catalogue) -> Vec<String> {
    let mut experiment = match tithe_model::parse::parse(text, catalogue, &catalogue::read) {
        Ok(experiment) => experiment,
        Err(diagnostics) => return render(text, &diagnostics).lines().map(str::to_owned).collect(),
    };
    let mut lines = vec![format!("least budget {} s", least_budget_s(&experiment, catalogue))];
    let plan = plan(experiment.clone(), catalogue).expect("what was parsed can be planned");
    for (number, cell) in plan.cells.iter().enumerate() {
        let fields = serde_json::to_value(cell).expect("JSON");
        for (name, value) in fields.as_object().expect("fields").iter().filter(|(name, _)| *name != "seed") {
            lines.push(format!("{number} {name}: {value}"));
        }
        let arms = plan.experiment.arms.len();
        let limits = plan.experiment.resources[cell.resources].limits;
        lines.push(format!(
            "{number} budget {} s, idle {} s, starting {:.3}, one arm a frame: {}, confined: {}",
            cell.budget_ns(arms) as f64 / 1e9,
            idle_s(&plan, cell),
            starting_share(&plan, catalogue, cell),
            cell.design.has_one_arm_a_frame(),
            limits.confine(),
        ));
    }
    lines.push(format!("spreads {} {:?}", plan.start_spread.len(), plan.one_server_spread.as_ref().map(Vec::len)));
    // The first line of both is the title.
    lines.extend(head(&plan, catalogue).lines().skip(1).map(str::to_owned));
    lines.extend(outline(&plan, catalogue).lines().skip(1).map(|line| line.trim_end().to_owned()));
    experiment.measure.budget_s = 1.0;
    afford(&mut experiment, catalogue);
    lines.push(format!("afforded {} s", experiment.measure.budget_s));
    lines
}

/// A change of the catalogue.
type Build = fn(&mut Catalogue);

const NOTHING: Build = |_| {};

/// The second database of the catalogue, which is that of [`SHORT`].
macro_rules! with {
    ($($field:ident = $value:expr),+) => {
        |catalogue: &mut Catalogue| { $(catalogue.databases[1].entry.$field = $value;)+ }
    };
}

static ROTATING: ProtectionEntry = ProtectionEntry {
    id: "rotating",
    title: "rotating",
    rotated_by: Some("rotate"),
    options: &[OptionEntry {
        name: "rotate",
        kind: OptionKind::Flag,
        default: Some(DefaultValue::Flag(false)),
        help: "Change the key.",
    }],
    ..ProtectionEntry::BARE
};

const SHAPE: WorkloadShape =
    WorkloadShape { writes: false, record_bytes: 1000, program: true, gaps: false, batch: Some(1), slot_ns: None };

#[test]
fn each_change_of_an_experiment_shows_in_its_plan() {
    let measure = |lines: &str| SHORT.replace("[data]", &format!("[measure]\n{lines}\n[data]"));
    let load = |lines: &str| SHORT.replace("[data]", &format!("[load]\n{lines}\n[data]"));
    let resources = |lines: &str| format!("{SHORT}[[resources]]\nname = \"some\"\n{lines}\n");
    let writes = || SHORT.replace("ycsb = \"c\"", "ycsb = \"a\"");
    let embedded = || SHORT.replace("postgres", "sqlite").replace("\"tls\" }", "\"columns\" }");
    let arms = |lines: &str| format!("{SHORT}[[arm]]\nname = \"more\"\n{lines}\n");
    let rotating = |is: bool| SHORT.replace("{ use = \"tls\" }", &format!("{{ use = \"rotating\", rotate = {is} }}"));
    let attached = || SHORT.replace("name = \"", "url = \"postgres://h/db\"\nname = \"");
    let changes: Vec<(&str, String, Build)> = vec![
        ("two clients", load("clients = 2"), NOTHING),
        ("a hundred clients", load("clients = 100"), NOTHING),
        ("a rate", load("rate = 1000"), NOTHING),
        ("a low rate of two clients", load("rate = 160\nclients = 2\narrivals = \"poisson\""), NOTHING),
        ("a rate that a slot just fills", load("rate = 160"), NOTHING),
        ("new connections", load("reconnect_every = 5"), NOTHING),
        ("an address of this machine", load("listen = \"127.0.0.1\""), NOTHING),
        ("an address of a network", load("listen = \"192.0.2.1\""), NOTHING),
        ("a sweep", load("clients = [1, 4]"), NOTHING),
        ("writes", writes(), NOTHING),
        ("writes with a warm-up", writes().replace("[data]", "[measure]\nwarmup = \"2 s\"\n[data]"), NOTHING),
        ("writes over an hour", writes().replace("[data]", "[measure]\nbudget = \"60 min\"\n[data]"), NOTHING),
        ("writes, by a slow server", writes(), with!(start_s = 8.0)),
        ("writes of a server that loses its data", writes(), with!(keeps_data = false)),
        ("an embedded database", embedded(), NOTHING),
        ("an embedded database that starts again", embedded(), |catalogue| {
            catalogue.databases[0].entry.keeps_data = true;
        }),
        ("writes to an embedded database", embedded().replace("ycsb = \"c\"", "ycsb = \"a\""), NOTHING),
        ("a server that compiles", SHORT.to_owned(), with!(compiles = true)),
        ("a server that compiles, over 15 minutes", measure("budget = \"15 min\""), with!(compiles = true)),
        ("a server that restarts at once", SHORT.to_owned(), with!(restarts = true, start_s = 0.1)),
        ("a server that restarts slowly", SHORT.to_owned(), with!(restarts = true, start_s = 5.0)),
        ("a server that loses its data", SHORT.to_owned(), with!(keeps_data = false)),
        ("a server that starts slowly", SHORT.to_owned(), with!(start_s = 15.0)),
        ("a server that starts very slowly", SHORT.to_owned(), with!(start_s = 60.0)),
        ("simulated", SHORT.to_owned(), with!(simulated = true)),
        ("data that are loaded each time", SHORT.to_owned(), |catalogue| catalogue.databases[1].copies_data = false),
        ("another program", SHORT.to_owned(), |catalogue| catalogue.workloads[0].shape = |_| SHAPE),
        ("another program from cold caches", resources("cache = \"cold\""), |catalogue| {
            catalogue.workloads[0].shape = |_| SHAPE;
        }),
        ("another program in a duet", measure("design = \"duet\""), |catalogue| {
            catalogue.workloads[0].shape = |_| SHAPE;
        }),
        ("another program in parts of a second", measure("slot = \"1500 ms\""), |catalogue| {
            catalogue.workloads[0].shape = |_| SHAPE;
        }),
        ("a workload that needs long slots", SHORT.to_owned(), |catalogue| {
            catalogue.workloads[0].shape = |_| WorkloadShape { program: false, slot_ns: Some(90_000_000), ..SHAPE };
        }),
        ("clients that pause", SHORT.to_owned(), |catalogue| {
            catalogue.workloads[0].shape = |_| WorkloadShape { program: false, gaps: true, ..SHAPE };
        }),
        ("data of its own", SHORT.to_owned(), |catalogue| {
            catalogue.workloads[0].shape = |_| WorkloadShape { program: false, record_bytes: 0, ..SHAPE };
        }),
        ("a key that is rotated", rotating(true), |catalogue| catalogue.databases[1].protections.push(&ROTATING)),
        ("a key that could be", rotating(false), |catalogue| catalogue.databases[1].protections.push(&ROTATING)),
        ("a duet", measure("design = \"duet\""), NOTHING),
        ("slices", measure("design = \"slices\""), NOTHING),
        ("sequential", measure("design = \"sequential\""), NOTHING),
        ("sequential, several starts", measure("design = \"sequential\"\nstarts = 3"), NOTHING),
        ("one start", measure("starts = 1"), NOTHING),
        ("six starts", measure("starts = 6"), NOTHING),
        ("six starts of a server that loses its data", measure("starts = 6"), with!(keeps_data = false)),
        ("three epochs", measure("epochs = 3"), NOTHING),
        ("three epochs and five starts", measure("epochs = 3\nstarts = 5"), NOTHING),
        ("a short slot", measure("slot = \"5 ms\""), NOTHING),
        ("a long slot", measure("slot = \"2 s\""), NOTHING),
        ("a minute", measure("budget = \"1 min\""), NOTHING),
        ("99 seconds", measure("budget = \"99 s\""), NOTHING),
        ("299 seconds", measure("budget = \"299 s\""), NOTHING),
        ("an hour", measure("budget = \"60 min\""), NOTHING),
        ("too short", measure("budget = \"12 s\""), NOTHING),
        ("half a percent", measure("precision = \"0.5%\""), NOTHING),
        ("until decided", measure("until_decided = true"), NOTHING),
        ("a profile", measure("profile = true"), NOTHING),
        ("nothing pinned", measure("pin = false"), NOTHING),
        ("idle for 30 s", measure("idle = \"30 s\""), NOTHING),
        ("never idle", measure("idle = \"0 s\""), NOTHING),
        ("wall time", measure("primary = \"time\""), NOTHING),
        ("processor time", measure("primary = \"cpu\""), NOTHING),
        ("processor time of clients", measure("primary = \"client-cpu\""), NOTHING),
        ("processor time of servers", measure("primary = \"server-cpu\""), NOTHING),
        ("an A/A arm", measure("aa_arm = true"), NOTHING),
        ("another seed", measure("seed = 7"), NOTHING),
        ("values that cannot be compressed", SHORT.replace("1000", "1000\nvalues = \"incompressible\""), NOTHING),
        ("more records", SHORT.replace("1000", "1_000_000"), NOTHING),
        ("an arm of settings", arms("settings = { wal_compression = \"on\" }"), NOTHING),
        ("an arm of nothing", arms(""), NOTHING),
        (
            "an arm of statements",
            attached()
                + "[[arm]]\nname = \"more\"\nurl = \"postgres://h/db\"\non = [\"SET a = 1\"]\noff = [\"RESET a\"]\n",
            NOTHING,
        ),
        ("attached", attached(), NOTHING),
        ("attached, with starts", attached().replace("[data]", "[measure]\nstarts = 3\n[data]"), NOTHING),
        (
            "an observer",
            attached().replace("url = ", "observer = { name = \"db1\", data = [\"/data\"] }\nurl = "),
            NOTHING,
        ),
        ("processors", resources("cpus = 2"), NOTHING),
        ("memory for all data", resources("memory = \"16 MiB\""), NOTHING),
        ("memory that does not hold the data", resources("memory = \"1 MiB\""), NOTHING),
        ("cold caches", resources("cache = \"cold\""), with!(restarts = true)),
        ("two sets of resources", resources("cpus = 1\n[[resources]]\nname = \"two\"\ncpus = 2"), NOTHING),
        (
            "two workloads",
            SHORT.replace("[[arm]]\nname = \"plain\"", "[[workload]]\nycsb = \"a\"\n[[arm]]\nname = \"plain\""),
            NOTHING,
        ),
    ];
    let usual = told(SHORT, &catalogue::catalogue());
    let mut text = String::new();
    for (name, changed, build) in changes {
        let mut catalogue = catalogue::catalogue();
        build(&mut catalogue);
        text += &format!("{name}\n");
        let lines = told(&changed, &catalogue);
        lines.iter().filter(|line| !usual.contains(line)).for_each(|line| text += &format!("  {line}\n"));
    }
    expect![[r#"
        two clients
          0 clients: 2
            load  workload c, 1,000 records, 2 clients
            c     2        closed loop  20 ms  1 s    15 to 300  24
        a hundred clients
          0 clients: 100
            load  workload c, 1,000 records, 100 clients
            time  at most 5 min of load, roughly 20 min in all
            c     100      closed loop  20 ms  1 s    15 to 300  24
          Everything else   roughly 15 min: starting, loading, warming up, evidence, idle servers
        a rate
          least budget 60 s
          0 arrivals: {"even":1000.0}
          0 blocks: 8
          0 frames_max: 75
          0 free_frames: 0
          0 slot_ns: 250000000
            time  at most 5 min of load, roughly 8 min in all
            cell  clients  load                    slot    frame  frames    starts
            c     1        1,000/s, even arrivals  250 ms  4 s    15 to 75  24
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          afforded 60.000000060000005 s
        a low rate of two clients
          least budget 60 s
          0 arrivals: {"poisson":160.0}
          0 blocks: 4
          0 clients: 2
          0 frames_max: 75
          0 free_frames: 0
          0 slot_ns: 500000000
            load  workload c, 1,000 records, 2 clients
            time  at most 5 min of load, roughly 8 min in all
            cell  clients  load                     slot    frame  frames    starts
            c     2        160/s, Poisson arrivals  500 ms  4 s    15 to 75  24
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          afforded 60.000000060000005 s
        a rate that a slot just fills
          least budget 60 s
          0 arrivals: {"even":160.0}
          0 blocks: 8
          0 frames_max: 75
          0 free_frames: 0
          0 slot_ns: 250000000
            time  at most 5 min of load, roughly 8 min in all
            cell  clients  load                  slot    frame  frames    starts
            c     1        160/s, even arrivals  250 ms  4 s    15 to 75  24
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          afforded 60.000000060000005 s
        new connections
          0 reconnect_every: 5
            cell  clients  load                               slot   frame  frames     starts
            c     1        closed loop, reconnecting every 5  20 ms  1 s    15 to 300  24
        an address of this machine
          servers listen on 127.0.0.1
        an address of a network
          servers listen on 192.0.2.1, where other machines reach them: every arm asks for a password
        a sweep
          least budget 90 s
          0 frames_max: 100
          0 id: "c.clients-1"
          0 starts: {"several":16}
          0 budget 100 s, idle 5 s, starting 0.390, one arm a frame: false, confined: false
          1 after_start: "none"
          1 arrivals: "closed"
          1 blocks: 25
          1 clients: 4
          1 design: "interleaved"
          1 epochs: 1
          1 frames_max: 100
          1 free_frames: 5
          1 id: "c.clients-4"
          1 pinned: true
          1 program: false
          1 resources: 1
          1 settling_ns: 1000000
          1 slot_ns: 20000000
          1 starts: {"several":16}
          1 warmup_ns: 100000000
          1 workload: 0
          1 budget 100 s, idle 5 s, starting 0.390, one arm a frame: false, confined: false
          2 after_start: "none"
          2 arrivals: {"of-saturation":0.7}
          2 blocks: 4
          2 clients: 4
          2 design: "interleaved"
          2 epochs: 1
          2 frames_max: 50
          2 free_frames: 0
          2 id: "c.70-of-saturation"
          2 pinned: true
          2 program: false
          2 resources: 2
          2 settling_ns: 1000000
          2 slot_ns: 250000000
          2 starts: {"several":16}
          2 warmup_ns: 100000000
          2 workload: 0
          2 budget 100 s, idle 5 s, starting 0.390, one arm a frame: false, confined: false
            load  3 cells (c.clients-1, c.clients-4, c.70-of-saturation), 1,000 records, 1 and 4 clients
            time  at most 5 min of load, roughly 15 min in all
            cell                clients  load                                  slot    frame  frames     starts
            c.clients-1         1        closed loop                           20 ms   1 s    15 to 100  16
            c.clients-4         4        closed loop                           20 ms   1 s    15 to 100  16
            c.70-of-saturation  4        70 % of saturation, Poisson arrivals  250 ms  2 s    15 to 50   16
          Everything else   roughly 6 min: starting, loading, warming up, evidence, idle servers
          afforded 90.00000009000001 s
        writes
          least budget 60 s
          0 after_start: {"until-steady":{"at_most_ns":4800000000,"window_ns":200000000}}
          0 blocks: 20
          0 frames_max: 75
          0 id: "a"
          0 slot_ns: 100000000
          0 starts: {"several":13}
          0 budget 300 s, idle 15 s, starting 0.195, one arm a frame: false, confined: false
            load  workload a, 1,000 records, 1 client
            time  at most 5 min of load, roughly 8 min in all
            cell  clients  load         slot    frame  frames    starts
            a     1        closed loop  100 ms  4 s    15 to 75  13
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          afforded 24.000000024000002 s
        writes with a warm-up
          least budget 60 s
          0 after_start: {"fixed":{"ns":2000000000}}
          0 blocks: 20
          0 frames_max: 75
          0 id: "a"
          0 slot_ns: 100000000
          0 starts: {"several":9}
          0 budget 300 s, idle 15 s, starting 0.194, one arm a frame: false, confined: false
            load  workload a, 1,000 records, 1 client
            time  at most 5 min of load, roughly 8 min in all
            cell  clients  load         slot    frame  frames    starts
            a     1        closed loop  100 ms  4 s    15 to 75  9
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          afforded 24.000000024000002 s
        writes over an hour
          least budget 60 s
          0 after_start: {"until-steady":{"at_most_ns":4800000000,"window_ns":200000000}}
          0 blocks: 20
          0 frames_max: 900
          0 id: "a"
          0 slot_ns: 100000000
          0 budget 3600 s, idle 60 s, starting 0.036, one arm a frame: false, confined: false
            load  workload a, 1,000 records, 1 client
            time  at most 1 h of load, roughly 1 h 10 min in all
            cell  clients  load         slot    frame  frames     starts
            a     1        closed loop  100 ms  4 s    15 to 900  24
          Measured load     at most 1 h
          Everything else   roughly 8 min: starting, loading, warming up, evidence, idle servers
          afforded 24.000000024000002 s
        writes, by a slow server
          least budget 60 s
          0 after_start: {"until-steady":{"at_most_ns":4800000000,"window_ns":200000000}}
          0 blocks: 20
          0 frames_max: 75
          0 id: "a"
          0 slot_ns: 100000000
          0 starts: {"several":8}
          0 budget 300 s, idle 15 s, starting 0.319, one arm a frame: false, confined: false
            load  workload a, 1,000 records, 1 client
            cell  clients  load         slot    frame  frames    starts
            a     1        closed loop  100 ms  4 s    15 to 75  8
          Starting          roughly 32 % of the time of cell a, more than 20 %: fewer starts or a larger budget leave more to the load
          afforded 24.000000024000002 s
        writes of a server that loses its data
          least budget 64 s
          0 after_start: {"until-steady":{"at_most_ns":4800000000,"window_ns":200000000}}
          0 blocks: 20
          0 epochs: 8
          0 frames_max: 72
          0 id: "a"
          0 slot_ns: 100000000
          0 starts: "once"
          0 budget 288 s, idle 15 s, starting 0.305, one arm a frame: false, confined: false
            load  workload a, 1,000 records, 1 client
            time  at most 4 min 48 s of load, roughly 8 min in all
            cell  clients  load         slot    frame  frames    starts
            a     1        closed loop  100 ms  4 s    15 to 72  8
          Measured load     at most 4 min 48 s
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          Starting          roughly 31 % of the time of cell a, more than 20 %: fewer starts or a larger budget leave more to the load
          afforded 24.000000024000002 s
        an embedded database
          0 free_frames: 0
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
          spreads 4 None
            arms  plain, tls on SQLite
            time  at most 5 min of load, roughly 7 min in all
          SQLite, 1,000 records, YCSB's printable values, seed 1
            tls    columns (share = 1)
            c     1        closed loop  20 ms  1 s    15 to 300  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence
        an embedded database that starts again
          0 free_frames: 0
          0 starts: "every-frame"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
          spreads 4 None
            arms  plain, tls on SQLite
            time  at most 5 min of load, roughly 7 min in all
          SQLite, 1,000 records, YCSB's printable values, seed 1
            tls    columns (share = 1)
            c     1        closed loop  20 ms  1 s    15 to 300  each frame
          Everything else   roughly 2 min: starting, loading, warming up, evidence
        writes to an embedded database
          0 blocks: 10
          0 free_frames: 0
          0 id: "a"
          0 slot_ns: 50000000
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
          spreads 4 None
            arms  plain, tls on SQLite
            load  workload a, 1,000 records, 1 client
            time  at most 5 min of load, roughly 7 min in all
          SQLite, 1,000 records, YCSB's printable values, seed 1
            tls    columns (share = 1)
            a     1        closed loop  50 ms  1 s    15 to 300  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence
        a server that compiles
          least budget 60 s
          0 after_start: {"until-steady":{"at_most_ns":120000000000,"window_ns":1000000000}}
          0 blocks: 100
          0 frames_max: 75
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 7 min in all
            cell  clients  load         slot   frame  frames    starts
            c     1        closed loop  20 ms  4 s    15 to 75  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
        a server that compiles, over 15 minutes
          least budget 60 s
          0 after_start: {"until-steady":{"at_most_ns":120000000000,"window_ns":1000000000}}
          0 blocks: 100
          0 frames_max: 225
          0 starts: {"several":6}
          0 budget 900 s, idle 45 s, starting 0.227, one arm a frame: false, confined: false
            time  at most 15 min of load, roughly 25 min in all
            c     1        closed loop  20 ms  4 s    15 to 225  6
          Measured load     at most 15 min
          Everything else   roughly 7 min: starting, loading, warming up, evidence, idle servers
          Starting          roughly 23 % of the time of cell c, more than 20 %: fewer starts or a larger budget leave more to the load
        a server that restarts at once
          least budget 30 s
          0 blocks: 50
          0 frames_max: 150
          0 starts: "every-frame"
          0 budget 300 s, idle 15 s, starting 0.091, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 7 min in all
            c     1        closed loop  20 ms  2 s    15 to 150  each frame
          Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
          afforded 30.000000030000002 s
        a server that restarts slowly
          least budget 30 s
          0 blocks: 50
          0 frames_max: 150
          0 starts: {"several":20}
          0 budget 300 s, idle 15 s, starting 0.400, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 10 min in all
            c     1        closed loop  20 ms  2 s    15 to 150  20
          Everything else   roughly 5 min: starting, loading, warming up, evidence, idle servers
          afforded 30.000000030000002 s
        a server that loses its data
          least budget 16 s
          0 epochs: 8
          0 frames_max: 296
          0 starts: "once"
          0 budget 296 s, idle 15 s, starting 0.277, one arm a frame: false, confined: false
            time  at most 4 min 56 s of load, roughly 9 min in all
            c     1        closed loop  20 ms  1 s    15 to 296  8
          Measured load     at most 4 min 56 s
        a server that starts slowly
          0 starts: {"several":8}
          0 budget 300 s, idle 15 s, starting 0.444, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 15 min in all
            c     1        closed loop  20 ms  1 s    15 to 300  8
          Everything else   roughly 6 min: starting, loading, warming up, evidence, idle servers
          Starting          roughly 44 % of the time of cell c, more than 40 %: fewer starts or a larger budget leave more to the load
        a server that starts very slowly
          0 starts: {"several":8}
          0 budget 300 s, idle 15 s, starting 0.762, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 25 min in all
            c     1        closed loop  20 ms  1 s    15 to 300  8
          Everything else   roughly 20 min: starting, loading, warming up, evidence, idle servers
          Starting          roughly 76 % of the time of cell c, more than 40 %: fewer starts or a larger budget leave more to the load
        simulated
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
          spreads 0 None
            time  at most 5 min of load, roughly 7 min in all
            c     1        closed loop  20 ms  1 s    15 to 300  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence
        data that are loaded each time
          Disk              roughly 5.0 MB at a time
        another program
          least budget 90 s
          0 blocks: 1
          0 design: "slices"
          0 frames_max: 50
          0 free_frames: 0
          0 pinned: false
          0 program: true
          0 settling_ns: 0
          0 slot_ns: 3000000000
          0 starts: "once"
          0 warmup_ns: 0
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 6 min in all
            cell  clients  load                                    slot  frame  frames    starts
            c     1        closed loop, slices of another program  3 s   6 s    15 to 50  1
          A cell ends when processor time per operation is known to ±1.00 %, or with its last frame.
          Everything else   roughly 40 s: starting, loading, warming up, evidence, idle servers
          Disk              roughly 5.0 MB at a time
          afforded 90.00000009000001 s
        another program from cold caches
          least budget 90 s
          0 blocks: 1
          0 design: "slices"
          0 frames_max: 50
          0 free_frames: 0
          0 id: "c.some"
          0 pinned: false
          0 program: true
          0 settling_ns: 0
          0 slot_ns: 3000000000
          0 starts: "every-frame"
          0 warmup_ns: 0
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
            load  workload c.some, 1,000 records, 1 client
            time  at most 5 min of load, roughly 15 min in all
            cell    clients  load                                    slot  frame  frames    starts
            c.some  1        closed loop, slices of another program  3 s   6 s    15 to 50  each frame
          A cell ends when processor time per operation is known to ±1.00 %, or with its last frame.
          Everything else   roughly 6 min: starting, loading, warming up, evidence, idle servers
          Disk              roughly 5.0 MB at a time
          afforded 90.00000009000001 s
        another program in a duet
          4:1 a budget of 5 min buys 6 frames of cell `c`, and an interval needs 15 (write at least `budget = "12 min"` in `[measure]`, or measure fewer arms, workloads or resources)
          5:10 the load of cell `c` comes from another program, which cannot change arms (leave `design` out: other programs' load is measured in slices)
        another program in parts of a second
          5:8 the load of cell `c` comes from another program, which cannot run for 1.5 s (write whole seconds, for example `slot = "3 s"`, or leave `slot` out)
        a workload that needs long slots
          least budget 21.6 s
          0 blocks: 8
          0 frames_max: 208
          0 slot_ns: 90000000
          0 budget 299.52 s, idle 15 s, starting 0.243, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 8 min in all
            c     1        closed loop  90 ms  1.4 s  15 to 208  24
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          afforded 21.600000021600003 s
        clients that pause
          0 gaps: true
        data of its own
            load  workload c, the workload's own data, 1 client
          PostgreSQL, the workload's own data, seed 1
        a key that is rotated
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 7 min in all
            tls    rotating (rotate = true)
            c     1        closed loop  20 ms  1 s    15 to 300  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
        a key that could be
            tls    rotating (rotate = false)
        a duet
          0 design: "duet"
          0 free_frames: 0
        slices
          least budget 30 s
          0 blocks: 1
          0 design: "slices"
          0 frames_max: 150
          0 free_frames: 0
          0 slot_ns: 1000000000
            time  at most 5 min of load, roughly 8 min in all
            cell  clients  load         slot  frame  frames     starts
            c     1        closed loop  1 s   2 s    15 to 150  24
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          afforded 30.000000030000002 s
        sequential
          least budget 30 s
          0 blocks: 1
          0 design: "sequential"
          0 frames_max: 150
          0 free_frames: 0
          0 slot_ns: 1000000000
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: true, confined: false
            time  at most 5 min of load, roughly 7 min in all
            cell  clients  load         slot  frame  frames     starts
            c     1        closed loop  1 s   2 s    15 to 150  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
          afforded 30.000000030000002 s
        sequential, several starts
          6:10 the servers of cell `c` cannot be started 3 times (leave `starts` out: Tithe starts the servers that it launches itself, and not between the slices of another program or the stretches of a sequential design)
        one start
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 7 min in all
            c     1        closed loop  20 ms  1 s    15 to 300  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
        six starts
          0 starts: {"several":6}
          0 budget 300 s, idle 15 s, starting 0.074, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 8 min in all
            c     1        closed loop  20 ms  1 s    15 to 300  6
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
        six starts of a server that loses its data
          least budget 18 s
          0 epochs: 6
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.221, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 8 min in all
            c     1        closed loop  20 ms  1 s    15 to 300  6
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
          afforded 18.000000018 s
        three epochs
          0 epochs: 3
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.124, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 8 min in all
            c     1        closed loop  20 ms  1 s    15 to 300  3
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
        three epochs and five starts
          0 epochs: 3
          0 starts: {"several":5}
          0 budget 300 s, idle 15 s, starting 0.154, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 8 min in all
            c     1        closed loop  20 ms  1 s    15 to 300  6
          Everything else   roughly 3 min: starting, loading, warming up, evidence, idle servers
        a short slot
          0 blocks: 100
          0 slot_ns: 5000000
            cell  clients  load         slot  frame  frames     starts
            c     1        closed loop  5 ms  1 s    15 to 300  24
        a long slot
          4:1 a budget of 5 min buys 9 frames of cell `c`, and an interval needs 15 (write at least `budget = "8 min"` in `[measure]`, or measure fewer arms, workloads or resources)
        a minute
          0 frames_max: 60
          0 starts: {"several":10}
          0 budget 60 s, idle 0 s, starting 0.400, one arm a frame: false, confined: false
            time  at most 60 s of load, roughly 3 min in all
            cell  clients  load         slot   frame  frames    starts
            c     1        closed loop  20 ms  1 s    15 to 60  10
          Measured load     at most 60 s
          Everything else   roughly 2 min: starting, loading, warming up, evidence
        99 seconds
          0 frames_max: 99
          0 starts: {"several":16}
          0 budget 99 s, idle 0 s, starting 0.393, one arm a frame: false, confined: false
            time  at most 99 s of load, roughly 4 min in all
            cell  clients  load         slot   frame  frames    starts
            c     1        closed loop  20 ms  1 s    15 to 99  16
          Measured load     at most 99 s
          Everything else   roughly 2 min: starting, loading, warming up, evidence
        299 seconds
          0 frames_max: 299
          0 budget 299 s, idle 14.950000000000001 s, starting 0.243, one arm a frame: false, confined: false
            time  at most 4 min 59 s of load, roughly 9 min in all
            c     1        closed loop  20 ms  1 s    15 to 299  24
          Measured load     at most 4 min 59 s
        an hour
          0 frames_max: 3600
          0 budget 3600 s, idle 60 s, starting 0.026, one arm a frame: false, confined: false
            time  at most 1 h of load, roughly 1 h 20 min in all
            cell  clients  load         slot   frame  frames      starts
            c     1        closed loop  20 ms  1 s    15 to 3600  24
          Measured load     at most 1 h
          Everything else   roughly 20 min: starting, loading, warming up, evidence, idle servers
        too short
          5:10 a budget of 12 s buys 12 frames of cell `c`, and an interval needs 15 (write at least `budget = "15 s"` in `[measure]`, or measure fewer arms, workloads or resources)
        half a percent
          A cell ends when net time per operation (processor time where net time is unknown) is known to ±0.50 %, or with its last frame.
        until decided
          0 budget 300 s, idle 0 s, starting 0.242, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 8 min in all
          A cell ends when net time per operation (processor time where net time is unknown) gives every arm an answer that is certain, or with its last frame.
          Everything else   roughly 3 min: starting, loading, warming up, evidence
        a profile
          Profile           40 frames between those of each cell, together roughly 40 s of load
        nothing pinned
          0 free_frames: 0
          0 pinned: false
        idle for 30 s
          0 budget 300 s, idle 30 s, starting 0.242, one arm a frame: false, confined: false
        never idle
          0 budget 300 s, idle 0 s, starting 0.242, one arm a frame: false, confined: false
            time  at most 5 min of load, roughly 8 min in all
          Everything else   roughly 3 min: starting, loading, warming up, evidence
        wall time
          A cell ends when time per operation is known to ±1.00 %, or with its last frame.
        processor time
          A cell ends when processor time per operation is known to ±1.00 %, or with its last frame.
        processor time of clients
          5:11 `primary` cannot be `client-cpu` (it is one of: `net`, `time`, `cpu`)
        processor time of servers
          5:11 `primary` cannot be `server-cpu` (it is one of: `net`, `time`, `cpu`)
        an A/A arm
          least budget 22.5 s
          0 frames_max: 200
          0 budget 300 s, idle 15 s, starting 0.324, one arm a frame: false, confined: false
            arms  plain, tls, A/A on PostgreSQL, started by Tithe
            time  at most 5 min of load, roughly 10 min in all
            A/A    the plain arm again, the negative control: its true cost is zero; 1/3 of the load (`aa_arm = false` leaves it out)
            c     1        closed loop  20 ms  1.5 s  15 to 200  24
          Everything else   roughly 5 min: starting, loading, warming up, evidence, idle servers
          Disk              roughly 15 MB at a time
          afforded 22.500000022500004 s
        another seed
          PostgreSQL, 1,000 records, YCSB's printable values, seed 7
        values that cannot be compressed
          PostgreSQL, 1,000 records, incompressible values, seed 1
        more records
            load  workload c, 1,000,000 records, 1 client
            time  at most 5 min of load, roughly 15 min in all
          PostgreSQL, 1,000,000 records, YCSB's printable values, seed 1
          Everything else   roughly 7 min: starting, loading, warming up, evidence, idle servers
          Disk              roughly 10 GB at a time
        an arm of settings
          least budget 22.5 s
          0 frames_max: 200
          0 budget 300 s, idle 15 s, starting 0.324, one arm a frame: false, confined: false
            arms  plain, tls, more on PostgreSQL, started by Tithe
            time  at most 5 min of load, roughly 10 min in all
            more   a setting: settings
            c     1        closed loop  20 ms  1.5 s  15 to 200  24
          Everything else   roughly 5 min: starting, loading, warming up, evidence, idle servers
          Disk              roughly 15 MB at a time
          afforded 22.500000022500004 s
        an arm of nothing
          least budget 22.5 s
          0 frames_max: 200
          0 budget 300 s, idle 15 s, starting 0.324, one arm a frame: false, confined: false
            arms  plain, tls, more on PostgreSQL, started by Tithe
            time  at most 5 min of load, roughly 10 min in all
            more   plain
            c     1        closed loop  20 ms  1.5 s  15 to 200  24
          Everything else   roughly 5 min: starting, loading, warming up, evidence, idle servers
          Disk              roughly 15 MB at a time
          afforded 22.500000022500004 s
        an arm of statements
          least budget 22.5 s
          0 frames_max: 200
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
          spreads 5 Some(1)
            arms  plain, tls, more on a running PostgreSQL
            time  at most 5 min of load, roughly 7 min in all
            plain  plain, the baseline, attached to postgres://h/db
            tls    tls, attached to postgres://h/db
            more   a setting, switched by statements, attached to postgres://h/db
            c     1        closed loop  20 ms  1.5 s  15 to 200  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
          Disk              roughly 7.5 MB at a time
          afforded 22.500000022500004 s
        attached
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
          spreads 5 Some(1)
            arms  plain, tls on a running PostgreSQL
            time  at most 5 min of load, roughly 7 min in all
            plain  plain, the baseline, attached to postgres://h/db
            tls    tls, attached to postgres://h/db
            c     1        closed loop  20 ms  1 s    15 to 300  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
          Disk              roughly 5.0 MB at a time
        attached, with starts
          5:10 the servers of cell `c` cannot be started 3 times (leave `starts` out: Tithe starts the servers that it launches itself, and not between the slices of another program or the stretches of a sequential design)
        an observer
          0 starts: "once"
          0 budget 300 s, idle 15 s, starting 0.000, one arm a frame: false, confined: false
          spreads 5 Some(1)
            arms  plain, tls on a running PostgreSQL
            time  at most 5 min of load, roughly 7 min in all
            plain  plain, the baseline, attached to postgres://h/db
            tls    tls, attached to postgres://h/db
            c     1        closed loop  20 ms  1 s    15 to 300  1
          Everything else   roughly 2 min: starting, loading, warming up, evidence, idle servers
          Observer          db1, on the machine of plain, tls
          Disk              roughly 5.0 MB at a time
        processors
          0 id: "c.some"
          0 budget 300 s, idle 15 s, starting 0.242, one arm a frame: false, confined: true
            load  workload c.some, 1,000 records, 1 client
            cell    clients  load         slot   frame  frames     starts
            c.some  1        closed loop  20 ms  1 s    15 to 300  24
        memory for all data
          0 id: "c.some"
          0 budget 300 s, idle 15 s, starting 0.242, one arm a frame: false, confined: true
            load  workload c.some, 1,000 records, 1 client
            cell    clients  load         slot   frame  frames     starts
            c.some  1        closed loop  20 ms  1 s    15 to 300  24
        memory that does not hold the data
          least budget 16 s
          0 epochs: 8
          0 frames_max: 296
          0 id: "c.some"
          0 starts: "once"
          0 budget 296 s, idle 15 s, starting 0.277, one arm a frame: false, confined: true
            load  workload c.some, 1,000 records, 1 client
            time  at most 4 min 56 s of load, roughly 9 min in all
            cell    clients  load         slot   frame  frames     starts
            c.some  1        closed loop  20 ms  1 s    15 to 296  8
          Measured load     at most 4 min 56 s
        cold caches
          least budget 30 s
          0 blocks: 50
          0 frames_max: 150
          0 id: "c.some"
          0 starts: "every-frame"
          0 budget 300 s, idle 15 s, starting 0.667, one arm a frame: false, confined: false
            load  workload c.some, 1,000 records, 1 client
            time  at most 5 min of load, roughly 20 min in all
            cell    clients  load         slot   frame  frames     starts
            c.some  1        closed loop  20 ms  2 s    15 to 150  each frame
          Everything else   roughly 15 min: starting, loading, warming up, evidence, idle servers
          Starting          roughly 67 % of the time of cell c.some, more than 40 %: `starts = 8` leaves more to the load
          afforded 30.000000030000002 s
        two sets of resources
          least budget 30 s
          0 frames_max: 150
          0 id: "c.some"
          0 budget 150 s, idle 7.5 s, starting 0.390, one arm a frame: false, confined: true
          1 after_start: "none"
          1 arrivals: "closed"
          1 blocks: 25
          1 clients: 1
          1 design: "interleaved"
          1 epochs: 1
          1 frames_max: 150
          1 free_frames: 5
          1 id: "c.two"
          1 pinned: true
          1 program: false
          1 resources: 1
          1 settling_ns: 1000000
          1 slot_ns: 20000000
          1 starts: {"several":24}
          1 warmup_ns: 100000000
          1 workload: 0
          1 budget 150 s, idle 7.5 s, starting 0.390, one arm a frame: false, confined: true
            load  2 cells (c.some, c.two), 1,000 records, 1 client
            time  at most 5 min of load, roughly 15 min in all
            cell    clients  load         slot   frame  frames     starts
            c.some  1        closed loop  20 ms  1 s    15 to 150  24
            c.two   1        closed loop  20 ms  1 s    15 to 150  24
          Everything else   roughly 6 min: starting, loading, warming up, evidence, idle servers
          afforded 30.000000030000002 s
        two workloads
          least budget 60 s
          0 frames_max: 150
          0 budget 150 s, idle 15 s, starting 0.390, one arm a frame: false, confined: false
          1 after_start: {"until-steady":{"at_most_ns":4800000000,"window_ns":200000000}}
          1 arrivals: "closed"
          1 blocks: 10
          1 clients: 1
          1 design: "interleaved"
          1 epochs: 1
          1 frames_max: 75
          1 free_frames: 5
          1 id: "a"
          1 pinned: true
          1 program: false
          1 resources: 0
          1 settling_ns: 1000000
          1 slot_ns: 100000000
          1 starts: {"several":6}
          1 warmup_ns: 100000000
          1 workload: 1
          1 budget 150 s, idle 0 s, starting 0.183, one arm a frame: false, confined: false
            load  2 cells (c, a), 1,000 records, 1 client
            cell  clients  load         slot    frame  frames     starts
            c     1        closed loop  20 ms   1 s    15 to 150  24
            a     1        closed loop  100 ms  2 s    15 to 75   6
          afforded 48.000000048000004 s
    "#]].assert_eq(&text);
}
