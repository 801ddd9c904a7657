//! Is another program's traffic to the server readable?

use std::sync::atomic::AtomicBool;

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
};
use tithe_model::quantity::size;

use super::relay::{Conversation, Relay};
use crate::{
    evidence::{Check, CheckContext, CheckEntry},
    program::{Job, Program},
    workspace::Workspace,
};

/// Lets the program work for a second through Tithe's relay, and searches the traffic for words that it sends. Every
/// connection must begin with a TLS handshake. Id `program-wire`.
///
/// If no such words are known, the check reports that it did not run, and proves nothing.
pub struct ProgramWire<'a> {
    program: &'a dyn Program,
}

impl<'a> ProgramWire<'a> {
    /// A check of the traffic of `program`.
    pub fn new(program: &'a dyn Program) -> Self {
        Self { program }
    }
}

impl Check for ProgramWire<'_> {
    fn entry(&self) -> CheckEntry {
        if self.program.needle().is_some() {
            CheckEntry::claim("program-wire")
        } else {
            CheckEntry::disclosure("program-wire")
        }
    }

    fn claim(&self) -> String {
        format!("what {} sends is unreadable on the wire", self.program.name())
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let Some(needle) = self.program.needle() else {
            return Ok(Observation::Unknown(format!(
                "the connections of {} were not checked: no words are known that it sends",
                self.program.name()
            )));
        };
        let Address::Tcp { host, port } = &context.server.address else {
            return Ok(Observation::Unknown("there is no server that Tithe has launched".to_owned()));
        };
        let relay = Relay::start(host, *port)?;
        let server = Server { address: relay.address(), ..context.server.clone() };
        let workspace = Workspace::new(
            self.program,
            context.database,
            &server,
            context.setup,
            &format!("look-{:016x}", context.nonce),
        )?;
        let job = Job { clients: 1, rate: None, seconds: 1, seed: 1 };
        let outcome = workspace.run(self.program, &job, &AtomicBool::new(false));
        workspace.clear();
        outcome?;
        Ok(conclude(&relay.finish(), needle))
    }
}

/// The observation for `conversations`, which must not contain `needle`.
fn conclude(conversations: &[Conversation], needle: &[u8]) -> Observation {
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
        0 => Observation::Unknown("nothing passed the relay".to_owned()),
        all if hits == 0 && handshakes == all => Observation::Protected(seen),
        _ if hits > 0 => Observation::Exposed(seen),
        _ => Observation::Unknown(seen),
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
        let reported = |talks: &[Conversation]| conclude(talks, b"sbtest1");
        assert!(matches!(reported(&[]), Observation::Unknown(_)));
        assert!(matches!(reported(&[talk(&[b"SELECT c FROM sbtest1"])]), Observation::Exposed(_)));
        assert!(matches!(reported(&[talk(&[b"\x17\x03\x03"])]), Observation::Unknown(_)));
        assert!(matches!(reported(&[talk(&[HELLO, b"\x17\x03\x03"])]), Observation::Protected(_)));
        assert!(matches!(reported(&[talk(&[HELLO]), talk(&[b"sbtest1"])]), Observation::Exposed(_)));
        assert!(matches!(reported(&[talk(&[HELLO]), talk(&[b"?"])]), Observation::Unknown(_)));
    }
}
