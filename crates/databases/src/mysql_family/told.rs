//! The server's side of the protocol of both products. A [test](crate::told) says how it answers.

use std::{
    io::{self, BufReader, Read, Write},
    net::TcpStream,
};

use tithe_plugin::product::Product;

use crate::told::{Answer, Error, Told};

/// The error of a denied statement, and of one that no test has an answer to.
const DENIED: &str = "1142";
const UNKNOWN: Error = ("1064", "no test has an answer to this");

/// Capabilities of a server with TLS, and the one that it lacks without.
const CAPABILITIES: u32 = 0x81ff_fffe;
const TLS: u32 = 1 << 11;

/// A server of a `product` with TLS that asks for a password, with these settings and answers.
pub fn server(
    (product, version): (&'static dyn Product, &'static str),
    settings: Vec<(&'static str, &'static str)>,
    answers: Vec<Answer>,
) -> Told {
    Told { product, serve, denied: DENIED, version, password: true, tls: true, settings, answers }
}

/// Serves one connection.
fn serve(told: &Told, stream: TcpStream) -> io::Result<()> {
    let mut input = BufReader::new(stream.try_clone()?);
    let mut output = stream;
    output.write_all(&packet(0, &greeting(told)))?;
    let Some(login) = read_packet(&mut input)? else { return Ok(()) };
    // Capabilities, longest packet, character set and 23 bytes; the user; the proof with its length.
    let proof = login[32..].iter().position(|byte| *byte == 0).map_or(0, |end| login[32 + end + 1]);
    if told.password && proof == 0 {
        return output.write_all(&packet(2, &error("1045", "Access denied (using password: NO)")));
    }
    output.write_all(&packet(2, &[0, 0, 0, 2, 0, 0, 0]))?;
    while let Some(request) = read_packet(&mut input)? {
        let (kind, sql) = (request[0], String::from_utf8_lossy(&request[1..]));
        match (kind, answer(told, &sql)) {
            (3, Ok(rows)) => output.write_all(&in_packets(&rows))?,
            (3, Err((code, words))) => output.write_all(&packet(1, &error(code, words)))?,
            // It prepares nothing, for the reason that a test gives.
            (0x16, _) => {
                let (code, words) = told.given(&sql).and_then(Result::err).unwrap_or(("1295", "not prepared"));
                output.write_all(&packet(1, &error(code, words)))?;
            }
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// The rows for `sql`, or the error.
fn answer(told: &Told, sql: &str) -> Result<Vec<Vec<&'static str>>, Error> {
    if let Some(given) = told.given(sql) {
        return given;
    }
    let pairs = |wanted: &dyn Fn(&str) -> bool| {
        let chosen = told.settings.iter().filter(|(name, _)| wanted(name));
        Ok(chosen.map(|(name, value)| vec![*name, *value]).collect())
    };
    if let Some(name) = sql.strip_prefix("SHOW GLOBAL VARIABLES LIKE ") {
        return pairs(&|known| known == name.trim_matches('\''));
    }
    match sql {
        "SHOW GLOBAL VARIABLES" => pairs(&|name| name.starts_with(char::is_lowercase)),
        "SHOW GLOBAL STATUS LIKE 'server\\_audit%'" => pairs(&|name| name.starts_with("Server_audit")),
        "SELECT VERSION()" => Ok(vec![vec![told.version]]),
        _ if ["SET ", "SHOW SESSION STATUS "].iter().any(|begin| sql.starts_with(begin)) => Ok(Vec::new()),
        _ => Err(UNKNOWN),
    }
}

fn greeting(told: &Told) -> Vec<u8> {
    let capabilities = if told.tls { CAPABILITIES } else { CAPABILITIES & !TLS };
    let [low, second, third, high] = capabilities.to_le_bytes();
    let fixed = [&[low, second, 45, 2, 0, third, high, 21][..], &[0; 10], b"abcdefghijkl\0"].concat();
    let version = told.version.as_bytes();
    [b"\x0a", version, b"\0\x01\0\0\x0012345678\0", &fixed, b"mysql_native_password\0"].concat()
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let [first, second, third, _] = (body.len() as u32).to_le_bytes();
    [&[first, second, third, number], body].concat()
}

fn read_packet(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 4];
    if input.read_exact(&mut head).is_err() {
        return Ok(None);
    }
    let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    input.read_exact(&mut body)?;
    Ok(Some(body).filter(|body| !body.is_empty()))
}

fn error(code: &str, words: &str) -> Vec<u8> {
    let code: u16 = code.parse().expect("a number");
    [&[0xff], &code.to_le_bytes()[..], b"#42000", words.as_bytes()].concat()
}

/// Rows of the text protocol, in columns without a name.
fn in_packets(rows: &[Vec<&str>]) -> Vec<u8> {
    let columns = rows.first().map_or(1, Vec::len);
    let column = [&b"\x03def\0\0\0\0\0"[..], &[12, 45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0]].concat();
    let length = |text: &str| [&[252][..], &(text.len() as u16).to_le_bytes()].concat();
    let row = |row: &Vec<&str>| row.iter().flat_map(|text| [length(text), text.as_bytes().to_vec()].concat()).collect();
    let rows = rows.iter().map(row);
    let bodies = [vec![columns as u8]].into_iter().chain(vec![column; columns]).chain(rows);
    let bodies: Vec<Vec<u8>> = bodies.chain([vec![0xfe, 0, 0, 2, 0, 0, 0]]).collect();
    bodies.iter().zip(1..).flat_map(|(body, number)| packet(number, body)).collect()
}
