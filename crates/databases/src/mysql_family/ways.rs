//! Ways by which an account can get all privileges: its roles, privileges that lead to other accounts, and privilege
//! tables that it may write. Judged without a server.

use std::collections::BTreeSet;

use tithe_plugin::reach::{Reach, Way, Ways};

use super::{
    accounts::{Account, Right},
    rights::{DatabaseRight, Definition, EVERYBODY, PUBLIC, Rights},
};

use Right::{
    CreateUser, Delete, Execute, File, Follow, GrantRoles, Insert, MakeCode, MakePlainBinlog, MakePlainTables,
    ReplayRows, Select, SetAudit, SetDefiner, SetInitConnect, SetVariables, SkipInitConnect, Super, SystemUser, Update,
};

/// Why an administrator gets there.
pub const ALL_RIGHTS: &str = "rights on *.*";

/// The goal: an account that reaches it has all privileges.
pub const EVERYTHING: &str = "everything";
/// Another goal: an account that reaches it may switch off what protects the server.
const UNPROTECTED: &str = "protections switched off";
/// A third goal: an account that reaches it reads the hashes of all passwords.
const HASHES: &str = "hashes of all passwords";
/// Every account without `SYSTEM_USER`, and every account at all.
const ANYBODY: &str = "any account";
const ANY_SYSTEM_USER: &str = "any account, system users included";
/// Every account for whose connections the server executes `init_connect`.
const ANY_NEW_CONNECTION: &str = "any account that runs init_connect";

/// An account that may delete from these tables may uninstall a plugin or a component, for example an audit log
/// (documentation, "UNINSTALL PLUGIN Statement", "UNINSTALL COMPONENT Statement").
const TABLES_OF_PLUGINS: [&str; 2] = ["component", "plugin"];

/// Tables that show the hashes of passwords.
const TABLES_OF_HASHES: [&str; 2] = ["global_priv", "user"];

/// Why an account that makes code acts as its definer.
const CODE: &str = "code that runs as it";

/// Routines that are judged one by one.
const ROUTINES_JUDGED: usize = 100;

/// An edge: the account, the account that it may act as, and by which privilege.
type Edge = (String, String, String);

impl Rights {
    /// All accounts and their edges; [`EVERYTHING`] is the goal.
    pub fn reach(&self) -> Reach {
        let mut reach = Reach::default();
        let mut roles = Reach::default();
        self.members.iter().for_each(|(who, role, how)| roles.edge(who, role, *how));
        let combining = self.combining(&mut roles);
        let skipping = roles.ways(self.skipping_init_connect().iter().map(String::as_str));
        for holder in &self.holders {
            let name = holder.text();
            self.leads(holder).into_iter().for_each(|(to, how)| reach.edge(&name, to, how));
            if combining.contains(&name) {
                reach.edge(&name, self.anyone(holder), CODE);
            }
            if holder.logs_in {
                let guarded = self.powers.guards_system_users && holder.rights.contains(&SystemUser);
                reach.edge(if guarded { ANY_SYSTEM_USER } else { ANYBODY }, &name, "one of them");
                if !skipping.has(&name) {
                    reach.edge(ANY_NEW_CONNECTION, &name, "one of them");
                }
            }
        }
        reach.edge(ANY_SYSTEM_USER, ANYBODY, "one of them");
        self.acts_as().into_iter().for_each(|(from, to, how)| reach.edge(&from, &to, how));
        reach
    }

    /// Accounts and roles that make code and name its definer, where no single account or role has both privileges.
    fn combining(&self, roles: &mut Reach) -> BTreeSet<String> {
        let mut having = |has: &dyn Fn(&Account) -> bool| -> BTreeSet<String> {
            let own: Vec<String> = self.holders.iter().filter(|holder| has(holder)).map(Account::text).collect();
            let ways = roles.ways(own.iter().map(String::as_str));
            self.holders.iter().map(Account::text).filter(|name| ways.has(name)).collect()
        };
        let sets_definer = |holder: &Account| holder.rights.contains(&SetDefiner);
        let (makers, definers) = (having(&|holder| self.makes_code(holder)), having(&sets_definer));
        let by_one = having(&|holder| sets_definer(holder) && self.makes_code(holder));
        definers.into_iter().filter(|name| makers.contains(name) && !by_one.contains(name)).collect()
    }

    /// Accounts and roles for which the server does not execute `init_connect`.
    fn skipping_init_connect(&self) -> Vec<String> {
        let skips = |holder: &&Account| {
            let has = |right: Right| holder.rights.contains(&right);
            has(SkipInitConnect) || has(Super) && self.powers.super_is_all
        };
        self.holders.iter().filter(skips).map(Account::text).collect()
    }

    /// Accounts that do not get all privileges and may switch off what protects the server, each with its way there.
    pub fn switching_off(&self, reach: &mut Reach) -> Vec<String> {
        self.limited_to(UNPROTECTED, reach)
    }

    /// Accounts that do not get all privileges and read the hashes of all passwords, each with its way there.
    pub fn reading_hashes(&self, reach: &mut Reach) -> Vec<String> {
        self.limited_to(HASHES, reach)
    }

    /// Accounts that reach the `goal` and not all privileges, each with its way there.
    fn limited_to(&self, goal: &str, reach: &mut Reach) -> Vec<String> {
        let ways = reach.ways([EVERYTHING]);
        let opening = self.holders.iter().filter(|holder| holder.opens()).map(Account::text);
        let limited: Vec<String> = opening.filter(|name| !ways.has(name)).collect();
        let ways = reach.ways([goal]);
        limited.iter().filter_map(|name| ways.of(name)).map(|way| words(&way)).collect()
    }

    /// Accounts that may act as another or as a role, and as whom, except those that have all privileges themselves.
    pub fn proxies(&self, ways: &Ways<'_>) -> Vec<String> {
        let logs_in: BTreeSet<String> =
            self.holders.iter().filter(|holder| holder.logs_in).map(Account::text).collect();
        let is_direct = |name: &str| ways.of(name).is_some_and(|way| way.steps.len() == 1);
        // Privileges that everyone has do not let an account act as another.
        let found = self.acts_as().into_iter().filter(|(from, _, how)| how != EVERYBODY && logs_in.contains(from));
        let found = found.filter(|(from, ..)| !is_direct(from));
        let mut found: Vec<String> = found.map(|(from, to, how)| format!("{from} → {to} ({how})")).collect();
        found.sort();
        found
    }

    /// Routines that run as an account with all privileges, and who else may call them: what they do is not judged.
    pub fn unjudged_routines(&self, ways: &Ways<'_>) -> Vec<String> {
        let mut found = Vec::new();
        if self.routines.len() > ROUTINES_JUDGED {
            found.push(format!("{} further routines", self.routines.len() - ROUTINES_JUDGED));
        }
        let others: Vec<&Account> = self.holders.iter().filter(|holder| !ways.has(&holder.text())).collect();
        for routine in self.routines.iter().take(ROUTINES_JUDGED) {
            let definer = routine.runs_as();
            if !ways.has(&definer) {
                continue;
            }
            let object = format!("{}.{}", routine.database, routine.name);
            if let Some(caller) = others.iter().find(|holder| self.may_call(holder, &routine.database, &object)) {
                found.push(format!("what {object} does, which {} may call and which runs as {definer}", caller.text()));
            }
        }
        found
    }

    /// Views of the server's own database that run as an account with all privileges: what they show or change, and to
    /// whom, is not judged.
    pub fn unjudged_views(&self, ways: &Ways<'_>) -> Vec<String> {
        let views = self.views.iter().map(|view| (view, view.runs_as())).filter(|(_, definer)| ways.has(definer));
        let words = |(view, definer): (&Definition, String)| {
            format!("what {}.{} shows of `mysql` as {definer}, and to whom", view.database, view.name)
        };
        views.map(words).collect()
    }

    fn may_call(&self, holder: &Account, database: &str, object: &str) -> bool {
        let of_holder = |user: &str, host: &str| user == holder.user && host == holder.host;
        holder.rights.contains(&Execute)
            || self.database_right(holder, database).is_some_and(|right| right.executes)
            || self.calls.iter().any(|call| of_holder(&call.user, &call.host) && call.object == object)
    }

    /// Privileges on databases of the accounts called `user`: the rows are in the order of their names.
    fn databases_of(&self, user: &str) -> &[DatabaseRight] {
        let first = self.databases.partition_point(|right| right.user.as_str() < user);
        let count = self.databases[first..].partition_point(|right| right.user == user);
        &self.databases[first..first + count]
    }

    /// The one row of `mysql.db` that counts for `holder` in `database`: the first match in the server's order. Names
    /// come before patterns, and an account's own rows before those of everyone.
    fn database_right(&self, holder: &Account, database: &str) -> Option<&DatabaseRight> {
        let literal = self.powers.names_are_literal;
        let fits = |right: &&DatabaseRight| {
            if literal { right.database == database } else { is_like(&right.database, database) }
        };
        let own = self.databases_of(&holder.user).iter().filter(|right| right.host == holder.host);
        let narrowest = |right: &&DatabaseRight| wildcard_at(&right.database);
        let own = own.filter(fits).max_by_key(narrowest);
        own.or_else(|| self.databases_of("").iter().filter(fits).max_by_key(narrowest))
    }

    /// Roles and proxies.
    fn acts_as(&self) -> Vec<Edge> {
        let members = self.members.iter().map(|(who, role, how)| (who.clone(), role.clone(), (*how).to_owned()));
        let proxies = self.proxies.iter().filter(|_| self.powers.maps_proxies).map(|(who, other)| {
            let other = if other.is_empty() { ANYBODY } else { other };
            (who.clone(), other.to_owned(), "GRANT PROXY".to_owned())
        });
        members.chain(proxies).collect()
    }

    /// What the privileges of `holder` lead to, and by which privilege.
    fn leads(&self, holder: &Account) -> Vec<(&'static str, String)> {
        let has = |right: Right| holder.rights.contains(&right);
        let mut leads = Vec::new();
        if [Select, Insert, Update, Delete, CreateUser].into_iter().all(has) && !holder.keeps_off_rights {
            leads.push((EVERYTHING, ALL_RIGHTS.to_owned()));
        }
        for (right, words) in [(Insert, "INSERT ON *.*"), (Update, "UPDATE ON *.*")] {
            if has(right) && !holder.keeps_off_rights {
                leads.push((EVERYTHING, format!("{words} writes the tables of rights")));
            }
        }
        let of_server = self.database_right(holder, of_rights());
        if let Some(right) = of_server.filter(|right| !right.writes.is_empty()) {
            let words = right.writes.join(", ");
            leads.push((EVERYTHING, format!("{words} ON `{}`.* writes the tables of rights", right.database)));
        }
        if let Some(right) = of_server.filter(|right| right.deletes) {
            leads.push((UNPROTECTED, format!("DELETE ON `{}`.* uninstalls plugins", right.database)));
        }
        if has(Select) && !holder.keeps_off_hashes {
            leads.push((HASHES, "SELECT ON *.*".to_owned()));
        }
        if let Some(right) = of_server.filter(|right| right.reads) {
            leads.push((HASHES, format!("SELECT ON `{}`.*", right.database)));
        }
        for table in self.tables.iter().filter(|table| table.user == holder.user && table.host == holder.host) {
            let (name, right) = (table.object.as_str(), &table.right);
            let gives = |wanted: &[&str]| right.split(',').any(|one| wanted.contains(&one));
            if gives(&["Insert", "Update"]) && self.powers.tables_of_rights.contains(&name) {
                leads.push((EVERYTHING, format!("{right} ON mysql.{name}")));
            }
            if gives(&["Delete"]) && TABLES_OF_PLUGINS.contains(&name) {
                leads.push((UNPROTECTED, format!("DELETE ON mysql.{name} uninstalls plugins")));
            }
            if gives(&["Select"]) && TABLES_OF_HASHES.contains(&name) {
                leads.push((HASHES, format!("SELECT ON mysql.{name}")));
            }
        }
        let replays = "writes rows of any table by BINLOG";
        if has(Super) && self.powers.super_is_all {
            leads.push((EVERYTHING, format!("SUPER {replays}")));
        }
        if has(ReplayRows) {
            leads.push((EVERYTHING, replays.to_owned()));
        }
        if has(Follow) {
            leads.push((EVERYTHING, "chooses the server from which changes are taken".to_owned()));
        }
        if has(File) && self.powers.files_are_free {
            leads.push((EVERYTHING, "FILE writes into the server's folder: secure_file_priv allows it".to_owned()));
        }
        if has(SetVariables) && self.powers.is_replica {
            leads.push((EVERYTHING, "sets init_replica, which runs with all rights".to_owned()));
        }
        if has(SetInitConnect) {
            leads.push((ANY_NEW_CONNECTION, "sets init_connect".to_owned()));
        }
        for (has, words) in [
            (has(SetVariables) || has(Super), "sets the server's variables"),
            (has(SetAudit), "AUDIT_ADMIN sets what is recorded"),
            (has(MakePlainTables), "TABLE_ENCRYPTION_ADMIN makes tables without encryption"),
            (has(MakePlainBinlog), "BINLOG_ENCRYPTION_ADMIN sets whether the binary log is encrypted"),
            // Of the table `mysql.plugin`, that of an audit log or of the keys for example.
            (has(Delete) && !holder.keeps_off_plugins, "DELETE ON *.* uninstalls plugins"),
        ] {
            if has {
                leads.push((UNPROTECTED, words.to_owned()));
            }
        }
        let anyone = self.anyone(holder);
        for (has, words) in [
            (has(CreateUser), "CREATE USER sets its password"),
            (has(SetDefiner) && self.makes_code(holder), CODE),
            (has(GrantRoles), "ROLE_ADMIN makes it a role"),
        ] {
            if has {
                leads.push((anyone, words.to_owned()));
            }
        }
        leads
    }

    /// The accounts as which `holder` acts if it can act as any: those with `SYSTEM_USER` only if it has that itself.
    fn anyone(&self, holder: &Account) -> &'static str {
        let is_guarded = self.powers.guards_system_users && holder.rights.contains(&SystemUser);
        if is_guarded { ANY_SYSTEM_USER } else { ANYBODY }
    }

    fn makes_code(&self, holder: &Account) -> bool {
        if holder.rights.contains(&MakeCode) {
            return true;
        }
        let own = self.databases_of(&holder.user).iter().filter(|right| right.host == holder.host);
        let of_all = ["", PUBLIC].into_iter().flat_map(|user| self.databases_of(user));
        own.chain(of_all).any(|right| right.makes_code)
    }
}

/// The database of the tables of rights, by one of them.
fn of_rights() -> &'static str {
    "mysql.db".split('.').next().unwrap_or_default()
}

/// A way in words; of a long one the middle is left out.
pub fn words(way: &Way<'_>) -> String {
    const SHOWN: usize = 3;
    if way.steps.len() <= 2 * SHOWN {
        return way.to_string();
    }
    let (first, last) = (&way.steps[..SHOWN], &way.steps[way.steps.len() - SHOWN..]);
    let of = |steps: &[(&str, &str)]| steps.iter().map(|(name, how)| format!(" → {name} ({how})")).collect::<String>();
    format!("{}{} → … {} more{}", way.account, of(first), way.steps.len() - 2 * SHOWN, of(last))
}

/// True if `name` matches `pattern`: `%` is any text, `_` any character, and a backslash escapes them.
fn is_like(pattern: &str, name: &str) -> bool {
    let mut signs = pattern.chars();
    match signs.next() {
        None => name.is_empty(),
        Some('%') => (0..=name.len()).any(|at| name.is_char_boundary(at) && is_like(signs.as_str(), &name[at..])),
        Some(sign) => {
            let (sign, any) = if sign == '\\' { (signs.next().unwrap_or(sign), false) } else { (sign, sign == '_') };
            let mut letters = name.chars();
            letters.next().is_some_and(|letter| (any || letter == sign) && is_like(signs.as_str(), letters.as_str()))
        }
    }
}

/// The position of the first wildcard in `pattern`: the later, the narrower.
fn wildcard_at(pattern: &str) -> usize {
    let mut escaped = false;
    for (at, sign) in pattern.char_indices() {
        match sign {
            '\\' if !escaped => escaped = true,
            '%' | '_' if !escaped => return at,
            _ => escaped = false,
        }
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{
        super::{
            accounts::named,
            rights::{ObjectRight, Powers},
        },
        *,
    };

    fn holder(user: &str, host: &str, rights: &[Right]) -> Account {
        let rights = rights.iter().copied().collect();
        Account {
            user: user.to_owned(),
            host: host.to_owned(),
            logs_in: !host.is_empty(),
            rights,
            ..Account::default()
        }
    }

    fn on_database(user: &str, database: &str, writes: Vec<&'static str>) -> DatabaseRight {
        let (user, host, database) = (user.to_owned(), "%".to_owned(), database.to_owned());
        DatabaseRight { user, host, database, writes, ..DatabaseRight::default() }
    }

    fn on_object(user: &str, host: &str, object: &str, right: &str) -> ObjectRight {
        let [user, host, object, right] = [user, host, object, right].map(str::to_owned);
        ObjectRight { user, host, object, right }
    }

    #[test]
    fn ways_to_everything_are_told() {
        let all = [Select, Insert, Update, Delete, CreateUser];
        let holders = vec![
            holder("root", "localhost", &all),
            holder("app", "%", &[]),
            holder("clerk", "%", &[]),
            holder("maker", "%", &[CreateUser]),
            holder("narrow", "%", &[]),
            holder("sys", "%", &[CreateUser, SystemUser]),
            holder("dba", "", &all),
        ];
        let mut databases = vec![
            on_database("clerk", "m%", vec!["INSERT"]),
            on_database("narrow", "%", vec!["INSERT", "UPDATE"]),
            on_database("narrow", "mysql", Vec::new()),
        ];
        databases.sort_by(|one, other| one.user.cmp(&other.user));
        let members = vec![(named("app", "%"), named("dba", ""), "role")];
        let mut rights = Rights { holders, databases, members, ..Rights::default() };
        let told = |rights: &Rights| {
            let mut reach = rights.reach();
            let ways = reach.ways([EVERYTHING]);
            let way = |holder: &Account| ways.of(&holder.text()).map(|way| words(&way) + "\n");
            rights.holders.iter().filter_map(way).collect::<String>()
        };
        let mut text = told(&rights);
        rights.powers = Powers { guards_system_users: true, names_are_literal: true, ..Powers::default() };
        rights.holders[0].rights.insert(SystemUser);
        text += "with system users, and names that are no patterns:\n";
        text += &told(&rights);
        expect![[r#"
            'root'@'localhost' → everything (rights on *.*)
            'app'@'%' → role dba (role) → everything (rights on *.*)
            'clerk'@'%' → everything (INSERT ON `m%`.* writes the tables of rights)
            'maker'@'%' → any account (CREATE USER sets its password) → 'root'@'localhost' (one of them) → everything (rights on *.*)
            'sys'@'%' → any account (CREATE USER sets its password) → 'root'@'localhost' (one of them) → everything (rights on *.*)
            role dba → everything (rights on *.*)
            with system users, and names that are no patterns:
            'root'@'localhost' → everything (rights on *.*)
            'app'@'%' → role dba (role) → everything (rights on *.*)
            'maker'@'%' → any account (CREATE USER sets its password) → 'app'@'%' (one of them) → role dba (role) → everything (rights on *.*)
            'sys'@'%' → any account, system users included (CREATE USER sets its password) → 'root'@'localhost' (one of them) → everything (rights on *.*)
            role dba → everything (rights on *.*)
        "#]].assert_eq(&text);
    }

    #[test]
    fn plugins_are_uninstalled_by_a_right_on_the_database_or_table_of_them() {
        let told = |databases: &[(&str, bool)], tables: &[[&str; 2]]| {
            let of = |(database, deletes): &(&str, bool)| DatabaseRight {
                deletes: *deletes,
                ..on_database("app", database, Vec::new())
            };
            let rights = Rights {
                holders: vec![holder("app", "%", &[])],
                databases: databases.iter().map(of).collect(),
                tables: tables.iter().map(|[table, right]| on_object("app", "%", table, right)).collect(),
                powers: Powers { tables_of_rights: &["user"], ..Powers::default() },
                ..Rights::default()
            };
            rights.switching_off(&mut rights.reach()).concat()
        };
        let way = |by: &str| format!("'app'@'%' → protections switched off ({by} uninstalls plugins)");
        assert_eq!(told(&[("m%", true)], &[]), way("DELETE ON `m%`.*"));
        assert_eq!(told(&[("m%", true), ("mysql", false)], &[]), "", "the narrower row decides");
        assert_eq!(told(&[("shop", true)], &[]), "");
        assert_eq!(told(&[], &[["plugin", "Select,Delete"]]), way("DELETE ON mysql.plugin"));
        assert_eq!(told(&[], &[["component", "Delete"]]), way("DELETE ON mysql.component"));
        assert_eq!(told(&[], &[["plugin", "Insert"], ["user", "Delete"]]), "");
    }

    #[test]
    fn hashes_of_passwords_are_read_by_a_right_on_the_table_of_accounts() {
        let told = |app: Account, databases: Vec<DatabaseRight>, tables: &[[&str; 2]]| {
            let all = [Select, Insert, Update, Delete, CreateUser];
            let rights = Rights {
                holders: vec![holder("root", "localhost", &all), app],
                databases,
                tables: tables.iter().map(|[table, right]| on_object("app", "%", table, right)).collect(),
                ..Rights::default()
            };
            rights.reading_hashes(&mut rights.reach()).concat()
        };
        let reads = |database: &str| DatabaseRight { reads: true, ..on_database("app", database, Vec::new()) };
        let app = |rights: &[Right]| holder("app", "%", rights);
        let way = |by: &str| format!("'app'@'%' → hashes of all passwords ({by})");
        assert_eq!(told(app(&[Select]), Vec::new(), &[]), way("SELECT ON *.*"));
        assert_eq!(told(Account { keeps_off_hashes: true, ..app(&[Select]) }, Vec::new(), &[]), "");
        assert_eq!(told(app(&[]), vec![reads("m%")], &[]), way("SELECT ON `m%`.*"));
        assert_eq!(told(app(&[]), vec![reads("shop")], &[]), "");
        assert_eq!(told(app(&[]), Vec::new(), &[["user", "Select"]]), way("SELECT ON mysql.user"));
        assert_eq!(told(app(&[]), Vec::new(), &[["user", "Delete"]]), "");
        // An account that gets all privileges reads them as well, and is named for that.
        assert_eq!(told(app(&[Select, Insert]), Vec::new(), &[]), "");
    }

    #[test]
    fn what_new_connections_execute_acts_as_their_accounts() {
        let way = |maker: &[Right], dba: &[Right], super_is_all: bool| {
            let root = [Select, Insert, Update, Delete, CreateUser, SkipInitConnect];
            let holders = vec![
                holder("root", "localhost", &root),
                holder("ops", "%", &[SetInitConnect]),
                holder("maker", "%", maker),
                holder("dba", "", dba),
            ];
            let members = vec![(named("maker", "%"), named("dba", ""), "role")];
            let powers = Powers { super_is_all, ..Powers::default() };
            let mut reach = Rights { holders, members, powers, ..Rights::default() }.reach();
            let ways = reach.ways([EVERYTHING]);
            ways.of("'ops'@'%'").map(|way| words(&way))
        };
        let told = "'ops'@'%' → any account that runs init_connect (sets init_connect) → 'maker'@'%' (one of them) → \
                    any account (CREATE USER sets its password) → 'root'@'localhost' (one of them) → everything \
                    (rights on *.*)";
        assert_eq!(way(&[CreateUser], &[], false).as_deref(), Some(told));
        // It is not executed for these, by their own rights or those of a role.
        assert_eq!(way(&[CreateUser, SkipInitConnect], &[], false), None);
        assert_eq!(way(&[CreateUser], &[SkipInitConnect], false), None);
        assert_eq!(way(&[CreateUser, Super], &[], true), None);
        assert_eq!(way(&[CreateUser, Super], &[], false).as_deref(), Some(told));
        assert_eq!(way(&[], &[], false), None, "an account that leads nowhere");
    }

    #[test]
    fn privileges_of_two_roles_make_code_that_runs_as_another() {
        let all = [Select, Insert, Update, Delete, CreateUser];
        let way = |of_app: &[Right], roles: &[(&str, Right)]| {
            let mut holders = vec![holder("root", "localhost", &all), holder("app", "%", of_app)];
            holders.extend(roles.iter().map(|(name, right)| holder(name, "", &[*right])));
            let member = |(name, _): &(&str, Right)| (named("app", "%"), named(name, ""), "role");
            let members = roles.iter().map(member).collect();
            let mut reach = Rights { holders, members, ..Rights::default() }.reach();
            let ways = reach.ways([EVERYTHING]);
            ways.of("'app'@'%'").map(|way| words(&way))
        };
        let told = "'app'@'%' → any account (code that runs as it) → 'root'@'localhost' (one of them) → everything \
                    (rights on *.*)";
        assert_eq!(way(&[SetDefiner], &[("dev", MakeCode)]).as_deref(), Some(told));
        assert_eq!(way(&[], &[("dev", MakeCode), ("ops", SetDefiner)]).as_deref(), Some(told));
        assert_eq!(way(&[SetDefiner], &[("ops", SetDefiner)]), None);
    }

    #[test]
    fn patterns_of_databases_are_those_of_like() {
        for (pattern, fits) in [
            ("mysql", true),
            ("%", true),
            ("m_sql", true),
            ("m\\_sql", false),
            ("my%", true),
            ("shop%", false),
            ("", false),
            ("m%l", true),
            ("%sq", false),
            ("%x", false),
            ("m\\%", false),
        ] {
            assert_eq!(is_like(pattern, "mysql"), fits, "{pattern}");
        }
        assert!(is_like("m\\_sql", "m_sql") && is_like("m\\%", "m%"));
        assert!(wildcard_at("mysql") > wildcard_at("my%") && wildcard_at("my%") > wildcard_at("%"));
        assert_eq!(wildcard_at("m\\_sql"), usize::MAX);
        assert_eq!(["\\ab_", "a\\\\%"].map(wildcard_at), [3, 3], "the sign behind an escaped one is a wildcard");
    }

    /// The rights of three accounts of two names and two hosts.
    fn three() -> Rights {
        let holders = [("app", "%"), ("app", "localhost"), ("other", "%")].map(|(user, host)| holder(user, host, &[]));
        let powers = Powers { tables_of_rights: &["user"], ..Powers::default() };
        Rights { holders: holders.into(), powers, ..Rights::default() }
    }

    #[test]
    fn rights_to_tables_of_rights_lead_those_alone_that_have_them() {
        let (one, other, third) = ("'app'@'%'", "'app'@'localhost'", "'other'@'%'");
        let own = on_database("app", "mysql", Vec::new());
        let (writes, everyone) = (vec!["INSERT"], on_database("", "mysql", vec!["INSERT"]));
        for (tables, databases, led) in [
            (vec![], vec![], vec![]),
            (vec![on_object("app", "%", "user", "Update")], vec![], vec![one]),
            (vec![on_object("app", "localhost", "user", "Update")], vec![], vec![other]),
            (vec![on_object("app", "%", "plugin", "Update")], vec![], vec![]),
            (vec![], vec![on_database("app", "mysql", writes.clone())], vec![one]),
            (vec![], vec![on_database("app", "shop", writes)], vec![]),
            (vec![], vec![everyone.clone()], vec![one, other, third]),
            // A row of its own hides that of everyone.
            (vec![], vec![everyone, own], vec![other, third]),
        ] {
            let rights = Rights { tables, databases, ..three() };
            let mut reach = rights.reach();
            let ways = reach.ways([EVERYTHING]);
            let names = rights.holders.iter().map(Account::text).filter(|name| ways.has(name));
            assert_eq!(names.collect::<Vec<_>>(), led, "{:?} {:?}", rights.tables, rights.databases);
        }
    }

    #[test]
    fn code_is_made_by_a_right_of_the_account_or_of_everyone() {
        let makes = |(user, host, makes_code): (&str, &str, bool)| {
            let right = DatabaseRight { host: host.to_owned(), makes_code, ..on_database(user, "shop", Vec::new()) };
            Rights { databases: vec![right], ..Rights::default() }.makes_code(&holder("app", "%", &[]))
        };
        assert_eq!([("app", "%", true), ("", "%", true), (PUBLIC, "", true)].map(makes), [true; 3]);
        assert_eq!([("app", "localhost", true), ("other", "%", true), ("app", "%", false)].map(makes), [false; 3]);
    }

    #[test]
    fn routines_of_administrators_are_doubts_if_another_may_call_them() {
        let told = |definer: &str, change: &dyn Fn(&mut Rights)| {
            let mut rights = three();
            rights.holders.push(holder("root", "localhost", &[Select, Insert, Update, Delete, CreateUser]));
            let [database, name, definer] = ["shop", "pay", definer].map(str::to_owned);
            rights.routines = vec![Definition { database, name, definer }];
            change(&mut rights);
            let mut reach = rights.reach();
            let ways = reach.ways([EVERYTHING]);
            rights.unjudged_routines(&ways)
        };
        let calls = |user: &'static str, host: &'static str, object: &'static str| {
            move |rights: &mut Rights| rights.calls = vec![on_object(user, host, object, "Execute")]
        };
        let on_shop = |executes: bool| {
            move |rights: &mut Rights| {
                rights.databases = vec![DatabaseRight { executes, ..on_database("other", "shop", Vec::new()) }];
            }
        };
        let of_caller = |caller: &str| {
            let runs = "which runs as 'root'@'localhost'";
            [format!("what shop.pay does, which {caller} may call and {runs}")]
        };
        let root = "root@localhost";
        assert_eq!(told(root, &calls("app", "localhost", "shop.pay")), of_caller("'app'@'localhost'"));
        assert_eq!(told(root, &calls("other", "%", "shop.pay")), of_caller("'other'@'%'"));
        assert_eq!(told(root, &on_shop(true)), of_caller("'other'@'%'"));
        let executes = |rights: &mut Rights| rights.holders[1].rights = [Execute].into_iter().collect();
        assert_eq!(told(root, &executes), of_caller("'app'@'localhost'"));
        let none: [String; 0] = [];
        assert_eq!(told(root, &on_shop(false)), none);
        assert_eq!(told(root, &calls("app", "%", "shop.other")), none);
        assert_eq!(told("other@%", &executes), none, "it runs as an ordinary account");
        // So many are judged one by one.
        let routines = |count: usize| move |rights: &mut Rights| rights.routines = vec![Definition::default(); count];
        assert_eq!(told(root, &routines(100)), none);
        assert_eq!(told(root, &routines(102)), ["2 further routines"]);
    }

    #[test]
    fn proxies_are_accounts_that_get_further_by_another() {
        let all = [Select, Insert, Update, Delete, CreateUser];
        let mut rights = three();
        rights.holders.extend([holder("root", "localhost", &all), holder("dba", "", &all), holder("dev", "", &[])]);
        let dba = named("dba", "");
        rights.members = vec![
            (named("root", "localhost"), dba.clone(), "role"),
            (named("dev", ""), dba.clone(), "role"),
            (named("app", "%"), dba, "role"),
            (named("other", "%"), named(PUBLIC, ""), EVERYBODY),
        ];
        let mut reach = rights.reach();
        assert_eq!(rights.proxies(&reach.ways([EVERYTHING])), ["'app'@'%' → role dba (role)"]);
    }

    #[test]
    fn the_middle_of_a_long_way_is_left_out() {
        let names = ["b", "c", "d", "e", "f", "g", "h", "i"];
        let told = |count: usize| {
            words(&Way { account: "a", steps: names[..count].iter().map(|name| (*name, "x")).collect() })
        };
        assert_eq!(told(6), "a → b (x) → c (x) → d (x) → e (x) → f (x) → g (x)");
        assert_eq!(told(7), "a → b (x) → c (x) → d (x) → … 1 more → f (x) → g (x) → h (x)");
        assert_eq!(told(8), "a → b (x) → c (x) → d (x) → … 2 more → g (x) → h (x) → i (x)");
    }
}
