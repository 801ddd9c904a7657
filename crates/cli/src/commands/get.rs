//! `tithe get`: downloads the programs of a database that the system has no package for.

use tithe_plugin::product::Product;

use crate::{
    GetArgs,
    exit::{self, Stop},
    offer,
};

/// Runs the command; returns the exit status.
pub fn get(arguments: &GetArgs) -> Result<i32, Stop> {
    let wanted = &arguments.database;
    let all = offer::databases();
    let refused = |status: i32, why: String| Stop::new(status, format!("{why}; {}", downloadable(&all)));
    let is_wanted = |database: &&&dyn Product| {
        let name = database.download().and_then(|download| download.name);
        database.id() == wanted || name == Some(wanted)
    };
    let Some(database) = all.iter().find(is_wanted) else {
        return Err(refused(exit::USAGE, offer::no_database(wanted)));
    };
    let Some(download) = database.download() else {
        let why = format!("tithe downloads no {}", database.title());
        return Err(refused(exit::MACHINE, why));
    };
    crate::shown::telln!("{}: {}", database.title(), download.words);
    let folder = (download.get)(arguments.version.as_deref())?;
    crate::shown::showln!("It is in {}", folder.display());
    Ok(exit::OK)
}

/// The downloadable ones of `databases`, as text.
fn downloadable(databases: &[&'static dyn Product]) -> String {
    let named = |database: &&'static dyn Product| Some(database.download()?.name.unwrap_or(database.id()));
    let ids: Vec<&str> = databases.iter().filter_map(named).collect();
    if ids.is_empty() { "it downloads none".to_owned() } else { format!("it downloads {}", ids.join(", ")) }
}
