//! What a running server lacks, as text that an administrator can paste into a client for statements: the purposes are
//! in comments.

use std::collections::BTreeMap;

use tithe_machine::launch::Address;
use tithe_model::{
    catalogue::StatementForm,
    experiment::{Protection, Url},
};
use tithe_plugin::{
    database::{Lack, Remedy, Without},
    product::Product,
};

/// Everything that the server called `name` lacks: requirements of every measurement first. `asked` are the protections
/// that matter; if there are none, all do.
pub fn text(name: &str, database: &dyn Product, lacks: &[Lack], asked: &[&str]) -> String {
    written(name, database.entry().statement_form, lacks, &claims_on_files(database, asked))
}

/// True if something is missing for measuring or for proof.
pub fn is_missing(lack: &Lack) -> bool {
    !matches!(lack.without, Without::Figures(_))
}

fn written(name: &str, form: StatementForm, lacks: &[Lack], on_files: &str) -> String {
    let StatementForm { comment, end } = form;
    let missing = lacks.iter().any(is_missing);
    let mut text = format!("{comment} {name}: {}\n", if missing { "missing" } else { "nothing is missing" });
    let mut sorted: Vec<&Lack> = lacks.iter().collect();
    sorted.sort_by_key(|lack| match lack.without {
        Without::Measurement => 0,
        Without::Switch(_) | Without::Proof(_) => 1,
        Without::Figures(_) => 2,
    });
    for lack in sorted {
        text += &format!("{comment} {}; {}\n", lack.why, lack.without);
        text += &match &lack.remedy {
            Remedy::Statement(statement) => format!("{statement}{end}\n"),
            Remedy::Words(words) => format!("{comment} {words}\n"),
        };
    }
    if !on_files.is_empty() {
        text += &format!(
            "{comment} the server's files cannot be read from here, so these claims, which only strengthen a proof, are \
             left out: {on_files}\n{comment} run `tithe observe` on the server's machine and name its files in \
             the experiment (FORMAT.md, \"observer\")\n"
        );
    }
    text
}

/// The claims on the files of a running server, with their protections: `disk-canary of columns`.
fn claims_on_files(database: &dyn Product, asked: &[&str]) -> String {
    let attached = Address::Attached(Url::new(""));
    let mut claims: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for protection in database.protections() {
        let entry = protection.entry();
        if !entry.attachable || !(asked.is_empty() || asked.contains(&entry.id)) {
            continue;
        }
        let defaults = entry.options.iter();
        let options = defaults.filter_map(|option| Some((option.name.to_owned(), option.default?.value()))).collect();
        let chosen = Protection::listed(entry.id, options);
        for check in protection.evidence(&chosen) {
            if check.looks_into_files() && check.concerns(&attached) {
                claims.entry(check.id()).or_default().push(entry.id);
            }
        }
    }
    let claims = claims.into_iter().map(|(claim, protections)| format!("{claim} of {}", protections.join(" and ")));
    claims.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const SQL: StatementForm = StatementForm { comment: "--", end: ";" };

    #[test]
    fn what_is_missing_can_be_pasted() {
        let lack = |why: &str, remedy, without| Lack { why: why.to_owned(), remedy, without };
        let statement = |text: &str| Remedy::Statement(text.to_owned());
        let lacks = [
            lack("seen there", Remedy::Words("run it there".to_owned()), Without::Figures("net time")),
            lack("no log", statement("ALTER SYSTEM SET y = on"), Without::Proof(&["pgaudit", "log-statement"])),
            lack("switched", statement("GRANT SET ON PARAMETER z TO ann"), Without::Switch(&["pgaudit"])),
            lack("a schema is made", statement("GRANT CREATE ON DATABASE x TO ann"), Without::Measurement),
        ];
        expect![[r#"
            -- postgres://ann@db/x: missing
            -- a schema is made; without it nothing can be measured
            GRANT CREATE ON DATABASE x TO ann;
            -- no log; without it pgaudit and log-statement cannot be proven
            ALTER SYSTEM SET y = on;
            -- switched; without it no session can switch pgaudit
            GRANT SET ON PARAMETER z TO ann;
            -- seen there; without it there is no net time
            -- run it there
        "#]]
        .assert_eq(&written("postgres://ann@db/x", SQL, &lacks, ""));
        expect![[r#"
            # redis://db: nothing is missing
            # the server's files cannot be read from here, so these claims, which only strengthen a proof, are left out: disk-canary of columns
            # run `tithe observe` on the server's machine and name its files in the experiment (FORMAT.md, "observer")
        "#]]
        .assert_eq(&written("redis://db", StatementForm { comment: "#", end: "" }, &[], "disk-canary of columns"));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn claims_on_files_are_those_of_protections_that_a_running_server_can_have() {
        expect!["disk-canary of columns, logs-free of pgaudit and log-statement"]
            .assert_eq(&claims_on_files(&tithe_databases::postgres::Postgres, &[]));
    }
}
