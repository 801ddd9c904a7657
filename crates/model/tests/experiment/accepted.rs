//! The experiment that a valid file gives.

use expect_test::{Expect, expect};
use tithe_model::experiment::{Observed, PublishedValue};

use crate::{FULL, SHORT, read_experiment, render};

fn check(text: &str, expected: Expect) {
    let shown = match read_experiment(text) {
        Ok(experiment) => serde_json::to_string_pretty(&experiment).expect("an experiment is JSON"),
        Err(diagnostics) => render(text, &diagnostics),
    };
    expected.assert_eq(&shown);
}

#[test]
fn everything() {
    check(
        FULL,
        expect![[r#"
            {
              "title": "What TLS and the audit log of PostgreSQL cost",
              "database": "postgres",
              "settings": {
                "fsync": "true",
                "max_wal_size": "1000",
                "pgaudit.log_parameter": "off",
                "shared_buffers": "256MB"
              },
              "data": {
                "records": 100000,
                "values": "incompressible"
              },
              "load": {
                "clients": 2,
                "arrivals": {
                  "poisson": 2000.0
                }
              },
              "resources": [
                {
                  "name": "in memory",
                  "settings": {
                    "cache_size": "-65536"
                  },
                  "clients": 4,
                  "arrivals": null,
                  "limits": {
                    "cpus": null,
                    "memory": null,
                    "cold": false
                  }
                },
                {
                  "name": "on disk",
                  "settings": {},
                  "clients": null,
                  "arrivals": null,
                  "limits": {
                    "cpus": null,
                    "memory": null,
                    "cold": false
                  }
                }
              ],
              "workloads": [
                {
                  "name": "c",
                  "kind": "ycsb",
                  "properties": {
                    "exponential.percentile": "95",
                    "readproportion": "1",
                    "requestdistribution": "zipfian",
                    "updateproportion": "0"
                  }
                },
                {
                  "name": "mine",
                  "kind": "ycsb",
                  "properties": {
                    "readproportion": "0.9",
                    "updateproportion": "0.1"
                  }
                }
              ],
              "arms": [
                {
                  "name": "plain",
                  "protections": [],
                  "url": null,
                  "on": [],
                  "off": []
                },
                {
                  "name": "tls",
                  "protections": [
                    {
                      "id": "tls",
                      "options": {}
                    }
                  ],
                  "url": null,
                  "on": [],
                  "off": []
                },
                {
                  "name": "all",
                  "protections": [
                    {
                      "id": "tls",
                      "options": {}
                    },
                    {
                      "id": "pgaudit",
                      "options": {
                        "catalogue": {
                          "flag": false
                        },
                        "log": {
                          "text": "read,write"
                        }
                      }
                    },
                    {
                      "id": "columns",
                      "options": {
                        "share": {
                          "number": 0.5
                        }
                      }
                    }
                  ],
                  "url": null,
                  "on": [],
                  "off": []
                }
              ],
              "measure": {
                "precision": 0.009950330853168083,
                "budget_s": 900.0,
                "seed": 1,
                "margin": 0.0295588022415444,
                "primary": "net",
                "epochs": 3,
                "slot_ms": 250.0,
                "design": "interleaved",
                "pin": true,
                "until_decided": false
              }
            }"#]],
    );
}

#[test]
fn defaults() {
    check(
        SHORT,
        expect![[r#"
            {
              "title": "TLS",
              "database": "postgres",
              "settings": {},
              "data": {
                "records": 1000,
                "values": "ycsb"
              },
              "load": {
                "clients": 1,
                "arrivals": "closed"
              },
              "resources": [
                {
                  "name": "",
                  "settings": {},
                  "clients": null,
                  "arrivals": null,
                  "limits": {
                    "cpus": null,
                    "memory": null,
                    "cold": false
                  }
                }
              ],
              "workloads": [
                {
                  "name": "c",
                  "kind": "ycsb",
                  "properties": {
                    "readproportion": "1",
                    "updateproportion": "0"
                  }
                }
              ],
              "arms": [
                {
                  "name": "plain",
                  "protections": [],
                  "url": null,
                  "on": [],
                  "off": []
                },
                {
                  "name": "tls",
                  "protections": [
                    {
                      "id": "tls",
                      "options": {}
                    }
                  ],
                  "url": null,
                  "on": [],
                  "off": []
                }
              ],
              "measure": {
                "precision": 0.009950330853168083,
                "budget_s": 300.0,
                "seed": 1,
                "margin": 0.0295588022415444,
                "primary": "net",
                "epochs": null,
                "slot_ms": null,
                "design": "interleaved",
                "pin": true,
                "until_decided": false
              }
            }"#]],
    );
}

#[test]
fn attached_arms_of_one_server() {
    check(
        r#"
title = "Audit log of a managed server"
database = "postgres"
data.records = 1000
workload = [{ ycsb = "c" }]
arm = [
    { name = "plain", url = "postgres://user:hunter2@host:5432/db" },
    { name = "audit", url = "postgres://user:hunter2@host:5432/db", protections = [{ use = "pgaudit" }],
      on = ["SET pgaudit.log = 'read'"], off = ["RESET pgaudit.log"] },
]
"#,
        expect![[r#"
            {
              "title": "Audit log of a managed server",
              "database": "postgres",
              "settings": {},
              "data": {
                "records": 1000,
                "values": "ycsb"
              },
              "load": {
                "clients": 1,
                "arrivals": "closed"
              },
              "resources": [
                {
                  "name": "",
                  "settings": {},
                  "clients": null,
                  "arrivals": null,
                  "limits": {
                    "cpus": null,
                    "memory": null,
                    "cold": false
                  }
                }
              ],
              "workloads": [
                {
                  "name": "c",
                  "kind": "ycsb",
                  "properties": {
                    "readproportion": "1",
                    "updateproportion": "0"
                  }
                }
              ],
              "arms": [
                {
                  "name": "plain",
                  "protections": [],
                  "url": "postgres://user:***@host:5432/db",
                  "on": [],
                  "off": []
                },
                {
                  "name": "audit",
                  "protections": [
                    {
                      "id": "pgaudit",
                      "options": {
                        "catalogue": {
                          "flag": false
                        },
                        "log": {
                          "text": "all"
                        }
                      }
                    }
                  ],
                  "url": "postgres://user:***@host:5432/db",
                  "on": [
                    "SET pgaudit.log = 'read'"
                  ],
                  "off": [
                    "RESET pgaudit.log"
                  ]
                }
              ],
              "measure": {
                "precision": 0.009950330853168083,
                "budget_s": 300.0,
                "seed": 1,
                "margin": 0.0295588022415444,
                "primary": "net",
                "epochs": null,
                "slot_ms": null,
                "design": "interleaved",
                "pin": true,
                "until_decided": false
              }
            }"#]],
    );
}

#[test]
fn published_figures() {
    let published = r#"
[[published]]
source = "a vendor's report, 2016"
arm = "tls"
workload = "c"
figure = "time"
plain = 32.4
protected = 40.9
unit = "µs"

[[published]]
source = "another one"
arm = "tls"
figure = "throughput"
change = ["-5%", "-20%"]
"#;
    let experiment = read_experiment(&format!("{SHORT}{published}")).unwrap_or_else(|them| panic!("{them:?}"));
    expect![[r#"
        [
          {
            "source": "a vendor's report, 2016",
            "arm": "tls",
            "workload": "c",
            "resources": null,
            "figure": "time",
            "value": {
              "levels": {
                "plain": 32.4,
                "protected": 40.9,
                "unit": "µs"
              }
            }
          },
          {
            "source": "another one",
            "arm": "tls",
            "workload": null,
            "resources": null,
            "figure": "throughput",
            "value": {
              "change": {
                "from": -0.05,
                "to": -0.2
              }
            }
          }
        ]"#]]
    .assert_eq(&serde_json::to_string_pretty(&experiment.published).expect("figures are JSON"));
}

#[test]
fn swap_is_a_size() {
    let read = |text: &str| read_experiment(text).expect("an experiment").encrypted_swap_bytes;
    assert_eq!(read(SHORT), None);
    assert_eq!(read(&format!("encrypted_swap = \"512 MiB\"{SHORT}")), Some(512 << 20));
}

#[test]
fn addresses_to_listen_on() {
    let listening = |listen: &str| {
        let text = SHORT.replace("[data]", &format!("[load]\nlisten = \"{listen}\"\n[data]"));
        let load = read_experiment(&text).expect("an address").load;
        (load.address().to_string(), load.is_open())
    };
    assert_eq!(listening("127.0.0.2"), ("127.0.0.2".to_owned(), false));
    assert_eq!(listening("10.0.0.5"), ("10.0.0.5".to_owned(), true));
    assert_eq!(listening("fd00::5"), ("fd00::5".to_owned(), true));
    assert_eq!(listening("::ffff:127.0.0.1"), ("127.0.0.1".to_owned(), false));
    let unsaid = read_experiment(SHORT).expect("an experiment").load;
    assert_eq!((unsaid.address().to_string(), unsaid.is_open()), ("127.0.0.1".to_owned(), false));
}

#[test]
fn a_published_change_is_one_percentage_or_two() {
    let change = |change: &str| {
        let published = "[[published]]\nsource = \"a report\"\narm = \"tls\"\nfigure = \"time\"\nchange = ";
        let mut found = read_experiment(&format!("{SHORT}{published}{change}\n")).ok()?.published;
        found.pop().map(|found| found.value)
    };
    assert_eq!(change("\"+26%\""), Some(PublishedValue::Change { from: 0.26, to: 0.26 }));
    assert_eq!(change("[\"26%\"]"), Some(PublishedValue::Change { from: 0.26, to: 0.26 }));
    assert_eq!(change("[\"-5%\", \"+20%\"]"), Some(PublishedValue::Change { from: -0.05, to: 0.2 }));
    for wrong in ["[]", "[\"1%\", \"2%\", \"3%\"]", "[\"1%\", 2]", "\"-100%\"", "\"+9901%\"", "26"] {
        assert_eq!(change(wrong), None, "{wrong}");
    }
}

#[test]
fn what_an_observer_reads_is_absolute_and_each_path_in_its_place() {
    let observed = |files: &str| {
        let both = format!("url = \"postgres://h/db\"\nobserver = {{ name = \"db1\", {files} }}\nname = ");
        read_experiment(&SHORT.replace("name = ", &both)).ok()?.arms.pop()?.observer
    };
    let expected = Observed {
        name: "db1".to_owned(),
        data: vec!["/d".into(), "/e".into()],
        journal: vec!["/j".into()],
        logs: vec!["/l".into()],
        settings: vec!["/s".into()],
    };
    let files = "data = [\"/d\", \"/e\"], journal = [\"/j\"], logs = [\"/l\"], settings = [\"/s\"]";
    assert_eq!(observed(files), Some(expected));
    for key in ["data", "journal", "logs", "settings"] {
        for (path, is_taken) in [("/a/b.c", true), ("", false), ("a", false), ("./a", false), ("/a/../b", false)] {
            assert_eq!(observed(&format!("{key} = [\"{path}\"]")).is_some(), is_taken, "{key} {path}");
        }
    }
}
