//! How a program of the product restores a dump: `psql` and `pg_restore`, `mariadb`, or the clients of SQLite.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use tithe_machine::{
    fault::Fault,
    launch::{Command, Content, Missing},
    secret::Secret,
};
use tithe_model::catalogue::{DatabaseEntry, WireProtocol};
use tithe_plugin::{
    program::ProgramContext,
    restore::{PLACE, Restore},
    session::SqlSession,
    setup::TlsVersion,
};

use super::{
    Dump, SCHEMA,
    head::{Form, Head, Origin, columns, separator},
};
use crate::{
    find::{find_in, newest_postgres},
    libpq,
};

/// The database of MariaDB and MySQL if the dump names none.
const DATABASE: &str = "data";

/// Options of the client of MariaDB, the password among them.
const OPTIONS: &str = "options.cnf";

/// Statements that create the accounts which own tables of the dump.
const ROLES: &str = "roles.sql";

/// Statements that load the CSV files.
const TABLES: &str = "tables.sql";

impl Restore for Dump {
    fn path(&self) -> &Path {
        &self.path
    }

    fn refuses(&self, database: &DatabaseEntry, version: &str) -> Option<String> {
        if let Some(words) = self.refused_by(database, version) {
            return Some(words);
        }
        match (database.wire_protocol, database.embedded, self.head.form) {
            (Some(WireProtocol::Postgres | WireProtocol::MySql), _, _) => None,
            (_, true, Form::Csv) => Some(format!("{} takes statements or a file of its own", database.title)),
            (_, true, _) => None,
            _ => Some(format!("{} takes no dump in SQL", database.title)),
        }
    }

    fn find(&self, protocol: WireProtocol) -> Result<PathBuf, Missing> {
        match (protocol, self.head.form) {
            (WireProtocol::Postgres, Form::Archive) => newest_postgres("pg_restore"),
            (WireProtocol::Postgres, _) => newest_postgres("psql"),
            _ => find_in(Vec::new(), "mariadb", "Debian, Ubuntu: apt-get install mariadb-client"),
        }
    }

    fn files(&self, at: &ProgramContext<'_>) -> Result<Vec<(String, Content)>, Fault> {
        let failed = |error: io::Error| Fault::machine(self.path.display(), error);
        let mut files = libpq::files(at);
        if at.protocol == WireProtocol::MySql {
            files.push((OPTIONS.to_owned(), Content::Secret(Secret::new(self.options(at)))));
        }
        if self.makes_roles() {
            let roles = roles(BufReader::new(File::open(&self.path).map_err(failed)?)).map_err(failed)?;
            files.push((ROLES.to_owned(), Content::Text(roles)));
        }
        if self.head.form == Form::Csv {
            let mut text = String::new();
            for (table, path) in &self.tables {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let mut header = String::new();
                let mut file = BufReader::new(File::open(path).map_err(failed)?);
                file.read_line(&mut header).map_err(failed)?;
                let marked = marks_null(file, separator(&header)).map_err(failed)?;
                text += &load(at.protocol, (table, marked), &header, &at.folder.join(PLACE).join(name));
            }
            files.push((TABLES.to_owned(), Content::Text(text)));
        }
        Ok(files)
    }

    fn commands(&self, at: &ProgramContext<'_>) -> Vec<Command> {
        let data = at.folder.join(PLACE);
        let mut texts = Vec::new();
        if self.makes_roles() {
            texts.push(at.folder.join(ROLES));
        }
        match self.head.form {
            Form::Csv => texts.extend([data.join(SCHEMA), at.folder.join(TABLES)]),
            Form::Statements => texts.push(data.clone()),
            Form::Archive | Form::SqliteFile => {}
        }
        let run = |arguments: Vec<String>| Command {
            program: at.executable.to_owned(),
            arguments,
            environment: libpq::environment(at),
        };
        let with = |words: &[&str], place: &Path| {
            let words = words.iter().map(|word| (*word).to_owned());
            run(words.chain([place.display().to_string()]).collect())
        };
        if at.protocol == WireProtocol::MySql {
            let options = format!("--defaults-file={}", at.folder.join(OPTIONS).display());
            // Otherwise the program continues after a failed statement, and reports success.
            let abort = "--abort-source-on-error";
            let source = |(number, text): (usize, &PathBuf)| {
                let execute = format!("--execute={}source {}", self.entering(number), text.display());
                run([options.as_str(), abort, &execute].map(str::to_owned).to_vec())
            };
            return texts.iter().enumerate().map(source).collect();
        }
        const PSQL: [&str; 4] = ["-X", "-q", "-v", "ON_ERROR_STOP=1"];
        let mut commands: Vec<Command> = texts.iter().map(|text| with(&[&PSQL[..], &["-f"]].concat(), text)).collect();
        if self.head.form == Form::Archive {
            let database = format!("--dbname={}", at.reach.database);
            let jobs = format!("--jobs={}", std::thread::available_parallelism().map_or(1, usize::from));
            let mut words = vec!["--no-owner", "--no-privileges", "--exit-on-error", database.as_str()];
            // A tar can only be read sequentially.
            if !self.is_tar() {
                words.push(&jobs);
            }
            commands.push(with(&words, &data));
        }
        let mut vacuum =
            run([&PSQL[..], &["-c", "VACUUM (ANALYZE)"]].concat().into_iter().map(str::to_owned).collect());
        vacuum.program.set_file_name("psql");
        commands.push(vacuum);
        commands
    }

    fn through(&self, session: &mut dyn SqlSession) -> Result<(), Fault> {
        if self.head.form != Form::SqliteFile {
            let failed = |error| Fault::machine(self.path.display(), error);
            return session.run_all(&fs::read_to_string(&self.path).map_err(failed)?);
        }
        let path = self.path.display().to_string().replace('\'', "''");
        // The file has no key, even if the database that restores it has one.
        session.run(&format!("ATTACH DATABASE '{path}' AS dump KEY ''"))?;
        let made = session.run(
            "SELECT type, name, sql FROM dump.sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND sql <> '' \
             ORDER BY type <> 'table', sql NOT LIKE 'CREATE VIRTUAL TABLE %', rowid",
        )?;
        session.run("BEGIN")?;
        let rows = made.into_iter().filter_map(|row| <[Option<String>; 3]>::try_from(row).ok());
        let mut later = Vec::new();
        for [kind, name, sql] in rows.map(|row| row.map(Option::unwrap_or_default)) {
            if kind != "table" {
                // Triggers and indexes after the rows.
                later.push(sql);
            } else if sql.starts_with("CREATE VIRTUAL TABLE ") {
                session.run(&sql)?;
            } else {
                copy_table(session, &name, &sql)?;
            }
        }
        later.iter().try_for_each(|sql| session.run(sql).map(drop))?;
        session.run("COMMIT")?;
        session.run("DETACH DATABASE dump").map(drop)
    }

    fn enter(&self, protocol: WireProtocol) -> Option<String> {
        match protocol {
            WireProtocol::Postgres => Some("SET search_path TO DEFAULT".to_owned()),
            WireProtocol::MySql => Some(format!("USE {}", quoted('`', self.mysql_database()))),
            _ => None,
        }
    }
}

/// Copies the table `name` of SQLite, which `sql` creates, unless a virtual table has created it to keep its rows in.
fn copy_table(session: &mut dyn SqlSession, name: &str, sql: &str) -> Result<(), Fault> {
    let literal = name.replace('\'', "''");
    let there = session.run(&format!("SELECT 1 FROM main.sqlite_schema WHERE name = '{literal}'"))?;
    let name = quoted('"', name);
    let empty = format!("DELETE FROM main.{name}");
    session.run(if there.is_empty() { sql } else { &empty })?;
    // Without generated columns, which cannot be given values.
    let columns = session.run(&format!("SELECT name FROM pragma_table_info('{literal}', 'dump')"))?;
    let columns: Vec<String> = columns.into_iter().flatten().flatten().map(|column| quoted('"', &column)).collect();
    let columns = columns.join(", ");
    session.run(&format!("INSERT INTO main.{name} ({columns}) SELECT {columns} FROM dump.{name}")).map(drop)
}

impl Dump {
    /// The statements by which the client of MariaDB enters the database before the file with this number, from 0.
    pub(super) fn entering(&self, number: usize) -> String {
        // Statements that make their database fail if it is there.
        if number == 0 && self.head.makes_database {
            return String::new();
        }
        let place = quoted('`', self.mysql_database());
        format!("CREATE DATABASE IF NOT EXISTS {place};\nUSE {place};\n")
    }

    fn mysql_database(&self) -> &str {
        if self.head.database.is_empty() { DATABASE } else { &self.head.database }
    }

    /// Statements of `pg_dump` give tables to accounts that do not exist on a new server.
    fn makes_roles(&self) -> bool {
        matches!(&self.head, Head { form: Form::Statements, origin: Some(Origin::Postgres), .. })
    }

    fn is_tar(&self) -> bool {
        let mut begin = [0; 8];
        let read = File::open(&self.path).and_then(|mut file| io::Read::read_exact(&mut file, &mut begin));
        read.is_ok() && begin == *b"toc.dat\0"
    }

    /// The options file of MariaDB's client, which requires TLS with the server.
    fn options(&self, at: &ProgramContext<'_>) -> String {
        let reach = at.reach;
        let mut lines = vec![
            "[client]".to_owned(),
            format!("host={}", reach.host),
            format!("port={}", reach.port),
            "protocol=tcp".to_owned(),
            format!("user={}", reach.user),
            "local-infile=1".to_owned(),
        ];
        if let Some(password) = &reach.password {
            let quoted = password.expose_text().replace('\\', "\\\\").replace('"', "\\\"");
            lines.push(format!("password=\"{quoted}\""));
        }
        match &reach.tls {
            None => lines.push("skip-ssl".to_owned()),
            Some(tls) => {
                let versions = tls.versions.iter().map(|version| match version {
                    TlsVersion::V1_2 => "TLSv1.2",
                    TlsVersion::V1_3 => "TLSv1.3",
                });
                lines.push(format!("ssl-ca={}", tls.authority.display()));
                lines.push("ssl-verify-server-cert".to_owned());
                lines.push(format!("tls-version={}", versions.collect::<Vec<_>>().join(",")));
                if tls.mutual {
                    lines.push(format!("ssl-cert={}", tls.identity.0.display()));
                    lines.push(format!("ssl-key={}", tls.identity.1.display()));
                }
            }
        }
        lines.join("\n") + "\n"
    }
}

/// Statements that create every account in lines of the dump `from`: `ALTER … OWNER TO app;`, `GRANT … TO app;`.
pub(crate) fn roles(mut from: impl io::BufRead) -> io::Result<String> {
    let (mut names, mut line) = (BTreeSet::new(), Vec::new());
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let begins = |word: &[u8]| line.starts_with(word);
        if [&b"ALTER "[..], b"GRANT ", b"REVOKE ", b"CREATE POLICY ", SESSION.as_bytes()].into_iter().any(begins) {
            names.extend(accounts(&String::from_utf8_lossy(&line)));
        }
    }
    let make = |name: &String| {
        let literal = name.trim_matches('"').replace("\"\"", "\"").replace('\'', "''");
        format!(
            "SELECT count(*) AS there FROM pg_roles WHERE rolname = '{literal}' \\gset\n\\if :there\n\\else\nCREATE ROLE \
             {name};\n\\endif\n"
        )
    };
    Ok(names.iter().map(make).collect())
}

/// The statement by which a dump becomes another account.
const SESSION: &str = "SET SESSION AUTHORIZATION ";

/// The accounts that a line of `pg_dump` names, as identifiers.
fn accounts(line: &str) -> Vec<String> {
    let line = line.trim_end();
    let until = |text: &str, ends: &[&str]| {
        let end = ends.iter().filter_map(|end| text.find(*end)).min().unwrap_or(text.len());
        text[..end].to_owned()
    };
    let mut names = Vec::new();
    if let Some(policy) = line.strip_prefix("CREATE POLICY ") {
        // Its expressions may go on in further lines.
        let listed = policy.split_once(" TO ").map(|(_, rest)| until(rest, &[" USING (", " WITH CHECK (", ";"]));
        names.extend(listed.unwrap_or_default().split(", ").map(str::to_owned));
    } else if let Some(name) = line.strip_prefix(SESSION) {
        let name = until(name, &[";"]);
        names.push(match name.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')) {
            Some(text) => quoted('"', &text.replace("''", "'")),
            None => name,
        });
    } else if let Some(line) = line.strip_suffix(';') {
        let line = line.strip_suffix(" WITH GRANT OPTION").unwrap_or(line);
        let defaults = line.strip_prefix("ALTER DEFAULT PRIVILEGES ");
        let of = defaults.and_then(|rest| rest.strip_prefix("FOR ROLE "));
        names.extend(of.map(|rest| until(rest, &[" IN SCHEMA ", " GRANT ", " REVOKE "])));
        // Other ALTERs say TO and FROM, too: `FOR VALUES FROM (1) TO (2)`.
        let receiver = if line.starts_with("ALTER ") && defaults.is_none() {
            line.rsplit_once(" OWNER TO ")
        } else {
            line.rsplit_once(" TO ").or_else(|| line.rsplit_once(" FROM "))
        };
        names.extend(receiver.map(|(_, name)| name.to_owned()));
    }
    names.retain(|name| is_account(name));
    names
}

/// True for an identifier that is not one of the words in place of an account.
fn is_account(name: &str) -> bool {
    let is_quoted = name.len() > 2 && name.starts_with('"') && name.ends_with('"');
    let is_plain = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_' || it == '$');
    (is_quoted || is_plain) && !["PUBLIC", "DEFAULT"].contains(&name)
}

/// `name` as an identifier, between `quote` characters.
fn quoted(quote: char, name: &str) -> String {
    format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
}

/// True if a field of a CSV file is [`MARK`], by its lines.
fn marks_null(mut lines: impl io::BufRead, separator: char) -> io::Result<bool> {
    let is_mark = |field: &[u8]| field.trim_ascii_end() == MARK.as_bytes();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if line.split(|byte| *byte == separator as u8).any(is_mark) {
            return Ok(true);
        }
        line.clear();
    }
    Ok(false)
}

/// NULL in files that MariaDB and MySQL write.
const MARK: &str = "\\N";

/// The statement that loads the CSV file at `path`, which begins with the line `header`, into `table`. In files with
/// `marked` fields these are NULL, in others empty ones.
fn load(protocol: WireProtocol, (table, marked): (&str, bool), header: &str, path: &Path) -> String {
    let quote = if protocol == WireProtocol::Postgres { '"' } else { '`' };
    let quoted = |name: &str| quoted(quote, name);
    // Spreadsheets write the line ends of Windows. COPY finds them out by itself.
    let ends = if header.ends_with("\r\n") { "\\r\\n" } else { "\\n" };
    let separator = separator(header);
    let columns = columns(header);
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let names = columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let (table, path) = (quoted(table), path.display().to_string().replace('\'', "''"));
    let between = separator.escape_default();
    let null = if marked { MARK } else { "" };
    if protocol == WireProtocol::Postgres {
        let null = if marked { format!(" NULL '{null}'") } else { String::new() };
        return format!("\\copy {table} ({names}) FROM '{path}' DELIMITER E'{between}' CSV HEADER{null}\n");
    }
    // An empty field is NULL, as in COPY. A backslash escapes in strings.
    let null = null.replace('\\', "\\\\");
    let variables = (1..=columns.len()).map(|number| format!("@c{number}")).collect::<Vec<_>>().join(", ");
    let value = |(name, number): (&str, usize)| format!("{} = NULLIF(@c{number}, '{null}')", quoted(name));
    let values = columns.iter().copied().zip(1..).map(value).collect::<Vec<_>>().join(", ");
    format!(
        "LOAD DATA LOCAL INFILE '{path}' INTO TABLE {table} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '{between}' \
         OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '{ends}' IGNORE 1 LINES ({variables}) \
         SET {values};\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_marked_as_the_file_has_it() {
        let load = |protocol, lines: &str| {
            let (header, rest) = lines.split_once('\n').expect("lines");
            let marked = marks_null(rest.as_bytes(), separator(header)).expect("text");
            load(protocol, ("t", marked), header, Path::new("/t.csv"))
        };
        let (marked, empty) = ("id;a\n1;\\N\r\n2;\n", "id;a\n1;\n2;\\Nx\n");
        assert!(load(WireProtocol::Postgres, marked).ends_with("CSV HEADER NULL '\\N'\n"));
        assert!(load(WireProtocol::Postgres, empty).ends_with("CSV HEADER\n"));
        assert!(load(WireProtocol::MySql, marked).contains(r"`a` = NULLIF(@c2, '\\N')"));
        assert!(load(WireProtocol::MySql, empty).contains("`a` = NULLIF(@c2, '')"));
    }

    #[test]
    fn fields_end_at_the_separator_that_the_names_of_columns_have() {
        let load = |protocol, header| load(protocol, ("t", false), header, Path::new("/t.csv"));
        for (header, between) in [
            ("id,\"a;b\"\n", ","),
            ("id;\"a;b\"\n", ";"),
            ("id\t\"a;b\"\r\n", "\\t"),
            ("\u{feff}id;\"a;b\"\r\n", ";"),
            ("id|\"a;b\"\n", "|"),
        ] {
            let copied = format!("\\copy \"t\" (\"id\", \"a;b\") FROM '/t.csv' DELIMITER E'{between}' CSV HEADER\n");
            assert_eq!(load(WireProtocol::Postgres, header), copied, "{header}");
            let loaded = load(WireProtocol::MySql, header);
            let words = format!("FIELDS TERMINATED BY '{between}' OPTIONALLY ENCLOSED BY '\"'");
            assert!(loaded.contains(&words) && loaded.contains("`a;b` = NULLIF(@c2, '')"), "{loaded}");
        }
    }

    #[test]
    fn files_of_spreadsheets_are_loaded_without_marks_and_line_ends() {
        let load = |protocol, header| load(protocol, ("t", false), header, Path::new("/t.csv"));
        let (plain, saved) = ("id,\"name\"\n", "\u{feff}id,\"name\"\r\n");
        assert_eq!(load(WireProtocol::Postgres, "id, name\n"), load(WireProtocol::Postgres, plain));
        let copied = "\\copy \"t\" (\"id\", \"name\") FROM '/t.csv' DELIMITER E',' CSV HEADER\n";
        assert_eq!([plain, saved].map(|header| load(WireProtocol::Postgres, header)), [copied; 2]);
        let [unix, windows] = [plain, saved].map(|header| load(WireProtocol::MySql, header));
        assert!(unix.contains(r"LINES TERMINATED BY '\n' IGNORE"), "{unix}");
        assert_eq!(windows, unix.replace(r"BY '\n'", r"BY '\r\n'"));
    }
}
