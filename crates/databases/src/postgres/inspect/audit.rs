//! What is logged of whom: the server's settings with what `ALTER ROLE` and `ALTER DATABASE` set in their place, judged
//! without a server.

use std::collections::{BTreeSet, HashMap};

use tithe_machine::fault::Fault;
use tithe_plugin::{matrix::State, session::SqlSession as _};

use super::recorders::{NAMES, Recorder, Settings, recorders};
use crate::{
    findings::{PG_AUDIT_OFF, PG_AUDIT_PARTIAL, PG_AUDIT_REPEATS_VALUES},
    inspect::{Judgement, Rules},
    postgres::session::PostgresSession,
};

/// What `ALTER ROLE … SET` and `ALTER DATABASE … SET` say in the place of the server's settings.
#[derive(Debug, Clone)]
struct Override {
    /// Empty for all databases.
    database: String,
    /// Empty for all roles.
    role: String,
    settings: Settings,
}

/// Looks at what is logged of every account in every database.
///
/// # Errors
/// The server's error.
pub fn judge_log(session: &mut PostgresSession) -> Result<Judgement, Fault> {
    let (base, mut doubts) = settings(session)?;
    let overrides = overrides(session)?;
    let setters = setters(session)?;
    if base["pgaudit.log"] != "not loaded"
        && !base["shared_preload_libraries"].contains("pgaudit")
        && base["log_statement"] != "all"
    {
        doubts.push("whether pgaudit is loaded for everybody (it is not seen in shared_preload_libraries)".to_owned());
    }
    let tables = audited_tables(session, &base["pgaudit.role"]).transpose();
    let tables = tables.unwrap_or_else(|fault| {
        doubts.push(format!("which tables object auditing is about ({fault})"));
        None
    });
    Ok(judge(&base, &overrides, setters, doubts, tables))
}

/// How many tables of this database `role` of object auditing has rights on; `None` where there is no such role.
fn audited_tables(session: &mut PostgresSession, role: &str) -> Option<Result<String, Fault>> {
    if role.is_empty() {
        return None;
    }
    let name = role.replace('\'', "''");
    let sql = format!(
        "SELECT count(*) FILTER (WHERE has_table_privilege('{name}', c.oid, 'SELECT')), \
         count(*) FILTER (WHERE has_table_privilege('{name}', c.oid, 'INSERT') AND \
         has_table_privilege('{name}', c.oid, 'UPDATE') AND has_table_privilege('{name}', c.oid, 'DELETE')), count(*) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p', 'f', 'm', 'v') \
         AND nspname <> 'information_schema' AND nspname !~ '^pg_'"
    );
    Some(session.run(&sql).map(|rows| {
        let row = rows.into_iter().next().unwrap_or_default();
        let [reads, writes, all] = <[_; 3]>::try_from(row).unwrap_or_default().map(Option::unwrap_or_default);
        format!("of {all} tables of this database reads of {reads} and writes of {writes} are recorded for {role}")
    }))
}

/// The server's settings: those of this session, where it has none of its own.
fn settings(session: &mut PostgresSession) -> Result<(Settings, Vec<String>), Fault> {
    let mut settings: Settings = NAMES.iter().map(|(name, unset)| ((*name).to_owned(), (*unset).to_owned())).collect();
    let mut doubts = Vec::new();
    let names = NAMES.map(|(name, _)| format!("'{name}'")).join(", ");
    let sql = format!("SELECT name, setting, source, boot_val FROM pg_settings WHERE name IN ({names})");
    for row in session.run(&sql)? {
        let [name, value, source, boot] = <[_; 4]>::try_from(row).unwrap_or_default().map(Option::unwrap_or_default);
        let own = ["database", "user", "database user", "global", "client", "session"].contains(&source.as_str());
        let value = if own { of_file(session, &name, boot, &mut doubts).unwrap_or(value) } else { value };
        settings.insert(name, value);
    }
    Ok((settings, doubts))
}

/// What the server's files say of `name`, for which this account has a value of its own.
fn of_file(session: &mut PostgresSession, name: &str, boot: String, doubts: &mut Vec<String>) -> Option<String> {
    let sql =
        format!("SELECT setting FROM pg_file_settings WHERE applied AND name = '{name}' ORDER BY seqno DESC LIMIT 1");
    match session.run(&sql) {
        Ok(rows) => Some(rows.into_iter().flatten().flatten().next().unwrap_or(boot)),
        Err(fault) => {
            doubts.push(format!("{name} of others (this account has its own, and pg_file_settings: {fault})"));
            None
        }
    }
}

/// One row per setting that is set for a role or a database.
fn overrides(session: &mut PostgresSession) -> Result<Vec<Override>, Fault> {
    let sql = "SELECT coalesce(d.datname, ''), coalesce(r.rolname, ''), c FROM pg_db_role_setting s \
               CROSS JOIN LATERAL unnest(s.setconfig) c LEFT JOIN pg_database d ON d.oid = s.setdatabase \
               LEFT JOIN pg_roles r ON r.oid = s.setrole WHERE s.setrole = 0 OR r.rolcanlogin ORDER BY 1, 2";
    let rows = session.run(sql)?.into_iter().map(|row| <[_; 3]>::try_from(row).unwrap_or_default());
    Ok(rows.map(|row| Override::of(row.map(Option::unwrap_or_default))).collect())
}

/// Accounts that may set such a setting for themselves: from version 15 on it can be granted.
fn setters(session: &mut PostgresSession) -> Result<Vec<String>, Fault> {
    if session.value("SELECT to_regclass('pg_parameter_acl') IS NULL")? == "t" {
        return Ok(Vec::new());
    }
    let names = NAMES.map(|(name, _)| format!("'{name}'")).join(", ");
    let sql = format!(
        "SELECT coalesce(r.rolname, 'everybody') || ' may set ' || parname FROM pg_parameter_acl, aclexplode(paracl) a \
         LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE a.privilege_type = 'SET' AND parname IN ({names}) \
         AND NOT coalesce(r.rolsuper, false)"
    );
    Ok(session.run(&sql)?.into_iter().flatten().flatten().collect())
}

impl Override {
    fn of([database, role, setting]: [String; 3]) -> Self {
        let (name, value) = setting.split_once('=').unwrap_or_default();
        Self { database, role, settings: [(name.to_ascii_lowercase(), value.to_owned())].into() }
    }
}

/// What is logged by `base` and by what stands in its place for some; `tables` is what object auditing is about.
fn judge(
    base: &Settings,
    overrides: &[Override],
    setters: Vec<String>,
    mut doubts: Vec<String>,
    tables: Option<String>,
) -> Judgement {
    let relevant: Vec<_> =
        overrides.iter().filter(|own| own.settings.keys().all(|name| base.contains_key(name))).collect();
    let mut set: HashMap<(&str, &str), Vec<&Override>> = HashMap::new();
    relevant.iter().for_each(|own| set.entry((&own.database, &own.role)).or_default().push(own));
    // The later of two wins: of all, of the database, of the role, of the role in the database (documentation, "ALTER
    // ROLE").
    let of = |database: &str, role: &str| {
        let mut settings = base.clone();
        let mut keys = vec![("", "")];
        [(database, ""), ("", role), (database, role)].into_iter().for_each(|key| {
            if !keys.contains(&key) {
                keys.push(key);
            }
        });
        let own = keys.iter().filter_map(|key| set.get(key)).flatten();
        own.for_each(|own| settings.extend(own.settings.clone()));
        recorders(&settings)
    };
    let all = of("", "");
    let mut less = Vec::new();
    let mut found: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut more = Vec::new();
    // What is set for a role in one database, and what for either alone, may meet: each pair that is named counts.
    let (pairs, untold) = pairs(&relevant);
    if untold > 0 {
        doubts.push(format!("{untold} pairs of a role and a database that both have settings of their own"));
    }
    for (database, role) in pairs {
        let own = of(database, role);
        if own != all {
            more.extend(own.iter().filter(|recorder| !all.contains(recorder)).cloned());
        }
        let told = found.contains(&(database, "")) || found.contains(&("", role));
        if state(&own) != State::Enforced && !told {
            found.insert((database, role));
            less.push(format!("{}: {}", whom(database, role), words(&own)));
        }
    }
    let mut seen = words(&all);
    tables.iter().for_each(|tables| seen += &format!("; {tables}"));
    let repeats: BTreeSet<&str> =
        all.iter().chain(&more).map(|recorder| recorder.repeats).filter(|name| !name.is_empty()).collect();
    if !repeats.is_empty() {
        let names: Vec<&str> = repeats.into_iter().collect();
        seen += &format!("; values stand in the log in the clear, by {}", names.join(", "));
    }
    let read = format!("{} settings of single roles and databases", relevant.len());
    let remedy = "ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET ON PARAMETER";
    let repeated = seen.contains("in the clear, by");
    let (state, exceptions) = match state(&all) {
        State::Enforced => (State::Enforced, less.into_iter().chain(setters).collect()),
        State::Off if more.is_empty() => (State::Off, Vec::new()),
        _ => (State::Available, Vec::new()),
    };
    if state == State::Available && all.is_empty() {
        seen += "; some roles or databases are recorded: ";
        seen += &words(&more);
    }
    let rules = Rules { read, exceptions, remedy, doubts, ..Rules::default() };
    let judged = Judgement::account(state, seen).with_rules(Ok(rules), "");
    let judged = match judged.state {
        State::Off => judged.found(&PG_AUDIT_OFF),
        State::Available => judged.found(&PG_AUDIT_PARTIAL),
        _ => judged,
    };
    if repeated { judged.found(&PG_AUDIT_REPEATS_VALUES) } else { judged }
}

/// Databases and roles for which something may be other than for all, and how many pairs of both were too many.
fn pairs<'a>(overrides: &[&'a Override]) -> (BTreeSet<(&'a str, &'a str)>, usize) {
    const MOST: usize = 10_000;
    let of_databases = overrides.iter().filter(|own| own.role.is_empty() && !own.database.is_empty());
    let databases: BTreeSet<&str> = of_databases.map(|own| own.database.as_str()).collect();
    let of_roles = overrides.iter().filter(|own| own.database.is_empty() && !own.role.is_empty());
    let roles: BTreeSet<&str> = of_roles.map(|own| own.role.as_str()).collect();
    let mut pairs: BTreeSet<(&str, &str)> =
        overrides.iter().map(|own| (own.database.as_str(), own.role.as_str())).collect();
    pairs.remove(&("", ""));
    let both = databases.len() * roles.len();
    if both > MOST {
        return (pairs, both);
    }
    pairs.extend(databases.iter().flat_map(|database| roles.iter().map(move |role| (*database, *role))));
    (pairs, 0)
}

fn whom(database: &str, role: &str) -> String {
    match (database, role) {
        (database, "") => format!("database {database}"),
        ("", role) => format!("role {role}"),
        (database, role) => format!("role {role} in database {database}"),
    }
}

/// What is recorded, and what of it is left out.
fn words(recorders: &[Recorder]) -> String {
    let one = |recorder: &Recorder| match recorder.leaves_out.as_slice() {
        [] => recorder.records.clone(),
        out => format!("{}, without {}", recorder.records, out.join(", ")),
    };
    match recorders {
        [] => "nothing of what clients do is recorded".to_owned(),
        recorders => recorders.iter().map(one).collect::<Vec<_>>().join("; "),
    }
}

fn state(recorders: &[Recorder]) -> State {
    match recorders {
        [] => State::Off,
        [first, ..] if first.complete => State::Enforced,
        _ => State::Available,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn base(set: &[(&str, &str)]) -> Settings {
        let mut settings: Settings =
            NAMES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        settings.extend(set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        settings
    }

    fn judged(set: &[(&str, &str)], overrides: &[[&str; 3]]) -> String {
        let overrides: Vec<_> = overrides.iter().map(|row| Override::of(row.map(str::to_owned))).collect();
        let Judgement { state, scope, seen, .. } = judge(&base(set), &overrides, Vec::new(), Vec::new(), None);
        format!("{}, {}: {seen}\n", state.words(), scope.words())
    }

    #[test]
    fn what_is_logged_of_everybody() {
        let text = [
            judged(&[], &[]),
            judged(&[("log_statement", "mod")], &[]),
            judged(&[("log_statement", "all")], &[]),
            judged(&[("log_statement", "all"), ("log_min_messages", "fatal")], &[]),
            judged(&[("log_statement", "all"), ("log_destination", "")], &[]),
            judged(&[("pgaudit.log", "all, -misc")], &[]),
            judged(&[("pgaudit.log", "all, -read")], &[]),
            judged(&[("pgaudit.log", "read,write"), ("pgaudit.log_level", "notice")], &[]),
        ]
        .concat();
        expect![[r#"
            off, whole server: nothing of what clients do is recorded; 0 settings of single roles and databases: no exception
            available but not enforced, whole server: log_statement = mod: what changes data or definitions; values stand in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception
            enforced, whole server: log_statement = all: every statement that the server understands; values stand in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception
            off, whole server: nothing of what clients do is recorded; 0 settings of single roles and databases: no exception
            off, whole server: nothing of what clients do is recorded; 0 settings of single roles and databases: no exception
            enforced, whole server: pgaudit.log = all, -misc: reads and writes that succeed, without denied statements; values stand in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception
            available but not enforced, whole server: pgaudit.log = all, -read: these classes alone, without denied statements; values stand in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception
            off, whole server: nothing of what clients do is recorded; 0 settings of single roles and databases: no exception
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn roles_and_databases_that_are_left_out_are_named() {
        let all = [("pgaudit.log", "read,write")];
        let text = [
            judged(&all, &[["", "app", "search_path=app"]]),
            judged(&all, &[["", "app", "pgaudit.log=none"]]),
            judged(&all, &[["shop", "", "pgaudit.log=write"], ["shop", "app", "pgaudit.log=all"]]),
            // The role's own setting stands above that of the database.
            judged(&all, &[["shop", "", "pgaudit.log=none"], ["", "app", "pgaudit.log=all"]]),
            judged(&[], &[["", "app", "log_statement=all"]]),
        ]
        .concat();
        expect![[r#"
            enforced, whole server: pgaudit.log = read,write: reads and writes that succeed, without denied statements; values stand in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception
            available but not enforced, whole server: pgaudit.log = read,write: reads and writes that succeed, without denied statements; values stand in the log in the clear, by pgaudit.log_statement; 1 settings of single roles and databases: 1 exception: role app: nothing of what clients do is recorded: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET ON PARAMETER
            available but not enforced, whole server: pgaudit.log = read,write: reads and writes that succeed, without denied statements; values stand in the log in the clear, by pgaudit.log_statement; 2 settings of single roles and databases: 1 exception: database shop: pgaudit.log = write: these classes alone, without denied statements: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET ON PARAMETER
            available but not enforced, whole server: pgaudit.log = read,write: reads and writes that succeed, without denied statements; values stand in the log in the clear, by pgaudit.log_statement; 2 settings of single roles and databases: 1 exception: database shop: nothing of what clients do is recorded: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET ON PARAMETER
            available but not enforced, whole server: nothing of what clients do is recorded; values stand in the log in the clear, by log_statement; some roles or databases are recorded: log_statement = all: every statement that the server understands; 1 settings of single roles and databases: no exception
        "#]].assert_eq(&text);
    }
}
