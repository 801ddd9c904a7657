//! Rows that a session returns, as text.

use tithe_plugin::session::Rows;

/// Writes rows down as `key: field=value`, one a line.
#[derive(Default)]
pub struct Seen(pub String);

impl Rows for Seen {
    fn row(&mut self, key: Option<&[u8]>) {
        self.0 += &format!("\n{}:", key.map_or("-".into(), String::from_utf8_lossy));
    }

    fn field(&mut self, field: usize, value: Option<&[u8]>) {
        self.0 += &format!(" {field}={}", value.map_or("null".into(), |value| value.escape_ascii().to_string()));
    }
}
