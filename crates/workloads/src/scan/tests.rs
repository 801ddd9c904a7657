use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use tithe_model::experiment::Values;
use tithe_plugin::session::Rows as _;

use super::{
    answer::{Answer, Reading},
    *,
};

fn shared(records: u64, properties: &[(&str, &str)]) -> Shared {
    let all = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = Config::resolve(&all).expect("possible properties");
    let rows = AllRows::new(&config, records, 7);
    Shared { groups: rows.by_group(), rows, config }
}

/// The result for an answer of these `rows`.
fn check(query: Query, (first, count): (u64, u64), rows: &[&[&str]], expect: Expect) {
    let shared = shared(5, &[("groups", "2"), ("range", "3")]);
    let mut answer = Answer::default();
    let mut reading = Reading { query, groups: &shared.groups, answer: &mut answer };
    for row in rows {
        reading.row(None);
        row.iter().enumerate().for_each(|(field, value)| reading.field(field, Some(value.as_bytes())));
    }
    let said = answer.check(query, &shared.rows, (first, count), shared.groups.len());
    expect.assert_eq(&said.map_or_else(|fault| fault.to_string(), |()| "right".to_owned()));
}

#[test]
fn answers_are_right_or_it_is_said_what_is_wrong() {
    let shared = shared(5, &[("groups", "2")]);
    let numbers: Vec<u64> = (0..5).map(|id| shared.rows.number(id)).collect();
    let (smallest, largest, last) = shared.rows.ends();
    let sum: u64 = numbers.iter().sum();
    let [all, mean, last] = [sum.to_string(), format!("{}.6000", sum / 5), last.to_string()];
    let aggregate = ["5", &all, &mean, &format!("{smallest}abc"), &largest];
    check(Query::Aggregate, (0, 5), &[&aggregate], expect!["right"]);
    check(
        Query::Aggregate,
        (0, 5),
        &[&["5", &all, &mean, &largest, &largest]],
        expect![
            "wrong answer: the scan `aggregate` returned 5 1886616 377323 aeaf52febe706064 aeaf52febe706064, but the rows give 5 1886616 377323 088712be8a582fca aeaf52febe706064"
        ],
    );
    check(
        Query::Aggregate,
        (0, 5),
        &[],
        expect![
            "wrong answer: the scan `aggregate` returned 18446744073709551615 18446744073709551615 18446744073709551615  , but the rows give 5 1886616 377323 088712be8a582fca aeaf52febe706064"
        ],
    );
    check(Query::Sort, (0, 5), &[&[&last]], expect!["right"]);
    check(Query::Sort, (0, 5), &[&["9"]], expect!["wrong answer: the scan `sort` returned 9, but the rows give 2"]);
    let [even, odd] = [(numbers[0] + numbers[2] + numbers[4]).to_string(), (numbers[1] + numbers[3]).to_string()];
    check(Query::Group, (0, 5), &[&["1", "2", &odd], &["0", "3", &even]], expect!["right"]);
    check(
        Query::Group,
        (0, 5),
        &[&["1", "3", &odd], &["0", "3", &even]],
        expect!["wrong answer: the scan `group` returned 1 of 2, but the rows give 2 of 2"],
    );
    check(
        Query::Group,
        (0, 5),
        &[&["0", "3", &even]],
        expect!["wrong answer: the scan `group` returned 1 of 1, but the rows give 2 of 2"],
    );
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let range = [["1", &numbers[1], "x"], ["2", &numbers[2], "x"], ["3", &numbers[3], "x"]];
    check(Query::Range, (1, 3), &range.each_ref().map(|row| &row[..]), expect!["right"]);
    check(
        Query::Range,
        (1, 3),
        &[&range[0], &range[1], &range[1]],
        expect!["wrong answer: the scan `range` returned 3 [5, 422078], but the rows give 3 [6, 873316]"],
    );
    check(
        Query::Range,
        (1, 3),
        &[&range[0], &["2", "many", "x"], &range[2]],
        expect!["wrong answer: the scan `range` returned 3 [6, 841087], but the rows give 3 [6, 873316]"],
    );
}

#[test]
fn a_mean_that_a_product_has_rounded_up_is_right() {
    let (all, mut sum) = (shared(400_000, &[]).rows, 0_u64);
    let count = (1..=400_000_u64).find(|count: &u64| {
        sum += all.number(*count - 1);
        (*count - sum % *count) * 20_000 <= *count
    });
    let count = count.expect("one in 20,000");
    let rows = shared(count, &[]).rows;
    let (smallest, largest, _) = rows.ends();
    let told = |mean: u64| {
        let mut answer = Answer::default();
        let mut reading = Reading { query: Query::Aggregate, groups: &[], answer: &mut answer };
        reading.row(None);
        let values = [count.to_string(), sum.to_string(), format!("{mean}.0000"), smallest.clone(), largest.clone()];
        values.iter().enumerate().for_each(|(field, value)| reading.field(field, Some(value.as_bytes())));
        answer.check(Query::Aggregate, &rows, (0, count), 0)
    };
    assert_eq!(told(sum / count + 1), Ok(()));
    assert!(told(sum / count + 2).is_err() && told(sum / count - 1).is_err());
}

#[test]
fn sums_of_ranges_are_those_of_their_rows() {
    let shared = shared(5000, &[]);
    for (first, end) in [(0, 0), (0, 1), (0, 5000), (1023, 1025), (1024, 4096), (4999, 5000)] {
        let sum: u64 = (first..end).map(|id| shared.rows.number(id)).sum();
        assert_eq!(shared.rows.sum(first..end), sum, "{first}..{end}");
    }
    let texts: std::collections::BTreeSet<Vec<u8>> = (0..5000)
        .map(|id| {
            let mut text = Vec::new();
            shared.rows.text(id, &mut text);
            assert_eq!(text.len(), 100);
            text
        })
        .collect();
    assert_eq!(texts.len(), 5000);
    let (smallest, largest, _) = shared.rows.ends();
    assert!(texts.first().expect("some").starts_with(smallest.as_bytes()));
    assert!(texts.last().expect("some").starts_with(largest.as_bytes()));
}

#[test]
fn a_description_says_what_an_operation_is() {
    let properties: BTreeMap<String, String> = [("query".to_owned(), "range".to_owned())].into();
    let described = experiment::Workload { name: "s".to_owned(), kind: "scan".to_owned(), properties, prepare: None };
    let data = |records| experiment::Data { records, values: Values::Ycsb };
    let workload = make(&described, &data(2_000_000), 7).expect("scans");
    let lines = workload.describe().into_iter().map(|(name, value)| format!("{name}: {value}\n"));
    let told = lines.collect::<String>() + &workload.operations_per_request().to_string();
    expect![[r#"
        an operation: a row; latencies are of scans of 10000 rows
        scan: range
        rows: 2000000 of 120 bytes, 240.0 MB
        10000"#]]
    .assert_eq(&told);
    let refused = make(&described, &data(0), 7).err();
    expect![[r#"Some([("records", "there is nothing to scan", "write at least one")])"#]]
        .assert_eq(&format!("{refused:?}"));
}
