//! What PostgreSQL's logs repeat: the shared check, with PostgreSQL's way of writing a token into its log.

use tithe_harness::{
    evidence::{Scene, canary::Targets, logs_free::LogsFree},
    fault::Fault,
    session::SqlSession as _,
};
use tithe_model::record::Role;

use crate::postgres::schema::administrator;

/// For logs that are meant to tell who did what: that they tell the values too is not a failure, but good to know.
pub fn disclosure() -> LogsFree {
    LogsFree::new(Role::Disclosure, Targets::Everything, plant)
}

/// Makes the server log `token`. The level LOG is written whatever `log_min_messages` says, FATAL and PANIC aside.
///
/// # Errors
/// The server's error.
pub fn plant(scene: &Scene<'_>, token: &str) -> Result<(), Fault> {
    let mut session = administrator(scene.server, scene.setup)?;
    let token = token.replace('\'', "''");
    session.run(&format!("DO $tithe$ BEGIN RAISE LOG '%', '{token}'; END $tithe$")).map(drop)
}
