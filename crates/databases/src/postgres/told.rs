//! The server's side of PostgreSQL's protocol. A [test](crate::told) says how it answers.

use std::{
    io::{self, BufReader, Read, Write},
    net::TcpStream,
};

use crate::{
    postgres::{Postgres, scram},
    told::{Answer, Error, PASSWORD, Told},
};

/// The error of a denied statement, and of one that no test has an answer to.
const DENIED: &str = "42501";
const UNKNOWN: Error = ("42601", "no test has an answer to this");

/// The server process of every connection.
pub const PROCESS: &str = "77";

/// A server with TLS that asks for a password, with these settings and answers.
pub fn server(settings: Vec<(&'static str, &'static str)>, answers: Vec<Answer>) -> Told {
    Told { product: &Postgres, serve, denied: DENIED, version: "", password: true, tls: true, settings, answers }
}

/// Serves one connection.
fn serve(told: &Told, stream: TcpStream) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut output = stream;
    // The client's parameters.
    read(&mut input)?;
    if told.password {
        output.write_all(&message(b'R', &[&10_u32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat()))?;
        let begun = message_of(&mut input)?;
        // The mechanism with a zero, and the length of what follows.
        let begun = String::from_utf8_lossy(&begun.1[scram::MECHANISM.len() + 1 + 4..]).into_owned();
        let (challenge, signature) = scram::answers(&begun, PASSWORD);
        output.write_all(&message(b'R', &[&11_u32.to_be_bytes()[..], challenge.as_bytes()].concat()))?;
        message_of(&mut input)?;
        output.write_all(&message(b'R', &[&12_u32.to_be_bytes()[..], signature.as_bytes()].concat()))?;
    }
    output.write_all(&message(b'R', &[0; 4]))?;
    let process: u32 = PROCESS.parse().expect("a number");
    output.write_all(&message(b'K', &[process.to_be_bytes(), [1; 4]].concat()))?;
    output.write_all(&message(b'Z', b"I"))?;
    loop {
        let (kind, body) = message_of(&mut input)?;
        if kind != b'Q' {
            return Ok(());
        }
        let sql = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
        let mut answered = Vec::new();
        match answer(told, &sql) {
            Ok(rows) => {
                answered.extend(message(b'T', &[0, 0]));
                rows.iter().for_each(|values| answered.extend(message(b'D', &row(values))));
                answered.extend(message(b'C', b"SELECT\0"));
            }
            Err((code, words)) => {
                let fields = format!("SERROR\0C{code}\0M{words}\0\0");
                answered.extend(message(b'E', fields.as_bytes()));
            }
        }
        answered.extend(message(b'Z', b"I"));
        output.write_all(&answered)?;
    }
}

/// The rows for `sql`, or the error.
fn answer(told: &Told, sql: &str) -> Result<Vec<Vec<&'static str>>, Error> {
    if let Some(given) = told.given(sql) {
        return given;
    }
    let of = |name: &str| told.settings.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    if let Some(name) = sql.strip_prefix("SHOW ") {
        return of(name).map(|value| vec![vec![value]]).ok_or(("42704", "no such setting"));
    }
    if sql.contains("FROM pg_settings WHERE name IN (") {
        let row = |(name, value): &(&'static str, &'static str)| vec![*name, *value, "configuration file", "boot"];
        let asked = told.settings.iter().filter(|(name, _)| sql.contains(&format!("'{name}'")));
        return Ok(asked.map(row).collect());
    }
    match sql {
        "SELECT pg_backend_pid()" => Ok(vec![vec![PROCESS]]),
        _ if sql.starts_with("SET ") => Ok(Vec::new()),
        _ => Err(UNKNOWN),
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// The body of a message whose length, with its own four bytes, comes first.
fn read(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    input.read_exact(&mut body)?;
    Ok(body)
}

/// A message with its kind.
fn message_of(input: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut kind = [0];
    input.read_exact(&mut kind)?;
    Ok((kind[0], read(input)?))
}

fn row(values: &[&str]) -> Vec<u8> {
    let value = |text: &&str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    [&(values.len() as u16).to_be_bytes()[..], &values.iter().flat_map(value).collect::<Vec<u8>>()].concat()
}
