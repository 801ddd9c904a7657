//! Finds OpenSearch, its security plugin and a Java virtual machine on this machine: in the user's folders, in
//! `OPENSEARCH_HOME`, and where packages and `tithe get opensearch` put them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tithe_machine::launch::{Install, Missing, Search};

use super::get::{DOWNLOAD, MODULE, PLUGIN};
use crate::java;

/// The series that is started: the next one replaces Java's security manager, and needs other options.
const SERIES: &str = "2.";
/// Versions of Java on which it starts: later ones have no security manager.
const JAVA: std::ops::RangeInclusive<u32> = 17..=23;

/// Name under which [`Install::facts`] records the plugin's version; missing without a plugin that fits.
pub const PLUGIN_VERSION: &str = "security plugin";
/// Name under which [`Install::facts`] records why there is no plugin.
const NO_PLUGIN: &str = "no security plugin";

/// Where packages put it, or archives are unpacked to.
const FOLDERS: [&str; 3] = ["/usr/share/opensearch", "/opt/opensearch", "/usr/local/opensearch"];

/// Searches the folders of `search`, then everywhere else; the first that can be started wins.
///
/// # Errors
/// Every searched place, if none has it, or if there is no Java for it.
pub fn find(search: &Search) -> Result<Install, Missing> {
    let mut homes = search.folders.clone();
    homes.extend(std::env::var_os("OPENSEARCH_HOME").map(PathBuf::from));
    homes.extend(FOLDERS.map(PathBuf::from));
    homes.extend(DOWNLOAD.downloaded());
    let mut looked_in = Vec::new();
    let Some(mut install) = homes.iter().find_map(|home| probe(home, &mut looked_in)) else {
        return Err(Missing {
            what: format!("OpenSearch {SERIES}x (its libraries, opensearch-{SERIES}*.jar among them)"),
            looked_in,
            how_to_install: vec![
                "any system: tithe get opensearch (downloads the libraries from Maven Central; needs mvn and java)"
                    .to_owned(),
                "an archive or package of https://opensearch.org/downloads: set OPENSEARCH_HOME".to_owned(),
            ],
        });
    };
    java::find(&mut install, &JAVA, "OpenSearch")?;
    Ok(install)
}

/// The installation in `home`; problems are added to `looked_in`.
fn probe(home: &Path, looked_in: &mut Vec<String>) -> Option<Install> {
    let version = version_in(&home.join("lib"), "opensearch-").filter(|_| home.join(MODULE).is_dir());
    let Some(version) = version else {
        looked_in.push(home.display().to_string());
        return None;
    };
    if !version.starts_with(SERIES) {
        looked_in.push(format!("{} has {version}, which Tithe does not start", home.display()));
        return None;
    }
    let (name, value) = match version_in(&home.join(PLUGIN), "opensearch-security-") {
        Some(plugin) if plugin.starts_with(&format!("{version}.")) => (PLUGIN_VERSION, plugin),
        Some(plugin) => (NO_PLUGIN, format!("{plugin} is in {}, and does not fit {version}", home.display())),
        None => (NO_PLUGIN, home.join(PLUGIN).display().to_string()),
    };
    let facts = BTreeMap::from([(name.to_owned(), value)]);
    Some(Install { programs: home.to_owned(), version: format!("OpenSearch {version}"), facts })
}

/// The version in the name of the library in `folder` that begins with `name`: `opensearch-2.19.1.jar`.
fn version_in(folder: &Path, name: &str) -> Option<String> {
    java::libraries(folder).iter().find_map(|library| {
        let version = library.file_name()?.to_str()?.strip_prefix(name)?.strip_suffix(".jar")?;
        version.starts_with(|first: char| first.is_ascii_digit()).then(|| version.to_owned())
    })
}

/// Reports that an installation lacks the security plugin.
///
/// # Errors
/// Where it was searched, and how to install it.
pub fn needs_plugin(install: &Install) -> Result<(), Missing> {
    if install.facts.contains_key(PLUGIN_VERSION) {
        return Ok(());
    }
    Err(Missing {
        what: "the security plugin of this version of OpenSearch".to_owned(),
        looked_in: install.facts.get(NO_PLUGIN).cloned().into_iter().collect(),
        how_to_install: vec!["any system: tithe get opensearch".to_owned()],
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn server_and_plugin_must_fit() {
        let home = tempfile::tempdir().expect("a folder");
        let add = |folder: &str, name: &str| {
            fs::create_dir_all(home.path().join(folder)).expect("a folder");
            fs::write(home.path().join(folder).join(name), "").expect("a file");
        };
        let mut looked_in = Vec::new();
        add("lib", "opensearch-core-2.19.1.jar");
        assert!(probe(home.path(), &mut looked_in).is_none());
        add("lib", "opensearch-2.19.1.jar");
        assert!(probe(home.path(), &mut looked_in).is_none(), "without a module nothing listens");
        add(MODULE, "netty-common.jar");
        let missing = |looked_in: &mut Vec<String>| needs_plugin(&probe(home.path(), looked_in).expect("a server"));
        assert!(missing(&mut looked_in).is_err());
        add(PLUGIN, "opensearch-security-2.19.10.0.jar");
        let words = missing(&mut looked_in).expect_err("another one").looked_in.concat();
        assert!(words.starts_with("2.19.10.0 is in ") && words.ends_with("does not fit 2.19.1"), "{words}");
        fs::remove_file(home.path().join(PLUGIN).join("opensearch-security-2.19.10.0.jar")).expect("removed");
        add(PLUGIN, "opensearch-security-2.19.1.0.jar");
        assert_eq!(missing(&mut looked_in), Ok(()));
        fs::remove_file(home.path().join("lib/opensearch-2.19.1.jar")).expect("removed");
        add("lib", "opensearch-3.1.0.jar");
        assert!(probe(home.path(), &mut looked_in).is_none());
        assert!(looked_in.last().is_some_and(|words| words.ends_with("has 3.1.0, which Tithe does not start")));
    }
}
