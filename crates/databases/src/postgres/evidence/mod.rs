//! Checks that only PostgreSQL has: one file each.

pub mod audit_complete;
pub mod checksums_on;
pub mod formats;
pub mod logs_free;
pub mod pgcrypto_trap;
pub mod row_plan;
pub mod rows_apart;
pub mod scram_iterations;
pub mod statement_log;

use tithe_machine::fault::Fault;
use tithe_plugin::{claim::Probes, evidence::CheckContext};

use self::logs_free::LOG;
use super::{
    hba,
    inspect::plaintext,
    schema::{administrator, hops_of},
    session::PostgresSession,
    target::PRODUCT,
};
use crate::{
    evidence::{ConnectionProbes, marked::lines_like, password_asked::PasswordAsked},
    target::{Target, is_local},
};

/// How the shared checks reach PostgreSQL.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| PRODUCT.target(context.server, context.setup),
    open: |context, target| Ok(open(context, target)?.greeting().method.clone()),
    names_mechanism: true,
    plaintext,
    tls_of_server: |context, target| Ok(hops_of(&mut open(context, target)?)?.words()),
    tls_source: "pg_stat_ssl of a client's session",
    others: |context| hba::read(&mut administrator(context.server, context.setup)?)?.in_plaintext(),
};

/// How PostgreSQL answers the claims that are checked by name.
pub static CLAIMS: Probes = Probes {
    password: Some(|| Box::new(PasswordAsked(&PROBES))),
    count_in_log: Some(|context, pattern| lines_like(context, &LOG, pattern)),
};

fn open(context: &CheckContext<'_>, target: &Target) -> Result<PostgresSession, Fault> {
    PostgresSession::open(target, is_local(context.server))
}
