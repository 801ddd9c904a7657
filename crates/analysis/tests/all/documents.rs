//! Reports as data: those of a run made again from its document, and the page of every archived document.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tithe_analysis::{
    Analysis,
    assess::assess,
    report::{
        benchstat, csv,
        html::{self, PageData},
        json, markdown,
        terminal::{self, Options},
        view::Form,
    },
};
use tithe_model::experiment::Arrivals;

use crate::synthetic::{Invented, hour};

/// Every report that is made from an analysis and its page data.
fn reports(analysis: &Analysis, page_data: &PageData) -> [String; 7] {
    [
        terminal::render(analysis, Options { form: Form::Long, ..Options::default() }),
        terminal::render(analysis, Options { form: Form::Answer, ..Options::default() }),
        html::render(analysis, page_data),
        markdown::render(analysis, Form::Long),
        json::render(analysis, page_data),
        csv::render(analysis),
        benchstat::render(analysis),
    ]
}

#[test]
fn reports_of_a_document_are_those_of_the_run() {
    let runs = [
        Invented::default(),
        Invented { frames: 6, ..Invented::default() },
        Invented { frames: 0, ..Invented::default() },
        Invented { frames: 700, clients: 64, ..Invented::default() },
        Invented { arrivals: Arrivals::Poisson(500.0), wait: 0.6, ..Invented::default() },
    ];
    for records in runs.map(|invented| invented.records()) {
        let (analysis, page_data) = (assess(&records), PageData::of(&records, "title = \"a\"\n"));
        let document = json::render(&analysis, &page_data);
        let (analysis_again, story_again) = json::read(&document).expect("a document");
        assert_eq!(reports(&analysis, &page_data), reports(&analysis_again, &story_again));
    }
}

#[test]
fn a_document_is_small() {
    let document = json::render(&assess(hour()), &PageData::of(hour(), ""));
    assert!(document.len() < 120_000, "{} bytes", document.len());
    let longest = document.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    assert!(longest < 700, "a line has {longest} columns");
}

/// The archived documents: those of published reports, and one that no test rewrites.
fn kept() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let published = fs::read_dir(here.join("../../docs/reports/data")).into_iter().flatten().flatten();
    let published = published.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "json"));
    published.chain([here.join("tests/golden/kept.json")]).collect()
}

#[test]
fn the_page_of_every_kept_document_can_be_made() {
    let schema = serde_json::from_str(json::schema()).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    for path in kept() {
        let text = fs::read_to_string(&path).expect("a document");
        let (analysis, page_data) = json::read(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        let page = html::render(&analysis, &page_data);
        for cell in &analysis.cells {
            assert!(page.contains(&format!("Cell {}", cell.id)), "{}: no cell {}", path.display(), cell.id);
        }
        assert!(page.contains("While it was measured"), "{}", path.display());
        // Programs that report no latencies have nothing to draw.
        let has_latencies = text.contains("latency_p50");
        assert!(page.contains("class=\"panel\"") || !has_latencies, "{}", path.display());
        assert!(schema.is_valid(&serde_json::from_str(&text).expect("JSON")), "{}", path.display());
        assert!(json::render(&analysis, &page_data) == text, "{}: it would be written otherwise today", path.display());
    }
}
