//! Arguments and files that start one server, as data. Pure.
//!
//! A setting of an experiment is one of etcd's options (`snapshot-count`), or the number of members. Member N listens
//! for clients on 127.0.0.N (the first one where the experiment says) and for other members on 127.0.0.1N, at the one
//! port of the place. Users and roles are data in etcd, and are created over its first connection (`store`).

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use tithe_machine::{
    credentials::KeyType,
    fault::Fault,
    launch::{Command, Install, Launch, Place, Stored},
    paths::Paths,
};
use tithe_plugin::setup::{Authentication, Setup, Transport};

use super::install::LOWEST_TLS;

/// File below [`Place::folder`] that the sandbox redirects the server's output to.
const SERVER_LOG: &str = "server.log";

/// Why settings about certificates are Tithe's.
const OF_TLS: &str = "decided by the protection `tls`";
/// Why settings about other members are Tithe's.
const OF_CLUSTER: &str = "each arm is a cluster of its own, of `members`";
/// Why settings about certificates between members are Tithe's.
const OF_PEERS: &str = "decided by the protection `peer-tls`";

/// Setting of Tithe's own: how many members the cluster of each arm has, 1 or 3.
const MEMBERS: &str = "members";
/// Setting with which the protection `peer-tls` requests TLS between members.
pub const BETWEEN_MEMBERS: &str = "peer-client-cert-auth";

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("advertise-client-urls", "where servers listen is `listen` of `[load]`"),
    ("auth-token-ttl", "a client's token lasts as long as its connection"),
    ("auto-tls", OF_TLS),
    ("cert-file", OF_TLS),
    ("cipher-suites", OF_TLS),
    ("client-cert-auth", OF_TLS),
    ("config-file", "everything that decides about a server is in the experiment"),
    ("data-dir", "everything that a server writes stays in its folder"),
    ("discovery", OF_CLUSTER),
    ("force-new-cluster", OF_CLUSTER),
    ("initial-advertise-peer-urls", OF_CLUSTER),
    ("initial-cluster", OF_CLUSTER),
    ("initial-cluster-state", OF_CLUSTER),
    ("key-file", OF_TLS),
    ("listen-client-urls", "where servers listen is `listen` of `[load]`"),
    ("listen-peer-urls", OF_CLUSTER),
    ("log-outputs", "the server's output is its log"),
    ("name", OF_CLUSTER),
    ("peer-auto-tls", OF_PEERS),
    ("peer-cert-allowed-cn", OF_PEERS),
    ("peer-cert-file", OF_PEERS),
    (BETWEEN_MEMBERS, OF_PEERS),
    ("peer-key-file", OF_PEERS),
    ("peer-trusted-ca-file", OF_PEERS),
    ("tls-max-version", OF_TLS),
    ("tls-min-version", OF_TLS),
    ("trusted-ca-file", OF_TLS),
    ("wal-dir", "everything that a server writes stays in its folder"),
];

/// Size at which a server accepts no more writes, if an experiment does not set it: the largest that etcd recommends,
/// because every update keeps the previous value. Bytes.
const QUOTA: &str = "8589934592";

/// Longest time between two calls of a connection, s: after it, a client's token expires.
const TOKEN_S: &str = "86400";

/// Election timeout of the first member, ms: etcd's default.
const ELECTION_MS: u64 = 1000;

/// How many times as long the other members wait for a leader, so that the first one, which has the clients, leads.
const PATIENCE: u64 = 5;

/// The longest election timeout that etcd allows, ms.
const LONGEST_ELECTION_MS: u64 = 50_000;

/// The peer address of a single member, to which no member connects.
const NO_PEER: &str = "http://127.0.0.1:2380";

/// Option: how long a member waits for a leader.
const ELECTION_TIMEOUT: &str = "election-timeout";

/// Settings that do not change the content of the files.
const STORAGE_NEUTRAL: [&str; 8] = [
    "auto-compaction-mode",
    "auto-compaction-retention",
    ELECTION_TIMEOUT,
    "enable-pprof",
    "heartbeat-interval",
    "log-level",
    "metrics",
    "quota-backend-bytes",
];

/// How many members the cluster that `settings` describe has.
///
/// # Errors
/// [`Fault::Refused`] for a number other than 1 and 3.
pub fn members_of(settings: &BTreeMap<String, String>) -> Result<u8, Fault> {
    match settings.get(MEMBERS).map(String::as_str) {
        None | Some("1") => Ok(1),
        Some("3") => Ok(3),
        Some(_) => Err(Fault::Refused(format!("the setting {MEMBERS} is 1 or 3"))),
    }
}

/// Where the member `number` of a cluster listens for clients, if it is not the first.
pub fn clients_of(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, number))
}

/// Where the member `number` of a cluster listens for other members.
pub fn peers_of(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 10 + number))
}

/// What a stopped server leaves; `None` for several members, which know each other by their ports. Users and roles are
/// part of the data, so servers with passwords share no data with those without; so are the URLs for other members.
pub fn stored(setup: &Setup) -> Option<Stored> {
    if members_of(&setup.settings) != Ok(1) {
        return None;
    }
    let asks = matches!(setup.authentication, Authentication::Password { .. });
    let mut storage_settings = vec![format!("authentication = {asks}")];
    let settings = setup.settings.iter().filter(|(name, _)| !STORAGE_NEUTRAL.contains(&name.as_str()));
    storage_settings.extend(settings.map(|(name, value)| format!("{name} = {value}")));
    Some(Stored { paths: vec!["data".to_owned()], storage_settings })
}

/// Everything that starts the cluster of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    // An invalid number was refused before; a launch that is shown all the same has one member.
    let members = members_of(&setup.settings).unwrap_or(1);
    let cluster = Cluster { members, setup, place };
    let folders: Vec<_> = (1..=members).map(|number| cluster.data(number)).collect();
    let program = install.programs.join("etcd");
    let mut arguments: Vec<String> = Vec::new();
    let program = if members == 1 {
        arguments.extend(options(&[cluster.shared(install), cluster.own(1)].map(Vec::from_iter).concat()));
        program
    } else {
        let own = ["-c", TOGETHER, "members"].map(str::to_owned);
        arguments.extend(
            own.into_iter().chain([program, place.folder.join("ended")].map(|path| path.display().to_string())),
        );
        arguments.extend((1..=members).map(|number| options(&Vec::from_iter(cluster.own(number))).join("\n")));
        arguments.extend(options(&Vec::from_iter(cluster.shared(install))));
        "/bin/sh".into()
    };
    Launch {
        steps: Vec::from_iter(setup.identity_step()),
        server: Some(Command {
            program,
            arguments,
            environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
        }),
        stop_signal: Signal::TERM,
        discard_signal: Signal::KILL,
        address: place.address(),
        paths: Paths {
            data: folders.iter().map(|folder| folder.join("member/snap")).collect(),
            journal: folders.iter().map(|folder| folder.join("member/wal")).collect(),
            logs: vec![place.folder.join(SERVER_LOG)],
        },
    }
}

/// Starts three members, each with the options of its own, one a line. If one ends, all end, and the end of the output
/// names it. If this shell is killed, the kernel kills all members (`setpriv`, of util-linux). On SIGTERM it stops them
/// and waits.
const TOGETHER: &str = r#"program=$1; ended=$2; first=$3; second=$4; third=$5; shift 5; number=0
trap 'trap "" TERM; kill 0; wait; cat "$ended" 2>/dev/null; exit 0' TERM
IFS='
'
set -f
for own in "$first" "$second" "$third"; do
  number=$((number + 1))
  setpriv --pdeathsig KILL sh -c 'asked=; trap asked=1 TERM; ended=$1; shift; setpriv --pdeathsig KILL "$@"; status=$?
    [ "$asked" ] || echo "$0 ended (status $status), so all members were stopped" >> "$ended"
    kill "$PPID"' "member$number" "$ended" "$program" $own "$@" &
done
wait"#;

/// The members of one arm.
struct Cluster<'a> {
    members: u8,
    setup: &'a Setup,
    place: &'a Place,
}

impl Cluster<'_> {
    fn data(&self, number: u8) -> PathBuf {
        self.place.folder.join(if self.members == 1 { "data".to_owned() } else { format!("member{number}") })
    }

    fn name(&self, number: u8) -> String {
        if self.members == 1 { "default".to_owned() } else { format!("member{number}") }
    }

    fn speaks_tls(&self) -> bool {
        self.setup.settings.contains_key(BETWEEN_MEMBERS)
    }

    /// The URL for other members.
    fn peer(&self, number: u8) -> String {
        if self.members == 1 && !self.speaks_tls() {
            return NO_PEER.to_owned();
        }
        let scheme = if self.speaks_tls() { "https" } else { "http" };
        format!("{scheme}://{}", SocketAddr::new(peers_of(number), self.place.port))
    }

    /// Options of one member.
    fn own(&self, number: u8) -> BTreeMap<String, String> {
        let scheme = if self.setup.transport == Transport::Plain { "http" } else { "https" };
        let listen = if number == 1 { self.place.listen } else { clients_of(number) };
        let clients = format!("{scheme}://{}", SocketAddr::new(listen, self.place.port));
        let peer = self.peer(number);
        let listening = if peer == NO_PEER { "http://127.0.0.1:0".to_owned() } else { peer.clone() };
        let mut own = BTreeMap::from(
            [
                ("advertise-client-urls", clients.clone()),
                ("data-dir", self.data(number).display().to_string()),
                ("initial-advertise-peer-urls", peer),
                ("listen-client-urls", clients),
                ("listen-peer-urls", listening),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        if self.members > 1 {
            own.insert("name".to_owned(), self.name(number));
            let given = self.setup.settings.get(ELECTION_TIMEOUT).and_then(|given| given.parse().ok());
            let first: u64 = given.unwrap_or(ELECTION_MS);
            let timeout = if number == 1 { first } else { (PATIENCE * first).min(LONGEST_ELECTION_MS) };
            own.insert(ELECTION_TIMEOUT.to_owned(), timeout.to_string());
            // Members that find each other at their start wait for a moment only, whatever this time is.
            own.insert("initial-election-tick-advance".to_owned(), (number == 1).to_string());
        }
        own
    }

    /// Options of all members.
    fn shared(&self, install: &Install) -> BTreeMap<String, String> {
        let (setup, credentials) = (self.setup, &self.setup.credentials);
        let file = |path: &Path| path.display().to_string();
        let mut settings = BTreeMap::from(
            [("auth-token-ttl", TOKEN_S), ("log-level", "warn"), ("logger", "zap"), ("quota-backend-bytes", QUOTA)]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let given = setup.settings.iter().filter(|(name, _)| *name != MEMBERS);
        settings.extend(given.map(|(name, value)| (name_of(name), value.replace(char::is_control, " "))));
        if self.members > 1 {
            settings.remove(ELECTION_TIMEOUT);
        }
        let all = (1..=self.members).map(|number| format!("{}={}", self.name(number), self.peer(number)));
        let mut add = |name: &str, value: String| drop(settings.insert(name.to_owned(), value));
        add("initial-cluster", all.collect::<Vec<_>>().join(","));
        if let Transport::Tls { mutual, .. } = setup.transport {
            add("cert-file", file(&credentials.server_certificate));
            add("key-file", file(&credentials.server_key));
            if mutual {
                add("client-cert-auth", "true".to_owned());
                add("trusted-ca-file", file(&credentials.authority));
            }
        }
        if self.speaks_tls() {
            add("peer-cert-file", file(&credentials.server_certificate));
            add("peer-key-file", file(&credentials.server_key));
            add("peer-trusted-ca-file", file(&credentials.authority));
        }
        if self.speaks_tls() || setup.transport != Transport::Plain {
            let (name, value) = only_tls_1_3(install, setup);
            add(name, value.to_owned());
        }
        settings
    }
}

/// Each as an argument.
fn options(settings: &[(String, String)]) -> Vec<String> {
    let mut settings = settings.to_vec();
    settings.sort();
    settings.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

/// The setting with which a server only accepts TLS 1.3. A server without a setting for its lowest version gets a
/// single TLS 1.2 cipher, the one that HTTP/2 requires, which does not fit its key: no TLS 1.2 handshake can succeed.
fn only_tls_1_3(install: &Install, setup: &Setup) -> (&'static str, &'static str) {
    if install.facts.get(LOWEST_TLS).is_some_and(|can| can == "yes") {
        return ("tls-min-version", "TLS1.3");
    }
    let is_rsa = matches!(setup.transport, Transport::Tls { key: Some(KeyType::Rsa2048 | KeyType::Rsa4096), .. });
    let cipher = match is_rsa {
        true => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        false => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    };
    ("cipher-suites", cipher)
}

/// A setting's name from an experiment, restricted to the characters of a name.
fn name_of(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    name.chars().map(letter).collect()
}
