//! Renders errors like compilers do: place, cause, what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use tithe_machine::launch::Missing;
use tithe_model::diagnostic::Diagnostic;

use crate::exit::{self, Stop};

/// All diagnostics about the experiment `text` called `name`.
pub fn about(name: &str, text: &str, diagnostics: &[Diagnostic]) -> Stop {
    // Passwords are masked letter by letter, so that positions stay the same.
    shown(name, &tithe_model::experiment::mask_passwords(text), diagnostics)
}

/// All diagnostics about `text`, which contains no password.
pub fn shown(name: &str, text: &str, diagnostics: &[Diagnostic]) -> Stop {
    let renderer = Renderer::styled();
    let mut message = String::new();
    for diagnostic in diagnostics {
        let mut group = Group::with_title(Level::ERROR.primary_title(&diagnostic.problem));
        if let Some(range) = &diagnostic.range {
            let annotation = AnnotationKind::Primary.span(range.start.min(text.len())..range.end.min(text.len()));
            group = group.element(Snippet::source(text).path(name).annotation(annotation));
        }
        group = group.element(Level::HELP.message(&diagnostic.help));
        message.push_str(&renderer.render(&[group]));
        message.push_str("\n\n");
    }
    let count = diagnostics.len();
    message.push_str(&format!(
        "tithe: {count} {} in {name}; nothing was started\n",
        if count == 1 { "problem" } else { "problems" }
    ));
    Stop { message, status: exit::USAGE }
}

/// The text of a fault for a command that has not started anything yet.
pub fn without_lead(fault: &str) -> &str {
    let fault = fault.strip_prefix("refused: ").unwrap_or(fault);
    fault.strip_prefix("the server's URL: ").unwrap_or(fault)
}

/// Printed before the remedy for something that a machine lacks.
pub const REMEDY: &str = "what helps:";

/// Everything that this machine lacks.
pub fn missing(all: &[Missing]) -> Stop {
    let mut message = String::new();
    for missing in all {
        message.push_str(&format!("tithe: this machine lacks {}\n  searched:\n", missing.what));
        missing.looked_in.iter().for_each(|place| message.push_str(&format!("    {place}\n")));
        message.push_str(&format!("  {REMEDY}\n"));
        missing.how_to_install.iter().for_each(|line| message.push_str(&format!("    {line}\n")));
    }
    message.push_str("tithe: nothing was started\n");
    Stop { message, status: exit::MISSING }
}
