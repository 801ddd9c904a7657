//! The files in which users of libpq keep connection parameters: services and passwords.
//!
//! Source: PostgreSQL documentation, "The Connection Service File" and "The Password File".

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tithe_machine::fault::Fault;

use super::parameters::{IDLE, TLS_OPTIONS, USED};
use crate::target::{Host, Outside, UrlParts, refused};

/// Sets the parameter `name` if the URL does not set it.
pub fn put_default(parts: &mut UrlParts, name: &str, value: &str) {
    let names_host = parts.hosts.iter().any(|host| !host.name.is_empty()) || parts.option("hostaddr").is_some();
    match name {
        "user" if parts.user.is_some() => {}
        "password" if parts.password.is_some() => {}
        "dbname" if parts.database.is_some() => {}
        "host" | "hostaddr" if names_host || parts.option("host").is_some() => {}
        "port" if parts.hosts.iter().any(|host| host.port.is_some()) => {}
        _ => parts.default_option(name, value),
    }
}

/// The parameters of the service `name`, from `file`, the user's own or the system's.
///
/// # Errors
/// [`Fault::Refused`] if no file has it, or for a line of it that is no parameter.
pub fn service(name: &str, file: Option<&str>, outside: &Outside) -> Result<Vec<(String, String)>, Fault> {
    let own = file.or(outside.variable("PGSERVICEFILE")).map(PathBuf::from);
    let own = own.or_else(|| outside.at_home(".pg_service.conf"));
    let folder = outside.variable("PGSYSCONFDIR").unwrap_or("/etc/postgresql-common");
    let files = own.into_iter().chain([Path::new(folder).join("pg_service.conf")]);
    // As in libpq, what follows the name in its line does not count.
    let group = format!("[{name}]");
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let mut lines = text.lines().map(str::trim).enumerate();
        if !lines.any(|(_, line)| line.starts_with(&group)) {
            continue;
        }
        let inside = lines.take_while(|(_, line)| !line.starts_with('['));
        let pairs = inside.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(number, line)| {
            // The line is not shown: it may hold the password.
            let wrong = |why: &str| refused(&format!("service {name}: {}, line {}: {why}", file.display(), number + 1));
            let (key, value) = line.split_once('=').ok_or_else(|| wrong("it has no ="))?;
            let (key, value) = (key.trim(), value.trim());
            if key == "service" {
                return Err(wrong("a service cannot name another one"));
            }
            // Without a refusal a misspelled sslmode would be plaintext.
            match [TLS_OPTIONS, USED, IDLE].iter().any(|known| known.contains(&key)) {
                true => Ok((key.to_owned(), value.to_owned())),
                false => Err(wrong("what precedes the = is no parameter of libpq")),
            }
        });
        return pairs.collect();
    }
    Err(refused(&format!("no service file has the service {name} (~/.pg_service.conf, or PGSERVICEFILE)")))
}

/// Adds the passwords that the password file has for the account at the hosts of `parts`, whose port may be the
/// default.
///
/// # Errors
/// [`Fault::Refused`] for a file that others can read, which libpq does not use either.
pub fn put_passwords(parts: &mut UrlParts, default_port: u16, outside: &Outside) -> Result<(), Fault> {
    let file = parts.option("passfile").map(PathBuf::from).or_else(|| outside.at_home(".pgpass"));
    let Some((file, text)) = file.and_then(|file| Some((file.clone(), fs::read_to_string(file).ok()?))) else {
        return Ok(());
    };
    let open = fs::metadata(&file).is_ok_and(|found| found.permissions().mode() & 0o077 != 0);
    if open {
        return Err(refused(&format!(
            "others can read the password file {}: run `chmod 600` on it, or it is not used",
            file.display()
        )));
    }
    let user = parts.user.clone().unwrap_or_default();
    let database = parts.database.clone().unwrap_or_else(|| user.clone());
    let lines: Vec<Vec<String>> = text.lines().filter(|line| !line.starts_with('#')).map(fields).collect();
    for Host { name, port, password } in &mut parts.hosts {
        // The default socket is `localhost` there.
        let host = if name.is_empty() || name == "/var/run/postgresql" { "localhost" } else { name };
        let port = port.unwrap_or(default_port).to_string();
        let wanted = [host, &port, &database, &user];
        let found = lines.iter().find(|fields| {
            fields.len() == 5 && fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted)
        });
        *password = found.and_then(|fields| fields.last().cloned());
    }
    Ok(())
}

/// The fields of a line of the password file. A backslash escapes the next character.
pub fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let number = fields.len();
        match character {
            ':' if number < 5 => fields.push(String::new()),
            // As in libpq, it ends the password too.
            ':' => break,
            '\\' => fields[number - 1].extend(characters.next()),
            character => fields[number - 1].push(character),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use tithe_model::experiment::Url;

    use super::*;

    #[test]
    fn services_are_read_as_libpq_does_and_a_wrong_line_is_named_without_its_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("services");
        let text = "#[old]\r\n[shop] # ours\r\nhost=db\r\nsslmode=verify-full\r\n[typo]\nsslmod=s3cret\n[bare]\n\
                    s3cret\n[nested]\nservice=shop\n[empty]";
        fs::write(&file, text).expect("written");
        let read = |name: &str| {
            let (shown, outside) = (file.display().to_string(), Outside::of(&[("PGSYSCONFDIR", "/none")]));
            let pairs = service(name, Some(&shown), &outside);
            let pairs = pairs.map_err(|fault| fault.to_string().replace(&shown, "FILE"));
            pairs.map(|pairs| pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(read("shop").as_deref(), Ok("host=db sslmode=verify-full"));
        assert_eq!(read("empty").as_deref(), Ok(""));
        for (name, expected) in [
            ("old", "no service file has the service old"),
            ("typo", "service typo: FILE, line 6: what precedes the = is no parameter of libpq"),
            ("bare", "service bare: FILE, line 8: it has no ="),
            ("nested", "service nested: FILE, line 10: a service cannot name another one"),
        ] {
            let why = read(name).expect_err(name);
            assert!(why.contains(expected) && !why.contains("s3cret"), "{why}");
        }
    }

    #[test]
    fn a_service_is_read_from_the_first_file_that_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let of_user = "# [far]\n[other]\nhost=no\n[shop] # ours\n\n# a comment\n host = db.example\nport=6543\n\
                       [bad]\nhost\n[last]\nuser=bob\n[empty]\n";
        let of_system = "[shop]\nhost=system\n[empty]\nhost=system\n[far]\ndbname=x\n";
        let named = folder.path().join("named");
        for (file, text) in [
            (folder.path().join(".pg_service.conf"), of_user),
            (folder.path().join("pg_service.conf"), of_system),
            (named.clone(), "[shop]\nhost=named\n"),
        ] {
            fs::write(file, text).expect("written");
        }
        let (home, named) = (folder.path().display().to_string(), named.display().to_string());
        let (home, named) = (home.as_str(), named.as_str());
        let variables = [("HOME", home), ("PGSYSCONFDIR", home), ("PGSERVICEFILE", named)];
        let told = |name: &str, file: Option<&str>, variables: &[(&str, &str)]| {
            let pairs = service(name, file, &Outside::of(variables)).map_err(|fault| fault.to_string())?;
            Ok::<_, String>(pairs.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>())
        };
        for (name, read) in [
            ("shop", "host=db.example port=6543 "),
            ("other", "host=no "),
            ("last", "user=bob "),
            ("empty", ""),
            ("far", "dbname=x "),
        ] {
            assert_eq!(told(name, None, &variables[..2]).as_deref(), Ok(read), "{name}");
        }
        for (name, why) in [("bad", "it has no ="), ("sho", "no service file has"), ("shop]", "no service file has")] {
            let fault = told(name, None, &variables[..2]).expect_err(name);
            assert!(fault.contains(why), "{fault}");
        }
        assert_eq!(told("shop", None, &variables).as_deref(), Ok("host=named "));
        assert_eq!(told("shop", Some(named), &variables[..2]).as_deref(), Ok("host=named "));
    }

    #[test]
    fn a_parameter_counts_where_the_url_has_none() {
        let is_set = |url: &str, name: &str| {
            let mut parts = UrlParts::read(&Url::new(url)).expect("a URL");
            put_default(&mut parts, name, "new");
            parts.option(name) == Some("new")
        };
        let names = ["user", "password", "dbname", "host", "hostaddr", "port", "sslmode"];
        for (url, set) in [
            ("postgres://", [true, true, true, true, true, true, true]),
            ("postgres://ann:x@db:1/shop", [false, false, false, false, false, false, true]),
            ("postgres://ann@/?sslmode=disable", [false, true, true, true, true, true, false]),
            ("postgres://one,two:1", [true, true, true, false, false, false, true]),
            ("postgres://?host=db", [true, true, true, false, false, true, true]),
            ("postgres://?hostaddr=10.0.0.1", [true, true, true, false, false, true, true]),
        ] {
            assert_eq!(names.map(|name| is_set(url, name)), set, "{url}");
        }
    }

    #[test]
    fn each_host_has_the_password_that_the_file_has_for_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pass file");
        fs::write(
            &file,
            "# ours\none:5432:*:ann:first:2026\n\\:\\:1:7:shop:*:co\\:lon\\\\\ntwo:*:shop:bob:no\n*:9:shop:ann:last\n\
             localhost:5432:shop:ann:here\n",
        )
        .expect("written");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("closed");
        let passwords = |url: &str| {
            let mut parts = UrlParts::read(&Url::new(url)).expect("a URL");
            parts.default_option("passfile", &file.display().to_string());
            put_passwords(&mut parts, 5432, &Outside::default())
                .map(|()| parts.hosts.into_iter().map(|host| host.password.unwrap_or_default()).collect::<Vec<_>>())
        };
        let url = "postgres://ann@one,[::1]:7,two,three:9/shop";
        assert_eq!(passwords(url).as_deref(), Ok(&["first", "co:lon\\", "", "last"].map(str::to_owned)[..]));
        let of_socket = ["", "%2Fvar%2Frun%2Fpostgresql", "%2Ftmp"]
            .map(|socket| passwords(&format!("postgres://ann@{socket}/shop")).map(|passwords| passwords.concat()));
        let here: Result<String, Fault> = Ok("here".to_owned());
        assert_eq!(of_socket, [here.clone(), here, Ok(String::new())], "the default socket is localhost");
        fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("opened");
        assert!(passwords(url).expect_err("open to others").to_string().contains("chmod 600"));
    }
}
