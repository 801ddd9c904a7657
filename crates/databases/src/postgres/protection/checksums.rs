//! Checksums of data pages.

use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::postgres::evidence::checksums_on::ChecksumsOn;

/// `initdb --data-checksums`.
pub struct Checksums;

impl Protection for Checksums {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "checksums",
            title: "page checksums",
            protects_against: "storage that returns other bytes than were written, unnoticed.",
            leaves_open: "attackers who change pages on purpose: the checksum has no key; what happens in memory.",
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.create_arguments.push("--data-checksums".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(ChecksumsOn)]
    }
}
