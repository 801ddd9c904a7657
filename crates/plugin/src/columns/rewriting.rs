//! Which parameters of a statement clients must encrypt, and which of its results they decrypt.
//!
//! A statement is read by the parser of its product's SQL. Sound uses are accepted by their form: values that are
//! stored, `=` and `IN` on a column with equal ciphertexts, `IS NULL`, `count`, and unchanged results. Every other
//! mention of an encrypted column, of its table or of an alias of either is refused, so a form that the walk does not
//! know is refused, too. Columns that are not encrypted need not be known.
//!
//! Not covered: computations within the server (views, triggers, functions), which the conversion of tables checks.

mod expressions;
mod queries;
mod statements;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::{
    dialect::{Dialect, DuckDbDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect},
    parser::Parser,
    tokenizer::{Location, Token, TokenWithSpan, Tokenizer},
};

use self::walk::Walk;
use crate::{setup::OwnColumn, sql::Grammar};

/// The encrypted parts of a statement; columns by their number in the list of all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// For each parameter the column that it belongs to.
    pub parameters: Vec<Option<usize>>,
    /// For each result the column that it comes from; later results are not encrypted.
    pub results: Vec<Option<usize>>,
    /// The columns of the tables that it names.
    pub touched: BTreeSet<usize>,
}

/// Why a statement cannot be run on encrypted columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Line of the statement's text, from 1 on.
    pub line: usize,
    /// Column of that line, from 1 on.
    pub column: usize,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub help: String,
}

/// A place in a text that can be ordered.
type Place = (u64, u64);

fn place(location: Location) -> Place {
    (location.line, location.column)
}

/// Reads the statement `text` in `grammar`, where clients encrypt the columns `own`. Parameters are `:name`, `$1` or
/// `?`.
///
/// # Errors
/// All its problems.
pub fn plan(text: &str, own: &[OwnColumn], grammar: Grammar) -> Result<Plan, Vec<Refusal>> {
    let dialect: &dyn Dialect = match grammar {
        Grammar::Postgres => &PostgreSqlDialect {},
        Grammar::MySql => &MySqlDialect {},
        Grammar::Sqlite => &SQLiteDialect {},
        Grammar::DuckDb => &DuckDbDialect {},
    };
    let unread = |problem: String| {
        let help = "write it in simpler SQL, or encrypt no column of its tables".to_owned();
        vec![Refusal { line: 1, column: 1, problem, help }]
    };
    let tokens = match Tokenizer::new(dialect, text).tokenize_with_location() {
        Ok(tokens) => tokens,
        // A statement that cannot be parsed is accepted if it names none of the tables.
        Err(error) => {
            let lower = text.to_lowercase();
            return match own.iter().any(|column| lower.contains(&column.table.to_lowercase())) {
                true => Err(unread(format!("it cannot be read: {error}"))),
                false => Ok(Plan::default()),
            };
        }
    };
    let places = parameters(&tokens);
    let words: Vec<(String, Place)> = words(&tokens);
    let is_named = |table: &str| words.iter().any(|(word, _)| word.eq_ignore_ascii_case(table));
    let touched: BTreeSet<usize> = (0..own.len()).filter(|number| is_named(&own[*number].table)).collect();
    if touched.is_empty() {
        return Ok(Plan { parameters: vec![None; places.len()], ..Plan::default() });
    }
    let statements =
        Parser::new(dialect).with_tokens_with_locations(tokens.clone()).parse_statements().map_err(|error| {
            let words = error.to_string();
            unread(format!("it cannot be read: {}", words.trim_start_matches("sql parser error: ")))
        })?;
    let [statement] = statements.as_slice() else {
        return Err(unread("it is more than one statement".to_owned()));
    };
    let mut walk = Walk::new(own);
    walk.statement(statement);
    let mut plan = Plan { parameters: vec![None; places.len()], results: walk.results, touched };
    let mut refusals = walk.refusals;
    for (at, column) in walk.parameters {
        match places.iter().position(|place| *place == at) {
            Some(number) => plan.parameters[number] = Some(column),
            None => refusals.extend(unread("its parameters are unclear".to_owned())),
        }
    }
    let watched = watched(own, &plan.touched, walk.names);
    for (word, at) in words {
        if let Some(what) = watched.get(&word).filter(|_| !walk.seen.contains(&at)) {
            refusals.push(Refusal {
                line: at.0 as usize,
                column: at.1 as usize,
                problem: format!("{what}, and no statement can use it here"),
                help: "such columns are stored, looked up by = or IN, counted and read as they are".to_owned(),
            });
        }
    }
    refusals.sort_by_key(|refusal| (refusal.line, refusal.column));
    refusals.dedup_by_key(|refusal| (refusal.line, refusal.column));
    if refusals.is_empty() { Ok(plan) } else { Err(refusals) }
}

/// Every name that is refused unless the walk understood it, and its meaning.
fn watched(own: &[OwnColumn], touched: &BTreeSet<usize>, names: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut watched = BTreeMap::new();
    for column in touched.iter().map(|number| &own[*number]) {
        let OwnColumn { table, name, .. } = column;
        watched.insert(table.to_lowercase(), format!("{table} has encrypted columns"));
        watched.insert(name.to_lowercase(), format!("{table}.{name} is encrypted"));
    }
    for (name, what) in names {
        watched.entry(name).or_insert(what);
    }
    watched
}

/// The words of a statement with their places, without the names of variables.
fn words(tokens: &[TokenWithSpan]) -> Vec<(String, Place)> {
    let mut words = Vec::new();
    for (number, token) in tokens.iter().enumerate() {
        let is_variable = number > 0 && tokens[number - 1].token == Token::Colon;
        if let (Token::Word(word), false) = (&token.token, is_variable) {
            words.push((word.value.to_lowercase(), place(token.span.start)));
        }
    }
    words
}

/// The places of a statement's parameters, in order.
fn parameters(tokens: &[TokenWithSpan]) -> Vec<Place> {
    let mut places = Vec::new();
    for (number, token) in tokens.iter().enumerate() {
        let next = tokens.get(number + 1).map(|next| &next.token);
        match (&token.token, next) {
            (Token::Placeholder(_), _) | (Token::Colon, Some(Token::Word(_))) => places.push(place(token.span.start)),
            _ => {}
        }
    }
    places
}
