//! PostgreSQL on stage: settings by `ALTER SYSTEM`, rules and maps by their files; all created objects are removed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tithe_machine::launch::Address;
use tithe_plugin::session::SqlSession;

use super::{Deception, Sandbox, Stage, pooler::Pooler, standby::Standby, until};
use crate::how;

/// Objects that an entry may have created are recognised by their number (documentation, "System Catalog Initial
/// Data").
const FIRST_OWN: u32 = 16_384;

pub struct OnStage {
    /// Opened before any entry changes the login rules.
    session: Box<dyn SqlSession>,
    /// The data folder, which has the files of rules and maps.
    folder: PathBuf,
    /// The pooler through which an entry asks.
    pooler: Option<Pooler>,
    /// The standby that an entry asks, or that receives from the server during the check.
    standby: Option<Standby>,
}

impl OnStage {
    pub fn new(sandbox: &Sandbox) -> Self {
        let sql = sandbox.database.sql().expect("SQL");
        let session = sql.connect(&sandbox.server, &sandbox.setup, &how(true)).expect("a session");
        Self { session, folder: sandbox.server.folder.join("data"), pooler: None, standby: None }
    }

    fn run(&mut self, statement: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        self.session.run(statement).map_err(|fault| format!("`{statement}`: {fault}"))
    }

    fn names(&mut self, statement: &str) -> Result<Vec<String>, String> {
        Ok(self.run(statement)?.into_iter().flatten().flatten().collect())
    }

    /// Loads files and settings again, and waits until the server has.
    fn reload(&mut self) -> Result<(), String> {
        const LOADED: &str = "SELECT pg_conf_load_time()";
        // If the file changed at the moment of loading, the view regards it as newer than what was loaded.
        let before = self.names(LOADED)?;
        self.run("SELECT pg_reload_conf()")?;
        until("the server does not load its settings", || Ok(self.names(LOADED)? != before))
    }

    fn saved(&self, name: &str) -> PathBuf {
        self.folder.with_file_name(format!("saved-{name}"))
    }
}

impl Stage for OnStage {
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String> {
        for statement in &entry.statements {
            self.run(&placed(statement, sandbox))?;
        }
        for (name, value) in &entry.settings {
            self.run(&format!("ALTER SYSTEM SET {name} = '{}'", placed(value, sandbox)))?;
        }
        for (name, text) in &entry.files {
            let (path, saved) = (self.folder.join(name), self.saved(name));
            fs::copy(&path, &saved)
                .and_then(|_| overwrite(&path, &placed(text, sandbox)))
                .map_err(|error| format!("{name}: {error}"))?;
        }
        if !entry.settings.is_empty() || !entry.files.is_empty() {
            self.reload()?;
        }
        match entry.asks.as_str() {
            "tithe pooler-tls" => self.pooler = Some(Pooler::start(sandbox, true)?),
            "tithe pooler-plaintext" => self.pooler = Some(Pooler::start(sandbox, false)?),
            _ => {}
        }
        if let Some((asked, mode)) = entry.asks.strip_prefix("tithe ").and_then(|way| way.split_once(" of ")) {
            let lost = asked == "lost";
            let standby = self.standby.insert(Standby::start(sandbox, mode, lost)?);
            let of_standby = url(sandbox, "tithe tls", Some(standby.port.number()))?;
            Standby::receive(sandbox, mode, lost, &of_standby)?;
            return if asked == "primary" { url(sandbox, "tithe tls", None) } else { Ok(of_standby) };
        }
        url(sandbox, &entry.asks, self.pooler.as_ref().map(|pooler| pooler.port.number()))
    }

    fn clear(&mut self, _: &Sandbox, entry: &Deception) -> Result<(), String> {
        (self.pooler, self.standby) = (None, None);
        for name in entry.files.keys() {
            let text = fs::read_to_string(self.saved(name)).map_err(|error| format!("{name}: {error}"))?;
            overwrite(&self.folder.join(name), &text).map_err(|error| format!("{name}: {error}"))?;
        }
        for statement in &entry.undo {
            self.run(statement)?;
        }
        for name in entry.settings.keys() {
            self.run(&format!("ALTER SYSTEM RESET {name}"))?;
        }
        if !entry.settings.is_empty() || !entry.files.is_empty() {
            self.reload()?;
        }
        let databases = format!("SELECT quote_ident(datname) FROM pg_database WHERE oid >= {FIRST_OWN}");
        for database in self.names(&databases)? {
            self.run(&format!("DROP DATABASE {database} WITH (FORCE)"))?;
        }
        let extensions = format!("SELECT quote_ident(extname) FROM pg_extension WHERE oid >= {FIRST_OWN}");
        for extension in self.names(&extensions)? {
            self.run(&format!("DROP EXTENSION {extension} CASCADE"))?;
        }
        let roles = self.names(&format!("SELECT quote_ident(rolname) FROM pg_roles WHERE oid >= {FIRST_OWN}"))?;
        for role in &roles {
            self.run(&format!("DROP OWNED BY {role} CASCADE"))?;
        }
        for role in &roles {
            self.run(&format!("DROP ROLE {role}"))?;
        }
        let tables =
            self.names("SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'public'")?;
        tables.iter().try_for_each(|table| self.run(&format!("DROP TABLE {table} CASCADE")).map(drop))
    }
}

/// Writes into the file that is there, which keeps its owner.
fn overwrite(path: &Path, text: &str) -> std::io::Result<()> {
    fs::write(path, text)
}

/// `text` with the values of this server: `@PASSWORD@` for its password, `@CREDENTIALS@` for the folder of
/// certificates.
fn placed(text: &str, sandbox: &Sandbox) -> String {
    let credentials = &sandbox.setup.credentials;
    let folder = credentials.authority.parent().unwrap_or(Path::new("/"));
    let text = text.replace("@PASSWORD@", credentials.password.expose_text());
    text.replace("@CREDENTIALS@", &folder.display().to_string())
}

/// The URL of `asks`: an account, `tithe` by default, and `plaintext`, `tls` or `certificate`, or through a pooler with
/// the first or the second; at the port of the server itself or at `other`. `tithe standby of MODE` asks a standby that
/// receives in this mode, `tithe lost of MODE` one whose primary is gone, and `tithe primary of MODE` the server itself
/// while the standby receives.
fn url(sandbox: &Sandbox, asks: &str, other: Option<u16>) -> Result<String, String> {
    let Address::Tcp { host, port } = &sandbox.server.address else { return Err("no TCP server".to_owned()) };
    let credentials = &sandbox.setup.credentials;
    let mut words = asks.split_whitespace();
    let (account, way) = (words.next().unwrap_or("tithe"), words.next().unwrap_or("plaintext"));
    let password = credentials.password.expose_text();
    let authority = credentials.authority.display();
    let verified = format!("?sslmode=verify-full&sslrootcert={authority}");
    let (password, options) = match way {
        "plaintext" | "pooler-plaintext" => (format!(":{password}"), String::new()),
        "bound" => (format!(":{password}"), format!("{verified}&channel_binding=require")),
        "tls" | "pooler-tls" => (format!(":{password}"), verified),
        "certificate" => {
            let (certificate, key) = (credentials.client_certificate.display(), credentials.client_key.display());
            (String::new(), format!("{verified}&sslcert={certificate}&sslkey={key}"))
        }
        other => return Err(format!("nobody comes by {other}")),
    };
    let port = other.unwrap_or(*port);
    Ok(format!("postgres://{account}{password}@{host}:{port}/postgres{options}"))
}
