//! Is TLS used as requested, and nothing else accepted? For an attached server these are two questions: its owner may
//! have reasons to serve others in plaintext while the arm uses TLS.

use tithe_machine::{
    credentials::{Credentials, KeyType},
    fault::Fault,
    launch::Address,
    observation::Observation,
};
use tithe_plugin::{
    evidence::{Check, CheckContext, CheckEntry},
    setup::{Suite, TlsVersion, Transport},
};

use super::{
    Attempt, ConnectionProbes,
    whole::{THIS_ACCOUNT, Whole, in_words, that_matter},
};
use crate::target::{Shown, Target, Tls};

/// Asks the server for the TLS parameters of the measured connections, then tries what must be refused: plaintext, the
/// other TLS version, and a server whose authority the client does not know. If requested, also a client without a
/// certificate, and one with a certificate of an authority that the server does not know; TLS 1.3 lets that through the
/// handshake, and only the first answer refuses it. Whether others are served in plaintext is read from the server's
/// own lists; if they cannot be read, the claim states it. For a server that Tithe launched. Id `tls-negotiated`.
#[derive(Clone, Copy)]
pub struct TlsNegotiated {
    probes: &'static ConnectionProbes,
    version: TlsVersion,
    mutual: bool,
    suite: Option<Suite>,
    key: Option<KeyType>,
    chain: Option<usize>,
}

impl TlsNegotiated {
    /// A check of `transport`, which is TLS.
    ///
    /// # Panics
    /// If it is plaintext: the protection `tls` always requests TLS.
    pub fn new(probes: &'static ConnectionProbes, transport: Transport) -> Self {
        match transport {
            Transport::Tls { version, mutual, suite, key, chain, .. } => {
                Self { probes, version, mutual, suite, key, chain }
            }
            Transport::Plain => unreachable!("the protection `tls` asks for TLS"),
        }
    }

    fn version(&self) -> &'static str {
        match self.version {
            TlsVersion::V1_2 => "TLSv1.2",
            TlsVersion::V1_3 => "TLSv1.3",
        }
    }

    /// What was requested besides the version, for a claim: `TLSv1.3 with rsa-2048`.
    fn asked(&self) -> String {
        let parts = [
            self.suite.map(|suite| suite.name().to_owned()),
            self.key.map(|key| format!("a server's key {}", key.name())),
            self.chain.map(|chain| format!("{chain} certificates shown")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let with = if parts.is_empty() { "" } else { " with " };
        format!("{}{with}{}", self.version(), parts.join(", "))
    }

    /// True for a handshake that used something else than requested.
    fn differs(&self, shown: &Shown) -> bool {
        self.suite.is_some_and(|suite| !suite.is_in(&shown.suite))
            || self.key.is_some_and(|key| key.name() != shown.key)
            || self.chain.is_some_and(|chain| chain != shown.chain)
    }

    /// What the client must refuse, and what the server must refuse if it checks its clients, each with its name. A
    /// server that accepts any certificate still refuses a client without one.
    fn impostors(&self, target: &Target, credentials: &Credentials) -> Vec<(&'static str, Target)> {
        let authority = |tls: &mut Tls| tls.authority = tls.authority.replaced(&credentials.untrusted_authority);
        let mut impostors = vec![("a server of an unknown authority", with_tls(target, authority))];
        if self.mutual {
            let stranger = credentials.untrusted_client();
            let identity = |tls: &mut Tls| tls.identity = Some((stranger.clone(), stranger.clone()));
            impostors.push(("a client without a certificate", with_tls(target, |tls| tls.identity = None)));
            impostors.push(("a client of an unknown authority", with_tls(target, identity)));
        }
        impostors
    }

    /// Tries what the server must refuse so that all clients use TLS as requested, and adds the results to `quotation`:
    /// whether plaintext was served, and the other version.
    fn other_ways(
        &self,
        context: &CheckContext<'_>,
        target: &Target,
        quotation: &mut String,
    ) -> Result<[bool; 2], Fault> {
        let other = match self.version {
            TlsVersion::V1_2 => TlsVersion::V1_3,
            TlsVersion::V1_3 => TlsVersion::V1_2,
        };
        let plaintext = Attempt::in_plaintext((self.probes.plaintext)(target))?.told("plaintext", quotation);
        let other = with_tls(target, |tls| tls.versions = vec![other]);
        let other = self.served(context, vec![("the other TLS version", other)], quotation)?;
        Ok([plaintext, other])
    }

    /// The server's report about the measured connections, if it is what was requested; otherwise what is wrong with
    /// it.
    fn spoken(&self, context: &CheckContext<'_>, target: &Target) -> Result<Result<String, Observation>, Fault> {
        let seen = (self.probes.tls_of_server)(context, target)?;
        let quotation = format!("{}: {seen}", self.probes.tls_source);
        if !seen.starts_with(self.version()) {
            return Ok(Err(Observation::Exposed(quotation)));
        }
        let shown = target.shown();
        let words: Vec<String> = shown.iter().map(ToString::to_string).collect();
        let quotation = format!("{quotation}; handshakes of the clients: {}", words.join(" and "));
        if shown.iter().any(|shown| self.differs(shown)) {
            return Ok(Err(Observation::Exposed(quotation)));
        }
        if target.tls.as_ref().is_some_and(Tls::trusts_anyone) {
            let words = "; the client does not verify the server's certificate";
            return Ok(Err(Observation::Exposed(quotation + words)));
        }
        let narrower = target.tls.as_ref().and_then(Tls::disclosure);
        Ok(Ok(narrower.map_or(quotation.clone(), |words| format!("{quotation}; {words}"))))
    }

    /// Tries each of `forbidden` and adds the results to `quotation`; true if one was served.
    fn served(
        &self,
        context: &CheckContext<'_>,
        forbidden: Vec<(&'static str, Target)>,
        quotation: &mut String,
    ) -> Result<bool, Fault> {
        let mut served = false;
        for (name, target) in forbidden {
            served |= Attempt::of((self.probes.open)(context, &target))?.told(name, quotation);
        }
        Ok(served)
    }
}

/// `target`, with `change` applied to its TLS.
fn with_tls(target: &Target, change: impl FnMut(&mut Tls)) -> Target {
    let mut changed = target.clone();
    changed.tls.iter_mut().for_each(change);
    changed
}

impl Check for TlsNegotiated {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("tls-negotiated")
    }

    fn claim(&self) -> String {
        let mutual = if self.mutual { ", clients without a certificate" } else { "" };
        format!(
            "the server reports that clients speak {}; plaintext, other versions{mutual} and unknown authorities are refused",
            self.asked()
        )
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let target = (self.probes.target)(context)?;
        let mut quotation = match self.spoken(context, &target)? {
            Ok(quotation) => quotation,
            Err(observation) => return Ok(observation),
        };
        let impostors = self.impostors(&target, &context.setup.credentials);
        let others = self.other_ways(context, &target, &mut quotation)?;
        let served = self.served(context, impostors, &mut quotation)? || others.contains(&true);
        let others = Others::of((self.probes.others)(context), &target.host);
        quotation += &format!("; everybody else: {}", others.words);
        context.narrowed = others.narrowed;
        Ok(if served || others.let_in { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
    }

    fn concerns(&self, address: &Address) -> bool {
        !address.is_attached()
    }
}

/// The same for an attached server, as far as it concerns the arm: the TLS of its connections, and the peers. Whether
/// the server requires it of all clients is checked by [`TlsEnforced`]. Id `tls-spoken`.
pub struct TlsSpoken(pub TlsNegotiated);

impl Check for TlsSpoken {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("tls-spoken")
    }

    fn claim(&self) -> String {
        let mutual = if self.0.mutual { "clients without a certificate or of an unknown authority and " } else { "" };
        format!(
            "the server reports that clients speak {}; {mutual}servers of unknown authorities are refused",
            self.0.asked()
        )
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let target = (self.0.probes.target)(context)?;
        let mut quotation = match self.0.spoken(context, &target)? {
            Ok(quotation) => quotation,
            Err(observation) => return Ok(observation),
        };
        let impostors = self.0.impostors(&target, &context.setup.credentials);
        let served = self.0.served(context, impostors, &mut quotation)?;
        Ok(if served { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
    }

    fn concerns(&self, address: &Address) -> bool {
        address.is_attached()
    }
}

/// Tries on an attached server whether anything but the arm's TLS is served, and reads from the server's own lists
/// whether others get it. A disclosure: a server that serves others in plaintext still uses TLS with this arm. Id
/// `tls-enforced`.
pub struct TlsEnforced(pub TlsNegotiated);

impl Check for TlsEnforced {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("tls-enforced").own_control()
    }

    fn claim(&self) -> String {
        "the server enforces TLS: plaintext and other versions are refused".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let target = (self.0.probes.target)(context)?;
        let mut quotation = String::new();
        let [plaintext, other_version] = self.0.other_ways(context, &target, &mut quotation)?;
        let quotation = quotation.trim_start_matches("; ");
        let others = Others::of((self.0.probes.others)(context), &target.host);
        context.narrowed = others.narrowed;
        let seen = format!("{quotation}; everybody else: {}", others.words);
        let what = match (plaintext || others.let_in, other_version) {
            (true, _) => {
                "TLS is on, not enforced by this server: clients that do not ask for it are served in plaintext"
            }
            (false, true) => "plaintext is refused, and either version of TLS is served",
            (false, false) => return Ok(Observation::Protected(seen)),
        };
        Ok(Observation::Exposed(format!("{what}; {seen}")))
    }

    fn concerns(&self, address: &Address) -> bool {
        address.is_attached()
    }
}

/// The result for clients whose account was not tried.
struct Others {
    words: String,
    /// Some are let in without TLS.
    let_in: bool,
    /// What the claim is narrowed to, if they could not be checked.
    narrowed: Option<&'static str>,
}

impl Others {
    /// The result of `whole` for clients that reach the server at `host`.
    fn of(whole: Result<Whole, Fault>, host: &str) -> Self {
        match whole {
            Ok(whole) => Self::judged(whole, host),
            Err(fault) => Self::unseen(&fault.to_string()),
        }
    }

    fn unseen(why: &str) -> Self {
        Self { words: format!("not seen ({why})"), let_in: false, narrowed: Some(THIS_ACCOUNT) }
    }

    fn judged(Whole { source, exceptions, doubts }: Whole, host: &str) -> Self {
        let count = exceptions.len();
        let matter = that_matter(exceptions, host);
        if matter.is_empty() && !doubts.is_empty() {
            return Self::unseen(&doubts.join("; "));
        }
        let words = match (matter.is_empty(), count) {
            (false, _) => format!("served in plaintext: {} ({source})", in_words(&matter)),
            (true, 0) => format!("no client is served in plaintext ({source})"),
            (true, _) => format!("plaintext is served on the server's own loopback alone ({source})"),
        };
        Self { words, let_in: !matter.is_empty(), narrowed: None }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::{
        evidence::whole::Exception,
        target::{Authority, launched},
        test_setup::plain,
    };

    static NOBODY: ConnectionProbes = ConnectionProbes {
        target: |_| Err(nobody()),
        open: |_, _| Err(nobody()),
        names_mechanism: false,
        plaintext: |_| Err(nobody()),
        tls_of_server: |_, _| Err(nobody()),
        tls_source: "nobody",
        others: |_| Err(nobody()),
    };

    fn nobody() -> Fault {
        Fault::Connection("nobody is there".to_owned())
    }

    /// Whom impostors trust, and which certificate they show.
    fn impostors(mutual: bool) -> String {
        let transport = Transport::tls(TlsVersion::V1_3, mutual);
        let mut setup = plain();
        setup.transport = transport;
        let target = launched("db", 7, "ann", "a", &setup);
        let shown = |(name, target): (&str, Target)| {
            let Tls { authority, identity, .. } = target.tls.expect("TLS");
            let Authority::Of(trusted) = authority else { panic!("an authority") };
            let shows = identity.map(|(certificate, _)| certificate);
            let [trusts, shows] = [Some(trusted), shows].map(|file| file.unwrap_or_default().display().to_string());
            format!("{name}: trusts {trusts}, shows `{shows}`\n")
        };
        let impostors = TlsNegotiated::new(&NOBODY, transport).impostors(&target, &setup.credentials);
        impostors.into_iter().map(shown).collect()
    }

    #[test]
    fn a_server_that_is_to_know_its_clients_meets_one_of_an_authority_that_it_does_not_know() {
        expect![[r#"
            a server of an unknown authority: trusts /m/untrusted.pem, shows ``
        "#]]
        .assert_eq(&impostors(false));
        expect![[r#"
            a server of an unknown authority: trusts /m/untrusted.pem, shows `/m/client.pem`
            a client without a certificate: trusts /m/ca.pem, shows ``
            a client of an unknown authority: trusts /m/ca.pem, shows `/m/untrusted-client.pem`
        "#]]
        .assert_eq(&impostors(true));
    }

    #[test]
    fn handshakes_are_held_to_what_was_asked_for() {
        let usual = Transport::tls(TlsVersion::V1_3, false);
        let Transport::Tls { version, mutual, resumption, .. } = usual else { panic!("TLS") };
        let of = |suite, key, chain| {
            let asked = Transport::Tls { version, mutual, resumption, suite, key, chain };
            TlsNegotiated::new(&NOBODY, asked)
        };
        let shown = Shown { suite: "TLS_AES_128_GCM_SHA256".to_owned(), key: "rsa-2048".to_owned(), chain: 2 };
        assert!(!TlsNegotiated::new(&NOBODY, usual).differs(&shown));
        let right = of(Some(Suite::Aes128Gcm), Some(KeyType::Rsa2048), Some(2));
        assert!(!right.differs(&shown));
        assert_eq!(right.asked(), "TLSv1.3 with aes-128-gcm, a server's key rsa-2048, 2 certificates shown");
        let wrong =
            [of(Some(Suite::Aes256Gcm), None, None), of(None, Some(KeyType::Rsa4096), None), of(None, None, Some(1))];
        assert_eq!(wrong.map(|asked| asked.differs(&shown)), [true; 3]);
    }

    #[test]
    fn doubts_about_other_accounts_count_where_nobody_is_known_to_be_let_in() {
        let exception = |loopback| Exception { text: format!("loopback {loopback}"), loopback };
        let mut text = String::new();
        for exceptions in [vec![], vec![exception(true)], vec![exception(true), exception(false)]] {
            for doubts in [vec![], vec!["an old file".to_owned()]] {
                let whole = Whole { source: "list", exceptions: exceptions.clone(), doubts };
                let others = Others::of(Ok(whole), "192.0.2.1");
                text += &format!("{}: {}, {}\n", others.words, others.let_in, others.narrowed.is_some());
            }
        }
        let others = Others::of(Err(Fault::Refused("no".to_owned())), "192.0.2.1");
        text += &format!("{}: {}, {}\n", others.words, others.let_in, others.narrowed.is_some());
        expect![[r#"
            no client is served in plaintext (list): false, false
            not seen (an old file): false, true
            plaintext is served on the server's own loopback alone (list): false, false
            not seen (an old file): false, true
            served in plaintext: loopback false (list): true, false
            served in plaintext: loopback false (list): true, false
            not seen (refused: no): false, true
        "#]]
        .assert_eq(&text);
    }
}
