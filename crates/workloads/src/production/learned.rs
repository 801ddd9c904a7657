//! Which of the statements in a server's statistics can be replayed, and why the others cannot.

use std::collections::{BTreeMap, BTreeSet};

use tithe_machine::fault::Fault;
use tithe_model::schedule::SplitMix64;
use tithe_plugin::production::{ColumnValues, Counted, Production};

use super::{
    parameters::{Parsed, Place, parsed},
    values::Values,
};
use crate::{
    replay::{
        names,
        sql::{Flavour, Kind, Piece, kind, pieces, shape},
    },
    script::guard,
};

/// Most statements that are drawn: those with the most time.
const MOST: usize = 100;

/// The longest text that is drawn, bytes.
const LONGEST: usize = 64 << 10;

/// Schemas of the server's own, which contain no table of the user's.
const OF_SERVERS: [&str; 3] = ["information_schema", "performance_schema", "pg_catalog"];

/// Why a statement is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It is neither a query nor a change of rows.
    Utility,
    /// The server keeps only its beginning, or not the length of its lists.
    Cut,
    /// It names no table of the user's.
    NoTable,
    /// No column was found for a parameter.
    NoColumn,
    /// The values of a column are unknown.
    NoValues,
    /// It writes values of a unique index, which already exist.
    Key,
    /// It names a table's schema, but other statements change the copy.
    Qualified,
    /// The server refuses it with values.
    Refused,
    /// Others took more time.
    Beyond,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Self::Utility => "neither queries nor changes of rows",
            Self::Cut => "texts are cut, or lists have no length",
            Self::NoTable => "no table of yours",
            Self::NoColumn => "no column found for a parameter",
            Self::NoValues => "the server knows no values of a column: ANALYZE its table",
            Self::Key => "values of a unique index would be written twice",
            Self::Qualified => "tables are named with their schema, and copies are elsewhere",
            Self::Refused => "the server takes no values there",
            Self::Beyond => "beyond the 100 that took most",
        }
    }
}

/// A statement that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawn {
    /// Its name.
    pub name: String,
    /// Its text without values.
    pub text: String,
    parsed: Parsed,
    limit: u64,
    /// The number of calls of it and of those before it.
    until: u64,
    writes: bool,
}

/// What was learned from a server.
#[derive(Debug, PartialEq)]
pub struct Learned {
    /// Statements, the one with the most time first.
    pub statements: Vec<Drawn>,
    values: Vec<Option<Values>>,
    flavour: Flavour,
    /// Lines of the report.
    pub lines: Vec<(String, String)>,
}

impl Learned {
    /// Draws a statement in proportion to its calls; returns its number.
    pub fn choose(&self, random: &mut SplitMix64) -> usize {
        let all = self.statements.last().map_or(1, |last| last.until);
        let drawn = random.below(all.max(1));
        self.statements.partition_point(|statement| statement.until <= drawn)
    }

    /// Writes statement `number` with values to `out`.
    pub fn fill(&self, number: usize, random: &mut SplitMix64, out: &mut String) {
        fill(&self.statements[number], &self.values, self.flavour, random, out);
    }

    /// True when some statement changes rows.
    pub fn writes(&self) -> bool {
        self.statements.iter().any(|statement| statement.writes)
    }

    /// Every name in the statements.
    pub fn names(&self) -> BTreeSet<String> {
        self.statements.iter().flat_map(|drawn| guard::names(&drawn.text, self.flavour)).collect()
    }

    /// Statement `number` with values, always the same.
    pub fn sample(&self, number: usize) -> String {
        let mut text = String::new();
        self.fill(number, &mut SplitMix64::new(number as u64), &mut text);
        text
    }
}

fn fill(drawn: &Drawn, values: &[Option<Values>], flavour: Flavour, random: &mut SplitMix64, out: &mut String) {
    out.clear();
    let mut written: Vec<Option<std::ops::Range<usize>>> = vec![None; drawn.parsed.places.len()];
    for (before, parameter) in &drawn.parsed.parts {
        out.push_str(before);
        // A parameter that occurs twice has one value.
        if let Some(range) = written[*parameter].clone() {
            out.extend_from_within(range);
            continue;
        }
        let start = out.len();
        match drawn.parsed.places[*parameter] {
            Some(Place::Column(column)) => {
                values[column].iter().for_each(|values| values.draw(random, flavour, out));
            }
            Some(Place::Limit) => out.push_str(&drawn.limit.to_string()),
            Some(Place::Offset) => out.push('0'),
            Some(Place::Constant) | None => out.push('1'),
        }
        written[*parameter] = Some(start..out.len());
    }
    out.push_str(&drawn.parsed.rest);
}

/// The kind of a statement, according to its text, or why it cannot be drawn.
fn judged(counted: &Counted, parsed: &Parsed, values: &[Option<Values>], columns: &[ColumnValues]) -> Option<Reason> {
    let text = &counted.text;
    let column = |place: &Option<Place>| if let Some(Place::Column(column)) = place { Some(*column) } else { None };
    if text.contains("...") || text.len() > LONGEST {
        return Some(Reason::Cut);
    }
    if !parsed.tables.iter().any(|table| columns.iter().any(|it| it.table.eq_ignore_ascii_case(&table.name))) {
        return Some(Reason::NoTable);
    }
    if parsed.places.contains(&None) {
        return Some(Reason::NoColumn);
    }
    if parsed.places.iter().filter_map(column).any(|column| values[column].is_none()) {
        return Some(Reason::NoValues);
    }
    parsed.written.iter().any(|column| columns[*column].is_key).then_some(Reason::Key)
}

/// True for a statement that queries the server's own state.
fn is_of_server(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    OF_SERVERS.iter().any(|schema| text.contains(schema))
}

/// True for a statement of a run of Tithe, whose schemas and tables have unique names: it is no work of users.
fn is_of_tithe(text: &str, flavour: Flavour) -> bool {
    guard::names(text, flavour).iter().any(|name| name.starts_with("tithe_"))
}

/// True for a query or a change of rows that may be run alone.
fn is_work(text: &str, flavour: Flavour) -> bool {
    // Tools and drivers write comments before their statements.
    let first = pieces(text, flavour).find_map(|(piece, _)| match piece {
        Piece::Word(word) => Some(word),
        _ => None,
    });
    let first = first.unwrap_or_default();
    let known = ["SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE"];
    let is_known = known.iter().any(|word| first.eq_ignore_ascii_case(word));
    is_known && matches!(kind(text, flavour), Kind::Reads | Kind::Writes) && guard::refuses(text, flavour).is_none()
}

/// Learns from `production` which statements to draw.
///
/// # Errors
/// [`Fault::Refused`] with everything that the account lacks, or if nothing can be drawn; the server's error.
pub fn learn(production: &mut dyn Production) -> Result<Learned, Fault> {
    let flavour = Flavour::of(production.protocol());
    let flavour = flavour.ok_or_else(|| Fault::Refused("the server counts no statements of SQL".to_owned()))?;
    let mut counted = production.counted()?;
    counted.retain(|it| !is_of_tithe(&it.text, flavour));
    let mut left_out: BTreeMap<Reason, (u64, u64)> = BTreeMap::new();
    let mut leave = |reason: Reason, ns: u64| {
        let (count, all_ns) = left_out.entry(reason).or_default();
        (*count, *all_ns) = (*count + 1, *all_ns + ns);
    };
    let mut work: Vec<&Counted> = Vec::new();
    for it in &counted {
        match () {
            () if !is_work(&it.text, flavour) => leave(Reason::Utility, it.ns),
            () if is_of_server(&it.text) => leave(Reason::NoTable, it.ns),
            () => work.push(it),
        }
    }
    let names: BTreeSet<String> = work.iter().flat_map(|it| guard::names(&it.text, flavour)).collect();
    let grants = production.grants(&work, &names)?;
    if !grants.is_empty() {
        let all: Vec<String> = grants.into_iter().collect();
        return Err(Fault::Refused(format!("the account may not read what statements name: run `{}`", all.join("; "))));
    }
    let columns = production.columns(&names)?;
    let values: Vec<Option<Values>> = columns.iter().map(Values::of).collect();
    let mut statements: Vec<(Drawn, &Counted)> = Vec::new();
    for it in work {
        let parsed = parsed(&it.text, flavour, &columns);
        if let Some(reason) = judged(it, &parsed, &values, &columns) {
            leave(reason, it.ns);
            continue;
        }
        let limit = it.rows.div_ceil(it.calls.max(1)).max(1);
        let name = names::name(&shape(&it.text, flavour).replace(['`', '"'], ""), &[]);
        let writes = guard::writes(&it.text, flavour);
        let drawn = Drawn { name, text: it.text.clone(), parsed, limit, until: 0, writes };
        statements.push((drawn, it));
    }
    let copies = statements.iter().any(|(drawn, _)| drawn.writes);
    let (mut kept, mut kept_ns, mut calls): (Vec<Drawn>, u64, u64) = (Vec::new(), 0, 0);
    for (mut drawn, it) in statements {
        let mut text = String::new();
        fill(&drawn, &values, flavour, &mut SplitMix64::new(kept.len() as u64), &mut text);
        if copies && drawn.parsed.tables.iter().any(|table| table.is_qualified) {
            leave(Reason::Qualified, it.ns);
        } else if kept.len() == MOST {
            leave(Reason::Beyond, it.ns);
        } else if production.refuses(&text)?.is_some() {
            leave(Reason::Refused, it.ns);
        } else {
            calls += it.calls;
            kept_ns += it.ns;
            drawn.until = calls;
            drawn.name = format!("{}:{}", drawn.name, kept.len() + 1);
            kept.push(drawn);
        }
    }
    let all_ns = counted.iter().map(|it| it.ns).sum::<u64>().max(1);
    let share = |ns: u64| format!("{:.1} % of their time", ns as f64 / all_ns as f64 * 100.0);
    let (source, drawn_from) = production.sources();
    let (of, all) = (kept.len(), counted.len());
    let mut lines = vec![
        (
            "like production".to_owned(),
            format!("{of} statements of {all} that {source} has counted, {}", share(kept_ns)),
        ),
        ("statements".to_owned(), "by calls, each by itself: transactions are not counted".to_owned()),
        ("parameters".to_owned(), format!("drawn from {drawn_from}, not the ones that were used")),
    ];
    lines.extend(
        left_out
            .into_iter()
            .map(|(reason, (count, ns))| ("left out".to_owned(), format!("{}: {count}, {}", reason.text(), share(ns)))),
    );
    if kept.is_empty() {
        let words: Vec<String> = lines.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        return Err(Fault::Refused(format!("no statement can be drawn; {}", words.join("; "))));
    }
    Ok(Learned { statements: kept, values, flavour, lines })
}
