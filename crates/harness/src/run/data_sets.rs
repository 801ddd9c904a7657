//! Loaded data sets, kept so that the next server which stores the same in the same way starts on a copy of them.
//!
//! As soon as one data set of an epoch will be needed twice, by another arm, epoch or cell, or by a further start of
//! the same servers, every arm of it starts on a copy of a kept one, also the arm that has just loaded it: no arm has
//! another history on the disk than the others.
//!
//! A kept set is complete or not there: it is gathered under another name, and gets its own when all of it is on the
//! disk. It lies in a sandbox, which vanishes with Tithe, however that ends. It is not used by a run that is taken up
//! again: the keys and passwords that go with it were in memory alone.
//!
//! A set of an arm on a volume lies on that volume, under the same protection, and goes with it: it is kept for further
//! starts of this arm within its epoch, and for nobody else.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use tithe_machine::{
    credentials::Credentials,
    fault::Fault,
    launch::{Install, Server},
    paths::Paths,
    sandbox::{
        Sandbox,
        copy::{self, CopyMethod},
    },
    secret::Secret,
    watch::host,
};
use tithe_model::experiment::Arm;
use tithe_plugin::setup::{AtRest, Columns, Setup};

use self::{
    exchange::{DataFolder, exchange},
    renew::{remove, renew},
};
use super::{EpochPlan, Run};
use crate::load::reading::sizes;

mod exchange;
mod renew;

/// File of a kept set that says what it holds.
const MARKER: &str = "holds";

/// Folder of a set that is kept on the volume of its arm, below the server's.
const ON_VOLUME: &str = "kept-set";

/// Room that a volume must have for each byte of a set that is to be kept on it: its copy, and what that grows by.
const ROOM: u64 = 2;

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
    /// The arm whose volume it lies on, and the epoch; `None` where it lies on none.
    on_volume: Option<(usize, u32)>,
}

impl Fingerprint {
    /// What the files of arm `arm` with `setup` hold in epoch and cell of `part` when the workload has been loaded;
    /// `None` where no copy of them is to be started on.
    fn of(run: &Run<'_>, part: &EpochPlan<'_>, arm: usize, setup: &Setup) -> Option<Self> {
        let workload = part.cell.workload;
        // All of a set-up is named, here and below: what is forgotten would be shared silently. If you add something
        // says what of it is in the files.
        let Setup {
            create_arguments,
            table_statements,
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
            // Said when the data have been kept, and on every server that is started on a copy.
            after_loading: _,
            // Beside the data, for the arm's server alone.
            files: _,
            // Of evidence.
            account: _,
            // What happens while measuring, and is kept by nobody.
            rotates: _,
            compute: _,
            clients: _,
            // The workload and its records are named apart.
            data_bytes: _,
            // Those of attached servers, of which nothing is kept.
            space: _,
            tables: _,
            // Certificates are in no data, passwords are those of all epochs, and keys are compared where they are
            // used.
            credentials: _,
        } = setup;
        if key_server.is_some() {
            return None;
        }
        // A copy elsewhere would leave the protection of the volume.
        let on_volume = volume.as_ref().map(|_| (arm, part.epoch));
        let stored = run.product.stored(setup)?;
        let Install { programs, version, .. } = run.install(part.cell, arm);
        let mut lines = vec![format!("workload {workload}"), format!("{version} in {}", programs.display())];
        lines.extend(stored.storage_settings);
        lines.extend(create_arguments.iter().map(|argument| format!("made with {argument}")));
        lines.extend(table_statements.iter().map(|statement| format!("each table made with {statement}")));
        lines.extend(session_statements.iter().map(|statement| format!("loaded after {statement}")));
        let mut keys = Vec::new();
        if let Some(AtRest { cipher, key }) = at_rest {
            lines.push(format!("encrypted with {cipher}"));
            keys.push(key.clone());
        }
        if let Some(columns) = columns.as_ref().filter(|columns| columns.encrypts()) {
            // The key counts, and not where it comes from.
            let Columns { share, names, own, deterministic, cipher, key, key_place: _ } = columns;
            let mode = if *deterministic { "deterministically " } else { "" };
            lines.push(format!("columns {share} {} encrypted {mode}with {}", names.join(","), cipher.name()));
            lines.extend(
                own.iter().map(|column| format!("column {} encrypted, compared: {}", column.whole, column.is_compared)),
            );
            keys.push(key.clone());
        }
        Some(Self { workload, paths: stored.paths, words: lines.join("\n") + "\n", keys, on_volume })
    }

    /// The folder of `server`, which stores what this is, with the names of the entries that hold data.
    fn data_folder<'s>(&self, server: &'s Server) -> DataFolder<'s> {
        let Server { folder, paths, .. } = server;
        let below = paths.data.iter().chain(&paths.journal).filter_map(|path| path.strip_prefix(folder).ok());
        let data = self.paths.iter().map(Path::new).chain(below);
        let names = data.filter_map(|path| Some(path.components().next()?.as_os_str().to_owned()));
        DataFolder { folder, data: names.collect() }
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

    /// What each arm of an epoch holds; nothing where no data set will be needed twice. `again`: further starts of the
    /// epoch's servers will need them.
    pub(super) fn plan(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        setups: &[Setup],
        again: bool,
    ) -> Vec<Option<Fingerprint>> {
        // What lay on the volumes of an earlier epoch has gone with them.
        self.sets.retain(|set| set.fingerprint.on_volume.is_none());
        let arms = setups.iter().zip(&run.plan.experiment.arms).enumerate();
        let of = |(number, (setup, arm)): (usize, (&Setup, &Arm))| {
            let launched = arm.url.is_none();
            launched.then(|| Fingerprint::of(run, part, number, setup)).flatten()
        };
        let all: Vec<_> = arms.map(of).collect();
        let later = part.epoch + 1 < part.cell.epochs
            || run.plan.cells[part.number + 1..].iter().any(|cell| cell.workload == part.cell.workload);
        let twice = |fingerprint: &Fingerprint| all.iter().flatten().filter(|other| *other == fingerprint).count() > 1;
        let shared = |fingerprint: &Fingerprint| {
            fingerprint.on_volume.is_none() && (later || self.has(fingerprint) || twice(fingerprint))
        };
        if again || all.iter().flatten().any(shared) { all } else { vec![None; setups.len()] }
    }

    /// True when a set is kept that is what `fingerprint` says.
    pub(super) fn has(&self, fingerprint: &Fingerprint) -> bool {
        self.find(fingerprint).is_some()
    }

    fn find(&self, fingerprint: &Fingerprint) -> Option<&Set> {
        self.sets.iter().find(|set| set.fingerprint == *fingerprint)
    }

    /// Keeps what a stopped server in the folder `from` has left, by moving it: the server goes on with a copy. Keeps
    /// nothing, and moves nothing, where a volume has no room for that copy.
    ///
    /// # Errors
    /// When the disk refuses. Nothing is kept then.
    pub(super) fn keep(&mut self, fingerprint: &Fingerprint, by: &str, from: &Path) -> Result<(), Fault> {
        let failed = |error| Fault::machine(format!("cannot keep the data set of arm {by}"), error);
        let folder = if fingerprint.on_volume.is_some() {
            if !has_room(fingerprint, from) {
                return Ok(());
            }
            from.join(ON_VOLUME)
        } else {
            self.made += 1;
            let name = format!("set-{}", self.made);
            self.sandbox()?.folder().join(name)
        };
        let gathering = folder.with_extension("part");
        gather(fingerprint, from, &gathering).and_then(|()| fs::rename(&gathering, &folder)).map_err(failed)?;
        self.sets.push(Set { fingerprint: fingerprint.clone(), by: by.to_owned(), folder });
        Ok(())
    }

    /// Where sets are kept that lie on no volume.
    fn sandbox(&mut self) -> Result<&Sandbox, Fault> {
        Ok(match &mut self.sandbox {
            Some(sandbox) => sandbox,
            none => none.insert(Sandbox::new(&self.folder)?),
        })
    }

    /// Copies the kept set that is what `fingerprint` says into the folder `to` of a stopped server, in place of all
    /// data that it has at `paths`; returns where it came from in words, `None` where no such set is kept. Several may
    /// be copied at the same time, and are to be brought to the disk afterwards: [`sync`].
    ///
    /// # Errors
    /// When the disk refuses, or what is kept is not what it was.
    pub(super) fn restore(&self, fingerprint: &Fingerprint, to: &Path, paths: &Paths) -> Result<Option<String>, Fault> {
        let Some(set) = self.find(fingerprint) else { return Ok(None) };
        let failed = |error| Fault::machine(format!("cannot copy the data set of arm {}", set.by), error);
        if fs::read_to_string(set.folder.join(MARKER)).map_err(failed)? != fingerprint.words {
            return Err(Fault::Machine(format!("{} does not hold what it should", set.folder.display())));
        }
        let mut how = CopyMethod::Reflink;
        for path in &fingerprint.paths {
            let (kept, there) = (set.folder.join(path), to.join(path));
            if kept.exists() {
                make_parents(to, path).map_err(failed)?;
                how = how.max(renew(&kept, &there).map_err(failed)?);
            } else {
                remove(&there).map_err(failed)?;
            }
        }
        clear(fingerprint, to, paths).map_err(failed)?;
        Ok(Some(format!("loaded by {}, copied ({})", set.by, how.name())))
    }

    /// Gives the data of each of the stopped servers of `arms` the place on the disk that those of another arm had: of
    /// the one that `places` names. What lies on a volume stays there. The data are to be [restored](Self::restore)
    /// afterwards.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn exchange(arms: &[(&Fingerprint, &Server)], places: &[usize]) -> Result<(), Fault> {
        if arms.len() != places.len() || arms.iter().any(|(fingerprint, _)| fingerprint.on_volume.is_some()) {
            return Ok(());
        }
        let folders: Vec<DataFolder<'_>> = arms.iter().map(|(of, server)| of.data_folder(server)).collect();
        let failed = |error| Fault::machine("cannot exchange the places of data on the disk", error);
        exchange(&folders, places).map_err(failed)
    }

    /// Lets go of the sets that are not of a workload for which `needed` holds.
    pub(super) fn discard(&mut self, needed: impl Fn(usize) -> bool) {
        for set in self.sets.extract_if(.., |set| !needed(set.fingerprint.workload)) {
            // What cannot be removed goes with the sandbox.
            let _ = fs::remove_dir_all(&set.folder);
        }
    }
}

/// Brings what was copied into the folders `to` to the disk, each file system once.
///
/// # Errors
/// When the disk refuses.
pub(super) fn sync<'p>(to: impl Iterator<Item = &'p Path>) -> Result<(), Fault> {
    let failed = |error| Fault::machine("cannot bring copied data sets to the disk", error);
    let mut synced = BTreeSet::new();
    for folder in to {
        if synced.insert(fs::metadata(folder).map_err(failed)?.dev()) {
            copy::sync(folder).map_err(failed)?;
        }
    }
    Ok(())
}

/// Removes what the stopped server in `folder` has written at `paths` beside its logs and what is kept of such a
/// server.
fn clear(fingerprint: &Fingerprint, folder: &Path, paths: &Paths) -> io::Result<()> {
    let is_kept = |path: &Path| fingerprint.paths.iter().any(|kept| path.starts_with(folder.join(kept)));
    let written = paths.data.iter().chain(&paths.journal);
    written.filter(|path| path.starts_with(folder) && !is_kept(path)).try_for_each(|path| remove(path))
}

/// Makes the folders of `path` above its last part in `folder`, where they are missing, owned by the owner of
/// `folder`.
fn make_parents(folder: &Path, path: &str) -> io::Result<()> {
    let owner = fs::metadata(folder)?;
    let mut parents: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
    // The last one is empty: the folder itself.
    parents.pop();
    for parent in parents.into_iter().rev().map(|parent| folder.join(parent)).filter(|parent| !parent.exists()) {
        fs::create_dir(&parent)?;
        fs::set_permissions(&parent, Permissions::from_mode(0o700))?;
        chown(&parent, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}

/// True when the file system of `from` has room for another copy of what is kept of the server there.
fn has_room(fingerprint: &Fingerprint, from: &Path) -> bool {
    let paths: Vec<PathBuf> = fingerprint.paths.iter().map(|path| from.join(path)).collect();
    let (_, bytes) = sizes(&paths);
    host::free_bytes(from).is_some_and(|free| free >= ROOM.saturating_mul(bytes))
}

/// Moves the files of `fingerprint` from the folder `from` into the new folder `to`, and says there what they are.
fn gather(fingerprint: &Fingerprint, from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, Permissions::from_mode(0o700))?;
    for path in &fingerprint.paths {
        if from.join(path).exists() {
            to.join(path).parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::rename(from.join(path), to.join(path))?;
        }
    }
    fs::write(to.join(MARKER), &fingerprint.words)?;
    copy::sync(to)
}

#[cfg(test)]
mod tests;
