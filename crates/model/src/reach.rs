//! Everything that an experiment runs, sends to a server, loads or opens that is not Tithe's own: what its reader must
//! trust.
//!
//! A server has its account's rights, and an administrator's statements have the server's: they can start programs and
//! open files like a command. So every text of the experiment that is executed is listed, whatever it seems to do.

use std::path::Path;

use crate::{
    catalogue::Catalogue,
    experiment::{Claim, Custom, Experiment, NamedCheck, Protection, Url, Workload},
    parse::SETTINGS,
};

/// One such text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Its place in the experiment: keys, numbers of items from 0, and names of protections.
    pub place: Vec<String>,
    /// What is done with it.
    pub how: How,
    /// The text, in the experiment's own words; for a file its path.
    pub text: String,
}

/// What is done with a text of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Tithe starts it.
    Command,
    /// A setting by which the server starts, loads or opens something.
    Setting,
    /// The content of a file goes to a server, a program or the data.
    File,
    /// A server runs it.
    Statement,
    /// Clients, or a program that Tithe starts, execute it.
    Script,
}

impl How {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Setting => "setting",
            Self::File => "file",
            Self::Statement => "statement",
            Self::Script => "script",
        }
    }
}

/// Parts of the names of settings by which servers start programs, load code or read further settings.
const NAMES: [&str; 9] = ["command", "cmd", "librar", "module", "plugin", "include", "init_", "provider", "wsrep"];

/// Values that name no file or program.
const WORDS: [&str; 8] = ["on", "off", "yes", "no", "true", "false", "none", "default"];

/// True if the setting `name` with this `value` can make a server start, load or open something.
fn setting_reaches(name: &str, value: &str) -> bool {
    let plain = name.to_lowercase().replace('-', "_");
    let is_odd = |sign: char| !sign.is_ascii_alphanumeric() && !"_.".contains(sign);
    let value = value.trim();
    // In a command such a word is the name of a program.
    let is_command = plain.ends_with("_command") || plain.ends_with("_cmd");
    let names_nothing = value.is_empty()
        || WORDS.contains(&value.to_lowercase().as_str()) && !is_command
        || value.chars().all(|sign| sign.is_ascii_digit() || "+-.".contains(sign)) && !value.contains("..");
    // It removes or renames a command of the server's own language.
    let is_renaming = plain == "rename_command";
    let named = NAMES.iter().any(|part| plain.contains(part)) && !is_renaming;
    let has_path = value.contains(['/', '\\', '|', '`', '~']) || value.contains("..") || value.contains("$(");
    plain.contains(is_odd) || !names_nothing && (named || has_path)
}

/// All such texts in `experiment`, in its order.
pub fn reached(experiment: &Experiment, catalogue: &Catalogue) -> Vec<Reached> {
    let mut all = Vec::new();
    let mut put = |place: &[&str], how: How, text: &str| {
        let place = place.iter().map(|&step| step.to_owned()).collect();
        all.push(Reached { place, how, text: text.to_owned() });
    };
    for (name, value) in &experiment.settings {
        if setting_reaches(name, value) {
            put(&["settings", name], How::Setting, &format!("{name} = {value}"));
        }
    }
    for (number, resources) in experiment.resources.iter().enumerate() {
        for (name, value) in resources.settings.iter().filter(|(name, value)| setting_reaches(name, value)) {
            put(&["resources", &number.to_string(), "settings", name], How::Setting, &format!("{name} = {value}"));
        }
    }
    for (number, workload) in experiment.workloads.iter().enumerate() {
        of_workload(workload, catalogue, &mut |place, how, text| {
            put(&[&["workload", &number.to_string()], place].concat(), how, text);
        });
    }
    // The A/A arm is a copy of the baseline.
    for (number, arm) in experiment.arms.iter().enumerate().filter(|(_, arm)| !arm.aa) {
        let number = number.to_string();
        let lead = ["arm", &number];
        for command in arm.url.iter().flat_map(Url::commands) {
            put(&["arm", &number, "url"], How::Command, &command);
        }
        if let Some(switch) = &arm.switch {
            for (key, command) in [("on", &switch.on), ("off", &switch.off), ("ready", &switch.ready_command)] {
                if !command.is_empty() {
                    put(&["arm", &number, "switch", key], How::Command, &command.join(" "));
                }
            }
            if !switch.ready.is_empty() {
                put(&["arm", &number, "switch", "ready"], How::Statement, &switch.ready);
            }
        }
        for protection in &arm.protections {
            of_protection(protection, &mut |place, how, text| put(&[&lead, place].concat(), how, text));
        }
        for (key, statements) in [("on", &arm.on), ("off", &arm.off)] {
            for (index, statement) in statements.iter().enumerate() {
                put(&["arm", &number, key, &index.to_string()], How::Statement, statement);
            }
        }
    }
    all
}

/// Receives a place, what is done there, and the text.
type Put<'p> = dyn FnMut(&[&str], How, &str) + 'p;

fn of_workload(workload: &Workload, catalogue: &Catalogue, put: &mut Put<'_>) {
    if let Some(path) = &workload.prepare {
        put(&["prepare"], How::File, &path.to_string_lossy());
    }
    let Some(kind) = catalogue.workloads.iter().find(|kind| kind.id == workload.kind) else { return };
    let file_key = kind.file_key();
    let of_tithe = |text: &String| kind.presets.iter().flat_map(|(_, _, set)| *set).any(|(_, own)| own == text);
    for (name, text) in &workload.properties {
        if kind.commands.contains(&name.as_str()) {
            put(&["properties", name], How::Command, text);
        } else if name == kind.by_path {
            put(&[&file_key], How::File, text);
        } else if !kind.scripts.is_empty() && is_numbered(name, kind.scripts) && !of_tithe(text) {
            put(&[&file_key], How::Script, text);
        }
    }
}

/// True for `script`, `script_2` and `lua_1`.
fn is_numbered(name: &str, lead: &str) -> bool {
    let rest = name.strip_prefix(lead).map(|rest| rest.trim_start_matches('_'));
    rest.is_some_and(|rest| rest.chars().all(|sign| sign.is_ascii_digit()))
}

fn of_protection(protection: &Protection, put: &mut Put<'_>) {
    let Some(custom) = &protection.custom else { return };
    let Custom { settings, files, statements, undo, session, claims, description: _ } = &**custom;
    // An arm's own keys are next to its name.
    let of_arm = [SETTINGS, "claims"].contains(&protection.id.as_str());
    let lead: &[&str] = if of_arm { &[] } else { &["protections", &protection.id] };
    for (name, value) in settings.iter().filter(|(name, value)| setting_reaches(name, value)) {
        put(&[lead, &["settings", name]].concat(), How::Setting, &format!("{name} = {value}"));
    }
    for (name, path) in files {
        put(&[lead, &["files", name]].concat(), How::File, &path.to_string_lossy());
    }
    for (key, texts) in [("statements", statements), ("undo", undo), ("session", session)] {
        for (index, text) in texts.iter().enumerate() {
            put(&[lead, &[key, &index.to_string()]].concat(), How::Statement, text);
        }
    }
    for (index, claim) in claims.iter().enumerate() {
        let statement = match claim {
            Claim::Statement { statement, .. }
            | Claim::Check(NamedCheck::RemovedFound { statement } | NamedCheck::RefusedAs { statement, .. }) => {
                statement
            }
            Claim::Check(_) => continue,
        };
        put(&[lead, &["claims", &index.to_string()]].concat(), How::Statement, statement);
    }
}

impl Reached {
    /// The protection that contains it, if that has a name of its own, and the place within it.
    pub fn in_protection(&self) -> Option<(&str, &[String])> {
        match self.place.as_slice() {
            [arm, _, protections, id, rest @ ..] if arm == "arm" && protections == "protections" => Some((id, rest)),
            _ => None,
        }
    }

    /// Words in it that may be paths of files; their content is as relevant as the text.
    pub fn files(&self) -> Vec<&Path> {
        match self.how {
            How::File => vec![Path::new(&self.text)],
            How::Command | How::Setting => {
                let words = self.text.split(|sign: char| sign.is_whitespace() || "=,;'\"".contains(sign));
                words.filter(|word| !word.is_empty()).map(Path::new).collect()
            }
            How::Statement | How::Script => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_start_load_or_open_are_told_from_those_that_do_not() {
        for (name, value) in [
            ("archive_command", "cp %p x"),
            ("ARCHIVE_LIBRARY", "basic_archive"),
            ("shared_preload_libraries", "mine"),
            ("restore_command", "true"),
            ("ssl_passphrase_command", "id"),
            ("init-file", "x.sql"),
            ("plugin-load-add", "mine=mine.so"),
            ("loose_plugin_load", "x"),
            ("loadmodule", "x.so"),
            ("include", "x.conf"),
            ("include_if_exists", "x"),
            ("wsrep_notify_cmd", "reboot"),
            ("jit_provider", "mine"),
            ("log_directory", "/etc"),
            ("log_filename", "../../x"),
            ("anything", "|id"),
            ("a b", "1"),
        ] {
            assert!(setting_reaches(name, value), "{name} = {value}");
        }
        for (name, value) in [
            ("wal_compression", "on"),
            ("shared_buffers", "256MB"),
            ("log_replication_commands", "ON"),
            ("rename-command", "FLUSHALL \"\""),
            ("cache_size", "-2000"),
            ("log_line_prefix", "%m [%p] "),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("maxmemory-policy", "allkeys-lru"),
        ] {
            assert!(!setting_reaches(name, value), "{name} = {value}");
        }
    }
}
