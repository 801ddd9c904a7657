//! Converts the three formats of PostgreSQL's log to that of `stderr`, which the checks read.
//!
//! Formats: documentation, "Using CSV-Format Log Output", "Using JSON-Format Log Output".

use csv::{ReaderBuilder, StringRecord, Terminator};
use serde_json::Value;

/// A format, as `log_destination` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `stderr`.
    Text,
    /// `csvlog`.
    Csv,
    /// `jsonlog`, from version 15 on.
    Json,
}

impl Format {
    /// The formats that `destination` names and the collector writes. Formats whose records are unambiguous come first.
    pub fn collected(destination: &str) -> Vec<Self> {
        let named = |format: &Self| destination.split(',').any(|name| name.trim().eq_ignore_ascii_case(format.name()));
        [Self::Json, Self::Csv, Self::Text].into_iter().filter(named).collect()
    }

    /// Its name in `log_destination`, which `pg_current_logfile` accepts too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "stderr",
            Self::Csv => "csvlog",
            Self::Json => "jsonlog",
        }
    }

    /// `log` in the format of `stderr`: `LOG:  message`, `DETAIL:  detail` and so on, one per line. A record whose end
    /// has not been written yet may be missing.
    pub fn to_text(self, log: String) -> String {
        match self {
            Self::Text => log,
            Self::Csv => {
                records(&log).iter().map(|fields| record(|part| fields.get(part.column).map(str::to_owned))).collect()
            }
            Self::Json => {
                let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                records.map(|fields| record(|part| fields[part.key].as_str().map(str::to_owned))).collect()
            }
        }
    }
}

/// Where a part of a record is found.
struct Part {
    /// What `stderr` writes before it; empty for the message, which follows its severity.
    title: &'static str,
    /// Its column in `csvlog`, from 0.
    column: usize,
    /// Its key in `jsonlog`.
    key: &'static str,
}

const SEVERITY: Part = Part { title: "", column: 11, key: "error_severity" };
const PARTS: [Part; 5] = [
    Part { title: "", column: 13, key: "message" },
    Part { title: "DETAIL", column: 14, key: "detail" },
    Part { title: "HINT", column: 15, key: "hint" },
    Part { title: "CONTEXT", column: 18, key: "context" },
    Part { title: "STATEMENT", column: 19, key: "statement" },
];

fn record(value: impl Fn(&Part) -> Option<String>) -> String {
    let severity = value(&SEVERITY).unwrap_or_default();
    let line = |part: &Part| {
        let value = value(part).filter(|value| !value.is_empty())?;
        let title = if part.title.is_empty() { &severity } else { part.title };
        Some(format!("{title}:  {value}\n"))
    };
    PARTS.iter().filter_map(line).collect()
}

/// The records of comma-separated values that have their end.
fn records(log: &str) -> Vec<StringRecord> {
    let mut reader = ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).terminator(Terminator::Any(b'\n'));
    let mut records: Vec<StringRecord> = reader.from_reader(log.as_bytes()).into_records().flatten().collect();
    let has_end = log.ends_with('\n') && log.matches('"').count().is_multiple_of(2);
    if !has_end {
        records.pop();
    }
    records
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_of_values_with_commas() {
        let log = "2026-11-22 18:00:00.000 UTC,\"tithe\",\"postgres\",7,\"127.0.0.1:4\",6.7,3,\"SELECT\",2026-11-22 18:00:00 UTC,3/4,0,LOG,00000,\
                   \"execute s0: SELECT \"\"a\"\"\nFROM t\",\"parameters: $1 = 'x, y'\",,,,,,,,\"\",\"client backend\",,0\n\
                   2026-11-22 18:00:00.001 UTC,\"tithe\",\"postgres\",7,,6.7,4,,,,0,LOG,00000,\"AUDIT: SESSION,1,1,READ,SELECT,,,\"\"SELECT \"\"\"\"a\"\"\"\"\"\",<none>\",,,,,,,,,\"\",\"\",,0\n\
                   2026-11-22 18:00:00.002 UTC,\"tithe\",\"postg";
        expect![[r#"
            LOG:  execute s0: SELECT "a"
            FROM t
            DETAIL:  parameters: $1 = 'x, y'
            LOG:  AUDIT: SESSION,1,1,READ,SELECT,,,"SELECT ""a""",<none>
        "#]]
        .assert_eq(&Format::Csv.to_text(log.to_owned()));
    }

    #[test]
    fn records_of_json() {
        let log = r#"{"timestamp":"2026-11-22 18:00:00.000 UTC","user":"tithe","error_severity":"LOG","message":"execute s0: SELECT \"a\"","detail":"parameters: $1 = 'x'","backend_type":"client backend"}
{"timestamp":"2026-11-22 18:00:00.001 UTC","error_severity":"ERROR","message":"no","statement":"SELECT 1"}
{"timestamp":"2026-11"#;
        expect![[r#"
            LOG:  execute s0: SELECT "a"
            DETAIL:  parameters: $1 = 'x'
            ERROR:  no
            STATEMENT:  SELECT 1
        "#]]
        .assert_eq(&Format::Json.to_text(log.to_owned()));
    }

    #[test]
    fn what_the_collector_does_not_write_is_left_out() {
        assert_eq!(Format::collected("stderr, csvlog"), [Format::Csv, Format::Text]);
        assert_eq!(Format::collected("syslog"), []);
    }

    /// A field of comma-separated values as PostgreSQL writes a text.
    fn quoted(text: &str) -> String {
        format!("\"{}\"", text.replace('"', "\"\""))
    }

    proptest! {
        #[test]
        fn fields_are_read_as_they_were_written(
            records in prop::collection::vec(prop::collection::vec("[a\",\r\n\\\\ ä]{0,6}", 2..5), 0..4),
            quotes_all: bool,
        ) {
            let field = |text: &String| {
                if quotes_all || text.contains(['"', ',', '\n']) { quoted(text) } else { text.clone() }
            };
            let line = |fields: &Vec<String>| fields.iter().map(field).collect::<Vec<_>>().join(",") + "\n";
            let read = super::records(&records.iter().map(line).collect::<String>());
            prop_assert_eq!(read, records.into_iter().map(StringRecord::from).collect::<Vec<_>>());
        }

        #[test]
        fn both_formats_tell_of_a_record_what_was_written(
            severity in "[A-Z]{1,7}",
            values in prop::array::uniform5("[a\",\r\n\\\\ ä]{0,6}"),
        ) {
            let (mut columns, mut keys) = (vec![String::new(); 23], serde_json::Map::new());
            let mut expected = String::new();
            for (part, value) in [&SEVERITY].into_iter().chain(&PARTS).zip([&severity].into_iter().chain(&values)) {
                columns[part.column] = quoted(value);
                keys.insert(part.key.to_owned(), Value::from(value.as_str()));
            }
            for (part, value) in PARTS.iter().zip(&values).filter(|(_, value)| !value.is_empty()) {
                let title = if part.title.is_empty() { &severity } else { part.title };
                expected += &format!("{title}:  {value}\n");
            }
            prop_assert_eq!(Format::Csv.to_text(columns.join(",") + "\n"), expected.as_str());
            prop_assert_eq!(Format::Json.to_text(Value::Object(keys).to_string() + "\n"), expected.as_str());
        }

        #[test]
        fn any_log_is_read(log in "[a\",{}:\n\\\\ ä]*") {
            for format in [Format::Text, Format::Csv, Format::Json] {
                let _ = format.to_text(log.clone());
            }
        }
    }
}
