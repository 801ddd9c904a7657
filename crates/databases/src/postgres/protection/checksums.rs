//! Checksums of data pages.

use tithe_harness::{evidence::Evidence, protection::Protection, setup::Setup};
use tithe_model::experiment;

use crate::postgres::evidence::checksums_on::ChecksumsOn;

/// `initdb --data-checksums`.
pub struct Checksums;

impl Protection for Checksums {
    fn id(&self) -> &'static str {
        "checksums"
    }

    fn title(&self) -> &'static str {
        "page checksums"
    }

    fn guards_against(&self) -> &'static str {
        "storage that returns other bytes than were written, unnoticed."
    }

    fn leaves_open(&self) -> &'static str {
        "whoever changes pages on purpose: the checksum has no key; what happens in memory."
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.create_arguments.push("--data-checksums".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>> {
        vec![Box::new(ChecksumsOn)]
    }
}
