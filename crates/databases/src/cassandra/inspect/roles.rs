//! What each role of a Cassandra can become: superusers, roles granted to roles, and permissions on roles.

use tithe_machine::fault::Fault;
use tithe_plugin::{matrix::State, reach::Reach};

use super::super::connection::CqlConnection;
use crate::{
    findings,
    inspect::{Judgement, counted, named},
};

/// The role that every installation begins with, and its password.
const FIRST: &str = "cassandra";
/// The resource name for all roles.
const ALL_ROLES: &str = "all roles";

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
        Ok(Self { roles, members, permissions: permissions.collect() })
    }

    /// The default role, if it still has the default password.
    pub fn untouched(&self) -> Option<&str> {
        let first = self.roles.iter().find(|role| role.name == FIRST && role.may_log_in && role.is_untouched);
        first.map(|role| role.name.as_str())
    }

    /// Which role becomes which.
    fn reach(&self) -> Reach {
        let mut reach = Reach::default();
        for (role, member) in &self.members {
            reach.edge(member, role, "granted to it");
        }
        let superusers = self.roles.iter().filter(|role| role.is_superuser);
        superusers.for_each(|role| reach.edge(ALL_ROLES, &role.name, "one of them"));
        for (role, resource, permissions) in &self.permissions {
            let on = match resource.split_once('/') {
                Some(("roles", on)) => on,
                None if resource == "roles" => ALL_ROLES,
                _ => continue,
            };
            let has = |wanted: &str| permissions.iter().any(|permission| permission == wanted);
            if has("ALTER") {
                reach.edge(role, on, "ALTER sets its password");
            } else if has("AUTHORIZE") {
                reach.edge(role, on, "AUTHORIZE grants it");
            }
        }
        reach
    }

    /// Which roles can do everything, of those that can log in; with `by_password`, of those that have a password.
    pub fn judge(&self, by_password: bool) -> Judgement {
        let mut reach = self.reach();
        let ways = reach.ways(self.roles.iter().filter(|role| role.is_superuser).map(|role| role.name.as_str()));
        let open: Vec<&Role> =
            self.roles.iter().filter(|role| role.may_log_in && (role.has_password || !by_password)).collect();
        let words = |role: &&Role| {
            let way = ways.of(&role.name)?.to_string();
            Some(if role.is_superuser { format!("{way} (superuser)") } else { way })
        };
        let unlimited: Vec<String> = open.iter().filter_map(words).collect();
        let state = match unlimited.len() {
            0 | 1 if open.len() != unlimited.len() => State::Enforced,
            count if count == open.len() => State::Off,
            _ => State::Available,
        };
        let accounts = counted(open.len(), "account");
        let mut seen = format!("{} of {accounts} may do everything (system_auth.roles)", unlimited.len());
        if !unlimited.is_empty() {
            seen.push_str(&format!(": {}", named(&unlimited)));
        }
        if state != State::Enforced {
            seen.push_str(": REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false");
        }
        let judged = Judgement::whole(state, seen);
        let becomes = open.iter().any(|role| !role.is_superuser && ways.of(&role.name).is_some());
        if becomes { judged.found(&findings::CASSANDRA_AUTHZ_REACHABLE_SUPERUSER) } else { judged }
    }
}

#[cfg(test)]
impl Roles {
    /// The role that every installation begins with, alone.
    pub fn of_first(is_untouched: bool) -> Self {
        let first =
            Role { name: FIRST.to_owned(), is_superuser: true, may_log_in: true, has_password: true, is_untouched };
        Self { roles: vec![first], ..Self::default() }
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

    fn role(name: &str, kind: &str) -> Role {
        Role {
            name: name.to_owned(),
            is_superuser: kind.contains('s'),
            may_log_in: kind.contains('l'),
            has_password: kind.contains('p'),
            is_untouched: false,
        }
    }

    #[test]
    fn ways_to_a_superuser_are_named() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let pair = |text: &str| (names(text)[0].clone(), names(text)[1].clone());
        let may = |text: &str| (names(text)[0].clone(), names(text)[1].clone(), names(text)[2..].to_vec());
        let app = || role("app", "lp");
        let judged = |roles: Vec<Role>, members: &[&str], permissions: &[&str]| {
            let members = members.iter().map(|text| pair(text)).collect();
            let permissions = permissions.iter().map(|text| may(text)).collect();
            let Judgement { state, seen, .. } = Roles { roles, members, permissions }.judge(true);
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
        ];
        expect![[r#"
            enforced: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser)
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → dba (granted to it): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → ops (granted to it) → dba (granted to it): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → admin (AUTHORIZE grants it): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            off: 2 of 2 accounts may do everything (system_auth.roles): admin (superuser); app → all roles (ALTER sets its password) → admin (one of them): REVOKE what is in parentheses, or ALTER ROLE … WITH SUPERUSER = false
            enforced: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser)
            enforced: 1 of 2 accounts may do everything (system_auth.roles): admin (superuser)
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
            let roles = roles.iter().map(|(name, kind)| role(name, kind)).collect();
            let members = members.iter().map(|(one, other)| ((*one).to_owned(), (*other).to_owned())).collect();
            let judged = Roles { roles, members, permissions: Vec::new() }.judge(true);
            (judged.state, judged.findings)
        };
        let (admin, boss, app, clerk) = (("admin", "slp"), ("boss", "slp"), ("app", "lp"), ("clerk", "lp"));
        let becomes = vec![&findings::CASSANDRA_AUTHZ_REACHABLE_SUPERUSER];
        assert_eq!(seen(&[admin, app], &[]), (State::Enforced, vec![]));
        assert_eq!(seen(&[app], &[]), (State::Enforced, vec![]));
        assert_eq!(seen(&[admin], &[]), (State::Off, vec![]), "nobody is limited");
        assert_eq!(seen(&[admin, boss, app], &[]), (State::Available, vec![]));
        assert_eq!(seen(&[admin, app], &[("admin", "app")]), (State::Off, becomes.clone()));
        assert_eq!(seen(&[admin, app, clerk], &[("admin", "app")]), (State::Available, becomes));
    }

    #[test]
    fn sets_are_read_and_what_is_none_is_empty() {
        assert_eq!(set(b"\0\0\0\x02\0\0\0\x05ALTER\0\0\0\x04DROP"), ["ALTER", "DROP"]);
        assert_eq!(set(b"\0\0\0\x09\0\0\0\x63AL"), ["AL"]);
        assert_eq!(set(b"\0"), [""; 0]);
    }
}
