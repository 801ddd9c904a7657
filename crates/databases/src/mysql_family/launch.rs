//! What the launches of both products share: the syntax of option files, and where a binary log goes.

use std::{collections::BTreeMap, path::PathBuf};

use tithe_machine::launch::Place;
use tithe_model::{catalogue::plain_name, diagnostic::nearest};
use tithe_plugin::setup::{Authentication, Setup, TlsVersion, Transport};

/// File below [`Place::folder`] that the sandbox redirects the server's output to.
pub const SERVER_LOG: &str = "server.log";
/// General log, below the same folder.
pub const GENERAL_LOG: &str = "general.log";

/// Prefixes that a name may have in an option file.
pub const MODIFIERS: [&str; 5] = ["loose_", "skip_", "disable_", "enable_", "maximum_"];

/// The variables in `help`, the server's own list, if `name` is not among them and no plugin brings it. A plugin brings
/// it if one of the `libraries` has a word of the name in its own, and the name does not look like a typo. Variables of
/// components have names with a dot and cannot be set before installation. An abbreviation, which a server would
/// accept, is not accepted here: the result is then the names that begin with it.
pub fn in_place_of(help: &str, libraries: &[String], name: &str) -> Option<Vec<String>> {
    let (options, variables) = help.split_once("\nVariables (")?;
    let names = variables.lines().skip(3).map_while(|line| line.split_whitespace().next());
    let known: Vec<String> = names.map(plain_name).collect();
    let name = plain_name(name);
    // Options that are not variables, such as `plugin_load_add`, have a line among the options.
    let option = format!("--{}", name.replace('_', "-"));
    let of_option = |word: &str| word.trim_end_matches([',', ';']).split(['=', '[']).next() == Some(&option);
    let is_option = || options.lines().any(|line| line.trim_start().split(' ').take(2).any(of_option));
    // One of several key caches: `hot.key_buffer_size`.
    let of_cache =
        name.split_once('.').is_some_and(|(_, bare)| bare.starts_with("key_") && known.iter().any(|it| it == bare));
    if known.contains(&name) || MODIFIERS.iter().any(|modifier| name.starts_with(modifier)) || of_cache || is_option() {
        return None;
    }
    let begun: Vec<String> = known.iter().filter(|known| known.starts_with(&name)).cloned().collect();
    if !begun.is_empty() {
        return Some(begun);
    }
    let of_library = |word: &str| libraries.iter().any(|library| library.contains(word));
    let of_plugin = !name.contains('.') && name.split('_').take(2).any(of_library);
    if of_plugin && nearest(&name, known.iter().map(String::as_str)).is_none() { None } else { Some(known) }
}

/// The lines of one option file, by name.
pub struct Options(pub BTreeMap<String, String>);

impl Options {
    /// The `common` settings, overridden by those of `setup`, and what its number of clients needs.
    pub fn new(common: &[(&str, &str, &str)], setup: &Setup) -> Self {
        let mut lines: BTreeMap<String, String> =
            common.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned())).collect();
        if let Some(connections) = setup.more_connections(300) {
            lines.insert("max_connections".to_owned(), connections.to_string());
            // Every connection has its own handle of each table that it uses; the default of 2000 is enough for 200
            // connections.
            lines.insert("table_open_cache".to_owned(), (10 * connections).to_string());
        }
        lines.extend(setup.settings.iter().map(|(name, value)| (name_of(name), value_of(value))));
        Self(lines)
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets `name`, whatever it was.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// True when `name` is set, and not to off.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(switched_on)
    }

    /// Keeps everything that a server writes in its `place`, and makes it listen only there.
    pub fn keep_in(&mut self, place: &Place) {
        self.set("bind_address", place.listen);
        self.set("datadir", within(place, "data"));
        self.set("general_log_file", within(place, GENERAL_LOG));
        self.set("pid_file", within(place, "server.pid"));
        self.set("port", place.port);
        // Relative to the data folder, because the path of a socket may have at most 107 characters.
        self.set("socket", "server.sock");
        self.set("tmpdir", within(place, "tmp"));
    }

    /// Has the binary log written where evidence expects it.
    pub fn log_binary(&mut self, place: &Place) {
        self.set("log_bin", within(place, "binlog/log"));
        self.0.entry("server_id".to_owned()).or_insert_with(|| "1".to_owned());
    }

    /// TLS as `setup` requests it.
    pub fn speak(&mut self, setup: &Setup) {
        let Transport::Tls { version, mutual, .. } = setup.transport else { return };
        self.set("require_secure_transport", "ON");
        self.set("ssl_cert", setup.credentials.server_certificate.display());
        self.set("ssl_key", setup.credentials.server_key.display());
        self.set("tls_version", version_name(version));
        if mutual {
            self.set("ssl_ca", setup.credentials.authority.display());
        }
    }

    /// The file, whose only section is called `section`.
    pub fn text(&self, section: &str) -> String {
        let lines: String = self.0.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
        format!("[{section}]\n{lines}")
    }
}

/// True when the value of a setting does not say off.
pub fn switched_on(value: &str) -> bool {
    !["OFF", "FALSE", "0"].contains(&value.to_ascii_uppercase().as_str())
}

/// The path of `name` in `place`, as written in an option file.
pub fn within(place: &Place, name: &str) -> String {
    place.folder.join(name).display().to_string()
}

/// The files `names` of the server in `place`.
pub fn logs(place: &Place, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| place.folder.join(name)).collect()
}

/// Nothing of the user's: messages in English.
pub fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())])
}

/// Where clients come from, in the syntax of accounts: this machine, or any address that can reach the server's
/// address. Clients without a password always come from this machine.
pub fn clients(setup: &Setup, place: &Place) -> &'static str {
    let is_open = !place.listen.is_loopback() && setup.authentication != Authentication::None;
    match (is_open, place.listen.is_ipv4()) {
        (false, true) => "127.0.0.1",
        (false, false) => "::1",
        (true, _) => "%",
    }
}

/// What an account of this arm must fulfil besides its authentication.
pub fn require(setup: &Setup) -> &'static str {
    match setup.transport {
        Transport::Plain => "",
        Transport::Tls { mutual: false, .. } => " REQUIRE SSL",
        Transport::Tls { mutual: true, .. } => " REQUIRE X509",
    }
}

/// A TLS version by the server's name, which is OpenSSL's.
fn version_name(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V1_2 => "TLSv1.2",
        TlsVersion::V1_3 => "TLSv1.3",
    }
}

/// A setting's name from an experiment, restricted to the characters of a name; `-` and `_` mean the same to the
/// server.
fn name_of(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '_' }).collect()
}

/// A setting's value from an experiment, always on one line. An empty value, or one that looks like a comment, is
/// quoted.
fn value_of(value: &str) -> String {
    let value = value.replace(char::is_control, " ");
    if value.trim().is_empty() || value.contains('#') { format!("\"{value}\"") } else { value }
}

#[cfg(test)]
mod tests {
    use super::in_place_of;

    #[test]
    fn what_neither_the_server_nor_a_plugin_knows_is_no_variable() {
        const HELP: &str = "Options\n  -a, --ansi  Use it\n  --plugin-load-add=name \n  --skip-x Not (--x=#)\n\nVariables (--variable-name=value)\n\
                            and boolean options        Value\n------------------- -----\ninnodb-buffer-pool-size  1\n\
                            key-buffer-size 1\nskip-networking  FALSE\n\nTo see what\n";
        let libraries = ["server_audit.so".to_owned(), "semisync_master.so".to_owned()];
        let in_place_of = |name: &str| in_place_of(HELP, &libraries, name);
        for name in
            ["innodb_bufer_pool_size", "inodb-buffer-pool-size", "foo", "validate_password.policy", "x", "hot.foo"]
        {
            assert!(in_place_of(name).is_some(), "{name}");
        }
        for name in [
            "innodb_buffer_pool_size",
            "INNODB-buffer-pool-size",
            "loose_innodb_bufer_pool_size",
            "server_audit_events",
            "rpl_semi_sync_master_enabled",
            "hot.key_buffer_size",
            "plugin_load_add",
            "ansi",
        ] {
            assert_eq!(in_place_of(name), None, "{name}");
        }
        // A server would accept it, and it would be unclear for which variable.
        assert_eq!(in_place_of("INNODB-buffer"), Some(vec!["innodb_buffer_pool_size".to_owned()]));
        assert_eq!(in_place_of("skip_networkin"), None);
        assert_eq!(super::in_place_of("a server that says nothing", &[], "x"), None);
    }
}
