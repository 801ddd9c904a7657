//! The five transactions, specification 5.11, clauses 2.4 to 2.8, and how one is run to its end.
//!
//! Delivery is done at once, within its terminal, all ten districts in one transaction (clause 2.7 also allows a
//! queue).

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::Parameter,
    sql::{Compute, Dialect},
};

use super::{
    channel::StatementChannel,
    config::DISTRICTS,
    input::{Customer, Input, Line, TransactionKind},
    statements::{Named, Query, RECENT},
};

/// How often a transaction is retried before it counts as failed.
const TIMEOUT: u32 = 1000;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// It requested an item that does not exist, and was rolled back as required.
    pub rolled_back: bool,
    /// The result on the terminal: an amount in cents, a count.
    pub shown: i64,
}

/// Why a transaction does not commit.
enum Stop {
    /// The specification requires a rollback.
    RollBack,
    /// It conflicts with another one.
    Conflict,
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// What a transaction needs besides its input.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Where to compute with values.
    pub compute: Compute,
    /// Statements that begin a transaction.
    pub begins: usize,
    /// The session's dialect.
    pub dialect: &'static Dialect,
}

/// Runs the transaction of `input` to its end, and retries it after conflicts.
///
/// # Errors
/// The session's fault; [`Fault::Wrong`] if an answer is impossible.
pub async fn carry_out(mut channel: StatementChannel, input: Input, rules: Rules) -> Result<Outcome, Fault> {
    for _ in 0..TIMEOUT {
        let stop = match attempt(&mut channel, &input, rules).await {
            Ok(shown) => return Ok(Outcome { rolled_back: false, shown }),
            Err(stop) => stop,
        };
        // After some errors the transaction no longer exists, and the server reports that: no reason to fail.
        match channel.run(Query::Rollback, &[]).await {
            Ok(_) | Err(Fault::Server(_)) => {}
            Err(fault) => return Err(fault),
        }
        match stop {
            Stop::RollBack => return Ok(Outcome { rolled_back: true, shown: 0 }),
            Stop::Conflict => channel.retry(),
            Stop::Fault(Fault::Server(text)) if (rules.dialect.is_conflict)(&text) => channel.retry(),
            Stop::Fault(fault) => return Err(fault),
        }
    }
    Err(Fault::Server(format!("conflicts with other transactions ended it {TIMEOUT} times")))
}

async fn attempt(channel: &mut StatementChannel, input: &Input, rules: Rules) -> Result<i64, Stop> {
    for number in 0..rules.begins {
        channel.run(Query::Begin(number), &[]).await?;
    }
    let in_client = rules.compute == Compute::Client;
    let shown = match input.kind {
        TransactionKind::NewOrder => new_order(channel, input, in_client).await?,
        TransactionKind::Payment => payment(channel, input, in_client).await?,
        TransactionKind::OrderStatus => order_status(channel, input, in_client).await?,
        TransactionKind::Delivery => delivery(channel, input, in_client).await?,
        TransactionKind::StockLevel => stock_level(channel, input, in_client).await?,
    };
    channel.run(Query::Commit, &[]).await?;
    Ok(shown)
}

/// A parameter of an identifier or a count; all are far below 2⁶³.
fn n(number: u64) -> Parameter<'static> {
    Parameter::Integer(number as i64)
}

fn i(number: i64) -> Parameter<'static> {
    Parameter::Integer(number)
}

/// Rates are whole ten-thousandths.
const WHOLE: i64 = 10_000;

async fn new_order(channel: &mut StatementChannel, input: &Input, in_client: bool) -> Result<i64, Stop> {
    let (warehouse, district) = (n(input.warehouse), n(input.district));
    let Customer::Number(customer) = input.customer else {
        return Err(Fault::Wrong("an order is placed by a customer's number".to_owned()).into());
    };
    channel.one(Query::Named(Named::WarehouseTax), &[warehouse]).await?;
    let warehouse_tax = channel.answer.integer(0, 0)?;
    channel.one(Query::Named(Named::DistrictOrder), &[warehouse, district]).await?;
    let (district_tax, order) = (channel.answer.integer(0, 0)?, channel.answer.integer(0, 1)?);
    if in_client {
        channel.change(Named::NextOrder, &[i(order + 1), warehouse, district]).await?;
    } else {
        channel.change(Named::NextOrder, &[warehouse, district]).await?;
    }
    channel.one(Query::Named(Named::CustomerDiscount), &[warehouse, district, n(customer)]).await?;
    let discount = channel.answer.integer(0, 0)?;
    let all_local = input.lines.iter().all(|line| line.supplier == input.warehouse);
    let lines = input.lines.len() as i64;
    let row =
        [i(order), district, warehouse, n(customer), i(input.now_us), Parameter::Null, i(lines), i(all_local.into())];
    channel.change(Named::AddOrder, &row).await?;
    channel.change(Named::AddNewOrder, &[i(order), district, warehouse]).await?;
    let mut total = 0;
    for (number, line) in (1..).zip(&input.lines) {
        total += order_line(channel, input, order, number, line, in_client).await?;
    }
    let factor = (WHOLE - discount) * (WHOLE + warehouse_tax + district_tax);
    Ok((i128::from(total) * i128::from(factor) / i128::from(WHOLE * WHOLE)) as i64)
}

/// Takes one line from the stock; returns its amount, cents.
async fn order_line(
    channel: &mut StatementChannel,
    input: &Input,
    order: i64,
    number: i64,
    line: &Line,
    in_client: bool,
) -> Result<i64, Stop> {
    if channel.run(Query::Named(Named::Item), &[n(line.item)]).await? == 0 {
        return Err(Stop::RollBack);
    }
    let price = channel.answer.integer(0, 0)?;
    let place = [n(line.supplier), n(line.item)];
    channel.one(Query::Stock(input.district as usize), &place).await?;
    let wanted = line.quantity as i64;
    let left = channel.answer.integer(0, 0)? - wanted;
    let left = if left >= 10 { left } else { left + 91 };
    let remote = i64::from(line.supplier != input.warehouse);
    let counts = if in_client {
        let answer = &channel.answer;
        [answer.integer(0, 3)? + wanted, answer.integer(0, 4)? + 1, answer.integer(0, 5)? + remote]
    } else {
        [wanted, 1, remote]
    };
    let printed = channel.answer.text(0, 2)?.to_vec();
    if in_client {
        let [ytd, orders, remotes] = counts;
        channel.change(Named::TakeStock, &[i(left), i(ytd), i(orders), i(remotes), place[0], place[1]]).await?;
    } else {
        channel.change(Named::TakeStock, &[i(left), i(wanted), i(remote), place[0], place[1]]).await?;
    }
    let amount = price * wanted;
    let row = [
        i(order),
        n(input.district),
        n(input.warehouse),
        i(number),
        n(line.item),
        n(line.supplier),
        Parameter::Null,
        i(wanted),
        i(amount),
        Parameter::Text(&printed),
    ];
    channel.change(Named::AddLine, &row).await?;
    Ok(amount)
}

/// The number of the customer of `input`, looked up if a name is given.
async fn customer_number(channel: &mut StatementChannel, input: &Input) -> Result<u64, Stop> {
    let name = match &input.customer {
        Customer::Number(number) => return Ok(*number),
        Customer::LastName(name) => name,
    };
    let (warehouse, district) = input.home;
    let parameters = [n(warehouse), n(district), Parameter::Text(name)];
    channel.run(Query::Named(Named::CustomersByName), &parameters).await?;
    let answer = &channel.answer;
    let mut found = Vec::with_capacity(answer.rows());
    for row in 0..answer.rows() {
        found.push((answer.text(row, 1)?, answer.integer(row, 0)?));
    }
    // The server's order is the same, unless its collation differs; then its middle is another customer.
    found.sort();
    match found.get(found.len().saturating_sub(1) / 2) {
        Some((_, number)) => Ok(*number as u64),
        None => Err(Fault::Wrong(format!("no customer is called {}", name.escape_ascii())).into()),
    }
}

/// The note about a payment: clause 2.5.2.2 requires these numbers before the old text, cut to 500 bytes.
fn note(input: &Input, customer: u64, before: &[u8]) -> Vec<u8> {
    let (warehouse, district) = input.home;
    let Input { warehouse: paid_at, district: paid_in, amount, .. } = input;
    let mut note = format!("{customer} {district} {warehouse} {paid_in} {paid_at} {amount} | ").into_bytes();
    note.extend_from_slice(before);
    note.truncate(500);
    note
}

async fn payment(channel: &mut StatementChannel, input: &Input, in_client: bool) -> Result<i64, Stop> {
    let (warehouse, district, amount) = (n(input.warehouse), n(input.district), input.amount);
    if !in_client {
        channel.change(Named::PayWarehouse, &[i(amount), warehouse]).await?;
    }
    channel.one(Query::Named(Named::ShowWarehouse), &[warehouse]).await?;
    let mut data = channel.answer.text(0, 0)?.to_vec();
    if in_client {
        let ytd = channel.answer.integer(0, 6)?;
        channel.change(Named::PayWarehouse, &[i(ytd + amount), warehouse]).await?;
    } else {
        channel.change(Named::PayDistrict, &[i(amount), warehouse, district]).await?;
    }
    channel.one(Query::Named(Named::ShowDistrict), &[warehouse, district]).await?;
    data.extend_from_slice(b"    ");
    data.extend_from_slice(channel.answer.text(0, 0)?);
    if in_client {
        let ytd = channel.answer.integer(0, 6)?;
        channel.change(Named::PayDistrict, &[i(ytd + amount), warehouse, district]).await?;
    }
    let customer = customer_number(channel, input).await?;
    let who = [n(input.home.0), n(input.home.1), n(customer)];
    channel.one(Query::Named(Named::PayingCustomer), &who).await?;
    let bad_credit = channel.answer.text(0, 10)? == b"BC";
    let answer = &channel.answer;
    let (balance, paid, payments) = (answer.integer(0, 13)?, answer.integer(0, 14)?, answer.integer(0, 15)?);
    if in_client {
        let values = [i(balance - amount), i(paid + amount), i(payments + 1)];
        channel.change(Named::PayCustomer, &[values.as_slice(), &who].concat()).await?;
    } else {
        channel.change(Named::PayCustomer, &[[i(amount), i(amount)].as_slice(), &who].concat()).await?;
    }
    if bad_credit {
        channel.one(Query::Named(Named::CustomerData), &who).await?;
        let note = note(input, customer, channel.answer.text(0, 0)?);
        channel.change(Named::NoteCustomer, &[[Parameter::Text(&note)].as_slice(), &who].concat()).await?;
    }
    let row = [who[2], who[1], who[0], district, warehouse, i(input.now_us), i(amount), Parameter::Text(&data)];
    channel.change(Named::AddHistory, &row).await?;
    Ok(balance - amount)
}

async fn order_status(channel: &mut StatementChannel, input: &Input, in_client: bool) -> Result<i64, Stop> {
    let customer = customer_number(channel, input).await?;
    let who = [n(input.home.0), n(input.home.1), n(customer)];
    channel.one(Query::Named(Named::AskingCustomer), &who).await?;
    let balance = channel.answer.integer(0, 0)?;
    let orders = channel.run(Query::Named(Named::LastOrder), &who).await? as usize;
    // The server's form returns one row, so the newest is the first.
    let mut newest = None;
    for row in 0..if in_client { orders } else { orders.min(1) } {
        newest = newest.max(Some(channel.answer.integer(row, 0)?));
    }
    // Every customer has ordered once when loaded, so there is one.
    let Some(order) = newest else {
        return Err(Fault::Wrong(format!("customer {customer} has no order")).into());
    };
    if channel.run(Query::Named(Named::Lines), &[who[0], who[1], i(order)]).await? < 5 {
        return Err(Fault::Wrong(format!("order {order} has fewer than 5 lines")).into());
    }
    Ok(balance)
}

async fn delivery(channel: &mut StatementChannel, input: &Input, in_client: bool) -> Result<i64, Stop> {
    let mut delivered = 0;
    for district in 1..=DISTRICTS {
        let place = [n(input.warehouse), n(district)];
        let Some(order) = oldest(channel, place, in_client).await? else { continue };
        let which = [place[0], place[1], i(order)];
        // With late locking, another terminal may have delivered it.
        if channel.run(Query::Named(Named::TakeNewOrder), &which).await? == 0 {
            return Err(Stop::Conflict);
        }
        // Before reading the order: a transaction sees its own changes, whatever its snapshot contains.
        channel.change(Named::SetCarrier, &[[n(input.carrier)].as_slice(), &which].concat()).await?;
        channel.one(Query::Named(Named::OrderCustomer), &which).await?;
        let who = [place[0], place[1], i(channel.answer.integer(0, 0)?)];
        let dated = [[i(input.now_us)].as_slice(), &which].concat();
        channel.run(Query::Named(Named::SetDelivered), &dated).await?;
        channel.run(Query::Named(Named::OrderAmount), &which).await?;
        let mut amount = 0;
        for row in 0..channel.answer.rows() {
            amount += channel.answer.integer(row, 0)?;
        }
        if in_client {
            channel.one(Query::Named(Named::DeliveredCustomer), &who).await?;
            let (balance, deliveries) = (channel.answer.integer(0, 0)?, channel.answer.integer(0, 1)?);
            let values = [i(balance + amount), i(deliveries + 1)];
            channel.change(Named::BookDelivery, &[values.as_slice(), &who].concat()).await?;
        } else {
            channel.change(Named::BookDelivery, &[[i(amount)].as_slice(), &who].concat()).await?;
        }
        delivered += 1;
    }
    Ok(delivered)
}

/// The oldest order of the district at `place` that is not delivered.
async fn oldest(
    channel: &mut StatementChannel,
    place: [Parameter<'_>; 2],
    in_client: bool,
) -> Result<Option<i64>, Stop> {
    if !in_client {
        let found = channel.run(Query::Named(Named::OldestNewOrder), &place).await?;
        return Ok(if found == 0 { None } else { Some(channel.answer.integer(0, 0)?) });
    }
    channel.one(Query::Named(Named::OldestNewOrder), &place).await?;
    let waiting = channel.answer.integer(0, 0)?;
    if waiting == 0 {
        return Ok(None);
    }
    channel.one(Query::Named(Named::NextNumber), &place).await?;
    Ok(Some(channel.answer.integer(0, 0)? - waiting))
}

async fn stock_level(channel: &mut StatementChannel, input: &Input, in_client: bool) -> Result<i64, Stop> {
    let (warehouse, district) = (n(input.warehouse), n(input.district));
    channel.one(Query::Named(Named::NextNumber), &[warehouse, district]).await?;
    let next = channel.answer.integer(0, 0)?;
    let threshold = input.threshold as i64;
    let first = next - RECENT as i64;
    if !in_client {
        let parameters = [warehouse, district, i(next), i(first), warehouse, i(threshold)];
        channel.one(Query::Named(Named::Stocks), &parameters).await?;
        return Ok(channel.answer.integer(0, 0)?);
    }
    let orders: Vec<Parameter<'_>> = (first..next).map(i).collect();
    let parameters = [[warehouse, district].as_slice(), &orders, &[warehouse]].concat();
    channel.run(Query::Named(Named::Stocks), &parameters).await?;
    let mut short = std::collections::BTreeSet::new();
    for row in 0..channel.answer.rows() {
        if channel.answer.integer(row, 1)? < threshold {
            short.insert(channel.answer.integer(row, 0)?);
        }
    }
    Ok(short.len() as i64)
}
