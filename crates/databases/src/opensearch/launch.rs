//! Files, arguments and links that start a cluster, as data. Pure.
//!
//! All files are written completely: `opensearch.yml`, the options of the virtual machine, the configuration of logs
//! and that of the security plugin. A setting of an experiment is one of the node, except those whose name begins with
//! `index.`: they are settings of Tithe's index. Node N listens for clients on 127.0.0.N and for other nodes on
//! 127.0.0.1N, both at the one port of the place.
//!
//! A plain node has the plugin switched off, by the product's own setting. With TLS alone it runs the plugin for TLS
//! only. Passwords and the audit log need the whole plugin, which always encrypts traffic between nodes; one node has
//! none. The plugin reads its accounts from files at the first start, and keeps them in an index from then on. They
//! hold one account with a known password, which makes all others and is then removed (`store`).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use tithe_machine::{
    fault::Fault,
    launch::{Command, Content, Install, Launch, Place, Step, Stored},
    paths::Paths,
};
use tithe_plugin::setup::{Authentication, Setup, TlsVersion, Transport};

use super::{
    documents::KEY as KEY_FIELD,
    install::PLUGIN_VERSION,
    target::{ADMINISTRATOR, USER},
};
use crate::java::{self, HEAP};

/// File below [`Place::folder`] that the sandbox redirects the server's output to.
const SERVER_LOG: &str = "server.log";
/// The program's main class.
const MAIN: &str = "org.opensearch.bootstrap.OpenSearch";
/// What a node logs when it serves clients, and when it does not start.
const TOLD: [&str; 2] = ["o.o.n.Node.*started$", "fatal exception"];
/// Setting: number of nodes.
const NODES: &str = "nodes";
/// Most nodes that are launched.
const MOST_NODES: usize = 3;
/// Setting with which the protection `internode-tls` asks for TLS between nodes. Not a setting of the server.
pub const BETWEEN_NODES: &str = "plugins.security.ssl.transport";
/// Setting with which the protection `audit` asks for its log, and names the layers that write to it. Not a setting of
/// the server.
pub const AUDIT: &str = "plugins.security.audit";
/// Setting with which the protection `documents` asks for rights by document and field. Not a setting of the server.
pub const DOCUMENTS: &str = "plugins.security.documents";
/// The first key that such a role shows, and the field that it hides.
pub const FIRST_KEY: &str = "!";
pub const HIDDEN: &str = "hidden";
/// Settings that begin with this belong to the index.
pub const OF_INDEX: &str = "index.";

/// The account of the first login, with its password, of which the plugin's files hold the hash: bcrypt cannot be
/// computed here. Not a secret.
pub const FIRST: (&str, &str) = ("tithe-first", "tithe-first-account");
const FIRST_HASH: &str = "$2y$12$titheopensearchfirst..joE/iZRjafnBDgsfF6TWAYpOoNGIx.G";

const OF_PLUGIN: &str = "decided by the protections of the security plugin";
const OF_FOLDER: &str = "everything that a server writes stays in its folder";
const OF_CLUSTER: &str = "each arm is a cluster of its own";
const OF_LISTEN: &str = "nodes listen on loopback addresses";

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    ("cluster.initial_cluster_manager_nodes", OF_CLUSTER),
    ("cluster.name", OF_CLUSTER),
    ("discovery.seed_hosts", OF_CLUSTER),
    ("discovery.type", OF_CLUSTER),
    ("http.host", OF_LISTEN),
    ("http.port", OF_LISTEN),
    ("network.host", OF_LISTEN),
    ("node.name", OF_CLUSTER),
    ("path.data", OF_FOLDER),
    ("path.logs", OF_FOLDER),
    ("path.repo", OF_FOLDER),
    (AUDIT, OF_PLUGIN),
    (DOCUMENTS, OF_PLUGIN),
    (BETWEEN_NODES, OF_PLUGIN),
    ("transport.host", OF_LISTEN),
    ("transport.port", OF_LISTEN),
];

/// Settings that are Tithe's own.
const NOT_OF_SERVER: [&str; 5] = [HEAP, NODES, AUDIT, DOCUMENTS, BETWEEN_NODES];

/// How much of the security plugin a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// None: it is switched off.
    Off,
    /// Its TLS alone.
    TlsAlone,
    /// All of it: accounts, roles, the audit log.
    Whole {
        /// Clients without a password are let in.
        anonymous: bool,
    },
}

impl Plugin {
    /// What the protections of `setup` need.
    pub fn of(setup: &Setup) -> Self {
        let asks = matches!(setup.authentication, Authentication::Password { .. });
        match setup.transport {
            _ if asks || [AUDIT, DOCUMENTS].iter().any(|name| setup.settings.contains_key(*name)) => {
                Self::Whole { anonymous: !asks }
            }
            Transport::Tls { .. } => Self::TlsAlone,
            Transport::Plain if setup.settings.contains_key(BETWEEN_NODES) => Self::TlsAlone,
            Transport::Plain => Self::Off,
        }
    }
}

/// Beginnings of the names of the security plugin's settings, with its former name.
const PLUGIN_SETTINGS: [&str; 2] = ["plugins.security", "opendistro_security"];

/// Checks settings of an experiment and its protections.
///
/// # Errors
/// [`Fault::Refused`] for a number of nodes or a heap that cannot be launched, and for a setting of the security
/// plugin, which could undo what a protection does.
pub fn check(settings: &BTreeMap<String, String>) -> Result<(), Fault> {
    nodes(settings)?;
    java::heap_bytes(settings)?;
    let of_plugin = |name: &&String| PLUGIN_SETTINGS.iter().any(|begin| name.starts_with(begin));
    let mut given = settings.keys().filter(|name| !NOT_OF_SERVER.contains(&name.as_str()));
    match given.find(of_plugin) {
        Some(name) => Err(Fault::Refused(format!("the setting {name} cannot be set: {OF_PLUGIN}"))),
        None => Ok(()),
    }
}

/// Number of nodes of a cluster with `settings`.
///
/// # Errors
/// [`Fault::Refused`] for anything but a number of nodes.
pub fn nodes(settings: &BTreeMap<String, String>) -> Result<usize, Fault> {
    let number = settings.get(NODES).map_or(Some(1), |value| value.parse().ok());
    number
        .filter(|number| (1..=MOST_NODES).contains(number))
        .ok_or_else(|| Fault::Refused(format!("the setting {NODES} is a whole number from 1 to {MOST_NODES}")))
}

/// The address at which node `number` listens for clients, at the port of its place.
pub fn address_of(number: usize) -> String {
    format!("127.0.0.{number}")
}

/// The address at which node `number` listens for other nodes, at the port of its place.
pub fn address_between(number: usize) -> String {
    format!("127.0.0.1{number}")
}

/// What a stopped node leaves. Accounts, roles and the audit log's configuration are in an index, so only servers with
/// the same ones share data. `None` for several nodes, which identify each other by their ports.
pub fn stored(setup: &Setup) -> Option<Stored> {
    if nodes(&setup.settings).is_ok_and(|nodes| nodes > 1) {
        return None;
    }
    let plugin = match Plugin::of(setup) {
        Plugin::Off | Plugin::TlsAlone => "no accounts".to_owned(),
        whole @ Plugin::Whole { .. } => format!("{whole:?}"),
    };
    let mut storage_settings = vec![plugin];
    let settings = setup.settings.iter().filter(|(name, _)| name.as_str() != HEAP);
    storage_settings.extend(settings.map(|(name, value)| format!("{name} = {value}")));
    Some(Stored { paths: vec!["data".to_owned()], storage_settings })
}

/// Everything that starts the cluster of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    // Invalid numbers were refused before; a launch that is shown all the same has one node.
    let count = nodes(&setup.settings).unwrap_or(1);
    let nodes: Vec<Node<'_>> = (1..=count).map(|number| Node { number, of: count, install, setup, place }).collect();
    let mut steps = Vec::from_iter(setup.identity_step());
    steps.extend(nodes.iter().flat_map(Node::steps));
    let all = |name: &str| nodes.iter().map(|node| node.folder().join(name)).collect::<Vec<_>>();
    let mut logs = vec![place.folder.join(SERVER_LOG)];
    logs.extend(if count > 1 { all(SERVER_LOG) } else { Vec::new() });
    logs.extend(all("logs"));
    let server = match nodes.as_slice() {
        [node] => Command {
            program: java::program(install),
            arguments: vec![format!("@{}", node.folder().join("java.options").display()), MAIN.to_owned()],
            environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
        },
        nodes => java::together(install, place, MAIN, nodes.len(), &TOLD),
    };
    Launch {
        steps,
        server: Some(server),
        stop_signal: Signal::TERM,
        // If several nodes are started, they must know each other.
        discard_signal: if count > 1 { Signal::TERM } else { Signal::KILL },
        address: place.address(),
        paths: Paths { data: all("data"), journal: Vec::new(), logs },
    }
}

/// Names of the files of TLS in the folder of the configuration.
const AUTHORITY: &str = "authority.pem";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// One node.
struct Node<'a> {
    /// From 1 on.
    number: usize,
    /// How many there are.
    of: usize,
    install: &'a Install,
    setup: &'a Setup,
    place: &'a Place,
}

impl Node<'_> {
    fn folder(&self) -> PathBuf {
        if self.of == 1 { self.place.folder.clone() } else { self.place.folder.join(format!("node{}", self.number)) }
    }

    fn steps(&self) -> Vec<Step> {
        let (folder, setup, plugin) = (self.folder(), self.setup, Plugin::of(self.setup));
        let config = folder.join("config");
        let write = |path: PathBuf, text| Step::Write { path, content: Content::Text(text), mode: 0o600 };
        let mut steps = Vec::new();
        steps.extend((self.of > 1).then(|| Step::Folder(folder.clone())));
        steps.extend(["config", "logs", "tmp"].map(|name| Step::Folder(folder.join(name))));
        steps.push(write(folder.join("java.options"), self.java_options()));
        steps.push(write(config.join("opensearch.yml"), self.configuration(plugin)));
        steps.push(write(config.join("log4j2.properties"), log_setup(&folder, setup)));
        if plugin != Plugin::Off {
            // Java's security manager lets the plugin read no file outside this folder.
            let credentials = &setup.credentials;
            let files = [
                (AUTHORITY, &credentials.authority),
                (CERTIFICATE, &credentials.server_certificate),
                (KEY, &credentials.server_key),
            ];
            steps.extend(files.map(|(name, to)| Step::Link { path: config.join(name), to: to.clone() }));
        }
        if let Plugin::Whole { anonymous } = plugin {
            let files = config.join("opensearch-security");
            steps.push(Step::Folder(files.clone()));
            steps.extend(accounts(setup, anonymous).map(|(name, text)| write(files.join(name), text)));
        }
        steps
    }

    /// `opensearch.yml`: one setting per line, in the order of their names.
    fn configuration(&self, plugin: Plugin) -> String {
        let (setup, port) = (self.setup, self.place.port.to_string());
        let folder = self.folder();
        let folder = folder.display();
        let mut lines: BTreeMap<String, String> = BTreeMap::from([(
            // Several servers share the disk, and none may become read-only because of another.
            "cluster.routing.allocation.disk.threshold_enabled".to_owned(),
            "false".to_owned(),
        )]);
        let of_node = |name: &&String| !NOT_OF_SERVER.contains(&name.as_str()) && !name.starts_with(OF_INDEX);
        let settings = setup.settings.iter().filter(|(name, _)| of_node(name));
        lines.extend(settings.map(|(name, value)| (name_of(name), value_of(value))));
        let mut own = |name: &str, value: &str| drop(lines.insert(name.to_owned(), value.to_owned()));
        own("http.port", &port);
        own("node.name", &format!("node{}", self.number));
        own("path.data", &format!("'{folder}/data'"));
        own("path.logs", &format!("'{folder}/logs'"));
        own("http.host", &address_of(self.number));
        own("transport.host", &address_between(self.number));
        own("transport.port", &port);
        if self.of == 1 {
            own("cluster.name", "tithe");
            own("discovery.type", "single-node");
        } else {
            own("cluster.name", &format!("tithe-{port}"));
            own("cluster.initial_cluster_manager_nodes", "[node1]");
            own("discovery.seed_hosts", &format!("['{}:{port}']", address_between(1)));
        }
        let of_tls = |layer: &str| {
            [("pemcert", CERTIFICATE), ("pemkey", KEY), ("pemtrustedcas", AUTHORITY)]
                .map(|(kind, file)| (format!("plugins.security.ssl.{layer}.{kind}_filepath"), file))
        };
        let mut between = setup.settings.contains_key(BETWEEN_NODES);
        match plugin {
            // Without the plugin, nobody knows its settings.
            Plugin::Off if !self.install.facts.contains_key(PLUGIN_VERSION) => {}
            Plugin::Off => own("plugins.security.disabled", "true"),
            Plugin::TlsAlone => {
                own("plugins.security.ssl_only", "true");
                own("plugins.security.ssl.transport.enabled", if between { "true" } else { "false" });
            }
            Plugin::Whole { .. } => {
                own("plugins.security.allow_default_init_securityindex", "true");
                own("plugins.security.nodes_dn", "['CN=localhost']");
                own("plugins.security.restapi.roles_enabled", "[all_access]");
                between = true;
            }
        }
        if between {
            of_tls("transport").iter().for_each(|(name, file)| own(name, file));
        }
        if setup.settings.contains_key(AUDIT) {
            own("plugins.security.audit.type", "log4j");
            own("plugins.security.audit.config.log4j.logger_name", "audit");
            own("plugins.security.audit.config.log4j.level", "INFO");
        }
        if let Transport::Tls { version, mutual, .. } = setup.transport {
            own("plugins.security.ssl.http.enabled", "true");
            own("plugins.security.ssl.http.clientauth_mode", if mutual { "REQUIRE" } else { "NONE" });
            let version = if version == TlsVersion::V1_2 { "[TLSv1.2]" } else { "[TLSv1.3]" };
            own("plugins.security.ssl.http.enabled_protocols", version);
            of_tls("http").iter().for_each(|(name, file)| own(name, file));
        }
        lines.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    /// Options of the virtual machine, one per line: a fixed heap, and what OpenSearch's own `jvm.options` has for its
    /// libraries.
    fn java_options(&self) -> String {
        let folder = self.folder();
        let heap = java::heap(&self.setup.settings);
        let (home, folder) = (self.install.programs.display(), folder.display());
        [
            format!("-Xms{heap}"),
            format!("-Xmx{heap}"),
            "-Xss1m".to_owned(),
            "-XX:+UseG1GC".to_owned(),
            "-XX:MaxDirectMemorySize=256M".to_owned(),
            "-XX:+ExitOnOutOfMemoryError".to_owned(),
            "-XX:-UsePerfData".to_owned(),
            // Native libraries are unpacked there, and stay when the server is killed.
            format!("\"-Djava.io.tmpdir={folder}/tmp\""),
            "-Djava.security.manager=allow".to_owned(),
            "-Djava.awt.headless=true".to_owned(),
            "-Dfile.encoding=UTF-8".to_owned(),
            "-Djna.nosys=true".to_owned(),
            "-Dio.netty.noUnsafe=true".to_owned(),
            "-Dio.netty.noKeySetOptimization=true".to_owned(),
            "-Dio.netty.recycler.maxCapacityPerThread=0".to_owned(),
            "-Dio.netty.allocator.numDirectArenas=0".to_owned(),
            "-Dlog4j.shutdownHookEnabled=false".to_owned(),
            "-Dlog4j2.disable.jmx=true".to_owned(),
            "-Dlog4j2.formatMsgNoLookups=true".to_owned(),
            "--add-opens=java.base/java.io=ALL-UNNAMED".to_owned(),
            "--add-opens=java.base/java.nio=ALL-UNNAMED".to_owned(),
            format!("\"-Dopensearch.path.home={home}\""),
            format!("\"-Dopensearch.path.conf={folder}/config\""),
            "-Dopensearch.distribution.type=tar".to_owned(),
            "-Dopensearch.bundled_jdk=false".to_owned(),
            format!("-cp \"{home}/lib/*\""),
        ]
        .map(|line| line + "\n")
        .concat()
    }
}

/// The server's log on standard output, the audit log in its own file.
fn log_setup(folder: &Path, setup: &Setup) -> String {
    let server = "\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
";
    if !setup.settings.contains_key(AUDIT) {
        return server.to_owned();
    }
    let file = folder.join("logs/audit.log");
    format!(
        "{server}appender.audit.type = File\nappender.audit.name = audit\nappender.audit.fileName = {}\n\
         appender.audit.layout.type = PatternLayout\nappender.audit.layout.pattern = %m%n\nlogger.audit.name = audit\n\
         logger.audit.level = info\nlogger.audit.additivity = false\nlogger.audit.appenderRef.audit.ref = audit\n",
        file.display()
    )
}

/// The security plugin's own files: who logs in how, which accounts and roles there are, what is audited.
fn accounts(setup: &Setup, anonymous: bool) -> [(&'static str, String); 7] {
    let of = |kind: &str, rest: &str| format!("_meta:\n  type: {kind}\n  config_version: 2\n{rest}");
    let (first, _) = FIRST;
    let layers = setup.settings.get(AUDIT).map_or("", String::as_str);
    let nobody = if anonymous { "\n  backend_roles: [opendistro_security_anonymous_backendrole]" } else { "" };
    let config = format!(
        "config:
  dynamic:
    http:
      anonymous_auth_enabled: {anonymous}
    authc:
      internal:
        http_enabled: true
        order: 0
        http_authenticator:
          type: basic
          challenge: {}
        authentication_backend:
          type: intern
",
        !anonymous
    );
    let audit = format!(
        "config:
  enabled: {}
  audit:
    enable_rest: true
    disabled_rest_categories: []
    enable_transport: {}
    disabled_transport_categories: []
    ignore_users: []
    ignore_requests: []
    log_request_body: true
    resolve_indices: true
    resolve_bulk_requests: false
    exclude_sensitive_headers: true
  compliance:
    enabled: false
",
        !layers.is_empty(),
        layers == ALL_LAYERS
    );
    let limits = match setup.settings.contains_key(DOCUMENTS) {
        true => format!(
            "    dls: '{{\"range\":{{\"{KEY_FIELD}\":{{\"gte\":\"{FIRST_KEY}\"}}}}}}'\n    fls: ['~{HIDDEN}']\n"
        ),
        false => String::new(),
    };
    let roles = format!(
        "{USER}:
  cluster_permissions: [cluster_composite_ops, 'cluster:monitor/main']
  index_permissions:
  - index_patterns: ['{}*']
    allowed_actions: [crud, 'indices:admin/refresh*']
{limits}",
        setup.space
    );
    let mapping = format!("all_access:\n  users: [{first}, {ADMINISTRATOR}]\n{USER}:\n  users: [{USER}]{nobody}\n");
    [
        ("config.yml", of("config", &config)),
        ("internal_users.yml", of("internalusers", &format!("{first}:\n  hash: {FIRST_HASH}\n"))),
        ("roles.yml", of("roles", &roles)),
        ("roles_mapping.yml", of("rolesmapping", &mapping)),
        ("action_groups.yml", of("actiongroups", "")),
        ("tenants.yml", of("tenants", "")),
        ("audit.yml", of("audit", &audit)),
    ]
}

/// Value of [`AUDIT`]: the layers of HTTP requests and of what they do in the server.
pub const ALL_LAYERS: &str = "both";

/// A setting's name from an experiment, restricted to the characters of a name.
fn name_of(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' })
        .collect()
}

/// A setting's value from an experiment: a plain value, or a quoted text.
fn value_of(value: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/%".contains(letter);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace(char::is_control, " ").replace('\'', "''"))
    }
}
