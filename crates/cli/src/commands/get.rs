//! `tithe get`: downloads the programs of a database that no package of the system brings.

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
    let Some(database) = all.iter().find(|database| database.id() == wanted) else {
        return Err(refused(exit::USAGE, offer::no_database(wanted)));
    };
    let Some(download) = database.download() else {
        let why = format!("{} is installed by the packages of your system", database.title());
        return Err(refused(exit::MACHINE, why));
    };
    crate::shown::telln!("{}: {}", database.title(), download.words);
    let folder = (download.get)(arguments.version.as_deref())?;
    crate::shown::showln!("{} is in {}", database.title(), folder.display());
    Ok(exit::OK)
}

/// What of `databases` can be downloaded, in words.
fn downloadable(databases: &[&'static dyn Product]) -> String {
    let ids = databases.iter().filter(|database| database.download().is_some()).map(|database| database.id());
    let ids: Vec<&str> = ids.collect();
    if ids.is_empty() { "it downloads none".to_owned() } else { format!("it downloads {}", ids.join(", ")) }
}
