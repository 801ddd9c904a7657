//! The keys of a matrix file.

use super::{
    Key,
    KeyDefault::{Required, Value, Words},
    Kind::{List, Name, Pairs, Table, Time, Whole},
    TableFormat,
};

/// The name of the top of a matrix file.
pub const MATRIX: &str = "matrix";

/// The top of a matrix file.
pub const MATRIX_TOP: TableFormat = TableFormat {
    header: MATRIX,
    keys: &[
        Key::new("title", Name, Required, "the first line of reports", "\"What TLS costs on our hosts\""),
        Key::new(
            "experiments",
            List(&Name, 1),
            Required,
            "paths of experiment files, from the folder of the matrix file on",
            "[\"postgres-tls-audit.toml\"]",
        ),
        Key::new(
            "replicates",
            Whole(1, 10_000),
            Value("1"),
            "how often each experiment is measured on machines of each kind",
            "5",
        ),
        Key::new(
            "every",
            Time("0 s", "720 h"),
            Value("\"0 s\""),
            "from the beginning of one replicate to the next, where one host does all tasks",
            "\"6 h\"",
        ),
        Key::new(
            "machine",
            List(&Table(&MACHINE), 0),
            Words("one called *any host*"),
            "the kinds of machine, `[[machine]]`",
            "[{ name = \"small\" }]",
        ),
    ],
};

/// A kind of machine.
pub const MACHINE: TableFormat = TableFormat {
    header: "[[machine]]",
    keys: &[
        Key::new("name", Name, Required, "name in reports", "\"small\""),
        Key::new(
            "slurm",
            Name,
            Words("none"),
            "long options of `sbatch` that ask for one",
            "\"--constraint=c7i.large\"",
        ),
        Key::new(
            "kubernetes",
            Pairs,
            Words("none"),
            "labels of the nodes that are one",
            "{ \"node.kubernetes.io/instance-type\" = \"c7i.large\" }",
        ),
    ],
};
