//! The twelve consistency conditions, specification 5.11, clauses 3.3.2.1 to 3.3.2.12.
//!
//! They are computed in the client from whole tables, so that the same code checks a plain and an encrypted arm, the
//! latter on decrypted values.

use std::collections::{BTreeMap, HashMap};

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::{Rows, SqlSession},
    sql::describe,
};

use super::{
    config::{Config, DISTRICTS},
    tables::TABLES,
    values::number,
};

/// Warehouse and district.
type Place = (i64, i64);
/// Warehouse, district, and customer or order.
type Thing = (i64, i64, i64);

/// The data of the conditions, summed up table by table.
#[derive(Default)]
struct Totals {
    /// Year-to-date payments of each warehouse.
    warehouses: BTreeMap<i64, i64>,
    districts: BTreeMap<Place, District>,
    customers: HashMap<Thing, Customer>,
    orders: HashMap<Thing, Order>,
    /// Payments in the history, by the warehouse and the district that took them.
    taken: BTreeMap<Place, i64>,
    items: i64,
    stock: i64,
    /// Rows of new_order without an order, of order_line without one, of history without a customer, and similar ones.
    orphans: u64,
}

#[derive(Default)]
struct District {
    ytd: i64,
    next_order: i64,
    orders: i64,
    newest: i64,
    lines_said: i64,
    lines: i64,
    new_orders: i64,
    new_least: Option<i64>,
    new_greatest: Option<i64>,
}

#[derive(Default)]
struct Customer {
    balance: i64,
    ytd_payment: i64,
    paid: i64,
    delivered: i64,
}

#[derive(Default)]
struct Order {
    customer: i64,
    carried: bool,
    is_new: bool,
    lines_said: i64,
    lines: i64,
    lines_delivered: i64,
    amount: i64,
}

/// Passes on every row as numbers.
struct Numbers<F> {
    row: Vec<Option<i64>>,
    width: usize,
    each: F,
    fault: Option<Fault>,
}

impl<F: FnMut(&[Option<i64>])> Rows for Numbers<F> {
    fn row(&mut self, _key: Option<&[u8]>) {
        self.row.clear();
    }

    fn field(&mut self, _field: usize, value: Option<&[u8]>) {
        match value.map(number).transpose() {
            Ok(value) => self.row.push(value),
            Err(fault) => {
                self.fault.get_or_insert(fault);
            }
        }
        if self.row.len() == self.width {
            (self.each)(&self.row);
        }
    }
}

/// Reads all rows of `sql`, which must return numbers in `N` columns; NULL counts as −1.
fn scan<const N: usize>(session: &mut dyn SqlSession, sql: &str, mut each: impl FnMut([i64; N])) -> Result<(), Fault> {
    let statement = session.prepare_described(&describe(sql, &TABLES, session.dialect()))?;
    let each = |row: &[Option<i64>]| each(std::array::from_fn(|column| row[column].unwrap_or(-1)));
    let mut numbers = Numbers { row: Vec::new(), width: N, each, fault: None };
    session.call(statement, &[], &mut numbers)?;
    numbers.fault.map_or(Ok(()), Err)
}

impl Totals {
    fn read(session: &mut dyn SqlSession) -> Result<Self, Fault> {
        let mut totals = Self::default();
        let Self { warehouses, districts, customers, orders, taken, items, stock, orphans } = &mut totals;
        scan(session, "SELECT count(*) FROM item", |[count]| *items = count)?;
        scan(session, "SELECT count(*) FROM stock", |[count]| *stock = count)?;
        scan(session, "SELECT w_id, w_ytd FROM warehouse", |[warehouse, ytd]| {
            warehouses.insert(warehouse, ytd);
        })?;
        scan(session, "SELECT d_w_id, d_id, d_ytd, d_next_o_id FROM district", |[w, d, ytd, next_order]| {
            districts.insert((w, d), District { ytd, next_order, ..District::default() });
        })?;
        let sql = "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment FROM customer";
        scan(session, sql, |[w, d, c, balance, ytd_payment]| {
            customers.insert((w, d, c), Customer { balance, ytd_payment, ..Customer::default() });
        })?;
        let sql = "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount FROM history";
        scan(session, sql, |[w, d, home, home_district, c, amount]| {
            *taken.entry((w, d)).or_default() += amount;
            match customers.get_mut(&(home, home_district, c)) {
                Some(customer) => customer.paid += amount,
                None => *orphans += 1,
            }
        })?;
        let sql = "SELECT o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt FROM orders";
        scan(session, sql, |[w, d, o, customer, carrier, lines_said]| {
            orders.insert((w, d, o), Order { customer, carried: carrier >= 0, lines_said, ..Order::default() });
            let Some(district) = districts.get_mut(&(w, d)) else { return *orphans += 1 };
            district.orders += 1;
            district.lines_said += lines_said;
            district.newest = district.newest.max(o);
        })?;
        scan(session, "SELECT no_w_id, no_d_id, no_o_id FROM new_order", |[w, d, o]| {
            match orders.get_mut(&(w, d, o)) {
                Some(order) => order.is_new = true,
                None => *orphans += 1,
            }
            let Some(district) = districts.get_mut(&(w, d)) else { return *orphans += 1 };
            district.new_orders += 1;
            district.new_least = Some(district.new_least.map_or(o, |least| least.min(o)));
            district.new_greatest = district.new_greatest.max(Some(o));
        })?;
        let sql = "SELECT ol_w_id, ol_d_id, ol_o_id, ol_delivery_d, ol_amount FROM order_line";
        scan(session, sql, |[w, d, o, delivered, amount]| {
            let (Some(order), Some(district)) = (orders.get_mut(&(w, d, o)), districts.get_mut(&(w, d))) else {
                return *orphans += 1;
            };
            district.lines += 1;
            order.lines += 1;
            if delivered < 0 {
                return;
            }
            order.lines_delivered += 1;
            order.amount += amount;
            match customers.get_mut(&(w, d, order.customer)) {
                Some(customer) => customer.delivered += amount,
                None => *orphans += 1,
            }
        })?;
        Ok(totals)
    }

    /// Counts the violations of each condition; the index is the condition's number, from 1.
    fn broken(&self, config: &Config, fresh: bool) -> [u64; 13] {
        // Index 0 counts orphaned rows, and an impossible number of districts or customers.
        let mut broken = [0; 13];
        let mut count = |condition: usize, holds: bool| broken[condition] += u64::from(!holds);
        let districts = config.warehouses * DISTRICTS;
        count(0, self.orphans == 0 && self.warehouses.len() as u64 == config.warehouses);
        count(0, self.districts.len() as u64 == districts);
        count(0, self.customers.len() as u64 == districts * config.customers);
        count(0, self.items as u64 == config.items);
        count(0, self.stock as u64 == config.warehouses * config.items);
        for (warehouse, ytd) in &self.warehouses {
            let places = (*warehouse, i64::MIN)..=(*warehouse, i64::MAX);
            count(1, *ytd == self.districts.range(places.clone()).map(|(_, district)| district.ytd).sum::<i64>());
            count(8, *ytd == self.taken.range(places).map(|(_, taken)| taken).sum::<i64>());
        }
        for (place, district) in &self.districts {
            let newest = district.next_order - 1;
            count(2, newest == district.newest && district.new_greatest.is_none_or(|greatest| greatest == newest));
            let span = district.new_greatest.zip(district.new_least).map_or(0, |(most, least)| most - least + 1);
            count(3, span == district.new_orders);
            count(4, district.lines_said == district.lines);
            count(9, Some(&district.ytd) == self.taken.get(place));
            let delivered = (config.customers - config.new_orders()) as i64;
            count(11, !fresh || district.orders - district.new_orders == delivered);
        }
        for order in self.orders.values() {
            count(5, order.carried != order.is_new);
            count(6, order.lines_said == order.lines);
            count(7, order.lines_delivered == if order.carried { order.lines } else { 0 });
        }
        for customer in self.customers.values() {
            count(10, customer.balance == customer.delivered - customer.paid);
            count(12, customer.balance + customer.ytd_payment == customer.delivered);
        }
        broken
    }
}

/// Checks all twelve conditions, number 11 only on `fresh` data; returns those that hold.
///
/// # Errors
/// [`Fault::Wrong`] with every condition that does not hold; the session's fault.
pub fn check(session: &mut dyn SqlSession, config: &Config, fresh: bool) -> Result<String, Fault> {
    let totals = Totals::read(session)?;
    let broken = totals.broken(config, fresh);
    let told = |(condition, cases): (usize, &u64)| match condition {
        0 => format!("rows that belong together are not all there ({cases} cases), as when loading did not end"),
        _ => format!("condition {condition} does not hold in {cases} cases"),
    };
    let problems: Vec<String> = broken.iter().enumerate().filter(|(_, cases)| **cases > 0).map(told).collect();
    if !problems.is_empty() {
        return Err(Fault::Wrong(format!("TPC-C consistency: {}", problems.join("; "))));
    }
    let conditions = if fresh { "1 to 12" } else { "1 to 10 and 12" };
    let (orders, lines) = (totals.orders.len(), totals.orders.values().map(|order| order.lines).sum::<i64>());
    Ok(format!("consistency conditions {conditions} hold over {orders} orders with {lines} lines"))
}
