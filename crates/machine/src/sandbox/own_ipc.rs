//! System V shared memory of servers. It belongs to no process and no file, so what a killed server leaves stays until
//! the machine restarts.
//!
//! A server that root starts has a namespace of its own for it (ipc_namespaces(7)), which ends with its last process.
//! Without root there is no namespace, and a killed PostgreSQL leaves some dozen bytes.

use std::{fs::File, os::fd::AsFd};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// The calling thread starts programs in a namespace of their own until this is dropped.
pub(super) struct OwnIpc {
    before: Option<File>,
}

impl OwnIpc {
    /// Where the kernel refuses, programs are started as the thread itself was.
    pub(super) fn enter() -> Self {
        let before = File::open("/proc/thread-self/ns/ipc").ok();
        // SAFETY: this flag takes nothing from the thread but System V's objects and POSIX message queues, of which
        // this program has none: descriptors, memory and files stay shared.
        let entered = before.is_some() && unsafe { unshare_unsafe(UnshareFlags::NEWIPC) }.is_ok();
        Self { before: before.filter(|_| entered) }
    }
}

impl Drop for OwnIpc {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A thread that may leave a namespace may enter the one before; if not, it has nothing in either.
            let _ = move_into_link_name_space(before.as_fd(), Some(LinkNameSpaceType::InterProcessCommunication));
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test starts what it looks at")]
mod tests {
    use std::{fs::read_link, process::Command};

    use super::*;

    #[test]
    fn what_is_started_meanwhile_has_a_namespace_of_its_own() {
        let of_child = || {
            let output = Command::new("readlink").arg("/proc/self/ns/ipc").output().expect("readlink runs");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let own = || read_link("/proc/thread-self/ns/ipc").expect("a link").display().to_string();
        let before = own();
        let apart = OwnIpc::enter();
        let is_allowed = apart.before.is_some();
        assert_eq!(of_child() != before, is_allowed);
        drop(apart);
        assert_eq!([own(), of_child()], [before.clone(), before]);
    }
}
