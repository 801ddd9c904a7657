//! The profile as folded stacks, for programs that draw flame graphs.
//!
//! One stack per line, `arm;task;caller;…;function PLAIN PROTECTED`: the input of differential flame graphs
//! (`difffolded.pl` of Brendan Gregg's FlameGraph). The numbers are ns of processor time per 1,000 operations.

use std::fmt::Write;

use tithe_model::direction::turns;

use crate::Analysis;

/// The stacks of `analysis`; empty if nothing was profiled.
pub fn render(analysis: &Analysis) -> String {
    let mut text = String::new();
    for cell in &analysis.cells {
        for arm in cell.profile.iter().flat_map(|profile| &profile.arms) {
            let root = match analysis.cells.len() {
                1 => frame(&arm.name),
                _ => format!("{};{}", frame(&cell.id), frame(&arm.name)),
            };
            for stack in &arm.stacks {
                let frames: Vec<String> = stack.frames.iter().map(|name| frame(name)).collect();
                let ns = |us: f64| (1e6 * us).round();
                let (plain, protected) = (ns(stack.plain), ns(stack.protected));
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{root};{} {plain} {protected}", frames.join(";"));
            }
        }
    }
    text
}

/// A name without characters that end or divide a line.
fn frame(name: &str) -> String {
    name.replace(|letter: char| letter == ';' || letter.is_control() || turns(letter), ":")
}
