//! A comparison of runs as text for a terminal: a sentence, an interval bar for each run, refusals. All media use the
//! same sentences; the other media are [`markdown`], [`json`], [`junit`] and the HTML page.

pub mod json;
pub mod junit;
pub mod markdown;

use super::{live, number, table, terminal::WIDTH_MIN, view, words};
use crate::{
    Interval, Outcome, Proof,
    compare::{Change, Comparison, Counted, Difference, Match, Side},
};

/// Largest width of an interval bar in columns, and smallest width of one that is shown.
const BAR: usize = 25;
const BAR_MIN: usize = 9;

/// The comparison, at most `width` columns wide, ending with a line break.
pub fn render(comparison: &Comparison, width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut lines = table::wrap(&answer(comparison), width);
    let widest = comparison.runs.iter().map(|run| table::width(run)).max().unwrap_or(0).min(width / 3);
    for matched in &comparison.matches {
        lines.push(String::new());
        lines.push(table::cut(&format!("{} · {} ({})", matched.cell, matched.arm, matched.title), width));
        lines.extend(rows(comparison, matched, widest, width - 2).iter().map(|row| format!("  {row}")));
        for sentence in sentences(comparison, matched) {
            lines.extend(table::wrap(&sentence, width - 2).iter().map(|line| format!("  {line}")));
        }
    }
    for (title, texts) in [("Not compared", &comparison.reasons()), ("To know", &comparison.notes)] {
        if !texts.is_empty() {
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(texts.iter().flat_map(|text| table::wrap(text, width - 2)).map(|line| format!("  {line}")));
        }
    }
    lines.iter_mut().for_each(view::clean);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The run with the smallest cost, in one sentence.
pub fn answer(comparison: &Comparison) -> String {
    let all = comparison.matches.len();
    if comparison.runs.len() < 2 {
        return format!("One run, {}: nothing to compare it with.", words::plural(all as u64, "cost"));
    }
    let of = |count: usize| if all == 1 { String::new() } else { format!(" in {count} of {all} comparisons") };
    let least: Vec<usize> = comparison.matches.iter().filter_map(Match::least).collect();
    let mut told: Vec<String> = Vec::new();
    for (run, name) in comparison.runs.iter().enumerate() {
        let times = least.iter().filter(|other| **other == run).count();
        let word = if comparison.runs.len() > 2 { "least" } else { "less" };
        if times > 0 {
            told.push(format!("{name} costs {word}{}", of(times)));
        }
    }
    let open = all - least.len();
    match (told.is_empty(), open) {
        (true, _) => no_order(comparison),
        (false, 0) => format!("{}.", told.join("; ")),
        (false, open) => format!("{}; no clear order in {open}.", told.join("; ")),
    }
}

/// The text if no run is certainly the cheapest: how many comparisons found no difference, were too noisy, or had too
/// few costs that count.
fn no_order(comparison: &Comparison) -> String {
    let all = comparison.matches.len();
    let unranked = comparison.matches.iter().filter(|it| it.differences().is_empty()).count();
    let noisy = |it: &&Match| it.differences().iter().any(|it| !is_none(it, comparison.margin));
    let noisy = comparison.matches.iter().filter(noisy).count();
    let parts = [
        (all - unranked - noisy, "no difference between the runs was found"),
        (noisy, "too noisy to tell"),
        (unranked, "nothing could be ranked"),
    ];
    let told = parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, words)| match count == all {
        true => words.to_owned(),
        false => format!("{words} in {count} of {all} comparisons"),
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let (first, rest) = told.split_at(told.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}.", first.to_uppercase())
}

/// True if two costs differ by at most the margin, a natural-log ratio.
fn is_none(difference: &Difference<'_>, margin: f64) -> bool {
    let margin = margin.exp_m1();
    difference.points.low >= -margin && difference.points.high <= margin
}

/// The results of one match, run against run.
pub fn sentences(comparison: &Comparison, matched: &Match) -> Vec<String> {
    let name = |side: &Side| comparison.runs[side.run].as_str();
    let cost = |side: &Side| number::cost(&side.estimate.effect, Outcome::Costs);
    let differences = matched.differences();
    let sentence = |difference: &Difference<'_>| {
        let Difference { less, more, points, ratio } = difference;
        if difference.reported() {
            return format!(
                "Costs less in {} than in {}: {} against {}, {} between them, a ratio of protected ÷ plain of {}.",
                name(less),
                name(more),
                cost(less).lead,
                cost(more).lead,
                number::points(points),
                number::factor(ratio),
            );
        }
        let says = if is_none(difference, comparison.margin) { "No difference found" } else { "Too noisy to tell" };
        format!("{says} between {} and {}: {}.", name(less), name(more), number::points(points))
    };
    let mut told: Vec<String> = differences.iter().map(sentence).collect();
    for side in matched.sides.iter().filter(|side| !side.counts()) {
        told.push(format!("{} is not ranked: {}.", name(side), not_ranked(side)));
    }
    told
}

/// Why a cost does not count.
fn not_ranked(side: &Side) -> &'static str {
    match side.proof {
        Proof::Proven | Proof::ByClaim | Proof::Setting | Proof::Baseline if !side.estimate.is_symmetric() => {
            "its set-up was not symmetric"
        }
        Proof::Proven | Proof::ByClaim | Proof::Setting | Proof::Baseline => {
            side.estimate.not_held().unwrap_or("not enough data")
        }
        Proof::Unproven(_) => "its protection was not proven to be on",
        Proof::ToldByProvider(_) => "only its provider reports that its protection was on",
        Proof::Disproven(_) => "its protection was disproven",
    }
}

/// The sides that are compared with a threshold: those of the later runs, or that of a single run.
fn judged(matched: &Match) -> impl Iterator<Item = &Side> {
    matched.sides.iter().skip(usize::from(matched.sides.len() > 1))
}

/// The sides behind the change from the first run to `run`; other runs do not matter for it.
fn behind(matched: &Match, run: usize) -> impl Iterator<Item = &Side> {
    matched.sides.iter().take(1).chain(matched.sides.iter().skip(1).filter(move |side| side.run == run))
}

/// Why the change up to `run` cannot be compared with a threshold, although both costs are proven.
fn not_held(comparison: &Comparison, matched: &Match, run: usize) -> String {
    let uncounted = behind(matched, run).find(|side| !side.counts());
    uncounted
        .map_or("not enough data".to_owned(), |side| format!("{} in {}", not_ranked(side), comparison.runs[side.run]))
}

/// The proven costs of `matched` that could not be compared with a threshold, each with the reason.
fn not_judged_of(comparison: &Comparison, matched: &Match) -> Vec<String> {
    let changes = matched.changes();
    let proven =
        judged(matched).map(|side| side.run).filter(|run| behind(matched, *run).all(|side| side.proof.stands()));
    let open = proven.filter(|run| changes.iter().all(|change| change.run != *run));
    let told = open.map(|run| {
        let (cell, arm, name) = (&matched.cell, &matched.arm, &comparison.runs[run]);
        let why = not_held(comparison, matched, run);
        format!("{cell} · {arm}: the cost in {name} was not compared with the threshold: {why}")
    });
    told.collect()
}

/// Everything that could not be compared with a threshold, each with the reason.
pub fn not_judged(comparison: &Comparison) -> Vec<String> {
    let refused = comparison.refused.iter().filter(|refusal| refusal.unjudged);
    let refused = refused.map(|refusal| format!("{} So it was not compared with the threshold.", refusal.reason));
    comparison.matches.iter().flat_map(|matched| not_judged_of(comparison, matched)).chain(refused).collect()
}

/// The levels without and with the protection, and the number of starts of the servers: `38.4 → 54.0 µs, 8 starts`.
/// Levels belong to one run; hosts have none: `5 hosts`.
pub fn rests_on(side: &Side) -> String {
    match side.counted {
        Counted::Hosts => return words::plural(side.estimate.count as u64, "host"),
        Counted::Repeats => return format!("{} on one host", words::plural(side.estimate.count as u64, "repeat")),
        Counted::Frames => {}
    }
    let levels = side.estimate.levels.map(|(plain, protected)| number::change(plain, protected, &side.estimate.unit));
    let starts = (side.estimate.starts > 0).then(|| words::plural(side.estimate.starts as u64, "start"));
    levels.into_iter().chain(starts).collect::<Vec<_>>().join(", ")
}

/// The cost of a side with its interval; in parentheses if its protection is not proven.
pub fn figure(side: &Side) -> String {
    let figure = number::cost(&side.estimate.effect, side.estimate.verdict);
    if side.proof.stands() { figure.to_string() } else { format!("({figure})") }
}

/// Every change beyond `threshold`, a share; if there is none, a sentence with the largest change.
pub fn against_threshold(comparison: &Comparison, threshold: f64) -> Vec<String> {
    let changes = || comparison.matches.iter().flat_map(|it| it.changes().into_iter().map(move |change| (it, change)));
    let limit = number::digits(100.0 * threshold);
    let place = |(matched, change): &(&Match, Change)| {
        format!("{} · {}: the cost in {}", matched.cell, matched.arm, comparison.runs[change.run])
    };
    let (grew, changed, unit) =
        if comparison.runs.len() > 1 { ("grew by", "changed by", " points") } else { ("is", "is", " %") };
    let beyond = changes().filter(|(_, change)| change.beyond(threshold)).map(|it| {
        let least = number::digits(100.0 * it.1.points.low);
        format!("{} {grew} {}, at least {least}{unit}: beyond {limit}{unit}", place(&it), told(comparison, &it.1))
    });
    let beyond: Vec<String> = beyond.collect();
    if !beyond.is_empty() {
        return beyond;
    }
    let most = changes().max_by(|one, other| one.1.points.low.total_cmp(&other.1.points.low));
    let count = words::plural(changes().count() as u64, "comparison");
    vec![most.map_or("no cost could be compared with the threshold".to_owned(), |it| {
        let nearest = format!("{} {changed} {}", place(&it), told(comparison, &it.1));
        format!("no cost is certainly beyond {limit}{unit}, in {count}; nearest to it, {nearest}")
    })]
}

/// A change in points, or the cost of a single run.
fn told(comparison: &Comparison, change: &Change) -> String {
    match comparison.runs.len() {
        1 => number::cost(&change.ratio, Outcome::Costs).to_string(),
        _ => number::points(&change.points),
    }
}

/// Bar, cost, levels and starts of each run; levels and starts are on a separate line if there is little room.
fn rows(comparison: &Comparison, matched: &Match, names: usize, width: usize) -> Vec<String> {
    let scale = scale(matched);
    let widest = |of: fn(&Side) -> String| matched.sides.iter().map(|it| table::width(&of(it))).max().unwrap_or(0);
    let (figures, behind) = (widest(figure), widest(rests_on));
    let room = width.saturating_sub(names + figures + behind + 6);
    let bar = if room >= BAR_MIN { room.min(BAR) } else { 0 };
    let row = |side: &Side| {
        let name = table::pad(&table::cut(&comparison.runs[side.run], names), names);
        // A cost that is too noisy has no point in its bar.
        let noisy = side.estimate.verdict == Outcome::TooNoisy;
        let estimate = if noisy { f64::NAN } else { side.estimate.effect.estimate };
        let drawn = Interval { estimate, ..side.estimate.effect };
        let bar = if bar > 0 { format!("{}  ", live::bar(Some(&drawn), (-scale, scale), bar)) } else { String::new() };
        let cost = format!("{name}  {bar}{}", table::pad(&figure(side), figures));
        match names + figures + behind + 4 > width {
            true => vec![cost, format!("{}  {}", " ".repeat(names), rests_on(side))],
            false => vec![format!("{cost}  {}", rests_on(side))],
        }
    };
    matched.sides.iter().flat_map(row).collect()
}

/// Half of the width of the bars' scale: the furthest end of any interval.
fn scale(matched: &Match) -> f64 {
    let ends = matched.sides.iter().flat_map(|side| [side.estimate.effect.low, side.estimate.effect.high]);
    ends.filter(|end| end.is_finite()).map(f64::abs).fold(0.01, f64::max)
}

#[cfg(test)]
mod tests {
    use expect_test::{expect, expect_file};

    use super::*;
    use crate::{Analysis, compare::compare, report::sample};

    /// Two runs, with a higher cost of TLS in the second, and a third cell in only one of them.
    fn compared() -> Comparison {
        let (before, after) = runs();
        compare(&[before, after], &["before", "<after>"].map(|label| Some(label.to_owned()))).expect("runs alike")
    }

    fn runs() -> (Analysis, Analysis) {
        let before = sample::full();
        let mut after = Analysis { run: "later".to_owned(), ..before.clone() };
        let effect = &mut after.cells[0].arms[1].estimates[0].effect;
        let more = |effect: f64| (effect.exp() + 0.12).ln();
        *effect = Interval { estimate: more(effect.estimate), low: more(effect.low), high: more(effect.high) };
        after.cells.push(crate::CellAnalysis { id: "other".to_owned(), ..after.cells[0].clone() });
        (before, after)
    }

    #[test]
    fn what_a_threshold_was_not_held_against_is_an_error_of_its_test() {
        let (before, mut after) = runs();
        after.cells[0].arms[1].estimates.clear();
        let compared = compare(&[before, after], &[]).expect("an arm is left");
        assert!(junit::render(&compared, Some(0.05)).contains("<error message=\"Arm tls of cell"));
        assert!(junit::render(&compared, None).contains("<skipped message=\"Arm tls of cell"));
    }

    #[test]
    fn a_cost_that_does_not_count_was_not_held_against_the_threshold_and_the_reason_is_told() {
        let told = |change: &dyn Fn(&mut crate::Estimate)| {
            let (before, mut after) = runs();
            change(&mut after.cells[0].arms[1].estimates[0]);
            let compared = compare(&[before, after], &["A", "B"].map(|label| Some(label.to_owned())));
            let compared = compared.expect("runs alike");
            let lines: Vec<String> = not_judged(&compared);
            let [with, without] = [Some(0.05), None].map(|threshold| junit::render(&compared, threshold));
            (lines, with, without)
        };
        let asymmetric = |estimate: &mut crate::Estimate| estimate.flags.push(crate::Flag::Asymmetric);
        let (lines, with, without) = told(&asymmetric);
        // Arms that are not proven are missing here: the status reports their proof.
        expect![
            "c/in-memory · tls: the cost in B was not compared with the threshold: its set-up was not symmetric in B"
        ]
        .assert_eq(&lines.join("\n"));
        let test = |outcome: &str| format!("\"tls in B\"><{outcome} message=\"its set-up was not symmetric in B\">");
        assert!(with.contains(&test("error")) && with.contains("errors=\"3\""), "{with}");
        let (before, mut after) = runs();
        asymmetric(&mut after.cells[0].arms[1].estimates[0]);
        let compared = compare(&[before, after], &["A", "B"].map(|label| Some(label.to_owned()))).expect("runs alike");
        for rendered in [markdown::render, json::render] {
            assert!(rendered(&compared, Some(0.05)).contains("the cost in B was not compared with the threshold"));
            assert!(!rendered(&compared, None).contains("not held"));
        }
        // A cost that is proven and not ranked is marked with the reason.
        let text = markdown::render(&compared, None);
        assert!(text.contains("| B its set-up was not symmetric |"), "{text}");
        let document: serde_json::Value = serde_json::from_str(&json::render(&compared, None)).expect("JSON");
        let counts = |run: usize| document["tithe_comparison"]["matches"][0]["runs"][run]["counts"].as_bool();
        assert_eq!([counts(0), counts(1)], [Some(true), Some(false)]);
        assert!(without.contains(&test("skipped")), "{without}");
        let open = |estimate: &mut crate::Estimate| estimate.effect.high = f64::INFINITY;
        assert!(told(&open).1.contains("<error message=\"not enough data in B\">"));
        assert_eq!(told(&|_| ()).0, [] as [&str; 0]);
    }

    #[test]
    fn the_test_of_a_single_run_has_its_cost_and_no_points() {
        let compared = compare(&[runs().0], &[]).expect("one run");
        let text = junit::render(&compared, Some(0.1));
        assert!(text.contains("<failure message=\"+40.5 % ["), "{text}");
    }

    #[test]
    fn every_form_says_how_far_costs_are_apart() {
        let compared = compared();
        expect_file!["../golden/changed.txt"].assert_eq(&render(&compared, 100));
        expect_file!["../golden/changed.md"].assert_eq(&markdown::render(&compared, Some(0.05)));
        expect_file!["../golden/changed.json"].assert_eq(&json::render(&compared, Some(0.05)));
        expect_file!["../golden/changed.junit.xml"].assert_eq(&junit::render(&compared, Some(0.05)));
    }

    /// The answer for two equal runs about TLS in two cells, after a `change` of that arm in the second run.
    fn answered(change: impl Fn(usize, &mut crate::ArmAnalysis)) -> String {
        let before = sample::many(2);
        let mut after = Analysis { run: "later".to_owned(), ..before.clone() };
        after.cells.iter_mut().enumerate().for_each(|(cell, it)| change(cell, &mut it.arms[1]));
        answer(&compare(&[before, after], &[]).expect("runs alike"))
    }

    #[test]
    fn what_was_not_found_is_not_what_could_not_be_seen() {
        let disproven = || Proof::Disproven(vec!["no TLS on the wire".to_owned()]);
        let exactly = |arm: &mut crate::ArmAnalysis, half: f64| {
            let Interval { estimate, low, high } = &mut arm.estimates[0].effect;
            (*low, *high) = (*estimate - half, *estimate + half);
        };
        assert_eq!(answered(|_, arm| arm.proof = disproven()), "Nothing could be ranked.");
        assert_eq!(answered(|_, arm| exactly(arm, 0.2)), "Too noisy to tell.");
        let told = answered(|cell, arm| match cell {
            0 => exactly(arm, 0.001),
            _ => arm.proof = disproven(),
        });
        expect!["No difference between the runs was found in 1 of 2 comparisons; nothing could be ranked in 1 of 2 comparisons."].assert_eq(&told);
    }

    #[test]
    fn an_unproven_run_hides_no_failure_of_another() {
        let (before, after) = runs();
        let mut unproven = Analysis { run: "last".to_owned(), ..before.clone() };
        unproven.cells[0].arms[1].proof = Proof::Unproven(vec!["the log was lost".to_owned()]);
        let labels = ["A", "B", "C"].map(|label| Some(label.to_owned()));
        let text = junit::render(&compare(&[before, after, unproven], &labels).expect("runs alike"), Some(0.05));
        let of_tls = |run: &str| {
            let name = format!("name=\"tls in {run}\">");
            text.lines().find_map(|line| Some(line.split_once(&name)?.1.to_owned())).expect("a test")
        };
        assert!(of_tls("B").starts_with("<failure message=\"+12.0 points"), "{text}");
        assert!(of_tls("C").starts_with("<error message=\"UNPROVEN in C: "), "{text}");
    }

    #[test]
    fn a_threshold_is_told_in_words_whether_or_not_something_is_beyond_it() {
        let told = |threshold: f64| against_threshold(&compared(), threshold).join("\n");
        expect!["c/in-memory · tls: the cost in <after> grew by +12.0 points [9.0, 15.0], at least 9.0 points: beyond 5.0 points"].assert_eq(&told(0.05));
        expect!["no cost is certainly beyond 50 points, in 4 comparisons; nearest to it, c/in-memory · tls: the cost in <after> changed by +12.0 points [9.0, 15.0]"].assert_eq(&told(0.5));
        assert!(!junit::render(&compared(), Some(0.5)).contains("<failure"));
        assert!(!junit::render(&compared(), None).contains("<failure"));
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for width in WIDTH_MIN..140 {
            for line in render(&compared(), width).lines() {
                assert!(table::width(line) <= width, "{width}: {line}");
            }
        }
    }
}
