//! The append-only file: writes survive the server.

use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};
use tithe_plugin::{evidence::Check, protection::Protection, setup::Setup};

use crate::redis::evidence::aof_written::AofWritten;

/// `appendonly yes`.
pub struct Aof;

impl Protection for Aof {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "aof",
            title: "append-only file",
            protects_against: "loss of acknowledged writes when the server stops, and with `always` when the machine \
                             does.",
            leaves_open: "the file itself, which holds every key and value in the clear; with `everysec` the last \
                          second and more.",
            options: &[OptionEntry {
                name: "fsync",
                kind: OptionKind::Choice(&["everysec", "always"]),
                default: Some(DefaultValue::Text("everysec")),
                help: "When the file is flushed to the disk (appendfsync).",
            }],
            attachable: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        setup.settings.insert("appendonly".to_owned(), "yes".to_owned());
        setup.settings.insert("appendfsync".to_owned(), fsync(chosen).to_owned());
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(AofWritten::new(fsync(chosen)))]
    }
}

fn fsync(chosen: &experiment::Protection) -> &'static str {
    if chosen.text("fsync") == "always" { "always" } else { "everysec" }
}
