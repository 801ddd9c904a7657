//! MySQL 8.0.30 and newer: launched on this machine, or attached to by URL.
//!
//! Most of it is shared with MariaDB ([`crate::mysql_family`]); the differences are in [`flavour`]. Each protection is
//! one file below [`protection`]; each check that only MySQL has is one file below [`evidence`]. The audit logs of
//! MySQL Enterprise and Percona Server are left out: the Community edition has none, and uses the general log in its
//! place.

mod access;
mod accounts;
mod at_rest;
mod attached;
mod evidence;
mod flavour;
mod get;
mod inspect;
mod install;
mod launch;
mod protection;

use self::flavour::FLAVOUR;
use crate::mysql_family::Family;
#[doc(hidden)]
pub use crate::mysql_family::foreign;

/// MySQL.
#[expect(non_upper_case_globals, reason = "the other products are types without fields: all are named alike")]
pub const MySql: Family = Family(&FLAVOUR);
