//! The walk through expressions: comparisons, stored values and computations with encrypted columns.

use sqlparser::{
    ast::{
        BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, InTarget, Spanned as _,
        UnaryOperator, Value,
    },
    tokenizer::Location,
};

use super::{
    place,
    walk::{CLIENT, EQUAL, EXCLUDED, Results, VARIABLE, Walk},
};

/// What a name means.
enum Meaning {
    /// An encrypted column.
    Own(usize),
    /// Another one.
    Other,
    /// It may be an encrypted column of a query around this one.
    Unclear(usize),
}

impl Walk<'_> {
    /// The encrypted column that `expression` is; its names then count as understood.
    pub(super) fn own_column(&mut self, expression: &Expr) -> Option<usize> {
        let names = names(expression)?;
        let meaning = self.meaning(&names);
        // A table's name used as a column is its whole row.
        let is_row =
            matches!((names.as_slice(), &meaning), ([name], Some(Meaning::Other)) if self.stands_for_more(name));
        if !is_row && meaning.is_some() {
            names.iter().for_each(|name| self.see(name));
        }
        match meaning? {
            Meaning::Own(number) => Some(number),
            Meaning::Other => None,
            Meaning::Unclear(number) => {
                let problem = format!("it may be {}, which is encrypted", self.name(number));
                let at = names.last().map_or(Location::new(1, 1), |name| name.span.start);
                self.refuse(at, problem, "write the table's name before it");
                None
            }
        }
    }

    /// True for the name of a table with encrypted columns, and for an alias of such a table or column.
    fn stands_for_more(&self, name: &Ident) -> bool {
        let is_table = self.own.iter().any(|column| column.table.eq_ignore_ascii_case(&name.value));
        is_table || self.names.contains_key(&name.value.to_lowercase())
    }

    /// The same, but no name counts as understood.
    pub(super) fn peek(&self, expression: &Expr) -> Option<usize> {
        match self.meaning(&names(expression)?)? {
            Meaning::Own(number) => Some(number),
            _ => None,
        }
    }

    /// The meaning of `names`; `None` for names that are not understood.
    fn meaning(&self, names: &[Ident]) -> Option<Meaning> {
        let find = |table: &str, name: &Ident| {
            self.own.iter().position(|column| {
                column.table.eq_ignore_ascii_case(table) && column.name.eq_ignore_ascii_case(&name.value)
            })
        };
        match names {
            [name] => {
                let inner = self.scopes.len().checked_sub(1);
                for (depth, scope) in self.scopes.iter().enumerate().rev() {
                    let hidden = scope.iter().filter(|relation| relation.name != EXCLUDED);
                    let mut found = hidden.filter_map(|relation| find(relation.hidden.as_deref()?, name));
                    match (found.next(), found.next()) {
                        (Some(number), None) if Some(depth) == inner => return Some(Meaning::Own(number)),
                        (Some(number), _) => return Some(Meaning::Unclear(number)),
                        _ => {}
                    }
                }
                Some(Meaning::Other)
            }
            [table, name] => {
                let table = table.value.to_lowercase();
                let mut relations = self.scopes.iter().rev().flatten();
                let relation = relations.find(|relation| relation.name == table)?;
                let own = relation.hidden.as_deref().and_then(|table| find(table, name));
                Some(own.map_or(Meaning::Other, Meaning::Own))
            }
            _ => None,
        }
    }

    /// Walks through an expression that the server computes, as part of `within`.
    pub(super) fn expression(&mut self, expression: &Expr, within: &str) {
        if names(expression).is_some() {
            if let Some(number) = self.own_column(expression) {
                let problem =
                    format!("{} is encrypted, and the server would have to read it in {within}", self.name(number));
                self.refuse(expression.span().start, problem, CLIENT);
            }
            return;
        }
        match expression {
            Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
                self.expression(inner, within);
            }
            Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                self.expression(left, within);
                self.expression(right, within);
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq | BinaryOperator::NotEq | BinaryOperator::Spaceship,
                right,
            }
            | Expr::IsDistinctFrom(left, right)
            | Expr::IsNotDistinctFrom(left, right) => self.comparison(left, right),
            Expr::BinaryOp { left, op, right } => {
                let within = match op {
                    BinaryOperator::Lt | BinaryOperator::LtEq | BinaryOperator::Gt | BinaryOperator::GtEq => "a range",
                    _ => "an operation",
                };
                self.expression(left, within);
                self.expression(right, within);
            }
            Expr::In { expr, target, .. } => self.within_list(expr, target),
            // NULL stays NULL.
            Expr::IsNull(inner) | Expr::IsNotNull(inner) if self.own_column(inner).is_none() => {
                self.expression(inner, within);
            }
            Expr::Between { expr, low, high, .. } => {
                [expr, low, high].iter().for_each(|inner| self.expression(inner, "a range"));
            }
            Expr::Like { expr, pattern, .. }
            | Expr::ILike { expr, pattern, .. }
            | Expr::SimilarTo { expr, pattern, .. }
            | Expr::RLike { expr, pattern, .. } => {
                self.expression(expr, "a pattern");
                self.expression(pattern, "a pattern");
            }
            Expr::UnaryOp { expr, .. }
            | Expr::IsTrue(expr)
            | Expr::IsNotTrue(expr)
            | Expr::IsFalse(expr)
            | Expr::IsNotFalse(expr) => self.expression(expr, "an operation"),
            Expr::Cast { expr, .. } | Expr::Collate { expr, .. } => self.expression(expr, "a change of its type"),
            Expr::Case { operand, conditions, else_result, .. } => {
                let whens = conditions.iter().flat_map(|when| [&when.condition, &when.result]);
                let all = operand.iter().map(AsRef::as_ref).chain(whens).chain(else_result.iter().map(AsRef::as_ref));
                all.for_each(|inner| self.expression(inner, "CASE"));
            }
            Expr::Tuple(all) => all.iter().for_each(|inner| self.expression(inner, within)),
            Expr::Function(function) => self.function(function),
            Expr::Exists { subquery, .. } => self.query(subquery, Results::Nothing),
            Expr::Subquery(subquery) => self.query(subquery, Results::Statement),
            // Names of encrypted columns in it do not count as understood, and are refused.
            _ => {}
        }
    }

    fn within_list(&mut self, expression: &Expr, target: &InTarget) {
        let column = self.own_column(expression);
        if column.is_none() {
            self.expression(expression, "IN");
        }
        match (target, column) {
            (InTarget::List(all), Some(number)) if self.compares(number, expression) => {
                all.iter().for_each(|value| self.value(value, number));
            }
            (InTarget::List(all), _) => all.iter().for_each(|value| self.expression(value, "IN")),
            (InTarget::Subquery(query), column) => {
                if let Some(number) = column {
                    let problem = format!("{} is encrypted, and compared with what a query returns", self.name(number));
                    self.refuse(expression.span().start, problem, CLIENT);
                }
                self.query(query, Results::Statement);
            }
            (_, Some(number)) => {
                let problem = format!("{} is encrypted, and only a list of variables may follow IN", self.name(number));
                self.refuse(expression.span().start, problem, CLIENT);
            }
            (_, None) => {}
        }
    }

    fn comparison(&mut self, left: &Expr, right: &Expr) {
        match (self.own_column(left), self.own_column(right)) {
            (Some(one), Some(other)) if one == other => {
                self.compares(one, left);
            }
            (Some(one), Some(other)) => {
                let (one, other) = (self.name(one), self.name(other));
                let problem = format!("{one} and {other} are encrypted, and their equal values look different");
                self.refuse(left.span().start, problem, CLIENT);
            }
            (Some(number), None) => self.looked_up(number, left, right),
            (None, Some(number)) => self.looked_up(number, right, left),
            (None, None) => {
                self.expression(left, "a comparison");
                self.expression(right, "a comparison");
            }
        }
    }

    fn looked_up(&mut self, number: usize, column: &Expr, value: &Expr) {
        if !self.compares(number, column) {
            return;
        }
        if names(value).is_some() {
            let problem = format!("{} is encrypted, and compared with a column that is not", self.name(number));
            self.refuse(value.span().start, problem, "encrypt neither or compare with a variable");
        } else {
            self.value(value, number);
        }
    }

    /// Checks whether column `number` can be compared.
    fn compares(&mut self, number: usize, column: &Expr) -> bool {
        let compares = self.own[number].is_compared;
        if !compares {
            let problem = format!("{} is encrypted so that equal values look different", self.name(number));
            self.refuse(column.span().start, problem, EQUAL);
        }
        compares
    }

    /// A value that becomes the ciphertext of column `number`.
    pub(super) fn value(&mut self, value: &Expr, number: usize) {
        match value {
            Expr::Nested(inner) => return self.value(inner, number),
            Expr::Value(value) => match &value.value {
                Value::Placeholder(_) => return self.parameters.push((place(value.span.start), number)),
                Value::Null => return,
                _ => {
                    let problem = format!("{} is encrypted, and a literal is not", self.name(number));
                    return self.refuse(value.span.start, problem, VARIABLE);
                }
            },
            _ => {}
        }
        let problem = format!("{} is encrypted, and the server would compute its value", self.name(number));
        self.refuse(value.span().start, problem, VARIABLE);
        self.expression(value, "an operation");
    }

    /// The new value of column `number`: one for clients to encrypt, or the value that was to be inserted into it.
    pub(super) fn assigned(&mut self, value: &Expr, number: usize) {
        let inserted = match value {
            Expr::Function(function) if is_called(function, "values") => only_argument(function),
            _ => Some(value),
        };
        if let Some(inserted) = inserted.filter(|inserted| self.peek(inserted) == Some(number)) {
            self.own_column(inserted);
            return;
        }
        self.value(value, number);
    }

    fn function(&mut self, function: &Function) {
        let name = function.name.to_string();
        if is_called(function, "count")
            && let Some(number) = only_argument(function).and_then(|argument| self.peek(argument))
        {
            let distinct =
                matches!(&function.args, FunctionArguments::List(list) if list.duplicate_treatment.is_some());
            if let Some(argument) = only_argument(function)
                && (!distinct || self.compares(number, argument))
            {
                self.own_column(argument);
            }
        } else if let FunctionArguments::List(list) = &function.args {
            for argument in &list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument {
                    self.expression(argument, &format!("{name}()"));
                }
            }
        }
        function.filter.iter().for_each(|condition| self.expression(condition, "a condition"));
    }
}

fn is_called(function: &Function, name: &str) -> bool {
    function.name.to_string().eq_ignore_ascii_case(name)
}

fn only_argument(function: &Function) -> Option<&Expr> {
    match &function.args {
        FunctionArguments::List(list) => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => Some(argument),
            _ => None,
        },
        _ => None,
    }
}

/// The names of a column.
fn names(expression: &Expr) -> Option<Vec<Ident>> {
    match expression {
        Expr::Identifier(name) => Some(vec![name.clone()]),
        Expr::CompoundIdentifier(names) => Some(names.clone()),
        Expr::Nested(inner) => names(inner),
        _ => None,
    }
}
