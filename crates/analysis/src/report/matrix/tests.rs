use expect_test::expect_file;

use super::*;
use crate::{
    matrix::figures,
    report::{html, terminal::WIDTH_MIN},
};

#[test]
fn every_form_of_a_matrix() {
    let gathered = sample::full();
    let figures = figures(&gathered);
    let long = Options { form: Form::Long, ..Options::default() };
    expect_file!["../golden/matrix.txt"].assert_eq(&text(&gathered, &figures, long));
    expect_file!["../golden/matrix.short.txt"].assert_eq(&text(&gathered, &figures, Options::default()));
    expect_file!["../golden/matrix.md"].assert_eq(&markdown(&gathered, &figures, Form::Long));
    expect_file!["../golden/matrix.csv"].assert_eq(&csv::render(&gathered, &figures).replace("\r\n", "\n"));
    expect_file!["../golden/matrix.json"].assert_eq(&json::render(&gathered, &figures));
    let page = html::matrix(&gathered, &figures);
    expect_file!["../golden/matrix.html"].assert_eq(&crate::report::sample::without_style(&page));
}

#[test]
fn one_host_and_two_are_shown_and_not_pooled() {
    let told = |count: usize| {
        let gathered = sample::first(count);
        let figures = figures(&gathered);
        let answer = &figures[0].answer;
        (basis(answer), cost(&figures[0]).is_some(), spread(answer).is_some(), next(answer).is_some())
    };
    assert_eq!(told(1), ("this host alone".to_owned(), true, false, false));
    assert_eq!(told(2), ("two, not pooled".to_owned(), false, false, false));
    assert_eq!(told(3), ("3 hosts".to_owned(), true, true, false));
    assert_eq!(told(5), ("5 hosts".to_owned(), true, true, true));
    let two = sample::first(2);
    let shown = text(&two, &figures(&two), Options::default());
    assert!(shown.contains("+16.2 % [15.3, 17.1] and +12.7 % [11.9, 13.7]"), "{shown}");
    // The sixth task ran on the first one's host.
    assert_eq!(told(6), ("5 hosts".to_owned(), true, true, true));
    assert!(figures(&sample::first(0)).is_empty());
}

/// Of one experiment on one host, whatever the figure is over has to be its repeats.
#[test]
fn repeats_on_one_host_are_counted_as_such() {
    let of = |count: usize| {
        let mut pages = sample::full();
        pages.tasks.drain(..7);
        pages.tasks.truncate(count);
        let figures = figures(&pages);
        let rows = csv::render(&pages, &figures);
        let together = rows.lines().find(|row| row.starts_with("together")).expect("a figure").to_owned();
        (basis(&figures[0].answer), together.contains(&format!(",repeats,{count},")))
    };
    assert_eq!(of(2), ("two repeats on this host, not pooled".to_owned(), true));
    assert_eq!(of(3), ("3 repeats on this host".to_owned(), true));
}

#[test]
fn no_line_is_wider_than_the_page() {
    let gathered = sample::full();
    let figures = figures(&gathered);
    for width in WIDTH_MIN..140 {
        let text = text(&gathered, &figures, Options { form: Form::Long, width, colour: false });
        for line in text.lines() {
            assert!(crate::report::table::width(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_document_follows_its_schema_and_comes_back() {
    let schema: serde_json::Value = serde_json::from_str(json::schema()).expect("JSON");
    jsonschema::meta::validate(&schema).expect("the schema is a schema");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for gathered in [sample::full(), sample::first(2), sample::first(0)] {
        let text = json::render(&gathered, &figures(&gathered));
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert!(json::is_one(&text));
        assert_eq!(json::read(&text), Ok(gathered));
    }
    let text = json::render(&sample::full(), &[]);
    let damaged = text.replacen("\"state\":\"missing\"", "\"state\":\"lost\"", 1);
    assert_ne!(damaged, text);
    assert!(!validator.is_valid(&serde_json::from_str(&damaged).expect("JSON")));
    assert!(json::read(&damaged).is_err_and(|why| why.contains("lost")));
    let unknown = text.replacen("\"figure\":\"net time per op\"", "\"figure\":\"net time per row\"", 1);
    assert_ne!(unknown, text);
    let refused = json::read(&unknown).expect_err("nobody knows what it is a cost in");
    assert!(refused.contains("`net time per row` names no figure that this version of Tithe knows"), "{refused}");
    assert!(json::read(&text[..text.len() / 2]).is_err_and(|why| why.contains("damaged")));
    let newer = text.replacen("\"format\": 1", "\"format\": 9", 1);
    assert!(json::read(&newer).is_err_and(|why| why.contains("of format 9")));
    assert!(!json::is_one("{\"format\": 3, \"tithe_report\": {}}"));
}

#[test]
fn rising_numbers_are_told_in_short() {
    assert_eq!(ranges(&[]), "");
    assert_eq!(ranges(&[3]), "3");
    assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0–2, 5, 7–8");
}
