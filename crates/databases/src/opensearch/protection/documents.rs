//! Rights by document and by field.

use tithe_machine::launch::{Install, Missing};
use tithe_model::{catalogue::ProtectionEntry, experiment};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::opensearch::{evidence::documents::DocumentsApart, install::needs_plugin, launch::DOCUMENTS};

/// The clients' role has a query, which every document must match, and a list of hidden fields. All records of a
/// workload match, and have no hidden field.
pub struct Documents;

impl Protection for Documents {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "documents",
            title: "document- and field-level security",
            protects_against: "accounts that may read an index, and not all documents or fields of it.",
            leaves_open: "writes, which such an account may not do by `_update` (workloads C, D and E run); documents in the \
                          server's memory and files.",
            ..ProtectionEntry::BARE
        }
    }

    fn needs(&self, install: &Install, _chosen: &experiment::Protection) -> Result<(), Missing> {
        needs_plugin(install)
    }

    fn apply(&self, _chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert(DOCUMENTS.to_owned(), "true".to_owned());
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(DocumentsApart)]
    }
}
