//! The account that servers run under when Tithe itself is started by root.

use std::{ffi::CString, os::unix::ffi::OsStrExt, os::unix::fs::MetadataExt, path::Path};

use crate::fault::Fault;

/// A user and group of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// User number.
    pub user: u32,
    /// Group number.
    pub group: u32,
}

impl Account {
    /// The account `nobody` when started by root, else `None`: servers then run under the user's own account.
    ///
    /// # Errors
    /// When root runs Tithe on a machine without `nobody`.
    pub fn unprivileged() -> Result<Option<Self>, Fault> {
        // SAFETY: geteuid has no preconditions.
        if unsafe { libc::geteuid() } != 0 {
            return Ok(None);
        }
        let passwd =
            std::fs::read_to_string("/etc/passwd").map_err(|error| Fault::machine("cannot read /etc/passwd", error))?;
        let account = passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, user, group) = (fields.next()?, fields.nth(1)?, fields.next()?);
            (name == "nobody").then_some(Self { user: user.parse().ok()?, group: group.parse().ok()? })
        });
        account.map(Some).ok_or_else(|| {
            Fault::Machine("servers must not run as root, and there is no account `nobody` on this machine; run tithe as another user".to_owned())
        })
    }

    /// True when every folder on the way to `path` lets this account pass.
    pub fn can_reach(&self, path: &Path) -> bool {
        path.ancestors().all(|folder| {
            std::fs::metadata(folder).is_ok_and(|metadata| {
                let mode = metadata.mode();
                mode & 0o001 != 0 || (metadata.uid() == self.user && mode & 0o100 != 0)
            })
        })
    }

    /// Makes `path` this account's own.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn own(&self, path: &Path) -> Result<(), Fault> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| Fault::machine(path.display(), error))?;
        // SAFETY: `name` is a C string that lives through the call.
        if unsafe { libc::lchown(name.as_ptr(), self.user, self.group) } == 0 {
            Ok(())
        } else {
            Err(Fault::machine(
                format!("cannot give {} to the servers' account", path.display()),
                std::io::Error::last_os_error(),
            ))
        }
    }
}
