//! Servers write only in their own folders, so that everything is removed with the folder, also when they are killed.

use std::{collections::BTreeSet, fs, path::PathBuf};

use super::{mariadb::MARIADB, mysql::MYSQL, postgres::POSTGRES, redis::REDIS};
use crate::{sandbox::Sandbox, shared::with_plain, table, tested::Tested};

/// Folders where programs leave files that belong to no one.
const COMMON: [&str; 5] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/var/run/"];

/// The files in [`COMMON`], outside its own folder, that the server's processes have open or mapped.
pub fn outside(sandbox: &Sandbox) -> BTreeSet<PathBuf> {
    // The tests' own folder may be in a common one, and holds the certificates of the run next to the server's folder.
    let own = sandbox.server.folder.parent().expect("a sandbox").to_owned();
    let mut paths = BTreeSet::new();
    for process in family(sandbox.server.process.expect("a process")) {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        paths.extend(files.filter_map(|file| fs::read_link(file.path()).ok()));
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        paths.extend(maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..]))));
    }
    let common = |path: &PathBuf| COMMON.iter().any(|folder| path.starts_with(folder));
    paths.into_iter().filter(|path| common(path) && !path.starts_with(&own)).collect()
}

/// `process` and all its descendants.
fn family(process: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(process).chain(children.flat_map(family)).collect()
}

fn check(tested: &'static Tested) {
    with_plain(tested, |plain| {
        // With a client, whose server process may open files that the others do not.
        plain.database.create(&plain.server, &plain.setup, &table()).expect("a table");
        let mut session = tested.connect(plain, true);
        tested.exercise(&mut *session);
        let outside = outside(plain);
        drop(session);
        tested.remove(plain);
        assert!(outside.is_empty(), "{outside:?}");
    });
}

#[test]
fn postgres_keeps_inside() {
    check(&POSTGRES);
}

#[test]
fn mariadb_keeps_inside() {
    check(&MARIADB);
}

#[test]
fn mysql_keeps_inside() {
    check(&MYSQL);
}

#[test]
fn redis_keeps_inside() {
    check(&REDIS);
}
