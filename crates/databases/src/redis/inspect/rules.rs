//! What the rules of an account allow (documentation, "ACL"), read from its line in `ACL LIST`.

/// The commands with which an account gets beyond its own keys, with their categories, which are the same in every
/// version from 6 on. Categories of modules or later versions grant none of them.
const LEADING: [(&str, &[&str]); 32] = [
    ("acl|deluser", ADMIN),
    ("acl|getuser", ADMIN),
    ("acl|list", ADMIN),
    ("acl|setuser", ADMIN),
    ("cluster|delslots", ADMIN),
    ("cluster|failover", ADMIN),
    ("cluster|forget", ADMIN),
    ("cluster|meet", ADMIN),
    ("cluster|reset", ADMIN),
    ("cluster|setslot", ADMIN),
    // Valkey 8.1.
    ("commandlog|get", ADMIN),
    ("config|get", ADMIN),
    ("config|set", ADMIN),
    ("debug", ADMIN),
    ("flushall", WRITES),
    ("flushdb", WRITES),
    ("function|load", SCRIPTS),
    ("function|restore", SCRIPTS),
    ("keys", &["keyspace", "read", "slow", "dangerous"]),
    ("module|load", ADMIN),
    ("module|loadex", ADMIN),
    ("monitor", ADMIN),
    ("psync", ADMIN),
    ("randomkey", NAMES),
    ("replicaof", ADMIN),
    ("scan", NAMES),
    ("shutdown", ADMIN),
    ("slaveof", ADMIN),
    ("slowlog|get", ADMIN),
    ("sort", &["write", "set", "sortedset", "list", "slow", "dangerous"]),
    ("swapdb", &["keyspace", "write", "fast", "dangerous"]),
    ("sync", ADMIN),
];
const ADMIN: &[&str] = &["admin", "slow", "dangerous"];
const WRITES: &[&str] = &["keyspace", "write", "slow", "dangerous"];
const NAMES: &[&str] = &["keyspace", "read", "slow"];
const SCRIPTS: &[&str] = &["write", "slow", "scripting"];

/// Names of [`LEADING`].
pub fn leading() -> impl Iterator<Item = &'static str> {
    LEADING.iter().map(|(command, _)| *command)
}

/// An account that is on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// It logs in without a password (`nopass`).
    pub comes_freely: bool,
    /// A certificate that names it logs in as it, without a password.
    pub by_certificate: bool,
    /// SHA-256 of each of its passwords, as text. Without any, `nopass` or a certificate, no login with it is possible.
    pub hashes: Vec<String>,
    /// Those of [`LEADING`] that it may send.
    pub leading: Vec<&'static str>,
    /// It may send every command.
    pub every_command: bool,
    /// It may read every key, with some command or other.
    pub reads_all: bool,
    /// It may write every key.
    pub writes_all: bool,
    /// It has keys of its own.
    pub has_keys: bool,
}

impl Account {
    /// The account in a line of `ACL LIST`: `user NAME on|off`, then `nopass` or password hashes, then rights; from
    /// version 7 on further rights in parentheses. `None` if it is off.
    pub fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = (*words.get(1)?).to_owned();
        // An account may be called `on` or `nopass`.
        let words = words.get(2..)?;
        let comes_freely = words.contains(&"nopass");
        let hashes: Vec<String> = words.iter().filter_map(|word| word.strip_prefix('#')).map(str::to_owned).collect();
        if !words.contains(&"on") {
            return None;
        }
        let mut account = Self { name, comes_freely, hashes, ..Self::default() };
        let mut rights = Rights::default();
        // The own rights and each selector are alternatives; their permissions do not combine within one command.
        for word in words {
            if let Some(first) = word.strip_prefix('(') {
                account.add(&rights);
                rights = Rights::default();
                rights.take(first.trim_end_matches(')'));
            } else {
                rights.take(word.trim_end_matches(')'));
            }
        }
        account.add(&rights);
        Some(account)
    }

    fn add(&mut self, rights: &Rights<'_>) {
        let more = LEADING.iter().filter(|(command, categories)| rights.allow(command, categories));
        self.leading.extend(more.map(|(command, _)| *command));
        self.leading.sort_unstable();
        self.leading.dedup();
        let commands = rights.commands.iter().any(|rule| rule.starts_with('+'));
        self.every_command |= rights.commands.last() == Some(&"+@all");
        self.has_keys |= rights.has_keys;
        self.reads_all |= commands && rights.reads_all;
        self.writes_all |= commands && rights.writes_all;
    }

    /// It can be used for a login.
    pub fn is_open(&self) -> bool {
        self.comes_freely || self.by_certificate || !self.hashes.is_empty()
    }

    /// It may send `command`, one of [`LEADING`].
    pub fn may(&self, command: &str) -> bool {
        self.leading.contains(&command)
    }

    /// All keys and all commands: there is nothing more to grant.
    pub fn has_everything(&self) -> bool {
        self.every_command && self.reads_all && self.writes_all
    }

    /// Its rules are those of a replica, which is meant to get all data.
    pub fn is_for_replicas(&self) -> bool {
        self.leading.iter().all(|command| ["psync", "sync"].contains(command)) && !self.has_keys
    }
}

/// One set of rights: the account's own, or those of a selector.
#[derive(Debug, Default)]
struct Rights<'a> {
    /// Rules about commands, in their order.
    commands: Vec<&'a str>,
    has_keys: bool,
    reads_all: bool,
    writes_all: bool,
}

impl<'a> Rights<'a> {
    fn take(&mut self, rule: &'a str) {
        self.has_keys |= rule.starts_with(['~', '%']) || rule == "allkeys";
        let all_keys = rule.split_once('~').filter(|(_, keys)| fits_every_key(keys));
        match (all_keys.map(|(how, _)| how), rule) {
            (Some("" | "%RW" | "%WR"), _) | (_, "allkeys") => (self.reads_all, self.writes_all) = (true, true),
            (Some("%R"), _) => self.reads_all = true,
            (Some("%W"), _) => self.writes_all = true,
            (_, "resetkeys") => (self.reads_all, self.writes_all) = (false, false),
            (_, "allcommands") => self.commands.push("+@all"),
            (_, "nocommands") => self.commands.push("-@all"),
            (_, rule) if rule.starts_with(['+', '-']) => self.commands.push(rule),
            _ => {}
        }
    }

    /// The last rule that is about `command` decides.
    fn allow(&self, command: &str, categories: &[&str]) -> bool {
        let container = command.split_once('|').map(|(container, _)| container);
        let about = |rule: &&&str| match rule[1..].strip_prefix('@') {
            Some(category) => category == "all" || categories.contains(&category),
            None => &rule[1..] == command || Some(&rule[1..]) == container,
        };
        self.commands.iter().rev().find(about).is_some_and(|rule| rule.starts_with('+'))
    }
}

/// True for a pattern of stars with at most one `?`: it fits every key but the empty one.
fn fits_every_key(pattern: &str) -> bool {
    let count = |sign: u8| pattern.bytes().filter(|it| *it == sign).count();
    let (stars, others) = (count(b'*'), count(b'?'));
    stars > 0 && others < 2 && stars + others == pattern.len()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn read(rules: &str) -> String {
        let Some(account) = Account::read(&format!("user app {rules}")) else { return format!("{rules}: nobody\n") };
        let Account { leading, every_command, reads_all, writes_all, .. } = &account;
        let all = [(*every_command, "commands"), (*reads_all, "reads"), (*writes_all, "writes")];
        let mut all: Vec<_> = all.iter().filter(|(has, _)| *has).map(|(_, what)| *what).collect();
        all.extend((!account.is_open()).then_some("no login"));
        format!("{rules}: [{}] {}\n", all.join(" "), leading.join(" "))
    }

    #[test]
    fn rights_of_an_account_and_its_selectors_add_up() {
        let account = |rules: &str| Account::read(&format!("user app on #aa {rules}")).expect("it is on");
        for rules in ["~* +@all", "allkeys allcommands", "~* +@all (~* +@all)", "%R~* %W~* +@all"] {
            assert!(account(rules).has_everything(), "{rules}");
        }
        for rules in ["~* +get", "~* +@all -debug", "%R~* +@all", "%W~* +@all", "%W~* +set", "~a +@all", "~* -@all"] {
            assert!(!account(rules).has_everything(), "{rules}");
        }
        let reach = |rules: &str| {
            let Account { reads_all, writes_all, .. } = account(rules);
            [reads_all, writes_all]
        };
        assert_eq!(reach("~* +get (~* +set)"), [true; 2]);
        assert_eq!(reach("~* -@all"), [false; 2], "no command reaches a key");
        for rules in ["+psync +replconf +ping", "resetkeys +sync"] {
            assert!(account(rules).is_for_replicas(), "{rules}");
        }
        for rules in ["~a +psync", "%R~* +psync", "allkeys +psync", "~a +psync (~b +get)", "+psync +monitor"] {
            assert!(!account(rules).is_for_replicas(), "{rules}");
        }
    }

    #[test]
    fn an_account_is_no_rule_by_its_name() {
        let told = |line: &str| Account::read(line).map(|account| account.comes_freely);
        assert_eq!(told("user on off nopass ~* +@all"), None);
        assert_eq!(told("user nopass on #aa ~* +@all"), Some(false));
        assert_eq!(told("user app on nopass ~* +@all"), Some(true));
    }

    #[test]
    fn a_pattern_of_every_key_is_known_however_it_is_written() {
        for (pattern, expected) in [
            ("*", true),
            ("**", true),
            ("?*", true),
            ("*?", true),
            ("??*", false),
            ("?", false),
            ("a*", false),
            ("[a-z]*", false),
            ("", false),
        ] {
            assert_eq!(fits_every_key(pattern), expected, "{pattern}");
            let account = Account::read(&format!("user app on #aa ~{pattern} +@all")).expect("it is on");
            assert_eq!(account.has_everything(), expected, "{pattern}");
        }
    }

    #[test]
    fn the_last_rule_about_a_command_decides() {
        let text: String = [
            "on nopass ~* &* +@all",
            "off nopass ~* &* +@all",
            "on ~* &* +@all",
            "on #aa ~app:* resetchannels +@all",
            "on #aa ~* +@all -@dangerous",
            "on #aa ~* +@all -@admin",
            "on #aa ~* +@all -@dangerous +config|get",
            "on #aa ~* -@all +@admin -config -acl|setuser",
            "on #aa ~* -@all +acl|whoami +config -config|set",
            "on #aa ~** %R~a* -@all +scan",
            "on #aa resetkeys %R~* resetchannels -@all +@read (%W~* resetchannels -@all +set) (~x resetchannels -@all +acl|setuser)",
            "on #aa resetchannels -@all +psync +replconf +ping",
        ]
        .map(read)
        .concat();
        expect![[r#"
            on nopass ~* &* +@all: [commands reads writes] acl|deluser acl|getuser acl|list acl|setuser cluster|delslots cluster|failover cluster|forget cluster|meet cluster|reset cluster|setslot commandlog|get config|get config|set debug flushall flushdb function|load function|restore keys module|load module|loadex monitor psync randomkey replicaof scan shutdown slaveof slowlog|get sort swapdb sync
            off nopass ~* &* +@all: nobody
            on ~* &* +@all: [commands reads writes no login] acl|deluser acl|getuser acl|list acl|setuser cluster|delslots cluster|failover cluster|forget cluster|meet cluster|reset cluster|setslot commandlog|get config|get config|set debug flushall flushdb function|load function|restore keys module|load module|loadex monitor psync randomkey replicaof scan shutdown slaveof slowlog|get sort swapdb sync
            on #aa ~app:* resetchannels +@all: [commands] acl|deluser acl|getuser acl|list acl|setuser cluster|delslots cluster|failover cluster|forget cluster|meet cluster|reset cluster|setslot commandlog|get config|get config|set debug flushall flushdb function|load function|restore keys module|load module|loadex monitor psync randomkey replicaof scan shutdown slaveof slowlog|get sort swapdb sync
            on #aa ~* +@all -@dangerous: [reads writes] function|load function|restore randomkey scan
            on #aa ~* +@all -@admin: [reads writes] flushall flushdb function|load function|restore keys randomkey scan sort swapdb
            on #aa ~* +@all -@dangerous +config|get: [reads writes] config|get function|load function|restore randomkey scan
            on #aa ~* -@all +@admin -config -acl|setuser: [reads writes] acl|deluser acl|getuser acl|list cluster|delslots cluster|failover cluster|forget cluster|meet cluster|reset cluster|setslot commandlog|get debug module|load module|loadex monitor psync replicaof shutdown slaveof slowlog|get sync
            on #aa ~* -@all +acl|whoami +config -config|set: [reads writes] config|get
            on #aa ~** %R~a* -@all +scan: [reads writes] scan
            on #aa resetkeys %R~* resetchannels -@all +@read (%W~* resetchannels -@all +set) (~x resetchannels -@all +acl|setuser): [reads writes] acl|setuser keys randomkey scan
            on #aa resetchannels -@all +psync +replconf +ping: [] psync
        "#]].assert_eq(&text);
    }
}
