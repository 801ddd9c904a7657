//! Observations while a command runs: the clients that the server lists, the traffic through the relay, new log
//! entries.

use std::collections::{BTreeMap, BTreeSet};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::{
    quantity::{count, size},
    record::Role,
};
use tithe_plugin::{
    checks::relay::{Conversation, Relay},
    connections::{ClientConnection, ConnectionList, Spoken},
    evidence::Watch,
};

use super::{When, Witness, WitnessFinding};

/// Observes one server from before a command is started until it has ended.
pub struct Watching<'w> {
    witness: &'w Witness<'w>,
    /// Or why there is none.
    relay: Result<Relay, Observation>,
    listed: Listed,
    watches: Vec<Watched>,
}

/// The state of a check that runs meanwhile.
struct Watched {
    protection: String,
    check: &'static str,
    watch: Box<dyn Watch>,
}

impl Witness<'_> {
    /// Begins to observe what the command does.
    ///
    /// # Errors
    /// When no relay can be started.
    pub fn watch(&self) -> Result<Watching<'_>, Fault> {
        Watching::begin(self)
    }
}

impl<'w> Watching<'w> {
    fn begin(witness: &'w Witness<'w>) -> Result<Self, Fault> {
        let relay = Relay::before(witness.product, &witness.server)?.map(|(relay, _)| relay);
        let listed = Listed::begin(witness.product.connection_list(&witness.server, &witness.setup));
        let watches = witness.checks().filter_map(|(chosen, check)| {
            let watch = check.watch(&witness.context())?;
            Some(Watched { protection: chosen.id.clone(), check: check.id(), watch })
        });
        Ok(Self { watches: watches.collect(), witness, relay, listed })
    }

    /// The port of this machine at which the relay gives access to the server; `None` if there is no relay.
    pub fn port(&self) -> Option<u16> {
        self.relay.as_ref().ok().map(Relay::port)
    }

    /// Marks the start of the command: connections listed before it are not the command's. With several servers, call
    /// this when all of them are observed, because each has sessions of Tithe's own, and they may be the same server.
    pub fn is_to_start(&mut self) {
        self.listed.exclude_present();
    }

    /// Reads the server's list.
    pub fn look(&mut self) {
        self.listed.look();
    }

    /// The findings, once the command has ended.
    pub fn end(self) -> Vec<WitnessFinding> {
        let Self { witness, relay, listed, watches } = self;
        let ports = relay.as_ref().map(Relay::ports).unwrap_or_default();
        let wire = relay.map_or_else(|unseen| unseen, |relay| passed(&relay.finish()));
        let mut seen = transport(witness.asks_for_tls(), wire, &listed, &ports);
        for Watched { protection, check, watch } in watches {
            let claim = watch.claim();
            let observation = watch.end(&witness.context()).unwrap_or_else(Observation::from);
            let control = "what Tithe sends itself is counted before and after".to_owned();
            let finding = WitnessFinding::of(When::While, check, claim, Role::Claim, (observation, control));
            seen.push(WitnessFinding { protection, ..finding });
        }
        seen
    }
}

/// Two ways to see the protocol of the command's connections. If TLS is `asked` for, one of them is enough, and neither
/// may show anything else. Otherwise both are disclosures only.
fn transport(asked: bool, wire: Observation, listed: &Listed, ports: &[u16]) -> Vec<WitnessFinding> {
    let clients = listed.judged(ports);
    let holds = |observation: &Observation| matches!(observation, Observation::Protected(_));
    let (wire_holds, clients_hold) = (holds(&wire), holds(&clients));
    let role = |observation: Observation, other_holds: bool| match observation {
        observation if !asked => (Role::Disclosure, observation),
        Observation::Unknown(words) | Observation::OutOfReach(words) if other_holds => {
            (Role::Strengthens, Observation::OutOfReach(words))
        }
        observation => (Role::Claim, observation),
    };
    let (clients_role, clients) = role(clients, wire_holds);
    let (wire_role, wire) = role(wire, clients_hold);
    let of_clients = "every connection of the command that the server lists speaks TLS, or stays within its machine";
    let of_wire = "every connection of the command through the relay speaks TLS";
    let shown = "a line of Tithe's own, sent in the clear, was seen by a relay".to_owned();
    vec![
        WitnessFinding::of(When::While, "clients", of_clients.to_owned(), clients_role, (clients, listed.control())),
        WitnessFinding::of(When::While, "wire", of_wire.to_owned(), wire_role, (wire, shown)),
    ]
}

/// The traffic through the relay.
fn passed(conversations: &[Conversation]) -> Observation {
    // A client that sent nothing has revealed nothing, even if the server greeted it.
    let spoken: Vec<_> = conversations.iter().filter(|one| !one.sent.is_empty()).collect();
    if spoken.is_empty() {
        let words = "the command did not go through Tithe's relay: write {url}, or {host} and {port}, in its arguments, \
                     or have it read TITHE_URL, TITHE_HOST and TITHE_PORT";
        return Observation::OutOfReach(words.to_owned());
    }
    let bytes = |direction: fn(&Conversation) -> &Vec<u8>| {
        size(spoken.iter().map(|one| direction(one).len() as u64).sum::<u64>())
    };
    let outside: Vec<usize> = spoken.iter().filter_map(|one| one.outside_tls()).collect();
    let kept = if spoken.iter().any(|one| one.truncated) { " were read, and more passed" } else { "" };
    let seen = format!(
        "TLS on {} of {} connections, {} B before their handshakes and nothing but its records; {} sent and {} \
         received{kept}",
        count(outside.len() as u64),
        count(spoken.len() as u64),
        count(outside.iter().sum::<usize>() as u64),
        bytes(|one| &one.sent),
        bytes(|one| &one.received)
    );
    if outside.len() == spoken.len() { Observation::Protected(seen) } else { Observation::Exposed(seen) }
}

/// The clients that a server has listed.
struct Listed {
    list: Result<Box<dyn ConnectionList>, Fault>,
    /// Connections that existed before.
    before: BTreeSet<String>,
    /// Those that came later, each in its last state.
    came: BTreeMap<String, ClientConnection>,
    /// The protocol that was listed for Tithe's own connection.
    own: Option<Spoken>,
}

impl Listed {
    fn begin(list: Result<Box<dyn ConnectionList>, Fault>) -> Self {
        let mut listed = Self { list, before: BTreeSet::new(), came: BTreeMap::new(), own: None };
        listed.exclude_present();
        listed
    }

    /// Connections that are listed now, or were before, do not count as new.
    fn exclude_present(&mut self) {
        self.look();
        self.before.extend(std::mem::take(&mut self.came).into_keys());
    }

    fn look(&mut self) {
        let Ok(list) = &mut self.list else { return };
        match list.now() {
            Ok(connections) => connections.into_iter().for_each(|connection| self.add(connection)),
            Err(fault) => self.list = Err(fault),
        }
    }

    fn add(&mut self, connection: ClientConnection) {
        if connection.is_own {
            self.own = Some(connection.spoken);
        } else if !self.before.contains(&connection.id) {
            // Servers have two lists, of clients and of their protocols. A client that leaves in between is only in the
            // first.
            let is_told = !matches!(connection.spoken, Spoken::Untold(_));
            if is_told || !self.came.contains_key(&connection.id) {
                self.came.insert(connection.id.clone(), connection);
            }
        }
    }

    /// The protocol of the command's connections: of the new ones, those from the relay's `ports`, if there are some.
    fn judged(&self, ports: &[u16]) -> Observation {
        if let Err(fault) = &self.list {
            return Observation::Unknown(fault.to_string());
        }
        let is_relayed = |one: &&ClientConnection| one.port.is_some_and(|port| ports.contains(&port));
        let relayed: Vec<&ClientConnection> = self.came.values().filter(is_relayed).collect();
        let (chosen, which) = match relayed.is_empty() {
            true => (self.came.values().collect(), "that came while the command ran"),
            false => (relayed, "from the relay"),
        };
        let mut kinds = BTreeMap::<(&Spoken, &str), u64>::new();
        chosen.iter().for_each(|one| *kinds.entry((&one.spoken, one.account.as_str())).or_default() += 1);
        let kind = |((spoken, account), number): (&(&Spoken, &str), &u64)| {
            let account = if account.is_empty() { String::new() } else { format!(" as `{account}`") };
            format!("{}{account}: {}", count(*number), in_words(spoken))
        };
        let listed = format!("{which}: {}", kinds.iter().map(kind).collect::<Vec<_>>().join("; "));
        let speaks = |wanted: fn(&Spoken) -> bool| chosen.iter().any(|one| wanted(&one.spoken));
        if chosen.is_empty() {
            let words = "no connection of the command was listed: none lasted long enough, or the account sees only \
                         its own";
            Observation::Unknown(words.to_owned())
        } else if speaks(|spoken| *spoken == Spoken::Plaintext) {
            Observation::Exposed(listed)
        } else if self.own.is_none() || speaks(|spoken| matches!(spoken, Spoken::Untold(_))) {
            Observation::Unknown(listed)
        } else {
            Observation::Protected(listed)
        }
    }

    /// Whether the list shows the connection that it must show.
    fn control(&self) -> String {
        match &self.own {
            Some(own) => format!("Tithe's own connection was listed: {}", in_words(own)),
            None => "the list did not have Tithe's own connection".to_owned(),
        }
    }
}

fn in_words(spoken: &Spoken) -> String {
    match spoken {
        Spoken::Tls(words) => words.clone(),
        Spoken::Plaintext => "plaintext".to_owned(),
        Spoken::Local => "within the machine".to_owned(),
        Spoken::Untold(why) => format!("unknown ({why})"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_plugin::evidence::{Control, judge};

    use super::*;

    fn connection(id: &str, port: u16, spoken: Spoken) -> ClientConnection {
        let (account, is_own) = ("app".to_owned(), id == "own");
        ClientConnection { id: id.to_owned(), account, port: Some(port), spoken, is_own }
    }

    /// A list that is different at each reading.
    struct ChangingList(Vec<Vec<ClientConnection>>);

    impl ConnectionList for ChangingList {
        fn now(&mut self) -> Result<Vec<ClientConnection>, Fault> {
            Ok(self.0.remove(0))
        }
    }

    fn tls() -> Spoken {
        Spoken::Tls("TLSv1.3".to_owned())
    }

    fn listed(came: &[(u16, Spoken)]) -> Listed {
        let own = connection("own", 1, tls());
        let early = connection("early", 2, Spoken::Plaintext);
        let late = came.iter().map(|(port, spoken)| connection(&port.to_string(), *port, spoken.clone()));
        let looks = vec![vec![own.clone(), early.clone()], [own, early].into_iter().chain(late).collect()];
        let mut listed = Listed::begin(Ok(Box::new(ChangingList(looks))));
        listed.look();
        listed
    }

    fn shown(asked: bool, wire: Observation, came: &[(u16, Spoken)], ports: &[u16]) -> String {
        let findings = transport(asked, wire, &listed(came), ports);
        let line = |one: &WitnessFinding| format!("{:?} {:?}: {}\n", one.role, one.verdict, one.seen);
        findings.iter().map(line).collect()
    }

    #[test]
    fn either_way_to_see_tls_is_enough_and_neither_may_show_anything_else() {
        let unused = || passed(&[]);
        let wire = || Observation::Protected("all of it".to_owned());
        let untold = || Spoken::Untold("no right".to_owned());
        let text = [
            shown(true, wire(), &[(7, tls()), (8, Spoken::Plaintext)], &[7]),
            shown(true, wire(), &[(7, untold())], &[7]),
            shown(true, wire(), &[(7, Spoken::Plaintext)], &[]),
            shown(true, Observation::OutOfReach("no relay".to_owned()), &[(7, tls()), (8, tls())], &[]),
            shown(true, Observation::OutOfReach("no relay".to_owned()), &[(7, untold())], &[]),
            shown(false, wire(), &[], &[]),
        ];
        assert_eq!(judge(Control::Own, &unused(), None), tithe_model::record::Verdict::OutOfReach);
        expect![[r#"
            Claim Holds: from the relay: 1 as `app`: TLSv1.3
            Claim Holds: all of it

            Strengthens OutOfReach: from the relay: 1 as `app`: unknown (no right)
            Claim Holds: all of it

            Claim Fails: that came while the command ran: 1 as `app`: plaintext
            Claim Holds: all of it

            Claim Holds: that came while the command ran: 2 as `app`: TLSv1.3
            Strengthens OutOfReach: no relay

            Claim CannotTell: that came while the command ran: 1 as `app`: unknown (no right)
            Claim OutOfReach: no relay

            Disclosure CannotTell: no connection of the command was listed: none lasted long enough, or the account sees only its own
            Disclosure Holds: all of it
        "#]].assert_eq(&text.join("\n"));
    }

    /// A connection of another observation of the same server, which was begun after this one.
    #[test]
    fn who_came_before_the_command_was_started_is_none_of_its_connections() {
        let own = connection("own", 1, tls());
        let both = vec![own.clone(), connection("other", 2, tls())];
        let mut listed = Listed::begin(Ok(Box::new(ChangingList(vec![vec![own], both.clone(), both]))));
        listed.exclude_present();
        listed.look();
        assert!(matches!(listed.judged(&[]), Observation::Unknown(_)), "{:?}", listed.judged(&[]));
    }

    #[test]
    fn a_list_that_does_not_have_tithe_itself_proves_nothing() {
        let late = connection("7", 7, tls());
        let mut listed = Listed::begin(Ok(Box::new(ChangingList(vec![Vec::new(), vec![late]]))));
        listed.look();
        assert!(matches!(listed.judged(&[]), Observation::Unknown(_)));
        let refused = Listed::begin(Err(Fault::Refused("no list".to_owned())));
        assert_eq!(refused.judged(&[]), Observation::Unknown("refused: no list".to_owned()));
    }

    #[test]
    fn what_passed_the_relay_is_tls_on_all_connections_or_it_is_not() {
        let hello = [0x16, 3, 1, 0, 7, 1, 0, 0, 3, 3, 3, 0x42].to_vec();
        let answer = [&b"S"[..], &[0x16, 3, 3, 0, 4, 2, 0, 0, 0]].concat();
        let one = |sent: &[u8], received: &[u8]| Conversation {
            sent: sent.to_vec(),
            received: received.to_vec(),
            truncated: false,
        };
        let silent = one(b"", b"");
        let text = [
            format!("{:?}", passed(&[one(&hello, &answer), silent.clone(), one(b"", b"5.5.5-10.11")])),
            format!("{:?}", passed(&[one(&hello, &answer), one(b"SELECT 1", b"1")])),
        ];
        expect![[r#"
            Protected("TLS on 1 of 1 connections, 1 B before their handshakes and nothing but its records; 12 B sent and 10 B received")
            Exposed("TLS on 1 of 2 connections, 1 B before their handshakes and nothing but its records; 20 B sent and 11 B received")"#]]
        .assert_eq(&text.join("\n"));
        assert!(matches!(passed(&[silent]), Observation::OutOfReach(_)));
    }
}
