//! The properties of a workload of scripts.

use std::collections::BTreeMap;

use tithe_model::catalogue::{
    LineProblem, Properties, PropertyFile, PropertyProblem, WireProtocol, WorkloadEntry, WorkloadShape,
};
use tithe_plugin::session::Protocol;

use super::{
    builtin::{PREFIX, PRESETS},
    program::{Program, Source, Transactions},
    statement::Flavour,
    variables::is_valid,
};
use crate::{
    copy_limit,
    program::{numbered, one_of, secrets, unknown, words},
};

/// Prefix of the properties of scripts: `script`, `script_2`.
const SCRIPT: &str = "script";
/// Prefix of the properties of their weights.
const WEIGHT: &str = "weight";
/// Prefix of the properties of their names.
const FILE: &str = "file";

/// The property of scripts for servers whose strings have backslashes, which follows from the database.
const BACKSLASHES: &str = "backslashes";

const KNOWN: [&str; 7] = ["protocol", "define", "max_tries", "write_in_place", "commit", "copy_limit", BACKSLASHES];

/// Scripts for the catalogue.
pub fn entry() -> WorkloadEntry {
    WorkloadEntry {
        id: "script",
        title: "Statements of your own, in pgbench's language: the properties protocol, define, max_tries, write_in_place and commit",
        presets: PRESETS,
        file: "a script, or a list of scripts with weights: [\"app.sql@3\", \"report.sql@1\"]",
        weighted: true,
        scripts: SCRIPT,
        by_path: "",
        commands: &[],
        read,
        asks: |_| Vec::new(),
        check: |properties| Config::resolve(properties).err().unwrap_or_default(),
        shape: |properties| WorkloadShape {
            writes: Config::resolve(properties).map_or(true, |config| config.program.writes()),
            record_bytes: 0,
            program: false,
            gaps: false,
            batch: Some(1),
            slot_ns: None,
        },
    }
}

/// A script is a property like any other, so that a run's record contains it.
fn read(file: &PropertyFile<'_>) -> Result<Properties, Vec<LineProblem>> {
    let text = file.text()?;
    let mut problems = secrets(text);
    if text.trim().is_empty() {
        problems.push((1, "the script is empty".to_owned(), "write what a transaction does".to_owned()));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let name = file.name.rsplit('/').next().unwrap_or(file.name);
    let mut properties = BTreeMap::from([
        (numbered(SCRIPT, file.number), text.to_owned()),
        (numbered(FILE, file.number), name.to_owned()),
        (numbered(WEIGHT, file.number), file.weight.unwrap_or(1).to_string()),
    ]);
    if file.protocol == Some(WireProtocol::MySql) {
        properties.insert(BACKSLASHES.to_owned(), "true".to_owned());
    }
    Ok(properties)
}

/// A workload of scripts.
pub struct Config {
    /// The scripts of its clients.
    pub program: Program,
    /// The scale of the tables of built-in scripts; `None` if all scripts are the user's own.
    pub built_in_scale: Option<u64>,
    /// The value of `:scale`.
    pub scale: u64,
}

impl Config {
    /// The workload of `properties`.
    ///
    /// # Errors
    /// Every problem.
    pub fn resolve(properties: &Properties) -> Result<Self, Vec<PropertyProblem>> {
        let mut problems = Vec::new();
        let is_numbered = |name: &str| {
            [SCRIPT, WEIGHT, FILE].iter().filter_map(|known| name.strip_prefix(known)).any(|rest| {
                rest.is_empty() || rest.strip_prefix('_').is_some_and(|number| number.parse::<u32>().is_ok())
            })
        };
        let others = properties.clone().into_iter().filter(|(name, _)| !is_numbered(name)).collect();
        unknown(&others, &KNOWN, &mut problems);
        let protocol =
            match one_of(properties, ("protocol", "simple"), &["simple", "extended", "prepared"], &mut problems)
                .as_str()
            {
                "extended" => Protocol::Extended,
                "prepared" => Protocol::Prepared,
                _ => Protocol::Simple,
            };
        let max_tries = properties.get("max_tries").map_or(Ok(1), |text| text.parse::<u64>()).unwrap_or_else(|_| {
            let help = "write how often a transaction is tried, 0 for no limit".to_owned();
            problems.push(("max_tries".to_owned(), "is not a whole number".to_owned(), help));
            1
        });
        let defined = words::defined(properties, is_valid, &mut problems);
        let of_define = defined.iter().find(|(name, _)| name == "scale").map_or("1", |(_, value)| value);
        let scale = of_define.parse().ok().filter(|scale| (1..=20_000).contains(scale)).unwrap_or_else(|| {
            let help = "write for example `define = \"scale=10\"`".to_owned();
            problems.push(("define".to_owned(), "scale is not a whole number from 1 to 20000".to_owned(), help));
            1
        });
        let count = properties.keys().filter(|name| *name == SCRIPT || name.starts_with("script_")).count();
        let mut sources = Vec::new();
        for number in 1..=count {
            let Some(text) = properties.get(&numbered(SCRIPT, number)) else { continue };
            let name = properties.get(&numbered(FILE, number)).map_or(SCRIPT, String::as_str);
            let weight = properties.get(&numbered(WEIGHT, number)).map_or(Ok(1), |weight| weight.parse());
            sources.push(Source { name, weight: weight.unwrap_or(1), text });
        }
        if !sources.is_empty() && sources.iter().all(|source| source.weight == 0) {
            problems.push((
                SCRIPT.to_owned(),
                "total script weight must not be zero".to_owned(),
                "write `@1`".to_owned(),
            ));
        }
        let built_in = sources.iter().any(|source| source.name.starts_with(PREFIX));
        if built_in && !sources.iter().all(|source| source.name.starts_with(PREFIX)) {
            let problem = "built-in scripts have tables of Tithe's, and your own scripts have yours".to_owned();
            problems.push((SCRIPT.to_owned(), problem, "give each a workload of its own".to_owned()));
        }
        let in_place = properties.get("write_in_place").map_or("", String::as_str).split(',').map(str::trim);
        let in_place: Vec<String> = in_place.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let commit = one_of(properties, ("commit", "false"), &["true", "false"], &mut problems) == "true";
        if commit && in_place.is_empty() {
            let help = "name the tables by `write_in_place`, or leave `commit` out".to_owned();
            problems.push(("commit".to_owned(), "applies only to tables that are changed in place".to_owned(), help));
        }
        let copy_limit = copy_limit(properties, &mut problems);
        let transactions = Transactions { max_tries, in_place, commit, copy_limit };
        let escapes = properties.get(BACKSLASHES).is_some_and(|escapes| escapes == "true");
        let flavour = if escapes { Flavour::MySql } else { Flavour::Postgres };
        match Program::new(&sources, flavour, &defined, protocol, transactions) {
            Ok(program) if problems.is_empty() => {
                Ok(Self { program, built_in_scale: built_in.then_some(scale), scale })
            }
            Ok(_) => Err(problems),
            Err(refusals) => {
                problems.extend(refusals.into_iter().map(|(number, refusal)| {
                    let place = refusal.place;
                    let name = sources[number].name;
                    let problem = format!("{name}, line {}, column {}: {}", place.line, place.column, refusal.problem);
                    (numbered(SCRIPT, number + 1), problem, refusal.help)
                }));
                Err(problems)
            }
        }
    }
}
