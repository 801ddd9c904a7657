//! The databases and workloads of this build of Tithe, and where it searches for their programs.

use std::path::PathBuf;

use tithe_harness::catalogue;
use tithe_machine::launch::Search;
use tithe_model::{catalogue::Catalogue, experiment::Url};
use tithe_plugin::product::Product;

use crate::{
    MachineArgs, complain,
    exit::{self, Stop},
};

/// Everything that this build of Tithe offers.
pub fn catalogue() -> Catalogue {
    Catalogue { left_out: tithe_databases::left_out().to_vec(), ..catalogue::catalogue(&databases()) }
}

/// Every database of this build, and the simulated ones if `TITHE_SIMULATED` asks for them: they are for tests only.
pub fn databases() -> Vec<&'static dyn Product> {
    let mut all = tithe_databases::all().to_vec();
    if std::env::var_os("TITHE_SIMULATED").is_some() {
        all.push(&tithe_plugin::simulated::Simulated);
        all.push(&tithe_plugin::simulated::Spinning);
        all.push(&tithe_plugin::simulated::Compiling);
        all.push(&tithe_plugin::simulated::Lucky);
    }
    all
}

/// Where to search for programs.
pub fn search(arguments: &MachineArgs) -> Search {
    Search { folders: arguments.pg_bin.clone() }
}

/// The folder of the programs of the installed `database` whose version begins with `words`.
pub fn of_version(database: &dyn Product, words: &str, search: &Search) -> Result<PathBuf, Stop> {
    let found = catalogue::of_version(database, words, search);
    found.map(|install| install.programs).map_err(|missing| complain::missing(&[missing]))
}

/// The database that experiments call `id`.
pub fn database(id: &str) -> Result<&'static dyn Product, Stop> {
    let found = databases().into_iter().find(|database| database.id() == id);
    found.ok_or_else(|| Stop::new(exit::USAGE, no_database(id)))
}

/// The database of the server at `url`. If several products use the protocol, the server is asked for its product; if
/// it does not answer, the scheme decides.
pub fn at(url: &Url) -> Option<&'static dyn Product> {
    let all = databases();
    let owner = *all.iter().find(|product| product.entry().has_scheme(url.scheme()))?;
    if owner.is_product_at(url) != Some(false) {
        return Some(owner);
    }
    let mut others = all.iter().copied().filter(|it| it.id() != owner.id() && it.entry().speaks_as(owner.entry()));
    others.find(|product| product.is_product_at(url) == Some(true)).or(Some(owner))
}

/// The message that there is no database `id`, and how to get it if another build has it.
pub fn no_database(id: &str) -> String {
    let advice = catalogue().built_with(id).map_or(String::new(), |advice| format!("; {advice}"));
    format!("this build of tithe has no database {id}{advice}")
}
