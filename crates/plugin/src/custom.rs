//! Protections described by data: settings, files, statements, and claims that distinguish their arm from the plain
//! one.

use std::sync::OnceLock;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::{
    catalogue::{AskedOfCustom, ProtectionEntry, plain_name},
    experiment, parse,
    record::{AS_PROTECTED, SETTING_DIFFERS},
};

use crate::{
    claim::{self, Probes},
    evidence::{Check, CheckContext, CheckEntry},
    protection::Protection,
    setup::Setup,
};

/// Any user-defined protection, on a product with these probes; the arm's options describe it.
pub struct Custom(pub &'static Probes);

impl Protection for Custom {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "custom",
            title: "protection of your own",
            protects_against: "what your claims say.",
            leaves_open: "everything that your claims do not check.",
            attachable: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        chosen.custom.iter().for_each(|custom| apply(custom, setup));
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        chosen.custom.as_ref().map_or_else(Vec::new, |custom| evidence(custom, self.0))
    }
}

/// A protection of Tithe's own that is described by a file of this repository, like the users' own.
pub struct Described {
    id: &'static str,
    text: &'static str,
    probes: &'static Probes,
    read: OnceLock<parse::Described>,
}

impl Described {
    /// The protection `id` of a product with these `probes`, from the text of its file.
    pub const fn new(id: &'static str, text: &'static str, probes: &'static Probes) -> Self {
        Self { id, text, probes, read: OnceLock::new() }
    }

    fn read(&self) -> &parse::Described {
        self.read.get_or_init(|| {
            let (described, problems) = parse::custom_file(self.id, self.text.as_bytes());
            debug_assert!(problems.is_empty(), "{}: {problems:?}", self.id);
            described
        })
    }

    fn filled(&self, chosen: &experiment::Protection) -> experiment::Custom {
        self.read().custom.clone().filled(&chosen.options)
    }
}

impl Protection for Described {
    fn entry(&self) -> &'static ProtectionEntry {
        self.read().entry
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        apply(&self.filled(chosen), setup);
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        evidence(&self.filled(chosen), self.probes)
    }
}

/// Changes `setup` as `custom` describes.
fn apply(custom: &experiment::Custom, setup: &mut Setup) {
    for (name, value) in &custom.settings {
        setup.settings.retain(|other, _| plain_name(other) != plain_name(name));
        setup.settings.insert(name.clone(), value.clone());
    }
    setup.files.extend(custom.files.iter().map(|(name, source)| (name.clone(), source.clone())));
    setup.after_loading.statements.extend(custom.statements.iter().cloned());
    setup.after_loading.undo.extend(custom.undo.iter().cloned());
    setup.after_loading.session.extend(custom.session.iter().cloned());
}

/// What proves `custom`.
fn evidence(custom: &experiment::Custom, probes: &'static Probes) -> Vec<Box<dyn Check>> {
    let mut checks: Vec<Box<dyn Check>> = Vec::new();
    for (name, value) in &custom.settings {
        let (name, value) = (name.clone(), value.clone());
        checks.push(Box::new(SettingDiffers { name, value, protected: OnceLock::new() }));
    }
    checks.extend(custom.claims.iter().map(|claim| claim::check(claim, probes)));
    checks
}

/// The value of a setting on the server, on both arms.
struct SettingDiffers {
    name: String,
    value: String,
    /// The value on the protected arm.
    protected: OnceLock<String>,
}

impl Check for SettingDiffers {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure(SETTING_DIFFERS)
    }

    fn claim(&self) -> String {
        format!("{} = {} makes it another one than that of the plain arm", self.name, self.value)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let asked = asked(context)?;
        let bare = context.database.entry().bare_setting(&self.name);
        let name = bare.replace('_', &asked.between.to_string());
        let question = asked.setting.replace("{setting}", &name);
        let value = match context.database.ask(context.server, context.setup, &question) {
            Err(Fault::Server(_)) => Err("unknown to the server"),
            said => said?.ok_or("not shown by the server"),
        };
        let is_known = value.is_ok();
        let said = value.unwrap_or_else(str::to_owned);
        if context.protected {
            return Ok(Observation::Protected(self.protected.get_or_init(|| said).clone()));
        }
        Ok(match self.protected.get() {
            Some(protected) if *protected == said && is_known => Observation::Protected(said + AS_PROTECTED),
            Some(protected) if *protected == said => Observation::Unknown(format!("{said}, on both arms")),
            _ => Observation::Exposed(said),
        })
    }
}

/// How to query the server of `context`.
fn asked(context: &CheckContext<'_>) -> Result<AskedOfCustom, Fault> {
    let entry = context.database.entry();
    let refused = || Fault::Refused(format!("Tithe cannot run statements of yours on {}", entry.title));
    entry.custom.ok_or_else(refused)
}

#[cfg(test)]
mod tests;
