//! The keys of arms, and of published figures about them.

use super::{
    Key,
    KeyDefault::{self, Required, Value, Words},
    Kind::{self, Change, Choice, Either, Flag, List, Name, Number, Pairs, Table, Text, Time, Whole},
    TableFormat,
};

const NONE: KeyDefault = Words("none");

pub const ARM: TableFormat = TableFormat {
    header: "[[arm]]",
    keys: &[
        Key::new("name", Name, Required, "name in reports", "\"tls\""),
        Key::new(
            "protections",
            List(&Table(&PROTECTION), 0),
            NONE,
            "protections, applied in this order; `tithe ls` lists them and their options",
            "[{ use = \"tls\" }]",
        ),
        Key::new(
            "settings",
            Pairs,
            NONE,
            "settings of this arm's server alone: [your protection](docs/your-protection.md)",
            "{ wal_compression = \"on\" }",
        ),
        Key::new(
            "claims",
            List(&Table(&CLAIM), 0),
            NONE,
            "checks that prove this arm's protection; without them it is a setting",
            "[{ statement = \"SHOW wal_compression\", equals = \"pglz\" }]",
        ),
        Key::new(
            "url",
            Text,
            NONE,
            "a running server to attach to, instead of starting one: [URLs](#urls)",
            "\"postgres://user@host:5432/db\"",
        ),
        Key::new(
            "on",
            List(&Text, 0),
            NONE,
            "statements before each slot of this arm, which switch the protection on",
            "[\"SET pgaudit.log = 'read'\"]",
        ),
        Key::new(
            "off",
            List(&Text, 0),
            NONE,
            "statements after the slot, which switch it off again",
            "[\"RESET pgaudit.log\"]",
        ),
        Key::new(
            "switch",
            Table(&SWITCH),
            NONE,
            "the provider's commands that switch the server to this arm and back, if no session can: [`switch`](#switch)",
            "{ on = [\"./audit\", \"on\"], off = [\"./audit\", \"off\"], ready = \"SELECT current_setting('log_statement') = 'all'\" }",
        ),
        Key::new(
            "observer",
            Table(&OBSERVER),
            NONE,
            "the observer on the machine of this `url`: [`observer`](#observer)",
            "{ name = \"db1\", data = [\"/var/lib/postgresql/15/main\"] }",
        ),
    ],
};

/// Absolute paths of another machine.
const PATHS: Kind = List(&Text, 0);

/// The observer of a running server, and what it reads there.
pub const OBSERVER: TableFormat = TableFormat {
    header: "observer",
    keys: &[
        Key::new("name", Name, Required, "the observer's `--name`: letters, digits, dashes and underscores", "\"db1\""),
        Key::new(
            "data",
            PATHS,
            NONE,
            "tables and indexes: searched for canaries, and their space counted",
            "[\"/var/lib/postgresql/15/main/base\"]",
        ),
        Key::new(
            "journal",
            PATHS,
            NONE,
            "write-ahead log, redo log, journal: searched for canaries",
            "[\"/var/lib/postgresql/15/main/pg_wal\"]",
        ),
        Key::new(
            "logs",
            PATHS,
            NONE,
            "server and audit logs: searched for canaries, keys and passwords, and their growth counted",
            "[\"/var/log/postgresql\"]",
        ),
        Key::new(
            "settings",
            PATHS,
            NONE,
            "settings files, of which only length and SHA-256 are kept",
            "[\"/etc/postgresql/15/main/postgresql.conf\"]",
        ),
    ],
};

/// A program and its arguments.
const COMMAND: Kind = List(&Text, 1);

/// How the provider of a server switches it.
pub const SWITCH: TableFormat = TableFormat {
    header: "switch",
    keys: &[
        Key::new(
            "on",
            COMMAND,
            Required,
            "a program and its arguments: the command that switches the protection on",
            "[\"./audit\", \"on\"]",
        ),
        Key::new("off", COMMAND, Required, "the command that switches it off", "[\"./audit\", \"off\"]"),
        Key::new(
            "ready",
            Either(&[Text, COMMAND]),
            Required,
            "a query that is true while the protection is on and false while it is off (`t`, `true`, `1`, `on`, `yes`; \
             `f`, `false`, `0`, `off`, `no`; the last value of a row counts): SQL, CQL or a command of Redis or \
             Memcached. A list is a command whose last line answers, for other products and for a state that no client \
             can query, such as Cassandra's audit log",
            "\"SELECT current_setting('log_statement') = 'all'\"",
        ),
        Key::new(
            "side",
            Time("1 s", "1 h"),
            Value("\"1 min\""),
            "load on one side before the other has its turn",
            "\"1 min\"",
        ),
        Key::new(
            "timeout",
            Time("1 s", "24 h"),
            Value("\"10 min\""),
            "how long the command may take, and then the server until it is ready",
            "\"10 min\"",
        ),
    ],
};

/// A protection of an arm; its options are next to `use`.
pub const PROTECTION: TableFormat = TableFormat {
    header: "protections",
    keys: &[
        Key::new(
            "use",
            Text,
            Required,
            "the protection, by its name in `tithe ls`; that of a file `protections/NAME.toml`, which has the keys below; \
             or `custom`",
            "\"tls\"",
        ),
        Key::new("name", Name, Words("required with `custom`"), "its name", "\"row-level-security\""),
        Key::new("description", Name, Words("none; required in a file"), "what it is", "\"each tenant sees its rows\""),
        Key::new("protects_against", Name, NONE, "what it protects against, for `tithe ls`", "\"other tenants\""),
        Key::new("leaves_open", Name, NONE, "what it does not protect against", "\"superusers\""),
        Key::new(
            "options",
            Pairs,
            NONE,
            "in a file: options by name, each with its default, or [more](#options); `{name}` stands for its value",
            "{ tenant = \"one\" }",
        ),
        Key::new("settings", Pairs, NONE, "settings of this arm's server", "{ wal_compression = \"on\" }"),
        Key::new(
            "files",
            Pairs,
            NONE,
            "files for this arm's server, by their names in its folder, which is `{files}` in settings and statements",
            "{ \"mine.so\" = \"build/mine.so\" }",
        ),
        Key::new(
            "statements",
            List(&Text, 0),
            NONE,
            "statements that an administrator runs once, after loading",
            "[\"ALTER TABLE usertable ENABLE ROW LEVEL SECURITY\"]",
        ),
        Key::new(
            "undo",
            List(&Text, 0),
            Words("none; required for `statements` with a `url`"),
            "statements that undo them, on a server that Tithe does not start",
            "[\"ALTER TABLE usertable DISABLE ROW LEVEL SECURITY\"]",
        ),
        Key::new(
            "session",
            List(&Text, 0),
            NONE,
            "statements that every measured client runs when it connects",
            "[\"SET ROLE tenant\"]",
        ),
        Key::new(
            "claims",
            List(&Table(&CLAIM), 0),
            Words("none: a setting"),
            "checks that prove it",
            "[{ statement = \"SHOW wal_compression\", equals = \"pglz\" }]",
        ),
    ],
};

/// An option in a file of a protection.
pub const OPTION: TableFormat = TableFormat {
    header: "options",
    keys: &[
        Key::new(
            "default",
            Either(&[Text, Number(-1e9, 1e9), Flag]),
            Required,
            "its value unless one is given",
            "\"one\"",
        ),
        Key::new("help", Name, NONE, "what it is, for `tithe ls`", "\"the tenant of the clients\""),
        Key::new("one_of", List(&Text, 0), Words("any text"), "the texts that it takes", "[\"one\", \"two\"]"),
        Key::new("low", Number(-1e9, 1e9), Value("0"), "the smallest number", "1"),
        Key::new("high", Number(-1e9, 1e9), Value("1000000000"), "the largest number", "200"),
    ],
};

/// The values of `check` in a claim.
pub const CHECKS: [&str; 8] = [
    "canary-not-in-files",
    "values-not-in-files",
    "removed-not-in-files",
    "removed-found",
    "not-on-the-wire",
    "refused-without-password",
    "counted-in-log",
    "refused-as",
];

/// What distinguishes a protected arm from the plain one.
pub const CLAIM: TableFormat = TableFormat {
    header: "claims",
    keys: &[
        Key::new(
            "statement",
            Text,
            Words("required without `check`"),
            "a measured client runs it, read-only, within 10 s",
            "\"SELECT count(*) FROM usertable\"",
        ),
        Key::new("equals", Text, NONE, "the answer is this: `, ` separates values, `; ` rows", "\"0\""),
        Key::new("matches", Text, NONE, "the same, `*` for any text; a line of the log", "\"on*\""),
        Key::new("fails_with", Text, NONE, "it fails with these words", "\"permission denied\""),
        Key::new("rows", Whole(0, 1_000_000), NONE, "it returns so many rows; lines of the log", "0"),
        Key::new(
            "check",
            Choice(&CHECKS),
            NONE,
            "a check of Tithe's in place of a statement; `counted-in-log` sends 100 statements each of INSERT, SELECT, \
             UPDATE and DELETE; `removed-found` changes and removes rows, and the statement must return rows for each \
             `{canary}` in them",
            "\"not-on-the-wire\"",
        ),
        Key::new("files", List(&Text, 0), NONE, "`data`, `journal` and `logs` of the server", "[\"data\"]"),
        Key::new("account", Text, NONE, "an account without a password", "\"guest\""),
    ],
};

/// A published level.
const LEVEL: Kind = Number(1e-9, 1e15);

/// A published figure.
pub const PUBLISHED: TableFormat = TableFormat {
    header: "[[published]]",
    keys: &[
        Key::new("source", Name, Required, "who published it, where and when", "\"a vendor's report, 2016\""),
        Key::new("arm", Name, Required, "the arm that it is about; not the baseline", "\"tls\""),
        Key::new("workload", Name, Words("all of them"), "the workload that it is about", "\"c\""),
        Key::new("resources", Name, Words("all of them"), "the resources that it is about", "\"in memory\""),
        Key::new(
            "figure",
            Choice(&["time", "throughput", "cpu", "client_cpu", "server_cpu"]),
            Required,
            "mean latency or run time; operations per second, whose loss by the share s is shown as the cost in time \
             1/(1 − s) − 1; or processor time per operation",
            "\"time\"",
        ),
        Key::new("plain", LEVEL, Words("none; or `change`"), "level of the plain arm, as printed", "32.4"),
        Key::new("protected", LEVEL, Words("none; or `change`"), "level of the protected arm, as printed", "40.9"),
        Key::new("unit", Name, NONE, "unit of the levels", "\"µs\""),
        Key::new(
            "change",
            Either(&[Change, List(&Change, 2)]),
            Words("none; or both levels"),
            "the change against the plain level, or both ends of its range",
            "\"+26%\"",
        ),
    ],
};
