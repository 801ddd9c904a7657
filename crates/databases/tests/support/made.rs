//! Data folders as a product's own command creates them, created once for all servers of this program that would get
//! the same one; each server starts on its own copy.
//!
//! Only data without secrets is shared: no key, no password. Data that must be unique to a server is removed from the
//! copy, and created again by the server at its start.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tithe_machine::{
    launch::{Install, Launch, Place, Step},
    sandbox::{Sandbox as Folder, copy},
};
use tithe_plugin::{
    product::Product,
    setup::{Authentication, Setup},
};

use super::at_end::{self, locked};

/// The folder with all data below [`Place::folder`], for every product that creates one by a command.
const DATA: &str = "data";

/// Where MySQL keeps its keys, below the same folder.
const KEYS: &str = "keyring";

/// Where MySQL keeps the number that identifies a server; it creates a new one if there is none.
const NUMBER: &str = "auto.cnf";

/// What is known of one kind of data folder.
#[derive(Default)]
enum Made {
    /// Nothing: the first server creates it.
    #[default]
    NotYet,
    /// Holds a fresh one.
    Here(PathBuf),
    /// Each server has to create its own: it holds keys.
    Alone,
}

type Kinds = BTreeMap<String, Arc<Mutex<Made>>>;

static KINDS: Mutex<Kinds> = Mutex::new(BTreeMap::new());

/// Holds the fresh data folders, and vanishes with the program.
static FOLDER: Mutex<Option<Folder>> = Mutex::new(None);

/// Everything that decides the content of a fresh data folder; `None` if it holds a secret.
pub fn kind(database: &dyn Product, install: &Install, setup: &Setup) -> Option<String> {
    // For PostgreSQL the account and its password are in a fresh folder; the others create theirs at each start.
    let password = database.id() == "postgres" && setup.authentication != Authentication::None;
    if password || setup.at_rest.is_some() || setup.key_server.is_some() {
        return None;
    }
    let stored = database.stored(setup)?;
    let mut lines = vec![database.id().to_owned(), install.programs.display().to_string()];
    lines.extend(stored.storage_settings);
    lines.extend(setup.create_arguments.iter().cloned());
    Some(lines.join("\n"))
}

/// Runs the steps before the server's start, on a copy of a fresh data folder of its `kind` if there is one.
pub fn prepare(folder: &Folder, place: &Place, launch: &Launch, kind: Option<String>) {
    let carry_out = |steps: Vec<Step>| {
        folder.prepare(&Launch { steps, ..launch.clone() }).expect("everything is prepared");
    };
    let by_command = launch.steps.iter().position(|step| matches!(step, Step::MakeData(_)));
    let (Some(kind), Some(by_command)) = (kind, by_command) else { return carry_out(launch.steps.clone()) };
    let (making, afterwards) = launch.steps.split_at(by_command + 1);
    let made = locked(&KINDS).entry(kind).or_default().clone();
    // Others of this kind wait here until the first one is created.
    let mut made = locked(&made);
    let data = place.folder.join(DATA);
    if let Made::Here(fresh) = &*made {
        copy::tree(fresh, &data).expect("a copy");
        let is_there = |step: &Step| match step {
            Step::Folder(path) => path.exists(),
            step => matches!(step, Step::MakeData(_)),
        };
        carry_out(making.iter().filter(|step| !is_there(step)).cloned().collect());
    } else {
        carry_out(making.to_vec());
        if matches!(*made, Made::NotYet) {
            *made = if place.folder.join(KEYS).exists() { Made::Alone } else { Made::Here(keep(&data)) };
        }
    }
    drop(made);
    carry_out(afterwards.to_vec());
}

/// Keeps a copy of the fresh folder `data`; returns its path.
fn keep(data: &Path) -> PathBuf {
    let mut folder = locked(&FOLDER);
    let folder = folder.get_or_insert_with(|| {
        at_end::call(|| drop(FOLDER.try_lock().map(|mut folder| folder.take())));
        Folder::new(&std::env::temp_dir()).expect("a sandbox")
    });
    let kept = (0..).map(|number| folder.folder().join(format!("fresh-{number}")));
    let kept = kept.into_iter().find(|path| !path.exists()).expect("a free name");
    copy::tree(data, &kept).expect("a copy");
    if kept.join(NUMBER).exists() {
        fs::remove_file(kept.join(NUMBER)).expect("removed");
    }
    kept
}
