//! PostgreSQL's records, in every format of its log: statements, durations, parameters, pgaudit's records.

use super::pgaudit;
use crate::replay::{
    entry::{Entry, Event, Logged, Problem, Sent, Sink, Values},
    lines::duration_ns,
    sql::{Flavour, parameters_of},
};

/// A record of the log.
pub struct Said<'a> {
    /// Where it begins.
    pub line: u64,
    /// Its session.
    pub session: String,
    /// Its database.
    pub database: String,
    /// When it was written, µs.
    pub at_us: Option<i64>,
    /// `LOG`, `ERROR`, ….
    pub severity: &'a str,
    /// The message.
    pub message: String,
    /// The text of DETAIL.
    pub detail: &'a str,
    /// The statement during which it was written, if the record has it.
    pub statement: Option<String>,
}

impl Said<'_> {
    /// Sends the record's event to `sink`.
    ///
    /// # Errors
    /// As `sink`.
    pub fn tell(self, sink: Sink<'_>) -> Result<(), Problem> {
        let Some(event) = event(self.severity, &self.message, self.detail, self.statement) else { return Ok(()) };
        let before_ns = match &event {
            Event::Statement(logged) => logged.duration_ns.unwrap_or(0),
            _ => 0,
        };
        let at_us = self.at_us.map(|us| us.saturating_sub_unsigned(before_ns / 1000));
        sink(Entry { line: self.line, session: self.session, database: self.database, at_us, event })
    }
}

/// The event of a message about its session; none for all others.
pub fn event(severity: &str, message: &str, detail: &str, statement: Option<String>) -> Option<Event> {
    match severity {
        "LOG" => {}
        "ERROR" | "FATAL" | "PANIC" => return Some(Event::Failed(statement)),
        _ => return None,
    }
    if let Some(rest) = message.strip_prefix("duration: ") {
        let (number, rest) = rest.split_once(" ms")?;
        let took_ns = duration_ns(number, 1e6)?;
        return match rest.strip_prefix("  ") {
            Some(rest) if rest.starts_with("plan:") => Some(Event::Plan),
            Some(rest) => statement_of(rest, detail, Some(took_ns)),
            None => Some(Event::Duration(took_ns)),
        };
    }
    if let Some(audit) = message.strip_prefix("AUDIT: ") {
        return pgaudit::event(audit);
    }
    if message.starts_with("connection authorized: ") {
        return Some(Event::Begins);
    }
    if message.starts_with("disconnection: ") {
        return Some(Event::Ends);
    }
    statement_of(message, detail, None)
}

/// The statement after `statement: `, `execute NAME: ` and so on.
fn statement_of(text: &str, detail: &str, duration_ns: Option<u64>) -> Option<Event> {
    let logged = |sql: &str, values, sent| {
        let sql = sql.to_owned();
        Event::Statement(Logged { sql, values, duration_ns, sent, audited: false, number: None })
    };
    if let Some(sql) = text.strip_prefix("statement: ") {
        return Some(logged(sql, Values::InText, Sent::Text));
    }
    let (step, rest) = text.split_once(' ')?;
    let (name, sql) = rest.split_once(": ")?;
    match step {
        // Rows that are fetched in parts belong to the statement that started the fetch.
        "execute" if name.starts_with("fetch from ") => Some(Event::Aside(duration_ns.unwrap_or(0))),
        "execute" => {
            let sent = if name.starts_with("<unnamed>") { Sent::Once } else { Sent::Prepared };
            Some(logged(sql, values(sql, detail), sent))
        }
        "parse" | "bind" => Some(Event::Aside(duration_ns.unwrap_or(0))),
        _ => None,
    }
}

/// The values of the parameters of `sql`, which are in `detail`.
fn values(sql: &str, detail: &str) -> Values {
    let count = parameters_of(sql, Flavour::Postgres);
    if count == 0 {
        return Values::InText;
    }
    let Some(text) = detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: ")) else {
        return Values::Absent;
    };
    let Some(mut values) = listed(text).filter(|values| values.len() >= count) else { return Values::Absent };
    // A client may declare and send parameters that its statement does not name; the server expects only the others.
    values.truncate(count);
    // `log_parameter_max_length` cuts values in this way.
    if values.iter().flatten().any(|value| value.ends_with("...")) { Values::Cut } else { Values::Known(values) }
}

/// The values of `$1 = 'it''s', $2 = NULL`.
fn listed(mut text: &str) -> Option<Vec<Option<String>>> {
    let mut values = Vec::new();
    loop {
        text = text.strip_prefix(&format!("${} = ", values.len() + 1))?;
        if let Some(rest) = text.strip_prefix("NULL") {
            values.push(None);
            text = rest;
        } else {
            let mut value = String::new();
            text = text.strip_prefix('\'')?;
            loop {
                let (part, rest) = text.split_once('\'')?;
                value.push_str(part);
                text = rest;
                match text.strip_prefix('\'') {
                    Some(rest) => {
                        value.push('\'');
                        text = rest;
                    }
                    None => break,
                }
            }
            // In older servers a cut value has its dots after the quote.
            if let Some(rest) = text.strip_prefix("...") {
                value.push_str("...");
                text = rest;
            }
            values.push(Some(value));
        }
        match text.strip_prefix(", ") {
            Some(rest) => text = rest,
            None => return text.is_empty().then_some(values),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(message: &str, detail: &str) -> String {
        match event("LOG", message, detail, None) {
            Some(Event::Statement(logged)) => {
                format!("{} | {:?} | {:?} | {:?}", logged.sql, logged.values, logged.duration_ns, logged.sent)
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn statements_come_with_what_the_record_has_of_them() {
        expect_test::expect![[r#"
            SELECT 1; | InText | Some(79000) | Text
            SELECT 1 | InText | None | Text
            SELECT $1, $2 | Known([Some("it's"), None]) | Some(3000) | Prepared
            SELECT $1 | Absent | None | Once
            SELECT $1 | Cut | None | Once
            SELECT $1 | Known([Some("a")]) | None | Once
            SELECT '$1' | InText | None | Once
            Some(Duration(1250000))
            Some(Aside(109000))
            Some(Aside(7000))
            Some(Aside(7000))
            Some(Begins)
            Some(Ends)
            None"#]]
        .assert_eq(
            &[
                told("duration: 0.079 ms  statement: SELECT 1;", ""),
                told("statement: SELECT 1", ""),
                told("duration: 0.003 ms  execute P_1: SELECT $1, $2", "parameters: $1 = 'it''s', $2 = NULL"),
                told("execute <unnamed>: SELECT $1", ""),
                told("execute <unnamed>: SELECT $1", "parameters: $1 = 'a long te...'"),
                told("execute <unnamed>: SELECT $1", "parameters: $1 = 'a', $2 = 'a long te...'"),
                told("execute <unnamed>: SELECT '$1'", ""),
                told("duration: 1.250 ms", ""),
                told("duration: 0.109 ms  parse P_0: BEGIN;", ""),
                told("duration: 0.007 ms  bind P_0: BEGIN;", ""),
                told("duration: 0.007 ms  execute fetch from S_1/C_2: SELECT 1", ""),
                told("connection authorized: user=postgres database=app", ""),
                told("disconnection: session time: 0:00:00.010", ""),
                told("checkpoint starting: time", ""),
            ]
            .join("\n"),
        );
        assert_eq!(event("ERROR", "division by zero", "", None), Some(Event::Failed(None)));
    }
}
