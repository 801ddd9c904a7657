//! The meaning of YCSB's properties: names, defaults, limits, and every problem at once.
//!
//! Names and defaults are those of `site.ycsb.workloads.CoreWorkload` 0.17.0 in its code, which differ from its
//! `workload_template`. Two rules are Tithe's own:
//!
//! * `recordcount`, `threadcount` and `target` are defaults of the experiment's `records`, `clients` and `rate`, which
//!   win; `recordcount` is also checked against the other properties.
//! * YCSB cannot run `zipfian` without `operationcount`, from which it predicts how many records will be inserted.
//!   Tithe measures by time, so the property may be absent; the number of records then replaces it.
//!
//! Values are stricter than in YCSB if it would silently do something else: a switch must be `true` or `false`, a
//! fraction must be in its range.

use std::collections::BTreeMap;

use tithe_model::catalogue::{Asked, AskedOf, PropertyProblem, WorkloadShape};

use super::{names, operation_kind::OperationKind};

/// The properties of one workload, with YCSB's defaults filled in.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the table.
    pub table: String,
    /// Fields of a record.
    pub fields: usize,
    /// The prefix of a field's number.
    pub field_prefix: String,
    /// How long a value is.
    pub length: Length,
    /// A read fetches all fields, not one.
    pub read_all: bool,
    /// An update writes all fields, not one.
    pub write_all: bool,
    /// Values are derived from key and field, so that each can be checked in full.
    pub integrity: bool,
    /// Operations with their weights, in YCSB's order; only those that happen.
    pub weights: Vec<(f64, OperationKind)>,
    /// Which records are requested.
    pub distribution: Distribution,
    /// Shortest and longest scan, in records.
    pub scan: (i64, i64),
    /// Short scans are more frequent than long ones.
    pub scan_zipfian: bool,
    /// How a record's number becomes a key.
    pub keys: Keys,
    recordcount: Option<i64>,
    operationcount: Option<i64>,
    insert_start: i64,
    insert_count: Option<i64>,
    insert_proportion: f64,
}

/// How long a value is, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Length {
    /// Always the same.
    Constant(i64),
    /// Between two lengths, all equally frequent.
    Uniform(i64, i64),
    /// Between two lengths, short ones more frequent.
    Zipfian(i64, i64),
    /// According to the histogram in this file.
    Histogram(String),
}

/// Which records are requested.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// All with equal probability.
    Uniform,
    /// Few are popular, spread over the whole set.
    Zipfian,
    /// The newest are popular.
    Latest,
    /// A hot set: the fraction of records in it, and of operations on it.
    Hotspot(f64, f64),
    /// One after the other.
    Sequential,
    /// Newer ones are more popular: `percentile` percent of the operations are on the newest fraction.
    Exponential(f64, f64),
}

/// How a record's number becomes a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The prefix of every key: `user`, or go-ycsb's `keyprefix`.
    pub prefix: String,
    /// The number itself, not its hash.
    pub ordered: bool,
    /// Digits that a number is filled up to with zeros on the left.
    pub zero_padding: usize,
}

/// The records of an arm, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpace {
    /// Records loaded: `0..records`.
    pub records: i64,
    /// First requested record, unless the distribution counts from the newest.
    pub first: i64,
    /// Last requested record at the start.
    pub last: i64,
    /// Records that `zipfian` expects to be inserted, with YCSB's factor of safety of 2.
    pub expected_inserts: i64,
}

/// Every problem of `properties` that can be found without their experiment.
pub fn check(properties: &BTreeMap<String, String>) -> Vec<PropertyProblem> {
    let (config, mut problems) = read(properties);
    if let Some(records) = config.recordcount {
        problems.extend(config.key_space(records.unsigned_abs()).err().unwrap_or_default());
    }
    problems
}

/// What planning must know about the workload: whether it writes, and the size of its records.
pub fn shape(properties: &BTreeMap<String, String>) -> WorkloadShape {
    let (config, _) = read(properties);
    let length = match config.length {
        Length::Constant(length) | Length::Uniform(_, length) | Length::Zipfian(_, length) => length,
        // A plan does not read the histogram's file: it uses YCSB's default.
        Length::Histogram(_) => 100,
    };
    WorkloadShape {
        writes: config.weights.iter().any(|(_, kind)| kind.writes()),
        record_bytes: config.keys.longest() as u64 + config.fields as u64 * length.unsigned_abs(),
        program: false,
        gaps: false,
        batch: Some(1),
        slot_ns: None,
    }
}

/// Defaults that `properties` set for the experiment. YCSB takes 0 for "not set" in all three.
pub fn asks(properties: &BTreeMap<String, String>) -> Vec<Asked> {
    let all = [("recordcount", AskedOf::Records), ("threadcount", AskedOf::Clients), ("target", AskedOf::Rate)];
    let asked = all.into_iter().filter_map(|(property, of)| {
        let value = properties.get(property)?.trim().parse().ok().filter(|&value: &u32| value > 0)?;
        Some(Asked { property, of, value: value.into() })
    });
    asked.collect()
}

/// Properties for an arm with `records` records.
///
/// # Errors
/// Every problem.
pub fn resolve(
    properties: &BTreeMap<String, String>,
    records: u64,
) -> Result<(Config, KeySpace), Vec<PropertyProblem>> {
    let (config, mut problems) = read(properties);
    match config.key_space(records) {
        Ok(space) if problems.is_empty() => Ok((config, space)),
        Ok(_) => Err(problems),
        Err(more) => {
            problems.extend(more);
            Err(problems)
        }
    }
}

/// Reads all properties; one with a problem gets its default.
fn read(properties: &BTreeMap<String, String>) -> (Config, Vec<PropertyProblem>) {
    let mut reader = Reader { properties, problems: names::unknown(properties) };
    for count in ["threadcount", "target"] {
        reader.optional(count, 0..=LARGEST);
    }
    let length = reader.length();
    let insert_proportion = reader.real("insertproportion", 0.0, 0.0..=f64::MAX);
    let config = Config {
        table: reader.name("table", "usertable"),
        fields: reader.whole("fieldcount", 10, 1..=100_000) as usize,
        field_prefix: reader.name("fieldnameprefix", "field"),
        read_all: reader.flag("readallfields", true),
        write_all: reader.flag("writeallfields", false),
        integrity: reader.flag("dataintegrity", false),
        weights: reader.weights(insert_proportion),
        distribution: reader.distribution(),
        scan: reader.scan(),
        scan_zipfian: reader.choice("scanlengthdistribution", &["uniform", "zipfian"]) == "zipfian",
        keys: Keys {
            prefix: reader.name("keyprefix", "user"),
            ordered: reader.text("insertorder").is_some_and(|order| order != "hashed"),
            zero_padding: reader.whole("zeropadding", 1, 0..=200) as usize,
        },
        recordcount: reader.optional("recordcount", 0..=LARGEST).filter(|&count| count != 0),
        operationcount: reader.optional("operationcount", 0..=LARGEST),
        insert_start: reader.whole("insertstart", 0, 0..=LARGEST),
        insert_count: reader.optional("insertcount", 1..=LARGEST),
        insert_proportion,
        length,
    };
    if config.integrity && !matches!(config.length, Length::Constant(_)) {
        reader.problem(
            "dataintegrity",
            "checking values needs a constant field length",
            "set fieldlengthdistribution=constant, or leave dataintegrity out: Tithe verifies values without it too",
        );
    }
    if let Some(problem) = reader.foreign_class() {
        // The properties of another class are unknown here.
        return (config, vec![problem]);
    }
    (config, reader.problems)
}

/// YCSB cuts record numbers to 32 bits on the way to a key.
const LARGEST: i64 = i32::MAX as i64;

impl Config {
    /// Adds the record numbers; the fields' numbers and lengths are already known.
    fn key_space(&self, records: u64) -> Result<KeySpace, Vec<PropertyProblem>> {
        let fault = |property: &str, problem: String, help: &str| (property.to_owned(), problem, help.to_owned());
        let count = match i64::try_from(records) {
            Ok(records @ 1..=LARGEST) => records,
            _ => {
                let problem = format!("{records} records are not between 1 and {LARGEST}");
                return Err(vec![fault("recordcount", problem, "YCSB numbers records with 32 bits")]);
            }
        };
        let asked = self.insert_count.unwrap_or(count - self.insert_start);
        let last = self.insert_start + asked - 1;
        if asked < 1 || last >= count {
            return Err(vec![fault(
                if self.insert_count.is_some() { "insertcount" } else { "insertstart" },
                format!("records {} to {last} are asked for, of {count} records", self.insert_start),
                "insertstart and insertcount together must not exceed the number of records",
            )]);
        }
        let operations = self.operationcount.unwrap_or(count);
        let expected_inserts = i64::from((operations as f64 * self.insert_proportion * 2.0) as i32);
        let space = KeySpace { records: count, first: self.insert_start, last, expected_inserts };
        let mut problems = Vec::new();
        if last + expected_inserts >= LARGEST {
            problems.push(fault(
                "operationcount",
                format!("records 0 to {} are expected in the end", last + expected_inserts),
                "YCSB numbers records with 32 bits; have fewer records, or set a smaller operationcount",
            ));
        }
        if let Distribution::Hotspot(data, operations) = self.distribution {
            let (hot, cold) = super::generator::Hotspot::new(space.first, last, data, operations).sizes();
            if (hot == 0 && operations > 0.0) || (cold == 0 && operations < 1.0) {
                problems.push(fault(
                    "hotspotdatafraction",
                    format!("of {asked} records {hot} are hot and {cold} are not, but operations go to both"),
                    "choose a fraction that leaves records on both sides",
                ));
            }
        }
        if problems.is_empty() { Ok(space) } else { Err(problems) }
    }
}

/// Reads properties one by one, and collects their problems.
struct Reader<'a> {
    properties: &'a BTreeMap<String, String>,
    problems: Vec<PropertyProblem>,
}

impl Reader<'_> {
    fn problem(&mut self, property: &str, problem: impl Into<String>, help: impl Into<String>) {
        self.problems.push((property.to_owned(), problem.into(), help.into()));
    }

    /// The property without surrounding blanks, which are often left at the end of a line.
    fn text(&self, property: &str) -> Option<&str> {
        self.properties.get(property).map(|text| text.trim())
    }

    fn optional(&mut self, property: &str, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let text = self.text(property)?;
        match text.parse() {
            Ok(number) if range.contains(&number) => Some(number),
            _ => {
                let problem = format!("\"{text}\" is not a whole number from {} to {}", range.start(), range.end());
                self.problem(property, problem, "write it in digits only");
                None
            }
        }
    }

    fn whole(&mut self, property: &str, default: i64, range: std::ops::RangeInclusive<i64>) -> i64 {
        self.optional(property, range).unwrap_or(default)
    }

    fn real(&mut self, property: &str, default: f64, range: std::ops::RangeInclusive<f64>) -> f64 {
        let Some(text) = self.text(property) else { return default };
        match text.parse() {
            Ok(number) if range.contains(&number) => number,
            _ => {
                let limits = if *range.end() == f64::MAX {
                    format!("of {} or more", range.start())
                } else {
                    format!("from {} to {}", range.start(), range.end())
                };
                let problem = format!("\"{text}\" is not a number {limits}");
                self.problem(property, problem, "write it like 0.95");
                default
            }
        }
    }

    fn flag(&mut self, property: &str, default: bool) -> bool {
        let Some(text) = self.text(property) else { return default };
        match text.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => {
                let problem = format!("\"{text}\" is neither true nor false");
                self.problem(property, problem, "YCSB reads every other word as false: write true or false");
                default
            }
        }
    }

    /// One of `choices`, of which the first is the default.
    fn choice(&mut self, property: &str, choices: &[&'static str]) -> &'static str {
        let Some(text) = self.text(property) else { return choices[0] };
        if let Some(choice) = choices.iter().find(|&&choice| choice == text) {
            return choice;
        }
        let problem = format!("unknown word \"{text}\"");
        self.problem(property, problem, format!("choose one of {}", choices.join(", ")));
        choices[0]
    }

    /// A name that needs no quoting in SQL and in keys.
    fn name(&mut self, property: &str, default: &str) -> String {
        let Some(text) = self.text(property) else { return default.to_owned() };
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if plain && (1..=40).contains(&text.len()) {
            return text.to_owned();
        }
        let problem = format!("\"{text}\" is not a plain name");
        self.problem(property, problem, "use up to 40 letters, digits and underscores");
        default.to_owned()
    }

    /// The problem with a class other than the core workload.
    fn foreign_class(&self) -> Option<PropertyProblem> {
        const CORE: [&str; 3] = ["core", "site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"];
        let class = self.text("workload").filter(|class| !CORE.contains(class))?;
        let problem = format!("the workload class \"{class}\" is not built in");
        Some(("workload".to_owned(), problem, format!("only YCSB's core workload is: {}", CORE[1])))
    }

    fn length(&mut self) -> Length {
        let longest = self.whole("fieldlength", 100, 1..=1 << 30);
        let shortest = self.whole("minfieldlength", 1, 1..=1 << 30);
        let kind = self.choice("fieldlengthdistribution", &["constant", "uniform", "zipfian", "histogram"]);
        if matches!(kind, "uniform" | "zipfian") && shortest > longest {
            let problem = format!("the shortest field, {shortest}, is longer than the longest, {longest}");
            self.problem("minfieldlength", problem, "make it smaller than fieldlength");
        }
        match kind {
            "uniform" => Length::Uniform(shortest, longest),
            "zipfian" => Length::Zipfian(shortest, longest),
            "histogram" => Length::Histogram(self.text("fieldlengthhistogram").unwrap_or("hist.txt").to_owned()),
            _ => Length::Constant(longest),
        }
    }

    fn weights(&mut self, insert: f64) -> Vec<(f64, OperationKind)> {
        let before = self.problems.len();
        let weights = [
            (self.real("readproportion", 0.95, 0.0..=f64::MAX), OperationKind::Read),
            (self.real("updateproportion", 0.05, 0.0..=f64::MAX), OperationKind::Update),
            (insert, OperationKind::Insert),
            (self.real("scanproportion", 0.0, 0.0..=f64::MAX), OperationKind::Scan),
            (self.real("readmodifywriteproportion", 0.0, 0.0..=f64::MAX), OperationKind::ReadModifyWrite),
        ];
        let positive: Vec<_> = weights.into_iter().filter(|&(weight, _)| weight > 0.0).collect();
        let sum = positive.iter().fold(0.0, |sum, (weight, _)| sum + weight);
        if self.problems.len() == before && (positive.is_empty() || !sum.is_finite()) {
            self.problem(
                "readproportion",
                format!("the five proportions add up to {sum}"),
                "give one of read-, update-, insert-, scan- and readmodifywriteproportion a weight",
            );
        }
        positive
    }

    fn distribution(&mut self) -> Distribution {
        let all = ["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"];
        let hotspot =
            (self.real("hotspotdatafraction", 0.2, 0.0..=1.0), self.real("hotspotopnfraction", 0.8, 0.0..=1.0));
        // Outside these limits almost every draw is before the first record, and is drawn again.
        let exponential = (
            self.real("exponential.percentile", 95.0, 1.0..=99.999_999),
            self.real("exponential.frac", 0.857_142_857_1, 1e-9..=1.0),
        );
        match self.choice("requestdistribution", &all) {
            "zipfian" => Distribution::Zipfian,
            "latest" => Distribution::Latest,
            "hotspot" => Distribution::Hotspot(hotspot.0, hotspot.1),
            "sequential" => Distribution::Sequential,
            "exponential" => Distribution::Exponential(exponential.0, exponential.1),
            _ => Distribution::Uniform,
        }
    }

    fn scan(&mut self) -> (i64, i64) {
        let shortest = self.whole("minscanlength", 1, 1..=LARGEST);
        let longest = self.whole("maxscanlength", 1000, 1..=LARGEST);
        if shortest > longest {
            let problem = format!("the shortest scan, {shortest}, is longer than the longest, {longest}");
            self.problem("minscanlength", problem, "make it smaller than maxscanlength");
        }
        (shortest, longest)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::ycsb::properties;

    fn problems(text: &str, expected: &Expect) {
        let lines: Vec<String> = check(&properties::parse(text).unwrap())
            .into_iter()
            .map(|(property, problem, help)| format!("{property}: {problem}\n  {help}\n"))
            .collect();
        expected.assert_eq(&lines.concat());
    }

    fn map(text: &str) -> BTreeMap<String, String> {
        properties::parse(text).unwrap()
    }

    #[test]
    fn defaults_are_those_of_the_code_of_ycsb() {
        let (config, space) = resolve(&BTreeMap::new(), 1000).unwrap();
        expect![[r#"
            Config {
                table: "usertable",
                fields: 10,
                field_prefix: "field",
                length: Constant(
                    100,
                ),
                read_all: true,
                write_all: false,
                integrity: false,
                weights: [
                    (
                        0.95,
                        Read,
                    ),
                    (
                        0.05,
                        Update,
                    ),
                ],
                distribution: Uniform,
                scan: (
                    1,
                    1000,
                ),
                scan_zipfian: false,
                keys: Keys {
                    prefix: "user",
                    ordered: false,
                    zero_padding: 1,
                },
                recordcount: None,
                operationcount: None,
                insert_start: 0,
                insert_count: None,
                insert_proportion: 0.0,
            }
        "#]]
        .assert_debug_eq(&config);
        assert_eq!(space, KeySpace { records: 1000, first: 0, last: 999, expected_inserts: 0 });
    }

    #[test]
    fn every_problem_at_once() {
        problems(
            "recordcont=5\nfieldcount=ten\nrequestdistribution=zipf\nreadproportion=-1\nreadallfields=yes\n\
             table=a b\nthreadcount=many\nfieldlengthdistribution=uniform\n\
             dataintegrity=true\nminscanlength=20\nmaxscanlength=10\nminfieldlength=200\nxyzzy=1\n",
            &expect![[r#"
                recordcont: YCSB's core workload has no such property
                  did you mean "recordcount"?
                xyzzy: YCSB's core workload has no such property
                  take it out; a name is written exactly as in YCSB
                threadcount: "many" is not a whole number from 0 to 2147483647
                  write it in digits only
                minfieldlength: the shortest field, 200, is longer than the longest, 100
                  make it smaller than fieldlength
                table: "a b" is not a plain name
                  use up to 40 letters, digits and underscores
                fieldcount: "ten" is not a whole number from 1 to 100000
                  write it in digits only
                readallfields: "yes" is neither true nor false
                  YCSB reads every other word as false: write true or false
                readproportion: "-1" is not a number of 0 or more
                  write it like 0.95
                requestdistribution: unknown word "zipf"
                  choose one of uniform, zipfian, latest, hotspot, sequential, exponential
                minscanlength: the shortest scan, 20, is longer than the longest, 10
                  make it smaller than maxscanlength
                dataintegrity: checking values needs a constant field length
                  set fieldlengthdistribution=constant, or leave dataintegrity out: Tithe verifies values without it too
            "#]],
        );
    }

    /// The core workload cannot judge the properties of another class, so it reports only the class.
    #[test]
    fn another_class_is_refused_by_its_name_alone() {
        problems(
            "workload=site.ycsb.workloads.ConstantOccupancyWorkload\noccupancy=0.9\nstorageages=1\nfieldcount=ten",
            &expect![[r#"
                workload: the workload class "site.ycsb.workloads.ConstantOccupancyWorkload" is not built in
                  only YCSB's core workload is: site.ycsb.workloads.CoreWorkload
            "#]],
        );
    }

    #[test]
    fn records_must_exist() {
        problems(
            "recordcount=100\ninsertstart=50\ninsertcount=51",
            &expect![[r#"
            insertcount: records 50 to 100 are asked for, of 100 records
              insertstart and insertcount together must not exceed the number of records
        "#]],
        );
        problems(
            "recordcount=100\ninsertstart=100",
            &expect![[r#"
            insertstart: records 100 to 99 are asked for, of 100 records
              insertstart and insertcount together must not exceed the number of records
        "#]],
        );
        problems(
            "recordcount=2147483647\nrequestdistribution=zipfian\ninsertproportion=1",
            &expect![[r#"
            operationcount: records 0 to 4294967293 are expected in the end
              YCSB numbers records with 32 bits; have fewer records, or set a smaller operationcount
        "#]],
        );
        problems(
            "recordcount=4\nrequestdistribution=hotspot",
            &expect![[r#"
            hotspotdatafraction: of 4 records 0 are hot and 4 are not, but operations go to both
              choose a fraction that leaves records on both sides
        "#]],
        );
    }

    #[test]
    fn some_operation_must_happen() {
        problems(
            "readproportion=0\nupdateproportion=0",
            &expect![[r#"
                readproportion: the five proportions add up to 0
                  give one of read-, update-, insert-, scan- and readmodifywriteproportion a weight
            "#]],
        );
        problems(
            "readproportion=NaN\nupdateproportion=inf",
            &expect![[r#"
            readproportion: "NaN" is not a number of 0 or more
              write it like 0.95
            updateproportion: "inf" is not a number of 0 or more
              write it like 0.95
        "#]],
        );
    }

    #[test]
    fn operationcount_may_be_absent() {
        let inserts = |text| resolve(&map(text), 1000).unwrap().1.expected_inserts;
        assert_eq!(inserts("insertproportion=0.05"), 100, "the records stand in");
        assert_eq!(inserts("insertproportion=0.05\noperationcount=200"), 20);
        assert_eq!(inserts("insertproportion=0.05\noperationcount=0"), 0, "unlimited, as YCSB counts it");
    }

    #[test]
    fn the_experiment_decides_how_many_records_there_are() {
        let (_, space) = resolve(&map("recordcount=5000\ninsertstart=10"), 100).unwrap();
        assert_eq!(space, KeySpace { records: 100, first: 10, last: 99, expected_inserts: 0 });
    }
}
