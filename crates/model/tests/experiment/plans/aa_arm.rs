//! When the A/A arm joins an experiment by itself, and its name and place.

use expect_test::expect;
use tithe_model::{
    catalogue::{Catalogue, WorkloadShape},
    parse::aa_arm_of,
    plan::outline,
};

use super::{SHAPE, planned, with_arms};
use crate::{SHORT, catalogue, read_experiment};

fn has_aa_arm(text: &str) -> bool {
    planned(text).experiment.arms.iter().any(|arm| arm.aa)
}

#[test]
fn an_aa_arm_joins_launched_servers_where_it_takes_a_fifth_of_the_load_at_most() {
    assert_eq!([2, 3, 4, 5, 9].map(|arms| has_aa_arm(&with_arms(arms, ""))), [false, false, true, true, true]);
    assert_eq!([2, 4].map(|arms| has_aa_arm(&with_arms(arms, "aa_arm = true"))), [true, true]);
    assert_eq!([2, 4].map(|arms| has_aa_arm(&with_arms(arms, "aa_arm = false"))), [false, false]);
    // It is in the last place, and has nothing that the baseline does not have.
    let arms = planned(&with_arms(4, "")).experiment.arms;
    assert_eq!((arms.len(), arms[4].name.as_str(), arms[4].is_second(&arms[0])), (5, "A/A", true));
}

#[test]
fn no_aa_arm_joins_by_itself_where_databases_are_not_tithes_or_arms_do_not_take_turns() {
    let four = with_arms(4, "");
    assert!(has_aa_arm(&four));
    assert!(!has_aa_arm(&with_arms(4, "design = \"sequential\"")));
    let embedded = four.replace("\"postgres\"", "\"sqlite\"").replace("use = \"tls\"", "use = \"columns\"");
    assert_eq!(planned(&embedded).experiment.database, "sqlite");
    assert!(has_aa_arm(&embedded), "of an embedded database, too");
    let attached: String = four
        .lines()
        .map(|line| match line.starts_with("name = ") {
            true => format!("{line}\nurl = \"postgres://u@h/db\"\n"),
            false => format!("{line}\n"),
        })
        .collect();
    assert_eq!(planned(&attached).experiment.arms.iter().filter(|arm| arm.url.is_some()).count(), 4);
    assert!(!has_aa_arm(&attached));
}

#[test]
fn no_aa_arm_joins_by_itself_where_another_program_offers_the_load() {
    let four = with_arms(4, "");
    let arms = |catalogue: &Catalogue, text: &str| {
        let experiment = tithe_model::parse::parse(text, catalogue, &catalogue::read).expect("an experiment");
        experiment.arms.iter().filter(|arm| arm.aa).count()
    };
    let mut catalogue = catalogue::catalogue();
    assert_eq!(arms(&catalogue, &four), 1);
    catalogue.workloads[0].shape = |_| WorkloadShape { program: true, ..SHAPE };
    assert_eq!(arms(&catalogue, &four), 0);
    assert_eq!(arms(&catalogue, &with_arms(4, "aa_arm = true")), 1, "as asked");
}

#[test]
fn the_aa_arm_has_a_name_that_no_other_arm_has() {
    let name = |taken: &[&str]| {
        let more: String = taken.iter().map(|name| format!("[[arm]]\nname = \"{name}\"\n")).collect();
        let text = format!("{SHORT}{more}[measure]\naa_arm = true\n");
        planned(&text).experiment.arms.pop().map(|arm| (arm.name, arm.aa))
    };
    assert_eq!(name(&[]), Some(("A/A".to_owned(), true)));
    assert_eq!(name(&["A/A"]), Some(("A/A 2".to_owned(), true)));
    assert_eq!(name(&["A/A 2", "A/A", "A/A 4"]), Some(("A/A 3".to_owned(), true)));
    let arms = planned(&with_arms(2, "aa_arm = true")).experiment.arms;
    assert_eq!(aa_arm_of(&arms), None, "one is enough");
}

#[test]
fn no_aa_arm_joins_by_itself_where_the_budget_buys_too_little_with_it() {
    let read = |s: u32, more: &str| read_experiment(&with_arms(4, &format!("budget = \"{s} s\"\n{more}")));
    let five = |s: &u32| read(*s, "").is_ok_and(|experiment| experiment.arms.len() == 5);
    let least = (1..600).find(five).expect("some budget is enough");
    // With a smaller budget, the file is measured without the arm, or refused if it requires the arm.
    let less = |more: &str| read(least - 1, more);
    assert_eq!(less("").expect("enough without").arms.len(), 4);
    let refused = less("aa_arm = true").expect_err("too little");
    assert!(refused.iter().any(|it| it.help.contains("aa_arm = false")), "{refused:?}");
}

#[test]
fn the_outline_says_what_the_aa_arm_is_for() {
    let outline = outline(&planned(&with_arms(4, "")), &catalogue::catalogue());
    let line = outline.lines().find(|line| line.contains("A/A")).unwrap_or_default().trim();
    expect!["A/A    the plain arm again, the negative control: its true cost is zero; 1/5 of the load (`aa_arm = false` leaves it out)"]
        .assert_eq(line);
}
