//! A statement of a script: its text, with placeholders for variables.

use tithe_model::catalogue::WireProtocol;

use super::variables::{Names, Variables, is_of_name};

/// Most parameters of a statement, as in pgbench.
pub const MOST_PARAMETERS: usize = 255;

/// The product family of a text's SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavour {
    /// PostgreSQL's, and that of all others: strings end as in the standard.
    #[default]
    Postgres,
    /// MariaDB's and MySQL's.
    MySql,
}

impl Flavour {
    /// The family of servers with this `protocol`; `None` if that is not SQL.
    pub fn of(protocol: WireProtocol) -> Option<Self> {
        [Self::Postgres, Self::MySql].into_iter().find(|flavour| flavour.wire_protocol() == protocol)
    }

    /// The protocol of the family's servers.
    pub fn wire_protocol(self) -> WireProtocol {
        match self {
            Self::Postgres => WireProtocol::Postgres,
            Self::MySql => WireProtocol::MySql,
        }
    }
}

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text, unchanged.
    Text(String),
    /// The value of a variable.
    Variable {
        /// Its number.
        number: usize,
        /// Bytes of the statement before it.
        at: usize,
        /// True within quotes or a comment, where parameters are impossible.
        quoted: bool,
    },
}

/// The text of one statement, or of several that are sent together.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Its pieces, in order.
    pub pieces: Vec<Piece>,
    /// The text in the script.
    pub text: String,
    /// How it is read.
    pub flavour: Flavour,
}

impl Template {
    /// Reads `text`, in which `:name` is a variable.
    pub fn new(text: &str, flavour: Flavour, names: &mut Names) -> Self {
        let (mut pieces, mut plain, mut at) = (Vec::new(), String::new(), 0);
        let mut quotes = Quotes::new(flavour);
        while at < text.len() {
            let rest = &text[at..];
            if let Some(behind) = rest.strip_prefix(':') {
                let colons = rest.bytes().take_while(|byte| *byte == b':').count();
                let name = behind.bytes().take_while(|byte| is_of_name(*byte)).count();
                let is_variable = colons == 1 && name > 0 && !behind.as_bytes()[0].is_ascii_digit();
                if is_variable {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    let number = names.read(&behind[..name]);
                    pieces.push(Piece::Variable { number, at, quoted: quotes.inside() });
                    at += 1 + name;
                    continue;
                }
                plain.push_str(&rest[..colons]);
                at += colons;
                // After `::` comes a type.
                let name = text[at..].bytes().take_while(|byte| is_of_name(*byte)).count();
                plain.push_str(&text[at..at + name]);
                at += name;
                continue;
            }
            let length = quotes.step(rest);
            plain.push_str(&rest[..length]);
            at += length;
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Self { pieces, text: text.to_owned(), flavour }
    }

    /// Variables within quotes that are never set are text.
    pub fn settle(&mut self, names: &Names) {
        for piece in &mut self.pieces {
            if let Piece::Variable { number, quoted: true, .. } = piece
                && !names.is_set(*number)
            {
                *piece = Piece::Text(format!(":{}", names.name(*number)));
            }
        }
    }

    /// Its variables: number, bytes before, whether quoted.
    pub fn variables(&self) -> impl Iterator<Item = (usize, usize, bool)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Variable { number, at, quoted } => Some((*number, *at, *quoted)),
            Piece::Text(_) => None,
        })
    }

    /// Its text with the values of its variables, written into `out`.
    ///
    /// # Errors
    /// A variable without a value.
    pub fn fill(&self, variables: &Variables, out: &mut String) -> Result<(), String> {
        out.clear();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Variable { number, .. } => variables.get(*number)?.write(out),
            }
        }
        Ok(())
    }

    /// Its text with parameters written by `placeholder`.
    pub fn parametrised(&self, placeholder: fn(usize) -> String) -> String {
        let (mut text, mut count) = (String::new(), 0);
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Variable { .. } => {
                    count += 1;
                    text.push_str(&placeholder(count));
                }
            }
        }
        text
    }
}

/// The length of the beginning of a comment in `rest` whose text MySQL and MariaDB run: `/*!40101`, `/*M!100201`.
/// `None` for any other comment, also one for a version that no server has (`/*M!999999\- enable the sandbox mode */`).
pub fn executed_comment(rest: &str, flavour: Flavour) -> Option<usize> {
    let behind = rest.strip_prefix("/*!").or_else(|| rest.strip_prefix("/*M!"))?;
    let digits = match behind.bytes().take_while(u8::is_ascii_digit).count() {
        // Fewer digits are no version, and belong to the statement.
        0..=4 => 0,
        count => count.min(6),
    };
    let is_executed = flavour == Flavour::MySql && !behind.starts_with("99999");
    is_executed.then_some(rest.len() - behind.len() + digits)
}

/// Tracks quotes, comments and parentheses in a text of SQL, as psql's lexer and the server of MySQL do.
#[derive(Debug, Clone)]
pub struct Quotes {
    flavour: Flavour,
    until: Option<Until>,
    parentheses: usize,
    /// True within a comment that the server runs.
    executed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Until {
    Quote(char),
    /// A string with backslashes, in these quotes: `E'…'`, and every string of MySQL.
    Escaped(char),
    Dollar(String),
    LineEnd,
    /// Nested to this depth.
    Comment(usize),
}

impl Quotes {
    /// Those of a text that begins.
    pub fn new(flavour: Flavour) -> Self {
        Self { flavour, until: None, parentheses: 0, executed: false }
    }

    /// True in quotes and comments.
    pub fn inside(&self) -> bool {
        self.until.is_some()
    }

    /// True in quotes, comments and parentheses, where `;` ends nothing.
    pub fn holds(&self) -> bool {
        self.until.is_some() || self.parentheses > 0 || self.executed
    }

    /// The open construct at the end of a text; `None` if there is none, or a comment that the line ends.
    pub fn unfinished(&self) -> Option<&'static str> {
        match self.until {
            Some(Until::Quote('"' | '`')) => Some("a quoted name is not closed"),
            Some(Until::Quote(_) | Until::Escaped(_)) => Some("a string is not closed"),
            Some(Until::Dollar(_)) => Some("a dollar-quoted string is not closed"),
            Some(Until::Comment(_)) => Some("a comment is not closed"),
            Some(Until::LineEnd) | None if self.executed => Some("a comment is not closed"),
            Some(Until::LineEnd) | None if self.parentheses > 0 => Some("a parenthesis is not closed"),
            Some(Until::LineEnd) | None => None,
        }
    }

    /// Advances by the next sign of `rest`, or by several that belong together; returns their length in bytes, at least
    /// 1.
    pub fn step(&mut self, rest: &str) -> usize {
        let first = rest.chars().next();
        let length = first.map_or(1, char::len_utf8);
        match &mut self.until {
            Some(Until::Quote(quote)) => {
                if first == Some(*quote) {
                    // A doubled quote is closed and opened again.
                    self.until = None;
                }
                length
            }
            Some(Until::Escaped(quote)) => {
                let second = rest.chars().nth(1);
                let is_quote = first == Some(*quote);
                if first == Some('\\') || is_quote && second == first {
                    return length + second.map_or(0, char::len_utf8);
                }
                if is_quote {
                    self.until = None;
                }
                length
            }
            Some(Until::Dollar(tag)) => {
                if !rest.starts_with(tag.as_str()) {
                    return length;
                }
                let length = tag.len();
                self.until = None;
                length
            }
            Some(Until::LineEnd) => {
                if first == Some('\n') {
                    self.until = None;
                }
                length
            }
            Some(Until::Comment(depth)) => {
                if rest.starts_with("/*") && self.flavour == Flavour::Postgres {
                    *depth += 1;
                    return 2;
                }
                if rest.starts_with("*/") {
                    *depth -= 1;
                    if *depth == 0 {
                        self.until = None;
                    }
                    return 2;
                }
                length
            }
            None => self.open(rest, first, length),
        }
    }

    fn open(&mut self, rest: &str, first: Option<char>, length: usize) -> usize {
        let my = self.flavour == Flavour::MySql;
        // In MySQL `5--1` is 6.
        let is_line = rest.starts_with("--") && (!my || rest[2..].chars().next().is_none_or(char::is_whitespace));
        match first {
            Some(quote @ ('\'' | '"')) if my => self.until = Some(Until::Escaped(quote)),
            Some(quote @ ('\'' | '"' | '`')) => self.until = Some(Until::Quote(quote)),
            Some('(') => self.parentheses += 1,
            Some(')') => self.parentheses = self.parentheses.saturating_sub(1),
            Some('#') if my => self.until = Some(Until::LineEnd),
            Some('-') if is_line => {
                self.until = Some(Until::LineEnd);
                return 2;
            }
            Some('/') if rest.starts_with("/*") => {
                if let Some(length) = executed_comment(rest, self.flavour) {
                    self.executed = true;
                    return length;
                }
                self.until = Some(Until::Comment(1));
                return 2;
            }
            Some('*') if self.executed && rest.starts_with("*/") => {
                self.executed = false;
                return 2;
            }
            Some('$') if !my => {
                let name = rest[1..].bytes().take_while(|byte| is_of_name(*byte)).count();
                let is_tag = rest.as_bytes().get(1 + name) == Some(&b'$') && !rest.as_bytes()[1].is_ascii_digit();
                if is_tag {
                    let tag = rest[..name + 2].to_owned();
                    let length = tag.len();
                    self.until = Some(Until::Dollar(tag));
                    return length;
                }
            }
            Some(sign) if sign == '_' || sign.is_alphanumeric() => {
                // A whole word, so that a dollar within it begins no quote, and `E'` is seen.
                let word = rest.bytes().take_while(|byte| is_of_name(*byte) || *byte == b'$').count();
                if !my && rest[..word].eq_ignore_ascii_case("e") && rest[word..].starts_with('\'') {
                    self.until = Some(Until::Escaped('\''));
                    return word + 1;
                }
                return word;
            }
            _ => {}
        }
        length
    }
}
