use std::collections::{BTreeMap, BTreeSet};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use tithe_machine::fault::Fault;
use tithe_plugin::{
    checks::statements::judged,
    session::Parameter,
    sql::{Compute, Isolation, STANDARD, Sensitivity},
};

use super::{
    config::{CUSTOMERS, Config, DISTRICTS, ITEMS, ROW_BYTES},
    input::{Customer, Input, Place, TransactionKind},
    population::{Job, Sink, jobs, make},
    random::{C_LAST_LOAD, C_LAST_RUN, Random, last_name},
    statements::Statements,
    tables::{CUSTOMER, DISTRICT, HISTORY, ITEM, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, TABLES, WAREHOUSE},
    values::Parameters,
};

fn config(properties: &[(&str, &str)]) -> Config {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    Config::resolve(&properties.iter().map(owned).collect()).expect("possible properties")
}

/// A data set in memory: each row's values as text, NULL as nothing.
#[derive(Default)]
struct Kept {
    tables: BTreeMap<usize, Vec<Vec<Option<String>>>>,
    list: Parameters,
}

impl Sink for Kept {
    fn row(&mut self, table: usize, fill: &mut dyn FnMut(&mut Parameters)) -> Result<(), Fault> {
        self.list.clear();
        fill(&mut self.list);
        let text = |parameter: &Parameter<'_>| match parameter {
            Parameter::Integer(number) => Some(number.to_string()),
            Parameter::Text(text) | Parameter::Bytes(text) => Some(String::from_utf8_lossy(text).into_owned()),
            Parameter::Null => None,
        };
        let row = self.list.with(|parameters| parameters.iter().map(text).collect());
        self.tables.entry(table).or_default().push(row);
        Ok(())
    }
}

impl Kept {
    fn of(config: &Config, seed: u64) -> Self {
        let mut kept = Self::default();
        for (number, job) in (0..).zip(jobs(config)) {
            make(config, seed, number, job, &mut kept).expect("memory takes every row");
        }
        kept
    }

    fn rows(&self, table: usize) -> &[Vec<Option<String>>] {
        self.tables.get(&table).map_or(&[], Vec::as_slice)
    }

    /// The numbers in the columns called `names`, row by row; NULL is −1.
    fn numbers<const N: usize>(&self, table: usize, names: [&str; N]) -> Vec<[i64; N]> {
        let place = |name| TABLES[table].columns.iter().position(|column| column.name == name).expect("a column");
        let places = names.map(place);
        let number = |value: &Option<String>| value.as_ref().map_or(-1, |text| text.parse().expect("a number"));
        self.rows(table).iter().map(|row| places.map(|place| number(&row[place]))).collect()
    }

    fn texts(&self, table: usize, name: &str) -> Vec<&str> {
        let place = TABLES[table].columns.iter().position(|column| column.name == name).expect("a column");
        self.rows(table).iter().map(|row| row[place].as_deref().unwrap_or_default()).collect()
    }
}

fn small(warehouses: u64, customers: u64, items: u64) -> Config {
    let [warehouses, customers, items] = [warehouses, customers, items].map(|number| number.to_string());
    config(&[("warehouses", &warehouses), ("customers", &customers), ("items", &items)])
}

#[test]
fn rows_are_as_long_on_average_as_is_planned_with() {
    // A twentieth of a warehouse, in the specification's proportions.
    let kept = Kept::of(&small(1, CUSTOMERS / 20, ITEMS / 20), 1);
    let rows: Vec<_> = (0..TABLES.len()).flat_map(|table| kept.rows(table)).collect();
    let bytes: usize = rows.iter().flat_map(|row| row.iter()).flatten().map(String::len).sum();
    let mean = bytes as f64 / rows.len() as f64;
    assert!((mean / ROW_BYTES as f64 - 1.0).abs() < 0.1, "{mean} bytes a row");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_population_has_its_rows_its_keys_and_its_widths(
        seed: u64, warehouses in 1u64..3, customers in 30u64..60, items in 30u64..80,
    ) {
        let config = small(warehouses, customers, items);
        let kept = Kept::of(&config, seed);
        let districts = warehouses * DISTRICTS;
        let count = |table: usize| kept.rows(table).len() as u64;
        prop_assert_eq!(count(WAREHOUSE), warehouses);
        prop_assert_eq!(count(DISTRICT), districts);
        prop_assert_eq!(count(CUSTOMER), districts * customers);
        prop_assert_eq!(count(HISTORY), districts * customers);
        prop_assert_eq!(count(ORDERS), districts * customers);
        prop_assert_eq!(count(NEW_ORDER), districts * (customers * 3 / 10));
        prop_assert_eq!(count(ITEM), items);
        prop_assert_eq!(count(STOCK), warehouses * items);
        let lines: i64 = kept.numbers(ORDERS, ["o_ol_cnt"]).iter().map(|[lines]| lines).sum();
        prop_assert_eq!(count(ORDER_LINE) as i64, lines);
        for (number, table) in TABLES.iter().enumerate() {
            let key: Vec<usize> = table.columns.iter().enumerate()
                .filter(|(_, column)| table.key.contains(&column.name)).map(|(place, _)| place).collect();
            let mut keys = BTreeSet::new();
            for row in kept.rows(number) {
                prop_assert_eq!(row.len(), table.columns.len());
                let own: Vec<_> = key.iter().map(|place| row[*place].clone()).collect();
                prop_assert!(key.is_empty() || keys.insert(own), "a key of {} twice", table.name);
                for (column, value) in table.columns.iter().zip(row) {
                    prop_assert!(value.is_some() || column.nullable, "{}", column.name);
                    if let (tithe_plugin::sql::ColumnType::Text(length), Some(text)) = (column.kind, value) {
                        prop_assert!(text.len() <= length, "{}: {text}", column.name);
                    }
                }
            }
        }
        // Every customer of a district has ordered once, and no line of a waiting order is delivered.
        let ordered: BTreeSet<_> = kept.numbers(ORDERS, ["o_w_id", "o_d_id", "o_c_id"]).into_iter().collect();
        prop_assert_eq!(ordered.len() as u64, districts * customers);
        for [order, delivered, amount] in kept.numbers(ORDER_LINE, ["ol_o_id", "ol_delivery_d", "ol_amount"]) {
            let waits = order as u64 > customers - customers * 3 / 10;
            prop_assert_eq!(waits, delivered < 0);
            prop_assert_eq!(waits, amount > 0);
        }
    }

    #[test]
    fn jobs_make_the_same_rows_in_any_order(seed: u64) {
        let config = small(2, 30, 30);
        let forward = Kept::of(&config, seed);
        let mut backward = Kept::default();
        let numbered: Vec<(u64, Job)> = (0..).zip(jobs(&config)).collect();
        for (number, job) in numbered.into_iter().rev() {
            make(&config, seed, number, job, &mut backward).expect("memory takes every row");
        }
        for table in 0..TABLES.len() {
            let sorted = |kept: &Kept| {
                let mut rows = kept.rows(table).to_vec();
                rows.sort();
                rows
            };
            prop_assert_eq!(sorted(&forward), sorted(&backward));
        }
    }

    #[test]
    fn nurand_stays_within_its_range(seed: u64, a in 1u64..10_000, c in 0u64..10_000, low in 0u64..50, width in 0u64..5000) {
        let mut random = Random::new(seed);
        for _ in 0..50 {
            let drawn = random.nurand(a, c, low, low + width);
            prop_assert!((low..=low + width).contains(&drawn));
        }
    }

    #[test]
    fn inputs_stay_within_the_data(seed: u64, terminal in 0u64..50, warehouses in 1u64..4) {
        let config = small(warehouses, 40, 50);
        let place = Place::of(terminal, &config);
        let mut random = Random::new(seed);
        for _ in 0..100 {
            let input = Input::draw(&config, place, &mut random, 0);
            prop_assert_eq!(input.warehouse, place.warehouse);
            prop_assert!((1..=warehouses).contains(&input.home.0));
            prop_assert!((1..=DISTRICTS).contains(&input.home.1));
            if let Customer::Number(number) = input.customer {
                prop_assert!(number <= config.customers);
            }
            for (number, line) in input.lines.iter().enumerate() {
                let last = number + 1 == input.lines.len();
                prop_assert!(line.item <= config.items + u64::from(last));
                prop_assert!((1..=warehouses).contains(&line.supplier));
            }
            prop_assert!(input.lines.is_sorted_by_key(|line| line.item));
            prop_assert_eq!(input.lines.is_empty(), input.kind != TransactionKind::NewOrder);
        }
    }
}

#[test]
fn names_and_remarks_are_those_of_the_specification() {
    let name = |number| {
        let mut out = Vec::new();
        last_name(number, &mut out);
        String::from_utf8(out).expect("syllables")
    };
    // The specification's own example, clause 4.3.2.3.
    assert_eq!(name(371), "PRICALLYOUGHT");
    assert_eq!([name(0), name(999)], ["BARBARBAR", "EINGEINGEING"]);
    let apart = C_LAST_RUN.abs_diff(C_LAST_LOAD);
    assert!((65..=119).contains(&apart) && apart != 96 && apart != 112);
    let kept = Kept::of(&small(1, 30, 20_000), 3);
    let original = kept.texts(ITEM, "i_data").iter().filter(|data| data.contains("ORIGINAL")).count();
    // A binomial count of 20,000 at 0.1 is within 5 standard deviations of 42.
    assert!(original.abs_diff(2000) < 212, "{original}");
    let bad = kept.texts(CUSTOMER, "c_credit").iter().filter(|credit| **credit == "BC").count();
    assert!(bad.abs_diff(30) < 27, "{bad}");
}

#[test]
fn the_mix_rollbacks_and_remote_warehouses_are_as_asked() {
    let config = small(3, 30, 1000);
    let mut random = Random::new(11);
    let mut kinds = [0u32; 5];
    let (mut rollbacks, mut remote_payments, mut by_name, mut lines, mut remote_lines) = (0, 0, 0, 0, 0);
    for _ in 0..40_000 {
        let input = Input::draw(&config, Place::of(1, &config), &mut random, 0);
        kinds[input.kind as usize] += 1;
        rollbacks += u32::from(input.lines.last().is_some_and(|line| line.item > config.items));
        remote_payments += u32::from(input.kind == TransactionKind::Payment && input.home.0 != input.warehouse);
        by_name += u32::from(matches!(input.customer, Customer::LastName(_)));
        lines += input.lines.len();
        remote_lines += input.lines.iter().filter(|line| line.supplier != input.warehouse).count();
    }
    let near = |count: u32, of: u32, share: f64| {
        let (count, of) = (f64::from(count), f64::from(of));
        let deviation = (of * share * (1.0 - share)).sqrt();
        assert!((count - of * share).abs() < 5.0 * deviation, "{count} of {of}, and {share} was asked");
    };
    for (count, share) in kinds.into_iter().zip([0.45, 0.43, 0.04, 0.04, 0.04]) {
        near(count, 40_000, share);
    }
    near(rollbacks, kinds[0], 0.01);
    near(remote_payments, kinds[1], 0.15);
    near(by_name, kinds[1] + kinds[2], 0.6);
    near(remote_lines as u32, lines as u32, 0.01);
}

#[test]
fn columns_fall_into_three_sets() {
    let all = || TABLES.iter().flat_map(|table| table.columns);
    let up_to = |most: Sensitivity| all().filter(|column| column.holds <= most).count();
    let shares = [Sensitivity::Identifier, Sensitivity::Figure, Sensitivity::Remark].map(up_to);
    assert_eq!(shares, [30, 53, 92]);
    let compared = all().filter(|column| column.domain.is_some()).count();
    assert_eq!(compared, 22);
}

fn check(compute: Compute, expect: Expect) {
    expect.assert_eq(&Statements::new(compute, Isolation::RepeatableRead, &STANDARD).to_string());
}

#[test]
fn the_ordinary_statements() {
    check(
        Compute::Server,
        expect![[r#"
            BEGIN
            COMMIT
            ROLLBACK
            SELECT w_tax FROM warehouse WHERE w_id = ?
            SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE
            UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?
            SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)
            SELECT i_price, i_name, i_data FROM item WHERE i_id = ?
            UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?
            INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?
            SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?
            UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?
            SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND d_id = ?
            SELECT c_id, c_first FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first
            SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE
            SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE
            UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            UPDATE customer SET c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1
            SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?
            SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE
            SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?
            DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?
            SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?
            UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?
            UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?
            SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?
            SELECT c_balance, c_delivery_cnt FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE
            UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?
            SELECT s_quantity, s_data, s_dist_01 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_02 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_03 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_04 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_05 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_06 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_07 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_08 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_09 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_10 FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
        "#]],
    );
}

#[test]
fn the_statements_of_clients_that_compute() {
    check(
        Compute::Client,
        expect![[r#"
            BEGIN
            COMMIT
            ROLLBACK
            SELECT w_tax FROM warehouse WHERE w_id = ?
            SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE
            UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?
            SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)
            SELECT i_price, i_name, i_data FROM item WHERE i_id = ?
            UPDATE stock SET s_quantity = ?, s_ytd = ?, s_order_cnt = ?, s_remote_cnt = ? WHERE s_w_id = ? AND s_i_id = ?
            INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            UPDATE warehouse SET w_ytd = ? WHERE w_id = ?
            SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_ytd FROM warehouse WHERE w_id = ? FOR UPDATE
            UPDATE district SET d_ytd = ? WHERE d_w_id = ? AND d_id = ?
            SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_ytd FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE
            SELECT c_id, c_first FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ?
            SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE
            SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE
            UPDATE customer SET c_balance = ?, c_ytd_payment = ?, c_payment_cnt = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            UPDATE customer SET c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?
            SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?
            SELECT count(*) FROM new_order WHERE no_w_id = ? AND no_d_id = ?
            SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?
            DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?
            SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?
            UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?
            UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?
            SELECT ol_amount FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?
            SELECT c_balance, c_delivery_cnt FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE
            UPDATE customer SET c_balance = ?, c_delivery_cnt = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?
            SELECT s_i_id, s_quantity FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) AND s_w_id = ? AND s_i_id = ol_i_id
            SELECT s_quantity, s_data, s_dist_01, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_02, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_03, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_04, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_05, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_06, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_07, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_08, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_09, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
            SELECT s_quantity, s_data, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE
        "#]],
    );
}

#[test]
fn the_two_forms_of_statements_are_told_apart_by_their_texts() {
    let told = |compute| {
        let all = Statements::new(compute, Isolation::RepeatableRead, &STANDARD).to_string();
        format!("{:?}", judged(&all.lines().map(str::to_owned).collect::<Vec<_>>()))
    };
    expect![[r#"Exposed("none of 45 statements of 100 transactions computes in the server")"#]]
        .assert_eq(&told(Compute::Client));
    assert!(told(Compute::Server).starts_with("Protected"), "{}", told(Compute::Server));
}
