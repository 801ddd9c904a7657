//! `tithe inspect`: the security matrix of running servers, side by side.

use std::fmt::Write as _;

use tithe_harness::inspect;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
};
use tithe_model::experiment::Url;
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, Scope, State},
    product::Product,
    setup::Setup,
};

use crate::{
    InspectArgs,
    exit::{self, Stop},
    prepare,
};

/// One server of the matrix.
struct Column {
    /// Its URL, without a password.
    name: String,
    /// What it says it is.
    version: String,
    cells: Vec<FeatureStatus>,
}

/// Runs the command; returns the exit status.
pub fn inspect(arguments: &InspectArgs) -> Result<i32, Stop> {
    let required = required(&arguments.require)?;
    let columns =
        arguments.urls.iter().map(|url| inspect_server(url, arguments.write_canary)).collect::<Result<Vec<_>, _>>()?;
    let text = match arguments.format.as_str() {
        "markdown" => markdown(&columns),
        "json" => json(&columns),
        _ => plain(&columns),
    };
    anstream::print!("{text}");
    let missing: Vec<_> = columns.iter().flat_map(|column| missing(column, &required)).collect();
    missing.iter().for_each(|(_, line)| anstream::eprintln!("tithe: {line}"));
    Ok(status(&missing))
}

/// The exit status of what is missing: what is known not to be enforced comes before what nobody knows.
fn status(missing: &[(Lack, String)]) -> i32 {
    match missing.iter().map(|(lack, _)| *lack).max() {
        None => exit::OK,
        Some(Lack::Untold) => exit::CANNOT_TELL,
        Some(Lack::Unenforced) => exit::DISPROVEN,
    }
}

/// Why something that was required is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    /// It could not be looked at, or for one account only.
    Untold,
    /// It was seen not to be enforced.
    Unenforced,
}

/// The features called `names`.
fn required(names: &[String]) -> Result<Vec<Feature>, Stop> {
    let find = |name: &String| {
        let known = || Feature::ALL.map(Feature::id).join(", ");
        let feature = Feature::ALL.into_iter().find(|feature| feature.id() == name);
        feature.ok_or_else(|| Stop::new(exit::USAGE, format!("no feature is called {name}; known are {}", known())))
    };
    names.iter().map(find).collect()
}

fn inspect_server(url: &str, write_canary: bool) -> Result<Column, Stop> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let databases = prepare::databases();
    let database = databases.iter().find(|database| database.entry().schemes.contains(&scheme)).ok_or_else(|| {
        let known: Vec<_> = databases.iter().flat_map(|database| database.entry().schemes).copied().collect();
        Stop::new(exit::USAGE, format!("a URL begins with one of {} and ://", known.join(", ")))
    })?;
    let url = Url::new(url);
    let name = url.redacted();
    let server = Server {
        address: Address::Attached(url),
        process: None,
        paths: Default::default(),
        folder: std::path::PathBuf::new(),
    };
    see(*database, &server, &name, write_canary).map_err(|fault| Stop::new(exit::FAILED, format!("{name}: {fault}")))
}

fn see(database: &dyn Product, server: &Server, name: &str, write_canary: bool) -> Result<Column, Fault> {
    let setup = Setup::bare();
    let mut cells = database.inspect(server, &setup)?;
    if write_canary {
        inspect::with_canary(database, server, &setup, &mut cells)?;
    }
    cells.sort_by_key(|cell| cell.feature);
    // An account that may not ask for every setting can still be shown what was seen.
    let version = database.facts(server, &setup).map_or_else(|_| database.title().to_owned(), |facts| facts.version);
    Ok(Column { name: name.to_owned(), version, cells })
}

/// What `column` lacks of `required`, a line each.
fn missing(column: &Column, required: &[Feature]) -> Vec<(Lack, String)> {
    let lacking = column.cells.iter().filter(|cell| required.contains(&cell.feature)).filter_map(|cell| {
        let lack = lack(cell)?;
        let says = if cell.state == State::Unseen { ":" } else { " is" };
        Some((lack, format!("{}: {}{says} {}", column.name, cell.feature.title(), words(cell))))
    });
    lacking.collect()
}

/// What `cell` lacks of being enforced on the whole server.
fn lack(cell: &FeatureStatus) -> Option<Lack> {
    match (cell.state, cell.scope) {
        (State::Enforced, Scope::Server) => None,
        (State::Enforced, Scope::Account) | (State::Unseen, _) => Some(Lack::Untold),
        _ => Some(Lack::Unenforced),
    }
}

/// The state of `cell`, and of whom where it is not of everybody.
fn words(cell: &FeatureStatus) -> String {
    match (cell.state, cell.scope) {
        (State::Unseen | State::NotOffered, _) | (_, Scope::Server) => cell.state.words().to_owned(),
        (state, Scope::Account) => format!("{} for {}", state.words(), Scope::Account.words()),
    }
}

/// Every server with its ten rows.
fn plain(columns: &[Column]) -> String {
    let mut text = String::new();
    for column in columns {
        let _ = writeln!(text, "{}\n{}", column.name, column.version);
        for cell in &column.cells {
            let (title, state, scope) = (cell.feature.title(), cell.state.words(), cell.scope.words());
            let _ = writeln!(text, "  {title:<26}{state:<30}{scope:<14}{}", cell.seen);
        }
        text.push('\n');
    }
    text
}

/// One table with a column a server, then what was seen.
fn markdown(columns: &[Column]) -> String {
    let escaped = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut text = "| feature |".to_owned();
    columns.iter().for_each(|column| text.push_str(&format!(" {} |", escaped(&column.version))));
    text.push_str(&format!("\n|---|{}\n", "---|".repeat(columns.len())));
    for feature in Feature::ALL {
        text.push_str(&format!("| {} |", feature.title()));
        for column in columns {
            let cell = column.cells.iter().find(|cell| cell.feature == feature);
            text.push_str(&format!(" {} |", cell.map_or_else(String::new, words)));
        }
        text.push('\n');
    }
    for column in columns {
        text.push_str(&format!("\n{} ({}):\n\n", escaped(&column.version), escaped(&column.name)));
        for cell in &column.cells {
            text.push_str(&format!("- {}: {}: {}\n", cell.feature.title(), words(cell), escaped(&cell.seen)));
        }
    }
    text
}

fn json(columns: &[Column]) -> String {
    let cell = |cell: &FeatureStatus| {
        serde_json::json!({
            "feature": cell.feature.id(), "state": cell.state.words(), "scope": cell.scope.words(), "seen": cell.seen,
        })
    };
    let column = |column: &Column| {
        let cells: Vec<_> = column.cells.iter().map(cell).collect();
        serde_json::json!({ "server": column.name, "version": column.version, "features": cells })
    };
    format!("{:#}\n", serde_json::Value::from(columns.iter().map(column).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn column() -> Column {
        Column {
            name: "redis://:***@db".to_owned(),
            version: "Redis 7.0.15".to_owned(),
            cells: vec![
                FeatureStatus::new(
                    Feature::Authentication,
                    State::Enforced,
                    Scope::Account,
                    "by password; without: refused",
                ),
                FeatureStatus::new(Feature::Transport, State::Off, Scope::Server, "plaintext | served"),
                FeatureStatus::new(Feature::Auditing, State::Unseen, Scope::Account, "refused"),
                FeatureStatus::new(Feature::NodeToNode, State::Enforced, Scope::Server, "tls-replication = yes"),
            ],
        }
    }

    #[test]
    fn the_matrix_as_text() {
        expect![[r#"
            redis://:***@db
            Redis 7.0.15
              authentication            enforced                      this account  by password; without: refused
              transport encryption      off                           whole server  plaintext | served
              auditing                  cannot tell                   this account  refused
              node-to-node encryption   enforced                      whole server  tls-replication = yes

        "#]]
        .assert_eq(&plain(&[column()]));
    }

    #[test]
    fn the_matrix_as_markdown() {
        expect![[r#"
            | feature | Redis 7.0.15 |
            |---|---|
            | authentication | enforced for this account |
            | authorisation |  |
            | transport encryption | off |
            | encryption at rest |  |
            | auditing | cannot tell |
            | JMX authentication |  |
            | authentication caching |  |
            | proxy roles |  |
            | node-to-node encryption | enforced |
            | client-to-node encryption |  |

            Redis 7.0.15 (redis://:***@db):

            - authentication: enforced for this account: by password; without: refused
            - transport encryption: off: plaintext \| served
            - auditing: cannot tell: refused
            - node-to-node encryption: enforced: tls-replication = yes
        "#]]
        .assert_eq(&markdown(&[column()]));
    }

    #[test]
    fn the_matrix_as_json() {
        expect![[r#"
            [
              {
                "features": [
                  {
                    "feature": "authentication",
                    "scope": "this account",
                    "seen": "by password; without: refused",
                    "state": "enforced"
                  },
                  {
                    "feature": "tls",
                    "scope": "whole server",
                    "seen": "plaintext | served",
                    "state": "off"
                  },
                  {
                    "feature": "audit",
                    "scope": "this account",
                    "seen": "refused",
                    "state": "cannot tell"
                  },
                  {
                    "feature": "node-to-node",
                    "scope": "whole server",
                    "seen": "tls-replication = yes",
                    "state": "enforced"
                  }
                ],
                "server": "redis://:***@db",
                "version": "Redis 7.0.15"
              }
            ]
        "#]]
        .assert_eq(&json(&[column()]));
    }

    #[test]
    fn what_is_required_and_not_enforced_or_not_known_is_named() {
        let check = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let missing = missing(&column(), &required(&names).expect("features"));
            let lines: Vec<_> = missing.iter().map(|(_, line)| line.as_str()).collect();
            format!("{}\n{}\n", status(&missing), lines.join("\n"))
        };
        expect![[r#"
            0

            7
            redis://:***@db: authentication is enforced for this account
            7
            redis://:***@db: auditing: cannot tell
            5
            redis://:***@db: authentication is enforced for this account
            redis://:***@db: transport encryption is off
        "#]]
        .assert_eq(
            &[
                check(&["node-to-node"]),
                check(&["authentication"]),
                check(&["audit"]),
                check(&["tls", "authentication"]),
            ]
            .concat(),
        );
        assert_eq!(required(&["tsl".to_owned()]).expect_err("unknown").status, exit::USAGE);
    }
}
