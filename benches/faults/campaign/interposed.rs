//! A library that fails chosen system calls of the program, compiled once.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{case::Case, draw::Draw, product::Reference};

pub struct Tools {
    library: PathBuf,
}

impl Tools {
    /// Compiles the library.
    pub fn make() -> Self {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/faults/interpose.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("interpose-{}.so", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]);
        assert!(compiler.status().expect("cc runs").success(), "{source} does not compile");
        Self { library }
    }

    /// Has the program of `command` tell every call on files of `case` in the file at `trace`.
    pub fn trace(&self, command: &mut Command, case: &Case, trace: &Path) {
        self.preload(command, case).env("FAULT_TRACE", trace);
    }

    /// Has one call of the program of `command` end with `error`, or all from there on where it `lasts`. The call is
    /// drawn from all calls of a run without faults, but only from those called `call` where it has a name.
    pub fn strike(
        &self,
        (command, case): (&mut Command, &Case),
        (call, error, lasts): (&str, i32, bool),
        reference: &Reference,
        draw: &mut Draw,
    ) {
        let of_call = reference.calls.iter().filter(|found| call.is_empty() || found.starts_with(call)).count() as u64;
        let command = self.preload(command, case);
        command.env("FAULT_ERRNO", error.to_string()).env("FAULT_AT", draw.below(of_call.max(3)).to_string());
        if !call.is_empty() {
            command.env("FAULT_CALL", call);
        }
        if lasts {
            command.env("FAULT_LASTS", "1");
        }
    }

    fn preload<'a>(&self, command: &'a mut Command, case: &Case) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.library).env("FAULT_FOLDER", case.folder.join("tithe-runs"))
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.library);
    }
}
