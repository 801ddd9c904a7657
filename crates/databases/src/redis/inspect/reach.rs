//! What each account can become on one server, by the commands that lead to further rights.

use std::collections::{BTreeMap, BTreeSet};

use ring::digest::{SHA256, digest};
use tithe_machine::{fault::Fault, secret::hex};
use tithe_plugin::reach::Reach;

use super::{
    super::{
        connection::{RedisConnection, Reply},
        store::{info, is_node},
    },
    rules::{Account, leading},
};

/// What decides how far the accounts of a server can get.
#[derive(Debug, Default)]
pub struct Ground {
    /// Commands that an administrator has removed (`rename-command NAME ""`).
    pub missing: Vec<&'static str>,
    /// Commands that an administrator has renamed; rules do not apply to the new names.
    pub renamed: Vec<String>,
    /// Settings that hold a password, each with its hash, as `CONFIG GET` shows them to accounts that may use it.
    pub shown: Vec<(&'static str, String)>,
    /// `MODULE LOAD` is open.
    pub loads_modules: bool,
    /// `CONFIG SET` chooses where files are written.
    pub chooses_files: bool,
    /// `SORT` reads keys beyond those of the account (before version 7).
    pub sort_reads_all: bool,
    /// `DEBUG` is open.
    pub debugs: bool,
    /// Functions are loaded.
    pub has_functions: bool,
    /// It is a node of a cluster, which follows no server by `REPLICAOF` and has one database.
    pub is_node: bool,
    /// `CONFIG` was removed, so what the file of settings opened is not shown.
    pub hides_settings: bool,
    /// What could not be read, each with the reason.
    pub doubts: Vec<String>,
}

impl Ground {
    /// Asks the server.
    pub fn ask(connection: &mut RedisConnection, major: u32) -> Self {
        let mut ground = Self { sort_reads_all: major < 7, ..Self::default() };
        match info(connection, "memory", "number_of_functions") {
            Ok(count) => ground.has_functions = count.is_some_and(|count| count != "0"),
            Err(fault) => ground.doubts.push(format!("whether functions are loaded ({fault})")),
        }
        ground.is_node = is_node(connection).unwrap_or(false);
        match commands(connection) {
            Ok((missing, renamed)) => (ground.missing, ground.renamed) = (missing, renamed),
            Err(fault) => ground.doubts.push(format!("which commands were taken away ({fault})")),
        }
        if !ground.has("config|get") {
            // Without `CONFIG GET` no account reads a setting, and those below cannot be changed while the server runs.
            (ground.loads_modules, ground.debugs, ground.hides_settings) = (major < 7, major < 7, major >= 7);
            return ground;
        }
        for name in ["requirepass", "masterauth"] {
            match connection.setting(name) {
                Ok(value) => {
                    let value = value.filter(|value| !value.is_empty());
                    ground.shown.extend(value.map(|value| (name, hash_of(&value))));
                }
                Err(fault) => ground.doubts.push(format!("whether {name} is set ({fault})")),
            }
        }
        // Before version 7 both were open and had no setting.
        let mut open = |name: &str| match connection.setting(name) {
            Ok(value) => value.is_none_or(|value| value != "no"),
            Err(fault) => {
                ground.doubts.push(format!("{name} ({fault})"));
                major < 7
            }
        };
        (ground.loads_modules, ground.debugs) = (open("enable-module-command"), open("enable-debug-command"));
        ground.chooses_files = open("enable-protected-configs");
        ground
    }

    fn has(&self, command: &str) -> bool {
        !self.missing.contains(&command)
    }

    /// Those of `accounts` that would get further by settings that are not shown, each with its command.
    pub fn hidden<'a>(&self, accounts: impl Iterator<Item = &'a Account>) -> Vec<String> {
        if !self.hides_settings {
            return Vec::new();
        }
        let leads = |account: &Account| {
            let commands = ["module|load", "module|loadex", "debug"].into_iter();
            commands.filter(|command| account.may(command) && self.has(command)).collect::<Vec<_>>()
        };
        let described = |(account, commands): (&Account, Vec<&str>)| {
            format!("whether the settings, which are not shown, let `{}` use {}", account.name, commands.join(" and "))
        };
        accounts.map(|it| (it, leads(it))).filter(|(_, commands)| !commands.is_empty()).map(described).collect()
    }
}

/// SHA-256 of a password, as in `ACL LIST`.
pub fn hash_of(password: &str) -> String {
    hex(digest(&SHA256, password.as_bytes()).as_ref())
}

/// The commands that lead further and were removed, and those that were renamed.
fn commands(connection: &mut RedisConnection) -> Result<(Vec<&'static str>, Vec<String>), Fault> {
    let container = |command: &'static str| command.split('|').next().unwrap_or(command);
    let names: BTreeSet<&'static str> = leading().map(container).collect();
    let list = |reply| match reply {
        Reply::Array(all) => Ok(all),
        _ => Err(Fault::Protocol("COMMAND gave no list".to_owned())),
    };
    let asked: Vec<&str> = names.iter().copied().collect();
    let told = list(connection.call(&[&["COMMAND", "INFO"], &asked[..]].concat())?)?;
    let absent: Vec<&str> =
        names.iter().zip(&told).filter(|(_, told)| matches!(told, Reply::Nothing)).map(|(name, _)| *name).collect();
    if absent.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    // A command is queried by its current name, but listed by its original name.
    let all = list(connection.call(&["COMMAND"])?)?;
    let first = |entry: &Reply| match entry {
        Reply::Array(parts) => parts.first().and_then(Reply::text),
        _ => None,
    };
    let listed: BTreeSet<String> = all.iter().filter_map(first).collect();
    let (renamed, gone): (Vec<&str>, Vec<&str>) = absent.into_iter().partition(|name| listed.contains(*name));
    let missing = leading().filter(|command| gone.contains(&container(command))).collect();
    Ok((missing, renamed.into_iter().map(str::to_owned).collect()))
}

/// The goal of an account that can grant itself every right.
pub const EVERYTHING: &str = "everything";

/// Which of `accounts` becomes which, and which become [`EVERYTHING`].
pub fn reach(accounts: &[Account], ground: &Ground) -> Reach {
    let mut reach = Reach::default();
    let mut goes = BTreeSet::new();
    let has_default = accounts.iter().any(|account| account.name == "default");
    let owner = |hash: &String| accounts.iter().find(|account| account.hashes.contains(hash));
    let shown: Vec<(&str, &str)> =
        ground.shown.iter().filter_map(|(setting, hash)| Some((*setting, owner(hash)?.name.as_str()))).collect();
    for account in accounts {
        let may = |command: &str| account.may(command) && ground.has(command);
        let mut edge = |to: &str, reason: &str| {
            if account.name != to {
                goes.insert(account.name.as_str());
                reach.edge(&account.name, to, reason);
            }
        };
        if account.has_everything() {
            edge(EVERYTHING, "all keys and commands");
        } else if may("acl|setuser") {
            edge(EVERYTHING, "acl|setuser gives itself the rest");
        }
        if ground.loads_modules && (may("module|load") || may("module|loadex")) {
            edge(EVERYTHING, "module|load runs code in the server");
        }
        if may("config|set") {
            if ground.chooses_files {
                edge(EVERYTHING, "config|set dir writes files as the server");
            }
            if has_default {
                edge("default", "config|set requirepass changes its password");
            }
        }
        if may("config|get") {
            for (setting, owner) in &shown {
                edge(owner, &format!("config|get shows {setting}, its password"));
            }
        }
    }
    // A client that knows the password of one of them logs in as any of them.
    for owners in owners_of_one_password(accounts) {
        for other in &owners[1..] {
            reach.edge(owners[0], other, SAME_PASSWORD);
            reach.edge(other, owners[0], SAME_PASSWORD);
        }
    }
    // One such account is enough for everyone.
    if let Some(open) = accounts.iter().find(|account| account.comes_freely && goes.contains(account.name.as_str())) {
        let others = accounts.iter().filter(|account| account.name != open.name);
        others.for_each(|other| reach.edge(&other.name, &open.name, "nopass: every client can log in as it"));
    }
    reach
}

/// Why an account becomes another.
const SAME_PASSWORD: &str = "it has the same password";

/// Accounts that share a password, in words.
pub fn shared_passwords(accounts: &[Account]) -> Vec<String> {
    owners_of_one_password(accounts).iter().map(|names| names.join(" and ")).collect()
}

/// The names of the accounts that share a password, two or more of each: hashes have no salt, so they are equal.
fn owners_of_one_password(accounts: &[Account]) -> Vec<Vec<&str>> {
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for account in accounts {
        account.hashes.iter().for_each(|hash| owners.entry(hash).or_default().push(&account.name));
    }
    owners.into_values().filter(|names| names.len() > 1).collect()
}

/// The command that shows `account` the names of keys that it may not read.
pub fn shows_names(account: &Account, ground: &Ground) -> Option<String> {
    let command = ["scan", "keys", "randomkey"].into_iter().find(|name| account.may(name) && ground.has(name))?;
    (!account.reads_all).then(|| format!("{} ({command})", account.name))
}

/// How `account`, which does not become everything, still bypasses its rules.
pub fn detours(account: &Account, ground: &Ground) -> Vec<String> {
    let first = |commands: &[&'static str]| {
        commands.iter().copied().find(|command| account.may(command) && ground.has(command))
    };
    let name = &account.name;
    let mut detours = Vec::new();
    let mut reading = vec!["monitor", "psync", "sync", "slowlog|get", "commandlog|get"];
    if ground.sort_reads_all {
        reading.push("sort");
    }
    if let Some(command) = first(&reading).filter(|_| !account.reads_all && !account.is_for_replicas()) {
        detours.push(format!("`{name}` reads keys of others by {command}"));
    }
    if let Some(command) = first(&["acl|list", "acl|getuser"]) {
        detours.push(format!("`{name}` reads the hashes of all passwords, which have no salt, by {command}"));
    }
    if let Some(command) = first(&["acl|deluser"]) {
        detours.push(format!("`{name}` removes other accounts by {command}"));
    }
    let removing = ["flushall", "flushdb", "swapdb"];
    let removing = if ground.is_node { &removing[..2] } else { &removing[..] };
    if let Some(command) = first(removing).filter(|_| !account.writes_all) {
        detours.push(format!("`{name}` removes keys of others by {command}"));
    }
    if let Some(command) = first(&["replicaof", "slaveof"]).filter(|_| !ground.is_node) {
        detours.push(format!("`{name}` replaces all data by another server's with {command}"));
    }
    let of_cluster: Vec<&str> = leading().filter(|command| command.starts_with("cluster|")).collect();
    if let Some(command) = first(&of_cluster).filter(|_| ground.is_node) {
        detours.push(format!("`{name}` changes which servers have the cluster's keys by {command}"));
    }
    if let Some(command) = first(&["config|set"]) {
        detours.push(format!("`{name}` changes the server's settings by {command}"));
    }
    let stopping = ["debug", "shutdown"];
    if let Some(command) = first(if ground.debugs { &stopping[..] } else { &stopping[1..] }) {
        detours.push(format!("`{name}` stops the server by {command}"));
    }
    if let Some(command) = first(&["function|load", "function|restore"]).filter(|_| ground.has_functions) {
        detours.push(format!("`{name}` changes functions, which run with the rights of the caller, by {command}"));
    }
    detours
}
