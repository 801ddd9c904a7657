//! `tithe inspect`: the security matrix of running servers, side by side.

use std::{fmt::Write as _, sync::atomic::Ordering};

use tithe_analysis::report::{
    controls::Property,
    observation::{Assessment, Method, Observation, Outcome},
    oscal, sarif,
};
use tithe_harness::inspect;
use tithe_machine::{
    fault::Fault,
    launch::{Address, Server},
};
use tithe_model::{experiment::Url, wrap::wrapped};
use tithe_plugin::{
    matrix::{Feature, FeatureStatus, Scope, State},
    product::Product,
    setup::Setup,
    wire,
};

use super::verify::now_unix_s;
use crate::{
    InspectArgs, asked,
    exit::{self, Stop},
    interrupt, offer, progress,
};

/// One server of the matrix.
struct Column {
    /// Its URL, without a password.
    name: String,
    /// The version that it reports.
    version: String,
    cells: Vec<FeatureStatus>,
}

/// How long each server may take for its first answer, s: one that speaks another protocol may wait for ever.
pub const FIRST_ANSWER_S: u16 = 5;

/// Runs the command; returns the exit status.
pub fn inspect(arguments: &InspectArgs) -> Result<i32, Stop> {
    let required = required(&arguments.require)?;
    wire::hasten(FIRST_ANSWER_S);
    let servers = arguments.urls.iter().map(|url| Inspected::of(url)).collect::<Result<Vec<_>, _>>()?;
    // Only with a canary is there something on a server that must be removed; without one ctrl-C ends the program at
    // once.
    let cancelled = arguments.write_canary.then(interrupt::listen);
    let mut columns = Vec::new();
    let mut unseen = Vec::new();
    for server in &servers {
        if cancelled.is_some_and(|asked| asked.load(Ordering::SeqCst)) {
            return Err(Stop::new(exit::INTERRUPTED, "stopped; what was written on the servers before is removed"));
        }
        for remark in server.remarks() {
            crate::shown::telln!("tithe: {}: {remark}", server.name);
        }
        match server.see(arguments.write_canary) {
            Ok(column) => columns.push(column),
            Err(fault) => unseen.push(server.unseen(&fault)),
        }
    }
    let text = match arguments.format.as_str() {
        "json" => json(&columns),
        "sarif" => sarif::render(&observed(&columns, &required, unseen.is_empty())),
        _ if columns.is_empty() => String::new(),
        "oscal" => oscal::render(&observed(&columns, &required, unseen.is_empty())),
        "markdown" => markdown(&columns),
        _ => plain(&columns, progress::columns()),
    };
    crate::shown::show!("{text}");
    let missing: Vec<_> = columns.iter().flat_map(|column| missing(column, &required)).collect();
    missing.iter().map(|(_, line)| line).chain(&unseen).for_each(|line| crate::shown::telln!("tithe: {line}"));
    Ok(if unseen.is_empty() { status(&missing) } else { exit::FAILED })
}

/// The exit status for what is missing: a feature that is not enforced takes precedence over an unknown one.
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
    /// It could not be checked, or for one account only.
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

/// A server that is to be checked.
pub struct Inspected {
    /// Its URL, without a password.
    name: String,
    /// Host and port, if the URL names both.
    place: Option<String>,
    database: &'static dyn Product,
    server: Server,
}

impl Inspected {
    /// The server at `text`, which is its URL.
    pub fn of(text: &str) -> Result<Self, Stop> {
        let url = Url::new(text);
        let unknown = || {
            let catalogue = offer::catalogue();
            let of_another_form = asked::database(text, &catalogue).err();
            of_another_form.unwrap_or_else(|| asked::unknown_scheme(url.scheme(), &catalogue))
        };
        let database = offer::at(&url).ok_or_else(unknown)?;
        let has_password = std::env::var_os(database.entry().password_variable).is_some();
        let name = if has_password { url.redacted() } else { url.redacted_alone() };
        let place = url.place();
        let server = Server::at(Address::Attached(url));
        Ok(Self { name, place: Some(place).filter(|place| place.contains(':')), database, server })
    }

    /// Remarks about how its URL is used.
    fn remarks(&self) -> Vec<String> {
        let Address::Attached(url) = &self.server.address else { return Vec::new() };
        self.database.remarks(url, &Setup::bare())
    }

    fn see(&self, write_canary: bool) -> Result<Column, Fault> {
        let (database, server, setup) = (self.database, &self.server, Setup::bare());
        let mut cells = database.inspect(server, &setup)?;
        if write_canary {
            inspect::with_canary(database, server, &setup, &mut cells)?;
        }
        cells.sort_by_key(|cell| cell.feature);
        // An account without the right to read every setting can still get the evidence.
        let version =
            database.facts(server, &setup).map_or_else(|_| database.title().to_owned(), |facts| facts.version);
        Ok(Column { name: self.name.clone(), version, cells })
    }

    /// Its URL, without a password.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The product that its URL names.
    pub fn database(&self) -> &'static dyn Product {
        self.database
    }

    /// Everything that it lacks for a measurement with these `table_statements`, and for proof.
    pub fn lacks(&self, table_statements: Vec<String>) -> Result<Vec<tithe_plugin::database::Lack>, Fault> {
        self.database.lacks(&self.server, &Setup { table_statements, ..Setup::bare() })
    }

    /// Why it was not seen, and what else answers there, in one line.
    pub fn unseen(&self, fault: &Fault) -> String {
        let met = match fault {
            // A server of the product has answered, unless its very first message was not understood.
            Fault::Refused(words) if !words.starts_with("at the first") => None,
            Fault::Server(_) => None,
            _ => self.place.as_deref().and_then(inspect::met),
        };
        let title = self.database.title();
        let met = met.map_or(String::new(), |met| format!("; is it a {title} server? {met}"));
        format!("{}: {fault}{met}", self.name)
    }
}

/// What `column` lacks of `required`, one line each.
fn missing(column: &Column, required: &[Feature]) -> Vec<(Lack, String)> {
    let lacking = column.cells.iter().filter(|cell| required.contains(&cell.feature)).filter_map(|cell| {
        let lack = lack(cell)?;
        let says = if cell.state == State::Unseen { ":" } else { " is" };
        Some((lack, format!("{}: {}{says} {}", column.name, cell.feature.title(), words(cell))))
    });
    lacking.collect()
}

/// What `cell` lacks to count as enforced on the whole server.
fn lack(cell: &FeatureStatus) -> Option<Lack> {
    match (cell.state, cell.scope) {
        (State::Enforced, Scope::Server) => None,
        (State::Enforced, Scope::Account) | (State::Unseen, _) => Some(Lack::Untold),
        _ => Some(Lack::Unenforced),
    }
}

/// The state of `cell`, and the accounts that it holds for, if not for all.
fn words(cell: &FeatureStatus) -> String {
    match (cell.state, cell.scope) {
        (State::Unseen | State::NotOffered, _) | (_, Scope::Server) => cell.state.words().to_owned(),
        (state, Scope::Account) => format!("{} for {}", state.words(), Scope::Account.words()),
    }
}

/// Width of the columns before the evidence.
const TITLE: usize = 26;
const STATE: usize = 30;
const SCOPE: usize = 14;

/// Minimum width of the column of evidence; on a narrower terminal it is below the others.
const SEEN_MIN: usize = 30;

/// Every server with its ten rows, within `width`.
fn plain(columns: &[Column], width: usize) -> String {
    let mut text = String::new();
    for column in columns {
        let _ = writeln!(text, "{}\n{}", column.name, column.version);
        for cell in &column.cells {
            let (title, state, scope) = (cell.feature.title(), cell.state.words(), cell.scope.words());
            let row = format!("  {title:<TITLE$}{state:<STATE$}{scope:<SCOPE$}");
            let indent = if width >= row.len() + SEEN_MIN { row.len() } else { 6 };
            let room = width.saturating_sub(indent).max(SEEN_MIN);
            let lines = wrapped(&cell.seen, ["", ""], room, |text| text.chars().count());
            let (first, rest) =
                if indent == row.len() { lines.split_at(lines.len().min(1)) } else { lines.split_at(0) };
            let _ = writeln!(text, "{}", format!("{row}{}", first.concat()).trim_end());
            rest.iter().for_each(|line| text.push_str(&format!("{:indent$}{line}\n", "")));
            ids(cell).iter().for_each(|id| text.push_str(&format!("{:indent$}{id}\n", "")));
        }
        text.push('\n');
    }
    text
}

/// One table with a column per server, then the evidence.
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
            let found: String = ids(cell).iter().map(|id| format!(" `{id}`")).collect();
            let (title, seen) = (cell.feature.title(), escaped(&cell.seen));
            text.push_str(&format!("- {title}: {}: {seen}{found}\n", words(cell)));
        }
    }
    text
}

/// The stable names of the findings.
fn ids(cell: &FeatureStatus) -> Vec<&'static str> {
    cell.findings.iter().map(|finding| finding.id).collect()
}

fn json(columns: &[Column]) -> String {
    let cell = |cell: &FeatureStatus| {
        serde_json::json!({
            "feature": cell.feature.id(), "state": cell.state.words(), "scope": cell.scope.words(), "seen": cell.seen,
            "findings": ids(cell),
        })
    };
    let column = |column: &Column| {
        let cells: Vec<_> = column.cells.iter().map(cell).collect();
        serde_json::json!({ "server": column.name, "version": column.version, "features": cells })
    };
    format!("{:#}\n", serde_json::Value::from(columns.iter().map(column).collect::<Vec<_>>()))
}

/// The evidence, one observation for each feature of each server; `complete` if all servers were inspected. A required
/// feature that is not enforced fails.
fn observed(columns: &[Column], required: &[Feature], complete: bool) -> Assessment {
    let unix_s = now_unix_s();
    let observation = |column: &Column, cell: &FeatureStatus| {
        let outcome = match lack(cell) {
            None => Outcome::Holds,
            Some(Lack::Untold) => Outcome::CannotTell,
            Some(Lack::Unenforced) if required.contains(&cell.feature) => Outcome::Fails,
            Some(Lack::Unenforced) => Outcome::Informs,
        };
        Observation {
            subject: format!("{}, {}", column.name, column.version),
            check: cell.feature.id().to_owned(),
            claim: format!("{} is enforced on the whole server", cell.feature.title()),
            property: Some(property(cell.feature)),
            method: Method::Examine,
            phase: "",
            outcome,
            seen: format!("{}: {}", words(cell), cell.seen),
            control: String::new(),
            findings: ids(cell).into_iter().map(str::to_owned).collect(),
            unix_s,
        }
    };
    let pairs = columns.iter().flat_map(|column| column.cells.iter().map(move |cell| (column, cell)));
    Assessment {
        title: "Security matrix".to_owned(),
        source: columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", "),
        tithe: env!("CARGO_PKG_VERSION").to_owned(),
        unix_s,
        complete,
        observations: pairs.map(|(column, cell)| observation(column, cell)).collect(),
    }
}

/// The property that a row of the matrix gives to a system.
fn property(feature: Feature) -> Property {
    match feature {
        Feature::Authentication | Feature::JmxAuthentication | Feature::AuthenticationCaching => {
            Property::Authentication
        }
        Feature::Authorisation | Feature::ProxyRoles => Property::Authorisation,
        Feature::Transport | Feature::NodeToNode | Feature::ClientToNode => Property::Transport,
        Feature::AtRest => Property::AtRest,
        Feature::Auditing => Property::Audit,
    }
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
        .assert_eq(&plain(&[column()], 120));
        expect![[r#"
            redis://:***@db
            Redis 7.0.15
              authentication            enforced                      this account
                  by password; without: refused
              transport encryption      off                           whole server
                  plaintext | served
              auditing                  cannot tell                   this account
                  refused
              node-to-node encryption   enforced                      whole server
                  tls-replication = yes

        "#]]
        .assert_eq(&plain(&[column()], 60));
        let mut long = column();
        long.cells.truncate(1);
        long.cells[0].seen = "what was seen of it ".repeat(6);
        expect![[r#"
            redis://:***@db
            Redis 7.0.15
              authentication            enforced                      this account  what was seen of it what was
                                                                                    seen of it what was seen of it
                                                                                    what was seen of it what was
                                                                                    seen of it what was seen of it

        "#]]
        .assert_eq(&plain(&[long], 104));
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
                    "findings": [],
                    "scope": "this account",
                    "seen": "by password; without: refused",
                    "state": "enforced"
                  },
                  {
                    "feature": "tls",
                    "findings": [],
                    "scope": "whole server",
                    "seen": "plaintext | served",
                    "state": "off"
                  },
                  {
                    "feature": "audit",
                    "findings": [],
                    "scope": "this account",
                    "seen": "refused",
                    "state": "cannot tell"
                  },
                  {
                    "feature": "node-to-node",
                    "findings": [],
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
    fn auditors_are_told_what_was_required_and_is_not_there() {
        let outcomes = |required: &[Feature]| {
            let seen = observed(&[column()], required, true).observations;
            let all = seen.iter().map(|it| format!("{} {}", it.check, it.outcome.word()));
            all.collect::<Vec<_>>().join("; ")
        };
        expect!["authentication cannot-tell; tls informs; audit cannot-tell; node-to-node holds"]
            .assert_eq(&outcomes(&[]));
        expect!["authentication cannot-tell; tls fails; audit cannot-tell; node-to-node holds"]
            .assert_eq(&outcomes(&[Feature::Transport]));
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
