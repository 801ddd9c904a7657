//! The account of servers if Tithe itself is started by root.

use std::{
    os::unix::fs::{MetadataExt, lchown},
    path::Path,
};

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
        if !rustix::process::geteuid().is_root() {
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

    /// True if every folder on the way to `path` can be entered by this account.
    pub fn can_reach(&self, path: &Path) -> bool {
        path.ancestors().all(|folder| {
            std::fs::metadata(folder).is_ok_and(|metadata| {
                let mode = metadata.mode();
                mode & 0o001 != 0 || (metadata.uid() == self.user && mode & 0o100 != 0)
            })
        })
    }

    /// Gives `path` to this account.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn own(&self, path: &Path) -> Result<(), Fault> {
        lchown(path, Some(self.user), Some(self.group))
            .map_err(|error| Fault::machine(format!("cannot give {} to the servers' account", path.display()), error))
    }
}
