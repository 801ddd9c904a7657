//! What this build of Tithe knows, and where it looks for it.

use std::path::PathBuf;

use tithe_harness::catalogue;
use tithe_machine::launch::Search;
use tithe_model::{catalogue::Catalogue, experiment::Url};
use tithe_plugin::product::Product;

use crate::{
    MachineArgs,
    exit::{self, Stop},
};

/// Everything that this build of Tithe knows.
pub fn catalogue() -> Catalogue {
    let workloads = tithe_workloads::KINDS.iter().map(|kind| (kind.entry)()).collect();
    Catalogue { left_out: tithe_databases::left_out().to_vec(), ..catalogue::catalogue(&databases(), workloads) }
}

/// Every database of this build, and the simulated ones when `TITHE_SIMULATED` asks for it: it is for tests only.
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

/// Where to look for programs.
pub fn search(arguments: &MachineArgs) -> Search {
    Search { folders: arguments.pg_bin.clone() }
}

/// The folder of the programs of the installed `database` whose version begins with `words`.
pub fn of_version(database: &dyn Product, words: &str, search: &Search) -> Result<PathBuf, Stop> {
    let all = database.find_all(search);
    if let Some(found) = all.iter().find(|install| begins(&install.version, words)) {
        return Ok(found.programs.clone());
    }
    let there: Vec<&str> = all.iter().map(|install| install.version.as_str()).collect();
    let there = if there.is_empty() { "nothing".to_owned() } else { there.join(", ") };
    let advice = database.download().map_or(String::new(), |download| {
        format!("; try `tithe get {} --version {words}`", download.name.unwrap_or(database.id()))
    });
    let title = database.title();
    let why = format!("there is no {title} {words}, only {there}{advice}; nothing was started");
    Err(Stop::new(exit::MISSING, why))
}

/// True where the version that a program `said` begins with the numbers `words`: 17 of `postgres (PostgreSQL) 17.11`.
fn begins(said: &str, words: &str) -> bool {
    let is_digit = |sign: char| sign.is_ascii_digit();
    let number = said.split([' ', '=']).find(|word| word.starts_with(is_digit));
    let rest = number.and_then(|number| number.strip_prefix(words));
    rest.is_some_and(|rest| !rest.starts_with(is_digit))
}

/// The database that experiments call `id`.
pub fn database(id: &str) -> Result<&'static dyn Product, Stop> {
    let found = databases().into_iter().find(|database| database.id() == id);
    found.ok_or_else(|| Stop::new(exit::USAGE, no_database(id)))
}

/// The database whose server `url` leads to. Where servers of several speak the protocol, this one is asked which it
/// is; if it does not answer, the scheme decides.
pub fn at(url: &Url) -> Option<&'static dyn Product> {
    let all = databases();
    let owner = *all.iter().find(|product| product.entry().has_scheme(url.scheme()))?;
    if owner.is_product_at(url) != Some(false) {
        return Some(owner);
    }
    let mut others = all.iter().copied().filter(|it| it.id() != owner.id() && it.entry().speaks_as(owner.entry()));
    others.find(|product| product.is_product_at(url) == Some(true)).or(Some(owner))
}

/// That there is no database `id`, and where another build has it, how to get that.
pub fn no_database(id: &str) -> String {
    let advice = catalogue().built_with(id).map_or(String::new(), |advice| format!("; {advice}"));
    format!("this build of tithe has no database {id}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_by_its_first_numbers() {
        for (said, words, is) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15", true),
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15.1", false),
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "18", false),
            ("Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=a", "9.1", true),
            ("mysqld  Ver 8.0.33 for Linux on x86_64", "8.0.33", true),
            ("nothing", "1", false),
        ] {
            assert_eq!(begins(said, words), is, "{said}: {words}");
        }
    }
}
