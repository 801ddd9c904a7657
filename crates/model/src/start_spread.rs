//! The known start-to-start variation: how much identical arms differ from one start of the servers to the next.
//!
//! The figures are data with a source, one line per database and metric. Built in are `data/start-spread.csv` for arms
//! with separate servers, and `data/one-server-spread.csv` for arms that share a server and only read, where a lucky
//! start favours all of them. `data/cost-spread.csv` has the additional start-to-start variation of a protection, as a
//! share of its cost. A file of the same form as the first two, from the user's own machine, replaces both for the
//! databases that it names. Format: FORMAT.md.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::experiment::Metric;

/// Built-in figures of arms with separate servers.
const BUILT_IN: &str = include_str!("../data/start-spread.csv");

/// Built-in figures of arms that share a server.
const ON_ONE_SERVER: &str = include_str!("../data/one-server-spread.csv");

/// Built-in figures of protections, in addition to the variation of identical arms.
const OF_COSTS: &str = include_str!("../data/cost-spread.csv");

/// First line of every such file after comments, except the file of costs.
const HEAD: &str = "database,metric,spread,degrees,source";

/// The name in the lines for databases without their own.
const OTHER: &str = "other";

/// The beginning of a new file.
const NOTE: &str = "\
# How much identical arms differ from one start of the servers to the next, for `tithe run --start-spread`.
# `tithe calibrate --starts` has measured it.
";

/// The start-to-start variation of one database, in one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartSpread {
    /// The metric.
    pub metric: Metric,
    /// Standard deviation of ln(arm ÷ plain) from one start to the next; 0 if starts do not differ.
    pub spread: f64,
    /// Its degrees of freedom.
    pub degrees: f64,
    /// Where it was measured.
    pub source: String,
}

/// How much the cost of a protection differs from one start to the next, in addition to identical arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostSpread {
    /// Standard deviation of ln(protected ÷ plain) from one start to the next, as a share of its mean.
    pub share: f64,
    /// Its degrees of freedom.
    pub degrees: f64,
    /// Where it was measured.
    pub source: String,
}

/// Built-in figures for protections of `database`; `None` only if an embedded file cannot be read.
pub fn of_costs(database: &str) -> Option<CostSpread> {
    let of = |name: &str| {
        let mut fields = OF_COSTS.lines().map(|line| line.splitn(4, ',').collect::<Vec<_>>());
        fields.find(|fields| fields.first() == Some(&name)).and_then(|fields| cost_spread(&fields))
    };
    of(database).or_else(|| of(OTHER))
}

/// The fields of a line: database, share, degrees, source.
fn cost_spread(fields: &[&str]) -> Option<CostSpread> {
    let [_, share, degrees, source] = fields else { return None };
    let source = source.trim_matches('"').to_owned();
    Some(CostSpread { share: share.parse().ok()?, degrees: degrees.parse().ok()?, source })
}

/// Built-in figures for arms of `database` with separate servers, one for each measured metric; never empty.
pub fn built_in(database: &str) -> Vec<StartSpread> {
    of_or_other(BUILT_IN, database)
}

/// The same for arms that share a server.
pub fn on_one_server(database: &str) -> Vec<StartSpread> {
    of_or_other(ON_ONE_SERVER, database)
}

/// The lines of `text`, an embedded file, for `database`, else for `other`.
pub(crate) fn of_or_other(text: &str, database: &str) -> Vec<StartSpread> {
    // A test reads every such file.
    let lines = parse(text).unwrap_or_default();
    of(&lines, database).or_else(|| of(&lines, OTHER)).unwrap_or_default()
}

/// The figures of `lines` for `database`; `None` if they do not name it.
pub fn of(lines: &[(String, StartSpread)], database: &str) -> Option<Vec<StartSpread>> {
    let known: Vec<StartSpread> =
        lines.iter().filter(|(name, _)| name == database).map(|(_, spread)| spread.clone()).collect();
    (!known.is_empty()).then_some(known)
}

/// The known figure of `metric`: the line of the metric itself, else the largest of all. `None` if starts do not
/// differ.
pub fn of_metric(known: &[StartSpread], metric: Metric) -> Option<&StartSpread> {
    let own = known.iter().find(|spread| spread.metric == metric);
    let largest = || known.iter().max_by(|a, b| a.spread.total_cmp(&b.spread));
    own.or_else(largest).filter(|spread| spread.spread > 0.0)
}

/// The figures of `text`, a file of variations, for `database`.
///
/// # Errors
/// As [`parse`]; if no line is for the database, the error names those in the file.
pub fn read(text: &str, database: &str) -> Result<Vec<StartSpread>, String> {
    let lines = parse(text)?;
    of(&lines, database).ok_or_else(|| {
        let named: BTreeSet<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
        match named.len() {
            0 => format!("no line is of {database}, nor of any other database"),
            _ => format!("no line is of {database}; its lines are of {}", Vec::from_iter(named).join(", ")),
        }
    })
}

/// `text`, a file of variations or empty, with `spreads` in place of its lines for `database`. Everything else stays
/// unchanged.
///
/// # Errors
/// As [`parse`], if `text` is not empty.
pub fn replaced(text: &str, database: &str, spreads: &[StartSpread]) -> Result<String, String> {
    let mut lines: Vec<String> = if text.is_empty() {
        vec![format!("{NOTE}{HEAD}")]
    } else {
        parse(text)?;
        text.lines().filter(|line| *line == HEAD || database_of(line) != Some(database)).map(str::to_owned).collect()
    };
    lines.extend(spreads.iter().map(|spread| line(database, spread)));
    Ok(lines.join("\n") + "\n")
}

/// The database of a line; `None` for a comment.
fn database_of(line: &str) -> Option<&str> {
    line.split(',').next().map(str::trim).filter(|_| !line.starts_with('#'))
}

/// Reads a file of variations: database and figure of each line.
///
/// # Errors
/// The problem with the first line that cannot be read, with its number.
pub fn parse(text: &str) -> Result<Vec<(String, StartSpread)>, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some((_, HEAD)) => {}
        Some((number, other)) => return Err(format!("line {number}: {other:?} is not the head {HEAD:?}")),
        None => return Err(format!("there is no line {HEAD:?}")),
    }
    let mut all: Vec<(String, StartSpread)> = Vec::new();
    for (number, line) in lines {
        let (database, spread) = parse_line(line).map_err(|flaw| format!("line {number}: {flaw}"))?;
        if all.iter().any(|(other, it)| *other == database && it.metric == spread.metric) {
            return Err(format!("line {number}: it is the second of this metric of {database}"));
        }
        all.push((database, spread));
    }
    Ok(all)
}

fn parse_line(line: &str) -> Result<(String, StartSpread), String> {
    let fields: Vec<&str> = line.splitn(5, ',').map(str::trim).collect();
    let [database, metric, spread, degrees, source] = fields[..] else {
        return Err(format!("{} fields, not {HEAD:?}", fields.len()));
    };
    let metric = serde_json::from_value(serde_json::Value::String(metric.to_owned()))
        .map_err(|_| format!("{metric:?} is not a metric: write net, time, cpu, client-cpu or server-cpu"))?;
    let number = |text: &str, least: f64, most: f64| {
        let number = text.parse::<f64>().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("{text:?} is not a number from {least} to {most}"))
    };
    let source = source.trim_matches('"').to_owned();
    if source.is_empty() {
        return Err("the source is missing: where and when it was measured".to_owned());
    }
    let spread = StartSpread { metric, spread: number(spread, 0.0, 1.0)?, degrees: number(degrees, 1.0, 1e6)?, source };
    Ok((database.to_owned(), spread))
}

/// The line of a file for `spread` of `database`.
pub fn line(database: &str, spread: &StartSpread) -> String {
    let StartSpread { metric, spread, degrees, source } = spread;
    let metric = serde_json::to_value(metric).ok().and_then(|value| value.as_str().map(str::to_owned));
    let source = source.replace('"', "'").replace(char::is_control, " ");
    let spread = (spread * 1e6).round() / 1e6;
    format!("{database},{},{spread},{degrees:.0},\"{source}\"", metric.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_tithe_brings_can_be_read() {
        for text in [BUILT_IN, ON_ONE_SERVER] {
            let lines = parse(text).expect("readable");
            assert!(lines.iter().any(|(database, _)| database == OTHER));
            for (database, spread) in &lines {
                assert_eq!(
                    parse(&format!("{HEAD}\n{}", line(database, spread))),
                    Ok(vec![(database.clone(), spread.clone())])
                );
            }
        }
        assert_eq!(built_in("a database of tomorrow"), built_in(OTHER));
        assert_eq!(on_one_server("a database of tomorrow"), on_one_server(OTHER));
    }

    #[test]
    fn arms_on_one_server_have_figures_of_their_own() {
        for database in ["postgres", "a database that nobody measured"] {
            let (apart, shared) = (built_in(database), on_one_server(database));
            assert!(!apart.is_empty() && !shared.is_empty() && apart != shared, "{database}");
        }
    }

    #[test]
    fn what_tithe_brings_of_costs_can_be_read() {
        let mut lines = OF_COSTS.lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.next(), Some("database,share,degrees,source"));
        let databases: Vec<&str> = lines.filter_map(database_of).collect();
        assert!(databases.contains(&OTHER) && databases.contains(&"postgres"), "{databases:?}");
        for database in databases {
            let spread = of_costs(database).expect("readable");
            assert!((0.0..1.0).contains(&spread.share) && spread.degrees >= 1.0, "{spread:?}");
            assert!(!spread.source.is_empty() && !spread.source.contains('"'), "{spread:?}");
        }
        assert_eq!(of_costs("a database of tomorrow"), of_costs(OTHER));
    }

    #[test]
    fn a_metric_that_was_not_measured_is_as_bad_as_the_worst() {
        let of = |metric, spread| StartSpread { metric, spread, degrees: 7.0, source: String::new() };
        let known = [of(Metric::Cpu, 0.01), of(Metric::Net, 0.02)];
        assert_eq!(of_metric(&known, Metric::Cpu), Some(&known[0]));
        assert_eq!(of_metric(&known, Metric::Time), Some(&known[1]));
        assert_eq!(of_metric(&[of(Metric::Cpu, 0.0)], Metric::Time), None);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let flaw = |line: &str| parse(&format!("# of my machine\n{HEAD}\n{line}\n")).expect_err("flawed");
        assert_eq!(flaw("postgres,cpu,0.01,7"), format!("line 3: 4 fields, not {HEAD:?}"));
        assert_eq!(flaw("postgres,cpu,much,7,here"), "line 3: \"much\" is not a number from 0 to 1");
        assert_eq!(flaw("postgres,cpu,0.01,0,here"), "line 3: \"0\" is not a number from 1 to 1000000");
        assert!(flaw("postgres,speed,0.01,7,here").starts_with("line 3: \"speed\" is not a metric"));
        assert!(flaw("postgres,cpu,0.01,7,\"\"").starts_with("line 3: the source is missing"));
        let twice = "postgres,cpu,0.01,7,here\npostgres,cpu,0.02,7,there";
        assert_eq!(flaw(twice), "line 4: it is the second of this metric of postgres");
        assert_eq!(parse("spread\n").expect_err("no head"), format!("line 1: \"spread\" is not the head {HEAD:?}"));
    }

    #[test]
    fn a_file_says_what_it_knows_of_a_database_and_which_it_names() {
        let text = format!("{HEAD}\nredis,cpu,0.01,7,here\npostgres,cpu,0.02,7,here\nredis,net,0.03,7,there\n");
        let known = read(&text, "redis").expect("named");
        assert_eq!(known.iter().map(|it| it.spread).collect::<Vec<_>>(), [0.01, 0.03]);
        assert_eq!(read(&text, "mysql").expect_err("none"), "no line is of mysql; its lines are of postgres, redis");
        assert_eq!(read(HEAD, "mysql").expect_err("none"), "no line is of mysql, nor of any other database");
        assert!(read("", "mysql").is_err_and(|flaw| flaw.starts_with("there is no line")));
    }

    #[test]
    fn the_lines_of_one_database_are_replaced_and_all_others_stay() {
        let new = [StartSpread { metric: Metric::Cpu, spread: 0.0123, degrees: 11.0, source: "a\n\"b\"".to_owned() }];
        let fresh = replaced("", "redis", &new).expect("a file");
        assert_eq!(read(&fresh, "redis").map(|known| known[0].source.clone()), Ok("a 'b'".to_owned()));
        let text = format!("# mine\n{HEAD}\nredis,net,0.03,7,there\n# of the other\npostgres,cpu,0.020,7,\"x, y\"");
        let changed = replaced(&text, "redis", &new).expect("a file");
        let kept = format!("# mine\n{HEAD}\n# of the other\npostgres,cpu,0.020,7,\"x, y\"\n");
        assert_eq!(changed, format!("{kept}redis,cpu,0.0123,11,\"a 'b'\"\n"));
        assert_eq!(replaced(&changed, "redis", &new), Ok(changed.clone()));
        assert!(replaced("something else\n", "redis", &new).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = parse(&text);
            let _ = parse(&format!("{HEAD}\n{text}"));
        }
    }
}
