//! The walk through queries: their results, and how their rows are grouped and ordered.

use sqlparser::{
    ast::{
        Distinct, Expr, GroupByExpr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Spanned as _,
    },
    tokenizer::Location,
};

use super::walk::{CLIENT, EQUAL, Results, Walk};

impl Walk<'_> {
    pub(super) fn query(&mut self, query: &Query, results: Results) {
        if let Some(with) = &query.with {
            with.cte_tables.iter().for_each(|table| self.query(&table.query, Results::Statement));
        }
        for of in query.locks.iter().filter_map(|lock| lock.of.as_ref()) {
            of.0.iter().filter_map(|part| part.as_ident()).for_each(|name| self.see(name));
        }
        let order: &[OrderByExpr] = match query.order_by.as_ref().map(|order| &order.kind) {
            Some(OrderByKind::Expressions(all)) => all,
            _ => &[],
        };
        self.body(&query.body, order, results);
    }

    fn body(&mut self, body: &SetExpr, order: &[OrderByExpr], results: Results) {
        match body {
            SetExpr::Select(select) => self.select(select, order, results),
            // With an outer ORDER BY its results cannot go to the client: the order is not checked against them here.
            SetExpr::Query(query) if order.is_empty() => self.query(query, results),
            SetExpr::Query(query) => self.query(query, Results::Statement),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, &[], Results::Statement);
                self.body(right, &[], Results::Statement);
            }
            SetExpr::Values(values) => {
                values.rows.iter().flat_map(|row| row.iter()).for_each(|value| self.expression(value, "a value"));
            }
            _ => {}
        }
    }

    fn select(&mut self, select: &Select, order: &[OrderByExpr], results: Results) {
        self.enter(&select.from);
        if let Some(into) = select.into.as_ref().filter(|_| self.hides_any()) {
            let words = "INTO stores what only clients read".to_owned();
            self.refuse(into.span().start, words, "let clients take the rows");
        }
        let mut items = Vec::new();
        for item in &select.projection {
            let number = self.item(item, results);
            items.push(number);
            if results == Results::Client {
                self.results.push(number);
            }
        }
        match &select.distinct {
            Some(Distinct::Distinct) => {
                let randomised = items.iter().flatten().find(|number| !self.own[**number].is_compared).copied();
                if let Some(number) = randomised {
                    self.refuse_randomised(number, &select.projection, "DISTINCT compares it");
                }
            }
            Some(Distinct::On(all)) => all.iter().for_each(|expression| self.group(expression, &items, select)),
            _ => {}
        }
        self.conditions(&select.from);
        if let Some(condition) = &select.selection {
            self.expression(condition, "a condition");
        }
        if let GroupByExpr::Expressions(all, _) = &select.group_by {
            all.iter().for_each(|expression| self.group(expression, &items, select));
        }
        if let Some(condition) = &select.having {
            self.expression(condition, "HAVING");
        }
        for OrderByExpr { expr, .. } in order {
            match ordinal(expr).and_then(|number| items.get(number).copied().flatten()) {
                Some(number) => self.refuse_ordered(number, &select.projection),
                None => self.expression(expr, "ORDER BY"),
            }
        }
        self.scopes.pop();
    }

    /// The column that a result returns unchanged.
    pub(super) fn item(&mut self, item: &SelectItem, results: Results) -> Option<usize> {
        let (expression, alias) = match item {
            SelectItem::UnnamedExpr(expression) => (expression, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            SelectItem::Wildcard(options) => {
                self.wildcard(options.wildcard_token.0.span.start, results);
                return None;
            }
            SelectItem::QualifiedWildcard(_, options) => {
                self.wildcard(options.wildcard_token.0.span.start, results);
                return None;
            }
            SelectItem::ExprWithAliases { .. } => return None,
        };
        alias.iter().for_each(|alias| self.see(alias));
        let column = self.own_column(expression);
        match (column, results) {
            (Some(number), Results::Client) => {
                if let Some(alias) = alias {
                    let name = self.name(number);
                    self.names.insert(alias.value.to_lowercase(), format!("it stands for {name}, which is encrypted"));
                }
                Some(number)
            }
            (Some(_), Results::Nothing) => None,
            _ => {
                self.expression(expression, "another part of the statement");
                None
            }
        }
    }

    fn wildcard(&mut self, at: Location, results: Results) {
        if self.hides_any() && results != Results::Nothing {
            self.refuse(at, "* leaves open which results are encrypted".to_owned(), "name the columns");
        }
    }

    /// True if a table of the current query has encrypted columns.
    fn hides_any(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.iter().any(|relation| relation.hidden.is_some()))
    }

    /// An expression by which rows are grouped.
    fn group(&mut self, expression: &Expr, items: &[Option<usize>], select: &Select) {
        if let Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) = expression {
            sets.iter().flatten().for_each(|inner| self.group(inner, items, select));
            return;
        }
        match ordinal(expression).map(|number| items.get(number).copied().flatten()) {
            Some(Some(number)) if !self.own[number].is_compared => {
                self.refuse_randomised(number, &select.projection, "GROUP BY compares it");
            }
            Some(_) => {}
            None => match self.peek(expression) {
                Some(number) if self.own[number].is_compared => {
                    self.own_column(expression);
                }
                _ => self.expression(expression, "GROUP BY"),
            },
        }
    }

    fn refuse_randomised(&mut self, number: usize, items: &[SelectItem], why: &str) {
        let problem = format!("{} is encrypted so that equal values look different, and {why}", self.name(number));
        self.refuse_item(number, items, problem, EQUAL);
    }

    fn refuse_ordered(&mut self, number: usize, items: &[SelectItem]) {
        let problem = format!("{} is encrypted, and ORDER BY sorts by it", self.name(number));
        self.refuse_item(number, items, problem, CLIENT);
    }

    fn refuse_item(&mut self, number: usize, items: &[SelectItem], problem: String, help: &str) {
        let names = items.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name),
            SelectItem::ExprWithAlias { expr: Expr::Identifier(name), .. } => Some(name),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
            | SelectItem::ExprWithAlias { expr: Expr::CompoundIdentifier(parts), .. } => parts.last(),
            _ => None,
        });
        let of_column = |name: &&Ident| name.value.eq_ignore_ascii_case(&self.own[number].name);
        let at = names.into_iter().find(of_column).map_or(Location::new(1, 1), |name| name.span.start);
        self.refuse(at, problem, help);
    }
}

/// The number of the result that `expression` means, from 0 on.
fn ordinal(expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Value(value) => value.to_string().parse::<usize>().ok()?.checked_sub(1),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } | Expr::UnaryOp { expr: inner, .. } => ordinal(inner),
        _ => None,
    }
}
