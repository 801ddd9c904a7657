//! PostgreSQL's log collector (`logging_collector`): client processes send it their messages through a pipe, and it
//! writes the file.

use std::fs;

use tithe_machine::proc::parent_of;
use tithe_plugin::database::LogWriting;

/// The log writer of the server whose process `backend` serves a client.
pub fn log_writing(backend: i32) -> LogWriting {
    let Some(children) = parent_of(backend).and_then(children) else { return LogWriting::Unseen };
    // It is the first that a server starts.
    let collector = children.into_iter().find(|child| title(*child).is_some_and(|title| is_collector(&title)));
    collector.map_or(LogWriting::Each, LogWriting::By)
}

fn title(process: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/cmdline")).ok()
}

/// The processes that `server` has started, in that order. `None` if reading them is not permitted, or if the kernel
/// does not list them (`CONFIG_PROC_CHILDREN`).
fn children(server: i32) -> Option<Vec<i32>> {
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).ok()?;
    Some(children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect())
}

/// True for the title that the log collector gives itself. It contains the cluster's name if the cluster has one
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
    fn a_process_without_a_server_has_none_and_one_that_is_not_there_is_not_seen() {
        assert_eq!(log_writing(std::process::id() as i32), LogWriting::Each);
        assert_eq!(log_writing(i32::MAX), LogWriting::Unseen);
    }
}
