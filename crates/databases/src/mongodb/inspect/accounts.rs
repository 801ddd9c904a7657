//! What accounts can become, by the roles that they have.
//!
//! Built-in roles are judged by the documentation ("Built-In Roles"), user-defined ones by their privileges, which the
//! server reports.

use std::collections::{BTreeMap, BTreeSet};

use mongodb::bson::{Bson, Document, doc};
use tithe_machine::fault::Fault;
use tithe_plugin::{
    matrix::State,
    reach::{Reach, Ways},
};

use super::super::link::Link;
use crate::{
    findings::{
        MONGODB_AUTHZ_ADMINISTRATORS, MONGODB_AUTHZ_EVERY_DATABASE, MONGODB_AUTHZ_REACHABLE_ROOT,
        MONGODB_AUTHZ_READS_PASSWORDS,
    },
    inspect::{Judgement, counted, named, of_administrators},
};

/// The roles that an account needs to read all accounts and roles.
pub const RIGHT: &str = "the account needs viewUser and viewRole on every database (userAdminAnyDatabase has them)";

/// The goal of ways to every right.
const EVERYTHING: &str = "everything";
/// That of ways to hashes of passwords.
const HASHES: &str = "hashes";
/// That of ways to what all databases hold.
const DOCUMENTS: &str = "documents of every database";
/// That of ways to what is written to all databases.
const WRITES: &str = "writes to every database";

/// Built-in roles that lead to all privileges, and why; the first two have them directly.
const UNLIMITED: [(&str, &str); 6] = [
    ("root@admin", "every right"),
    ("__system@admin", "every right, meant for members alone"),
    ("dbOwner@admin", "grants itself root"),
    ("userAdmin@admin", "grants itself root"),
    ("userAdminAnyDatabase@admin", "grants itself root"),
    ("restore@admin", "writes admin.system.users, which has every account's roles"),
];
/// How many of them may do everything themselves.
const ADMINISTRATORS: usize = 2;

/// Other built-in roles of every database: no way leads on from them, except to the accounts of their database.
const LIMITED: [&str; 5] = ["read", "readWrite", "dbAdmin", "dbOwner", "userAdmin"];
/// Those of them that set the passwords of the accounts of their database.
const SETS_PASSWORDS: [&str; 2] = ["dbOwner", "userAdmin"];
/// Those of `admin` alone.
const LIMITED_OF_ADMIN: [&str; 10] = [
    "clusterAdmin",
    "clusterManager",
    "clusterMonitor",
    "hostManager",
    "backup",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "dbAdminAnyDatabase",
    "enableSharding",
    "directShardOperations",
];
/// Those that read all databases and no hashes.
const READERS: [&str; 2] = ["readAnyDatabase@admin", "readWriteAnyDatabase@admin"];
/// Those that read the database `local`, in which a member of a replica set has its oplog
/// (`addClusterMonitorPrivileges` in MongoDB's source).
const READERS_OF_LOCAL: [&str; 5] =
    ["read@local", "readWrite@local", "dbOwner@local", "clusterMonitor@admin", "clusterAdmin@admin"];
/// Why these roles read every write, and roles of users with the same privilege.
const READS_OPLOG: &str = "find on local.oplog.rs";
/// The one that reads the hashes of passwords.
const BACKUP: &str = "backup@admin";
/// Why it does, and own roles do.
const READS_HASHES: &str = "find on admin.system.users";

/// How many roles are requested at a time.
const AT_A_TIME: usize = 200;

/// Accounts and the roles that they have, all by name and database: `app@shop`.
#[derive(Debug, Default)]
pub struct Accounts {
    users: Vec<User>,
    /// Own roles that accounts have, directly or by other roles.
    roles: BTreeMap<String, Role>,
}

#[derive(Debug)]
struct User {
    name: String,
    roles: Vec<String>,
    /// Ways in which it can prove its password; none for one that has no password here.
    mechanisms: Vec<String>,
}

#[derive(Debug, Default)]
struct Role {
    roles: Vec<String>,
    privileges: Vec<Privilege>,
}

/// Some actions on a resource. Empty names mean all databases, and all collections except those of the system.
#[derive(Debug)]
struct Privilege {
    any_resource: bool,
    database: Option<String>,
    collection: Option<String>,
    actions: BTreeSet<String>,
}

impl Accounts {
    /// Reads all accounts and, of roles, those that some account has.
    ///
    /// # Errors
    /// The server's refusal.
    pub fn read(link: &Link) -> Result<Self, Fault> {
        let told = link.admin(doc! { "usersInfo": { "forAllDBs": true } })?;
        let users: Vec<User> = documents(&told, "users").filter_map(User::read).collect();
        let mut roles = BTreeMap::new();
        let mut wanted: BTreeSet<String> = users.iter().flat_map(|user| user.roles.iter().cloned()).collect();
        while !wanted.is_empty() {
            let own: Vec<String> = wanted.iter().filter(|name| !is_built_in(name)).cloned().collect();
            for names in own.chunks(AT_A_TIME) {
                let names: Vec<Document> = names.iter().filter_map(|name| of_name(name)).collect();
                let told = link.admin(doc! { "rolesInfo": names, "showPrivileges": true })?;
                roles
                    .extend(documents(&told, "roles").filter_map(|role| Some((name(role, "role")?, Role::read(role)))));
            }
            // A role that the server does not return is requested once.
            for name in own {
                roles.entry(name).or_default();
            }
            let next = roles.values().flat_map(|role: &Role| role.roles.iter());
            wanted = next.filter(|name| !is_built_in(name) && !roles.contains_key(*name)).cloned().collect();
        }
        Ok(Self { users, roles })
    }

    /// True if there is no account.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Accounts that can prove their password by SCRAM-SHA-1 and in no other way.
    pub fn by_sha1_alone(&self) -> Vec<String> {
        let old = self.users.iter().filter(|user| user.mechanisms == ["SCRAM-SHA-1"]);
        old.map(|user| format!("`{}`", user.name)).collect()
    }

    /// Names of the accounts for which `is_so` is true; it takes their names in the graph.
    fn names_if(&self, is_so: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
        self.users.iter().map(|user| user.name.as_str()).filter(move |name| is_so(&account(name)))
    }

    /// Which account becomes which, and which reaches one of the goals.
    fn reach(&self, has_oplog: bool) -> Reach {
        let mut reach = Reach::default();
        for (role, reason) in UNLIMITED {
            reach.edge(role, EVERYTHING, reason);
        }
        reach.edge(BACKUP, HASHES, READS_HASHES);
        for role in READERS {
            reach.edge(role, DOCUMENTS, "reads them");
        }
        for role in READERS_OF_LOCAL.into_iter().filter(|_| has_oplog) {
            reach.edge(role, WRITES, READS_OPLOG);
        }
        for user in &self.users {
            let account = account(&user.name);
            user.roles.iter().for_each(|role| reach.edge(&account, role, "role"));
            let database = user.name.rsplit('@').next().unwrap_or_default();
            reach.edge(&all_of(database), &account, "one of them");
            reach.edge(&all_of(""), &account, "one of them");
        }
        let of_users = self.users.iter().flat_map(|user| &user.roles);
        let given: BTreeSet<&String> = of_users.chain(self.roles.values().flat_map(|role| &role.roles)).collect();
        for name in given {
            if let Some((role, database)) = name.rsplit_once('@').filter(|(role, _)| SETS_PASSWORDS.contains(role)) {
                reach.edge(name, &all_of(database), format!("{role} sets their passwords"));
            }
        }
        for (name, role) in &self.roles {
            role.roles.iter().for_each(|inherited| reach.edge(name, inherited, "inherits it"));
            for privilege in &role.privileges {
                if let Some(reason) = privilege.gives_everything() {
                    reach.edge(name, EVERYTHING, reason);
                }
                if privilege.reads_hashes() {
                    reach.edge(name, HASHES, READS_HASHES);
                }
                if privilege.database_if("find") == Some("") {
                    reach.edge(name, DOCUMENTS, "find on every database");
                }
                if has_oplog && privilege.reads_oplog() {
                    reach.edge(name, WRITES, READS_OPLOG);
                }
                if let Some(database) = privilege.database_if("changePassword") {
                    reach.edge(name, &all_of(database), "changePassword");
                }
            }
        }
        reach
    }

    /// Which accounts have all privileges, which read password hashes, and which read every database. A server that
    /// `has_oplog` keeps all writes in one collection: accounts that read it are named, too.
    pub fn judge(&self, has_oplog: bool) -> Judgement {
        let mut reach = self.reach(has_oplog);
        let all = self.users.len();
        let (mut unlimited, mut becomes) = (Vec::new(), false);
        let ways = reach.ways([EVERYTHING]);
        for user in &self.users {
            let Some(way) = ways.of(&account(&user.name)) else { continue };
            unlimited.push(way.to_string().trim_start_matches("account ").to_owned());
            let direct = way.steps.first().map(|(to, _)| *to);
            becomes |= !UNLIMITED[..ADMINISTRATORS].iter().any(|(role, _)| Some(*role) == direct);
        }
        let mut known: BTreeSet<&str> = self.names_if(|account| ways.has(account)).collect();
        let ways = reach.ways([HASHES]);
        let reading: Vec<String> = self.users.iter().filter_map(|user| way_of(user, &ways)).collect();
        known.extend(self.names_if(|account| ways.has(account)));
        let ways = reach.ways([DOCUMENTS]);
        let others = self.users.iter().filter(|user| !known.contains(user.name.as_str()));
        let everywhere: Vec<String> = others.filter_map(|user| way_of(user, &ways)).collect();
        known.extend(self.names_if(|account| ways.has(account)));
        let ways = reach.ways([WRITES]);
        let others = self.users.iter().filter(|user| !known.contains(user.name.as_str()));
        let written: Vec<String> = others.filter_map(|user| way_of(user, &ways)).collect();
        let accounts = counted(all, "account");
        let mut seen = format!("{} of {accounts} may do everything (usersInfo, rolesInfo)", unlimited.len());
        if !unlimited.is_empty() {
            seen.push_str(&format!(": {}", named(&unlimited)));
        }
        if !reading.is_empty() {
            seen.push_str(&format!("; hashes of all passwords are read by {}", named(&reading)));
        }
        if !everywhere.is_empty() {
            seen.push_str(&format!("; every database is read by {}", named(&everywhere)));
        }
        if !written.is_empty() {
            seen.push_str(&format!("; what is written to every database is read by {}", named(&written)));
        }
        let state = match of_administrators(unlimited.len(), all) {
            State::Enforced if [&reading, &everywhere, &written].iter().any(|some| !some.is_empty()) => {
                State::Available
            }
            state => state,
        };
        if state != State::Enforced {
            seen.push_str(": revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way");
        }
        let several = unlimited.len() > 1 || state == State::Off;
        let mut judged = Judgement::by_state(state, seen);
        for (finding, is_so) in [
            (&MONGODB_AUTHZ_REACHABLE_ROOT, several && becomes),
            (&MONGODB_AUTHZ_ADMINISTRATORS, several && !becomes),
            (&MONGODB_AUTHZ_READS_PASSWORDS, !reading.is_empty()),
            (&MONGODB_AUTHZ_EVERY_DATABASE, !everywhere.is_empty() || !written.is_empty()),
        ] {
            judged = if is_so { judged.found(finding) } else { judged };
        }
        judged
    }
}

/// The way of `user` to a goal, in words.
fn way_of(user: &User, ways: &Ways<'_>) -> Option<String> {
    let way = ways.of(&account(&user.name))?.to_string();
    Some(way.trim_start_matches("account ").to_owned())
}

/// An account among roles, which may have its name.
fn account(name: &str) -> String {
    format!("account {name}")
}

/// All accounts of `database`, or of all databases if it is empty.
fn all_of(database: &str) -> String {
    if database.is_empty() { "all accounts".to_owned() } else { format!("accounts of {database}") }
}

fn is_built_in(name: &str) -> bool {
    let (role, database) = name.rsplit_once('@').unwrap_or((name, ""));
    LIMITED.contains(&role)
        || database == "admin" && LIMITED_OF_ADMIN.contains(&role)
        || UNLIMITED.iter().any(|(own, _)| *own == name)
}

fn of_name(name: &str) -> Option<Document> {
    let (role, database) = name.rsplit_once('@')?;
    Some(doc! { "role": role, "db": database })
}

/// Name and database of a user or role; `kind` selects which.
fn name(document: &Document, kind: &str) -> Option<String> {
    Some(format!("{}@{}", document.get_str(kind).ok()?, document.get_str("db").ok()?))
}

fn documents<'a>(document: &'a Document, list: &str) -> impl Iterator<Item = &'a Document> {
    let list = document.get_array(list).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Bson::as_document)
}

fn texts(document: &Document, list: &str) -> impl Iterator<Item = String> {
    let list = document.get_array(list).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|text| text.as_str().map(str::to_owned))
}

impl User {
    fn read(document: &Document) -> Option<Self> {
        let roles = documents(document, "roles").filter_map(|role| name(role, "role")).collect();
        Some(Self { name: name(document, "user")?, roles, mechanisms: texts(document, "mechanisms").collect() })
    }
}

impl Role {
    fn read(document: &Document) -> Self {
        let privileges = documents(document, "privileges").filter_map(|privilege| {
            let resource = privilege.get_document("resource").ok()?;
            let text = |name: &str| resource.get_str(name).ok().map(str::to_owned);
            Some(Privilege {
                any_resource: resource.get_bool("anyResource").unwrap_or(false),
                database: text("db"),
                collection: text("collection"),
                actions: texts(privilege, "actions").collect(),
            })
        });
        let roles = documents(document, "roles").filter_map(|role| name(role, "role")).collect();
        Self { roles, privileges: privileges.collect() }
    }
}

impl Privilege {
    fn may(&self, actions: &[&str]) -> bool {
        self.actions.contains("anyAction") || actions.iter().any(|action| self.actions.contains(*action))
    }

    /// The database whose accounts or roles `action` applies to; empty for all of them.
    fn database_if(&self, action: &str) -> Option<&str> {
        let database = match (self.any_resource, self.database.as_deref(), self.collection.as_deref()) {
            (true, ..) => "",
            (false, Some(database), Some("")) => database,
            _ => return None,
        };
        self.may(&[action]).then_some(database)
    }

    /// True if it applies to this `collection` of `admin`, and allows one of `actions` there.
    fn on(&self, collection: &str, actions: &[&str]) -> bool {
        let covers = self.any_resource
            || matches!(self.database.as_deref(), Some("admin" | "")) && self.collection.as_deref() == Some(collection);
        covers && self.may(actions)
    }

    fn gives_everything(&self) -> Option<&'static str> {
        if self.any_resource && self.actions.contains("anyAction") {
            return Some("anyAction on anyResource");
        }
        if matches!(self.database_if("grantRole"), Some("admin" | "")) {
            return Some("grantRole on admin");
        }
        if self.on("system.users", &["insert", "update"]) {
            return Some("writes admin.system.users");
        }
        // It changes a role that it has.
        self.on("system.roles", &["update"]).then_some("writes admin.system.roles")
    }

    fn reads_hashes(&self) -> bool {
        self.on("system.users", &["find"])
    }

    fn reads_oplog(&self) -> bool {
        let resource = (self.database.as_deref(), self.collection.as_deref());
        let covers = matches!(resource, (Some("local"), Some("" | "oplog.rs")) | (Some(""), Some("oplog.rs")));
        covers && self.may(&["find"])
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// Accounts as `name: role role`, and user-defined roles as `name: role role / actions on database.collection`.
    fn accounts_of(users: &[&str], roles: &[&str]) -> Accounts {
        let pair = |text: &str| {
            let (name, rest) = text.split_once(": ").expect("a name");
            (name.to_owned(), rest.split(' ').filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>())
        };
        let users = users.iter().map(|text| {
            let (name, roles) = pair(text);
            User { name, roles, mechanisms: Vec::new() }
        });
        let roles = roles.iter().map(|text| {
            let (text, privilege) = text.split_once(" / ").unwrap_or((text, ""));
            let (name, roles) = pair(text);
            let privileges = privilege.split_once(" on ").map(|(actions, resource)| Privilege {
                any_resource: resource == "any",
                database: resource.split_once('.').map(|(database, _)| database.to_owned()),
                collection: resource.split_once('.').map(|(_, collection)| collection.to_owned()),
                actions: actions.split(' ').map(str::to_owned).collect(),
            });
            (name, Role { roles, privileges: privileges.into_iter().collect() })
        });
        Accounts { users: users.collect(), roles: roles.collect() }
    }

    fn judged(users: &[&str], roles: &[&str]) -> String {
        let judged = accounts_of(users, roles).judge(false);
        format!("{}: {}\n", judged.state.words(), judged.seen)
    }

    #[test]
    fn having_root_and_becoming_root_are_different_findings() {
        let found = |users: &[&str]| {
            let Judgement { state, findings, .. } = accounts_of(users, &[]).judge(false);
            (state, findings)
        };
        let (ops, app) = ("ops@admin: root@admin", "app@shop: readWrite@shop");
        assert_eq!(found(&[ops, app]), (State::Enforced, vec![]));
        assert_eq!(found(&[app]), (State::Enforced, vec![]));
        let administrators = vec![&MONGODB_AUTHZ_ADMINISTRATORS];
        assert_eq!(found(&[ops]), (State::Off, administrators.clone()), "nobody is limited");
        for second in ["boss@admin: root@admin", "member@admin: __system@admin"] {
            assert_eq!(found(&[ops, second, app]), (State::Available, administrators.clone()), "{second}");
        }
        for role in ["dbOwner", "userAdmin", "userAdminAnyDatabase", "restore"] {
            let second = format!("tool@shop: {role}@admin");
            let becomes = vec![&MONGODB_AUTHZ_REACHABLE_ROOT];
            assert_eq!(found(&[ops, &second, app]), (State::Available, becomes), "{role}");
        }
        let reads = vec![&MONGODB_AUTHZ_READS_PASSWORDS];
        assert_eq!(found(&[ops, "copy@admin: backup@admin", app]), (State::Available, reads.clone()));
        assert_eq!(found(&["copy@admin: backup@admin", app]), (State::Available, reads));
    }

    #[test]
    fn roles_are_built_in_by_their_database() {
        for name in ["read@shop", "dbOwner@shop", "readWrite@admin", "backup@admin", "root@admin", "restore@admin"] {
            assert!(is_built_in(name), "{name}");
        }
        for name in ["own@shop", "own@admin", "backup@shop", "root@shop", "restore@shop"] {
            assert!(!is_built_in(name), "{name}");
        }
    }

    #[test]
    fn ways_to_root_are_named() {
        let (ops, app) = ("ops@admin: root@admin", "app@shop: readWrite@shop");
        let text = [
            judged(&[ops, app], &[]),
            judged(&[ops, "app@shop: dbOwner@shop"], &[]),
            judged(&[ops, "app@shop: dbOwner@admin", app], &[]),
            judged(&[ops, "app@shop: tool@shop", app], &["tool@shop: base@admin", "base@admin: restore@admin"]),
            judged(&[ops, "app@shop: a@admin", app], &["a@admin:  / grantRole on admin."]),
            judged(&[ops, "app@shop: a@admin", app], &["a@admin:  / grantRole on shop."]),
            judged(&[ops, "app@shop: a@admin", app], &["a@admin:  / changePassword on admin."]),
            judged(&[ops, "app@shop: a@shop", app], &["a@shop:  / changePassword on shop."]),
            judged(&[ops, "app@shop: a@admin", app], &["a@admin:  / find update on admin.system.users"]),
            judged(&[ops, "app@shop: a@admin", app], &["a@admin:  / update on admin.system.roles"]),
            judged(&[ops, "app@shop: a@admin", app], &["a@admin:  / find on any"]),
            judged(&[ops, "copy@admin: backup@admin"], &[]),
            judged(&[ops, "own@admin: loop@admin"], &["loop@admin: loop@admin"]),
            judged(&[ops], &[]),
            judged(&["boss@shop: root@admin", "app@shop: userAdmin@shop", "web@shop: read@shop"], &[]),
            judged(
                &["boss@shop: root@admin", "app@shop: own@shop", "web@shop: read@shop"],
                &["own@shop: dbOwner@shop"],
            ),
            judged(&["boss@shop: root@admin", "app@other: dbOwner@other"], &[]),
            judged(&[ops, "report@admin: readAnyDatabase@admin"], &[]),
            judged(&[ops, "pmm@admin: explain@admin"], &["explain@admin:  / find listIndexes on ."]),
        ];
        expect![[r#"
            enforced: 1 of 2 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right)
            enforced: 1 of 2 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right)
            off: 3 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); app@shop → dbOwner@admin (role) → everything (grants itself root); app@shop → dbOwner@admin (role) → everything (grants itself root): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            off: 3 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); app@shop → tool@shop (role) → base@admin (inherits it) → restore@admin (inherits it) → everything (writes admin.system.users, which has every account's roles); app@shop → tool@shop (role) → base@admin (inherits it) → restore@admin (inherits it) → everything (writes admin.system.users, which has every account's roles): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            off: 3 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); app@shop → a@admin (role) → everything (grantRole on admin); app@shop → a@admin (role) → everything (grantRole on admin): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            enforced: 1 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right)
            off: 3 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); app@shop → a@admin (role) → accounts of admin (changePassword) → account ops@admin (one of them) → root@admin (role) → everything (every right); app@shop → a@admin (role) → accounts of admin (changePassword) → account ops@admin (one of them) → root@admin (role) → everything (every right): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            enforced: 1 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right)
            off: 3 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); app@shop → a@admin (role) → everything (writes admin.system.users); app@shop → a@admin (role) → everything (writes admin.system.users); hashes of all passwords are read by app@shop → a@admin (role) → hashes (find on admin.system.users); app@shop → a@admin (role) → hashes (find on admin.system.users): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            off: 3 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); app@shop → a@admin (role) → everything (writes admin.system.roles); app@shop → a@admin (role) → everything (writes admin.system.roles): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            available but not enforced: 1 of 3 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); hashes of all passwords are read by app@shop → a@admin (role) → hashes (find on admin.system.users); app@shop → a@admin (role) → hashes (find on admin.system.users): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            available but not enforced: 1 of 2 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); hashes of all passwords are read by copy@admin → backup@admin (role) → hashes (find on admin.system.users): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            enforced: 1 of 2 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right)
            off: 1 of 1 account may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            available but not enforced: 2 of 3 accounts may do everything (usersInfo, rolesInfo): boss@shop → root@admin (role) → everything (every right); app@shop → userAdmin@shop (role) → accounts of shop (userAdmin sets their passwords) → account boss@shop (one of them) → root@admin (role) → everything (every right): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            available but not enforced: 2 of 3 accounts may do everything (usersInfo, rolesInfo): boss@shop → root@admin (role) → everything (every right); app@shop → own@shop (role) → dbOwner@shop (inherits it) → accounts of shop (dbOwner sets their passwords) → account boss@shop (one of them) → root@admin (role) → everything (every right): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            enforced: 1 of 2 accounts may do everything (usersInfo, rolesInfo): boss@shop → root@admin (role) → everything (every right)
            available but not enforced: 1 of 2 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); every database is read by report@admin → readAnyDatabase@admin (role) → documents of every database (reads them): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
            available but not enforced: 1 of 2 accounts may do everything (usersInfo, rolesInfo): ops@admin → root@admin (role) → everything (every right); every database is read by pmm@admin → explain@admin (role) → documents of every database (find on every database): revokeRolesFromUser, or revokePrivilegesFromRole, what is in the way
        "#]].assert_eq(&text.concat());
    }

    #[test]
    fn an_account_that_reads_the_oplog_reads_what_is_written_to_every_database() {
        let told = |role: &str, own: &[&str], has_oplog: bool| {
            let app = format!("app@shop: {role}");
            let users = ["ops@admin: root@admin", app.as_str(), "web@shop: read@shop"];
            let Judgement { state, seen, .. } = accounts_of(&users, own).judge(has_oplog);
            (state, seen.contains("what is written to every database is read by app@shop"))
        };
        let (read, limited) = ((State::Available, true), (State::Enforced, false));
        for role in READERS_OF_LOCAL {
            assert_eq!([told(role, &[], true), told(role, &[], false)], [read, limited], "{role}");
        }
        for (privilege, expected) in [
            ("find on local.oplog.rs", read),
            ("find on local.", read),
            ("find on .oplog.rs", read),
            ("insert on local.oplog.rs", limited),
            ("find on shop.oplog.rs", limited),
        ] {
            let own = format!("tail@admin:  / {privilege}");
            assert_eq!(told("tail@admin", &[&own], true), expected, "{privilege}");
        }
        assert_eq!(told("read@shop", &[], true), limited);
        // An account that reads every database is named for that.
        assert_eq!(told("readAnyDatabase@admin read@local", &[], true), (State::Available, false));
    }

    #[test]
    fn answers_of_a_server_are_read() {
        let role = Role::read(&doc! {
            "role": "tool", "db": "admin", "roles": [{ "role": "backup", "db": "admin" }],
            "privileges": [{ "resource": { "db": "admin", "collection": "system.users" }, "actions": ["find"] },
                { "resource": { "cluster": true }, "actions": ["shutdown"] }],
        });
        assert_eq!((role.roles.as_slice(), role.privileges.len()), (&["backup@admin".to_owned()][..], 2));
        assert!(role.privileges[0].reads_hashes() && role.privileges[1].gives_everything().is_none());
        let user = User::read(&doc! { "user": "app", "db": "shop", "mechanisms": ["SCRAM-SHA-1"], "roles": [] });
        let accounts = Accounts { users: user.into_iter().collect(), roles: BTreeMap::new() };
        assert_eq!(accounts.by_sha1_alone(), ["`app@shop`"]);
    }
}
