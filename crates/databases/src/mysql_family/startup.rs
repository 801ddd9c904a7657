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
    let mut asked_for_key = false;
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
            // A key that was not requested could be that of an attacker in between.
            Some((1, pem)) if asked_for_key => {
                reply = Some(PublicKey::of_pem(pem)?.encrypt(&disguised(password_itself(target)?, &salt))?);
            }
            _ => return Err(Fault::Protocol("a packet that has no place in a login".to_owned())),
        }
        wire.consume(packet.body.end);
        if let Some(reply) = reply {
            asked_for_key = PUBLIC_KEY.iter().any(|(known, request)| *known == plugin && reply == *request);
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
    };

    use tithe_machine::secret::Secret;

    use super::*;
    use crate::target::{Authority, Tls};

    const SALT: &[u8] = b"12345678abcdefghijkl\0";
    const PASSWORD: &str = "correct horse";
    const LET_IN: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
    const WANTS_PASSWORD: &[u8] = &[1, 4];
    /// A key, as the client can tell without reading it.
    const KEY: &[u8] = b"\x01no key";

    fn at(host: &str, authority: Option<Authority>) -> Target {
        let tls = authority.map(|authority| Tls::of_url(authority, None));
        Target { host: host.to_owned(), password: Some(Secret::new(PASSWORD)), tls, ..Target::default() }
    }

    /// A server elsewhere, one on this machine and one at a socket, without TLS; with TLS, unverified and verified.
    fn all() -> [Target; 5] {
        let [unverified, verified] = [Authority::Anyone, Authority::System].map(|by| at("db.example", Some(by)));
        [at("db.example", None), at("127.0.0.1", None), at("/run/db.sock", None), unverified, verified]
    }

    /// How a login that begins with `plugin` ends on a server that sends these packets, and what it is sent.
    fn login(target: &Target, plugin: &str, packets: &[&[u8]]) -> (Result<String, Fault>, Vec<Vec<u8>>) {
        let mut sent = Vec::new();
        packets.iter().for_each(|body| put_packet(&mut sent, 2, |out| out.extend_from_slice(body)).expect("short"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let serving = std::thread::spawn(move || {
            let (mut stream, mut heard) = (listener.accept().expect("a client").0, Vec::new());
            stream.write_all(&sent).expect("written");
            // It may end with a reset if something was left unread.
            let _ = stream.read_to_end(&mut heard);
            heard
        });
        let mut wire = Wire::connect("127.0.0.1", port).expect("a connection");
        let outcome = authenticate(&mut wire, target, plugin.to_owned(), SALT.to_vec());
        drop(wire);
        let (heard, mut bodies, mut from) = (serving.join().expect("it ends"), Vec::new(), 0);
        while let Some(Packet { body, .. }) = next_packet(&heard[from..]).expect("packets") {
            bodies.push(heard[from + body.start..from + body.end].to_vec());
            from += body.end;
        }
        (outcome, bodies)
    }

    /// The server's request to prove the password by `plugin`.
    fn switch(plugin: &str) -> Vec<u8> {
        [&b"\xfe"[..], plugin.as_bytes(), b"\0abcdefghijkl12345678\0"].concat()
    }

    fn itself() -> Vec<u8> {
        format!("{PASSWORD}\0").into_bytes()
    }

    #[test]
    fn the_password_itself_goes_where_its_plugin_allows_it() {
        let clear = switch(CLEAR);
        let sha256 = switch(SHA256_PASSWORD);
        // What each server is sent: nothing, the password, or the request for a key.
        let table = [
            (CACHING_SHA2, WANTS_PASSWORD, ["-", "key", "password", "password", "password"]),
            (SHA256_PASSWORD, &sha256[..], ["-", "key", "key", "password", "password"]),
            (CLEAR, &clear[..], ["-", "-", "password", "-", "password"]),
        ];
        for (plugin, packet, expected) in table {
            for (target, expected) in all().iter().zip(expected) {
                let (outcome, sent) = login(target, CACHING_SHA2, &[packet, LET_IN]);
                let request = if plugin == CACHING_SHA2 { vec![2] } else { vec![1] };
                let (is_expected, wanted) = match expected {
                    "-" => (matches!(outcome, Err(Fault::Refused(_))), Vec::new()),
                    "key" => (outcome == Ok(plugin.to_owned()), vec![request]),
                    _ => (outcome == Ok(plugin.to_owned()), vec![itself()]),
                };
                assert!(is_expected, "{plugin} {target:?}: {outcome:?}");
                assert_eq!(sent, wanted, "{plugin} {target:?}");
            }
        }
    }

    #[test]
    fn a_key_is_taken_if_it_was_requested_and_from_nowhere_else() {
        let protocol = |words: &str| -> Result<String, Fault> { Err(Fault::Protocol(words.to_owned())) };
        let taken = protocol("the server's public key is not an RSA key in PEM");
        let unasked = protocol("a packet that has no place in a login");
        for target in all() {
            for plugin in [CACHING_SHA2, SHA256_PASSWORD, NATIVE] {
                assert_eq!(login(&target, plugin, &[KEY]), (unasked.clone(), Vec::new()), "{plugin} {target:?}");
            }
        }
        let here = at("127.0.0.1", None);
        assert_eq!(login(&here, CACHING_SHA2, &[WANTS_PASSWORD, KEY]), (taken.clone(), vec![vec![2]]));
        let sha256 = switch(SHA256_PASSWORD);
        assert_eq!(login(&at("/run/db.sock", None), NATIVE, &[&sha256, KEY]), (taken, vec![vec![1]]));
        // A proof in between replaces the request.
        let native = switch(NATIVE);
        assert_eq!(login(&here, CACHING_SHA2, &[WANTS_PASSWORD, &native, KEY]).0, unasked);
        assert_eq!(login(&here, NATIVE, &[WANTS_PASSWORD]), (unasked, Vec::new()));
    }

    #[test]
    fn a_login_proves_the_password_as_the_server_asks_and_ends() {
        let elsewhere = at("db.example", None);
        let native = switch(NATIVE);
        let proof = prove(NATIVE, elsewhere.password.as_ref(), b"abcdefghijkl12345678").expect("a proof");
        let switched = login(&elsewhere, CACHING_SHA2, &[&native, LET_IN]);
        assert_eq!(switched, (Ok(NATIVE.to_owned()), vec![proof]));
        let remembered = login(&elsewhere, CACHING_SHA2, &[&[1, 3], LET_IN]);
        assert_eq!(remembered, (Ok(CACHING_SHA2.to_owned()), Vec::new()));
        let denied = login(&elsewhere, NATIVE, &[b"\xff\x15\x04#28000Access denied"]);
        assert!(matches!(denied.0, Err(Fault::Refused(_))), "{denied:?}");
        let endless = login(&elsewhere, CACHING_SHA2, &[&[1_u8, 3][..]; 2 * MOST_PACKETS]);
        assert!(matches!(endless.0, Err(Fault::Protocol(_))), "{endless:?}");
        let nobody = Target { password: None, ..elsewhere };
        let (sha256, clear) = (switch(SHA256_PASSWORD), switch(CLEAR));
        assert_eq!(login(&nobody, NATIVE, &[&sha256, LET_IN]), (Ok(SHA256_PASSWORD.to_owned()), vec![vec![0]]));
        let asked = login(&nobody, NATIVE, &[&clear, LET_IN]);
        assert!(matches!(asked.0, Err(Fault::Refused(_))) && asked.1.is_empty(), "{asked:?}");
    }

    #[test]
    fn a_disguised_password_is_mixed_with_the_salt_over_and_over() {
        let salt = b"ab\0";
        assert_eq!(disguised(b"hhh\0".to_vec(), salt), [b'h' ^ b'a', b'h' ^ b'b', b'h' ^ b'a', b'b']);
        assert_eq!(disguised(disguised(itself(), SALT), SALT), itself());
    }
}
