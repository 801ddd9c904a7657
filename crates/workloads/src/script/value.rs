//! Values of a script's variables and expressions, how they are written and how they are read.

use std::fmt::{self, Write as _};

/// A value. Results of statements and definitions are text; an expression reads it as another value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Double(f64),
    /// Text that is not the result of an expression.
    Text(String),
}

impl Value {
    /// Its type, as messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Integer(_) => "int",
            Self::Double(_) => "double",
            Self::Text(_) => "text",
        }
    }

    /// The value in an expression: text is read as NULL, a boolean or a number.
    ///
    /// # Errors
    /// The text, if it is none of these.
    pub fn read(&self) -> Result<Self, String> {
        let Self::Text(text) = self else { return Ok(self.clone()) };
        read(text)
    }

    /// As a boolean.
    ///
    /// # Errors
    /// Its type, if it is none.
    pub fn boolean(&self) -> Result<bool, String> {
        match self {
            Self::Boolean(value) => Ok(*value),
            other => Err(format!("cannot coerce {} to boolean", other.kind())),
        }
    }

    /// True for a true condition: numbers other than zero are, NULL is not.
    pub fn holds(&self) -> bool {
        match self {
            Self::Boolean(value) => *value,
            Self::Integer(value) => *value != 0,
            Self::Double(value) => *value != 0.0,
            Self::Null | Self::Text(_) => false,
        }
    }

    /// As a whole number; a double is rounded, half to even.
    ///
    /// # Errors
    /// Its type, if it is no number or too large.
    pub fn integer(&self) -> Result<i64, String> {
        match self {
            Self::Integer(value) => Ok(*value),
            Self::Double(value) => {
                let rounded = value.round_ties_even();
                if rounded.is_nan() || rounded < i64::MIN as f64 || rounded >= -(i64::MIN as f64) {
                    return Err(format!("double to int overflow for {rounded}"));
                }
                Ok(rounded as i64)
            }
            other => Err(format!("cannot coerce {} to int", other.kind())),
        }
    }

    /// As a double.
    ///
    /// # Errors
    /// Its type, if it is no number.
    pub fn double(&self) -> Result<f64, String> {
        match self {
            Self::Integer(value) => Ok(*value as f64),
            Self::Double(value) => Ok(*value),
            other => Err(format!("cannot coerce {} to double", other.kind())),
        }
    }

    /// Appends it in the form for statements.
    pub fn write(&self, out: &mut String) {
        // Writing to memory cannot fail.
        let _ = match self {
            Self::Null => out.write_str("NULL"),
            Self::Boolean(value) => write!(out, "{value}"),
            Self::Integer(value) => write!(out, "{value}"),
            Self::Double(value) => write!(out, "{}", General(*value)),
            Self::Text(text) => out.write_str(text),
        };
    }
}

/// Reads text as pgbench does: `null`, beginnings of `true`, `yes`, `false` and `no`, `on`, `off`, numbers.
fn read(text: &str) -> Result<Value, String> {
    let malformed = || format!("malformed variable value: {text:?}");
    let lower = text.to_ascii_lowercase();
    if lower.is_empty() {
        return Err(malformed());
    }
    if lower == "null" {
        return Ok(Value::Null);
    }
    if "true".starts_with(&lower) || "yes".starts_with(&lower) || lower == "on" {
        return Ok(Value::Boolean(true));
    }
    if "false".starts_with(&lower) || "no".starts_with(&lower) || lower == "off" || lower == "of" {
        return Ok(Value::Boolean(false));
    }
    let number = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let out_of_range = |_| format!("value {text:?} is out of range for type bigint");
        return number.parse().map(Value::Integer).map_err(out_of_range);
    }
    let is_number = digits.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.');
    match number.parse::<f64>() {
        Ok(value) if is_number && value.is_finite() => Ok(Value::Double(value)),
        _ => Err(malformed()),
    }
}

/// A double in the form of PostgreSQL's own `%.15g`.
pub struct General(pub f64);

impl fmt::Display for General {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Digits that a double always preserves (`DBL_DIG`).
        const DIGITS: usize = 15;
        let value = self.0;
        if value.is_nan() {
            return formatter.write_str("NaN");
        }
        if value.is_infinite() {
            return formatter.write_str(if value < 0.0 { "-Infinity" } else { "Infinity" });
        }
        let scientific = format!("{:.*e}", DIGITS - 1, value);
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let bare = |digits: &str| match digits.contains('.') {
            true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => digits.to_owned(),
        };
        if (-4..DIGITS as i32).contains(&exponent) {
            let decimals = (DIGITS as i32 - 1 - exponent) as usize;
            return formatter.write_str(&bare(&format!("{value:.decimals$}")));
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(formatter, "{}e{sign}{:02}", bare(mantissa), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_c_writes_them() {
        for (value, text) in [
            (15.0, "15"),
            (-0.125, "-0.125"),
            (8.507_059_173_023_46e37, "8.50705917302346e+37"),
            (1e30, "1e+30"),
            (-0.00032, "-0.00032"),
            (0.000_032, "3.2e-05"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (0.1 + 0.2, "0.3"),
            (-0.0, "-0"),
            (f64::INFINITY, "Infinity"),
        ] {
            assert_eq!(General(value).to_string(), text);
        }
    }

    #[test]
    fn texts_are_read_as_pgbench_reads_them() {
        let read = |text: &str| read(text).map(|value| format!("{value:?}"));
        for (text, value) in [
            ("t", "Boolean(true)"),
            ("YE", "Boolean(true)"),
            ("of", "Boolean(false)"),
            ("+3", "Integer(3)"),
            ("-10.1", "Double(-10.1)"),
            ("nULL", "Null"),
            (".5", "Double(0.5)"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(value), "{text}");
        }
        for text in ["bla", "trueXXX", "", "o", "99999999999999999999", "inf"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
