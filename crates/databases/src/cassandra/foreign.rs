//! The parsers of this product for bytes that others wrote, for `fuzz/targets`.

use tithe_plugin::wire::foreign::Parser;

use super::{connection, protocol};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("cassandra-frames", frames),
    ("cassandra-right", |bytes| drop(connection::grant(&String::from_utf8_lossy(bytes)))),
];

fn frames(mut bytes: &[u8]) {
    while let Ok(Some(frame)) = protocol::next_frame(bytes) {
        let message = &bytes[frame.message.clone()];
        let _ = (protocol::server_error(message), protocol::prepared(message));
        if let Ok(Some(mut rows)) = protocol::rows(message) {
            for _ in 0..rows.count * rows.columns {
                if protocol::take_value(&mut rows.values).is_err() {
                    break;
                }
            }
        }
        bytes = &bytes[frame.message.end..];
    }
}
