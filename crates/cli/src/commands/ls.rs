//! `tithe ls`: lists what can be measured.
//!
//! Without a name it prints one screen: databases with the names of their protections, and workloads. With the name of
//! a database it describes the purpose of each protection; with the name of a protection as well, everything about it.

use std::{collections::BTreeSet, path::Path};

use tithe_analysis::report::words::paragraph;
use tithe_harness::arms;
use tithe_machine::launch::Address;
use tithe_model::{
    catalogue::{Catalogue, DefaultValue, OfferedDatabase, OptionEntry, ProtectionEntry, WorkloadEntry},
    experiment::{OptionValue, Url},
    record::Role,
};
use tithe_plugin::{evidence::Check, product::Product};

use crate::{
    LsArgs,
    asked::unknown,
    exit::{self, Stop},
    offer,
    own_files::{self, Yours},
    pages, progress,
};

/// The arm that no file has to name.
const AA_ARM: &str = "The arm \"A/A\" is the plain arm again, the negative control: its true cost is zero. It is added \
                      where it takes at most a fifth of the load of servers that tithe launches; `aa_arm` in \
                      [measure] overrides this.";

/// The note on servers that can be attached to.
const BY_PROVIDER: &str = "If only the provider of a running server can switch a protection, give its arm a \
    `switch`; without other proof it is *reported by the provider*.";

/// Where to read more.
const MORE: &str =
    "`tithe ls postgres` explains its protections, `tithe ls postgres tls` one of them, `tithe ls ycsb` a workload.";

/// Runs the command; returns the exit status.
pub fn ls(arguments: &LsArgs) -> Result<i32, Stop> {
    if let Some(folder) = &arguments.markdown {
        return write_pages(folder);
    }
    let catalogue = offer::catalogue();
    let names: Vec<&str> = arguments.names.iter().map(String::as_str).collect();
    crate::shown::show!("{}", listed(&catalogue, &names, progress::columns())?);
    Ok(exit::OK)
}

/// The description of `names`, in lines of at most this number of `columns`.
fn listed(catalogue: &Catalogue, names: &[&str], columns: usize) -> Result<String, Stop> {
    let [first, rest @ ..] = names else { return Ok(all(catalogue, columns)) };
    let database = catalogue.databases.iter().find(|database| database.entry.id == *first);
    let workload = catalogue.workloads.iter().find(|workload| workload.id == *first);
    match (database, workload, rest) {
        (Some(database), _, []) => Ok(of_database(database, columns)),
        (Some(database), _, [id, ..]) => match database.protection(id) {
            Some(protection) => {
                let proof = proof(offer::database(database.entry.id)?, protection, columns)?;
                Ok(of_protection(protection, columns) + &proof)
            }
            None => Err(unknown(
                &format!("{} has no protection", database.entry.title),
                id,
                database.protections.iter().map(|protection| protection.id),
            )),
        },
        (None, Some(workload), []) => Ok(of_workload(workload, columns)),
        _ if yours(first).is_some() => {
            Ok(yours(first).map_or_else(String::new, |it| of_protection(it.described.entry, columns)))
        }
        _ if catalogue.built_with(first).is_some() => Err(Stop::new(exit::USAGE, offer::no_database(first))),
        _ => {
            let databases = catalogue.databases.iter().map(|database| database.entry.id);
            let workloads = catalogue.workloads.iter().map(|workload| workload.id);
            Err(unknown("there is no database and no workload", first, databases.chain(workloads)))
        }
    }
}

/// The user's own protection called `name`.
fn yours(name: &str) -> Option<Yours> {
    own_files::yours(Path::new(".")).into_iter().find(|it| it.described.entry.id == name)
}

/// Writes a page for each database and protection into `folder`.
fn write_pages(folder: &Path) -> Result<i32, Stop> {
    for (name, text) in pages::pages(&offer::databases()) {
        let path = folder.join(name);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text))
            .map_err(|error| Stop::new(exit::MACHINE, format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(exit::OK)
}

/// Everything on one screen.
fn all(catalogue: &Catalogue, columns: usize) -> String {
    let databases = &catalogue.databases;
    let ids = |database: &OfferedDatabase| {
        database.protections.iter().map(|protection| protection.id).collect::<BTreeSet<&str>>()
    };
    let real = databases.iter().filter(|database| !database.entry.simulated);
    let everywhere = real.map(ids).reduce(|one, other| &one & &other).unwrap_or_default();
    let most = databases.iter().max_by_key(|database| database.protections.len());
    let of_each = |database: &OfferedDatabase, shared: bool| {
        let listed = database.protections.iter().map(|protection| protection.id);
        listed.filter(|id| everywhere.contains(id) == shared).collect::<Vec<_>>().join(" ")
    };
    let width = databases.iter().map(|database| database.entry.id.len()).max().unwrap_or(0).max("all".len());
    let mut text = "Databases and their protections\n".to_owned();
    let mut line = |name: &str, words: &str| text += &paragraph(&format!("  {name:width$}  "), words, columns);
    databases.iter().for_each(|database| line(database.entry.id, &of_each(database, false)));
    most.into_iter().for_each(|database| line("all", &of_each(database, true)));
    text += "\nWorkloads\n";
    for workload in &catalogue.workloads {
        let presets: Vec<String> = workload.presets.iter().map(|(name, ..)| format!("\"{name}\"")).collect();
        text += &match presets.is_empty() {
            true => paragraph(&format!("  {} = ", workload.file_key()), "\"FILE\"", columns),
            false => paragraph(&format!("  {} = ", workload.id), &presets.join(" | "), columns),
        };
    }
    let yours = own_files::yours(Path::new("."));
    if !yours.is_empty() {
        text += "\nYours\n";
    }
    for Yours { described, wrong } in &yours {
        let what = wrong.as_deref().unwrap_or(described.entry.title);
        text += &paragraph(&format!("  {}  ", described.entry.id), what, columns);
    }
    format!("{text}\n{}\n{}", paragraph("", AA_ARM, columns), paragraph("", MORE, columns))
}

/// A database with the purposes of its protections.
fn of_database(database: &OfferedDatabase, columns: usize) -> String {
    let entry = database.entry;
    let how = match (entry.embedded, entry.schemes) {
        (true, _) => "runs inside tithe".to_owned(),
        (false, []) => "launched by tithe".to_owned(),
        (false, schemes) => format!("launched by tithe, or attached by {}://", schemes.join(":// or ")),
    };
    let mut text = paragraph("", &format!("{} ({how}): `database = \"{}\"`", entry.title, entry.id), columns);
    for protection in &database.protections {
        text += &format!("\n  {}  {}\n", protection.id, protection.title);
        text += &paragraph("      against  ", protection.protects_against, columns);
        if !protection.options.is_empty() {
            let options: Vec<&str> = protection.options.iter().map(|option| option.name).collect();
            text += &paragraph("      options  ", &options.join(" "), columns);
        }
        if !entry.embedded && !protection.attachable {
            text += "      for servers that tithe launches only\n";
        }
    }
    if !entry.schemes.is_empty() {
        text += &format!("\n{}", paragraph("", BY_PROVIDER, columns));
    }
    text
}

/// Everything about a protection and its options.
fn of_protection(protection: &ProtectionEntry, columns: usize) -> String {
    let mut text =
        paragraph("", &format!("{}: `protections = [{{ use = \"{}\" }}]`", protection.title, protection.id), columns);
    text += &paragraph("  protects against  ", protection.protects_against, columns);
    text += &paragraph("  leaves open       ", protection.leaves_open, columns);
    for option in protection.options {
        text.push('\n');
        text += &paragraph(&format!("  {} = ", option.name), &takes(option), columns);
        text += &paragraph("      ", option.help, columns);
    }
    text
}

/// The evidence of `entry` of `product` with its default options, and which part of it is required.
fn proof(product: &dyn Product, entry: &ProtectionEntry, columns: usize) -> Result<String, Stop> {
    let protection = arms::named(product, entry.id)?;
    let checks = protection.evidence(&pages::chosen(protection));
    let launched = Address::Tcp { host: String::new(), port: 0 };
    let place = if product.embedded() { "" } else { " on a server that tithe launches" };
    let mut text = told(place, &checks, &launched, columns);
    if product.entry().schemes.is_empty() {
        return Ok(text);
    }
    let how = pages::attached(protection);
    text += &match entry.attachable {
        true => told(&format!(" on an attached server ({how})"), &checks, &Address::Attached(Url::new("")), columns),
        false => "\n  not available on a server that tithe does not launch\n".to_owned(),
    };
    Ok(text)
}

/// The checks that apply to a server at `address`, with the purpose of each.
fn told(place: &str, checks: &[Box<dyn Check>], address: &Address, columns: usize) -> String {
    let mut text = format!("\n  proven{place} by\n");
    for (role, word) in [(Role::Claim, "needed"), (Role::Strengthens, "strengthens"), (Role::Disclosure, "reported")] {
        for check in checks.iter().filter(|check| check.entry().role == role && check.concerns(address)) {
            text += &paragraph(&format!("    {word:<13}"), &check.claim(), columns);
        }
    }
    text
}

/// The values of an option, and its default.
fn takes(option: &OptionEntry) -> String {
    let default = match option.default.map(DefaultValue::value) {
        Some(OptionValue::Text(text)) => format!("default \"{text}\""),
        Some(value) => format!("default {value}"),
        None => "required".to_owned(),
    };
    format!("{}, {default}", option.kind)
}

/// A workload with its presets.
fn of_workload(workload: &WorkloadEntry, columns: usize) -> String {
    let mut text = paragraph("", workload.title, columns);
    for (name, sentence, _) in workload.presets {
        text += &paragraph(&format!("  {} = \"{name}\"  ", workload.id), sentence, columns);
    }
    text + &paragraph(&format!("  {} = \"FILE\"  ", workload.file_key()), workload.file, columns)
}
