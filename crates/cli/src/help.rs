//! The help of the commands: grouped by task, with an example for each. Commands and options are described where they
//! are defined; this module adds the order and the examples, also to the manual page.

use clap::{Command, CommandFactory as _};
use tithe_model::experiment::Url;

use crate::Cli;

/// One command: its name and an example that runs as it is or with the reader's own names.
type Entry = (&'static str, &'static str);

/// Tasks, in the order in which a user meets them, with their commands.
const TASKS: [(&str, &[Entry]); 5] = [
    (
        "Measure",
        &[
            ("run", "tithe run postgres --protect tls --protect pgaudit:log=read --quick"),
            ("init", "tithe init postgres --to pg.toml"),
            ("plan", "tithe plan pg.toml"),
            ("verify", "tithe verify postgres --protect tls"),
            ("calibrate", "tithe calibrate postgres"),
        ],
    ),
    (
        "Check a running server",
        &[
            ("inspect", "tithe inspect 'postgres://me@db.example/shop' --require tls,audit"),
            ("witness", "tithe witness 'postgres://me@db.example/shop' --protect tls -- pgbench -n {url}"),
            ("doctor", "tithe doctor 'postgres://me@db.example/shop'"),
        ],
    ),
    (
        "Report and compare",
        &[
            ("report", "tithe report tithe-runs/RUN --format markdown"),
            ("compare", "tithe compare before=RUN after=RUN --threshold 5%"),
            ("history", "tithe history tithe-runs --format html"),
            ("explain", "tithe explain CARRY_OVER"),
        ],
    ),
    (
        "Use many machines",
        &[
            ("matrix", "tithe matrix run matrix.toml"),
            ("atlas", "tithe atlas add tithe-runs/RUN --commit 1234abcd"),
            ("agent", "tithe agent --join tls://broker.example:4222 --target db.example"),
            ("observe", "tithe observe --join tls://broker.example:4222 --port 5432"),
        ],
    ),
    (
        "Set up",
        &[
            ("get", "tithe get mysql"),
            ("ls", "tithe ls postgres tls"),
            ("schema", "tithe schema > tithe.schema.json"),
            ("manual", "tithe manual bash > ~/.local/share/bash-completion/completions/tithe"),
        ],
    ),
];

/// Commands below a command, each with an example.
const BELOW: [(&str, &[Entry]); 2] = [
    (
        "matrix",
        &[
            ("plan", "tithe matrix plan matrix.toml"),
            ("run", "tithe matrix run matrix.toml --task 3"),
            ("script", "tithe matrix script matrix.toml --for slurm > job.sh"),
            ("status", "tithe matrix status matrix.toml tithe-matrix"),
            ("gather", "tithe matrix gather matrix.toml tithe-matrix --to gathered.json"),
        ],
    ),
    ("atlas", &[("add", "tithe atlas add tithe-runs/RUN --commit 1234abcd"), ("page", "tithe atlas page docs/atlas")]),
];

/// All commands, with their help.
pub fn command() -> Command {
    let mut command = Cli::command();
    let mut list = String::new();
    for (task, entries) in TASKS {
        list += &format!("{task}:\n");
        for (name, example) in entries {
            let Some(found) = command.find_subcommand_mut(name) else { continue };
            list += &format!("  {name:<10} {}\n", found.get_about().map(ToString::to_string).unwrap_or_default());
            *found = found.clone().after_help(format!("Example:\n  {example}"));
        }
        list.push('\n');
    }
    for (above, entries) in BELOW {
        for (name, example) in entries {
            let above = command.find_subcommand_mut(above);
            let Some(found) = above.and_then(|above| above.find_subcommand_mut(name)) else { continue };
            *found = found.clone().after_help(format!("Example:\n  {example}"));
        }
    }
    let template = format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}");
    command.disable_help_subcommand(false).help_template(template)
}

/// `text` with `URL` in place of each of the `words` of the command line that may hold a password.
pub fn without_secrets(text: &str, words: impl Iterator<Item = String>) -> String {
    let mut text = text.to_owned();
    for word in words {
        // A message may repeat the value of an option alone.
        let value = word.split_once('=').map_or("", |(_, value)| value);
        let both = [word.as_str(), value].into_iter();
        for secret in both.filter(|word| Url::is_url(word) && Url::new(*word).holds_secret()) {
            text = text.replace(secret, "URL");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_that_is_not_understood_and_may_hold_a_password_is_not_repeated() {
        let words = ["tithe", "run", "postgres", "postgres://app:hunter2@db/shop"];
        let error = command().try_get_matches_from(words).expect_err("an argument too many");
        let shown = without_secrets(&error.render().to_string(), words.map(str::to_owned).into_iter());
        assert!(shown.contains("unexpected argument 'URL' found"), "{shown}");
        let value = "--x=host=db password=hunter2".to_owned();
        assert_eq!(without_secrets("no host=db password=hunter2 here", [value].into_iter()), "no URL here");
    }

    #[test]
    fn every_command_has_one_task_and_an_example_that_is_understood() {
        let all = command();
        let mut listed: Vec<&str> =
            TASKS.iter().flat_map(|(_, entries)| entries.iter().map(|(name, _)| *name)).collect();
        let known: Vec<&str> = all.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
        // Builds without agents lack two of them.
        listed.retain(|name| known.contains(name) || cfg!(feature = "agents"));
        let mut sorted = (listed.clone(), known);
        sorted.0.sort_unstable();
        sorted.1.sort_unstable();
        assert_eq!(sorted.0, sorted.1);
        let below = BELOW.iter().flat_map(|(above, entries)| entries.iter().map(move |(_, example)| (above, example)));
        for (above, entries) in BELOW {
            let count = all.find_subcommand(above).map_or(0, |above| above.get_subcommands().count());
            assert_eq!(count, entries.len(), "{above}");
        }
        let top = TASKS.iter().flat_map(|(_, entries)| entries.iter().map(|(name, example)| (name, example)));
        for (name, example) in top.filter(|(name, _)| listed.contains(name)).chain(below) {
            let words = example.split(" > ").next().unwrap_or_default().replace('\'', "");
            let parsed = command().try_get_matches_from(words.split_whitespace());
            assert!(parsed.is_ok_and(|matches| matches.subcommand_name() == Some(name)), "{example}");
        }
    }
}
