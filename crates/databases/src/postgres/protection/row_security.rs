//! Row-level security: policies on Tithe's own tables, with which a client only sees the rows of its tenant.
//!
//! Each table gets a column with the tenant. Its default comes from the client that inserts the row, so statements stay
//! as they are. The policies also apply to the owner (`FORCE ROW LEVEL SECURITY`). No policy applies to a superuser, so
//! clients of a server that Tithe starts, which connect as one, work in a role without that attribute.

use std::fmt::Write as _;

use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::postgres::{
    evidence::{
        row_plan::RowPlan,
        rows_apart::{ASKED_FOR, RowsApart, TENANT},
    },
    schema::{MARK, MEMBERS, is_first_account},
};

/// The tenant of the measured clients.
const OWN: &str = "one";

/// The role of clients that connect as a superuser.
const ROLE: &str = "tithe_client";

/// Row-level security.
pub struct RowSecurity;

impl Protection for RowSecurity {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "row-security",
            title: "row-level security",
            protects_against: "a client that reads or changes rows of another tenant, whatever its statements ask for.",
            leaves_open: "clients that name another tenant themselves (`SET tithe.tenant`), superusers, accounts with \
                          BYPASSRLS, and other tenants' keys in errors of unique indexes.",
            options: &[
                OptionEntry {
                    name: "policies",
                    kind: OptionKind::Number { low: 1.0, high: 200.0 },
                    default: Some(DefaultValue::Number(1.0)),
                    help: "Policies on each table. The last one that is tried lets the client's rows pass; all others are \
                           for other tenants.",
                },
                OptionEntry {
                    name: "lookup",
                    kind: OptionKind::Choice(&["setting", "once", "subquery"]),
                    default: Some(DefaultValue::Text("setting")),
                    help: "How the policy finds the tenant: by a setting that it reads for each row, by the same \
                           setting read once a statement (`SELECT current_setting(…)`), or by a subquery on a table of \
                           members.",
                },
            ],
            attachable: true,
            by_client: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let (policies, lookup) = (chosen.number("policies") as u32, chosen.text("lookup"));
        if lookup == "subquery" {
            setup.table_statements.push(members());
        }
        setup.table_statements.push(column());
        setup.table_statements.push(policy_texts(policies, lookup));
        setup.table_statements.push(role(lookup));
        setup.session_statements.push(format!("SET {ASKED_FOR} = '{OWN}'"));
        // An account without the role is not changed: policies either apply to it already, or they do not.
        setup.session_statements.push(format!(
            "SELECT set_config('role', rolname, false) FROM pg_roles WHERE rolname = '{ROLE}' AND {}",
            is_first_account()
        ));
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(RowsApart), Box::new(RowPlan)]
    }
}

/// The column with the tenant: a row that names none belongs to the tenant that inserts it. This takes two steps,
/// because the default of an added column is evaluated at once.
fn column() -> String {
    format!(
        "ALTER TABLE {{table}} ADD COLUMN {TENANT} text NOT NULL; ALTER TABLE {{table}} ALTER COLUMN {TENANT} SET \
         DEFAULT current_setting('{ASKED_FOR}')"
    )
}

/// A lookup table of a thousand members, each with its tenant.
fn members() -> String {
    format!(
        "CREATE TABLE {MEMBERS} (member text PRIMARY KEY, tenant text NOT NULL); COMMENT ON TABLE {MEMBERS} IS '{MARK}'; \
         INSERT INTO {MEMBERS} SELECT 'member ' || n, 'tenant ' || n FROM generate_series(1, 999) AS n UNION \
         ALL SELECT '{OWN}', '{OWN}'; ANALYZE {MEMBERS}"
    )
}

/// Policies for all operations on rows, permissive ones as `CREATE POLICY` makes them: one that lets a row pass is
/// enough. They are tried in the order of their names.
fn policy_texts(policies: u32, lookup: &str) -> String {
    let asked_for = format!("current_setting('{ASKED_FOR}')");
    let own = match lookup {
        "once" => format!("{TENANT} = (SELECT {asked_for})"),
        "subquery" => format!("{TENANT} IN (SELECT tenant FROM {MEMBERS} WHERE member = {asked_for})"),
        _ => format!("{TENANT} = {asked_for}"),
    };
    let mut text = "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY".to_owned();
    for other in 1..policies {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "; CREATE POLICY of_other_{other:03} ON {{table}} USING ({asked_for} = 'other {other}' AND {TENANT} = \
             'other {other}')"
        );
    }
    let _ = write!(text, "; CREATE POLICY of_tenant ON {{table}} USING ({own})");
    text
}

/// The role of clients that connect as the superuser of a server that Tithe started. For other servers nothing is done.
fn role(lookup: &str) -> String {
    let members = if lookup == "subquery" { format!("GRANT SELECT ON {MEMBERS} TO {ROLE}; ") } else { String::new() };
    format!(
        "DO $$ BEGIN IF {} THEN IF to_regrole('{ROLE}') IS NULL THEN CREATE ROLE {ROLE}; END IF; GRANT USAGE ON SCHEMA \
         {{space}} TO {ROLE}; {members}GRANT SELECT, INSERT, UPDATE, DELETE ON {{table}} TO {ROLE}; END IF; END $$",
        is_first_account()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_of_others_are_tried_before_the_one_that_lets_rows_pass() {
        let policies = |count: u32, lookup: &str| {
            policy_texts(count, lookup).split("; ").skip(1).map(str::to_owned).collect::<Vec<String>>()
        };
        let of_other = |other: u32| {
            format!(
                "CREATE POLICY of_other_00{other} ON {{table}} USING (current_setting('tithe.tenant') = \
                 'other {other}' AND tithe_tenant = 'other {other}')"
            )
        };
        let own = |tenant: &str| format!("CREATE POLICY of_tenant ON {{table}} USING (tithe_tenant = {tenant})");
        assert_eq!(policies(1, "once"), [own("(SELECT current_setting('tithe.tenant'))")]);
        assert_eq!(policies(3, "setting"), [of_other(1), of_other(2), own("current_setting('tithe.tenant')")]);
    }
}
