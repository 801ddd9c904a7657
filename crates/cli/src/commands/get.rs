//! `tithe get`: downloads the programs of a database that no package of the system brings.

use crate::{
    GetArgs,
    exit::{self, Stop},
    prepare,
};

/// Runs the command; returns the exit status.
pub fn get(arguments: &GetArgs) -> Result<i32, Stop> {
    let wanted = &arguments.database;
    let all = prepare::databases();
    let Some(database) = all.iter().find(|database| database.id() == wanted) else {
        return Err(Stop::new(exit::USAGE, format!("this build of tithe has no database {wanted}")));
    };
    if let Some(words) = database.download() {
        anstream::eprintln!("{}: {words}", database.title());
    }
    let folder = database.get(arguments.version.as_deref())?;
    anstream::println!("{} is in {}", database.title(), folder.display());
    Ok(exit::OK)
}
