//! How programs on PostgreSQL's client library get trust and identity: through their environment.
//!
//! The variables are those of the PostgreSQL documentation, "Environment Variables". Nothing falls back: a server with
//! TLS is verified in full, and without a request for TLS none is used.

use std::{collections::BTreeMap, net::IpAddr};

use tithe_machine::{launch::Content, secret::Secret};
use tithe_model::catalogue::WireProtocol;
use tithe_plugin::{
    program::ProgramContext,
    setup::{Reach, TlsVersion},
};

/// File with the password in the program's folder.
const PASSWORD: &str = "pgpass";

/// The environment of a program at `at`; empty if the server speaks another protocol.
pub fn environment(at: &ProgramContext<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    if at.protocol != WireProtocol::Postgres {
        return all;
    }
    let mut set = |name: &str, value: String| drop(all.insert(name.to_owned(), value));
    set("PGHOST", name(at.reach));
    set("PGHOSTADDR", at.reach.host.clone());
    set("PGPORT", at.reach.port.to_string());
    set("PGUSER", at.reach.user.clone());
    set("PGDATABASE", at.reach.database.clone());
    set("PGGSSENCMODE", "disable".to_owned());
    set("PGPASSFILE", at.folder.join(PASSWORD).display().to_string());
    let Some(tls) = &at.reach.tls else {
        set("PGSSLMODE", "disable".to_owned());
        return all;
    };
    set("PGSSLMODE", "verify-full".to_owned());
    set("PGSSLROOTCERT", tls.authority.display().to_string());
    for (variable, version) in
        [("PGSSLMINPROTOCOLVERSION", tls.versions.last()), ("PGSSLMAXPROTOCOLVERSION", tls.versions.first())]
    {
        let version = version.map(|version| match version {
            TlsVersion::V1_2 => "TLSv1.2",
            TlsVersion::V1_3 => "TLSv1.3",
        });
        set(variable, version.unwrap_or_default().to_owned());
    }
    if tls.mutual {
        let (certificate, key) = &tls.identity;
        set("PGSSLCERT", certificate.display().to_string());
        set("PGSSLKEY", key.display().to_string());
    }
    all
}

/// The name for checking the server's certificate: libraries before PostgreSQL 15 do not support certificates for
/// addresses, and every server that Tithe launches has one for this name as well.
pub fn name(reach: &Reach) -> String {
    if reach.host.parse::<IpAddr>().is_ok() { "localhost".to_owned() } else { reach.host.clone() }
}

/// The password file, if there is a password (documentation, "The Password File").
pub fn files(at: &ProgramContext<'_>) -> Vec<(String, Content)> {
    let line = |password: &Secret| {
        let password = password.expose_text().replace('\\', "\\\\").replace(':', "\\:");
        (PASSWORD.to_owned(), Content::Secret(Secret::new(format!("*:*:*:*:{password}\n"))))
    };
    at.reach.password.iter().filter(|_| at.protocol == WireProtocol::Postgres).map(line).collect()
}
