//! A program in Java for tests: its dependencies are downloaded from Maven Central once, and it is compiled for each
//! run.

use std::{path::Path, process::Command};

/// Options of `javac`: the second compiler does not pay off for a program that runs for seconds.
const SOON: [&str; 3] = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-proc:none"];

/// Compiles the file `name` of the folder `source`, and others there that it uses, with the dependencies of its
/// `pom.xml`, of which `jar` is one file, in `folder`; returns the class path.
///
/// # Errors
/// Words of Maven's or of the compiler's, or why they cannot be started.
pub fn compiled(source: &Path, name: &str, folder: &Path, jar: &str) -> Result<String, String> {
    let (library, classes) = (folder.join("lib"), folder.join("classes"));
    if !library.join(jar).exists() {
        let output = format!("-DoutputDirectory={}", library.display());
        let pom = source.join("pom.xml");
        run(Command::new("mvn").args(["-q", "-B", "-f"]).arg(pom).args(["dependency:copy-dependencies", &output]))?;
    }
    let class_path = format!("{}/*:{}", library.display(), classes.display());
    let compile = [&SOON[..], &["--release", "17", "-cp", &class_path, "-d"]].concat();
    run(Command::new("javac").args(compile).arg(&classes).arg("-sourcepath").args([source, &source.join(name)]))?;
    Ok(class_path)
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{name} failed: {}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat())))
}
