//! What decides what an account can become: privileges, roles, proxies, and code that runs as another account, as the
//! server stores them.

use std::path::Path;

use tithe_machine::fault::Fault;
use tithe_plugin::session::{SqlSession as _, rows};

use super::{
    accounts::{Account, Way, named},
    session::WireSession,
};

/// How far rights lead on one server.
#[derive(Debug, Clone, Default)]
pub struct Powers {
    /// `SUPER` writes rows of any table: everywhere but on MariaDB from 11.0 on.
    pub super_is_all: bool,
    /// Accounts without `SYSTEM_USER` do not reach those with it (MySQL).
    pub guards_system_users: bool,
    /// `secure_file_priv` lets `FILE` write into the server's own folder.
    pub files_are_free: bool,
    /// The database of a grant is a name and no pattern (MySQL's `partial_revokes`).
    pub names_are_literal: bool,
    /// A proxy's plugin may let it act as another.
    pub maps_proxies: bool,
    /// The server takes changes from another, as far as the account is shown.
    pub is_replica: bool,
    /// Tables of `mysql` with which an account that may write them can grant itself everything.
    pub tables_of_rights: &'static [&'static str],
}

/// True if some account of `holders` proves itself to another service, whose plug-in may map it to any account.
pub fn asks_elsewhere(holders: &[Account]) -> bool {
    holders.iter().flat_map(|holder| &holder.ways).any(|way| matches!(way, Way::Elsewhere(_)))
}

/// True if `FILE` may write into the server's `folder` of data or below it: where `secure_file_priv` is empty, or
/// `allowed` is a folder that contains this one or lies in it.
pub fn lets_files_into(allowed: &str, folder: &str) -> bool {
    let (allowed, folder) = (Path::new(allowed), Path::new(folder));
    folder.starts_with(allowed) || allowed.starts_with(folder)
}

/// A right on a database or pattern of databases, a row of `mysql.db`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseRight {
    /// The account's name; empty for everyone.
    pub user: String,
    /// The account's hosts.
    pub host: String,
    /// Pattern of names, in which `%` and `_` are wildcards.
    pub database: String,
    /// `INSERT`, `UPDATE`, or both.
    pub writes: Vec<&'static str>,
    /// True with `CREATE ROUTINE`, `TRIGGER` or `EVENT`.
    pub makes_code: bool,
    /// True with `EXECUTE`.
    pub executes: bool,
    /// True with `DELETE`.
    pub deletes: bool,
    /// True with `SELECT`.
    pub reads: bool,
}

/// A right on one table or routine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectRight {
    /// The account's name.
    pub user: String,
    /// The account's hosts.
    pub host: String,
    /// `database.name`.
    pub object: String,
    /// Words of the right.
    pub right: String,
}

/// A routine or a view that runs with the rights of its definer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    /// Database.
    pub database: String,
    /// Name.
    pub name: String,
    /// `user@host`.
    pub definer: String,
}

impl Definition {
    /// The definer, named as in [`Account::text`].
    pub fn runs_as(&self) -> String {
        let (user, host) = self.definer.rsplit_once('@').unwrap_or((&self.definer, ""));
        named(user, host)
    }
}

/// Everything that decides what an account can become.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    /// Accounts and roles.
    pub holders: Vec<Account>,
    /// Role members: account, role (names as in [`Account::text`]), and how it is granted.
    pub members: Vec<(String, String, &'static str)>,
    /// Rights on databases, by the names of their accounts.
    pub databases: Vec<DatabaseRight>,
    /// Rights to write tables of `mysql`, to delete from them, or to read hashes of passwords there.
    pub tables: Vec<ObjectRight>,
    /// Accounts, and those that they may act as by `GRANT PROXY`; an empty second name means anyone.
    pub proxies: Vec<(String, String)>,
    /// Routines that run as another.
    pub routines: Vec<Definition>,
    /// Views of tables of the server's own database that run as another.
    pub views: Vec<Definition>,
    /// Who may call one of them.
    pub calls: Vec<ObjectRight>,
    /// How far rights lead.
    pub powers: Powers,
    /// What could not be read, each with the missing privilege.
    pub unread: Vec<String>,
}

/// MariaDB's role that everyone has.
pub const PUBLIC: &str = "PUBLIC";

/// Why an account is a member of it.
pub const EVERYBODY: &str = "everybody";

/// What [`Rights::rows`] reads about accounts that act as others: the roles of accounts, and proxies.
pub const ROLES: &str = "roles";
const PROXIES: &str = "proxies";

impl Rights {
    /// Reads what decides what `holders` can become; `roles` reads the part that differs between the products.
    ///
    /// # Errors
    /// The server's error. Tables that this account may not read are remembered instead.
    pub fn read(
        session: &mut WireSession,
        holders: Vec<Account>,
        roles: fn(&mut WireSession, &mut Self) -> Result<(), Fault>,
    ) -> Result<Self, Fault> {
        let mut rights = Self { holders, ..Self::default() };
        roles(session, &mut rights)?;
        rights.read_shared(session);
        Ok(rights)
    }

    fn read_shared(&mut self, session: &mut WireSession) {
        let yes = |value: &str| value == "Y";
        let sql = "SELECT User, Host, Db, Insert_priv, Update_priv, Create_routine_priv, Trigger_priv, Event_priv, \
                   Execute_priv, Delete_priv, Select_priv FROM mysql.db";
        let databases = self.rows::<11>(session, sql, "mysql.db", "rights on databases");
        self.databases = databases
            .into_iter()
            .map(|[user, host, database, insert, update, routine, trigger, event, calls, delete, read]| DatabaseRight {
                writes: [("INSERT", &insert), ("UPDATE", &update)]
                    .into_iter()
                    .filter_map(|(name, value)| yes(value).then_some(name))
                    .collect(),
                makes_code: yes(&routine) || yes(&trigger) || yes(&event),
                executes: yes(&calls),
                deletes: yes(&delete),
                reads: yes(&read),
                user,
                host,
                database,
            })
            .collect();
        self.databases.sort_by(|one, other| one.user.cmp(&other.user));
        let object = |[user, host, object, right]: [String; 4]| ObjectRight { user, host, object, right };
        // MariaDB keeps the hashes in `Priv`, and shows them in `mysql.user` too.
        let of_hashes = "AND Column_name IN ('authentication_string', 'Password', 'Priv')";
        for (table, column, of_hashes) in
            [("tables_priv", "Table_priv", ""), ("columns_priv", "Column_priv", of_hashes)]
        {
            let sql = format!(
                "SELECT User, Host, Table_name, {column} FROM mysql.{table} WHERE Db = 'mysql' \
                 AND ({column} LIKE '%Insert%' OR {column} LIKE '%Update%' OR {column} LIKE '%Delete%' \
                 OR {column} LIKE '%Select%' AND Table_name IN ('global_priv', 'user') {of_hashes})"
            );
            let rows = self.rows(session, &sql, &format!("mysql.{table}"), "rights on tables");
            self.tables.extend(rows.into_iter().map(object));
        }
        let sql = "SELECT User, Host, Proxied_user, Proxied_host FROM mysql.proxies_priv";
        let proxies = self.rows::<4>(session, sql, "mysql.proxies_priv", PROXIES);
        let proxied = |user: &str, host: &str| if user.is_empty() { String::new() } else { named(user, host) };
        self.proxies =
            proxies.iter().map(|[user, host, other, from]| (named(user, host), proxied(other, from))).collect();
        let sql = "SELECT User, Host, CONCAT(Db, '.', Routine_name), Proc_priv FROM mysql.procs_priv \
                   WHERE Proc_priv LIKE '%Execute%'";
        self.calls =
            self.rows(session, sql, "mysql.procs_priv", "rights on routines").into_iter().map(object).collect();
        let sql = "SELECT ROUTINE_SCHEMA, ROUTINE_NAME, DEFINER FROM information_schema.ROUTINES \
                   WHERE SECURITY_TYPE = 'DEFINER' AND ROUTINE_SCHEMA NOT IN ('mysql', 'sys')";
        let routines = self.rows::<3>(session, sql, "*.*", "routines");
        let routine = |[database, name, definer]: [String; 3]| Definition { database, name, definer };
        self.routines = routines.into_iter().map(routine).collect();
        if !is_shown_routines(session) {
            self.unread.push("routines that this account is not shown (GRANT SELECT ON *.*)".to_owned());
        }
        self.read_views(session);
    }

    /// Reads the views of the server's own database. Both products write the names of databases into a view's text, in
    /// backticks, and show no text to an account without the privilege.
    fn read_views(&mut self, session: &mut WireSession) {
        let sql = "SELECT TABLE_SCHEMA, TABLE_NAME, DEFINER, IFNULL(VIEW_DEFINITION, '') = '' \
                   FROM information_schema.VIEWS WHERE SECURITY_TYPE = 'DEFINER' \
                   AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') \
                   AND (IFNULL(VIEW_DEFINITION, '') = '' OR VIEW_DEFINITION LIKE '%`mysql`.%')";
        let (hidden, shown): (Vec<_>, Vec<_>) =
            self.rows::<4>(session, sql, "*.*", "views").into_iter().partition(|[.., is_hidden]| is_hidden == "1");
        let view = |[database, name, definer, _]: [String; 4]| Definition { database, name, definer };
        self.views = shown.into_iter().map(view).collect();
        // An error means that the server has no access control.
        if !hidden.is_empty() || !has_everywhere(session, &["SELECT"]).unwrap_or(true) {
            self.unread.push("views that this account is not shown (GRANT SELECT, SHOW VIEW ON *.*)".to_owned());
        }
    }

    /// What could not be read about accounts that act as others.
    pub fn unread_of_proxies(&self) -> Vec<String> {
        let is_one = |unread: &&String| {
            let what = unread.split(" (").next();
            [Some(ROLES), Some(PROXIES)].contains(&what)
        };
        self.unread.iter().filter(is_one).cloned().collect()
    }

    /// The rows of `sql` about `what`, from `table`. If they cannot be read, the result is empty and that is recorded.
    pub fn rows<const N: usize>(
        &mut self,
        session: &mut WireSession,
        sql: &str,
        table: &str,
        what: &str,
    ) -> Vec<[String; N]> {
        match rows(session, sql) {
            Ok(rows) => rows,
            Err(fault) => {
                self.unread.push(format!("{what} (GRANT SELECT ON {table}: {fault})"));
                Vec::new()
            }
        }
    }
}

/// True if the account is shown the routines of others, as far as its grants show. Without the privilege it is shown
/// those that it may call, and no error.
fn is_shown_routines(session: &mut WireSession) -> bool {
    const SHOW: [&str; 3] = ["SELECT", "SHOW_ROUTINE", "SHOW CREATE ROUTINE"];
    // An error means that the server has no access control.
    let by_grants = has_everywhere(session, &SHOW).unwrap_or(true);
    // MariaDB also shows them to accounts that may read `mysql.proc`, a table that MySQL 8 does not have.
    by_grants || session.run("SELECT 1 FROM mysql.proc LIMIT 1").is_ok()
}

/// True if the account of `session` has one of the privileges `wanted` on `*.*`, by its own grants.
///
/// # Errors
/// The server's error: one without access control has no grants.
pub fn has_everywhere(session: &mut WireSession, wanted: &[&str]) -> Result<bool, Fault> {
    let grants = session.run("SHOW GRANTS")?;
    Ok(grants.iter().flatten().flatten().any(|grant| gives_everywhere(grant, wanted)))
}

/// True if `grant`, a line of `SHOW GRANTS`, gives one of the privileges `wanted` on `*.*`.
fn gives_everywhere(grant: &str, wanted: &[&str]) -> bool {
    let rights = grant.split_once(" ON *.* ").map_or("", |(rights, _)| rights.trim_start_matches("GRANT "));
    rights.split(',').map(str::trim).any(|right| right == "ALL PRIVILEGES" || wanted.contains(&right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_is_shown_by_one_privilege_on_everything() {
        let shown = ["GRANT ALL PRIVILEGES ON *.* TO `a`@`%`", "GRANT SELECT, PROCESS ON *.* TO `a`@`%`"];
        let hidden =
            ["GRANT SELECT ON *.* TO `a`@`%`", "GRANT ALL PRIVILEGES ON `shop`.* TO `a`@`%`", "GRANT `r` TO `a`@`%`"];
        assert_eq!(shown.map(|grant| gives_everywhere(grant, &["PROCESS"])), [true; 2]);
        assert_eq!(hidden.map(|grant| gives_everywhere(grant, &["PROCESS"])), [false; 3]);
        let routines = |grant: &str| gives_everywhere(grant, &["SELECT", "SHOW_ROUTINE"]);
        assert!(routines("GRANT SHOW_ROUTINE ON *.* TO `a`@`%`"));
        assert!(!routines("GRANT SELECT ON `mysql`.* TO `a`@`%`"));
    }

    #[test]
    fn a_folder_above_the_data_or_in_them_lets_files_in() {
        let reaches = ["", "/", "/var", "/var/lib/mysql", "/var/lib/mysql/", "/var/lib/mysql/shop"];
        let others = ["/var/lib/mysql-files", "/files/", "relative"];
        assert_eq!(reaches.map(|allowed| lets_files_into(allowed, "/var/lib/mysql/")), [true; 6]);
        assert_eq!(others.map(|allowed| lets_files_into(allowed, "/var/lib/mysql/")), [false; 3]);
    }
}
