//! The parsers of these products for bytes that others wrote, for `fuzz/targets`.

use tithe_machine::secret::Secret;
use tithe_plugin::wire::foreign::Parser;

use super::{option_file, proof, protocol, rsa::PublicKey};

/// All of them.
pub const PARSERS: &[Parser] = &[
    ("mysql-packets", packets),
    ("mysql-public-key", |bytes| {
        if let Ok(key) = PublicKey::of_pem(bytes) {
            let _ = key.encrypt(b"password");
        }
    }),
    ("mysql-proof", |bytes| {
        let plugin = bytes.first().map_or(0, |byte| usize::from(*byte) % PLUGINS.len());
        let _ = proof::prove(PLUGINS[plugin], Some(&Secret::new("password")), bytes.get(1..).unwrap_or_default());
    }),
    ("mysql-option-file", |bytes| drop(option_file::lines(&String::from_utf8_lossy(bytes), "-x"))),
];

const PLUGINS: [&str; 4] = ["mysql_native_password", "caching_sha2_password", "client_ed25519", "mysql_clear_password"];

/// Reads every packet in every way that the client has. The first byte gives the number of columns, which follow it.
fn packets(bytes: &[u8]) {
    let Some((&count, rest)) = bytes.split_first() else { return };
    let (columns, mut bytes) = rest.split_at(usize::from(count).min(rest.len()));
    while let Ok(Some(packet)) = protocol::next_packet(bytes) {
        let body = &bytes[packet.body.clone()];
        let _ = (protocol::greeting(body), protocol::server_error(body), protocol::affected(body));
        let _ = (protocol::column_type(body), protocol::column_name(body), protocol::leaves_open(body));
        let _ = protocol::binary_row(body, columns, |_, _| {});
        bytes = &bytes[packet.body.end..];
    }
}
