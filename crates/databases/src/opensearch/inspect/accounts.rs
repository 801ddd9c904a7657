//! Which account may do what: users, roles, and the mapping of one to the other.
//!
//! Patterns are the plugin's own (`WildcardMatcher` in its source). What its lists do not show is a doubt: accounts of
//! other lists, accounts that are hidden, and which roles may change accounts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tithe_machine::fault::Fault;
use tithe_plugin::matrix::State;

use super::{RIGHT, get};
use crate::{
    findings,
    inspect::{Judgement, Rules, counted, limited},
    opensearch::connection::OpenSearchConnection,
};

/// Actions by which documents are read or changed, one of each kind.
const ACTIONS: [&str; 5] = [
    "indices:data/read/get",
    "indices:data/read/search",
    "indices:data/write/index",
    "indices:data/write/delete",
    "indices:admin/delete",
];

/// The beginning of those actions that read.
const READS: &str = "indices:data/read/";

/// Names that an index or an account could have: a pattern that fits all of them is for every index or account.
const NAMES: [&str; 3] = ["tithe-7fk2", "zz.9", "q"];

/// What no list shows.
const HIDDEN: &str =
    "accounts that are hidden, and which roles may change accounts (plugins.security.restapi.roles_enabled)";

/// Users, roles, mapping and groups of actions, by name.
pub struct Accounts {
    users: Map<String, Value>,
    roles: Map<String, Value>,
    mapping: Map<String, Value>,
    groups: Map<String, Value>,
}

impl Accounts {
    /// What the plugin lists.
    ///
    /// # Errors
    /// If the account may not read it.
    pub fn read(connection: &mut OpenSearchConnection) -> Result<Self, Fault> {
        let mut all = |part| match get(connection, part)? {
            Value::Object(all) => Ok(all),
            _ => Err(Fault::Protocol(format!("{part} is not a list"))),
        };
        Ok(Self {
            users: all("internalusers")?,
            roles: all("roles")?,
            mapping: all("rolesmapping")?,
            groups: all("actiongroups")?,
        })
    }

    /// Names of the users.
    pub fn names(&self) -> Vec<String> {
        self.users.keys().cloned().collect()
    }

    fn mapping(&self, role: &str) -> &Value {
        self.mapping.get(role).unwrap_or(&Value::Null)
    }

    /// True if the user `name` has `role`.
    fn has(&self, name: &str, role: &str) -> bool {
        let user = &self.users[name];
        let mapping = self.mapping(role);
        let own = |pattern: &str| texts(&user["backend_roles"]).any(|own| fits(pattern, own));
        let together = &mapping["and_backend_roles"];
        texts(&user["opendistro_security_roles"]).any(|own| own == role)
            || texts(&mapping["users"]).any(|pattern| fits(pattern, name))
            || texts(&mapping["backend_roles"]).any(own)
            || texts(together).next().is_some() && texts(together).all(own)
    }

    /// The patterns of actions behind `names`: a group of actions holds patterns and further groups.
    fn actions<'a>(&'a self, names: &'a Value) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = texts(names).collect();
        while let Some(name) = open.pop() {
            if found.insert(name)
                && let Some(group) = self.groups.get(name)
            {
                open.extend(texts(&group["allowed_actions"]));
            }
        }
        found
    }

    /// The patterns of actions that `role` allows on the indices whose patterns are `chosen`.
    fn over<'a>(&'a self, role: &'a Value, chosen: impl Fn(&str) -> bool) -> BTreeSet<&'a str> {
        parts(role, chosen).flat_map(|part| self.actions(&part["allowed_actions"])).collect()
    }

    fn may_do_everything(&self, role: &Value) -> bool {
        let cluster = self.actions(&role["cluster_permissions"]);
        let over_all = self.over(role, is_for_all);
        allows(&cluster, "cluster:admin/settings/update") && ACTIONS.iter().all(|action| allows(&over_all, action))
    }

    /// True for a role that reads or changes documents of the indices whose patterns are `chosen`. A query (`dls`)
    /// decides which of them it reads, and not which it changes.
    fn reaches(&self, role: &Value, chosen: impl Fn(&str) -> bool) -> bool {
        parts(role, chosen).any(|part| {
            let allowed = self.actions(&part["allowed_actions"]);
            let mut actions = ACTIONS.iter().filter(|action| !(has_query(part) && action.starts_with(READS)));
            actions.any(|action| allows(&allowed, action))
        })
    }

    /// True for a role that reads documents of every index, but only those that its query selects.
    fn reads_by_query(&self, role: &Value) -> bool {
        parts(role, is_for_all).filter(|part| has_query(part)).any(|part| {
            let allowed = self.actions(&part["allowed_actions"]);
            ACTIONS.iter().any(|action| action.starts_with(READS) && allows(&allowed, action))
        })
    }

    /// Doubts about accounts that are not in the plugin's list and have a role of `reaching`. `elsewhere`: some clients
    /// log in by another list.
    fn unlisted(&self, reaching: &[&String], elsewhere: bool) -> Vec<String> {
        let mut doubts = Vec::new();
        let backend = self.users.values().flat_map(|user| texts(&user["backend_roles"]));
        let listed: BTreeSet<&str> = self.users.keys().map(String::as_str).chain(backend).collect();
        for role in reaching {
            let mapping = self.mapping(role);
            let named = ["users", "backend_roles", "and_backend_roles"].map(|list| texts(&mapping[list]));
            for name in named.into_iter().flatten() {
                if is_unknown(name) {
                    doubts.push(format!("who fits {name} in the mapping to the role {role}"));
                } else if elsewhere && !listed.contains(name) {
                    doubts.push(format!("who logs in elsewhere as {name}, which is mapped to the role {role}"));
                }
            }
        }
        doubts
    }

    /// `anonymous`: clients without an account are let in.
    fn judge(&self, elsewhere: bool, anonymous: bool) -> Judgement {
        let which = |is_so: &dyn Fn(&Value) -> bool| -> Vec<&String> {
            self.roles.iter().filter(|(_, role)| is_so(role)).map(|(name, _)| name).collect()
        };
        let everything = which(&|role| self.may_do_everything(role));
        let with = |role: &&String| self.users.keys().filter(|name| self.has(name, role)).cloned().collect::<Vec<_>>();
        let mut unlimited: Vec<String> = everything.iter().flat_map(with).collect();
        unlimited.sort();
        unlimited.dedup();
        let judged = limited(&unlimited, self.users.len(), "a role over every action");
        let judged = if unlimited.len() > 1 { judged.found(&findings::OPENSEARCH_AUTHZ_EVERYTHING) } else { judged };
        // Of a service whose accounts are elsewhere, the list is empty.
        if unlimited.len() == self.users.len() && !self.users.is_empty() {
            return judged;
        }
        let reaching = which(&|role| self.reaches(role, is_for_all));
        let of_limited = |role: &str| {
            let names = self.users.keys().filter(|name| !unlimited.contains(name) && self.has(name, role));
            names.cloned().collect::<Vec<_>>()
        };
        let mut exceptions = Vec::new();
        for role in &reaching {
            let mapping = self.mapping(role);
            for pattern in texts(&mapping["users"]).filter(|pattern| is_for_all(pattern)) {
                exceptions.push(format!("every account by the mapping of {pattern} to the role {role}"));
            }
            if texts(&mapping["hosts"]).next().is_some() {
                exceptions.push(format!("clients by their host to the role {role}"));
            }
            if anonymous && is_for_anonymous(mapping) {
                exceptions.push(format!("anonymous clients by the role {role}"));
            }
            exceptions.extend(of_limited(role).into_iter().map(|name| format!("{name} by the role {role}")));
        }
        let mut doubts = self.unlisted(&reaching, elsewhere);
        for role in which(&|role| self.reaches(role, is_unknown)) {
            let of = |name| format!("which indices {name} reaches by an expression in the role {role}");
            doubts.extend(of_limited(role).into_iter().map(of));
        }
        for role in which(&|role| self.reads_by_query(role) && !self.reaches(role, is_for_all)) {
            let of = |name| format!("which documents {name} reads by the query of the role {role} (dls)");
            doubts.extend(of_limited(role).into_iter().map(of));
        }
        let changing = which(&|role| self.changes_accounts(role)).into_iter().map(String::as_str).chain([REST_API]);
        for role in changing {
            let of = |name| format!("whether {name} changes accounts by the role {role}");
            doubts.extend(of_limited(role).into_iter().map(of));
        }
        doubts.push(HIDDEN.to_owned());
        let findings = if exceptions.is_empty() { Vec::new() } else { vec![&findings::OPENSEARCH_AUTHZ_EVERYTHING] };
        let rules = Rules {
            read: counted(self.roles.len(), "role"),
            exceptions,
            remedy: "name the indices that are needed in index_patterns, and the users in the mapping",
            doubts,
            findings,
        };
        judged.with_rules(Ok(rules), RIGHT)
    }

    /// True for a role that may change accounts where `plugins.security.restapi.admin.enabled` is set.
    fn changes_accounts(&self, role: &Value) -> bool {
        let cluster = self.actions(&role["cluster_permissions"]);
        ["roles", "rolesmapping", "internalusers"].iter().any(|part| allows(&cluster, &format!("restapi:admin/{part}")))
    }
}

/// The name of clients without an account, and their only backend role (`User` in the plugin's source).
const ANONYMOUS: [&str; 2] = ["opendistro_security_anonymous", "opendistro_security_anonymous_backendrole"];

/// A role without any right, which the documentation's `plugins.security.restapi.roles_enabled` lets change accounts.
const REST_API: &str = "security_rest_api_access";

/// The parts of `role` about the indices whose patterns are `chosen`.
fn parts(role: &Value, chosen: impl Fn(&str) -> bool) -> impl Iterator<Item = &Value> {
    let all = role["index_permissions"].as_array().into_iter().flatten();
    all.filter(move |part| texts(&part["index_patterns"]).any(&chosen))
}

/// True for a part of a role with a query for documents.
fn has_query(part: &Value) -> bool {
    part["dls"].as_str().is_some_and(|query| !query.is_empty())
}

/// True if clients without an account have the role of `mapping`.
fn is_for_anonymous(mapping: &Value) -> bool {
    let [name, role] = ANONYMOUS;
    let together = &mapping["and_backend_roles"];
    texts(&mapping["users"]).any(|pattern| fits(pattern, name))
        || texts(&mapping["backend_roles"]).any(|pattern| fits(pattern, role))
        || texts(together).next().is_some() && texts(together).all(|pattern| fits(pattern, role))
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn allows(patterns: &BTreeSet<&str>, action: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, action))
}

fn is_for_all(pattern: &str) -> bool {
    NAMES.iter().all(|name| fits(pattern, name))
}

/// True for a regular expression (`/…/`) of which [`fits`] knows nothing.
fn is_unknown(pattern: &str) -> bool {
    expression(pattern).is_some() && !is_for_all(pattern)
}

fn expression(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('/')?.strip_suffix('/')
}

/// True if `text` fits the plugin's `pattern`. Of regular expressions only those that every text fits are known.
fn fits(pattern: &str, text: &str) -> bool {
    match expression(pattern) {
        Some(inside) => matches!(inside.trim_start_matches('^').trim_end_matches('$'), ".*" | ".+"),
        None => glob(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>()),
    }
}

/// `*` fits any text, `?` one character. Takes steps of at most the product of both lengths.
fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut read, mut star) = (0, 0, None);
    while read < text.len() {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, read));
                at += 1;
            }
            (Some(sign), _) if *sign == '?' || *sign == text[read] => {
                at += 1;
                read += 1;
            }
            // The last star takes one more character.
            (_, Some((begin, taken))) => {
                star = Some((begin, taken + 1));
                at = begin + 1;
                read = taken + 1;
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|sign| *sign == '*')
}

/// The judgement of the lists, or of what an account that may not read them may do. `elsewhere`: some clients log in by
/// a list of accounts that is not the plugin's own. `anonymous`: some need no account.
pub fn judge(
    accounts: &Result<Accounts, Fault>,
    (elsewhere, anonymous): (bool, bool),
    connection: &mut OpenSearchConnection,
) -> Judgement {
    match accounts {
        Ok(accounts) => accounts.judge(elsewhere, anonymous),
        Err(fault) => {
            let all = connection.request("GET /_all/_search?size=0").map(drop);
            let one = connection.request("GET /tithe-belongs-to-nobody/_doc/1").map(drop);
            of_this_account(all, one, fault)
        }
    }
}

/// The judgement from a search of `all` indices and a read of `one` that nobody has. With `do_not_fail_on_forbidden`
/// the search is answered for the permitted indices alone; the read is refused all the same.
fn of_this_account(all: Result<(), Fault>, one: Result<(), Fault>, lists: &Fault) -> Judgement {
    let enforced = |seen| Judgement::account(State::Enforced, format!("{seen}; others: {lists}: {RIGHT}"));
    match (all, one) {
        (Err(Fault::Refused(search)), _) => enforced(format!("every index: refused ({search})")),
        (Ok(()), Err(Fault::Refused(read))) => enforced(format!("an index of nobody: refused ({read})")),
        // That the index is missing is an answer.
        (Ok(()), Ok(()) | Err(Fault::Server(_))) => {
            let seen = format!("this account may search every index; others: {lists}: {RIGHT}");
            Judgement::account(State::Available, seen).found(&findings::OPENSEARCH_AUTHZ_EVERYTHING)
        }
        (Ok(()), Err(fault)) | (Err(fault), _) => Judgement::unseen(fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().expect("a map").clone()
    }

    #[test]
    fn roles_are_followed_to_the_accounts_that_have_them() {
        let all = json!({ "cluster_permissions": ["*"], "index_permissions": [{ "index_patterns": ["*"], "allowed_actions": ["*"] }] });
        let reader = json!({ "cluster_permissions": [], "index_permissions": [{ "index_patterns": ["*"], "allowed_actions": ["read"] }] });
        let own = json!({ "index_permissions": [{ "index_patterns": ["app-*"], "allowed_actions": ["*"] }] });
        let over = |patterns: &str, action: &str| json!({ "index_permissions": [{ "index_patterns": [patterns], "allowed_actions": [action] }] });
        let roles = json!({
            "all_access": all,
            "reader": reader,
            "own": own,
            "writer": over("*", "write"),
            "reads": over("*", "indices:data/read/*"),
            "team": over("*", "team"),
            "regex": over("/.*/", "read"),
            "questions": over("?*", "read"),
            "some": over("/logs-[0-9]+/", "read"),
            "suggests": over("*", "suggest"),
            "own writer": over("app-*", "write"),
            "parts": { "cluster_permissions": ["cluster:*"], "index_permissions": [
                { "index_patterns": ["*"], "allowed_actions": ["indices:data/*"] },
                { "index_patterns": ["a", "*"], "allowed_actions": ["indices:admin/*"] },
            ] },
            "security_rest_api_access": {},
            "changes": { "cluster_permissions": ["restapi:admin/*"] },
        });
        let groups = json!({
            "read": { "allowed_actions": ["indices:data/read*"] },
            "write": { "allowed_actions": ["indices:data/write*"] },
            "crud": { "allowed_actions": ["read", "write"] },
            "suggest": { "allowed_actions": ["indices:data/read/suggest*"] },
            // A group may hold itself.
            "team": { "allowed_actions": ["crud", "team"] },
        });
        let users = |more: Value| {
            let mut users = map(json!({ "root": {}, "app": { "backend_roles": ["apps"] } }));
            users.extend(map(more));
            users
        };
        let judged_by = |name: &str, more: Value, mapping: Value, elsewhere: bool| {
            let accounts = Accounts {
                users: users(more),
                roles: map(roles.clone()),
                mapping: map(mapping),
                groups: map(groups.clone()),
            };
            let Judgement { state, scope, seen, findings } = accounts.judge(elsewhere, false);
            let seen = seen.replace(HIDDEN, "…").replace("1 of 2 accounts may do everything", "1 of 2");
            format!("{name}: {}, {}: {seen} ({})\n", state.words(), scope.words(), findings.len())
        };
        let judged = |name: &str, more: Value, mapping: Value| judged_by(name, more, mapping, false);
        let root = json!({ "users": ["root"] });
        let text = [
            judged("good", json!({}), json!({ "all_access": root, "own": { "backend_roles": ["apps"] } })),
            judged("two", json!({ "ops": {} }), json!({ "all_access": { "users": ["root", "op*"] } })),
            judged(
                "by backend role",
                json!({ "ops": {} }),
                json!({ "all_access": { "users": ["root"], "backend_roles": ["app*"] } }),
            ),
            judged(
                "by the user's own list",
                json!({ "ops": { "opendistro_security_roles": ["reader"] } }),
                json!({ "all_access": root }),
            ),
            judged("everybody", json!({}), json!({ "all_access": root, "reader": { "users": ["*"] } })),
            judged("by host", json!({}), json!({ "all_access": root, "reader": { "hosts": ["10.0.0.*"] } })),
            judged("unmapped", json!({}), json!({ "all_access": root })),
            judged("every name by ?*", json!({}), json!({ "all_access": { "users": ["?*"] } })),
            judged("an expression", json!({}), json!({ "all_access": { "users": ["/.*/"] } })),
            judged(
                "an expression that is not known",
                json!({}),
                json!({ "all_access": { "users": ["root", "/ops.+/"] } }),
            ),
            judged(
                "together",
                json!({}),
                json!({ "all_access": { "users": ["root"], "and_backend_roles": ["apps"] } }),
            ),
            judged(
                "together, one missing",
                json!({}),
                json!({ "all_access": { "users": ["root"], "and_backend_roles": ["apps", "night"] } }),
            ),
            judged_by(
                "elsewhere",
                json!({}),
                json!({ "all_access": { "users": ["root"], "backend_roles": ["employees", "apps"] } }),
                true,
            ),
            judged("in parts", json!({}), json!({ "parts": { "users": ["*"] } })),
        ]
        .into_iter()
        .chain(
            [
                "writer",
                "reads",
                "team",
                "regex",
                "questions",
                "some",
                "suggests",
                "own writer",
                "security_rest_api_access",
                "changes",
            ]
            .map(|role| {
                let mapping = [("all_access".to_owned(), root.clone()), (role.to_owned(), json!({ "users": ["app"] }))];
                judged(role, json!({}), Value::Object(mapping.into_iter().collect()))
            }),
        )
        .collect::<String>();
        expect![[r#"
            good: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: … (0)
            two: available but not enforced, this account: 2 of 3 accounts may do everything (a role over every action): ops; root; 14 roles: no exception; not judged: … (1)
            by backend role: available but not enforced, this account: 2 of 3 accounts may do everything (a role over every action): app; root; 14 roles: no exception; not judged: … (1)
            by the user's own list: available but not enforced, this account: 1 of 3 accounts may do everything (a role over every action); 14 roles: 1 exception: ops by the role reader: name the indices that are needed in index_patterns, and the users in the mapping; not judged: … (1)
            everybody: available but not enforced, this account: 1 of 2 (a role over every action); 14 roles: 2 exceptions: every account by the mapping of * to the role reader; app by the role reader: name the indices that are needed in index_patterns, and the users in the mapping; not judged: … (1)
            by host: available but not enforced, this account: 1 of 2 (a role over every action); 14 roles: 1 exception: clients by their host to the role reader: name the indices that are needed in index_patterns, and the users in the mapping; not judged: … (1)
            unmapped: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: … (0)
            every name by ?*: off, whole server: 2 of 2 accounts may do everything (a role over every action) (1)
            an expression: off, whole server: 2 of 2 accounts may do everything (a role over every action) (1)
            an expression that is not known: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: who fits /ops.+/ in the mapping to the role all_access; not judged: … (0)
            together: off, whole server: 2 of 2 accounts may do everything (a role over every action) (1)
            together, one missing: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: … (0)
            elsewhere: off, whole server: 2 of 2 accounts may do everything (a role over every action) (1)
            in parts: off, whole server: 2 of 2 accounts may do everything (a role over every action) (1)
            writer: available but not enforced, this account: 1 of 2 (a role over every action); 14 roles: 1 exception: app by the role writer: name the indices that are needed in index_patterns, and the users in the mapping; not judged: … (1)
            reads: available but not enforced, this account: 1 of 2 (a role over every action); 14 roles: 1 exception: app by the role reads: name the indices that are needed in index_patterns, and the users in the mapping; not judged: … (1)
            team: available but not enforced, this account: 1 of 2 (a role over every action); 14 roles: 1 exception: app by the role team: name the indices that are needed in index_patterns, and the users in the mapping; not judged: … (1)
            regex: available but not enforced, this account: 1 of 2 (a role over every action); 14 roles: 1 exception: app by the role regex: name the indices that are needed in index_patterns, and the users in the mapping; not judged: … (1)
            questions: available but not enforced, this account: 1 of 2 (a role over every action); 14 roles: 1 exception: app by the role questions: name the indices that are needed in index_patterns, and the users in the mapping; not judged: … (1)
            some: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: which indices app reaches by an expression in the role some; not judged: … (0)
            suggests: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: … (0)
            own writer: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: … (0)
            security_rest_api_access: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: whether app changes accounts by the role security_rest_api_access; not judged: … (0)
            changes: enforced, this account: 1 of 2 (a role over every action); 14 roles: no exception; not judged: whether app changes accounts by the role changes; not judged: … (0)
        "#]].assert_eq(&text);
    }

    #[test]
    fn clients_without_an_account_have_what_their_name_or_their_backend_role_is_mapped_to() {
        let over = |pattern: &str| json!([{ "index_patterns": [pattern], "allowed_actions": ["indices:data/read/*"] }]);
        let told = |mapping: Value, pattern: &str, anonymous: bool| {
            let accounts = Accounts {
                users: map(json!({ "root": {} })),
                roles: map(json!({ "reader": { "index_permissions": over(pattern) } })),
                mapping: map(json!({ "reader": mapping })),
                groups: Map::new(),
            };
            let Judgement { state, seen, .. } = accounts.judge(false, anonymous);
            (state, seen.contains("anonymous clients by the role reader"))
        };
        let [name, role] = ANONYMOUS;
        for mapping in [
            json!({ "users": [name] }),
            json!({ "backend_roles": [role] }),
            json!({ "backend_roles": ["*"] }),
            json!({ "and_backend_roles": [role] }),
        ] {
            assert_eq!(told(mapping.clone(), "*", true), (State::Available, true), "{mapping}");
            assert_eq!(told(mapping.clone(), "*", false), (State::Enforced, false), "{mapping}: nobody is anonymous");
            assert_eq!(told(mapping, "app-*", true), (State::Enforced, false));
        }
        for mapping in [json!({ "users": ["root*"] }), json!({ "and_backend_roles": [role, "night"] })] {
            assert!(!told(mapping.clone(), "*", true).1, "{mapping}");
        }
    }

    #[test]
    fn a_query_decides_what_a_role_reads_and_not_what_it_changes() {
        let told = |dls: Value, action: &str| {
            let part = json!({ "index_patterns": ["*"], "dls": dls, "allowed_actions": [action] });
            let accounts = Accounts {
                users: map(json!({ "root": {}, "app": {} })),
                roles: map(json!({ "tenant": { "index_permissions": [part] } })),
                mapping: map(json!({ "tenant": { "users": ["app"] } })),
                groups: Map::new(),
            };
            let Judgement { state, seen, .. } = accounts.judge(false, false);
            (state, seen.contains("which documents app reads by the query of the role tenant"))
        };
        let own = || json!(r#"{"term": {"tenant": "${user.name}"}}"#);
        assert_eq!(told(own(), "indices:data/read/*"), (State::Enforced, true));
        for none in [Value::Null, json!("")] {
            assert_eq!(told(none, "indices:data/read/*"), (State::Available, false));
        }
        assert_eq!(told(own(), "indices:data/write/*"), (State::Available, false));
    }

    #[test]
    fn where_all_accounts_are_elsewhere_the_list_shows_nothing() {
        let role = json!({ "cluster_permissions": ["*"], "index_permissions": [{ "index_patterns": ["*"], "allowed_actions": ["*"] }] });
        let judged = |mapping: Value| {
            let accounts = Accounts {
                users: Map::new(),
                roles: map(json!({ "all_access": role })),
                mapping: map(json!({ "all_access": mapping })),
                groups: Map::new(),
            };
            let Judgement { state, scope, seen, .. } = accounts.judge(true, false);
            (state, scope.words(), seen.contains("who logs in elsewhere as arn:aws:iam::1:role/master"))
        };
        // Amazon OpenSearch Service with a master user of IAM.
        let by_iam = json!({ "backend_roles": ["arn:aws:iam::1:role/master"] });
        assert_eq!(judged(by_iam), (State::Unseen, "this account", true));
        assert_eq!(judged(json!({ "users": ["*"] })), (State::Available, "this account", false));
    }

    #[test]
    fn patterns_are_the_plugins() {
        let fitting =
            [("*", ""), ("a*", "a"), ("a*b*c", "abbc"), ("?", "q"), ("a?c*", "abcd"), ("/^.*$/", "x"), ("a", "a")];
        let others = [("", "a"), ("?", ""), ("a?", "a"), ("a*b", "abc"), ("/a.*/", "ab"), ("a", "A"), ("/", "x")];
        assert_eq!(fitting.map(|(pattern, text)| fits(pattern, text)), [true; 7]);
        assert_eq!(others.map(|(pattern, text)| fits(pattern, text)), [false; 7]);
        assert!(!fits(&"*a".repeat(5_000), &"a".repeat(4_999)), "in time");
        assert_eq!(["/.+/", "/a.*/", "*", "/"].map(is_unknown), [false, true, false, false]);
    }

    #[test]
    fn an_answer_about_the_permitted_indices_is_none_about_all() {
        let refused = || Err(Fault::Refused("no permissions".to_owned()));
        let missing = || Err(Fault::Server("404".to_owned()));
        let gone = || Err(Fault::Connection("gone".to_owned()));
        let judged = |all, one| {
            let Judgement { state, seen, findings, .. } =
                of_this_account(all, one, &Fault::Refused("lists".to_owned()));
            format!("{}: {seen} ({})", state.words(), findings.len())
        };
        assert!(judged(refused(), missing()).starts_with("enforced: every index: refused (no permissions); others: "));
        assert!(
            judged(Ok(()), refused()).starts_with("enforced: an index of nobody: refused (no permissions); others: ")
        );
        for one in [Ok(()), missing()] {
            let seen = judged(Ok(()), one);
            let words = "available but not enforced: this account may search every index; others: ";
            assert!(seen.starts_with(words) && seen.ends_with(" (1)"), "{seen}");
        }
        for (all, one) in [(gone(), refused()), (Ok(()), gone()), (missing(), Ok(()))] {
            assert!(judged(all, one).starts_with("cannot tell: "));
        }
    }

    #[test]
    fn everything_is_the_cluster_and_every_index() {
        let accounts = Accounts {
            users: map(json!({ "root": {}, "app": {} })),
            roles: Map::new(),
            mapping: Map::new(),
            groups: map(json!({ "unlimited": { "allowed_actions": ["*"] } })),
        };
        let may = |cluster: &str, pattern: &str, action: &str| {
            let over = json!([{ "index_patterns": [pattern], "allowed_actions": [action] }]);
            accounts.may_do_everything(&json!({ "cluster_permissions": [cluster], "index_permissions": over }))
        };
        for all in ["*", "unlimited"] {
            for every in ["*", "?*", "/.*/"] {
                assert!(may(all, every, all), "{all} {every}");
            }
        }
        assert!(!may("cluster:monitor/*", "*", "*"), "all indices alone");
        assert!(!may("*", "*", "indices:data/*"), "the cluster, and documents alone");
        assert!(!may("*", "app-*", "*"), "the cluster, and some indices");
        let mut names = accounts.names();
        names.sort();
        assert_eq!(names, ["app", "root"]);
    }
}
