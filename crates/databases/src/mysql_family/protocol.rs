//! The protocol of MariaDB and MySQL: packets are written, and parsed in place.
//!
//! Source: MariaDB documentation, "Client/Server Protocol"; MySQL internals, "Client/Server Protocol". Left out:
//! packets of 16 MB and more, compression, several statements in one request.

use tithe_machine::fault::{Fault, said};
use tithe_plugin::wire::{Cursor, Format};

/// Capabilities that are requested (MariaDB documentation, "Connection", "Capabilities").
pub mod capability {
    /// Counts the rows that an update found, not only those it changed: one that writes the same value counts.
    pub const FOUND_ROWS: u32 = 1 << 1;
    /// The server may request a file: `LOAD DATA LOCAL`.
    pub const LOCAL_FILES: u32 = 1 << 7;
    /// The protocol of MySQL 4.1 and newer.
    pub const PROTOCOL_41: u32 = 1 << 9;
    /// TLS after the server's greeting.
    pub const SSL: u32 = 1 << 11;
    /// Status of transactions.
    pub const TRANSACTIONS: u32 = 1 << 13;
    /// Proofs that are not of the oldest kind.
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    /// The proof is named.
    pub const PLUGIN_AUTH: u32 = 1 << 19;
    /// The proof may be longer than 255 bytes.
    pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
    /// Rows end with an OK packet, and column definitions with none.
    pub const DEPRECATE_EOF: u32 = 1 << 24;
}

/// Largest body of a packet that is not continued in another one.
pub const LONGEST_BODY: usize = 0xff_ffff - 1;

/// utf8mb4_general_ci, which MariaDB and MySQL both know.
const CHARACTER_SET: u8 = 45;

/// Column types of the binary protocol. From [`kind::JSON`] on all are written as a length and bytes.
mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const JSON: u8 = 245;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const GEOMETRY: u8 = 255;
}

/// Type of a text parameter, as `COM_STMT_EXECUTE` requires it.
pub const TEXT_PARAMETER: [u8; 2] = [kind::VAR_STRING, 0];
/// Type of a parameter of bytes.
pub const BYTES_PARAMETER: [u8; 2] = [kind::BLOB, 0];
/// Type of a signed whole number of eight bytes.
pub const INTEGER_PARAMETER: [u8; 2] = [kind::LONGLONG, 0];
/// Type of SQL's NULL.
pub const NULL_PARAMETER: [u8; 2] = [kind::NULL, 0];

/// One packet in received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Its number within the exchange.
    pub number: u8,
    /// The position of its body.
    pub body: std::ops::Range<usize>,
}

/// The first packet in `bytes`; `None` if it has not arrived completely.
///
/// # Errors
/// [`Fault::Protocol`] for a packet that continues in another one: no answer to Tithe's requests is that long.
#[inline]
pub fn next_packet(bytes: &[u8]) -> Result<Option<Packet>, Fault> {
    let Some(&[first, second, third, number]) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes([first, second, third, 0]) as usize;
    if length > LONGEST_BODY {
        return Err(Fault::Protocol("a packet of 16 MB or more".to_owned()));
    }
    Ok((bytes.len() >= 4 + length).then(|| Packet { number, body: 4..4 + length }))
}

/// Reads a packet's body from its start.
pub type Body<'a> = Cursor<'a, Packets>;

/// The packets of MariaDB and MySQL as a format.
#[derive(Debug, Clone, Copy)]
pub struct Packets;

impl Format for Packets {
    const CUT_SHORT: &'static str = "a packet ends before its content";
}

/// Takes a length-encoded whole number.
///
/// # Errors
/// As [`Cursor::bytes`], and [`Fault::Protocol`] for a byte that begins none.
#[inline]
pub fn take_length(body: &mut Body<'_>) -> Result<u64, Fault> {
    match body.byte()? {
        small @ 0..=250 => Ok(u64::from(small)),
        252 => body.le::<2>(),
        253 => body.le::<3>(),
        254 => body.le::<8>(),
        other => Err(Fault::Protocol(format!("0x{other:02x} begins no length"))),
    }
}

/// Takes bytes with their length before them.
///
/// # Errors
/// As [`take_length`].
#[inline]
pub fn take_value<'a>(body: &mut Body<'a>) -> Result<&'a [u8], Fault> {
    let length = take_length(body)?;
    body.bytes(usize::try_from(length).unwrap_or(usize::MAX))
}

/// As [`take_value`], in a row of the text protocol, where 251 means NULL.
///
/// # Errors
/// As [`take_value`].
pub fn take_text_value<'a>(body: &mut Body<'a>) -> Result<Option<&'a [u8]>, Fault> {
    if body.rest().first() == Some(&251) {
        body.byte()?;
        return Ok(None);
    }
    take_value(body).map(Some)
}

/// The server's greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Version, as the server reports it.
    pub version: String,
    /// The number of the connection.
    pub number: u32,
    /// The server's capabilities.
    pub capabilities: u32,
    /// Random bytes for the proof: 20 with all products of the last twenty years.
    pub salt: Vec<u8>,
    /// Name of the proof that the server would have.
    pub plugin: String,
}

/// Reads the server's greeting.
///
/// # Errors
/// The server's error if it sends one in place of a greeting; [`Fault::Protocol`] for another protocol.
pub fn greeting(body: &[u8]) -> Result<Greeting, Fault> {
    if body.first() == Some(&0xff) {
        return Err(server_error(body));
    }
    let mut body = Body::new(body);
    if body.byte()? != 10 {
        return Err(Fault::Protocol("the server does not greet as MariaDB and MySQL do".to_owned()));
    }
    let version = String::from_utf8_lossy(body.zero_ended()?).into_owned();
    let number = body.le::<4>()? as u32;
    let mut salt = body.bytes(8)?.to_vec();
    body.byte()?;
    let low = body.le::<2>()? as u32;
    body.bytes(3)?;
    let capabilities = low | (body.le::<2>()? as u32) << 16;
    let salt_length = usize::from(body.byte()?);
    body.bytes(10)?;
    // The second part has at least 13 bytes, including a zero at its end.
    let second = body.bytes(salt_length.saturating_sub(8).max(13))?;
    salt.extend_from_slice(second.strip_suffix(&[0]).unwrap_or(second));
    let plugin = body.zero_ended().unwrap_or(body.rest());
    Ok(Greeting { version, number, capabilities, salt, plugin: String::from_utf8_lossy(plugin).into_owned() })
}

/// The server's error packet as a fault: a denied login or statement is [`Fault::Refused`].
pub fn server_error(body: &[u8]) -> Fault {
    /// Access denied (1044, 1045, 1142, 1143, 1227, 1698), host or plugin not allowed (1130, 1251, 1524, 1275), TLS
    /// demanded (3159), the account is locked (4151; 3955: after logins that failed).
    const REFUSALS: [u64; 13] = [1044, 1045, 1130, 1142, 1143, 1227, 1251, 1275, 1524, 1698, 3159, 3955, 4151];
    /// An expired password: the server only accepts a new password (1820), or no login (1862).
    const EXPIRED: [u64; 2] = [1820, 1862];
    let mut body = Body::new(body.get(1..).unwrap_or_default());
    let Ok(code) = body.le::<2>() else { return Body::cut_short() };
    let state = body.rest().strip_prefix(b"#").and_then(|rest| rest.split_at_checked(5));
    let (state, words) = state.map_or((&b"?"[..], body.rest()), |(state, words)| (state, words));
    let text = format!("{code} ({}): {}", said(state), said(words));
    if EXPIRED.contains(&code) {
        return Fault::Refused(format!(
            "{text}; the password of the account has expired: an administrator runs `ALTER USER … IDENTIFIED BY '…'`, with \
             another one, and `ALTER USER … PASSWORD EXPIRE NEVER` if it must not expire again"
        ));
    }
    if REFUSALS.contains(&code) { Fault::Refused(text) } else { Fault::Server(text) }
}

/// True for the error with which MySQL reports that it cannot prepare such a statement (`ER_UNSUPPORTED_PS`).
pub fn is_unprepared(body: &[u8]) -> bool {
    const UNSUPPORTED: u16 = 1295;
    body.strip_prefix(&[0xff]).is_some_and(|rest| rest.starts_with(&UNSUPPORTED.to_le_bytes()))
}

/// Rows affected, of an OK packet.
///
/// # Errors
/// [`Fault::Protocol`] for a packet that is cut short.
pub fn affected(body: &[u8]) -> Result<u64, Fault> {
    take_length(&mut Body::new(body.get(1..).unwrap_or_default()))
}

/// True for the packet that ends rows: an OK packet with its own first byte. A row with this first byte would have a
/// first value of 16 MB or more.
#[inline]
pub fn ends_rows(body: &[u8]) -> bool {
    body.first() == Some(&0xfe)
}

/// The type of a column, from its definition, which ends with a fixed form: length 12, character set (2), longest value
/// (4), type, flags (2), decimals, filler (2).
///
/// # Errors
/// [`Fault::Protocol`] for a definition that ends otherwise.
#[inline]
pub fn column_type(body: &[u8]) -> Result<u8, Fault> {
    match body.last_chunk::<13>() {
        Some(&[12, _, _, _, _, _, _, kind, ..]) => Ok(kind),
        _ => Err(Fault::Protocol("a column definition of another form".to_owned())),
    }
}

/// The name of a column, from its definition: catalog, schema, table and the table's own name come before it.
///
/// # Errors
/// [`Fault::Protocol`] for a definition that is cut short.
pub fn column_name(body: &[u8]) -> Result<&[u8], Fault> {
    let mut body = Body::new(body);
    for _ in 0..4 {
        take_value(&mut body)?;
    }
    take_value(&mut body)
}

/// True if an OK packet, or the one that ends rows, reports an open transaction.
///
/// # Errors
/// [`Fault::Protocol`] for a packet that is cut short.
#[inline]
pub fn leaves_open(body: &[u8]) -> Result<bool, Fault> {
    /// `SERVER_STATUS_IN_TRANS`.
    const IN_TRANSACTION: u64 = 1;
    let mut body = Body::new(body.get(1..).unwrap_or_default());
    take_length(&mut body)?;
    take_length(&mut body)?;
    Ok(body.le::<2>()? & IN_TRANSACTION != 0)
}

/// Passes on the fields of one binary row: `each` gets the column's number and its value, numbers as text.
///
/// # Errors
/// [`Fault::Protocol`] for a row that does not fit its columns, and for types that no workload of Tithe uses.
#[inline]
pub fn binary_row(body: &[u8], columns: &[u8], mut each: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Fault> {
    let mut body = Body::new(body);
    if body.byte()? != 0 {
        return Err(Fault::Protocol("a binary row of another form".to_owned()));
    }
    // The first two bits are not used (MySQL internals, "Binary Protocol Resultset Row").
    let nulls = body.bytes((columns.len() + 7 + 2) / 8)?;
    for (column, kind) in columns.iter().enumerate() {
        let bit = column + 2;
        if nulls[bit / 8] & (1 << (bit % 8)) != 0 {
            each(column, None);
            continue;
        }
        match *kind {
            kind::VARCHAR | kind::BIT | kind::JSON..=kind::GEOMETRY => each(column, Some(take_value(&mut body)?)),
            kind => each(column, Some(number_text(&mut body, kind)?.as_bytes())),
        }
    }
    Ok(())
}

/// A number of the binary protocol as text. Integers are read as signed.
fn number_text(body: &mut Body<'_>, kind: u8) -> Result<String, Fault> {
    Ok(match kind {
        kind::TINY => (body.le::<1>()? as i8).to_string(),
        kind::SHORT | kind::YEAR => (body.le::<2>()? as i16).to_string(),
        kind::LONG | kind::INT24 => (body.le::<4>()? as i32).to_string(),
        kind::LONGLONG => (body.le::<8>()? as i64).to_string(),
        kind::FLOAT => f32::from_bits(body.le::<4>()? as u32).to_string(),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => moment(take_value(body)?, kind != kind::DATE)?,
        kind::TIME => time_of_day(take_value(body)?)?,
        kind::DOUBLE => f64::from_bits(body.le::<8>()?).to_string(),
        kind => return Err(Fault::Protocol(format!("a column of type {kind} is not read"))),
    })
}

/// A date, with the time of day if it is `timed`, as the text protocol writes it. The binary form omits trailing parts
/// that are zero.
fn moment(value: &[u8], timed: bool) -> Result<String, Fault> {
    let part = |at: usize| value.get(at).copied().unwrap_or(0);
    let year = u16::from_le_bytes([part(0), part(1)]);
    let date = format!("{year:04}-{:02}-{:02}", part(2), part(3));
    Ok(if timed { format!("{date} {}", clock_time(value.get(4..).unwrap_or_default(), 0)?) } else { date })
}

/// A time, which may be negative and longer than a day.
fn time_of_day(value: &[u8]) -> Result<String, Fault> {
    let Some((&negative, rest)) = value.split_first() else { return Ok("00:00:00".to_owned()) };
    let days = Body::new(rest).le::<4>()?;
    let time = clock_time(&rest[4..], days * 24)?;
    Ok(if negative == 1 { format!("-{time}") } else { time })
}

/// Hours, to which `hours` are added, minutes, seconds, and microseconds if there are any.
fn clock_time(value: &[u8], hours: u64) -> Result<String, Fault> {
    let part = |at: usize| value.get(at).copied().unwrap_or(0);
    let time = format!("{:02}:{:02}:{:02}", hours + u64::from(part(0)), part(1), part(2));
    Ok(match value.get(3..) {
        Some(rest) if !rest.is_empty() => format!("{time}.{:06}", Body::new(rest).le::<4>()?),
        _ => time,
    })
}

/// Appends one packet; `fill` writes its body.
///
/// # Errors
/// [`Fault::Refused`] for a body of 16 MB and more.
#[inline]
pub fn put_packet(out: &mut Vec<u8>, number: u8, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), Fault> {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, number]);
    fill(out);
    let length = out.len() - start - 4;
    if length > LONGEST_BODY {
        out.truncate(start);
        return Err(Fault::Refused("a request of 16 MB or more".to_owned()));
    }
    out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
    Ok(())
}

/// Appends a length-encoded whole number.
#[inline]
fn put_length(out: &mut Vec<u8>, length: usize) {
    match length {
        0..=250 => out.push(length as u8),
        251..=0xffff => {
            out.push(252);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(253);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(254);
            out.extend_from_slice(&(length as u64).to_le_bytes());
        }
    }
}

/// Appends bytes with their length before them.
#[inline]
pub fn put_value(out: &mut Vec<u8>, value: &[u8]) {
    put_length(out, value.len());
    out.extend_from_slice(value);
}

/// The part that a request for TLS and the client's answer to the greeting share.
pub fn put_client_start(out: &mut Vec<u8>, capabilities: u32) {
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&(LONGEST_BODY as u32).to_le_bytes());
    out.push(CHARACTER_SET);
    out.extend_from_slice(&[0; 23]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The greeting of Debian's MariaDB 10.11, with another salt.
    const GREETING: &[u8] = b"\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\x07\0\0\x0012345678\0\xfe\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\x3d\0\0\0abcdefghijkl\0mysql_native_password\0";

    #[test]
    fn a_greeting_is_read() {
        let greeting = greeting(GREETING).expect("a greeting");
        assert_eq!(greeting.version, "5.5.5-10.11.19-MariaDB-0+deb12u1");
        assert_eq!(greeting.salt, b"12345678abcdefghijkl");
        assert_eq!(greeting.plugin, "mysql_native_password");
        // That server had no certificate.
        assert_eq!(greeting.capabilities & capability::SSL, 0);
        assert_ne!(greeting.capabilities & capability::DEPRECATE_EOF, 0);
    }

    #[test]
    fn errors_are_told_with_their_codes() {
        let fault = server_error(b"\xff\x26\x04#23000Duplicate entry");
        assert_eq!(fault, Fault::Server("1062 (23000): Duplicate entry".to_owned()));
        let fault = server_error(b"\xff\x15\x04#28000Access denied");
        assert_eq!(fault, Fault::Refused("1045 (28000): Access denied".to_owned()));
        assert!(is_unprepared(b"\xff\x0f\x05#HY000This command is not supported"));
        assert!(!is_unprepared(b"\xff\x15\x04#28000Access denied") && !is_unprepared(b"\xff"));
        // Before the client has sent its capabilities, the server sends no state.
        let fault = server_error(b"\xff\x10\x04Too many connections");
        assert_eq!(fault, Fault::Server("1040 (?): Too many connections".to_owned()));
    }

    #[test]
    fn rows_are_handed_over_by_their_types() {
        let mut seen = Vec::new();
        let row = [&[0, 0b1000][..], &[1], &[255; 8], b"\x03abc"].concat();
        binary_row(&row, &[kind::TINY, kind::VARCHAR, kind::LONGLONG, kind::BLOB], |column, value| {
            seen.push((column, value.map(|value| String::from_utf8_lossy(value).into_owned())));
        })
        .expect("a row");
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(seen, [(0, some("1")), (1, None), (2, some("-1")), (3, some("abc"))]);
    }

    proptest! {
        #[test]
        fn lengths_are_read_back(length in prop_oneof![0..300usize, 0..70_000usize, 0..20_000_000usize, any::<usize>()]) {
            let mut out = Vec::new();
            put_length(&mut out, length);
            let mut body = Body::new(&out);
            prop_assert_eq!(take_length(&mut body).expect("a length"), length as u64);
            prop_assert!(body.rest().is_empty());
        }

        #[test]
        fn packets_are_read_back(number: u8, content in proptest::collection::vec(any::<u8>(), 0..300), cut in 0..300usize) {
            let mut out = Vec::new();
            put_packet(&mut out, number, |out| out.extend_from_slice(&content)).expect("a packet");
            let cut = cut % out.len();
            prop_assert_eq!(next_packet(&out[..cut]).expect("the start of a packet"), None);
            let packet = next_packet(&out).expect("a packet").expect("whole");
            prop_assert_eq!((packet.number, &out[packet.body]), (number, &content[..]));
        }

        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120), columns in proptest::collection::vec(any::<u8>(), 0..9)) {
            let _ = next_packet(&bytes);
            let _ = greeting(&bytes);
            let _ = server_error(&bytes);
            let _ = is_unprepared(&bytes);
            let _ = affected(&bytes);
            let _ = column_type(&bytes);
            let _ = binary_row(&bytes, &columns, |_, _| {});
            let _ = take_text_value(&mut Body::new(&bytes));
        }

        #[test]
        fn almost_greetings_never_panic(at in 0..GREETING.len(), byte: u8, cut in 0..=GREETING.len()) {
            let mut said = GREETING.to_vec();
            said[at] = byte;
            let _ = greeting(&said[..cut]);
        }
    }
}
