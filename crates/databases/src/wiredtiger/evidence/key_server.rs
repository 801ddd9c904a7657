//! Does only the key server have the master key, and does it give the key only to its own clients?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{
        needles::Needles,
        scan::{files_below, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
    setup::KeyServer,
    wire::{Identity, Trust},
};

use crate::wiredtiger::{
    encryptor::keystore::{self, Keystore},
    folder, kmip,
};

/// Asks the key server for the master key as the engine did, unwraps the data key with it, and searches for it in every
/// file of the server, raw, in hexadecimal and in base64. Then asks without a certificate, and with trust in another
/// authority. Its control is the wrapped key, which it must find. Id `key-served`.
pub struct KeyServed;

impl KeyServed {
    /// Asks as clients that are not the server's, or do not know it.
    fn refusals(context: &CheckContext<'_>, server: &KeyServer, extent: &str) -> Result<Observation, Fault> {
        let own = Some(Identity { certificate: &server.certificate, key: &server.key });
        let untrusted_authority = &context.setup.credentials.untrusted_authority;
        let attempts = [
            ("without a certificate", kmip::fetch_as(server, Trust::Authority(&server.authority), None)),
            ("trusting another authority", kmip::fetch_as(server, Trust::Authority(untrusted_authority), own)),
        ];
        let mut quotation = format!("no master key in {extent}");
        for (how, outcome) in attempts {
            match outcome {
                Ok(_) => return Ok(Observation::Exposed(format!("{how}: the key was given"))),
                Err(Fault::Machine(reason)) => return Err(Fault::Machine(reason)),
                Err(fault) => quotation += &format!("; {how}: {fault}"),
            }
        }
        // A server that has stopped refuses everything.
        kmip::fetch(server)?;
        Ok(Observation::Protected(quotation))
    }
}

impl Check for KeyServed {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("key-served").own_control()
    }

    fn claim(&self) -> String {
        "the master key is in no file of the server, and the key server gives it only to clients with a certificate"
            .to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let (Some(server), Some(store)) = (&context.setup.key_server, Keystore::read(folder(context.server)?)?) else {
            return Ok(Observation::Exposed("there is no key server or no keystore".to_owned()));
        };
        let master = kmip::fetch(server)?;
        store.unwrap(&master)?;
        let needles = Needles::new([("master key", &master[..]), ("wrapped key", store.wrapped())]);
        let report = scan(&needles, files_below(&context.server.folder));
        let total = report.total();
        if total.distinct("master key") > 0 || keystore::master_key_path(&context.server.folder).exists() {
            return Ok(Observation::Exposed(report.describe_found()));
        }
        if let Some(file) = report.unreadable.first() {
            return Ok(Observation::Unknown(format!("cannot read {file}")));
        }
        if total.distinct("wrapped key") == 0 {
            return Ok(Observation::Unknown("the wrapped key was not found".to_owned()));
        }
        Self::refusals(context, server, &report.extent())
    }
}
