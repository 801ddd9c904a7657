//! The server's side of CQL. A [test](crate::told) says how it answers.

use std::{
    io::{self, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use super::{
    Cassandra,
    protocol::{opcode, put_string, put_value},
};
use crate::told::{Error, PASSWORD, Told};

/// The code of a denied statement, that of a refused login, and the error of a statement that no test has an answer to.
const DENIED: &str = "2100";
const BAD_CREDENTIALS: &str = "0100";
const UNKNOWN: Error = ("2000", "no test has an answer to this");

/// A value that is not there.
pub const NULL: &str = "NULL";
/// A setting of the test alone, which is not shown: the first account has its first password.
pub const FIRST_PASSWORD: &str = "FIRST_PASSWORD";

/// A single node that asks for passwords and limits roles, with an audit log and without a management port.
pub fn tight() -> Told {
    Told {
        product: &Cassandra,
        serve,
        denied: DENIED,
        version: "",
        password: true,
        tls: false,
        settings: vec![
            ("authenticator", "PasswordAuthenticator"),
            ("authorizer", "CassandraAuthorizer"),
            ("role_manager", "CassandraRoleManager"),
            ("native_transport_port", "9042"),
            ("client_encryption_options_optional", "false"),
            ("server_encryption_options_internode_encryption", "all"),
            ("server_encryption_options_optional", "false"),
            ("server_encryption_options_require_client_auth", "true"),
            ("credentials_validity", "2000ms"),
            ("audit_logging_options_enabled", "true"),
            ("audit_logging_options_logger", "BinAuditLogger"),
            ("transparent_data_encryption_options_enabled", "true"),
        ],
        answers: vec![
            (
                "FROM system_auth.roles",
                Ok(&[&["admin", "\u{1}", "\u{1}", "12345678"], &["app", "\u{1}", "\0", "12345678"]]),
            ),
            ("FROM system_auth.role_members", Ok(&[])),
            ("FROM system_auth.role_permissions", Ok(&[])),
            ("SELECT release_version", Ok(&[&["5.0.4"]])),
            ("system_views.system_properties", Ok(&[])),
            ("LIST ROLES", Ok(&[])),
        ],
    }
}

/// Serves one connection.
fn serve(told: &Told, stream: TcpStream) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut output = stream;
    let mut known = !told.password;
    loop {
        let mut head = [0_u8; 9];
        if input.read_exact(&mut head).is_err() {
            return Ok(());
        }
        let mut body = vec![0_u8; u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize];
        input.read_exact(&mut body)?;
        let (kind, message) = match head[4] {
            opcode::STARTUP if known => (opcode::READY, Vec::new()),
            opcode::STARTUP => {
                let mut class = Vec::new();
                put_string(&mut class, b"org.apache.cassandra.auth.PasswordAuthenticator");
                (opcode::AUTHENTICATE, class)
            }
            opcode::AUTH_RESPONSE => {
                let own = format!("\0ann\0{PASSWORD}");
                let has_first = told.settings.iter().any(|(name, _)| *name == FIRST_PASSWORD);
                known = body.ends_with(own.as_bytes()) || has_first && body.ends_with(b"\0cassandra\0cassandra");
                match known {
                    true => (opcode::AUTH_SUCCESS, (-1_i32).to_be_bytes().to_vec()),
                    false => error((BAD_CREDENTIALS, "Provided username and/or password are incorrect")),
                }
            }
            opcode::QUERY if known => {
                // Its length is before it; consistency and flags are behind it.
                let cql = String::from_utf8_lossy(&body[4..body.len() - 3]).into_owned();
                answer(told, &cql).map_or_else(error, |rows| (opcode::RESULT, result(&rows)))
            }
            _ => return Ok(()),
        };
        let mut frame = vec![0x84, 0, head[2], head[3], kind];
        put_value(&mut frame, &message);
        output.write_all(&frame)?;
    }
}

/// The rows for `cql`, or the error.
fn answer(told: &Told, cql: &str) -> Result<Vec<Vec<&'static str>>, Error> {
    if let Some(given) = told.given(cql) {
        return given;
    }
    let shown = told.settings.iter().filter(|(name, _)| name.starts_with(char::is_lowercase));
    if let Some(name) = cql.strip_prefix("SELECT value FROM system_views.settings WHERE name = ") {
        let asked = shown.filter(|(known, _)| *known == name.trim_matches('\''));
        return Ok(asked.map(|(_, value)| vec![*value]).collect());
    }
    match cql {
        "SELECT name, value FROM system_views.settings" => Ok(shown.map(|(name, value)| vec![*name, *value]).collect()),
        "SELECT key FROM system.local" => Ok(vec![vec!["local"]]),
        "SELECT peer FROM system.peers_v2" => Ok(Vec::new()),
        _ => Err(UNKNOWN),
    }
}

fn error((code, words): Error) -> (u8, Vec<u8>) {
    let mut out = u32::from_str_radix(code, 16).expect("a number").to_be_bytes().to_vec();
    put_string(&mut out, words.as_bytes());
    (opcode::ERROR, out)
}

/// Rows without a description of their columns.
fn result(rows: &[Vec<&str>]) -> Vec<u8> {
    const ROWS: u32 = 2;
    const NO_METADATA: u32 = 4;
    let columns = rows.first().map_or(1, Vec::len);
    let head = [ROWS, NO_METADATA, columns as u32, rows.len() as u32];
    let mut out: Vec<u8> = head.iter().flat_map(|number| number.to_be_bytes()).collect();
    for value in rows.iter().flatten() {
        match *value {
            NULL => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            value => put_value(&mut out, value.as_bytes()),
        }
    }
    out
}
