//! Reads scripts in pgbench's language (PostgreSQL 15, "pgbench", Custom Scripts): statements that end with `;`, and
//! commands that begin with a backslash and end with their line.

use super::{
    command::{Action, Amount, Command, Duration, Keep, LONGEST_SLEEP_US, Place, Refusal, Script, Sql},
    expression::{self, Expression},
    guard,
    statement::{Flavour, Quotes, Template, executed_comment},
    variables::{Names, is_of_name, is_valid},
};

/// Reads `text`, whose SQL is of this `flavour`; adds its variables to `names`.
///
/// # Errors
/// Everything that is not understood or not supported, in order.
pub fn parse(
    (name, weight, text): (&str, u32, &str),
    flavour: Flavour,
    names: &mut Names,
) -> Result<Script, Vec<Refusal>> {
    let mut reader = Reader {
        text,
        flavour,
        at: 0,
        names,
        commands: Vec::new(),
        open: Vec::new(),
        pipeline: None,
        refusals: Vec::new(),
    };
    reader.read();
    if let Some(block) = reader.open.first() {
        let at = block.at;
        reader.refuse(at, "\\if without matching \\endif", "write `\\endif` behind it");
    }
    if let Some(at) = reader.pipeline {
        reader.refuse(at, "\\startpipeline without \\endpipeline", "write `\\endpipeline` behind its statements");
    }
    if reader.commands.is_empty() && reader.refusals.is_empty() {
        reader.refuse(0, "the script is empty", "write what a transaction does");
    }
    let Reader { commands, mut refusals, .. } = reader;
    refusals.sort_by_key(|refusal| refusal.place);
    if refusals.is_empty() { Ok(Script { name: name.to_owned(), weight, commands }) } else { Err(refusals) }
}

/// An `\if` whose `\endif` has not been read.
struct Block {
    /// The place of its `\if`.
    at: usize,
    /// The last test, whose jump to the next branch has no target yet.
    test: Option<usize>,
    /// Jumps to its end.
    ends: Vec<usize>,
    has_else: bool,
}

struct Reader<'t, 'n> {
    text: &'t str,
    flavour: Flavour,
    at: usize,
    names: &'n mut Names,
    commands: Vec<Command>,
    open: Vec<Block>,
    /// The place where the open pipeline began.
    pipeline: Option<usize>,
    refusals: Vec<Refusal>,
}

impl<'t> Reader<'t, '_> {
    fn read(&mut self) {
        loop {
            self.skip_blank();
            if self.at >= self.text.len() {
                return;
            }
            if self.rest().starts_with('\\') && !self.rest().starts_with("\\;") {
                self.backslash();
            } else {
                self.statement();
            }
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips blanks and comments before a statement or a command.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let is_line = trimmed.starts_with("--") || self.flavour == Flavour::MySql && trimmed.starts_with('#');
            let length = if is_line {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") && executed_comment(trimmed, self.flavour).is_none() {
                let (mut quotes, mut length) = (Quotes::new(self.flavour), 0);
                while length < trimmed.len() {
                    length += quotes.step(&trimmed[length..]);
                    if !quotes.inside() {
                        break;
                    }
                }
                if quotes.inside() {
                    self.refuse(self.at, "a comment is not closed", "close it by `*/`");
                }
                length
            } else {
                return;
            };
            self.at += length;
        }
    }

    /// A statement up to its `;`, a command or the end; several if separated by `\;`.
    fn statement(&mut self) {
        let (mut start, mut parts) = (self.at, Vec::new());
        let first = start;
        let mut quotes = Quotes::new(self.flavour);
        while self.at < self.text.len() {
            let rest = self.rest();
            if !quotes.inside() && rest.starts_with("\\;") {
                parts.push((start, &self.text[start..self.at]));
                self.at += 2;
                start = self.at;
                continue;
            }
            if !quotes.inside() && rest.starts_with('\\') {
                break;
            }
            if !quotes.holds() && rest.starts_with(';') {
                break;
            }
            self.at += quotes.step(rest);
        }
        parts.push((start, &self.text[start..self.at]));
        if let Some(problem) = quotes.unfinished() {
            let strings = match self.flavour {
                Flavour::Postgres => "a quote is doubled: only E'…' has backslashes",
                Flavour::MySql => "a quote is doubled, or follows a backslash",
            };
            let help = format!("close it before the statement ends; within '…' {strings}");
            self.refuse(first, problem, &help);
        }
        if self.rest().starts_with(';') {
            self.at += 1;
        }
        let mut templates = Vec::new();
        for (start, part) in parts {
            let begins = start + part.len() - part.trim_start().len();
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            if let Some((problem, help)) = guard::refuses(part, self.flavour) {
                self.refuse(begins, &problem, &help);
            }
            if let Some(at) = guard::placeholder(part, self.flavour) {
                let help = "write a variable in its place: `\\set id random(1, 1000)` before the statement, and :id";
                self.refuse(begins + at, "a placeholder of a driver has no value in a script", help);
            }
            if let Some(at) = guard::quoted_variable(part, self.flavour) {
                let help = "write :name, which stands for the value as it is, or as a parameter";
                self.refuse(begins + at, "pgbench has no variables in quotes, as psql has", help);
            }
            templates.push(Template::new(part, self.flavour, self.names));
        }
        if !templates.is_empty() {
            let place = self.place(first + self.text[first..].len() - self.text[first..].trim_start().len());
            self.commands.push(Command { place, action: Action::Sql(Sql { parts: templates, rows: Keep::Nothing }) });
        }
    }

    /// A command, up to the end of its line; after a backslash at the end of a line it continues on the next one.
    fn backslash(&mut self) {
        let start = self.at;
        let mut end = start;
        loop {
            let line = self.text[end..].find('\n').map_or(self.text.len(), |found| end + found);
            let goes_on = self.text[..line].trim_end_matches('\r').ends_with('\\');
            end = line;
            if !goes_on || line >= self.text.len() {
                break;
            }
            end += 1;
        }
        self.at = end;
        let line = &self.text[start..end];
        let word = line[1..].find(char::is_whitespace).map_or(line.len(), |length| length + 1);
        let (command, arguments) = (&line[1..word], &line[word..]);
        match command.to_ascii_lowercase().as_str() {
            "set" => self.set(start, arguments, start + word),
            "if" => self.condition(start, arguments, start + word),
            "elif" => self.elif(start, arguments, start + word),
            "else" | "endif" | "startpipeline" | "endpipeline" => {
                if let Some((at, _)) = words(arguments).next() {
                    let problem = format!("unexpected argument in command \"{command}\"");
                    self.refuse(start + word + at, &problem, "take it away");
                }
                self.bare(start, &command.to_ascii_lowercase());
            }
            "sleep" => self.sleep(start, arguments, start + word),
            "gset" | "aset" => self.keep(start, command, arguments),
            "shell" | "setshell" => {
                let problem = format!("\\{command} is not carried out: Tithe starts no program for a script");
                self.refuse(start, &problem, "compute the value by \\set, or fetch it by \\gset");
            }
            "setrandom" => {
                let problem = format!("invalid command \\{command}: pgbench has had none since version 9.6");
                self.refuse(start, &problem, "write `\\set NAME random(LOW, HIGH)`");
            }
            _ => self.refuse(
                start,
                &format!("invalid command \\{command}"),
                "there are \\set, \\if, \\elif, \\else, \\endif, \\gset, \\aset, \\sleep, \\startpipeline and \\endpipeline",
            ),
        }
    }

    fn expression(&mut self, text: &str, from: usize, command: &str) -> Option<Expression> {
        match expression::parse(text, self.names) {
            Ok(expression) => Some(expression),
            Err(mistake) => {
                let problem = match mistake.problem.as_str() {
                    "syntax error" => format!("syntax error in command \"{command}\""),
                    other => format!("{other} in command \"{command}\""),
                };
                self.refuse(from + mistake.at, &problem, "expressions are those of pgbench's manual");
                None
            }
        }
    }

    fn set(&mut self, start: usize, arguments: &str, from: usize) {
        let Some((at, name)) = words(arguments).next() else {
            return self.refuse(start, "missing argument in command \"set\"", "write `\\set NAME EXPRESSION`");
        };
        if !is_valid(name) {
            let problem = format!("invalid variable name: \"{name}\"");
            return self.refuse(from + at, &problem, "a name has letters, digits and _, and begins with no digit");
        }
        let behind = at + name.len();
        let expression = self.expression(&arguments[behind..], from + behind, "set");
        let number = self.names.set(name);
        if let Some(expression) = expression {
            self.push(start, Action::Set(number, expression));
        }
    }

    fn push(&mut self, at: usize, action: Action) {
        let place = self.place(at);
        self.commands.push(Command { place, action });
    }

    fn condition(&mut self, start: usize, arguments: &str, from: usize) {
        let test = self.expression(arguments, from, "if").map(|expression| {
            self.push(start, Action::If(expression, usize::MAX));
            self.commands.len() - 1
        });
        self.open.push(Block { at: start, test, ends: Vec::new(), has_else: false });
    }

    /// Ends the branch before: it jumps to the end of the block, and its test jumps here.
    fn next_branch(&mut self, start: usize) {
        let jump = self.commands.len();
        self.push(start, Action::Jump(usize::MAX));
        if let Some(block) = self.open.last_mut() {
            block.ends.push(jump);
            if let Some(test) = block.test.take()
                && let Action::If(_, to) = &mut self.commands[test].action
            {
                *to = jump + 1;
            }
        }
    }

    fn elif(&mut self, start: usize, arguments: &str, from: usize) {
        match self.open.last().map(|block| block.has_else) {
            None => self.refuse(start, "\\elif without matching \\if", "write `\\if` before it"),
            Some(true) => self.refuse(start, "\\elif after \\else", "write `\\else` last"),
            Some(false) => {
                self.next_branch(start);
                let expression = self.expression(arguments, from, "elif");
                if let Some(expression) = expression {
                    self.push(start, Action::If(expression, usize::MAX));
                    let test = self.commands.len() - 1;
                    if let Some(block) = self.open.last_mut() {
                        block.test = Some(test);
                    }
                }
            }
        }
    }

    /// A command without arguments.
    fn bare(&mut self, start: usize, command: &str) {
        match (command, self.open.last().map(|block| block.has_else), self.pipeline) {
            ("else", None, _) => self.refuse(start, "\\else without matching \\if", "write `\\if` before it"),
            ("else", Some(true), _) => self.refuse(start, "\\else after \\else", "one `\\if` has one `\\else`"),
            ("else", Some(false), _) => {
                self.next_branch(start);
                if let Some(block) = self.open.last_mut() {
                    block.has_else = true;
                }
            }
            ("endif", None, _) => self.refuse(start, "\\endif without matching \\if", "write `\\if` before it"),
            ("endif", Some(_), _) => {
                let Some(block) = self.open.pop() else { return };
                let end = self.commands.len();
                for number in block.ends.into_iter().chain(block.test) {
                    if let Action::If(_, to) | Action::Jump(to) = &mut self.commands[number].action {
                        *to = end;
                    }
                }
            }
            ("startpipeline", _, Some(_)) => {
                self.refuse(start, "already in pipeline mode", "write `\\endpipeline` before it");
            }
            ("startpipeline", _, None) => {
                self.pipeline = Some(start);
                self.push(start, Action::StartPipeline);
            }
            (_, _, None) => self.refuse(start, "not in pipeline mode", "write `\\startpipeline` before it"),
            _ => {
                self.pipeline = None;
                self.push(start, Action::EndPipeline);
            }
        }
    }

    fn sleep(&mut self, start: usize, arguments: &str, from: usize) {
        let list: Vec<(usize, &str)> = words(arguments).collect();
        let help = "write for example `\\sleep 10 ms`; the units are us, ms and s";
        let (number, unit) = match list.as_slice() {
            [] => return self.refuse(start, "missing argument in command \"sleep\"", help),
            [(at, word)] if !word.starts_with(':') => {
                let digits = word.bytes().take_while(u8::is_ascii_digit).count();
                ((*at, &word[..digits]), (at + digits, &word[digits..]))
            }
            [number] => (*number, (0, "")),
            [number, unit] => (*number, *unit),
            [_, _, third, ..] => return self.refuse(from + third.0, "too many arguments in command \"sleep\"", help),
        };
        let unit_us = match unit.1.to_ascii_lowercase().as_str() {
            "" | "s" => 1_000_000,
            "ms" => 1_000,
            "us" => 1,
            _ => return self.refuse(from + unit.0, "unrecognized time unit, must be us, ms or s", help),
        };
        let amount = match number.1.strip_prefix(':') {
            Some(name) if is_valid(name) => Amount::Variable(self.names.read(name)),
            _ => match number.1.parse() {
                Ok(number) => Amount::Constant(number),
                Err(_) => {
                    let problem = format!("\"{}\" is not a whole number in command \"sleep\"", number.1);
                    return self.refuse(from + number.0, &problem, help);
                }
            },
        };
        if let Amount::Constant(amount) = amount
            && amount.saturating_mul(unit_us) > LONGEST_SLEEP_US
        {
            let problem = format!("a sleep is longer than {} s", LONGEST_SLEEP_US / 1_000_000);
            return self.refuse(from + number.0, &problem, "no other client of the lane does anything meanwhile");
        }
        self.push(start, Action::Sleep(Duration { amount, unit_us }));
    }

    fn keep(&mut self, start: usize, command: &str, arguments: &str) {
        let command = command.to_ascii_lowercase();
        let mut list = words(arguments).map(|(_, word)| word);
        let prefix = list.next().unwrap_or_default().to_owned();
        if list.next().is_some() {
            let problem = format!("too many arguments in command \"{command}\"");
            return self.refuse(start, &problem, "it takes a beginning for the names of the variables, or nothing");
        }
        if !prefix.bytes().all(is_of_name) {
            let problem = format!("invalid variable name: \"{prefix}\"");
            return self.refuse(start, &problem, "a name has letters, digits and _");
        }
        let in_pipeline = self.pipeline.is_some();
        let sql = match self.commands.last_mut() {
            Some(Command { action: Action::Sql(sql), .. }) if sql.rows == Keep::Nothing => sql,
            _ => {
                let problem = format!("\\{command} must follow an SQL command");
                return self.refuse(start, &problem, "write it behind the statement whose row it takes");
            }
        };
        if in_pipeline {
            let problem = format!("\\{command} is not allowed in pipeline mode");
            return self.refuse(start, &problem, "write `\\endpipeline` before it");
        }
        sql.rows = if command == "gset" { Keep::Last(prefix) } else { Keep::All(prefix) };
    }

    fn refuse(&mut self, at: usize, problem: &str, help: &str) {
        let place = self.place(at);
        self.refusals.push(Refusal { place, problem: problem.to_owned(), help: help.to_owned() });
    }

    fn place(&self, at: usize) -> Place {
        place(self.text, at)
    }
}

/// The place of byte `at` of `text`.
pub fn place(text: &str, at: usize) -> Place {
    let before = &text[..at.min(text.len())];
    let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
    Place { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
}

/// The words of the arguments of a command, each with the bytes before it.
fn words(arguments: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &arguments[at..];
            let blank = rest.len() - rest.trim_start().len();
            at += blank;
            let rest = &arguments[at..];
            if rest.starts_with("\\\n") || rest.starts_with("\\\r\n") {
                at += 1;
                continue;
            }
            if rest.is_empty() {
                return None;
            }
            let mut length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            if rest[..length].ends_with('\\') && rest[length..].trim_start_matches('\r').starts_with('\n') {
                length -= 1;
            }
            let start = at;
            at += length;
            return Some((start, &arguments[start..start + length]));
        }
    })
}
