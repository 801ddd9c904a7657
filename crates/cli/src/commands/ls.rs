//! `tithe ls`: what can be measured.

use std::path::Path;

use tithe_model::catalogue::{OfferedDatabase, OptionEntry, OptionKind, WorkloadEntry};

use crate::{
    LsArgs,
    exit::{self, Stop},
    offer, pages,
};

/// The arm that no file has to name.
const AA_ARM: &str = "
arm \"A/A\"  the plain arm again, the negative control: no cost is the truth
  aa_arm = true | false  in [measure]; by itself where it takes at most a fifth of the load of servers that tithe launches
";

/// Runs the command; returns the exit status.
pub fn ls(arguments: &LsArgs) -> Result<i32, Stop> {
    if let Some(folder) = &arguments.markdown {
        return write_pages(folder);
    }
    let catalogue = offer::catalogue();
    let mut text = String::new();
    for database in &catalogue.databases {
        describe_database(database, &mut text);
    }
    for workload in &catalogue.workloads {
        describe_workload(workload, &mut text);
    }
    text.push_str(AA_ARM);
    anstream::print!("{text}");
    Ok(exit::OK)
}

/// Writes a page for each database and protection into `folder`.
fn write_pages(folder: &Path) -> Result<i32, Stop> {
    for (name, text) in pages::pages(&offer::databases()) {
        let path = folder.join(name);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text))
            .map_err(|error| Stop::new(exit::MACHINE, format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(exit::OK)
}

fn describe_database(database: &OfferedDatabase, text: &mut String) {
    let entry = database.entry;
    let how = match (entry.embedded, entry.schemes) {
        (true, _) => "runs inside tithe".to_owned(),
        (false, []) => "launched by tithe".to_owned(),
        (false, schemes) => format!("launched by tithe, or attached by {}://", schemes.join(":// or ")),
    };
    text.push_str(&format!("database \"{}\"  {} ({how})\n", entry.id, entry.title));
    for protection in &database.protections {
        text.push_str(&format!("  {{ use = \"{}\" }}  {}\n", protection.id, protection.title));
        text.push_str(&format!("      protects against: {}\n", protection.protects_against));
        text.push_str(&format!("      leaves open:    {}\n", protection.leaves_open));
        protection.options.iter().for_each(|option| describe_option(option, text));
    }
    text.push('\n');
}

fn describe_option(option: &OptionEntry, text: &mut String) {
    let takes = match option.kind {
        OptionKind::Number { low, high } => format!("{low} to {high}"),
        OptionKind::Choice(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" | "),
        OptionKind::Text => "text".to_owned(),
        OptionKind::Flag => "true | false".to_owned(),
    };
    let default = match option.default.map(tithe_model::catalogue::DefaultValue::value) {
        Some(tithe_model::experiment::OptionValue::Number(number)) => format!(", default {number}"),
        Some(tithe_model::experiment::OptionValue::Text(text)) => format!(", default \"{text}\""),
        Some(tithe_model::experiment::OptionValue::Flag(flag)) => format!(", default {flag}"),
        None => ", required".to_owned(),
    };
    text.push_str(&format!("      {} = {takes}{default}: {}\n", option.name, option.help));
}

fn describe_workload(workload: &WorkloadEntry, text: &mut String) {
    text.push_str(&format!("workload \"{}\"  {}\n", workload.id, workload.title));
    for (name, sentence, _) in workload.ready {
        text.push_str(&format!("  {} = \"{name}\"  {sentence}\n", workload.id));
    }
    text.push_str(&format!("  {}_file = \"FILE\"  any property file\n", workload.id));
}
