//! Finds a Java virtual machine for servers that need one, and starts several as one cluster. The only command run here
//! is `java -version`.

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use tithe_machine::{
    fault::Fault,
    launch::{Command, Install, Missing, Place},
    sandbox::{process, tools::folders_of_path},
};
use tithe_model::quantity::size;

/// Name under which [`Install::facts`] holds the virtual machine.
pub const PROGRAM: &str = "java";
/// Name under which [`Install::facts`] holds its version output.
const VERSION: &str = "java version";

/// Adds to `install` a virtual machine of one of `versions`, on which the server `title` runs, and returns it.
///
/// # Errors
/// The virtual machines that were found, if none has such a version.
pub fn find(install: &mut Install, versions: &RangeInclusive<u32>, title: &str) -> Result<PathBuf, Missing> {
    let home = std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let folders = home.into_iter().chain(folders_of_path()).chain([PathBuf::from("/usr/bin")]);
    let mut looked_in = Vec::new();
    for program in folders.map(|folder| folder.join("java")).filter(|program| program.is_file()) {
        // Without the option it leaves a folder in /tmp.
        let Ok(output) = process::ask(&program, &["-XX:-UsePerfData", "-version"]) else { continue };
        let said = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
        match version_of(&said) {
            Some(version) if versions.contains(&version) => {
                let facts = [(PROGRAM, program.display().to_string()), (VERSION, said)];
                install.facts.extend(facts.map(|(name, value)| (name.to_owned(), value)));
                return Ok(program);
            }
            _ => looked_in.push(format!("{} reports `{said}`", program.display())),
        }
    }
    Err(Missing {
        what: format!("Java {} to {}, which {title} runs on", versions.start(), versions.end()),
        looked_in,
        how_to_install: vec![
            "Debian 12, Ubuntu: apt-get install openjdk-17-jre-headless".to_owned(),
            "Fedora, RHEL: dnf install java-17-openjdk-headless".to_owned(),
            "elsewhere: set JAVA_HOME to such a version".to_owned(),
        ],
    })
}

/// The version in `openjdk version "17.0.15" 2025-04-15`; `1.8.0` is 1 here, which is too old in any case.
fn version_of(said: &str) -> Option<u32> {
    said.split('"').nth(1)?.split(['.', '-', '+']).next()?.parse().ok()
}

/// Setting: memory of the heap of each node's virtual machine.
pub const HEAP: &str = "heap";
/// What it is if an experiment does not set it.
const USUAL_HEAP: &str = "512M";
/// The least that Tithe starts: OpenSearch was seen to serve with it.
const LEAST_HEAP: u64 = 64 << 20;
/// Least memory of a virtual machine besides its heap: classes, code and stacks (OpenSearch: 140 to 160 MB).
const BESIDE_HEAP: u64 = 128 << 20;

/// The heap that `settings` ask for, as an option of the virtual machine.
pub fn heap(settings: &BTreeMap<String, String>) -> String {
    let heap = settings.get(HEAP).map_or(USUAL_HEAP, String::as_str);
    heap.replace(|letter: char| !letter.is_ascii_alphanumeric(), "")
}

/// Its size, bytes.
///
/// # Errors
/// [`Fault::Refused`] for anything but a size, and for one that is too small.
pub fn heap_bytes(settings: &BTreeMap<String, String>) -> Result<u64, Fault> {
    let text = settings.get(HEAP).map_or(USUAL_HEAP, String::as_str);
    let units = [("k", 10), ("m", 20), ("g", 30)];
    let bytes = units.iter().find_map(|(unit, power)| {
        let number: u64 = text.to_ascii_lowercase().strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(1 << power)
    });
    match bytes {
        Some(bytes) if bytes >= LEAST_HEAP => Ok(bytes),
        Some(bytes) => Err(Fault::Refused(format!(
            "the setting {HEAP} is {}, and nodes are started with {} or more: write `{HEAP} = \"{USUAL_HEAP}\"`",
            size(bytes),
            size(LEAST_HEAP)
        ))),
        None => Err(Fault::Refused(format!(
            "the setting {HEAP} is a number with K, M or G, as in `{HEAP} = \"{USUAL_HEAP}\"`"
        ))),
    }
}

/// The least memory of so many nodes with these settings, bytes.
pub fn memory_needed(settings: &BTreeMap<String, String>, nodes: usize) -> Option<u64> {
    (heap_bytes(settings).ok()?.saturating_add(BESIDE_HEAP)).checked_mul(nodes as u64)
}

/// The virtual machine of `install`, as the program of a command.
pub fn program(install: &Install) -> PathBuf {
    install.facts.get(PROGRAM).map_or("java", String::as_str).into()
}

/// Starts the nodes of a cluster one after the other, each when the previous one is ready: they find each other
/// through the first. If one ends, all end; the last output of all nodes and that of a node that did not start are
/// repeated, and the end names the one that ended. If this shell is killed, the kernel kills all nodes (`setpriv`, of
/// util-linux). On SIGTERM it stops them and waits.
const TOGETHER: &str = r#"program=$1; main=$2; folder=$3; ready=$4; failed=$5; shift 5
trap 'trap "" TERM
  tail -qn 5 "$folder"/node*/server.log
  grep -hm 1 "$failed" "$folder"/node*/server.log
  cat "$folder/ended" 2>/dev/null
  kill 0; wait; exit 0' TERM
for node in "$@"; do
  setpriv --pdeathsig KILL sh -c 'asked=; trap asked=1 TERM; ended=$1; shift; setpriv --pdeathsig KILL "$@"; status=$?
    [ "$asked" ] || echo "$0 ended (status $status), so all nodes were stopped" >> "$ended"
    kill "$PPID"' "$node" "$folder/ended" \
    "$program" "@$folder/$node/java.options" "$main" > "$folder/$node/server.log" 2>&1 &
  until grep -q "$ready" "$folder/$node/server.log" 2>/dev/null; do sleep 0.2; done
done
wait"#;

/// The command that starts so many nodes with the class `main`. Each has the options of its virtual machine in
/// `nodeN/java.options` below the folder of `place`. `told`: what a node logs when it is ready, and when it failed.
pub fn together(install: &Install, place: &Place, main: &str, nodes: usize, told: &[&str; 2]) -> Command {
    let (program, folder) = (program(install).display().to_string(), place.folder.display().to_string());
    let [ready, failed] = told;
    let mut arguments = ["-c", TOGETHER, "nodes", &program, main, &folder, ready, failed].map(str::to_owned).to_vec();
    arguments.extend((1..=nodes).map(|number| format!("node{number}")));
    Command {
        program: "/bin/sh".into(),
        arguments,
        environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
    }
}

/// The libraries in `folder`, by name.
pub fn libraries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|kind| kind == "jar")).collect();
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{HEAP, heap_bytes, memory_needed, version_of};

    #[test]
    fn a_heap_is_a_size_with_which_nodes_start() {
        let with = |text: &str| BTreeMap::from([(HEAP.to_owned(), text.to_owned())]);
        for (text, bytes) in [("512M", 1 << 29), ("2g", 2 << 30), ("131072k", 1 << 27)] {
            assert_eq!(heap_bytes(&with(text)), Ok(bytes), "{text}");
        }
        assert_eq!(heap_bytes(&BTreeMap::new()), Ok(1 << 29));
        for (text, words) in [
            ("16M", "is 16.8 MB, and nodes are started with 67.1 MB or more"),
            ("512", "a number with K, M or G"),
            ("half", "a number with K, M or G"),
            ("99999999999999G", "a number with K, M or G"),
            ("1G -Dx=y", "a number with K, M or G"),
            ("", "a number with K, M or G"),
        ] {
            let fault = heap_bytes(&with(text)).expect_err(text).to_string();
            assert!(fault.contains(words) && fault.contains("`heap = \"512M\"`"), "{fault}");
        }
        assert_eq!(memory_needed(&with("1G"), 3), Some(3 * (9 << 27)));
        assert_eq!(memory_needed(&with("half"), 3), None);
    }

    #[test]
    fn versions_are_read_as_it_says_them() {
        for (said, version) in [
            ("openjdk version \"17.0.15\" 2025-04-15", Some(17)),
            ("java version \"1.8.0_402\"", Some(1)),
            ("openjdk version \"21-ea\" 2023-09-19", Some(21)),
            ("no such thing", None),
        ] {
            assert_eq!(version_of(said), version, "{said}");
        }
    }
}
