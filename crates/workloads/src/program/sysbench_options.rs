//! The options of sysbench 1.0 by their own names: which are passed on, which come from elsewhere in an experiment,
//! which are ignored, and why.
//!
//! A name is written with dashes or underscores, as sysbench accepts both. In properties it has underscores, unless the
//! experiment itself writes dashes: this distinguishes its own spelling from a file's, and it wins.

use tithe_model::{
    catalogue::{Asked, AskedOf, Properties, PropertyProblem},
    diagnostic,
};

/// Options that change the work and are passed on, each with its allowed words; without any it takes a number.
const PASSED: &[(&str, &[&str])] = &[
    ("auto_inc", SWITCH),
    ("create_secondary", SWITCH),
    ("db_ps_mode", &["auto", "disable"]),
    ("delete_inserts", &[]),
    ("distinct_ranges", &[]),
    ("index_updates", &[]),
    ("non_index_updates", &[]),
    ("order_ranges", &[]),
    ("point_selects", &[]),
    ("rand_pareto_h", &[]),
    ("rand_spec_iter", &[]),
    ("rand_spec_pct", &[]),
    ("rand_spec_res", &[]),
    ("rand_type", &["uniform", "gaussian", "special", "pareto"]),
    ("range_selects", SWITCH),
    ("range_size", &[]),
    ("secondary", SWITCH),
    ("simple_ranges", &[]),
    ("skip_trx", SWITCH),
    ("sum_ranges", &[]),
];

/// Those of them that describe the tables.
const OF_TABLES: [&str; 3] = ["auto_inc", "create_secondary", "secondary"];

const SWITCH: &[&str] = &["on", "off", "true", "false"];

const TIME: &str = "the experiment's [measure] decides it";
const MEASURES: &str = "Tithe measures and reports by itself";
const SERVER: &str = "the experiment's database and arms decide it";

/// Options that are accepted but not used, and why. A name that ends in an underscore stands for all names with this
/// prefix.
const IGNORED: &[(&str, &str)] = &[
    ("config_file", "the experiment names it"),
    ("db_debug", MEASURES),
    ("db_driver", SERVER),
    ("debug", MEASURES),
    ("events", TIME),
    ("forced_shutdown", TIME),
    ("histogram", MEASURES),
    ("max_requests", TIME),
    ("max_time", TIME),
    ("mysql_", SERVER),
    ("percentile", MEASURES),
    ("pgsql_", SERVER),
    ("rand_seed", "the experiment's seed decides it"),
    ("report_checkpoints", MEASURES),
    ("report_interval", MEASURES),
    ("thread_stack_size", "sysbench's own is used"),
    ("time", TIME),
    ("validate", MEASURES),
    ("verbosity", MEASURES),
];

/// Options that come from elsewhere in an experiment.
const ASKED: [&str; 3] = ["num_threads", "table_size", "threads"];

/// A rate, which is not passed to sysbench.
const RATES: [&str; 2] = ["rate", "tx_rate"];

/// The options in a file: lines of `name=value`, `#` before a comment. A name alone switches something on.
pub fn read(text: &str) -> Properties {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.split_once('=').unwrap_or((line, "on"));
            (underscored(name.trim()), value.trim().trim_matches(['"', '\'']).to_owned())
        })
        .collect()
}

fn underscored(name: &str) -> String {
    name.trim_start_matches('-').replace('-', "_")
}

/// `properties` with underscores in their names; of two spellings the one in the experiment itself wins.
pub fn canonical(properties: &Properties) -> Properties {
    let (plain, spelled): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| underscored(name) == **name);
    plain.into_iter().chain(spelled).map(|(name, value)| (underscored(name), value.clone())).collect()
}

/// Defaults that `properties` set for the experiment.
pub fn asks(properties: &Properties) -> Vec<Asked> {
    let number = |name: &str| properties.get(name)?.parse::<u64>().ok().filter(|&number| number > 0);
    let threads = ["threads", "num_threads"].into_iter().find_map(|name| Some((name, number(name)? as f64)));
    let rows = number("table_size").map(|rows| ("table_size", rows as f64 * number("tables").unwrap_or(1) as f64));
    let asked = |(property, value), of| Asked { property, of, value };
    let threads = threads.map(|threads| asked(threads, AskedOf::Clients));
    threads.into_iter().chain(rows.map(|rows| asked(rows, AskedOf::Records))).collect()
}

/// The options of one experiment.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Options that are passed on.
    passed: Vec<(String, String)>,
    /// Options that are not used, with the reason.
    ignored: Vec<(String, &'static str)>,
}

impl Options {
    /// The options among `properties`, whose names have underscores. A user's script (`own`) may have any.
    pub fn of(properties: &Properties, own: bool, problems: &mut Vec<PropertyProblem>) -> Self {
        let mut options = Self::default();
        let mut problem = |name: &str, problem: String, help: String| problems.push((name.to_owned(), problem, help));
        for (name, value) in properties {
            if let Some((_, words)) = PASSED.iter().find(|(known, _)| known == name) {
                if words.is_empty() && value.parse::<f64>().is_err() {
                    problem(name, format!("{value:?} is not a number"), "write it in digits".to_owned());
                } else if !words.is_empty() && !words.contains(&value.as_str()) {
                    problem(name, format!("{value:?} is not known"), format!("write {}", words.join(" or ")));
                }
                options.passed.push((name.clone(), value.clone()));
            } else if let Some(reason) = reason(name) {
                options.ignored.push((name.clone(), reason));
            } else if RATES.contains(&name.as_str()) {
                if value.parse() != Ok(0) {
                    let help = "leave it out: sysbench is offered a closed loop here".to_owned();
                    problem(name, "is a rate, which Tithe does not ask sysbench for".to_owned(), help);
                }
            } else if ASKED.contains(&name.as_str()) {
                if value.parse::<u64>().is_err() {
                    problem(name, format!("{value:?} is not a whole number"), "write it in digits".to_owned());
                }
            } else if own {
                options.passed.push((name.clone(), value.clone()));
            } else {
                problem(name, "is not an option of sysbench's scripts".to_owned(), help(name));
            }
        }
        options
    }

    /// All passed options, as arguments.
    pub fn arguments(&self) -> Vec<String> {
        self.passed.iter().map(argument).collect()
    }

    /// Those that describe the tables of sysbench's own scripts.
    pub fn of_tables(&self) -> Vec<String> {
        self.passed.iter().filter(|(name, _)| OF_TABLES.contains(&name.as_str())).map(argument).collect()
    }

    /// Lines for the report.
    pub fn describe(&self) -> Vec<(String, String)> {
        let ignored = self.ignored.iter().map(|(name, why)| (name.clone(), format!("ignored: {why}")));
        self.passed.iter().cloned().chain(ignored).collect()
    }

    /// Options that are not passed on, each with the reason.
    pub fn ignored(&self) -> &[(String, &'static str)] {
        &self.ignored
    }
}

fn argument((name, value): &(String, String)) -> String {
    format!("--{}={value}", name.replace('_', "-"))
}

fn reason(name: &str) -> Option<&'static str> {
    let stands_for = |entry: &str| entry == name || entry.ends_with('_') && name.starts_with(entry);
    IGNORED.iter().find(|(entry, _)| stands_for(entry)).map(|(_, reason)| *reason)
}

fn help(name: &str) -> String {
    let known: Vec<&str> = ["script", "tables"].into_iter().chain(PASSED.iter().map(|(name, _)| *name)).collect();
    match diagnostic::nearest(name, known.iter().copied().chain(ASKED)) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const FILE: &str = "# as for --config-file\r\ndb-driver=mysql\r\nmysql-password=x\r\n--tables=4\ntable_size = 25000\n\
                        threads=8\ntime=60\nrand-type=uniform\ndb-ps-mode=disable\nskip-trx\nrate=0\n";

    #[test]
    fn every_option_of_a_file_has_its_place() {
        let properties = read(FILE);
        let mut problems = Vec::new();
        let mut rest = properties.clone();
        rest.remove("tables");
        let options = Options::of(&rest, false, &mut problems);
        assert_eq!(problems, []);
        assert_eq!(options.arguments(), ["--db-ps-mode=disable", "--rand-type=uniform", "--skip-trx=on"]);
        let asked: Vec<String> = asks(&properties).iter().map(|it| format!("{} = {}", it.of.key(), it.value)).collect();
        assert_eq!(asked, ["clients = 8", "records = 100000"]);
        expect![[r#"[("db_driver", "the experiment's database and arms decide it"), ("mysql_password", "the experiment's database and arms decide it"), ("time", "the experiment's [measure] decides it")]"#]]
            .assert_eq(&format!("{:?}", options.ignored));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |name: &str, value: &str| {
            let mut problems = Vec::new();
            Options::of(&Properties::from([(name.to_owned(), value.to_owned())]), false, &mut problems);
            problems.into_iter().map(|(name, problem, help)| format!("{name} {problem} ({help})\n")).collect::<String>()
        };
        let all = [("rate", "50"), ("skip_trx", "maybe"), ("point_selects", "few"), ("threads", "x"), ("tabels", "4")];
        expect![[r#"
            rate is a rate, which Tithe does not ask sysbench for (leave it out: sysbench is offered a closed loop here)
            skip_trx "maybe" is not known (write on or off or true or false)
            point_selects "few" is not a number (write it in digits)
            threads "x" is not a whole number (write it in digits)
            tabels is not an option of sysbench's scripts (did you mean tables?)
        "#]]
        .assert_eq(&all.map(|(name, value)| told(name, value)).concat());
    }

    #[test]
    fn an_experiments_own_spelling_wins() {
        let both = [("rand_type", "uniform"), ("rand-type", "pareto")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(canonical(&both.into())["rand_type"], "pareto");
    }
}
