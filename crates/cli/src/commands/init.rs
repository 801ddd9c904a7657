//! `tithe init`: writes an experiment file of everything that is available here, or on a running server.
//!
//! Each protection is planned together with those before it, as `tithe plan` would do. A refused one is in the file as
//! a comment with the reason. To a running server it connects as each arm would, and tries the statements that switch
//! the arm; nothing is written.

use std::{fs, io::Write as _, path::Path};

use tithe_harness::arms;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
};
use tithe_model::{
    catalogue::{Catalogue, OfferedDatabase, ProtectionEntry},
    compose::{self, Words},
    experiment::{Protection, Url},
};
use tithe_plugin::{
    database::{Connect, Lack, Without, sql_of},
    product::Product,
    session::Table,
    setup::Setup,
};

use crate::{
    InitArgs, MachineArgs, asked, complain,
    exit::{self, Stop},
    lacking, offer, prepare,
};

/// Runs the command; returns the exit status.
pub fn init(arguments: &InitArgs) -> Result<i32, Stop> {
    let catalogue = offer::catalogue();
    let (target, found) = match &arguments.target {
        Some(target) => (target.clone(), String::new()),
        None => of_this_machine(&catalogue, &arguments.machine),
    };
    let database = asked::database(&target, &catalogue)?.ok_or_else(|| asked::neither(&target, &catalogue))?;
    asked::check_target(&target, database)?;
    let text = format!("{found}{}", text(&target, database, &catalogue, &arguments.machine)?);
    match &arguments.to {
        None => crate::shown::show!("{text}"),
        Some(path) => write(path, &text)?,
    }
    Ok(exit::OK)
}

/// The database to write about if none is named, and the others that were found, as a comment: the first installed
/// server, otherwise the built-in one.
fn of_this_machine(catalogue: &Catalogue, machine: &MachineArgs) -> (String, String) {
    let search = offer::search(machine);
    let (mut found, mut lacking) = (Vec::new(), Vec::new());
    for product in offer::databases().into_iter().filter(|product| !product.simulated()) {
        if product.find(&search).is_ok() { found.push(product.id()) } else { lacking.push(product.id()) }
    }
    let is_server = |id: &&&str| catalogue.entry(id).is_some_and(|entry| !entry.embedded);
    let chosen = found.iter().find(is_server).or(found.first()).copied().unwrap_or_default();
    let lacking = if lacking.is_empty() { String::new() } else { format!("; not found: {}", lacking.join(", ")) };
    let comment = format!(
        "# Found on this machine: {}{lacking}.\n# `tithe init NAME` writes about another.\n#\n",
        found.join(", ")
    );
    (chosen.to_owned(), comment)
}

/// The experiment of everything that is available, with comments.
fn text(
    target: &str,
    database: &OfferedDatabase,
    catalogue: &Catalogue,
    machine: &MachineArgs,
) -> Result<String, Stop> {
    let product = offer::database(database.entry.id)?;
    let running = match Url::is_url(target) {
        true => Some(Running::at(target, product)?),
        false => {
            product.find(&offer::search(machine)).map_err(|missing| complain::missing(&[missing]))?;
            None
        }
    };
    let mut entries = database.protections.clone();
    // If one server cannot have all arms at the same time, it can have most of them.
    entries.sort_by_key(|entry| running.is_some() && entry.by_url);
    let (mut had, mut left_out) = (Vec::new(), String::new());
    for entry in entries {
        had.push(entry.id.to_owned());
        let planned = experiment(target, &had, database, catalogue, machine);
        let setup = setup(product, entry)?;
        let reason = match (planned, &running) {
            (Err(stop), _) => Some(reason(&stop)),
            (Ok(_), _) if setup.compute.is_some() => {
                Some("it is about workloads with statements of their own".to_owned())
            }
            (Ok(_), Some(running)) => running.refuses(entry, &setup).map(|fault| fault.to_string()),
            (Ok(_), None) => None,
        };
        if let Some(reason) = reason {
            had.pop();
            left_out.push_str(&compose::left_out(entry, &reason));
        }
    }
    if had.is_empty() {
        return Err(Stop::new(
            exit::MISSING,
            format!("no protection of {} is available:\n{left_out}", database.entry.id),
        ));
    }
    let whole = experiment(target, &had, database, catalogue, machine)?;
    let body = whole.split_once('\n').map_or("", |(_, body)| body);
    Ok(format!("# tithe init {target}\n{body}{left_out}"))
}

/// The text of the experiment about `protections`, which can be planned here.
fn experiment(
    target: &str,
    protections: &[String],
    database: &OfferedDatabase,
    catalogue: &Catalogue,
    machine: &MachineArgs,
) -> Result<String, Stop> {
    let words = Words { protections, explained: true, ..Words::new("init", target) };
    let source = asked::of_words(&words, database, catalogue)?;
    let experiment = prepare::read(&source, catalogue)?;
    prepare::checked(&source, experiment, catalogue, machine)?;
    Ok(source.text)
}

/// The set-up that `entry` makes of an empty one, with the defaults of its options.
fn setup(product: &dyn Product, entry: &ProtectionEntry) -> Result<Setup, Stop> {
    let defaults = entry.options.iter();
    let options = defaults.filter_map(|option| Some((option.name.to_owned(), option.default?.value()))).collect();
    let mut setup = Setup::bare();
    arms::named(product, entry.id)?.apply(&Protection::listed(entry.id, options), &mut setup);
    Ok(setup)
}

/// The reason of `stop`, in one sentence.
fn reason(stop: &Stop) -> String {
    let message = anstream::adapter::strip_str(&stop.message).to_string();
    let first = message.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").or(first.strip_prefix("tithe: ")).unwrap_or(first);
    let first = first.strip_suffix("; nothing was started").unwrap_or(first);
    let advice = message.split_once(complain::REMEDY).and_then(|(_, rest)| rest.trim_start().lines().next());
    advice.map_or(first.to_owned(), |advice| format!("{first}; {}", advice.trim()))
}

/// A running server.
struct Running {
    product: &'static dyn Product,
    server: Server,
    lacks: Vec<Lack>,
}

impl Running {
    /// The server at `url`, which answers and can be measured.
    fn at(url: &str, product: &'static dyn Product) -> Result<Self, Stop> {
        let server = Server::at(Address::Attached(Url::new(url)));
        let setup = Setup::bare();
        let failed = |fault| Stop::new(exit::FAILED, fault);
        let lacks = product.lacks(&server, &setup).map_err(failed)?;
        if lacks.iter().any(|lack| lack.without == Without::Measurement) {
            let name = Url::new(url).redacted();
            let lacking = lacking::text(&name, product, &lacks, &[]);
            let message = format!("tithe: nothing can be measured there, and nothing was written\n{lacking}");
            return Err(Stop { message, status: exit::FAILED });
        }
        product.facts(&server, &setup).map_err(failed)?;
        Ok(Self { product, server, lacks })
    }

    /// Why this account cannot connect like an arm with `entry`, or switch it in its sessions, with everything else
    /// that the arm lacks.
    fn refuses(&self, entry: &ProtectionEntry, setup: &Setup) -> Option<Fault> {
        if let Err(fault) = self.product.facts(&self.server, setup) {
            return Some(fault);
        }
        let switch = entry.switch?;
        let table = Table { name: String::new(), fields: 0, field_prefix: String::new() };
        let how = Connect::blocking(table);
        let connect = || sql_of(self.product)?.connect(&self.server, &Setup::bare(), &how);
        let switched = connect().and_then(|mut session| {
            let statements =
                compose::statements(switch.on, entry).into_iter().chain(compose::statements(switch.off, entry));
            statements.into_iter().try_for_each(|statement| session.run_statement(&statement))
        });
        let fault = switched.err()?;
        let lacks = self.lacks.iter().filter(|lack| lack.without.concerns(&[entry.id]));
        let all: Vec<String> = lacks.map(Lack::to_string).collect();
        Some(if all.is_empty() { fault } else { Fault::Refused(all.join("; besides, ")) })
    }
}

/// Writes a file that does not exist yet.
fn write(path: &Path, text: &str) -> Result<(), Stop> {
    let file = fs::OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Stop::new(exit::MACHINE, format!("cannot write {}: {error}", path.display())))?;
    crate::shown::telln!("tithe: {} is written; `tithe plan {0}` shows what it does", path.display());
    Ok(())
}
