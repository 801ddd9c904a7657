//! Files, commands and arguments that start a cluster, as data. Pure.
//!
//! All files are written completely: `cassandra.yaml`, the options of the virtual machine and the log configuration.
//! None of a distribution's defaults are read. Node N listens for clients on 127.0.0.N and for other nodes on
//! 127.0.0.1N, both at the one port of the place. No management port (JMX) is opened. The server's log goes to standard
//! output, the audit log to its own file or folder.
//!
//! The server gets TLS as PEM files (`PEMBasedSslContextFactory`), so TLS needs no key store. The key of the commit log
//! must be in one: `keytool` creates it with the run's certificates, outside the server's folder. The password of that
//! store is a constant and not a secret: it is in `cassandra.yaml`, which every account that can read the store can
//! read too.

use std::{collections::BTreeMap, path::PathBuf};

use rustix::process::Signal;
use tithe_machine::{
    launch::{Address, Command, Content, Install, Launch, Place, Step, Stored},
    paths::Paths,
};
use tithe_plugin::setup::{Authentication, Setup, TlsVersion, Transport};

use super::{
    cluster::{CONSISTENCY, Cluster, NODES, REPLICATION},
    install::{AGENT, CLASS_PATH, KEYTOOL},
};
use crate::java::{self, HEAP};

/// The program's main class.
const MAIN: &str = "org.apache.cassandra.service.CassandraDaemon";
/// What a node logs when it serves clients, and when it does not start.
const TOLD: [&str; 2] = ["Starting listening for CQL clients", "encountered during startup"];
/// File below [`Place::folder`] that the sandbox redirects the server's output to.
const SERVER_LOG: &str = "server.log";
/// File of the audit log of FileAuditLogger, below a node's folder; BinAuditLogger has a folder `audit` there.
const AUDIT_LOG: &str = "audit.log";
/// Folder for temporary files, below a node's folder: the virtual machine ignores `TMPDIR`.
const TEMPORARY: &str = "tmp";
/// Setting with which the protection `internode-tls` requests TLS between nodes.
pub const BETWEEN_NODES: &str = "server_encryption_options";
/// Setting with which the protection `commitlog-encryption` names a cipher.
pub const COMMITLOG_CIPHER: &str = "transparent_data_encryption_options";
/// Setting with which the protections of the audit log describe it.
pub const AUDIT: &str = "audit_logging_options";
/// Password of the store that holds the key of the commit log. Not a secret: see the head of this file.
const STORE_PASSWORD: &str = "tithe-key-store";

/// Settings of every server that Tithe launches, with the reason; an experiment may change them. All others are
/// Cassandra's defaults.
const COMMON: &[(&str, &str, &str)] = &[
    ("auto_bootstrap", "false", "a new cluster has nothing to stream"),
    ("auto_snapshot", "false", "Tithe's tables are removed after the run"),
    ("commitlog_sync", "periodic", "the product's default: a crash loses up to commitlog_sync_period"),
    ("commitlog_sync_period", "10000ms", "the product's default"),
    ("concurrent_compactors", "1", "several servers share the machine"),
    ("endpoint_snitch", "SimpleSnitch", "all nodes are on this machine"),
    ("num_tokens", "16", "the product's default"),
    ("partitioner", "org.apache.cassandra.dht.Murmur3Partitioner", "the product's default"),
];

/// Settings that an experiment may set.
pub const KNOWN: &[(&str, &str)] = &[
    (NODES, "Nodes of each arm's cluster, 1 to 4, each on a loopback address of its own; default 1."),
    (REPLICATION, "Nodes that hold each record; default: all, at most 3."),
    (
        CONSISTENCY,
        "How many of them must answer each request: ONE, TWO, THREE, QUORUM, ALL, LOCAL_QUORUM or LOCAL_ONE; default QUORUM.",
    ),
    (HEAP, "Memory of each node's virtual machine; default 512M."),
    ("allow_filtering_enabled", "As in cassandra.yaml."),
    ("batch_size_fail_threshold", "As in cassandra.yaml."),
    ("cdc_enabled", "As in cassandra.yaml."),
    ("column_index_size", "As in cassandra.yaml."),
    ("commitlog_segment_size", "As in cassandra.yaml."),
    ("commitlog_sync", "As in cassandra.yaml: periodic, batch or group."),
    ("commitlog_sync_period", "As in cassandra.yaml; for commitlog_sync = periodic."),
    ("commitlog_sync_group_window", "As in cassandra.yaml; for commitlog_sync = group."),
    ("compaction_throughput", "As in cassandra.yaml."),
    ("concurrent_compactors", "As in cassandra.yaml; default 1."),
    ("concurrent_reads", "As in cassandra.yaml."),
    ("concurrent_writes", "As in cassandra.yaml."),
    ("disk_access_mode", "As in cassandra.yaml."),
    ("file_cache_size", "As in cassandra.yaml."),
    ("incremental_backups", "As in cassandra.yaml."),
    ("internode_compression", "As in cassandra.yaml."),
    ("key_cache_size", "As in cassandra.yaml."),
    ("memtable_allocation_type", "As in cassandra.yaml."),
    ("memtable_heap_space", "As in cassandra.yaml."),
    ("memtable_offheap_space", "As in cassandra.yaml."),
    ("native_transport_max_threads", "As in cassandra.yaml."),
    ("num_tokens", "As in cassandra.yaml; default 16."),
    ("row_cache_size", "As in cassandra.yaml."),
    ("tombstone_failure_threshold", "As in cassandra.yaml."),
    ("trickle_fsync", "As in cassandra.yaml."),
];

/// Settings that Tithe sets itself, with the reason.
pub const RESERVED: &[(&str, &str)] = &[
    (AUDIT, "decided by the protections `audit-file` and `audit-bin`"),
    ("authenticator", "decided by the protection `password`"),
    ("authorizer", "decided by the protection `password`"),
    ("client_encryption_options", "decided by the protection `tls`"),
    ("cluster_name", "each arm has a cluster of its own"),
    ("commitlog_directory", "each server has a folder of its own"),
    ("data_file_directories", "as commitlog_directory"),
    ("hints_directory", "as commitlog_directory"),
    ("listen_address", "servers listen on loopback addresses only"),
    ("native_transport_port", "Tithe chooses a free one"),
    ("partitioner", "records are placed by the hash of their keys, as in every new cluster"),
    ("rpc_address", "as listen_address"),
    ("saved_caches_directory", "as commitlog_directory"),
    ("seed_provider", "Tithe names the first node"),
    (BETWEEN_NODES, "decided by the protection `internode-tls`"),
    ("storage_port", "as native_transport_port"),
    (COMMITLOG_CIPHER, "decided by the protection `commitlog-encryption`"),
];

/// What Cassandra needs from the modules of Java 11 and 17 (its own `conf/jvm11-server.options` and
/// `jvm17-server.options`).
const EXPORTED: [&str; 10] = [
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.management/com.sun.jmx.remote.security",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.unsupported/sun.misc",
];
/// As [`EXPORTED`].
const OPENED: [&str; 15] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
];

/// Settings that leave no trace in the data files of a stopped node: memory, threads, caches, what is logged, how nodes
/// and clients communicate. The commit log is empty then.
const STORAGE_NEUTRAL: [&str; 18] = [
    AUDIT,
    BETWEEN_NODES,
    COMMITLOG_CIPHER,
    CONSISTENCY,
    HEAP,
    "commitlog_segment_size",
    "commitlog_sync",
    "commitlog_sync_group_window",
    "commitlog_sync_period",
    "concurrent_reads",
    "concurrent_writes",
    "credentials_validity",
    "file_cache_size",
    "key_cache_size",
    "native_transport_max_threads",
    "permissions_validity",
    "roles_validity",
    "row_cache_size",
];

/// What a stopped cluster of one node leaves: it has written all tables to their files, and its commit log is empty.
/// Accounts are in tables. `None` for several nodes, which identify each other by their ports.
pub fn stored(setup: &Setup) -> Option<Stored> {
    if Cluster::of(setup).is_ok_and(|cluster| cluster.nodes > 1) {
        return None;
    }
    let asks = matches!(setup.authentication, Authentication::Password { .. });
    let mut storage_settings = vec![format!("accounts = {asks}")];
    let traced = setup.settings.iter().filter(|(name, _)| !STORAGE_NEUTRAL.contains(&name.as_str()));
    storage_settings.extend(traced.map(|(name, value)| format!("{name} = {value}")));
    Some(Stored { paths: vec!["node1/data".to_owned()], storage_settings })
}

/// Everything that starts the cluster of this arm in `place`.
pub fn launch(install: &Install, setup: &Setup, place: &Place) -> Launch {
    // Invalid numbers were refused before; a launch that is shown all the same has one node.
    let nodes = Cluster::of(setup).map_or(1, |cluster| cluster.nodes);
    let nodes: Vec<Node<'_>> = (1..=nodes).map(|number| Node { number, install, setup, place }).collect();
    let mut steps = Vec::from_iter(setup.identity_step());
    if uses_pem(setup) {
        steps.push(identity(setup, place));
    }
    if setup.settings.contains_key(COMMITLOG_CIPHER) {
        steps.extend(key_store(install, setup, place));
    }
    steps.extend(nodes.iter().flat_map(Node::steps));
    let all = |name: &str| nodes.iter().map(|node| node.folder().join(name)).collect::<Vec<_>>();
    let mut logs = vec![place.folder.join(SERVER_LOG)];
    logs.extend(if nodes.len() > 1 { all(SERVER_LOG) } else { Vec::new() });
    logs.extend(all(AUDIT_LOG));
    logs.extend(all("audit"));
    let server = match nodes.as_slice() {
        [node] => node.command(),
        nodes => java::together(install, place, MAIN, nodes.len(), &TOLD),
    };
    Launch {
        steps,
        server: Some(server),
        stop_signal: Signal::TERM,
        // If several nodes are started, they must know each other.
        discard_signal: if nodes.len() > 1 { Signal::TERM } else { Signal::KILL },
        address: Address::Tcp { host: "127.0.0.1".to_owned(), port: place.port },
        paths: Paths { data: all("data"), journal: [all("commitlog"), all("hints")].concat(), logs },
    }
}

fn uses_pem(setup: &Setup) -> bool {
    setup.transport != Transport::Plain || setup.settings.contains_key(BETWEEN_NODES)
}

/// One node.
struct Node<'a> {
    /// From 1 on.
    number: usize,
    install: &'a Install,
    setup: &'a Setup,
    place: &'a Place,
}

impl Node<'_> {
    fn folder(&self) -> PathBuf {
        self.place.folder.join(format!("node{}", self.number))
    }

    fn steps(&self) -> Vec<Step> {
        let folder = self.folder();
        let write =
            |name: &str, text| Step::Write { path: folder.join(name), content: Content::Text(text), mode: 0o600 };
        vec![
            Step::Folder(folder.clone()),
            Step::Folder(folder.join(TEMPORARY)),
            write("cassandra.yaml", self.yaml()),
            write("logback.xml", self.log_setup()),
            write("java.options", self.java_options()),
        ]
    }

    fn command(&self) -> Command {
        let options = format!("@{}", self.folder().join("java.options").display());
        Command {
            program: java::program(self.install),
            arguments: vec![options, MAIN.to_owned()],
            environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
        }
    }

    /// Options of the virtual machine, one per line: a fixed heap, and other memory that does not grow without bound.
    /// Delays for other nodes and for the first account are as short as possible.
    fn java_options(&self) -> String {
        let folder = self.folder().display().to_string();
        let fact = |name: &str| self.install.facts.get(name).cloned().unwrap_or_default();
        let heap = java::heap(&self.setup.settings);
        let mut lines = vec![
            format!("-Xms{heap}"),
            format!("-Xmx{heap}"),
            "-Xss512k".to_owned(),
            "-XX:+UseG1GC".to_owned(),
            "-XX:MaxDirectMemorySize=256M".to_owned(),
            "-XX:+ExitOnOutOfMemoryError".to_owned(),
            "-XX:-UsePerfData".to_owned(),
            // Native libraries are unpacked there, and stay when the server is killed.
            format!("\"-Djava.io.tmpdir={folder}/{TEMPORARY}\""),
            format!("\"-javaagent:{}\"", fact(AGENT)),
            "-Djdk.attach.allowAttachSelf=true".to_owned(),
            "-Dio.netty.tryReflectionSetAccessible=true".to_owned(),
            "-Dcassandra-foreground=yes".to_owned(),
            format!("\"-Dcassandra.config=file://{folder}/cassandra.yaml\""),
            format!("\"-Dcassandra.logdir={folder}\""),
            format!("\"-Dcassandra.storagedir={folder}\""),
            format!("\"-Dlogback.configurationFile={folder}/logback.xml\""),
            "-Dcassandra.consistent.rangemovement=false".to_owned(),
            format!("-Dcassandra.ring_delay_ms={}", self.ring_delay_ms()),
            "-Dcassandra.shutdown_announce_in_ms=0".to_owned(),
            "-Dcassandra.skip_wait_for_gossip_to_settle=0".to_owned(),
            "-Dcassandra.superuser_setup_delay_ms=0".to_owned(),
        ];
        lines.extend(EXPORTED.map(|package| format!("--add-exports={package}=ALL-UNNAMED")));
        lines.extend(OPENED.map(|package| format!("--add-opens={package}=ALL-UNNAMED")));
        lines.push(format!("-cp \"{}\"", fact(CLASS_PATH)));
        lines.join("\n") + "\n"
    }

    /// How long the node waits for another one when it starts, ms. The first one only asks itself, so it need not wait;
    /// the others give up after this time, and on a busy machine the first handshake may take seconds.
    fn ring_delay_ms(&self) -> u32 {
        if self.number == 1 { 1_000 } else { 30_000 }
    }

    /// The server's log on standard output, the audit log in its own file.
    fn log_setup(&self) -> String {
        let audit = self.folder().join(AUDIT_LOG).display().to_string();
        format!(
            r#"<configuration>
  <appender name="server" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %d{{ISO8601}} %logger{{20}} %msg%n</pattern></encoder>
  </appender>
  <appender name="audit" class="ch.qos.logback.core.FileAppender">
    <file>{audit}</file>
    <encoder><pattern>%d{{ISO8601}} %msg%n</pattern></encoder>
  </appender>
  <logger name="org.apache.cassandra.audit.FileAuditLogger" level="INFO" additivity="false">
    <appender-ref ref="audit"/>
  </logger>
  <root level="INFO"><appender-ref ref="server"/></root>
</configuration>
"#
        )
    }

    /// The configuration of the server: one setting per line, in the order of their names.
    fn yaml(&self) -> String {
        let folder = self.folder().display().to_string();
        let mut lines: BTreeMap<String, String> =
            COMMON.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned())).collect();
        let ours = [NODES, REPLICATION, CONSISTENCY, HEAP];
        let chosen = self.setup.settings.iter().filter(|(name, _)| !ours.contains(&name.as_str()));
        lines.extend(chosen.map(|(name, value)| (name_of(name), value_of(name, value))));
        if lines.get("commitlog_sync").is_some_and(|kind| kind != "periodic") {
            lines.remove("commitlog_sync_period");
        }
        let mut own = |name: &str, value: String| drop(lines.insert(name.to_owned(), value));
        let port = self.place.port;
        own("cluster_name", self.cluster_name());
        own("listen_address", format!("127.0.0.1{}", self.number));
        own("storage_port", port.to_string());
        own("rpc_address", format!("127.0.0.{}", self.number));
        own("native_transport_port", port.to_string());
        own("start_native_transport", "true".to_owned());
        let seeds =
            "[{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: \"127.0.0.11\"}]}]";
        own("seed_provider", seeds.to_owned());
        own("data_file_directories", format!("['{folder}/data']"));
        for (setting, below) in [
            ("cdc_raw_directory", "cdc"),
            ("commitlog_directory", "commitlog"),
            ("hints_directory", "hints"),
            ("saved_caches_directory", "saved"),
        ] {
            own(setting, format!("'{folder}/{below}'"));
        }
        let password = matches!(self.setup.authentication, Authentication::Password { .. });
        own("authenticator", if password { "PasswordAuthenticator" } else { "AllowAllAuthenticator" }.to_owned());
        own("authorizer", if password { "CassandraAuthorizer" } else { "AllowAllAuthorizer" }.to_owned());
        own("role_manager", "CassandraRoleManager".to_owned());
        if let Transport::Tls { version, mutual, .. } = self.setup.transport {
            let version = version_name(version);
            let options = format!(
                "enabled: true, optional: false, require_client_auth: {mutual}, accepted_protocols: [{version}]"
            );
            own("client_encryption_options", self.with_pem(&options));
        }
        if self.setup.settings.contains_key(BETWEEN_NODES) {
            let options = "internode_encryption: all, optional: false, legacy_ssl_storage_port_enabled: false, \
                           require_client_auth: true, require_endpoint_verification: true, \
                           accepted_protocols: [TLSv1.3]";
            own(BETWEEN_NODES, self.with_pem(options));
        }
        if let Some(cipher) = self.setup.settings.get(COMMITLOG_CIPHER) {
            own(COMMITLOG_CIPHER, encryption(cipher, &store_file(self.setup, self.place)));
        }
        lines.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    /// A node refuses data written by another cluster. A single node has no peers that it could confuse, and its data
    /// are copied to further clusters, so its name is constant. Several nodes have a name that no other cluster has.
    fn cluster_name(&self) -> String {
        if Cluster::of(self.setup).is_ok_and(|cluster| cluster.nodes == 1) {
            return "'tithe'".to_owned();
        }
        let name = self.place.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        format!("'tithe {} {}'", name.replace('\'', ""), self.place.port)
    }

    /// `options` of TLS with the files that it needs.
    fn with_pem(&self, options: &str) -> String {
        let identity = identity_file(self.setup, self.place).display().to_string();
        let authority = self.setup.credentials.authority.display();
        format!(
            "{{{options}, ssl_context_factory: {{class_name: \
             org.apache.cassandra.security.PEMBasedSslContextFactory}}, keystore: '{identity}', truststore: '{authority}'}}"
        )
    }
}

/// A file with the run's certificates that belongs to this server alone.
fn beside_certificates(setup: &Setup, place: &Place, name: &str) -> PathBuf {
    let server = place.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    setup.credentials.authority.with_file_name(format!("{name}-{server}"))
}

/// Key and certificate of the server in one file, as Cassandra requires.
fn identity_file(setup: &Setup, place: &Place) -> PathBuf {
    beside_certificates(setup, place, "cassandra-identity")
}

/// Creates that file. Only the shell can combine two files that are not known before a run.
fn identity(setup: &Setup, place: &Place) -> Step {
    let file = |path: PathBuf| path.display().to_string();
    Step::Run(Command {
        program: "/bin/sh".into(),
        arguments: vec![
            "-c".to_owned(),
            "umask 077 && cat \"$1\" \"$2\" > \"$3\"".to_owned(),
            "join".to_owned(),
            file(setup.credentials.server_key.clone()),
            file(setup.credentials.server_certificate.clone()),
            file(identity_file(setup, place)),
        ],
        environment: BTreeMap::new(),
    })
}

/// The store with the key of the commit log.
fn store_file(setup: &Setup, place: &Place) -> PathBuf {
    beside_certificates(setup, place, "cassandra-commitlog-key")
}

/// Creates the store with a random key of 256 bits. `keytool` gets its password in a file, not in an argument.
fn key_store(install: &Install, setup: &Setup, place: &Place) -> [Step; 2] {
    let password = beside_certificates(setup, place, "cassandra-store-password");
    let store = store_file(setup, place);
    let (secret, file) = (password.display().to_string(), store.display().to_string());
    let arguments = [
        ["-genseckey", "-noprompt"],
        ["-keyalg", "AES"],
        ["-keysize", "256"],
        ["-alias", KEY_ALIAS],
        ["-storetype", "JCEKS"],
        ["-storepass:file", &secret],
        ["-keypass:file", &secret],
        ["-keystore", &file],
    ];
    [
        Step::Write { path: password, content: Content::Text(format!("{STORE_PASSWORD}\n")), mode: 0o600 },
        Step::Run(Command {
            program: install.facts.get(KEYTOOL).map_or("keytool", String::as_str).into(),
            // The virtual machine would leave a folder in /tmp.
            arguments: std::iter::once("-J-XX:-UsePerfData").chain(arguments.concat()).map(str::to_owned).collect(),
            environment: BTreeMap::new(),
        }),
    ]
}

/// Name of the key in its store. Cassandra requires a number after a colon.
const KEY_ALIAS: &str = "tithe:1";

fn encryption(cipher: &str, store: &std::path::Path) -> String {
    let store = store.display();
    format!(
        "{{enabled: true, chunk_length_kb: 64, cipher: {cipher}, key_alias: '{KEY_ALIAS}', iv_length: 16, key_provider: \
         [{{class_name: org.apache.cassandra.security.JKSKeyProvider, parameters: [{{keystore: '{store}', \
         keystore_password: {STORE_PASSWORD}, store_type: JCEKS, key_password: {STORE_PASSWORD}}}]}}]}}"
    )
}

/// A TLS version by Java's name.
pub fn version_name(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V1_2 => "TLSv1.2",
        TlsVersion::V1_3 => "TLSv1.3",
    }
}

/// A setting's name from an experiment, restricted to the characters of a name.
fn name_of(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' }).collect()
}

/// A setting's value: a protection's value is YAML already; an experiment's value can only be one plain value.
fn value_of(name: &str, value: &str) -> String {
    if RESERVED.iter().any(|(reserved, _)| *reserved == name) {
        return value.to_owned();
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/%".contains(letter);
    if !value.is_empty() && value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace(char::is_control, " ").replace('\'', "''"))
    }
}
