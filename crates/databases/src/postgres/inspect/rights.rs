//! What an account can become: every account that can reach all privileges, with the way it gets there.
//!
//! The superuser attribute is not inherited, so lists of roles show a member of a superuser as ordinary. It is one `SET
//! ROLE` away from all privileges. The same holds for an account that may run programs or write files as the server.

use std::collections::BTreeSet;

use tithe_machine::fault::Fault;
use tithe_plugin::{
    matrix::State,
    reach::{Reach, Way},
    session::rows,
};

use super::needing;
use crate::{
    findings::{PG_AUTHZ_REACHABLE_SUPERUSER, PG_AUTHZ_READS_PASSWORDS, PG_AUTHZ_SUPERUSERS},
    inspect::{Judgement, counted, limited, named},
    postgres::session::PostgresSession,
};

/// What an account needs to see roles and their members; every account has it unless it was revoked.
const RIGHT: &str = "GRANT SELECT ON pg_roles, pg_auth_members";

/// From this version on, CREATEROLE only reaches roles that the account created or was granted.
const NARROW_CREATEROLE: u32 = 160_000;

/// Queries for privileges with which an account that is not a superuser acts as the server: the holder, and the reason.
/// Each is a query of its own, so that a refused one does not lose the others.
const PRIVILEGES: [(&str, &str); 5] = [
    (
        "functions",
        "SELECT coalesce(r.rolname, ''), 'EXECUTE on ' || p.proname FROM pg_proc p, aclexplode(p.proacl) a \
         LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN \
         ('lo_export', 'lo_import', 'pg_read_file', 'pg_read_binary_file', 'pg_file_write') AND a.grantee <> p.proowner \
         AND coalesce(r.rolname, '') !~ '^pg_'",
    ),
    (
        "settings",
        "SELECT coalesce(r.rolname, ''), a.privilege_type || ' of ' || parname FROM pg_parameter_acl, \
         aclexplode(paracl) a LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE parname IN ('archive_command', \
         'archive_library', 'restore_command', 'shared_preload_libraries', 'session_preload_libraries', \
         'dynamic_library_path', 'jit_provider', 'recovery_end_command', 'archive_cleanup_command', \
         'ssl_passphrase_command', 'hba_file', 'ident_file', 'plperl.on_init') AND NOT coalesce(r.rolsuper, false)",
    ),
    (
        "event triggers",
        "SELECT r.rolname, 'owns the function of event trigger ' || evtname FROM pg_event_trigger JOIN pg_proc p ON \
         p.oid = evtfoid JOIN pg_roles r ON r.oid = p.proowner WHERE NOT r.rolsuper AND evtenabled <> 'D'",
    ),
    (
        "definers",
        "SELECT r.rolname, 'owns what a superuser runs, ' || p.proname FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid \
         JOIN pg_class c ON c.oid = tgrelid JOIN pg_roles o ON o.oid = c.relowner JOIN pg_roles r ON r.oid = p.proowner \
         WHERE o.rolsuper AND NOT r.rolsuper AND NOT tgisinternal AND tgenabled <> 'D'",
    ),
    (
        "languages",
        "SELECT coalesce(r.rolname, ''), 'language ' || lanname || ' runs as the server' FROM pg_language l, \
         aclexplode(coalesce(lanacl, acldefault('l', lanowner))) a LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE \
         lanpltrusted AND (lanname LIKE '%u' OR lanname IN ('c', 'internal', 'plr', 'plsh')) AND NOT \
         coalesce(r.rolsuper, false)",
    ),
];

/// Ways that may lead to a superuser and are not followed: each query returns names.
const UNJUDGED: [(&str, &str); 3] = [
    (
        "what superusers run in schemas in which everybody may make functions (CVE-2018-1058)",
        "SELECT DISTINCT nspname FROM pg_namespace, aclexplode(nspacl) a WHERE a.grantee = 0 AND \
         a.privilege_type = 'CREATE' ORDER BY 1",
    ),
    (
        "where user mappings lead, with the passwords in them",
        "SELECT usename || ' on ' || srvname FROM pg_user_mappings ORDER BY 1",
    ),
    // A view has the rights of its owner. Dependencies on pg_authid are not recorded, so its text decides; those of
    // views on other views are.
    (
        "what views that others may read show of the table of passwords",
        "WITH RECURSIVE seen (id) AS (SELECT ev_class FROM pg_rewrite WHERE ev_class >= 16384 AND ev_action::text ~ \
         (':relid (' || 'pg_authid'::regclass::oid || '|' || 'pg_shadow'::regclass::oid || ') ') UNION SELECT w.ev_class \
         FROM seen JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = id AND d.classid = \
         'pg_rewrite'::regclass JOIN pg_rewrite w ON w.oid = d.objid) SELECT DISTINCT c.oid::regclass::text FROM seen JOIN \
         pg_class c ON c.oid = id WHERE c.relkind IN ('v', 'm') AND EXISTS (SELECT FROM (SELECT c.relacl AS acl UNION ALL \
         SELECT attacl FROM pg_attribute WHERE attrelid = c.oid) p, aclexplode(acl) a WHERE a.grantee <> c.relowner AND \
         a.privilege_type = 'SELECT') AND NOT coalesce('security_invoker=true' = ANY (c.reloptions), false) ORDER BY 1",
    ),
];

/// Functions that run with the rights of their owner and that others may call, with the owner: what they do is not
/// known.
const DEFINERS: &str = "SELECT p.proname, r.rolname FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner WHERE p.prosecdef \
                        AND p.oid >= 16384 AND (p.proacl IS NULL OR EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE \
                        a.grantee <> p.proowner)) ORDER BY 1";

/// The other databases to which some account that is no superuser may connect. Templates are left out: a session in one
/// hinders CREATE DATABASE.
const OTHERS: &str = "SELECT datname FROM pg_database d WHERE datallowconn AND NOT datistemplate AND datname <> \
                      current_database() AND EXISTS (SELECT FROM pg_roles r WHERE rolcanlogin AND NOT rolsuper AND \
                      has_database_privilege(r.oid, d.oid, 'CONNECT')) ORDER BY d.oid";

/// Other databases that are read.
const OTHERS_READ: usize = 20;

/// How many doubts are shown: several databases may have the same.
const DOUBTS_SHOWN: usize = 10;

/// What of [`PRIVILEGES`] all databases share.
const SHARED: &str = "settings";

/// The first version in which privileges on settings can be granted.
const PARAMETER_PRIVILEGES: u32 = 150_000;

/// Why a member without SET has what its role may do.
const INHERITS: &str = "INHERIT";

/// Roles that every server has, and why a member of one can act as the server.
const PREDEFINED: [(&str, &str); 3] = [
    ("pg_execute_server_program", "runs programs as the server"),
    ("pg_write_server_files", "writes files as the server"),
    ("pg_read_server_files", "reads files as the server"),
];

/// Roles of a server and which role can become which.
pub struct Rights {
    /// Those that may log in.
    accounts: Vec<String>,
    superusers: Vec<String>,
    /// Memberships of other roles than the predefined ones, in words.
    memberships: Vec<String>,
    reach: Reach,
    /// Roles with the attribute of replicas, which may copy all files.
    copying: Vec<String>,
    /// Functions of [`DEFINERS`], each with its owner.
    definers: Vec<[String; 2]>,
    /// Roles that read the hashes of passwords in other databases, as [`readers_of_passwords`].
    readers: Vec<String>,
    /// What could not be read.
    doubts: Vec<String>,
}

/// Reads which account can become which.
///
/// # Errors
/// The server's error, with the right that would do.
pub fn read(session: &mut PostgresSession) -> Result<Rights, Fault> {
    let denied = |fault: Fault| needing(fault, RIGHT);
    let version = session.value("SHOW server_version_num")?.parse().unwrap_or(0);
    let roles = "SELECT rolname, rolsuper, rolcanlogin, rolcreaterole FROM pg_roles ORDER BY oid";
    let roles: Vec<[String; 4]> = rows(session, roles).map_err(denied)?;
    // Versions before 16 have neither option.
    let members = "SELECT m.rolname, r.rolname, CASE WHEN to_jsonb(a)->>'set_option' = 'false' AND \
                   to_jsonb(a)->>'inherit_option' = 'true' THEN 'inherits' ELSE to_jsonb(a)->>'set_option' END, \
                   a.admin_option FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.member JOIN pg_roles r ON \
                   r.oid = a.roleid ORDER BY a.roleid, a.member";
    let members: Vec<[String; 4]> = rows(session, members).map_err(denied)?;
    let mut rights = Rights::of(&roles, &members, version);
    rights.read_database(session, "", version >= PARAMETER_PRIVILEGES);
    let copying = "SELECT rolname FROM pg_roles WHERE rolreplication AND rolcanlogin AND NOT rolsuper ORDER BY oid";
    rights.copying = rows::<1>(session, copying).map_err(denied)?.concat();
    Ok(rights)
}

impl Rights {
    /// From `roles` (name, superuser, may log in, CREATEROLE) and `members` (member, role, may SET ROLE or only
    /// `inherits`, may grant it).
    fn of(roles: &[[String; 4]], members: &[[String; 4]], version: u32) -> Self {
        let names = |at: usize| roles.iter().filter(|role| role[at] == "t").map(|role| role[0].clone()).collect();
        let mut rights = Self {
            accounts: names(2),
            superusers: names(1),
            memberships: Vec::new(),
            reach: Reach::default(),
            copying: Vec::new(),
            definers: Vec::new(),
            readers: Vec::new(),
            doubts: Vec::new(),
        };
        for [member, role, set, admin] in members {
            // An account that may grant a role may grant it to itself. INHERIT without SET gives what an owner may do:
            // with it an account can replace a superuser's function, which then runs as the superuser.
            let reason = match (set.as_str(), admin.as_str()) {
                ("f" | "false" | "inherits", "t") => "ADMIN option",
                ("inherits", _) => INHERITS,
                ("f" | "false", _) => continue,
                _ => "membership",
            };
            rights.reach.edge(member, role, reason);
            if !role.starts_with("pg_") && reason != INHERITS {
                rights.memberships.push(format!("{member} → {role} ({reason})"));
            }
        }
        if version < NARROW_CREATEROLE {
            let creators: Vec<String> = names(3);
            creators.iter().for_each(|name| rights.reach.edge(name, PREDEFINED[0].0, "CREATEROLE"));
        }
        PREDEFINED.iter().for_each(|(role, reason)| rights.acts_as_server(role, reason));
        rights
    }

    /// Adds what the database of `session` keeps: privileges on functions and languages, triggers and views; and what
    /// all databases share, if it `is_shared_too`. `place` follows what is found.
    fn read_database(&mut self, session: &mut PostgresSession, place: &str, is_shared_too: bool) {
        for (what, sql) in PRIVILEGES.into_iter().filter(|(what, _)| is_shared_too || *what != SHARED) {
            match rows::<2>(session, sql) {
                Ok(held) => {
                    for [holder, reason] in held {
                        self.acts_as_server(&holder, &format!("{reason}{place}"));
                    }
                }
                Err(fault) => self.doubts.push(format!("{what}{place} ({fault})")),
            }
        }
        for (what, sql) in UNJUDGED {
            match rows::<1>(session, sql) {
                Ok(names) if names.is_empty() => {}
                Ok(names) => self.doubts.push(format!("{what}{place}: {}", named(&names.concat()))),
                Err(fault) => self.doubts.push(format!("{what}{place} ({fault})")),
            }
        }
        match rows::<2>(session, DEFINERS) {
            Ok(definers) => {
                let placed = definers.into_iter().map(|[name, owner]| [format!("{name}{place}"), owner]);
                self.definers.extend(placed);
            }
            Err(fault) => self.doubts.push(format!("functions that run with the rights of others{place} ({fault})")),
        }
    }

    /// Adds what the server's other databases keep, each by a session that `open` returns for its name.
    pub fn read_others(
        &mut self,
        session: &mut PostgresSession,
        open: impl Fn(&str) -> Result<PostgresSession, Fault>,
    ) {
        let names = match rows::<1>(session, OTHERS) {
            Ok(names) => names.concat(),
            Err(fault) => return self.doubts.push(format!("other databases (SELECT ON pg_database: {fault})")),
        };
        for name in names.iter().take(OTHERS_READ) {
            let place = format!(" in database {name}");
            let mut session = match open(name) {
                Ok(session) => session,
                Err(fault) => {
                    self.doubts.push(format!("functions, triggers and views{place} ({fault})"));
                    continue;
                }
            };
            self.read_database(&mut session, &place, false);
            match readers_of_passwords(&mut session) {
                Ok(readers) => self.readers.extend(readers),
                Err(fault) => self.doubts.push(format!("which accounts read the hashes of passwords{place} ({fault})")),
            }
        }
        if let Some(more) = names.len().checked_sub(OTHERS_READ).filter(|more| *more > 0) {
            self.doubts.push(format!("{more} further databases"));
        }
    }

    /// Adds that `holder` can act as the server and so as a superuser; empty means every account.
    fn acts_as_server(&mut self, holder: &str, reason: &str) {
        let Some(superuser) = self.superusers.first() else { return };
        if holder.is_empty() {
            self.accounts
                .iter()
                .for_each(|account| self.reach.edge(account, superuser, format!("{reason}, to PUBLIC")));
        } else {
            self.reach.edge(holder, superuser, reason);
        }
    }

    /// Which accounts have all privileges.
    pub fn authorisation(&mut self, readers: Result<Vec<String>, Fault>) -> Judgement {
        let Self { accounts, superusers, reach, copying, definers, readers: elsewhere, doubts, .. } = self;
        let ways = reach.ways(superusers.iter().map(String::as_str));
        let open = definers.iter().filter(|[_, owner]| ways.has(owner)).map(|[name, _]| name.clone());
        let open: Vec<String> = open.collect();
        if !open.is_empty() {
            doubts.push(format!(
                "functions that run with the rights of superusers, or of accounts that can become one (SECURITY \
                 DEFINER): {}",
                named(&open)
            ));
        }
        let ways: Vec<Way<'_>> = accounts.iter().filter_map(|account| ways.of(account)).collect();
        let reached: Vec<&Way<'_>> = ways.iter().filter(|way| !way.steps.is_empty()).collect();
        // Ways that can be closed come first.
        let own = ways.iter().filter(|way| way.steps.is_empty()).map(ToString::to_string);
        let words: Vec<String> = reached.iter().map(ToString::to_string).chain(own).collect();
        let mut judged = limited(&words, accounts.len(), "superusers, and who can become one");
        if let Some(way) = reached.first() {
            if judged.state != State::Available {
                judged.seen += &format!(": {}", named(&words));
            }
            judged = judged.found(&PG_AUTHZ_REACHABLE_SUPERUSER);
            judged.seen += &format!(": {}", remedy(way));
        }
        if ways.len() - reached.len() > 1 {
            judged = judged.found(&PG_AUTHZ_SUPERUSERS);
        }
        let unlimited: BTreeSet<String> = ways.iter().map(|way| way.account.to_owned()).collect();
        if !copying.is_empty() {
            judged.seen += &format!("; for replicas, which read all data, hashes of passwords too: {}", named(copying));
        }
        match readers {
            Ok(mut readers) => {
                readers.append(elsewhere);
                let everybody = readers.iter().any(String::is_empty);
                let read = reach.ways(readers.iter().map(String::as_str).filter(|name| !name.is_empty()));
                let names: Vec<String> = accounts.iter().filter(|name| everybody || read.has(name)).cloned().collect();
                let names: Vec<String> = names.into_iter().filter(|name| !unlimited.contains(name)).collect();
                if !names.is_empty() {
                    judged.seen += &format!(
                        "; {} read the hashes of all passwords: {}: REVOKE SELECT ON pg_authid, pg_shadow, or \
                         pg_read_all_data",
                        names.len(),
                        named(&names)
                    );
                    judged.state = if judged.state == State::Enforced { State::Available } else { judged.state };
                    judged = judged.found(&PG_AUTHZ_READS_PASSWORDS);
                }
            }
            Err(fault) => doubts.push(format!("which accounts read the hashes of passwords ({fault})")),
        }
        let judged = doubts.iter().take(DOUBTS_SHOWN).fold(judged, |judged, doubt| judged.doubted(doubt));
        match doubts.len().checked_sub(DOUBTS_SHOWN) {
            None | Some(0) => judged,
            Some(more) => judged.doubted(&format!("{more} more")),
        }
    }

    /// Which accounts may act as which.
    pub fn roles(&self) -> Judgement {
        let count = self.memberships.len();
        let seen = format!("{} by which an account may act as another (SET ROLE)", counted(count, "membership"));
        match count {
            0 => Judgement::whole(State::Off, seen),
            _ => Judgement::whole(State::Available, format!("{seen}: {}", named(&self.memberships))),
        }
    }
}

/// Roles that were granted the table of passwords, or all tables; an empty name means all accounts. An account that may
/// act as one of them reads it, with `INHERIT` or without.
///
/// # Errors
/// The server's error.
pub fn readers_of_passwords(session: &mut PostgresSession) -> Result<Vec<String>, Fault> {
    let sql = "SELECT coalesce(r.rolname, '') FROM (SELECT relacl AS acl FROM pg_class WHERE oid IN \
               ('pg_catalog.pg_authid'::regclass, 'pg_catalog.pg_shadow'::regclass) UNION ALL SELECT attacl FROM \
               pg_attribute WHERE (attrelid, attname) IN (('pg_catalog.pg_authid'::regclass, 'rolpassword'), \
               ('pg_catalog.pg_shadow'::regclass, 'passwd'))) t, aclexplode(acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee \
               WHERE a.privilege_type = 'SELECT' AND NOT coalesce(r.rolsuper, false) \
               UNION SELECT rolname FROM pg_roles WHERE rolname = 'pg_read_all_data'";
    Ok(rows::<1>(session, sql)?.into_iter().flatten().collect())
}

/// What closes `way` at its first step.
fn remedy(way: &Way<'_>) -> String {
    let account = way.account;
    match way.steps.first() {
        Some((role, "membership" | "ADMIN option" | INHERITS)) => format!("REVOKE {role} FROM {account}"),
        Some((_, "CREATEROLE")) => format!("ALTER ROLE {account} NOCREATEROLE"),
        Some((_, reason)) if reason.starts_with("owns") => "ALTER FUNCTION … OWNER TO a superuser".to_owned(),
        Some((_, reason)) => format!("REVOKE {reason}"),
        None => format!("ALTER ROLE {account} NOSUPERUSER"),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// `roles` as `name attributes`, of which `s`, `l` and `c` are superuser, login and CREATEROLE.
    fn judged(roles: &[&str], members: &[[&str; 4]], version: u32) -> String {
        let role = |text: &&str| {
            let (name, has) = text.split_once(' ').expect("attributes");
            let flag = |sign: char| if has.contains(sign) { "t" } else { "f" }.to_owned();
            [name.to_owned(), flag('s'), flag('l'), flag('c')]
        };
        let roles: Vec<_> = roles.iter().map(role).collect();
        let members: Vec<_> = members.iter().map(|row| row.map(str::to_owned)).collect();
        let mut rights = Rights::of(&roles, &members, version);
        let (all, roles) = (rights.authorisation(Ok(Vec::new())), rights.roles());
        format!("{}: {}\n{}: {}\n", all.state.words(), all.seen, roles.state.words(), roles.seen)
    }

    #[test]
    fn ways_to_a_superuser_are_named() {
        let roles = ["postgres sl", "app l", "report l", "dba -", "maker lc"];
        let text = [
            judged(&roles[..3], &[], 150_000),
            judged(&roles[..3], &[["app", "postgres", "", "f"]], 150_000),
            judged(&roles[..4], &[["app", "dba", "", "f"], ["dba", "pg_write_server_files", "", "f"]], 150_000),
            judged(&roles, &[], 150_000),
            judged(&roles, &[], 160_000),
            // Without SET a member cannot use the superuser attribute, unless it may grant itself SET.
            judged(&roles[..3], &[["app", "postgres", "false", "f"]], 160_000),
            judged(&roles[..3], &[["app", "postgres", "false", "t"]], 160_000),
            // It owns what the superuser owns, with functions that run as their owner among them.
            judged(&roles[..3], &[["app", "postgres", "inherits", "f"]], 160_000),
            // Neither SET nor INHERIT gives nothing, and INHERIT alone no SET ROLE.
            judged(
                &roles[..4],
                &[
                    ["app", "dba", "false", "f"],
                    ["report", "dba", "inherits", "f"],
                    ["dba", "pg_write_server_files", "", "f"],
                ],
                160_000,
            ),
            judged(&roles[..4], &[["app", "dba", "inherits", "f"]], 160_000),
        ]
        .concat();
        expect![[r#"
            enforced: 1 of 3 accounts may do everything (superusers, and who can become one)
            off: 0 memberships by which an account may act as another (SET ROLE)
            available but not enforced: 2 of 3 accounts may do everything (superusers, and who can become one): app → postgres (membership); postgres: REVOKE postgres FROM app
            available but not enforced: 1 membership by which an account may act as another (SET ROLE): app → postgres (membership)
            available but not enforced: 2 of 3 accounts may do everything (superusers, and who can become one): app → dba (membership) → pg_write_server_files (membership) → postgres (writes files as the server); postgres: REVOKE dba FROM app
            available but not enforced: 1 membership by which an account may act as another (SET ROLE): app → dba (membership)
            available but not enforced: 2 of 4 accounts may do everything (superusers, and who can become one): maker → pg_execute_server_program (CREATEROLE) → postgres (runs programs as the server); postgres: ALTER ROLE maker NOCREATEROLE
            off: 0 memberships by which an account may act as another (SET ROLE)
            enforced: 1 of 4 accounts may do everything (superusers, and who can become one)
            off: 0 memberships by which an account may act as another (SET ROLE)
            enforced: 1 of 3 accounts may do everything (superusers, and who can become one)
            off: 0 memberships by which an account may act as another (SET ROLE)
            available but not enforced: 2 of 3 accounts may do everything (superusers, and who can become one): app → postgres (ADMIN option); postgres: REVOKE postgres FROM app
            available but not enforced: 1 membership by which an account may act as another (SET ROLE): app → postgres (ADMIN option)
            available but not enforced: 2 of 3 accounts may do everything (superusers, and who can become one): app → postgres (INHERIT); postgres: REVOKE postgres FROM app
            off: 0 memberships by which an account may act as another (SET ROLE)
            available but not enforced: 2 of 3 accounts may do everything (superusers, and who can become one): report → dba (INHERIT) → pg_write_server_files (membership) → postgres (writes files as the server); postgres: REVOKE dba FROM report
            off: 0 memberships by which an account may act as another (SET ROLE)
            enforced: 1 of 3 accounts may do everything (superusers, and who can become one)
            off: 0 memberships by which an account may act as another (SET ROLE)
        "#]].assert_eq(&text);
    }

    #[test]
    fn ten_doubts_are_shown_and_further_ones_counted() {
        let last = |count: usize| {
            let mut rights = Rights::of(&[], &[], 160_000);
            rights.doubts = (1..=count).map(|number| format!("d{number}")).collect();
            let seen = rights.authorisation(Ok(Vec::new())).seen;
            seen.rsplit("; ").next().map(str::to_owned).unwrap_or_default()
        };
        assert_eq!([10, 11, 12].map(last), ["not judged: d10", "not judged: 1 more", "not judged: 2 more"]);
    }

    #[test]
    fn ten_thousand_roles() {
        let roles: Vec<String> =
            (0..10_000).map(|number| format!("r{number} l")).chain(["postgres sl".to_owned()]).collect();
        let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
        let names: Vec<String> = (0..10_000).map(|number| format!("r{number}")).collect();
        let members: Vec<[&str; 4]> =
            names.windows(2).map(|pair| [pair[0].as_str(), pair[1].as_str(), "", "f"]).collect();
        assert!(judged(&roles, &members, 150_000).starts_with("enforced: 1 of 10001"));
    }
}
