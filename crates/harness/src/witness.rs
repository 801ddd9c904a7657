//! Evidence about running servers while a command that is not Tithe's uses them: before it, during it and after it.
//! Nothing is timed.
//!
//! Before and after, the server is checked as everywhere: what it enforces, and the evidence of each protection that is
//! asked for. While the command runs, the server's list of clients is read again and again, the traffic through Tithe's
//! relay is kept, and checks of logs count new entries ([`watching`]). There is no plain arm, so the controls are
//! planted: a line in the clear that the relay must show, and Tithe's own connection that the list must contain.

pub mod watching;

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use tithe_machine::{
    credentials::Credentials,
    fault::Fault,
    launch::{Address, Server},
    observation::Observation,
};
use tithe_model::{
    experiment::{self, Url},
    record::{Role, Verdict},
};
use tithe_plugin::{
    checks::relay::Relay,
    evidence::{self, Check, CheckContext, Control},
    matrix::{Feature, FeatureStatus, Scope, State},
    product::Product,
    protection::Protection,
    session::Table,
    setup::{Setup, Transport},
};

use crate::{arms, inspect};

/// When something was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Before the command was started.
    Before,
    /// While it ran.
    While,
    /// After it had ended.
    After,
}

impl When {
    /// The name of this time: `before`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::While => "while",
            Self::After => "after",
        }
    }
}

/// Something that was checked, and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessFinding {
    /// When.
    pub when: When,
    /// The protection that it is about; empty if no protection asks for it.
    pub protection: String,
    /// Name of the check.
    pub check: String,
    /// The claim or disclosure, one sentence without a full stop.
    pub claim: String,
    /// What it is for.
    pub role: Role,
    /// How it came out.
    pub verdict: Verdict,
    /// What was seen.
    pub seen: String,
    /// The control: what showed that it would have been seen.
    pub control: String,
}

impl WitnessFinding {
    fn of(when: When, check: &str, claim: String, role: Role, (observation, control): (Observation, String)) -> Self {
        Self {
            when,
            protection: String::new(),
            check: check.to_owned(),
            claim,
            role,
            verdict: evidence::judge(Control::Own, &observation, None),
            seen: observation.quotation().to_owned(),
            control,
        }
    }
}

/// A running server that a command is to use, and the protections that must hold on it.
pub struct Witness<'a> {
    product: &'a dyn Product,
    server: Server,
    setup: Setup,
    protections: Vec<(&'static dyn Protection, &'a experiment::Protection)>,
    /// For canaries and marked statements; it exists only as long as they do.
    table: Table,
    nonce: Cell<u64>,
}

/// The control of a check without a plain arm.
const NO_PLAIN_ARM: &str = "there is no plain arm; the relay showed a line of Tithe's in the clear";

impl<'a> Witness<'a> {
    /// For the server at `url`, on which `protections` must hold. Checks leave files of their own in `folder`.
    ///
    /// # Errors
    /// [`Fault::Refused`] for protections in the clients; when a relay does not show what it must.
    pub fn new(
        product: &'a dyn Product,
        url: Url,
        protections: &'a [experiment::Protection],
        credentials: Credentials,
        folder: PathBuf,
    ) -> Result<Self, Fault> {
        let named = |chosen: &'a experiment::Protection| Ok((arms::named(product, &chosen.id)?, chosen));
        let protections: Vec<_> = protections.iter().map(named).collect::<Result<_, Fault>>()?;
        let mut setup = Setup::plain(BTreeMap::new(), credentials);
        for (protection, chosen) in &protections {
            protection.apply(chosen, &mut setup);
            if setup.columns.is_some() || setup.compute.is_some() {
                return Err(Fault::Refused(format!(
                    "{} is done by clients, and the command brings its own clients: there is nothing to witness",
                    chosen.id
                )));
            }
        }
        if !shows_plaintext()? {
            return Err(Fault::Machine("Tithe's relay does not show what passes it in the clear".to_owned()));
        }
        let server = Server { folder, ..Server::at(Address::Attached(url)) };
        let nonce = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let table = Table { name: format!("tithe_witness_{nonce:016x}"), fields: 2, field_prefix: "field".to_owned() };
        Ok(Self { product, server, setup, protections, table, nonce: Cell::new(nonce) })
    }

    /// The version that the server reports, or the product's name if this account cannot read it.
    pub fn version(&self) -> String {
        let facts = self.product.facts(&self.server, &self.setup);
        facts.map_or_else(|_| self.product.title().to_owned(), |facts| facts.version)
    }

    /// The features that the server enforces, without those that its product does not offer. Nothing is written.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn enforced(&self) -> Result<Vec<FeatureStatus>, Fault> {
        let mut all = self.product.inspect(&self.server, &Setup::bare())?;
        all.retain(|status| status.state != State::NotOffered);
        all.sort_by_key(|status| status.feature);
        Ok(all)
    }

    /// Checks every claim of every protection, in a table of its own that is removed again.
    ///
    /// # Errors
    /// When the table cannot be made or removed.
    pub fn look(&self, when: When) -> Result<Vec<WitnessFinding>, Fault> {
        if self.protections.is_empty() {
            return Ok(Vec::new());
        }
        inspect::create(self.product, &self.server, &self.setup, &self.table)?;
        let seen = self.checks().map(|(chosen, check)| self.finding(when, chosen, check.as_ref())).collect();
        self.product.remove(&self.server, &self.setup, &self.table)?;
        Ok(seen)
    }

    /// The checks that apply here, with what was chosen of their protection.
    fn checks(&self) -> impl Iterator<Item = (&'a experiment::Protection, Box<dyn Check>)> + '_ {
        let of = |(protection, chosen): &(&'static dyn Protection, &'a experiment::Protection)| {
            let chosen = *chosen;
            protection.evidence(chosen).into_iter().map(move |check| (chosen, check))
        };
        self.protections.iter().flat_map(of).filter(|(_, check)| check.concerns(&self.server.address))
    }

    fn finding(&self, when: When, chosen: &experiment::Protection, check: &dyn Check) -> WitnessFinding {
        let mut context = self.context();
        let observation = evidence::seen_by(check, &mut context);
        let claim = evidence::claimed(check, context.narrowed);
        let entry = check.entry();
        let control = if entry.control == Control::Own { evidence::OWN_CONTROL } else { NO_PLAIN_ARM };
        let finding = WitnessFinding::of(when, entry.id, claim, entry.role, (observation, control.to_owned()));
        WitnessFinding { protection: chosen.id.clone(), ..finding }
    }

    fn context(&self) -> CheckContext<'_> {
        self.nonce.set(self.nonce.get().wrapping_add(1));
        CheckContext {
            database: self.product,
            server: &self.server,
            setup: &self.setup,
            table: &self.table,
            protected: true,
            nonce: self.nonce.get(),
            narrowed: None,
        }
    }

    fn asks_for_tls(&self) -> bool {
        matches!(self.setup.transport, Transport::Tls { .. })
    }
}

/// Whether what a server enforces was the same `before` the command and `after` it.
pub fn unchanged(before: &[FeatureStatus], after: Result<Vec<FeatureStatus>, Fault>) -> WitnessFinding {
    let observation = match after {
        Err(fault) => Observation::Unknown(format!("it could not be checked again: {fault}")),
        Ok(after) => compared(before, &after),
    };
    let claim = "the server enforced the same before and after".to_owned();
    let control = "each was checked twice".to_owned();
    WitnessFinding::of(When::After, "enforced", claim, Role::Claim, (observation, control))
}

/// The check of a finding about a server that could not be checked.
pub const UNSEEN: &str = "protections";

/// What is known of a server's protections after the command if a `fault` prevented the checks.
pub fn unseen(fault: &Fault) -> WitnessFinding {
    let observation = Observation::Unknown(format!("it could not be checked: {fault}"));
    let claim = "the protections that were asked for are on".to_owned();
    let control = "what was seen before is above".to_owned();
    WitnessFinding::of(When::After, UNSEEN, claim, Role::Claim, (observation, control))
}

fn compared(before: &[FeatureStatus], after: &[FeatureStatus]) -> Observation {
    let find = |feature: Feature| after.iter().find(|status| status.feature == feature);
    let other = |status: &FeatureStatus| match find(status.feature) {
        Some(now) if (now.state, now.scope) == (status.state, status.scope) => None,
        Some(now) => Some(format!("{} was {} and is {}", status.feature.title(), words(status), words(now))),
        None => Some(format!("{} was {} and is not seen any more", status.feature.title(), words(status))),
    };
    let changed: Vec<String> = before.iter().filter_map(other).collect();
    if !changed.is_empty() {
        return Observation::Exposed(changed.join("; "));
    }
    let all = before.iter().map(|status| format!("{} {}", status.feature.title(), words(status)));
    Observation::Protected(all.collect::<Vec<_>>().join("; "))
}

fn words(status: &FeatureStatus) -> String {
    match (status.state, status.scope) {
        (State::Enforced, Scope::Account) => format!("{} for {}", status.state.words(), status.scope.words()),
        (state, _) => state.words().to_owned(),
    }
}

/// `url` for programs that reach its server through a relay at `port` of this machine. If programs of the product have
/// an `address_option`, the address is in it, so that they still verify the original host name.
pub fn through(url: &Url, address_option: Option<&str>, port: u16) -> String {
    let (scheme, rest) = url.expose().split_once("://").unwrap_or(("", url.expose()));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let tail = without_place(tail);
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (format!("{user}@"), place),
        None => (String::new(), authority),
    };
    let Some(option) = address_option else { return format!("{scheme}://{user}127.0.0.1:{port}{tail}") };
    let host = match place.rsplit_once(':') {
        Some((host, digits)) if digits.chars().all(|c| c.is_ascii_digit()) => host,
        _ => place,
    };
    let sign = if tail.contains('?') { '&' } else { '?' };
    format!("{scheme}://{user}{host}:{port}{tail}{sign}{option}=127.0.0.1")
}

/// The part of a URL after the hosts, without the options that name other hosts.
fn without_place(tail: &str) -> String {
    const PLACES: [&str; 5] = ["host", "hostaddr", "port", "socket", "unix_socket"];
    let Some((path, options)) = tail.split_once('?') else { return tail.to_owned() };
    let is_place = |option: &&str| PLACES.contains(&option.split('=').next().unwrap_or_default());
    let others: Vec<&str> = options.split('&').filter(|option| !is_place(option)).collect();
    if others.is_empty() { path.to_owned() } else { format!("{path}?{}", others.join("&")) }
}

/// Sends a line in the clear through a relay to this process itself; true if the relay shows it, and no TLS.
///
/// # Errors
/// When no connection can be made on this machine.
fn shows_plaintext() -> Result<bool, Fault> {
    const LINE: &[u8] = b"a line of tithe's own in the clear\r\n";
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let relay = Relay::start("127.0.0.1", listener.local_addr()?.port())?;
    let mut client = TcpStream::connect(("127.0.0.1", relay.port()))?;
    client.write_all(LINE)?;
    let mut read = [0; LINE.len()];
    listener.accept()?.0.read_exact(&mut read)?;
    let conversations = relay.finish();
    let one = conversations.first().filter(|_| conversations.len() == 1);
    Ok(one.is_some_and(|one| one.sent == LINE && one.tls_handshake().is_none()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_relay_shows_what_is_in_the_clear() {
        assert_eq!(shows_plaintext(), Ok(true));
    }

    #[test]
    fn urls_lead_through_the_relay_and_keep_their_name_where_they_can() {
        let check = |url: &str, option: Option<&str>| through(&Url::new(url), option, 7000);
        assert_eq!(check("redis://db:6379/3", None), "redis://127.0.0.1:7000/3");
        assert_eq!(check("redis://db", None), "redis://127.0.0.1:7000");
        assert_eq!(check("x://ann@[::1]:1/a?b=c", Some("at")), "x://ann@[::1]:7000/a?b=c&at=127.0.0.1");
        assert_eq!(check("x://ann@db/a", Some("at")), "x://ann@db:7000/a?at=127.0.0.1");
        assert_eq!(check("x://[::1]/a", Some("at")), "x://[::1]:7000/a?at=127.0.0.1");
        // Options that name a place would lead past the relay.
        assert_eq!(check("x://db/a?host=other&b=c&port=5", None), "x://127.0.0.1:7000/a?b=c");
        assert_eq!(check("x://db?unix_socket=/run/s&hosts=1", None), "x://127.0.0.1:7000?hosts=1");
        assert_eq!(check("x://db/a?hostaddr=10.0.0.5", Some("at")), "x://db:7000/a?at=127.0.0.1");
    }

    #[test]
    fn what_a_server_enforces_is_compared_by_state_and_by_whom() {
        let status = |state, scope| FeatureStatus::new(Feature::Transport, state, scope, "seen");
        let before = [status(State::Enforced, Scope::Server)];
        let mut text = String::new();
        for after in [
            Ok(vec![status(State::Enforced, Scope::Server)]),
            Ok(vec![status(State::Available, Scope::Server)]),
            Ok(vec![status(State::Enforced, Scope::Account)]),
            Ok(Vec::new()),
            Err(Fault::Connection("gone".to_owned())),
        ] {
            let WitnessFinding { verdict, seen, .. } = unchanged(&before, after);
            text += &format!("{verdict:?}: {seen}\n");
        }
        expect![[r#"
            Holds: transport encryption enforced
            Fails: transport encryption was enforced and is available but not enforced
            Fails: transport encryption was enforced and is enforced for this account
            Fails: transport encryption was enforced and is not seen any more
            CannotTell: it could not be checked again: connection: gone
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_server_that_is_gone_after_the_command_leaves_the_claim_open() {
        let WitnessFinding { when, role, verdict, seen, .. } = unseen(&Fault::Connection("gone".to_owned()));
        assert_eq!((when, role, verdict), (When::After, Role::Claim, Verdict::CannotTell));
        assert_eq!(seen, "it could not be checked: connection: gone");
    }
}
