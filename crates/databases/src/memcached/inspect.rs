//! The security matrix of a running memcached, from `stats settings` and from connection attempts.

use std::collections::BTreeMap;

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    recording::Recording,
    setup::Setup,
};

use super::{connection::MemcachedConnection, target::PRODUCT};
use crate::{
    findings,
    inspect::{
        ENDS_TLS, Judgement, Rules, authentication, client_rows, doubt_of_old_tls, ended_rows, has_old_tls,
        not_offered, transport,
    },
    target::Target,
};

/// The output of `stats settings`.
type Settings = BTreeMap<String, String>;

/// Judges every feature.
///
/// # Errors
/// When the server cannot be reached.
pub fn inspect(server: &Server, setup: &Setup) -> Result<Vec<FeatureStatus>, Fault> {
    let target = PRODUCT.target(server, setup)?;
    let mut connection = MemcachedConnection::open(&target)?;
    let method = connection.method();
    let tls = connection.tls_facts().map_or_else(String::new, |tls| tls.suite());
    let settings = connection.stats("settings")?;
    let written = written(&connection.stats("")?, &settings);
    let at_rest = match written.as_slice() {
        [] => "items are in memory alone".to_owned(),
        written => format!("Memcached encrypts no file; {}", written.join("; ")),
    };
    let offers = offers(&settings);
    let logins = if_shown(&settings, |settings| logins(settings, target.tls.is_some()));
    let logins = authentication(&target, method, opened).with_rules(Ok(logins), "");
    let mut seen = vec![logins.of(Feature::Authentication)];
    let judged = transport(&target, &tls, offers.clone(), plaintext);
    seen.extend(clients(judged, target.tls.is_some(), &settings));
    let between = if offers.is_ok() { between(&settings) } else { Judgement::unseen(NOT_SHOWN) };
    seen.push(between.of(Feature::NodeToNode));
    seen.extend(not_offered(&[
        (
            Feature::Authorisation,
            "Memcached has no rights: every client that is let in may read, change and flush \
            everything",
        ),
        (Feature::AtRest, &at_rest),
        (Feature::Auditing, "Memcached has no audit log; `watch` shows keys to any client that is let in"),
        (Feature::JmxAuthentication, "no Java virtual machine"),
        (Feature::AuthenticationCaching, "every login is checked again"),
        (Feature::ProxyRoles, "no account acts for another"),
    ]));
    Ok(seen)
}

/// Both rows about clients, from the transport of this one, as it was `judged`. `by_tls`: it speaks TLS, if not with
/// the server then with something before it.
fn clients(judged: Judgement, by_tls: bool, settings: &Settings) -> [FeatureStatus; 2] {
    if by_tls && offers(settings) == Ok(false) {
        return ended_rows(&judged, WITHOUT_TLS);
    }
    client_rows(judged.with_rules(Ok(if_shown(settings, transports)), ""))
}

/// Recorders that repeat values in plaintext.
///
/// # Errors
/// When the server cannot be reached.
pub fn recording(connection: &mut MemcachedConnection) -> Result<Recording, Fault> {
    let (stats, settings) = (connection.stats("")?, connection.stats("settings")?);
    Ok(Recording { repeats: written(&stats, &settings), doubts: Vec::new() })
}

/// Features that write items to a file, from `stats` and `stats settings`.
fn written(stats: &Settings, settings: &Settings) -> Vec<String> {
    let extstore = stats.keys().any(|name| name.starts_with("extstore_"));
    let extstore = extstore.then(|| "extstore (ext_path) writes items to a file in the clear".to_owned());
    // Without a file the server prints a null pointer. A file may lie in memory: that is not shown.
    let file = settings.get("memory_file").filter(|file| !["", "(null)"].contains(&file.as_str()));
    let file = file.map(|file| format!("memory_file = {file} holds the items in the clear"));
    extstore.into_iter().chain(file).collect()
}

/// The way to other servers, which only a proxy has.
fn between(settings: &Settings) -> Judgement {
    if is_on(settings, "proxy_enabled") {
        return Judgement::unseen(
            "a proxy (proxy_enabled = yes): whether it speaks TLS with the servers behind it is in its configuration \
             alone (proxy_config)",
        );
    }
    Judgement::whole(State::NotOffered, "servers of Memcached do not speak to each other")
}

fn opened(target: &Target) -> Result<String, Fault> {
    Ok(MemcachedConnection::open(target)?.method().to_owned())
}

/// Comes in [`Target::in_plaintext`].
///
/// # Errors
/// A refusal of either side, or a broken connection.
pub fn plaintext(target: &Target) -> Result<String, Fault> {
    opened(&target.in_plaintext())
}

fn is_on(settings: &Settings, name: &str) -> bool {
    settings.get(name).is_some_and(|value| value == "yes")
}

/// Why an answer shows nothing.
const NOT_SHOWN: &str = "`stats settings` is empty: this is another product, or a proxy";

/// Whether the server has TLS. One that was built without does not mention it; a server that mentions not even its
/// port, as every Memcached does, shows nothing.
///
/// # Errors
/// Why it shows nothing.
pub fn offers(settings: &Settings) -> Result<bool, Fault> {
    match settings.contains_key("tcpport") {
        true => Ok(is_on(settings, "ssl_enabled")),
        false => Err(Fault::Server(NOT_SHOWN.to_owned())),
    }
}

/// The rules that `judge` reads from `settings`, or the doubt if these show nothing.
fn if_shown(settings: &Settings, judge: impl FnOnce(&Settings) -> Rules) -> Rules {
    match offers(settings) {
        Ok(_) => judge(settings),
        Err(_) => Rules { read: "stats settings".to_owned(), doubts: vec![NOT_SHOWN.to_owned()], ..Rules::default() },
    }
}

/// What a server without TLS says.
const WITHOUT_TLS: &str = "ssl_enabled is no: every listener speaks plaintext";

/// Logins by other listeners. If a password is required, only those of the text protocol over TCP require it; if not,
/// some may require no certificate. `by_tls`: this client speaks TLS, if not with the server then with something before
/// it.
fn logins(settings: &Settings, by_tls: bool) -> Rules {
    let by_password = settings.get("auth_enabled_ascii").is_some_and(|file| file != "no");
    let by_another = by_tls && !by_password && !is_on(settings, "ssl_enabled");
    let exceptions = match (by_password, is_on(settings, "ssl_enabled")) {
        (true, _) => {
            let udp = udp_port(settings).map(|port| format!("UDP port {port} asks for no password"));
            listeners(settings).into_iter().filter_map(Listener::without_password).chain(udp).collect()
        }
        (false, true) => {
            // Bit 1 is OpenSSL's SSL_VERIFY_FAIL_IF_NO_PEER_CERT.
            let mode: u32 = settings.get("ssl_verify_mode").and_then(|mode| mode.parse().ok()).unwrap_or_default();
            let open = |listener: Listener| listener.without_certificate(mode & 2 != 0);
            let open = listeners(settings).into_iter().filter_map(open);
            open.chain(doors_beside(settings)).collect()
        }
        (false, false) if by_another => vec![format!("{ENDS_TLS}, which asks nobody: {WITHOUT_TLS}")],
        (false, false) => Vec::new(),
    };
    Rules {
        read: "stats settings".to_owned(),
        exceptions,
        remedy: if by_another {
            "start it with --enable-ssl"
        } else {
            "remove the prefixes of listeners (`notls:`, `btls:`, `proto[…]:`), and start it with udp-port 0"
        },
        ..Rules::default()
    }
}

/// One of the listeners of `-l`, with the prefixes of its address.
struct Listener<'a> {
    prefixes: Vec<&'a str>,
    address: &'a str,
}

/// The listeners, as `server_sockets` in memcached's source reads them.
fn listeners(settings: &Settings) -> Vec<Listener<'_>> {
    settings.get("inter").map_or("", String::as_str).split([',', ';']).map(Listener::read).collect()
}

impl<'a> Listener<'a> {
    fn read(mut address: &'a str) -> Self {
        let is_prefix =
            |it: &str| ["notls", "btls", "mtls"].contains(&it) || it.starts_with("proto[") || it.starts_with("tag[");
        let mut prefixes = Vec::new();
        while let Some((prefix, rest)) = address.split_once(':').filter(|(prefix, _)| is_prefix(prefix)) {
            prefixes.push(prefix);
            address = rest;
        }
        Self { prefixes, address }
    }

    fn has(&self, prefix: &str) -> bool {
        self.prefixes.contains(&prefix)
    }

    fn without_tls(self) -> Option<String> {
        self.has("notls").then(|| format!("the listener {} speaks plaintext (notls)", self.address))
    }

    /// `asks`: TLS listeners without a prefix require a certificate.
    fn without_certificate(self, asks: bool) -> Option<String> {
        let asks = self.has("mtls") || asks && !self.has("btls");
        (!asks && !self.has("notls")).then(|| format!("the listener {} asks for no certificate", self.address))
    }

    /// The file of passwords is of the text protocol alone.
    fn without_password(self) -> Option<String> {
        let other = self.prefixes.iter().find(|it| it.starts_with("proto[") && **it != "proto[ascii]")?;
        Some(format!("the listener {} asks for no password ({other})", self.address))
    }
}

fn transports(settings: &Settings) -> Rules {
    let exceptions = if is_on(settings, "ssl_enabled") { doors_beside(settings) } else { Vec::new() };
    let findings = if exceptions.is_empty() { Vec::new() } else { vec![&findings::MEMCACHED_TLS_OPTIONAL] };
    let least = settings.get("ssl_min_version").filter(|least| is_on(settings, "ssl_enabled") && has_old_tls(least));
    Rules {
        read: "stats settings".to_owned(),
        exceptions,
        remedy: "remove `notls:` listeners, and start it with udp-port 0",
        findings,
        doubts: least.map(|least| doubt_of_old_tls("ssl_min_version", least)).into_iter().collect(),
    }
}

/// The UDP port. UDP has neither TLS nor logins: the file of passwords is for TCP alone (`conn_new` in memcached's
/// source).
fn udp_port(settings: &Settings) -> Option<&str> {
    settings.get("udpport").map(String::as_str).filter(|port| *port != "0")
}

/// The listeners without TLS, each by its name: all of them if the server has no TLS.
pub fn doors_beside(settings: &Settings) -> Vec<String> {
    if !is_on(settings, "ssl_enabled") {
        return vec![WITHOUT_TLS.to_owned()];
    }
    let udp = udp_port(settings).map(|port| format!("UDP port {port} speaks plaintext, and asks for no certificate"));
    let plain = listeners(settings).into_iter().filter_map(Listener::without_tls);
    plain.chain(udp).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tithe_plugin::{database::Database as _, recording::Sent};

    use super::*;
    use crate::{
        memcached::{
            Memcached,
            test_server::{Told, tight},
        },
        test_setup::{changed_rows, plain, states},
    };

    fn rows(told: &Told) -> Vec<FeatureStatus> {
        told.seen(|server| Memcached.inspect(server, &plain()).expect("it can be reached"))
    }

    #[test]
    fn each_setting_shows_in_its_rows() {
        let usual = states(&rows(&tight()));
        expect![[r#"
            authentication: enforced, whole server
            tls: off, whole server
            client-to-node: off, whole server
            node-to-node: not offered by this product, whole server
            authorisation: not offered by this product, whole server
            at-rest: not offered by this product, whole server
            audit: not offered by this product, whole server
            jmx-authentication: not offered by this product, whole server
            authentication-caching: not offered by this product, whole server
            proxy-roles: not offered by this product, whole server
        "#]]
        .assert_eq(&usual.concat());
        let with_tls = |inter| tight().with("ssl_enabled", "yes").with("inter", inter);
        let changes = [
            ("nobody is asked", tight().open()),
            ("nobody is asked by UDP", tight().with("udpport", "11211")),
            ("nobody is asked in the binary protocol", tight().with("inter", "a,proto[binary]:b:1")),
            ("TLS beside plaintext", with_tls("127.0.0.1,notls:127.0.0.1:1")),
            ("TLS", with_tls("127.0.0.1")),
            ("a proxy", tight().with("proxy_enabled", "yes")),
        ];
        let changes = changes.map(|(name, told)| (name, states(&rows(&told))));
        expect![[r#"
            nobody is asked
              authentication: off, whole server
            nobody is asked by UDP
              authentication: available but not enforced, whole server
            nobody is asked in the binary protocol
              authentication: available but not enforced, whole server
            TLS beside plaintext
              tls: available but not enforced, whole server [MEMCACHED-TLS-OPTIONAL]
              client-to-node: available but not enforced, whole server [MEMCACHED-TLS-OPTIONAL]
            TLS
              tls: available but not enforced, whole server
              client-to-node: available but not enforced, whole server
            a proxy
              node-to-node: cannot tell, this account
        "#]]
        .assert_eq(&changed_rows(&usual, &changes));
    }

    #[test]
    fn tls_with_a_server_that_has_none_ends_before_it() {
        let told = |by_tls: bool, ssl_enabled: &str| {
            let settings = [("tcpport", "11211"), ("ssl_enabled", ssl_enabled)];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let judged = Judgement::account(State::Enforced, "TLSv1.3; plaintext: refused");
            clients(judged, by_tls, &settings).map(|row| (row.state, row.scope.words()))
        };
        assert_eq!(told(true, "yes"), [(State::Enforced, "whole server"); 2]);
        assert_eq!(told(true, "no"), [(State::Enforced, "this account"), (State::Off, "this account")]);
        for ssl_enabled in ["yes", "no"] {
            assert_eq!(told(false, ssl_enabled), [(State::Enforced, "whole server"); 2], "nothing ends TLS");
        }
    }

    #[test]
    fn files_that_items_reach_are_in_the_row_of_encryption_and_among_recorders() {
        let kept = "memory_file = /srv/items holds the items in the clear";
        let told = |told: Told| {
            let at_rest = rows(&told).into_iter().find(|row| row.feature == Feature::AtRest).expect("a row").seen;
            let recorded = |sent| told.seen(|server| Memcached.recording(server, &plain(), sent).expect("an answer"));
            assert_eq!(recorded(Sent::Passwords), None);
            (at_rest, recorded(Sent::Values))
        };
        let recording = |repeats: &[&str]| {
            let repeats = repeats.iter().map(|text| (*text).to_owned()).collect();
            Some(Recording { repeats, doubts: Vec::new() })
        };
        assert_eq!(told(tight()), ("items are in memory alone".to_owned(), recording(&[])));
        let in_file = format!("Memcached encrypts no file; {kept}");
        assert_eq!(told(tight().with("memory_file", "/srv/items")), (in_file, recording(&[kept])));
    }

    #[test]
    fn doors_without_tls_are_named() {
        let doors = |pairs: &[(&str, &str)]| {
            doors_beside(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(doors(&[]).len(), 1, "a server that does not say that it has TLS has none");
        let on = ("ssl_enabled", "yes");
        assert_eq!(doors(&[on, ("udpport", "0"), ("inter", "127.0.0.1")]), Vec::<String>::new());
        assert_eq!(
            doors(&[on, ("udpport", "11211"), ("inter", "10.0.0.1,notls:127.0.0.1:11212")]),
            [
                "the listener 127.0.0.1:11212 speaks plaintext (notls)",
                "UDP port 11211 speaks plaintext, and asks for no certificate"
            ]
        );
        let beside = ["10.0.0.1;notls:127.0.0.1:11212", "tag[x]:notls:127.0.0.1:11212", "notls:tag[x]:127.0.0.1:11212"];
        for inter in beside {
            let doors = doors(&[on, ("udpport", "0"), ("inter", inter)]);
            assert_eq!(doors, ["the listener 127.0.0.1:11212 speaks plaintext (notls)"], "{inter}");
        }
    }

    #[test]
    fn old_versions_of_tls_are_a_doubt_where_clients_speak_it() {
        let doubts = |ssl_enabled: &str, least: &str| {
            let settings = [("ssl_enabled", ssl_enabled), ("ssl_min_version", least)];
            transports(&settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into()).doubts
        };
        let told = "whether clients speak TLS before version 1.2, which ssl_min_version = tlsv1.1 allows";
        assert_eq!(doubts("yes", "tlsv1.1"), [told]);
        for (ssl_enabled, least) in [("no", "tlsv1.1"), ("yes", "tlsv1.2"), ("yes", "tlsv1.3")] {
            assert!(doubts(ssl_enabled, least).is_empty(), "{ssl_enabled} {least}");
        }
    }

    #[test]
    fn listeners_that_ask_for_less_are_named() {
        let open = |pairs: &[(&str, &str)]| {
            let with = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            logins(&pairs.iter().chain(&[("udpport", "0")]).map(with).collect(), false).exceptions
        };
        let (tls, password) = (("ssl_enabled", "yes"), ("auth_enabled_ascii", "/users"));
        let none = Vec::<String>::new();
        // Whether a certificate is required by the mode, by the listener, or neither.
        for (mode, inter, exceptions) in [
            ("3", "10.0.0.1", &[][..]),
            ("7", "10.0.0.1,mtls:10.0.0.1:2", &[]),
            ("3", "10.0.0.1,btls:10.0.0.1:2", &["the listener 10.0.0.1:2 asks for no certificate"]),
            ("1", "mtls:10.0.0.1:1,10.0.0.1:2", &["the listener 10.0.0.1:2 asks for no certificate"]),
            ("0", "mtls:10.0.0.1:1", &[]),
            ("3", "10.0.0.1;notls:b:2", &["the listener b:2 speaks plaintext (notls)"]),
        ] {
            assert_eq!(open(&[tls, ("ssl_verify_mode", mode), ("inter", inter)]), exceptions, "{mode} {inter}");
            // A password is required of the same listeners.
            assert_eq!(open(&[tls, password, ("ssl_verify_mode", mode), ("inter", inter)]), none, "{mode} {inter}");
        }
        let other = ["the listener b:1 asks for no password (proto[binary])"];
        assert_eq!(open(&[password, ("inter", "a,proto[ascii]:c,proto[binary]:b:1")]), other);
        assert_eq!(open(&[("inter", "proto[binary]:b:1")]), none, "nobody is asked, which the attempt shows");
    }

    #[test]
    fn udp_asks_for_no_password() {
        let exceptions = |file: &str, port: &str| {
            let pairs = [("auth_enabled_ascii", file), ("udpport", port), ("inter", "10.0.0.1")];
            let with = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            logins(&pairs.map(with).into(), false).exceptions
        };
        let none = Vec::<String>::new();
        assert_eq!(exceptions("/users", "11211"), ["UDP port 11211 asks for no password"]);
        assert_eq!(exceptions("/users", "0"), none);
        assert_eq!(exceptions("no", "11211"), none, "no password is asked for at all");
    }

    #[test]
    fn a_server_behind_what_ends_tls_asks_nobody() {
        let exceptions = |pairs: &[(&str, &str)]| {
            let with = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            logins(&pairs.iter().map(with).collect(), true).exceptions
        };
        let open = "something ends TLS before the server, which asks nobody: ssl_enabled is no: every listener speaks \
                    plaintext";
        assert_eq!(exceptions(&[("ssl_enabled", "no")]), [open]);
        let none = Vec::<String>::new();
        assert_eq!(exceptions(&[("auth_enabled_ascii", "/users")]), none, "the server asks for a password itself");
        assert_eq!(exceptions(&[("ssl_enabled", "yes"), ("ssl_verify_mode", "3"), ("udpport", "0")]), none);
    }

    #[test]
    fn doors_beside_are_exceptions_where_there_is_tls() {
        let told = |pairs: &[(&str, &str)]| {
            let with = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let all: Settings = pairs.iter().chain(&[("udpport", "0"), ("inter", "a,notls:b:1")]).map(with).collect();
            let rules = transports(&all);
            assert_eq!([rules.read, logins(&all, false).read], ["stats settings", "stats settings"]);
            (rules.exceptions.len(), rules.findings.len())
        };
        assert_eq!(told(&[]), (0, 0), "no TLS, so no door beside it");
        assert_eq!(told(&[("ssl_enabled", "yes")]), (1, 1));
    }

    #[test]
    fn settings_that_are_not_shown_are_not_off() {
        let none = Settings::new();
        assert!(offers(&none).is_err());
        let Rules { exceptions, doubts, .. } = if_shown(&none, |settings| logins(settings, true));
        assert_eq!((exceptions.len(), doubts.len()), (0, 1));
        // One that was built without TLS.
        let built_without = Settings::from([("tcpport".to_owned(), "11211".to_owned())]);
        assert_eq!(offers(&built_without), Ok(false));
        let Rules { exceptions, doubts, .. } = if_shown(&built_without, |settings| logins(settings, true));
        assert_eq!((exceptions.len(), doubts.len()), (1, 0));
    }

    #[test]
    fn a_proxy_speaks_to_other_servers() {
        let state = |value: &str| between(&Settings::from([("proxy_enabled".to_owned(), value.to_owned())])).state;
        assert_eq!(["yes", "no"].map(state), [State::Unseen, State::NotOffered]);
        assert_eq!(between(&Settings::new()).state, State::NotOffered, "a server that was built without");
    }

    #[test]
    fn items_that_are_written_to_a_file_are_told() {
        let one = |name: &str, value: &str| Settings::from([(name.to_owned(), value.to_owned())]);
        let of = |name: &str| written(&one(name, "0"), &Settings::new());
        assert_eq!(of("pid"), Vec::<String>::new());
        assert_eq!(of("extstore_page_evictions"), ["extstore (ext_path) writes items to a file in the clear"]);
        let of = |file: &str| written(&Settings::new(), &one("memory_file", file));
        assert_eq!(of("(null)"), Vec::<String>::new());
        assert_eq!(of("/srv/items"), ["memory_file = /srv/items holds the items in the clear"]);
    }
}
