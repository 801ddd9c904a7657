//! The atlas as Markdown; [`html`](super::html::atlas) is the page. Both use the same sentences.

use std::{collections::BTreeSet, fmt::Write as _};

use tithe_model::quantity;
use tithe_statistics::distribution::chance_interval;

use super::{markdown::escape, matrix, number, words};
use crate::{
    Interval, Outcome,
    atlas::{Atlas, AtlasProfile, AtlasRow, KINDS, KeptRun, Kind, Measured, Place},
    matrix::{Answer, Basis},
};

/// Title of both files.
pub const TITLE: &str = "Atlas of costs";

/// How to read it.
pub const HOW: [&str; 5] = [
    "A row is a protection of a product, a column a kind of work. An entry has a figure only if the protection was \
     proven to be on (✓); otherwise it says why there is none.",
    "The figure is what the protection adds to an operation: relative to the plain server, and as an amount, each with \
     its 95 % interval. *At most* means that no cost was found, and how large it can be at most. *~* means too noisy \
     to tell: zero is possible, hosts disagree, or the A/A arm saves as much.",
    "A figure of one host holds for that host. For two hosts both percentages are shown. For three or more it is \
     their mean, with the lowest and the highest host and the spread between hosts; for five or more, *next* is where \
     another host lies. It is not *~* if every host alone has the same answer, although the interval of the mean may \
     contain zero. The amounts of several hosts are a range: of their estimates, or of their intervals where zero is \
     possible.",
    "After the mark are the numbers of frames and of starts, then the run with a link to its data. A table below has \
     host, date, commit and load of each run.",
    "Compare protections of one product and one kind of work. Operations of different products have different sizes, \
     so the same amount is another share.",
];

/// The state of the atlas, in one sentence.
pub fn answer(atlas: &Atlas) -> String {
    let mut products: Vec<&str> = atlas.rows.iter().map(|row| row.product.as_str()).collect();
    products.dedup();
    format!(
        "{} of protections that were proven to be on, {} of them too noisy to tell, on {}, measured on {} with {}.",
        words::plural(atlas.proven() as u64, "cost"),
        atlas.too_noisy(),
        words::plural(products.len() as u64, "product"),
        words::plural(atlas.hosts() as u64, "host"),
        words::plural(atlas.processors() as u64, "processor model")
    )
}

/// How often an interval of an A/A arm excludes its true cost; `None` without one.
pub fn controls(atlas: &Atlas) -> Option<String> {
    let (wrong, all) = atlas.false_alarms();
    if all == 0 {
        return None;
    }
    let noun = words::plural(all as u64, "A/A arm");
    let (low, high) = chance_interval(wrong as u64, all as u64, 0.025);
    let share = wrong as f64 / all as f64;
    let [share, low, high] = [share, low, high].map(|share| quantity::fixed(100.0 * share, 1));
    // The intervals of all arms of a cell hold together with 95 %, so that each excludes zero less often than that.
    Some(format!(
        "The intervals of {wrong} of {noun}, whose true cost is zero, exclude zero: {share} % [{low}, {high}], and at \
         most 5 % may."
    ))
}

/// The cost as a share, and the rest of its text.
pub fn cost(measured: &Measured) -> (String, String) {
    match measured.figure.together().zip(measured.verdict()) {
        Some((effect, Outcome::NoneFound)) => {
            (format!("at most {}", number::bound(effect.high.max(0.0), &effect)), String::new())
        }
        Some((effect, verdict)) => {
            let figure = number::cost(&effect, verdict);
            (figure.lead, figure.rest)
        }
        None => (matrix::both(&measured.figure).unwrap_or_default(), String::new()),
    }
}

/// The cost as an amount; empty if it is unknown.
pub fn added(measured: &Measured) -> String {
    let unit = &measured.unit;
    match (measured.differences.as_slice(), measured.verdict()) {
        ([], _) => String::new(),
        ([only], Some(Outcome::NoneFound)) => format!("at most {}", number::at_most(only, unit)),
        ([only], Some(judged)) => {
            let figure = number::difference(only, unit, judged);
            if judged == Outcome::TooNoisy { figure.rest } else { figure.to_string() }
        }
        (several, judged) => {
            let is_certain = matches!(judged, Some(Outcome::Costs | Outcome::Gains));
            let ends = |it: &Interval| if is_certain { [it.estimate; 2] } else { [it.low, it.high] };
            let [low, high] = range_of(several.iter().map(ends));
            number::span(low, high, unit)
        }
    }
}

/// The smallest and the largest of `ends`.
fn range_of(ends: impl Iterator<Item = [f64; 2]>) -> [f64; 2] {
    ends.fold([f64::MAX, f64::MIN], |[least, most], [low, high]| [least.min(low), most.max(high)])
}

/// The hosts behind a figure with the lowest and the highest of them, their spread, where the next one lies, and which
/// runs do not count; empty for one host whose runs count.
pub fn over_hosts(measured: &Measured) -> String {
    let figure = &measured.figure;
    let answer = &figure.answer;
    let each = match answer {
        Answer::Over(Basis::Hosts(_), _) => {
            let [low, high] = range_of(figure.counting().map(|host| [host.unit.effect; 2]));
            format!(" from {}", number::range(low, high))
        }
        _ => String::new(),
    };
    // Both costs of two hosts are shown.
    let pooled = !matches!(answer, Answer::One(_) | Answer::Two(Basis::Hosts(_), _));
    let basis = pooled.then(|| matrix::basis(answer) + &each);
    let spread = matrix::spread(answer).map(|it| format!("spread {it}"));
    let next = matrix::next(answer).map(|it| format!("next {it}"));
    let unproven = figure.hosts.iter().filter(|host| !host.counts()).flat_map(|host| &host.repeats);
    let unproven = unproven.map(|repeat| format!("without run {}: not proven", repeat.task + 1));
    let left_out = figure.left_out.iter().map(|(run, why)| format!("without run {}: {why}", run + 1));
    let told = [basis, spread, next].into_iter().flatten().chain(unproven).chain(left_out);
    told.collect::<Vec<_>>().join(", ")
}

/// `15 frames, 6 starts`; the fewest of several runs.
pub fn counted(measured: &Measured) -> String {
    let each = if measured.runs.len() > 1 { "each at least " } else { "" };
    let (frames, starts) = (fewest(&measured.frames), fewest(&measured.starts));
    format!("{each}{}, {}", words::plural(frames, "frame"), words::plural(starts, "start"))
}

fn fewest(counts: &[usize]) -> u64 {
    counts.iter().min().copied().unwrap_or_default() as u64
}

/// Heading of the list of the highest costs.
pub const SOURCES: &str = "Where the highest costs come from";

/// Number of costs in that list.
const SOURCES_SHOWN: usize = 10;

/// One of the highest costs.
pub struct CostSource<'a> {
    /// Product, protection and work.
    pub name: String,
    /// The cost, relative to the plain server.
    pub cost: String,
    /// The sum of its parts, or that it was not profiled.
    pub sum: String,
    /// Its parts with what they add.
    pub parts: Vec<String>,
    /// What the sum does not include, in a sentence; empty without.
    pub beside: String,
    /// The same as figures, for a picture.
    pub profile: Option<&'a AtlasProfile>,
}

/// The highest costs with their parts.
pub fn sources(atlas: &Atlas) -> Vec<CostSource<'_>> {
    atlas.highest(SOURCES_SHOWN).into_iter().map(source).collect()
}

fn source<'a>((row, kind, measured): (&AtlasRow, Kind, &'a Measured)) -> CostSource<'a> {
    let work = if measured.name.is_empty() { kind.title() } else { &measured.name };
    let (lead, rest) = cost(measured);
    let time = |difference: &Interval| number::difference(difference, "µs/op", Outcome::Costs).to_string();
    let (run, profile) = measured.profile.as_ref().map(|(run, profile)| (*run, profile)).unzip();
    let each = |parts: &[(String, Interval)]| -> Vec<String> {
        parts.iter().map(|(name, more)| format!("{name} {}", time(more))).collect()
    };
    let beside = profile.map_or_else(Vec::new, |it| each(&it.beside));
    // The cost is that of all its runs, and the parts are those of one.
    let of_run = run.filter(|_| measured.runs.len() > 1);
    let of_run = of_run.map_or(String::new(), |run| format!(" in run {}", run + 1));
    CostSource {
        name: format!("{}, {}, {work}", row.product, row.arm),
        cost: format!("{lead} {rest}").trim().to_owned(),
        sum: profile.map_or("Not profiled.".to_owned(), |it| {
            format!("Of {} of processor time on client and server{of_run}:", time(&it.sum))
        }),
        parts: profile.map_or_else(Vec::new, |it| each(&it.parts)),
        beside: if beside.is_empty() { String::new() } else { format!("Not in this sum: {}.", beside.join("; ")) },
        profile,
    }
}

/// A run in the table of runs, with everything that its figures depend on.
pub struct RunLine {
    /// Its number, from 1.
    pub number: usize,
    /// The path of its file from the folder of the atlas.
    pub path: String,
    /// Its experiment.
    pub experiment: String,
    /// Host, date, commit, version, load and steal time.
    pub facts: Vec<String>,
}

/// The headings of the facts of a [`RunLine`].
pub const RUN_FACTS: [&str; 6] = ["host", "date", "commit", "tithe", "load", "steal"];

/// The run with index `index`.
pub fn run_line(index: usize, kept: &KeptRun) -> RunLine {
    let KeptRun { file, run } = kept;
    let cells = &run.outcome.cells;
    let load = cells.iter().map(|cell| cell.host.load).fold(0.0, f64::max);
    let steal = cells.iter().filter_map(|cell| cell.host.steal).reduce(f64::max);
    RunLine {
        number: index + 1,
        path: format!("atlas/{file}"),
        experiment: run.experiment.clone(),
        facts: vec![
            run.host().to_owned(),
            run.date(),
            run.commit.clone(),
            run.outcome.tithe.clone(),
            quantity::fixed(load, 1),
            steal.map_or("unknown".to_owned(), number::share),
        ],
    }
}

/// The hosts with their processors, in one sentence.
pub fn hosts(atlas: &Atlas) -> String {
    let told = |kept: &KeptRun| {
        let machine = &kept.run.outcome.machine;
        format!("{}: {} × {}", kept.run.host(), machine.processors, machine.processor)
    };
    let each: BTreeSet<String> = atlas.runs.iter().map(told).collect();
    format!("Hosts: {}.", each.into_iter().collect::<Vec<_>>().join("; "))
}

/// Name of a row's product with its versions: `PostgreSQL 15.18`.
pub fn product(row: &AtlasRow) -> String {
    if row.versions.is_empty() { row.product.clone() } else { row.versions.join(", ") }
}

/// Number of parts of a cost in Markdown. The page shows more.
const MOST_PARTS: usize = 3;

/// The atlas as Markdown, ending with a line break.
pub fn markdown(atlas: &Atlas) -> String {
    let mut text = format!(
        "# {TITLE}\n\n{} [The same as a page that sorts and filters](atlas.html). `tithe atlas page` writes both.\n\n\
         How to read this:\n\n",
        answer(atlas)
    );
    for line in HOW {
        let _ = writeln!(text, "* {line}");
    }
    for rows in atlas.rows.chunk_by(|one, other| one.product == other.product) {
        let mut versions: Vec<&String> = rows.iter().flat_map(|row| &row.versions).collect();
        versions.sort();
        versions.dedup();
        let versions: Vec<String> = versions.into_iter().map(|version| escape(version)).collect();
        let _ = write!(text, "\n## {}\n\n{}\n\n| protection |", escape(&rows[0].product), versions.join(", "));
        KINDS.iter().for_each(|kind| text.extend([" ", kind.title(), " |"]));
        text.push_str("\n|---|---|---|---|---|\n");
        for row in rows {
            let _ = write!(text, "| {} |", escape(&row.arm));
            row.places.iter().for_each(|place| text.extend([" ", self::place(atlas, place).as_str(), " |"]));
            text.push('\n');
        }
    }
    let sources = sources(atlas);
    if !sources.is_empty() {
        let _ = write!(text, "\n## {SOURCES}\n\n");
        for CostSource { name, cost, sum, parts, beside, .. } in sources {
            let parts = &parts[..parts.len().min(MOST_PARTS)];
            let parts = if parts.is_empty() { String::new() } else { format!("{}.", parts.join("; ")) };
            let sentences = [sum, escape(&parts), escape(&beside)].into_iter().filter(|it| !it.is_empty());
            let _ = writeln!(text, "* **{}**: {cost}. {}", escape(&name), sentences.collect::<Vec<_>>().join(" "));
        }
    }
    if !atlas.unmeasured.is_empty() {
        text.push_str("\n## Not yet measured\n\n");
        for (product, protections) in &atlas.unmeasured {
            let _ = writeln!(text, "* {}: {}", escape(product), escape(&protections.join(", ")));
        }
    }
    text.push_str("\n## Runs\n\n| run | experiment |");
    RUN_FACTS.iter().for_each(|name| text.extend([" ", name, " |"]));
    text.push_str("\n|---|---|---|---|---|---|---|---|\n");
    for (index, kept) in atlas.runs.iter().enumerate() {
        let RunLine { number, path, experiment, facts } = run_line(index, kept);
        let facts: Vec<String> = facts.iter().map(|fact| escape(fact)).collect();
        let _ = writeln!(text, "| [{number}]({path}) | {} | {} |", escape(&experiment), facts.join(" | "));
    }
    let _ = write!(text, "\n{}\n", escape(&hosts(atlas)));
    if let Some(controls) = controls(atlas) {
        let _ = write!(text, "\n{controls}\n");
    }
    text
}

fn place(atlas: &Atlas, place: &Place) -> String {
    match place {
        Place::Empty(why) => escape(why),
        Place::Measured(all) => all.iter().map(|it| one(atlas, it)).collect::<Vec<_>>().join("<br>"),
    }
}

fn one(atlas: &Atlas, measured: &Measured) -> String {
    let (lead, rest) = cost(measured);
    let name = if measured.name.is_empty() { String::new() } else { format!("{}: ", escape(&measured.name)) };
    let cost = format!("{name}**{lead}** {rest}");
    let figures = [cost.trim().to_owned(), added(measured), escape(&over_hosts(measured))];
    let figures: Vec<String> = figures.into_iter().filter(|it| !it.is_empty()).collect();
    let links = measured.runs.iter().map(|run| format!("[{}](atlas/{})", run + 1, atlas.runs[*run].file));
    let links = links.collect::<Vec<_>>().join(", ");
    format!("{} ✓ {}/{} {links}", figures.join(", "), fewest(&measured.frames), fewest(&measured.starts))
}

/// The effect by which a place is sorted: the highest of its costs; the lowest value for an empty place.
pub fn rank(place: &Place) -> f64 {
    match place {
        Place::Empty(_) => f64::MIN,
        Place::Measured(all) => all.iter().filter_map(Measured::middle).fold(f64::MIN, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::{KeptRun, Place, added, over_hosts};
    use crate::{
        Flag, Proof,
        atlas::{of, sample},
        report::{html, sample::without_style},
    };

    /// The amounts of TLS over these runs, and what is said of its hosts.
    fn told(runs: Vec<KeptRun>) -> (String, String) {
        let atlas = of(runs, &sample::offered());
        let row = atlas.rows.iter().find(|row| row.arm == "tls").expect("a row");
        let Place::Measured(all) = &row.places[0] else { panic!("{row:?}") };
        (added(&all[0]), over_hosts(&all[0]))
    }

    #[test]
    fn amounts_of_hosts_are_those_of_intervals_where_zero_is_possible() {
        let amounts =
            |second: f64| told(vec![sample::on_host("aa11aa11aa11", 1.0), sample::on_host("bb22bb22bb22", second)]).0;
        assert_eq!(amounts(1.1), "15.6 to 15.6 µs");
        assert_eq!(amounts(0.0), "14.9 to 16.3 µs", "the second host finds no cost");
    }

    #[test]
    fn a_run_that_does_not_count_is_named() {
        let with = |flag: Option<Flag>, proof: Proof| {
            let mut third = sample::on_host("cc33cc33cc33", 0.8);
            let tls = &mut third.run.outcome.cells[0].arms[0];
            tls.flags.extend(flag);
            tls.proof = proof;
            told(vec![sample::on_host("aa11aa11aa11", 1.0), sample::on_host("bb22bb22bb22", 1.1), third]).1
        };
        assert!(with(None, Proof::Proven).starts_with("3 hosts from +31.3 % to +45.4 %, spread "));
        let unproven = with(None, Proof::Unproven(vec!["no log was found".to_owned()]));
        assert_eq!(unproven, "without run 3: not proven");
        let unsteady = with(Some(Flag::NotSteady), Proof::Proven);
        assert_eq!(unsteady, "without run 3: servers were not steady yet");
    }

    #[test]
    fn both_forms_of_an_atlas() {
        let atlas = sample::full();
        expect_file!["golden/atlas.md"].assert_eq(&super::markdown(&atlas));
        expect_file!["golden/atlas.html"].assert_eq(&without_style(&html::atlas(&atlas)));
    }
}
