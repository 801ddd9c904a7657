//! The last lines of a report: for each cell one line per arm, most expensive first, with the cost added to an
//! operation.
//!
//! [`of`] computes the content of the lines, for every medium; [`lines`] lays them out for a terminal. If there is
//! little room, first the bar is left out, then words and names are cut; numbers are never cut.

use super::{
    cell_name,
    claims::Claims,
    live, number,
    table::{at_point, cut, pad, width},
    tone::Tone,
    words,
};
use crate::{Analysis, ArmAnalysis, CellAnalysis, Estimate, Interval, Outcome, Proof};

/// The lines of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The cell's name, with the plain level.
    pub cell: String,
    /// One row per arm, most expensive first.
    pub rows: Vec<Row>,
}

/// The line of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// `✓`, `?`, `✗`, or `≡` for the A/A arm.
    pub mark: &'static str,
    /// The tone of the mark.
    pub mark_tone: Tone,
    /// The arm.
    pub arm: String,
    /// The cost, and its interval; in parentheses if the arm is not proven.
    pub cost: (String, String),
    /// The time added to an operation; empty if unknown.
    pub adds: String,
    /// Additional words: `no cost found`; usually empty.
    pub words: String,
    /// The tone of the cost.
    pub tone: Tone,
    /// The interval for the bar.
    pub effect: Option<Interval>,
}

/// The deciding figure of every measured arm of every cell.
pub fn of(analysis: &Analysis) -> Vec<Summary> {
    let names = cell_name::names(analysis);
    analysis.cells.iter().zip(names).filter_map(|(cell, name)| of_cell(analysis, cell, &name)).collect()
}

fn of_cell(analysis: &Analysis, cell: &CellAnalysis, name: &str) -> Option<Summary> {
    let mut decided = decided(cell);
    let (_, first) = decided.first()?;
    let plain = cell.arms.first().map_or("plain", |arm| arm.name.as_str());
    let level = plain_level(cell, first).map_or(String::new(), |level| format!(" {level}"));
    let cell = format!("{name} · {}{level} {} ({plain})", first.title, without(cell));
    decided.sort_by(|(_, a), (_, b)| b.effect.estimate.total_cmp(&a.effect.estimate));
    Some(Summary { cell, rows: decided.into_iter().map(|(arm, it)| row(analysis, arm, it)).collect() })
}

/// The text for what the plain arm of `cell` lacks.
pub(super) fn without(cell: &CellAnalysis) -> &'static str {
    let mut others = cell.arms.iter().filter(|arm| !arm.aa && arm.proof != Proof::Baseline);
    let is_setting = |arm: &ArmAnalysis| arm.proof == Proof::Setting;
    match others.clone().any(is_setting) {
        false => "without protection",
        true if others.all(is_setting) => "without the setting",
        true => "without protection and setting",
    }
}

/// The arms of `cell` with their deciding figure, in the experiment's order.
pub(super) fn decided(cell: &CellAnalysis) -> Vec<(&ArmAnalysis, &Estimate)> {
    let primary = |arm: &'_ ArmAnalysis| arm.estimates.iter().position(|estimate| estimate.primary);
    cell.arms.iter().filter_map(|arm| Some((arm, &arm.estimates[primary(arm)?]))).collect()
}

/// The level without protection, for the figure of `estimate`.
pub(super) fn plain_level(cell: &CellAnalysis, estimate: &Estimate) -> Option<String> {
    let wanted = estimate.name.level();
    let plain = cell.arms.first()?;
    let level = plain.levels.iter().find(|level| level.name == estimate.name || level.name == wanted);
    let unit = |unit: &str| unit.split('/').next().unwrap_or_default().to_owned();
    match (level, estimate.levels) {
        (_, Some((plain, _))) => Some(number::amount(plain, &unit(&estimate.unit))),
        (Some(level), None) => Some(number::amount(level.value, &unit(&level.unit))),
        (None, None) => None,
    }
}

fn row(analysis: &Analysis, arm: &ArmAnalysis, estimate: &Estimate) -> Row {
    let (mark, mark_tone) = mark(arm);
    let (cost, adds) = number::both(&estimate.effect, estimate.difference.as_ref(), &estimate.unit, estimate.verdict);
    let told = estimate.verdict != Outcome::TooNoisy;
    let adds = adds.filter(|_| told).map_or(String::new(), |adds| adds.lead);
    let proven = arm.proof.stands();
    let (cost, adds) = if proven {
        ((cost.lead, cost.rest), adds)
    } else {
        ((format!("({}", cost.lead), format!("{})", cost.rest)), adds)
    };
    Row {
        mark,
        mark_tone,
        arm: arm.name.clone(),
        cost,
        adds,
        words: said(arm, estimate, analysis.margin),
        tone: if proven { words::outcome_tone(estimate.verdict) } else { Tone::Faint },
        effect: known(&estimate.effect).then_some(estimate.effect),
    }
}

/// The proof of an arm as one sign.
pub(super) fn mark(arm: &ArmAnalysis) -> (&'static str, Tone) {
    match &arm.proof {
        _ if arm.aa => ("≡", Tone::Normal),
        Proof::Baseline | Proof::Setting => ("·", Tone::Normal),
        Proof::Proven | Proof::ByClaim => ("✓", Tone::Good),
        Proof::Unproven(_) | Proof::ToldByProvider(_) => ("?", Tone::Caution),
        Proof::Disproven(_) => ("✗", Tone::Bad),
    }
}

/// The words for a line besides its numbers.
fn said(arm: &ArmAnalysis, estimate: &Estimate, margin: f64) -> String {
    match &arm.proof {
        _ if arm.aa => words::PLAIN_AGAIN.to_owned(),
        Proof::Unproven(_) | Proof::ToldByProvider(_) | Proof::Disproven(_) => words::proof(&arm.proof).0.to_owned(),
        // The numbers already show that an arm costs something.
        Proof::Baseline | Proof::Proven | Proof::ByClaim | Proof::Setting => {
            let short = match words::outcome_short(estimate, margin) {
                short if short.contains("below margin") => short,
                short => short.trim_start_matches("costs").trim_start().to_owned(),
            };
            match (arm.proof == Proof::ByClaim, short.is_empty()) {
                (false, _) => short,
                (true, true) => "by your claim".to_owned(),
                (true, false) => format!("{short}, by your claim"),
            }
        }
    }
}

fn known(effect: &Interval) -> bool {
    effect.low.is_finite() && effect.high.is_finite()
}

/// Numbers of the whole run's claims by result, and whether all hold; `None` without claims.
pub fn evidence(analysis: &Analysis) -> Option<(String, bool)> {
    let mut claims = Claims::default();
    let findings = analysis.cells.iter().flat_map(|cell| &cell.arms).flat_map(|arm| &arm.findings);
    findings.for_each(|finding| claims.add(finding));
    (claims.looked_at() > 0).then(|| (claims.in_words(), claims.all_hold()))
}

/// Largest width of a bar in columns, and smallest width of one that is shown.
const BAR: std::ops::RangeInclusive<usize> = 11..=25;

/// Smallest width of a name in columns; shorter names need no more than their length.
const NAME_MIN: usize = 8;

/// The rows as lines of at most `page` columns; `ends` are the ends of the bars' scale.
pub(super) fn lines(rows: &[Row], page: usize, ends: (f64, f64), paint: &dyn Fn(&str, Tone) -> String) -> Vec<String> {
    let widest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let cost = Aligned::of(rows.iter().map(|row| row.cost.0.as_str()));
    let adds = Aligned::of(rows.iter().map(|row| row.adds.as_str()));
    let rest = widest(&|row| width(&row.cost.1));
    let gap = |part: usize| if part > 0 { part + 2 } else { 0 };
    let numbers = gap(cost.width()) + rest + 1 + gap(adds.width());
    let names = widest(&|row| width(&row.arm)).min(page.saturating_sub(2 + numbers).max(NAME_MIN));
    let left = page.saturating_sub(2 + names + numbers);
    let words = widest(&|row| width(&row.words));
    let bar = left.saturating_sub(gap(words) + 2).min(*BAR.end());
    let bar = if BAR.contains(&bar) { bar } else { 0 };
    let words = left.saturating_sub(gap(bar) + 2).min(words);
    let line = |row: &Row| {
        let (lead, interval) = (&row.cost.0, &row.cost.1);
        let mut line = format!("{} {}", paint(row.mark, row.mark_tone), pad(&cut(&row.arm, names), names));
        let figure = format!("{} {}", cost.text(lead), pad(interval, rest));
        line.push_str(&format!("  {}", paint(&figure, row.tone)));
        if adds.width() > 0 {
            line.push_str(&format!("  {}", paint(&adds.text(&row.adds), row.tone)));
        }
        if bar > 0 {
            let shown = row.effect.map(|effect| match row.cost.0.contains('~') {
                true => Interval { estimate: f64::NAN, ..effect },
                false => effect,
            });
            line.push_str(&format!("  {}", live::bar(shown.as_ref(), ends, bar)));
        }
        if words > 0 {
            line.push_str(&format!("  {}", paint(&cut(&row.words, words), Tone::Faint)));
        }
        line
    };
    rows.iter().map(line).collect()
}

/// The ends of the bars' scale for all cells: the furthest ends of any interval, and zero cost.
pub(super) fn ends(all: &[Summary]) -> (f64, f64) {
    let known = all.iter().flat_map(|it| &it.rows).filter_map(|row| row.effect);
    known.fold((-0.01, 0.01), |(low, high), it| (it.low.min(low), it.high.max(high)))
}

/// Numbers aligned at their decimal points.
struct Aligned {
    whole: usize,
    fraction: usize,
}

impl Aligned {
    fn of<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Self {
        let widest = |of: fn((&'a str, &'a str)) -> &'a str| texts.clone().map(|text| width(of(at_point(text)))).max();
        Self { whole: widest(|parts| parts.0).unwrap_or(0), fraction: widest(|parts| parts.1).unwrap_or(0) }
    }

    fn width(&self) -> usize {
        self.whole + self.fraction
    }

    fn text(&self, text: &str) -> String {
        let (whole, fraction) = at_point(text);
        format!("{}{whole}{}", " ".repeat(self.whole - width(whole)), pad(fraction, self.fraction))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::report::sample;

    fn told(analysis: &Analysis, page: usize) -> String {
        let all = of(analysis);
        let lines = all.iter().flat_map(|it| {
            std::iter::once(it.cell.clone()).chain(lines(&it.rows, page, ends(&all), &|text, _| text.to_owned()))
        });
        lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_arm_that_costs_most_is_the_first() {
        expect![[r#"
            reads only · net time per op 38.4 µs without protection (plain)
            ✓ columns    ×6.4   [6.2, 6.6]        +207 µs     ·│·····················━●
            ✓ tls       +40.5 % [38.7, 42.3]       +15.6 µs   ·│···●···················
            ? audit    (+12.9 % [8.4, 17.6])        +5.0 µs   ·│●━·····················  UNPROVEN
            ✓ fscrypt     ~     −3.0 % to +5.1 %              ━━·······················  too noisy to tell
            ✗ luks      (+0.4 % [−0.2, +0.8])       +0.15 µs  ·●·······················  DISPROVEN
            ✓ auth       −4.9 % [−6.8, −3.0]        −1.9 µs   ●│·······················  saves: check set-up"#]]
        .assert_eq(&told(&sample::full(), 98));
    }

    #[test]
    fn little_room_costs_the_bar_and_then_words_and_names() {
        expect![[r#"
            reads only · net time per op 38.4 µs without protection (plain)
            ✓ columns    ×6.4   [6.2, 6.6]        +207 µs
            ✓ tls       +40.5 % [38.7, 42.3]       +15.6 µs
            ? audit    (+12.9 % [8.4, 17.6])        +5.0 µs   UNPROVEN
            ✓ fscrypt     ~     −3.0 % to +5.1 %              too noi…
            ✗ luks      (+0.4 % [−0.2, +0.8])       +0.15 µs  DISPROV…
            ✓ auth       −4.9 % [−6.8, −3.0]        −1.9 µs   saves: …"#]]
        .assert_eq(&told(&sample::full(), 58));
        for page in 48..120 {
            for line in told(&sample::full(), page).lines().filter(|line| !line.contains('·') || line.contains('[')) {
                assert!(width(line) <= page, "{page}: {line}");
            }
            assert!(told(&sample::full(), page).contains("+40.5 % [38.7, 42.3]"), "{page}");
        }
    }

    #[test]
    fn the_plain_arm_again_stands_among_the_others() {
        expect![[r#"
            half updates · net time per op 38.4 µs without protection (plain)
            ✓ tls   +12.5 % [11.9, 13.1]      +4.8 µs  ··│···················━●━
            ≡ A/A    −0.6 % [−1.2, +0.1]      −0.2 µs  ━●━━·····················  plain again
            ✓ auth    ~     −1.4 % to −0.4 %           ━━━······················  A/A differs as much
            reads only · net time per op 38.4 µs without protection (plain)
            ✓ tls   +0.3 % [0.1, 0.5]        +0.12 µs  ··│●·····················  costs, below margin
            ≡ A/A    0.0 % [−0.5, +0.6]       0.0 µs   ··●━━····················  plain again
            ✓ auth   ~     −1.4 % to −0.4 %            ━━━······················  A/A differs as much"#]]
        .assert_eq(&told(&sample::controlled(), 98));
    }

    #[test]
    fn evidence_is_one_line() {
        assert_eq!(evidence(&sample::controlled()), Some(("4 of 4 claims hold".to_owned(), true)));
        assert_eq!(evidence(&sample::empty()), None);
        let (words, all_hold) = evidence(&sample::full()).expect("claims");
        assert!(!all_hold && words.starts_with("5 of 7 claims hold"), "{words}");
    }
}
