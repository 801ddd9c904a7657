//! A URL taken apart, before a product interprets its options.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use percent_encoding::percent_decode_str;
use tithe_machine::fault::Fault;
use tithe_model::experiment::Url;

use super::outside::Outside;

/// A refusal. It never quotes the URL, which may hold a password.
pub fn refused(why: &str) -> Fault {
    Fault::Refused(format!("the server's URL: {why}"))
}

/// A host as a URL names it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// Name, address or path; empty if the URL leaves it out.
    pub name: String,
    /// Port, if the URL has one.
    pub port: Option<u16>,
    /// Password for this host alone, if a file has one.
    pub password: Option<String>,
}

/// A URL taken apart and decoded.
#[derive(Debug, Default)]
pub struct UrlParts {
    /// The part before `://`, without the `jdbc:` of Java.
    pub scheme: String,
    /// True if it is written for a driver of Java.
    pub is_java: bool,
    /// Account.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// One host or several.
    pub hosts: Vec<Host>,
    /// Database, or the product's equivalent.
    pub database: Option<String>,
    options: Vec<(String, String)>,
}

impl UrlParts {
    /// Without a password of its own it has that of the environment's `variable`.
    pub fn settle_password(&mut self, outside: &Outside, variable: &str) {
        self.password = self.password.take().or_else(|| outside.variable(variable).map(str::to_owned));
    }

    /// A host without a name is this machine.
    pub fn settle_hosts(&mut self) {
        for host in self.hosts.iter_mut().filter(|host| host.name.is_empty()) {
            "localhost".clone_into(&mut host.name);
        }
    }

    /// Password and host, for a product without databases, which `words` say.
    ///
    /// # Errors
    /// [`Fault::Refused`] for a path after the port.
    pub fn settle_without_database(&mut self, outside: &Outside, variable: &str, words: &str) -> Result<(), Fault> {
        self.settle_password(outside, variable);
        self.settle_hosts();
        match self.database.take() {
            Some(path) if !path.is_empty() => Err(refused(&format!("{words}: nothing may follow the port"))),
            _ => Ok(()),
        }
    }

    /// Takes `url` apart.
    ///
    /// # Errors
    /// [`Fault::Refused`] with the malformed part.
    pub fn read(url: &Url) -> Result<Self, Fault> {
        filled_in(url)?;
        separated(url)?;
        let (_, rest) = url.expose().split_once("://").ok_or_else(|| refused("it has no ://"))?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let first_option = options.split(['=', '&']).next().unwrap_or_default();
        if !authority.contains('@') && (rest.contains('@') || first_option.contains('@')) {
            return Err(refused(IN_PASSWORD));
        }
        // A password may hold an `@` that was not encoded; a host cannot.
        let (account, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match account.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (account, None),
        };
        let options = options.split('&').filter(|option| !option.is_empty()).map(|option| {
            let (name, value) = option.split_once('=').ok_or_else(|| refused("an option has no ="))?;
            if value.contains('=') {
                return Err(refused("an option has a second =: in a value it is written %3D"));
            }
            Ok((decode(name)?, decode(value)?))
        });
        let text = |text: &str| if text.is_empty() { Ok(None) } else { decode(text).map(Some) };
        Ok(Self {
            scheme: url.scheme().to_owned(),
            is_java: url.is_java(),
            user: text(user)?,
            password: text(password.unwrap_or_default())?,
            hosts: place.split(',').map(host).collect::<Result<_, _>>()?,
            database: text(database)?,
            options: options.collect::<Result<_, Fault>>()?,
        })
    }

    /// The value of the option `wanted`; the last one counts. Case, `_` and `-` make no difference: libpq's `sslmode`
    /// and MySQL's `ssl-mode` are `sslMode` or `ssl_mode` in drivers.
    pub fn option(&self, wanted: &str) -> Option<&str> {
        let wanted = bare(wanted);
        self.options.iter().rev().find(|(name, _)| bare(name) == wanted).map(|(_, value)| value.as_str())
    }

    /// The values of all options `wanted` as a list with commas: SQLAlchemy repeats `host` for several servers.
    pub fn joined(&self, wanted: &str) -> Option<String> {
        let wanted = bare(wanted);
        let given = self.options.iter().filter(|(name, _)| bare(name) == wanted).map(|(_, value)| value.as_str());
        let values: Vec<&str> = given.collect();
        (!values.is_empty()).then(|| values.join(","))
    }

    /// True if an option of the URL names `file`.
    pub fn names_file(&self, file: &Path) -> bool {
        self.options.iter().any(|(_, value)| Path::new(value) == file)
    }

    /// The value of the first of `names` that is there.
    pub fn any(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.option(name))
    }

    /// Sets the option `name` if the URL has none.
    pub fn default_option(&mut self, name: &str, value: &str) {
        if self.option(name).is_none() {
            self.options.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Sets the option `name`, whether the URL has it or not.
    pub fn put_option(&mut self, name: &str, value: String) {
        self.options.push((name.to_owned(), value));
    }

    /// Refuses options other than those that are `used` and those without effect here (`idle`).
    ///
    /// # Errors
    /// [`Fault::Refused`] with the first unknown name.
    pub fn only(&self, used: &[&[&str]], idle: &[&str]) -> Result<(), Fault> {
        let used = used.concat();
        let is_known = |name: &str| used.iter().chain(idle).chain(&COMMON).any(|known| bare(known) == bare(name));
        match self.options.iter().find(|(name, _)| !is_known(name)) {
            Some((name, _)) => {
                let own: Vec<&str> = used.iter().copied().filter(|known| !COMMON.contains(known)).collect();
                Err(refused(&format!("option {name} is not known; those that are used are {}", own.join(", "))))
            }
            None => Ok(()),
        }
    }

    /// Refuses those of `options` that have a value that would change something.
    ///
    /// # Errors
    /// [`Fault::Refused`] with the option and why.
    pub fn without(&self, options: &[RefusedOption]) -> Result<(), Fault> {
        for (name, harmless, why) in options {
            if self.option(name).is_some_and(|value| harmless.iter().all(|known| !value.eq_ignore_ascii_case(known))) {
                return Err(refused(&format!("{name}: {why}")));
            }
        }
        Ok(())
    }

    /// Names of the options that are among `idle`, as the URL writes them.
    pub fn idle(&self, idle: &[&str]) -> Vec<String> {
        let is_idle = |name: &&String| idle.iter().any(|known| bare(known) == bare(name));
        let names: BTreeSet<&String> = self.options.iter().map(|(name, _)| name).filter(is_idle).collect();
        names.into_iter().cloned().collect()
    }

    /// The client's certificate and key, in options of these names: both or none. An empty value is none.
    ///
    /// # Errors
    /// [`Fault::Refused`] for one without the other.
    pub fn identity(&self, certificate: &[&str], key: &[&str]) -> Result<Option<(PathBuf, PathBuf)>, Fault> {
        let file = |names: &[&str]| self.any(names).filter(|file| !file.is_empty());
        match (file(certificate), file(key)) {
            (Some(certificate), Some(key)) => Ok(Some((certificate.into(), key.into()))),
            (None, None) => Ok(None),
            _ => Err(refused(&format!("{} and {} belong together", certificate[0], key[0]))),
        }
    }

    /// Moves host and port of a connection out of options: `hosts` and `ports` are comma-separated lists, as in libpq.
    ///
    /// # Errors
    /// [`Fault::Refused`] if their numbers differ, or a port is invalid.
    pub fn put_place(&mut self, hosts: Option<&str>, ports: Option<&str>) -> Result<(), Fault> {
        if let Some(hosts) = hosts {
            let ports: Vec<_> = self.hosts.iter().map(|host| host.port).collect();
            let mut passwords: Vec<_> = self.hosts.iter_mut().map(|host| host.password.take()).collect();
            passwords.resize(hosts.split(',').count(), None);
            let one = ports.first().copied().flatten();
            let port = |number: usize| if ports.len() > 1 { ports.get(number).copied().flatten() } else { one };
            let named = hosts.split(',').zip(passwords).enumerate();
            let hosts = named.map(|(number, (text, password))| {
                let (name, own) = with_port(text)?;
                Ok(Host { name: name.to_owned(), port: own.or(port(number)), password })
            });
            self.hosts = hosts.collect::<Result<_, Fault>>()?;
        }
        if let Some(ports) = ports {
            let ports: Vec<_> = ports.split(',').map(port).collect::<Result<_, _>>()?;
            if ports.len() != 1 && ports.len() != self.hosts.len() {
                return Err(refused("it has more hosts than ports, or more ports than hosts"));
            }
            for (number, host) in self.hosts.iter_mut().enumerate() {
                host.port = ports[if ports.len() == 1 { 0 } else { number }];
            }
        }
        Ok(())
    }
}

/// Refuses variables and placeholders, which would be taken for the password itself: `${DB_PASSWORD}` in a file,
/// `[YOUR-PASSWORD]` or `<db_password>` of a cloud's console.
///
/// # Errors
/// [`Fault::Refused`] with what to do.
pub fn filled_in(url: &Url) -> Result<(), Fault> {
    const ADVICE: &str = "leave the password out, and give it by the variable of the product";
    let text = url.expose();
    if text.contains("${") || text.contains("{{") {
        return Err(refused(&format!("variables in it are not replaced: {ADVICE}")));
    }
    let place = text.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let account = place.rsplit_once('@').map_or("", |(account, _)| account);
    let password = account.split_once(':').map_or("", |(_, password)| password);
    let password = percent_decode_str(password).decode_utf8_lossy().to_ascii_lowercase();
    let is_enclosed = |(open, close): &(&str, &str)| password.starts_with(*open) && password.ends_with(*close);
    let is_variable = [("${", "}"), ("{{", "}}")].iter().any(is_enclosed);
    let is_named = ["pass", "pwd"].iter().any(|word| password.contains(word));
    let is_name = is_named && [("[", "]"), ("<", ">"), ("{", "}")].iter().any(is_enclosed);
    let is_masked = !password.is_empty() && password.chars().all(|sign| "*•●".contains(sign));
    let is_button = ["click_to:reveal_password", "show-password"].contains(&password.as_str());
    match is_variable || is_name || is_masked || is_button {
        true => Err(refused(&format!("its password is a placeholder: {ADVICE}"))),
        false => Ok(()),
    }
}

/// Refuses options without a `?` before them, which would be taken for a part of the database's name, and what they ask
/// for, as TLS, be left out: `/shop&sslmode=require`, `/shop;ssl=true`.
///
/// # Errors
/// [`Fault::Refused`] with what to write.
pub fn separated(url: &Url) -> Result<(), Fault> {
    let rest = url.expose().split_once("://").map_or("", |(_, rest)| rest);
    let path = rest.split('?').next().and_then(|rest| rest.split_once('/')).map_or("", |(_, path)| path);
    let is_option = |(_, behind): (&str, &str)| behind.contains('=');
    match !path.contains('@') && path.split_once(['&', ';']).is_some_and(is_option) {
        true => Err(refused("its options begin with ?, and & is between them: /name?one=1&two=2")),
        false => Ok(()),
    }
}

/// Options that mean the same for every product.
const COMMON: [&str; 2] = ["server_name", PASSWORD_COMMAND];

/// An option that is refused: its name, the values without effect, and why others are refused.
pub type RefusedOption = (&'static str, &'static [&'static str], &'static str);

/// Option with a command that prints the password.
pub const PASSWORD_COMMAND: &str = "password_command";

/// The refusal of an `@` after a slash or a question mark.
const IN_PASSWORD: &str = "there is an @ after its first / or ?: a password with / ? # or @ in it is written with %2F %3F %23 %40 in their place";

/// `name` without the differences in spelling between drivers.
fn bare(name: &str) -> String {
    name.chars().filter(|c| !['_', '-'].contains(c)).map(|c| c.to_ascii_lowercase()).collect()
}

/// Splits `host:port` in an option, as SQLAlchemy writes it. An IPv6 address has several colons.
fn with_port(text: &str) -> Result<(&str, Option<u16>), Fault> {
    match text.split_once(':') {
        Some((name, behind)) if !behind.contains(':') && !text.starts_with(['/', '@']) => Ok((name, port(behind)?)),
        _ => Ok((text, None)),
    }
}

/// Splits `host:port`, `[v6]:port` or `host`.
fn host(place: &str) -> Result<Host, Fault> {
    if place.contains(['(', '=']) {
        return Err(refused("a host is written host:port, also where Java has (host=…,port=…)"));
    }
    let is_address = |place: &str| place.chars().all(|sign| sign.is_ascii_hexdigit() || ":.%".contains(sign));
    if place.matches(':').count() > 1 && is_address(place) {
        return Err(refused("an IPv6 address is written in brackets: [::1] or [::1]:PORT"));
    }
    let (name, behind) = match place.strip_prefix('[') {
        Some(rest) => {
            let (name, behind) = rest.split_once(']').ok_or_else(|| refused("an IPv6 address is not closed"))?;
            if name.is_empty() {
                return Err(refused("an IPv6 address is empty"));
            }
            let behind = match behind.strip_prefix(':') {
                None if !behind.is_empty() => return Err(refused("an IPv6 address is followed by neither : nor /")),
                behind => behind,
            };
            (name, behind)
        }
        None => place.split_once(':').map_or((place, None), |(name, port)| (name, Some(port))),
    };
    Ok(Host { name: decode(name)?, port: behind.map_or(Ok(None), port)?, ..Host::default() })
}

fn port(text: &str) -> Result<Option<u16>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|number| *number > 0);
    number
        .map(Some)
        .ok_or_else(|| refused("its port is not a number from 1 to 65535; a / in a password is written %2F"))
}

/// Decodes `%41` (RFC 3986, section 2.1).
fn decode(text: &str) -> Result<String, Fault> {
    let is_encoded = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|digit| digit.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_encoded) {
        return Err(refused("a % is not followed by two hexadecimal digits; the sign itself is written %25"));
    }
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| refused("what it encodes is no UTF-8 text"))?;
    if decoded.contains('\0') {
        return Err(refused("%00 is a character that no server accepts"));
    }
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, ToSocketAddrs as _};

    use super::*;

    #[test]
    fn an_empty_name_of_a_file_is_none() {
        let identity = |options: &str| {
            let parts = UrlParts::read(&Url::new(format!("postgres://ann@db/x?{options}"))).expect("a URL");
            parts.identity(&["sslcert"], &["sslkey"])
        };
        assert_eq!(identity("sslcert=&sslkey="), Ok(None));
        assert_eq!(identity("sslcert=/c.pem&sslkey=/k.pem"), Ok(Some(("/c.pem".into(), "/k.pem".into()))));
        assert!(identity("sslcert=/c.pem&sslkey=").is_err());
    }

    #[test]
    fn variables_and_placeholders_are_no_passwords() {
        let why = |url: &str| UrlParts::read(&Url::new(url)).err().map(|fault| fault.to_string()).unwrap_or_default();
        for url in [
            "postgresql://postgres.shop:[YOUR-PASSWORD]@pooler.example:6543/postgres",
            "rediss://default:<password>@db.example",
            "mysql://app:%3Cdb_password%3E@db.example/shop",
            "host=db user=app password=${DB_PASSWORD}",
            "app:${PW}@tcp(db:3306)/shop",
            "host=db user=app password={your_password}",
            "rediss://default:********@db.example",
            "mysql://app:••••••••@db.example/shop",
            "mysql://app:CLICK_TO:REVEAL_PASSWORD@db.example/shop",
            "postgresql://app:show-password@db.example/shop",
        ] {
            assert!(why(url).contains("its password is a placeholder: leave the password out"), "{url}");
        }
        for url in ["postgres://app:${PW}@db/shop", "postgres://app@${PGHOST}/shop", "redis://:{{ .Values.pw }}@db"] {
            assert!(why(url).contains("variables in it are not replaced"), "{url}");
        }
        for url in ["postgres://app:[brackets]@db", "postgres://app:a$pass@db", "redis://db"] {
            assert_eq!(why(url), "", "{url}");
        }
    }

    #[test]
    fn options_without_their_sign_are_no_part_of_a_name() {
        let why = |url: &str| UrlParts::read(&Url::new(url)).err().map(|fault| fault.to_string()).unwrap_or_default();
        for url in
            ["postgres://app@db/shop&sslmode=require", "jdbc:mysql://db/shop;useSSL=true", "redis://db/0&ssl=true"]
        {
            assert!(why(url).contains("its options begin with ?"), "{url}: {}", why(url));
        }
        for url in ["postgres://app@db/shop?sslmode=require&a=b", "mysql://app@db/a&b", "postgres://app@db/a%26b%3Dc"] {
            assert_eq!(why(url), "", "{url}");
        }
        assert!(why("postgres://app:a/b&c=d@db/shop").contains("there is an @ after its first /"));
    }

    #[test]
    fn an_address_is_connected_to_in_its_zone() {
        let parts = UrlParts::read(&Url::new("redis://[fe80::7%25lo]:7/0")).expect("a URL");
        let Host { name, port, .. } = &parts.hosts[0];
        assert_eq!((name.as_str(), *port), ("fe80::7%lo", Some(7)));
        // As `Wire::connect` resolves it. The loopback interface is the kernel's first.
        let found = (name.as_str(), 7).to_socket_addrs().expect("an address").next();
        assert!(matches!(found, Some(SocketAddr::V6(address)) if address.scope_id() == 1), "{found:?}");
        let raw = UrlParts::read(&Url::new("redis://[fe80::7%lo]:7")).expect_err("not encoded").to_string();
        assert!(raw.contains("the sign itself is written %25"), "{raw}");
        let bare = UrlParts::read(&Url::new("redis://app@fe80::7/0")).expect_err("no brackets").to_string();
        assert!(bare.contains("an IPv6 address is written in brackets"), "{bare}");
    }
}
