//! What Tithe cannot see, from where it runs, of a server that it did not start.

use std::os::fd::BorrowedFd;

use tithe_machine::{remote::Known, watch::peer};
use tithe_plugin::database::{Lack, Remedy, Without};

/// The server's process, if the connection `descriptor` does not lead to one of `programs` on this machine; `serving`
/// is the process that the server reports.
pub fn unseen_process(descriptor: BorrowedFd<'_>, programs: &[&str], serving: Option<i32>) -> Option<Lack> {
    let why = peer::server_of(descriptor, Known { programs, serving }).err()?;
    Some(Lack {
        why: format!("the processor time of the server is read in /proc, and its process is not seen from here: {why}"),
        remedy: Remedy::Words("run Tithe on the server's machine, or `tithe observe` there".to_owned()),
        without: Without::Figures("processor time of the server, nor net time"),
    })
}
