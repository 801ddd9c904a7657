//! `tithe inspect` over all servers that run here, side by side.
//!
//! A product that is not installed is left out with a notice; with `CI` set it fails.

use crate::support;

use serde_json::Value;
use support::{
    Bench, err, out,
    server::found,
    small::{small_logs, warm_up_soon},
    status,
};
use tithe_harness::{arms::named, serve};
use tithe_machine::{
    launch::Address,
    sandbox::{Sandbox, process::Running},
};
use tithe_model::experiment::Protection;
use tithe_plugin::{matrix::Feature, product::Product, setup::Setup};

/// A running server with some of its protections; it stops before its folder is removed.
struct Served {
    url: String,
    /// The environment variable that a client takes the password from, and the password.
    password: (&'static str, String),
    _running: Option<Running>,
    _sandbox: Sandbox,
}

/// A product, its protections, its URL before and after `127.0.0.1:PORT` and the authority's file, and the place of its
/// password if that is not in the URL.
type Tested = (&'static str, &'static [&'static str], [&'static str; 2], &'static str);

const PRODUCTS: [Tested; 5] = [
    ("postgres", &["tls", "scram"], ["postgres://tithe@", "/postgres?sslmode=verify-full&sslrootcert="], "PGPASSWORD"),
    ("mariadb", &["password", "encryption", "server-audit"], ["mariadb://tithe@", "/"], "MYSQL_PWD"),
    // MariaDB uses the environment variable of its clients.
    (
        "mysql",
        &["tls", "password", "encryption"],
        ["mysql://tithe:PASSWORD@", "/?ssl-mode=verify_identity&ssl-ca="],
        "MYSQL_PWD",
    ),
    ("redis", &["tls", "requirepass"], ["rediss://", "/0?ca="], "REDISCLI_AUTH"),
    (
        "cassandra",
        &["tls", "password", "audit-file"],
        ["cassandra://tithe_administrator@", "?ca="],
        "CASSANDRA_PASSWORD",
    ),
];

fn serve(product: &Tested) -> Option<Served> {
    let (id, protections, [before, after], variable) = product;
    let database: &dyn Product = *tithe_databases::all().iter().find(|found| found.id() == *id).expect("a database");
    let install = found(database)?;
    let mut sandbox = Sandbox::new(&std::env::temp_dir()).expect("a sandbox");
    let mut setup = Setup::plain(small_logs(id), sandbox.credentials().expect("credentials"));
    for id in *protections {
        let protection = named(database, id).expect("a protection");
        let options = protection.entry().options.iter();
        let options = options.filter_map(|option| Some((option.name.to_owned(), option.default?.value()))).collect();
        protection.apply(&Protection::listed(id, options), &mut setup);
    }
    let place = sandbox.place(id).expect("a place");
    let mut launch = database.launch(&install, &setup, &place);
    warm_up_soon(id, &mut launch);
    // Data that it has not written are not needed.
    launch.stop_signal = launch.discard_signal;
    let (launched, running) = serve::start(database, &sandbox, &place, &launch, &setup).expect("the server starts");
    let Address::Tcp { host, port } = &launched.address else { panic!("a TCP server") };
    let authority =
        if after.ends_with('=') { setup.credentials.authority.display().to_string() } else { String::new() };
    let before = before.replace("PASSWORD", setup.credentials.password.expose_text());
    Some(Served {
        url: format!("{before}{host}:{port}{after}{authority}"),
        password: (variable, setup.credentials.password.expose_text().to_owned()),
        _running: running,
        _sandbox: sandbox,
    })
}

#[test]
#[allow(clippy::print_stderr, reason = "the matrix is what a reader wants to see")]
fn all_running_servers_stand_side_by_side() {
    let servers: Vec<Served> = PRODUCTS.iter().filter_map(serve).collect();
    let bench = Bench::new("inspect");
    let run = |arguments: &[&str]| {
        let urls: Vec<&str> = servers.iter().map(|server| server.url.as_str()).collect();
        let mut command = bench.command(&[&["inspect"], &urls[..], arguments].concat());
        let elsewhere = servers.iter().filter(|server| !server.url.contains(&server.password.1));
        command.envs(elsewhere.map(|server| (server.password.0, server.password.1.as_str())));
        command.output().expect("tithe starts")
    };
    let output = run(&["--format", "markdown"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    let text = out(&output);
    eprintln!("{text}");
    let rows: Vec<&str> = text.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + Feature::ALL.len());
    for row in &rows {
        let cells = row.trim_matches('|').split('|');
        assert!(cells.clone().all(|cell| !cell.trim().is_empty()), "{row}");
        assert_eq!(cells.count(), 1 + servers.len(), "{row}");
    }
    let cells = |feature: &str| -> Vec<&str> {
        let row = rows.iter().find(|row| row.starts_with(&format!("| {feature} |"))).expect("a row");
        row.trim_matches('|').split('|').skip(1).map(str::trim).collect()
    };
    assert!(cells("authentication").iter().all(|state| *state == "enforced"), "{text}");
    assert!(servers.iter().all(|server| !text.contains(&server.password.1)), "a password is shown");

    // Documents for auditors have an observation for each cell of the matrix, and a required feature can fail.
    let parsed = |format: &str| -> Value {
        let output = run(&["--require", "audit", "--format", format]);
        assert_eq!(status(&output), 5, "{}", err(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let lacks = |state: &&&str| !state.starts_with("enforced") && **state != "cannot tell";
    let lacking = cells("auditing").iter().filter(lacks).count();
    let places = Feature::ALL.len() * servers.len();
    let oscal = parsed("oscal");
    let observations = oscal["assessment-results"]["results"][0]["observations"].as_array().expect("a list");
    let fails = |it: &&Value| {
        it["props"].as_array().is_some_and(|props| {
            props.iter().any(|prop| (prop["name"].as_str(), prop["value"].as_str()) == (Some("outcome"), Some("fails")))
        })
    };
    assert_eq!((observations.len(), observations.iter().filter(fails).count()), (places, lacking), "{oscal:#}");
    let sarif = parsed("sarif");
    let results = sarif["runs"][0]["results"].as_array().expect("a list");
    let failed = results.iter().filter(|it| it["kind"] == "fail").count();
    assert_eq!((results.len(), failed), (places, lacking), "{sarif:#}");

    // If one server does not enforce a required feature, the program ends with a status for that, and names the server.
    let output = run(&["--require", "audit"]);
    assert_eq!(status(&output), 5, "{}", err(&output));
    assert_eq!(
        err(&output).matches("auditing is ").count(),
        cells("auditing").iter().filter(|state| !["enforced", "cannot tell"].contains(state)).count()
    );

    // A feature that every whole server enforces satisfies the requirement; one that cannot be decided has a status of
    // its own.
    let output = run(&["--require", "authentication"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    if let Some(server) = servers.iter().find(|server| server.url.starts_with("postgres")) {
        let mut command = bench.command(&["inspect", &server.url, "--require", "node-to-node"]);
        let output = command.env(server.password.0, &server.password.1).output().expect("tithe starts");
        assert_eq!(status(&output), 7, "{}", err(&output));
        assert!(err(&output).contains("node-to-node encryption: cannot tell"), "{}", err(&output));
    }

    // If canaries are supported, it reports their results; otherwise that nothing was written.
    let output = run(&["--write-canary", "--format", "markdown"]);
    assert_eq!(status(&output), 0, "{}", err(&output));
    let text = out(&output);
    eprintln!("{text}");
    let of_files =
        text.lines().filter(|line| line.starts_with("- encryption at rest: ") && line.contains("; canary: "));
    assert_eq!(of_files.count(), servers.len());
}
