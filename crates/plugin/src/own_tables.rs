//! Tables of the user's own on a server that Tithe did not start: where statements on them run, and how all other
//! tables are protected from changes.
//!
//! The texts of statements decide the place. The server protects everything else: read-only sessions have read-only
//! transactions, and an account whose statements change rows may change only what the user named.

use std::collections::BTreeSet;

use tithe_machine::{fault::Fault, launch::Server};

use crate::{
    production::Production,
    setup::{Room, Setup, TablePlace},
};

/// A statement of the user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnStatement {
    /// Its place: `app.sql:3`.
    pub place: String,
    /// Its text, with parameters as the product writes them.
    pub text: String,
    /// How many parameters it has.
    pub parameters: usize,
}

/// The requests of a workload for tables that Tithe did not make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Its statements.
    pub statements: Vec<OwnStatement>,
    /// Every name in them, of tables or of anything else.
    pub names: BTreeSet<String>,
    /// Some statement changes rows, according to its text.
    pub writes: bool,
    /// Tables that may be changed in place.
    pub in_place: Vec<String>,
    /// Some arm changes the content of tables, so all arms work on copies.
    pub on_copies: bool,
    /// The size limit of copies, bytes, if the user set one.
    pub copy_limit: Option<u64>,
}

/// Why a server refuses a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It does not know a table, a column or a function; the server's words.
    Unknown(String),
    /// The account lacks a privilege.
    Denied {
        /// The server's words.
        words: String,
        /// The statement that grants it, if the words contain it.
        grant: Option<String>,
    },
}

/// A table or a view that statements name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTable {
    /// Its full name, as the product writes it.
    pub name: String,
    /// The same without its schema or database.
    pub short: String,
    /// False for a view or a foreign table.
    pub is_table: bool,
    /// A statement finds it by its short name.
    pub is_visible: bool,
    /// Statements by which an administrator lets the account read it; none if it already may.
    pub grants: Vec<String>,
}

/// A product's functions for tables that Tithe did not make.
pub trait OwnTables: Sync {
    /// Opens a session that reads metadata and changes nothing.
    ///
    /// # Errors
    /// As [`Database::connect`](crate::database::Database::connect).
    fn survey(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Survey>, Fault>;

    /// Opens a session that reads the server's statistics, and changes nothing.
    ///
    /// # Errors
    /// As [`OwnTables::survey`].
    fn production(&self, server: &Server, setup: &Setup) -> Result<Box<dyn Production>, Fault>;

    /// Copies the table that statements call `name` to where Tithe keeps its tables, with its rows, indexes and
    /// defaults, but without foreign keys and triggers, which would affect the originals.
    ///
    /// # Errors
    /// The server's error.
    fn copy(&self, server: &Server, setup: &Setup, name: &str) -> Result<(), Fault>;
}

/// Queries a server about the user's own tables.
pub trait Survey {
    /// Makes the server check a statement without executing it, in a read-only transaction; `None` if it accepts it, or
    /// cannot decide without values.
    ///
    /// # Errors
    /// A broken connection.
    fn refusal(&mut self, statement: &OwnStatement) -> Result<Option<Refusal>, Fault>;

    /// The tables and views with one of `names`.
    ///
    /// # Errors
    /// The server's error.
    fn named(&mut self, names: &BTreeSet<String>) -> Result<Vec<OwnTable>, Fault>;

    /// What the account may change besides `allowed` and Tithe's own, by full names or in the server's words.
    ///
    /// # Errors
    /// The server's error.
    fn changeable(&mut self, allowed: &[&OwnTable]) -> Result<Vec<String>, Fault>;

    /// Rows of other tables that change together with those of `tables`, or that functions in `names` may change, each
    /// in words: cascades, triggers, functions with the rights of their owner.
    ///
    /// # Errors
    /// The server's error.
    fn side_effects(&mut self, tables: &[&OwnTable], names: &BTreeSet<String>) -> Result<Vec<String>, Fault>;

    /// How large `tables` are, and where the server stores copies.
    ///
    /// # Errors
    /// The server's error.
    fn room(&mut self, tables: &[&OwnTable]) -> Result<Room, Fault>;

    /// True if the account may create Tithe's tables.
    ///
    /// # Errors
    /// The server's error.
    fn makes_tables(&mut self) -> Result<bool, Fault>;

    /// Statements that make an account which may read `tables`, change those of `changed` and, for copies, make Tithe's
    /// tables.
    fn account(&mut self, tables: &[&OwnTable], changed: &[&OwnTable]) -> String;
}

/// A table that can store ciphertext.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The identifier of a row: columns, or the product's equivalent.
    pub row: Vec<String>,
    /// A row's identifier changes with an update, so it is read by a session that sees the table before the updates.
    pub renames_rows: bool,
    /// The columns that store ciphertext, in the order of the encrypted ones.
    pub into: Vec<String>,
    /// Statements that finish the table after all its rows were changed, and remove all traces of the old values.
    pub settle: Vec<String>,
}

/// Where the statements in `asked` run.
///
/// # Errors
/// [`Fault::Refused`] with all obstacles: names that the server does not know, privileges that the account lacks, and
/// privileges that it must not have. The server's error.
pub fn place(survey: &mut dyn Survey, asked: &Asked) -> Result<TablePlace, Fault> {
    let tables = survey.named(&asked.names)?;
    if asked.on_copies && !asked.in_place.is_empty() {
        let words = "columns are encrypted on copies: leave `write_in_place` out";
        return Err(Fault::Refused(words.to_owned()));
    }
    let copies = asked.on_copies || asked.writes && asked.in_place.is_empty();
    let (mut refused, mut denied, mut grants) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut unknown = Vec::new();
    for statement in asked.statements.iter().filter(|_| !copies) {
        match survey.refusal(statement)? {
            Some(Refusal::Unknown(words)) => unknown.push(format!("{}: {words}", statement.place)),
            Some(Refusal::Denied { words, grant }) => {
                denied.push(format!("{}: {words}", statement.place));
                grants.extend(grant);
            }
            None => {}
        }
    }
    // The server shows no table of a schema that the account may not use.
    if copies || !denied.is_empty() || !unknown.is_empty() {
        grants.extend(tables.iter().flat_map(|table| table.grants.iter().cloned()));
    }
    if grants.is_empty() {
        refused.extend(unknown.into_iter().chain(denied));
    } else {
        let all: Vec<String> = grants.into_iter().collect();
        refused.push(format!("the account may not read what the statements name: run `{}`", all.join("; ")));
    }
    let mut changed = Vec::new();
    for name in &asked.in_place {
        // A short name is the table that statements find by it, if they find one.
        let named = tables.iter().filter(|table| table.name == *name || table.short == *name);
        let table = named.min_by_key(|table| (table.name != *name, !table.is_visible));
        match table {
            Some(table) => changed.push(table),
            None => refused.push(format!("no statement names `{name}`, which may be changed in place")),
        }
    }
    let copied: Vec<&OwnTable> = tables.iter().filter(|table| copies && table.is_visible).collect();
    if copies {
        refuse_copies(&copied, &mut refused);
    }
    if asked.writes {
        let others = survey.changeable(&changed)?;
        if !others.is_empty() {
            let all: Vec<&OwnTable> = tables.iter().collect();
            refused.push(format!(
                "the account may change more than the statements need ({}): use an account that may not: `{}`",
                shortened(&others),
                survey.account(&all, &changed)
            ));
        }
        let effects = survey.side_effects(&changed, &asked.names)?;
        refused
            .extend(effects.into_iter().map(|words| format!("{words}: this may change tables that you did not name")));
    }
    if !refused.is_empty() {
        return Err(Fault::Refused(refused.join("; besides, ")));
    }
    Ok(match copies {
        true => TablePlace::Copied {
            room: survey.room(&copied)?,
            names: copied.into_iter().map(|table| table.short.clone()).collect(),
        },
        false => TablePlace::InPlace { writes: asked.writes, makes: survey.makes_tables()? },
    })
}

/// Adds to `refused` why `copied` cannot be copied.
fn refuse_copies(copied: &[&OwnTable], refused: &mut Vec<String>) {
    if copied.is_empty() {
        refused.push("the server has no table that the statements name without its schema".to_owned());
    }
    for view in copied.iter().filter(|table| !table.is_table) {
        refused.push(format!(
            "{} is a view, and a copy of its rows would not change with those of its tables: let the statements name tables",
            view.name
        ));
    }
}

/// The first of `all`, and how many more there are.
fn shortened(all: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = all[..all.len().min(SHOWN)].join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server says about the tables that statements name, and about the account.
    #[derive(Default)]
    struct Known {
        tables: Vec<OwnTable>,
        refusal: Option<Refusal>,
        changeable: Vec<String>,
        effects: Vec<String>,
    }

    fn listed(tables: &[&OwnTable]) -> String {
        tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    impl Survey for Known {
        fn refusal(&mut self, _statement: &OwnStatement) -> Result<Option<Refusal>, Fault> {
            Ok(self.refusal.clone())
        }

        fn named(&mut self, _names: &BTreeSet<String>) -> Result<Vec<OwnTable>, Fault> {
            Ok(self.tables.clone())
        }

        fn changeable(&mut self, allowed: &[&OwnTable]) -> Result<Vec<String>, Fault> {
            let others = self.changeable.iter().filter(|name| allowed.iter().all(|table| table.name != **name));
            Ok(others.cloned().collect())
        }

        fn side_effects(&mut self, _tables: &[&OwnTable], _names: &BTreeSet<String>) -> Result<Vec<String>, Fault> {
            Ok(self.effects.clone())
        }

        fn room(&mut self, tables: &[&OwnTable]) -> Result<Room, Fault> {
            Ok(Room { bytes: 100 * tables.len() as u64, folder: None })
        }

        fn makes_tables(&mut self) -> Result<bool, Fault> {
            Ok(true)
        }

        fn account(&mut self, tables: &[&OwnTable], changed: &[&OwnTable]) -> String {
            format!("READ {}; CHANGE {}", listed(tables), listed(changed))
        }
    }

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn table(name: &str) -> OwnTable {
        let short = name.rsplit('.').next().unwrap_or(name).to_owned();
        OwnTable { name: name.to_owned(), short, is_table: true, is_visible: true, grants: Vec::new() }
    }

    /// A table that statements find, and one of another schema that they do not.
    fn tables() -> Vec<OwnTable> {
        vec![table("shop.orders"), OwnTable { is_visible: false, ..table("old.stock") }]
    }

    /// The same before the account may read them.
    fn locked() -> Vec<OwnTable> {
        let lock = |table: OwnTable| OwnTable { grants: vec![format!("GRANT {}", table.short)], ..table };
        tables().into_iter().map(lock).collect()
    }

    fn reads() -> Asked {
        let statement = OwnStatement { place: "app.sql:3".to_owned(), text: String::new(), parameters: 0 };
        Asked { statements: vec![statement], ..Asked::default() }
    }

    fn writes(in_place: &[&str]) -> Asked {
        Asked { writes: true, in_place: owned(in_place), ..reads() }
    }

    fn told(asked: &Asked, mut known: Known) -> String {
        place(&mut known, asked).map_or_else(|fault| fault.to_string(), |place| format!("{place:?}"))
    }

    #[test]
    fn statements_that_read_run_in_place_where_the_account_may_read() {
        let denied = |grant: Option<&str>| {
            Some(Refusal::Denied { words: "no right".to_owned(), grant: grant.map(str::to_owned) })
        };
        let unknown = || Some(Refusal::Unknown("no table".to_owned()));
        let of = |tables: Vec<OwnTable>, refusal| told(&reads(), Known { tables, refusal, ..Known::default() });
        let in_place = "InPlace { writes: false, makes: true }";
        assert_eq!([of(tables(), None), of(locked(), None)], [in_place; 2], "the server accepts the statements");
        assert_eq!(of(tables(), unknown()), "refused: app.sql:3: no table");
        assert_eq!(of(tables(), denied(None)), "refused: app.sql:3: no right");
        let may_not = "refused: the account may not read what the statements name: run";
        assert_eq!(of(tables(), denied(Some("GRANT b"))), format!("{may_not} `GRANT b`"));
        // The server shows no table of a schema that the account may not use.
        for refusal in [denied(None), unknown()] {
            assert_eq!(of(locked(), refusal), format!("{may_not} `GRANT orders; GRANT stock`"));
        }
        // What the account may change besides matters only to statements that write.
        let mighty = Known { tables: tables(), changeable: owned(&["shop.orders"]), ..Known::default() };
        assert_eq!(told(&reads(), mighty), in_place);
    }

    #[test]
    fn a_short_name_is_the_table_that_statements_find() {
        let hidden = |name: &str| OwnTable { is_visible: false, ..table(name) };
        let changed = |name: &str, tables: Vec<OwnTable>| {
            told(&writes(&[name]), Known { tables, changeable: owned(&["other"]), ..Known::default() })
        };
        let both = || vec![hidden("archive.orders"), table("shop.orders")];
        assert!(changed("orders", both()).ends_with("CHANGE shop.orders`"));
        assert!(changed("archive.orders", both()).ends_with("CHANGE archive.orders`"));
        assert!(changed("orders", vec![hidden("archive.orders")]).ends_with("CHANGE archive.orders`"));
    }

    #[test]
    fn an_account_may_change_what_was_named_and_nothing_else() {
        let of = |in_place: &[&str], changeable: &[&str], effects: &[&str]| {
            let (changeable, effects) = (owned(changeable), owned(effects));
            told(&writes(in_place), Known { tables: tables(), changeable, effects, ..Known::default() })
        };
        let in_place = "InPlace { writes: true, makes: true }";
        for name in ["orders", "shop.orders"] {
            assert_eq!(of(&[name], &["shop.orders"], &[]), in_place, "{name}");
        }
        let more = |names: &str| {
            format!(
                "refused: the account may change more than the statements need ({names}): use an account that may not: \
                 `READ shop.orders old.stock; CHANGE shop.orders`"
            )
        };
        assert_eq!(of(&["orders"], &["shop.orders", "a"], &[]), more("a"));
        assert_eq!(of(&["orders"], &["a", "b", "c"], &[]), more("a, b, c"));
        assert_eq!(of(&["orders"], &["a", "b", "c", "d", "e"], &[]), more("a, b, c and 2 more"));
        let others = "a trigger: this may change tables that you did not name";
        assert_eq!(of(&["orders"], &[], &["a trigger"]), format!("refused: {others}"));
        assert_eq!(of(&["orders"], &["a"], &["a trigger"]), format!("{}; besides, {others}", more("a")));
        let unnamed = "refused: no statement names `paid`, which may be changed in place";
        assert_eq!(of(&["orders", "paid"], &["shop.orders"], &[]), unnamed);
    }

    #[test]
    fn statements_that_write_without_a_named_table_run_on_copies_and_so_do_all_where_an_arm_needs_it() {
        let of = |asked: &Asked, tables: Vec<OwnTable>, refusal: Option<Refusal>| {
            told(asked, Known { tables, refusal, ..Known::default() })
        };
        let copied = "Copied { names: [\"orders\"], room: Room { bytes: 100, folder: None } }";
        let on_copies = |asked: Asked| Asked { on_copies: true, ..asked };
        for asked in [writes(&[]), on_copies(reads()), on_copies(writes(&[]))] {
            // The originals are not what the statements will find.
            let refusal = Some(Refusal::Unknown("no table".to_owned()));
            assert_eq!(of(&asked, tables(), refusal), copied, "{asked:?}");
            let may_not = "the account may not read what the statements name: run `GRANT orders; GRANT stock`";
            assert_eq!(of(&asked, locked(), None), format!("refused: {may_not}"));
            let hidden = vec![OwnTable { is_visible: false, ..table("old.stock") }];
            let none = "refused: the server has no table that the statements name without its schema";
            assert_eq!(of(&asked, hidden, None), none);
            let with_view = vec![table("shop.orders"), OwnTable { is_table: false, ..table("shop.totals") }];
            let told = of(&asked, with_view, None);
            assert!(told.starts_with("refused: shop.totals is a view, and a copy of its rows"), "{told}");
        }
        let both = of(&on_copies(writes(&["orders"])), tables(), None);
        assert_eq!(both, "refused: columns are encrypted on copies: leave `write_in_place` out");
    }
}
