//! Golden pages of the samples, and laws for every page.

use expect_test::{ExpectFile, expect_file};
use proptest::prelude::*;

use super::*;
use crate::{
    Flag, Outcome,
    report::{number, sample},
};

/// The page of a sample with the page data of a run of a minute.
fn page(analysis: &Analysis) -> String {
    render(analysis, &sample::page_data(analysis))
}

fn check(analysis: &Analysis, expected: ExpectFile) {
    expected.assert_eq(&sample::without_style(&page(analysis)));
}

#[test]
fn a_full_cell() {
    check(&sample::full(), expect_file!["../golden/full.html"]);
}

#[test]
fn an_open_loop() {
    check(&sample::open_loop(), expect_file!["../golden/open_loop.html"]);
}

#[test]
fn a_plain_arm_again_and_several_cells() {
    check(&sample::controlled(), expect_file!["../golden/controlled.html"]);
}

#[test]
fn a_sweep() {
    check(&sample::swept(), expect_file!["../golden/swept.html"]);
}

#[test]
fn a_thousand_cells_fit_on_a_page() {
    let page = page(&sample::many(1000));
    assert_balanced(&page);
    assert!(page.len() < 2_100_000, "{} bytes", page.len());
    let count = |what: &str| page.matches(what).count();
    assert_eq!((count("id=\"cell-"), count("30 frames")), (1000, 1000));
    // The deciding figure of each protected arm is drawn; every column is written.
    assert_eq!(count("<circle class=\"point\""), 1000);
    assert!(count("<td class=\"costs\"") >= 2000, "figures without a drawing");
}

#[test]
fn facts_are_of_arms_in_cells() {
    let page = page(&sample::many(6));
    assert!(page.contains("<td>6 of 12 arms in 6 cells, c.clients-0 · tls and others</td>"), "{page}");
}

#[test]
fn a_failed_cell() {
    check(&sample::failed(), expect_file!["../golden/failed.html"]);
}

#[test]
fn no_cells() {
    check(&sample::empty(), expect_file!["../golden/empty.html"]);
}

#[test]
fn nothing_is_loaded_and_nothing_runs() {
    for analysis in sample::all() {
        let page = page(&analysis);
        for forbidden in [
            "http:",
            "https:",
            "<script",
            "@import",
            "url(//",
            "src=",
            "<link rel=\"stylesheet",
            "<iframe",
            "onload",
            "onclick",
        ] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        // Addresses within the page and the empty icon are the only ones.
        let addresses = page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default());
        assert!(addresses.clone().all(|address| address.starts_with('#') || address == "data:,"));
        for target in addresses.filter_map(|address| address.strip_prefix('#')) {
            let missing = !page.contains(&format!("id=\"{target}\""));
            // Without figures there is no chart, and without arms no evidence.
            assert!(!missing, "{} links to #{target}", analysis.title);
        }
    }
}

#[test]
fn tags_are_balanced_and_tables_are_even() {
    for analysis in sample::all() {
        assert_balanced(&page(&analysis));
    }
}

/// Every element that is opened is closed, in order.
fn assert_balanced(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.split_once("</style>").map_or("", |(_, body)| body);
    for tag in body.split('<').skip(1).filter_map(|rest| rest.split_once('>').map(|(tag, _)| tag)) {
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match tag {
            _ if tag.ends_with('/') || name == "wbr" => {}
            _ if tag.starts_with('/') && name == "head" => {}
            _ if tag.starts_with('/') && (name == "html") => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "closed: {tag}"),
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn doubt_and_noise_are_seen() {
    let page = page(&sample::full());
    let (first_screen, rest) = page.split_once("</header>").expect("the first screen");
    let row = |within: &str, arm: &str| {
        let row = within.split("<tr").find(|row| row.contains(&format!("<th scope=\"row\">{arm}")));
        row.and_then(|row| row.split("</tr>").next()).unwrap_or_else(|| panic!("no row {arm}")).to_owned()
    };
    let drawn = |arm: &str| row(first_screen, arm);
    assert!(
        drawn("audit").contains(" doubted\"") && drawn("audit").contains("<span>(<b>+12.9 %</b>"),
        "{}",
        drawn("audit")
    );
    assert!(drawn("fscrypt").contains("class=\"fog\"") && !drawn("fscrypt").contains("class=\"point\""));
    assert!(drawn("tls").contains("class=\"point\"") && !drawn("tls").contains("doubted"));
    let (_, further) = rest.split_once("class=\"forest").expect("the other costs");
    for (arm, word) in [("audit", "unproven"), ("luks", "disproven")] {
        let row = row(further, arm);
        assert!(row.starts_with(" class=\"doubted\"") && row.contains(word) && row.contains("(<b>"), "{row}");
    }
    assert!(!row(further, "tls").contains("doubted") && !row(further, "tls").contains("proven"));
}

#[test]
fn what_the_first_screen_and_the_panels_draw_is_drawn_once() {
    let page = page(&sample::full());
    let (_, rest) = page.split_once("class=\"forest").expect("the other costs");
    let (further, _) = rest.split_once("</table>").expect("its end");
    let heads: Vec<&str> = further.split("<th scope=\"col\">").skip(1).filter_map(|it| it.split('<').next()).collect();
    assert_eq!(heads, ["arm", "CPU per op", "time per op"], "the deciding figure or a percentile is drawn twice");
    let sections: Vec<&str> = page.split("<section id=\"").skip(1).filter_map(|it| it.split('"').next()).collect();
    let expected =
        ["latency", "drift", "costs", "levels", "evidence", "cells", "settings", "machine", "warnings", "again", "how"];
    assert_eq!(sections, expected);
}

#[test]
fn the_evidence_is_a_mark_for_each_arm_and_claim() {
    let page = page(&sample::full());
    let matrix = page.split("class=\"matrix\"").nth(1).and_then(|it| it.split("</table>").next()).expect("the matrix");
    let row = |claim: &str| {
        let row = matrix.split("<tr>").find(|row| row.contains(claim)).unwrap_or_else(|| panic!("no {claim}"));
        let places = row.split("<td").skip(1).map(|place| place.split("aria-hidden=\"true\">").nth(1).unwrap_or("-"));
        places.filter_map(|place| place.split('<').next()).collect::<Vec<_>>().join(" ")
    };
    // tls, audit, luks, columns, fscrypt, auth
    assert_eq!(row("no field value in the clear between"), "✓ - - - - -");
    assert_eq!(row("every statement is in the audit log"), "- ? - - - -");
    assert_eq!(row("no field value in the clear below"), "- - ✗ ✓ ✓ -");
    assert_eq!(row("equal values have different"), "- - - ! - -");
    // Proven arms are folded, the others are unfolded.
    assert_eq!(page.matches("<details class=\"proof\"><summary>").count(), 4);
    assert_eq!(page.matches("<details class=\"proof\" open><summary>").count(), 2);
}

#[test]
fn a_cost_that_moved_is_seen_to_move() {
    let page = page(&sample::full());
    let panel = |arm: &str| {
        let panel = page.split("<figure class=\"panel ").find(|it| it.contains(&format!("<figcaption>{arm} ")));
        panel.and_then(|panel| panel.split("</figure>").next()).unwrap_or_else(|| panic!("no panel of {arm}"))
    };
    let heights = |arm: &str, class: &str| {
        let path = panel(arm).split(&format!("class=\"{class}\" d=\"M")).nth(1).and_then(|it| it.split('"').next());
        let parts = path.unwrap_or_default().split('M').map(|part| part.split([' ', 'h', 'H']).nth(1));
        parts.map(|height| height.and_then(|it| it.parse::<f64>().ok()).expect("a height")).collect::<Vec<_>>()
    };
    assert_eq!((heights("tls", "frames").len(), heights("audit", "frames").len()), (30, 30));
    // Less is lower, which means a larger y coordinate.
    assert!(heights("audit", "steps").is_sorted_by(|one, other| one > other), "{:?}", heights("audit", "steps"));
    assert!(panel("audit").contains("⚑ moved") && !panel("tls").contains("⚑ moved"));
    assert_eq!(heights("tls", "steps").len(), 5, "a step for each start");
    assert_eq!(heights("audit", "steps").len(), 8, "a step for each eighth of the run");
}

#[test]
fn what_is_added_is_told_of_transactions_of_three_sizes() {
    // TLS adds 15.6 µs to an operation.
    let page = page(&sample::full());
    let row = page.split("<tr").find(|row| row.contains("<th scope=\"row\">tls ")).expect("a row");
    for (size, share) in [("1", "1.6 %"), ("5", "0.31 %"), ("50", "0.03 %")] {
        assert!(row.contains(&format!("data-of=\"{size} ms\">{share}</td>")), "{size}: {row}");
    }
}

#[test]
fn every_estimate_is_on_the_page() {
    let analysis = sample::full();
    let page = page(&analysis);
    for estimate in analysis.cells.iter().flat_map(|cell| &cell.arms).flat_map(|arm| &arm.estimates) {
        let figure = number::cost(&estimate.effect, estimate.verdict).to_string();
        assert!(page.contains(&figure), "{figure}");
    }
    assert_eq!(page, self::page(&analysis), "the same analysis gives the same bytes");
}

#[test]
fn a_thousand_cells_make_a_page_of_costs() {
    let mut analysis = sample::open_loop();
    let cell = analysis.cells[0].clone();
    analysis.cells = (0..1000).map(|number| CellAnalysis { id: format!("a-{number}"), ..cell.clone() }).collect();
    let page = page(&analysis);
    assert!(page.len() < 5_000_000, "{}", page.len());
    assert_balanced(&page);
}

/// Puts `foreign` into every text of the analysis that may come from outside.
fn hostile(foreign: &str) -> Analysis {
    let mut analysis = sample::full();
    for text in [&mut analysis.run, &mut analysis.title, &mut analysis.database, &mut analysis.tithe] {
        foreign.clone_into(text);
    }
    analysis.warnings.push(foreign.to_owned());
    let machine = &mut analysis.machine;
    for text in
        [&mut machine.processor, &mut machine.kernel, &mut machine.system, &mut machine.clock, &mut machine.file_system]
    {
        foreign.clone_into(text);
    }
    machine.crypto_flags.push(foreign.to_owned());
    machine.kernel_crypto.push(foreign.to_owned());
    for cell in &mut analysis.cells {
        for text in [&mut cell.id, &mut cell.workload, &mut cell.resources, &mut cell.arrivals, &mut cell.mode] {
            foreign.clone_into(text);
        }
        cell.ending = Some(CellEnding::Failed(foreign.to_owned()));
        cell.notes.push((foreign.to_owned(), foreign.to_owned()));
        cell.invalid.push((1, foreign.to_owned()));
        for arm in &mut cell.arms {
            foreign.clone_into(&mut arm.name);
            foreign.clone_into(&mut arm.facts.version);
            arm.facts.facts.insert(foreign.to_owned(), foreign.to_owned());
            arm.difference.push(foreign.to_owned());
            arm.protections.push(foreign.to_owned());
            if let Proof::Unproven(reasons) | Proof::Disproven(reasons) = &mut arm.proof {
                reasons.push(foreign.to_owned());
            }
            for finding in &mut arm.findings {
                for text in [&mut finding.claim, &mut finding.protected, &mut finding.control, &mut finding.protection]
                {
                    foreign.clone_into(text);
                }
            }
            for level in &mut arm.levels {
                level.name = format!("latency_p50_{foreign}").parse().expect("a percentile");
            }
            for estimate in &mut arm.estimates {
                foreign.clone_into(&mut estimate.title);
                foreign.clone_into(&mut estimate.text);
                if estimate.verdict == Outcome::TooNoisy {
                    estimate.flags.push(Flag::NotEnoughFrames);
                }
            }
        }
    }
    analysis
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_foreign_text_becomes_markup(around in "[<>&\"'/=a ]{0,6}") {
        let foreign = format!("{around}<img x=1>\"'><svg onfocus=1>{around}");
        let analysis = hostile(&foreign);
        let mut page_data = sample::page_data(&analysis);
        foreign.clone_into(&mut page_data.experiment);
        for curve in &mut page_data.curves {
            foreign.clone_into(&mut curve.operation);
        }
        let page = render(&analysis, &page_data);
        prop_assert!(!page.contains("<img"));
        prop_assert!(!page.contains("<svg onfocus"));
        assert_balanced(&page);
    }
}

/// Relative luminance of `#rrggbb` or `#rgb` (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let digits = colour.trim_start_matches('#');
    let long: String =
        if digits.len() == 3 { digits.chars().flat_map(|digit| [digit, digit]).collect() } else { digits.to_owned() };
    let channel = |index: usize| {
        let value = f64::from(u8::from_str_radix(&long[index..index + 2], 16).expect("a colour")) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(2) + 0.0722 * channel(4)
}

#[test]
fn every_text_can_be_read_in_light_and_dark() {
    let style = include_str!("style.css");
    let schemes: Vec<&str> =
        style.split(":root{").skip(1).take(2).map(|rest| rest.split('}').next().unwrap_or_default()).collect();
    assert_eq!(schemes.len(), 2);
    for scheme in schemes {
        let colour = |name: &str| {
            let value = scheme.split(&format!("--{name}:")).nth(1).and_then(|rest| rest.split(';').next());
            luminance(value.unwrap_or_else(|| panic!("no {name}")))
        };
        for name in ["ink", "soft", "accent", "cost", "nil", "gain", "noise", "warn", "bad", "good"] {
            let (one, other) = (colour(name), colour("paper"));
            let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(contrast >= 4.5, "{name} has a contrast of {contrast:.2}");
        }
    }
}
