//! The clients that a node of Cassandra lists (`system_views.clients`).

use tithe_machine::{fault::Fault, launch::Server};
use tithe_plugin::{
    connections::{ClientConnection, ConnectionList, Spoken},
    setup::Setup,
};

use super::{
    connection::{CqlConnection, DRIVER, named},
    store::administrator,
};

/// `system_views.clients`, read through a separate connection.
pub struct Clients(CqlConnection);

impl Clients {
    /// Opens the connection.
    ///
    /// # Errors
    /// A refusal of either side, or a broken connection.
    pub fn open(server: &Server, setup: &Setup) -> Result<Self, Fault> {
        administrator(server, setup).map(Self)
    }
}

impl ConnectionList for Clients {
    fn now(&mut self) -> Result<Vec<ClientConnection>, Fault> {
        let statement = "SELECT address, port, username, ssl_protocol, ssl_cipher_suite, driver_name \
                         FROM system_views.clients";
        let rows = self.0.run(statement).map_err(named)?;
        let rows = rows.into_iter().filter_map(|row| <[_; 6]>::try_from(row).ok());
        Ok(rows.map(|row| connection(row.map(Option::unwrap_or_default))).collect())
    }
}

/// A row of the list, as the protocol brings its values.
fn connection([address, port, account, version, cipher, driver]: [Vec<u8>; 6]) -> ClientConnection {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let port = <[u8; 4]>::try_from(port).ok().and_then(|bytes| u16::try_from(i32::from_be_bytes(bytes)).ok());
    let spoken = if version.is_empty() {
        Spoken::Plaintext
    } else {
        Spoken::Tls(format!("{} {}", text(&version), text(&cipher)))
    };
    ClientConnection {
        id: format!("{address:?} {port:?}"),
        account: text(&account),
        port,
        spoken,
        is_own: driver == DRIVER.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_the_protocol_brings_it() {
        let row = |version: &[u8], driver: &str| {
            let port = 50_001i32.to_be_bytes().to_vec();
            let text = |text: &str| text.as_bytes().to_vec();
            connection([vec![10, 0, 0, 1], port, text("app"), version.to_vec(), text("AES"), text(driver)])
        };
        let one = row(b"TLSv1.3", "cql");
        assert_eq!((one.port, one.spoken, one.is_own), (Some(50_001), Spoken::Tls("TLSv1.3 AES".to_owned()), false));
        let own = row(b"", DRIVER);
        assert_eq!((own.account.as_str(), own.spoken, own.is_own), ("app", Spoken::Plaintext, true));
    }
}
