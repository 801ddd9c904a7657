//! Statements as servers count them: which are drawn, and which are left out.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use tithe_machine::fault::Fault;
use tithe_model::{catalogue::WireProtocol, schedule::SplitMix64};
use tithe_plugin::production::{ColumnValues, Counted, Production};

use super::learned::learn;

/// A server with a table of orders and one of customers.
struct Server {
    protocol: WireProtocol,
    statements: Vec<(&'static str, u64, u64)>,
    grants: Vec<&'static str>,
}

impl Production for Server {
    fn protocol(&self) -> WireProtocol {
        self.protocol
    }

    fn sources(&self) -> (&'static str, &'static str) {
        ("pg_stat_statements", "pg_stats")
    }

    fn counted(&mut self) -> Result<Vec<Counted>, Fault> {
        let counted =
            |&(text, calls, ns): &(&str, u64, u64)| Counted { text: text.to_owned(), calls, ns, rows: 3 * calls };
        Ok(self.statements.iter().map(counted).collect())
    }

    fn columns(&mut self, _names: &BTreeSet<String>) -> Result<Vec<ColumnValues>, Fault> {
        let column = |table: &str, column: &str, is_key, common: &[(&str, f64)], bounds: &[&str]| ColumnValues {
            table: table.to_owned(),
            column: column.to_owned(),
            is_whole: bounds.iter().all(|bound| bound.parse::<i64>().is_ok()) && common.is_empty(),
            is_key,
            common: common.iter().map(|(value, share)| ((*value).to_owned(), *share)).collect(),
            bounds: bounds.iter().map(|bound| (*bound).to_owned()).collect(),
        };
        Ok(vec![
            column("orders", "id", true, &[], &["1", "10"]),
            column("orders", "customer", false, &[], &["-3", "-3"]),
            column("orders", "state", false, &[("it's \\", 1.0)], &[]),
            column("orders", "note", false, &[], &[]),
            column("customer", "id", true, &[], &["700", "700"]),
        ])
    }

    fn grants(&mut self, _: &[&Counted], _: &BTreeSet<String>) -> Result<BTreeSet<String>, Fault> {
        Ok(self.grants.iter().map(|grant| (*grant).to_owned()).collect())
    }

    fn refuses(&mut self, text: &str) -> Result<Option<String>, Fault> {
        Ok(text.contains("untaken").then(|| "no".to_owned()))
    }
}

fn check(protocol: WireProtocol, statements: &[(&'static str, u64, u64)], expected: &Expect) {
    let mut server = Server { protocol, statements: statements.to_vec(), grants: Vec::new() };
    let told = match learn(&mut server) {
        Err(fault) => fault.to_string(),
        Ok(learned) => {
            let samples = learned.statements.iter().enumerate();
            let samples = samples.map(|(number, drawn)| format!("{} {}\n", drawn.name, learned.sample(number)));
            let lines = learned.lines.iter().map(|(name, value)| format!("{name}: {value}\n"));
            samples.chain(lines).collect()
        }
    };
    expected.assert_eq(&told);
}

#[test]
fn parameters_belong_to_columns() {
    check(
        WireProtocol::Postgres,
        &[
            ("SELECT * FROM orders WHERE customer = $1 AND state <> $2", 1, 1),
            ("select o.id from public.orders as o join customer c on c.id = o.customer where c.id = $1 limit $2", 1, 1),
            ("SELECT id FROM orders WHERE state IN ($1, $2) AND customer NOT BETWEEN $3 AND $4 OFFSET $5", 1, 1),
            (
                "SELECT \"state\" FROM \"orders\" WHERE $1 >= \"orders\".\"customer\" AND state NOT LIKE $2 FETCH FIRST $3 ROWS ONLY",
                1,
                1,
            ),
            (
                "SELECT count(*) FROM orders WHERE EXISTS (SELECT $2 FROM customer c WHERE c.id = $1 AND c.id - $1 = c.id)",
                1,
                1,
            ),
            ("SELECT a FROM orders WHERE customer = $1 -- $2", 1, 1),
            ("INSERT INTO tithe_0a.orders SELECT * FROM orders", 1, 99),
        ],
        &expect![[r#"
            select-orders:1 SELECT * FROM orders WHERE customer = (-3) AND state <> 'it''s \'
            select-public.orders:2 select o.id from public.orders as o join customer c on c.id = o.customer where c.id = 700 limit 3
            select-orders:3 SELECT id FROM orders WHERE state IN ('it''s \', 'it''s \') AND customer NOT BETWEEN (-3) AND (-3) OFFSET 0
            select-orders:4 SELECT "state" FROM "orders" WHERE (-3) >= "orders"."customer" AND state NOT LIKE 'it''s \' FETCH FIRST 3 ROWS ONLY
            select-orders:5 SELECT count(*) FROM orders WHERE EXISTS (SELECT 1 FROM customer c WHERE c.id = 700 AND c.id - 700 = c.id)
            select-orders:6 SELECT a FROM orders WHERE customer = (-3) -- $2
            like production: 6 statements of 6 that pg_stat_statements has counted, 100.0 % of their time
            statements: by calls, each by itself: transactions are not counted
            parameters: drawn from pg_stats, not the ones that were used
        "#]],
    );
    check(
        WireProtocol::MySql,
        &[
            ("SELECT COUNT(*) FROM `orders` WHERE `state` = ? AND `customer` - ? > ? LIMIT ?, ?", 1, 1),
            ("UPDATE `orders` SET `customer` = `customer` + ? , `state` = ? WHERE `id` = ?", 1, 1),
            ("INSERT INTO `orders`(`customer` , `state`) VALUES(?, ?)", 1, 1),
        ],
        &expect![[r#"
            update-orders:1 UPDATE `orders` SET `customer` = `customer` + (-3) , `state` = 'it''s \\' WHERE `id` = 4
            insert-orders:2 INSERT INTO `orders`(`customer` , `state`) VALUES((-3), 'it''s \\')
            like production: 2 statements of 3 that pg_stat_statements has counted, 66.7 % of their time
            statements: by calls, each by itself: transactions are not counted
            parameters: drawn from pg_stats, not the ones that were used
            left out: no column found for a parameter: 1, 33.3 % of their time
        "#]],
    );
}

#[test]
fn statements_behind_comments_of_tools_and_drivers_are_drawn() {
    check(
        WireProtocol::Postgres,
        &[
            ("/* load Order */ select state from orders where customer = $1", 1, 1),
            ("-- Metabase:: userID: 7\nSELECT id FROM orders", 1, 1),
        ],
        &expect![[r#"
            select-orders:1 /* load Order */ select state from orders where customer = (-3)
            select-orders:2 -- Metabase:: userID: 7
            SELECT id FROM orders
            like production: 2 statements of 2 that pg_stat_statements has counted, 100.0 % of their time
            statements: by calls, each by itself: transactions are not counted
            parameters: drawn from pg_stats, not the ones that were used
        "#]],
    );
}

#[test]
fn what_cannot_be_drawn_is_counted_by_reason() {
    check(
        WireProtocol::Postgres,
        &[
            ("SELECT state FROM orders WHERE id = $1", 9, 400),
            ("BEGIN", 9, 100),
            ("SELECT pg_advisory_lock($1)", 9, 100),
            ("SELECT id FROM orders WHERE lower(state) = $1", 9, 50),
            ("SELECT id FROM orders, customer WHERE id = $1", 9, 50),
            ("SELECT id FROM orders WHERE note = $1", 9, 50),
            ("INSERT INTO orders (id, state) VALUES ($1, $2)", 9, 50),
            ("SELECT untaken FROM orders WHERE id = $1", 9, 50),
            ("SELECT now()", 9, 25),
            ("SELECT id FROM orders, pg_catalog.pg_class", 9, 25),
            ("SELECT id FROM shop.orders", 9, 50),
            ("DELETE FROM orders WHERE id = $1", 1, 50),
        ],
        &expect![[r#"
            select-orders:1 SELECT state FROM orders WHERE id = 10
            delete-orders:2 DELETE FROM orders WHERE id = 1
            like production: 2 statements of 12 that pg_stat_statements has counted, 45.0 % of their time
            statements: by calls, each by itself: transactions are not counted
            parameters: drawn from pg_stats, not the ones that were used
            left out: neither queries nor changes of rows: 2, 20.0 % of their time
            left out: no table of yours: 2, 5.0 % of their time
            left out: no column found for a parameter: 2, 10.0 % of their time
            left out: the server knows no values of a column: ANALYZE its table: 1, 5.0 % of their time
            left out: values of a unique index would be written twice: 1, 5.0 % of their time
            left out: tables are named with their schema, and copies are elsewhere: 1, 5.0 % of their time
            left out: the server takes no values there: 1, 5.0 % of their time
        "#]],
    );
    check(
        WireProtocol::MySql,
        &[
            ("SELECT `id` FROM `orders` WHERE `id` IN(...)", 1, 1),
            ("SELECT `id` FROM `orders` WHERE `customer` ...", 1, 1),
        ],
        &expect![
            "refused: no statement can be drawn; like production: 0 statements of 2 that pg_stat_statements has counted, 0.0 % of their time; statements: by calls, each by itself: transactions are not counted; parameters: drawn from pg_stats, not the ones that were used; left out: texts are cut, or lists have no length: 2, 100.0 % of their time"
        ],
    );
    let mut server =
        Server { protocol: WireProtocol::Postgres, statements: Vec::new(), grants: vec!["GRANT a", "GRANT b"] };
    expect!["refused: the account may not read what statements name: run `GRANT a; GRANT b`"]
        .assert_eq(&learn(&mut server).expect_err("rights are missing").to_string());
}

#[test]
fn statements_and_values_come_as_often_as_they_were_counted() {
    let statements = vec![("SELECT id FROM orders WHERE id = $1", 3, 1), ("SELECT state FROM orders", 1, 1)];
    let mut server = Server { protocol: WireProtocol::Postgres, statements, grants: Vec::new() };
    let learned = learn(&mut server).expect("learned");
    let (mut random, mut counts, mut values, mut text) =
        (SplitMix64::new(1), [0u32; 2], BTreeSet::new(), String::new());
    for _ in 0..4000 {
        let number = learned.choose(&mut random);
        counts[number] += 1;
        learned.fill(number, &mut random, &mut text);
        values.insert(text.clone());
    }
    assert!((2850..3150).contains(&counts[0]), "{counts:?}");
    assert_eq!(values.len(), 11, "each id from 1 to 10, and the other statement: {values:?}");
}
