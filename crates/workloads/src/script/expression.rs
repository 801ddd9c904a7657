//! Expressions of `\set` and `\if`: their tokens, their grammar and their result.
//!
//! Grammar and precedence are those of pgbench's `exprscan.l` and `exprparse.y`, in PostgreSQL 15.

use super::{
    function::{Function, find},
    value::Value,
    variables::{Names, is_of_name},
};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A constant.
    Constant(Value),
    /// A variable, by number.
    Variable(usize),
    /// A function or operator with its arguments.
    Call(Function, Vec<Expression>),
}

impl Expression {
    /// Adds the numbers of the variables that it reads.
    pub fn variables(&self, into: &mut Vec<usize>) {
        match self {
            Self::Constant(_) => {}
            Self::Variable(number) => into.push(*number),
            Self::Call(_, arguments) => arguments.iter().for_each(|argument| argument.variables(into)),
        }
    }
}

/// A mistake in an expression, and its byte position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Bytes before it.
    pub at: usize,
    /// The mistake.
    pub problem: String,
}

/// A word of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Word<'t> {
    Integer(i64),
    /// 9223372036854775808, which only follows a minus.
    OneTooLarge,
    Double(f64),
    Variable(&'t str),
    /// A function or a keyword.
    Name(&'t str),
    Sign(&'static str),
    End,
}

/// Signs, longer ones first, and their meanings.
const SIGNS: [(&str, &str); 21] = [
    ("<<", "<<"),
    (">>", ">>"),
    ("<>", "<>"),
    ("!=", "<>"),
    ("<=", "<="),
    (">=", ">="),
    ("<", "<"),
    (">", ">"),
    ("=", "="),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
    ("|", "|"),
    ("#", "#"),
    ("&", "&"),
    ("~", "~"),
    ("(", "("),
    (")", ")"),
    (",", ","),
];

/// Reads `text` as one expression.
///
/// # Errors
/// The first mistake.
pub fn parse(text: &str, names: &mut Names) -> Result<Expression, Mistake> {
    let mut parser = Parser { text, at: 0, next: (0, Word::End), names, depth: 0 };
    parser.step()?;
    let expression = parser.expression(level::OR)?;
    match parser.next.1 {
        Word::End => Ok(expression),
        _ => Err(parser.unexpected()),
    }
}

/// Precedence of operators.
mod level {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const IS: u8 = 4;
    pub const COMPARISON: u8 = 5;
    pub const BITS: u8 = 6;
    pub const SUM: u8 = 7;
    pub const PRODUCT: u8 = 8;
    pub const UNARY: u8 = 9;
}

/// Deepest nesting: each level is a recursive call.
const DEEPEST: usize = 200;

struct Parser<'t, 'n> {
    text: &'t str,
    /// Where the word after the next one begins.
    at: usize,
    /// The next word and where it begins.
    next: (usize, Word<'t>),
    names: &'n mut Names,
    depth: usize,
}

impl<'t> Parser<'t, '_> {
    /// Takes the next word and reads the one after it.
    fn step(&mut self) -> Result<Word<'t>, Mistake> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at..).unwrap_or_default() {
                [b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c, ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                _ => break,
            }
        }
        let start = self.at;
        let rest = &self.text[start..];
        let word = match rest.bytes().next() {
            None => Word::End,
            Some(b':') => {
                let length = rest[1..].bytes().take_while(|byte| is_of_name(*byte)).count();
                self.at += 1 + length;
                if length == 0 {
                    return Err(self.mistake(start, "unexpected character (:)"));
                }
                Word::Variable(&rest[1..=length])
            }
            Some(b'0'..=b'9' | b'.') => self.number(rest)?,
            Some(byte) if is_of_name(byte) => {
                let length = rest.bytes().take_while(|byte| is_of_name(*byte)).count();
                self.at += length;
                Word::Name(&rest[..length])
            }
            Some(_) => {
                let sign = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
                let Some((sign, meaning)) = sign else {
                    let first = rest.chars().next().unwrap_or(' ');
                    return Err(self.mistake(start, &format!("unexpected character ({first})")));
                };
                self.at += sign.len();
                Word::Sign(meaning)
            }
        };
        Ok(std::mem::replace(&mut self.next, (start, word)).1)
    }

    fn number(&mut self, rest: &'t str) -> Result<Word<'t>, Mistake> {
        let bytes = rest.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits(0);
        let mut length = whole;
        if bytes.get(length) == Some(&b'.') {
            length += 1 + digits(length + 1);
        }
        if length == 1 && whole == 0 {
            return Err(self.mistake(self.at, "unexpected character (.)"));
        }
        if matches!(bytes.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            let exponent = if length + 1 + sign <= bytes.len() { digits(length + 1 + sign) } else { 0 };
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        let text = &rest[..length];
        let start = self.at;
        self.at += length;
        if length == whole {
            if text.trim_start_matches('0') == "9223372036854775808" {
                return Ok(Word::OneTooLarge);
            }
            return text.parse().map(Word::Integer).map_err(|_| self.mistake(start, "bigint constant overflow"));
        }
        let value: f64 = text.parse().map_err(|_| self.mistake(start, "malformed double constant"))?;
        let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
        let is_zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
        if value.is_infinite() || (!is_zero && value < f64::MIN_POSITIVE) {
            return Err(self.mistake(start, "double constant overflow"));
        }
        Ok(Word::Double(value))
    }

    fn mistake(&self, at: usize, problem: &str) -> Mistake {
        Mistake { at, problem: problem.to_owned() }
    }

    fn unexpected(&self) -> Mistake {
        self.mistake(self.next.0, "syntax error")
    }

    fn takes_sign(&mut self, sign: &str) -> Result<bool, Mistake> {
        let is = matches!(self.next.1, Word::Sign(next) if next == sign);
        if is {
            self.step()?;
        }
        Ok(is)
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        matches!(self.next.1, Word::Name(name) if name.eq_ignore_ascii_case(keyword))
    }

    fn takes_keyword(&mut self, keyword: &str) -> Result<bool, Mistake> {
        let is = self.is_keyword(keyword);
        if is {
            self.step()?;
        }
        Ok(is)
    }

    fn must(&mut self, done: Result<bool, Mistake>) -> Result<(), Mistake> {
        if done? { Ok(()) } else { Err(self.unexpected()) }
    }

    /// The next operator, if there is one: its level and its function, and whether its sides are swapped.
    fn operator(&self) -> Option<(u8, Function, bool)> {
        Some(match self.next.1 {
            Word::Sign("<") => (level::COMPARISON, Function::Less, false),
            Word::Sign(">") => (level::COMPARISON, Function::Less, true),
            Word::Sign("<=") => (level::COMPARISON, Function::LessOrEqual, false),
            Word::Sign(">=") => (level::COMPARISON, Function::LessOrEqual, true),
            Word::Sign("=") => (level::COMPARISON, Function::Equal, false),
            Word::Sign("<>") => (level::COMPARISON, Function::Unequal, false),
            Word::Sign("|") => (level::BITS, Function::BitOr, false),
            Word::Sign("#") => (level::BITS, Function::BitXor, false),
            Word::Sign("&") => (level::BITS, Function::BitAnd, false),
            Word::Sign("<<") => (level::BITS, Function::ShiftLeft, false),
            Word::Sign(">>") => (level::BITS, Function::ShiftRight, false),
            Word::Sign("+") => (level::SUM, Function::Add, false),
            Word::Sign("-") => (level::SUM, Function::Subtract, false),
            Word::Sign("*") => (level::PRODUCT, Function::Multiply, false),
            Word::Sign("/") => (level::PRODUCT, Function::Divide, false),
            Word::Sign("%") => (level::PRODUCT, Function::Modulo, false),
            Word::Name(_) if self.is_keyword("or") => (level::OR, Function::Or, false),
            Word::Name(_) if self.is_keyword("and") => (level::AND, Function::And, false),
            _ => return None,
        })
    }

    /// An expression of operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Expression, Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.mistake(self.next.0, "the expression is nested too deeply"));
        }
        let mut left = self.operand()?;
        let mut compared = false;
        loop {
            if let Some((level, function, swapped)) = self.operator() {
                if level < least {
                    break;
                }
                if level == level::COMPARISON && compared {
                    return Err(self.unexpected());
                }
                compared = level == level::COMPARISON;
                self.step()?;
                let right = self.expression(level + 1)?;
                // Sides are computed in pgbench's order: random values depend on it.
                left = Expression::Call(function, if swapped { vec![right, left] } else { vec![left, right] });
            } else if level::IS >= least
                && (self.is_keyword("is") || self.is_keyword("isnull") || self.is_keyword("notnull"))
            {
                left = self.is_what(left)?;
                compared = false;
            } else {
                break;
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The suffix after `left`: `IS NULL`, `IS NOT TRUE`, `ISNULL`, ….
    fn is_what(&mut self, left: Expression) -> Result<Expression, Mistake> {
        let (negated, with) = if self.takes_keyword("isnull")? {
            (false, Value::Null)
        } else if self.takes_keyword("notnull")? {
            (true, Value::Null)
        } else {
            self.step()?;
            let negated = self.takes_keyword("not")?;
            let with = match self.next.1 {
                Word::Name(_) if self.is_keyword("null") => Value::Null,
                Word::Name(_) if self.is_keyword("true") => Value::Boolean(true),
                Word::Name(_) if self.is_keyword("false") => Value::Boolean(false),
                _ => return Err(self.unexpected()),
            };
            self.step()?;
            (negated, with)
        };
        let is = Expression::Call(Function::Is, vec![left, Expression::Constant(with)]);
        Ok(if negated { Expression::Call(Function::Not, vec![is]) } else { is })
    }

    fn operand(&mut self) -> Result<Expression, Mistake> {
        let constant = |value| Ok(Expression::Constant(value));
        let (at, word) = (self.next.0, self.step()?);
        match word {
            Word::Integer(value) => constant(Value::Integer(value)),
            Word::Double(value) => constant(Value::Double(value)),
            Word::Variable(name) => Ok(Expression::Variable(self.names.read(name))),
            Word::Sign("(") => {
                let inner = self.expression(level::OR)?;
                let closed = self.takes_sign(")");
                self.must(closed)?;
                Ok(inner)
            }
            Word::Sign("+") => self.expression(level::UNARY),
            Word::Sign("-") if self.next.1 == Word::OneTooLarge => {
                self.step()?;
                constant(Value::Integer(i64::MIN))
            }
            Word::Sign("-") => {
                let inner = self.expression(level::UNARY)?;
                Ok(Expression::Call(Function::Subtract, vec![Expression::Constant(Value::Integer(0)), inner]))
            }
            // Binds like the operators on bits, so that a sum after it belongs to it.
            Word::Sign("~") => {
                let inner = self.expression(level::BITS + 1)?;
                Ok(Expression::Call(Function::BitXor, vec![Expression::Constant(Value::Integer(-1)), inner]))
            }
            Word::Name(name) => self.named(at, name),
            _ => Err(self.mistake(at, "syntax error")),
        }
    }

    /// A keyword or a function.
    fn named(&mut self, at: usize, name: &str) -> Result<Expression, Mistake> {
        match name.to_ascii_lowercase().as_str() {
            "null" => return Ok(Expression::Constant(Value::Null)),
            "true" => return Ok(Expression::Constant(Value::Boolean(true))),
            "false" => return Ok(Expression::Constant(Value::Boolean(false))),
            "not" => return Ok(Expression::Call(Function::Not, vec![self.expression(level::NOT)?])),
            "case" => return self.case(),
            "and" | "or" | "is" | "isnull" | "notnull" | "when" | "then" | "else" | "end" => {
                return Err(self.mistake(at, "syntax error"));
            }
            _ => {}
        }
        let Some(entry) = find(name) else {
            return Err(self.mistake(at, &format!("unexpected function name ({name})")));
        };
        let open = self.takes_sign("(");
        self.must(open)?;
        let mut arguments = Vec::new();
        if !self.takes_sign(")")? {
            loop {
                arguments.push(self.expression(level::OR)?);
                if !self.takes_sign(",")? {
                    break;
                }
            }
            let closed = self.takes_sign(")");
            self.must(closed)?;
        }
        entry.check(arguments.len()).map_err(|problem| Mistake { at, problem })?;
        if entry.seeded_from == Some(arguments.len()) {
            arguments.push(Expression::Variable(self.names.read("default_seed")));
        }
        Ok(Expression::Call(entry.function, arguments))
    }

    /// `CASE WHEN … THEN … ELSE … END`, after its first word.
    fn case(&mut self) -> Result<Expression, Mistake> {
        let mut parts = Vec::new();
        while self.takes_keyword("when")? {
            parts.push(self.expression(level::OR)?);
            let then = self.takes_keyword("then");
            self.must(then)?;
            parts.push(self.expression(level::OR)?);
        }
        if parts.is_empty() {
            return Err(self.unexpected());
        }
        parts.push(match self.takes_keyword("else")? {
            true => self.expression(level::OR)?,
            false => Expression::Constant(Value::Null),
        });
        let end = self.takes_keyword("end");
        self.must(end)?;
        Ok(Expression::Call(Function::Case, parts))
    }
}
