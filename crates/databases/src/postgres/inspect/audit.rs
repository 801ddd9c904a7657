//! What is logged of whom: the server's settings with what `ALTER ROLE` and `ALTER DATABASE` set in their place, judged
//! without a server.

use std::collections::{BTreeMap, BTreeSet};

use tithe_machine::fault::Fault;
use tithe_plugin::{matrix::State, session::SqlSession as _};

use crate::{
    inspect::{Judgement, Rules},
    postgres::session::PostgresSession,
};

/// Settings that decide about the log, with what they are where a server does not have them.
const NAMES: [(&str, &str); 6] = [
    ("log_statement", "none"),
    ("pgaudit.log", "not loaded"),
    ("pgaudit.log_level", "log"),
    ("log_min_messages", "warning"),
    ("log_destination", "stderr"),
    // Shown to superusers and members of pg_read_all_settings.
    ("shared_preload_libraries", "not shown"),
];

/// Levels of messages in the order that `log_min_messages` has for the log (documentation, "log_min_messages").
const LEVELS: [&str; 12] =
    ["debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error", "log", "fatal", "panic"];

/// Settings by name.
type Settings = BTreeMap<String, String>;

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
        && !statements(&base)
    {
        doubts.push("whether pgaudit is loaded for everybody (it is not seen in shared_preload_libraries)".to_owned());
    }
    Ok(judge(&base, &overrides, setters, doubts))
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

    fn is_for(&self, database: &str, role: &str) -> bool {
        [(&self.database, database), (&self.role, role)].iter().all(|(own, other)| own.is_empty() || *own == other)
    }

    /// The later of two wins: of all, of the database, of the role, of the role in the database (documentation, "ALTER
    /// ROLE").
    fn rank(&self) -> (bool, bool) {
        (!self.role.is_empty(), !self.database.is_empty())
    }
}

/// What is logged by `base` and by what stands in its place for some.
fn judge(base: &Settings, overrides: &[Override], setters: Vec<String>, doubts: Vec<String>) -> Judgement {
    let relevant: Vec<_> =
        overrides.iter().filter(|own| own.settings.keys().all(|name| base.contains_key(name))).collect();
    let of = |database: &str, role: &str| {
        let mut own: Vec<_> = relevant.iter().filter(|own| own.is_for(database, role)).collect();
        own.sort_by_key(|own| own.rank());
        let mut settings = base.clone();
        own.iter().for_each(|own| settings.extend(own.settings.clone()));
        settings
    };
    let names =
        |name: fn(&Override) -> &str| -> BTreeSet<&str> { relevant.iter().map(|own| name(own)).chain([""]).collect() };
    let all = of("", "");
    let mut less = Vec::new();
    let mut found: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut more = false;
    for database in names(|own| &own.database) {
        for role in names(|own| &own.role) {
            let settings = of(database, role);
            more |= state(&settings) != State::Off;
            let told = found.contains(&(database, "")) || found.contains(&("", role));
            if state(&settings) != State::Enforced && !told && (database, role) != ("", "") {
                found.insert((database, role));
                less.push(format!("{}: {}", whom(database, role), words(&settings)));
            }
        }
    }
    let seen = words(&all);
    let read = format!("{} settings of single roles and databases", relevant.len());
    let remedy = "ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET ON PARAMETER";
    let judgement = match state(&all) {
        State::Enforced => {
            let exceptions = less.into_iter().chain(setters).collect();
            let seen = format!("{seen}: reads and writes, as the settings say");
            return Judgement::account(State::Enforced, seen)
                .with_rules(Ok(Rules { read, exceptions, remedy, doubts, ..Rules::default() }), "");
        }
        State::Off if !more => Judgement::account(State::Off, seen),
        _ => Judgement::account(State::Available, format!("{seen}: not all reads and writes")),
    };
    judgement.with_rules(Ok(Rules { read, remedy, doubts, ..Rules::default() }), "")
}

fn whom(database: &str, role: &str) -> String {
    match (database, role) {
        (database, "") => format!("database {database}"),
        ("", role) => format!("role {role}"),
        (database, role) => format!("role {role} in database {database}"),
    }
}

/// The settings that the log depends on, as far as they are not what every server has.
fn words(settings: &Settings) -> String {
    let told = NAMES.iter().take(5).filter(|(name, unset)| {
        ["log_statement", "pgaudit.log"].contains(name) || !settings[*name].eq_ignore_ascii_case(unset)
    });
    let told: Vec<_> = told.map(|(name, _)| format!("{name} = {}", settings[*name])).collect();
    told.join(", ")
}

/// True when a message of `level` goes to the log.
fn is_written(settings: &Settings, level: &str) -> bool {
    let place = |level: &str| LEVELS.iter().position(|known| level.eq_ignore_ascii_case(known));
    !settings["log_destination"].is_empty() && place(level) >= place(&settings["log_min_messages"])
}

/// True when every statement is in the log.
fn statements(settings: &Settings) -> bool {
    settings["log_statement"] == "all" && is_written(settings, "log")
}

fn state(settings: &Settings) -> State {
    let audited = is_written(settings, &settings["pgaudit.log_level"]);
    let classes = if audited { classes(&settings["pgaudit.log"]) } else { BTreeSet::new() };
    let some = settings["log_statement"] != "none" && is_written(settings, "log");
    match statements(settings) || ["read", "write"].iter().all(|class| classes.contains(class)) {
        true => State::Enforced,
        false if some || !classes.is_empty() => State::Available,
        false => State::Off,
    }
}

/// The classes of pgaudit that a list names, `-class` taking one away again (pgaudit's README, "pgaudit.log").
fn classes(list: &str) -> BTreeSet<&'static str> {
    const ALL: [&str; 7] = ["read", "write", "function", "role", "ddl", "misc", "misc_set"];
    let mut classes = BTreeSet::new();
    for name in list.split(',').map(|name| name.trim().to_ascii_lowercase()) {
        let (takes, name) = name.strip_prefix('-').map_or((false, name.as_str()), |name| (true, name));
        for class in ALL.into_iter().filter(|class| *class == name || name == "all") {
            if takes {
                classes.remove(class)
            } else {
                classes.insert(class)
            };
        }
    }
    classes
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
        let Judgement { state, scope, seen, .. } = judge(&base(set), &overrides, Vec::new(), Vec::new());
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
            off, whole server: log_statement = none, pgaudit.log = not loaded; 0 settings of single roles and databases: no exception
            available but not enforced, whole server: log_statement = mod, pgaudit.log = not loaded: not all reads and writes; 0 settings of single roles and databases: no exception
            enforced, whole server: log_statement = all, pgaudit.log = not loaded: reads and writes, as the settings say; 0 settings of single roles and databases: no exception
            off, whole server: log_statement = all, pgaudit.log = not loaded, log_min_messages = fatal; 0 settings of single roles and databases: no exception
            off, whole server: log_statement = all, pgaudit.log = not loaded, log_destination = ; 0 settings of single roles and databases: no exception
            enforced, whole server: log_statement = none, pgaudit.log = all, -misc: reads and writes, as the settings say; 0 settings of single roles and databases: no exception
            available but not enforced, whole server: log_statement = none, pgaudit.log = all, -read: not all reads and writes; 0 settings of single roles and databases: no exception
            off, whole server: log_statement = none, pgaudit.log = read,write, pgaudit.log_level = notice; 0 settings of single roles and databases: no exception
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
            enforced, whole server: log_statement = none, pgaudit.log = read,write: reads and writes, as the settings say; 0 settings of single roles and databases: no exception
            available but not enforced, whole server: log_statement = none, pgaudit.log = read,write: reads and writes, as the settings say; 1 settings of single roles and databases: 1 exception: role app: log_statement = none, pgaudit.log = none: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET ON PARAMETER
            available but not enforced, whole server: log_statement = none, pgaudit.log = read,write: reads and writes, as the settings say; 2 settings of single roles and databases: 1 exception: database shop: log_statement = none, pgaudit.log = write: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET ON PARAMETER
            available but not enforced, whole server: log_statement = none, pgaudit.log = read,write: reads and writes, as the settings say; 2 settings of single roles and databases: 1 exception: database shop: log_statement = none, pgaudit.log = none: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET ON PARAMETER
            available but not enforced, whole server: log_statement = none, pgaudit.log = not loaded: not all reads and writes; 1 settings of single roles and databases: no exception
        "#]].assert_eq(&text);
    }
}
