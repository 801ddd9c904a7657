//! Whether statements work on columns of the user's own tables that clients encrypt.

use tithe_machine::fault::Fault;

use super::rewriting::plan;
use crate::{setup::Columns, sql::Grammar, workload::Workload};

/// Checks whether the statements of `workload` work with the columns that `columns` encrypts, before anything is
/// started.
///
/// # Errors
/// [`Fault::Refused`] with every statement that does not, by file, line and column.
pub fn check(columns: &Columns, workload: &dyn Workload, grammar: Grammar) -> Result<(), Fault> {
    let refused = |words: String| Err(Fault::Refused(words));
    if !columns.names.is_empty() {
        let words = format!("`{}` names no table: write each as TABLE.COLUMN", columns.names.join(", "));
        return refused(words);
    }
    let is_plain = |text: &str| text.chars().all(|sign| sign == '_' || sign.is_ascii_alphanumeric());
    if let Some(column) = columns.own.iter().find(|column| !is_plain(&column.table) || !is_plain(&column.name)) {
        return refused(format!("`{}.{}`: write TABLE.COLUMN, without schema or quotes", column.table, column.name));
    }
    let statements = workload.statements();
    if statements.is_empty() {
        return refused("columns as TABLE.COLUMN are those of a workload of scripts".to_owned());
    }
    let (mut problems, mut met) = (Vec::new(), vec![false; columns.own.len()]);
    for statement in &statements {
        let at = |line: usize, column: usize| {
            let column = if line == 1 { column + statement.column - 1 } else { column };
            format!("{}, line {}, column {column}", statement.file, line + statement.line - 1)
        };
        match plan(&statement.text, &columns.own, grammar) {
            Ok(plan) => {
                plan.touched.iter().for_each(|number| met[*number] = true);
                if !plan.touched.is_empty() && statement.as_text {
                    let words = "values travel in its text, where they cannot be encrypted: give the workload `protocol \
                                 = \"prepared\"`";
                    return refused(format!("{}: {words}", at(1, 1)));
                }
                if statement.in_pipeline && plan.results.iter().any(Option::is_some) {
                    let words = "a pipeline has one answer, whose rows cannot be decrypted: read outside of it";
                    problems.push(format!("{}: {words}", at(1, 1)));
                }
            }
            Err(refusals) => {
                problems.extend(refusals.into_iter().map(|refusal| {
                    format!("{}: {}: {}", at(refusal.line, refusal.column), refusal.problem, refusal.help)
                }))
            }
        }
    }
    if !problems.is_empty() {
        return refused(problems.join("; besides, "));
    }
    match columns.own.iter().zip(met).find(|(_, met)| !met) {
        Some((column, _)) => refused(format!("no statement names the table of {}.{}", column.table, column.name)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{setup::OwnColumn, test_workload::Described, workload::FileStatement};

    /// A statement that begins in line 7 and column 3 of its file.
    fn statement(text: &str) -> FileStatement {
        let (file, text) = ("app.sql".to_owned(), text.to_owned());
        FileStatement { file, line: 7, column: 3, text, as_text: false, in_pipeline: false }
    }

    fn encrypting(own: &[&str]) -> Columns {
        let own = own.iter().map(|name| OwnColumn::new(name, true).expect("a column with its table")).collect();
        Columns { own, ..Columns::of_share(0.0, tithe_machine::secret::Secret::random(32)) }
    }

    /// The refusal of statements on `accounts.iban`; empty if they are accepted.
    fn told(statements: &[FileStatement]) -> String {
        let script = Described { statements: statements.to_vec(), ..Described::default() };
        let checked = check(&encrypting(&["accounts.iban"]), &script, Grammar::Postgres);
        checked.map_or_else(|fault| fault.to_string(), |()| String::new())
    }

    const READ: &str = "SELECT iban FROM accounts WHERE id = :id";
    const WRITE: &str = "INSERT INTO accounts (id, iban) VALUES (:id, :iban)";
    const OTHER: &str = "SELECT id FROM orders WHERE id = :id";

    #[test]
    fn columns_are_named_with_their_table_and_nothing_else() {
        let refused = |columns: &Columns| {
            let script = Described { statements: vec![statement(READ)], ..Described::default() };
            check(columns, &script, Grammar::Postgres).expect_err("refused").to_string()
        };
        let named = Columns { names: vec!["iban".to_owned(), "name".to_owned()], ..encrypting(&["accounts.iban"]) };
        assert_eq!(refused(&named), "refused: `iban, name` names no table: write each as TABLE.COLUMN");
        for name in ["public.accounts.iban", "accounts.\"iban\"", "\"accounts\".iban"] {
            let words = format!("refused: `{name}`: write TABLE.COLUMN, without schema or quotes");
            assert_eq!(refused(&encrypting(&[name])), words);
        }
        let absent = "refused: no statement names the table of people.mail";
        assert_eq!(refused(&encrypting(&["accounts.iban", "people.mail"])), absent);
        assert_eq!(told(&[]), "refused: columns as TABLE.COLUMN are those of a workload of scripts");
    }

    #[test]
    fn values_of_encrypted_columns_travel_as_parameters_and_come_back_as_rows() {
        let as_text = |text: &str| FileStatement { as_text: true, ..statement(text) };
        let in_pipeline = |text: &str| FileStatement { in_pipeline: true, ..statement(text) };
        assert_eq!(told(&[statement(READ), statement(WRITE), statement(OTHER)]), "");
        let words = told(&[statement(READ), as_text(WRITE)]);
        assert!(words.starts_with("refused: app.sql, line 7, column 3: values travel in its text"), "{words}");
        assert_eq!(told(&[statement(READ), as_text(OTHER)]), "", "it names no encrypted column");
        let words = told(&[in_pipeline(READ)]);
        assert!(words.starts_with("refused: app.sql, line 7, column 3: a pipeline has one answer"), "{words}");
        assert_eq!(told(&[in_pipeline(WRITE)]), "", "it returns no rows");
    }

    #[test]
    fn problems_are_told_by_their_place_in_the_file() {
        // A line after the first one begins at the file's own first column.
        let sorted = "SELECT id\nFROM accounts ORDER BY iban";
        let words = told(&[statement("SELECT id FROM accounts ORDER BY iban"), statement(sorted)]);
        let places: Vec<&str> = words.split("; besides, ").filter_map(|one| one.split(": accounts").next()).collect();
        assert_eq!(places, ["refused: app.sql, line 7, column 36", "app.sql, line 8, column 24"], "{words}");
    }
}
