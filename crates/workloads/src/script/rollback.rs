//! Scripts that change the user's own tables in place: each transaction is rolled back.

use super::{
    command::{Action, Command, Keep, Place, Refusal, Script, Sql},
    guard,
    statement::{Flavour, Piece, Template},
};

/// Makes `script` one transaction that is rolled back: a script without transactions becomes one, and one that is one
/// transaction from its first statement to its last ends by `ROLLBACK`.
///
/// # Errors
/// A statement that begins or ends a transaction elsewhere, or might.
pub fn taken_back(script: &mut Script) -> Result<(), Refusal> {
    let statements: Vec<usize> =
        (0..script.commands.len()).filter(|at| matches!(script.commands[*at].action, Action::Sql(_))).collect();
    let bound = |part: &Template| guard::bound(&part.text, part.flavour);
    let bounds = |at: usize| -> Vec<guard::Bound> { parts(&script.commands[at]).iter().map(bound).collect() };
    let refuse = |at: usize, problem: &str| Refusal {
        place: script.commands[at].place,
        problem: problem.to_owned(),
        help:
            "let the script be one transaction, from BEGIN as its first statement to COMMIT as its last, or have none"
                .to_owned(),
    };
    let own = statements.iter().any(|at| bounds(*at).iter().any(|bound| *bound != guard::Bound::None));
    let (Some(first), Some(last)) = (statements.first(), statements.last()) else { return Ok(()) };
    for at in &statements {
        let expected = match *at {
            _ if !own => guard::Bound::None,
            at if at == *first => guard::Bound::Begins,
            at if at == *last => guard::Bound::Ends,
            _ => guard::Bound::None,
        };
        if bounds(*at).iter().any(|bound| *bound != expected) {
            return Err(refuse(
                *at,
                "a transaction is rolled back as a whole, and this is outside of one or splits it",
            ));
        }
    }
    if own {
        let jumps = |command: &Command| matches!(command.action, Action::If(..) | Action::Jump(_));
        let outside = script.commands[..*first].iter().position(jumps);
        let over_end = script.commands[..*last].iter().position(|command| match command.action {
            Action::If(_, target) | Action::Jump(target) => target > *last,
            _ => false,
        });
        if let Some(at) = outside.or(over_end) {
            return Err(refuse(at, "no condition may decide whether a transaction begins or ends"));
        }
        script.commands[*last].action = statement("ROLLBACK");
        return Ok(());
    }
    for command in &mut script.commands {
        if let Action::If(_, target) | Action::Jump(target) = &mut command.action {
            *target += 1;
        }
    }
    let line = script.commands.last().map_or(1, |command| command.place.line + 1);
    let command = |line, text| Command { place: Place { line, column: 1 }, action: statement(text) };
    script.commands.insert(0, command(0, "BEGIN"));
    script.commands.push(command(line, "ROLLBACK"));
    Ok(())
}

fn parts(command: &Command) -> &[Template] {
    if let Action::Sql(sql) = &command.action { &sql.parts } else { &[] }
}

fn statement(text: &str) -> Action {
    let pieces = vec![Piece::Text(text.to_owned())];
    let part = Template { pieces, text: text.to_owned(), flavour: Flavour::default() };
    Action::Sql(Sql { parts: vec![part], rows: Keep::Nothing })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use tithe_plugin::session::Protocol;

    use crate::script::{
        program::{Program, Source, Transactions},
        statement::Flavour,
    };

    fn check(text: &str, expected: Expect) {
        let transactions = Transactions { in_place: vec!["t".to_owned()], ..Transactions::default() };
        let source = [Source { name: "a.sql", weight: 1, text }];
        let told = match Program::new(&source, Flavour::Postgres, &[], Protocol::Simple, transactions) {
            Ok(program) => program.statements().map(|part| part.text.clone()).collect::<Vec<_>>().join("; "),
            Err(refusals) => {
                let line = |(_, refusal): &(usize, super::Refusal)| {
                    format!("line {}: {}", refusal.place.line, refusal.problem)
                };
                refusals.iter().map(line).collect::<Vec<_>>().join("\n")
            }
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn transactions_are_rolled_back_as_a_whole() {
        check(
            "UPDATE t SET a = 1;\n\\if true\nDELETE FROM t;\n\\endif",
            expect!["BEGIN; UPDATE t SET a = 1; DELETE FROM t; ROLLBACK"],
        );
        check("\\set a 1\nBEGIN;\nUPDATE t SET a = :a;\nEND;", expect!["BEGIN; UPDATE t SET a = :a; ROLLBACK"]);
        check(
            "BEGIN;\nUPDATE t SET a = 1;\nCOMMIT;\nDELETE FROM t;",
            expect!["line 3: a transaction is rolled back as a whole, and this is outside of one or splits it"],
        );
        check(
            "BEGIN;\n\\if true\nCOMMIT;\n\\endif",
            expect!["line 2: no condition may decide whether a transaction begins or ends"],
        );
        check(
            "\\if true\nBEGIN;\n\\endif\nDELETE FROM t;\nCOMMIT;",
            expect!["line 1: no condition may decide whether a transaction begins or ends"],
        );
        check(
            "CALL p();",
            expect!["line 1: a transaction is rolled back as a whole, and this is outside of one or splits it"],
        );
    }
}
