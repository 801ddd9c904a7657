//! Is the data key on disk in its wrapped form only?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{
        needles::Needles,
        scan::{files_below, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
};

use crate::wiredtiger::{encryptor::keystore::Keystore, folder, master_key};

/// Unwraps the data key and searches for it in every file of the server, raw, in hexadecimal and in base64. Its control
/// is the wrapped key, which it must find in the keystore. Id `data-key-wrapped`.
pub struct DataKeyWrapped;

impl Check for DataKeyWrapped {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("data-key-wrapped").own_control()
    }

    fn claim(&self) -> String {
        "the data key is in no file but wrapped by the master key".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let Some(store) = Keystore::read(folder(context.server)?)? else {
            return Ok(Observation::Exposed("there is no keystore".to_owned()));
        };
        let master = master_key(context.server, context.setup)?;
        let data_key = store.unwrap(&master)?;
        let needles = Needles::new([("data key", &data_key[..]), ("wrapped key", store.wrapped())]);
        let report = scan(&needles, files_below(&context.server.folder));
        let total = report.total();
        Ok(if total.distinct("data key") > 0 {
            Observation::Exposed(report.describe_found())
        } else if let Some(file) = report.unreadable.first() {
            Observation::Unknown(format!("cannot read {file}"))
        } else if total.distinct("wrapped key") == 0 {
            Observation::Unknown("the wrapped key was not found".to_owned())
        } else {
            Observation::Protected(format!("no data key in {}; the wrapped key was found", report.extent()))
        })
    }
}
