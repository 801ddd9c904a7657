//! Load that another program offers: pgbench, sysbench, any command.
//!
//! Such a program is a workload of an experiment like any other, with two differences. Its load cannot be cut into
//! short slots, so each arm gets whole slices of it, some seconds each, in the random order of a frame. And the time of
//! an operation is what the program itself reports. Next to it are Tithe's own figures: the processor time of the
//! server while the program ran, and that of the program, as the kernel reports it at its end.
//!
//! Each program is one file here, which implements [`Program`]: the commands, as data, and a reader of the output.
//! [`workspace`] runs it, in the sandbox and under the servers' account. A program runs only on servers that Tithe
//! launched: it creates its own tables, and other servers' objects must not be changed.
//!
//! Not supported: protections by Tithe's own client (encrypted columns, statements for every session), which another
//! program does not have; and the bytes that a program sends, which are not counted.

pub mod command;
pub(crate) mod output;
pub mod pgbench;
pub(crate) mod pgbench_script;
pub mod sysbench;
pub(crate) mod sysbench_options;
pub(crate) mod words;

use tithe_machine::launch::Missing;
use tithe_model::catalogue::{LineProblem, PropertyProblem};
use tithe_plugin::{
    program::Program,
    restore::Restore,
    session::Table,
    workload::{Load, Workload},
};

use crate::dump::Dump;

/// The only recorded operation.
const OPERATION: &str = "TRANSACTION";

/// A workload whose load `program` offers.
pub struct ByProgram<P> {
    program: P,
    /// Data of the user's own, which the program uses in place of data that it would load.
    data: Option<Dump>,
}

impl<P: Program + 'static> ByProgram<P> {
    /// The workload offered by `program`.
    pub fn boxed(program: P) -> Box<dyn Workload> {
        Box::new(Self { program, data: None })
    }

    /// The same on `data`.
    pub fn boxed_on(program: P, data: Option<Dump>) -> Box<dyn Workload> {
        Box::new(Self { program, data })
    }
}

impl<P: Program> Workload for ByProgram<P> {
    fn offered_by(&self) -> Load<'_> {
        Load::Program(&self.program)
    }

    fn operations(&self) -> Vec<&str> {
        vec![OPERATION]
    }

    fn writes(&self) -> bool {
        self.program.writes()
    }

    fn table(&self) -> Table {
        Table::of_canaries()
    }

    fn restore(&self) -> Option<&dyn Restore> {
        self.data.as_ref().map(|data| data as &dyn Restore)
    }

    fn describe(&self) -> Vec<(String, String)> {
        let mut lines = vec![("program".to_owned(), self.program.name().to_owned())];
        lines.extend(self.program.describe());
        lines.extend(self.data.as_ref().map(|data| ("prepared by".to_owned(), data.in_words())));
        lines
    }

    fn ignored(&self) -> Vec<(String, &'static str)> {
        self.program.ignored()
    }
}

/// Programs of `workloads` that are missing on this machine.
pub fn missing(workloads: &[Box<dyn Workload>]) -> Vec<Missing> {
    let mut all: Vec<Missing> = Vec::new();
    for missing in workloads.iter().filter_map(|workload| workload.offered_by().program()?.find().err()) {
        if !all.contains(&missing) {
            all.push(missing);
        }
    }
    all
}

/// Lines of a script that contain a password in a URL: records of an experiment must contain none. Links without one,
/// as in comments, are no secrets.
pub(crate) fn secrets(text: &str) -> Vec<LineProblem> {
    let holds = |line: &str| {
        line.split("://").skip(1).any(|rest| {
            let authority = rest.split(|it: char| it.is_whitespace() || "/?#'\"<>".contains(it)).next().unwrap_or("");
            authority
                .rsplit_once('@')
                .is_some_and(|(user, _)| user.split_once(':').is_some_and(|(_, it)| !it.is_empty()))
        })
    };
    let lines = text.lines().enumerate().filter(|(_, line)| holds(line));
    lines
        .map(|(number, _)| {
            let help = "records of runs hold no passwords: take it out";
            (number + 1, "holds a URL with a password".to_owned(), help.to_owned())
        })
        .collect()
}

/// `script`, `script_2`, …
pub(crate) fn numbered(name: &str, number: usize) -> String {
    if number == 1 { name.to_owned() } else { format!("{name}_{number}") }
}

/// A whole number among `properties`, with the default `usual`; adds its problems to `problems`.
fn whole(
    properties: &tithe_model::catalogue::Properties,
    name: &str,
    usual: u64,
    problems: &mut Vec<PropertyProblem>,
) -> u64 {
    let Some(text) = properties.get(name) else { return usual };
    text.parse().ok().filter(|number| (1..=1_000_000_000).contains(number)).unwrap_or_else(|| {
        problems.push((name.to_owned(), format!("{text:?} is not a whole number from 1 on"), format!("write {usual}")));
        usual
    })
}

/// A property that is one of the words `known`, with the default `usual`; adds its problems to `problems`.
pub(crate) fn one_of(
    properties: &tithe_model::catalogue::Properties,
    (name, usual): (&str, &str),
    known: &[&str],
    problems: &mut Vec<PropertyProblem>,
) -> String {
    let text = properties.get(name).map_or(usual, String::as_str);
    if !known.contains(&text) {
        let help = format!("write {}", known.join(" or "));
        problems.push((name.to_owned(), format!("{text:?} is not known"), help));
    }
    text.to_owned()
}

/// A diagnostic about every property that is not one of `known`.
pub(crate) fn unknown(
    properties: &tithe_model::catalogue::Properties,
    known: &[&str],
    problems: &mut Vec<PropertyProblem>,
) {
    for name in properties.keys().filter(|name| !known.contains(&name.as_str())) {
        let help = format!("there are: {}", known.join(", "));
        problems.push((name.clone(), "is not known".to_owned(), help));
    }
}

#[cfg(test)]
mod tests;
