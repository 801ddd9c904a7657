//! The walk through a statement: which tables its names refer to, and what it stores, looks up and returns.

use sqlparser::{
    ast::{
        Assignment, AssignmentTarget, ConflictTarget, Delete, Expr, FromTable, Ident, Insert, JoinConstraint,
        JoinOperator, ObjectName, OnConflictAction, OnInsert, SelectItem, SetExpr, Spanned as _, Statement,
        TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind,
    },
    tokenizer::Location,
};

use super::walk::{EXCLUDED, Relation, Results, Walk};

impl Walk<'_> {
    pub(super) fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Query(query) => self.query(query, Results::Client),
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            // Names of the tables in it do not count as understood, and are refused.
            _ => {}
        }
    }

    /// Begins a scope with the tables of `from`.
    pub(super) fn enter(&mut self, from: &[TableWithJoins]) {
        self.scopes.push(Vec::new());
        self.add(from);
    }

    fn add(&mut self, from: &[TableWithJoins]) {
        for TableWithJoins { relation, joins } in from {
            self.relation(relation);
            joins.iter().for_each(|join| self.relation(&join.relation));
        }
    }

    fn relation(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let alias = alias.as_ref().map(|alias| (&alias.name, !alias.columns.is_empty()));
                if let (Some((alias, true)), true) = (alias, self.hides(name)) {
                    self.refuse(alias.span.start, "columns are renamed".to_owned(), "leave their new names out");
                }
                self.table(name, alias.map(|(alias, _)| alias));
            }
            TableFactor::Derived { subquery, alias, .. } => {
                self.query(subquery, Results::Statement);
                let name = alias.as_ref().map_or(String::new(), |alias| alias.name.value.to_lowercase());
                self.push(Relation { name, hidden: None });
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.add(std::slice::from_ref(table_with_joins));
            }
            _ => {}
        }
    }

    fn push(&mut self, relation: Relation) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(relation);
        }
    }

    fn hides(&self, name: &ObjectName) -> bool {
        let last = name.0.last().and_then(|part| part.as_ident());
        last.is_some_and(|last| self.own.iter().any(|column| column.table.eq_ignore_ascii_case(&last.value)))
    }

    /// Adds a table to the current scope.
    fn table(&mut self, name: &ObjectName, alias: Option<&Ident>) {
        let Some(last) = name.0.last().and_then(|part| part.as_ident()) else { return };
        let hides = self.hides(name);
        if hides {
            self.see(last);
            if name.0.len() > 1 {
                let problem = format!("{} has encrypted columns and is named with its schema", last.value);
                self.refuse(last.span.start, problem, "leave the schema out");
            }
            if let Some(alias) = alias {
                self.see(alias);
                let what = format!("it stands for {}, which has encrypted columns", last.value);
                self.names.insert(alias.value.to_lowercase(), what);
            }
        }
        let called = alias.unwrap_or(last).value.to_lowercase();
        self.push(Relation { name: called, hidden: hides.then(|| last.value.to_lowercase()) });
    }

    /// The conditions by which tables are joined.
    pub(super) fn conditions(&mut self, from: &[TableWithJoins]) {
        for TableWithJoins { relation, joins } in from {
            self.nested_conditions(relation);
            for join in joins {
                self.nested_conditions(&join.relation);
                let constraint = match &join.join_operator {
                    JoinOperator::Join(constraint)
                    | JoinOperator::Inner(constraint)
                    | JoinOperator::Left(constraint)
                    | JoinOperator::LeftOuter(constraint)
                    | JoinOperator::Right(constraint)
                    | JoinOperator::RightOuter(constraint)
                    | JoinOperator::FullOuter(constraint)
                    | JoinOperator::CrossJoin(constraint)
                    | JoinOperator::StraightJoin(constraint) => constraint,
                    _ => continue,
                };
                match constraint {
                    JoinConstraint::On(condition) => self.expression(condition, "a condition"),
                    JoinConstraint::Natural => self.refuse_natural(join.relation.span().start),
                    _ => {}
                }
            }
        }
    }

    fn nested_conditions(&mut self, factor: &TableFactor) {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.conditions(std::slice::from_ref(table_with_joins));
        }
    }

    /// A join that compares all columns with equal names.
    fn refuse_natural(&mut self, at: Location) {
        let hidden = self.scopes.iter().flatten().find_map(|relation| relation.hidden.clone());
        if let Some(table) = hidden {
            let problem = format!("NATURAL JOIN may compare encrypted columns of {table}");
            self.refuse(at, problem, "join ON columns");
        }
    }

    fn insert(&mut self, insert: &Insert) {
        let TableObject::TableName(table) = &insert.table else { return };
        self.scopes.push(Vec::new());
        self.table(table, insert.table_alias.as_ref().map(|alias| &alias.alias));
        let hides = self.hides(table);
        if hides && insert.columns.is_empty() && insert.assignments.is_empty() {
            let words = "INSERT leaves open which values are encrypted".to_owned();
            self.refuse(table.span().start, words, "name the columns");
        }
        let columns: Vec<Option<usize>> = insert.columns.iter().map(|column| self.target(column)).collect();
        let hidden = self.scopes.last().and_then(|scope| scope.first()).and_then(|relation| relation.hidden.clone());
        self.push(Relation { name: EXCLUDED.to_owned(), hidden });
        if let Some(source) = &insert.source {
            match source.body.as_ref() {
                SetExpr::Values(values) if source.with.is_none() => {
                    for row in &values.rows {
                        for (number, value) in row.iter().enumerate() {
                            match columns.get(number).copied().flatten() {
                                Some(column) => self.value(value, column),
                                None => self.expression(value, "a value of another column"),
                            }
                        }
                    }
                }
                _ => {
                    for number in columns.iter().flatten() {
                        let problem = format!("{} is encrypted, and its values come from a query", self.name(*number));
                        self.refuse(source.span().start, problem, "insert VALUES with variables");
                    }
                    // The query does not see the table that is inserted into.
                    let scope = self.scopes.pop();
                    self.query(source, Results::Statement);
                    self.scopes.extend(scope);
                }
            }
        }
        self.assignments(&insert.assignments);
        match &insert.on {
            Some(OnInsert::DuplicateKeyUpdate(all)) => self.assignments(all),
            Some(OnInsert::OnConflict(conflict)) => {
                if let Some(ConflictTarget::Columns { columns, predicate }) = &conflict.conflict_target {
                    for column in columns {
                        self.group_name(column);
                    }
                    predicate.iter().for_each(|condition| self.expression(condition, "a condition"));
                }
                if let OnConflictAction::DoUpdate(update) = &conflict.action {
                    self.assignments(&update.assignments);
                    update.selection.iter().for_each(|condition| self.expression(condition, "a condition"));
                }
            }
            _ => {}
        }
        self.returning(insert.returning.as_deref());
        self.scopes.pop();
    }

    /// A column whose values are compared with each other.
    fn group_name(&mut self, name: &Ident) {
        let expression = Expr::Identifier(name.clone());
        match self.peek(&expression) {
            Some(number) if self.own[number].is_compared => {
                self.own_column(&expression);
            }
            _ => self.expression(&expression, "ON CONFLICT"),
        }
    }

    fn update(&mut self, update: &Update) {
        self.enter(std::slice::from_ref(&update.table));
        if let Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) = &update.from {
            self.add(from);
            self.conditions(from);
        }
        self.conditions(std::slice::from_ref(&update.table));
        self.assignments(&update.assignments);
        update.selection.iter().for_each(|condition| self.expression(condition, "a condition"));
        update.order_by.iter().for_each(|order| self.expression(&order.expr, "ORDER BY"));
        self.returning(update.returning.as_deref());
        self.scopes.pop();
    }

    fn delete(&mut self, delete: &Delete) {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        self.enter(from);
        for name in delete.tables.iter().filter_map(|table| table.0.last()?.as_ident()) {
            self.see(name);
        }
        if let Some(using) = &delete.using {
            self.add(using);
            self.conditions(using);
        }
        self.conditions(from);
        delete.selection.iter().for_each(|condition| self.expression(condition, "a condition"));
        delete.order_by.iter().for_each(|order| self.expression(&order.expr, "ORDER BY"));
        self.returning(delete.returning.as_deref());
        self.scopes.pop();
    }

    fn returning(&mut self, items: Option<&[SelectItem]>) {
        for item in items.unwrap_or_default() {
            let number = self.item(item, Results::Client);
            self.results.push(number);
        }
    }

    fn assignments(&mut self, all: &[Assignment]) {
        for Assignment { target, value } in all {
            match target {
                AssignmentTarget::ColumnName(name) => match self.target(name) {
                    Some(column) => self.assigned(value, column),
                    None => self.expression(value, "a value of another column"),
                },
                AssignmentTarget::Tuple(_) => self.expression(value, "several values at once"),
            }
        }
    }

    /// The encrypted column that `name` is the target of.
    fn target(&mut self, name: &ObjectName) -> Option<usize> {
        let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
        let expression = match parts.as_slice() {
            [only] => Expr::Identifier(only.clone()),
            _ => Expr::CompoundIdentifier(parts),
        };
        self.own_column(&expression)
    }
}
