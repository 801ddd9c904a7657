//! The state of a run while it is under way: some lines of text that are drawn over each other.
//!
//! Pure: the caller knows the clock and the terminal. The intervals shown are those of the last look; they
//! are there to see what comes, and the report has the final ones.

use super::{
    claims::Claims,
    number,
    table::{cut, pad, width},
    words,
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
    /// Short names of the cells to come.
    pub to_come: Vec<String>,
    /// What is being done while no frame runs: `aegis: 12,000 of 20,000 records loaded`; empty while frames run.
    pub doing: String,
    /// Frames measured so far.
    pub frame: u32,
    /// Frames at which the cell ends at the latest.
    pub frames_max: u32,
    /// Protected arms with the present interval of their primary cost, natural-log ratio; `None` before there is one.
    pub arms: Vec<(String, Option<Interval>)>,
    /// Half-width at which an arm is precise enough, natural-log ratio.
    pub precision: f64,
    /// Claims of this cell, as far as they were looked at.
    pub claims: Claims,
    /// Share of the clients' time in which client and server ran, 0–1 and more where several processes serve one
    /// client; `None` before the first frame.
    pub busy: Option<(f64, f64)>,
    /// Share of the last frame in which some task waited for a processor, 0–1.
    pub pressure: Option<f64>,
    /// Time since the run began, s.
    pub elapsed_s: f64,
    /// Half-width that the budget buys here, natural-log ratio, where that is more than was asked for.
    pub bought: Option<f64>,
    /// Time left for the whole run, s: at least and at most.
    pub left_s: Option<(f64, f64)>,
}

/// Columns of the interval bar.
const BAR: usize = 21;

/// Columns of the bar of frames.
const FRAMES: usize = 24;

/// The state as lines of at most `columns` columns, at most `rows` of them: the cell, a line for each arm with its
/// interval as it narrows, evidence, processors, time.
pub fn panel(status: &Status, columns: usize, rows: usize) -> Vec<String> {
    let mut lines = vec![head(status)];
    if status.doing.is_empty() {
        lines[0].push_str(&format!("  {}", frames(status)));
        // Beside the arms stand the cell, evidence, processors, time and what comes.
        lines.extend(arms(status, rows.saturating_sub(5).max(1)));
    } else {
        lines.push(format!("  {}", status.doing));
    }
    lines.extend(evidence(status));
    lines.extend(machine(status));
    lines.push(format!("  {}", time(status)));
    lines.extend(to_come(status));
    lines.truncate(rows.max(1));
    lines.iter().map(|line| cut(line, columns)).collect()
}

/// The cells to come: the next by their names, the others by their number.
fn to_come(status: &Status) -> Option<String> {
    const NAMED: usize = 3;
    let named: Vec<&str> = status.to_come.iter().take(NAMED).map(String::as_str).collect();
    let others = status.to_come.len() - named.len();
    let others =
        if others == 0 { String::new() } else { format!(" and {}", words::plural(others as u64, "more cell")) };
    (!named.is_empty()).then(|| format!("  to come: {}{others}", named.join(", ")))
}

/// A bar of the frames done, of those that the budget buys.
fn frames(status: &Status) -> String {
    let share = f64::from(status.frame) / f64::from(status.frames_max.max(1));
    let done = ((share * FRAMES as f64).round() as usize).min(FRAMES);
    format!("{}{}", "━".repeat(done), "─".repeat(FRAMES - done))
}

/// A line for each arm, and one for those that have no room.
fn arms(status: &Status, room: usize) -> Vec<String> {
    let shown = if status.arms.len() > room { room - 1 } else { status.arms.len() };
    let names = status.arms.iter().take(shown).map(|(name, _)| width(name)).max().unwrap_or(0).min(22);
    let scale = scale(status);
    let line = |(name, interval): &(String, Option<Interval>)| {
        let figure = match interval {
            Some(effect) if known(effect) => number::cost(effect, Outcome::Costs).to_string(),
            _ => "~".to_owned(),
        };
        let reached = interval.as_ref().is_some_and(|effect| effect.half_width() <= status.precision);
        let mark = if reached { "✓" } else { " " };
        format!("{mark} {}  {}  {figure}", pad(&cut(name, names), names), bar(interval.as_ref(), scale, BAR))
    };
    let mut lines: Vec<String> = status.arms.iter().take(shown).map(line).collect();
    if shown < status.arms.len() {
        lines.push(format!("  and {}", words::plural((status.arms.len() - shown) as u64, "more arm")));
    }
    lines
}

fn known(effect: &Interval) -> bool {
    effect.low.is_finite() && effect.high.is_finite()
}

fn evidence(status: &Status) -> Option<String> {
    let mark = if status.claims.all_hold() { "✓" } else { "!" };
    (status.claims.looked_at() > 0).then(|| format!("{mark} evidence so far: {}", status.claims.in_words()))
}

fn machine(status: &Status) -> Option<String> {
    let (client, server) = status.busy?;
    let mut parts = vec![format!("client busy {}", number::share(client))];
    if server > 0.0 {
        parts.push(format!("server {}", number::share(server)));
    }
    parts.extend(status.pressure.map(|share| format!("processor pressure {}", number::share(share))));
    Some(format!("  {}", parts.join(", ")))
}

/// The same for a file or a pipe: every arm, no bars, any length.
pub fn plain_line(status: &Status) -> String {
    let arms: Vec<String> = status.arms.iter().map(one_arm).collect();
    let frame = format!("frame {}/{}", status.frame, status.frames_max);
    let busy = machine(status).map_or(String::new(), |machine| format!("; {}", machine.trim()));
    format!("{} {frame}: {}{busy}; {}", head(status), arms.join(", "), time(status))
}

/// The present costs of all arms, for when a cell has ended, on as few lines of at most `columns` characters as hold
/// them; none where no cost is known.
pub fn answers(status: &Status, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if status.arms.iter().all(|(_, interval)| interval.is_none()) {
        return lines;
    }
    for (number, arm) in status.arms.iter().enumerate() {
        let comma = if number + 1 < status.arms.len() { "," } else { "" };
        let text = format!("{}{comma}", one_arm(arm));
        match lines.last_mut() {
            Some(line) if line.chars().count() + text.chars().count() < columns => line.push_str(&format!(" {text}")),
            _ => lines.push(format!("  {text}")),
        }
    }
    lines
}

fn head(status: &Status) -> String {
    format!("[{}/{}] {}", status.cell, status.cells, status.id)
}

fn one_arm((name, interval): &(String, Option<Interval>)) -> String {
    match interval {
        Some(effect) if known(effect) => {
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

/// The interval on a line of `columns` columns from -`scale` to `scale`, with a stroke at no cost: `·······│··━━●━━`.
pub(super) fn bar(interval: Option<&Interval>, scale: f64, columns: usize) -> String {
    let place = |effect: f64| {
        let share = (effect / scale).clamp(-1.0, 1.0);
        ((share + 1.0) / 2.0 * (columns - 1) as f64).round() as usize
    };
    let mut bar = vec!['·'; columns];
    bar[columns / 2] = '│';
    if let Some(effect) = interval.filter(|effect| effect.low <= effect.high) {
        bar[place(effect.low)..=place(effect.high)].fill('━');
        // Where nothing is known yet, a point would say something.
        if effect.estimate.is_finite() && known(effect) {
            bar[place(effect.estimate)] = '●';
        }
    }
    bar.iter().collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::report::claims;

    fn status() -> Status {
        let interval = |estimate, low, high| Some(Interval { estimate, low, high });
        Status {
            cell: 2,
            cells: 6,
            id: "c/in-memory".to_owned(),
            to_come: ["c.on-disk", "a.in-memory", "a.on-disk", "e"].map(str::to_owned).to_vec(),
            doing: String::new(),
            frame: 12,
            frames_max: 60,
            arms: vec![
                ("tls".to_owned(), interval(0.031, 0.020, 0.042)),
                ("audit".to_owned(), interval(-0.002, -0.009, 0.005)),
                ("luks".to_owned(), None),
            ],
            precision: 0.01,
            claims: claims::tests::of(&["++", "+", "+", "+", "+", "+", "+", "+", "+", "-", "+-", "?"]),
            busy: Some((0.41, 0.56)),
            pressure: Some(0.08),
            elapsed_s: 72.0,
            bought: None,
            left_s: Some((130.0, 250.0)),
        }
    }

    #[test]
    fn the_panel_says_where_the_run_is() {
        expect![[r#"
            [2/6] c/in-memory  ━━━━━───────────────────
              tls    ··········│····━━●━━━  +3.1% [2.0, 4.3]
            ✓ audit  ········━━●━·········  −0.2% [−0.9, +0.5]
              luks   ··········│··········  ~
            ! evidence so far: 9 of 12 claims hold, 2 do not, 1 cannot be told
              client busy 41%, server 56%, processor pressure 8.0%
              72 s, 2–4 min left
              to come: c.on-disk, a.in-memory, a.on-disk and 1 more cell"#]]
        .assert_eq(&panel(&status(), 80, 24).join("\n"));
        let loading = Status {
            doing: "audit: 12,000 of 20,000 records loaded".to_owned(),
            claims: Claims::default(),
            busy: None,
            left_s: None,
            ..status()
        };
        expect![[r#"
            [2/6] c/in-memory
              audit: 12,000 of 20,000 records loaded
              72 s
              to come: c.on-disk, a.in-memory, a.on-disk and 1 more cell"#]]
        .assert_eq(&panel(&loading, 80, 24).join("\n"));
    }

    #[test]
    fn the_panel_keeps_to_its_room() {
        for columns in 0..120 {
            for rows in 5..12 {
                let lines = panel(&status(), columns, rows);
                assert!(lines.iter().all(|line| width(line) <= columns));
                assert!(lines.len() <= rows.max(5), "{rows}: {lines:?}");
            }
        }
    }

    #[test]
    fn the_plain_line_names_every_arm() {
        expect!["[2/6] c/in-memory frame 12/60: tls +3.1% [2.0, 4.3], audit −0.2% [−0.9, +0.5], luks ~; client busy 41%, server 56%, processor pressure 8.0%; 72 s, 2–4 min left"]
        .assert_eq(&plain_line(&status()));
        let wide = Status { bought: Some(0.0123), ..status() };
        assert!(plain_line(&wide).ends_with("2–4 min left, the budget buys ±1.2%"), "{}", plain_line(&wide));
        let begun = Status { arms: vec![("tls".to_owned(), None)], frame: 0, left_s: None, busy: None, ..status() };
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
        assert_eq!(bar(Some(&endless), 0.01, 15), "━━━━━━━━━━━━━━━");
        assert_eq!(bar(None, 0.01, 15), "·······│·······");
    }
}
