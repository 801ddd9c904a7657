//! Numbers of claims by result, as a text. An unknown claim is neither proven nor disproven.

use std::collections::BTreeMap;

use tithe_model::record::{Finding, Role, Verdict};

use super::{number, words::plural};

/// Results of claims. If a claim was checked several times, its worst result counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claims(BTreeMap<(u32, u32, String, String), Verdict>);

impl Claims {
    /// Counts `finding` if it is about a claim.
    pub fn add(&mut self, finding: &Finding) {
        if !finding.role.is_claim() {
            return;
        }
        let verdict = match (finding.role, finding.verdict) {
            // A needed claim that cannot be checked is open, for any reason.
            (Role::Claim, Verdict::OutOfReach) => Verdict::CannotTell,
            (_, verdict) => verdict,
        };
        let (check, claim) = finding.about();
        let key = (finding.cell, finding.arm, finding.protection.clone(), format!("{check} {claim}"));
        let worst = self.0.entry(key).or_insert(Verdict::Holds);
        if rank(verdict) > rank(*worst) {
            *worst = verdict;
        }
    }

    /// Number of claims with the result `verdict`.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.0.values().filter(|one| **one == verdict).count()
    }

    /// Number of claims that were checked.
    pub fn looked_at(&self) -> usize {
        self.0.len()
    }

    /// True if no claim is disproven and no needed one is open.
    pub fn all_hold(&self) -> bool {
        self.count(Verdict::Holds) + self.count(Verdict::OutOfReach) == self.looked_at()
    }

    /// `9 of 12 claims hold, 2 do not, 1 cannot be decided`.
    pub fn in_words(&self) -> String {
        let held = number::count(self.count(Verdict::Holds) as u64);
        let verb = if self.looked_at() == 1 { "holds" } else { "hold" };
        let mut text = format!("{held} of {} {verb}", plural(self.looked_at() as u64, "claim"));
        let failed = self.count(Verdict::Fails);
        if failed > 0 {
            text += &format!(", {} {}", number::count(failed as u64), if failed == 1 { "does not" } else { "do not" });
        }
        text += &self.open().map_or(String::new(), |open| format!(", {open}"));
        match self.count(Verdict::OutOfReach) as u64 {
            0 => text,
            unseen => text + &format!(", {} out of reach and not needed", number::count(unseen)),
        }
    }

    /// `2 claims do not hold, 1 cannot be decided`; `None` if every claim holds.
    pub fn amiss(&self) -> Option<String> {
        let failed = self.count(Verdict::Fails);
        let verb = if failed == 1 { "does" } else { "do" };
        let failed = (failed > 0).then(|| format!("{} {verb} not hold", plural(failed as u64, "claim")));
        match (failed, self.open()) {
            (Some(failed), Some(open)) => Some(format!("{failed}, {open}")),
            (Some(failed), None) => Some(failed),
            (None, Some(_)) => {
                let open = self.count(Verdict::CannotTell) as u64;
                Some(format!("{} cannot be decided", plural(open, "claim")))
            }
            (None, None) => None,
        }
    }

    fn open(&self) -> Option<String> {
        let open = self.count(Verdict::CannotTell) as u64;
        (open > 0).then(|| format!("{} cannot be decided", number::count(open)))
    }
}

/// The order of results: disproven is worse than open.
pub(super) fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Holds => 0,
        Verdict::OutOfReach => 1,
        Verdict::CannotTell => 2,
        Verdict::Fails => 3,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use expect_test::{Expect, expect};
    use tithe_model::record::Phase;

    use super::*;

    /// Claims `a`, `b`, … of one arm, each with the results of its checks: `+` holds, `-` fails, `?` is unknown.
    pub(in crate::report) fn of(looks: &[&str]) -> Claims {
        let mut claims = Claims::default();
        for (number, looks) in looks.iter().enumerate() {
            for look in looks.chars() {
                let verdict = match look {
                    '+' => Verdict::Holds,
                    '-' => Verdict::Fails,
                    _ => Verdict::CannotTell,
                };
                claims.add(&finding(&number.to_string(), Role::Claim, verdict));
                claims.add(&finding("told", Role::Disclosure, Verdict::Fails));
            }
        }
        claims
    }

    fn check(looks: &[&str], expect: Expect) {
        let claims = of(looks);
        let amiss = claims.amiss().unwrap_or_else(|| "-".to_owned());
        expect.assert_eq(&format!("{} | {amiss} | {}", claims.in_words(), claims.all_hold()));
    }

    fn finding(check: &str, role: Role, verdict: Verdict) -> Finding {
        Finding {
            cell: 0,
            epoch: 0,
            arm: 1,
            phase: Phase::Before,
            protection: "tls".to_owned(),
            check: check.to_owned(),
            claim: String::new(),
            role,
            verdict,
            protected: String::new(),
            control: String::new(),
        }
    }

    #[test]
    fn unproven_and_disproven_are_counted_apart() {
        check(&["++", "++"], expect!["2 of 2 claims hold | - | true"]);
        check(
            &["--", "--", "??", "??", "++"],
            expect![
                "1 of 5 claims hold, 2 do not, 2 cannot be decided | 2 claims do not hold, 2 cannot be decided | false"
            ],
        );
        check(&["+-"], expect!["0 of 1 claim holds, 1 does not | 1 claim does not hold | false"]);
        check(&["??"], expect!["0 of 1 claim holds, 1 cannot be decided | 1 claim cannot be decided | false"]);
        check(
            &["?-", "?+"],
            expect![
                "0 of 2 claims hold, 1 does not, 1 cannot be decided | 1 claim does not hold, 1 cannot be decided | false"
            ],
        );
        check(&[], expect!["0 of 0 claims hold | - | true"]);
    }

    #[test]
    fn each_claim_of_the_users_own_counts() {
        let mut claims = Claims::default();
        for (claim, verdict) in [("a", Verdict::Holds), ("b", Verdict::Holds), ("b", Verdict::Fails)] {
            let own = finding(tithe_model::record::YOUR_CLAIM, Role::Claim, verdict);
            claims.add(&Finding { claim: claim.to_owned(), ..own });
        }
        assert_eq!(claims.in_words(), "1 of 2 claims hold, 1 does not");
    }

    #[test]
    fn what_is_out_of_reach_and_not_needed_is_told_and_not_missed() {
        let text = [Role::Strengthens, Role::Claim].map(|role| {
            let mut claims = of(&["++"]);
            claims.add(&finding("files", role, Verdict::OutOfReach));
            format!("{} | {:?} | {}", claims.in_words(), claims.amiss(), claims.all_hold())
        });
        expect![[r#"
            1 of 2 claims hold, 1 out of reach and not needed | None | true
            1 of 2 claims hold, 1 cannot be decided | Some("1 claim cannot be decided") | false"#]]
        .assert_eq(&text.join("\n"));
    }
}
