//! Is the data key on disk in its wrapped form only?

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::{
    checks::{
        needles::Needles,
        scan::{Report, files_below, scan},
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
        Ok(judged(&scan(&needles, files_below(&context.server.folder))))
    }
}

/// What a search for both forms of the key shows.
fn judged(report: &Report) -> Observation {
    let total = report.total();
    if total.distinct("data key") > 0 {
        Observation::Exposed(report.describe_found())
    } else if let Some(file) = report.unreadable.first() {
        Observation::Unknown(format!("cannot read {file}"))
    } else if total.distinct("wrapped key") == 0 {
        Observation::Unknown("the wrapped key was not found".to_owned())
    } else {
        Observation::Protected(format!("no data key in {}; the wrapped key was found", report.extent()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_data_key_is_wrapped_if_its_wrapped_form_alone_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data_key, wrapped) = ([7_u8; 32], [9_u8; 40]);
        let seen = |held: &[&[u8]]| {
            fs::write(folder.path().join("file"), held.concat()).expect("written");
            let needles = Needles::new([("data key", &data_key[..]), ("wrapped key", &wrapped[..])]);
            scan(&needles, files_below(folder.path()))
        };
        assert!(matches!(judged(&seen(&[b"x", &wrapped])), Observation::Protected(_)));
        assert!(matches!(judged(&seen(&[&wrapped, &data_key])), Observation::Exposed(_)));
        assert!(matches!(judged(&seen(&[&data_key])), Observation::Exposed(_)));
        assert!(matches!(judged(&seen(&[b"x"])), Observation::Unknown(_)), "the control is missing");
        let unreadable = || vec!["file: permission denied".to_owned()];
        let of_some = Report { unreadable: unreadable(), ..seen(&[&wrapped]) };
        assert_eq!(judged(&of_some), Observation::Unknown("cannot read file: permission denied".to_owned()));
        let found = Report { unreadable: unreadable(), ..seen(&[&wrapped, &data_key]) };
        assert!(matches!(judged(&found), Observation::Exposed(_)), "what was found counts");
    }
}
