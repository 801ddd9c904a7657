//! What each role of a Cassandra can become: superusers, roles granted to roles, and permissions on roles, on tables of
//! rights and on functions.

use tithe_machine::fault::Fault;
use tithe_plugin::{matrix::State, reach::Reach};

use super::super::connection::CqlConnection;
use crate::{
    findings,
    inspect::{Judgement, counted, named, of_administrators, version_numbers},
};

/// The role that every installation begins with, and its password.
const FIRST: &str = "cassandra";
/// The resource name for all roles.
const ALL_ROLES: &str = "all roles";
/// A role that may write these tables can make itself a superuser.
const RIGHTS: &str = "the tables of rights";
/// It may do everything.
const PROCESS: &str = "the server's process";
/// A role with a right on all keyspaces reads or changes each of them.
const ALL_KEYSPACES: &str = "all keyspaces";
/// Resources that contain tables of rights. Newer versions refuse to grant `MODIFY` on them, and honour it if it was
/// granted before.
const WITH_RIGHTS: [&str; 5] = [
    "data/system_auth",
    "data/system_auth/*",
    "data/system_auth/roles",
    "data/system_auth/role_members",
    "data/system_auth/role_permissions",
];
/// The table of identities of certificates, which has their roles.
const IDENTITIES: &str = "data/system_auth/identity_to_role";

/// The right that an account needs to read the roles.
pub const RIGHT: &str = "the account needs GRANT SELECT ON KEYSPACE system_auth";

/// The roles of a cluster.
#[derive(Debug, Default)]
pub struct Roles {
    roles: Vec<Role>,
    /// A role, and one that it was granted to.
    members: Vec<(String, String)>,
    /// A role, the resource, and the permissions on it.
    permissions: Vec<(String, String, Vec<String>)>,
    /// The version of the node.
    version: String,
}

/// What matters here of a node's settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Node {
    /// Only roles with a password log in.
    pub by_password: bool,
    /// Functions of clients may do what the server's process may.
    pub free_functions: bool,
    /// A certificate logs in as the role that its identity was added to.
    pub by_certificate: bool,
}

#[derive(Debug, Default)]
struct Role {
    name: String,
    is_superuser: bool,
    may_log_in: bool,
    /// It has a password.
    has_password: bool,
    /// The password is the default one, set by the server.
    is_untouched: bool,
}

impl Roles {
    /// Reads them.
    ///
    /// # Errors
    /// The server's error.
    pub fn read(connection: &mut CqlConnection) -> Result<Self, Fault> {
        // The write time of a hash shows that it exists and, for the default role, whether it is still the default: the
        // server writes that at time 0. The hash itself is not read.
        let statement = "SELECT role, can_login, is_superuser, WRITETIME(salted_hash) FROM system_auth.roles";
        let text = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
        let rows = connection.run(statement)?;
        let roles = rows.iter().map(|row| {
            let value = |column: usize| row.get(column).and_then(Option::as_deref);
            let is_true = |column: usize| value(column) == Some(&[1]);
            let written = value(3);
            Role {
                name: text(value(0)),
                may_log_in: is_true(1),
                is_superuser: is_true(2),
                has_password: written.is_some(),
                is_untouched: written.is_some_and(|time| time.iter().all(|byte| *byte == 0)),
            }
        });
        let roles = roles.collect();
        let members = connection.texts("SELECT role, member FROM system_auth.role_members")?;
        let members = members.into_iter().filter_map(|row| <[String; 2]>::try_from(row).ok().map(Into::into)).collect();
        let rows = connection.run("SELECT role, resource, permissions FROM system_auth.role_permissions")?;
        let permissions = rows.iter().map(|row| {
            let value = |column: usize| row.get(column).and_then(Option::as_deref);
            (text(value(0)), text(value(1)), set(value(2).unwrap_or_default()))
        });
        let permissions = permissions.collect();
        let version = connection.texts("SELECT release_version FROM system.local")?;
        let version = version.into_iter().flatten().next().unwrap_or_default();
        Ok(Self { roles, members, permissions, version })
    }

    /// The default role, if it still has the default password.
    pub fn untouched(&self) -> Option<&str> {
        let first = self.roles.iter().find(|role| role.name == FIRST && role.may_log_in && role.is_untouched);
        first.map(|role| role.name.as_str())
    }

    /// Which role becomes which.
    fn reach(&self, node: Node) -> Reach {
        let mut reach = Reach::default();
        for (role, member) in &self.members {
            reach.edge(member, role, "granted to it");
        }
        let superusers = self.roles.iter().filter(|role| role.is_superuser);
        superusers.for_each(|role| reach.edge(ALL_ROLES, &role.name, "one of them"));
        let all_reach_rights = all_keyspaces_reach_rights(&self.version);
        let adds_identities = node.by_certificate && adds_identities_to_all(&self.version);
        for (role, resource, permissions) in &self.permissions {
            let has = |wanted: &str| permissions.iter().any(|permission| permission == wanted);
            let is_all = resource == "data";
            let has_rights = WITH_RIGHTS.contains(&resource.as_str()) || node.by_certificate && resource == IDENTITIES;
            if has("MODIFY") && (has_rights || is_all && all_reach_rights) {
                reach.edge(role, RIGHTS, "MODIFY makes it a superuser");
            }
            let over_all = ["SELECT", "MODIFY"].into_iter().find(|right| is_all && has(right));
            if let Some(right) = over_all {
                reach.edge(role, ALL_KEYSPACES, right);
            }
            if node.free_functions
                && let Some(right) = makes_functions(resource, has)
            {
                reach.edge(role, PROCESS, format!("{right}: its functions run as the server"));
            }
            let on = match resource.split_once('/') {
                Some(("roles", on)) => on,
                None if resource == "roles" => ALL_ROLES,
                _ => continue,
            };
            if has("ALTER") {
                reach.edge(role, on, "ALTER sets its password");
            } else if has("AUTHORIZE") {
                reach.edge(role, on, "AUTHORIZE grants it");
            } else if has("CREATE") && adds_identities {
                reach.edge(role, on, "CREATE adds an identity to it");
            }
        }
        reach
    }

    /// Which roles can do everything, of those that can log in.
    pub fn judge(&self, node: Node) -> Judgement {
        let mut reach = self.reach(node);
        let superusers = self.roles.iter().filter(|role| role.is_superuser).map(|role| role.name.as_str());
        let ways = reach.ways(superusers.chain([RIGHTS, PROCESS]));
        let open: Vec<&Role> =
            self.roles.iter().filter(|role| role.may_log_in && (role.has_password || !node.by_password)).collect();
        let words = |role: &&Role| {
            let way = ways.of(&role.name)?.to_string();
            Some(if role.is_superuser { format!("{way} (superuser)") } else { way })
        };
        let unlimited: Vec<String> = open.iter().filter_map(words).collect();
        let becomes = open.iter().any(|role| !role.is_superuser && ways.of(&role.name).is_some());
        let limited: Vec<&&Role> = open.iter().filter(|role| ways.of(&role.name).is_none()).collect();
        let ways = reach.ways([ALL_KEYSPACES]);
        let way_of = |role: &&&Role| Some(ways.of(&role.name)?.to_string());
        let everywhere: Vec<String> = limited.iter().filter_map(way_of).collect();
        let state = match of_administrators(unlimited.len(), open.len()) {
            State::Enforced if !everywhere.is_empty() => State::Available,
            state => state,
        };
        let accounts = counted(open.len(), "account");
        let mut seen = format!("{} of {accounts} may do everything (system_auth.roles)", unlimited.len());
        if !unlimited.is_empty() {
            seen.push_str(&format!(": {}", named(&unlimited)));
        }
        if !everywhere.is_empty() {
            seen.push_str(&format!("; every keyspace is read or changed by {}", named(&everywhere)));
        }
        if [State::Off, State::Available].contains(&state) {
            seen.push_str(": REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false");
        }
        let judged = Judgement::by_state(state, seen);
        let judged =
            if everywhere.is_empty() { judged } else { judged.found(&findings::CASSANDRA_AUTHZ_EVERY_KEYSPACE) };
        if becomes { judged.found(&findings::CASSANDRA_AUTHZ_REACHABLE_SUPERUSER) } else { judged }
    }
}

/// True of versions in which rights on all keyspaces contain those on the tables of rights (CVE-2025-23015, and
/// CVE-2025-26467 of 4.0.16). A version that cannot be read is taken for one of them.
fn all_keyspaces_reach_rights(version: &str) -> bool {
    match version_numbers(version)[..] {
        [4, 0, patch, ..] => patch < 17,
        [4, 1, patch, ..] => patch < 8,
        [5, 0, patch, ..] => patch < 3,
        [4, 0 | 1] | [5, 0] | [] => true,
        [major, ..] => major < 4,
    }
}

/// True of versions in which an account that makes roles adds an identity to any role (CVE-2026-27314). A version that
/// cannot be read is taken for one of them.
fn adds_identities_to_all(version: &str) -> bool {
    match version_numbers(version)[..] {
        [5, 0, patch, ..] => patch < 7,
        [5, 0] | [] => true,
        _ => false,
    }
}

/// The permission on `resource` by which a role makes functions or changes them.
fn makes_functions(resource: &str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    // A role that creates a keyspace has every right on its functions.
    let rights: &[&'static str] = match resource.split('/').next() {
        Some("functions") => &["CREATE", "ALTER"],
        _ if resource == "data" => &["CREATE"],
        _ => &[],
    };
    rights.iter().copied().find(|right| has(right))
}

#[cfg(test)]
fn role(name: &str, kind: &str) -> Role {
    Role {
        name: name.to_owned(),
        is_superuser: kind.contains('s'),
        may_log_in: kind.contains('l'),
        has_password: kind.contains('p'),
        is_untouched: false,
    }
}

#[cfg(test)]
impl Roles {
    /// Roles by name, each with letters for what it is: a superuser (`s`), may log in (`l`), has a password (`p`).
    pub fn of(roles: &[(&str, &str)]) -> Self {
        Self { roles: roles.iter().map(|(name, kind)| role(name, kind)).collect(), ..Self::default() }
    }

    /// The role that every installation begins with, alone.
    pub fn of_first(is_untouched: bool) -> Self {
        Self { roles: vec![Role { is_untouched, ..role(FIRST, "slp") }], ..Self::default() }
    }
}

/// A set of texts in the protocol's encoding: their number, and each with its length.
fn set(bytes: &[u8]) -> Vec<String> {
    let Some((count, mut rest)) = bytes.split_first_chunk::<4>() else { return Vec::new() };
    let mut texts = Vec::new();
    for _ in 0..i32::from_be_bytes(*count) {
        let Some((length, after)) = rest.split_first_chunk::<4>() else { break };
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0).min(after.len());
        let (text, after) = after.split_at(length);
        texts.push(String::from_utf8_lossy(text).into_owned());
        rest = after;
    }
    texts
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const BY_PASSWORD: Node = Node { by_password: true, free_functions: false, by_certificate: false };
    /// A version in which rights on all keyspaces do not contain those on the tables of rights.
    const NEW: &str = "5.0.4";

    #[test]
    fn ways_to_a_superuser_are_named() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let pair = |text: &str| (names(text)[0].clone(), names(text)[1].clone());
        let may = |text: &str| (names(text)[0].clone(), names(text)[1].clone(), names(text)[2..].to_vec());
        let app = || role("app", "lp");
        let judged = |roles: Vec<Role>, members: &[&str], permissions: &[&str]| {
            let members = members.iter().map(|text| pair(text)).collect();
            let permissions = permissions.iter().map(|text| may(text)).collect();
            let roles = Roles { roles, members, permissions, version: NEW.to_owned() };
            let Judgement { state, seen, .. } = roles.judge(BY_PASSWORD);
            format!("{}: {seen}\n", state.words())
        };
        let admin = || role("admin", "slp");
        let text = [
            judged(vec![admin(), app()], &[], &["app data SELECT MODIFY"]),
            judged(vec![admin(), app(), role("dba", "s")], &["dba app"], &[]),
            judged(vec![admin(), app(), role("dba", "s"), role("ops", "")], &["ops app", "dba ops"], &[]),
            judged(vec![admin(), app()], &[], &["app roles/admin AUTHORIZE"]),
            judged(vec![admin(), app()], &[], &["app roles CREATE ALTER"]),
            judged(vec![admin(), app()], &[], &["app roles CREATE DESCRIBE"]),
            judged(vec![admin(), role("spare", "sl"), app()], &[], &[]),
            judged(vec![admin(), app()], &[], &["app data/system_auth MODIFY"]),
        ];
        expect![[r#"
            available but not enforced: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser); every keyspace is read or changed by app → all keyspaces (SELECT): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → dba (granted to it): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → ops (granted to it) → dba (granted to it): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → admin (AUTHORIZE grants it): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → all roles (ALTER sets its password) → admin (one of them): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            enforced: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser)
            enforced: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser)
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → the tables of rights (MODIFY makes it a superuser): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
        "#]].assert_eq(&text.concat());
    }

    #[test]
    fn the_first_role_is_untouched_if_it_logs_in_by_the_first_password() {
        let found = |name: &str, kind: &str, is_untouched: bool| {
            let one = Role { is_untouched, ..role(name, kind) };
            Roles { roles: vec![role("app", "lp"), one], ..Roles::default() }.untouched().map(str::to_owned)
        };
        assert_eq!(found(FIRST, "slp", true).as_deref(), Some(FIRST));
        for (name, kind, is_untouched) in [("admin", "slp", true), (FIRST, "sp", true), (FIRST, "slp", false)] {
            assert_eq!(found(name, kind, is_untouched), None, "{name} {kind} {is_untouched}");
        }
    }

    #[test]
    fn one_superuser_among_others_is_usual_and_who_becomes_one_is_a_finding() {
        let seen = |roles: &[(&str, &str)], members: &[(&str, &str)]| {
            let members = members.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect();
            let judged = Roles { members, ..Roles::of(roles) }.judge(BY_PASSWORD);
            (judged.state, judged.findings)
        };
        let (admin, boss, app, clerk) = (("admin", "slp"), ("boss", "slp"), ("app", "lp"), ("clerk", "lp"));
        let becomes = vec![&findings::CASSANDRA_AUTHZ_REACHABLE_SUPERUSER];
        assert_eq!(seen(&[admin, app], &[]), (State::Enforced, vec![]));
        assert_eq!(seen(&[app], &[]), (State::Enforced, vec![]));
        assert_eq!(seen(&[admin], &[]), (State::Off, vec![]), "nobody is limited");
        assert_eq!(seen(&[("hidden", "s")], &[]), (State::Unseen, vec![]), "the client itself has come in by another");
        assert_eq!(seen(&[admin, boss, app], &[]), (State::Available, vec![]));
        assert_eq!(seen(&[admin, app], &[("admin", "app")]), (State::Off, becomes.clone()));
        assert_eq!(seen(&[admin, app, clerk], &[("admin", "app")]), (State::Available, becomes));
    }

    /// The state if one of three roles has this permission, and whether that is a finding.
    fn with(version: &str, node: Node, (resource, permission): (&str, &str)) -> (State, bool) {
        let roles = Roles::of(&[("admin", "slp"), ("app", "lp"), ("other", "lp")]);
        let permissions = vec![("app".to_owned(), resource.to_owned(), vec![permission.to_owned()])];
        let judged = Roles { permissions, version: version.to_owned(), ..roles }.judge(node);
        (judged.state, !judged.findings.is_empty())
    }

    const OPEN: (State, bool) = (State::Available, true);
    const CLOSED: (State, bool) = (State::Enforced, false);

    #[test]
    fn who_writes_the_tables_of_rights_makes_itself_a_superuser() {
        let of = |version: &str, permission: (&str, &str)| with(version, BY_PASSWORD, permission);
        for resource in WITH_RIGHTS {
            assert_eq!(of(NEW, (resource, "MODIFY")), OPEN, "{resource}");
            assert_eq!(of("4.1.7", (resource, "SELECT")), CLOSED, "{resource}");
        }
        assert_eq!(of("4.1.7", ("data", "MODIFY")), OPEN);
        for resource in ["data/shop", "data/system_auth_of_mine", "data/system/local"] {
            assert_eq!(of("4.1.7", (resource, "MODIFY")), CLOSED, "{resource}");
        }
    }

    #[test]
    fn who_reads_or_changes_every_keyspace_is_named_and_is_no_superuser() {
        let told = |version: &str, permission: &str, member: &str| {
            let roles = Roles::of(&[("admin", "slp"), ("app", "lp"), ("other", "lp")]);
            let permissions = vec![("etl".to_owned(), "data".to_owned(), vec![permission.to_owned()])];
            let members = vec![("etl".to_owned(), member.to_owned())];
            let judged = Roles { members, permissions, version: version.to_owned(), ..roles }.judge(BY_PASSWORD);
            (judged.state, judged.findings)
        };
        let reaches = || vec![&findings::CASSANDRA_AUTHZ_EVERY_KEYSPACE];
        for permission in ["SELECT", "MODIFY"] {
            assert_eq!(told(NEW, permission, "app"), (State::Available, reaches()), "{permission}");
            assert_eq!(told(NEW, permission, "admin"), (State::Enforced, vec![]), "{permission}");
        }
        assert_eq!(told(NEW, "CREATE", "app"), (State::Enforced, vec![]));
        let becomes = vec![&findings::CASSANDRA_AUTHZ_REACHABLE_SUPERUSER];
        assert_eq!(told("4.1.7", "MODIFY", "app"), (State::Available, becomes));
    }

    #[test]
    fn rights_on_all_keyspaces_reach_the_tables_of_rights_in_old_versions() {
        for old in ["4.0.16", "4.1.0", "4.1.7", "5.0.0", "5.0.2", "5.0-beta1", "4.1", "3.11.17", ""] {
            assert!(all_keyspaces_reach_rights(old), "{old}");
        }
        for new in ["4.0.17", "4.1.8", "4.1.10", "5.0.3", "5.0.4", "5.1.0", "6.0-alpha1"] {
            assert!(!all_keyspaces_reach_rights(new), "{new}");
        }
    }

    #[test]
    fn who_gives_roles_to_certificates_becomes_each_of_them() {
        let by_certificate = Node { by_certificate: true, ..Node::default() };
        let makes = ("roles", "CREATE");
        for (versions, state) in [(["5.0-beta1", "5.0.6", ""], OPEN), (["5.0.7", "5.1.0", "4.1.8"], CLOSED)] {
            for version in versions {
                assert_eq!(with(version, by_certificate, makes), state, "{version}");
                assert_eq!(with(version, BY_PASSWORD, makes), CLOSED, "{version}");
            }
        }
        assert_eq!(with(NEW, by_certificate, (IDENTITIES, "MODIFY")), OPEN);
        assert_eq!(with(NEW, by_certificate, (IDENTITIES, "SELECT")), CLOSED);
        assert_eq!(with(NEW, BY_PASSWORD, (IDENTITIES, "MODIFY")), CLOSED);
    }

    #[test]
    fn who_makes_functions_that_run_as_the_server_may_do_everything() {
        let free = Node { free_functions: true, ..BY_PASSWORD };
        let shop = "functions/shop";
        let makes = [("functions", "CREATE"), (shop, "CREATE"), ("functions/shop/f[]", "ALTER"), ("data", "CREATE")];
        for permission in makes {
            assert_eq!(with(NEW, free, permission), OPEN, "{permission:?}");
            assert_eq!(with(NEW, BY_PASSWORD, permission), CLOSED, "{permission:?}");
        }
        for permission in [(shop, "EXECUTE"), ("data/shop", "CREATE"), ("data", "ALTER"), ("roles", "CREATE")] {
            assert_eq!(with(NEW, free, permission), CLOSED, "{permission:?}");
        }
    }

    #[test]
    fn sets_are_read_and_what_is_none_is_empty() {
        assert_eq!(set(b"\0\0\0\x02\0\0\0\x05ALTER\0\0\0\x04DROP"), ["ALTER", "DROP"]);
        assert_eq!(set(b"\0\0\0\x09\0\0\0\x63AL"), ["AL"]);
        assert_eq!(set(b"\0"), [""; 0]);
    }
}
