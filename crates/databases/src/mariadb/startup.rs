//! From a TCP connection to a session that is let in: TLS where asked for, authentication.
//!
//! Nothing falls back: a server without TLS where TLS is asked for, and one that wants the password itself on a connection
//! that anyone can read, are refused.

use tithe_harness::{fault::Fault, wire::Wire};

use super::{
    proof::{CACHING_SHA2, NATIVE, prove},
    protocol::{
        Body, Packet, capability, greeting, next_packet, put_client_start, put_packet, put_value, server_error,
    },
};
use crate::target::Target;

/// What every connection asks for, but TLS.
const WANTED: u32 = capability::FOUND_ROWS
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH
    | capability::PLUGIN_AUTH_LENENC
    | capability::DEPRECATE_EOF;

/// Further data of `caching_sha2_password`: the server remembers the proof, or wants the password itself.
const REMEMBERED: &[u8] = &[3];
const PASSWORD_ITSELF: &[u8] = &[4];

/// Opens a connection and has it let in. The connection still blocks. Returns how the client said who it is: `none`, or the
/// name of the proof.
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn open(target: &Target) -> Result<(Wire, String), Fault> {
    let mut wire = Wire::connect(&target.host, target.port)?;
    let packet = receive(&mut wire)?;
    let greeting = greeting(&wire.unread()[packet.body.clone()])?;
    wire.consume(packet.body.end);
    if greeting.capabilities & WANTED != WANTED {
        let lacks = WANTED & !greeting.capabilities;
        return Err(Fault::Refused(format!("{} lacks capabilities 0x{lacks:08x} of MySQL 5.7", greeting.version)));
    }
    let mut number = packet.number;
    let mut wanted = WANTED;
    if let Some(tls) = &target.tls {
        if greeting.capabilities & capability::SSL == 0 {
            return Err(Fault::Refused("TLS was asked for, and the server offers none".to_owned()));
        }
        wanted |= capability::SSL;
        number += 1;
        put_packet(wire.output(), number, |out| put_client_start(out, wanted))?;
        wire.flush()?;
        tls.start(&mut wire, &target.host, target.port)?;
    }
    let proof = prove(&greeting.plugin, target.password.as_ref(), &greeting.salt);
    // What the server proposes may be unknown here; it is asked for another by proposing one.
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
    let plugin = authenticate(&mut wire, target, plugin)?;
    let method = if target.password.is_some() { plugin } else { "none".to_owned() };
    Ok((wire, method))
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

/// Answers what the server still wants to know, until it lets the client in. Returns the proof that counted.
fn authenticate(wire: &mut Wire, target: &Target, mut plugin: String) -> Result<String, Fault> {
    loop {
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
                let mut rest = Body(rest);
                plugin = String::from_utf8_lossy(rest.zero_ended()?).into_owned();
                reply = Some(prove(&plugin, target.password.as_ref(), rest.0)?);
            }
            Some((1, REMEMBERED)) if plugin == CACHING_SHA2 => {}
            Some((1, PASSWORD_ITSELF)) if plugin == CACHING_SHA2 => {
                let password = target.password.as_ref().filter(|_| target.tls.is_some()).ok_or_else(|| {
                    let why = "the server wants the password itself, which is sent over TLS only";
                    Fault::Refused(why.to_owned())
                })?;
                reply = Some([password.expose(), &[0]].concat());
            }
            _ => return Err(Fault::Protocol("a packet that has no place in a login".to_owned())),
        }
        wire.consume(packet.body.end);
        if let Some(reply) = reply {
            put_packet(wire.output(), packet.number.wrapping_add(1), |out| out.extend_from_slice(&reply))?;
            wire.flush()?;
        }
    }
}
