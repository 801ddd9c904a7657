//! Names for addresses: functions of the kernel, of programs and libraries, and of just-in-time compiled code.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use blazesym::{
    MaybeDefault, Pid,
    symbolize::{
        Input, Symbolized, Symbolizer,
        source::{Kernel, Process, Source},
    },
};
use tithe_model::profile::{Function, KERNEL};

/// The names found so far.
pub struct Symbols {
    symbolizer: Symbolizer,
    known: HashMap<(Option<i32>, u64), Function>,
    maps: HashMap<i32, Vec<Mapping>>,
}

/// A part of a process's memory that holds code.
struct Mapping {
    from: u64,
    to: u64,
    object: String,
}

impl Default for Symbols {
    fn default() -> Self {
        let symbolizer = Symbolizer::builder().enable_code_info(false).enable_inlined_fns(false).build();
        Self { symbolizer, known: HashMap::new(), maps: HashMap::new() }
    }
}

impl Symbols {
    /// Finds the names of `addresses` of one process, or of the kernel if `process` is `None`, all at once. The process
    /// must still exist.
    pub fn learn(&mut self, process: Option<i32>, addresses: impl Iterator<Item = u64>) {
        let mut new: Vec<u64> = addresses.filter(|address| !self.known.contains_key(&(process, *address))).collect();
        new.sort_unstable();
        new.dedup();
        if let Some(process) = process {
            self.maps.entry(process).or_insert_with(|| mappings(process));
        }
        let is_named = |all: &Vec<Symbolized<'_>>| all.iter().any(|one| matches!(one, Symbolized::Sym(_)));
        let sources = sources(process);
        let read = sources.iter().map(|source| self.symbolizer.symbolize(source, Input::AbsAddr(&new)));
        let named = read.flatten().find(is_named).unwrap_or_default();
        let names: Vec<Option<String>> = named
            .iter()
            .map(|named| match named {
                Symbolized::Sym(symbol) => Some(symbol.name.to_string()),
                Symbolized::Unknown(_) => None,
            })
            .chain(std::iter::repeat(None))
            .take(new.len())
            .collect();
        for (address, name) in new.into_iter().zip(names) {
            let object = process.map_or_else(|| KERNEL.to_owned(), |process| self.object(process, address));
            self.known.insert((process, address), Function { object, name });
        }
    }

    /// The function at `address`, which must have been [learnt](Self::learn).
    pub fn function(&self, process: Option<i32>, address: u64) -> Function {
        self.known.get(&(process, address)).cloned().unwrap_or_default()
    }

    /// The program or library at `address`.
    fn object(&self, process: i32, address: u64) -> String {
        let mappings = self.maps.get(&process).map_or(&[][..], Vec::as_slice);
        let mapping = mappings.iter().find(|mapping| (mapping.from..mapping.to).contains(&address));
        match mapping {
            Some(mapping) => mapping.object.clone(),
            None if mappings.is_empty() => "[ended process]".to_owned(),
            None => "[unknown]".to_owned(),
        }
    }
}

/// Where the names of `process`, or of the kernel, are, best first.
fn sources(process: Option<i32>) -> Vec<Source<'static>> {
    let Some(process) = process else {
        let kernel = Kernel { vmlinux: MaybeDefault::None, debug_syms: false, ..Kernel::default() };
        return vec![Source::Kernel(kernel)];
    };
    // `/proc/…/map_files` has the very files that were mapped, also of a program that was replaced. Only root may open
    // them (proc_pid_map_files(5)); anybody may open the files by their names.
    let of = |map_files| Process { debug_syms: false, map_files, ..Process::new(Pid::from(process as u32)) };
    [true, false].map(|map_files| Source::Process(of(map_files))).into()
}

/// The parts of `process` that hold code; none if they cannot be read.
fn mappings(process: i32) -> Vec<Mapping> {
    let text = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    text.lines().filter_map(mapping).collect()
}

/// Parses a line of `/proc/…/maps` (proc(5)) if it is of code.
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    if !fields.next()?.contains('x') {
        return None;
    }
    let path = fields.skip(3).collect::<Vec<_>>().join(" ");
    let object = match path.strip_suffix(" (deleted)").unwrap_or(&path) {
        "" => "[generated code]".to_owned(),
        path => Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned()),
    };
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping { from: address(from)?, to: address(to)?, object })
}

/// The name of `thread` of `process`: the title that a process gives itself (`postgres: logger`), or the kernel's name
/// for it. Empty if it has ended.
pub fn name_of(process: i32, thread: i32) -> String {
    let read = |name: &str| std::fs::read_to_string(PathBuf::from(format!("/proc/{process}")).join(name));
    let title = read("cmdline").unwrap_or_default();
    let title = title.split('\0').next().unwrap_or_default().trim();
    match title.split_once(": ") {
        // The rest is users and addresses.
        Some((program, title)) => format!("{program}: {}", title.split(' ').next().unwrap_or_default()),
        None => read(&format!("task/{thread}/comm")).unwrap_or_default().trim().to_owned(),
    }
}

/// True for a thread of the kernel, which has no program.
pub fn is_of_kernel(process: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|title| title.is_empty())
        && std::fs::read_to_string(format!("/proc/{process}/maps")).is_ok_and(|maps| maps.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let object = |line: &str| mapping(line).map(|mapping| (mapping.from, mapping.to, mapping.object));
        let code = "55d0-55e0 r-xp 00001000 08:01 17 /usr/lib/postgresql/15/bin/post gres (deleted)";
        assert_eq!(object(code), Some((0x55d0, 0x55e0, "post gres".to_owned())));
        assert_eq!(object("7f00-7f10 r-xp 0 00:00 0"), Some((0x7f00, 0x7f10, "[generated code]".to_owned())));
        assert_eq!(object("7f00-7f10 r-xp 0 00:00 0 [vdso]").map(|it| it.2), Some("[vdso]".to_owned()));
        assert_eq!(object("55d0-55e0 rw-p 00001000 08:01 17 /bin/x"), None);
    }

    #[test]
    fn own_functions_have_names() {
        let address = own_functions_have_names as fn() as usize as u64;
        let own = std::process::id() as i32;
        let mut symbols = Symbols::default();
        symbols.learn(Some(own), [address].into_iter());
        let function = symbols.function(Some(own), address);
        assert!(function.name.is_some_and(|name| name.contains("own_functions_have_names")), "{}", function.object);
    }
}
