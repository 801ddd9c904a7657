//! The address of a running server: reads the usual forms, and shows it without its password.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// The address of a running server, as a URL. Its password is never printed, logged or serialised; [`Url::of_records`]
/// describes which part of it records contain.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(String);

/// Characters that need no encoding in any part of a URL (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Beginnings of URLs in which Redis' own client and drivers of Java take a password without a colon.
const PASSWORD_ALONE: [&str; 5] = ["redis://", "rediss://", "redis+unix://", "valkey://", "valkeys://"];

/// The longest name that is an account for sure, bytes; passwords that consoles make are longer.
const LONGEST_ACCOUNT: usize = 20;

/// What consoles put before an address of Redis that has the scheme of plaintext and means TLS.
const REDIS_WITH_TLS: &str = "redis-cli --tls -u ";

/// The prefix that Java drivers put before the scheme.
const JAVA: &str = "jdbc:";

/// Keywords of libpq of which an address in its form `keyword=value` has at least one.
const KEYWORDS: [&str; 10] =
    ["host", "hostaddr", "port", "user", "dbname", "password", "service", "sslmode", "application_name", "passfile"];

impl Url {
    /// Reads `text`: a URL, libpq's `keyword=value`, Go's `user@tcp(host:3306)/name`, or Java's `jdbc:postgresql:name`;
    /// each also in quotes, and behind the name of its program. Any other text stays unchanged, and has no scheme.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        if let Some(url) = text.trim().strip_prefix(REDIS_WITH_TLS).map(Self::new) {
            return match url.0.strip_prefix("redis://") {
                Some(rest) => Self(format!("rediss://{rest}")),
                None => url,
            };
        }
        let it = without_program(&text);
        let read = keywords(it).or_else(|| go(it)).or_else(|| java(it)).or_else(|| with_small_scheme(it));
        Self(read.unwrap_or(text))
    }

    /// The same with one of `schemes`, the one with TLS and the one without, if it is an address by HTTPS or HTTP. Its
    /// port is that of the protocol if it names none.
    #[must_use]
    pub fn without_http(self, schemes: (&str, &str)) -> Self {
        let (scheme, port) = match self.scheme() {
            "https" => (schemes.0, 443),
            "http" => (schemes.1, 80),
            _ => return self,
        };
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // A colon in an IPv6 address is before its bracket, one in a password before its `@`.
        let has_port = authority.rsplit(['@', ']']).next().is_some_and(|end| end.contains(':'));
        let port = if has_port { String::new() } else { format!(":{port}") };
        Self(format!("{scheme}://{authority}{port}{tail}"))
    }

    /// True if `text` is an address in one of these forms, or resembles one.
    pub fn is_url(text: &str) -> bool {
        Self::new(text).0.split_once("://").is_some_and(|(scheme, _)| !scheme.is_empty())
    }

    /// The whole URL, password included: for the driver only.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Host and port, as they are written.
    pub fn place(&self) -> String {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit('@').next().unwrap_or_default().to_owned()
    }

    /// The scheme: what precedes `://`, without the `jdbc:` of Java; empty if that is no scheme, as where an option of
    /// an address without one has a URL.
    pub fn scheme(&self) -> &str {
        let scheme = self.0.split_once("://").map_or("", |(scheme, _)| scheme);
        let scheme = scheme.strip_prefix(JAVA).unwrap_or(scheme);
        let signs = if self.is_java() { "+-.:" } else { "+-." };
        let is_scheme = scheme.chars().all(|sign| sign.is_ascii_alphanumeric() || signs.contains(sign));
        if is_scheme { scheme } else { "" }
    }

    /// True for a URL in the form of a Java driver.
    pub fn is_java(&self) -> bool {
        self.0.starts_with(JAVA)
    }

    /// True if the URL contains nothing that [`Url::redacted`] hides.
    pub fn is_bare(&self) -> bool {
        self.redacted() == self.0
    }

    /// The URL with any password replaced by `***`; hides more than the password if its end is not clear.
    ///
    /// A password may hold unescaped `@`, `/`, `?` and `#`, against RFC 3986. What cannot be distinguished from a
    /// password is not shown.
    pub fn redacted(&self) -> String {
        let Some((scheme, rest)) = self.0.split_once("://") else { return "***".to_owned() };
        if self.scheme().is_empty() || self.scheme().contains(':') {
            return "***".to_owned();
        }
        let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(authority_end);
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        if tail.contains('@') || !are_hosts(hosts) {
            return format!("{scheme}://***");
        }
        let user = match user.split_once(':') {
            Some((name, _)) => format!("{name}:***@"),
            None if user.is_empty() => String::new(),
            None if user.len() > LONGEST_ACCOUNT && PASSWORD_ALONE.iter().any(|it| self.0.starts_with(it)) => {
                "***@".to_owned()
            }
            None => format!("{user}@"),
        };
        // Drivers also accept `?password=…`: nothing after `?` is shown.
        let path = tail.split(['?', '#']).next().unwrap_or_default();
        format!("{scheme}://{user}{hosts}{path}")
    }

    /// As [`Url::redacted`], without an account that may be a password: for a URL with which no password is given.
    pub fn redacted_alone(&self) -> String {
        let shown = self.redacted();
        let hidden = PASSWORD_ALONE.into_iter().find_map(|scheme| {
            let (user, place) = shown.strip_prefix(scheme)?.split_once('@')?;
            (!user.contains(':')).then(|| format!("{scheme}***@{place}"))
        });
        hidden.unwrap_or(shown)
    }

    /// True for a URL with a password before its host, an option that may hold a secret, or parts that cannot be
    /// distinguished from one.
    pub fn holds_secret(&self) -> bool {
        let (place, options) = self.split();
        !Self(place.to_owned()).is_bare() || may_hold_secret(options)
    }

    /// The commands in its options that a shell runs to get a password.
    pub fn commands(&self) -> Vec<String> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        // Clients ignore these signs in names.
        let plain = |name: &str| decoded(name).to_ascii_lowercase().replace(['_', '-'], "");
        let options = self.split().1.split(['?', '#', '&']).filter_map(|option| option.split_once('='));
        options.filter(|(name, _)| plain(name).ends_with("command")).map(|(_, value)| decoded(value)).collect()
    }

    /// The form for records: the URL as [`Url::redacted`], and its options if none of them may contain a secret; else
    /// `?***` replaces them.
    fn kept(&self) -> String {
        let options = match self.split().1 {
            options if may_hold_secret(options) => "?***",
            options => options,
        };
        self.redacted() + options
    }

    /// The URL of a record, without the mask of its password; `None` if the record hides more than that.
    pub fn of_records(&self) -> Option<Self> {
        let whole = self.kept().replacen(":***@", "@", 1);
        (!whole.contains("***")).then_some(Self(whole))
    }

    /// The URL up to its options, and its options.
    fn split(&self) -> (&str, &str) {
        self.0.split_at(self.0.find(['?', '#']).unwrap_or(self.0.len()))
    }
}

/// True if some option may contain a secret, or a part of a password that was not encoded.
fn may_hold_secret(options: &str) -> bool {
    // A command or a file that contains the password is not itself a secret.
    let shown = |option: &&str| !["password_command=", "passfile="].iter().any(|name| option.starts_with(name));
    let asked = options.trim_start_matches(['?', '#']).split('&').filter(shown).collect::<Vec<_>>().join("&");
    let asked = percent_decode_str(&asked).decode_utf8_lossy().to_ascii_lowercase();
    asked.contains("***") || options.contains('@') || names_secret(&asked)
}

/// True if `text` contains a word that names a secret. Signs between its parts are ignored: `api_key` is `apikey`.
pub(crate) fn names_secret(text: &str) -> bool {
    // The keys of SCRAM are as good as the password that they are made from.
    const SECRET: [&str; 9] =
        ["pass", "pwd", "secret", "token", "apikey", "accesskey", "primarykey", "scramclientkey", "scramserverkey"];
    let plain = text.to_lowercase().replace(['_', '-', '.'], "");
    SECRET.iter().any(|word| plain.contains(word))
}

/// True for `host`, `host:5432`, `[::1]:5432`, `one:1,two:2`: what follows a colon is a port. Java's
/// `(host=one,password=x)` is none if it may hold a secret.
fn are_hosts(text: &str) -> bool {
    let is_port = |port: &str| port.ends_with(']') || port.chars().all(|c| c.is_ascii_digit());
    let hides = text.contains('=') && may_hold_secret(text);
    !hides && text.split(',').all(|host| host.rsplit_once(':').is_none_or(|(_, port)| is_port(port)))
}

/// `text` without what consoles and files of variables put around an address: `psql 'postgres://…'`,
/// `DATABASE_URL="redis://…"`.
fn without_program(text: &str) -> &str {
    const PROGRAMS: [&str; 3] = ["psql ", "mongosh ", "redis-cli -u "];
    let is_of_variable = |sign: char| sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_';
    let text = text.trim();
    let text = text.strip_prefix("export ").unwrap_or(text);
    let text = match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && name.chars().all(is_of_variable) => value,
        _ => text,
    };
    let text = PROGRAMS.iter().find_map(|program| text.strip_prefix(*program)).unwrap_or(text).trim();
    let quoted = ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(text)
}

/// Schemes that mean the same as another one, TLS included.
const SAME: [(&str, &str); 4] = [
    ("valkey://", "redis://"),
    ("valkeys://", "rediss://"),
    ("redis-socket://", "redis+unix://"),
    ("memcache://", "memcached://"),
];

/// A URL without spaces around it, and with a lower-case scheme, which lists of endpoints repeat.
fn with_small_scheme(text: &str) -> Option<String> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    // Java's reactive drivers read the same options as its others.
    let scheme = scheme.strip_prefix("r2dbc:").map_or(format!("{scheme}://"), |scheme| format!("{JAVA}{scheme}://"));
    let rest = rest.replace(&format!(",{scheme}"), ",");
    let scheme = SAME.iter().find(|(other, _)| *other == scheme).map_or(scheme.as_str(), |(_, same)| *same);
    Some(format!("{scheme}{rest}"))
}

/// The address of Java's driver for PostgreSQL that names no host, which is this machine by TCP:
/// `jdbc:postgresql:name`, `jdbc:postgresql:///name`.
fn java(text: &str) -> Option<String> {
    const DRIVER: &str = "jdbc:postgresql:";
    let (driver, rest) = text.trim().split_at_checked(DRIVER.len())?;
    let name = match rest.strip_prefix("//") {
        Some(place) => place.strip_prefix('/')?,
        None => rest.strip_prefix('/').unwrap_or(rest),
    };
    driver.eq_ignore_ascii_case(DRIVER).then(|| format!("{DRIVER}//localhost/{name}"))
}

/// libpq's `keyword=value` (PostgreSQL documentation, "Connection Strings") as a URL.
fn keywords(text: &str) -> Option<String> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = value(after.trim_start())?;
        pairs.push((name.trim_end(), value));
        rest = after.trim_start();
    }
    // The scheme of a URL is no keyword.
    let is_keyword = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !is_keyword(pairs.first()?.0) || !pairs.iter().any(|(name, _)| KEYWORDS.contains(name)) {
        return None;
    }
    let last = |wanted: &str| pairs.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str());
    // In forms of other libraries a semicolon separates.
    if last("host").is_some_and(|host| host.contains(';')) {
        return None;
    }
    let user = last("user").map(|user| {
        encoded(user) + &last("password").map(|word| format!(":{}", encoded(word))).unwrap_or_default() + "@"
    });
    let ports: Vec<&str> = last("port").map_or_else(Vec::new, |ports| ports.split(',').collect());
    let hosts = last("host").unwrap_or_default().split(',').enumerate().map(|(number, host)| {
        // A zone of an address follows a percent sign. A folder may have colons, too.
        let is_address = host.contains(':') && !host.starts_with('/');
        let host = if is_address { format!("[{}]", host.replace('%', "%25")) } else { encoded(host) };
        let port = ports.get(number).or_else(|| ports.first().filter(|_| ports.len() == 1));
        host + &port.map(|port| format!(":{port}")).unwrap_or_default()
    });
    let hosts = hosts.collect::<Vec<_>>().join(",");
    let placed =
        |name: &str| ["host", "port", "user", "dbname"].contains(&name) || name == "password" && user.is_some();
    let options: Vec<String> = pairs
        .iter()
        .filter(|(name, _)| !placed(name))
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    let name = last("dbname").map(encoded).unwrap_or_default();
    let options = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
    Some(format!("postgresql://{}{hosts}/{name}{options}", user.unwrap_or_default()))
}

/// The value at the beginning of `text`, in quotes or up to a space, without backslashes; and what follows it.
fn value(text: &str) -> Option<(String, &str)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.push(characters.next()?.1),
            '\'' if quoted => return Some((value, &text[at + 1..])),
            _ if !quoted && character.is_whitespace() => return Some((value, &text[at..])),
            _ => value.push(character),
        }
    }
    (!quoted).then_some((value, ""))
}

/// The address of Go's driver for MySQL, `user:password@tcp(host:port)/name` or `user:password@/name`, as a URL.
fn go(text: &str) -> Option<String> {
    let found = ["tcp(", "unix("].into_iter().find_map(|word| Some((word, text.find(word)?)));
    let (account, place, rest) = match found {
        Some((protocol, at)) => {
            let account = text[..at].strip_suffix('@').or((at == 0).then_some(""))?;
            // Tools on top of the driver put a scheme before it.
            let is_scheme = |scheme: &str| scheme.chars().all(|it| it.is_ascii_alphabetic());
            let with_scheme = account.split_once("://").filter(|(scheme, _)| is_scheme(scheme));
            let account = with_scheme.map_or(account, |(_, account)| account);
            let (place, rest) = text[at + protocol.len()..].split_once(')')?;
            let place = if protocol == "unix(" { encoded(place) } else { place.to_owned() };
            (account, place, rest.strip_prefix('/')?)
        }
        // Without an address it is this machine.
        None => {
            let (account, rest) = text.split_once("@/").filter(|(account, _)| !account.contains(['/', ' ']))?;
            (account, "localhost".to_owned(), rest)
        }
    };
    let account = match account.split_once(':') {
        Some((user, password)) => format!("{}:{}@", encoded(user), encoded(password)),
        None if account.is_empty() => String::new(),
        None => encoded(account) + "@",
    };
    Some(format!("mysql://{account}{place}/{rest}"))
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

impl std::fmt::Debug for Url {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.redacted())
    }
}

impl Serialize for Url {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.kept())
    }
}

impl<'de> Deserialize<'de> for Url {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_people_have_for_an_address_becomes_a_url() {
        let forms = [
            " Postgres://app@Db/shop ",
            "jdbc:MySQL://db/shop?useSSL=true",
            "jdbc:postgresql:shop?user=app",
            "JDBC:postgresql:/",
            "r2dbc:postgresql://db/shop",
            "jdbc:postgresql:///shop",
            "jdbc:postgresql://db/shop",
            "https://a:2379,https://b:2379",
            "valkeys://db:6380/1",
            "memcache://db",
            "host=db port=5433 user=app dbname=shop sslmode=require",
            "host='/run/my folder' user='o\\'neill'",
            "host=a,b port=1,2 target_session_attrs=read-write",
            "host = fe80::1 port=5432",
            "host=fe80::1%eth0",
            "host=/cloudsql/shop:europe:db user=app",
            "service=shop",
            "connect_timeout=5 sslmode=require host=db user=app",
            "app:p@ss/word@tcp(db:3306)/shop?tls=true",
            "mysql://app:p@ss@tcp(db:3306)/shop",
            "app:a://b@tcp(db)/shop",
            "app@unix(/run/mysqld/mysqld.sock)/shop",
            "root:p@ss@/shop?charset=utf8",
            "psql 'postgresql://app@db/shop?sslmode=require'",
            "psql \"host=db user=app\"",
            "redis-cli -u redis://db",
            "redis-cli --tls -u redis://ann@db:6379",
            "'redis://db'",
            "export DATABASE_URL=\"postgres://app@db/shop?a=b\"",
            "postgres",
            "SELECT a=1",
            "host=db;password=x",
            "host='open",
        ];
        let read: Vec<String> = forms.iter().map(|form| Url::new(*form).expose().to_owned()).collect();
        expect![[r#"
            postgres://app@Db/shop
            jdbc:mysql://db/shop?useSSL=true
            jdbc:postgresql://localhost/shop?user=app
            jdbc:postgresql://localhost/
            jdbc:postgresql://db/shop
            jdbc:postgresql://localhost/shop
            jdbc:postgresql://db/shop
            https://a:2379,b:2379
            rediss://db:6380/1
            memcached://db
            postgresql://app@db:5433/shop?sslmode=require
            postgresql://o%27neill@%2Frun%2Fmy%20folder/
            postgresql://a:1,b:2/?target_session_attrs=read-write
            postgresql://[fe80::1]:5432/
            postgresql://[fe80::1%25eth0]/
            postgresql://app@%2Fcloudsql%2Fshop%3Aeurope%3Adb/
            postgresql:///?service=shop
            postgresql://app@db/?connect_timeout=5&sslmode=require
            mysql://app:p%40ss%2Fword@db:3306/shop?tls=true
            mysql://app:p%40ss@db:3306/shop
            mysql://app:a%3A%2F%2Fb@db/shop
            mysql://app@%2Frun%2Fmysqld%2Fmysqld.sock/shop
            mysql://root:p%40ss@localhost/shop?charset=utf8
            postgresql://app@db/shop?sslmode=require
            postgresql://app@db/
            redis://db
            rediss://ann@db:6379
            redis://db
            postgres://app@db/shop?a=b
            postgres
            SELECT a=1
            host=db;password=x
            host='open"#]]
        .assert_eq(&read.join("\n"));
        let java = Url::new("jdbc:mysql://db/shop?useSSL=true");
        assert_eq!(
            (java.scheme(), java.is_java(), java.redacted()),
            ("mysql", true, "jdbc:mysql://db/shop".to_owned())
        );
    }

    #[test]
    fn an_address_by_http_has_the_scheme_of_its_product() {
        let read = |text: &str| Url::new(text).without_http(("stores", "store")).expose().to_owned();
        for (address, expected) in [
            ("https://db:9200/", "stores://db:9200/"),
            ("HTTP://ann:x@db:9200?timeout=5", "store://ann:x@db:9200?timeout=5"),
            // As programs that read such an address.
            ("https://ann:x@db/", "stores://ann:x@db:443/"),
            ("http://[fe80::7]", "store://[fe80::7]:80"),
            ("https://[fe80::7]:9200", "stores://[fe80::7]:9200"),
            ("store://db", "store://db"),
        ] {
            assert_eq!(read(address), expected);
        }
    }

    #[test]
    fn records_keep_what_is_no_secret_and_say_where_they_lack_some() {
        let urls = [
            "postgres://ann@db:5432/shop?sslmode=verify-full&sslrootcert=/ca.pem",
            "postgres://ann:x@db/shop?sslmode=verify-full",
            "redis://db",
            "redis://db?password_command=cat%20/run/word",
            "postgres://db?user=ann&p%61ssword=x",
            "mongodb://db?authMechanismProperties=AWS_SESSION_TOKEN:x",
            "pg://ann:a/b@db?a=1",
            "pg://ann:1?b@db",
            "host=db password=x",
        ];
        let kept = |url: &Url| (url.kept(), url.of_records());
        let mut told = String::new();
        for url in urls.map(Url::new) {
            let (words, again) = kept(&url);
            let again = again.map_or("incomplete".to_owned(), |url| url.0);
            told += &format!("{words}\n  {again}\n");
            // A text read from records stays unchanged.
            assert_eq!(kept(&Url(words.clone())).0, words);
            assert!(!words.contains('x') || !url.holds_secret(), "{words}");
        }
        expect![[r#"
            postgres://ann@db:5432/shop?sslmode=verify-full&sslrootcert=/ca.pem
              postgres://ann@db:5432/shop?sslmode=verify-full&sslrootcert=/ca.pem
            postgres://ann:***@db/shop?sslmode=verify-full
              postgres://ann@db/shop?sslmode=verify-full
            redis://db
              redis://db
            redis://db?password_command=cat%20/run/word
              redis://db?password_command=cat%20/run/word
            postgres://db?***
              incomplete
            mongodb://db?***
              incomplete
            pg://***?a=1
              incomplete
            pg://***?***
              incomplete
            postgresql://db/?***
              incomplete
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn what_may_be_a_secret_is_told_from_the_rest_of_a_url() {
        for url in [
            "host=db user=ann password=x",
            "ann:x@tcp(db:3306)/shop",
            "postgres://ann:x@db/shop",
            "pg://a:b@c@db",
            "pg://ann@db/x?password=y",
            "postgres://ann@db/x?scram_client_key=c2VjcmV0",
            "postgres://ann@db/x?scramServerKey=c2VjcmV0",
            "pg://db?a=b@c",
            "pg://a@b/c@d",
        ] {
            assert!(Url::new(url).holds_secret(), "{url}");
        }
        for url in [
            "postgres://ann@db:5432/shop?sslmode=verify-full&sslrootcert=/ca.pem",
            "redis://ann@db",
            "pg://a@[::1]:5/x",
        ] {
            assert!(!Url::new(url).holds_secret(), "{url}");
        }
    }

    #[test]
    fn an_account_of_redis_may_be_a_password() {
        let shown = |url: &str| Url::new(url).redacted_alone();
        assert_eq!(shown("rediss://hunter2@db:6379/0"), "rediss://***@db:6379/0");
        assert_eq!(shown("redis://ann:hunter2@db"), "redis://ann:***@db");
        assert_eq!(shown("redis://db"), "redis://db");
        assert_eq!(shown("postgres://ann@db"), "postgres://ann@db");
    }

    #[test]
    fn a_password_is_shown_in_none_of_them() {
        for form in [
            "host=db user=app password='hunter2 and more'",
            "host=db password=hunter2",
            "app:hunter2@tcp(db:3306)/shop",
            "jdbc:postgresql://db/shop?user=app&password=hunter2",
            "jdbc:postgresql:shop?user=app&password=hunter2",
            "jdbc:mysql://(host=db,user=app,password=hunter2)/shop",
            "jdbc:mysql://address=(host=db)(password=hunter2)/shop",
            "rediss://hunter2hunter2hunter2hunter2@db:6379/0",
            "host=db user=app password=hunter2 open='",
            "psql 'postgres://app:hunter2@db/shop'",
            "redis-cli --tls -u 'redis://app:hunter2@db'",
            "psql 'postgres://app:hunter2@db/shop",
            "app:hunter2@db/shop?next=https://other",
        ] {
            assert!(!Url::new(form).redacted().contains("hunter2"), "{form}");
            assert!(!Url::new(form).scheme().contains("hunter2"), "{form}");
        }
    }
}
