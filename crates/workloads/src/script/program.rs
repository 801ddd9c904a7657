//! The scripts of a workload as its clients run them: commands, variables, recorded operations.

use std::sync::Arc;

use tithe_plugin::{
    own_tables::{Asked, OwnStatement},
    session::Protocol,
    workload::FileStatement,
};

use super::{
    command::{Action, Amount, Command, Keep, Place, Refusal, Script},
    guard,
    parse::{parse, place},
    rollback::taken_back,
    statement::{Flavour, MOST_PARAMETERS, Template},
    value::Value,
    variables::Names,
};

/// The operation under which retried transactions are recorded.
pub const RETRY: &str = "RETRY";

/// The scripts of a workload.
#[derive(Debug)]
pub struct Program {
    /// All scripts.
    pub scripts: Vec<Script>,
    /// The variables of all scripts.
    pub names: Arc<Names>,
    /// Variables that the experiment sets.
    pub defined: Vec<(usize, Value)>,
    /// How statements are sent.
    pub protocol: Protocol,
    /// The handling of transactions.
    pub transactions: Transactions,
    /// The names of the operations: scripts, then statements, then [`RETRY`].
    pub operations: Vec<String>,
    /// The text of each operation.
    pub texts: Vec<String>,
    /// For each script and command the operation that it is recorded under.
    pub recorded: Vec<Vec<Option<usize>>>,
}

/// The handling of transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transactions {
    /// How often a transaction is tried after conflicts; 0 for no limit.
    pub max_tries: u64,
    /// Tables that may be changed in place, on a server that Tithe did not start.
    pub in_place: Vec<String>,
    /// Changes there are committed; else each transaction is rolled back.
    pub commit: bool,
    /// Size limit of copies of tables, bytes.
    pub copy_limit: Option<u64>,
}

/// A script before it is read.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its name.
    pub name: &'a str,
    /// How often it is drawn, relative to the others.
    pub weight: u32,
    /// Its text.
    pub text: &'a str,
}

impl Program {
    /// Reads `sources` of this `flavour`, whose variables `defined` sets, for clients that use `protocol`.
    ///
    /// # Errors
    /// For each script, by number, everything that is not understood or not supported.
    pub fn new(
        sources: &[Source<'_>],
        flavour: Flavour,
        defined: &[(String, String)],
        protocol: Protocol,
        transactions: Transactions,
    ) -> Result<Self, Vec<(usize, Refusal)>> {
        let mut names = Names::default();
        for automatic in ["client_id", "default_seed", "random_seed", "scale"] {
            names.set(automatic);
        }
        let defined = defined.iter().map(|(name, value)| (names.set(name), Value::Text(value.clone()))).collect();
        let (mut scripts, mut refusals) = (Vec::new(), Vec::new());
        for (number, source) in sources.iter().enumerate() {
            match parse((source.name, source.weight, source.text), flavour, &mut names) {
                Ok(script) => scripts.push(script),
                Err(found) => refusals.extend(found.into_iter().map(|refusal| (number, refusal))),
            }
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        for (number, script) in scripts.iter_mut().enumerate() {
            settle(script, &mut names);
            let found = Check { names: &names, protocol, text: sources[number].text }.script(script);
            refusals.extend(found.into_iter().map(|refusal| (number, refusal)));
        }
        if !transactions.in_place.is_empty() && !transactions.commit {
            for (number, script) in scripts.iter_mut().enumerate() {
                refusals.extend(taken_back(script).err().map(|refusal| (number, refusal)));
            }
        }
        // Variables from a row are named after its columns, which only the server knows.
        let fetches = scripts
            .iter()
            .flat_map(|script| &script.commands)
            .any(|command| matches!(&command.action, Action::Sql(sql) if sql.rows != Keep::Nothing));
        if fetches {
            refusals.retain(|(_, refusal)| !refusal.problem.starts_with(UNDEFINED));
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let mut program = Self {
            scripts,
            names: Arc::new(names),
            defined,
            protocol,
            transactions,
            operations: Vec::new(),
            texts: Vec::new(),
            recorded: Vec::new(),
        };
        program.name_operations(sources);
        Ok(program)
    }

    fn name_operations(&mut self, sources: &[Source<'_>]) {
        for (script, source) in self.scripts.iter().zip(sources) {
            let same = self.operations.iter().filter(|name| name.starts_with(&script.name)).count();
            let name = if same == 0 { script.name.clone() } else { format!("{} ({})", script.name, same + 1) };
            self.operations.push(name);
            self.texts.push(source.text.to_owned());
        }
        for (number, script) in self.scripts.iter().enumerate() {
            let name = self.operations[number].clone();
            let (mut recorded, mut in_pipeline) = (Vec::new(), false);
            for Command { place, action } in &script.commands {
                let text = match action {
                    Action::Sql(sql) if !in_pipeline => {
                        Some(sql.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("; "))
                    }
                    Action::StartPipeline => {
                        in_pipeline = true;
                        None
                    }
                    Action::EndPipeline => {
                        in_pipeline = false;
                        Some("\\endpipeline".to_owned())
                    }
                    Action::Sleep(_) => Some("\\sleep".to_owned()),
                    _ => None,
                };
                recorded.push(text.map(|text| {
                    let mut name = format!("{name}:{}", place.line);
                    if self.operations.contains(&name) {
                        name = format!("{name}:{}", place.column);
                    }
                    self.operations.push(name);
                    self.texts.push(text);
                    self.operations.len() - 1
                }));
            }
            self.recorded.push(recorded);
        }
        self.operations.push(RETRY.to_owned());
        self.texts.push(String::new());
    }

    /// The statements of each request.
    pub fn sent(&self) -> impl Iterator<Item = &[Template]> {
        self.scripts.iter().flat_map(|script| &script.commands).filter_map(|command| match &command.action {
            Action::Sql(sql) => Some(sql.parts.as_slice()),
            _ => None,
        })
    }

    /// Every statement.
    pub fn statements(&self) -> impl Iterator<Item = &Template> {
        self.sent().flatten()
    }

    /// Every statement in its file.
    pub fn located(&self) -> Vec<FileStatement> {
        let mut all = Vec::new();
        for (script, text) in self.scripts.iter().zip(&self.texts) {
            let mut in_pipeline = false;
            for Command { place: at, action } in &script.commands {
                match action {
                    Action::StartPipeline => in_pipeline = true,
                    Action::EndPipeline => in_pipeline = false,
                    Action::Sql(sql) => all.extend(sql.parts.iter().map(|part| {
                        let start = text.find(&part.text).unwrap_or(0);
                        let Place { line, column } = if sql.parts.len() == 1 { *at } else { place(text, start) };
                        FileStatement {
                            file: script.name.clone(),
                            line,
                            column,
                            text: part.text.clone(),
                            as_text: self.protocol == Protocol::Simple,
                            in_pipeline,
                        }
                    })),
                    _ => {}
                }
            }
        }
        all
    }

    /// The requests of the statements for tables that Tithe did not make.
    pub fn own_tables(&self, placeholder: fn(usize) -> String) -> Asked {
        let Transactions { in_place, copy_limit, .. } = self.transactions.clone();
        let mut asked = Asked { writes: self.writes(), in_place, copy_limit, ..Asked::default() };
        for script in &self.scripts {
            for Command { place, action } in &script.commands {
                let Action::Sql(sql) = action else { continue };
                for part in sql.parts.iter().filter(|part| !guard::is_control(&part.text, part.flavour)) {
                    asked.names.extend(guard::names(&part.text, part.flavour));
                    asked.statements.push(OwnStatement {
                        place: format!("{}:{}", script.name, place.line),
                        text: part.parametrised(placeholder),
                        parameters: part.variables().count(),
                    });
                }
            }
        }
        asked
    }

    /// True if some statement changes data, according to the texts.
    pub fn writes(&self) -> bool {
        self.statements().any(|statement| guard::writes(&statement.text, statement.flavour))
    }

    /// True when some script has a pipeline.
    pub fn pipelines(&self) -> bool {
        let mut commands = self.scripts.iter().flat_map(|script| &script.commands);
        commands.any(|command| command.action == Action::StartPipeline)
    }
}

/// Beginning of the problem of a variable that is never set.
const UNDEFINED: &str = "no script sets the variable";

/// Variables within quotes that are never set are text.
fn settle(script: &mut Script, names: &mut Names) {
    for command in &mut script.commands {
        if let Action::Sql(sql) = &mut command.action {
            sql.parts.iter_mut().for_each(|part| part.settle(names));
        }
    }
}

/// Checks one script when the variables of all are known.
struct Check<'a> {
    names: &'a Names,
    protocol: Protocol,
    text: &'a str,
}

impl Check<'_> {
    fn script(&self, script: &Script) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        let mut refuse = |place, problem: String, help: &str| {
            refusals.push(Refusal { place, problem, help: help.to_owned() });
        };
        let has_statement = script.commands.iter().any(|command| matches!(command.action, Action::Sql(_)));
        if !has_statement {
            refuse(place(self.text, 0), "the script has no statement".to_owned(), "write what it asks the server");
        }
        let mut in_pipeline = false;
        for Command { place: at, action } in &script.commands {
            let mut reads = Vec::new();
            match action {
                Action::StartPipeline => in_pipeline = true,
                Action::EndPipeline => in_pipeline = false,
                _ => {}
            }
            match action {
                Action::Set(_, expression) | Action::If(expression, _) => expression.variables(&mut reads),
                Action::Sleep(duration) => {
                    if let Amount::Variable(number) = duration.amount {
                        reads.push(number);
                    }
                }
                Action::StartPipeline if self.protocol == Protocol::Simple => {
                    let help = "give the workload `protocol = \"extended\"` or `\"prepared\"`";
                    refuse(*at, "no pipeline has statements of the simple protocol".to_owned(), help);
                }
                Action::Sql(sql) => {
                    if in_pipeline && sql.parts.len() > 1 {
                        refuse(*at, "\\; joins no statements of a pipeline".to_owned(), "end each by `;`");
                    }
                    for part in &sql.parts {
                        let start = self.text.find(&part.text).unwrap_or(0);
                        for (number, offset, quoted) in part.variables() {
                            let place = if sql.parts.len() == 1 {
                                behind(*at, &part.text[..offset])
                            } else {
                                place(self.text, start + offset)
                            };
                            if !self.names.is_set(number) {
                                let name = self.names.name(number);
                                let help = "set it by \\set, or give the workload `define = { NAME = VALUE }`";
                                refuse(place, format!("{UNDEFINED} :{name}"), help);
                            } else if quoted && self.protocol != Protocol::Simple {
                                let problem =
                                    format!("a parameter cannot be within quotes: :{}", self.names.name(number));
                                refuse(place, problem, "join it by ||, or choose `protocol = \"simple\"`");
                            }
                        }
                        if self.protocol != Protocol::Simple && part.variables().count() > MOST_PARAMETERS {
                            let problem = format!("statement has too many arguments (maximum is {MOST_PARAMETERS})");
                            refuse(*at, problem, "choose `protocol = \"simple\"`");
                        }
                    }
                }
                _ => {}
            }
            for number in reads {
                if !self.names.is_set(number) {
                    let help = "set it by \\set, or give the workload `define = { NAME = VALUE }`";
                    refuse(*at, format!("{UNDEFINED} :{}", self.names.name(number)), help);
                }
            }
        }
        refusals
    }
}

/// The place after `text`, which begins at `start`.
fn behind(start: Place, text: &str) -> Place {
    match text.rfind('\n') {
        Some(end) => {
            Place { line: start.line + text.matches('\n').count(), column: text[end + 1..].chars().count() + 1 }
        }
        None => Place { line: start.line, column: start.column + text.chars().count() },
    }
}
