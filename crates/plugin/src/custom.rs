//! Protections that the reader describes: settings, statements, and claims that tell their arm from the plain one.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_model::{
    catalogue::{AskedOfCustom, PATIENCE_S, ProtectionEntry, plain_name},
    experiment::{self, Claim, Says},
};

use crate::{
    database::sql_of,
    evidence::{Check, CheckContext, CheckEntry},
    protection::Protection,
    session::answered_within,
    setup::Setup,
};

/// Any protection of the reader's own: what it is stands in what an arm chose.
pub struct Custom;

impl Protection for Custom {
    fn entry(&self) -> &'static ProtectionEntry {
        &ProtectionEntry {
            id: "custom",
            title: "protection of your own",
            protects_against: "what your claims say.",
            leaves_open: "everything that your claims do not say.",
            attachable: true,
            ..ProtectionEntry::BARE
        }
    }

    fn apply(&self, chosen: &experiment::Protection, setup: &mut Setup) {
        let Some(custom) = &chosen.custom else { return };
        for (name, value) in &custom.settings {
            setup.settings.retain(|other, _| plain_name(other) != plain_name(name));
            setup.settings.insert(name.clone(), value.clone());
        }
        setup.after_loading.statements.extend(custom.statements.iter().cloned());
        setup.after_loading.session.extend(custom.session.iter().cloned());
    }

    fn evidence(&self, chosen: &experiment::Protection) -> Vec<Box<dyn Check>> {
        let Some(custom) = &chosen.custom else { return Vec::new() };
        let mut checks: Vec<Box<dyn Check>> = Vec::new();
        for (name, value) in &custom.settings {
            let (name, value) = (name.clone(), value.clone());
            checks.push(Box::new(SettingDiffers { name, value, protected: OnceLock::new() }));
        }
        for claim in &custom.claims {
            checks.push(Box::new(YourClaim(claim.clone())));
        }
        checks
    }
}

/// What the server says that a setting is, on both arms.
struct SettingDiffers {
    name: String,
    value: String,
    /// What the protected arm says.
    protected: OnceLock<String>,
}

impl Check for SettingDiffers {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure("setting-differs")
    }

    fn claim(&self) -> String {
        format!("{} = {} makes it another one than that of the plain arm", self.name, self.value)
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let question = asked(context)?.setting.replace("{setting}", &plain_name(&self.name));
        let said = context.database.ask(context.server, context.setup, &question)?.unwrap_or_default();
        if context.protected {
            return Ok(Observation::Protected(self.protected.get_or_init(|| said).clone()));
        }
        Ok(match self.protected.get() {
            Some(protected) if *protected == said => Observation::Protected(format!("{said}, as on the protected arm")),
            _ => Observation::Exposed(said),
        })
    }
}

/// A claim of the reader's: its statement, and what it must say.
struct YourClaim(Claim);

impl Check for YourClaim {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("your-claim")
    }

    fn claim(&self) -> String {
        self.0.to_string()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let began = Instant::now();
        let said = answered_within(PATIENCE_S + 2, || self.ask(context))?;
        if said.is_err() && began.elapsed() >= Duration::from_secs(PATIENCE_S.into()) {
            return Ok(Observation::Unknown(format!("the statement has not ended within {PATIENCE_S} s")));
        }
        Ok(match (&self.0.says, said) {
            (Says::FailsWith(words), Err(error)) if error.contains(words.as_str()) => seen(context, true, error),
            (_, Err(error)) => Observation::Unknown(format!("the statement failed: {error}")),
            (says, Ok(rows)) => {
                let count = rows.len() as u64;
                let words = words_of(&rows);
                let met = says.is_met(&words, count);
                let told = if count == 0 { "it brings no rows".to_owned() } else { format!("it says {words}") };
                seen(context, met, told)
            }
        })
    }
}

impl YourClaim {
    /// What the statement brings to a measured client that may change nothing: rows, or the words of the server's
    /// error.
    fn ask(&self, context: &CheckContext<'_>) -> Result<Result<Vec<Row>, String>, Fault> {
        let careful = asked(context)?.careful;
        let mut session = sql_of(context.database)?.connect(context.server, context.setup, &context.how())?;
        careful.iter().try_for_each(|statement| session.run(statement).map(drop))?;
        match session.run(&self.0.statement) {
            Ok(rows) => Ok(Ok(rows)),
            Err(fault) => Ok(Err(fault.to_string())),
        }
    }
}

type Row = Vec<Option<String>>;

/// What was seen of a claim on the arm of `context`.
fn seen(context: &CheckContext<'_>, met: bool, told: String) -> Observation {
    match (met, context.protected) {
        (true, true) => Observation::Protected(told),
        (true, false) => Observation::Protected(format!("{told}: the claim holds on the plain arm, too")),
        (false, _) => Observation::Exposed(told),
    }
}

/// As claims have it: `, ` between the values of a row, `; ` between rows.
fn words_of(rows: &[Row]) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_owned());
    let row = |row: &Row| row.iter().map(value).collect::<Vec<_>>().join(", ");
    rows.iter().map(row).collect::<Vec<_>>().join("; ")
}

/// How the server of `context` is asked.
fn asked(context: &CheckContext<'_>) -> Result<AskedOfCustom, Fault> {
    let entry = context.database.entry();
    let refused = || Fault::Refused(format!("Tithe puts no question of yours to {}", entry.title));
    entry.custom.ok_or_else(refused)
}
