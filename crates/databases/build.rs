//! Compiles the C in Tithe: SQLite3 Multiple Ciphers, and the few lines through which WiredTiger loads an encryptor.

#![allow(clippy::disallowed_methods, reason = "what builds Tithe asks the compiler for its version")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "sqlite")]
    sqlite::build();
    #[cfg(feature = "wiredtiger")]
    wiredtiger::build();
}

#[cfg(feature = "wiredtiger")]
mod wiredtiger {
    use std::{env, path::PathBuf};

    const SOURCE: &str = "src/wiredtiger/extension.c";

    /// Builds the shared object that the engine loads; it is compiled into the program as bytes.
    pub fn build() {
        println!("cargo:rerun-if-changed={SOURCE}");
        let object = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("extension.so");
        let mut command = cc::Build::new().pic(true).opt_level(2).debug(false).get_compiler().to_command();
        let status = command.args(["-shared", "-o"]).arg(&object).arg(SOURCE).status();
        assert!(status.is_ok_and(|status| status.success()), "the C compiler cannot make {}", object.display());
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::process::Command;

    /// Differences from the library's defaults. None of them changes how pages are read, written or encrypted.
    const DEFINES: &[(&str, &str)] = &[
        // A connection is used by one thread at a time, so it needs no mutex.
        ("SQLITE_THREADSAFE", "2"),
        // SQLite's documentation recommends these for speed or strictness: no allocation statistics behind a mutex, and
        // "x" is never a string.
        ("SQLITE_DEFAULT_MEMSTATUS", "0"),
        ("SQLITE_DQS", "0"),
        // Unused parts cost compile time.
        ("SQLITE_OMIT_DECLTYPE", "1"),
        ("SQLITE_OMIT_DEPRECATED", "1"),
        ("SQLITE_OMIT_JSON", "1"),
        ("SQLITE_OMIT_LOAD_EXTENSION", "1"),
        ("SQLITE_OMIT_PROGRESS_CALLBACK", "1"),
        ("SQLITE_OMIT_SHARED_CACHE", "1"),
        ("HAVE_CIPHER_AES_128_CBC", "0"),
        ("HAVE_CIPHER_ASCON128", "0"),
        ("HAVE_CIPHER_RC4", "0"),
    ];

    /// Optimisation level in every profile, so that a figure does not depend on how Tithe was built. At 1 the library
    /// is up to a third slower and the share of encryption changes; at 3 it takes 50 % longer to compile.
    const OPTIMISATION: u32 = 2;

    pub fn build() {
        let folder = sqlite3mc_src::source_dir();
        let mut build = cc::Build::new();
        build
            .file(folder.join(sqlite3mc_src::SOURCE_FILE))
            .include(folder)
            .opt_level(OPTIMISATION)
            .debug(false)
            .warnings(false);
        let mut flags = vec![format!("-O{OPTIMISATION}")];
        for (name, value) in DEFINES {
            build.define(name, *value);
            flags.push(format!("-D{name}={value}"));
        }
        build.compile("tithe_sqlite3mc");
        println!("cargo:rustc-env=TITHE_SQLITE_FLAGS={}", flags.join(" "));
        println!("cargo:rustc-env=TITHE_SQLITE_COMPILER={}", compiler_version(&build.get_compiler()));
    }

    /// The first line of the compiler's version output: speed and cipher intrinsics depend on it.
    fn compiler_version(tool: &cc::Tool) -> String {
        let output = Command::new(tool.path()).arg("--version").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().next().unwrap_or("unknown").to_owned()
    }
}
