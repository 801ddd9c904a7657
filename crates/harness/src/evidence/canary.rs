//! Canaries: values that occur nowhere else, so that finding one proves where data went.

/// Which canaries must not be seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Targets {
    /// Keys and every field value: encryption of files, of volumes, of the wire.
    Everything,
    /// The values of the first `share` of the fields, as [`crate::protection::Columns::share`]; keys and other fields may be seen.
    Fields {
        /// 0–1.
        share: f64,
    },
}
