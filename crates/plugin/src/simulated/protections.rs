//! The simulated database's protections: one that works, one that may lose records, one that does nothing.

use std::fs;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment,
};

use crate::{
    checks::{
        canary::{Collected, KEY_PREFIX, Source, TOKEN_BYTES, Targets, key_value},
        disk_canary::DiskCanary,
        scan::Places,
    },
    evidence::{Check, CheckContext, CheckEntry},
    protection::Protection,
    session::{Fields, Request},
    setup::{AtRest, Setup},
};

const fn cost(default: f64) -> OptionEntry {
    OptionEntry {
        name: "cost",
        kind: OptionKind::Number { low: -0.5, high: 10.0 },
        default: Some(DefaultValue::Number(default)),
        help: "What it adds to the time of an operation, as a share: 0.05 is five percent.",
    }
}

/// Seals the data file. Id `seal`.
pub(super) struct Seal;

impl Protection for Seal {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "seal",
            title: "sealed data file",
            protects_against: "attackers who read the data file.",
            leaves_open: "the memory of the process, where the key is too.",
            options: const { &[cost(0.05)] },
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        set(setup, "seal_cost", chosen.number("cost"));
        setup.at_rest = Some(AtRest { cipher: "aes-256-gcm".to_owned(), key: setup.credentials.key.clone() });
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(DiskCanary::new(Places::DATA, Targets::Everything))]
    }
}

/// Logs operations. Id `audit`.
pub(super) struct Audit;

impl Protection for Audit {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "audit",
            title: "audit log",
            protects_against: "users who deny what they did.",
            leaves_open: "attackers who can change the log.",
            options: const {
                &[
                    cost(0.05),
                    OptionEntry {
                        name: "lose",
                        kind: OptionKind::Number { low: 0.0, high: 1.0 },
                        default: Some(DefaultValue::Number(0.0)),
                        help: "Share of the records that is lost.",
                    },
                ]
            },
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        set(setup, "audit_cost", chosen.number("cost"));
        set(setup, "audit_lose", chosen.number("lose"));
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(AuditComplete)]
    }
}

/// Does nothing, at any requested cost. Id `placebo`.
pub(super) struct Placebo;

impl Protection for Placebo {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "placebo",
            title: "placebo",
            protects_against: "nothing: it shows what is measured where there is nothing to measure.",
            leaves_open: "everything.",
            options: const { &[cost(0.0)] },
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        set(setup, "placebo_cost", chosen.number("cost"));
    }

    fn evidence(&self, _chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        vec![Box::new(PlaceboTaken)]
    }
}

fn set(setup: &mut Setup, name: &str, value: f64) {
    setup.settings.insert(name.to_owned(), value.to_string());
}

/// Does marked operations of every kind and counts them in the log.
struct AuditComplete;

impl AuditComplete {
    const EACH: usize = 40;
    const KINDS: [&'static str; 5] = ["INSERT", "READ", "UPDATE", "SCAN", "DELETE"];

    fn conclude(log: &str, mark: &str) -> Observation {
        let count = |kind: &str| {
            log.lines()
                .filter(|line| line.split_once(' ').is_some_and(|(k, key)| k == kind && key.starts_with(mark)))
                .count()
        };
        let counts: Vec<_> = Self::KINDS.iter().map(|kind| (kind, count(kind))).collect();
        let text: Vec<_> = counts.iter().map(|(kind, count)| format!("{kind} {count} of {}", Self::EACH)).collect();
        let complete = counts.iter().all(|(_, count)| *count == Self::EACH);
        if complete { Observation::Protected(text.join(", ")) } else { Observation::Exposed(text.join(", ")) }
    }
}

impl Check for AuditComplete {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("audit-complete")
    }

    fn claim(&self) -> String {
        "every operation is in the log, once".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let mut session = key_value(context.connect()?)?;
        let mut source = Source::new(context, "audit-complete");
        let mark = [KEY_PREFIX.as_bytes(), &source.text(TOKEN_BYTES)].concat();
        let values: Vec<(usize, &[u8])> =
            (0..context.table.fields).map(|field| (field, b"marked".as_slice())).collect();
        for number in 0..Self::EACH {
            let key = [mark.as_slice(), number.to_string().as_bytes()].concat();
            let key = key.as_slice();
            let requests = [
                Request::Insert { key, values: &values },
                Request::Read { key, fields: Fields::All },
                Request::Update { key, values: &values },
                Request::Scan { start: key, count: 1, fields: Fields::All },
                Request::Delete { key },
            ];
            for request in &requests {
                session.call(request, &mut Collected::default())?;
            }
        }
        let logs = context.server.paths.logs.iter().filter_map(|path| fs::read_to_string(path).ok());
        Ok(Self::conclude(&logs.collect::<String>(), &String::from_utf8_lossy(&mark)))
    }
}

/// Holds if the arm was set up with the placebo.
struct PlaceboTaken;

impl Check for PlaceboTaken {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("placebo-taken").own_control()
    }

    fn claim(&self) -> String {
        "the arm was set up with the placebo".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        Ok(match context.setup.settings.get("placebo_cost") {
            Some(cost) => Observation::Protected(format!("placebo_cost = {cost}")),
            None => Observation::Exposed("placebo_cost is not set".to_owned()),
        })
    }
}
