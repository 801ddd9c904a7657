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
