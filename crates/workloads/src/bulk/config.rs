//! The properties of a bulk load, resolved.

use tithe_model::catalogue::{Preset, Properties, PropertyProblem, WorkloadEntry, WorkloadShape};

use crate::properties::{Known, Reader, read};

/// Most parameters of one statement: SQLite takes 32,766 (documentation, "Limits"), the others more.
const PARAMETERS_MAX: u64 = 32_766;
/// Most rows that are sent as single requests before any is answered: more answers might fill the buffers between
/// client and server.
const PIPELINED_MAX: u64 = 1000;

/// How rows are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By `COPY FROM STDIN`, in its text format.
    Copy,
    /// By `LOAD DATA LOCAL INFILE`.
    Load,
    /// By an `INSERT` of many rows.
    Multi,
    /// By an `INSERT` for each row, one transaction a batch.
    Single,
    /// By the product's own interface for rows, without a statement.
    Append,
    /// Existing records by key, in one pipeline.
    Pipeline,
}

impl Way {
    /// Its name, which is also its preset's.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Load => "load",
            Self::Multi => "multi",
            Self::Single => "single",
            Self::Append => "append",
            Self::Pipeline => "pipeline",
        }
    }

    /// The operation under which a batch is recorded.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Copy => "COPY",
            Self::Load => "LOAD-DATA",
            Self::Multi => "MULTI-INSERT",
            Self::Single => "INSERTS",
            Self::Append => "APPEND",
            Self::Pipeline => "PIPELINE",
        }
    }

    /// True if the rows are sent as lines.
    pub fn has_lines(self) -> bool {
        matches!(self, Self::Copy | Self::Load)
    }
}

/// Features of the table besides its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// A primary key.
    Keyed,
    /// A foreign key to another table.
    Foreign,
    /// A trigger that writes a row into another table for each row.
    Trigger,
    /// Four partitions.
    Partitioned,
}

/// Kinds of table, as properties name them.
const KINDS: [(&str, Kind); 5] = [
    ("plain", Kind::Plain),
    ("keyed", Kind::Keyed),
    ("foreign", Kind::Foreign),
    ("trigger", Kind::Trigger),
    ("partitioned", Kind::Partitioned),
];

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// The configuration of a bulk load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How rows are loaded.
    pub way: Way,
    /// Rows of a batch.
    pub batch: u64,
    /// Texts of a row.
    pub fields: usize,
    /// Bytes of each.
    pub length: usize,
    /// Rows after which the table is emptied, before a slot; the number of records of a pipeline.
    pub keep: u64,
    /// The table's feature.
    pub table: Kind,
}

/// Every property.
const KNOWN: [Known; 6] = [
    ("way", "multi", "copy, load, multi, single, append or pipeline"),
    ("batch", "1000", "rows of a request, 2 to 100000"),
    ("fields", "4", "texts of a row, 1 to 100"),
    ("length", "20", "bytes of each text, 1 to 4000"),
    ("keep", "100000", "rows after which the table is emptied before a slot, a batch to 10000000"),
    ("table", "plain", "plain, keyed, foreign, trigger or partitioned"),
];

/// A preset for each way.
pub const PRESETS: &[Preset] = &[
    ("copy", "Rows in batches by PostgreSQL's COPY FROM STDIN", &[("way", "copy")]),
    ("load", "Rows in batches by LOAD DATA LOCAL INFILE of MariaDB and MySQL", &[("way", "load")]),
    ("multi", "Rows in batches by INSERTs of many rows", &[("way", "multi")]),
    ("single", "Rows by an INSERT each, pipelined where the product can, a transaction a batch", &[("way", "single")]),
    ("append", "Rows in batches by DuckDB's appender", &[("way", "append")]),
    ("pipeline", "Redis' records by an HSET each, in pipelines", &[("way", "pipeline")]),
];

impl Config {
    /// Resolves `properties`.
    ///
    /// # Errors
    /// Every problem.
    pub fn resolve(properties: &Properties) -> Result<Self, Vec<PropertyProblem>> {
        let mut reader = Reader::new("a bulk load", &KNOWN, properties);
        let ways = [Way::Copy, Way::Load, Way::Multi, Way::Single, Way::Append, Way::Pipeline];
        let way = reader.get("way", |text| ways.into_iter().find(|way| way.name() == text)).unwrap_or(Way::Multi);
        let kind = |text: &str| KINDS.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
        let batch = reader.number("batch", 2, 100_000);
        let config = Self {
            way,
            batch,
            fields: reader.number("fields", 1, 100) as usize,
            length: reader.number("length", 1, 4000) as usize,
            keep: reader.number("keep", batch, 10_000_000),
            table: reader.get("table", kind).unwrap_or(Kind::Plain),
        };
        let columns = config.fields as u64 + 3;
        let most = match way {
            Way::Copy | Way::Load | Way::Append => None,
            Way::Multi => Some(PARAMETERS_MAX / columns),
            Way::Single | Way::Pipeline => Some(PIPELINED_MAX),
        };
        if let Some(most) = most.filter(|most| batch > *most) {
            let problem = format!("`{batch}` is too many for `{}` with {columns} columns", way.name());
            reader.refuse("batch", problem, &format!("write {most} or fewer"));
        }
        // Bytes of a request; MariaDB and MySQL take up to 16 MB.
        if batch * config.row_bytes() > 15 << 20 {
            reader.refuse("batch", format!("`{batch}` rows are more than 15 MB"), "write fewer, or shorter texts");
        }
        if way == Way::Pipeline && config.table != Kind::Plain {
            reader.refuse("table", "records by key are in no table".to_owned(), "leave it out");
        }
        reader.end(config)
    }

    /// Approximate bytes of a row as clients send it.
    pub fn row_bytes(&self) -> u64 {
        24 + (self.fields * (self.length + 1)) as u64
    }
}

/// The bulk load for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "bulk",
        title: "bulk loads: an operation is a row, a request a batch of them",
        presets: PRESETS,
        file: "lines of name=value: batch, fields, length, keep, table",
        weighted: false,
        scripts: "",
        by_path: "",
        commands: &[],
        read,
        asks: |_| Vec::new(),
        check: |properties| Config::resolve(properties).err().unwrap_or_default(),
        shape: |properties| WorkloadShape {
            writes: true,
            record_bytes: Config::resolve(properties).map_or(100, |config| config.row_bytes()),
            program: false,
            // A client makes the rows of a batch before it sends them.
            gaps: true,
            batch: Some(Config::resolve(properties).map_or(1, |config| config.batch)),
            slot_ns: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(properties: &[(&str, &str)], expect: Expect) {
        let all = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let told = match Config::resolve(&all) {
            Ok(config) => format!("{config:?}"),
            Err(problems) => {
                let line = |(name, problem, help): &PropertyProblem| format!("{name}: {problem} ({help})");
                problems.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        };
        expect.assert_eq(&told);
    }

    #[test]
    fn properties_resolve_or_all_their_problems_are_told() {
        check(&[], expect!["Config { way: Multi, batch: 1000, fields: 4, length: 20, keep: 100000, table: Plain }"]);
        check(
            &[("way", "copy"), ("batch", "20000"), ("fields", "9"), ("length", "50"), ("table", "trigger")],
            expect!["Config { way: Copy, batch: 20000, fields: 9, length: 50, keep: 100000, table: Trigger }"],
        );
        check(
            &[("way", "file"), ("rows", "7"), ("batch", "1"), ("table", "heap"), ("keep", "some")],
            expect![[r#"
            rows: is not a property of a bulk load (known are way, batch, fields, length, keep, table)
            way: `file` is not possible (copy, load, multi, single, append or pipeline)
            batch: `1` is not possible (rows of a request, 2 to 100000)
            keep: `some` is not possible (rows after which the table is emptied before a slot, a batch to 10000000)
            table: `heap` is not possible (plain, keyed, foreign, trigger or partitioned)"#]],
        );
        check(
            &[("batch", "9000")],
            expect!["batch: `9000` is too many for `multi` with 7 columns (write 4680 or fewer)"],
        );
        check(
            &[("way", "pipeline"), ("batch", "1001"), ("table", "keyed")],
            expect![[r#"
            batch: `1001` is too many for `pipeline` with 7 columns (write 1000 or fewer)
            table: records by key are in no table (leave it out)"#]],
        );
        check(
            &[("way", "load"), ("batch", "100000"), ("length", "4000"), ("keep", "100000")],
            expect!["batch: `100000` rows are more than 15 MB (write fewer, or shorter texts)"],
        );
    }
}
