//! Downloads Cassandra's libraries from Maven Central with the user's own Maven, for machines without a package of it.
//!
//! Nothing is built: Maven resolves what `org.apache.cassandra:cassandra-all` needs, checks it against the checksums of the
//! repository, and copies it into the user's folder of data. Maven's own settings (mirrors, proxies) apply.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tithe_harness::fault::Fault;

/// Version that is downloaded where none is named.
pub const NEWEST: &str = "5.0.4";

/// Where downloads are put: `tithe/cassandra` below `XDG_DATA_HOME`, or below `~/.local/share`. Servers that root starts run
/// under an account without privileges, which cannot look into root's home: there it is `/usr/local/share`.
fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value: &std::ffi::OsString| !value.is_empty()).map(PathBuf::from);
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    let own = || if root { Some("/usr/local/share".into()) } else { set("HOME").map(|home| home.join(".local/share")) };
    Some(set("XDG_DATA_HOME").or_else(own)?.join("tithe/cassandra"))
}

/// Folders of downloads, the newest version first.
pub fn downloaded() -> Vec<PathBuf> {
    let entries = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join("lib").is_dir()).collect();
    let numbers = |path: &PathBuf| -> Vec<u32> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.split('.').map(|number| number.parse().unwrap_or(0)).collect()
    };
    folders.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
    folders
}

/// Downloads `version`, and says where it is.
///
/// # Errors
/// [`Fault::Refused`] for what is no version; [`Fault::Machine`] when Maven is missing or fails, with its own words.
pub fn get(version: Option<&str>) -> Result<PathBuf, Fault> {
    let version = version.unwrap_or(NEWEST);
    if version.is_empty() || !version.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter)) {
        return Err(Fault::Refused("a version looks like 5.0.4".to_owned()));
    }
    let base = folder().ok_or_else(|| Fault::Machine("neither XDG_DATA_HOME nor HOME is set".to_owned()))?;
    let target = base.join(version);
    if target.join("lib").is_dir() {
        return Ok(target);
    }
    // A download that breaks off must not look like one that is complete.
    let partial = base.join(format!(".{version}-{}", std::process::id()));
    let downloaded = download(version, &partial)
        .and_then(|()| fs::rename(&partial, &target).map_err(|error| Fault::machine(target.display(), error)));
    if downloaded.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    downloaded.map(|()| target)
}

fn download(version: &str, folder: &Path) -> Result<(), Fault> {
    fs::create_dir_all(folder).map_err(|error| Fault::machine(folder.display(), error))?;
    let project = folder.join("pom.xml");
    fs::write(&project, project_text(version)).map_err(|error| Fault::machine(project.display(), error))?;
    let output = Command::new("mvn")
        .args([
            "--batch-mode",
            "--quiet",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-Dmdep.useBaseVersion=true",
        ])
        .arg(format!("-DoutputDirectory={}", folder.join("lib").display()))
        .arg("--file")
        .arg(&project)
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Fault::Machine(
                "mvn is not in PATH: install Maven and a JDK (Debian, Ubuntu: apt-get install maven \
                 default-jdk-headless)"
                    .to_owned(),
            ),
            _ => Fault::machine("cannot start mvn", error),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("ERROR")).take(3).collect();
    Err(Fault::Machine(format!("mvn failed ({}): {}", output.status, errors.join(" | "))))
}

/// A project that needs Cassandra and nothing else.
fn project_text(version: &str) -> String {
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  \
         <modelVersion>4.0.0</modelVersion>\n  \
         <groupId>tithe</groupId>\n  <artifactId>cassandra</artifactId>\n  <version>1</version>\n  \
         <packaging>pom</packaging>\n  \
         <dependencies>\n    <dependency>\n      <groupId>org.apache.cassandra</groupId>\n      \
         <artifactId>cassandra-all</artifactId>\n      <version>{version}</version>\n    </dependency>\n  </dependencies>\n\
         </project>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_version_never_reaches_maven() {
        for version in ["", "5.0.4</version>", "../5", "5 0"] {
            assert!(matches!(get(Some(version)), Err(Fault::Refused(_))), "{version}");
        }
    }
}
