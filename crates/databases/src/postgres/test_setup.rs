//! A set-up for tests that need no server.

use std::collections::BTreeMap;

use tithe_harness::{
    protection::{Materials, Setup},
    secret::Secret,
};

/// A plain set-up with made-up paths.
pub fn plain() -> Setup {
    let materials = Materials {
        authority: "/m/ca.pem".into(),
        server_certificate: "/m/server.pem".into(),
        server_key: "/m/server.key".into(),
        client_certificate: "/m/client.pem".into(),
        client_key: "/m/client.key".into(),
        stranger: "/m/stranger.pem".into(),
        password: Secret::new("correct horse"),
        key: Secret::new([7; 32]),
    };
    Setup::plain(BTreeMap::new(), materials)
}
