//! Text from outside, such as a server's messages, names and values, in every form of a report: it stays text.

use serde_json::Value;
use tithe_analysis::{
    Analysis,
    assess::assess,
    compare::compare,
    history::history,
    report::{
        bencher, benchstat, comparison, csv, folded,
        history::{self as past, json as past_json},
        html::{self, PageData},
        json, markdown, observation, oscal, otava, sarif,
        terminal::{self, Options},
        view::Form,
    },
};
use tithe_model::direction::turns;

use crate::synthetic::Invented;

/// Each begins like a formula of a spreadsheet or a terminal control sequence, and contains markup of all kinds.
const HOSTILE: [&str; 6] = [
    "=HYPERLINK(\"http://evil.example\")<script>alert(1)</script>",
    "+1\"><img src=x onerror=alert(1)>",
    "-1\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m",
    "@SUM(1)|\n# x\r\n![p](http://evil.example/p.png)[a](javascript:alert(1))",
    "\t\u{202e}gpj.exe\u{2066}\u{200f}]]>--></style></title></textarea>&lt;",
    "\u{0}\u{8}`${{7*7}}`'\"\\",
];

/// A run in which every text that may come from outside is one of these, as long as its document can still be read.
fn hostile(number: usize) -> (Analysis, PageData) {
    let records = Invented::default().records();
    let document = json::render(&assess(&records), &PageData::of(&records, "title = \"a\"\n"));
    let mut value: Value = serde_json::from_str(&document).expect("JSON");
    let mut places = Vec::new();
    texts(&value, String::new(), &mut places);
    let mut changed = 0;
    for (index, place) in places.iter().enumerate() {
        let text = value.pointer_mut(place).expect("it is there");
        let before = text.clone();
        *text = Value::from(HOSTILE[(index + number) % HOSTILE.len()]);
        match json::read(&value.to_string()) {
            Ok(_) => changed += 1,
            Err(_) => *value.pointer_mut(place).expect("it is there") = before,
        }
    }
    assert!(changed > 60, "{changed} of {} texts are another's", places.len());
    json::read(&value.to_string()).expect("a document")
}

/// The paths of all texts in `value`, which is at `place`.
fn texts(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::String(_) => places.push(place),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| texts(item, format!("{place}/{index}"), places));
        }
        Value::Object(fields) => {
            let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
            fields.iter().for_each(|(name, item)| texts(item, format!("{place}/{}", escaped(name)), places));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Every form of a report on one run, on two, and on their history.
fn forms(analysis: &Analysis, page_data: &PageData) -> Vec<(&'static str, String)> {
    let other = Analysis { run: format!("{}2", analysis.run), ..analysis.clone() };
    let subjects = [analysis.clone(), other.clone()];
    let compared = compare(&subjects, &[None, None]).expect("two runs are compared");
    let runs = history(&[("one".to_owned(), analysis.clone()), ("two".to_owned(), other)]);
    let text = |form| terminal::render(analysis, Options { form, ..Options::default() });
    let mut forms = vec![
        ("text", text(Form::Long) + &text(Form::Short) + &text(Form::Answer)),
        ("text of a comparison", comparison::render(&compared, 120)),
        ("text of a history", past::render(&runs, 120)),
        ("page", html::render(analysis, page_data)),
        ("page of a comparison", html::comparison(&compared, &subjects)),
        ("page of a history", html::history(&runs)),
        ("markdown", markdown::render(analysis, Form::Long) + &markdown::render(analysis, Form::Short)),
        ("markdown of a comparison", comparison::markdown::render(&compared, Some(0.01))),
        ("csv", csv::render(analysis)),
        ("csv of otava", otava::render(analysis)),
        ("json", json::render(analysis, page_data)),
        ("json of a comparison", comparison::json::render(&compared, Some(0.01))),
        ("json of a history", past_json(&runs)),
        ("json of bencher", bencher::render(analysis)),
        ("junit", comparison::junit::render(&compared, Some(0.01))),
        ("lines of benchstat", benchstat::render(analysis)),
        ("lines of stacks", folded::render(analysis)),
    ];
    if let Ok(assessment) = observation::of_run(analysis) {
        forms.push(("json of oscal", oscal::render(&assessment)));
        forms.push(("json of sarif", sarif::render(&assessment)));
    }
    forms
}

/// What is wrong with a report of this form; `None` if hostile text stayed text.
fn fault(form: &str, text: &str) -> Option<String> {
    let plain = text.replace("\r\n", "\n");
    let steers = |sign: &char| sign.is_control() && !['\n', '\t'].contains(sign) || turns(*sign);
    let is_json = form.starts_with("json");
    // A JSON document keeps every character, and the program escapes those outside of ASCII.
    if let Some(sign) = plain.chars().filter(|sign| !is_json || sign.is_ascii()).find(steers) {
        return Some(format!("it holds {}", sign.escape_unicode()));
    }
    if is_json {
        return serde_json::from_str::<Value>(text).err().map(|error| error.to_string());
    }
    let held = |what: &[&str], text: &str| {
        what.iter().find_map(|what| {
            let at = text.find(what)?;
            let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
            Some(format!("{what:?} in {:?}", text[line..].lines().next().unwrap_or_default()))
        })
    };
    match form.split(' ').next().unwrap_or_default() {
        "page" | "junit" => held(&["<script", "<img", "]]>", "+1\">", "</textarea", "-->"], text)
            .or_else(|| (text.matches("</style>").count() > 2).then(|| "its style ends early".to_owned())),
        "markdown" => {
            let outside = without_code(text);
            held(
                &["<img", "<script", "](javascript", "](http://evil", "\n# x"],
                &outside.replace("\\<", "").replace("\\](", ""),
            )
        }
        "csv" => cells(&plain)
            .into_iter()
            .find(|cell| cell.trim_start().starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err()),
        _ => None,
    }
}

/// Markdown without its inline code and its fenced blocks.
fn without_code(text: &str) -> String {
    let mut outside = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        outside += &rest[..at];
        rest = &rest[at..];
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        if outside.ends_with('\\') && !outside.ends_with("\\\\") {
            rest = &rest[1..];
            continue;
        }
        let fence = "`".repeat(ticks);
        let mut from = ticks;
        let end = loop {
            let Some(found) = rest[from..].find(&fence) else { break None };
            let begin = from + found;
            let run = rest[begin..].len() - rest[begin..].trim_start_matches('`').len();
            if run == ticks {
                break Some(begin + run);
            }
            from = begin + run;
        };
        rest = end.map_or(&rest[ticks..], |end| &rest[end..]);
    }
    outside + rest
}

/// The fields of a table.
fn cells(text: &str) -> Vec<String> {
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    reader.records().flatten().flat_map(|record| record.iter().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn what_others_have_written_stays_text_in_every_form() {
    for number in 0..HOSTILE.len() {
        let (analysis, page_data) = hostile(number);
        let forms = forms(&analysis, &page_data);
        assert!(forms.iter().any(|(form, _)| *form == "json of oscal"), "observations too");
        let faults: Vec<String> =
            forms.iter().filter_map(|(form, text)| Some(format!("{form}: {}", fault(form, text)?))).collect();
        assert!(faults.is_empty(), "set {number}\n{}", faults.join("\n"));
    }
}

/// The test detects each kind of harm.
#[test]
fn harm_is_seen() {
    for (form, text) in [
        ("text", "\u{1b}[2J"),
        ("text", "\u{202e}"),
        ("page", "<script>"),
        ("page", "<p title=\"+1\"><b>"),
        ("junit", "\u{0}"),
        ("markdown", "a ![p](http://evil.example)"),
        ("markdown", "`a` <img src=x> `b`"),
        ("csv", "a,=1+1\r\n"),
        ("json", "{"),
    ] {
        assert!(fault(form, text).is_some(), "{form}: {text:?}");
    }
}
