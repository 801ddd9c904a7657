//! The client against PyKMIP's server.

use std::{fs, net::Ipv4Addr, os::unix::fs::PermissionsExt, path::PathBuf};

use expect_test::expect;
use tithe_machine::sandbox::ports::Port;

use super::*;

#[expect(clippy::disallowed_methods, reason = "PyKMIP is a program")]
#[path = "../../../tests/support/pykmip.rs"]
mod pykmip;
pub use pykmip::TestServer;

/// How a client of `server` reaches the key `id`.
pub fn key(server: &TestServer, id: &str) -> KeyServer {
    KeyServer {
        address: server.address.clone(),
        key_id: id.to_owned(),
        certificate: server.credentials.client_certificate.clone(),
        key: server.credentials.client_key.clone(),
        authority: server.credentials.authority.clone(),
    }
}

#[test]
fn a_server_gives_its_clients_their_key_and_nobody_else_anything() {
    let Some(server) = TestServer::start() else { return };
    let id = server.make_key(256);
    let good = key(&server, &id);
    let given = fetch(&good).unwrap();
    assert_eq!(fetch(&good).unwrap(), given);
    assert_ne!(fetch(&key(&server, &server.make_key(256))).unwrap(), given);

    let mut texts = String::new();
    let mut note = |what: &str, asked: &KeyServer| {
        let text = fetch(asked).unwrap_err().to_string().replace(&server.folder.path().display().to_string(), "FOLDER");
        texts += &format!("{what}: {text}\n");
    };
    note("unknown key", &key(&server, "4711"));
    note("128 bits", &key(&server, &server.make_key(128)));
    note("another authority", &KeyServer { authority: server.credentials.untrusted_authority.clone(), ..good.clone() });
    note("no authority", &KeyServer { authority: PathBuf::from("FOLDER/none.pem"), ..good.clone() });
    fs::set_permissions(&good.key, fs::Permissions::from_mode(0o644)).unwrap();
    note("key file for all", &good);
    fs::set_permissions(&good.key, fs::Permissions::from_mode(0o600)).unwrap();
    let free = Port::draw(Ipv4Addr::LOCALHOST.into()).unwrap();
    let absent = KeyServer { address: format!("127.0.0.1:{}", free.number()), ..good.clone() };
    let text = fetch(&absent).unwrap_err().to_string().replace(&free.number().to_string(), "PORT");
    texts += &format!("no server: {text}\n");
    expect![[r#"
        unknown key: refused: the server says: Could not locate object: 4711
        128 bits: refused: the key has 128 bits and not 256
        another authority: refused: TLS: the server's certificate was signed by no authority that is trusted here: name the file of its authority, or of the certificate itself if it is self-signed
        no authority: FOLDER/none.pem: I/O error: No such file or directory (os error 2)
        key file for all: refused: FOLDER/certificates/client.key is readable by others than its owner (mode 644): chmod 600
        no server: connection: 127.0.0.1:PORT: Connection refused (os error 111)
    "#]]
    .assert_eq(&texts);
    // The server's own refusal, and the server is still there afterwards.
    assert!(fetch_as(&good, Trust::Authority(&good.authority), None).is_err());
    assert_eq!(fetch(&good).unwrap(), given);
}
