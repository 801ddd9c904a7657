//! The pages of `docs/inspect`: the output of `tithe inspect` for one good and one bad server of each product, from the
//! run of these tests that wrote the page (`UPDATE_EXPECT=1`).

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use expect_test::expect_file;
use tithe_machine::launch::Address;
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, State},
    product::Product,
};

use super::{Deception, Sandbox};

/// `seen` without the parts that change between starts: the port, the paths of the server and its certificates, and how
/// a connection ended.
pub fn without_places(sandbox: &Sandbox, seen: &str) -> String {
    let Address::Tcp { port, .. } = &sandbox.server.address else { return seen.to_owned() };
    let seen = seen.replace(&sandbox.server.folder.display().to_string(), "FOLDER").replace(&port.to_string(), "PORT");
    let credentials = sandbox.setup.credentials.authority.parent().unwrap_or(Path::new("/"));
    let seen = seen.replace(&credentials.display().to_string(), "CREDENTIALS");
    // A client sees one or the other, by chance.
    seen.replace("Connection reset by peer (os error 104)", "the server closed the connection")
}

/// Compares the page of `database` with the results for its `good` and its `bad` server.
pub fn check_page(database: &dyn Product, entries: &[Deception], samples: &BTreeMap<String, Vec<FeatureStatus>>) {
    let [good, bad] = ["good", "bad"].map(|kind| samples.get(kind).unwrap_or_else(|| panic!("no {kind} server")));
    let cell = |cells: &[FeatureStatus], feature| cells.iter().find(|cell| cell.feature == feature).cloned();
    let mut text = format!("# A good and a bad {}\n\n| row | good | bad |\n|---|---|---|\n", database.title());
    for feature in Feature::ALL {
        let state =
            |cells| cell(cells, feature).map_or("", |cell| cell.state.words().trim_end_matches(" by this product"));
        let _ = writeln!(text, "| {} | {} | {} |", feature.title(), state(good), state(bad));
    }
    let what = |cells: &[FeatureStatus], feature: Feature| {
        let cell = cell(cells, feature)?;
        // The table shows it; about files and logs there is more to report.
        if cell.state == State::NotOffered && ![Feature::AtRest, Feature::Auditing].contains(&feature) {
            return None;
        }
        let found: String = cell.findings.iter().map(|finding| format!(" `{}`", finding.id)).collect();
        let (state, scope) = (cell.state.words(), cell.scope.words());
        Some(format!("{state}, {scope}: {}{found}", cell.seen.replace('<', "\\<")))
    };
    let line = |cells: &[FeatureStatus], feature: Feature| {
        let said = what(cells, feature)?;
        let before = Feature::ALL.into_iter().take_while(|other| *other != feature);
        let same = before.into_iter().find(|other| what(cells, *other).as_ref() == Some(&said));
        let said = same.map_or(said, |other| format!("as {}", other.title()));
        Some(format!("- **{}**: {said}\n", feature.title()))
    };
    for (kind, cells) in [("good", good), ("bad", bad)] {
        let _ = write!(text, "\n## The {kind} one\n\n");
        let entry = entries.iter().find(|entry| entry.sample == kind).expect("an entry");
        text.push_str(&made(entry));
        for feature in Feature::ALL {
            let said = line(cells, feature);
            // Text that is the same for the good server is above.
            if kind == "good" || said != line(good, feature) {
                text.push_str(&said.unwrap_or_default());
            }
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/inspect");
    expect_file![folder.join(format!("{}.md", database.id()))].assert_eq(&text);
}

/// The administrator's statements, and the content of files, before the check.
fn made(entry: &Deception) -> String {
    let mut lines = entry.statements.clone();
    lines.extend(entry.settings.iter().map(|(name, value)| format!("{name} = {value}")));
    lines.extend(entry.files.iter().map(|(name, file)| format!("{name}:\n{}", file.trim_end())));
    if lines.is_empty() { String::new() } else { format!("```text\n{}\n```\n\n", lines.join("\n")) }
}
