//! Credentials: only from files that only their owner may read, never from an argument or a variable.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use async_nats::ConnectOptions;
use tithe_machine::{
    fault::Fault,
    secret::{Secret, owners_alone},
};
use tithe_plugin::{
    setup::TlsVersion,
    wire::{Identity, Trust, client_config},
};

use crate::address::BrokerUrl;

/// Largest file of credentials that is read, bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Longest name of an account.
const NAME_LENGTH_MAX: usize = 64;

/// Length of an NKey's seed.
const SEED_LENGTH: usize = 58;

/// Files with the account's identity and its trusted authority. At most one of the first three.
#[derive(Debug, Clone, Default)]
pub struct AccessFiles {
    /// An account's JWT and seed, as `nsc generate creds` writes them.
    pub credentials: Option<PathBuf>,
    /// The seed of an NKey, as `nk -gen user` writes it: one line, `SU…`.
    pub nkey: Option<PathBuf>,
    /// A user in the first line, its password in the second.
    pub password: Option<PathBuf>,
    /// The authority that signed the broker's certificate, PEM; the system's authorities if `None`.
    pub authority: Option<PathBuf>,
    /// A client's certificate and its key, PEM, for a broker that asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// How an account authenticates.
#[derive(Debug, Clone)]
pub struct Access {
    name: String,
    account: Account,
    authority: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

#[derive(Debug, Clone)]
enum Account {
    /// For a broker that accepts everyone, or identifies accounts by the client's certificate.
    Unnamed,
    Credentials(Secret),
    Seed(Secret),
    Password {
        user: Secret,
        password: Secret,
    },
}

impl Access {
    /// Reads `files`. The broker lists the connection as `name`. It is also a part of the subject of its answers,
    /// `tithe.inbox.NAME.>`, by which a broker distinguishes accounts.
    ///
    /// # Errors
    /// [`Fault::Refused`], if others than its owner may read a file. [`Fault::Machine`], if it cannot be read or is not
    /// of its kind, or if the name is not valid. No error contains text from a file.
    pub fn read(name: &str, files: &AccessFiles) -> Result<Self, Fault> {
        let is_name = |delivery: char| delivery.is_ascii_alphanumeric() || matches!(delivery, '-' | '_');
        if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.chars().all(is_name) {
            let words = "is not a name: write up to 64 letters, digits, `-` and `_`";
            return Err(Fault::Machine(format!("`{}` {words}", name.escape_debug())));
        }
        if let Some((_, key)) = &files.identity {
            owners_alone(&open(key)?, key)?;
        }
        let account = Account::read(files)?;
        Ok(Self {
            name: name.to_owned(),
            account,
            authority: files.authority.clone(),
            identity: files.identity.clone(),
        })
    }

    /// The account's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to connect to `at`.
    pub(crate) fn options(&self, at: &BrokerUrl, within: Duration) -> Result<ConnectOptions, Fault> {
        let options = self.account.options()?.name(&self.name).connection_timeout(within);
        if at.has_tls() { self.encrypted(options) } else { Ok(options) }
    }

    fn encrypted(&self, options: ConnectOptions) -> Result<ConnectOptions, Fault> {
        let options = options.require_tls(true);
        let Some(authority) = &self.authority else {
            return Ok(match &self.identity {
                Some((certificate, key)) => options.add_client_certificate(certificate.clone(), key.clone()),
                None => options,
            });
        };
        let identity = self.identity.as_ref().map(|(certificate, key)| Identity { certificate, key });
        let versions = [TlsVersion::V1_2, TlsVersion::V1_3];
        let config = client_config(Trust::Authority(authority), identity, &versions, false, None)?;
        Ok(options.tls_client_config((*config).clone()))
    }
}

impl Account {
    fn read(files: &AccessFiles) -> Result<Self, Fault> {
        match (&files.credentials, &files.nkey, &files.password) {
            (None, None, None) => Ok(Self::Unnamed),
            (Some(path), None, None) => {
                let text = secret(path)?;
                ConnectOptions::with_credentials(text.expose_text()).map_err(|_| {
                    not(path, "credentials", "a JWT and a seed, each between its BEGIN and END, as `nsc` writes them")
                })?;
                Ok(Self::Credentials(text))
            }
            (None, Some(path), None) => seed(path),
            (None, None, Some(path)) => password(path),
            _ => Err(Fault::Machine("name one file of credentials, or of an NKey, or of a password".to_owned())),
        }
    }

    fn options(&self) -> Result<ConnectOptions, Fault> {
        let text = |secret: &Secret| secret.expose_text().to_owned();
        match self {
            Self::Unnamed => Ok(ConnectOptions::new()),
            Self::Credentials(all) => ConnectOptions::with_credentials(all.expose_text())
                .map_err(|_| Fault::Machine("the credentials cannot be read any more".to_owned())),
            Self::Seed(seed) => Ok(ConnectOptions::with_nkey(text(seed))),
            Self::Password { user, password } => Ok(ConnectOptions::with_user_and_password(text(user), text(password))),
        }
    }
}

fn seed(path: &Path) -> Result<Account, Fault> {
    let text = secret(path)?;
    let seed = text.expose_text().trim();
    let is_seed = seed.len() == SEED_LENGTH
        && seed.starts_with("SU")
        && seed.chars().all(|delivery| matches!(delivery, 'A'..='Z' | '2'..='7'));
    if !is_seed {
        return Err(not(path, "the seed of a user's NKey", "one line of 58 letters that begins with SU"));
    }
    Ok(Account::Seed(Secret::new(seed)))
}

fn password(path: &Path) -> Result<Account, Fault> {
    let text = secret(path)?;
    let lines: Vec<&str> = text.expose_text().lines().collect();
    match lines[..] {
        [user, password] if !user.is_empty() && !password.is_empty() => {
            Ok(Account::Password { user: Secret::new(user), password: Secret::new(password) })
        }
        _ => Err(not(path, "a user and a password", "the user in the first line, the password in the second")),
    }
}

/// The text in the file at `path`, which only its owner may read.
fn secret(path: &Path) -> Result<Secret, Fault> {
    let file = open(path)?;
    owners_alone(&file, path)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| Fault::machine(path.display(), error))?;
    Ok(Secret::new(text))
}

fn open(path: &Path) -> Result<File, Fault> {
    File::open(path).map_err(|error| Fault::machine(path.display(), error))
}

fn not(path: &Path, what: &str, shape: &str) -> Fault {
    Fault::Machine(format!("{} does not hold {what}: {shape}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use expect_test::expect;

    use super::*;

    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";

    /// A file with `text` and the permissions `mode`.
    fn file(folder: &Path, name: &str, text: &str, mode: u32) -> Option<PathBuf> {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Some(path)
    }

    fn read(files: &AccessFiles) -> Result<Access, Fault> {
        Access::read("rack7", files)
    }

    #[test]
    fn what_is_no_credential_is_told_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str, mode| file(folder.path(), name, text, mode);
        let none = AccessFiles::default;
        let tried = [
            AccessFiles { nkey: at("short", "SUSECRET", 0o600), ..none() },
            AccessFiles { nkey: at("small", &SEED.to_lowercase(), 0o600), ..none() },
            AccessFiles { password: at("one", "SECRET", 0o600), ..none() },
            AccessFiles { password: at("three", "a\nSECRET\nc", 0o600), ..none() },
            AccessFiles { credentials: at("creds", "SECRET", 0o600), ..none() },
            AccessFiles { nkey: at("open", SEED, 0o640), ..none() },
            AccessFiles { password: Some(folder.path().join("missing")), ..none() },
            AccessFiles { nkey: at("nkey", SEED, 0o600), password: at("both", "a\nSECRET", 0o600), ..none() },
            AccessFiles { identity: at("client.pem", "", 0o644).zip(at("client.key", "SECRET", 0o644)), ..none() },
        ];
        let said = tried.map(|files| read(&files).unwrap_err().to_string()).join("\n");
        let said = said.replace(&folder.path().display().to_string(), "FOLDER");
        expect![[r#"
            FOLDER/short does not hold the seed of a user's NKey: one line of 58 letters that begins with SU
            FOLDER/small does not hold the seed of a user's NKey: one line of 58 letters that begins with SU
            FOLDER/one does not hold a user and a password: the user in the first line, the password in the second
            FOLDER/three does not hold a user and a password: the user in the first line, the password in the second
            FOLDER/creds does not hold credentials: a JWT and a seed, each between its BEGIN and END, as `nsc` writes them
            refused: FOLDER/open is readable by others than its owner (mode 640): chmod 600
            FOLDER/missing: No such file or directory (os error 2)
            name one file of credentials, or of an NKey, or of a password
            refused: FOLDER/client.key is readable by others than its owner (mode 644): chmod 600"#]]
        .assert_eq(&said);
        assert!(!said.contains("SECRET"));
    }

    #[test]
    fn names_are_parts_of_subjects() {
        let named = |name: &str| Access::read(name, &AccessFiles::default()).map(|access| access.name().to_owned());
        assert_eq!(named("rack-7_b"), Ok("rack-7_b".to_owned()));
        for wrong in ["", ">", "a.b", "a b", "\u{e4}", &"x".repeat(65)] {
            assert!(matches!(named(wrong), Err(Fault::Machine(_))), "{wrong}");
        }
        expect!["`a\\n>` is not a name: write up to 64 letters, digits, `-` and `_`"]
            .assert_eq(&named("a\n>").unwrap_err().to_string());
    }

    #[test]
    fn nothing_of_it_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let with = |files| format!("{:?}", read(&files).unwrap());
        let password = file(folder.path(), "password", "someone\nhunter2\n", 0o600);
        let nkey = file(folder.path(), "nkey", SEED, 0o600);
        let said =
            with(AccessFiles { password, ..Default::default() }) + &with(AccessFiles { nkey, ..Default::default() });
        assert!(!said.contains("someone") && !said.contains("hunter2") && !said.contains(SEED), "{said}");
    }
}
