//! Loaded data sets, kept so that the next server which stores the same in the same way starts on a copy of them.
//!
//! As soon as one data set of an epoch will be needed twice, by another arm, epoch or cell, every arm of it starts on a
//! copy of a kept one, also the arm that has just loaded it: no arm has another history on the disk than the others.
//!
//! A kept set is complete or not there: it is gathered under another name, and gets its own when all of it is on the
//! disk. It lies in a sandbox, which vanishes with Tithe, however that ends. It is not used by a run that is taken up
//! again: the keys and passwords that go with it were in memory alone.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tithe_machine::{
    credentials::Credentials,
    fault::Fault,
    sandbox::{
        Sandbox,
        copy::{self, How},
    },
    secret::Secret,
};
use tithe_plugin::setup::{AtRest, Columns, Setup};

use super::{EpochPlan, Run};

/// File of a kept set that says what it holds.
const MARKER: &str = "holds";

/// The data sets that are kept.
pub(super) struct DataSets {
    /// Where the sandbox is made.
    folder: PathBuf,
    sandbox: Option<Sandbox>,
    sets: Vec<Set>,
    made: u32,
    /// Password and data key of all epochs, once there are any.
    secrets: Option<(Secret, Secret)>,
}

struct Set {
    fingerprint: Fingerprint,
    /// The arm that loaded it.
    by: String,
    folder: PathBuf,
}

/// What the files of an arm hold, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint {
    workload: usize,
    paths: Vec<String>,
    /// For the marker: everything but the keys.
    words: String,
    keys: Vec<Secret>,
}

impl Fingerprint {
    /// What the files of an arm with `setup` hold when workload `workload` has been loaded; `None` where no copy of
    /// them is to be started on.
    fn of(run: &Run<'_>, workload: usize, setup: &Setup) -> Option<Self> {
        // All of a set-up is named, here and below: what is forgotten would be shared silently. Whoever adds something
        // says what of it is in the files.
        let Setup {
            create_arguments,
            session_statements,
            at_rest,
            columns,
            volume,
            key_server,
            // Of these the product says what is in its files: `stored`.
            settings: _,
            transport: _,
            authentication: _,
            // Run when the data have been kept, and on every server that is started on a copy.
            statements: _,
            // What happens while measuring, and is kept by nobody.
            rotates: _,
            compute: _,
            clients: _,
            // Certificates are in no data, passwords are those of all epochs, and keys are compared where they are
            // used.
            credentials: _,
        } = setup;
        // On an encrypted volume a copy would leave its protection.
        if volume.is_some() || key_server.is_some() {
            return None;
        }
        let stored = run.product.stored(setup)?;
        let mut lines = vec![format!("workload {workload}"), run.install.version.clone()];
        lines.extend(stored.storage_settings);
        lines.extend(create_arguments.iter().map(|argument| format!("made with {argument}")));
        lines.extend(session_statements.iter().map(|statement| format!("loaded after {statement}")));
        let mut keys = Vec::new();
        if let Some(AtRest { cipher, key }) = at_rest {
            lines.push(format!("encrypted with {cipher}"));
            keys.push(key.clone());
        }
        if let Some(columns) = columns.as_ref().filter(|columns| !columns.selection().is_none()) {
            // The key counts, and not where it comes from.
            let Columns { share, names, deterministic, cipher, key, key_place: _ } = columns;
            let mode = if *deterministic { "deterministically " } else { "" };
            lines.push(format!("columns {share} {} encrypted {mode}with {}", names.join(","), cipher.name()));
            keys.push(key.clone());
        }
        Some(Self { workload, paths: stored.paths, words: lines.join("\n") + "\n", keys })
    }
}

impl DataSets {
    /// Nothing yet; what comes is kept beside the servers' own sandboxes, below `folder` where their account can reach
    /// it.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), sandbox: None, sets: Vec::new(), made: 0, secrets: None }
    }

    /// Puts the password and the data key of the first epoch into `credentials`: data that were encrypted with a key
    /// are worth nothing without it.
    pub(super) fn share_secrets(&mut self, credentials: &mut Credentials) {
        let own = || (credentials.password.clone(), credentials.key.clone());
        (credentials.password, credentials.key) = self.secrets.get_or_insert_with(own).clone();
    }

    /// What each arm of an epoch holds; nothing where no data set will be needed twice.
    pub(super) fn plan(&self, run: &Run<'_>, part: &EpochPlan<'_>, setups: &[Setup]) -> Vec<Option<Fingerprint>> {
        let workload = part.cell.workload;
        let arms = setups.iter().zip(&run.plan.experiment.arms);
        let all: Vec<_> = arms
            .map(|(setup, arm)| arm.url.is_none().then(|| Fingerprint::of(run, workload, setup)).flatten())
            .collect();
        let later = part.epoch + 1 < part.cell.epochs
            || run.plan.cells[part.number + 1..].iter().any(|cell| cell.workload == workload);
        let twice = |fingerprint: &Fingerprint| all.iter().flatten().filter(|other| *other == fingerprint).count() > 1;
        if all.iter().flatten().any(|fingerprint| later || self.find(fingerprint).is_some() || twice(fingerprint)) {
            all
        } else {
            vec![None; setups.len()]
        }
    }

    fn find(&self, fingerprint: &Fingerprint) -> Option<&Set> {
        self.sets.iter().find(|set| set.fingerprint == *fingerprint)
    }

    /// Keeps what a stopped server in the folder `from` has left, by moving it: the server goes on with a copy.
    ///
    /// # Errors
    /// When the disk refuses. Nothing is kept then.
    pub(super) fn keep(&mut self, fingerprint: &Fingerprint, by: &str, from: &Path) -> Result<(), Fault> {
        let sandbox = match &mut self.sandbox {
            Some(sandbox) => sandbox,
            none => none.insert(Sandbox::new(&self.folder)?),
        };
        self.made += 1;
        let folder = sandbox.folder().join(format!("set-{}", self.made));
        let gathering = folder.with_extension("part");
        gather(fingerprint, from, &gathering)
            .and_then(|()| fs::rename(&gathering, &folder))
            .map_err(|error| Fault::machine(format!("cannot keep the data set of arm {by}"), error))?;
        self.sets.push(Set { fingerprint: fingerprint.clone(), by: by.to_owned(), folder });
        Ok(())
    }

    /// Copies the kept set that is what `fingerprint` says into the folder `to` of a server; returns where it came from
    /// in words, `None` where no such set is kept.
    ///
    /// # Errors
    /// When the disk refuses, or what is kept is not what it was.
    pub(super) fn restore(&self, fingerprint: &Fingerprint, to: &Path) -> Result<Option<String>, Fault> {
        let Some(set) = self.find(fingerprint) else { return Ok(None) };
        let failed = |error| Fault::machine(format!("cannot copy the data set of arm {}", set.by), error);
        if fs::read_to_string(set.folder.join(MARKER)).map_err(failed)? != fingerprint.words {
            return Err(Fault::Machine(format!("{} does not hold what it should", set.folder.display())));
        }
        let mut how = How::Reflink;
        for path in &fingerprint.paths {
            let from = set.folder.join(path);
            if from.exists() {
                how = how.max(copy::tree(&from, &to.join(path)).map_err(failed)?);
            }
        }
        copy::sync(to).map_err(failed)?;
        Ok(Some(format!("loaded by {}, copied ({})", set.by, how.name())))
    }

    /// Lets go of the sets that are not of a workload for which `needed` holds.
    pub(super) fn let_go(&mut self, needed: impl Fn(usize) -> bool) {
        for set in self.sets.extract_if(.., |set| !needed(set.fingerprint.workload)) {
            // What cannot be removed goes with the sandbox.
            let _ = fs::remove_dir_all(&set.folder);
        }
    }
}

/// Moves the files of `fingerprint` from the folder `from` into the new folder `to`, and says there what they are.
fn gather(fingerprint: &Fingerprint, from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, Permissions::from_mode(0o700))?;
    for path in &fingerprint.paths {
        if from.join(path).exists() {
            fs::rename(from.join(path), to.join(path))?;
        }
    }
    fs::write(to.join(MARKER), &fingerprint.words)?;
    copy::sync(to)
}

#[cfg(test)]
mod tests;
