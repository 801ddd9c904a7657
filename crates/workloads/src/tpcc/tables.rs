//! The nine tables of TPC-C, specification 5.11, clause 1.3.
//!
//! Amounts of money are whole cents, rates are whole ten-thousandths and dates are microseconds since 1970, all in
//! whole numbers: exact, the same on every product, and the same for computations in the client.

use tithe_plugin::sql::{Column, ColumnType, Sensitivity, SqlTable};

const fn id(name: &'static str, domain: &'static str) -> Column {
    Column::new(name, ColumnType::Integer, Sensitivity::Identifier).compared(domain)
}

/// An identifier that no statement compares.
const fn uncompared_id(name: &'static str) -> Column {
    Column::new(name, ColumnType::Integer, Sensitivity::Identifier)
}

const fn count(name: &'static str) -> Column {
    Column::new(name, ColumnType::Integer, Sensitivity::Figure)
}

/// Cents, ten-thousandths or microseconds.
const fn long(name: &'static str) -> Column {
    Column::new(name, ColumnType::Long, Sensitivity::Figure)
}

const fn text(name: &'static str, length: usize) -> Column {
    Column::new(name, ColumnType::Text(length), Sensitivity::Remark)
}

/// Places of the tables in [`TABLES`].
pub const WAREHOUSE: usize = 0;
/// See [`WAREHOUSE`].
pub const DISTRICT: usize = 1;
/// See [`WAREHOUSE`].
pub const CUSTOMER: usize = 2;
/// See [`WAREHOUSE`].
pub const HISTORY: usize = 3;
/// See [`WAREHOUSE`].
pub const NEW_ORDER: usize = 4;
/// See [`WAREHOUSE`].
pub const ORDERS: usize = 5;
/// See [`WAREHOUSE`].
pub const ORDER_LINE: usize = 6;
/// See [`WAREHOUSE`].
pub const ITEM: usize = 7;
/// See [`WAREHOUSE`].
pub const STOCK: usize = 8;

/// The tables. The table ORDER is called `orders`, because `order` is a keyword of SQL.
pub static TABLES: [SqlTable; 9] = [
    SqlTable {
        name: "warehouse",
        columns: &[
            id("w_id", "warehouse"),
            text("w_name", 10),
            text("w_street_1", 20),
            text("w_street_2", 20),
            text("w_city", 20),
            text("w_state", 2),
            text("w_zip", 9),
            long("w_tax"),
            long("w_ytd"),
        ],
        key: &["w_id"],
        indexes: &[],
    },
    SqlTable {
        name: "district",
        columns: &[
            id("d_id", "district"),
            id("d_w_id", "warehouse"),
            text("d_name", 10),
            text("d_street_1", 20),
            text("d_street_2", 20),
            text("d_city", 20),
            text("d_state", 2),
            text("d_zip", 9),
            long("d_tax"),
            long("d_ytd"),
            uncompared_id("d_next_o_id"),
        ],
        key: &["d_w_id", "d_id"],
        indexes: &[],
    },
    SqlTable {
        name: "customer",
        columns: &[
            id("c_id", "customer"),
            id("c_d_id", "district"),
            id("c_w_id", "warehouse"),
            text("c_first", 16),
            text("c_middle", 2),
            text("c_last", 16).compared("last name"),
            text("c_street_1", 20),
            text("c_street_2", 20),
            text("c_city", 20),
            text("c_state", 2),
            text("c_zip", 9),
            text("c_phone", 16),
            long("c_since"),
            text("c_credit", 2),
            long("c_credit_lim"),
            long("c_discount"),
            long("c_balance"),
            long("c_ytd_payment"),
            count("c_payment_cnt"),
            count("c_delivery_cnt"),
            text("c_data", 500),
        ],
        key: &["c_w_id", "c_d_id", "c_id"],
        indexes: &[&["c_w_id", "c_d_id", "c_last"]],
    },
    SqlTable {
        name: "history",
        columns: &[
            uncompared_id("h_c_id"),
            uncompared_id("h_c_d_id"),
            uncompared_id("h_c_w_id"),
            uncompared_id("h_d_id"),
            uncompared_id("h_w_id"),
            long("h_date"),
            long("h_amount"),
            text("h_data", 24),
        ],
        key: &[],
        indexes: &[],
    },
    SqlTable {
        name: "new_order",
        columns: &[id("no_o_id", "order"), id("no_d_id", "district"), id("no_w_id", "warehouse")],
        key: &["no_w_id", "no_d_id", "no_o_id"],
        indexes: &[],
    },
    SqlTable {
        name: "orders",
        columns: &[
            id("o_id", "order"),
            id("o_d_id", "district"),
            id("o_w_id", "warehouse"),
            id("o_c_id", "customer"),
            long("o_entry_d"),
            uncompared_id("o_carrier_id").nullable(),
            count("o_ol_cnt"),
            Column::new("o_all_local", ColumnType::Integer, Sensitivity::Remark),
        ],
        key: &["o_w_id", "o_d_id", "o_id"],
        indexes: &[&["o_w_id", "o_d_id", "o_c_id", "o_id"]],
    },
    SqlTable {
        name: "order_line",
        columns: &[
            id("ol_o_id", "order"),
            id("ol_d_id", "district"),
            id("ol_w_id", "warehouse"),
            id("ol_number", "line"),
            id("ol_i_id", "item"),
            uncompared_id("ol_supply_w_id"),
            long("ol_delivery_d").nullable(),
            count("ol_quantity"),
            long("ol_amount"),
            text("ol_dist_info", 24),
        ],
        key: &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
        indexes: &[],
    },
    SqlTable {
        name: "item",
        columns: &[
            id("i_id", "item"),
            uncompared_id("i_im_id"),
            text("i_name", 24),
            long("i_price"),
            text("i_data", 50),
        ],
        key: &["i_id"],
        indexes: &[],
    },
    SqlTable {
        name: "stock",
        columns: &[
            id("s_i_id", "item"),
            id("s_w_id", "warehouse"),
            count("s_quantity"),
            text("s_dist_01", 24),
            text("s_dist_02", 24),
            text("s_dist_03", 24),
            text("s_dist_04", 24),
            text("s_dist_05", 24),
            text("s_dist_06", 24),
            text("s_dist_07", 24),
            text("s_dist_08", 24),
            text("s_dist_09", 24),
            text("s_dist_10", 24),
            long("s_ytd"),
            count("s_order_cnt"),
            count("s_remote_cnt"),
            text("s_data", 50),
        ],
        key: &["s_w_id", "s_i_id"],
        indexes: &[],
    },
];
