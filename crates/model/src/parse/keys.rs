//! Every key that an experiment file or a matrix file may have.
//!
//! The parser accepts what stands here and nothing else; FORMAT.md is tested against it. The keys that name
//! a kind of workload (`ycsb`, `ycsb_file`), the options of a protection, and the names of settings and
//! properties come from the catalogue or the database, and are not listed.

/// One table of the file.
#[derive(Debug)]
pub struct TableFormat {
    /// As it is written in the file and in messages; empty for the top of an experiment, `matrix` for that of a matrix.
    pub header: &'static str,
    /// Its keys, each with an example value in TOML.
    pub keys: &'static [(&'static str, &'static str)],
}

impl TableFormat {
    /// How messages call it.
    pub(super) fn name(&self) -> String {
        match self.header {
            "" => "the experiment".to_owned(),
            MATRIX => "the matrix".to_owned(),
            header => format!("`{header}`"),
        }
    }

    /// All tables of the kind of file that this one is of.
    pub(super) fn of_file(&self) -> &'static [TableFormat] {
        let of_matrix = MATRIX_TABLES.iter().any(|table| table.header == self.header);
        if of_matrix { MATRIX_TABLES } else { TABLES }
    }

    /// True for the top of a file.
    pub(super) fn is_top(&self) -> bool {
        ["", MATRIX].contains(&self.header)
    }
}

/// The top of the file.
pub(super) const TOP: TableFormat = TableFormat {
    header: "",
    keys: &[
        ("title", "\"What TLS costs\""),
        ("database", "\"postgres\""),
        ("settings", "{ shared_buffers = \"256MB\" }"),
        ("encrypted_swap", "\"512 MiB\""),
        ("data", "{ records = 100_000 }"),
        ("load", "{ clients = 2 }"),
        ("measure", "{ budget = \"5 min\" }"),
        ("resources", "[{ name = \"in memory\" }]"),
        ("workload", "[{ ycsb = \"c\" }]"),
        ("arm", "[{ name = \"plain\" }]"),
        ("published", "[{ source = \"a report, 2016\", arm = \"tls\", figure = \"time\", change = \"+26%\" }]"),
    ],
};

pub(super) const DATA: TableFormat =
    TableFormat { header: "[data]", keys: &[("records", "100_000"), ("values", "\"ycsb\"")] };

pub(super) const LOAD: TableFormat = TableFormat {
    header: "[load]",
    keys: &[
        ("clients", "2"),
        ("rate", "2000"),
        ("arrivals", "\"poisson\""),
        ("reconnect_every", "10"),
        ("agents", "3"),
        ("listen", "\"10.0.0.5\""),
    ],
};

pub(super) const MEASURE: TableFormat = TableFormat {
    header: "[measure]",
    keys: &[
        ("precision", "\"1%\""),
        ("budget", "\"5 min\""),
        ("seed", "1"),
        ("margin", "\"3%\""),
        ("primary", "\"net\""),
        ("epochs", "3"),
        ("starts", "8"),
        ("slot", "\"20 ms\""),
        ("warmup", "\"60 s\""),
        ("design", "\"interleaved\""),
        ("pin", "true"),
        ("aa_arm", "true"),
        ("until_decided", "true"),
    ],
};

pub(super) const RESOURCES: TableFormat = TableFormat {
    header: "[[resources]]",
    keys: &[
        ("name", "\"in memory\""),
        ("settings", "{ shared_buffers = \"1GB\" }"),
        ("clients", "4"),
        ("reconnect_every", "10"),
        ("cpus", "2"),
        ("memory", "\"512 MiB\""),
        ("data_per_memory", "4"),
        ("cache", "\"cold\""),
    ],
};

pub(super) const WORKLOAD: TableFormat = TableFormat {
    header: "[[workload]]",
    keys: &[("name", "\"mine\""), ("properties", "{ requestdistribution = \"zipfian\" }")],
};

pub(super) const ARM: TableFormat = TableFormat {
    header: "[[arm]]",
    keys: &[
        ("name", "\"tls\""),
        ("protections", "[{ use = \"tls\" }]"),
        ("url", "\"postgres://user@host:5432/db\""),
        ("on", "[\"SET pgaudit.log = 'read'\"]"),
        ("off", "[\"RESET pgaudit.log\"]"),
        (
            "switch",
            "{ on = [\"./audit\", \"on\"], off = [\"./audit\", \"off\"], ready = \"SELECT current_setting('log_statement') = 'all'\" }",
        ),
        ("observer", "{ name = \"db1\", data = [\"/var/lib/postgresql/15/main\"] }"),
    ],
};

/// Who looks at a running server on its own machine, and at what.
pub(super) const OBSERVER: TableFormat = TableFormat {
    header: "observer",
    keys: &[
        ("name", "\"db1\""),
        ("data", "[\"/var/lib/postgresql/15/main/base\"]"),
        ("journal", "[\"/var/lib/postgresql/15/main/pg_wal\"]"),
        ("logs", "[\"/var/log/postgresql\"]"),
        ("settings", "[\"/etc/postgresql/15/main/postgresql.conf\"]"),
    ],
};

/// How the provider of a server switches it.
pub(super) const SWITCH: TableFormat = TableFormat {
    header: "switch",
    keys: &[
        ("on", "[\"./audit\", \"on\"]"),
        ("off", "[\"./audit\", \"off\"]"),
        ("ready", "\"SELECT current_setting('log_statement') = 'all'\""),
        ("side", "\"1 min\""),
        ("timeout", "\"10 min\""),
    ],
};

/// A protection of an arm; its options stand beside `use`.
pub(super) const PROTECTION: TableFormat = TableFormat { header: "protections", keys: &[("use", "\"tls\"")] };

/// A figure of others.
pub(super) const PUBLISHED: TableFormat = TableFormat {
    header: "[[published]]",
    keys: &[
        ("source", "\"a vendor's report, 2016\""),
        ("arm", "\"tls\""),
        ("workload", "\"c\""),
        ("resources", "\"in memory\""),
        ("figure", "\"time\""),
        ("plain", "32.4"),
        ("protected", "40.9"),
        ("unit", "\"µs\""),
        ("change", "\"+26%\""),
    ],
};

/// Keys that had another name in files for older builds, with the name that they have now.
pub(super) const RENAMED: [(&str, &str); 2] = [("guard_arm", "aa_arm"), ("guarded", "protected")];

/// All tables, in the order of the file.
pub const TABLES: &[TableFormat] =
    &[TOP, DATA, LOAD, MEASURE, RESOURCES, WORKLOAD, ARM, SWITCH, OBSERVER, PROTECTION, PUBLISHED];

/// What the top of a matrix file is called.
const MATRIX: &str = "matrix";

/// The top of a matrix file.
pub(super) const MATRIX_TOP: TableFormat = TableFormat {
    header: MATRIX,
    keys: &[
        ("title", "\"What TLS costs on our hosts\""),
        ("experiments", "[\"postgres-tls-audit.toml\"]"),
        ("replicates", "5"),
        ("every", "\"6 h\""),
        ("machine", "[{ name = \"small\" }]"),
    ],
};

/// A kind of machine.
pub(super) const MACHINE: TableFormat = TableFormat {
    header: "[[machine]]",
    keys: &[
        ("name", "\"small\""),
        ("slurm", "\"--constraint=c7i.large\""),
        ("kubernetes", "{ \"node.kubernetes.io/instance-type\" = \"c7i.large\" }"),
    ],
};

/// All tables of a matrix file, in its order.
pub const MATRIX_TABLES: &[TableFormat] = &[MATRIX_TOP, MACHINE];
