//! The page of a whole run on paper: a browser prints it, and its pages are counted.
//!
//! Without a browser the test is skipped with a notice; with `CI` set it fails.

#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

use crate::support;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use support::{Bench, err, status};

/// Pages of A4 that a run with twenty comparisons may take.
const PAGES: usize = 6;

fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut names = std::env::split_paths(&folders)
        .flat_map(|folder| ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name)));
    let found = names.find(|path| path.exists());
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "chromium is not installed");
    if found.is_none() {
        eprintln!("SKIPPED: no chromium on this machine, so nothing was printed");
    }
    found
}

/// Ten arms in two cells, on invented time.
fn experiment() -> String {
    let arm = |number: u32| {
        let cost = f64::from(number * number) / 100.0;
        let protection = if number.is_multiple_of(2) { "seal" } else { "audit" };
        format!(
            "[[arm]]\nname = \"{protection} {number}\"\nprotections = [{{ use = \"{protection}\", cost = {cost} }}]\n"
        )
    };
    let arms: String = (1..=10).map(arm).collect();
    format!(
        "title = \"What twenty comparisons look like\"\ndatabase = \"simulated\"\n[settings]\nservice_us = 400\n[data]\n\
         records = 200\n[measure]\nbudget = \"4 min\"\nprecision = \"0.2%\"\n[[workload]]\nycsb = \"a\"\n[[workload]]\n\
         ycsb = \"c\"\n[[arm]]\nname = \"plain\"\n{arms}"
    )
}

/// Number of pages of the PDF document at `pdf`, which lists each of them.
fn pages(pdf: &Path) -> usize {
    let text = String::from_utf8_lossy(&std::fs::read(pdf).expect("the document")).into_owned();
    text.split("/Type /Page").skip(1).filter(|rest| !rest.starts_with('s')).count()
}

#[test]
fn twenty_comparisons_are_printed_on_six_pages() {
    let Some(chromium) = chromium() else { return };
    let bench = Bench::new("printed");
    bench.file("e.toml", &experiment());
    let ran = bench.tithe(&["run", "e.toml", "--quiet"]);
    assert_eq!(status(&ran), 0, "{}", err(&ran));
    let page = bench.run_folder().join("report.html");
    let text = std::fs::read_to_string(&page).expect("the page");
    assert_eq!(text.matches("<figure class=\"plot\">").count(), 2);
    assert!(text.contains("<section id=\"latency\"") && text.contains("<section id=\"drift\""));
    let pdf = bench.path("page.pdf");
    let printed = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", bench.path("profile").display()))
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium starts");
    assert!(printed.status.success(), "{}", err(&printed));
    let pages = pages(&pdf);
    assert!((1..=PAGES).contains(&pages), "{pages} pages");
}
