//! The security matrix of a running etcd, from its lists of members, users and roles, and from connection attempts.

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    setup::Setup,
};

use super::{
    connection::EtcdConnection,
    messages::{Fields, ROLE_GET, STATUS, USER_GET, USER_LIST, put_bytes},
    store::{Member, members},
    target::{ADMINISTRATOR, of_clients},
};
use crate::{
    findings,
    inspect::{
        Judgement, Rules, authentication, client_rows, counted, inspect_feature, limited, not_offered, transport,
    },
    target::Target,
};

/// Which account may read the lists of accounts.
const RIGHT: &str = "use an account with the role root";

/// Judges every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = of_clients(server, setup)?;
    let mut connection = EtcdConnection::open(&target)?;
    let method = connection.method();
    let tls = connection.tls_facts().map_or_else(String::new, |tls| tls.suite());
    let members = members(&mut connection)?;
    let version = Fields(&connection.call(STATUS, |_| {})?).texts(2)?.pop().unwrap_or_default();
    let asks = connection.asks();
    let by_certificate = target.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
    let rules = asks.clone().map(|is_on| logins(is_on, by_certificate, &members, &version));
    let mut seen = vec![authentication(&target, method, opened).with_rules(rules, "").of(Feature::Authentication)];
    seen.push(inspect_feature(Feature::Authorisation, || rights(&mut connection, asks?, &version)));
    let offers = Ok(members.iter().flat_map(|member| &member.clients).any(|url| url.starts_with("https:")));
    let clients = transport(&target, &tls, offers, plaintext).with_rules(Ok(listeners(&target, &members)), "");
    seen.extend(client_rows(clients));
    seen.push(between(&members).of(Feature::NodeToNode));
    seen.extend(not_offered(&[
        (
            Feature::AtRest,
            "etcd encrypts no file: keys and values are in the clear in member/snap/db and member/wal; Kubernetes \
             encrypts values before it writes them (EncryptionConfiguration)",
        ),
        (Feature::Auditing, "etcd has no audit log"),
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::AuthenticationCaching, "a login gives out a token, which is checked with every request"),
        (Feature::ProxyRoles, "no account acts for another"),
    ]));
    Ok(seen)
}

fn opened(target: &Target) -> Result<String, Fault> {
    Ok(EtcdConnection::open(target)?.method().to_owned())
}

/// Comes in [`Target::in_plaintext`].
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    opened(&target.in_plaintext())
}

/// The logins that are required: users by all members or by none, a certificate only by listeners with TLS and by a
/// setting of each member.
fn logins(is_on: bool, by_certificate: bool, members: &[Member], version: &str) -> Rules {
    let read = if is_on { "auth is enabled, for every client" } else { "auth is not enabled" };
    let doubts = UNASKED.of(version).filter(|_| is_on).into_iter().collect();
    let rules = Rules { read: read.to_owned(), doubts, ..Rules::default() };
    if is_on || !by_certificate {
        return rules;
    }
    let mut doubts = vec![UNADVERTISED.to_owned()];
    doubts.extend(without_scheme(members));
    if members.len() > 1 {
        doubts.push("whether the other members ask for a certificate (client-cert-auth)".to_owned());
    }
    Rules {
        exceptions: doors_beside(members).iter().map(|door| format!("{door}, which asks for no certificate")).collect(),
        doubts,
        remedy: "enable auth, or write https in listen-client-urls of every member",
        ..rules
    }
}

/// Which account may do what, from users and their roles.
fn rights(connection: &mut EtcdConnection, is_on: bool, version: &str) -> Result<Judgement, Fault> {
    if !is_on {
        let seen = "auth is not enabled: every client may read, change and remove every key";
        return Ok(Judgement::whole(State::Off, seen));
    }
    let answer = match connection.call(USER_LIST, |_| {}) {
        Err(Fault::Refused(words)) => {
            return of_this_account(connection.range(b"\0", b"\0", 1).map(drop), &words, version);
        }
        outcome => outcome?,
    };
    let users = Fields(&answer).texts(2)?;
    let (mut unlimited, mut over_all_keys, mut reads_one_key) = (Vec::new(), Vec::new(), false);
    for user in &users {
        let answer = connection.call(USER_GET, |out| put_bytes(out, 1, &[user.as_bytes()]))?;
        let roles = Fields(&answer).texts(2)?;
        if roles.iter().any(|role| role == ADMINISTRATOR) {
            unlimited.push(user.clone());
            continue;
        }
        let (mut of_all_roles, known) = (Vec::new(), over_all_keys.len());
        for role in &roles {
            let answer = connection.call(ROLE_GET, |out| put_bytes(out, 1, &[role.as_bytes()]))?;
            let grants = Fields(&answer).all(2)?.into_iter().map(Grant::read).collect::<Result<Vec<_>, _>>()?;
            reads_one_key |= grants.iter().any(|grant| grant.kind != WRITE && grant.end.is_empty());
            if are_over_all_keys(&grants) {
                over_all_keys.push(format!("{user} by the role {role}"));
            }
            of_all_roles.extend(grants);
        }
        if over_all_keys.len() == known && are_over_all_keys(&of_all_roles) {
            over_all_keys.push(format!("{user} by the roles {}", roles.join(", ")));
        }
    }
    let judged = limited(&unlimited, users.len(), "the role root");
    let judged = if unlimited.len() > 1 { judged.found(&findings::ETCD_AUTHZ_EVERYTHING) } else { judged };
    let mut doubts = Vec::new();
    if unlimited.len() < users.len() {
        doubts.extend(NESTED.of(version));
        doubts.extend(WATCH.of(version).filter(|_| reads_one_key));
    }
    if over_all_keys.is_empty() {
        return Ok(doubts.iter().fold(judged, |judged, doubt| judged.doubted(doubt)));
    }
    let rules = Rules {
        read: counted(users.len(), "account"),
        exceptions: over_all_keys,
        remedy: "grant the keys that are needed (grant-permission --prefix), and revoke the rest",
        findings: vec![&findings::ETCD_AUTHZ_EVERYTHING],
        doubts,
    };
    Ok(judged.with_rules(Ok(rules), RIGHT))
}

/// The judgement of an account to which the list of accounts is refused by these `words`, from its read of every key.
fn of_this_account(read: Result<(), Fault>, words: &str, version: &str) -> Result<Judgement, Fault> {
    match read {
        // That it may not list accounts is a limit all the same.
        Ok(()) => {
            let seen = format!("this account may read every key; the list of accounts: refused ({words})");
            Ok(Judgement::account(State::Available, seen).found(&findings::ETCD_AUTHZ_EVERYTHING))
        }
        Err(Fault::Refused(range)) => {
            let seen = format!("every key, and the list of accounts: refused ({range}; {words}); others: {RIGHT}");
            let judged = Judgement::account(State::Enforced, seen);
            Ok(NESTED.of(version).iter().fold(judged, |judged, doubt| judged.doubted(doubt)))
        }
        Err(fault) => Err(fault),
    }
}

/// A way around logins or rights, which older versions do not check. A distribution may have mended its own without
/// another number.
struct Hole {
    way: &'static str,
    /// The first version of each line that checks it.
    closed: [[u32; 3]; 3],
}

/// A client without a login makes these calls.
const UNASKED: Hole = Hole {
    way: "who compacts, lists members, or makes alarms and leases (CVE-2026-33413)",
    closed: [[3, 4, 42], [3, 5, 28], [3, 6, 9]],
};
/// Any account reads every key by the first, and what it writes by the second.
const NESTED: Hole = Hole {
    way: "nested transactions and what they read (CVE-2026-33343, CVE-2026-44283)",
    closed: [[3, 4, 44], [3, 5, 30], [3, 6, 11]],
};
/// An account that reads one key reads all that follow it.
const WATCH: Hole =
    Hole { way: "watches from a single key on (CVE-2026-73499)", closed: [[3, 5, 33], [3, 6, 14], [3, 7, 1]] };

impl Hole {
    /// The doubt about a server of `version`; `None` if it checks this.
    fn of(&self, version: &str) -> Option<String> {
        let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0));
        let numbers: [u32; 3] = std::array::from_fn(|_| parts.next().unwrap_or(0));
        let is_closed = match self.closed.iter().find(|first| first[..2] == numbers[..2]) {
            Some(first) => numbers >= *first,
            None => numbers > self.closed[2],
        };
        (!is_closed).then(|| format!("whether etcd {version} checks {}", self.way))
    }
}

/// A permission on the keys from `key` on that are before `end`: one key if `end` is empty, all of them if it is a zero
/// byte.
struct Grant {
    kind: u64,
    key: Vec<u8>,
    end: Vec<u8>,
}

/// Kinds of permissions (`Permission.Type` of etcd's `auth.proto`).
const READ: u64 = 0;
const WRITE: u64 = 1;
const READ_WRITE: u64 = 2;

impl Grant {
    fn read(permission: &[u8]) -> Result<Self, Fault> {
        let of = |field: u64| Fields(permission).first(field).map(<[u8]>::to_vec);
        Ok(Self { kind: Fields(permission).number(1)?, key: of(2)?, end: of(3)? })
    }
}

/// True if `grants` together are about every key, for reading or for writing.
fn are_over_all_keys(grants: &[Grant]) -> bool {
    const LAST: &[u8] = b"\0";
    let of_kind = |kind: u64| {
        let grants = grants.iter().filter(|grant| [kind, READ_WRITE].contains(&grant.kind));
        let mut ranges: Vec<(&[u8], &[u8])> = grants.map(|grant| (&grant.key[..], &grant.end[..])).collect();
        ranges.sort_unstable();
        // There is no key before the zero byte, and all keys before this one are granted.
        let mut granted: &[u8] = b"\0";
        for (key, end) in ranges {
            if key > granted && key.iter().any(|byte| *byte != 0) {
                return false;
            }
            if end == LAST {
                return true;
            }
            granted = granted.max(end);
        }
        false
    };
    of_kind(READ) || of_kind(WRITE)
}

/// What the list of members does not show.
pub const UNADVERTISED: &str = "listeners that a member does not advertise";

fn listeners(target: &Target, members: &[Member]) -> Rules {
    let exceptions = if target.tls.is_some() { doors_beside(members) } else { Vec::new() };
    let findings = if exceptions.is_empty() { Vec::new() } else { vec![&findings::ETCD_TLS_OPTIONAL] };
    let mut doubts = vec![UNADVERTISED.to_owned()];
    doubts.extend(without_scheme(members));
    if members.iter().all(is_a_proxy) {
        doubts.push("the way from a proxy to the members".to_owned());
    }
    Rules {
        read: "the list of members".to_owned(),
        exceptions,
        doubts,
        remedy: "write https in listen-client-urls and advertise-client-urls of every member",
        findings,
    }
}

/// The listeners for clients without TLS, each by its name.
pub fn doors_beside(members: &[Member]) -> Vec<String> {
    let plain = |member: &Member| {
        let urls: Vec<&str> = member.clients.iter().map(String::as_str).filter(|url| is_plaintext(url)).collect();
        (!urls.is_empty()).then(|| format!("member {} speaks plaintext at {}", member.name, urls.join(" and ")))
    };
    members.iter().filter_map(plain).collect()
}

/// Addresses for clients of which the list does not say what is spoken there: a proxy reports its own as it was given,
/// `127.0.0.1:23790` for example.
pub fn without_scheme(members: &[Member]) -> Vec<String> {
    let unknown = |url: &&String| !is_plaintext(url) && !is_encrypted(url);
    let urls = members.iter().flat_map(|member| &member.clients).filter(unknown);
    urls.map(|url| format!("whether {url} speaks TLS, an address without a scheme")).collect()
}

fn is_encrypted(url: &str) -> bool {
    url.starts_with("https:") || url.starts_with("unixs:")
}

fn is_plaintext(url: &str) -> bool {
    url.starts_with("http:") || url.starts_with("unix:")
}

/// `etcd grpc-proxy` reports proxies in the place of members, and those have no peer URL (`clusterProxy` in etcd's
/// source).
fn is_a_proxy(member: &Member) -> bool {
    member.peers.is_empty()
}

/// The transport between members.
fn between(members: &[Member]) -> Judgement {
    let plain: Vec<&str> =
        members.iter().flat_map(|member| &member.peers).map(String::as_str).filter(|url| !is_encrypted(url)).collect();
    match (members, plain.as_slice()) {
        (_, []) if members.is_empty() || members.iter().any(is_a_proxy) => {
            Judgement::unseen("the list of members has no peer URLs, as that of a proxy (grpc-proxy): ask a member")
        }
        (_, []) => Judgement::account(
            State::Enforced,
            "every member has https alone in its peer URLs (whether it asks peers for certificates is not shown)",
        )
        .doubted(UNADVERTISED),
        ([_], plain) => {
            let seen = format!("a single member; its peer URL is {}", plain.join(" and "));
            Judgement::whole(State::Off, seen)
        }
        (_, plain) => {
            let seen = format!("members speak plaintext with each other: {}", plain.join(", "));
            Judgement::whole(State::Off, seen).found(&findings::ETCD_PEERS_PLAINTEXT)
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{super::messages::put_number, *};
    use crate::{
        etcd::test_server::{Told, tight},
        target::{Authority, Tls},
        test_setup::{changed_rows, plain, states},
    };

    fn states_of(told: &Told) -> Vec<String> {
        states(&told.seen(|server| inspect(server, &plain()).expect("it can be reached")))
    }

    #[test]
    fn each_answer_shows_in_its_rows() {
        let usual = states_of(&tight());
        expect![[r#"
            authentication: enforced, whole server
            authorisation: enforced, whole server
            tls: off, this account
            client-to-node: off, this account
            node-to-node: enforced, this account
            at-rest: not offered by this product, whole server
            audit: not offered by this product, whole server
            jmx-authentication: not offered by this product, whole server
            authentication-caching: not offered by this product, whole server
            proxy-roles: not offered by this product, whole server
        "#]]
        .assert_eq(&usual.concat());
        let members = |members| Told { members, ..tight() };
        let users = |users| Told { users, ..tight() };
        let roles = |roles| Told { roles, ..tight() };
        let watched = |roles| Told { version: "3.6.13", roles, ..tight() };
        let several = |roles| Told { users: &[("root", &["root"]), ("app", &["low", "high"])], roles, ..tight() };
        let changes = [
            ("auth is off", Told { auth: false, ..tight() }),
            ("an older version", Told { version: "3.4.23", ..tight() }),
            ("a version that shows what follows a key", watched(&[("app", &[(READ, "one", "")])])),
            ("that one, to an account that writes a key", watched(&[("app", &[(WRITE, "one", "")])])),
            ("that one, to an account of a range", watched(&[("app", &[(READ, "app/", "app0")])])),
            ("an administrator more", users(&[("root", &["root"]), ("ops", &["app", "root"]), ("app", &["app"])])),
            ("administrators alone", users(&[("root", &["root"]), ("ops", &["root"])])),
            (
                "administrators alone, of an older version",
                Told { version: "3.4.23", ..users(&[("root", &["root"]), ("ops", &["root"])]) },
            ),
            ("a role over all keys", roles(&[("app", &[(READ_WRITE, "", "\0")])])),
            ("two roles over all keys", several(&[("low", &[(READ, "", "m")]), ("high", &[(READ, "m", "\0")])])),
            ("two roles of two kinds", several(&[("low", &[(READ, "", "m")]), ("high", &[(WRITE, "m", "\0")])])),
            ("no right to the accounts", Told { refused: &[USER_LIST, "\0"], ..tight() }),
            ("no right to the accounts, and all keys", Told { refused: &[USER_LIST], ..tight() }),
            ("TLS", members(&[("https://a:2380", "https://a:2379")])),
            ("a member in plaintext", members(&[("http://a:2380", "http://a:2379")])),
            (
                "members in plaintext",
                members(&[("https://a:2380", "http://a:2379"), ("http://b:2380", "http://b:2379")]),
            ),
        ];
        let changes = changes.map(|(name, told)| (name, states_of(&told)));
        expect![[r#"
            auth is off
              authentication: off, whole server
              authorisation: off, whole server
            an older version
              authentication: enforced, this account
              authorisation: enforced, this account
            a version that shows what follows a key
              authorisation: enforced, this account
            that one, to an account that writes a key
            that one, to an account of a range
            an administrator more
              authorisation: available but not enforced, whole server [ETCD-AUTHZ-EVERYTHING]
            administrators alone
              authorisation: off, whole server [ETCD-AUTHZ-EVERYTHING]
            administrators alone, of an older version
              authentication: enforced, this account
              authorisation: off, whole server [ETCD-AUTHZ-EVERYTHING]
            a role over all keys
              authorisation: available but not enforced, whole server [ETCD-AUTHZ-EVERYTHING]
            two roles over all keys
              authorisation: available but not enforced, whole server [ETCD-AUTHZ-EVERYTHING]
            two roles of two kinds
            no right to the accounts
              authorisation: enforced, this account
            no right to the accounts, and all keys
              authorisation: available but not enforced, this account [ETCD-AUTHZ-EVERYTHING]
            TLS
              tls: available but not enforced, this account
              client-to-node: available but not enforced, this account
            a member in plaintext
              node-to-node: off, whole server
            members in plaintext
              node-to-node: off, whole server [ETCD-PEERS-PLAINTEXT]
        "#]]
        .assert_eq(&changed_rows(&usual, &changes));
    }

    fn member(peers: &[&str], clients: &[&str]) -> Member {
        let texts = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect();
        Member { name: "a".to_owned(), peers: texts(peers), clients: texts(clients) }
    }

    #[test]
    fn doors_without_tls_are_named() {
        let doors = |clients: &[&str]| doors_beside(&[member(&[], clients)]);
        assert_eq!(doors(&["https://10.0.0.1:2379"]), Vec::<String>::new());
        assert_eq!(
            doors(&["https://10.0.0.1:2379", "http://127.0.0.1:2379"]),
            ["member a speaks plaintext at http://127.0.0.1:2379"]
        );
        let proxy = "127.0.0.1:23790";
        assert_eq!(doors(&[proxy]), Vec::<String>::new(), "it may speak TLS");
        assert_eq!(
            without_scheme(&[member(&[], &["https://a:2379", "unix://a", proxy])]),
            ["whether 127.0.0.1:23790 speaks TLS, an address without a scheme"]
        );
    }

    #[test]
    fn peers_are_judged_by_all_of_their_urls() {
        let state = |members: &[Member]| {
            let Judgement { state, scope, findings, .. } = between(members);
            (state, scope.words(), findings.len())
        };
        let (plain, encrypted) = (member(&["http://a:2380"], &[]), member(&["https://a:2380"], &[]));
        assert_eq!(state(std::slice::from_ref(&encrypted)), (State::Enforced, "this account", 0));
        assert_eq!(state(std::slice::from_ref(&plain)), (State::Off, "whole server", 0));
        let proxy = || member(&[], &["127.0.0.1:23790"]);
        for listed in [&[][..], &[proxy()], &[member(&["https://a:2380"], &[]), proxy()]] {
            assert_eq!(state(listed), (State::Unseen, "this account", 0), "a proxy lists no peers");
        }
        assert_eq!(state(&[plain, encrypted]), (State::Off, "whole server", 1));
    }

    #[test]
    fn ways_that_a_version_may_not_check_are_doubts() {
        for (version, nested, watch) in [
            ("3.3.27", true, true),
            ("3.4.23", true, true),
            ("3.4.43", true, true),
            ("3.4.44", false, true),
            ("3.5.27", true, true),
            ("3.5.33", false, false),
            ("3.6.0-rc.1", true, true),
            ("3.6.11", false, true),
            ("3.7.0", false, true),
            ("3.7.1", false, false),
            ("3.8.0", false, false),
            ("4.0.0", false, false),
            ("", true, true),
        ] {
            let is_doubted = [&NESTED, &WATCH].map(|hole| hole.of(version).is_some());
            assert_eq!(is_doubted, [nested, watch], "{version}");
        }
        let doubt =
            "whether etcd 3.4.23 checks nested transactions and what they read (CVE-2026-33343, CVE-2026-44283)";
        assert_eq!(NESTED.of("3.4.23").as_deref(), Some(doubt));
    }

    #[test]
    fn an_account_that_may_not_list_accounts_is_limited_whatever_it_reads() {
        let judged = |read: Result<(), Fault>| {
            of_this_account(read, "permission denied", "3.6.20").map(|judged| (judged.state, judged.findings.len()))
        };
        let refused = Fault::Refused("permission denied".to_owned());
        let gone = || Fault::Connection("gone".to_owned());
        assert_eq!(judged(Ok(())), Ok((State::Available, 1)));
        assert_eq!(judged(Err(refused)), Ok((State::Enforced, 0)));
        assert_eq!(judged(Err(gone())), Err(gone()));
    }

    #[test]
    fn a_permission_over_all_keys_is_known() {
        let over_all = |permissions: &[(u64, &[u8], &[u8])]| {
            let grant = |(kind, key, end): &(u64, &[u8], &[u8])| {
                let mut out = Vec::new();
                put_number(&mut out, 1, *kind);
                put_bytes(&mut out, 2, &[key]);
                put_bytes(&mut out, 3, &[end]);
                Grant::read(&out).expect("a permission")
            };
            are_over_all_keys(&permissions.iter().map(grant).collect::<Vec<_>>())
        };
        let to_the_last: &[u8] = b"\0";
        assert!(over_all(&[(READ, b"\0", to_the_last)]));
        assert!(over_all(&[(WRITE, b"", to_the_last)]));
        assert!(!over_all(&[(READ_WRITE, b"/registry/", to_the_last)]));
        assert!(!over_all(&[(READ_WRITE, b"a", b"b")]));
        assert!(!over_all(&[(READ_WRITE, b"", b"")]), "one key");
        assert!(!over_all(&[]));
        // Several permissions add up, if they are of one kind and leave no key out.
        assert!(over_all(&[(READ_WRITE, b"m", to_the_last), (READ, b"", b"m")]));
        assert!(over_all(&[(WRITE, b"\0", b"m"), (WRITE, b"b", b"c"), (WRITE, b"k", to_the_last)]));
        assert!(!over_all(&[(READ, b"", b"m"), (WRITE, b"m", to_the_last)]), "neither reads nor writes every key");
        assert!(!over_all(&[(READ, b"", b"l"), (READ, b"m", to_the_last)]));
    }

    #[test]
    fn what_the_lists_say_of_logins_and_of_doors_beside_tls() {
        let read = [false, true].map(|is_on| logins(is_on, false, &[], "3.6.9").read);
        assert_eq!(read, ["auth is not enabled", "auth is enabled, for every client"]);
        let told = |tls: Option<Tls>, urls: &[&str]| {
            let rules = listeners(&Target { tls, ..Target::default() }, &[member(&["https://a:2380"], urls)]);
            (rules.exceptions.len(), rules.findings.len(), rules.doubts.len())
        };
        let tls = || Some(Tls::of_url(Authority::System, None));
        assert_eq!(told(tls(), &["https://a:2379", "http://a:2380"]), (1, 1, 1));
        assert_eq!(told(tls(), &["https://a:2379", "unixs://a"]), (0, 0, 1));
        assert_eq!(told(None, &["http://a:2380"]), (0, 0, 1), "without TLS no door is beside it");
        let of_proxy = listeners(&Target { tls: tls(), ..Target::default() }, &[member(&[], &["127.0.0.1:23790"])]);
        assert_eq!((of_proxy.exceptions.len(), of_proxy.doubts.len()), (0, 3), "its address, and what is behind it");
    }

    #[test]
    fn a_certificate_is_asked_for_where_there_is_tls_alone() {
        let [closed, open] = [&["https://a:2379"][..], &["https://a:2379", "http://127.0.0.1:2379"]];
        let of_version = |is_on, by_certificate, members: &[&[&str]], version| {
            let members: Vec<Member> = members.iter().map(|clients| member(&[], clients)).collect();
            let came = Judgement::account(State::Enforced, "by client certificate; without one: refused");
            let judged = came.with_rules(Ok(logins(is_on, by_certificate, &members, version)), "");
            (judged.state, judged.scope.words(), judged.seen.matches("not judged").count())
        };
        let told = |is_on, by_certificate, members: &[&[&str]]| of_version(is_on, by_certificate, members, "3.6.9");
        assert_eq!(told(false, true, &[closed]), (State::Enforced, "this account", 1));
        assert_eq!(told(false, true, &[closed, closed]), (State::Enforced, "this account", 2));
        assert_eq!(told(false, true, &[open]), (State::Available, "this account", 1));
        assert_eq!(told(false, true, &[closed, open]), (State::Available, "this account", 2));
        // Users are asked for at every listener.
        assert_eq!(told(true, true, &[open]), (State::Enforced, "whole server", 0));
        assert_eq!(told(true, false, &[open]), (State::Enforced, "whole server", 0));
        // But older versions serve some calls without a login.
        assert_eq!(of_version(true, false, &[closed], "3.4.23"), (State::Enforced, "this account", 1));
        assert_eq!(of_version(false, true, &[closed], "3.4.23"), (State::Enforced, "this account", 1));
    }
}
