//! Changes a key while an arm is measured: that of a database's files, or that of the volume below them.
//!
//! Re-encrypting data is background work: it takes its time, whatever is measured meanwhile. The servers of such a cell
//! run only in their own slots, so that it affects only its own arm.

use tithe_machine::fault::Fault;

/// Re-encrypts the data of one server with another key: on a separate connection, or below the server.
pub trait Rotator: Send {
    /// Changes the key once. On return, all data are encrypted with the new key and none with the old one. Clients
    /// continue meanwhile.
    ///
    /// # Errors
    /// The error of the server or the program: a failed key change is never ignored.
    fn rotate(&mut self) -> Result<(), Fault>;
}
