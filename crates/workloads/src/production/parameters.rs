//! Finds the column of each parameter of a statement by scanning its text.
//!
//! A server's digest of a statement is not exactly SQL, so no parser accepts it. A parameter that is not recognised has
//! no column, and its statement is left out.

use std::collections::BTreeSet;

use tithe_plugin::production::ColumnValues;

use crate::replay::sql::{Flavour, Piece, pieces};

/// The meaning of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A value of this column, by its number among all.
    Column(usize),
    /// A LIMIT: as many rows as a call returned on average.
    Limit,
    /// An OFFSET: no rows are skipped.
    Offset,
    /// A constant: `SELECT 1`.
    Constant,
}

/// A statement split at its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The text before each parameter, and the parameter's number.
    pub parts: Vec<(String, usize)>,
    /// The text after the last one.
    pub rest: String,
    /// The meaning of each parameter; `None` if no column was found.
    pub places: Vec<Option<Place>>,
    /// Columns that are written, by their numbers.
    pub written: BTreeSet<usize>,
    /// Tables in the statement, by their names there.
    pub tables: Vec<Table>,
}

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name, without its schema.
    pub name: String,
    /// The qualifier of its columns.
    alias: String,
    /// It is named with its schema.
    pub is_qualified: bool,
}

/// Words after a table's name that are not an alias.
const NO_ALIAS: [&str; 23] = [
    "WHERE",
    "SET",
    "ON",
    "USING",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "NATURAL",
    "GROUP",
    "ORDER",
    "LIMIT",
    "VALUES",
    "SELECT",
    "FOR",
    "UNION",
    "HAVING",
    "OFFSET",
    "FETCH",
    "RETURNING",
    "DEFAULT",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Parameter(usize),
    Value,
    Sign(&'t str),
}

/// Splits `text`; its parameters belong to `columns`.
pub fn parsed(text: &str, flavour: Flavour, columns: &[ColumnValues]) -> Parsed {
    let (mut tokens, mut parts, mut rest, mut count) = (Vec::new(), Vec::new(), String::new(), 0);
    for (piece, written) in pieces(text, flavour) {
        let parameter = match piece {
            Piece::Parameter(number) => Some(number.saturating_sub(1)),
            Piece::Sign("?") if flavour == Flavour::MySql => Some(count),
            _ => None,
        };
        if let Some(number) = parameter {
            count = count.max(number.saturating_add(1));
            parts.push((std::mem::take(&mut rest), number));
            tokens.push(Token::Parameter(number));
            continue;
        }
        rest.push_str(written);
        match piece {
            Piece::Word(word) => tokens.push(Token::Word(word)),
            Piece::Value => tokens.push(Token::Value),
            Piece::Sign(sign) => tokens.push(Token::Sign(sign)),
            Piece::Blank | Piece::Parameter(_) => {}
        }
    }
    let statement = Statement { tokens: &tokens, tables: tables(&tokens), columns };
    let mut places = vec![None; count.min(parts.len().max(1) * 64)];
    let mut written = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Parameter(number) = token else { continue };
        if let Some(place) = places.get_mut(*number) {
            *place = place.or_else(|| statement.place(at));
        }
    }
    statement.inserted(&mut places, &mut written);
    statement.assigned(&mut written);
    Parsed { parts, rest, places, written, tables: statement.tables }
}

/// The tables that `tokens` name.
fn tables(tokens: &[Token<'_>]) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let leads = |token: &Token<'_>| ["FROM", "JOIN", "UPDATE", "INTO"].iter().any(|lead| is(token, lead));
        if !leads(&tokens[at]) {
            at += 1;
            continue;
        }
        at += 1;
        while let Some((path, next)) = path(tokens, at) {
            at = next;
            let mut alias = path.last().copied().unwrap_or_default();
            if tokens.get(at).is_some_and(|token| is(token, "AS")) {
                at += 1;
            }
            if let Some(Token::Word(word)) = tokens.get(at)
                && NO_ALIAS.iter().all(|other| !word.eq_ignore_ascii_case(other))
            {
                alias = word;
                at += 1;
            }
            tables.push(Table {
                name: unquoted(path.last().copied().unwrap_or_default()),
                alias: unquoted(alias),
                is_qualified: path.len() > 1,
            });
            if tokens.get(at) != Some(&Token::Sign(",")) {
                break;
            }
            at += 1;
        }
    }
    tables
}

/// The dotted name that begins at `at`, and the position after it.
fn path<'t>(tokens: &[Token<'t>], mut at: usize) -> Option<(Vec<&'t str>, usize)> {
    let mut names = Vec::new();
    while let Some(Token::Word(word)) = tokens.get(at) {
        names.push(*word);
        at += 1;
        if tokens.get(at) != Some(&Token::Sign(".")) {
            return Some((names, at));
        }
        at += 1;
    }
    None
}

fn is(token: &Token<'_>, word: &str) -> bool {
    matches!(token, Token::Word(it) if it.eq_ignore_ascii_case(word))
}

fn unquoted(name: &str) -> String {
    name.trim_matches(['"', '`']).to_owned()
}

struct Statement<'a> {
    tokens: &'a [Token<'a>],
    tables: Vec<Table>,
    columns: &'a [ColumnValues],
}

impl Statement<'_> {
    fn is_word(&self, at: Option<usize>, words: &[&str]) -> bool {
        at.and_then(|at| self.tokens.get(at)).is_some_and(|token| words.iter().any(|word| is(token, word)))
    }

    fn is_operator(&self, at: usize) -> bool {
        match self.tokens.get(at) {
            Some(Token::Sign(sign)) => matches!(*sign, "=" | "<" | ">" | "!" | "~" | "+" | "-" | "*" | "/" | "%" | "|"),
            Some(_) => self.is_word(Some(at), &["LIKE", "ILIKE", "RLIKE", "REGEXP", "NOT"]),
            None => false,
        }
    }

    /// The meaning of the parameter at `at`.
    fn place(&self, at: usize) -> Option<Place> {
        let back = |count: usize| at.checked_sub(count);
        let is_sign = |at: Option<usize>, sign| at.and_then(|at| self.tokens.get(at)) == Some(&Token::Sign(sign));
        if self.is_word(back(1), &["OFFSET"]) {
            return Some(Place::Offset);
        }
        if self.is_word(back(1), &["LIMIT"]) {
            return Some(if is_sign(Some(at + 1), ",") { Place::Offset } else { Place::Limit });
        }
        if is_sign(back(1), ",") && self.is_word(back(3), &["LIMIT"]) || self.is_word(back(2), &["FETCH"]) {
            return Some(Place::Limit);
        }
        if self.is_word(back(1), &["SELECT"]) && !self.is_operator(at + 1) {
            return Some(Place::Constant);
        }
        let of_between = match () {
            () if self.is_word(back(1), &["BETWEEN"]) => back(2),
            () if self.is_word(back(1), &["AND"]) && self.is_word(back(3), &["BETWEEN"]) => back(4),
            () => None,
        };
        let mut before = back(1);
        while let Some(operator) = before.filter(|it| self.is_operator(*it)) {
            before = operator.checked_sub(1);
        }
        let before = before.filter(|it| it + 1 < at);
        let found =
            [of_between, before, self.of_list(at)].into_iter().flatten().find_map(|end| self.column_before(end));
        found.or_else(|| self.column_behind(at)).map(Place::Column)
    }

    /// The end of the expression that is compared with the list containing `at`: `a IN ($1, $2)`.
    fn of_list(&self, at: usize) -> Option<usize> {
        let inside = |token: &Token<'_>| matches!(token, Token::Parameter(_) | Token::Value | Token::Sign(","));
        let open = (0..at).rev().find(|it| !inside(&self.tokens[*it]))?;
        let is_list = self.tokens[open] == Token::Sign("(") && self.is_word(open.checked_sub(1), &["IN"]);
        is_list.then(|| open.checked_sub(2)).flatten()
    }

    /// The column whose name ends at `end`, or before a NOT there.
    fn column_before(&self, end: usize) -> Option<usize> {
        let end = if self.is_word(Some(end), &["NOT"]) { end.checked_sub(1)? } else { end };
        let Token::Word(column) = self.tokens[end] else { return None };
        let qualifier =
            match (end.checked_sub(1).map(|at| self.tokens[at]), end.checked_sub(2).map(|at| self.tokens[at])) {
                (Some(Token::Sign(".")), Some(Token::Word(qualifier))) => Some(qualifier),
                _ => None,
            };
        self.column(qualifier, column)
    }

    /// The column after the parameter at `at` that it is compared with: `$1 < a`.
    fn column_behind(&self, at: usize) -> Option<usize> {
        let start = (at + 1..self.tokens.len()).find(|it| !self.is_operator(*it))?;
        let (path, _) = path(self.tokens, start).filter(|_| start > at + 1)?;
        let (column, qualifiers) = path.split_last()?;
        self.column(qualifiers.last().copied(), column)
    }

    /// The number of a column; `None` if it is unknown, or several tables of the statement have it.
    fn column(&self, qualifier: Option<&str>, column: &str) -> Option<usize> {
        let (qualifier, column) = (qualifier.map(unquoted), unquoted(column));
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        let tables = self.tables.iter().filter(|table| {
            qualifier.as_ref().is_none_or(|qualifier| same(qualifier, &table.alias) || same(qualifier, &table.name))
        });
        let found = tables.filter_map(|table| {
            self.columns.iter().position(|it| same(&it.table, &table.name) && same(&it.column, &column))
        });
        let found: BTreeSet<usize> = found.collect();
        found.first().copied().filter(|_| found.len() == 1)
    }

    /// Gives the parameters of `INSERT INTO t (a, b) VALUES ($1, $2)` their columns.
    fn inserted(&self, places: &mut [Option<Place>], written: &mut BTreeSet<usize>) {
        let Some(into) = (0..self.tokens.len()).find(|at| self.is_word(Some(*at), &["INTO"])) else { return };
        let Some((path, mut at)) = path(self.tokens, into + 1) else { return };
        let table = path.last().copied();
        if self.tokens.get(at) != Some(&Token::Sign("(")) {
            return;
        }
        let mut names = Vec::new();
        for token in &self.tokens[at..] {
            at += 1;
            match token {
                Token::Word(name) => names.push(self.column(table, name)),
                Token::Sign(")") => break,
                _ => {}
            }
        }
        written.extend(names.iter().flatten());
        if !self.is_word(Some(at), &["VALUES", "VALUE"]) {
            return;
        }
        let (mut depth, mut number) = (0, 0);
        for (at, token) in self.tokens.iter().enumerate().skip(at + 1) {
            match token {
                Token::Sign("(") => {
                    depth += 1;
                    number = if depth == 1 { 0 } else { number };
                }
                Token::Sign(")") => depth -= 1,
                Token::Sign(",") if depth == 1 => number += 1,
                Token::Sign(",") => {}
                Token::Parameter(parameter) if depth == 1 => {
                    let is_alone = |at: usize, signs: [&str; 2]| matches!(self.tokens.get(at), Some(Token::Sign(sign)) if signs.contains(sign));
                    let is_alone = is_alone(at - 1, ["(", ","]) && is_alone(at + 1, [")", ","]);
                    let column = names.get(number).copied().flatten().filter(|_| is_alone);
                    if let (Some(place), Some(column)) = (places.get_mut(*parameter), column) {
                        *place = place.or(Some(Place::Column(column)));
                    }
                }
                _ if depth == 0 => break,
                _ => {}
            }
        }
    }

    /// The columns that `UPDATE t SET a = …, b = …` writes.
    fn assigned(&self, written: &mut BTreeSet<usize>) {
        let Some(set) = (0..self.tokens.len()).find(|at| self.is_word(Some(*at), &["SET"])) else { return };
        let end = (set..self.tokens.len()).find(|at| self.is_word(Some(*at), &["WHERE", "FROM"]));
        let mut depth = 0;
        for at in set..end.unwrap_or(self.tokens.len()) {
            match self.tokens[at] {
                Token::Sign("(") => depth += 1,
                Token::Sign(")") => depth -= 1,
                Token::Word(_) if depth == 0 && self.tokens.get(at + 1) == Some(&Token::Sign("=")) => {
                    written.extend(self.column_before(at));
                }
                _ => {}
            }
        }
    }
}
