//! The keys of an experiment except those of its arms.

use super::{
    Key,
    KeyDefault::{Required, Value, Words},
    Kind::{
        Address, Choice, Database, Either, Flag, List, Name, Number, Pairs, Percentage, Size, Table, Text, Time, Whole,
    },
    TableFormat,
    arm::{ARM, PUBLISHED},
};

/// The words for no value.
const NONE: super::KeyDefault = Words("none");

/// The top of the file.
pub const TOP: TableFormat = TableFormat {
    header: "",
    keys: &[
        Key::new("title", Name, Required, "the first line of reports", "\"What TLS costs\""),
        Key::new("database", Database, Required, "the database, by its name in `tithe ls`", "\"postgres\""),
        Key::new(
            "versions",
            List(&Name, 1),
            Words("the version that is found first"),
            "versions of the server by their first numbers, each a cell of its own. The report shows how costs differ \
             between them. Refused with a `url` and for embedded databases",
            "[\"15\", \"18\"]",
        ),
        Key::new(
            "settings",
            Pairs,
            NONE,
            "server settings common to all arms, by the database's own names",
            "{ shared_buffers = \"256MB\" }",
        ),
        Key::new(
            "encrypted_swap",
            Size,
            NONE,
            "encrypted swap of this size for the run, used before all other swap of the machine. Needs root and \
             dm-crypt. Refused with a `url`, and where all `resources` have a limit of `memory`, which keeps servers \
             from swapping",
            "\"512 MiB\"",
        ),
        Key::new(
            "data",
            Table(&DATA),
            Words("required, unless a property file has `recordcount` or all workloads have their own data"),
            "the data set: [`[data]`](#data)",
            "{ records = 100_000 }",
        ),
        Key::new(
            "load",
            Table(&LOAD),
            Words("one client, closed loop"),
            "how operations are offered: [`[load]`](#load)",
            "{ clients = 2 }",
        ),
        Key::new(
            "measure",
            Table(&MEASURE),
            Words("its defaults"),
            "how long and how precisely: [`[measure]`](#measure)",
            "{ budget = \"5 min\" }",
        ),
        Key::new(
            "resources",
            List(&Table(&RESOURCES), 0),
            Words("one without a name"),
            "conditions of the cells: [`[[resources]]`](#resources)",
            "[{ name = \"in memory\" }]",
        ),
        Key::new(
            "workload",
            List(&Table(&WORKLOAD), 1),
            Required,
            "what the clients do: [`[[workload]]`](#workload)",
            "[{ ycsb = \"c\" }]",
        ),
        Key::new(
            "arm",
            List(&Table(&ARM), 2),
            Required,
            "what is compared: [`[[arm]]`](#arm)",
            "[{ name = \"plain\" }]",
        ),
        Key::new(
            "published",
            List(&Table(&PUBLISHED), 0),
            NONE,
            "what others published about the same: [`[[published]]`](#published)",
            "[{ source = \"a report, 2016\", arm = \"tls\", figure = \"time\", change = \"+26%\" }]",
        ),
    ],
};

pub const DATA: TableFormat = TableFormat {
    header: "[data]",
    keys: &[
        Key::new(
            "records",
            Whole(1, u64::MAX),
            Words("required, unless a property file has `recordcount` or all workloads have their own data"),
            "records loaded into every arm before measuring",
            "100_000",
        ),
        Key::new(
            "values",
            Choice(&["ycsb", "incompressible"]),
            Value("\"ycsb\""),
            "the bytes of a value: YCSB's printable ones, which compress by about a quarter, or random ones. This \
             changes what compression and encryption cost, so reports name it",
            "\"ycsb\"",
        ),
    ],
};

/// Connections per arm, or load machines.
const CLIENTS: super::Kind = Whole(1, 1024);

/// Operations per connection.
const OPERATIONS: super::Kind = Whole(1, 1_000_000_000);

pub const LOAD: TableFormat = TableFormat {
    header: "[load]",
    keys: &[
        Key::new(
            "clients",
            Either(&[CLIENTS, List(&CLIENTS, 2), Choice(&["sweep"])]),
            Value("1"),
            "busy connections per arm. A list makes a cell for each number, and one more: the largest number, with 70 % \
             of the slowest arm's highest throughput as the rate. `\"sweep\"` is `[1, 2, 4, 8, 16, 32, 64]`",
            "2",
        ),
        Key::new(
            "rate",
            Number(0.001, 1e9),
            NONE,
            "operations per second over all clients: an open loop, in which operations start when they are due and \
             latency counts from then. Without it the loop is closed: a client starts an operation when the one before \
             ends",
            "2000",
        ),
        Key::new(
            "arrivals",
            Choice(&["even", "poisson"]),
            Value("\"even\""),
            "spacing of operations in an open loop; needs `rate`",
            "\"poisson\"",
        ),
        Key::new(
            "reconnect_every",
            OPERATIONS,
            NONE,
            "operations after which a client opens a new connection, within the measured time, recorded as the \
             operation `CONNECT`. Refused with `on`",
            "10",
        ),
        Key::new(
            "agents",
            CLIENTS,
            NONE,
            "load machines that offer the load in place of Tithe's own process, found by `--agents` \
             ([agents](docs/agents.md)). The clients are divided among them",
            "3",
        ),
        Key::new(
            "listen",
            Address,
            Value("\"127.0.0.1\""),
            "the address on which the servers of all arms listen. Unless it is a loopback address, other machines can \
             reach them, so every arm asks for a password by the product's default method, and the protections \
             `scram`, `password`, `requirepass` and `acl` are refused. Refused also for `0.0.0.0` and `::`, with `url`, \
             for embedded databases, MongoDB, Cassandra and OpenSearch",
            "\"10.0.0.5\"",
        ),
    ],
};

pub const MEASURE: TableFormat = TableFormat {
    header: "[measure]",
    keys: &[
        Key::new(
            "precision",
            Percentage("0.01%", "100%"),
            Value("\"1%\""),
            "half-width of the primary estimate's interval at which a cell is done",
            "\"1%\"",
        ),
        Key::new(
            "budget",
            Time("1 s", "720 h"),
            Value("\"5 min\""),
            "measured load of the whole experiment, shared evenly by the cells. Starting, loading and warming up come \
             on top",
            "\"5 min\"",
        ),
        Key::new(
            "seed",
            Whole(0, u64::MAX),
            Value("1"),
            "seed of every order and key stream, but not of secrets, nonces and ports",
            "1",
        ),
        Key::new(
            "margin",
            Percentage("0%", "100%"),
            Value("\"3%\""),
            "the largest cost that you accept as none",
            "\"3%\"",
        ),
        Key::new(
            "primary",
            Choice(&["net", "time", "cpu"]),
            Words("`\"net\"`; `\"time\"` with a [`switch`](#switch) or an encrypted volume"),
            "the estimate that decides: net time, wall-clock time or processor time per operation. Where net time is \
             unknown, processor time decides",
            "\"net\"",
        ),
        Key::new(
            "epochs",
            Whole(1, 20),
            Words("chosen by the plan"),
            "fresh set-ups of all arms per cell, each with its own evidence; the load is split evenly over them",
            "3",
        ),
        Key::new(
            "starts",
            Whole(1, 100),
            Words("chosen by the plan"),
            "starts of all servers per cell, within its epochs; the load is split evenly over them. With fewer than \
             four, known start-to-start variation widens the interval",
            "8",
        ),
        Key::new(
            "slot",
            Time("5 ms", "10 s"),
            Words("chosen by the plan"),
            "time on one arm before the next",
            "\"20 ms\"",
        ),
        Key::new(
            "warmup",
            Time("0 s", "1 h"),
            Words(
                "until steady, where servers that Tithe starts compile code or are written to; a tenth of a side with a [`switch`](#switch)",
            ),
            "load before the first frame after each start, per arm, on top of the warm-up of each frame. It replaces \
             the one that [ends by itself](docs/method/warm-up.md)",
            "\"60 s\"",
        ),
        Key::new(
            "idle",
            Time("0 s", "1 h"),
            Words("a minute, at most a twentieth of the budget; none below 10 s or with `until_decided`"),
            "how long the servers are watched without clients, on top of the budget: once for each of \
             `[[resources]]`, which share it. `\"0 s\"` leaves it out",
            "\"60 s\"",
        ),
        Key::new(
            "design",
            Choice(&["interleaved", "duet", "slices", "sequential"]),
            Value("\"interleaved\""),
            "how the arms share the machine over time ([designs](docs/method/designs.md)). `sequential` is for \
             comparison only. In a duet each arm has its share of the clients and of a `rate`; op/s are reported as if \
             all clients were busy",
            "\"interleaved\"",
        ),
        Key::new(
            "pin",
            Flag,
            Value("true"),
            "bind each client thread, and the server processes that serve it, to one processor",
            "true",
        ),
        Key::new(
            "aa_arm",
            Flag,
            Words("chosen by the plan"),
            "add the A/A arm, a second instance of the baseline: the negative control",
            "true",
        ),
        Key::new(
            "until_decided",
            Flag,
            Value("false"),
            "end a cell when every arm's answer is certain, not when the width is reached, and not before four starts \
             where as many are planned",
            "true",
        ),
        Key::new(
            "profile",
            Flag,
            Value("false"),
            "in separate frames, sample what client and server run: where the cost comes from",
            "true",
        ),
    ],
};

pub const RESOURCES: TableFormat = TableFormat {
    header: "[[resources]]",
    keys: &[
        Key::new("name", Name, Words("required where there are several"), "name in reports", "\"in memory\""),
        Key::new(
            "settings",
            Pairs,
            NONE,
            "server settings that differ from the common ones",
            "{ shared_buffers = \"1GB\" }",
        ),
        Key::new("clients", CLIENTS, Words("that of `[load]`"), "clients, where they differ", "4"),
        Key::new(
            "reconnect_every",
            OPERATIONS,
            Words("that of `[load]`"),
            "operations per connection, where that differs",
            "10",
        ),
        Key::new(
            "cpus",
            Number(0.1, 1024.0),
            Words("all"),
            "processors that the server of each arm may use, clients not counted, in periods of 10 ms",
            "2",
        ),
        Key::new(
            "memory",
            Size,
            Words("all"),
            "memory that the server of each arm may use, page cache included",
            "\"512 MiB\"",
        ),
        Key::new(
            "data_per_memory",
            Number(0.01, 1000.0),
            NONE,
            "in place of `memory`: the data set, as clients send it, is this many times as large as the memory. Above \
             1 it does not fit",
            "4",
        ),
        Key::new(
            "cache",
            Choice(&["warm", "cold"]),
            Value("\"warm\""),
            "`\"cold\"`: servers are stopped and the page cache is emptied before each of their starts, and nothing \
             is read ahead. Starts are then frequent: one per frame where another program offers the load, and where \
             PostgreSQL, MariaDB or MySQL only reads and `starts` is not given",
            "\"cold\"",
        ),
    ],
};

pub const WORKLOAD: TableFormat = TableFormat {
    header: "[[workload]]",
    keys: &[
        Key::new(
            "name",
            Name,
            Words("the preset's name, or the file's without its ending"),
            "name in reports",
            "\"mine\"",
        ),
        Key::new(
            "properties",
            Pairs,
            NONE,
            "properties that replace those of the source",
            "{ requestdistribution = \"zipfian\" }",
        ),
        Key::new(
            "protocol",
            Choice(&["simple", "extended", "prepared"]),
            Value("\"simple\""),
            "how the statements of `script` and `pgbench` are sent",
            "\"prepared\"",
        ),
        Key::new("define", Pairs, NONE, "variables of the scripts of `script` and `pgbench`", "{ scale = 10 }"),
        Key::new(
            "max_tries",
            Whole(0, u32::MAX as u64),
            Value("1"),
            "how often `script` tries a transaction that conflicts with another; 0: without limit",
            "3",
        ),
        Key::new("write_in_place", Text, NONE, "tables that `script` may change in place", "\"orders,items\""),
        Key::new(
            "copy_limit",
            Size,
            Value("1 GB"),
            "what copies of your tables may take on a server whose free disk is not known",
            "\"20 GB\"",
        ),
        Key::new("commit", Flag, Value("false"), "commit what `write_in_place` changes", "true"),
        Key::new(
            "prepare",
            Text,
            NONE,
            "your own data, restored once: a file of statements, a dump, a folder of CSV",
            "\"shop.dump\"",
        ),
    ],
};
