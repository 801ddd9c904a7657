//! How accounts log in. This connection is judged by its login, all others by rules, maps and stored passwords.

use tithe_machine::fault::Fault;
use tithe_plugin::session::{SqlSession as _, rows};

use super::open;
use crate::{
    findings::{PG_AUTHN_MAP, PG_AUTHN_NO_PASSWORD, PG_AUTHN_WEAK_HASH},
    hops::{Hops, let_in_by},
    inspect::{Judgement, Rules, authentication as at_the_door},
    postgres::{
        hba::{self, Hba},
        session::PostgresSession,
    },
    target::Target,
};

/// Judges this connection, which used `method`, and then all others.
pub fn authentication(
    session: &mut PostgresSession,
    target: &Target,
    method: Result<String, Fault>,
    (hba, hops): (Result<&Hba, &Fault>, Result<&Hops, &Fault>),
) -> Judgement {
    let door = match method {
        Ok(method) => at_the_door(target, &method, open),
        Err(fault) => Judgement::unseen(format!(
            "let in by the socket without a password; whether by peer or trust is unknown ({fault})"
        )),
    };
    if let Some(between) = hops.ok().and_then(|hops| hops.between) {
        return let_in_by(between, door);
    }
    let rules = hba.map_err(Clone::clone).map(|hba| {
        let mut rules = hba.of_authentication();
        add_hashes(session, hba, &mut rules);
        add_maps(session, hba, &mut rules);
        rules
    });
    let open = door.state == tithe_plugin::matrix::State::Off;
    let judged = door.with_rules(rules, hba::RIGHT);
    if open { judged.found(&PG_AUTHN_NO_PASSWORD) } else { judged }
}

/// The roles and databases in whose sessions new passwords are kept as MD5 hashes, whatever the server is set to.
const OWN_KIND: &str = "SELECT DISTINCT coalesce('role ' || r.rolname, 'database ' || d.datname, 'everybody') FROM \
                        pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) c LEFT JOIN pg_roles r ON \
                        r.oid = s.setrole LEFT JOIN pg_database d ON d.oid = s.setdatabase WHERE lower(c) IN \
                        ('password_encryption=md5', 'password_encryption=on') ORDER BY 1";

/// Adds the accounts that log in with an MD5 hash, if some rule [takes one](Hba::takes_md5).
fn add_hashes(session: &mut PostgresSession, hba: &Hba, rules: &mut Rules) {
    if !hba.takes_md5() {
        return;
    }
    if session.value("SHOW password_encryption").is_ok_and(|kind| kind == "md5") {
        rules.findings.push(&PG_AUTHN_WEAK_HASH);
        rules.exceptions.push("new passwords are kept as MD5 hashes (password_encryption = md5)".to_owned());
    }
    match rows::<1>(session, OWN_KIND) {
        Ok(names) => {
            for [name] in names {
                rules.findings.push(&PG_AUTHN_WEAK_HASH);
                rules.exceptions.push(format!("new passwords that {name} sets are kept as MD5 hashes (ALTER … SET)"));
            }
        }
        Err(fault) => {
            rules.doubts.push(format!("whose new passwords are MD5 hashes (SELECT ON pg_db_role_setting: {fault})"));
        }
    }
    let sql = "SELECT rolname FROM pg_authid WHERE rolcanlogin AND rolpassword LIKE 'md5%' ORDER BY oid";
    match session.run(sql) {
        Ok(rows) => {
            let names: Vec<String> = rows.into_iter().flatten().flatten().collect();
            if !names.is_empty() {
                rules.findings.push(&PG_AUTHN_WEAK_HASH);
            }
            rules
                .exceptions
                .extend(names.into_iter().map(|name| format!("the password of {name} is kept as an MD5 hash")));
        }
        Err(fault) => {
            rules.doubts.push(format!("whose password is kept as an MD5 hash (SELECT ON pg_authid: {fault})"))
        }
    }
}

/// Adds maps in use by which every user may be an account, or one user may be every account.
fn add_maps(session: &mut PostgresSession, hba: &Hba, rules: &mut Rules) {
    let used = hba.maps();
    if used.is_empty() {
        return;
    }
    // Versions before 15 do not show the file. The server's own engine tries the pattern, as it does at a login. From
    // version 16 on, `all` and patterns may be in the place of the account too.
    const PROBES: [&str; 2] = ["tithe-7fk2 nobody", "z9@elsewhere.example"];
    let matches = |column: &str| {
        let all = PROBES.map(|probe| format!("'{probe}' ~ substr({column}, 2)")).join(" AND ");
        format!("CASE WHEN {column} LIKE '/%' THEN {all} ELSE false END")
    };
    let sql = format!(
        "SELECT map_name, sys_name, pg_username, coalesce(rolsuper, false), anybody, every FROM (SELECT *, {} AS \
         anybody, current_setting('server_version_num')::int >= 160000 AND (pg_username = 'all' OR {}) AS every FROM \
         pg_ident_file_mappings WHERE error IS NULL) m LEFT JOIN pg_roles ON rolname = pg_username WHERE (anybody OR \
         every) AND position(chr(92) || '1' in pg_username) = 0",
        matches("sys_name"),
        matches("pg_username")
    );
    // The view shows the files, which can differ from the maps that the server has loaded. An account that may not ask
    // for their age may not ask for that of `pg_hba.conf` either, which is a doubt already.
    let changed = "SELECT coalesce(bool_or((pg_stat_file(f.name)).modification > pg_conf_load_time()), false) FROM \
                   (SELECT current_setting('ident_file') AS name UNION SELECT to_jsonb(m)->>'file_name' FROM \
                   pg_ident_file_mappings m) f WHERE f.name IS NOT NULL";
    if session.value(changed).is_ok_and(|changed| changed == "t") {
        rules.doubts.push("pg_ident.conf was changed after it was loaded (SELECT pg_reload_conf())".to_owned());
    }
    match rows::<6>(session, &sql) {
        Ok(lines) => {
            for line in lines.iter().filter(|line| used.contains(&line[0])) {
                rules.exceptions.push(whom_it_lets_in(line));
                rules.findings.push(&PG_AUTHN_MAP);
            }
        }
        Err(fault) => {
            let words =
                format!("maps of pg_ident.conf ({}; SELECT ON pg_ident_file_mappings: {fault})", used.join(", "));
            rules.doubts.push(words);
        }
    }
}

/// The exception for one line of a map that [`add_maps`] reads: which users it lets log in as which account.
fn whom_it_lets_in([map, user, name, superuser, anybody, every]: &[String; 6]) -> String {
    let user = if anybody == "t" { format!("everybody ({user})") } else { user.clone() };
    let account = if every == "t" { format!("every account ({name})") } else { name.clone() };
    let superuser = if superuser == "t" { ", a superuser" } else { "" };
    format!("map {map} of pg_ident.conf lets {user} be {account}{superuser}")
}
