//! The controls of standards that an observation relates to: tables of data without any decision.
//!
//! A check is about a property of the system, and controls ask for properties. Whether a control is satisfied is
//! decided by its assessor: a control asks for more than one server can show.

/// A property that a protection gives to a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// Data in transit cannot be read.
    Transport,
    /// Stored data cannot be read.
    AtRest,
    /// Keys are kept apart from the protected data, and rotated.
    Keys,
    /// Actions are recorded with their user.
    Audit,
    /// Clients must authenticate.
    Authentication,
    /// Accounts can do only what was granted.
    Authorisation,
    /// Changes of stored data are detected.
    Integrity,
}

/// A control of a standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Control {
    /// The standard with its edition.
    pub standard: &'static str,
    /// The control's number, as the standard prints it.
    pub number: &'static str,
    /// The number as a token of OSCAL, which begins with a letter; for NIST's controls the token of NIST's own
    /// catalogue.
    pub token: &'static str,
}

const fn control(standard: &'static str, number: &'static str, token: &'static str) -> Control {
    Control { standard, number, token }
}

const PCI: &str = "PCI DSS 4.0.1";
const ISO: &str = "ISO/IEC 27001:2022";
const NIST: &str = "NIST SP 800-53 Rev. 5";

/// The controls that ask for each property.
const CONTROLS: [(Property, &[Control]); 7] = [
    (
        Property::Transport,
        &[
            control(PCI, "4.2.1", "pci-dss-4.0.1-4.2.1"),
            control(ISO, "A.8.24", "iso-27001-2022-a.8.24"),
            control(NIST, "SC-8", "sc-8"),
            control(NIST, "SC-13", "sc-13"),
        ],
    ),
    (
        Property::AtRest,
        &[
            control(PCI, "3.5.1", "pci-dss-4.0.1-3.5.1"),
            control(ISO, "A.8.24", "iso-27001-2022-a.8.24"),
            control(NIST, "SC-28", "sc-28"),
            control(NIST, "SC-13", "sc-13"),
        ],
    ),
    (
        Property::Keys,
        &[
            control(PCI, "3.6.1", "pci-dss-4.0.1-3.6.1"),
            control(ISO, "A.8.24", "iso-27001-2022-a.8.24"),
            control(NIST, "SC-12", "sc-12"),
        ],
    ),
    (
        Property::Audit,
        &[
            control(PCI, "10.2", "pci-dss-4.0.1-10.2"),
            control(ISO, "A.8.15", "iso-27001-2022-a.8.15"),
            control(NIST, "AU-2", "au-2"),
            control(NIST, "AU-12", "au-12"),
        ],
    ),
    (
        Property::Authentication,
        &[
            control(PCI, "8.3.1", "pci-dss-4.0.1-8.3.1"),
            control(ISO, "A.8.5", "iso-27001-2022-a.8.5"),
            control(NIST, "IA-2", "ia-2"),
        ],
    ),
    (
        Property::Authorisation,
        &[
            control(PCI, "7.3.1", "pci-dss-4.0.1-7.3.1"),
            control(ISO, "A.8.3", "iso-27001-2022-a.8.3"),
            control(NIST, "AC-3", "ac-3"),
        ],
    ),
    (Property::Integrity, &[control(NIST, "SI-7", "si-7")]),
];

/// The property that each check is about; `None` if no control asks for it.
pub const CHECKS: &[(&str, Option<Property>)] = &[
    ("aof-written", None),
    ("audit-complete", Some(Property::Audit)),
    ("auth-caching", Some(Property::Authentication)),
    ("cache-fits", None),
    ("checksums-on", Some(Property::Integrity)),
    ("cipher-driver", None),
    ("ciphertext-seen", Some(Property::AtRest)),
    ("commitlog-encrypted", Some(Property::AtRest)),
    ("crypto-provider", Some(Property::AtRest)),
    ("data-files-clear", Some(Property::AtRest)),
    ("data-key-wrapped", Some(Property::Keys)),
    ("definitions-logged", Some(Property::Audit)),
    ("disk-canary", Some(Property::AtRest)),
    ("encryption-in-force", Some(Property::AtRest)),
    ("encryptor-idle", None),
    ("header", Some(Property::AtRest)),
    ("internode-tls", Some(Property::Transport)),
    ("journal-canary", Some(Property::AtRest)),
    ("key-apart", Some(Property::Keys)),
    ("key-rotated", Some(Property::Keys)),
    ("key-rotation", Some(Property::Keys)),
    ("key-served", Some(Property::Keys)),
    ("keyring-apart", Some(Property::Keys)),
    ("keys-locked", Some(Property::Keys)),
    ("logs-free", Some(Property::AtRest)),
    ("no-repeated-ciphertext", Some(Property::AtRest)),
    ("password-asked", Some(Property::Authentication)),
    ("peer-tls", Some(Property::Transport)),
    ("pgcrypto-trap", Some(Property::Keys)),
    ("placebo-taken", None),
    ("program-wire", Some(Property::Transport)),
    ("raw-image", Some(Property::AtRest)),
    ("recorders", None),
    ("removed-canary", Some(Property::AtRest)),
    ("rights-enforced", Some(Property::Authorisation)),
    ("row-plan", None),
    ("rows-apart", Some(Property::Authorisation)),
    ("scram-iterations", Some(Property::Authentication)),
    ("setting-differs", None),
    ("statement-log", Some(Property::Audit)),
    ("statements-ordinary", None),
    ("tamper", Some(Property::Integrity)),
    ("temporary-canary", Some(Property::AtRest)),
    ("tls-enforced", Some(Property::Transport)),
    ("tls-negotiated", Some(Property::Transport)),
    ("tls-resumed", Some(Property::Transport)),
    ("tls-spoken", Some(Property::Transport)),
    ("volume-header", Some(Property::AtRest)),
    ("volume-key", Some(Property::Keys)),
    ("volume-key-rotated", Some(Property::Keys)),
    ("wire-canary", Some(Property::Transport)),
    ("wrapper-idle", None),
    ("wrong-column-key", Some(Property::AtRest)),
    ("wrong-key", Some(Property::AtRest)),
    ("your-claim", None),
];

/// The property of the check called `id`; `None` for a check that this version does not have.
pub fn property(id: &str) -> Option<Property> {
    CHECKS.iter().find(|(check, _)| *check == id).and_then(|(_, property)| *property)
}

/// The controls that ask for `property`.
pub fn controls(property: Property) -> &'static [Control] {
    CONTROLS.iter().find(|(known, _)| *known == property).map_or(&[], |(_, controls)| controls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_has_controls_and_every_check_stands_once() {
        for (check, property) in CHECKS {
            assert!(property.is_none_or(|property| !controls(property).is_empty()), "{check}");
        }
        let names: Vec<&str> = CHECKS.iter().map(|(check, _)| *check).collect();
        assert!(names.is_sorted_by(|one, other| one < other), "in order, and none twice");
    }

    #[test]
    fn tokens_are_those_of_oscal() {
        for control in CONTROLS.iter().flat_map(|(_, controls)| *controls) {
            let mut letters = control.token.chars();
            assert!(letters.next().is_some_and(char::is_alphabetic), "{control:?}");
            assert!(
                letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || "-.".contains(it)),
                "{control:?}"
            );
            assert!(control.token.ends_with(&control.number.to_lowercase()), "{control:?}");
        }
    }
}
