//! What prevents Tithe from measuring a server that it did not start, as the server itself reports it to the account.

use mongodb::bson::{Document, doc};
use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    database::{Lack, Remedy, Without},
    setup::Setup,
};

use super::{store::administrator, target::DATABASE};

/// What Tithe does in its own database, as names of MongoDB's actions, and the role that allows it.
const NEEDED: [(&str, &[&str]); 2] = [
    ("readWrite", &["find", "insert", "update", "remove", "createCollection", "dropCollection", "listCollections"]),
    ("dbAdmin", &["dropDatabase"]),
];

/// Everything that `server` and the account lack.
///
/// # Errors
/// The server's error.
pub fn lacks(server: &Server, setup: &Setup) -> Result<Vec<Lack>, Fault> {
    let link = administrator(server, setup)?;
    let mut all = Vec::new();
    if link.admin(doc! { "isMaster": 1 })?.get_bool("ismaster").is_ok_and(|primary| !primary) {
        all.push(Lack {
            why: "it is a secondary, which takes no writes, and Tithe loads records of its own".to_owned(),
            remedy: Remedy::Words("name the primary, or all members and the set's name (replicaSet=…)".to_owned()),
            without: Without::Measurement,
        });
    }
    // If a server does not report what the account may do, missing rights only show when they are used.
    let status = link.admin(doc! { "connectionStatus": 1, "showPrivileges": true }).unwrap_or_default();
    all.extend(rights(&status));
    Ok(all)
}

/// The rights that the account of a connection with this `status` lacks; none if the server requires no login.
fn rights(status: &Document) -> Vec<Lack> {
    let of = |name: &str| status.get_document("authInfo").and_then(|told| told.get_array(name)).ok();
    let user = of("authenticatedUsers").and_then(|users| users.first()?.as_document());
    let (Some(user), Some(privileges)) = (user, of("authenticatedUserPrivileges")) else { return Vec::new() };
    let privileges: Vec<&Document> = privileges.iter().filter_map(|one| one.as_document()).collect();
    let account = format!("{:?}", user.get_str("user").unwrap_or_default());
    let database = user.get_str("db").unwrap_or("admin");
    let grant = |roles: &str| {
        let grant = format!("db.getSiblingDB(\"{database}\").grantRolesToUser({account}, [{roles}])");
        Remedy::Statement(grant)
    };
    let missing = NEEDED.iter().filter(|(_, actions)| actions.iter().any(|action| !may(&privileges, action)));
    let roles: Vec<String> = missing.map(|(role, _)| format!("{{ role: \"{role}\", db: \"{DATABASE}\" }}")).collect();
    let mut all = Vec::new();
    if !roles.is_empty() {
        all.push(Lack {
            why: format!("Tithe makes, fills and removes the database `{DATABASE}`, and the account may not"),
            remedy: grant(&roles.join(", ")),
            without: Without::Measurement,
        });
    }
    if !privileges.iter().any(|one| is_cluster(one) && has(one, "serverStatus")) {
        all.push(Lack {
            why: "only accounts that may see the server's state see how much is written to the journal".to_owned(),
            remedy: grant("{ role: \"clusterMonitor\", db: \"admin\" }"),
            without: Without::Figures("figure of the journal"),
        });
    }
    all
}

/// True if some of `privileges` allows `action` on Tithe's database.
fn may(privileges: &[&Document], action: &str) -> bool {
    let on_ours = |one: &Document| {
        let Ok(resource) = one.get_document("resource") else { return false };
        let is_whole = resource.get_str("collection").is_ok_and(str::is_empty);
        let is_ours = resource.get_str("db").is_ok_and(|name| name.is_empty() || name == DATABASE);
        resource.get_bool("anyResource").unwrap_or(false) || is_whole && is_ours
    };
    privileges.iter().any(|one| on_ours(one) && has(one, action))
}

/// True for a privilege on the whole cluster.
fn is_cluster(privilege: &Document) -> bool {
    let is = |name| privilege.get_document("resource").is_ok_and(|resource| resource.get_bool(name).unwrap_or(false));
    is("cluster") || is("anyResource")
}

/// True if `privilege` names `action`.
fn has(privilege: &Document, action: &str) -> bool {
    privilege.get_array("actions").is_ok_and(|actions| {
        actions.iter().any(|one| one.as_str().is_some_and(|name| [action, "anyAction"].contains(&name)))
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// What an account with `privileges` lacks, one per line.
    fn check(privileges: Vec<Document>, expected: Expect) {
        let users = vec![doc! { "user": "ann", "db": "shop" }];
        let status =
            doc! { "authInfo": { "authenticatedUsers": users, "authenticatedUserPrivileges": privileges }, "ok": 1.0 };
        let told = rights(&status).into_iter().map(|lack| format!("{}\n", lack.remedy)).collect::<String>();
        expected.assert_eq(&told);
    }

    #[test]
    fn roles_that_are_missing_are_named_as_a_statement() {
        let on = |db: &str, actions: &[&str]| doc! { "resource": { "db": db, "collection": "" }, "actions": actions };
        let monitor = doc! { "resource": { "cluster": true }, "actions": ["serverStatus", "top"] };
        let all = ["find", "insert", "update", "remove", "createCollection", "dropCollection", "listCollections"];
        check(
            vec![on("shop", &all)],
            expect![[r#"
                run `db.getSiblingDB("shop").grantRolesToUser("ann", [{ role: "readWrite", db: "tithe" }, { role: "dbAdmin", db: "tithe" }])`
                run `db.getSiblingDB("shop").grantRolesToUser("ann", [{ role: "clusterMonitor", db: "admin" }])`
            "#]],
        );
        check(
            vec![on("tithe", &all), monitor.clone()],
            expect![[r#"
                run `db.getSiblingDB("shop").grantRolesToUser("ann", [{ role: "dbAdmin", db: "tithe" }])`
            "#]],
        );
        check(vec![on("", &all), on("tithe", &["dropDatabase"]), monitor], expect![""]);
        check(vec![doc! { "resource": { "anyResource": true }, "actions": ["anyAction"] }], expect![""]);
    }

    #[test]
    fn where_nobody_has_to_say_who_it_is_nothing_is_missing() {
        let nobody = doc! { "authInfo": { "authenticatedUsers": [], "authenticatedUserPrivileges": [] } };
        assert_eq!(rights(&nobody), []);
        assert_eq!(rights(&Document::new()), []);
    }
}
