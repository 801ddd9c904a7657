//! A killed run leaves nothing outside its own folders: neither in any folder for temporary files, nor in shared memory
//! with a name, nor in the user's home.

use std::{fs, path::Path, process::Command};

use crate::support::{process::Process, server::found, wait_until};

/// Runs the program `$2` with the following arguments in the folder `$1`, both below `$0`. The system's temporary
/// folders are replaced by folders below `$1`. `$0` is mounted elsewhere first, because it may itself be below a
/// temporary folder.
const APART: &str = "mount --bind \"$0\" /mnt && folder=/mnt/$1 && program=/mnt/$2 && shift 2 && \
                     mount --bind \"$folder/tmp\" /tmp && mount --bind \"$folder/var\" /var/tmp && \
                     mount --bind \"$folder/shm\" /dev/shm && : >/tmp/another-one && cd \"$folder/cwd\" && \
                     HOME=\"$folder/home\" TMPDIR=/tmp exec \"$program\" \"$@\"";

/// The folder that cargo builds into, and `path` relative to it.
fn built(path: &Path) -> (&'static Path, &Path) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder of cargo's");
    (target, path.strip_prefix(target).expect("below the folder that cargo builds into"))
}

/// Names in the folder at `path`.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A run on `database` with `protection` is killed once its servers serve.
#[allow(clippy::print_stderr, reason = "a test says why it is skipped")]
fn killed(database: &str, protection: &str) {
    let all = tithe_databases::all();
    let product = all.iter().find(|product| product.entry().id == database).expect("a database");
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root mounts");
        return;
    }
    if found(*product).is_none() {
        return;
    }
    // Not below the system's folder for temporary files, which the run does not see.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let [tmp, var, shm, home, cwd] = ["tmp", "var", "shm", "home", "cwd"].map(|name| folder.path().join(name));
    [&tmp, &var, &shm, &home, &cwd].into_iter().for_each(|path| fs::create_dir(path).expect("a folder"));
    let open = Command::new("chmod").arg("1777").args([&tmp, &var, &shm]).status().expect("chmod runs");
    assert!(open.success());
    let mut command = Command::new("unshare");
    let ((target, below), (_, program)) = (built(folder.path()), built(Path::new(env!("CARGO_BIN_EXE_tithe"))));
    command.args(["--mount", "sh", "-c", APART]).args([target, below, program]);
    command.args(["run", database, "--protect", protection, "--records", "200", "--budget", "2 min"]);
    let mut run = Process::unheard(&mut command);
    // Both servers run and have their data; the rest of a warm-up is not waited for.
    let serves = || {
        let runs = fs::read_dir(cwd.join("tithe-runs")).into_iter().flatten().flatten();
        let mut events = runs.filter_map(|run| fs::read_to_string(run.path().join("events.jsonl")).ok());
        events.any(|it| it.matches("arm-started").count() == 2)
    };
    wait_until(serves);
    assert!(serves(), "both arms were started");
    run.kill();
    assert_eq!(names(&tmp), ["another-one"], "and nothing else");
    assert_eq!([&var, &shm, &home].map(|path| names(path)), [[""; 0]; 3]);
    assert_eq!(names(&cwd), ["tithe-runs"]);
}

#[test]
fn of_sqlite() {
    killed("sqlite", "page-encryption");
}

#[test]
fn of_postgres() {
    killed("postgres", "tls");
}

#[test]
fn of_mariadb() {
    killed("mariadb", "tls");
}

#[test]
fn of_mysql() {
    killed("mysql", "tls");
}

#[test]
fn of_redis() {
    killed("redis", "tls");
}

#[test]
fn of_cassandra() {
    killed("cassandra", "tls");
}

#[cfg(feature = "wiredtiger")]
#[test]
fn of_wiredtiger() {
    killed("wiredtiger", "page-encryption");
}
