//! The user's statements: each has its row in every report, the most expensive first.

use expect_test::expect;
use tithe_analysis::{
    assess::assess,
    report::{
        html,
        statements::rows,
        terminal::{self, Options},
    },
};
use tithe_model::{histogram::Histogram, records::Records};

use crate::synthetic::Invented;

const SHORT: (&str, &str) = ("app.sql:2", "SELECT name FROM customer WHERE id = ?");
const LONG: (&str, &str) = ("app.sql:3", "UPDATE orders SET total = total + ? WHERE id = ?");

/// Records of a workload of two statements. One takes 1 ms and is called twice as often as the other, which takes 10
/// ms, and a tenth more in arm 1.
fn records() -> Records {
    let mut records = Invented::default().records();
    let texts = [SHORT, LONG].map(|(place, text)| (place.to_owned(), text.to_owned()));
    records.cells[0].statements = texts.into();
    for frame in &mut records.frames {
        for (number, arm) in frame.arms.iter_mut().enumerate() {
            let mut calls = [Histogram::default(), Histogram::default()];
            for call in 0..40 {
                let jitter = (call * 7_919 + frame.frame as u64 * 104_729) % 20_000;
                let more = if number == 1 { 1_000_000 } else { 0 };
                calls[0].record(1_000_000 + jitter);
                calls[0].record(1_000_000 + jitter);
                calls[1].record(10_000_000 + more + jitter);
            }
            let [short, long] = calls;
            arm.latency = [("app.sql", long.clone()), (SHORT.0, short), (LONG.0, long)]
                .map(|(name, seen)| (name.to_owned(), seen))
                .into();
        }
    }
    records
}

#[test]
fn the_statement_to_which_a_protection_adds_most_comes_first() {
    let analysis = assess(&records());
    let cell = &analysis.cells[0];
    let told: Vec<String> = rows(cell)
        .iter()
        .map(|row| {
            let cost = row.costs[0].1.expect("a cost").effect.estimate.exp() - 1.0;
            let used = row.statement;
            format!("{}: {:.2} of the time, {} calls, {cost:+.2}", row.words(), used.time_share, used.calls)
        })
        .collect();
    expect![[r#"
        app.sql:3 UPDATE orders SET total = total + ? WHERE id = ?: 0.83 of the time, 7200 calls, +0.10
        app.sql:2 SELECT name FROM customer WHERE id = ?: 0.17 of the time, 14400 calls, +0.00"#]]
    .assert_eq(&told.join("\n"));
}

#[test]
fn the_page_and_the_terminal_show_statements_and_a_workload_without_any_has_no_table() {
    let analysis = assess(&records());
    let page = html::render(&analysis, &html::PageData::default());
    let text = terminal::render(&analysis, Options::default());
    for report in [&page, &text] {
        let places = [LONG, SHORT].map(|(_, text)| report.find(&text[..text.len() / 2]));
        assert!(places[0].is_some() && places[0] < places[1], "{places:?}\n{text}");
    }
    let without = assess(&Invented::default().records());
    assert!(!html::render(&without, &html::PageData::default()).contains("id=\"statements\""));
    assert!(without.cells[0].statements.is_empty());
}
