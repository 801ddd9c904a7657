//! The properties of a TPC-C workload, resolved.

use tithe_model::catalogue::{Properties, PropertyProblem, WorkloadEntry, WorkloadShape};
use tithe_plugin::sql::{Compute, Isolation};

use crate::properties::{Known, Reader, read};

/// Customers per district in the specification (clause 1.2.1).
pub const CUSTOMERS: u64 = 3000;
/// Items in the specification.
pub const ITEMS: u64 = 100_000;
/// Bytes of a row as clients send it, the mean of all tables: 117 with one warehouse, 126 with many, which share their
/// items.
pub const ROW_BYTES: u64 = 120;
/// Districts per warehouse; never another number.
pub const DISTRICTS: u64 = 10;
/// The smallest data set on which every transaction finds its data: the last 20 orders of a district, 15 different
/// items.
const SMALLEST: u64 = 30;

/// The configuration of TPC-C.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Number of warehouses.
    pub warehouses: u64,
    /// Customers per district, and orders per district when loaded.
    pub customers: u64,
    /// Items, and stock per warehouse.
    pub items: u64,
    /// Weights of New-Order, Payment, Order-Status, Delivery, Stock-Level.
    pub mix: [u32; 5],
    /// The isolation level.
    pub isolation: Isolation,
    /// Where to compute with values.
    pub compute: Compute,
    /// Terminals wait for a user who types and thinks.
    pub pauses: bool,
}

/// Every property.
const KNOWN: [Known; 7] = [
    ("warehouses", "1", "a number from 1 on"),
    ("customers", "3000", "customers per district; the specification asks for 3000, and the smallest is 30"),
    ("items", "100000", "the specification asks for 100000, and the smallest is 30"),
    ("mix", "45,43,4,4,4", "weights of New-Order, Payment, Order-Status, Delivery, Stock-Level"),
    ("isolation", "repeatable-read", "repeatable-read or serializable"),
    ("compute", "server", "server for the ordinary statements; client where columns are encrypted"),
    ("pauses", "off", "on for the specified keying and think times of terminals, about 21 s a transaction; or off"),
];

/// Presets, for the catalogue.
const PRESETS: &[tithe_model::catalogue::Preset] = &[
    ("ordinary", "The five transactions, computing in the server as usual", &[]),
    (
        "client-side",
        "The five transactions, computing in the client, so that columns can be encrypted",
        &[("compute", "client")],
    ),
];

impl Config {
    /// Resolves `properties`.
    ///
    /// # Errors
    /// Every problem.
    pub fn resolve(properties: &Properties) -> Result<Self, Vec<PropertyProblem>> {
        let mut reader = Reader::new("TPC-C", &KNOWN, properties);
        let number =
            |low: u64, high: u64| move |text: &str| text.parse().ok().filter(|number| (low..=high).contains(number));
        let config = Self {
            // Warehouse numbers have 32 bits, and 300,000 order lines each must be countable.
            warehouses: reader.get("warehouses", number(1, 100_000)).unwrap_or(1),
            customers: reader.get("customers", number(SMALLEST, CUSTOMERS)).unwrap_or(CUSTOMERS),
            items: reader.get("items", number(SMALLEST, ITEMS)).unwrap_or(ITEMS),
            mix: reader.get("mix", mix).unwrap_or([45, 43, 4, 4, 4]),
            isolation: reader.get("isolation", isolation).unwrap_or(Isolation::RepeatableRead),
            compute: reader.get("compute", compute).unwrap_or(Compute::Server),
            pauses: reader.get("pauses", pauses).unwrap_or(false),
        };
        reader.end(config)
    }

    /// Orders per district that are not delivered when loaded: three in ten (clause 4.3.3.1).
    pub fn new_orders(&self) -> u64 {
        self.customers * 3 / 10
    }

    /// Rows that loading writes, with a mean of ten order lines per order.
    pub fn rows(&self) -> u64 {
        let district = 1 + self.customers * (1 + 1 + 1 + 10) + self.new_orders();
        self.items + self.warehouses * (1 + self.items + DISTRICTS * district)
    }

    /// True if the data set has the specification's size.
    pub fn is_full_size(&self) -> bool {
        self.customers == CUSTOMERS && self.items == ITEMS
    }
}

fn mix(text: &str) -> Option<[u32; 5]> {
    let weights: Option<Vec<u32>> = text.split(',').map(|weight| weight.trim().parse().ok()).collect();
    let weights: [u32; 5] = weights?.try_into().ok()?;
    let sum = weights.iter().try_fold(0u32, |sum, weight| sum.checked_add(*weight))?;
    (sum > 0).then_some(weights)
}

fn isolation(text: &str) -> Option<Isolation> {
    match text {
        "repeatable-read" => Some(Isolation::RepeatableRead),
        "serializable" => Some(Isolation::Serializable),
        _ => None,
    }
}

fn compute(text: &str) -> Option<Compute> {
    match text {
        "server" => Some(Compute::Server),
        "client" => Some(Compute::Client),
        _ => None,
    }
}

fn pauses(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// TPC-C for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "tpcc",
        title: "TPC-C transactions",
        presets: PRESETS,
        file: "lines of name=value: the mix and the size",
        weighted: false,
        scripts: "",
        by_path: "",
        commands: &[],
        read,
        asks: |_| Vec::new(),
        check: |properties| Config::resolve(properties).err().unwrap_or_default(),
        shape: |properties| WorkloadShape {
            writes: Config::resolve(properties).map_or(true, |config| writes(&config)),
            record_bytes: ROW_BYTES,
            program: false,
            gaps: Config::resolve(properties).is_ok_and(|config| config.pauses),
            batch: Some(1),
            slot_ns: None,
        },
    }
}

/// True if some transaction of the mix changes data.
pub fn writes(config: &Config) -> bool {
    [0, 1, 3].iter().any(|kind| config.mix[*kind] > 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use tithe_model::catalogue::PropertyFile;

    use super::*;

    fn file(text: &str) -> PropertyFile<'_> {
        PropertyFile { name: "mine", weight: None, number: 1, bytes: text.as_bytes(), protocol: None }
    }

    #[test]
    fn terminals_have_gaps_between_transactions_if_they_pause() {
        let gaps = |pauses: &str| (entry().shape)(&[("pauses".to_owned(), pauses.to_owned())].into()).gaps;
        assert_eq!(["off", "on"].map(gaps), [false, true]);
    }

    fn check(text: &str, expect: Expect) {
        let told = match read(&file(text)).map(|properties| Config::resolve(&properties)) {
            Ok(Ok(config)) => format!("{config:?}"),
            Ok(Err(problems)) => {
                let line = |(name, problem, help): &PropertyProblem| format!("{name}: {problem} ({help})");
                problems.iter().map(line).collect::<Vec<_>>().join("\n")
            }
            Err(problems) => format!("{problems:?}"),
        };
        expect.assert_eq(&told);
    }

    #[test]
    fn properties_resolve_or_all_their_problems_are_told() {
        check(
            "",
            expect![
                "Config { warehouses: 1, customers: 3000, items: 100000, mix: [45, 43, 4, 4, 4], isolation: RepeatableRead, compute: Server, pauses: false }"
            ],
        );
        check(
            "# small\nwarehouses = 2\ncustomers=30\nmix = 1,0,0,0,0\ncompute=client\nisolation=serializable\npauses=on",
            expect![
                "Config { warehouses: 2, customers: 30, items: 100000, mix: [1, 0, 0, 0, 0], isolation: Serializable, compute: Client, pauses: true }"
            ],
        );
        check(
            "warehouses=0\nitems=7\nmix=0,0,0,0,0\nthink=on\nisolation=none\npauses=some",
            expect![[r#"
                think: is not a property of TPC-C (known are warehouses, customers, items, mix, isolation, compute, pauses)
                warehouses: `0` is not possible (a number from 1 on)
                items: `7` is not possible (the specification asks for 100000, and the smallest is 30)
                mix: `0,0,0,0,0` is not possible (weights of New-Order, Payment, Order-Status, Delivery, Stock-Level)
                isolation: `none` is not possible (repeatable-read or serializable)
                pauses: `some` is not possible (on for the specified keying and think times of terminals, about 21 s a transaction; or off)"#]],
        );
        check("warehouses", expect![[r#"[(1, "is not `name=value`", "put a `=` between them")]"#]]);
    }

    #[test]
    fn ready_sets_have_no_problem() {
        for (name, _, properties) in PRESETS {
            let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
            assert!(Config::resolve(&properties.iter().map(owned).collect()).is_ok(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn foreign_text_never_panics(text in ".{0,80}", name in "(warehouses|mix|items)", value in ".{0,20}") {
            let _ = read(&file(&text)).map(|properties| Config::resolve(&properties));
            let _ = Config::resolve(&BTreeMap::from([(name, value)]));
        }
    }
}
