//! pgaudit's records: `AUDIT: SESSION,1,1,READ,SELECT,TABLE,public.t,"SELECT …",<none>`.

use csv::{ByteRecord, ReaderBuilder};

use crate::replay::{
    entry::{Event, Logged, Sent, Values},
    sql::{Flavour, parameters_of},
};

const NUMBER: usize = 1;
const SUBSTATEMENT: usize = 2;
const STATEMENT: usize = 7;
const PARAMETERS: usize = 8;

/// The event of a record, after `AUDIT: `. A statement inside another one, and a text that was logged before, are not
/// the client's.
pub fn event(record: &str) -> Option<Event> {
    let fields = fields(record)?;
    let field = |column: usize| std::str::from_utf8(fields.get(column)?).ok();
    let sql = field(STATEMENT)?;
    if field(SUBSTATEMENT)? != "1" || matches!(sql, "<previously logged>" | "<not logged>") {
        return None;
    }
    let count = parameters_of(sql, Flavour::Postgres);
    let values = match field(PARAMETERS).unwrap_or("<not logged>") {
        _ if count == 0 => Values::InText,
        "<none>" | "<not logged>" | "<previously logged>" => Values::Absent,
        // NULL is an empty value here, and so may be an empty text.
        list => match self::fields(list) {
            Some(values) if values.len() == count && values.iter().all(|value| !value.is_empty()) => {
                let text = |value: &[u8]| Some(String::from_utf8_lossy(value).into_owned());
                Values::Known(values.iter().map(text).collect())
            }
            _ => Values::Absent,
        },
    };
    let sent = if count == 0 { Sent::Text } else { Sent::Once };
    let (sql, number) = (sql.to_owned(), field(NUMBER).and_then(|number| number.parse().ok()));
    Some(Event::Statement(Logged { sql, values, duration_ns: None, sent, audited: true, number }))
}

/// The fields of one line of CSV.
fn fields(line: &str) -> Option<ByteRecord> {
    let mut record = ByteRecord::new();
    let mut reader =
        ReaderBuilder::new().has_headers(false).buffer_capacity(line.len().max(1)).from_reader(line.as_bytes());
    reader.read_byte_record(&mut record).ok()?.then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_statement_with_its_parameters() {
        expect_test::expect![[r#"
            select 'a, "b"' | InText
            select $1, $2 | Known([Some("1"), Some("x,y")])
            select $1 | Absent
            -
            -"#]]
        .assert_eq(
            &[
                r#"SESSION,1,1,READ,SELECT,,,"select 'a, ""b""'",<not logged>"#,
                r#"SESSION,2,1,READ,SELECT,,,"select $1, $2","1,""x,y""""#,
                r#"SESSION,3,1,READ,SELECT,TABLE,public.t,select $1,<not logged>"#,
                r#"SESSION,3,2,READ,SELECT,TABLE,public.t,select inner,<none>"#,
                r#"OBJECT,4,1,READ,SELECT,TABLE,public.t,<previously logged>,<previously logged>"#,
            ]
            .map(|record| match event(record) {
                Some(Event::Statement(logged)) => format!("{} | {:?}", logged.sql, logged.values),
                _ => "-".to_owned(),
            })
            .join("\n"),
        );
    }
}
