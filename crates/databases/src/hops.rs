//! The way from this client to a server that something else may answer for: a pooler, or what ends TLS.

use tithe_plugin::{connections::Spoken, matrix::State};

use crate::inspect::{ENDS_TLS, Judgement, up_to};

/// The transport of each hop from this client to the server.
pub struct Hops {
    /// On this client's own connection; `off` in plaintext.
    pub client: String,
    /// On the connection to the server, as the server reports it; the same as the client's if nothing is in between.
    pub server: String,
    /// What is in between, if anything.
    pub between: Option<&'static str>,
    /// Where the server reports the transport of a session.
    source: &'static str,
}

impl Hops {
    /// From the client's `own` handshake, what the `server` reports by `source`, `off` or version and cipher, and what
    /// is `known` to be in between. If one side uses TLS and the other does not, something in between ends it.
    pub fn of(own: Option<String>, server: String, known: Option<&'static str>, source: &'static str) -> Self {
        let between = known.or_else(|| (own.is_some() != (server != "off")).then_some(ENDS_TLS));
        let client = match between {
            None => server.clone(),
            Some(_) => own.unwrap_or_else(|| "off".to_owned()),
        };
        Self { client, server, between, source }
    }

    /// The client's hop, which begins with its TLS version, and the hop behind it.
    pub fn words(&self) -> String {
        let Self { client, server, between, source } = self;
        match between {
            None => client.clone(),
            Some(between) => format!(
                "{client} by the client's own handshake, and only up to there: {between}, and behind it {source} \
                 reports {server}"
            ),
        }
    }

    /// The judgements of the `own` hop and of the hop behind the pooler or proxy; `None` if there is none in between.
    pub fn split(&self, own: impl FnOnce() -> Judgement) -> Option<[Judgement; 2]> {
        let (between, source) = (self.between?, self.source);
        let state = if self.server == "off" { State::Off } else { State::Enforced };
        let words = format!("{between}; behind it {source} of this session reports: {}", self.server);
        Some([up_to(between, &own()), Judgement::account(state, words)])
    }
}

/// The judgement of a login that the pooler or proxy in `between` decided: the server's rules apply to the connections
/// of that one only.
pub fn let_in_by(between: &str, door: Judgement) -> Judgement {
    Judgement { seen: format!("{between}: {}", door.seen), ..door }
        .doubted("which other clients it accepts (its own configuration)")
}

/// What is known of a client's transport if the server only sees the transport of the pooler or proxy in `between`.
pub fn seen_behind(between: &str) -> Spoken {
    Spoken::Untold(format!("{between}, and the list is of its own connections: ask the server itself"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_server_behind_something_that_ends_tls_reports_its_own_connection() {
        let told = |own: Option<&str>, server: &str| {
            Hops::of(own.map(str::to_owned), server.to_owned(), None, "SHOW SESSION STATUS").words()
        };
        assert_eq!([told(None, "off"), told(Some("TLSv1.3 a"), "TLSv1.3 b")], ["off", "TLSv1.3 b"]);
        expect!["TLSv1.3 a by the client's own handshake, and only up to there: something ends TLS before the server, and behind it SHOW SESSION STATUS reports off"].assert_eq(&told(Some("TLSv1.3 a"), "off"));
        assert!(told(None, "TLSv1.3 b").starts_with("off by the client's own handshake"));
    }

    #[test]
    fn each_hop_is_judged_by_itself() {
        let own = || Judgement::whole(State::Available, "TLSv1.3 a; plaintext: served too");
        let split = |client: Option<&str>, server: &str, known: Option<&'static str>| {
            let hops = Hops::of(client.map(str::to_owned), server.to_owned(), known, "pg_stat_ssl");
            hops.split(own).map(|hops| hops.map(|hop| (hop.state, hop.scope.words())))
        };
        // An answer about one hop is none about the whole server.
        let (one, behind) = ((State::Available, "this account"), |state| (state, "this account"));
        for same in [(None, "off"), (Some("TLSv1.3 a"), "TLSv1.3 b")] {
            assert_eq!(split(same.0, same.1, None), None, "nothing is in between");
        }
        for client in [None, Some("TLSv1.3 a")] {
            assert_eq!(split(client, "off", Some("a pooler")), Some([one, behind(State::Off)]));
            assert_eq!(split(client, "TLSv1.3 b", Some("a pooler")), Some([one, behind(State::Enforced)]));
        }
        assert_eq!(split(Some("TLSv1.3 a"), "off", None), Some([one, behind(State::Off)]));
        assert_eq!(split(None, "TLSv1.3 b", None), Some([one, behind(State::Enforced)]));
    }

    #[test]
    fn what_a_pooler_decides_is_not_known_of_others() {
        let door = || Judgement::whole(State::Enforced, "by md5; without a password: refused");
        let Judgement { state, scope, seen, .. } = let_in_by("a pooler", door());
        assert_eq!((state, scope.words()), (State::Enforced, "this account"));
        let expected = "a pooler: by md5; without a password: refused; not judged: which other clients it accepts \
                        (its own configuration)";
        assert_eq!(seen, expected);
        let words = "a pooler, and the list is of its own connections: ask the server itself";
        assert!(matches!(seen_behind("a pooler"), Spoken::Untold(untold) if untold == words));
    }
}
