//! The whole matrix of a server that answers as configured: a server without any finding, and which row changes with
//! each single change to it.

use std::net::TcpStream;

use expect_test::expect;
use tithe_plugin::database::Without;

use super::*;
use crate::{
    redis::{
        attached::lacks,
        evidence::{PROBES, rights_enforced::RightsEnforced},
        test_server::serve,
    },
    test_setup::{as_arm, asked_in_plaintext, attached, changed_rows, observed, plain, tried_in_plaintext, whole_rows},
};

const PASSWORD: &str = "correct horse";

/// The state and the answers of a server.
#[derive(Clone)]
struct Redis {
    password: bool,
    settings: Vec<(&'static str, &'static str)>,
    accounts: Vec<String>,
    info: Vec<(&'static str, &'static str)>,
    /// Commands that the account may not run, and those that do not exist.
    refused: Vec<&'static str>,
    missing: Vec<&'static str>,
    clients: &'static str,
    replicas: &'static str,
    nodes: &'static str,
}

/// A server with a password, one other account with limited rights, no recorders and no connections to other servers.
fn tight() -> Redis {
    Redis {
        password: true,
        settings: vec![
            ("port", "6379"),
            ("tls-port", "0"),
            ("protected-mode", "yes"),
            ("requirepass", ""),
            ("masterauth", ""),
            ("enable-module-command", "no"),
            ("enable-debug-command", "no"),
            ("enable-protected-configs", "no"),
            ("slowlog-log-slower-than", "-1"),
            ("slowlog-max-len", "128"),
            ("notify-keyspace-events", ""),
            ("dir", "/data"),
            ("dbfilename", "dump.rdb"),
            ("save", ""),
            ("appendonly", "no"),
            ("appendfilename", "log.aof"),
            ("appenddirname", "aof"),
            ("tls-replication", "no"),
            ("tls-cluster", "no"),
        ],
        accounts: vec![
            format!("user default on #{} ~* &* +@all", hash_of(PASSWORD)),
            format!("user app on #{} ~app:* resetchannels -@all +get +set", hash_of("another horse")),
        ],
        info: vec![
            ("redis_version", "7.2.1"),
            ("role", "master"),
            ("connected_slaves", "0"),
            ("cluster_enabled", "0"),
            ("number_of_functions", "0"),
            ("config_file", "/etc/redis.conf"),
        ],
        refused: Vec::new(),
        missing: Vec::new(),
        clients: "id=3 addr=127.0.0.1:5 laddr=127.0.0.1:6379 flags=N user=default\n",
        replicas: "",
        nodes: "cluster_known_nodes:1\n",
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn array(parts: &[String]) -> String {
    format!("*{}\r\n{}", parts.len(), parts.concat())
}

impl Redis {
    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.settings.retain(|(known, _)| *known != name);
        self.settings.push((name, value));
        self
    }

    fn telling(mut self, name: &'static str, value: &'static str) -> Self {
        self.info.retain(|(known, _)| *known != name);
        self.info.push((name, value));
        self
    }

    fn account(mut self, line: &str) -> Self {
        self.accounts.push(line.to_owned());
        self
    }

    fn refusing(mut self, commands: &[&'static str]) -> Self {
        self.refused = commands.to_vec();
        self
    }

    /// Its answer to `parts` from a client that is `known`.
    fn answer(&self, parts: &[&str], known: &mut bool) -> String {
        let said = parts.join(" ");
        if parts[0] == "AUTH" {
            *known |= parts.last() == Some(&PASSWORD);
            return if *known { "+OK\r\n" } else { "-WRONGPASS invalid password\r\n" }.to_owned();
        }
        if self.password && !*known {
            return "-NOAUTH Authentication required.\r\n".to_owned();
        }
        if let Some(refused) = self.refused.iter().find(|refused| said.starts_with(**refused)) {
            return format!("-NOPERM User x has no permissions to run the '{refused}' command\r\n");
        }
        match parts {
            ["PING"] => "+PONG\r\n".to_owned(),
            ["CONFIG", "GET", name] => {
                let found = self.settings.iter().find(|(known, _)| known == name);
                array(&found.map_or(Vec::new(), |(name, value)| vec![bulk(name), bulk(value)]))
            }
            ["ACL", "LIST"] => array(&self.accounts.iter().map(|line| bulk(line)).collect::<Vec<_>>()),
            ["INFO", _] => {
                let lines = self.info.iter().map(|(name, value)| format!("{name}:{value}\r\n"));
                bulk(&lines.collect::<String>())
            }
            ["CLIENT", "LIST", "TYPE", "replica"] => bulk(self.replicas),
            ["CLIENT", "LIST"] => bulk(self.clients),
            ["CLIENT", "INFO"] => bulk(self.clients.lines().next().unwrap_or_default()),
            ["CLUSTER", "INFO"] => bulk(self.nodes),
            ["GET", _] => "$-1\r\n".to_owned(),
            ["COMMAND", "INFO", names @ ..] => {
                let told = |name: &&str| match self.missing.contains(name) {
                    true => "$-1\r\n".to_owned(),
                    false => array(&[bulk(name)]),
                };
                array(&names.iter().map(told).collect::<Vec<_>>())
            }
            ["COMMAND"] => array(&[array(&[bulk("get")])]),
            _ => format!("-ERR unknown command '{said}'\r\n"),
        }
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut known = false;
        serve(stream, |words| self.answer(words, &mut known))
    }

    /// The result of `look` on it, as an attached server.
    fn seen<T>(&self, look: impl FnOnce(&Server, &Setup) -> T) -> T {
        let begin = if self.password { "redis://:correct%20horse@" } else { "redis://" };
        let redis = self.clone();
        attached(begin, move |stream| redis.serve(&stream), |server| look(server, &plain()))
    }

    fn matrix(&self) -> Vec<String> {
        whole_rows(&self.seen(|server, setup| inspect(server, setup).expect("it can be reached")))
    }
}

#[test]
fn a_server_that_leaves_nothing_open() {
    expect![[r#"
        authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception
        tls: off, whole server: plaintext: served; the server has no TLS
        client-to-node: off, whole server: plaintext: served; the server has no TLS
        authorisation: enforced, whole server: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands)
        node-to-node: cannot tell, this account: no other server is connected
        at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); the slow log is off
        audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log is off
        jmx-authentication: not offered by this product, whole server: no Java virtual machine
        authentication-caching: not offered by this product, whole server: every login is checked again
        proxy-roles: not offered by this product, whole server: no account acts for another
    "#]].assert_eq(&tight().matrix().concat());
}

/// The rows that differ from those of the server above.
#[test]
fn each_change_shows_in_its_rows() {
    let on = |line: &str| format!("user ops on #{} {line}", hash_of("third horse"));
    let link = "id=4 addr=10.0.0.2:7 laddr=127.0.0.1:6379\n";
    let replicas = |replicas| Redis { replicas, ..tight().telling("connected_slaves", "1") };
    let nodes = || Redis { nodes: "cluster_known_nodes:3\n", ..tight().telling("cluster_enabled", "1") };
    let watched = "id=5 addr=10.0.0.3:9 laddr=127.0.0.1:6379 flags=O user=eve\n";
    let changes: Vec<(&str, Redis)> = vec![
        ("no password", Redis { password: false, ..tight() }),
        ("no password, other machines too", Redis { password: false, ..tight() }.with("protected-mode", "no")),
        ("an open account", tight().account("user guest on nopass ~g:* +get")),
        ("an open account that is off", tight().account("user guest off nopass ~g:* +get")),
        ("a password of all", tight().account(&format!("user guest on #{} ~g:* +get", hash_of("foobared")))),
        ("an administrator more", tight().account(&on("~* &* +@all"))),
        (
            "an administrator by a certificate",
            tight().with("tls-auth-clients-user", "CN").account("user ops on ~* &* +@all"),
        ),
        ("an account without a way in", tight().with("tls-auth-clients-user", "off").account("user ops on ~* +@all")),
        ("a way to all", tight().account(&on("~o:* +acl|setuser"))),
        ("a way round keys", tight().account(&on("~o:* +monitor"))),
        ("no right to the accounts", tight().refusing(&["ACL LIST"])),
        ("no right to the accounts and to keys of others", tight().refusing(&["ACL LIST", "GET"])),
        ("no right to the settings", tight().refusing(&["CONFIG GET"])),
        ("no right to the commands", tight().refusing(&["COMMAND"])),
        ("a port for TLS", tight().with("tls-port", "6380")),
        ("modules", tight().with("enable-module-command", "yes").account(&on("~o:* +module|load"))),
        ("files of the server", tight().with("enable-protected-configs", "local").account(&on("~o:* +config|set"))),
        ("a password that settings show", tight().with("requirepass", PASSWORD).account(&on("~o:* +config|get"))),
        ("commands taken away", Redis { missing: vec!["config"], ..tight() }),
        (
            "modules, and settings that are not shown",
            Redis { missing: vec!["config"], ..tight() }.account(&on("~o:* +module|load +debug")),
        ),
        (
            "modules taken away as well",
            Redis { missing: vec!["config", "module"], ..tight() }.account(&on("~o:* +module|load")),
        ),
        ("a way round keys of Valkey", tight().account(&on("resetkeys +commandlog|get"))),
        (
            "a log of large requests",
            tight().with("commandlog-request-larger-than", "1024").with("commandlog-large-request-max-len", "128"),
        ),
        ("no right to the version", tight().refusing(&["INFO"])),
        ("an old version", tight().telling("redis_version", "6.2.1").account(&on("~o:* +sort"))),
        ("a version without accounts", tight().telling("redis_version", "5.0.14")),
        ("functions", tight().telling("number_of_functions", "2").account(&on("~o:* +fcall"))),
        ("a slow log of everything", tight().with("slowlog-log-slower-than", "0")),
        ("a slow log", tight().with("slowlog-log-slower-than", "10000")),
        ("a slow log that keeps nothing", tight().with("slowlog-log-slower-than", "0").with("slowlog-max-len", "0")),
        ("somebody watches", Redis { clients: watched, ..tight() }),
        ("no right to the clients", tight().refusing(&["CLIENT LIST"])),
        ("names are published", tight().with("notify-keyspace-events", "KEA")),
        ("snapshots", tight().with("save", "3600 1")),
        ("a log of changes", tight().with("appendonly", "yes")),
        ("a log of changes beside the data", tight().with("appendonly", "yes").with("appenddirname", "")),
        ("a password in the file", tight().with("requirepass", PASSWORD)),
        ("a replica in plaintext", replicas(link)),
        ("a replica by TLS", replicas("id=4 addr=10.0.0.2:7 laddr=127.0.0.1:6380\n").with("tls-port", "6380")),
        ("a replica by TLS alone", replicas("id=4 addr=10.0.0.2:7 laddr=127.0.0.1:6380\n").with("port", "0")),
        ("a replica that is not shown", replicas(link).refusing(&["CLIENT LIST"])),
        ("a replica that the list leaves out", replicas("")),
        ("it follows another", tight().telling("role", "slave").telling("master_host", "10.0.0.9")),
        ("it follows by TLS", tight().telling("role", "slave").with("tls-replication", "yes")),
        ("nodes in plaintext", nodes()),
        ("nodes by TLS", nodes().with("tls-cluster", "yes")),
        ("a node alone", tight().telling("cluster_enabled", "1")),
    ];
    let changes: Vec<_> = changes.iter().map(|(name, redis)| (*name, redis.matrix())).collect();
    expect![[r#"
        no password
          authentication: off, whole server: let in without a password; other machines are refused while no password is set (protected-mode); 2 accounts of ACL LIST: no exception
        no password, other machines too
          authentication: off, whole server: let in without a password; 2 accounts of ACL LIST: no exception
        an open account
          authentication: available but not enforced, whole server [REDIS-AUTHN-OPEN-ACCOUNT]: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: 1 exception: `guest` logs in without a password (nopass): ACL SETUSER … resetpass >PASSWORD, or off
          authorisation: enforced, whole server: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands)
        an open account that is off
        a password of all
          authentication: available but not enforced, whole server [REDIS-AUTHN-OPEN-ACCOUNT]: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: 1 exception: `guest` has the password of the sample configuration: ACL SETUSER … resetpass >PASSWORD, or off
          authorisation: enforced, whole server: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands)
        an administrator more
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server: 2 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); ops → everything (all keys and commands): ACL SETUSER … -@admin -@dangerous, with back what it needs
        an administrator by a certificate
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server: 2 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); ops → everything (all keys and commands): ACL SETUSER … -@admin -@dangerous, with back what it needs
        an account without a way in
        a way to all
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server [REDIS-AUTHZ-REACHABLE-EVERYTHING]: 2 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); ops → everything (acl|setuser gives itself the rest): ACL SETUSER … -@admin -@dangerous, with back what it needs
        a way round keys
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server [REDIS-AUTHZ-BEYOND-KEYS]: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); beyond its rights: `ops` reads keys of others by monitor: ACL SETUSER … -@admin -@dangerous, with back what it needs
        no right to the accounts
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); others were not judged (refused: NOPERM User x has no permissions to run the 'ACL LIST' command): the account needs +acl|list
          authorisation: available but not enforced, this account: this account reads keys of others; the list of accounts: refused: NOPERM User x has no permissions to run the 'ACL LIST' command; the account needs +acl|list to judge others
        no right to the accounts and to keys of others
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); others were not judged (refused: NOPERM User x has no permissions to run the 'ACL LIST' command): the account needs +acl|list
          authorisation: enforced, this account: keys of others: refused (NOPERM User x has no permissions to run the 'GET' command); the list of accounts: refused: NOPERM User x has no permissions to run the 'ACL LIST' command; the account needs +acl|list to judge others
        no right to the settings
          tls: available but not enforced, this account: plaintext: served; whether TLS is there: refused: NOPERM User x has no permissions to run the 'CONFIG GET' command
          client-to-node: available but not enforced, this account: plaintext: served; whether TLS is there: refused: NOPERM User x has no permissions to run the 'CONFIG GET' command
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: whether requirepass is set (refused: NOPERM User x has no permissions to run the 'CONFIG GET' command); not judged: whether masterauth is set (refused: NOPERM User x has no permissions to run the 'CONFIG GET' command); not judged: enable-module-command (refused: NOPERM User x has no permissions to run the 'CONFIG GET' command); not judged: enable-debug-command (refused: NOPERM User x has no permissions to run the 'CONFIG GET' command); not judged: enable-protected-configs (refused: NOPERM User x has no permissions to run the 'CONFIG GET' command)
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; which files values reach: refused: NOPERM User x has no permissions to run the 'CONFIG GET' command; the slow log: refused: NOPERM User x has no permissions to run the 'CONFIG GET' command
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; slow log: refused: NOPERM User x has no permissions to run the 'CONFIG GET' command
        no right to the commands
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: which commands were taken away (refused: NOPERM User x has no permissions to run the 'COMMAND' command)
        a port for TLS
          tls: available but not enforced, whole server: plaintext: served; the server has TLS as well
          client-to-node: available but not enforced, whole server: plaintext: served; the server has TLS as well
        modules
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server [REDIS-AUTHZ-REACHABLE-EVERYTHING]: 2 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); ops → everything (module|load runs code in the server): ACL SETUSER … -@admin -@dangerous, with back what it needs
        files of the server
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server [REDIS-AUTHZ-REACHABLE-EVERYTHING]: 2 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); ops → everything (config|set dir writes files as the server): ACL SETUSER … -@admin -@dangerous, with back what it needs
        a password that settings show
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server [REDIS-AUTHZ-REACHABLE-EVERYTHING]: 2 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); ops → default (config|get shows requirepass, its password) → everything (all keys and commands): ACL SETUSER … -@admin -@dangerous, with back what it needs
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); a password is set, in the clear where /etc/redis.conf or what it includes has it; the slow log is off
        commands taken away
          authorisation: enforced, whole server: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); commands that this server does not have: config|get, config|set
        modules, and settings that are not shown
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: enforced, this account: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); commands that this server does not have: config|get, config|set; not judged: whether the settings, which are not shown, let `ops` use module|load and debug
        modules taken away as well
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: enforced, whole server: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); commands that this server does not have: config|get, config|set, module|load, module|loadex
        a way round keys of Valkey
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server [REDIS-AUTHZ-BEYOND-KEYS]: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); beyond its rights: `ops` reads keys of others by commandlog|get: ACL SETUSER … -@admin -@dangerous, with back what it needs
        a log of large requests
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); the slow log is off; the command log repeats values of commands whose request has more than 1024 bytes, the last 128, in memory
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log is off; the command log repeats values of commands whose request has more than 1024 bytes, the last 128, in memory
        no right to the version
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: whether there are other servers (refused: NOPERM User x has no permissions to run the 'INFO' command)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: whether there are other servers (refused: NOPERM User x has no permissions to run the 'INFO' command)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: whether there are other servers (refused: NOPERM User x has no permissions to run the 'INFO' command)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: whether functions are loaded (refused: NOPERM User x has no permissions to run the 'INFO' command); not judged: what version 6 leaves open (refused: NOPERM User x has no permissions to run the 'INFO' command); not judged: whether there are other servers (refused: NOPERM User x has no permissions to run the 'INFO' command)
          node-to-node: cannot tell, this account: refused: NOPERM User x has no permissions to run the 'INFO' command
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; which files values reach: refused: NOPERM User x has no permissions to run the 'INFO' command; the slow log is off
        an old version
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: available but not enforced, whole server [REDIS-AUTHZ-BEYOND-KEYS]: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); beyond its rights: `ops` reads keys of others by sort: ACL SETUSER … -@admin -@dangerous, with back what it needs
        a version without accounts
          authorisation: off, whole server: before version 6 there are no accounts: every client that is let in may do everything
        functions
          authentication: enforced, whole server: by password; without a password: refused (NOAUTH Authentication required.); 3 accounts of ACL LIST: no exception
          authorisation: enforced, whole server: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands)
        a slow log of everything
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); the slow log repeats values of all commands, the last 128, in memory
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log repeats values of all commands, the last 128, in memory
        a slow log
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); the slow log repeats values of commands above 10000 µs, the last 128, in memory
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log repeats values of commands above 10000 µs, the last 128, in memory
        a slow log that keeps nothing
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); the slow log keeps nothing
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log keeps nothing
        somebody watches
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); the slow log is off; MONITOR shows every command with its values to `eve` at 10.0.0.3:9
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log is off; MONITOR shows every command with its values to `eve` at 10.0.0.3:9
        no right to the clients
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); the slow log is off; whether a client runs MONITOR: refused: NOPERM User x has no permissions to run the 'CLIENT LIST' command
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log is off; whether a client runs MONITOR: refused: NOPERM User x has no permissions to run the 'CLIENT LIST' command
        names are published
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log is off; names of keys are published to every subscriber (notify-keyspace-events = KEA)
        snapshots
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by itself); the slow log is off
        a log of changes
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas) and /data/aof/log.aof; the slow log is off
        a log of changes beside the data
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas) and /data/log.aof; the slow log is off
        a password in the file
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); a password is set, in the clear where /etc/redis.conf or what it includes has it; the slow log is off
        a replica in plaintext
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: 1 replica (each has accounts, ports and settings of its own)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: 1 replica (each has accounts, ports and settings of its own)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: 1 replica (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: 1 replica (each has accounts, ports and settings of its own)
          node-to-node: off, whole server [REDIS-TLS-REPLICATION]: plaintext: replica 10.0.0.2:7: set tls-replication yes on replicas and tls-cluster yes on nodes
        a replica by TLS
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: 1 replica (each has accounts, ports and settings of its own)
          tls: available but not enforced, this account: plaintext: served; the server has TLS as well; not judged: 1 replica (each has accounts, ports and settings of its own)
          client-to-node: available but not enforced, this account: plaintext: served; the server has TLS as well; not judged: 1 replica (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: 1 replica (each has accounts, ports and settings of its own)
          node-to-node: available but not enforced, whole server: TLS: replica 10.0.0.2:7; the next may come by the port for plaintext: set port 0
        a replica by TLS alone
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: 1 replica (each has accounts, ports and settings of its own)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: 1 replica (each has accounts, ports and settings of its own)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: 1 replica (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: 1 replica (each has accounts, ports and settings of its own)
          node-to-node: enforced, whole server: TLS: replica 10.0.0.2:7
        a replica that is not shown
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: 1 replica (each has accounts, ports and settings of its own)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: 1 replica (each has accounts, ports and settings of its own)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: 1 replica (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: 1 replica (each has accounts, ports and settings of its own)
          node-to-node: cannot tell, this account: unknown: 1 replicas (the account needs +client|list)
          at-rest: not offered by this product, whole server: Redis encrypts no file; a volume below it may; values reach /data/dump.rdb (by SAVE and for replicas); the slow log is off; whether a client runs MONITOR: refused: NOPERM User x has no permissions to run the 'CLIENT LIST' command
          audit: not offered by this product, whole server: ACL LOG keeps refusals only; the slow log is off; whether a client runs MONITOR: refused: NOPERM User x has no permissions to run the 'CLIENT LIST' command
        a replica that the list leaves out
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: 1 replica (each has accounts, ports and settings of its own)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: 1 replica (each has accounts, ports and settings of its own)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: 1 replica (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: 1 replica (each has accounts, ports and settings of its own)
          node-to-node: cannot tell, this account: unknown: 1 replicas (CLIENT LIST does not have them)
        it follows another
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: its master (each has accounts, ports and settings of its own)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: its master (each has accounts, ports and settings of its own)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: its master (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: its master (each has accounts, ports and settings of its own)
          node-to-node: off, this account [REDIS-TLS-REPLICATION]: plaintext: its master 10.0.0.9 (tls-replication = no, as it is set now): set tls-replication yes on replicas and tls-cluster yes on nodes
        it follows by TLS
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: its master (each has accounts, ports and settings of its own)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: its master (each has accounts, ports and settings of its own)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: its master (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: its master (each has accounts, ports and settings of its own)
          node-to-node: enforced, this account: TLS: its master  (tls-replication = yes, as it is set now)
        nodes in plaintext
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: 2 other nodes (each has accounts, ports and settings of its own)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: 2 other nodes (each has accounts, ports and settings of its own)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: 2 other nodes (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: 2 other nodes (each has accounts, ports and settings of its own)
          node-to-node: off, whole server [REDIS-TLS-REPLICATION]: plaintext: the bus of 2 other nodes (3 nodes, tls-cluster = no): set tls-replication yes on replicas and tls-cluster yes on nodes
        nodes by TLS
          authentication: enforced, this account: by password; without a password: refused (NOAUTH Authentication required.); 2 accounts of ACL LIST: no exception; not judged: 2 other nodes (each has accounts, ports and settings of its own)
          tls: off, this account: plaintext: served; the server has no TLS; not judged: 2 other nodes (each has accounts, ports and settings of its own)
          client-to-node: off, this account: plaintext: served; the server has no TLS; not judged: 2 other nodes (each has accounts, ports and settings of its own)
          authorisation: enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); not judged: 2 other nodes (each has accounts, ports and settings of its own)
          node-to-node: available but not enforced, whole server: TLS: the bus of 2 other nodes (3 nodes, tls-cluster = yes); the next may come by the port for plaintext: set port 0
        a node alone
          node-to-node: cannot tell, this account: no other server is connected (1 nodes, tls-cluster = no)
    "#]].assert_eq(&changed_rows(&tight().matrix(), &changes));
}

#[test]
fn what_a_command_leads_to_depends_on_the_server() {
    let detours = |server: Redis, rules: &str| {
        let rows = server.account(&format!("user ops on #{} {rules}", hash_of("third horse"))).matrix();
        let row = rows.iter().find(|row| row.starts_with("authorisation: ")).expect("a row");
        let parts = row.split("`ops` ").skip(1).map(|part| part.split([';', ':']).next().unwrap_or_default().trim());
        parts.map(str::to_owned).collect::<Vec<_>>().join(" + ")
    };
    let old = || tight().telling("redis_version", "6.2.1");
    let functions = "changes functions, which run with the rights of the caller, by function|load";
    assert_eq!(detours(tight(), "~o:* +function|load"), "", "none is loaded");
    assert_eq!(detours(tight().telling("number_of_functions", "2"), "~o:* +function|load"), functions);
    assert_eq!(detours(tight(), "~o:* +sort"), "");
    assert_eq!(detours(old(), "~o:* +sort"), "reads keys of others by sort");
    let stops = "stops the server by debug";
    assert_eq!(detours(tight(), "~o:* +debug"), "");
    assert_eq!(detours(tight().with("enable-debug-command", "local"), "~o:* +debug"), stops);
    // Before version 7 it is open, whether settings are shown or not.
    assert_eq!(detours(Redis { missing: vec!["config"], ..old() }, "~o:* +debug"), stops);
    assert_eq!(detours(old().refusing(&["CONFIG GET"]), "~o:* +debug"), stops);
    assert_eq!(detours(tight().refusing(&["CONFIG GET"]), "~o:* +debug"), "");
    for (rules, expected) in [
        ("~* +monitor", ""),
        ("~* +flushall", ""),
        ("%R~* +flushall", "removes keys of others by flushall"),
        ("~o:* +replicaof", "replaces all data by another server's with replicaof"),
        ("~o:* +acl|list", "reads the hashes of all passwords, which have no salt, by acl|list"),
        ("~o:* +acl|deluser", "removes other accounts by acl|deluser"),
        ("~o:* +shutdown", "stops the server by shutdown"),
        ("~o:* +swapdb", "removes keys of others by swapdb"),
    ] {
        assert_eq!(detours(tight(), rules), expected, "{rules}");
    }
    let restores = "changes functions, which run with the rights of the caller, by function|restore";
    assert_eq!(detours(tight().telling("number_of_functions", "2"), "~o:* +function|restore"), restores);
    let node = || tight().telling("cluster_enabled", "1");
    // A node of a cluster refuses both.
    for rules in ["~o:* +replicaof", "~o:* +swapdb"] {
        assert_eq!(detours(node(), rules), "", "{rules}");
    }
    let changes = |command: &str| format!("changes which servers have the cluster's keys by {command}");
    assert_eq!(detours(node(), "~o:* +cluster"), changes("cluster|delslots"));
    assert_eq!(detours(node(), "~o:* +cluster|slots +cluster|meet"), changes("cluster|meet"));
    assert_eq!(detours(node(), "~o:* +cluster|slots +cluster|nodes"), "");
    assert_eq!(detours(tight(), "~o:* +cluster"), "", "it is in no cluster");
}

#[test]
fn rights_are_checked_before_the_place_and_the_kind_of_a_key() {
    let state = |read| of_this_account(read, &Fault::Refused("no".to_owned())).state;
    let error = |words: &str| Err(Fault::Server(words.to_owned()));
    assert_eq!(state(Ok(())), State::Available);
    for passed in ["MOVED 42 10.0.0.2:6379", "WRONGTYPE Operation against a key"] {
        assert_eq!(state(error(passed)), State::Available, "{passed}");
    }
    assert_eq!(state(Err(Fault::Refused("NOPERM no key".to_owned()))), State::Enforced);
    assert_eq!(state(error("CLUSTERDOWN The cluster is down")), State::Unseen);
}

#[test]
fn old_versions_of_tls_are_a_doubt_where_there_is_a_port_for_it() {
    let doubted = |port: &'static str, versions: &'static str| {
        let rows = tight().with("tls-port", port).with("tls-protocols", versions).matrix();
        rows.iter().filter(|row| row.contains("not judged: whether clients speak TLS before version 1.2")).count()
    };
    // The rows about the client and about the node.
    assert_eq!(doubted("6380", "TLSv1.1 TLSv1.2"), 2);
    assert_eq!([doubted("6380", "TLSv1.2 TLSv1.3"), doubted("6380", ""), doubted("0", "TLSv1.1")], [0; 3]);
}

#[test]
fn a_client_that_is_asked_for_a_password_needs_no_certificate() {
    // With `tls-auth-clients optional`, certificates are one of two ways in.
    assert!(!asks_for_certificate("NOAUTH Authentication required."));
    assert!(asks_for_certificate("at the first command: the server closed the connection"));
}

#[test]
fn a_certificate_is_asked_of_all_where_no_other_way_is_open() {
    let (closed, asks) = ("at the first command: the server closed the connection", "NOAUTH Authentication required.");
    let told = |server: Redis, words: &str, plain: &str| {
        server.seen(|server, setup| {
            let target = of_clients(server, setup).expect("a target");
            let mut connection = RedisConnection::open(&target).expect("a connection");
            let open: Vec<Account> = Account::read("user default on nopass ~* &* +@all").into_iter().collect();
            let ports = Ports { plain: plain.to_owned(), tls: Some("6380".to_owned()) };
            let Judgement { state, seen, .. } =
                of_logins(&target, "none", Some(words), (&Ok(open), &Ok(ports)), &mut connection);
            let ways = ["(nopass)", "port 6379 asks for no certificate", "the Unix socket /run/redis.sock asks"];
            (state, ways.map(|way| seen.contains(way)))
        })
    };
    let socket = || tight().with("unixsocket", "/run/redis.sock").with("unixsocketperm", "777");
    assert_eq!(told(tight(), closed, "0"), (State::Enforced, [false; 3]));
    assert_eq!(told(tight(), closed, "6379"), (State::Available, [true, true, false]));
    assert_eq!(told(socket(), closed, "0"), (State::Available, [false, false, true]));
    // Where clients may log in by a password, certificates are not asked of all.
    for (server, plain) in [(tight(), "0"), (tight(), "6379"), (socket(), "0")] {
        assert_eq!(told(server, asks, plain), (State::Available, [true, false, false]), "{plain}");
    }
}

#[test]
fn a_client_without_its_certificate_is_refused_in_words_or_by_the_handshake() {
    for fault in [Fault::Refused, Fault::Connection] {
        assert_eq!(refusal(Err(fault("no".to_owned()))), Some("no".to_owned()));
    }
    assert_eq!([refusal(Ok("none".to_owned())), refusal(Err(Fault::Server("busy".to_owned())))], [None, None]);
}

#[test]
fn a_socket_asks_for_no_certificate() {
    let judged = |path: &str, permissions: &str| {
        let mut rules = Rules::default();
        beside_certificates(path, permissions, &mut rules);
        (rules.exceptions, rules.doubts)
    };
    let none = || (Vec::<String>::new(), Vec::<String>::new());
    assert_eq!(judged("", "777"), none(), "there is no socket");
    for owner in ["700", "600", "755"] {
        assert_eq!(judged("/run/redis.sock", owner), none(), "{owner}: only the owner may write to it");
    }
    for open in ["777", "770", "702"] {
        let text = format!("the Unix socket /run/redis.sock asks for no certificate (unixsocketperm = {open})");
        assert_eq!(judged("/run/redis.sock", open), (vec![text], Vec::new()));
    }
    let doubt = "who can connect to the Unix socket /run/redis.sock without a certificate (unixsocketperm)";
    assert_eq!(judged("/run/redis.sock", "0"), (Vec::new(), vec![doubt.to_owned()]));
}

#[test]
fn a_port_for_plaintext_is_an_exception_of_the_claim_that_there_is_none() {
    let of = |redis: Redis| {
        let others = redis.seen(|server, _| {
            as_arm(&crate::redis::Redis, server, |context| (PROBES.others)(context).expect("the server answers"))
        });
        others.exceptions.into_iter().map(|one| one.text).collect::<Vec<_>>()
    };
    assert_eq!(of(tight()), ["port 6379 speaks plaintext"]);
    assert_eq!(of(tight().with("port", "0")), [""; 0]);
}

#[test]
fn servers_that_have_ports_of_their_own_are_a_doubt_of_that_claim() {
    let doubts = |redis: Redis| {
        let others = redis.seen(|server, _| {
            as_arm(&crate::redis::Redis, server, |context| (PROBES.others)(context).expect("the server answers"))
        });
        others.doubts.len()
    };
    assert_eq!([doubts(tight()), doubts(tight().telling("connected_slaves", "1"))], [0, 1]);
}

#[test]
fn rights_are_enforced_where_all_else_is_refused_and_the_own_keys_are_served() {
    let told = |refused: &[&'static str]| {
        tight().refusing(refused).seen(|server, _| observed(&crate::redis::Redis, server, &RightsEnforced))
    };
    let [other, settings, accounts] = ["GET someone:else", "CONFIG GET", "ACL LIST"];
    assert_eq!(told(&[other, settings, accounts]), "protected");
    for refused in [&[settings, accounts][..], &[other, accounts], &[other, settings], &[]] {
        assert_eq!(told(refused), "exposed", "refused: {refused:?}");
    }
    let nothing = told(&[other, settings, accounts, "GET tithe"]);
    assert_eq!(nothing, "unknown", "an account without any right shows nothing");
}

#[test]
fn what_a_server_lacks_is_named_with_what_is_impossible_without_it() {
    let lacking = |redis: Redis| {
        let all = redis.seen(|server, setup| lacks(server, setup).expect("an answer")).into_iter();
        // Its process is that of the test.
        let all = all.filter(|lack| !lack.why.starts_with("the processor time of the server"));
        all.map(|lack| lack.without).collect::<Vec<_>>()
    };
    let (nothing, tls) = (Without::Measurement, Without::Proof(&["tls"]));
    let with_tls = || tight().with("tls-port", "6380");
    assert_eq!(lacking(tight()), [tls]);
    assert!(lacking(with_tls()).is_empty());
    assert_eq!(lacking(with_tls().refusing(&["GET"])), [nothing]);
    assert_eq!(lacking(with_tls().refusing(&["SCAN"])), [nothing]);
    // Without any command for keys it is not known which keys the account has.
    let of_keys = ["GET", "SET", "DEL", "UNLINK", "HSET", "HGETALL", "HMGET", "ZADD", "ZREM", "ZRANGE", "SCAN"];
    assert_eq!(lacking(with_tls().refusing(&of_keys)), [nothing, nothing]);
    assert_eq!(lacking(with_tls().telling("role", "slave")), [nothing]);
    for (timeout, expected) in [("0", &[][..]), ("1", &[nothing]), ("59", &[nothing]), ("60", &[])] {
        assert_eq!(lacking(with_tls().with("timeout", timeout)), expected, "{timeout}");
    }
    for hidden in ["CONFIG GET", "CLIENT LIST"] {
        let without = lacking(with_tls().refusing(&[hidden]));
        assert!(matches!(without[..], [Without::Figures(_)]), "{hidden}: {without:?}");
    }
}

#[test]
fn recorders_of_values_are_named_or_doubted() {
    let recorded = |server: &Redis| {
        let recording = server.seen(|server, setup| recording(server, setup, Sent::Values).expect("reached"));
        format!("{:?}\n", recording.map(|it| (it.repeats, it.doubts)))
    };
    let text = [
        recorded(&tight()),
        recorded(&tight().with("slowlog-log-slower-than", "0")),
        recorded(&tight().with("commandlog-reply-larger-than", "0").with("commandlog-large-reply-max-len", "128")),
        recorded(&tight().with("commandlog-reply-larger-than", "-1").with("commandlog-large-reply-max-len", "128")),
        recorded(&tight().with("commandlog-request-larger-than", "0").with("commandlog-large-request-max-len", "0")),
        recorded(&Redis { clients: "id=5 addr=10.0.0.3:9 flags=O user=eve\n", ..tight() }),
        recorded(&tight().refusing(&["CONFIG GET", "CLIENT LIST"])),
    ];
    expect![[r#"
        Some(([], []))
        Some((["the slow log repeats values of all commands, the last 128, in memory"], []))
        Some((["the command log repeats values of commands whose reply has more than 0 bytes, the last 128, in memory"], []))
        Some(([], []))
        Some(([], []))
        Some((["MONITOR shows every command with its values to `eve` at 10.0.0.3:9"], []))
        Some(([], ["the slow log (refused: NOPERM User x has no permissions to run the 'CONFIG GET' command)", "whether a client runs MONITOR (refused: NOPERM User x has no permissions to run the 'CLIENT LIST' command)"]))
    "#]].assert_eq(&text.concat());
    let passwords = tight().seen(|server, setup| recording(server, setup, Sent::Passwords).expect("not asked"));
    assert!(passwords.is_none());
}

fn judged(ground: &Ground, lines: &[&str]) -> String {
    let accounts: Vec<Account> = lines.iter().filter_map(|line| Account::read(line)).collect();
    let judgement = limits(&accounts, ground);
    format!("{}, {}: {}\n", judgement.state.words(), judgement.scope.words(), judgement.seen)
}

#[test]
fn what_accounts_become_is_named_with_its_way() {
    let default = format!("user default on #{} ~* &* +@all", hash_of("root"));
    let shown = || Ground { shown: vec![("requirepass", hash_of("root"))], ..Ground::default() };
    let app = "user app on #aa ~app:* resetchannels -@all +@read +@write -@dangerous";
    let text = [
        judged(&shown(), &[&default, app]),
        judged(&shown(), &[&default, &format!("{app} +config|get")]),
        judged(
            &Ground { missing: vec!["config|get", "config|set"], ..shown() },
            &[&default, &format!("{app} +config")],
        ),
        judged(&Ground::default(), &[&default, "user app on #aa ~app:* +@all"]),
        judged(&Ground::default(), &[&default, &format!("user app on #{} ~app:* +@read", hash_of("root"))]),
        judged(&Ground::default(), &[&default, app, "user metrics on nopass +config|set"]),
        judged(&Ground::default(), &[&default, app, "user metrics on #bb +info +monitor +flushall"]),
        judged(&Ground::default(), &[&default, app, "user replica on #bb +psync +replconf +ping"]),
        judged(&Ground { doubts: vec!["x (refused)".to_owned()], ..Ground::default() }, &[&default, app]),
    ];
    expect![[r#"
        enforced, whole server: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); the names of all keys are shown to app (scan)
        off, whole server: 2 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); app → default (config|get shows requirepass, its password) → everything (all keys and commands): ACL SETUSER … -@admin -@dangerous, with back what it needs
        enforced, whole server: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); the names of all keys are shown to app (scan); commands that this server does not have: config|get, config|set
        off, whole server: 2 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); app → everything (acl|setuser gives itself the rest): ACL SETUSER … -@admin -@dangerous, with back what it needs
        off, whole server: 2 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); app → default (it has the same password) → everything (all keys and commands): ACL SETUSER … -@admin -@dangerous, with back what it needs; with the same password: default and app
        off, whole server: 3 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); app → metrics (nopass: every client can log in as it) → default (config|set requirepass changes its password) → everything (all keys and commands); metrics → default (config|set requirepass changes its password) → everything (all keys and commands): ACL SETUSER … -@admin -@dangerous, with back what it needs
        available but not enforced, whole server: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); beyond its rights: `metrics` reads keys of others by monitor; `metrics` removes keys of others by flushall: ACL SETUSER … -@admin -@dangerous, with back what it needs; the names of all keys are shown to app (scan)
        enforced, whole server: 1 of 3 accounts may do everything (ACL LIST): default → everything (all keys and commands); for replicas, which read all data: replica; the names of all keys are shown to app (scan)
        enforced, this account: 1 of 2 accounts may do everything (ACL LIST): default → everything (all keys and commands); the names of all keys are shown to app (scan); not judged: x (refused)
    "#]].assert_eq(&text.concat());
}

#[test]
fn a_list_without_passwords_is_that_of_a_service_that_checks_clients_by_something_else() {
    // ElastiCache with accounts of IAM alone.
    let lines = ["user default off -@all", "user app on ~* &* +@all"];
    expect!["cannot tell, this account: 0 of 0 accounts may do everything (ACL LIST)"]
        .assert_eq(judged(&Ground::default(), &lines).trim());
    let accounts: Vec<Account> = lines.iter().filter_map(|line| Account::read(line)).collect();
    let Rules { exceptions, doubts, .. } = of_passwords(&accounts, false);
    assert_eq!((exceptions.len(), doubts.len()), (0, 1));
}

#[test]
fn passwords_that_everybody_tries_are_named() {
    let accounts: Vec<Account> = ["", "foobared", "c", "good"]
        .iter()
        .zip(["a", "b", "c", "d"])
        .filter_map(|(password, name)| Account::read(&format!("user {name} on #{} +@all", hash_of(password))))
        .collect();
    expect!["4 accounts of ACL LIST: 3 exceptions: `a` has an empty password; `b` has the password of the sample configuration; `c` has its name as its password: ACL SETUSER … resetpass >PASSWORD, or off"].assert_eq(&of_passwords(&accounts, false).words());
}

#[test]
fn a_password_asked_for_in_plaintext_is_not_sent() {
    let asks = b"-NOAUTH Authentication required.\r\n+OK\r\n";
    expect!["available but not enforced: TLSv1.3; plaintext: served too"]
        .assert_eq(&asked_in_plaintext(asks, plaintext));
    expect!["enforced: TLSv1.3; plaintext: refused (at the first command: the server closed the connection: a port for TLS (`tls-port`) speaks nothing else; plaintext has its own port (`port`): give it by its own URL (on a command line, `--plain URL`))"].assert_eq(&tried_in_plaintext(b"", plaintext).0);
}
