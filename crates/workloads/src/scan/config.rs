//! The properties of scans, resolved.

use tithe_model::catalogue::{Preset, Properties, PropertyProblem, WorkloadEntry, WorkloadShape};

use crate::properties::{Known, Reader, read};

/// A slot of scans, ns: each may last for a hundred milliseconds.
const SLOT_NS: u64 = 250_000_000;

/// What a scan does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Aggregates of the whole table: count, sum, mean, smallest and largest text.
    Aggregate,
    /// Count and sum of each group.
    Group,
    /// The rows of a range of keys, all of which are sent to the client.
    Range,
    /// The last row in the order of the texts.
    Sort,
}

/// All of them.
pub const QUERIES: [Query; 4] = [Query::Aggregate, Query::Group, Query::Range, Query::Sort];

impl Query {
    /// Its name, which is also its preset's.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aggregate => "aggregate",
            Self::Group => "group",
            Self::Range => "range",
            Self::Sort => "sort",
        }
    }

    /// The operation under which a scan is recorded.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Aggregate => "AGGREGATE",
            Self::Group => "GROUP",
            Self::Range => "RANGE",
            Self::Sort => "SORT",
        }
    }
}

/// The configuration of scans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What a scan does.
    pub query: Query,
    /// Groups of rows.
    pub groups: u64,
    /// Rows of a range.
    pub range: u64,
    /// Bytes of a row's text.
    pub length: usize,
}

/// Every property.
const KNOWN: [Known; 4] = [
    ("query", "aggregate", "aggregate, group, range or sort"),
    ("groups", "100", "groups that rows fall into, 1 to 100000"),
    ("range", "10000", "rows of a range, 2 to 10000000, or all where there are fewer"),
    ("length", "100", "bytes of a row's text, 16 to 4000"),
];

/// A preset for each query.
pub const PRESETS: &[Preset] = &[
    ("aggregate", "Count, sum, mean, smallest and largest of a whole table", &[("query", "aggregate")]),
    ("group", "Count and sum of each group of a whole table", &[("query", "group")]),
    ("range", "The rows of a range of keys", &[("query", "range")]),
    ("sort", "A sort of a whole table, which spills where the server's memory for it is less", &[("query", "sort")]),
];

impl Config {
    /// Resolves `properties`.
    ///
    /// # Errors
    /// Every problem.
    pub fn resolve(properties: &Properties) -> Result<Self, Vec<PropertyProblem>> {
        let mut reader = Reader::new("scans", &KNOWN, properties);
        let query = |text: &str| QUERIES.into_iter().find(|query| query.name() == text);
        let config = Self {
            query: reader.get("query", query).unwrap_or(Query::Aggregate),
            groups: reader.number("groups", 1, 100_000),
            range: reader.number("range", 2, 10_000_000),
            length: reader.number("length", 16, 4000) as usize,
        };
        reader.end(config)
    }

    /// Approximate bytes of a row as clients send it.
    pub fn row_bytes(&self) -> u64 {
        20 + self.length as u64
    }
}

/// Scans for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "scan",
        title: "scans of SQL tables: an operation is a row that is read, a request a whole scan",
        presets: PRESETS,
        file: "lines of name=value: groups, range, length",
        weighted: false,
        scripts: "",
        by_path: "",
        commands: &[],
        read,
        asks: |_| Vec::new(),
        check: |properties| Config::resolve(properties).err().unwrap_or_default(),
        shape: |properties| WorkloadShape {
            writes: false,
            record_bytes: Config::resolve(properties).map_or(100, |config| config.row_bytes()),
            program: false,
            gaps: false,
            batch: Config::resolve(properties).ok().filter(|it| it.query == Query::Range).map(|config| config.range),
            slot_ns: Some(SLOT_NS),
        },
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn properties_resolve_or_all_their_problems_are_told() {
        let told = |properties: &[(&str, &str)]| {
            let all = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            format!("{:?}", Config::resolve(&all))
        };
        expect!["Ok(Config { query: Aggregate, groups: 100, range: 10000, length: 100 })"].assert_eq(&told(&[]));
        expect!["Ok(Config { query: Sort, groups: 7, range: 2, length: 400 })"].assert_eq(&told(&[
            ("query", "sort"),
            ("length", "400"),
            ("groups", "7"),
            ("range", "2"),
        ]));
        expect![[r#"Err([("rows", "is not a property of scans", "known are query, groups, range, length"), ("query", "`join` is not possible", "aggregate, group, range or sort"), ("length", "`15` is not possible", "bytes of a row's text, 16 to 4000")])"#]].assert_eq(&told(&[("query", "join"), ("length", "15"), ("rows", "7")]));
    }
}
