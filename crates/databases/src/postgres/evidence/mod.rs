//! Checks that only PostgreSQL has: one file each.

pub mod audit_complete;
pub mod checksums_on;
mod formats;
pub mod logs_free;
pub mod pgcrypto_trap;
pub mod statement_log;

use tithe_machine::fault::Fault;
use tithe_plugin::evidence::Scene;

use super::{
    hba,
    schema::{administrator, tls_of},
    session::PostgresSession,
    target::PRODUCT,
};
use crate::{
    evidence::Doors,
    target::{Target, is_local},
};

/// How the shared checks reach PostgreSQL.
pub static DOORS: Doors = Doors {
    target: |scene| PRODUCT.target(scene.server, scene.setup),
    open: |scene, target| Ok(open(scene, target)?.greeting().method.clone()),
    tls_of_server: |scene, target| tls_of(&mut open(scene, target)?),
    tls_source: "pg_stat_ssl of a client's session",
    others: |scene| hba::read(&mut administrator(scene.server, scene.setup)?)?.in_plaintext(),
};

fn open(scene: &Scene<'_>, target: &Target) -> Result<PostgresSession, Fault> {
    PostgresSession::open(target, true, is_local(scene.server))
}
