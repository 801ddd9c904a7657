//! Which addresses and settings an experiment may name, by the description of its database.

use tithe_model::{
    catalogue::{Catalogue, ProtectionEntry, WireProtocol},
    diagnostic::Diagnostic,
    parse::parse,
};

use crate::{SHORT, catalogue};

/// The first problem of `text` and its help, in a build whose databases have a `change`; empty if there is none.
fn said(text: &str, change: impl FnOnce(&mut Catalogue)) -> String {
    let mut catalogue = catalogue::catalogue();
    change(&mut catalogue);
    let first = |them: Vec<Diagnostic>| them.into_iter().next().map(|it| format!("{} ({})", it.problem, it.help));
    parse(text, &catalogue, &catalogue::read).err().and_then(first).unwrap_or_default()
}

#[test]
fn a_url_has_a_scheme_of_its_database_or_of_one_that_speaks_the_same() {
    let is_taken = |scheme: &str, protocols: [Option<WireProtocol>; 2]| {
        let text = SHORT.replace("name = \"", &format!("url = \"{scheme}://u@h/d\"\nname = \""));
        let said = said(&text, |catalogue| {
            catalogue.databases[1].entry.scheme_aliases = &["pg"];
            catalogue.databases[1].entry.wire_protocol = protocols[0];
            catalogue.databases[2].entry.wire_protocol = protocols[1];
        });
        assert!(said.is_empty() || said.starts_with(&format!("the scheme `{scheme}` is that of ")), "{said}");
        said.is_empty()
    };
    for own in ["postgres", "postgresql", "pg", "postgres+psycopg", "pg+asyncpg"] {
        assert!(is_taken(own, [None; 2]), "{own}");
    }
    for other in ["mysql", "postgre", "psycopg+postgres", "redis", "rediss"] {
        assert!(!is_taken(other, [None; 2]), "{other}");
    }
    let (one, other) = (Some(WireProtocol::Postgres), Some(WireProtocol::Redis));
    let pairs = [[one, one], [one, other], [one, None], [None, one]];
    assert_eq!(pairs.map(|protocols| is_taken("redis", protocols)), [true, false, false, false]);
}

#[test]
fn a_setting_is_known_by_its_plain_name() {
    let known = |catalogue: &mut Catalogue| {
        catalogue.databases[0].entry.custom = catalogue.databases[1].entry.custom;
        for database in &mut catalogue.databases {
            database.entry.known_settings = &[("jit", "compiles"), ("work_mem", "memory")];
            database.entry.setting_modifiers = &["loose_"];
        }
    };
    let text = |setting: &str| SHORT.replace("[data]", &format!("[settings]\n\"{setting}\" = 1\n[data]"));
    for setting in ["jit", "JIT", "work-mem", "loose_work_mem", "Loose-LOOSE_jit"] {
        assert_eq!(said(&text(setting), known), "", "{setting}");
    }
    for reserved in ["port", "Port", "loose-port"] {
        assert!(said(&text(reserved), known).starts_with("`port` cannot be set"), "{reserved}");
    }
    let unknown = "there is no setting `jot` (did you mean `jit`? the database has: `jit`, `work_mem`";
    assert_eq!(said(&text("jot"), known), format!("{unknown})"));
    assert_eq!(said(&text("jot"), |_| ()), "", "a server that refuses unknown names itself");
    let embedded = text("jot").replace("postgres", "sqlite").replace("use = \"tls\"", "use = \"columns\"");
    let in_session = "; or have every session say it: `session = [\"SHOW jot = …\"]` of a protection)";
    assert_eq!(said(&embedded, known), format!("{unknown}{in_session}"));
}

static PASSWORD: ProtectionEntry =
    ProtectionEntry { id: "password", title: "password", login: true, ..ProtectionEntry::BARE };

#[test]
fn servers_that_a_network_reaches_have_no_arm_without_a_login() {
    let told = |listen: &str, protection: &str, simulated: bool| {
        let text = SHORT.replace("[data]", &format!("[load]\nlisten = \"{listen}\"\n[data]"));
        said(&text.replace("use = \"tls\"", &format!("use = \"{protection}\"")), |catalogue| {
            catalogue.databases[1].protections.push(&PASSWORD);
            catalogue.databases[1].entry.simulated = simulated;
        })
    };
    for (listen, protection) in [("127.0.0.1", "tls"), ("127.0.0.1", "password"), ("10.0.0.5", "tls")] {
        assert_eq!(told(listen, protection, false), "", "{listen} {protection}");
    }
    let words = "there is no arm without one to compare `password` of arm `tls` with";
    assert!(told("10.0.0.5", "password", false).contains(words));
    assert!(told("127.0.0.1", "tls", true).starts_with("`listen` needs a server, and postgres has none"));
}
