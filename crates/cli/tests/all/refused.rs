//! Refusals before any program is searched for or started, so that the tests need no server.

use crate::installed::{programs, rotation};

#[test]
fn what_programs_cannot_do() {
    programs::what_programs_cannot_do_is_refused_before_anything_starts();
}

#[test]
fn keys_that_cannot_be_rotated() {
    rotation::what_cannot_be_measured_is_refused_before_anything_starts();
}
