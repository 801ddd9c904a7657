//! Which account may do what: users, roles, and the mapping of one to the other.

use serde_json::{Map, Value};
use tithe_machine::fault::Fault;
use tithe_model::experiment::matches;
use tithe_plugin::matrix::State;

use super::{RIGHT, get};
use crate::{
    findings,
    inspect::{Judgement, Rules, counted, limited},
    opensearch::connection::OpenSearchConnection,
};

/// Actions that include reading or changing documents.
const REACHING: [&str; 8] =
    ["*", "unlimited", "indices_all", "indices:*", "indices:data/*", "data_access", "crud", "read"];

/// Users, roles and mapping, by name.
pub struct Accounts {
    users: Map<String, Value>,
    roles: Map<String, Value>,
    mapping: Map<String, Value>,
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
        Ok(Self { users: all("internalusers")?, roles: all("roles")?, mapping: all("rolesmapping")? })
    }

    /// Names of the users.
    pub fn names(&self) -> Vec<String> {
        self.users.keys().cloned().collect()
    }

    /// True if the user `name` has `role`.
    fn has(&self, name: &str, role: &str) -> bool {
        let user = &self.users[name];
        let mapping = self.mapping.get(role).unwrap_or(&Value::Null);
        let fits = |patterns: &Value, text: &str| texts(patterns).any(|pattern| matches(pattern, text));
        texts(&user["opendistro_security_roles"]).any(|own| own == role)
            || fits(&mapping["users"], name)
            || texts(&user["backend_roles"]).any(|own| fits(&mapping["backend_roles"], own))
    }

    /// Roles for which `is_so` holds, that somebody has.
    fn roles(&self, is_so: impl Fn(&Value) -> bool) -> Vec<&String> {
        self.roles.iter().filter(|(_, role)| is_so(role)).map(|(name, _)| name).collect()
    }

    fn judge(&self) -> Judgement {
        let everything = self.roles(may_do_everything);
        let with = |role: &&String| self.users.keys().filter(|name| self.has(name, role)).cloned().collect::<Vec<_>>();
        let mut unlimited: Vec<String> = everything.iter().flat_map(with).collect();
        unlimited.sort();
        unlimited.dedup();
        let judged = limited(&unlimited, self.users.len(), "a role over every action");
        let judged = if unlimited.len() > 1 { judged.found(&findings::OPENSEARCH_AUTHZ_EVERYTHING) } else { judged };
        let mut exceptions = Vec::new();
        for role in self.roles(reaches_everything) {
            let mapping = self.mapping.get(role).unwrap_or(&Value::Null);
            if texts(&mapping["users"]).any(|user| user == "*") {
                exceptions.push(format!("every account by the mapping of * to the role {role}"));
            }
            if texts(&mapping["hosts"]).next().is_some() {
                exceptions.push(format!("clients by their host to the role {role}"));
            }
            if texts(&mapping["backend_roles"]).any(|name| name == "opendistro_security_anonymous_backendrole") {
                exceptions.push(format!("anonymous clients by the role {role}"));
            }
            let limited = self.users.keys().filter(|name| !unlimited.contains(name) && self.has(name, role));
            exceptions.extend(limited.map(|name| format!("{name} by the role {role}")));
        }
        if exceptions.is_empty() {
            return judged;
        }
        let rules = Rules {
            read: counted(self.roles.len(), "role"),
            exceptions,
            remedy: "name the indices that are needed in index_patterns, and the users in the mapping",
            findings: vec![&findings::OPENSEARCH_AUTHZ_EVERYTHING],
            ..Rules::default()
        };
        judged.with_rules(Ok(rules), RIGHT)
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// True for a role whose rights over some index patterns, of which one is `*`, hold one of `actions`.
fn holds(role: &Value, actions: &[&str]) -> bool {
    let over = role["index_permissions"].as_array().into_iter().flatten();
    over.filter(|part| texts(&part["index_patterns"]).any(|pattern| pattern == "*"))
        .any(|part| texts(&part["allowed_actions"]).any(|action| actions.contains(&action)))
}

fn may_do_everything(role: &Value) -> bool {
    let cluster = texts(&role["cluster_permissions"]).any(|action| matches!(action, "*" | "unlimited" | "cluster_all"));
    cluster && holds(role, &REACHING[..4])
}

fn reaches_everything(role: &Value) -> bool {
    holds(role, &REACHING)
}

/// The judgement of the lists, or of what an account that may not read them may do.
pub fn judge(accounts: &Result<Accounts, Fault>, connection: &mut OpenSearchConnection) -> Judgement {
    match accounts {
        Ok(accounts) => accounts.judge(),
        Err(fault) => match connection.request("GET /_all/_search?size=0") {
            Ok(_) => Judgement::account(State::Off, "this account may search every index")
                .found(&findings::OPENSEARCH_AUTHZ_EVERYTHING),
            Err(Fault::Refused(search)) => {
                let seen = format!("every index: refused ({search}); others: {fault}: {RIGHT}");
                Judgement::account(State::Enforced, seen)
            }
            Err(fault) => Judgement::unseen(fault.to_string()),
        },
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
        let roles = json!({ "all_access": all, "reader": reader, "own": own });
        let users = |more: Value| {
            let mut users = map(json!({ "root": {}, "app": { "backend_roles": ["apps"] } }));
            users.extend(map(more));
            users
        };
        let judged = |name: &str, more: Value, mapping: Value| {
            let accounts = Accounts { users: users(more), roles: map(roles.clone()), mapping: map(mapping) };
            let Judgement { state, scope, seen, findings } = accounts.judge();
            format!("{name}: {}, {}: {seen} ({})\n", state.words(), scope.words(), findings.len())
        };
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
        ]
        .concat();
        expect![[r#"
            good: enforced, whole server: 1 of 2 accounts may do everything (a role over every action) (0)
            two: available but not enforced, whole server: 2 of 3 accounts may do everything (a role over every action): ops; root (1)
            by backend role: available but not enforced, whole server: 2 of 3 accounts may do everything (a role over every action): app; root (1)
            by the user's own list: available but not enforced, whole server: 1 of 3 accounts may do everything (a role over every action); 3 roles: 1 exception: ops by the role reader: name the indices that are needed in index_patterns, and the users in the mapping (1)
            everybody: available but not enforced, whole server: 1 of 2 accounts may do everything (a role over every action); 3 roles: 2 exceptions: every account by the mapping of * to the role reader; app by the role reader: name the indices that are needed in index_patterns, and the users in the mapping (1)
            by host: available but not enforced, whole server: 1 of 2 accounts may do everything (a role over every action); 3 roles: 1 exception: clients by their host to the role reader: name the indices that are needed in index_patterns, and the users in the mapping (1)
            unmapped: enforced, whole server: 1 of 2 accounts may do everything (a role over every action) (0)
        "#]].assert_eq(&text);
    }
}
