//! Is TLS spoken as asked for, and nothing else let in?

use std::path::PathBuf;

use tithe_harness::{
    evidence::{Evidence, Scene, Sight},
    fault::Fault,
    protection::{TlsVersion, Transport},
};

use super::{Attempt, sight};
use crate::postgres::{
    schema::{is_local, tls_of},
    session::PostgresSession,
    target::Target,
};

/// Asks the server what the measured connections speak (`pg_stat_ssl`), then tries what must be refused: plaintext, the
/// other TLS version, a server whose authority the client does not know and, where asked for, a client without a
/// certificate, which TLS 1.3 lets through the handshake and only the first answer refuses.
pub struct TlsNegotiated {
    version: TlsVersion,
    mutual: bool,
}

impl TlsNegotiated {
    /// A check of `transport`, which is TLS.
    pub fn new(transport: Transport) -> Self {
        match transport {
            Transport::Tls { version, mutual } => Self { version, mutual },
            Transport::Plain => unreachable!("the protection `tls` asks for TLS"),
        }
    }

    fn version(&self) -> &'static str {
        match self.version {
            TlsVersion::V1_2 => "TLSv1.2",
            TlsVersion::V1_3 => "TLSv1.3",
        }
    }

    /// What must be refused, each with its name.
    fn forbidden(&self, target: &Target, stranger: PathBuf) -> Vec<(&'static str, Target)> {
        let with_tls = |change: &dyn Fn(&mut crate::postgres::target::Tls)| {
            let mut changed = target.clone();
            changed.tls.iter_mut().for_each(change);
            changed
        };
        let other = match self.version {
            TlsVersion::V1_2 => TlsVersion::V1_3,
            TlsVersion::V1_3 => TlsVersion::V1_2,
        };
        let mut forbidden = vec![
            ("plaintext", Target { tls: None, ..target.clone() }),
            ("the other TLS version", with_tls(&|tls| tls.versions = vec![other])),
            ("a server of an unknown authority", with_tls(&|tls| tls.authority = Some(stranger.clone()))),
        ];
        if self.mutual {
            forbidden.push(("a client without a certificate", with_tls(&|tls| tls.identity = None)));
        }
        forbidden
    }

    fn look_at(&self, scene: &Scene<'_>) -> Result<Sight, Fault> {
        let target = Target::of(scene.server, scene.setup)?;
        let open = |target: &Target| PostgresSession::open(target, true, is_local(scene.server));
        let seen = tls_of(&mut open(&target)?)?;
        let mut quotation = format!("pg_stat_ssl of a client's session: {seen}");
        if !seen.starts_with(self.version()) {
            return Ok(Sight::Exposed(quotation));
        }
        if target.tls.as_ref().is_some_and(|tls| tls.authority.is_none()) {
            return Ok(Sight::Exposed(quotation + "; the client does not verify the server's certificate"));
        }
        let mut served = false;
        for (name, target) in self.forbidden(&target, scene.setup.materials.stranger.clone()) {
            match Attempt::of(open(&target))? {
                Attempt::Served => {
                    served = true;
                    quotation += &format!("; {name}: served");
                }
                Attempt::Refused(words) => quotation += &format!("; {name}: refused ({words})"),
            }
        }
        Ok(if served { Sight::Exposed(quotation) } else { Sight::Protected(quotation) })
    }
}

impl Evidence for TlsNegotiated {
    fn id(&self) -> &'static str {
        "tls-negotiated"
    }

    fn claim(&self) -> String {
        let mutual = if self.mutual { ", clients without a certificate" } else { "" };
        format!(
            "the server says that clients speak {}; plaintext, other versions{mutual} and unknown authorities are refused",
            self.version()
        )
    }

    fn look(&self, scene: &mut Scene<'_>) -> Sight {
        sight(|| self.look_at(scene))
    }
}
