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
        let found = match (encrypted.as_str(), forced.as_str(), loaded.is_empty()) {
            ("true", "true", _) => MBEDTLS,
            ("true", _, false) => OPENSSL,
            ("true", ..) => return Ok(Observation::Exposed("nothing that can write is loaded".to_owned())),
            _ => return Ok(Observation::Exposed("the database is not encrypted".to_owned())),
        };
        let extension = if loaded.is_empty() { "not loaded".to_owned() } else { loaded };
        let seen = format!("{}: force_mbedtls_unsafe is {forced}, httpfs is {extension}", title(found));
        Ok(if found == self.provider { Observation::Protected(seen) } else { Observation::Exposed(seen) })
    }
}

fn title(provider: &str) -> &'static str {
    if provider == MBEDTLS { "mbedTLS" } else { "OpenSSL" }
}
