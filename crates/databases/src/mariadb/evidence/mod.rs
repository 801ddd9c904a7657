//! Checks that only MariaDB has: one file each.

pub mod audit_complete;
pub mod encryption_in_force;
pub mod innodb_file;
pub mod key_rotated;

use tithe_plugin::claim::Probes;

use super::{access::ACCESS, accounts};
use crate::{
    evidence::{
        ConnectionProbes,
        marked::{Log, lines_like},
        password_asked::PasswordAsked,
    },
    mysql_family::{
        evidence::{logs_free::plant, others, served::general_log},
        schema::hops_of,
    },
};

/// How the shared checks reach MariaDB.
pub static PROBES: ConnectionProbes = ConnectionProbes {
    target: |context| ACCESS.product.target(context.server, context.setup),
    open: |_, target| Ok(ACCESS.open(target)?.method().to_owned()),
    names_mechanism: true,
    plaintext: |target| ACCESS.plaintext(target),
    tls_of_server: |_, target| Ok(hops_of(&mut ACCESS.open(target)?)?.words()),
    tls_source: "SHOW SESSION STATUS of a client's session",
    others: |context| others(&ACCESS, context, accounts::read),
};

/// MariaDB's logs; of an attached server the general log.
pub static LOG: Log =
    Log { plant: |context, token| plant(&ACCESS, context, token), served: |context| general_log(&ACCESS, context) };

/// How MariaDB answers the claims that are checked by name.
pub static CLAIMS: Probes = Probes {
    password: Some(|| Box::new(PasswordAsked(&PROBES))),
    count_in_log: Some(|context, pattern| lines_like(context, &LOG, pattern)),
};

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;
    use crate::{
        evidence::marked::Gained,
        mariadb::MariaDb,
        mysql_family::{evidence::served::this_machine, told::server},
        told::{Rows, Told},
    };

    /// A server with these settings of its general log.
    fn logging(on: &'static str, output: &'static str) -> Told {
        server(
            (&MariaDb, "10.11.6-MariaDB"),
            vec![("general_log", on), ("log_output", output), ("general_log_file", "general.log")],
            vec![("CURRENT_USER()", Ok(&[&["ann@%"]])), ("COUNT(*) FROM mysql.general_log", Ok(&[&["5"]]))],
        )
    }

    fn of_text(text: &str) -> Result<Gained, String> {
        Ok(Gained { text: text.to_owned(), doubt: None })
    }

    #[test]
    fn a_general_log_is_read_where_the_server_writes_it() {
        const ROWS: Rows = &[&["12", "Execute", "SELECT\n1"], &["13", "Quit", ""]];
        let told = |on, output| logging(on, output).telling("OFFSET 5", ROWS);
        assert_eq!(told("OFF", "TABLE").gained(&LOG, || ()), of_text(""), "it is written nowhere");
        for output in ["TABLE", "FILE,TABLE"] {
            let rows = "\t\t12 Execute\tSELECT 1\n\t\t13 Quit\t\n";
            assert_eq!(told("ON", output).gained(&LOG, || ()), of_text(rows), "rows from the fifth on");
        }
        let nowhere = "log_output = NONE: the general log goes nowhere; set TABLE or FILE";
        assert_eq!(told("ON", "NONE").gained(&LOG, || ()), Err(nowhere.to_owned()));
        let grant = "the account may not read the general log: GRANT SELECT ON mysql.general_log TO 'ann'@'%'";
        assert_eq!(told("ON", "TABLE").refusing("mysql.general_log").gained(&LOG, || ()), Err(grant.to_owned()));
    }

    #[test]
    fn a_general_log_in_a_file_is_read_on_the_servers_machine_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("general.log");
        fs::write(&path, "before\n").expect("written");
        let datadir: &'static str = folder.path().display().to_string().leak();
        let host: &'static str = this_machine().leak();
        let on = |host: &'static str| logging("ON", "FILE").with("hostname", host).with("datadir", datadir);
        let append = || {
            let mut file = fs::File::options().append(true).open(&path).expect("it is there");
            file.write_all(b"after\n").expect("written");
        };
        assert_eq!(on(host).gained(&LOG, append), of_text("after\n"));
        let elsewhere = on("elsewhere.example").gained(&LOG, || ()).expect_err("its file is not here");
        let words = "the general log is the file general.log, which cannot be read here (the server is on \
                     elsewhere.example, which is not this machine): ";
        assert!(elsewhere.starts_with(words), "{elsewhere}");
        fs::remove_file(&path).expect("removed");
        let missing = on(host).gained(&LOG, || ()).expect_err("there is no file");
        assert!(missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn an_audit_log_is_a_file_on_the_servers_machine_or_is_not_read() {
        let log = &audit_complete::AUDIT_LOG;
        let audited = |on: &'static str, output: &'static str| {
            logging("OFF", "FILE").with("server_audit_logging", on).with("server_audit_output_type", output)
        };
        assert_eq!(audited("OFF", "syslog").gained(log, || ()), of_text(""), "it is written nowhere");
        let syslog = audited("ON", "syslog").gained(log, || ()).expect_err("it is in no file");
        assert!(syslog.starts_with("the audit log goes to syslog"), "{syslog}");
        for output in ["file", "FILE"] {
            let told = audited("ON", output).with("server_audit_file_path", "a.log").with("hostname", "elsewhere");
            let elsewhere = told.gained(log, || ()).expect_err("its file is not here");
            let words = "the audit log is the file a.log, which cannot be read here (the server is on elsewhere, ";
            assert!(elsewhere.starts_with(words), "{elsewhere}");
        }
    }
}
