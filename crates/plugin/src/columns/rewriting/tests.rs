//! Statements, and the encrypted parts of each.

use expect_test::{Expect, expect};

use super::*;

/// `accounts.iban` is looked up, `accounts.name` and `people.mail` are not.
fn own() -> Vec<OwnColumn> {
    let column = |name, is_compared| OwnColumn::new(name, is_compared).expect("a column");
    vec![column("accounts.iban", true), column("accounts.name", false), column("people.mail", true)]
}

fn told(text: &str, grammar: Grammar) -> String {
    let own = own();
    let name = |number: &Option<usize>| number.map_or("-".to_owned(), |number| own[number].whole.clone());
    let list = |all: &[Option<usize>]| all.iter().map(name).collect::<Vec<_>>().join(" ");
    match plan(text, &own, grammar) {
        Ok(plan) if plan.touched.is_empty() => format!("{} parameters, untouched", plan.parameters.len()),
        Ok(plan) => format!("in: {} | out: {}", list(&plan.parameters), list(&plan.results)),
        Err(refusals) => {
            let line = |refusal: &Refusal| format!("{}:{} {}", refusal.line, refusal.column, refusal.problem);
            refusals.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    }
}

/// The result for each of `statements`, in the grammar of PostgreSQL.
fn check(statements: &[&str], expected: Expect) {
    check_in(Grammar::Postgres, statements, expected);
}

fn check_in(grammar: Grammar, statements: &[&str], expected: Expect) {
    let all = statements.iter().map(|text| format!("{text}\n    {}\n", told(text, grammar).replace('\n', "\n    ")));
    expected.assert_eq(&all.collect::<String>());
}

#[test]
fn values_are_encrypted_where_they_are_stored() {
    check(
        &[
            "INSERT INTO accounts (id, iban, name) VALUES (:id, :iban, :name)",
            "INSERT INTO accounts (iban, id) VALUES ($1, $2), ($3, 7), (NULL, $4)",
            "INSERT INTO accounts (id) VALUES (:id)",
            "INSERT INTO accounts AS a (id, name) VALUES (:id, :name) ON CONFLICT (id) DO UPDATE SET name = excluded.name, id = :id",
            "INSERT INTO accounts (id, iban) VALUES (:id, :iban) ON CONFLICT (iban) DO NOTHING RETURNING id, iban",
            "UPDATE accounts SET name = :name, balance = balance + :delta WHERE id = :id",
            "UPDATE accounts a SET name = :name FROM orders o WHERE o.account = a.id AND o.id = :id RETURNING a.name AS n",
            "UPDATE accounts SET name = NULL WHERE iban = :iban",
        ],
        expect![[r#"
            INSERT INTO accounts (id, iban, name) VALUES (:id, :iban, :name)
                in: - accounts.iban accounts.name | out: 
            INSERT INTO accounts (iban, id) VALUES ($1, $2), ($3, 7), (NULL, $4)
                in: accounts.iban - accounts.iban - | out: 
            INSERT INTO accounts (id) VALUES (:id)
                in: - | out: 
            INSERT INTO accounts AS a (id, name) VALUES (:id, :name) ON CONFLICT (id) DO UPDATE SET name = excluded.name, id = :id
                in: - accounts.name - | out: 
            INSERT INTO accounts (id, iban) VALUES (:id, :iban) ON CONFLICT (iban) DO NOTHING RETURNING id, iban
                in: - accounts.iban | out: - accounts.iban
            UPDATE accounts SET name = :name, balance = balance + :delta WHERE id = :id
                in: accounts.name - - | out: 
            UPDATE accounts a SET name = :name FROM orders o WHERE o.account = a.id AND o.id = :id RETURNING a.name AS n
                in: accounts.name - | out: accounts.name
            UPDATE accounts SET name = NULL WHERE iban = :iban
                in: accounts.iban | out: 
        "#]],
    );
}

#[test]
fn values_that_the_server_would_compute_are_refused() {
    check(
        &[
            "INSERT INTO accounts VALUES (:id, :iban)",
            "INSERT INTO accounts (id, iban) SELECT id, iban FROM old",
            "INSERT INTO accounts (id, iban) VALUES (1, 'DE1')",
            "INSERT INTO accounts (id, iban) VALUES (1, upper(:iban))",
            "INSERT INTO accounts (id, iban) VALUES (1, :iban::text)",
            "INSERT INTO log (text) SELECT iban FROM accounts",
            "INSERT INTO accounts (id, name) VALUES (1, :n) ON CONFLICT (name) DO NOTHING",
            "UPDATE accounts SET name = name || :more WHERE id = :id",
            "UPDATE accounts SET name = iban WHERE id = :id",
            "UPDATE accounts SET note = name WHERE id = :id",
            "UPDATE accounts SET (id, iban) = (:id, :iban)",
            "UPDATE orders SET text = a.name FROM accounts a WHERE a.id = orders.account",
        ],
        expect![[r#"
            INSERT INTO accounts VALUES (:id, :iban)
                1:13 INSERT leaves open which values are encrypted
            INSERT INTO accounts (id, iban) SELECT id, iban FROM old
                1:33 accounts.iban is encrypted, and its values come from a query
            INSERT INTO accounts (id, iban) VALUES (1, 'DE1')
                1:44 accounts.iban is encrypted, and a literal is not
            INSERT INTO accounts (id, iban) VALUES (1, upper(:iban))
                1:44 accounts.iban is encrypted, and the server would compute its value
            INSERT INTO accounts (id, iban) VALUES (1, :iban::text)
                1:44 accounts.iban is encrypted, and the server would compute its value
            INSERT INTO log (text) SELECT iban FROM accounts
                1:31 accounts.iban is encrypted, and the server would have to read it in another part of the statement
            INSERT INTO accounts (id, name) VALUES (1, :n) ON CONFLICT (name) DO NOTHING
                1:61 accounts.name is encrypted, and the server would have to read it in ON CONFLICT
            UPDATE accounts SET name = name || :more WHERE id = :id
                1:28 accounts.name is encrypted, and the server would compute its value
            UPDATE accounts SET name = iban WHERE id = :id
                1:28 accounts.name is encrypted, and the server would compute its value
            UPDATE accounts SET note = name WHERE id = :id
                1:28 accounts.name is encrypted, and the server would have to read it in a value of another column
            UPDATE accounts SET (id, iban) = (:id, :iban)
                1:26 accounts.iban is encrypted, and no statement can use it here
            UPDATE orders SET text = a.name FROM accounts a WHERE a.id = orders.account
                1:26 accounts.name is encrypted, and the server would have to read it in a value of another column
        "#]],
    );
}

#[test]
fn columns_with_equal_ciphertexts_are_looked_up() {
    check(
        &[
            "SELECT id FROM accounts WHERE iban = :iban AND (name IS NULL OR NOT iban <> :other)",
            "SELECT id FROM accounts WHERE :iban = accounts.iban",
            "SELECT id FROM accounts a WHERE a.iban IN (:one, :two) AND a.iban IS NOT NULL",
            "DELETE FROM accounts WHERE iban = :iban",
            "SELECT o.id, o.iban FROM orders o JOIN accounts a ON a.id = o.account AND a.iban = :iban",
            "SELECT id FROM orders WHERE account IN (SELECT id FROM accounts WHERE iban = :iban)",
            "SELECT id FROM orders o WHERE EXISTS (SELECT * FROM accounts a WHERE a.id = o.account AND a.iban = :iban)",
            "SELECT count(*), count(name), count(DISTINCT iban) FROM accounts WHERE iban IS NOT DISTINCT FROM :iban",
            "SELECT a.id FROM accounts a JOIN accounts b ON a.iban = b.iban",
            "SELECT iban, count(*) FROM accounts GROUP BY iban",
            "SELECT DISTINCT iban FROM accounts",
            "SELECT id FROM orders WHERE iban = :iban",
        ],
        expect![[r#"
            SELECT id FROM accounts WHERE iban = :iban AND (name IS NULL OR NOT iban <> :other)
                in: accounts.iban accounts.iban | out: -
            SELECT id FROM accounts WHERE :iban = accounts.iban
                in: accounts.iban | out: -
            SELECT id FROM accounts a WHERE a.iban IN (:one, :two) AND a.iban IS NOT NULL
                in: accounts.iban accounts.iban | out: -
            DELETE FROM accounts WHERE iban = :iban
                in: accounts.iban | out: 
            SELECT o.id, o.iban FROM orders o JOIN accounts a ON a.id = o.account AND a.iban = :iban
                in: accounts.iban | out: - -
            SELECT id FROM orders WHERE account IN (SELECT id FROM accounts WHERE iban = :iban)
                in: accounts.iban | out: -
            SELECT id FROM orders o WHERE EXISTS (SELECT * FROM accounts a WHERE a.id = o.account AND a.iban = :iban)
                in: accounts.iban | out: -
            SELECT count(*), count(name), count(DISTINCT iban) FROM accounts WHERE iban IS NOT DISTINCT FROM :iban
                in: accounts.iban | out: - - -
            SELECT a.id FROM accounts a JOIN accounts b ON a.iban = b.iban
                in:  | out: -
            SELECT iban, count(*) FROM accounts GROUP BY iban
                in:  | out: accounts.iban -
            SELECT DISTINCT iban FROM accounts
                in:  | out: accounts.iban
            SELECT id FROM orders WHERE iban = :iban
                1 parameters, untouched
        "#]],
    );
}

#[test]
fn columns_whose_ciphertexts_differ_are_not() {
    check(
        &[
            "SELECT id FROM accounts WHERE name = :name",
            "SELECT id FROM accounts WHERE name IN (:name)",
            "SELECT DISTINCT id, name FROM accounts",
            "SELECT name, count(*) FROM accounts GROUP BY name",
            "SELECT name AS n, count(*) FROM accounts GROUP BY 1",
            "SELECT count(DISTINCT name) FROM accounts",
            "SELECT a.id FROM accounts a JOIN accounts b ON a.name = b.name",
        ],
        expect![[r#"
            SELECT id FROM accounts WHERE name = :name
                1:31 accounts.name is encrypted so that equal values look different
            SELECT id FROM accounts WHERE name IN (:name)
                1:31 accounts.name is encrypted so that equal values look different
            SELECT DISTINCT id, name FROM accounts
                1:21 accounts.name is encrypted so that equal values look different, and DISTINCT compares it
            SELECT name, count(*) FROM accounts GROUP BY name
                1:46 accounts.name is encrypted, and the server would have to read it in GROUP BY
            SELECT name AS n, count(*) FROM accounts GROUP BY 1
                1:8 accounts.name is encrypted so that equal values look different, and GROUP BY compares it
            SELECT count(DISTINCT name) FROM accounts
                1:23 accounts.name is encrypted so that equal values look different
            SELECT a.id FROM accounts a JOIN accounts b ON a.name = b.name
                1:48 accounts.name is encrypted so that equal values look different
        "#]],
    );
}

#[test]
fn results_are_decrypted_where_they_come_straight_from_a_column() {
    check(
        &[
            "SELECT id, name, iban AS number FROM accounts WHERE id = :id ORDER BY id LIMIT :n FOR UPDATE",
            "SELECT o.id, p.mail, a.\"name\" FROM orders o, accounts AS a, people p WHERE p.id = a.id AND a.id = o.account",
            "SELECT (name), 7, (SELECT max(id) FROM orders) FROM accounts",
            "DELETE FROM accounts WHERE id = :id RETURNING name",
        ],
        expect![[r#"
            SELECT id, name, iban AS number FROM accounts WHERE id = :id ORDER BY id LIMIT :n FOR UPDATE
                in: - - | out: - accounts.name accounts.iban
            SELECT o.id, p.mail, a."name" FROM orders o, accounts AS a, people p WHERE p.id = a.id AND a.id = o.account
                in:  | out: - people.mail accounts.name
            SELECT (name), 7, (SELECT max(id) FROM orders) FROM accounts
                in:  | out: accounts.name - -
            DELETE FROM accounts WHERE id = :id RETURNING name
                in: - | out: accounts.name
        "#]],
    );
}

#[test]
fn everything_else_about_such_columns_is_refused() {
    check(
        &[
            "SELECT * FROM accounts",
            "SELECT a.* FROM accounts a",
            "SELECT a FROM accounts a",
            "SELECT row_to_json(accounts) FROM accounts",
            "SELECT count(a), to_jsonb(a), max(a.*) FROM accounts a",
            "SELECT id FROM accounts a WHERE a = :row AND a IS NOT NULL",
            "TABLE accounts",
            "SELECT count(*) FILTER (WHERE name = :n), count(id) OVER (PARTITION BY name) FROM accounts",
            "SELECT id FROM accounts ORDER BY iban",
            "SELECT id, iban FROM accounts ORDER BY 2",
            "SELECT iban AS x FROM accounts ORDER BY x",
            "(SELECT iban FROM accounts) ORDER BY 1",
            "SELECT name FROM accounts GROUP BY ROLLUP (1), (1)",
            "SELECT iban FROM accounts ORDER BY (+1)",
            "SELECT (iban) FROM accounts ORDER BY 1",
            "SELECT id FROM accounts WHERE iban > :iban",
            "SELECT id FROM accounts\nWHERE iban BETWEEN :a AND :b\n  AND name LIKE :pattern",
            "SELECT upper(iban), max(name), name || 'x', name::int FROM accounts",
            "SELECT CASE WHEN iban = :iban THEN name END FROM accounts",
            "SELECT id FROM accounts WHERE iban = 'DE1'",
            "SELECT id FROM accounts WHERE iban = upper(:iban)",
            "SELECT id FROM accounts WHERE iban = ANY(:list)",
            "SELECT a.id FROM accounts a JOIN orders o ON o.iban = a.iban",
            "SELECT id FROM accounts JOIN orders USING (iban)",
            "SELECT id FROM accounts NATURAL JOIN orders",
            "SELECT a.id FROM accounts a, people p WHERE a.iban = p.mail",
            "SELECT x.i FROM (SELECT iban AS i FROM accounts) x",
            "WITH x AS (SELECT iban FROM accounts) SELECT id FROM x",
            "SELECT iban FROM accounts UNION SELECT text FROM orders",
            "SELECT id FROM orders WHERE text = (SELECT iban FROM accounts WHERE id = :id)",
            "SELECT id FROM accounts WHERE EXISTS (SELECT 1 FROM orders WHERE iban = :iban)",
            "SELECT id FROM accounts WHERE (id, iban) = (:id, :iban)",
            "SELECT iban INTO copy FROM accounts",
            "SELECT id FROM shop.accounts",
            "SELECT row_number() OVER (ORDER BY name) FROM accounts",
            "SELECT id FROM accounts a (x, y)",
            "MERGE INTO accounts USING orders ON true WHEN MATCHED THEN DELETE",
            "CALL pay(:accounts, accounts)",
            "EXPLAIN SELECT iban FROM accounts",
            "SELECT id FROM accounts WHERE ???",
        ],
        expect![[r#"
            SELECT * FROM accounts
                1:8 * leaves open which results are encrypted
            SELECT a.* FROM accounts a
                1:8 it stands for accounts, which has encrypted columns, and no statement can use it here
                1:10 * leaves open which results are encrypted
            SELECT a FROM accounts a
                1:8 it stands for accounts, which has encrypted columns, and no statement can use it here
            SELECT row_to_json(accounts) FROM accounts
                1:20 accounts has encrypted columns, and no statement can use it here
            SELECT count(a), to_jsonb(a), max(a.*) FROM accounts a
                1:14 it stands for accounts, which has encrypted columns, and no statement can use it here
                1:27 it stands for accounts, which has encrypted columns, and no statement can use it here
                1:35 it stands for accounts, which has encrypted columns, and no statement can use it here
            SELECT id FROM accounts a WHERE a = :row AND a IS NOT NULL
                1:33 it stands for accounts, which has encrypted columns, and no statement can use it here
                1:46 it stands for accounts, which has encrypted columns, and no statement can use it here
            TABLE accounts
                1:1 it cannot be read: Expected: an SQL statement, found: TABLE at Line: 1, Column: 1
            SELECT count(*) FILTER (WHERE name = :n), count(id) OVER (PARTITION BY name) FROM accounts
                1:31 accounts.name is encrypted so that equal values look different
                1:72 accounts.name is encrypted, and no statement can use it here
            SELECT id FROM accounts ORDER BY iban
                1:34 accounts.iban is encrypted, and the server would have to read it in ORDER BY
            SELECT id, iban FROM accounts ORDER BY 2
                1:12 accounts.iban is encrypted, and ORDER BY sorts by it
            SELECT iban AS x FROM accounts ORDER BY x
                1:41 it stands for accounts.iban, which is encrypted, and no statement can use it here
            (SELECT iban FROM accounts) ORDER BY 1
                1:9 accounts.iban is encrypted, and the server would have to read it in another part of the statement
            SELECT name FROM accounts GROUP BY ROLLUP (1), (1)
                1:8 accounts.name is encrypted so that equal values look different, and GROUP BY compares it
            SELECT iban FROM accounts ORDER BY (+1)
                1:8 accounts.iban is encrypted, and ORDER BY sorts by it
            SELECT (iban) FROM accounts ORDER BY 1
                1:1 accounts.iban is encrypted, and ORDER BY sorts by it
            SELECT id FROM accounts WHERE iban > :iban
                1:31 accounts.iban is encrypted, and the server would have to read it in a range
            SELECT id FROM accounts
            WHERE iban BETWEEN :a AND :b
              AND name LIKE :pattern
                2:7 accounts.iban is encrypted, and the server would have to read it in a range
                3:7 accounts.name is encrypted, and the server would have to read it in a pattern
            SELECT upper(iban), max(name), name || 'x', name::int FROM accounts
                1:14 accounts.iban is encrypted, and the server would have to read it in upper()
                1:25 accounts.name is encrypted, and the server would have to read it in max()
                1:32 accounts.name is encrypted, and the server would have to read it in an operation
                1:45 accounts.name is encrypted, and the server would have to read it in a change of its type
            SELECT CASE WHEN iban = :iban THEN name END FROM accounts
                1:36 accounts.name is encrypted, and the server would have to read it in CASE
            SELECT id FROM accounts WHERE iban = 'DE1'
                1:38 accounts.iban is encrypted, and a literal is not
            SELECT id FROM accounts WHERE iban = upper(:iban)
                1:38 accounts.iban is encrypted, and the server would compute its value
            SELECT id FROM accounts WHERE iban = ANY(:list)
                1:31 accounts.iban is encrypted, and no statement can use it here
            SELECT a.id FROM accounts a JOIN orders o ON o.iban = a.iban
                1:46 accounts.iban is encrypted, and compared with a column that is not
            SELECT id FROM accounts JOIN orders USING (iban)
                1:44 accounts.iban is encrypted, and no statement can use it here
            SELECT id FROM accounts NATURAL JOIN orders
                1:38 NATURAL JOIN may compare encrypted columns of accounts
            SELECT a.id FROM accounts a, people p WHERE a.iban = p.mail
                1:45 accounts.iban and people.mail are encrypted, and their equal values look different
            SELECT x.i FROM (SELECT iban AS i FROM accounts) x
                1:25 accounts.iban is encrypted, and the server would have to read it in another part of the statement
            WITH x AS (SELECT iban FROM accounts) SELECT id FROM x
                1:19 accounts.iban is encrypted, and the server would have to read it in another part of the statement
            SELECT iban FROM accounts UNION SELECT text FROM orders
                1:8 accounts.iban is encrypted, and the server would have to read it in another part of the statement
            SELECT id FROM orders WHERE text = (SELECT iban FROM accounts WHERE id = :id)
                1:44 accounts.iban is encrypted, and the server would have to read it in another part of the statement
            SELECT id FROM accounts WHERE EXISTS (SELECT 1 FROM orders WHERE iban = :iban)
                1:66 it may be accounts.iban, which is encrypted
            SELECT id FROM accounts WHERE (id, iban) = (:id, :iban)
                1:36 accounts.iban is encrypted, and the server would have to read it in a comparison
            SELECT iban INTO copy FROM accounts
                1:18 INTO stores what only clients read
            SELECT id FROM shop.accounts
                1:21 accounts has encrypted columns and is named with its schema
            SELECT row_number() OVER (ORDER BY name) FROM accounts
                1:36 accounts.name is encrypted, and no statement can use it here
            SELECT id FROM accounts a (x, y)
                1:25 columns are renamed
            MERGE INTO accounts USING orders ON true WHEN MATCHED THEN DELETE
                1:12 accounts has encrypted columns, and no statement can use it here
            CALL pay(:accounts, accounts)
                1:21 accounts has encrypted columns, and no statement can use it here
            EXPLAIN SELECT iban FROM accounts
                1:16 accounts.iban is encrypted, and no statement can use it here
                1:26 accounts has encrypted columns, and no statement can use it here
            SELECT id FROM accounts WHERE ???
                1:1 it cannot be read: Expected: an expression, found: ? at Line: 1, Column: 31
        "#]],
    );
}

#[test]
fn statements_about_other_tables_are_left_alone() {
    check(
        &[
            "SELECT iban, name FROM orders WHERE iban LIKE :pattern",
            "BEGIN",
            "SELECT 'accounts', 1 -- accounts",
            "VACUUM (what, nobody, reads)",
            "SELECT '",
        ],
        expect![[r#"
            SELECT iban, name FROM orders WHERE iban LIKE :pattern
                1 parameters, untouched
            BEGIN
                0 parameters, untouched
            SELECT 'accounts', 1 -- accounts
                0 parameters, untouched
            VACUUM (what, nobody, reads)
                0 parameters, untouched
            SELECT '
                0 parameters, untouched
        "#]],
    );
}

#[test]
fn every_product_has_its_own_grammar() {
    check_in(
        Grammar::MySql,
        &[
            "INSERT INTO `accounts` (`id`, iban) VALUES (?, ?) ON DUPLICATE KEY UPDATE iban = VALUES(iban), id = ?",
            "INSERT INTO accounts SET id = ?, name = ?",
            "REPLACE INTO accounts (id, name) VALUES (?, ?)",
            "SELECT `a`.`iban` FROM accounts a WHERE a.iban <=> ? LIMIT 1, 2",
            "SELECT id FROM accounts WHERE iban = \"DE1\"",
            "UPDATE accounts a, orders o SET a.name = ? WHERE a.id = o.account AND o.id = ?",
            "DELETE a FROM accounts a WHERE a.iban = ?",
        ],
        expect![[r#"
            INSERT INTO `accounts` (`id`, iban) VALUES (?, ?) ON DUPLICATE KEY UPDATE iban = VALUES(iban), id = ?
                in: - accounts.iban - | out: 
            INSERT INTO accounts SET id = ?, name = ?
                in: - accounts.name | out: 
            REPLACE INTO accounts (id, name) VALUES (?, ?)
                in: - accounts.name | out: 
            SELECT `a`.`iban` FROM accounts a WHERE a.iban <=> ? LIMIT 1, 2
                in: accounts.iban | out: accounts.iban
            SELECT id FROM accounts WHERE iban = "DE1"
                1:38 accounts.iban is encrypted, and a literal is not
            UPDATE accounts a, orders o SET a.name = ? WHERE a.id = o.account AND o.id = ?
                1:1 it cannot be read: Expected: SET, found: , at Line: 1, Column: 18
            DELETE a FROM accounts a WHERE a.iban = ?
                in: accounts.iban | out: 
        "#]],
    );
    check_in(
        Grammar::Sqlite,
        &[
            "INSERT OR REPLACE INTO accounts (id, iban) VALUES (?, ?)",
            "SELECT \"iban\", [name] FROM accounts WHERE iban IS ? OR rowid = ?",
            "SELECT id FROM accounts WHERE iban GLOB ? COLLATE NOCASE",
        ],
        expect![[r#"
            INSERT OR REPLACE INTO accounts (id, iban) VALUES (?, ?)
                in: - accounts.iban | out: 
            SELECT "iban", [name] FROM accounts WHERE iban IS ? OR rowid = ?
                1:43 accounts.iban is encrypted, and the server would have to read it in an operation
            SELECT id FROM accounts WHERE iban GLOB ? COLLATE NOCASE
                1:31 accounts.iban is encrypted, and the server would have to read it in an operation
        "#]],
    );
}
