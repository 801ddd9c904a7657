//! Loaded data sets, kept so that the next server which stores the same in the same way starts on a copy of them.
//!
//! If one data set of an epoch will be needed twice, by another arm, epoch or cell, or by a further start of the same
//! servers, every arm of the epoch starts on a copy. That includes the arm that has just loaded the set, so that all
//! arms have the same history on the disk.
//!
//! A kept set is complete or does not exist: it is collected under another name, and renamed when all of it is on the
//! disk. It lies in a sandbox, which vanishes with Tithe, however that ends. A run that continues an earlier one does
//! not use it: its keys and passwords were in memory alone.
//!
//! A set of an arm on a volume lies on that volume, under the same protection, and vanishes with it. It is kept only
//! for further starts of this arm within its epoch.

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

/// File of a kept set that describes its content.
const MARKER: &str = "holds";

/// Folder of a set that is kept on the volume of its arm, below the server's folder.
const ON_VOLUME: &str = "kept-set";

/// Space that a volume must have for each byte of a set that is to be kept on it: for the copy and its growth.
const ROOM: u64 = 2;

/// The data sets that are kept.
pub(super) struct DataSets {
    /// The folder in which the sandbox is made.
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

/// The content and the format of an arm's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint {
    workload: usize,
    paths: Vec<String>,
    /// For the marker: everything but the keys.
    words: String,
    keys: Vec<Secret>,
    /// The arm whose volume it lies on, and the epoch; `None` if it lies on none.
    on_volume: Option<(usize, u32)>,
}

impl Fingerprint {
    /// The content of the files of arm `arm` with `setup`, in epoch and cell of `part`, when the workload has been
    /// loaded; `None` if no server may start on a copy of them.
    fn of(run: &Run<'_>, part: &EpochPlan<'_>, arm: usize, setup: &Setup) -> Option<Self> {
        let workload = part.cell.workload;
        // Every field of a set-up is named, here and below: a forgotten field would be shared silently. If you add a
        // field, decide which part of it affects the files.
        let Setup {
            create_arguments,
            table_statements,
            session_statements,
            at_rest,
            columns,
            volume,
            key_server,
            // The product decides which of these affect its files: `stored`.
            settings: _,
            transport: _,
            authentication: _,
            // Run after the data were kept, and on every server that is started on a copy.
            statements: _,
            // Run after the data were kept, and on every server that is started on a copy.
            after_loading: _,
            // Stored next to the data, for the arm's server alone.
            files: _,
            // Used by evidence checks only.
            account: _,
            // It happens during the measurement, and is not kept.
            rotates: _,
            compute: _,
            clients: _,
            // The workload and its number of records are compared separately.
            data_bytes: _,
            // Used by attached servers only, of which nothing is kept.
            space: _,
            tables: _,
            // Certificates are in no data, all epochs share the passwords, and keys are compared where they are used.
            credentials: _,
        } = setup;
        if key_server.is_some() {
            return None;
        }
        // A copy elsewhere would not be protected by the volume.
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
            // The key counts, not its place.
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

    /// The folder of `server`, whose files have this content, with the names of the entries that hold data.
    fn data_folder<'s>(&self, server: &'s Server) -> DataFolder<'s> {
        let Server { folder, paths, .. } = server;
        let below = paths.data.iter().chain(&paths.journal).filter_map(|path| path.strip_prefix(folder).ok());
        let data = self.paths.iter().map(Path::new).chain(below);
        let names = data.filter_map(|path| Some(path.components().next()?.as_os_str().to_owned()));
        DataFolder { folder, data: names.collect() }
    }
}

impl DataSets {
    /// An empty collection. Sets are kept next to the servers' own sandboxes, below `folder` if their account can reach
    /// it.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), sandbox: None, sets: Vec::new(), made: 0, secrets: None }
    }

    /// Puts the password and the data key of the first epoch into `credentials`: encrypted data are useless without
    /// their key.
    pub(super) fn share_secrets(&mut self, credentials: &mut Credentials) {
        let own = || (credentials.password.clone(), credentials.key.clone());
        (credentials.password, credentials.key) = self.secrets.get_or_insert_with(own).clone();
    }

    /// The content of each arm of an epoch; nothing if no data set will be needed twice. `again`: further starts of the
    /// epoch's servers will need them.
    pub(super) fn plan(
        &mut self,
        run: &Run<'_>,
        part: &EpochPlan<'_>,
        setups: &[Setup],
        again: bool,
    ) -> Vec<Option<Fingerprint>> {
        // Sets on the volumes of an earlier epoch have vanished with them.
        self.sets.retain(|set| set.fingerprint.on_volume.is_none());
        let arms = setups.iter().zip(&run.plan.experiment.arms).enumerate();
        let of = |(number, (setup, arm)): (usize, (&Setup, &Arm))| {
            let launched = arm.url.is_none();
            launched.then(|| Fingerprint::of(run, part, number, setup)).flatten()
        };
        let all: Vec<_> = arms.map(of).collect();
        let later = part.epoch + 1 < part.cell.epochs
            || run.plan.cells[part.number + 1..].iter().any(|cell| cell.workload == part.cell.workload);
        let shared = is_shared(&all, later, |fingerprint| self.has(fingerprint));
        if again || shared { all } else { vec![None; setups.len()] }
    }

    /// True when a set with this `fingerprint` is kept.
    pub(super) fn has(&self, fingerprint: &Fingerprint) -> bool {
        self.find(fingerprint).is_some()
    }

    fn find(&self, fingerprint: &Fingerprint) -> Option<&Set> {
        self.sets.iter().find(|set| set.fingerprint == *fingerprint)
    }

    /// Keeps the data that a stopped server in the folder `from` has left, by moving them: the server continues with a
    /// copy. If a volume has no space for that copy, nothing is moved or kept.
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

    /// The sandbox of sets that lie on no volume.
    fn sandbox(&mut self) -> Result<&Sandbox, Fault> {
        Ok(match &mut self.sandbox {
            Some(sandbox) => sandbox,
            none => none.insert(Sandbox::new(&self.folder)?),
        })
    }

    /// Copies the kept set with this `fingerprint` into the folder `to` of a stopped server, in place of all data that
    /// it has at `paths`. Returns as text where it came from, `None` if no such set is kept. Several sets may be copied
    /// at the same time; write them to the disk afterwards with [`sync`].
    ///
    /// # Errors
    /// When the disk refuses, or the kept set has changed.
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

    /// Gives the data of each of the stopped servers of `arms` the place on the disk that the data of another arm had:
    /// the arm that `places` names. Data on a volume stay there. [Restore](Self::restore) the data afterwards.
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

    /// Removes the sets of workloads for which `needed` is false.
    pub(super) fn discard(&mut self, needed: impl Fn(usize) -> bool) {
        for set in self.sets.extract_if(.., |set| !needed(set.fingerprint.workload)) {
            // A set that cannot be removed vanishes with the sandbox.
            let _ = fs::remove_dir_all(&set.folder);
        }
    }
}

/// True if a data set of an epoch whose arms store `all` is that of another arm, epoch or cell. `later`: an epoch or
/// cell with the same workload follows; `is_kept`: an earlier one had it.
fn is_shared(all: &[Option<Fingerprint>], later: bool, is_kept: impl Fn(&Fingerprint) -> bool) -> bool {
    let all = || all.iter().flatten();
    let is_twice = |fingerprint: &Fingerprint| all().filter(|other| *other == fingerprint).count() > 1;
    let is_anywhere = |fingerprint: &Fingerprint| later || is_kept(fingerprint) || is_twice(fingerprint);
    all().any(|fingerprint| fingerprint.on_volume.is_none() && is_anywhere(fingerprint))
}

/// Writes the copies in the folders `to` to the disk, each file system once.
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

/// Removes the files that the stopped server in `folder` has written at `paths`, except its logs and the kept set.
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

/// True when the file system of `from` has space for another copy of the server's kept data.
fn has_room(fingerprint: &Fingerprint, from: &Path) -> bool {
    let paths: Vec<PathBuf> = fingerprint.paths.iter().map(|path| from.join(path)).collect();
    let (_, bytes) = sizes(&paths);
    host::free_bytes(from).is_some_and(|free| free >= ROOM.saturating_mul(bytes))
}

/// Moves the files of `fingerprint` from the folder `from` into the new folder `to`, and writes a description of them
/// there.
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
