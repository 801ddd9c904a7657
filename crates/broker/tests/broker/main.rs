//! The link against brokers: the installed NATS, and malicious ones.

#![allow(clippy::disallowed_methods, reason = "tests start what they watch")]

mod hostile;
mod installed;
mod server;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tithe_broker::{Access, AccessFiles, Broker};
use tithe_machine::fault::Fault;

/// Longer than any step takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Connects to `url` with `files` as the account `name`, within `within`.
fn connected_within(url: &str, name: &str, files: &AccessFiles, within: Duration) -> Result<Broker, Fault> {
    Broker::connect(&url.parse().expect("an address"), &Access::read(name, files)?, within)
}

/// The same with a long timeout.
fn connected(url: &str, name: &str, files: &AccessFiles) -> Result<Broker, Fault> {
    connected_within(url, name, files, LONG)
}

/// The first result of `attempt`, which has little time per attempt on a machine that may be busy.
fn at_last<T>(attempt: impl FnMut() -> Option<T>) -> T {
    std::iter::repeat_with(attempt).take(12).flatten().next().expect("one of twelve attempts")
}

/// The text of the error that connecting to `url` with `files` gives, without the number of a port.
fn refused(url: &str, files: &AccessFiles) -> String {
    let fault = connected(url, "rack7", files).err().expect("it is refused");
    without_port(&fault.to_string(), url)
}

/// `words` with PORT in place of the port of `url`.
fn without_port(words: &str, url: &str) -> String {
    let port = url.rsplit(':').next().expect("a port");
    words.replace(port, "PORT")
}

/// A file in `folder` that only its owner may read.
fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
    path
}

/// Waits until `is_so`, and fails if that takes too long.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}
