//! Which library encrypts?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::duckdb::{
    ATTACHED, MustExist, opened,
    settings::{
        self,
        provider::{MBEDTLS, OPENSSL},
    },
};

/// Asks the arm's engine after its sessions' statements. Id `crypto-provider`.
///
/// DuckDB takes mbedTLS whenever `force_mbedtls_unsafe` is on, whatever else is loaded, and otherwise what the
/// extension httpfs brings. Without both it can only read.
pub struct Provider {
    /// The one that was asked for.
    pub provider: &'static str,
}

impl Check for Provider {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("crypto-provider")
    }

    fn claim(&self) -> String {
        format!("{} encrypts what DuckDB writes", title(self.provider))
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        // Settings are the engine's, so what the statements of a session change holds for all.
        let session = context.connect()?;
        let opened = opened(context.server, context.setup, MustExist::Yes)?;
        let mut connection = opened.connection()?;
        let encrypted = connection
            .scalar(&format!("SELECT encrypted FROM duckdb_databases() WHERE database_name = '{ATTACHED}'"))?;
        let forced = connection.scalar(&format!("SELECT current_setting('{}')", settings::MBEDTLS))?;
        let loaded = connection
            .scalar("SELECT extension_version FROM duckdb_extensions() WHERE extension_name = 'httpfs' AND loaded")?;
        drop(session);
        Ok(judged(self.provider, &encrypted, &forced, &loaded))
    }
}

/// The observation of an engine that must encrypt by `provider`, from whether its database is `encrypted`, whether
/// mbedTLS is `forced`, and the version of httpfs if it is `loaded`.
fn judged(provider: &str, encrypted: &str, forced: &str, loaded: &str) -> Observation {
    let found = match (encrypted, forced, loaded.is_empty()) {
        ("true", "true", _) => MBEDTLS,
        ("true", _, false) => OPENSSL,
        ("true", ..) => return Observation::Exposed("nothing that can write is loaded".to_owned()),
        _ => return Observation::Exposed("the database is not encrypted".to_owned()),
    };
    let extension = if loaded.is_empty() { "not loaded" } else { loaded };
    let seen = format!("{}: force_mbedtls_unsafe is {forced}, httpfs is {extension}", title(found));
    if found == provider { Observation::Protected(seen) } else { Observation::Exposed(seen) }
}

fn title(provider: &str) -> &'static str {
    if provider == MBEDTLS { "mbedTLS" } else { "OpenSSL" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_encrypts_follows_from_what_is_forced_and_loaded() {
        let exposed = |words: &str| Observation::Exposed(words.to_owned());
        for (forced, loaded, found) in [
            ("true", "", Some((MBEDTLS, "mbedTLS: force_mbedtls_unsafe is true, httpfs is not loaded"))),
            ("true", "v1", Some((MBEDTLS, "mbedTLS: force_mbedtls_unsafe is true, httpfs is v1"))),
            ("false", "v1", Some((OPENSSL, "OpenSSL: force_mbedtls_unsafe is false, httpfs is v1"))),
            ("false", "", None),
        ] {
            for provider in [MBEDTLS, OPENSSL] {
                let expected = match found {
                    Some((found, words)) if found == provider => Observation::Protected(words.to_owned()),
                    Some((_, words)) => exposed(words),
                    None => exposed("nothing that can write is loaded"),
                };
                assert_eq!(judged(provider, "true", forced, loaded), expected);
                assert_eq!(judged(provider, "false", forced, loaded), exposed("the database is not encrypted"));
            }
        }
    }
}
