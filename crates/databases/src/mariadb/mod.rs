//! MariaDB 10.6 and newer: launched on this machine, or attached to by URL.
//!
//! Most of it is shared with MySQL ([`crate::mysql_family`]); the differences are in [`flavour`]. Each protection is
//! one file below [`protection`]; each check that only MariaDB has is one file below [`evidence`].

mod access;
mod accounts;
mod at_rest;
mod attached;
mod evidence;
mod flavour;
#[doc(hidden)]
pub mod foreign;
mod get;
mod inspect;
mod install;
mod launch;
mod protection;
mod rotation;

use self::flavour::FLAVOUR;
use crate::mysql_family::Family;

/// MariaDB.
#[expect(non_upper_case_globals, reason = "the other products are types without fields: all are named alike")]
pub const MariaDb: Family = Family(&FLAVOUR);
