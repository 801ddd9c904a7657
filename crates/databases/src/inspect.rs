//! What the inspections of all servers share: connection attempts that must fail, and judging the whole server by its
//! rules.
//!
//! A connection attempt only shows how one account is treated. How all others are treated is in the server's rules and
//! lists of accounts. Each product reads them, and judges them without further requests.

use tithe_machine::fault::Fault;
use tithe_plugin::matrix::{Feature, FeatureStatus, FindingEntry, Scope, State};

use crate::{
    evidence::Attempt,
    target::{SOCKET_PEER, Target, Tls},
};

/// What is in between if one side speaks TLS and the other does not.
pub const ENDS_TLS: &str = "something ends TLS before the server";

/// Opens and closes one connection with a read in between; returns the method of authentication.
pub type Open = fn(&Target) -> Result<String, Fault>;

/// The judgement of one row of the matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Its state.
    pub state: State,
    /// Of how much that was seen.
    pub scope: Scope,
    /// What was seen or tried.
    pub seen: String,
    /// The findings, by their stable names (`findings.rs`).
    pub findings: Vec<&'static FindingEntry>,
}

/// What a server's rules and lists show about one feature.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// What was read, and how much of it.
    pub read: String,
    /// What bypasses the feature, each by name.
    pub exceptions: Vec<String>,
    /// The remedy for the exceptions.
    pub remedy: &'static str,
    /// The parts that could not be judged, each with the reason.
    pub doubts: Vec<String>,
    /// The findings of the exceptions, by their stable names.
    pub findings: Vec<&'static FindingEntry>,
}

impl Judgement {
    /// An answer about every account, database and file.
    pub fn whole(state: State, seen: impl Into<String>) -> Self {
        Self { state, scope: Scope::Server, seen: seen.into(), findings: Vec::new() }
    }

    /// The same, or no answer if `state` says so.
    pub fn by_state(state: State, seen: impl Into<String>) -> Self {
        if state == State::Unseen { Self::unseen(seen) } else { Self::whole(state, seen) }
    }

    /// An answer about this account alone.
    pub fn account(state: State, seen: impl Into<String>) -> Self {
        Self { state, scope: Scope::Account, seen: seen.into(), findings: Vec::new() }
    }

    /// No answer, for this reason.
    pub fn unseen(why: impl Into<String>) -> Self {
        Self::account(State::Unseen, why)
    }

    /// The same with `finding`, once.
    #[must_use]
    pub fn found(mut self, finding: &'static FindingEntry) -> Self {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
        self
    }

    /// The same with a part that was not judged, so that it is not an answer about the whole server.
    #[must_use]
    pub fn doubted(self, doubt: &str) -> Self {
        let seen = format!("{}; not judged: {doubt}", self.seen);
        Self { scope: Scope::Account, seen, ..self }
    }

    /// The same with several such parts; it stays as it is if there are none.
    #[must_use]
    pub fn doubted_by(self, doubts: &[String]) -> Self {
        doubts.iter().fold(self, |judged, doubt| judged.doubted(doubt))
    }

    /// The same, before the `rules` for all clients are added. A client that came `by_socket` shows nothing about
    /// networks, so TLS is enforced there if the rules serve no client of a network plaintext.
    #[must_use]
    pub fn for_networks(self, by_socket: bool, rules: &Result<Rules, Fault>) -> Self {
        let serves_none = rules.as_ref().is_ok_and(|rules| rules.exceptions.is_empty() && rules.doubts.is_empty());
        let state = match self.state {
            State::Available if by_socket && serves_none => State::Enforced,
            state => state,
        };
        Self { state, ..self }
    }

    /// The same, extended by the server's rules for all accounts. An exception lowers the state below what is enforced
    /// for this account. Only rules without doubts make it an answer about the whole server. `right` is what an account
    /// needs to read them.
    pub fn with_rules(self, rules: Result<Rules, Fault>, right: &str) -> Self {
        let rules = match rules {
            Ok(rules) => rules,
            Err(fault) => {
                let seen = format!("{}; others were not judged ({fault}): {right}", self.seen);
                return Self { scope: Scope::Account, seen, ..self };
            }
        };
        let state = match self.state {
            State::Enforced | State::Unseen if !rules.exceptions.is_empty() => State::Available,
            state => state,
        };
        let certain = rules.doubts.is_empty() && state != State::Unseen;
        let scope = if certain { Scope::Server } else { Scope::Account };
        let judged = Self { state, scope, seen: format!("{}; {}", self.seen, rules.words()), ..self };
        rules.findings.into_iter().fold(judged, Self::found)
    }

    /// The cell of `feature`.
    pub fn of(self, feature: Feature) -> FeatureStatus {
        FeatureStatus { findings: self.findings, ..FeatureStatus::new(feature, self.state, self.scope, self.seen) }
    }
}

impl Rules {
    /// What was read, and every exception and doubt with its remedy.
    pub fn words(&self) -> String {
        let mut words = match self.exceptions.len() {
            0 => format!("{}: no exception", self.read),
            1 => format!("{}: 1 exception: {}: {}", self.read, self.exceptions[0], self.remedy),
            count => format!("{}: {count} exceptions: {}: {}", self.read, named(&self.exceptions), self.remedy),
        };
        self.doubts.iter().take(SHOWN).for_each(|doubt| words.push_str(&format!("; not judged: {doubt}")));
        if let Some(more) = self.doubts.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            words.push_str(&format!("; not judged: {more} more"));
        }
        words
    }
}

/// How many names of a list are shown.
const SHOWN: usize = 5;

/// `1 rule`, `3 rules`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The first five of `names`, and how many there are more.
pub fn named(names: &[String]) -> String {
    match names.get(SHOWN..) {
        Some(more) if !more.is_empty() => format!("{} and {} more", names[..SHOWN].join("; "), more.len()),
        _ => names.join("; "),
    }
}

/// Tries to log in without a password, if the user's URL has one, or without the certificate if that was enough.
pub fn authentication(target: &Target, method: &str, open: Open) -> Judgement {
    if method == SOCKET_PEER {
        return Judgement::account(State::Enforced, format!("by {method}: the kernel says whose process it is"));
    }
    if let ("none", Some(Tls { identity: Some(_), .. })) = (method, &target.tls) {
        let without = Target { password: None, must_ask: false, ..target.without_certificate() };
        return match Attempt::of(open(&without)) {
            Ok(Attempt::Refused(words)) => {
                Judgement::account(State::Enforced, format!("by client certificate; without one: refused ({words})"))
            }
            Ok(Attempt::Served) => Judgement::account(State::Off, "let in without a password or certificate"),
            Err(fault) => Judgement::unseen(format!("let in with a certificate; without one: {fault}")),
        };
    }
    if target.password.is_none() || method == "none" {
        return Judgement::account(State::Off, "let in without a password");
    }
    match Attempt::of(open(&Target { password: None, must_ask: false, ..target.clone() })) {
        Ok(Attempt::Refused(words)) => {
            Judgement::account(State::Enforced, format!("by {method}; without a password: refused ({words})"))
        }
        Ok(Attempt::Served) => {
            Judgement::account(State::Available, format!("by {method}; without a password: served too"))
        }
        Err(fault) => Judgement::unseen(format!("by {method}; without a password: {fault}")),
    }
}

/// Tries `plaintext`, if the user's URL requests TLS; otherwise checks whether the server `offers` TLS.
pub fn transport(target: &Target, tls: &str, offers: Result<bool, Fault>, plaintext: Open) -> Judgement {
    if target.tls.is_some() {
        return match Attempt::in_plaintext(plaintext(target)) {
            Ok(Attempt::Refused(words)) => {
                Judgement::account(State::Enforced, format!("{tls}; plaintext: refused ({words})"))
            }
            Ok(Attempt::Served) => Judgement::account(State::Available, format!("{tls}; plaintext: served too")),
            Err(fault) => Judgement::unseen(format!("{tls}; plaintext: {fault}")),
        };
    }
    let way = if target.is_socket() { "by a Unix socket, which no network sees" } else { "plaintext: served" };
    match offers {
        Ok(true) => Judgement::account(State::Available, format!("{way}; the server has TLS as well")),
        // Without TLS no other account can have TLS either.
        Ok(false) => Judgement::whole(State::Off, format!("{way}; the server has no TLS")),
        Err(fault) => Judgement::account(State::Available, format!("{way}; whether TLS is there: {fault}")),
    }
}

/// The numbers of a product's version; `5.0-beta1`, which comes before 5.0.0, has two.
pub fn version_numbers(version: &str) -> Vec<u32> {
    version.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
}

/// True if a list of `versions`, as servers write it, has a version of TLS before 1.2.
pub fn has_old_tls(versions: &str) -> bool {
    let is_old = |version: &str| ["TLSv1", "TLSv1.0", "TLSv1.1"].iter().any(|old| version.eq_ignore_ascii_case(old));
    versions.split([',', ' ', '[', ']']).any(is_old)
}

/// The doubt about the versions of TLS before 1.2, which a `setting` of this `value` allows: they are not tried, and
/// OpenSSL's own configuration may forbid them.
pub fn doubt_of_old_tls(setting: &str, value: &str) -> String {
    format!("whether clients speak TLS before version 1.2, which {setting} = {value} allows")
}

/// Both rows of the matrix about clients: they are the same for a product whose clients use one server.
pub fn client_rows(transport: Judgement) -> [FeatureStatus; 2] {
    [Feature::Transport, Feature::ClientToNode].map(|feature| transport.clone().of(feature))
}

/// The judgement of a client's `own` hop, which reaches no further than what is in `between`.
pub fn up_to(between: &str, own: &Judgement) -> Judgement {
    Judgement::account(own.state, format!("{between}; to it: {}", own.seen))
}

/// Both rows if the client speaks TLS and the server does not (`why`): its `own` way, as far as what ends TLS, and the
/// one from there on. Rules of the server say nothing about the first.
pub fn ended_rows(own: &Judgement, why: &str) -> [FeatureStatus; 2] {
    let own = up_to(ENDS_TLS, own);
    let behind = Judgement::account(State::Off, format!("{ENDS_TLS}; behind it: {why}"));
    [own.of(Feature::Transport), behind.of(Feature::ClientToNode)]
}

/// The state of authorisation if so many of `all` accounts that may log in have all privileges. One administrator is
/// normal. If the server lists no account, its accounts are elsewhere.
pub fn of_administrators(unlimited: usize, all: usize) -> State {
    match unlimited {
        _ if all == 0 => State::Unseen,
        count if count == all => State::Off,
        0 | 1 => State::Enforced,
        _ => State::Available,
    }
}

/// The [judgement](of_administrators) of authorisation, from the names of the accounts with all privileges.
pub fn limited(unlimited: &[String], all: usize, shown: &str) -> Judgement {
    let seen = format!("{} of {} may do everything ({shown})", unlimited.len(), counted(all, "account"));
    match of_administrators(unlimited.len(), all) {
        State::Available => Judgement::whole(State::Available, format!("{seen}: {}", named(unlimited))),
        state => Judgement::by_state(state, seen),
    }
}

/// Features that a product does not have.
pub fn not_offered(features: &[(Feature, &str)]) -> Vec<FeatureStatus> {
    features.iter().map(|(feature, why)| Judgement::whole(State::NotOffered, *why).of(*feature)).collect()
}

/// A check that may fail: then the cell shows why.
pub fn inspect_feature(feature: Feature, judge: impl FnOnce() -> Result<Judgement, Fault>) -> FeatureStatus {
    judge().unwrap_or_else(|fault| Judgement::unseen(fault.to_string())).of(feature)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn judged(state: State, rules: Result<Rules, Fault>) -> String {
        let Judgement { state, scope, seen, .. } = Judgement::account(state, "door").with_rules(rules, "needs X");
        format!("{}, {}: {seen}\n", state.words(), scope.words())
    }

    #[test]
    fn only_rules_without_exceptions_and_doubts_make_it_the_whole_server() {
        let clean = Rules { read: "2 rules".to_owned(), remedy: "mend it", ..Rules::default() };
        let broken = Rules { exceptions: vec!["line 1".to_owned(), "line 2".to_owned()], ..clean.clone() };
        let doubtful = Rules { doubts: vec!["line 3 (error)".to_owned()], ..clean.clone() };
        let mut text = String::new();
        for state in [State::Enforced, State::Off, State::Unseen] {
            for rules in [&clean, &broken, &doubtful] {
                text += &judged(state, Ok(rules.clone()));
            }
        }
        text += &judged(State::Enforced, Err(Fault::Refused("no".to_owned())));
        expect![[r#"
            enforced, whole server: door; 2 rules: no exception
            available but not enforced, whole server: door; 2 rules: 2 exceptions: line 1; line 2: mend it
            enforced, this account: door; 2 rules: no exception; not judged: line 3 (error)
            off, whole server: door; 2 rules: no exception
            off, whole server: door; 2 rules: 2 exceptions: line 1; line 2: mend it
            off, this account: door; 2 rules: no exception; not judged: line 3 (error)
            cannot tell, this account: door; 2 rules: no exception
            available but not enforced, whole server: door; 2 rules: 2 exceptions: line 1; line 2: mend it
            cannot tell, this account: door; 2 rules: no exception; not judged: line 3 (error)
            enforced, this account: door; others were not judged (refused: no): needs X
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_client_by_a_socket_does_not_lower_what_rules_require_of_networks() {
        let none = Rules { read: "2 rules".to_owned(), ..Rules::default() };
        let open = Rules { exceptions: vec!["line 1".to_owned()], ..none.clone() };
        let doubtful = Rules { doubts: vec!["line 2".to_owned()], ..none.clone() };
        let state = |state: State, by_socket: bool, rules: Result<Rules, Fault>| {
            let judged = Judgement::account(state, "its way").for_networks(by_socket, &rules);
            judged.with_rules(rules, "needs X").state
        };
        assert_eq!(state(State::Available, true, Ok(none.clone())), State::Enforced);
        assert_eq!(state(State::Available, false, Ok(none.clone())), State::Available);
        assert_eq!(state(State::Off, true, Ok(none)), State::Off);
        for rules in [Ok(open), Ok(doubtful), Err(Fault::Refused("no".to_owned()))] {
            assert_eq!(state(State::Available, true, rules), State::Available);
        }
    }

    #[test]
    fn old_versions_of_tls_are_found_in_every_form_of_a_list() {
        for list in ["TLSv1", "TLSv1.1,TLSv1.2", "tlsv1.2 TLSv1.1", "[TLSv1.3, TLSv1.1]", "tlsv1.0"] {
            assert!(has_old_tls(list), "{list}");
        }
        for list in ["", "TLSv1.2", "TLSv1.2,TLSv1.3", "[TLSv1.3, TLSv1.2]", "tlsv1.2"] {
            assert!(!has_old_tls(list), "{list}");
        }
    }

    /// The judgement of a server that gives each of these answers to clients that must be refused.
    fn at_the_door(judge: impl Fn(Open) -> Judgement) -> String {
        let answers: [(&str, Open); 4] = [
            ("served", |_| Ok("x".to_owned())),
            ("refused", |_| Err(Fault::Refused("not you".to_owned()))),
            ("asked for a password", |_| Err(Fault::Refused("the server asks for a password".to_owned()))),
            ("broken", |_| Err(Fault::Connection("gone".to_owned()))),
        ];
        let told = |(name, open): (&str, Open)| {
            let Judgement { state, scope, seen, .. } = judge(open);
            format!("  {name}: {}, {}: {seen}\n", state.words(), scope.words())
        };
        answers.map(told).concat()
    }

    #[test]
    fn who_must_be_refused_is_tried() {
        let secret = || Some(tithe_machine::secret::Secret::new("correct horse"));
        let files = || Some(("a.pem".into(), "a.key".into()));
        let with_tls = |password, identity| Target {
            password,
            must_ask: true,
            tls: Some(Tls::of_url(crate::target::Authority::System, identity)),
            ..Target::default()
        };
        // No attempt may use the credential that it must do without.
        fn is_bare(target: &Target) -> bool {
            target.password.is_none() && !target.must_ask
        }
        let bare: Open = |target| {
            assert!(is_bare(target) && target.tls.as_ref().is_none_or(|tls| tls.identity.is_none()));
            Err(Fault::Refused("not you".to_owned()))
        };
        let kept: Open = |target| {
            assert!(is_bare(target) && target.tls.as_ref().is_some_and(|tls| tls.identity.is_some()));
            Err(Fault::Refused("not you".to_owned()))
        };
        assert_eq!(authentication(&with_tls(None, files()), "none", bare).state, State::Enforced);
        assert_eq!(authentication(&with_tls(secret(), files()), "scram", kept).state, State::Enforced);
        let targets = [
            ("a password", Target { password: secret(), ..Target::default() }, "scram"),
            ("a password that nobody asked for", Target { password: secret(), ..Target::default() }, "none"),
            ("no password", Target::default(), "scram"),
            ("a certificate", with_tls(None, files()), "none"),
            ("a certificate and a password", with_tls(secret(), files()), "scram"),
            ("TLS without a certificate", with_tls(None, None), "none"),
            ("the kernel's word", Target::default(), SOCKET_PEER),
        ];
        let mut text = String::new();
        for (name, target, method) in targets {
            text += &format!("{name}, by {method}\n{}", at_the_door(|open| authentication(&target, method, open)));
        }
        text += &format!("TLS\n{}", at_the_door(|open| transport(&with_tls(None, None), "TLSv1.3", Ok(false), open)));
        let socket = Target { host: "/run/db".to_owned(), ..Target::default() };
        for (name, target) in [("plaintext", Target::default()), ("a socket", socket)] {
            for offers in [Ok(true), Ok(false), Err(Fault::Refused("no right".to_owned()))] {
                let Judgement { state, scope, seen, .. } = transport(&target, "", offers, |_| panic!("nobody asks"));
                text += &format!("{name}: {}, {}: {seen}\n", state.words(), scope.words());
            }
        }
        expect![[r#"
            a password, by scram
              served: available but not enforced, this account: by scram; without a password: served too
              refused: enforced, this account: by scram; without a password: refused (not you)
              asked for a password: enforced, this account: by scram; without a password: refused (the server asks for a password)
              broken: cannot tell, this account: by scram; without a password: connection: gone
            a password that nobody asked for, by none
              served: off, this account: let in without a password
              refused: off, this account: let in without a password
              asked for a password: off, this account: let in without a password
              broken: off, this account: let in without a password
            no password, by scram
              served: off, this account: let in without a password
              refused: off, this account: let in without a password
              asked for a password: off, this account: let in without a password
              broken: off, this account: let in without a password
            a certificate, by none
              served: off, this account: let in without a password or certificate
              refused: enforced, this account: by client certificate; without one: refused (not you)
              asked for a password: enforced, this account: by client certificate; without one: refused (the server asks for a password)
              broken: cannot tell, this account: let in with a certificate; without one: connection: gone
            a certificate and a password, by scram
              served: available but not enforced, this account: by scram; without a password: served too
              refused: enforced, this account: by scram; without a password: refused (not you)
              asked for a password: enforced, this account: by scram; without a password: refused (the server asks for a password)
              broken: cannot tell, this account: by scram; without a password: connection: gone
            TLS without a certificate, by none
              served: off, this account: let in without a password
              refused: off, this account: let in without a password
              asked for a password: off, this account: let in without a password
              broken: off, this account: let in without a password
            the kernel's word, by socket peer
              served: enforced, this account: by socket peer: the kernel says whose process it is
              refused: enforced, this account: by socket peer: the kernel says whose process it is
              asked for a password: enforced, this account: by socket peer: the kernel says whose process it is
              broken: enforced, this account: by socket peer: the kernel says whose process it is
            TLS
              served: available but not enforced, this account: TLSv1.3; plaintext: served too
              refused: enforced, this account: TLSv1.3; plaintext: refused (not you)
              asked for a password: available but not enforced, this account: TLSv1.3; plaintext: served too
              broken: cannot tell, this account: TLSv1.3; plaintext: connection: gone
            plaintext: available but not enforced, this account: plaintext: served; the server has TLS as well
            plaintext: off, whole server: plaintext: served; the server has no TLS
            plaintext: available but not enforced, this account: plaintext: served; whether TLS is there: refused: no right
            a socket: available but not enforced, this account: by a Unix socket, which no network sees; the server has TLS as well
            a socket: off, whole server: by a Unix socket, which no network sees; the server has no TLS
            a socket: available but not enforced, this account: by a Unix socket, which no network sees; whether TLS is there: refused: no right
        "#]].assert_eq(&text);
    }

    #[test]
    fn tls_that_ends_before_the_server_is_not_the_servers() {
        let own = Judgement::whole(State::Enforced, "TLSv1.3; plaintext: refused (not you)");
        let told = ended_rows(&own, "ssl_enabled is no")
            .map(|row| format!("{}, {}: {}", row.state.words(), row.scope.words(), row.seen));
        expect![[r#"
            enforced, this account: something ends TLS before the server; to it: TLSv1.3; plaintext: refused (not you)
            off, this account: something ends TLS before the server; behind it: ssl_enabled is no"#]]
        .assert_eq(&told.join("\n"));
    }

    #[test]
    fn words_count_and_name_what_there_is() {
        let names = |count: usize| (1..=count).map(|number| format!("a{number}")).collect::<Vec<_>>();
        let rules = |exceptions, doubts| Rules {
            read: "read".to_owned(),
            exceptions: names(exceptions),
            remedy: "mend it",
            doubts: names(doubts),
            ..Rules::default()
        };
        let mut text: Vec<String> = [0, 1, 2, 5, 6].iter().map(|count| rules(*count, 0).words()).collect();
        text.extend([1, 5, 6, 7].iter().map(|count| rules(0, *count).words()));
        text.extend([0, 1, 2].map(|count| counted(count, "rule")));
        expect![[r#"
            read: no exception
            read: 1 exception: a1: mend it
            read: 2 exceptions: a1; a2: mend it
            read: 5 exceptions: a1; a2; a3; a4; a5: mend it
            read: 6 exceptions: a1; a2; a3; a4; a5 and 1 more: mend it
            read: no exception; not judged: a1
            read: no exception; not judged: a1; not judged: a2; not judged: a3; not judged: a4; not judged: a5
            read: no exception; not judged: a1; not judged: a2; not judged: a3; not judged: a4; not judged: a5; not judged: 1 more
            read: no exception; not judged: a1; not judged: a2; not judged: a3; not judged: a4; not judged: a5; not judged: 2 more
            0 rules
            1 rule
            2 rules"#]].assert_eq(&text.join("\n"));
    }

    #[test]
    fn a_finding_is_kept_once_and_a_doubt_narrows() {
        let [one, other] = [&crate::findings::MY_AUDIT_OFF, &crate::findings::MY_AUDIT_PARTIAL];
        let judged = Judgement::whole(State::Enforced, "x").found(one).found(other).found(one);
        assert_eq!(judged.findings, [one, other]);
        let Judgement { state, scope, seen, findings } = judged.clone().doubted("y");
        assert_eq!(
            (state, scope, seen.as_str(), findings.len()),
            (State::Enforced, Scope::Account, "x; not judged: y", 2)
        );
        let rules = Rules { findings: vec![one, other], ..Rules::default() };
        assert_eq!(Judgement::account(State::Off, "x").with_rules(Ok(rules), "").findings, [one, other]);
        let cell = judged.of(Feature::Auditing);
        assert_eq!((cell.feature, cell.scope, cell.findings.len()), (Feature::Auditing, Scope::Server, 2));
        let failed = inspect_feature(Feature::AtRest, || Err(Fault::Refused("no".to_owned())));
        assert_eq!(
            (failed.feature, failed.state, failed.seen.as_str()),
            (Feature::AtRest, State::Unseen, "refused: no")
        );
    }

    #[test]
    fn one_administrator_is_no_mistake() {
        let names = |count: usize| (0..count).map(|number| format!("a{number}")).collect::<Vec<_>>();
        let state = |count, all| limited(&names(count), all, "x").state;
        assert_eq!(
            [state(0, 2), state(1, 2), state(2, 3), state(1, 1)],
            [State::Enforced, State::Enforced, State::Available, State::Off]
        );
        assert_eq!(state(0, 0), State::Unseen, "an empty list limits nobody, and opens nothing");
    }
}
