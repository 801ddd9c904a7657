//! The statements of the five transactions, in two forms: computing in the server, and computing in the client.

use std::fmt;

use tithe_machine::fault::Fault;
use tithe_plugin::{
    session::{SqlSession, Statement},
    sql::{Compute, Described, Dialect, Isolation, describe, insert},
};

use super::tables::{HISTORY, NEW_ORDER, ORDER_LINE, ORDERS, TABLES};

/// A statement of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A statement that begins a transaction, by number: some products need two.
    Begin(usize),
    /// Ends a successful transaction.
    Commit,
    /// Ends one that must be rolled back.
    Rollback,
    /// One of [`Named`].
    Named(Named),
    /// Stock of an item, with the text that this district (from 1) prints on the order.
    Stock(usize),
}

/// Names and texts of statements: `Name: server, client;` or, if both forms are equal, `Name: text;`.
macro_rules! statements {
    ($($(#[$about:meta])* $name:ident: $server:expr $(, $client:expr)?;)*) => {
        /// A statement with a name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Named { $($(#[$about])* $name,)* }

        impl Named {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            fn template(self, compute: Compute) -> String {
                match (self, compute) {
                    $($((Self::$name, Compute::Client) => String::from($client),)? (Self::$name, _) => String::from($server),)*
                }
            }
        }
    };
}

statements! {
    /// Tax of the warehouse.
    WarehouseTax: "SELECT w_tax FROM warehouse WHERE w_id = ?w_id";
    /// Tax and next order number of the district.
    DistrictOrder: "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ?d_w_id AND d_id = ?d_id{lock}";
    /// Takes the order number.
    NextOrder: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ?d_w_id AND d_id = ?d_id",
        "UPDATE district SET d_next_o_id = ?d_next_o_id WHERE d_w_id = ?d_w_id AND d_id = ?d_id";
    /// The customer's discount.
    CustomerDiscount: "SELECT c_discount, c_last, c_credit FROM customer \
        WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id";
    /// Adds the order.
    AddOrder: insert(&TABLES[ORDERS], 1);
    /// Adds it to the orders to be delivered.
    AddNewOrder: insert(&TABLES[NEW_ORDER], 1);
    /// An item.
    Item: "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?i_id";
    /// Takes from the stock.
    TakeStock: "UPDATE stock SET s_quantity = ?s_quantity, s_ytd = s_ytd + ?s_ytd, s_order_cnt = s_order_cnt + 1, \
        s_remote_cnt = s_remote_cnt + ?s_remote_cnt WHERE s_w_id = ?s_w_id AND s_i_id = ?s_i_id",
        "UPDATE stock SET s_quantity = ?s_quantity, s_ytd = ?s_ytd, s_order_cnt = ?s_order_cnt, \
        s_remote_cnt = ?s_remote_cnt WHERE s_w_id = ?s_w_id AND s_i_id = ?s_i_id";
    /// Adds a line of an order.
    AddLine: insert(&TABLES[ORDER_LINE], 1);

    /// Adds a payment to the warehouse.
    PayWarehouse: "UPDATE warehouse SET w_ytd = w_ytd + ?w_ytd WHERE w_id = ?w_id",
        "UPDATE warehouse SET w_ytd = ?w_ytd WHERE w_id = ?w_id";
    /// The warehouse as a receipt prints it.
    ShowWarehouse: "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?w_id",
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_ytd FROM warehouse WHERE w_id = ?w_id{lock}";
    /// Adds a payment to the district.
    PayDistrict: "UPDATE district SET d_ytd = d_ytd + ?d_ytd WHERE d_w_id = ?d_w_id AND d_id = ?d_id",
        "UPDATE district SET d_ytd = ?d_ytd WHERE d_w_id = ?d_w_id AND d_id = ?d_id";
    /// The district as a receipt prints it.
    ShowDistrict: "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
        WHERE d_w_id = ?d_w_id AND d_id = ?d_id",
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_ytd FROM district \
        WHERE d_w_id = ?d_w_id AND d_id = ?d_id{lock}";
    /// Customers of one last name.
    CustomersByName: "SELECT c_id, c_first FROM customer \
        WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_last = ?c_last ORDER BY c_first",
        "SELECT c_id, c_first FROM customer WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_last = ?c_last";
    /// The customer who pays.
    PayingCustomer: "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
        c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt FROM customer \
        WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id{lock}";
    /// Notes about a customer with bad credit.
    CustomerData: "SELECT c_data FROM customer WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id{lock}";
    /// Books the payment.
    PayCustomer: "UPDATE customer SET c_balance = c_balance - ?c_balance, c_ytd_payment = c_ytd_payment + \
        ?c_ytd_payment, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id",
        "UPDATE customer SET c_balance = ?c_balance, c_ytd_payment = ?c_ytd_payment, c_payment_cnt = ?c_payment_cnt \
        WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id";
    /// Notes it.
    NoteCustomer: "UPDATE customer SET c_data = ?c_data WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id";
    /// Adds the payment to the history.
    AddHistory: insert(&TABLES[HISTORY], 1);

    /// The customer of the query.
    AskingCustomer: "SELECT c_balance, c_first, c_middle, c_last FROM customer \
        WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id";
    /// The last order of a customer; in the client's form all of them.
    LastOrder: "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
        WHERE o_w_id = ?o_w_id AND o_d_id = ?o_d_id AND o_c_id = ?o_c_id ORDER BY o_id DESC LIMIT 1",
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
        WHERE o_w_id = ?o_w_id AND o_d_id = ?o_d_id AND o_c_id = ?o_c_id";
    /// The lines of an order.
    Lines: "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
        WHERE ol_w_id = ?ol_w_id AND ol_d_id = ?ol_d_id AND ol_o_id = ?ol_o_id";

    /// The oldest order to be delivered. In the client's form: how many there are. Order numbers have no gaps
    /// (consistency condition 3), so the oldest one is the next number less this count.
    OldestNewOrder: "SELECT no_o_id FROM new_order WHERE no_w_id = ?no_w_id AND no_d_id = ?no_d_id \
        ORDER BY no_o_id LIMIT 1{lock}",
        "SELECT count(*) FROM new_order WHERE no_w_id = ?no_w_id AND no_d_id = ?no_d_id";
    /// The next order number of a district.
    NextNumber: "SELECT d_next_o_id FROM district WHERE d_w_id = ?d_w_id AND d_id = ?d_id";
    /// Takes an order from those to be delivered.
    TakeNewOrder: "DELETE FROM new_order WHERE no_w_id = ?no_w_id AND no_d_id = ?no_d_id AND no_o_id = ?no_o_id";
    /// The customer of an order.
    OrderCustomer: "SELECT o_c_id FROM orders WHERE o_w_id = ?o_w_id AND o_d_id = ?o_d_id AND o_id = ?o_id";
    /// Stores the carrier.
    SetCarrier: "UPDATE orders SET o_carrier_id = ?o_carrier_id \
        WHERE o_w_id = ?o_w_id AND o_d_id = ?o_d_id AND o_id = ?o_id";
    /// Stores the delivery time of the lines.
    SetDelivered: "UPDATE order_line SET ol_delivery_d = ?ol_delivery_d \
        WHERE ol_w_id = ?ol_w_id AND ol_d_id = ?ol_d_id AND ol_o_id = ?ol_o_id";
    /// The total of an order; in the client's form the amount of each line.
    OrderAmount: "SELECT sum(ol_amount) FROM order_line \
        WHERE ol_w_id = ?ol_w_id AND ol_d_id = ?ol_d_id AND ol_o_id = ?ol_o_id",
        "SELECT ol_amount FROM order_line WHERE ol_w_id = ?ol_w_id AND ol_d_id = ?ol_d_id AND ol_o_id = ?ol_o_id";
    /// The customer's balance, in the client's form only.
    DeliveredCustomer: "SELECT c_balance, c_delivery_cnt FROM customer \
        WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id{lock}";
    /// Books the delivery.
    BookDelivery: "UPDATE customer SET c_balance = c_balance + ?c_balance, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id",
        "UPDATE customer SET c_balance = ?c_balance, c_delivery_cnt = ?c_delivery_cnt \
        WHERE c_w_id = ?c_w_id AND c_d_id = ?c_d_id AND c_id = ?c_id";

    /// How many items of the last 20 orders are low in stock; in the client's form their stock.
    Stocks: "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ?ol_w_id AND ol_d_id = ?ol_d_id \
        AND ol_o_id < ?ol_o_id AND ol_o_id >= ?ol_o_id AND s_w_id = ?s_w_id AND s_i_id = ol_i_id \
        AND s_quantity < ?s_quantity",
        format!(
            "SELECT s_i_id, s_quantity FROM order_line, stock WHERE ol_w_id = ?ol_w_id AND ol_d_id = ?ol_d_id \
            AND ol_o_id IN ({}) AND s_w_id = ?s_w_id AND s_i_id = ol_i_id",
            ["?ol_o_id"; RECENT].join(", ")
        );
}

/// Orders that Stock-Level checks (clause 2.8.2.2).
pub const RECENT: usize = 20;

/// Every statement of one form in one dialect.
pub struct Statements {
    begin: Vec<String>,
    /// In the order of [`Statements::place`], after those that begin.
    described: Vec<Described>,
}

impl Statements {
    /// The statements of form `compute` in `dialect`.
    pub fn new(compute: Compute, isolation: Isolation, dialect: &Dialect) -> Self {
        let begin: Vec<String> = (dialect.begin)(isolation).iter().map(|text| (*text).to_owned()).collect();
        let templates = begin
            .iter()
            .cloned()
            .chain(["COMMIT".to_owned(), "ROLLBACK".to_owned()])
            .chain(Named::ALL.iter().map(|query| query.template(compute)))
            .chain((1..=10).map(|district| stock(compute, district)));
        Self { described: templates.map(|template| describe(&template, &TABLES, dialect)).collect(), begin }
    }

    /// Number of statements that begin a transaction.
    pub fn begins(&self) -> usize {
        self.begin.len()
    }

    fn place(&self, query: Query) -> usize {
        let begins = self.begin.len();
        match query {
            Query::Begin(number) => number,
            Query::Commit => begins,
            Query::Rollback => begins + 1,
            Query::Named(named) => begins + 2 + named as usize,
            Query::Stock(district) => begins + 2 + Named::ALL.len() + district - 1,
        }
    }

    /// Prepares all of them.
    ///
    /// # Errors
    /// The server's error.
    pub fn prepare(&self, session: &mut dyn SqlSession) -> Result<Vec<Statement>, Fault> {
        self.described.iter().map(|described| session.prepare_described(described)).collect()
    }

    /// The statement in `prepared` for `query`.
    pub fn pick(&self, prepared: &[Statement], query: Query) -> Statement {
        prepared[self.place(query)]
    }
}

impl fmt::Display for Statements {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.described.iter().try_for_each(|described| writeln!(formatter, "{}", described.sql))
    }
}

fn stock(compute: Compute, district: usize) -> String {
    let counts = match compute {
        Compute::Server => "",
        Compute::Client => ", s_ytd, s_order_cnt, s_remote_cnt",
    };
    format!(
        "SELECT s_quantity, s_data, s_dist_{district:02}{counts} FROM stock \
         WHERE s_w_id = ?s_w_id AND s_i_id = ?s_i_id{{lock}}"
    )
}
