//! Computes expressions as pgbench does: lazily in the same places, and with its errors.

use super::{
    expression::Expression,
    function::{Function, MOST},
    random::{Random, fnv1a, murmur2, permute},
    value::Value,
    variables::Variables,
};

/// Computes expressions on variables.
pub struct Evaluation<'a> {
    /// The variables.
    pub variables: &'a Variables,
    /// The source of random values.
    pub random: &'a mut Random,
    /// The arguments of `debug`, if they are collected.
    pub debugged: Option<&'a mut Vec<Value>>,
}

impl Evaluation<'_> {
    /// The value of `expression`.
    ///
    /// # Errors
    /// The reason why it cannot be computed, in pgbench's words.
    pub fn value(&mut self, expression: &Expression) -> Result<Value, String> {
        match expression {
            Expression::Constant(value) => Ok(value.clone()),
            Expression::Variable(number) => self.variables.value(*number),
            Expression::Call(function @ (Function::And | Function::Or), sides) => {
                let left = self.value(&sides[0])?;
                if left == Value::Null {
                    return Ok(Value::Null);
                }
                let decided = *function == Function::Or;
                if left.boolean()? == decided {
                    return Ok(Value::Boolean(decided));
                }
                match self.value(&sides[1])? {
                    Value::Null => Ok(Value::Null),
                    right => Ok(Value::Boolean(right.boolean()?)),
                }
            }
            Expression::Call(Function::Case, parts) => {
                for pair in parts.chunks(2) {
                    match pair {
                        [condition, then] => {
                            if self.value(condition)?.holds() {
                                return self.value(then);
                            }
                        }
                        last => return self.value(&last[0]),
                    }
                }
                Ok(Value::Null)
            }
            Expression::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    fn call(&mut self, function: Function, arguments: &[Expression]) -> Result<Value, String> {
        // Most have one, two or three arguments, for which an allocation is not worthwhile.
        let mut values = [const { Value::Null }; MOST];
        for (place, argument) in values.iter_mut().zip(arguments) {
            *place = self.value(argument)?;
        }
        let values = &values[..arguments.len()];
        if values.contains(&Value::Null) && !matches!(function, Function::Is | Function::Debug) {
            return Ok(Value::Null);
        }
        match function {
            Function::Add
            | Function::Subtract
            | Function::Multiply
            | Function::Divide
            | Function::Less
            | Function::LessOrEqual
            | Function::Equal
            | Function::Unequal
                if values.iter().any(|value| matches!(value, Value::Double(_))) =>
            {
                let (left, right) = (values[0].double()?, values[1].double()?);
                Ok(on_doubles(function, left, right))
            }
            Function::Add
            | Function::Subtract
            | Function::Multiply
            | Function::Divide
            | Function::Modulo
            | Function::Less
            | Function::LessOrEqual
            | Function::Equal
            | Function::Unequal
            | Function::BitAnd
            | Function::BitOr
            | Function::BitXor
            | Function::ShiftLeft
            | Function::ShiftRight => on_integers(function, values[0].integer()?, values[1].integer()?),
            Function::Not => Ok(Value::Boolean(!values[0].boolean()?)),
            Function::Is => Ok(Value::Boolean(values[0] == values[1])),
            Function::Debug => {
                if let Some(debugged) = &mut self.debugged {
                    debugged.push(values[0].clone());
                }
                Ok(values[0].clone())
            }
            Function::Abs => Ok(match &values[0] {
                Value::Double(value) => Value::Double(if *value < 0.0 { -value } else { *value }),
                value => Value::Integer(value.integer()?.wrapping_abs()),
            }),
            Function::Double => Ok(Value::Double(values[0].double()?)),
            Function::Sqrt => Ok(Value::Double(values[0].double()?.sqrt())),
            Function::Ln => Ok(Value::Double(values[0].double()?.ln())),
            Function::Exp => Ok(Value::Double(values[0].double()?.exp())),
            Function::Int => Ok(Value::Integer(values[0].integer()?)),
            Function::Pi => Ok(Value::Double(std::f64::consts::PI)),
            Function::Power => Ok(Value::Double(values[0].double()?.powf(values[1].double()?))),
            Function::Least | Function::Greatest => extremum(values, function == Function::Greatest),
            Function::HashFnv1a => Ok(Value::Integer(fnv1a(values[0].integer()?, values[1].integer()?))),
            Function::HashMurmur2 => Ok(Value::Integer(murmur2(values[0].integer()?, values[1].integer()?))),
            Function::Permute => {
                let (value, size, seed) = (values[0].integer()?, values[1].integer()?, values[2].integer()?);
                if size <= 0 {
                    return Err("permute size parameter must be greater than zero".to_owned());
                }
                Ok(Value::Integer(permute(value, size, seed)))
            }
            Function::Random | Function::RandomExponential | Function::RandomGaussian | Function::RandomZipfian => {
                self.random(function, values).map(Value::Integer)
            }
            Function::And | Function::Or | Function::Case => Ok(Value::Null),
        }
    }

    fn random(&mut self, function: Function, values: &[Value]) -> Result<i64, String> {
        let (low, high) = (values[0].integer()?, values[1].integer()?);
        if low > high {
            return Err("empty range given to random".to_owned());
        }
        if high.checked_sub(low).and_then(|width| width.checked_add(1)).is_none() {
            return Err("random range is too large".to_owned());
        }
        let parameter = values.get(2).map_or(Ok(0.0), Value::double)?;
        match function {
            Function::RandomGaussian if parameter < 2.0 => {
                Err(format!("gaussian parameter must be at least 2 (not {parameter})"))
            }
            Function::RandomGaussian => Ok(self.random.gaussian(low, high, parameter)),
            Function::RandomZipfian if !(1.001..=1000.0).contains(&parameter) => {
                Err(format!("zipfian parameter must be in range [1.001, 1000] (not {parameter})"))
            }
            Function::RandomZipfian => Ok(self.random.zipfian(low, high, parameter)),
            Function::RandomExponential if parameter <= 0.0 => {
                Err(format!("exponential parameter must be greater than zero (not {parameter})"))
            }
            Function::RandomExponential => Ok(self.random.exponential(low, high, parameter)),
            _ => Ok(self.random.uniform(low, high)),
        }
    }
}

fn on_doubles(function: Function, left: f64, right: f64) -> Value {
    match function {
        Function::Add => Value::Double(left + right),
        Function::Subtract => Value::Double(left - right),
        Function::Multiply => Value::Double(left * right),
        Function::Divide => Value::Double(left / right),
        Function::Less => Value::Boolean(left < right),
        Function::LessOrEqual => Value::Boolean(left <= right),
        Function::Equal => Value::Boolean(left == right),
        _ => Value::Boolean(left != right),
    }
}

fn on_integers(function: Function, left: i64, right: i64) -> Result<Value, String> {
    let range =
        |value: Option<i64>, name: &str| value.map(Value::Integer).ok_or_else(|| format!("bigint {name} out of range"));
    match function {
        Function::Add => range(left.checked_add(right), "add"),
        Function::Subtract => range(left.checked_sub(right), "sub"),
        Function::Multiply => range(left.checked_mul(right), "mul"),
        Function::Divide | Function::Modulo if right == 0 => Err("division by zero".to_owned()),
        Function::Divide => range(left.checked_div(right), "div"),
        Function::Modulo => Ok(Value::Integer(left.wrapping_rem(right))),
        Function::BitAnd => Ok(Value::Integer(left & right)),
        Function::BitOr => Ok(Value::Integer(left | right)),
        Function::BitXor => Ok(Value::Integer(left ^ right)),
        // As on the processors that pgbench runs on: shifts use the lowest six bits.
        Function::ShiftLeft => Ok(Value::Integer(left.wrapping_shl(right as u32))),
        Function::ShiftRight => Ok(Value::Integer(left.wrapping_shr(right as u32))),
        Function::Less => Ok(Value::Boolean(left < right)),
        Function::LessOrEqual => Ok(Value::Boolean(left <= right)),
        Function::Equal => Ok(Value::Boolean(left == right)),
        _ => Ok(Value::Boolean(left != right)),
    }
}

fn extremum(values: &[Value], greatest: bool) -> Result<Value, String> {
    if !values.iter().any(|value| matches!(value, Value::Double(_))) {
        let mut found = values[0].integer()?;
        for value in &values[1..] {
            let value = value.integer()?;
            found = if greatest { found.max(value) } else { found.min(value) };
        }
        return Ok(Value::Integer(found));
    }
    let mut found = values[0].double()?;
    for value in &values[1..] {
        let value = value.double()?;
        // As C's `a < b ? a : b`: the second one if one is not a number.
        found = if (greatest && found > value) || (!greatest && found < value) { found } else { value };
    }
    Ok(Value::Double(found))
}
