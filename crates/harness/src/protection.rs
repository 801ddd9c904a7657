//! A security feature of one database that can be off or on, and what it does to the set-up of an arm.
//!
//! Protections live beside their database: TLS of PostgreSQL and TLS of Redis share nothing but the idea.
//! A protection knows no workload.

use tithe_model::{catalogue::OptionEntry, experiment};

use crate::{
    evidence::Evidence,
    launch::{Install, Missing},
    setup::Setup,
    sql::SqlTable,
    workload::Workload,
};

/// A security feature. One file beside its database, one line in its list.
pub trait Protection: Sync {
    /// Name in experiment files.
    fn id(&self) -> &'static str;

    /// Name in reports.
    fn title(&self) -> &'static str;

    /// What it guards against, one sentence.
    fn guards_against(&self) -> &'static str;

    /// What it leaves open, one sentence.
    fn leaves_open(&self) -> &'static str;

    /// Its options.
    fn options(&self) -> &'static [OptionEntry] {
        &[]
    }

    /// True when an attached server that Tithe does not start can be measured with it.
    fn attachable(&self) -> bool {
        false
    }

    /// True when it encrypts what is on the disk, so that what reaches the disk by another way matters.
    fn at_rest(&self) -> bool {
        false
    }

    /// What this installation lacks for it.
    ///
    /// # Errors
    /// Where it was looked for, and how to install it.
    fn needs(&self, _install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        Ok(())
    }

    /// Changes the set-up of a plain server into a protected one. Pure.
    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup);

    /// What proves that it was on.
    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Evidence>>;

    /// What proves it where the workload works on `tables`; none for records by key.
    fn evidence_on(&self, chosen: &experiment::Protection, _tables: &'static [SqlTable]) -> Vec<Box<dyn Evidence>> {
        self.evidence(chosen)
    }

    /// What proves it where the clients are those of `workload`.
    fn evidence_in<'a>(
        &self,
        chosen: &experiment::Protection,
        workload: &'a dyn Workload,
    ) -> Vec<Box<dyn Evidence + 'a>> {
        self.evidence_on(chosen, workload.tables())
    }
}
