//! Finds OpenSearch, its security plugin and a Java virtual machine on this machine: in the user's folders, in
//! `OPENSEARCH_HOME`, and where packages and `tithe get opensearch` put them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tithe_machine::launch::{Install, Missing, Search};

use super::get::{DOWNLOAD, MODULE, PLUGIN};
use crate::java;

/// The series that is started: the next one replaces Java's security manager, and needs other options.
const SERIES: &str = "2.";
/// Versions of Java on which it starts: later ones have no security manager.
const JAVA: std::ops::RangeInclusive<u32> = 17..=23;

/// Name under which [`Install::facts`] records the plugin's version; missing without the plugin.
pub const PLUGIN_VERSION: &str = "security plugin";
/// Name under which [`Install::facts`] records where the plugin was searched and not found.
const NO_PLUGIN: &str = "no security plugin";

/// How many areas of memory a process may map.
const MAPS: &str = "/proc/sys/vm/max_map_count";
/// The fewest with which nodes are started: the kernel's own default, which is enough for an index of Tithe's.
const FEWEST_MAPS: u64 = 65_530;
/// The number that OpenSearch asks for.
const ADVISED_MAPS: u64 = 262_144;

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
    check_maps(&fs::read_to_string(MAPS).unwrap_or_default())?;
    Ok(install)
}

/// Reports that processes may map too few areas, by the content of [`MAPS`].
fn check_maps(said: &str) -> Result<(), Missing> {
    match said.trim().parse::<u64>() {
        Ok(most) if most < FEWEST_MAPS => Err(Missing {
            what: format!("vm.max_map_count of {FEWEST_MAPS} or more, without which OpenSearch cannot map its files"),
            looked_in: vec![format!("{MAPS} says {most}")],
            how_to_install: vec![format!("as root: sysctl -w vm.max_map_count={ADVISED_MAPS}")],
        }),
        _ => Ok(()),
    }
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
    if let Some(words) = unfit_plugin(home, &version) {
        looked_in.push(words);
        return None;
    }
    let (name, value) = match version_in(&home.join(PLUGIN), "opensearch-security-") {
        Some(plugin) => (PLUGIN_VERSION, plugin),
        None => (NO_PLUGIN, home.join(PLUGIN).display().to_string()),
    };
    let facts = BTreeMap::from([(name.to_owned(), value)]);
    Some(Install { programs: home.to_owned(), version: format!("OpenSearch {version}"), facts })
}

/// The plugin in `home` that was built for another version: with it no node starts.
fn unfit_plugin(home: &Path, version: &str) -> Option<String> {
    let plugins = fs::read_dir(home.join("plugins")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut plugins: Vec<PathBuf> = plugins.collect();
    plugins.sort();
    plugins.iter().find_map(|plugin| {
        let text = fs::read_to_string(plugin.join("plugin-descriptor.properties")).ok()?;
        let built_for = text.lines().find_map(|line| line.strip_prefix("opensearch.version="))?.trim();
        (built_for != version).then(|| {
            let name = plugin.file_name().unwrap_or_default().display();
            format!(
                "{} has {version} with {name} for {built_for}, and no node starts with it: bin/opensearch-plugin \
                 remove {name}, then install the one for {version}",
                home.display()
            )
        })
    })
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
    use super::*;

    #[test]
    fn server_and_plugins_must_fit() {
        let home = tempfile::tempdir().expect("a folder");
        let add = |folder: &str, name: &str, text: &str| {
            fs::create_dir_all(home.path().join(folder)).expect("a folder");
            fs::write(home.path().join(folder).join(name), text).expect("a file");
        };
        let mut looked_in = Vec::new();
        add("lib", "opensearch-core-2.19.1.jar", "");
        assert!(probe(home.path(), &mut looked_in).is_none());
        add("lib", "opensearch-2.19.1.jar", "");
        assert!(probe(home.path(), &mut looked_in).is_none(), "without a module nothing listens");
        add(MODULE, "netty-common.jar", "");
        let missing = |looked_in: &mut Vec<String>| needs_plugin(&probe(home.path(), looked_in).expect("a server"));
        let words = missing(&mut looked_in).expect_err("no plugin").looked_in.concat();
        assert!(words.ends_with(PLUGIN), "{words}");
        let descriptor = "plugin-descriptor.properties";
        add(PLUGIN, "opensearch-security-2.19.1.0.jar", "");
        add(PLUGIN, descriptor, "# opensearch.version=1\nversion=2.19.1.0\nopensearch.version=2.19.1\n");
        assert_eq!(missing(&mut looked_in), Ok(()));
        for (plugin, built_for) in [("plugins/analysis-icu", "2.19.10"), (PLUGIN, "2.18.0")] {
            add(plugin, descriptor, &format!("opensearch.version={built_for}\n"));
            assert_eq!(probe(home.path(), &mut looked_in), None);
            let name = plugin.trim_start_matches("plugins/");
            let expected = format!(
                " has 2.19.1 with {name} for {built_for}, and no node starts with it: bin/opensearch-plugin remove \
                 {name}, then install the one for 2.19.1"
            );
            let words = looked_in.last().expect("told");
            assert!(words.ends_with(&expected), "{words}");
            add(plugin, descriptor, "opensearch.version=2.19.1\n");
        }
        fs::remove_file(home.path().join("lib/opensearch-2.19.1.jar")).expect("removed");
        add("lib", "opensearch-3.1.0.jar", "");
        assert!(probe(home.path(), &mut looked_in).is_none());
        assert!(looked_in.last().is_some_and(|words| words.ends_with("has 3.1.0, which Tithe does not start")));
    }

    #[test]
    fn too_few_maps_are_told_before_a_node_starts() {
        let missing = check_maps("65529\n").expect_err("too few");
        assert_eq!(missing.looked_in, ["/proc/sys/vm/max_map_count says 65529"]);
        assert_eq!(missing.how_to_install, ["as root: sysctl -w vm.max_map_count=262144"]);
        for enough in ["65530\n", "262144\n", ""] {
            assert_eq!(check_maps(enough), Ok(()), "{enough}");
        }
    }
}
