//! The state of a run in progress: some lines of text that replace each other on the terminal.
//!
//! Pure: the caller knows the clock and the terminal. The intervals shown are those of the last check, for information;
//! the report has the final ones.

use tithe_model::{
    histogram::Histogram,
    plan::Cell,
    record::{Frame, Slot},
};

use super::{
    claims::Claims,
    number,
    table::{cut, pad, width},
    words,
};
use crate::{Interval, Outcome, assess::throughput};

/// Number of cells to come that are named.
pub const NAMED: usize = 3;

/// The state during the measurement of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// Number of the cell, counted from 1.
    pub cell: usize,
    /// Number of cells.
    pub cells: usize,
    /// The cell's short name.
    pub id: String,
    /// Short names of the next cells: [`NAMED`], or as many as there are.
    pub to_come: Vec<String>,
    /// The current work while no frame runs: `aegis: 12,000 of 20,000 records loaded`; empty while frames run.
    pub doing: String,
    /// Frames measured so far.
    pub frame: u32,
    /// Maximum number of frames of the cell.
    pub frames_max: u32,
    /// The baseline.
    pub plain: ArmNow,
    /// The other arms.
    pub arms: Vec<ArmNow>,
    /// Half-width at which an arm is precise enough, natural-log ratio.
    pub precision: f64,
    /// Claims of this cell checked so far.
    pub claims: Claims,
    /// Share of the clients' time in which client and server ran, 0–1, or more if several processes serve one client;
    /// `None` before the first frame.
    pub busy: Option<(f64, f64)>,
    /// Share of the last frame in which some task waited for a processor, 0–1.
    pub pressure: Option<f64>,
    /// Time since the run began, s.
    pub elapsed_s: f64,
    /// Half-width that is possible within the budget, natural-log ratio, if it is larger than requested.
    pub bought: Option<f64>,
    /// Time left for the whole run, s: at least and at most.
    pub left_s: Option<(f64, f64)>,
}

/// The state of one arm during the measurement of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ArmNow {
    /// Name.
    pub name: String,
    /// The current interval of its primary cost, natural-log ratio; `None` before there is one, and for the baseline.
    pub cost: Option<Interval>,
    /// Its pace in the last frame; `None` before the first.
    pub pace: Option<Pace>,
}

impl ArmNow {
    /// An arm without results so far.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// Throughput and latency of an arm in one frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Operations per second in its own slots.
    pub per_second: f64,
    /// 99th percentile of the latency of all operations together, µs; `None` without operations.
    pub latency_p99_us: Option<f64>,
}

impl Pace {
    /// The pace of `arm` in `frame` of `cell`; `None` if it had no slot.
    pub fn of(cell: &Cell, frame: &Frame, slots: &[Slot], arm: usize) -> Option<Self> {
        let mut latencies = Histogram::default();
        let of_arm = frame.arms.get(arm)?;
        // In an open loop from the intended start, as in the report.
        let counted = if of_arm.intended.is_empty() { &of_arm.latency } else { &of_arm.intended };
        counted.values().for_each(|histogram| latencies.merge(histogram));
        let per_second = throughput(cell, frame, slots, arm)?;
        Some(Self { per_second, latency_p99_us: latencies.quantile(0.99).map(|ns| ns / 1e3) })
    }

    /// `48,310/s`
    fn rate(&self) -> String {
        format!("{}/s", number::count(self.per_second.round() as u64))
    }

    /// `p99 212 µs`
    fn latency(&self) -> String {
        self.latency_p99_us.map_or(String::new(), |us| format!("p99 {}", number::amount(us, "µs")))
    }
}

/// Largest width of an interval bar in columns, and smallest width of one that is shown.
const BAR: std::ops::RangeInclusive<usize> = 7..=21;

/// Largest width of a name in columns, and smallest width to which a bar may shorten it.
const NAME: std::ops::RangeInclusive<usize> = 4..=22;

/// Width of the bar of frames, columns.
const FRAMES: usize = 24;

/// The line that stays above the lines of a cell.
pub fn heading(status: &Status) -> String {
    format!("[{}/{}] {}", status.cell, status.cells, status.id)
}

/// The state as at most `rows` lines of at most `columns` columns, for display below the heading of the cell: the
/// frames, a line for each arm with its current interval, evidence, processors, time. If there are few rows, the arms
/// stay longest.
pub fn panel(status: &Status, columns: usize, rows: usize) -> Vec<String> {
    let mut lines = Vec::new();
    // Besides the arms at least the frames and the time; the other lines only if each arm keeps its line.
    let measures = status.doing.is_empty();
    let always = if measures { 2 + status.arms.len() } else { 2 };
    let rest = rows.saturating_sub(always).min(3);
    if measures {
        lines.push(format!("  {}", frames(status)));
        lines.extend(arms(status, rows.saturating_sub(2 + rest).max(1), columns));
    } else {
        lines.push(format!("  {}", status.doing));
    }
    lines.extend(evidence(status).filter(|_| rest > 0));
    lines.extend(machine(status).filter(|_| rest > 1));
    lines.push(format!("  {}", time(status)));
    lines.extend(to_come(status).filter(|_| rest > 2));
    lines.truncate(rows.max(1));
    lines.iter().map(|line| cut(line, columns)).collect()
}

/// The cells to come: the next ones by name, the others as a number.
fn to_come(status: &Status) -> Option<String> {
    let named = &status.to_come;
    let others = status.cells.saturating_sub(status.cell + named.len());
    let others =
        if others == 0 { String::new() } else { format!(" and {}", words::plural(others as u64, "more cell")) };
    (!named.is_empty()).then(|| format!("  to come: {}{others}", named.join(", ")))
}

/// The frames done, of those within the budget, with a bar.
fn frames(status: &Status) -> String {
    let share = f64::from(status.frame) / f64::from(status.frames_max.max(1));
    let done = ((share * FRAMES as f64).round() as usize).min(FRAMES);
    format!("frame {}/{}  {}{}", status.frame, status.frames_max, "━".repeat(done), "─".repeat(FRAMES - done))
}

/// A line for each arm, and one for arms without room. If lines are short, first the bar is left out, then the pace,
/// then the end of the name; numbers are never cut.
fn arms(status: &Status, room: usize, columns: usize) -> Vec<String> {
    let plain = Some(&status.plain).filter(|it| it.pace.is_some() && room > status.arms.len());
    let shown = if status.arms.len() > room { room - 1 } else { status.arms.len() };
    let shown: Vec<&ArmNow> = plain.into_iter().chain(status.arms.iter().take(shown)).collect();
    let widest = |of: &dyn Fn(&ArmNow) -> usize| shown.iter().map(|it| of(it)).max().unwrap_or(0);
    let rates = widest(&|it| it.pace.map_or(0, |pace| width(&pace.rate())));
    let pace = |it: &ArmNow| it.pace.map_or(String::new(), |it| format!("{:>rates$}  {}", it.rate(), it.latency()));
    let (figures, paces) = (widest(&|it| width(&figure(it))), widest(&|it| width(&pace(it))));
    let left = columns.saturating_sub(figures + 4);
    let names = widest(&|it| width(&it.name)).min(*NAME.end()).min(left.max(*NAME.start()));
    let left = left.saturating_sub(names);
    let paces = if paces + 2 <= left { paces } else { 0 };
    // Without its pace the plain arm has nothing to show.
    let shown: Vec<&ArmNow> = shown.into_iter().filter(|it| paces > 0 || plain != Some(it)).collect();
    let bars = left.saturating_sub(if paces > 0 { paces + 2 } else { 0 }).saturating_sub(2).min(*BAR.end());
    let scale = scale(status);
    let line = |it: &&ArmNow| {
        let reached = it.cost.as_ref().is_some_and(|effect| effect.half_width() <= status.precision);
        let mut line = format!("{} {}", if reached { "✓" } else { " " }, pad(&cut(&it.name, names), names));
        if BAR.contains(&bars) {
            let bar = if plain == Some(it) { " ".repeat(bars) } else { bar(it.cost.as_ref(), (-scale, scale), bars) };
            line.push_str(&format!("  {bar}"));
        }
        let figure = if plain == Some(it) { String::new() } else { figure(it) };
        line.push_str(&format!("  {}", pad(&figure, figures)));
        if paces > 0 {
            line.push_str(&format!("  {}", pace(it)));
        }
        line.trim_end().to_owned()
    };
    let mut lines: Vec<String> = shown.iter().map(line).collect();
    let hidden = status.arms.len() - shown.iter().filter(|it| plain != Some(**it)).count();
    if hidden > 0 {
        lines.push(format!("  and {}", words::plural(hidden as u64, "more arm")));
    }
    lines
}

/// The current cost of an arm, `~` if unknown.
fn figure(it: &ArmNow) -> String {
    let known = it.cost.as_ref().filter(|effect| known(effect));
    known.map_or("~".to_owned(), |effect| number::cost(effect, Outcome::Costs).to_string())
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

/// The state for a file or a pipe: every arm, no bars, any length.
pub fn plain_line(status: &Status) -> String {
    let arms: Vec<String> = status.arms.iter().map(one_arm).collect();
    let frame = format!("frame {}/{}", status.frame, status.frames_max);
    let busy = machine(status).map_or(String::new(), |machine| format!("; {}", machine.trim()));
    format!("{} {frame}: {}{busy}; {}", heading(status), arms.join(", "), time(status))
}

/// The current costs of all arms at the end of a cell, on as few lines of at most `columns` characters as possible;
/// none if no cost is known.
pub fn answers(status: &Status, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if status.arms.iter().all(|arm| arm.cost.is_none()) {
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

fn one_arm(arm: &ArmNow) -> String {
    format!("{} {}", arm.name, figure(arm))
}

fn time(status: &Status) -> String {
    let elapsed = clock(status.elapsed_s);
    let bought = status
        .bought
        .map_or(String::new(), |half| format!(", the budget allows ±{} %", number::digits(number::percent(half))));
    match status.left_s {
        Some((least, most)) => {
            format!("{elapsed}, {} left{bought}", range(&number::duration(least), &number::duration(most)))
        }
        None => elapsed,
    }
}

/// `40 s`, `2 min 5 s`, `1 h 2 min 5 s`: with seconds, because a clock that does not move looks like a hung program.
fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        _ => format!("{hours} h {minutes} min {seconds} s"),
    }
}

/// `about 40 s`, `2–4 min`, `40 s to 3 min`, `1 h 20 min to 2 h 20 min`.
fn range(least: &str, most: &str) -> String {
    match (least.split_once(' '), most.split_once(' ')) {
        _ if least == most => format!("about {least}"),
        (Some((number, unit)), Some((_, same))) if unit == same && !unit.contains(' ') => format!("{number}–{most}"),
        _ => format!("{least} to {most}"),
    }
}

/// Half of the width of a bar's scale, natural-log ratio: the furthest end of any interval, at least one percent.
fn scale(status: &Status) -> f64 {
    let ends = status.arms.iter().filter_map(|arm| arm.cost.as_ref()).flat_map(|effect| [effect.low, effect.high]);
    ends.filter(|end| end.is_finite()).map(f64::abs).fold(0.01, f64::max)
}

/// The interval on a line of `columns` columns from the first of `ends` to the second, with a stroke at zero cost:
/// `·······│··━━●━━`.
pub(super) fn bar(interval: Option<&Interval>, ends: (f64, f64), columns: usize) -> String {
    let place = |effect: f64| {
        let share = ((effect - ends.0) / (ends.1 - ends.0)).clamp(0.0, 1.0);
        (share * (columns - 1) as f64).round() as usize
    };
    let mut bar = vec!['·'; columns];
    bar[place(0.0)] = '│';
    if let Some(effect) = interval.filter(|effect| effect.low <= effect.high) {
        bar[place(effect.low)..=place(effect.high)].fill('━');
        // Without a known interval, a point would be misleading.
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
        let pace = |per_second, p99| Some(Pace { per_second, latency_p99_us: Some(p99) });
        Status {
            cell: 2,
            cells: 6,
            id: "c/in-memory".to_owned(),
            to_come: ["c.on-disk", "a.in-memory", "a.on-disk"].map(str::to_owned).to_vec(),
            doing: String::new(),
            frame: 12,
            frames_max: 60,
            plain: ArmNow { pace: pace(48_310.4, 212.0), ..ArmNow::named("plain") },
            arms: vec![
                ArmNow { name: "tls".to_owned(), cost: interval(0.031, 0.020, 0.042), pace: pace(46_870.0, 219.0) },
                ArmNow { name: "audit".to_owned(), cost: interval(-0.002, -0.009, 0.005), pace: pace(48_300.0, 211.0) },
                ArmNow { pace: pace(9_310.0, 1_534.0), ..ArmNow::named("luks") },
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
              frame 12/60  ━━━━━───────────────────
              plain                                              48,310/s  p99 212 µs
              tls    ··········│····━━●━━━  +3.1 % [2.0, 4.3]    46,870/s  p99 219 µs
            ✓ audit  ········━━●━·········  −0.2 % [−0.9, +0.5]  48,300/s  p99 211 µs
              luks   ··········│··········  ~                     9,310/s  p99 1.53 ms
            ! evidence so far: 9 of 12 claims hold, 2 do not, 1 cannot be decided
              client busy 41 %, server 56 %, processor pressure 8.0 %
              1 min 12 s, 2–4 min left
              to come: c.on-disk, a.in-memory, a.on-disk and 1 more cell"#]]
        .assert_eq(&panel(&status(), 80, 24).join("\n"));
        let loading = Status {
            doing: "audit: 12,000 of 20,000 records loaded".to_owned(),
            claims: Claims::default(),
            busy: None,
            left_s: None,
            ..status()
        };
        let lines = panel(&loading, 80, 24);
        assert!(lines.iter().all(|line| line.starts_with("  ")), "below the heading of its cell: {lines:?}");
        expect![[r#"
            audit: 12,000 of 20,000 records loaded
            1 min 12 s
            to come: c.on-disk, a.in-memory, a.on-disk and 1 more cell"#]]
        .assert_eq(&lines.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join("\n"));
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
    fn a_short_line_keeps_its_numbers() {
        expect![[r#"
              frame 12/60  ━━━━━───────────────────
              plain                                48,310/s  p99 212 µs
              tls    ···│━●━  +3.1 % [2.0, 4.3]    46,870/s  p99 219 µs
            ✓ audit  ··━●···  −0.2 % [−0.9, +0.5]  48,300/s  p99 211 µs
              luks   ···│···  ~                     9,310/s  p99 1.53 ms
            ! evidence so far: 9 of 12 claims hold, 2 do not, 1 cannot …
              client busy 41 %, server 56 %, processor pressure 8.0 %
              1 min 12 s, 2–4 min left
              to come: c.on-disk, a.in-memory, a.on-disk and 1 more cell"#]]
        .assert_eq(&panel(&status(), 60, 24).join("\n"));
        expect![[r#"
              frame 12/60  ━━━━━───────────────────
              tls    ········│··━━●━━  +3.1 % [2.0, 4.3]
            ✓ audit  ······━●━·······  −0.2 % [−0.9, +0.5]
              luks   ········│·······  ~
            ! evidence so far: 9 of 12 claims hold, 2 do …
              client busy 41 %, server 56 %, processor pr…
              1 min 12 s, 2–4 min left
              to come: c.on-disk, a.in-memory, a.on-disk …"#]]
        .assert_eq(&panel(&status(), 46, 24).join("\n"));
        for columns in 30..120 {
            let lines = panel(&status(), columns, 24).join("\n");
            assert!(lines.contains("+3.1 % [2.0, 4.3]") && lines.contains("−0.2 % [−0.9, +0.5]"), "{columns}: {lines}");
        }
    }

    #[test]
    fn a_low_terminal_keeps_its_arms() {
        expect![[r#"
              frame 12/60  ━━━━━────────…
              tls    +3.1 % [2.0, 4.3]
            ✓ audit  −0.2 % [−0.9, +0.5]
              luks   ~
            ! evidence so far: 9 of 12 c…
              1 min 12 s, 2–4 min left"#]]
        .assert_eq(&panel(&status(), 29, 6).join("\n"));
        let low = panel(&status(), 80, 4).join("\n");
        assert!(low.contains("+3.1 %") && low.contains("and 2 more arms") && low.contains("2–4 min left"), "{low}");
    }

    #[test]
    fn the_plain_line_names_every_arm() {
        expect!["[2/6] c/in-memory frame 12/60: tls +3.1 % [2.0, 4.3], audit −0.2 % [−0.9, +0.5], luks ~; client busy 41 %, server 56 %, processor pressure 8.0 %; 1 min 12 s, 2–4 min left"]
        .assert_eq(&plain_line(&status()));
        let wide = Status { bought: Some(0.0123), ..status() };
        assert!(plain_line(&wide).ends_with("2–4 min left, the budget allows ±1.2 %"), "{}", plain_line(&wide));
        let begun = Status { arms: vec![ArmNow::named("tls")], frame: 0, left_s: None, busy: None, ..status() };
        expect!["[2/6] c/in-memory frame 0/60: tls ~; 1 min 12 s"].assert_eq(&plain_line(&begun));
    }

    #[test]
    fn the_clock_is_told_to_the_second() {
        assert_eq!([0.9, 59.9, 60.0, 3_725.0].map(clock), ["0 s", "59 s", "1 min 0 s", "1 h 2 min 5 s"]);
    }

    #[test]
    fn times_left_share_their_unit() {
        assert_eq!(range("2 min", "4 min"), "2–4 min");
        assert_eq!(range("40 s", "3 min"), "40 s to 3 min");
        assert_eq!(range("3 min", "3 min"), "about 3 min");
        assert_eq!(range("1 h 20 min", "2 h 20 min"), "1 h 20 min to 2 h 20 min");
    }

    #[test]
    fn infinite_intervals_fill_the_bar() {
        let endless = Interval { estimate: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
        assert_eq!(bar(Some(&endless), (-0.01, 0.01), 15), "━━━━━━━━━━━━━━━");
        assert_eq!(bar(None, (-0.01, 0.01), 15), "·······│·······");
    }
}
