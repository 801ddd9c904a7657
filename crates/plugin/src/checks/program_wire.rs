//! Is what another program sends readable on its way to the server?

use std::sync::atomic::AtomicBool;

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    sight::Sight,
};
use tithe_model::quantity::size;

use super::relay::{Conversation, Relay};
use crate::{
    desk::Desk,
    evidence::{CheckEntry, Evidence, Scene},
    program::{Job, Program},
};

/// Lets the program work for a second through a relay of Tithe's own, and looks for words that it sends in what passed.
/// Every connection must begin with a TLS handshake. Id `program-wire`.
///
/// Where no such words are known, the check says that it did not look, and proves nothing.
pub struct ProgramWire<'a> {
    program: &'a dyn Program,
}

impl<'a> ProgramWire<'a> {
    /// A check of what `program` sends.
    pub fn new(program: &'a dyn Program) -> Self {
        Self { program }
    }
}

impl Evidence for ProgramWire<'_> {
    fn entry(&self) -> CheckEntry {
        if self.program.needle().is_some() {
            CheckEntry::claim("program-wire")
        } else {
            CheckEntry::disclosure("program-wire")
        }
    }

    fn claim(&self) -> String {
        format!("what {} sends is not readable on the wire", self.program.name())
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        let Some(needle) = self.program.needle() else {
            return Ok(Sight::Unknown(format!(
                "the connections of {} were not looked at: no words are known that it sends",
                self.program.name()
            )));
        };
        let Address::Tcp { host, port } = &scene.server.address else {
            return Ok(Sight::Unknown("there is no server that Tithe has launched".to_owned()));
        };
        let relay = Relay::start(host, *port)?;
        let server = Server { address: relay.address(), ..scene.server.clone() };
        let desk =
            Desk::set(self.program, scene.database, &server, scene.setup, &format!("look-{:016x}", scene.nonce))?;
        let job = Job { clients: 1, rate: None, seconds: 1, seed: 1 };
        let outcome = desk.run(self.program, &job, &AtomicBool::new(false));
        desk.clear();
        outcome?;
        Ok(conclude(&relay.finish(), needle))
    }
}

/// What passed in `conversations`, where `needle` must not.
fn conclude(conversations: &[Conversation], needle: &[u8]) -> Sight {
    let count = |bytes: &[u8]| bytes.windows(needle.len()).filter(|words| *words == needle).count();
    let hits: usize = conversations.iter().map(|talk| count(&talk.sent)).sum();
    let handshakes = conversations.iter().filter(|talk| talk.tls_handshake().is_some()).count();
    let bytes: usize = conversations.iter().map(|talk| talk.sent.len()).sum();
    let name = String::from_utf8_lossy(needle);
    let seen = format!(
        "`{name}` {hits} times in the first {} that the program sent; TLS handshake on {handshakes} of {} connections",
        size(bytes as u64),
        conversations.len()
    );
    match conversations.len() {
        0 => Sight::Unknown("nothing passed the relay".to_owned()),
        all if hits == 0 && handshakes == all => Sight::Protected(seen),
        _ if hits > 0 => Sight::Exposed(seen),
        _ => Sight::Unknown(seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(sent: &[&[u8]]) -> Conversation {
        Conversation { sent: sent.concat(), ..Conversation::default() }
    }

    #[test]
    fn words_in_the_clear_expose_and_silence_without_tls_proves_nothing() {
        const HELLO: &[u8] = &[0x16, 3, 1, 0, 0xf5, 1, 0, 0, 0xf1, 3, 3, 0x42];
        let told = |talks: &[Conversation]| conclude(talks, b"sbtest1");
        assert!(matches!(told(&[]), Sight::Unknown(_)));
        assert!(matches!(told(&[talk(&[b"SELECT c FROM sbtest1"])]), Sight::Exposed(_)));
        assert!(matches!(told(&[talk(&[b"\x17\x03\x03"])]), Sight::Unknown(_)));
        assert!(matches!(told(&[talk(&[HELLO, b"\x17\x03\x03"])]), Sight::Protected(_)));
        assert!(matches!(told(&[talk(&[HELLO]), talk(&[b"sbtest1"])]), Sight::Exposed(_)));
        assert!(matches!(told(&[talk(&[HELLO]), talk(&[b"?"])]), Sight::Unknown(_)));
    }
}
