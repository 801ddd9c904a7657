//! Finds Cassandra's libraries and a Java virtual machine on this machine: in the user's folders, in `CASSANDRA_HOME`,
//! near the program `cassandra` in `PATH`, and where packages and `tithe get cassandra` put them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_machine::{
    launch::{Install, Missing, Search},
    sandbox::tools::folders_of_path,
};

use super::get;
use crate::java;

/// Oldest version that is launched.
const OLDEST: (u32, u32) = (4, 1);
/// Versions of Java that Cassandra 4.1 and 5.0 start on (its own documentation: 8 and 11, 11 and 17; 4.1 also works on
/// 17).
const JAVA: std::ops::RangeInclusive<u32> = 11..=17;

/// Name under which [`Install::facts`] holds the program that creates key stores, if there is one.
pub const KEYTOOL: &str = "keytool";
/// Name under which [`Install::facts`] holds the class path.
pub const CLASS_PATH: &str = "class path";
/// Name under which [`Install::facts`] holds the library that measures objects, which must be loaded first.
pub const AGENT: &str = "agent";

/// Where Debian's and other packages put the libraries, or archives are unpacked to.
const FOLDERS: [&str; 4] =
    ["/usr/share/cassandra", "/opt/cassandra", "/usr/local/cassandra", "/opt/homebrew/opt/cassandra/libexec"];

/// Searches the folders of `search`, then everywhere else; the first that is new enough wins.
///
/// # Errors
/// Every searched place, if none has Cassandra's libraries, or if there is no Java for them.
pub fn find(search: &Search) -> Result<Install, Missing> {
    let mut looked_in = Vec::new();
    let homes = homes(search);
    let found = homes.iter().find_map(|home| probe(home, &mut looked_in));
    let Some((mut install, agent)) = found else {
        return Err(Missing {
            what: format!(
                "Apache Cassandra {}.{} or newer (its libraries, cassandra-all-*.jar among them)",
                OLDEST.0, OLDEST.1
            ),
            looked_in,
            how_to_install: vec![
                "any system: tithe get cassandra (downloads the libraries from Maven Central; needs mvn and java)"
                    .to_owned(),
                "Debian, Ubuntu, Fedora, RHEL: the packages of https://cassandra.apache.org/download/".to_owned(),
                "an archive of https://cassandra.apache.org/download/: unpack it and set CASSANDRA_HOME".to_owned(),
            ],
        });
    };
    let program = java::find(&mut install, &JAVA, "Cassandra")?;
    if let Some(keytool) = keytool(&program) {
        install.facts.insert(KEYTOOL.to_owned(), keytool.display().to_string());
    }
    install.facts.insert(AGENT.to_owned(), agent.display().to_string());
    Ok(install)
}

/// Folders that may hold an installation, in the order in which they are checked.
fn homes(search: &Search) -> Vec<PathBuf> {
    let mut homes = search.folders.clone();
    homes.extend(std::env::var_os("CASSANDRA_HOME").map(PathBuf::from));
    let programs = folders_of_path().into_iter().filter(|folder| folder.join("cassandra").is_file());
    // Links lead from a folder of programs to the installation.
    let real = programs.filter_map(|folder| folder.join("cassandra").canonicalize().ok());
    homes.extend(real.filter_map(|program| Some(program.parent()?.parent()?.to_owned())));
    homes.extend(FOLDERS.map(PathBuf::from));
    homes.extend(get::DOWNLOAD.downloaded());
    let mut seen = std::collections::BTreeSet::new();
    homes.retain(|home| seen.insert(home.clone()));
    homes
}

/// The installation in `home`, with the agent's path; problems are added to `looked_in`.
fn probe(home: &Path, looked_in: &mut Vec<String>) -> Option<(Install, PathBuf)> {
    let folders = [home.join("lib"), home.to_owned()];
    let jars: Vec<PathBuf> = folders.iter().flat_map(|folder| java::libraries(folder)).collect();
    let version = jars.iter().find_map(|jar| version_of(&name_of(jar)));
    let agent = jars.iter().find(|jar| name_of(jar).starts_with("jamm-"));
    let (Some(version), Some(agent)) = (version, agent) else {
        looked_in.push(home.display().to_string());
        return None;
    };
    let mut numbers = version.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    if (numbers.next()?, numbers.next()?) < OLDEST {
        looked_in.push(format!("{} has {version}, which is too old", home.display()));
        return None;
    }
    let with_jars = folders.iter().filter(|folder| jars.iter().any(|jar| jar.parent() == Some(folder)));
    let class_path: Vec<String> = with_jars.map(|folder| format!("{}/*", folder.display())).collect();
    let facts = BTreeMap::from([(CLASS_PATH.to_owned(), class_path.join(":"))]);
    Some((Install { programs: home.to_owned(), version: format!("Apache Cassandra {version}"), facts }, agent.clone()))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The version in `cassandra-all-5.0.4.jar` (Maven) or `apache-cassandra-5.0.4.jar` (archives, packages).
fn version_of(jar: &str) -> Option<String> {
    let rest = jar.strip_prefix("cassandra-all-").or_else(|| jar.strip_prefix("apache-cassandra-"))?;
    let version = rest.strip_suffix(".jar")?;
    version.starts_with(|first: char| first.is_ascii_digit()).then(|| version.to_owned())
}

/// The program next to the virtual machine that creates key stores.
fn keytool(java: &Path) -> Option<PathBuf> {
    let real = java.canonicalize().unwrap_or_else(|_| java.to_owned());
    [java, &real].into_iter().map(|program| program.with_file_name("keytool")).find(|program| program.is_file())
}

/// Reports what an installation lacks for a key store.
///
/// # Errors
/// The searched places of `keytool`, and how to install it.
pub fn needs_keytool(install: &Install) -> Result<(), Missing> {
    if install.facts.contains_key(KEYTOOL) {
        return Ok(());
    }
    let java = install.facts.get(java::PROGRAM).map_or("java", String::as_str);
    Err(Missing {
        what: "keytool, a program that comes with Java".to_owned(),
        looked_in: vec![format!("next to {java}")],
        how_to_install: vec!["Debian 12, Ubuntu: apt-get install openjdk-17-jre-headless".to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn versions_are_read_from_the_names_of_libraries() {
        for (jar, version) in [
            ("cassandra-all-5.0.4.jar", Some("5.0.4")),
            ("apache-cassandra-4.1.8.jar", Some("4.1.8")),
            ("apache-cassandra-thrift-3.11.0.jar", None),
            ("jamm-0.4.0.jar", None),
            ("cassandra-all-5.0.4-sources.txt", None),
        ] {
            assert_eq!(version_of(jar).as_deref(), version, "{jar}");
        }
    }

    #[test]
    fn libraries_stand_in_the_folder_itself_or_below_it() {
        let home = tempfile::tempdir().expect("a folder");
        let mut looked_in = Vec::new();
        assert!(probe(home.path(), &mut looked_in).is_none());
        fs::create_dir(home.path().join("lib")).expect("a folder");
        fs::write(home.path().join("lib/jamm-0.4.0.jar"), b"").expect("written");
        fs::write(home.path().join("apache-cassandra-5.0.4.jar"), b"").expect("written");
        let (install, agent) = probe(home.path(), &mut looked_in).expect("an installation");
        assert_eq!(install.version, "Apache Cassandra 5.0.4");
        assert_eq!(agent, home.path().join("lib/jamm-0.4.0.jar"));
        let folder = home.path().display();
        assert_eq!(install.facts[CLASS_PATH], format!("{folder}/lib/*:{folder}/*"));
        fs::rename(home.path().join("apache-cassandra-5.0.4.jar"), home.path().join("apache-cassandra-3.11.17.jar"))
            .expect("renamed");
        assert!(probe(home.path(), &mut looked_in).is_none());
        assert!(looked_in[1].ends_with("has 3.11.17, which is too old"), "{looked_in:?}");
    }
}
