//! Downloads Cassandra's libraries: `org.apache.cassandra:cassandra-all` with its dependencies.

use std::{fs, path::Path};

use tithe_machine::fault::Fault;
use tithe_plugin::database;

use crate::downloads::{self, Download};

/// What `tithe get` downloads.
pub const LIBRARIES: database::Download = database::Download {
    words: "the libraries from Maven Central, some 70 MB, Apache License 2.0",
    get: |version| DOWNLOAD.get(version),
    folders: || DOWNLOAD.downloaded(),
    name: None,
};

/// Cassandra's libraries.
pub static DOWNLOAD: Download = Download { name: "cassandra", known: &["5.0.4", "4.1.8"], mark: "lib", fetch };

fn fetch(version: &str, folder: &Path) -> Result<(), Fault> {
    let project = folder.join("pom.xml");
    fs::write(&project, project_text(version)).map_err(|error| Fault::machine(project.display(), error))?;
    downloads::maven(folder, &arguments(folder, &project))
}

fn arguments(folder: &Path, project: &Path) -> Vec<String> {
    vec![
        // Without it Maven keeps a library whose checksum does not match, and only warns.
        "--strict-checksums".to_owned(),
        "dependency:copy-dependencies".to_owned(),
        "-DincludeScope=runtime".to_owned(),
        "-Dmdep.useBaseVersion=true".to_owned(),
        format!("-DoutputDirectory={}", folder.join("lib").display()),
        format!("--file={}", project.display()),
    ]
}

/// A project that needs Cassandra and nothing else.
fn project_text(version: &str) -> String {
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  \
         <modelVersion>4.0.0</modelVersion>\n  \
         <groupId>tithe</groupId>\n  <artifactId>cassandra</artifactId>\n  <version>1</version>\n  \
         <packaging>pom</packaging>\n  \
         <dependencies>\n    <dependency>\n      <groupId>org.apache.cassandra</groupId>\n      \
         <artifactId>cassandra-all</artifactId>\n      <version>{version}</version>\n    </dependency>\n  </dependencies>\n\
         </project>\n"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn maven_has_to_refuse_a_library_with_another_checksum() {
        expect![[r#"
            --strict-checksums
            dependency:copy-dependencies
            -DincludeScope=runtime
            -Dmdep.useBaseVersion=true
            -DoutputDirectory=/d/5/lib
            --file=/d/5/pom.xml"#]]
        .assert_eq(&arguments(Path::new("/d/5"), Path::new("/d/5/pom.xml")).join("\n"));
    }
}
