//! Every experiment file in Tithe's repository can be planned in this build.

#![allow(clippy::print_stderr, reason = "a test says what it left out")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use expect_test::expect;
use tithe_harness::{arms, catalogue};
use tithe_model::{
    catalogue::{Catalogue, NetworkLogin, WireProtocol},
    diagnostic::Diagnostic,
    experiment::{self, OptionValue},
    parse, plan,
};
use tithe_plugin::{
    product::Product,
    protection::ways,
    setup::{Authentication, Setup},
};

/// What a build offers, and its databases.
type Build<'a> = (&'a Catalogue, &'a [&'static dyn Product]);

/// Looks at this build, and at one with the default features: `cargo test -p tithe-databases` is the second one.
fn in_each_build(look: impl Fn(Build<'_>)) {
    let manifest: toml::Table = include_str!("../Cargo.toml").parse().expect("a manifest");
    let default = manifest["features"]["default"].as_array().expect("a list");
    let is_default = |database: &&&dyn Product| default.iter().any(|name| name.as_str() == Some(database.id()));
    let all = tithe_databases::all();
    let by_default: Vec<&dyn Product> = all.iter().filter(is_default).copied().collect();
    assert_eq!(by_default.len(), default.len(), "a database for each default feature");
    for databases in [all, by_default.as_slice()] {
        look((&catalogue::catalogue(databases), databases));
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_experiment_makes_a_plan() {
    let catalogue = &catalogue::catalogue(tithe_databases::all());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files: Vec<PathBuf> =
        files(&folder).into_iter().filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    let mut planned = 0;
    for path in &files {
        let text = fs::read_to_string(path).expect("a file");
        if path.ends_with("matrix.toml") {
            let matrix =
                parse::matrix(&text).unwrap_or_else(|diagnostics| panic!("{}: {diagnostics:?}", path.display()));
            // They are in the same folder, and planned with all others.
            assert!(matrix.experiments.iter().all(|name| path.with_file_name(name).exists()), "{}", path.display());
            continue;
        }
        let read = |name: &str| fs::read(path.with_file_name(name));
        let experiment = match parse::parse(&text, catalogue, &read) {
            Err(diagnostics) if diagnostics.iter().any(|it| it.problem.starts_with("there is no database")) => {
                eprintln!("LEFT OUT, its database is not in this build: {}", path.display());
                continue;
            }
            outcome => outcome.unwrap_or_else(|diagnostics| panic!("{}: {diagnostics:?}", path.display())),
        };
        for described in &experiment.workloads {
            tithe_workloads::make(described, &experiment.data, experiment.measure.seed)
                .unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
        }
        plan::plan(experiment, catalogue).unwrap_or_else(|diagnostics| panic!("{}: {diagnostics:?}", path.display()));
        planned += 1;
    }
    assert!(files.len() > 30 && planned > 25, "{planned} of {}", files.len());
}

/// An experiment with an arm that has `chosen`, and the setting `name`, in line 5.
fn with_setting(database: &dyn Product, chosen: &experiment::Protection, name: &str) -> String {
    let option = |(name, value): (&String, &OptionValue)| match value {
        OptionValue::Number(number) => format!(", {name} = {number}"),
        OptionValue::Text(text) => format!(", {name} = {text:?}"),
        OptionValue::Flag(flag) => format!(", {name} = {flag}"),
    };
    let options: String = chosen.options.iter().map(option).collect();
    format!(
        "title = \"t\"\ndatabase = \"{}\"\ndata.records = 1000\n[settings]\n{name:?} = \"1\"\n[[workload]]\nycsb = \"c\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"protected\"\nprotections = [{{ use = \"{}\"{options} }}]\n",
        database.id(),
        chosen.id,
    )
}

/// The experiment in `text`, which names no other file.
fn parsed(text: &str, catalogue: &Catalogue) -> Result<experiment::Experiment, Vec<Diagnostic>> {
    parse::parse(text, catalogue, &|_| Err(std::io::ErrorKind::NotFound.into()))
}

/// The message about line 5; empty if there is none, whatever messages there are about other lines.
fn diagnostic_about(text: &str, catalogue: &Catalogue) -> String {
    let diagnostics = parsed(text, catalogue).err();
    let line = |at: usize| 1 + text[..at].matches('\n').count();
    let about = diagnostics.into_iter().flatten().filter(|it| it.range.as_ref().is_some_and(|at| line(at.start) == 5));
    about.map(|it| it.problem).collect()
}

/// An experiment cannot set what a protection sets: nothing that it asks for is lost silently.
#[test]
fn every_setting_of_a_protection_is_refused() {
    in_each_build(|(catalogue, databases)| {
        let (mut refused, mut combined) = (0, std::collections::BTreeSet::new());
        for database in databases {
            for protection in arms::all(*database) {
                for chosen in ways(protection) {
                    let mut setup = Setup::bare();
                    protection.apply(&chosen, &mut setup);
                    for name in setup.settings.keys() {
                        let modifiers =
                            database.entry().setting_modifiers.iter().map(|modifier| format!("{modifier}{name}"));
                        for spelled in [name.clone(), name.to_ascii_uppercase()].into_iter().chain(modifiers) {
                            match diagnostic_about(&with_setting(*database, &chosen, &spelled), catalogue) {
                                said if said.contains("cannot be set") => refused += 1,
                                said if said.is_empty() => {
                                    _ = combined.insert(format!("{} {spelled}", database.id()));
                                }
                                said => panic!("{} {spelled}: {said}", database.id()),
                            }
                        }
                    }
                }
            }
        }
        assert!(refused > 30, "{refused}");
        // The experiment's value is in addition to the protection's, or replaces it.
        expect![[r#"
        mariadb innodb_encryption_threads
        mariadb plugin_load_add
        postgres shared_preload_libraries"#]]
        .assert_eq(&Vec::from_iter(combined).join("\n"));
    });
}

/// Where the experiment names the product, addresses are taken as its other clients write them, TLS included.
#[test]
fn addresses_by_http_are_taken_if_clients_of_the_product_write_them() {
    in_each_build(|(catalogue, databases)| {
        for database in databases.iter().filter(|database| !database.entry().schemes.is_empty()) {
            let text = format!(
                "title = \"t\"\ndatabase = \"{}\"\ndata.records = 1000\n[[workload]]\nycsb = \"c\"\n[[arm]]\nname = \
                 \"plain\"\nurl = \"http://db:7\"\n[[arm]]\nname = \"protected\"\nurl = \"https://db:7\"\n\
                 protections = [{{ use = \"tls\" }}]\n",
                database.id()
            );
            let read = parsed(&text, catalogue);
            let Some((tls, plain)) = database.entry().url_tls.schemes.filter(|_| database.entry().over_http) else {
                let refused = read.expect_err("no scheme of its own").into_iter().map(|it| it.problem);
                assert_eq!(refused.filter(|problem| problem.starts_with("the scheme `http")).count(), 2);
                continue;
            };
            let arms = read.expect("addresses of its own").arms;
            let schemes: Vec<&str> = arms.iter().flat_map(|arm| &arm.url).map(|url| url.scheme()).collect();
            assert_eq!(schemes, [plain, tls]);
        }
    });
}

/// Strings of a script end where the servers of the experiment end them.
#[test]
fn scripts_are_read_as_their_servers_read_them() {
    in_each_build(|(catalogue, databases)| {
        for database in databases {
            let text = format!(
                "title = \"t\"\ndatabase = \"{}\"\n[[workload]]\nscript = \"a.sql\"\n[[arm]]\nname = \"plain\"\n\
                 [[arm]]\nname = \"protected\"\nprotections = [{{ use = \"tls\" }}]\n",
                database.id()
            );
            let read = parse::parse(&text, catalogue, &|_| Ok(br"SELECT 'it\'s';".to_vec()));
            let is_open = |it: &Diagnostic| it.problem.contains("a string is not closed");
            let is_refused = read.err().unwrap_or_default().iter().any(is_open);
            let escapes = database.entry().wire_protocol == Some(WireProtocol::MySql);
            assert_eq!(is_refused, !escapes, "{}", database.id());
        }
    });
}

/// A protection that changes keys during the measurement states that as data, and is then planned with one start.
#[test]
fn every_protection_that_changes_keys_is_known_to() {
    in_each_build(|(catalogue, databases)| {
        let mut rotating = Vec::new();
        for database in databases {
            let offered = catalogue.database(database.id()).expect("a database of this build");
            for protection in arms::all(*database) {
                for chosen in ways(protection) {
                    let mut setup = Setup::bare();
                    protection.apply(&chosen, &mut setup);
                    assert_eq!(setup.changes_keys(), offered.rotates(&chosen), "{} {chosen:?}", database.id());
                    rotating.extend(setup.changes_keys().then(|| format!("{} {}", database.id(), chosen.id)));
                }
            }
        }
        assert!(rotating.contains(&"mariadb encryption".to_owned()), "{rotating:?}");
        assert!(rotating.contains(&"postgres volume-luks2".to_owned()), "{rotating:?}");
    });
}

/// An experiment on `database` whose servers listen on a network address, with an arm of `protections`.
fn in_a_network(database: &dyn Product, protections: &str) -> String {
    format!(
        "title = \"t\"\ndatabase = \"{}\"\ndata.records = 1000\n[load]\nlisten = \"192.0.2.5\"\n[[workload]]\nycsb = \"c\"\n\
         [[arm]]\nname = \"plain\"\n[[arm]]\nname = \"protected\"\nprotections = [{protections}]\n",
        database.id(),
    )
}

/// How the clients of all arms of `text`, which are the same in this respect, log in.
fn login(database: &dyn Product, text: &str, catalogue: &Catalogue) -> String {
    let experiment = parsed(text, catalogue).expect("it is accepted");
    let plan = plan::plan(experiment, catalogue).expect("what was parsed can be planned");
    let arms = arms::resolve(database, &plan.experiment).expect("its protections are there");
    let setups = arms.iter().map(|arm| arm.setup(&plan, &plan.cells[0], &Setup::bare().credentials));
    let mut logins: Vec<String> =
        setups.map(|setup| format!("{:?}", setup.expect("no key is asked for").authentication)).collect();
    logins.dedup();
    assert_eq!(logins.len(), 1, "{logins:?}");
    logins.remove(0)
}

#[test]
fn in_a_network_all_arms_log_in_alike() {
    in_each_build(|(catalogue, databases)| {
        // One by one, because not every build has all of them.
        let expected = [
            ("sqlite", expect!["`listen` needs a server, and sqlite has none"]),
            ("duckdb", expect!["`listen` needs a server, and duckdb has none"]),
            ("postgres", expect![[r#"Password { mechanism: "scram-sha-256" }"#]]),
            ("mariadb", expect![[r#"Password { mechanism: "mysql_native_password" }"#]]),
            ("mysql", expect![[r#"Password { mechanism: "caching_sha2_password" }"#]]),
            ("redis", expect![[r#"Password { mechanism: "requirepass" }"#]]),
            ("memcached", expect![[r#"Password { mechanism: "auth-file" }"#]]),
            ("etcd", expect![[r#"Password { mechanism: "password" }"#]]),
            (
                "cassandra",
                expect![
                    "`listen` cannot be given for cassandra: its nodes have loopback addresses of their own, and everybody knows the password of a new cluster's first account"
                ],
            ),
            (
                "opensearch",
                expect![
                    "`listen` cannot be given for opensearch: everybody knows the password of a new server's first account"
                ],
            ),
            (
                "mongodb",
                expect!["`listen` cannot be given for mongodb: it lets its first account be made from 127.0.0.1 alone"],
            ),
            ("wiredtiger", expect!["`listen` needs a server, and wiredtiger has none"]),
        ];
        for database in databases {
            let (_, expected) =
                expected.iter().find(|(id, _)| *id == database.id()).expect("a line for every database");
            let text = in_a_network(*database, "{ use = \"tls\" }");
            let told = match diagnostic_about(&text, catalogue) {
                said if said.is_empty() => login(*database, &text, catalogue),
                said => said,
            };
            expected.assert_eq(&told);
        }
    });
}

/// Every protection with which clients log in states it, and no other: in a network it cannot have an arm without a
/// login.
#[test]
fn protections_by_which_clients_log_in_stay_off_networks() {
    in_each_build(|(catalogue, databases)| {
        let mut told = String::new();
        for database in databases {
            for protection in arms::all(*database) {
                for chosen in ways(protection) {
                    let mut setup = Setup::bare();
                    protection.apply(&chosen, &mut setup);
                    let logs_in = setup.authentication != Authentication::None;
                    assert_eq!(logs_in, protection.entry().login, "{} {chosen:?}", database.id());
                }
                let opened = matches!(database.entry().network_login, NetworkLogin::Password(_));
                if protection.entry().login && opened {
                    let text = in_a_network(*database, &format!("{{ use = \"{}\" }}", protection.entry().id));
                    told += &format!("{}: {}\n", database.id(), diagnostic_about(&text, catalogue));
                }
            }
        }
        expect![[r#"
        postgres: `listen` lets other machines reach the servers, so every arm asks for a password, and there is no arm without one to compare `scram` of arm `protected` with
        mariadb: `listen` lets other machines reach the servers, so every arm asks for a password, and there is no arm without one to compare `password` of arm `protected` with
        mysql: `listen` lets other machines reach the servers, so every arm asks for a password, and there is no arm without one to compare `password` of arm `protected` with
        redis: `listen` lets other machines reach the servers, so every arm asks for a password, and there is no arm without one to compare `requirepass` of arm `protected` with
        redis: `listen` lets other machines reach the servers, so every arm asks for a password, and there is no arm without one to compare `acl` of arm `protected` with
        memcached: `listen` lets other machines reach the servers, so every arm asks for a password, and there is no arm without one to compare `auth-file` of arm `protected` with
        etcd: `listen` lets other machines reach the servers, so every arm asks for a password, and there is no arm without one to compare `password` of arm `protected` with
    "#]].assert_eq(&told);
    });
}

/// The same for settings that the server's files contain in place of the protection, and that are in no list of Tithe's
/// own settings.
#[test]
fn settings_that_a_launch_writes_for_a_protection_are_refused() {
    in_each_build(|(catalogue, databases)| {
        for (id, use_, name) in [
            ("mariadb", "encryption", "file-key-management-filename"),
            ("mongodb", "tls", "net.tls.CAFile"),
            ("mongodb", "scram", "setParameter.authenticationMechanisms"),
        ] {
            let Some(database) = databases.iter().find(|database| database.id() == id) else { continue };
            let protection = arms::named(*database, use_).expect("a protection");
            let said = diagnostic_about(&with_setting(*database, &ways(protection)[0], name), catalogue);
            assert_eq!(said, format!("`{name}` cannot be set: the protection `{use_}` of arm `protected` sets it"));
        }
    });
}

/// The same for settings that would undo a protection without changing what it sets: who else counts as a client, and
/// where else a server writes, which may be outside a protected volume.
#[test]
fn settings_that_undo_a_protection_are_refused() {
    const OF_BOTH: [&str; 7] = [
        "innodb_data_home_dir",
        "innodb-log-group-home-dir",
        "innodb_tmpdir",
        "log_bin_index",
        "relay_log",
        "slow_query_log_file",
        "ssl_capath",
    ];
    in_each_build(|(catalogue, databases)| {
        for (id, names) in [
            ("mongodb", &["net.tls.allowInvalidCertificates", "net.tls.clusterCAFile", "net.ssl.CAFile"][..]),
            ("redis", &["tls-ca-cert-dir"][..]),
            ("mysql", &OF_BOTH[..]),
            ("mysql", &["innodb_redo_log_archive_dirs", "innodb_temp_tablespaces_dir"][..]),
            ("mariadb", &OF_BOTH[..]),
            ("mariadb", &["aria_log_dir_path", "innodb_undo_directory", "log_slow_query_file"][..]),
        ] {
            let Some(database) = databases.iter().find(|database| database.id() == id) else { continue };
            let tls = arms::named(*database, "tls").expect("a protection");
            for name in names {
                let said = diagnostic_about(&with_setting(*database, &ways(tls)[0], name), catalogue);
                assert!(said.contains("cannot be set: "), "{id} {name}: {said}");
            }
        }
    });
}

/// The experiment switches the binary log of a server on and off; it may not set its location.
#[test]
fn a_binary_log_is_the_experiments_to_switch() {
    in_each_build(|(catalogue, databases)| {
        for database in databases.iter().filter(|database| ["mariadb", "mysql"].contains(&database.id())) {
            let tls = arms::named(*database, "tls").expect("a protection");
            parsed(&with_setting(*database, &ways(tls)[0], "log_bin"), catalogue).expect("it is accepted");
        }
    });
}

/// Settings that no protection of the experiment changes are free, even if another protection would set them.
#[test]
fn settings_of_other_protections_are_free() {
    in_each_build(|(catalogue, databases)| {
        for database in databases.iter().filter(|database| ["postgres", "redis"].contains(&database.id())) {
            let tls = arms::named(*database, "tls").expect("a protection");
            for name in ["log_statement", "appendonly"] {
                parsed(&with_setting(*database, &ways(tls)[0], name), catalogue).expect("it is accepted");
            }
        }
    });
}

/// Which program drives which database follows from the protocols of both: what drives MariaDB drives MySQL.
#[test]
fn programs_drive_what_speaks_their_protocol() {
    let data = experiment::Data { records: 100_000, values: experiment::Values::Ycsb };
    let driven = |kind: &str, properties: &[(&str, &str)]| {
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let described =
            experiment::Workload { name: kind.to_owned(), kind: kind.to_owned(), properties, prepare: None };
        let workload = tithe_workloads::make(&described, &data, 1).expect("a workload");
        let spoken = workload.offered_by().program().expect("a program").drives().to_vec();
        let all = tithe_databases::all().iter();
        let driven = all.filter(|database| database.entry().wire_protocol.is_some_and(|it| spoken.contains(&it)));
        let names: Vec<&str> = driven.map(|database| database.id()).collect();
        format!("{kind}: {}\n", names.join(", "))
    };
    let all = [driven("pgbench", &[]), driven("sysbench", &[]), driven("command", &[("run", "load {port}")])];
    expect![[r#"
        pgbench: postgres
        sysbench: postgres, mariadb, mysql
        command: postgres, mariadb, mysql, redis, cassandra
    "#]]
    .assert_eq(&all.concat());
}
