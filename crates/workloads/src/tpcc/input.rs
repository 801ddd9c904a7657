//! The input of a terminal's user for each transaction, specification 5.11, clauses 2.4.1 to 2.8.1.

use super::{
    config::{Config, DISTRICTS},
    random::{C_LAST_RUN, Random, last_name},
};

/// The transactions, in the order of the mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionKind {
    /// A customer orders.
    NewOrder,
    /// A customer pays.
    Payment,
    /// A customer queries the last order.
    OrderStatus,
    /// The oldest order of each district is delivered.
    Delivery,
    /// The number of items of the last orders that are low in stock.
    StockLevel,
}

impl TransactionKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];
}

/// How a customer is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Customer {
    /// By number.
    Number(u64),
    /// By last name: of those in order of first name, the one in the middle.
    LastName(Vec<u8>),
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Item; one beyond the last if the order must be rolled back.
    pub item: u64,
    /// The warehouse that supplies it.
    pub supplier: u64,
    /// The quantity.
    pub quantity: u64,
}

/// The place of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its warehouse, from 1.
    pub warehouse: u64,
    /// The district of its Stock-Level, from 1.
    pub district: u64,
}

impl Place {
    /// The place of terminal `number`, from 0: warehouses in turn, then districts in turn.
    pub fn of(number: u64, config: &Config) -> Self {
        Self { warehouse: number % config.warehouses + 1, district: number / config.warehouses % DISTRICTS + 1 }
    }
}

/// The input of one transaction. Fields that a kind does not use are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The transaction.
    pub kind: TransactionKind,
    /// The terminal's warehouse.
    pub warehouse: u64,
    /// The district.
    pub district: u64,
    /// The customer's warehouse and district: for Payment these may be others.
    pub home: (u64, u64),
    /// The customer.
    pub customer: Customer,
    /// The lines of an order, in the order of their items, so that transactions lock stock in one order.
    pub lines: Vec<Line>,
    /// The payment, cents.
    pub amount: i64,
    /// The carrier.
    pub carrier: u64,
    /// Stock below this is low.
    pub threshold: u64,
    /// The time, microseconds since 1970.
    pub now_us: i64,
}

impl Input {
    /// The next input at `place`.
    pub fn draw(config: &Config, place: Place, random: &mut Random, now_us: i64) -> Self {
        let kind = kind(config, random);
        let district = match kind {
            TransactionKind::StockLevel => place.district,
            _ => random.uniform(1, DISTRICTS),
        };
        let mut input = Self {
            kind,
            warehouse: place.warehouse,
            district,
            home: (place.warehouse, district),
            customer: Customer::Number(0),
            lines: Vec::new(),
            amount: 0,
            carrier: random.uniform(1, 10),
            threshold: random.uniform(10, 20),
            now_us,
        };
        match kind {
            TransactionKind::NewOrder => {
                input.customer = Customer::Number(random.customer(config.customers));
                input.lines = lines(config, place.warehouse, random);
            }
            TransactionKind::Payment => {
                if config.warehouses > 1 && random.chance(15) {
                    input.home = (other(config, place.warehouse, random), random.uniform(1, DISTRICTS));
                }
                input.customer = customer(config, random);
                input.amount = random.uniform(100, 500_000) as i64;
            }
            TransactionKind::OrderStatus => input.customer = customer(config, random),
            TransactionKind::Delivery | TransactionKind::StockLevel => {}
        }
        input
    }
}

fn kind(config: &Config, random: &mut Random) -> TransactionKind {
    let sum = config.mix.iter().map(|weight| u64::from(*weight)).sum();
    let mut drawn = random.uniform(1, sum);
    for (kind, weight) in TransactionKind::ALL.into_iter().zip(config.mix) {
        if drawn <= u64::from(weight) {
            return kind;
        }
        drawn -= u64::from(weight);
    }
    TransactionKind::NewOrder
}

fn customer(config: &Config, random: &mut Random) -> Customer {
    if random.chance(60) {
        let mut name = Vec::with_capacity(16);
        last_name(random.last_name(C_LAST_RUN, config.customers), &mut name);
        Customer::LastName(name)
    } else {
        Customer::Number(random.customer(config.customers))
    }
}

/// A warehouse other than `own`.
fn other(config: &Config, own: u64, random: &mut Random) -> u64 {
    let drawn = random.uniform(1, config.warehouses - 1);
    if drawn < own { drawn } else { drawn + 1 }
}

fn lines(config: &Config, warehouse: u64, random: &mut Random) -> Vec<Line> {
    let count = random.uniform(5, 15);
    let mut lines: Vec<Line> = (0..count)
        .map(|_| {
            let item = random.item(config.items);
            let remote = config.warehouses > 1 && random.chance(1);
            let supplier = if remote { other(config, warehouse, random) } else { warehouse };
            Line { item, supplier, quantity: random.uniform(1, 10) }
        })
        .collect();
    lines.sort_by_key(|line| (line.item, line.supplier));
    // Clause 2.4.1.5: of the last item entered, one in a hundred does not exist.
    if random.chance(1)
        && let Some(last) = lines.last_mut()
    {
        last.item = config.items + 1;
    }
    lines
}
