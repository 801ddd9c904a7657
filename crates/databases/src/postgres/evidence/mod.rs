//! Checks that only PostgreSQL has: one file each.

pub mod audit_complete;
pub mod checksums_on;
mod formats;
pub mod logs_free;
pub mod pgcrypto_trap;
pub mod statement_log;

use tithe_harness::{evidence::Scene, fault::Fault, session::SqlSession as _};

use super::{
    hba,
    schema::{administrator, tls_of},
    session::PostgresSession,
    target::PRODUCT,
};
use crate::{
    evidence::{
        Doors,
        whole::{Exception, Whole},
    },
    target::{Target, is_local},
};

/// How the shared checks reach PostgreSQL.
pub static DOORS: Doors = Doors {
    target: |scene| PRODUCT.target(scene.server, scene.setup),
    open: |scene, target| Ok(open(scene, target)?.greeting().method.clone()),
    tls_of_server: |scene, target| tls_of(&mut open(scene, target)?),
    tls_source: "pg_stat_ssl of a client's session",
    others: |scene| Whole::of(hba::SOURCE, in_plaintext(scene)),
};

/// The lines of `pg_hba.conf` that let somebody in without TLS.
fn in_plaintext(scene: &Scene<'_>) -> Result<Vec<Exception>, Fault> {
    let rows = administrator(scene.server, scene.setup)?.run(hba::RULES)?;
    Ok(hba::in_plaintext(&hba::rules(rows).map_err(Fault::Wrong)?))
}

fn open(scene: &Scene<'_>, target: &Target) -> Result<PostgresSession, Fault> {
    PostgresSession::open(target, true, is_local(scene.server))
}
