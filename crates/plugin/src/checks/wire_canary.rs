//! Is data readable between client and server?

use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
};
use tithe_model::quantity::size;

use crate::{
    checks::{
        canary::{Canaries, Targets, key_value},
        needles::{Needles, Tally},
        relay::{Conversation, Relay},
    },
    database::sql_of,
    evidence::{Check, CheckContext, CheckEntry},
    setup::Transport,
};

/// Sends canaries through Tithe's relay, reads them back, and searches the traffic for them. If the arm's transport is
/// TLS, every connection must also begin with a TLS handshake. Id `wire-canary`.
///
/// The check cannot run on an embedded database, nor on an attached one whose URL asks for TLS if the arm does not:
/// other protections of its bytes are not visible below TLS.
pub struct WireCanary {
    targets: Targets,
}

impl WireCanary {
    /// A check of the wire for `targets`.
    pub fn new(targets: Targets) -> Self {
        Self { targets }
    }
}

impl Check for WireCanary {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("wire-canary")
    }

    fn claim(&self) -> String {
        format!("no {} is readable on the wire", self.targets.noun())
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let (relay, server) = match Relay::before(context.database, context.server)? {
            Ok(through) => through,
            Err(unseen) => return Ok(unseen),
        };
        let canaries = Canaries::new(context, self.id());
        if context.setup.tables.makes_tables() {
            let mut session = key_value(context.connect_as(&server, context.setup)?)?;
            canaries.write(session.as_mut())?;
            canaries.read_back(session.as_mut())?;
        } else {
            say(context, &server, &canaries.tokens(&self.targets))?;
        }
        let conversations = relay.finish();
        if let Some(unseen) = below_tls(context.setup.transport, &server.address, &conversations) {
            return Ok(unseen);
        }
        let tls = matches!(context.setup.transport, Transport::Tls { .. });
        Ok(conclude(&conversations, &canaries.tokens(&self.targets), tls))
    }
}

/// Makes a server answer with each of `tokens`, if Tithe makes no table there.
fn say(context: &CheckContext<'_>, server: &Server, tokens: &[&[u8]]) -> Result<(), Fault> {
    let mut session = sql_of(context.database)?.connect(server, context.setup, &context.how())?;
    for token in tokens {
        let token = String::from_utf8_lossy(token).into_owned();
        if session.run(&format!("SELECT '{token}'"))? != [[Some(token)]] {
            return Err(Fault::Wrong("a canary did not come back as it was sent".to_owned()));
        }
    }
    Ok(())
}

/// The result of a wire check if each of `conversations` begins with a TLS handshake because the URL of an attached
/// server asks for it, and the arm does not.
pub fn below_tls(transport: Transport, address: &Address, conversations: &[Conversation]) -> Option<Observation> {
    if transport != Transport::Plain || !address.is_attached() || conversations.is_empty() {
        return None;
    }
    let is_hidden = conversations.iter().all(|conversation| conversation.tls_handshake().is_some());
    let words = "its URL asks for TLS, below which nothing else can be seen";
    is_hidden.then(|| Observation::OutOfReach(words.to_owned()))
}

/// The observation for `conversations`, which must not contain `tokens`; if `tls`, each must have a handshake.
fn conclude(conversations: &[Conversation], tokens: &[&[u8]], tls: bool) -> Observation {
    let needles = Needles::new(tokens.iter().map(|token| ("canary", *token)));
    let count = |direction: fn(&Conversation) -> &Vec<u8>| {
        let mut tally = Tally::default();
        conversations.iter().for_each(|conversation| tally.merge(&needles.count(direction(conversation))));
        let bytes: usize = conversations.iter().map(|conversation| direction(conversation).len()).sum();
        (tally, size(bytes as u64))
    };
    let (sent, sent_size) = count(|conversation| &conversation.sent);
    let (received, received_size) = count(|conversation| &conversation.received);
    let handshakes = conversations.iter().filter(|conversation| conversation.tls_handshake().is_some()).count();
    let handshake = if handshakes == 0 {
        "no TLS record".to_owned()
    } else {
        format!("TLS handshake on {handshakes} of {} connections", conversations.len())
    };
    if sent.hits() + received.hits() > 0 {
        let (sent, received) = (sent.describe(), received.describe());
        return Observation::Exposed(format!("sent: {sent}; received: {received}; {handshake}"));
    }
    let seen = format!("{sent_size} sent, {received_size} received; {handshake}");
    if conversations.is_empty() {
        Observation::Unknown("nothing passed the relay".to_owned())
    } else if tokens.is_empty() {
        Observation::Unknown("the share of fields rounds to none".to_owned())
    } else if conversations.iter().any(|conversation| conversation.truncated) {
        Observation::Unknown(format!("more passed than the relay keeps; {seen}"))
    } else if tls && handshakes < conversations.len() {
        Observation::Exposed(format!("no canary, but not every connection speaks TLS: {seen}"))
    } else {
        Observation::Protected(format!("none of {} canaries in {seen}", tokens.len()))
    }
}

#[cfg(test)]
mod tests;
