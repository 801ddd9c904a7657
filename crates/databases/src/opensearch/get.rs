//! Downloads OpenSearch and its security plugin, and lays them out as the product's archive does: libraries, the module
//! that speaks HTTP, the plugin.

use std::{fs, path::Path};

use tithe_machine::fault::Fault;
use tithe_plugin::database;

use crate::{
    downloads::{self, Download},
    java,
};

/// The module that speaks HTTP, in the folder of an installation: every installation has it.
pub const MODULE: &str = "modules/transport-netty4";
/// The security plugin there.
pub const PLUGIN: &str = "plugins/opensearch-security";

/// What `tithe get` downloads.
pub const SERVER: database::Download = database::Download {
    words: "the server's libraries and its security plugin from Maven Central, some 90 MB, Apache License 2.0",
    get: |version| DOWNLOAD.get(version),
    folders: || DOWNLOAD.downloaded(),
    name: None,
};

/// OpenSearch with its plugin.
pub static DOWNLOAD: Download = Download { name: "opensearch", known: &[TESTED.version], mark: MODULE, fetch };

/// Versions that fit together.
struct Pair {
    version: &'static str,
    /// The version of the library for logs: the server's own description does not name it.
    log4j: &'static str,
    /// SHA-256 of the library of the server, and of the archive of the plugin.
    server: &'static str,
    plugin: &'static str,
}

const TESTED: Pair = Pair {
    version: "2.19.1",
    log4j: "2.21.0",
    server: "8d89eede16be5eefe0452884a2bd147b7f24ab6840fabff5ce9fbae3848812ec",
    plugin: "94a04f12ac6033902209fac1e4e512618d45beee604bbf0e42c3ed79c55220cf",
};

/// The module's rights, as in the product's archive. Without those over its threads a node does not stop.
const POLICY: &str = r#"grant {
  permission java.lang.RuntimePermission "*";
  permission java.net.SocketPermission "*", "accept,connect,listen,resolve";
  permission java.util.PropertyPermission "sun.nio.ch.bugLevel", "write";
  permission java.io.FilePermission "/proc/sys/net/core/somaxconn", "read";
};
"#;

fn fetch(version: &str, folder: &Path) -> Result<(), Fault> {
    let pair = &TESTED;
    if version != pair.version {
        let words = "of OpenSearch and its security plugin, Tithe downloads the pair that it was tested with";
        return Err(Fault::Refused(format!("{words}: {}; OPENSEARCH_HOME names another installation", pair.version)));
    }
    let write =
        |path: &Path, text: String| fs::write(path, text).map_err(|error| Fault::machine(path.display(), error));
    downloads::can_unzip(folder)?;
    let project = folder.join("pom.xml");
    write(&project, project_text(pair))?;
    let (libraries, plugin) = (folder.join("lib"), folder.join(PLUGIN));
    downloads::maven(
        folder,
        &[
            "--strict-checksums".to_owned(),
            "dependency:copy-dependencies".to_owned(),
            "-DincludeScope=runtime".to_owned(),
            "-Dmdep.useBaseVersion=true".to_owned(),
            format!("-DoutputDirectory={}", libraries.display()),
            format!("--file={}", project.display()),
        ],
    )?;
    downloads::maven(
        folder,
        &[
            // Registries have been seen without the checksum of this archive: it is checked below.
            "--lax-checksums".to_owned(),
            "dependency:copy".to_owned(),
            format!("-Dartifact=org.opensearch.plugin:opensearch-security:{version}.0:zip"),
            format!("-DoutputDirectory={}", folder.display()),
        ],
    )?;
    downloads::check(&libraries.join(format!("opensearch-{version}.jar")), pair.server)?;
    let archive = folder.join(format!("opensearch-security-{version}.0.zip"));
    downloads::check(&archive, pair.plugin)?;
    downloads::unzip(&archive, &plugin)?;
    fs::remove_file(&archive).map_err(|error| Fault::machine(archive.display(), error))?;
    let module = folder.join(MODULE);
    let failed = |error| Fault::machine(module.display(), error);
    fs::create_dir_all(&module).map_err(failed)?;
    // The server does not start without this folder.
    fs::create_dir(folder.join("bin")).map_err(failed)?;
    for library in java::libraries(&libraries) {
        let name = library.file_name().unwrap_or_default();
        let text = name.to_string_lossy();
        if text.starts_with("netty-") || text.starts_with("transport-netty4-") {
            fs::rename(&library, module.join(name)).map_err(failed)?;
        }
    }
    write(&module.join("plugin-descriptor.properties"), descriptor(version))?;
    write(&module.join("plugin-security.policy"), POLICY.to_owned())
}

fn descriptor(version: &str) -> String {
    format!(
        "name=transport-netty4\ndescription=HTTP and transport\nversion={version}\nopensearch.version={version}\n\
         java.version=11\nclassname=org.opensearch.transport.Netty4Plugin\nextended.plugins=\n\
         has.native.controller=false\n"
    )
}

/// A project that needs the server and nothing else.
fn project_text(pair: &Pair) -> String {
    let needs = [
        ("org.opensearch", "opensearch", pair.version),
        ("org.opensearch", "opensearch-plugin-classloader", pair.version),
        ("org.opensearch.plugin", "transport-netty4-client", pair.version),
        ("org.apache.logging.log4j", "log4j-core", pair.log4j),
    ];
    let needs = needs.map(|(group, name, version)| {
        format!(
            "    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>\n"
        )
    });
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  \
         <groupId>tithe</groupId>\n  <artifactId>opensearch</artifactId>\n  <version>1</version>\n  \
         <packaging>pom</packaging>\n  <dependencies>\n{}  </dependencies>\n</project>\n",
        needs.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_pair_is_not_downloaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let fault = fetch("2.19.2", folder.path()).expect_err("not tested");
        assert!(fault.to_string().contains("2.19.1"), "{fault}");
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 0);
    }
}
