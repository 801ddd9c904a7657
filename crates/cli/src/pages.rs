//! A page for each database and each protection, written from what they say of themselves.
//!
//! Pure: databases in, names and texts of files out. The pages in `docs/databases` are made by
//! `tithe ls --markdown docs/databases`, and a test holds them to it.

use std::{collections::BTreeMap, fmt::Write, path::PathBuf};

use tithe_harness::volumes;
use tithe_machine::{credentials::Credentials, launch::Address, secret::Secret};
use tithe_model::{
    catalogue::{DefaultValue, OptionEntry, OptionKind, ProtectionEntry},
    experiment::{self, OptionValue, Url},
    record::Role,
};
use tithe_plugin::{
    evidence::Check,
    product::Product,
    protection::Protection,
    setup::{Authentication, Setup, Transport},
};

/// Names of files, relative to one folder, with their texts.
pub fn pages(databases: &[&'static dyn Product]) -> Vec<(PathBuf, String)> {
    let mut pages = vec![(PathBuf::from("README.md"), index(databases))];
    for volume in volumes::PROTECTIONS {
        let path = PathBuf::from(VOLUMES).join(format!("{}.md", volume.entry().id));
        pages.push((path, of_protection("Every database", *volume, false)));
    }
    for database in databases {
        pages.push((PathBuf::from(format!("{}.md", database.id())), of_database(*database)));
        for protection in database.protections() {
            let path = PathBuf::from(database.id()).join(format!("{}.md", protection.entry().id));
            pages.push((path, of_protection(database.title(), *protection, has_url(*database))));
        }
    }
    pages
}

/// True for a database whose running servers can be attached to.
fn has_url(database: &dyn Product) -> bool {
    !database.entry().schemes.is_empty()
}

/// The folder of the pages of volumes, which lie under any database.
const VOLUMES: &str = "volumes";

/// Where the page comes from: at its end, because readers come for the rest.
const WRITTEN: &str = "\n---\n\nWritten by `tithe ls --markdown`; change the plug-in and not this page.\n";

fn index(databases: &[&'static dyn Product]) -> String {
    let mut text = String::from("# Databases and their protections\n\n## Volumes, under every database\n\n");
    text.push_str(
        "As soon as one arm has one, the others get a plain volume of the same size, so that like is compared with like.\n\n",
    );
    for volume in volumes::PROTECTIONS {
        let ProtectionEntry { id, title, protects_against, .. } = volume.entry();
        let _ = writeln!(text, "- [{title}]({VOLUMES}/{id}.md): protects against {}", lowered(protects_against));
    }
    for database in databases {
        let _ = write!(text, "\n## [{}]({}.md)\n\n", database.title(), database.id());
        for protection in database.protections() {
            let ProtectionEntry { id, title, protects_against, .. } = protection.entry();
            let _ = writeln!(
                text,
                "- [{title}]({}/{id}.md): protects against {}",
                database.id(),
                lowered(protects_against)
            );
        }
    }
    text + WRITTEN
}

/// A sentence as the second half of another one.
fn lowered(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}

fn of_database(database: &'static dyn Product) -> String {
    let mut text = format!("# {}\n\n", database.title());
    let how = match (database.embedded(), database.entry().schemes) {
        (true, _) => "It is a library: no server, no wire. Each start is measured in a process of its own.".to_owned(),
        (false, []) => "Tithe launches its servers.".to_owned(),
        (false, schemes) => {
            let schemes: Vec<String> = schemes.iter().map(|scheme| format!("`{scheme}://`")).collect();
            format!("Tithe launches its servers, or attaches to a running one by {}.", schemes.join(" or "))
        }
    };
    let _ = write!(text, "In an experiment: `database = \"{}\"`. {how}\n\n## Protections\n\n", database.id());
    let attachable = has_url(database);
    let [title, line] = if attachable { [" on an attached server |", " --- |"] } else { [""; 2] };
    let _ = writeln!(text, "| protection | protects against | leaves open |{title}\n| --- | --- | --- |{line}");
    for protection in database.protections() {
        let ProtectionEntry { id, title, protects_against, leaves_open, .. } = protection.entry();
        let attached = if attachable { format!(" {} |", attached(*protection)) } else { String::new() };
        let _ = writeln!(
            text,
            "| [{title}]({}/{id}.md) | {} | {} |{attached}",
            database.id(),
            cell(protects_against),
            cell(leaves_open)
        );
    }
    text.push_str("\nBeside these, the [volumes](README.md) that lie under every database.\n");
    for (heading, lead, settings) in [
        ("Settings of an experiment", "", database.entry().known_settings),
        ("Settings that Tithe sets itself", "An experiment cannot set these.\n\n", database.entry().reserved_settings),
    ] {
        if !settings.is_empty() {
            let _ = write!(text, "\n## {heading}\n\n{lead}");
            settings.iter().for_each(|(name, meaning)| {
                let _ = writeln!(text, "- `{name}`: {meaning}");
            });
        }
    }
    text + WRITTEN
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// How `protection` comes to be on at a server that Tithe does not launch, in a few words.
pub fn attached(protection: &'static dyn Protection) -> &'static str {
    let entry = protection.entry();
    match (entry.attachable, entry.by_url, entry.switch) {
        (false, ..) => "cannot be asked for",
        (true, true, _) => "its URL asks for it",
        (true, false, Some(_)) => "sessions switch it",
        _ if entry.by_client => "the clients do it",
        _ => "the server has it, and that of the plain arm has not, or its administrator switches it",
    }
}

/// `attached`: some server of the owner can be attached to.
fn of_protection(owner: &str, protection: &'static dyn Protection, attached: bool) -> String {
    let chosen = chosen(protection);
    let entry = protection.entry();
    let mut text = format!(
        "# {}: {}\n\nIn an experiment: `protections = [{{ use = \"{}\" }}]`{}.\n\n**Protects against** {}\n\n**Leaves open** {}\n",
        owner,
        entry.title,
        entry.id,
        if attached && entry.attachable { ", also on an attached server" } else { "" },
        entry.protects_against,
        entry.leaves_open
    );
    text.push_str(&options(entry.options));
    text.push_str(&evidence(protection, &chosen, attached));
    text.push_str("\n## What it changes\n\n");
    let changes = changes(protection, &chosen);
    match changes.is_empty() {
        true => text.push_str("Nothing in the settings of the server.\n"),
        false => {
            text.push_str("With its options as above, beside files and ports of a run's own:\n\n```\n");
            changes.iter().for_each(|line| {
                let _ = writeln!(text, "{line}");
            });
            text.push_str("```\n");
        }
    }
    text + WRITTEN
}

fn options(options: &[OptionEntry]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n## Options\n\n| option | takes | default | meaning |\n| --- | --- | --- | --- |\n");
    for option in options {
        let takes = match option.kind {
            OptionKind::Number { low, high } => format!("{low} to {high}"),
            OptionKind::Choice(words) => {
                words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
            }
            OptionKind::Text => "text".to_owned(),
            OptionKind::Flag => "`true`, `false`".to_owned(),
        };
        let default = match option.default.map(DefaultValue::value) {
            Some(OptionValue::Text(text)) => format!("`\"{text}\"`"),
            Some(value) => format!("`{value}`"),
            None => "required".to_owned(),
        };
        let _ = writeln!(text, "| `{}` | {takes} | {default} | {} |", option.name, cell(option.help));
    }
    text
}

fn evidence(protection: &'static dyn Protection, chosen: &experiment::Protection, attached: bool) -> String {
    let mut text = String::from("\n## What proves it\n\n");
    let checks = protection.evidence(chosen);
    let launched = Address::Tcp { host: String::new(), port: 0 };
    let (of_launched, told): (Vec<_>, Vec<_>) =
        checks.iter().filter(|check| check.concerns(&launched)).partition(|check| check.entry().role.is_claim());
    for check in of_launched {
        let _ = writeln!(text, "- {} (`{}`)", check.claim(), check.id());
    }
    if !told.is_empty() {
        text.push_str("\nAlso looked at and told, without deciding:\n\n");
        told.iter().for_each(|check| {
            let _ = writeln!(text, "- {} (`{}`)", check.claim(), check.id());
        });
    }
    if attached && protection.entry().attachable {
        text.push_str(&evidence_of_attached(&checks));
    }
    text + &evidence_of_choice(protection, chosen, &checks)
}

/// What of `checks` counts how on an attached server.
fn evidence_of_attached(checks: &[Box<dyn Check>]) -> String {
    let attached = Address::Attached(Url::new(""));
    let mut text = String::from("\nOn an attached server:\n\n");
    for (role, words) in [
        (Role::Claim, "needed"),
        (Role::Strengthens, "strengthens the proof, which stands without where nobody can look"),
        (Role::Disclosure, "told"),
    ] {
        let such = checks.iter().filter(|check| check.concerns(&attached) && check.entry().role == role);
        such.for_each(|check| {
            let _ = writeln!(text, "- {words}: {} (`{}`)", check.claim(), check.id());
        });
    }
    text
}

/// The checks that come, and those that go, where what is empty by default is given; `checks` are those by default.
fn evidence_of_choice(
    protection: &'static dyn Protection,
    chosen: &experiment::Protection,
    checks: &[Box<dyn Check>],
) -> String {
    let options = protection.entry().options.iter();
    let names: Vec<_> = options
        .filter(|option| matches!(option.default, Some(DefaultValue::Text(""))))
        .map(|option| option.name)
        .collect();
    let mut given = chosen.clone();
    given.options.extend(names.iter().map(|name| ((*name).to_owned(), OptionValue::Text("…".to_owned()))));
    let others = protection.evidence(&given);
    let only_in = |these: &[Box<dyn Check>], those: &[Box<dyn Check>], form: fn(&dyn Check) -> String| {
        let only = these.iter().filter(|check| those.iter().all(|other| other.id() != check.id()));
        only.map(|check| form(check.as_ref())).collect::<Vec<_>>()
    };
    let come = only_in(&others, checks, |check| format!("- {} (`{}`)\n", check.claim(), check.id()));
    if come.is_empty() {
        return String::new();
    }
    let go = only_in(checks, &others, |check| format!("`{}`", check.id()));
    let place = if go.is_empty() { String::new() } else { format!(", in the place of {}", go.join(", ")) };
    format!("\nWhere `{}` are given{place}:\n\n{}", names.join("`, `"), come.concat())
}

/// The protection with its defaults; what is required gets the first value allowed.
pub fn chosen(protection: &'static dyn Protection) -> experiment::Protection {
    let value = |option: &OptionEntry| match (option.default, option.kind) {
        (Some(default), _) => default.value(),
        (None, OptionKind::Number { low, .. }) => OptionValue::Number(low),
        (None, OptionKind::Choice(words)) => OptionValue::Text(words.first().copied().unwrap_or_default().to_owned()),
        (None, OptionKind::Text) => OptionValue::Text("…".to_owned()),
        (None, OptionKind::Flag) => OptionValue::Flag(true),
    };
    let entry = protection.entry();
    let options = entry.options.iter().map(|option| (option.name.to_owned(), value(option))).collect();
    experiment::Protection { id: entry.id.to_owned(), options }
}

/// What `apply` does to a plain set-up, a line each.
fn changes(protection: &'static dyn Protection, chosen: &experiment::Protection) -> Vec<String> {
    let mut setup = Setup::plain(BTreeMap::new(), placeholders());
    protection.apply(chosen, &mut setup);
    let mut lines: Vec<String> = setup.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    lines.extend(setup.create_arguments.iter().map(|argument| format!("when the data folder is made: {argument}")));
    lines.extend(setup.statements.iter().map(|statement| format!("after the start: {statement}")));
    lines.extend(setup.session_statements.iter().map(|statement| format!("in every session: {statement}")));
    if let Transport::Tls { version, mutual, resumption } = setup.transport {
        let clients = if mutual { ", clients show a certificate" } else { "" };
        let again = if resumption { ", sessions are resumed" } else { "" };
        lines.push(format!("clients: TLS {version:?} alone{clients}{again}").replace("V1_", "1."));
    }
    if let Authentication::Password { mechanism } = &setup.authentication {
        lines.push(format!("clients: name and password by {mechanism}"));
    }
    lines.extend(setup.at_rest.as_ref().map(|at_rest| format!("data files: encrypted with {}", at_rest.cipher)));
    if setup.rotates {
        lines.push("data files: encrypted again with another key while measured, again and again".to_owned());
    }
    lines.extend(setup.volume.as_ref().map(|asked| format!("data folder: on {}", asked.kind.layers(asked).join(", "))));
    lines.extend(setup.columns.as_ref().map(|_| "clients: encrypt field values before they send them".to_owned()));
    lines
}

/// Certificates and keys that do not exist, for plans and pages, which make none.
pub fn placeholders() -> Credentials {
    let file = |name: &str| PathBuf::from("{credentials}").join(name);
    Credentials {
        authority: file("authority.pem"),
        server_certificate: file("server.pem"),
        server_key: file("server.key"),
        client_certificate: file("client.pem"),
        client_key: file("client.key"),
        untrusted_authority: file("untrusted.pem"),
        password: Secret::new(*b"not a password"),
        key: Secret::new([0; 32]),
        second_key: Secret::new([0; 32]),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect_file;

    /// Databases that a build may leave out: those with a feature of their name.
    fn optional() -> Vec<&'static str> {
        let features = include_str!("../Cargo.toml").split("\"tithe-databases/").skip(1);
        features.filter_map(|rest| rest.split('"').next()).collect()
    }

    /// `UPDATE_EXPECT=1` writes them anew.
    #[test]
    fn the_pages_in_docs_are_those_of_the_catalogue() {
        let all = tithe_databases::all();
        let here: Vec<&str> = all.iter().map(|database| database.id()).collect();
        // A build with fewer databases has fewer pages, and another index.
        let whole = optional().iter().all(|id| here.contains(id));
        for (path, text) in super::pages(all) {
            if whole || path.parent().is_some_and(|parent| parent.as_os_str() != "") {
                expect_file![format!("../../../docs/databases/{}", path.display())].assert_eq(&text);
            }
        }
        // Were a feature no database's, no build would be whole, and the index never looked at.
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/databases");
        assert!(optional().iter().all(|id| pages.join(format!("{id}.md")).exists()), "{:?}", optional());
    }
}
