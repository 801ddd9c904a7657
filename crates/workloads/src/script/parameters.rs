//! The values of variables as the parameters of a statement.

use tithe_machine::fault::Fault;
use tithe_plugin::session::Parameter;

use super::{
    statement::{Piece, Template},
    value::Value,
    variables::Variables,
};

/// Most parameters of a statement that need no allocation.
const FEW: usize = 16;

/// Passes the parameters of `template` to `then`.
///
/// # Errors
/// A variable without a value; the error of `then`.
pub fn with_parameters<T>(
    template: &Template,
    variables: &Variables,
    scratch: &mut String,
    then: impl FnOnce(&[Parameter<'_>]) -> Result<T, Fault>,
) -> Result<T, Fault> {
    scratch.clear();
    let numbers = || {
        template.pieces.iter().filter_map(|piece| match piece {
            Piece::Variable { number, .. } => Some(*number),
            Piece::Text(_) => None,
        })
    };
    let mut count = 0;
    for number in numbers() {
        let value = variables.get(number).map_err(Fault::Wrong)?;
        if matches!(value, Value::Double(_) | Value::Boolean(_)) {
            value.write(scratch);
        }
        count += 1;
    }
    let mut written = scratch.as_str();
    let mut next = |number: usize| match variables.get(number) {
        Ok(Value::Integer(value)) => Parameter::Integer(*value),
        Ok(Value::Text(text)) => Parameter::Text(text.as_bytes()),
        Ok(value @ (Value::Double(_) | Value::Boolean(_))) => {
            let mut own = String::new();
            value.write(&mut own);
            let (first, rest) = written.split_at(own.len());
            written = rest;
            Parameter::Text(first.as_bytes())
        }
        _ => Parameter::Null,
    };
    if count <= FEW {
        let mut parameters = [Parameter::Null; FEW];
        for (place, number) in parameters.iter_mut().zip(numbers()) {
            *place = next(number);
        }
        return then(&parameters[..count]);
    }
    let parameters: Vec<Parameter<'_>> = numbers().map(next).collect();
    then(&parameters)
}
