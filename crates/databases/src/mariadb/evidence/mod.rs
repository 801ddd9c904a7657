//! Checks that only MariaDB has: one file each.

pub mod audit_complete;
pub mod encryption_in_force;
pub mod general_log;
mod innodb_file;
pub mod key_rotated;
pub mod logs_free;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tithe_harness::{
    evidence::{Scene, Sight},
    fault::Fault,
};

use super::{schema::tls_of, session::MariaDbSession, target::PRODUCT};
use crate::evidence::{
    Doors,
    marked::{Counts, LogGrowth, NO_LOG, describe, send},
};

/// How the shared checks reach MariaDB.
pub static DOORS: Doors = Doors {
    target: |scene| PRODUCT.target(scene.server, scene.setup),
    open: |_, target| Ok(MariaDbSession::open(target)?.method().to_owned()),
    tls_of_server: |_, target| tls_of(&mut MariaDbSession::open(target)?),
    tls_source: "SHOW SESSION STATUS of a client's session",
};

/// How long a record may take into its log: MariaDB answers the client first.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a log is watched for records that should not be there.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// Sends numbered statements of each kind from several sessions at once, and counts them in the logs with `count`, which
/// gets what was added and `mark`. What is there must be `expected` of what was sent, no more and no less.
///
/// # Errors
/// The first fault.
fn count_marked(
    scene: &Scene<'_>,
    mark: &str,
    expected: impl FnOnce(&Counts) -> Counts,
    count: impl Fn(&str, &str) -> Counts,
) -> Result<Sight, Fault> {
    let Some(growth) = LogGrowth::begin(scene, &logs_free::LOG) else { return Ok(Sight::Unknown(NO_LOG.to_owned())) };
    let sent = send(scene)?;
    let expected = expected(&sent);
    let begun = Instant::now();
    let mut logged = BTreeMap::new();
    let mut complete = None::<Instant>;
    while begun.elapsed() < PATIENCE && complete.is_none_or(|since| since.elapsed() < AFTERWARDS) {
        logged = count(&growth.so_far(scene)?, mark);
        complete = if logged == expected { complete.or(Some(Instant::now())) } else { None };
        // Nothing at all comes only where nothing is logged: there is no use in waiting for more.
        if logged.is_empty() && begun.elapsed() > AFTERWARDS {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let quotation = format!("sent: {}; in the log: {}", describe(&sent), describe(&logged));
    Ok(if logged == expected { Sight::Protected(quotation) } else { Sight::Exposed(quotation) })
}
