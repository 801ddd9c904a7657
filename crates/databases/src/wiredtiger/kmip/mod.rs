//! A master key from a key server: the one KMIP request of an encrypted database.
//!
//! The Key Management Interoperability Protocol 1.2 (OASIS) over TLS 1.2 or 1.3, with a certificate on either side: a
//! Get of a symmetric key by its identifier, in raw form. Left out: every other operation, keys that the server wraps,
//! other encodings than TTLV. There is no fallback: if the server does not return the key, that is an error.
//!
//! The key is requested each time that the engine opens, and is kept only until the data key is unwrapped. It passes
//! through the buffers of the connection, which are neither locked nor zeroed.

#[cfg(test)]
pub mod installed;
#[cfg(test)]
mod tests;
pub mod ttlv;

use std::fs::File;

use tithe_machine::{fault::Fault, secret::owners_alone};
use tithe_plugin::{
    setup::{KeyServer, TlsVersion},
    wire::{Identity, Trust, Wire, client_config},
};
use zeroize::Zeroizing;

use self::ttlv::{HEAD_BYTES, Item, Value};
use super::encryptor::cipher::{KEY_BYTES, Key};

/// Version of the protocol: that of 2014, which current servers still support.
const VERSION: (i32, i32) = (1, 2);
/// Longest answer that is read, bytes: an answer with a key takes a few hundred.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Tags of KMIP 1.2, section 9.1.3.1.
mod tag {
    pub const BATCH_COUNT: u32 = 0x42_000d;
    pub const BATCH_ITEM: u32 = 0x42_000f;
    pub const CRYPTOGRAPHIC_ALGORITHM: u32 = 0x42_0028;
    pub const KEY_BLOCK: u32 = 0x42_0040;
    pub const KEY_FORMAT_TYPE: u32 = 0x42_0042;
    pub const KEY_MATERIAL: u32 = 0x42_0043;
    pub const KEY_VALUE: u32 = 0x42_0045;
    pub const KEY_WRAPPING_DATA: u32 = 0x42_0046;
    pub const OPERATION: u32 = 0x42_005c;
    pub const PROTOCOL_VERSION: u32 = 0x42_0069;
    pub const PROTOCOL_VERSION_MAJOR: u32 = 0x42_006a;
    pub const PROTOCOL_VERSION_MINOR: u32 = 0x42_006b;
    pub const REQUEST_HEADER: u32 = 0x42_0077;
    pub const REQUEST_MESSAGE: u32 = 0x42_0078;
    pub const REQUEST_PAYLOAD: u32 = 0x42_0079;
    pub const RESPONSE_MESSAGE: u32 = 0x42_007b;
    pub const RESPONSE_PAYLOAD: u32 = 0x42_007c;
    pub const RESULT_MESSAGE: u32 = 0x42_007d;
    pub const RESULT_REASON: u32 = 0x42_007e;
    pub const RESULT_STATUS: u32 = 0x42_007f;
    pub const SYMMETRIC_KEY: u32 = 0x42_008f;
    pub const UNIQUE_IDENTIFIER: u32 = 0x42_0094;
}

/// The operation Get.
const GET: u32 = 0x0a;
/// The key format Raw.
const RAW: u32 = 1;
/// The status of an operation that was done.
const SUCCESS: u32 = 0;
/// The algorithm AES.
const AES: u32 = 3;

/// The master key that `server` names.
///
/// # Errors
/// [`Fault::Refused`] if the client's key file is readable by others, either side rejects the other's certificate, the
/// server refuses the key, or the key is not an AES key of 256 bits; [`Fault::Connection`] if the server does not
/// answer; [`Fault::Protocol`] if it uses another protocol.
pub fn fetch(server: &KeyServer) -> Result<Key, Fault> {
    private(server)?;
    let identity = Identity { certificate: &server.certificate, key: &server.key };
    fetch_as(server, Trust::Authority(&server.authority), Some(identity))
}

/// As [`fetch`], with another trust or identity than the server's clients have: for the negative checks.
///
/// # Errors
/// As [`fetch`].
pub fn fetch_as(server: &KeyServer, trust: Trust<'_>, identity: Option<Identity<'_>>) -> Result<Key, Fault> {
    let (host, port) = host_and_port(&server.address)?;
    let config = client_config(trust, identity, &[TlsVersion::V1_2, TlsVersion::V1_3], false, None)?;
    let mut wire = Wire::connect(host, port)?;
    wire.start_tls(config, host)?;
    request(&server.key_id).write(wire.output());
    wire.flush()?;
    while wire.unread().len() < HEAD_BYTES {
        wire.fill()?;
    }
    let strange = || Fault::Protocol("the answer is not one of KMIP".to_owned());
    let head = *wire.unread().first_chunk().ok_or_else(strange)?;
    let length = ttlv::message_bytes(head, ANSWER_BYTES_MAX).ok_or_else(strange)?;
    while wire.unread().len() < length {
        wire.fill()?;
    }
    key_in(&ttlv::parse(&wire.unread()[..length]).ok_or_else(strange)?)
}

fn private(server: &KeyServer) -> Result<(), Fault> {
    let file = File::open(&server.key).map_err(|error| Fault::machine(server.key.display(), error))?;
    owners_alone(&file, &server.key)
}

/// `host:port`, an IPv6 address in brackets.
fn host_and_port(address: &str) -> Result<(&str, u16), Fault> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = parts
        .filter(|(host, _)| !host.is_empty())
        .ok_or_else(|| Fault::Refused(format!("`{address}` is not host:port")))?;
    Ok((host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port))
}

/// The message that requests the key `id`.
fn request(id: &str) -> Item<'_> {
    let structure = |tag, items| Item::new(tag, Value::Structure(items));
    let version = vec![
        Item::new(tag::PROTOCOL_VERSION_MAJOR, Value::Integer(VERSION.0)),
        Item::new(tag::PROTOCOL_VERSION_MINOR, Value::Integer(VERSION.1)),
    ];
    let header = vec![structure(tag::PROTOCOL_VERSION, version), Item::new(tag::BATCH_COUNT, Value::Integer(1))];
    let payload = vec![
        Item::new(tag::UNIQUE_IDENTIFIER, Value::Text(id)),
        Item::new(tag::KEY_FORMAT_TYPE, Value::Enumeration(RAW)),
    ];
    let operation = vec![Item::new(tag::OPERATION, Value::Enumeration(GET)), structure(tag::REQUEST_PAYLOAD, payload)];
    let message = vec![structure(tag::REQUEST_HEADER, header), structure(tag::BATCH_ITEM, operation)];
    structure(tag::REQUEST_MESSAGE, message)
}

/// The key in an answer to [`request`].
fn key_in(answer: &Item<'_>) -> Result<Key, Fault> {
    let strange = || Fault::Protocol("the answer is not one to a Get of KMIP".to_owned());
    let done = answer.item(tag::BATCH_ITEM).filter(|_| answer.tag == tag::RESPONSE_MESSAGE).ok_or_else(strange)?;
    match done.get(tag::RESULT_STATUS) {
        Some(Value::Enumeration(SUCCESS)) => {}
        Some(Value::Enumeration(_)) => return Err(Fault::Refused(refusal(done))),
        _ => return Err(strange()),
    }
    let block = done
        .at(&[tag::RESPONSE_PAYLOAD, tag::SYMMETRIC_KEY, tag::KEY_BLOCK])
        .ok_or_else(|| Fault::Refused("the object is not a symmetric key".to_owned()))?;
    if block.item(tag::KEY_WRAPPING_DATA).is_some() {
        return Err(Fault::Refused("the server gives the key wrapped by another".to_owned()));
    }
    if block.get(tag::CRYPTOGRAPHIC_ALGORITHM).is_some_and(|algorithm| *algorithm != Value::Enumeration(AES)) {
        return Err(Fault::Refused("the key is not one of AES".to_owned()));
    }
    let material = block.at(&[tag::KEY_VALUE, tag::KEY_MATERIAL]).map(|item| &item.value);
    let (Some(Value::Enumeration(RAW)), Some(Value::Bytes(bytes))) = (block.get(tag::KEY_FORMAT_TYPE), material) else {
        return Err(Fault::Refused("the server does not give the key in raw form".to_owned()));
    };
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if bytes.len() != KEY_BYTES {
        return Err(Fault::Refused(format!("the key has {} bits and not 256", bytes.len() * 8)));
    }
    key.copy_from_slice(bytes);
    Ok(key)
}

/// The server's own reason for a refusal.
fn refusal(done: &Item<'_>) -> String {
    match (done.get(tag::RESULT_REASON), done.get(tag::RESULT_MESSAGE)) {
        (_, Some(Value::Text(words))) => format!("the server says: {words}"),
        (Some(Value::Enumeration(reason)), _) => format!("the server gives reason {reason:#x} of KMIP"),
        _ => "the server gives no reason".to_owned(),
    }
}
