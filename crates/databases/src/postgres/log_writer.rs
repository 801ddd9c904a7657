//! PostgreSQL's log collector (`logging_collector`): what the processes of clients say goes to it through a pipe, and
//! it writes the file.

use std::{fs, path::PathBuf};

use tithe_machine::proc::stat_fields;

/// The log collector of the server of which the process `backend` serves a client; `None` where it has none, or nobody
/// may look.
pub fn log_writer(backend: i32) -> Option<i32> {
    let proc = |process: i32, file: &str| fs::read_to_string(PathBuf::from(format!("/proc/{process}")).join(file)).ok();
    // State, then parent (proc(5)).
    let server: i32 = stat_fields(&proc(backend, "stat")?).nth(1)?.parse().ok()?;
    let children = proc(server, &format!("task/{server}/children"))?;
    let mut children = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
    // It is the first that a server starts.
    children.find(|child| proc(*child, "cmdline").is_some_and(|title| is_collector(&title)))
}

/// True for the title that the log collector gives itself, with the cluster's name in it where the cluster has one
/// (documentation, "Standard Unix Tools").
fn is_collector(title: &str) -> bool {
    let title = title.trim_end_matches(['\0', ' ']);
    title == "postgres: logger" || (title.starts_with("postgres: ") && title.ends_with(": logger"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_known_by_its_title() {
        for title in ["postgres: logger ", "postgres: logger\0\0", "postgres: 15/main: logger \0"] {
            assert!(is_collector(title), "{title:?}");
        }
        for title in ["postgres: checkpointer ", "postgres: logger logger 127.0.0.1(4711) idle", "logger", ""] {
            assert!(!is_collector(title), "{title:?}");
        }
    }

    #[test]
    fn a_process_without_a_server_has_none() {
        assert_eq!(log_writer(std::process::id() as i32), None);
        assert_eq!(log_writer(i32::MAX), None);
    }
}
