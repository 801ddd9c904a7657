//! Downloads programs from Maven Central with the user's own Maven, for machines without a package of them.
//!
//! Nothing is built. Maven checks what it fetches against the checksums of the repository, and its own settings
//! (mirrors, proxies) apply. What a download is of, and what is kept of it, is the database's.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tithe_machine::{fault::Fault, sandbox::process};

/// How long a download may take.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// How one database is downloaded.
pub struct Download {
    /// Name of its folder of downloads.
    pub name: &'static str,
    /// Version that is downloaded where none is named.
    pub newest: &'static str,
    /// File or folder that every complete download has.
    pub mark: &'static str,
    /// Downloads a version into an empty folder.
    pub fetch: fn(version: &str, folder: &Path) -> Result<(), Fault>,
}

impl Download {
    /// Where downloads are put: below `XDG_DATA_HOME`, or below `~/.local/share`. Servers that root starts run under an
    /// account without privileges, which cannot look into root's home: there it is `/usr/local/share`.
    fn folder(&self) -> Option<PathBuf> {
        let set =
            |name| std::env::var_os(name).filter(|value: &std::ffi::OsString| !value.is_empty()).map(PathBuf::from);
        let root = rustix::process::geteuid().is_root();
        let own =
            || if root { Some("/usr/local/share".into()) } else { set("HOME").map(|home| home.join(".local/share")) };
        Some(set("XDG_DATA_HOME").or_else(own)?.join("tithe").join(self.name))
    }

    /// Folders of downloads, the newest version first.
    pub fn downloaded(&self) -> Vec<PathBuf> {
        let entries = self.folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.join(self.mark).exists()).collect();
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
    /// [`Fault::Refused`] for what is no version; [`Fault::Machine`] when Maven is missing or fails, with its own
    /// words.
    pub fn get(&self, version: Option<&str>) -> Result<PathBuf, Fault> {
        let version = version.unwrap_or(self.newest);
        if version.is_empty() || !version.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter))
        {
            return Err(Fault::Refused(format!("a version looks like {}", self.newest)));
        }
        let base = self.folder().ok_or_else(|| Fault::Machine("neither XDG_DATA_HOME nor HOME is set".to_owned()))?;
        let target = base.join(version);
        if target.join(self.mark).exists() {
            return Ok(target);
        }
        // A download that breaks off must not look like one that is complete.
        let partial = base.join(format!(".{version}-{}", std::process::id()));
        let downloaded = fs::create_dir_all(&partial)
            .map_err(|error| Fault::machine(partial.display(), error))
            .and_then(|()| (self.fetch)(version, &partial))
            .and_then(|()| fs::rename(&partial, &target).map_err(|error| Fault::machine(target.display(), error)));
        if downloaded.is_err() {
            let _ = fs::remove_dir_all(&partial);
        }
        downloaded.map(|()| target)
    }
}

/// Runs Maven quietly with `arguments` in `folder`: it leaves files of its own where it is run.
///
/// # Errors
/// [`Fault::Machine`] when it is missing or fails, with its own words.
#[expect(clippy::disallowed_methods, reason = "`tithe get` downloads before there is a sandbox")]
pub fn run(folder: &Path, arguments: &[String]) -> Result<(), Fault> {
    let mut command = Command::new("mvn");
    // The virtual machine would leave a folder in /tmp.
    let options = std::env::var("MAVEN_OPTS").unwrap_or_default();
    command.env("MAVEN_OPTS", format!("{options} -XX:-UsePerfData"));
    command.args(["--batch-mode", "--quiet"]).args(arguments).current_dir(folder);
    let output = process::finish(&mut command, TIMEOUT).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Fault::Machine(
            "mvn is not in PATH: install Maven and a JDK (Debian, Ubuntu: apt-get install maven default-jdk-headless)"
                .to_owned(),
        ),
        _ => Fault::machine("cannot start mvn", error),
    })?;
    let output = output.ok_or_else(|| {
        let minutes = TIMEOUT.as_secs() / 60;
        Fault::Machine(format!("mvn did not end within {minutes} min and was killed: is the network slow or cut off?"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("ERROR")).take(3).collect();
    Err(Fault::Machine(format!("mvn failed ({}): {}", output.status, errors.join(" | "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_version_never_reaches_maven() {
        let download = Download {
            name: "none",
            newest: "5.0.4",
            mark: "lib",
            fetch: |version, _| panic!("{version} would be downloaded"),
        };
        for version in ["", "5.0.4</version>", "../5", "5 0"] {
            assert!(matches!(download.get(Some(version)), Err(Fault::Refused(_))), "{version}");
        }
    }
}
