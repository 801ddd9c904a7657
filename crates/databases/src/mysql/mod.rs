//! MySQL 8.0.30 and newer: launched on this machine, or attached to by URL.
//!
//! Most of it is shared with MariaDB ([`crate::mysql_family`]); what differs is in [`flavour`]. Each protection is one
//! file below [`protection`], each check that only MySQL has one file below [`evidence`]. Left out is the audit log of
//! MySQL Enterprise and of Percona Server: the Community edition has none, and the general log is what it has in its
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

/// MySQL.
#[expect(non_upper_case_globals, reason = "the other products are types without fields: all are named alike")]
pub const MySql: Family = Family(&FLAVOUR);
