//! Experiments in a few words on the command line, and refusals before anything starts.

use std::{io::Write as _, net::TcpListener, path::Path};

use expect_test::{Expect, expect};

use crate::support::{Bench, err, out, status};

#[test]
fn a_database_in_words_is_measured_and_its_experiment_kept() {
    let bench = Bench::new("words-run");
    let words = ["simulated", "--protect", "seal:cost=0.05", "--protect", "audit+placebo", "--records", "500"];
    let output = bench.tithe(&[&["run"], &words[..], &["--budget", "30 s", "--show-experiment"]].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let text = bench.kept("experiment.toml");
    expect![[r##"
        # tithe run simulated --protect seal:cost=0.05 --protect audit+placebo --records 500 --budget '30 s'
        title = "What seal:cost=0.05 and audit+placebo cost simulated database"
        database = "simulated"

        [data]
        records = 500

        [load]
        clients = 1

        [measure]
        budget = "30 s"

        [[workload]]
        ycsb = "c"

        [[arm]]
        name = "plain"

        [[arm]]
        name = "seal:cost=0.05"
        protections = [{ use = "seal", cost = 0.05 }]

        [[arm]]
        name = "audit+placebo"
        protections = [{ use = "audit" }, { use = "placebo" }]
    "##]]
    .assert_eq(&text);
    let head = "What seal:cost=0.05 and audit+placebo cost simulated database\n  arms  plain, seal:cost=0.05, audit+placebo on \
                simulated database\n  load  workload c, 500 records, 1 client\n  time  at most 30 s of load";
    assert!(err(&output).starts_with(&format!("{text}{head}")), "{}", err(&output));
    assert!(out(&output).contains("✓ audit+placebo"), "{}", out(&output));

    // The kept file is the same experiment, and `plan` of the same words shows it.
    let of_file = bench.tithe(&["plan", &bench.run_folder().join("experiment.toml").display().to_string()]);
    let of_words = bench.tithe(&[&["plan"], &words[..], &["--budget", "30 s"]].concat());
    assert_eq!((status(&of_file), status(&of_words)), (0, 0), "{}{}", err(&of_file), err(&of_words));
    let text = text.replace("# tithe run", "# tithe plan");
    assert_eq!(out(&of_words), format!("{text}\n{}", out(&of_file)));

    let output = bench.tithe(&[&["verify"], &words[..]].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let output = bench.tithe(&[&["run"], &words[..], &["--quick", "--quiet"]].concat());
    assert_eq!((status(&output), err(&output).as_str()), (0, ""), "{}", out(&output));
}

#[test]
fn mistakes_point_at_the_words() {
    let bench = Bench::new("words-mistakes");
    let check = |arguments: &[&str], expected: Expect| {
        let output = bench.tithe(arguments);
        expected.assert_eq(&format!("{}{}\n{}", out(&output), status(&output), err(&output)));
    };
    check(
        &["run", "simulated", "--protect", "sael", "--protect", "audit:cots=1", "--budget", "2 m"],
        expect![[r#"
            2
            error: there is no protection `sael`
             --> the command line:1:31
              |
            1 | tithe run simulated --protect sael --protect audit:cots=1 --budget '2 m'
              |                               ^^^^
              |
              = help: did you mean `seal`? protections of simulated are: `seal`, `audit`, `placebo`

            error: `audit` has no option `cots`
             --> the command line:1:52
              |
            1 | tithe run simulated --protect sael --protect audit:cots=1 --budget '2 m'
              |                                                    ^^^^^^
              |
              = help: did you mean `cost`? its options are: `cost`, `lose`

            error: `budget` must be a time from 1 s to 720 h with its unit (ms, s, min, h), this is `2 m`
             --> the command line:1:69
              |
            1 | tithe run simulated --protect sael --protect audit:cots=1 --budget '2 m'
              |                                                                     ^^^
              |
              = help: write for example `--budget "5 min"`

            tithe: 3 problems in the command line; nothing was started
        "#]],
    );
    check(
        &["plan", "simulated"],
        expect![[r#"
        2
        tithe: simulated alone has nothing to be compared with: add for example `--protect seal`; its protections are seal, audit, placebo (`tithe ls` explains them, `tithe init simulated` writes a file)
    "#]],
    );
    check(
        &["plan", "simulatd", "--protect", "seal"],
        expect![[r#"
            2
            tithe: simulatd is neither a file nor a database (did you mean simulated?); name an experiment file, a database (sqlite, duckdb, postgres, mariadb, mysql, redis, memcached, etcd, cassandra, opensearch, mongodb, wiredtiger, simulated, spinning, compiling, lucky) or the URL of a running server
        "#]],
    );
    check(
        &["plan", "Host=db.example;Username=app;Password=hunter2", "--protect", "tls"],
        expect![[r#"
        2
        tithe: this is a connection string of .NET, ODBC or PHP: write scheme://user@host:port/name, and give the password by the product's variable
    "#]],
    );
    check(
        &["inspect", "Host=db.example;Username=app;Password=hunter2"],
        expect![[r#"
        2
        tithe: this is a connection string of .NET, ODBC or PHP: write scheme://user@host:port/name, and give the password by the product's variable
    "#]],
    );
    check(
        &["plan", "app:hunter2@db.example:3306/shop", "--protect", "tls"],
        expect![[r#"
        2
        tithe: this is neither a file nor an address (scheme://user@host:port/name); it is not shown, because it may hold a password
    "#]],
    );
    for command in ["plan", "inspect"] {
        check(
            &[command, "https://db.example:9200"],
            expect![[r#"
            2
            tithe: https:// does not name the product: write etcds:// or opensearchs:// in its place
        "#]],
        );
    }
    check(
        &["inspect", ""],
        expect![[r#"
        2
        tithe: the URL is empty: is the variable set that it comes from?
    "#]],
    );
    check(
        &["inspect", "sqlite3:///app.db"],
        expect![[r#"
        2
        tithe: SQLite has no server: name sqlite in place of a URL, and your data by --prepare and --script
    "#]],
    );
    check(
        &["plan", "nothing.toml"],
        expect![[r#"
        2
        tithe: cannot read the experiment nothing.toml: No such file or directory (os error 2)
    "#]],
    );
    check(
        &["plan", "--protect", "seal"],
        expect![[r#"
        2
        tithe: --protect needs a database: name it, or the URL of a running server, as in `tithe plan postgres --protect tls`
    "#]],
    );
    check(
        &["plan", "simulated", "--protect", "seal", "--scale", "0.1"],
        expect![[r#"
        2
        tithe: --scale is for files: without one write --records N
    "#]],
    );
    check(
        &["plan", "mysq://ann@db", "--protect", "tls"],
        expect![[r#"
            2
            tithe: a URL begins with one of postgres, postgresql, mariadb, mysql, redis, rediss, redis+unix, memcached, memcacheds, memcached+unix, etcd, etcds, cassandra, opensearch, opensearchs, mongodb and :// (did you mean mysql?)
        "#]],
    );
}

#[test]
fn no_message_repeats_a_password_of_the_command_line() {
    let bench = Bench::new("words-secret");
    let url = "postgres://app:hunter2@db.example/shop";
    for words in [&["run", "simulated", url][..], &["calibrate", url], &["ls", url], &["report", url], &["get", url]] {
        let output = bench.tithe(words);
        assert!(status(&output) != 0 && !err(&output).contains("hunter2"), "{words:?}: {}", err(&output));
    }
    assert!(err(&bench.tithe(&["calibrate", url])).contains("calibrate takes a file or the name of a database"));
}

#[test]
fn a_page_of_a_run_is_no_report_to_read() {
    let bench = Bench::new("words-page");
    bench.file("report.html", "<!DOCTYPE html>\n<title>x</title>\n");
    bench.file("report.json", "\u{feff}{}");
    let page = ("report.html", "name the run folder, or its report.json");
    for (name, told) in [page, ("report.json", "no report of tithe")] {
        let output = bench.tithe(&["report", name]);
        assert!(status(&output) == 2 && err(&output).contains(told), "{}", err(&output));
    }
}

#[test]
fn data_that_nothing_would_use_are_refused() {
    let bench = Bench::new("words-prepare");
    bench.file("e.toml", "title = \"x\"\n");
    for (words, told) in [
        (&["simulated", "--protect", "seal"][..], "there is neither: name your statements"),
        (&["e.toml"][..], "--prepare cannot change e.toml"),
        (&[][..], "--prepare needs a database"),
    ] {
        let output = bench.tithe(&[&["plan"], words, &["--prepare", "shop.sql"]].concat());
        assert_eq!(status(&output), 2, "{}", out(&output));
        assert!(err(&output).contains(told), "{}", err(&output));
    }
}

#[test]
fn a_product_by_another_name_is_guessed() {
    let bench = Bench::new("words-names");
    for (name, id) in [("valkey", "redis"), ("pgsql", "postgres")] {
        let told = err(&bench.tithe(&["plan", name, "--protect", "tls"]));
        assert!(told.contains(&format!("{name} is neither a file nor a database (did you mean {id}?)")), "{told}");
    }
}

#[test]
fn what_speaks_another_protocol_is_named() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("postgres://ann@{}/shop", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let mut opened = Vec::new();
        for mut socket in listener.incoming().flatten() {
            let _ = socket.write_all(b"SSH-2.0-other\r\n");
            opened.push(socket);
        }
    });
    let output = Bench::new("words-protocol").tithe(&["inspect", &url]);
    assert_eq!((status(&output), out(&output)), (4, String::new()));
    let words = "is it a PostgreSQL server? it greets with `SSH-2.0-other`";
    assert!(err(&output).contains(words), "{}", err(&output));
}

#[test]
fn a_file_wins_and_says_its_own_arms() {
    let bench = Bench::new("words-file");
    let written = bench.tithe(&["init", "simulated", "--to", "simulated"]);
    assert_eq!(status(&written), 0, "{}", err(&written));
    let output = bench.tithe(&["plan", "simulated"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    expect![[r#"
        tithe: simulated is a file here, and tithe reads it; to measure simulated database, run tithe in a folder without a file of that name
    "#]].assert_eq(&err(&output));
    for words in [&["--protect", "seal"][..], &["--workload", "a"]] {
        let output = bench.tithe(&[&["plan", "simulated"], words].concat());
        assert_eq!(status(&output), 2, "{}", out(&output));
        assert!(err(&output).contains("which is a file and names its own arms"), "{}", err(&output));
    }
    // Existing files are not overwritten.
    let again = bench.tithe(&["init", "simulated", "--to", "simulated"]);
    assert_eq!(status(&again), 1, "{}", err(&again));

    // `--quick` and `--records` work for files as well.
    let quick = out(&bench.tithe(&["plan", "simulated", "--quick", "--records", "700"]));
    assert!(quick.contains("700 records"), "{quick}");
}

#[test]
fn an_experiment_file_is_written_with_comments() {
    let bench = Bench::new("words-init");
    let output = bench.tithe(&["init", "simulated"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    expect![[r##"
        # tithe init simulated
        #
        # tithe plan FILE    what it does, how long it takes, what each arm changes; starts nothing
        # tithe verify FILE  every arm once with its evidence; times nothing
        # tithe run FILE     measures, and reports the costs with their proof

        title = "What seal, audit and placebo cost simulated database"
        database = "simulated"

        [data]
        records = 20_000    # of 1 KB; where they do not fit in the server's memory, reads come from the disk

        [load]
        clients = 1    # busy at the same time; `[1, 4, 16]` measures several numbers, "sweep" 1 to 64

        [measure]
        budget = "2 min"    # of measured load for all cells; starting and loading servers comes on top

        [[workload]]
        ycsb = "c"    # Reads only: a cache of user profiles

        [[arm]]
        name = "plain"    # the baseline: every other arm is compared with it

        # sealed data file; protects against: attackers who read the data file.
        # cost = -0.5 to 10: What it adds to the time of an operation, as a share: 0.05 is five percent.
        [[arm]]
        name = "seal"
        protections = [{ use = "seal" }]

        # audit log; protects against: users who deny what they did.
        # cost = -0.5 to 10: What it adds to the time of an operation, as a share: 0.05 is five percent.
        # lose = 0 to 1: Share of the records that is lost.
        [[arm]]
        name = "audit"
        protections = [{ use = "audit" }]

        # placebo; protects against: nothing: it shows what is measured where there is nothing to measure.
        # cost = -0.5 to 10: What it adds to the time of an operation, as a share: 0.05 is five percent.
        [[arm]]
        name = "placebo"
        protections = [{ use = "placebo" }]
    "##]]
    .assert_eq(&out(&output));
    assert_eq!(status(&bench.tithe(&["init", "nothing"])), 2);
}

#[test]
fn the_built_in_experiment_fits_every_budget() {
    let bench = Bench::new("words-built-in");
    let plan = |arguments: &[&str]| {
        let output = bench.tithe(&[&["plan"], arguments].concat());
        (status(&output), err(&output))
    };
    assert_eq!(plan(&["--scale", "0.1"]), (0, String::new()));
    assert_eq!(plan(&["--records", "500"]), (0, String::new()));
    let (status, told) = plan(&["--budget", "1 min"]);
    assert_eq!((status, told.as_str()), (0, ""), "all of it");
    let (status, told) = plan(&["--quick"]);
    expect![[r#"
        0 tithe: 30 s of load is enough for a part of the built-in experiment only: workload C, larger than the cache
    "#]]
    .assert_eq(&format!("{status} {told}"));
    assert_eq!(plan(&["--budget", "10 s"]).0, 2);
}

/// A URL without a server.
const URL: &str = "postgres://ann@127.0.0.1:9/shop";

#[test]
fn a_running_server_is_planned_from_its_url() {
    let bench = Bench::new("words-url");
    let check = |arguments: &[&str], expected: Expect| {
        let output = bench.tithe(arguments);
        expected.assert_eq(&format!("{}{}\n{}", out(&output), status(&output), err(&output)));
    };
    check(
        &["plan", URL, "--protect", "pgaudit:log=read", "--protect", "log-statement"],
        expect![[r##"
            # tithe plan postgres://ann@127.0.0.1:9/shop --protect pgaudit:log=read --protect log-statement
            title = "What pgaudit:log=read and log-statement cost PostgreSQL"
            database = "postgres"

            [data]
            records = 20_000

            [load]
            clients = 1

            [measure]
            budget = "2 min"

            [[workload]]
            ycsb = "c"

            [[arm]]
            name = "plain"
            url = "postgres://ann@127.0.0.1:9/shop"

            [[arm]]
            name = "pgaudit:log=read"
            protections = [{ use = "pgaudit", log = "read" }]
            url = "postgres://ann@127.0.0.1:9/shop"
            on = ["SET pgaudit.log = 'read'", "SET pgaudit.log_catalog = off", "SET pgaudit.log_parameter = true"]
            off = ["RESET pgaudit.log"]

            [[arm]]
            name = "log-statement"
            protections = [{ use = "log-statement" }]
            url = "postgres://ann@127.0.0.1:9/shop"
            on = ["SET log_statement = 'all'"]
            off = ["RESET log_statement"]

            What pgaudit:log=read and log-statement cost PostgreSQL
            PostgreSQL, 20,000 records, YCSB's printable values, seed 1

            Arms
              plain             plain, the baseline, attached to postgres://ann@127.0.0.1:9/shop
              pgaudit:log=read  pgaudit (by = session, log = read, parameter = true, sink = any), attached to postgres://ann@127.0.0.1:9/shop
              log-statement     log-statement, attached to postgres://ann@127.0.0.1:9/shop

            Cells
              cell  clients  load         slot   frame  frames    starts
              c     1        closed loop  20 ms  1.5 s  15 to 80  1

            A cell ends when net time per operation (processor time where net time is unknown) is known to ±1.00 %, or with its last frame.
            Measured load     at most 2 min
            Everything else   roughly 60 s: starting, loading, warming up, evidence
            Disk              roughly 154 MB at a time
            Few starts        cell c: one start, so its intervals reach ±0.18 % at least
                              because starts differ by 0.07 % (three arms of one PostgreSQL 15 over 6 starts of 32 s, workload C, 10,000 records, 1 client, 2 processors, 2026-11)

            What each arm changes
              pgaudit:log=read
                + on: SET pgaudit.log = 'read'
                + on: SET pgaudit.log_catalog = off
                + on: SET pgaudit.log_parameter = true
              log-statement
                + on: SET log_statement = 'all'

            What proves each arm
              pgaudit:log=read
                pgaudit: needed: audit-complete
                pgaudit: reported: logs-free, pgcrypto-trap
              log-statement
                log-statement: needed: statement-log
                log-statement: reported: logs-free, pgcrypto-trap
            0
        "##]],
    );
    check(
        &["plan", URL, "--protect", "tls"],
        expect![[r#"
            2
            error: arm `tls` asks for TLS: its URL needs sslmode=verify-full (or verify-ca) and sslrootcert=FILE (or system)
             --> the command line:1:12
              |
            1 | tithe plan postgres://ann@127.0.0.1:9/shop --protect tls
              |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = help: change the URL, or the protections of the arm

            tithe: 1 problem in the command line; nothing was started
        "#]],
    );
    bench.certificate("ca.pem");
    let with_tls = format!("{URL}?sslmode=verify-full&sslrootcert=ca.pem");
    check(
        &["plan", &with_tls, "--protect", "tls", "--protect", "tls:version=1.2"],
        expect![[r#"
            2
            error: arms `tls` and `tls:version=1.2` ask one server for tls in two ways (version = 1.3, version = 1.2), and it has one configuration
             --> the command line:1:13
              |
            1 | tithe plan 'postgres://ann@127.0.0.1:9/shop?sslmode=verify-full&sslrootcert=ca.pem' --protect tls --protect tls:version=1.2
              |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              |
              = help: give one of them a server, or a port, of its own, or leave one out

            tithe: 1 problem in the command line; nothing was started
        "#]],
    );
    check(
        &["plan", &format!("{URL}?sslmode=prefer"), "--protect", "tls"],
        expect![[r#"
            2
            tithe: sslmode=prefer and allow may fall back to plaintext, so what is measured would be left to chance; write disable, require, verify-ca or verify-full; nothing was started
        "#]],
    );
    check(
        &["plan", URL, "--protect", "checksums"],
        expect![[r#"
            2
            error: `checksums` cannot be measured on a server that Tithe does not start
             --> the command line:1:54
              |
            1 | tithe plan postgres://ann@127.0.0.1:9/shop --protect checksums
              |                                                      ^^^^^^^^^
              |
              = help: name the database in place of its URL to let Tithe start the servers; attached servers can be measured with: `tls`, `pgaudit`, `log-statement`, `row-security`, `scram`, `statement-timeout`, `columns`, `ordinary-statements`

            tithe: 1 problem in the command line; nothing was started
        "#]],
    );
    for (target, plain, words) in [
        ("postgres", URL, "--plain is for running servers: name the URL of one in place of postgres"),
        (URL, "redis://db", "--plain needs the URL of a running server: postgres://… or postgresql://…"),
        (URL, "postgres://ann:hunter2@db/shop", "the URL contains a password"),
    ] {
        let output = bench.tithe(&["plan", target, "--plain", plain, "--protect", "tls"]);
        let told = format!("{}{}", out(&output), err(&output));
        assert_eq!(status(&output), 2, "{told}");
        assert!(told.contains(words) && !told.contains("hunter2"), "{told}");
    }
    for secret in
        ["postgres://ann:hunter2@db/shop", "postgres://ann@db/shop?password=hunter2", "postgres://a:hunter2@b@c"]
    {
        let output = bench.tithe(&["run", secret, "--protect", "tls"]);
        let told = format!("{}{}", out(&output), err(&output));
        assert_eq!(status(&output), 2, "{told}");
        assert!(told.contains("PGPASSWORD") && !told.contains("hunter2"), "{told}");
    }
    let told = err(&bench.tithe(&["run", &format!("{URL}?sslmod=hunter2"), "--protect", "tls"]));
    assert!(told.contains("option sslmod is not known") && !told.contains("hunter2"), "{told}");
}

#[test]
fn what_verify_would_refuse_is_told_with_its_line() {
    let bench = Bench::new("words-refused");
    let experiment = |arms: &str| {
        format!(
            "title = \"t\"\ndatabase = \"postgres\"\n[data]\nrecords = 500\n[[workload]]\nycsb = \"c\"\n[[arm]]\n\
             name = \"plain\"\nurl = \"{URL}\"\n{arms}"
        )
    };
    let arm = |name: &str, more: &str, url: &str| {
        format!("[[arm]]\nname = \"{name}\"\nprotections = [{{ use = \"tls\"{more} }}]\nurl = \"{url}\"\n")
    };
    let planned = |text: &str| {
        let path = bench.file("e.toml", text);
        bench.tithe(&["plan", &path.file_name().map(Path::new).expect("a name").display().to_string()])
    };
    let check = |text: &str, expected: Expect| {
        let output = planned(text);
        expected.assert_eq(&format!("{}{}\n{}", out(&output), status(&output), err(&output)));
    };
    check(
        &experiment(&arm("tls", "", "postgres://ann:hunter2@127.0.0.1:10/shop")),
        expect![[r#"
            2
            error: arm `tls` asks for TLS: its URL needs sslmode=verify-full (or verify-ca) and sslrootcert=FILE (or system)
              --> e.toml:13:7
               |
            13 | url = "postgres://*****************************"
               |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               |
               = help: change the URL, or the protections of the arm

            tithe: 1 problem in e.toml; nothing was started
        "#]],
    );
    check(
        &experiment(&arm("tls", "", "postgres://ann@127.0.0.1:10/shop?sslmode=require")),
        expect![[r#"
            2
            error: arm `tls` asks for TLS, and its URL takes any certificate, so that a machine in between could pose as the server: it needs sslmode=verify-full (or verify-ca) and sslrootcert=FILE (or system)
              --> e.toml:13:7
               |
            13 | url = "postgres://*************************************"
               |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               |
               = help: change the URL, or the protections of the arm

            tithe: 1 problem in e.toml; nothing was started
        "#]],
    );
    // The file does not exist yet.
    check(
        &experiment(&arm("tls", "", "postgres://ann@127.0.0.1:10/shop?sslmode=verify-full&sslrootcert=ca.pem")),
        expect![[r#"
            2
            error: arm `tls`: ca.pem: I/O error: No such file or directory (os error 2)
              --> e.toml:13:7
               |
            13 | url = "postgres://************************************************************"
               |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               |
               = help: change the URL, or the protections of the arm

            tithe: 1 problem in e.toml; nothing was started
        "#]],
    );
    bench.certificate("ca.pem");
    let server = "postgres://ann@127.0.0.1:10/shop?sslmode=verify-full&sslrootcert=ca.pem";
    let other = "postgres://bob@127.0.0.1:10/other?sslmode=verify-full&sslrootcert=ca.pem";
    check(
        &experiment(&format!("{}{}", arm("1.3", "", server), arm("1.2", ", version = \"1.2\"", other))),
        expect![[r#"
            2
            error: arms `1.3` and `1.2` ask one server for tls in two ways (version = 1.3, version = 1.2), and it has one configuration
              --> e.toml:17:7
               |
            17 | url = "postgres://*************************************************************"
               |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
               |
               = help: give one of them a server, or a port, of its own, or leave one out

            tithe: 1 problem in e.toml; nothing was started
        "#]],
    );
    // Another server than that of the other arms; which port of a host is the one for TLS cannot be seen.
    let plain = |name: &str, url: &str| format!("[[arm]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    let twin = "postgres://ann@db2.example/shop";
    let on_one = plain("again", "postgres://ann@localhost:9/shop");
    check(
        &experiment(&format!("{on_one}{}", plain("twin", twin))),
        expect![[r#"
        2
        error: arm `twin` uses another server than all others, and arms `plain` and `again` share one: the shared one stays warmer, which has nothing to do with a protection
          --> e.toml:15:7
           |
        15 | url = "postgres://********************"
           |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           |
           = help: give every arm a server of its own, or all arms the same one, by the same host and port in every URL

        tithe: 1 problem in e.toml; nothing was started
    "#]],
    );
    for arms in [format!("{on_one}{}", arm("tls", "", server)), plain("twin", twin)] {
        let output = planned(&experiment(&arms));
        assert_eq!(status(&output), 0, "{}", err(&output));
    }
}

/// A property file as users have it needs no experiment: its records, clients and rate are used, and the command line
/// takes precedence.
#[test]
fn a_property_file_is_measured_without_an_experiment() {
    let bench = Bench::new("words-ycsb-file");
    let text = "\u{feff}# by Windows\r\nrecordcount=400\r\nthreadcount=2\r\nreadproportion=1\r\nupdateproportion=0\r\n\
                tikv.pd=127.0.0.1:2379\r\n";
    bench.file("mine.properties", text);
    let words = ["simulated", "--protect", "seal:cost=0.05", "--ycsb-file", "mine.properties", "--budget", "30 s"];
    let output = bench.tithe(&[&["plan"], &words[..]].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let told = out(&output);
    for line in [
        "# records: as the property file says",
        "ycsb_file = \"mine.properties\"",
        "Simulated database, 400 records",
        "recordcount = 400  is `records` of the experiment",
        "threadcount = 2    is `clients` of the experiment",
        "Not used          tikv.pd of mine: the experiment's database and arms decide it",
    ] {
        assert!(told.to_lowercase().contains(&line.to_lowercase()), "{line} is not in: {told}");
    }
    let output = bench.tithe(&[&["plan"], &words[..], &["--records", "500", "--clients", "3"]].concat());
    let told = out(&output);
    for line in ["recordcount = 400  overridden by `records` of", "threadcount = 2    overridden by `clients` of"] {
        assert!(told.contains(line), "{line} is not in: {told}{}", err(&output));
    }
    let output = bench.tithe(&[&["run"], &words[..], &["--quiet"]].concat());
    assert_eq!(status(&output), 0, "{}{}", out(&output), err(&output));
    let output = bench.tithe(&["plan", "simulated", "--protect", "seal", "--ycsb-file", "nowhere.properties"]);
    assert_eq!(status(&output), 2, "{}", out(&output));
    assert!(err(&output).contains("cannot be read"), "{}", err(&output));
}

/// A user's own workload needs no choice of a protection either.
#[test]
fn a_property_file_is_measured_with_the_first_protection() {
    let bench = Bench::new("words-first");
    bench.file("mine.properties", "recordcount=400\n");
    let output = bench.tithe(&["plan", "sqlite", "--ycsb-file", "mine.properties"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    assert!(out(&output).contains("page-encryption"), "{}", out(&output));
}
