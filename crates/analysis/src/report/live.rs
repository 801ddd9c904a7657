//! The state of a run while it is under way, as one line of text.
//!
//! Pure: the caller knows the clock and the terminal. The intervals shown are those of the last look; they
//! are there to see what comes, and the report has the final ones.

use super::{
    number,
    table::{cut, width},
};
use crate::{Interval, Outcome};

/// What is known while a cell is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Number of the cell, counted from 1.
    pub cell: usize,
    /// Number of cells.
    pub cells: usize,
    /// The cell's short name.
    pub id: String,
    /// Frames measured so far.
    pub frame: u32,
    /// Frames at which the cell ends at the latest.
    pub frames_max: u32,
    /// Guarded arms with the present interval of their primary cost, natural-log ratio; `None` before there is one.
    pub arms: Vec<(String, Option<Interval>)>,
    /// Time since the run began, s.
    pub elapsed_s: f64,
    /// Half-width that the budget buys here, natural-log ratio, where that is more than was asked for.
    pub bought: Option<f64>,
    /// Time left for the whole run, s: at least and at most.
    pub left_s: Option<(f64, f64)>,
}

/// Columns of the interval bar.
const BAR: usize = 15;

/// One line of at most `columns` columns: with interval bars where they fit, else without, then with fewer arms.
pub fn line(status: &Status, columns: usize) -> String {
    let (head, tail) = (head(status), time(status));
    let scale = scale(status);
    let with_bars =
        || status.arms.iter().map(|arm| format!("{} {}", one_arm(arm), bar(arm.1.as_ref(), scale))).collect();
    let without = || status.arms.iter().map(one_arm).collect::<Vec<_>>();
    let fewer = (0..status.arms.len()).rev().map(|shown| {
        let mut arms = without();
        arms.truncate(shown);
        arms.push(format!("+{} more", status.arms.len() - shown));
        arms
    });
    let join = |arms: Vec<String>| {
        let parts = [vec![head.clone()], arms, vec![tail.clone()]].concat();
        parts.join("  ")
    };
    let candidates = [with_bars(), without()].into_iter().chain(fewer).map(join);
    let line = candidates.into_iter().find(|line| width(line) <= columns);
    line.unwrap_or_else(|| cut(&format!("{head}  {tail}"), columns))
}

/// The same for a file or a pipe: every arm, no bars, any length.
pub fn plain_line(status: &Status) -> String {
    let arms: Vec<String> = status.arms.iter().map(one_arm).collect();
    format!("{}: {}; {}", head(status), arms.join(", "), time(status))
}

fn head(status: &Status) -> String {
    format!("[{}/{}] {} frame {}/{}", status.cell, status.cells, status.id, status.frame, status.frames_max)
}

fn one_arm((name, interval): &(String, Option<Interval>)) -> String {
    match interval {
        Some(effect) if effect.low.is_finite() && effect.high.is_finite() => {
            format!("{name} {}", number::cost(effect, Outcome::Costs))
        }
        _ => format!("{name} ~"),
    }
}

fn time(status: &Status) -> String {
    let elapsed = number::duration(status.elapsed_s);
    let bought = status
        .bought
        .map_or(String::new(), |half| format!(", the budget buys ±{}%", number::digits(number::percent(half))));
    match status.left_s {
        Some((least, most)) => {
            format!("{elapsed}, {} left{bought}", range(&number::duration(least), &number::duration(most)))
        }
        None => elapsed,
    }
}

/// `about 40 s`, `2–4 min`, `40 s to 3 min`.
fn range(least: &str, most: &str) -> String {
    match (least.split_once(' '), most.split_once(' ')) {
        _ if least == most => format!("about {least}"),
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{most}"),
        _ => format!("{least} to {most}"),
    }
}

/// Half of the width that a bar stands for, natural-log ratio: the furthest end of any interval, one percent at least.
fn scale(status: &Status) -> f64 {
    let ends =
        status.arms.iter().filter_map(|(_, interval)| interval.as_ref()).flat_map(|effect| [effect.low, effect.high]);
    ends.filter(|end| end.is_finite()).map(f64::abs).fold(0.01, f64::max)
}

/// The interval on a line from -`scale` to `scale` with a stroke at no cost: `·······│··━━●━━`.
fn bar(interval: Option<&Interval>, scale: f64) -> String {
    let place = |effect: f64| {
        let share = (effect / scale).clamp(-1.0, 1.0);
        ((share + 1.0) / 2.0 * (BAR - 1) as f64).round() as usize
    };
    let mut bar = ['·'; BAR];
    bar[BAR / 2] = '│';
    if let Some(effect) = interval.filter(|effect| effect.low <= effect.high) {
        bar[place(effect.low)..=place(effect.high)].fill('━');
        bar[place(effect.estimate)] = '●';
    }
    bar.iter().collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn status() -> Status {
        let interval = |estimate, low, high| Some(Interval { estimate, low, high });
        Status {
            cell: 2,
            cells: 6,
            id: "c/in-memory".to_owned(),
            frame: 12,
            frames_max: 60,
            arms: vec![
                ("tls".to_owned(), interval(0.031, 0.020, 0.042)),
                ("audit".to_owned(), interval(-0.002, -0.015, 0.011)),
                ("luks".to_owned(), None),
            ],
            elapsed_s: 72.0,
            bought: None,
            left_s: Some((130.0, 250.0)),
        }
    }

    #[test]
    fn the_line_says_less_where_there_is_less_room() {
        let lines: Vec<String> = [160, 120, 100, 80, 60, 30].map(|columns| line(&status(), columns)).to_vec();
        expect![[r#"
            [2/6] c/in-memory frame 12/60  tls +3.1% [2.0, 4.3] ·······│··━━●━━  audit -0.20% [-1.5, 1.1] ·····━━●━━·····  luks ~ ·······│·······  72 s, 2–4 min left
            [2/6] c/in-memory frame 12/60  tls +3.1% [2.0, 4.3]  audit -0.20% [-1.5, 1.1]  luks ~  72 s, 2–4 min left
            [2/6] c/in-memory frame 12/60  tls +3.1% [2.0, 4.3]  +2 more  72 s, 2–4 min left
            [2/6] c/in-memory frame 12/60  tls +3.1% [2.0, 4.3]  +2 more  72 s, 2–4 min left
            [2/6] c/in-memory frame 12/60  +3 more  72 s, 2–4 min left
            [2/6] c/in-memory frame 12/60…"#]].assert_eq(&lines.join("\n"));
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        for columns in 0..200 {
            assert!(width(&line(&status(), columns)) <= columns);
        }
    }

    #[test]
    fn the_plain_line_names_every_arm() {
        expect![
            "[2/6] c/in-memory frame 12/60: tls +3.1% [2.0, 4.3], audit -0.20% [-1.5, 1.1], luks ~; 72 s, 2–4 min left"
        ]
        .assert_eq(&plain_line(&status()));
        let wide = Status { bought: Some(0.0123), ..status() };
        assert!(plain_line(&wide).ends_with("2–4 min left, the budget buys ±1.2%"), "{}", plain_line(&wide));
        let begun = Status { arms: vec![("tls".to_owned(), None)], frame: 0, left_s: None, ..status() };
        expect!["[2/6] c/in-memory frame 0/60: tls ~; 72 s"].assert_eq(&plain_line(&begun));
    }

    #[test]
    fn times_left_share_their_unit() {
        assert_eq!(range("2 min", "4 min"), "2–4 min");
        assert_eq!(range("40 s", "3 min"), "40 s to 3 min");
        assert_eq!(range("3 min", "3 min"), "about 3 min");
    }

    #[test]
    fn infinite_intervals_fill_the_bar() {
        let endless = Interval { estimate: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
        assert_eq!(bar(Some(&endless), 0.01), "━━━━━━━●━━━━━━━");
        assert_eq!(bar(None, 0.01), "·······│·······");
    }
}
