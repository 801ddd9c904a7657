//! `tithe manual`: the manual page and shell completions, from the definitions of the commands themselves.

use crate::{
    ManualArgs,
    exit::{self, Stop},
    help,
};

/// Runs the command; returns the exit status.
pub fn manual(arguments: &ManualArgs) -> Result<i32, Stop> {
    let mut text = Vec::new();
    match arguments.kind {
        None => page(&mut text)
            .map_err(|error| Stop::new(exit::MACHINE, format!("cannot write the manual page: {error}")))?,
        Some(shell) => clap_complete::generate(shell, &mut help::command(), "tithe", &mut text),
    }
    crate::shown::show!("{}", String::from_utf8_lossy(&text));
    Ok(exit::OK)
}

/// One page for `tithe` and all its commands.
fn page(text: &mut Vec<u8>) -> std::io::Result<()> {
    let mut command = help::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(text)?;
    for each in command.get_subcommands().filter(|each| !each.is_hide_set() && each.get_name() != "help") {
        let man = clap_mangen::Man::new(each.clone());
        man.render_name_section(text)?;
        man.render_synopsis_section(text)?;
        man.render_options_section(text)?;
    }
    Ok(())
}
