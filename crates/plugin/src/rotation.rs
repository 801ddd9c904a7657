//! What changes a key while an arm is measured: that of a database's files, or that of the volume below them.
//!
//! Encrypting data again is background work: it goes on for as long as it takes, whatever is measured meanwhile. So
//! that it burdens the arm that it belongs to and no other, the servers of such a cell run in their own slots only.

use tithe_machine::fault::Fault;

/// Encrypts the data of one server with another key: on a connection of its own, or below the server.
pub trait Rotator: Send {
    /// Changes the key once; the data are encrypted with the new one, and none with the old one, when this returns.
    /// Clients go on meanwhile.
    ///
    /// # Errors
    /// What the server or the program said: a key that was not changed is never passed over.
    fn rotate(&mut self) -> Result<(), Fault>;
}
