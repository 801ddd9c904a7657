//! The requests of a log's statements for tables that Tithe did not make.

use std::collections::BTreeSet;

use tithe_plugin::own_tables::{Asked, OwnStatement};

use super::{
    config::Replayed,
    names,
    sql::{parameters_of, shape},
};
use crate::script::guard;

/// Most statements that a server checks: one for each shape.
const ASKED: usize = 500;

/// The requests of the statements of `replayed`. Names come from shapes: a value in double quotes is no name.
pub fn asked(replayed: &Replayed) -> Asked {
    let (writes, copy_limit) = (replayed.writes, replayed.copy_limit);
    let mut asked = Asked { writes, copy_limit, ..Asked::default() };
    let mut shapes = BTreeSet::new();
    for text in &replayed.recording.texts {
        let shape = shape(text, replayed.flavour);
        if guard::is_control(&shape, replayed.flavour) && !shape.contains(';') || shapes.contains(&shape) {
            continue;
        }
        asked.names.extend(guard::names(&shape, replayed.flavour));
        // With several statements in one text the server would execute the later ones.
        if !shape.contains(';') && asked.statements.len() < ASKED {
            let (place, parameters) = (names::name(&shape, &[]), parameters_of(text, replayed.flavour));
            asked.statements.push(OwnStatement { place, text: text.clone(), parameters });
        }
        shapes.insert(shape);
    }
    asked
}
