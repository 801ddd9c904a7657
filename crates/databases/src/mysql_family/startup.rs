//! From a TCP connection to a logged-in session: TLS if requested, authentication.
//!
//! There is no fallback. A server without TLS is refused if TLS was requested, and so is one that wants the password
//! itself on a connection that others could read. A server on this machine gets it encrypted with the server's own key.

use std::net::IpAddr;

use tithe_machine::{fault::Fault, sandbox::is_own};
use tithe_plugin::wire::Wire;

use super::{
    proof::{CACHING_SHA2, CLEAR, NATIVE, SHA256_PASSWORD, prove},
    protocol::{
        Body, Greeting, Packet, capability, greeting, next_packet, put_client_start, put_packet, put_value,
        server_error,
    },
    rsa::PublicKey,
};
use crate::target::Target;

/// The capabilities that every connection requests, except TLS.
const WANTED: u32 = capability::FOUND_ROWS
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH
    | capability::PLUGIN_AUTH_LENENC
    | capability::DEPRECATE_EOF;

/// Further data of `caching_sha2_password`: the server has the proof in its cache, or requires the password itself.
const REMEMBERED: &[u8] = &[3];
const PASSWORD_ITSELF: &[u8] = &[4];
/// Most packets of the server in a login: none has more than five.
const MOST_PACKETS: usize = 16;
/// What a client sends to request the server's public key, by plugin.
const PUBLIC_KEY: [(&str, &[u8]); 2] = [(CACHING_SHA2, &[2]), (SHA256_PASSWORD, &[1])];

/// A connection after the login. It is still blocking.
pub struct Opened {
    /// The connection.
    pub wire: Wire,
    /// The server's number of it.
    pub number: u32,
    /// How the client authenticated: `none`, or the name of the proof.
    pub method: String,
    /// True when the server's greeting offers TLS.
    pub offers_tls: bool,
}

/// The version in the greeting of the server at `host` and `port`, which needs no login.
///
/// # Errors
/// A broken connection, or a server of another protocol.
pub fn version(host: &str, port: u16) -> Result<String, Fault> {
    let mut wire = Wire::connect(host, port)?;
    let packet = receive(&mut wire)?;
    Ok(greeting(&wire.unread()[packet.body])?.version)
}

/// Opens a connection to `target` and logs in, unless `check` refuses the version that the server reports.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn open(target: &Target, check: impl Fn(&str) -> Result<(), Fault>) -> Result<Opened, Fault> {
    target.log_in(|target| start_up(target, &check))
}

fn start_up(target: &Target, check: impl Fn(&str) -> Result<(), Fault>) -> Result<Opened, Fault> {
    let mut wire = target.dial()?;
    let packet = receive(&mut wire)?;
    let greeting = greeting(&wire.unread()[packet.body.clone()])?;
    wire.consume(packet.body.end);
    let Greeting { version, number: of_connection, capabilities, .. } = &greeting;
    let of_connection = *of_connection;
    check(version)?;
    if capabilities & WANTED != WANTED {
        let lacks = WANTED & !capabilities;
        return Err(Fault::Refused(format!("{version} lacks capabilities 0x{lacks:08x} of MySQL 5.7")));
    }
    let offers_tls = capabilities & capability::SSL != 0;
    let mut number = packet.number;
    // No file is ever read: a session answers with its own rows, and only if it has just requested the load.
    let mut wanted = WANTED | capabilities & capability::LOCAL_FILES;
    if let Some(tls) = &target.tls {
        if !offers_tls {
            return Err(Fault::Refused("TLS was asked for, and the server offers none".to_owned()));
        }
        wanted |= capability::SSL;
        number += 1;
        put_packet(wire.output(), number, |out| put_client_start(out, wanted))?;
        wire.flush()?;
        tls.start(&mut wire, &target.host, target.port)?;
    }
    let proof = prove(&greeting.plugin, target.password.as_ref(), &greeting.salt);
    // The server's plugin may be unknown here; the client then proposes another one.
    let (plugin, proof) = proof.map_or_else(|_| (NATIVE.to_owned(), Vec::new()), |proof| (greeting.plugin, proof));
    put_packet(wire.output(), number.wrapping_add(1), |out| {
        put_client_start(out, wanted);
        out.extend_from_slice(target.user.as_bytes());
        out.push(0);
        put_value(out, &proof);
        out.extend_from_slice(plugin.as_bytes());
        out.push(0);
    })?;
    wire.flush()?;
    let plugin = authenticate(&mut wire, target, plugin, greeting.salt)?;
    let method = if target.password.is_some() { plugin } else { "none".to_owned() };
    Ok(Opened { wire, number: of_connection, method, offers_tls })
}

/// The next packet; waits for it. The start-up runs on a connection that blocks.
fn receive(wire: &mut Wire) -> Result<Packet, Fault> {
    loop {
        if let Some(packet) = next_packet(wire.unread())? {
            return Ok(packet);
        }
        wire.fill()?;
    }
}

/// Answers the server's further requests until it accepts the login. Returns the accepted proof. `salt` comes from the
/// server's greeting.
fn authenticate(wire: &mut Wire, target: &Target, mut plugin: String, mut salt: Vec<u8>) -> Result<String, Fault> {
    for _ in 0..MOST_PACKETS {
        let packet = receive(wire)?;
        let body = &wire.unread()[packet.body.clone()];
        let mut reply = None;
        match body.split_first() {
            Some((0, _)) => {
                wire.consume(packet.body.end);
                return Ok(plugin);
            }
            Some((0xff, _)) => return Err(server_error(body)),
            Some((0xfe, rest)) => {
                let mut rest = Body::new(rest);
                plugin = String::from_utf8_lossy(rest.zero_ended()?).into_owned();
                salt = rest.rest().to_vec();
                reply = Some(match plugin.as_str() {
                    CLEAR => in_secret(target)?,
                    SHA256_PASSWORD if target.password.is_none() => vec![0],
                    SHA256_PASSWORD => itself_or_key(target, &plugin)?,
                    _ => prove(&plugin, target.password.as_ref(), &salt)?,
                });
            }
            Some((1, REMEMBERED)) if plugin == CACHING_SHA2 => {}
            Some((1, PASSWORD_ITSELF)) if plugin == CACHING_SHA2 => {
                reply = Some(itself_or_key(target, &plugin)?);
            }
            Some((1, pem)) if target.tls.is_none() => {
                reply = Some(PublicKey::of_pem(pem)?.encrypt(&disguised(password_itself(target)?, &salt))?);
            }
            _ => return Err(Fault::Protocol("a packet that has no place in a login".to_owned())),
        }
        wire.consume(packet.body.end);
        if let Some(reply) = reply {
            put_packet(wire.output(), packet.number.wrapping_add(1), |out| out.extend_from_slice(&reply))?;
            wire.flush()?;
        }
    }
    Err(Fault::Protocol(format!("the server's login did not end after {MOST_PACKETS} packets")))
}

/// The password, followed by a zero byte.
fn password_itself(target: &Target) -> Result<Vec<u8>, Fault> {
    let password =
        target.password.as_ref().ok_or_else(|| Fault::Refused("the server asks for a password".to_owned()))?;
    Ok([password.expose(), &[0]].concat())
}

/// The same for a server that accepts no other form, if others cannot read it.
fn in_secret(target: &Target) -> Result<Vec<u8>, Fault> {
    if target.password.is_none() || target.keeps_secrets() {
        return password_itself(target);
    }
    Err(Fault::Refused(format!(
        "the server asks for the password itself ({CLEAR}), which is sent over TLS with a verified certificate or over a \
         Unix socket only: name one of them in the URL"
    )))
}

/// The password itself if the server regards the connection as safe; otherwise the request for a key to encrypt it
/// with. [`SHA256_PASSWORD`] wants it encrypted over a Unix socket, too.
fn itself_or_key(target: &Target, plugin: &str) -> Result<Vec<u8>, Fault> {
    let is_safe = target.tls.is_some() || target.is_socket() && plugin != SHA256_PASSWORD;
    if is_safe { password_itself(target) } else { ask_for_key(target, plugin) }
}

/// The request for the server's public key. On this machine no other machine can be in between; from elsewhere, the key
/// could be that of an attacker in between.
fn ask_for_key(target: &Target, plugin: &str) -> Result<Vec<u8>, Fault> {
    let address = target.host.parse::<IpAddr>().map(|address| address.is_loopback() || is_own(address));
    if address.unwrap_or(target.host == "localhost" || target.is_socket()) {
        let request = PUBLIC_KEY.iter().find(|(known, _)| *known == plugin);
        return Ok(request.map(|(_, request)| request.to_vec()).unwrap_or_default());
    }
    Err(Fault::Refused("the server asks for the password itself, which is sent over TLS only".to_owned()))
}

/// `password` mixed with the salt, over and over, as the server undoes it after decrypting.
fn disguised(mut password: Vec<u8>, salt: &[u8]) -> Vec<u8> {
    // The zero at the end of the salt is not part of it.
    let salt = salt.strip_suffix(&[0]).unwrap_or(salt);
    password.iter_mut().zip(salt.iter().cycle()).for_each(|(byte, salt)| *byte ^= salt);
    password
}
