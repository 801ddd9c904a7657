//! What is logged for which account: the server's settings and the overrides by `ALTER ROLE` and `ALTER DATABASE`,
//! judged without a server.

use std::collections::{BTreeSet, HashMap};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    matrix::State,
    recording::{Recording, Sent},
    session::{SqlSession as _, rows},
};

use super::{
    needing,
    recorders::{
        NAMES, NOT_SHOWN, OF_FAILED, Recorder, Settings, canonical, goes_elsewhere, is_collected, keeps_failed,
        recorders, unseen_name,
    },
};
use crate::{
    findings::{PG_AUDIT_OFF, PG_AUDIT_PARTIAL, PG_AUDIT_REPEATS_VALUES, PG_AUTHN_REPEATS_PASSWORDS},
    inspect::{Judgement, Rules, named},
    postgres::session::PostgresSession,
};

/// What `ALTER ROLE … SET` and `ALTER DATABASE … SET` put in the place of the server's settings.
#[derive(Debug, Clone)]
struct Override {
    /// Empty for all databases.
    database: String,
    /// Empty for all roles.
    role: String,
    settings: Settings,
}

/// What is logged for all accounts, and which accounts differ.
pub struct Log {
    /// For every account without settings of its own.
    all: Vec<Recorder>,
    /// Further recorders that apply to other accounts, each once.
    more: Vec<Recorder>,
    /// Accounts that are not recorded completely, in words.
    less: Vec<String>,
    /// How many settings of single roles and databases are about the log.
    own_settings: usize,
    setters: Vec<String>,
    /// Accounts for replicas whose commands are not recorded, by any recorder: such an account may copy all data.
    copying: Vec<String>,
    /// The tables that object auditing covers.
    tables: Option<String>,
    /// A destination that cannot be checked.
    elsewhere: Option<String>,
    /// True if it is written to the server's own files.
    is_collected: bool,
    /// True if `pg_stat_statements` keeps the texts of utility statements.
    keeps_texts: bool,
    /// The setting by which the log has the text of statements that fail.
    keeps_failed: Option<String>,
    /// What makes this server encrypt its files, unlike PostgreSQL itself.
    encrypts: Option<String>,
    /// True if this account is not shown which libraries are loaded.
    hides_libraries: bool,
    /// What another audit log than those that are judged records.
    audits: Option<String>,
    doubts: Vec<String>,
}

/// Reads what is logged for every account in every database.
///
/// # Errors
/// The server's error.
pub fn read(session: &mut PostgresSession) -> Result<Log, Fault> {
    let (base, mut doubts) = settings(session)?;
    let overrides = match overrides(session) {
        Ok(overrides) => overrides,
        Err(fault) => {
            doubts.push(format!(
                "single roles and databases (SELECT ON pg_db_role_setting, pg_database, pg_roles: {fault})"
            ));
            Vec::new()
        }
    };
    let setters = setters(session).unwrap_or_else(|fault| {
        doubts.push(format!("which accounts may set it for their sessions (SELECT ON pg_parameter_acl: {fault})"));
        Vec::new()
    });
    let copying = session.run(COPYING).map(|rows| rows.into_iter().flatten().flatten().collect());
    let copying = copying.unwrap_or_else(|fault| {
        doubts.push(format!("which accounts for replicas are recorded (SELECT ON pg_roles: {fault})"));
        Vec::new()
    });
    if base["pgaudit.log"] != "not loaded"
        && !base["shared_preload_libraries"].contains("pgaudit")
        && base["log_statement"] != "all"
    {
        doubts.push("whether pgaudit is loaded for everybody (it is not seen in shared_preload_libraries)".to_owned());
    }
    doubts.extend(unseen_name(&base));
    let tables = audited_tables(session, &base["pgaudit.role"]).transpose();
    let tables = tables.unwrap_or_else(|fault| {
        doubts.push(format!("which tables object auditing is about ({fault})"));
        None
    });
    let libraries = &base["shared_preload_libraries"];
    let (encrypts, audits) = (encrypting(session, libraries), auditing(session, libraries));
    Ok(Log { encrypts, audits, copying, ..Log::of(&base, &overrides, setters, doubts, tables) })
}

/// The accounts for replicas, if their commands are not recorded. They are no statements.
const COPYING: &str = "SELECT rolname FROM pg_roles WHERE rolreplication AND rolcanlogin AND NOT rolsuper \
                       AND current_setting('log_replication_commands') = 'off' ORDER BY oid";

/// What encrypts the server's files: one of the `libraries` of Percona and Postgres Pro, or the server of EDB itself,
/// which adds a column to the answer.
fn encrypting(session: &mut PostgresSession, libraries: &str) -> Option<String> {
    if let Some(library) = loaded(libraries).find(|name| ["pg_tde", "pgpro_tde"].contains(name)) {
        return Some(format!("{library} of shared_preload_libraries"));
    }
    let sql = "SELECT coalesce(to_jsonb(c)->>'data_encryption_version', '0') FROM pg_control_init() c";
    let version = session.value(sql).ok().filter(|version| version != "0")?;
    Some(format!("data_encryption_version = {version}"))
}

/// What else audits: a library of Postgres Pro, or the server of EDB itself.
fn auditing(session: &mut PostgresSession, libraries: &str) -> Option<String> {
    if loaded(libraries).any(|name| name == "pg_proaudit") {
        return Some("what pg_proaudit of shared_preload_libraries records".to_owned());
    }
    let kind = session.value("SELECT setting FROM pg_settings WHERE name = 'edb_audit'").ok()?;
    (!["", "none"].contains(&kind.as_str())).then(|| format!("what EDB's audit log records (edb_audit = {kind})"))
}

/// The names in a list of `libraries`.
fn loaded(libraries: &str) -> impl Iterator<Item = &str> {
    libraries.split(',').filter_map(|name| name.trim().trim_matches('"').rsplit('/').next())
}

/// How many tables of this database the object auditing `role` has privileges on; `None` if there is no such role.
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
    Some(rows(session, &sql).map(|rows| {
        let [reads, writes, all] = rows.into_iter().next().unwrap_or_default();
        format!("of {all} tables of this database reads of {reads} and writes of {writes} are recorded for {role}")
    }))
}

/// The server's settings: those of this session, unless the session has its own.
fn settings(session: &mut PostgresSession) -> Result<(Settings, Vec<String>), Fault> {
    let mut settings: Settings = NAMES.iter().map(|(name, unset)| ((*name).to_owned(), (*unset).to_owned())).collect();
    let mut doubts = Vec::new();
    for [name, value, source, boot] in in_force(session)? {
        let own = ["database", "user", "database user", "global", "client", "session"].contains(&source.as_str());
        let value = if own { of_file(session, &name, boot, &mut doubts).unwrap_or(value) } else { value };
        settings.insert(name, value);
    }
    Ok((settings, doubts))
}

/// Name, value, source and value at the start of each setting that decides about the log, as this session has them.
fn in_force(session: &mut PostgresSession) -> Result<Vec<[String; 4]>, Fault> {
    let names = NAMES.map(|(name, _)| format!("'{name}'")).join(", ");
    let sql = format!("SELECT name, setting, source, boot_val FROM pg_settings WHERE name IN ({names})");
    rows(session, &sql).map_err(|fault| needing(fault, "GRANT SELECT ON pg_settings"))
}

/// The value of `name` in the server's files, used when this account has its own value.
fn of_file(session: &mut PostgresSession, name: &str, boot: String, doubts: &mut Vec<String>) -> Option<String> {
    let sql =
        format!("SELECT setting FROM pg_file_settings WHERE applied AND name = '{name}' ORDER BY seqno DESC LIMIT 1");
    match session.run(&sql) {
        Ok(rows) => {
            let set = rows.into_iter().flatten().flatten().next();
            Some(set.map_or(boot, |value| canonical(name, &value)))
        }
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

/// Accounts that may set such a setting for themselves or, by `ALTER SYSTEM`, for everybody: from version 15 on these
/// privileges can be granted.
fn setters(session: &mut PostgresSession) -> Result<Vec<String>, Fault> {
    if session.value("SELECT to_regclass('pg_parameter_acl') IS NULL")? == "t" {
        return Ok(Vec::new());
    }
    // Statements that succeed are recorded whatever it is.
    let names = NAMES.iter().filter(|(name, _)| *name != OF_FAILED).map(|(name, _)| format!("'{name}'"));
    let names = names.collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT coalesce(r.rolname, 'everybody') || ' may set ' || CASE a.privilege_type WHEN 'SET' THEN '' ELSE 'for \
         everybody ' END || parname FROM pg_parameter_acl, aclexplode(paracl) a LEFT JOIN pg_roles r ON r.oid = a.grantee \
         WHERE parname IN ({names}) AND NOT coalesce(r.rolsuper, false)"
    );
    Ok(session.run(&sql)?.into_iter().flatten().flatten().collect())
}

impl Override {
    fn of([database, role, setting]: [String; 3]) -> Self {
        let (name, value) = setting.split_once('=').unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let value = canonical(&name, value);
        Self { database, role, settings: [(name, value)].into() }
    }
}

impl Log {
    /// Computed from `base` and the overrides of some accounts; `tables` are those that object auditing covers.
    fn of(
        base: &Settings,
        overrides: &[Override],
        setters: Vec<String>,
        mut doubts: Vec<String>,
        tables: Option<String>,
    ) -> Self {
        // pgaudit is loaded for all sessions or for none: without it, its settings of a role do nothing.
        let is_loaded = base["pgaudit.log"] != "not loaded";
        let applies = |name: &String| base.contains_key(name) && (is_loaded || !name.starts_with("pgaudit."));
        let relevant: Vec<_> = overrides.iter().filter(|own| own.settings.keys().all(applies)).collect();
        let mut set: HashMap<(&str, &str), Vec<&Override>> = HashMap::new();
        relevant.iter().for_each(|own| set.entry((&own.database, &own.role)).or_default().push(own));
        // The later one wins, in the order: all, database, role, role in the database (documentation, "ALTER ROLE").
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
        let mut more: Vec<Recorder> = Vec::new();
        // Overrides for one database and for one role may meet in a session: each pair that they name counts.
        let (pairs, untold) = pairs(&relevant);
        if untold > 0 {
            doubts.push(format!("{untold} pairs of a role and a database that both have settings of their own"));
        }
        for (database, role) in pairs {
            let own = of(database, role);
            for recorder in &own {
                if !all.contains(recorder) && !more.contains(recorder) {
                    more.push(recorder.clone());
                }
            }
            let told = found.contains(&(database, "")) || found.contains(&("", role));
            if state(&own) != State::Enforced && !told {
                found.insert((database, role));
                less.push(format!("{}: {}", whom(database, role), words(&own)));
            }
        }
        let is_recorded = !all.is_empty() || !more.is_empty();
        Self {
            elsewhere: goes_elsewhere(base).filter(|_| is_recorded),
            is_collected: is_collected(base),
            keeps_texts: base["pg_stat_statements.track"] != "none" && base["pg_stat_statements.track_utility"] == "on",
            keeps_failed: keeps_failed(base),
            encrypts: None,
            hides_libraries: base["shared_preload_libraries"] == NOT_SHOWN,
            audits: None,
            copying: Vec::new(),
            own_settings: relevant.len(),
            all,
            more,
            less,
            setters,
            tables,
            doubts,
        }
    }

    /// The row of auditing.
    pub fn judge(&self) -> Judgement {
        let mut seen = match &self.audits {
            Some(_) if self.all.is_empty() => "no setting of PostgreSQL or pgaudit records what clients do".to_owned(),
            _ => words(&self.all),
        };
        self.tables.iter().for_each(|tables| seen += &format!("; {tables}"));
        let repeats = self.repeats(|recorder| recorder.values);
        if !repeats.is_empty() {
            seen += &format!("; values are in the log in the clear, by {}", repeats.join(", "));
        }
        let (state, exceptions) = match state(&self.all) {
            State::Enforced => (State::Enforced, [self.less.as_slice(), &self.setters, &self.unrecorded()].concat()),
            State::Off if self.more.is_empty() => (State::Off, Vec::new()),
            _ => (State::Available, Vec::new()),
        };
        if state == State::Available && self.all.is_empty() {
            let some: Vec<String> = self.more.iter().map(|recorder| words(std::slice::from_ref(recorder))).collect();
            seen += &format!("; some roles or databases are recorded: {}", named(&some));
        }
        let doubts = self.doubts.iter().chain(&self.elsewhere).chain(&self.audits).cloned();
        let rules = Rules {
            read: match self.own_settings {
                1 => "1 setting of single roles and databases".to_owned(),
                count => format!("{count} settings of single roles and databases"),
            },
            exceptions,
            remedy: if self.less.is_empty() && self.setters.is_empty() {
                "set log_replication_commands = on"
            } else {
                "ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET, ALTER SYSTEM ON PARAMETER"
            },
            doubts: doubts.chain(self.untold()).collect(),
            ..Rules::default()
        };
        let judged = Judgement::account(state, seen).with_rules(Ok(rules), "");
        let judged = match judged.state {
            State::Off if self.audits.is_some() => Judgement { state: State::Unseen, ..judged },
            State::Off => judged.found(&PG_AUDIT_OFF),
            State::Available => judged.found(&PG_AUDIT_PARTIAL),
            _ => judged,
        };
        if repeats.is_empty() { judged } else { judged.found(&PG_AUDIT_REPEATS_VALUES) }
    }

    /// The accounts that copy all data without a record, in words.
    fn unrecorded(&self) -> Vec<String> {
        let words = |name: &String| format!("{name} may take a BASE_BACKUP (log_replication_commands = off)");
        self.copying.iter().map(words).collect()
    }

    /// The doubt about records on the server's standard error, which a service manager, a file or nobody may keep.
    fn untold(&self) -> Option<String> {
        let is_kept = self.is_collected || self.elsewhere.is_some() || self.all.is_empty() && self.more.is_empty();
        (!is_kept).then(|| "what keeps the server's standard error (logging_collector = off)".to_owned())
    }

    /// Which recorders that are `of_kind` repeat the text of statements in plaintext.
    fn repeats(&self, of_kind: fn(&Recorder) -> bool) -> Vec<&'static str> {
        let recorders = self.all.iter().chain(&self.more).filter(|recorder| of_kind(recorder));
        let names: BTreeSet<&str> =
            recorders.map(|recorder| recorder.repeats).filter(|name| !name.is_empty()).collect();
        names.into_iter().collect()
    }

    /// Adds what records this session, whatever the session has set for itself.
    ///
    /// # Errors
    /// The server's error.
    pub fn with_session(mut self, session: &mut PostgresSession) -> Result<Self, Fault> {
        let mut settings: Settings = NAMES.map(|(name, unset)| (name.to_owned(), unset.to_owned())).into();
        settings.extend(in_force(session)?.into_iter().map(|[name, value, _, _]| (name, value)));
        self.more.extend(recorders(&settings));
        Ok(self)
    }

    /// Which recorders repeat in plaintext the text that is `sent`.
    pub fn recording(&self, sent: Sent) -> Recording {
        let (what, names) = match sent {
            Sent::Values => ("the log repeats values", self.repeats(|recorder| recorder.values)),
            Sent::Passwords => ("passwords that ALTER ROLE sets are kept", self.of_passwords_set()),
        };
        let repeats = (!names.is_empty()).then(|| format!("{what} in the clear, by {}", names.join(", ")));
        Recording { repeats: repeats.into_iter().collect(), doubts: self.doubts.clone() }
    }

    /// Which recorders keep the passwords that statements set.
    fn of_passwords_set(&self) -> Vec<&'static str> {
        let mut names = self.repeats(|recorder| recorder.passwords);
        if self.keeps_texts {
            names.push("pg_stat_statements");
        }
        names
    }

    /// The row of encryption at rest, which PostgreSQL itself does not offer, as far as `log` is known. The log repeats
    /// values, including those that the server's own functions encrypt, and their keys. Statements that fail are in the
    /// log of nearly every server, so that is no finding.
    pub fn at_rest(log: Result<&Self, &Fault>) -> Judgement {
        let seen = "PostgreSQL encrypts no file; a volume below it may";
        let log = match log {
            Ok(log) => log,
            Err(fault) => {
                let seen = format!("{seen}; not judged: whether the log repeats values ({fault})");
                return Judgement::whole(State::NotOffered, seen);
            }
        };
        let judged = match &log.encrypts {
            None if log.hides_libraries => Judgement::whole(State::NotOffered, seen)
                .doubted("whether a library encrypts files (shared_preload_libraries: GRANT pg_read_all_settings)"),
            None => Judgement::whole(State::NotOffered, seen),
            Some(by) => {
                Judgement::unseen(format!("{by}: which files it encrypts, and where its keys are, is not judged"))
            }
        };
        let failed = log.keeps_failed.as_ref();
        let failed = failed.map(|setting| format!("; the log has the text of statements that fail ({setting})"));
        let seen = format!("{}{}", judged.seen, failed.unwrap_or_default());
        let repeats = log.repeats(|recorder| recorder.values);
        if repeats.is_empty() {
            return Judgement { seen, ..judged };
        }
        let elsewhere = log.elsewhere.as_deref().map_or(String::new(), |place| format!("; not judged: {place}"));
        let seen = format!(
            "{seen}; the log repeats values in the clear, by {}, with those that are encrypted by pgcrypto, and their \
             keys{elsewhere}",
            repeats.join(", ")
        );
        Judgement { seen, ..judged }.found(&PG_AUDIT_REPEATS_VALUES)
    }

    /// Adds to `judged`, the row of authentication, which recorders repeat the passwords that statements set.
    pub fn of_passwords(&self, judged: Judgement) -> Judgement {
        let repeats = self.of_passwords_set();
        if repeats.is_empty() {
            return judged;
        }
        let seen = format!(
            "{}; passwords that ALTER ROLE sets are kept in the clear, by {}: set them by \\password of psql",
            judged.seen,
            repeats.join(", ")
        );
        Judgement { seen, ..judged }.found(&PG_AUTHN_REPEATS_PASSWORDS)
    }
}

/// Databases and roles whose settings may differ from the common ones, and how many pairs of both were too many to
/// judge.
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

/// What is recorded, and what is left out.
fn words(recorders: &[Recorder]) -> String {
    let one = |recorder: &Recorder| match recorder.leaves_out.as_slice() {
        [] => recorder.records.clone(),
        out => format!("{}, without {}", recorder.records, out.join(", ")),
    };
    match recorders {
        [] => "nothing that clients do is recorded".to_owned(),
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
        let Judgement { state, scope, seen, .. } =
            Log::of(&base(set), &overrides, Vec::new(), Vec::new(), None).judge();
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
            off, whole server: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
            available but not enforced, this account: log_statement = mod: what changes data or definitions; values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
            enforced, this account: log_statement = all: every statement that the server understands; values are in the log in the clear, by log_statement; 0 settings of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
            off, whole server: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
            off, whole server: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
            enforced, this account: pgaudit.log = all, -misc: reads and writes that succeed, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
            available but not enforced, this account: pgaudit.log = all, -read: these classes alone, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
            off, whole server: nothing that clients do is recorded; 0 settings of single roles and databases: no exception
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn settings_of_pgaudit_do_nothing_where_it_is_not_loaded() {
        let nothing = judged(&[], &[]);
        let of_role = ["", "app", "pgaudit.log=all"];
        assert_eq!(judged(&[], &[of_role]), nothing);
        assert_eq!(judged(&[], &[of_role, ["shop", "", "pgaudit.role=auditor"]]), nothing);
        assert!(judged(&[("pgaudit.log", "none")], &[of_role]).starts_with("available but not enforced"));
    }

    #[test]
    fn definitions_alone_hold_no_values_and_may_set_passwords() {
        let log = |name: &str, value: &str| Log::of(&base(&[(name, value)]), &[], Vec::new(), Vec::new(), None);
        for (name, value) in [("log_statement", "ddl"), ("pgaudit.log", "ddl, role")] {
            let log = log(name, value);
            let judged = log.judge();
            assert!(!judged.seen.contains("values are in the log"), "{}", judged.seen);
            assert_eq!(judged.findings, [&PG_AUDIT_PARTIAL]);
            assert!(Log::at_rest(Ok(&log)).findings.is_empty(), "{name}");
            assert!(log.recording(Sent::Values).repeats.is_empty(), "{name}");
        }
        assert_eq!(log("log_statement", "ddl").of_passwords_set(), ["log_statement"]);
        for (name, value) in [("log_statement", "mod"), ("pgaudit.log", "ddl, write"), ("pgaudit.log", "function")] {
            assert_eq!(log(name, value).judge().findings, [&PG_AUDIT_PARTIAL, &PG_AUDIT_REPEATS_VALUES]);
        }
    }

    #[test]
    fn roles_and_databases_that_are_left_out_are_named() {
        let all = [("pgaudit.log", "read,write")];
        let text = [
            judged(&all, &[["", "app", "search_path=app"]]),
            judged(&all, &[["", "app", "pgaudit.log=none"]]),
            judged(&all, &[["shop", "", "pgaudit.log=write"], ["shop", "app", "pgaudit.log=all"]]),
            // The role's own setting overrides that of the database.
            judged(&all, &[["shop", "", "pgaudit.log=none"], ["", "app", "pgaudit.log=all"]]),
            judged(&[], &[["", "app", "log_statement=all"]]),
        ]
        .concat();
        let all = [("log_statement", "all"), ("logging_collector", "on")];
        assert!(judged(&all, &[["", "app", "log_statement=ALL"]]).starts_with("enforced, whole server"));
        let audited = [("pgaudit.log", "all"), ("logging_collector", "on")];
        let textless = judged(&audited, &[["", "app", "pgaudit.log_statement=false"], ["", "app", "pgaudit.log=read"]]);
        assert!(textless.contains("role app: pgaudit.log = read: these classes alone"), "{textless}");
        assert!(textless.contains("statement text (pgaudit.log_statement = off)"), "{textless}");
        expect![[r#"
            enforced, this account: pgaudit.log = read,write: reads and writes that succeed, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 0 settings of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
            available but not enforced, this account: pgaudit.log = read,write: reads and writes that succeed, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 1 setting of single roles and databases: 1 exception: role app: nothing that clients do is recorded: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET, ALTER SYSTEM ON PARAMETER; not judged: what keeps the server's standard error (logging_collector = off)
            available but not enforced, this account: pgaudit.log = read,write: reads and writes that succeed, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 2 settings of single roles and databases: 1 exception: database shop: pgaudit.log = write: these classes alone, without denied statements: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET, ALTER SYSTEM ON PARAMETER; not judged: what keeps the server's standard error (logging_collector = off)
            available but not enforced, this account: pgaudit.log = read,write: reads and writes that succeed, without denied statements; values are in the log in the clear, by pgaudit.log_statement; 2 settings of single roles and databases: 1 exception: database shop: nothing that clients do is recorded: ALTER ROLE or ALTER DATABASE … RESET, REVOKE SET, ALTER SYSTEM ON PARAMETER; not judged: what keeps the server's standard error (logging_collector = off)
            available but not enforced, this account: nothing that clients do is recorded; values are in the log in the clear, by log_statement; some roles or databases are recorded: log_statement = all: every statement that the server understands; 1 setting of single roles and databases: no exception; not judged: what keeps the server's standard error (logging_collector = off)
        "#]].assert_eq(&text);
    }

    #[test]
    fn what_several_roles_record_alike_is_named_once() {
        let told = judged(&[], &[["", "app", "log_statement=all"], ["", "ops", "log_statement=all"]]);
        let once = "; some roles or databases are recorded: log_statement = all: every statement that the server \
                    understands; 2 settings";
        assert!(told.contains(once), "{told}");
    }

    #[test]
    fn a_role_in_a_database_is_named_unless_its_role_or_its_database_is() {
        let told = |overrides: &[[&str; 3]]| judged(&[("pgaudit.log", "read,write")], overrides);
        let pair = ["shop", "app", "pgaudit.log=write"];
        for (own, name) in
            [(["shop", "", "pgaudit.log=none"], "database shop"), (["", "app", "pgaudit.log=none"], "role app")]
        {
            let told = told(&[own, pair]);
            assert!(told.contains(&format!(": 1 exception: {name}: nothing that clients do is recorded: ")), "{told}");
        }
        let alone = told(&[pair]);
        assert!(alone.contains(": 1 exception: role app in database shop: pgaudit.log = write: "), "{alone}");
    }

    #[test]
    fn pairs_of_roles_and_databases_are_judged_unless_they_are_too_many() {
        let own = |database: &str, role: &str| Override::of([database, role, "log_statement=none"].map(str::to_owned));
        let all = [own("", ""), own("shop", ""), own("", "app"), own("till", "clerk")];
        let (found, untold) = pairs(&all.iter().collect::<Vec<_>>());
        let expected = [("", "app"), ("shop", ""), ("shop", "app"), ("till", "clerk")];
        assert_eq!((found.into_iter().collect::<Vec<_>>(), untold), (expected.to_vec(), 0));
        let untold = |databases: usize| {
            let mut many: Vec<Override> = (0..databases).map(|number| own(&format!("d{number}"), "")).collect();
            many.extend((0..100).map(|number| own("", &format!("r{number}"))));
            let (_, untold) = pairs(&many.iter().collect::<Vec<_>>());
            untold
        };
        assert_eq!([100, 101].map(untold), [0, 10_100]);
    }

    #[test]
    fn texts_are_kept_where_both_settings_say_so() {
        let keeps = |track: &str, utility: &str| {
            let set = [("pg_stat_statements.track", track), ("pg_stat_statements.track_utility", utility)];
            Log::of(&base(&set), &[], Vec::new(), Vec::new(), None).keeps_texts
        };
        assert!(keeps("all", "on") && keeps("top", "on"));
        assert!(!keeps("none", "on") && !keeps("all", "off") && !keeps("none", "off"));
    }

    #[test]
    fn where_nothing_is_recorded_no_place_of_records_is_a_doubt() {
        assert_eq!(judged(&[("log_destination", "syslog")], &[]), judged(&[], &[]));
        let log = Log::of(&base(&[("log_statement", "all")]), &[], Vec::new(), Vec::new(), None);
        let judged = Log { audits: Some("what another audit log records".to_owned()), ..log }.judge();
        assert!(judged.seen.starts_with("log_statement = all: "), "{}", judged.seen);
        assert!(judged.seen.contains("; not judged: what another audit log records"), "{}", judged.seen);
    }
}
