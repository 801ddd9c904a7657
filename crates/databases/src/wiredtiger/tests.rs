//! What each protection changes, as text: no library is needed.

use expect_test::expect_file;

use super::*;
use crate::test_setup::{every_way, shown};

#[test]
fn every_way_to_ask_for_a_protection() {
    let launched = |setup: &Setup| {
        let launch = WiredTiger.launch(&Install::default(), setup, &Place::on_loopback("/run/arm", 0));
        let settings = Settings::resolve(&setup.settings).expect("settings").lines().join("\n");
        format!("{}{settings}\n", shown(&launch, setup))
    };
    expect_file!["every_way.txt"].assert_eq(&every_way(WiredTiger.protections(), launched));
}
