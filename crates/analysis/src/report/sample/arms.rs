//! Arms of every kind: proven, unproven, disproven, dear, noisy and faster.

use tithe_model::record::{ArmFacts, Phase, Role, Verdict};

use super::parts::{AUDIT, DISK, REPEATS, WIRE, arm, course, finding, level, published, twice};
use crate::{ArmAnalysis, Estimate, Flag, Interval, Level, Proof};

pub(super) fn plain() -> ArmAnalysis {
    ArmAnalysis {
        levels: vec![
            level("throughput", "op/s", 48_310.0, 0.021, 30),
            level("net", "µs", 38.42, 0.011, 30),
            level("cpu_per_op", "µs", 34.1, 0.008, 30),
            level("latency_p50_READ", "µs", 36.9, 0.01, 30),
            level("latency_p99_READ", "µs", 212.0, 0.09, 30),
        ],
        ..arm("plain", Proof::Baseline)
    }
}

fn levels(factor: f64) -> Vec<Level> {
    vec![level("throughput", "op/s", 48_310.0 / factor, 0.021, 30), level("cpu_per_op", "µs", 34.1 * factor, 0.008, 30)]
}

pub(super) fn tls() -> ArmAnalysis {
    let mut findings = twice(
        1,
        "tls",
        WIRE,
        Verdict::Holds,
        ["0 of 20 canaries in 412 kB; the first record is a TLS 1.3 ClientHello", "20 of 20 canaries in 398 kB"],
    );
    findings.extend(twice(
        1,
        "tls",
        ("plaintext-refused", "a client without TLS is refused"),
        Verdict::Holds,
        [
            "FATAL: no pg_hba.conf entry for host \"127.0.0.1\", user \"tithe\", database \"tithe\", no encryption",
            "served",
        ],
    ));
    let facts =
        [("cipher", "TLS_AES_256_GCM_SHA384"), ("TLS library", "OpenSSL 3.0.17 of the server, rustls of the client")];
    ArmAnalysis {
        published: vec![
            published("time", "time 40.1 → 57.2 µs", (42.6, 42.6)),
            published("time", "throughput −20% to −30%", (25.0, 42.857)),
        ],
        facts: ArmFacts {
            version: "PostgreSQL 15.14".to_owned(),
            facts: facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            configuration: vec!["ssl = on".to_owned()],
        },
        difference: ["+ ssl = on", "+ ssl_min_protocol_version = TLSv1.3", "- ssl = off"].map(str::to_owned).to_vec(),
        findings,
        course: course(5, 40.5, 0.0),
        levels: levels(1.45),
        estimates: vec![
            Estimate::new("net", "net time per op", Interval::of_percent(40.5, 38.7, 42.3), (38.42, 53.98), "µs")
                .primary(Interval::of_percent(44.1, 39.0, 49.4)),
            Estimate::new("time", "time per op", Interval::of_percent(45.4, 43.4, 47.4), (41.2, 59.9), "µs")
                .flags(&[Flag::NeighboursInTail]),
            Estimate::new("cpu", "CPU per op", Interval::of_percent(46.3, 45.0, 47.6), (34.1, 49.9), "µs"),
            Estimate::new("latency_p50_READ", "READ p50", Interval::of_percent(38.4, 37.9, 38.9), (36.9, 51.1), "µs"),
            Estimate::new("latency_p99_READ", "READ p99", Interval::of_percent(9.8, 2.0, 18.2), (212.0, 232.8), "µs")
                .counted(12, 1)
                .flags(&[Flag::NeighboursInTail]),
            Estimate::new(
                "latency_p99.9_READ",
                "READ p99.9",
                Interval { estimate: 0.02, low: f64::NEG_INFINITY, high: f64::INFINITY },
                (7512.0, 7663.0),
                "µs",
            )
            .counted(4, 1)
            .flags(&[Flag::NeighboursInTail, Flag::NotEnoughData]),
            Estimate::new("sent_bytes", "bytes sent", Interval::of_percent(35.5, 35.4, 35.6), (62.0, 84.0), "bytes/op"),
        ],
        ..arm("tls", Proof::Proven)
    }
}

/// Unproven: the audit log was complete before and could not be read after.
pub(super) fn audit() -> ArmAnalysis {
    let seen = ["200 of 200 marked statements", "0 of 200 marked statements"];
    let mut findings = vec![finding(2, Phase::Before, "audit", AUDIT, Verdict::Holds, seen)];
    let lost = ["could not read the log: No such file or directory (os error 2)", ""];
    findings.push(finding(2, Phase::After, "audit", AUDIT, Verdict::CannotTell, lost));
    ArmAnalysis {
        findings,
        course: course(1, 12.9, 14.0),
        levels: levels(1.129),
        difference: vec!["+ shared_preload_libraries = pgaudit".to_owned(), "+ pgaudit.log = read, write".to_owned()],
        estimates: vec![
            Estimate::new("net", "net time per op", Interval::of_percent(12.9, 8.4, 17.6), (38.42, 43.4), "µs")
                .primary(Interval::of_percent(13.3, 3.9, 23.5))
                .counted(15, 2)
                .flags(&[Flag::Drift]),
            Estimate::new("cpu", "CPU per op", Interval::of_percent(12.4, 11.9, 12.9), (34.1, 38.3), "µs"),
            Estimate::new("latency_p50_READ", "READ p50", Interval::of_percent(11.1, 10.6, 11.6), (36.9, 41.0), "µs"),
            Estimate::new(
                "log_bytes",
                "log bytes",
                Interval::of_percent(5100.0, 5050.0, 5150.0),
                (3.0, 156.0),
                "bytes/op",
            ),
        ],
        ..arm(
            "audit",
            Proof::Unproven(vec!["every statement stands in the audit log: cannot tell after measuring".to_owned()]),
        )
    }
}

/// Disproven: the volume keeps plaintext.
pub(super) fn luks() -> ArmAnalysis {
    let seen =
        ["canary \"T1the-7f3a\u{1b}[31m\" at 0x4f2200 of\nbase/16384/16401", "canary at 0x4f2200 of base/16384/16401"];
    ArmAnalysis {
        findings: twice(3, "luks", DISK, Verdict::Fails, seen),
        levels: levels(1.004),
        estimates: vec![
            Estimate::new("net", "net time per op", Interval::of_percent(0.4, -0.2, 0.8), (38.42, 38.57), "µs")
                .primary(Interval::of_percent(0.5, -1.9, 2.8)),
            Estimate::new("cpu", "CPU per op", Interval::of_percent(0.2, 0.1, 0.3), (34.1, 34.2), "µs"),
        ],
        ..arm("luks", Proof::Disproven(vec!["no field value in the clear below the data folder: fails".to_owned()]))
    }
}

/// A big cost, and a disclosure that the reader must see.
pub(super) fn columns() -> ArmAnalysis {
    let mut findings =
        twice(4, "column-encryption", DISK, Verdict::Holds, ["0 of 20 canaries in 31 files", "20 of 20 canaries"]);
    let repeats = ["the same 16 bytes stand 4,096 times in base/16384/16401", "does not apply"];
    for mut disclosure in twice(4, "column-encryption", REPEATS, Verdict::Fails, repeats) {
        disclosure.role = Role::Disclosure;
        findings.push(disclosure);
    }
    ArmAnalysis {
        protections: vec!["column-encryption".to_owned()],
        findings,
        levels: levels(6.4),
        estimates: vec![
            Estimate::new("net", "net time per op", Interval::of_percent(540.0, 520.0, 560.0), (38.42, 245.9), "µs")
                .primary(Interval::of_percent(910.0, 840.0, 990.0))
                .flags(&[Flag::TailDriven]),
            Estimate::new("cpu", "CPU per op", Interval::of_percent(610.0, 602.0, 619.0), (34.1, 242.0), "µs"),
            Estimate::new(
                "latency_p50_READ",
                "READ p50",
                Interval::of_percent(505.0, 500.0, 511.0),
                (36.9, 223.0),
                "µs",
            ),
            Estimate::new(
                "latency_p99_READ",
                "READ p99",
                Interval::of_percent(1240.0, 980.0, 1560.0),
                (212.0, 2841.0),
                "µs",
            )
            .counted(12, 1),
            Estimate::new(
                "disk_bytes",
                "size on disk",
                Interval::of_percent(63.0, 63.0, 63.0),
                (27_260_000.0, 44_430_000.0),
                "bytes",
            ),
        ],
        ..arm("columns", Proof::Proven)
    }
}

/// Proven, but the machine was too loud.
pub(super) fn noisy() -> ArmAnalysis {
    let mut net = Estimate::new("net", "net time per op", Interval::of_percent(1.0, -3.0, 5.1), (38.42, 38.8), "µs");
    net.more_s = Some(370.0);
    ArmAnalysis {
        findings: twice(5, "fscrypt", DISK, Verdict::Holds, ["0 of 20 canaries in 31 files", "20 of 20 canaries"]),
        levels: levels(1.01),
        estimates: vec![
            net.primary(Interval::of_percent(2.0, -6.0, 10.7)),
            Estimate::new("cpu", "CPU per op", Interval::of_percent(0.6, -0.1, 1.3), (34.1, 34.3), "µs"),
        ],
        ..arm("fscrypt", Proof::Proven)
    }
}

/// Proven, and faster than without.
pub(super) fn gains() -> ArmAnalysis {
    ArmAnalysis {
        findings: twice(
            6,
            "auth",
            ("wrong-password", "a wrong password is refused"),
            Verdict::Holds,
            ["refused", "served"],
        ),
        levels: levels(0.95),
        estimates: vec![
            Estimate::new("net", "net time per op", Interval::of_percent(-4.9, -6.8, -3.0), (38.42, 36.5), "µs")
                .primary(Interval::of_percent(-4.0, -7.7, -0.2)),
            Estimate::new("cpu", "CPU per op", Interval::of_percent(-0.42, -0.61, -0.23), (34.1, 34.0), "µs"),
        ],
        ..arm("auth", Proof::Proven)
    }
}
