//! `observer` of an arm: which observer runs on the machine of a running server, and which files it reads there.

use std::path::{Component, Path, PathBuf};

use super::{
    keys,
    reader::{Item, Problems, Table},
};
use crate::experiment::Observed;

/// What the arm in `table` has observed; `None` if it has no `observer`, or an incomplete one.
pub(super) fn observed(table: &Table<'_>, problems: &mut Problems) -> Option<Observed> {
    let table = table.table("observer", &keys::OBSERVER, problems)?;
    let name = table.need("name", problems).and_then(|item| name(&item, problems));
    let mut paths = |key| table.get(key).map(|item| files(&item, problems)).unwrap_or_default();
    let (data, journal, logs, settings) = (paths("data"), paths("journal"), paths("logs"), paths("settings"));
    Some(Observed { name: name?, data, journal, logs, settings })
}

/// The name of an observer, which is a part of the subject of its requests.
fn name(item: &Item<'_>, problems: &mut Problems) -> Option<String> {
    let text = item.text(problems)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || !text.chars().all(fits) {
        item.refuse("is not a name of an observer, which has letters, digits, dashes and underscores", problems);
        return None;
    }
    Some(text.to_owned())
}

/// Files and folders of another machine.
fn files(item: &Item<'_>, problems: &mut Problems) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for one in item.list(problems) {
        let Some(text) = one.text(problems) else { continue };
        let path = Path::new(text);
        if path.is_absolute() && path.components().all(|part| part != Component::ParentDir) {
            all.push(path.to_owned());
        } else {
            let problem = "a path on another machine begins with `/` and holds no `..`";
            problems.at(one.range.clone(), problem, "write where the file is on the server's machine");
        }
    }
    all
}
