//! Servers for tests: with small logs, and with less warm-up than measured ones.

use std::collections::BTreeMap;

use tithe_machine::{
    launch::{Content, Launch, Step},
    secret::Secret,
};

/// Settings for small logs of a server of `database`. Logs are copied and searched with the data, and half a gigabyte
/// takes longer than everything else in a test.
pub fn small_logs(database: &str) -> BTreeMap<String, String> {
    let setting = match database {
        "mariadb" => "innodb_log_file_size",
        "mysql" => "innodb_redo_log_capacity",
        _ => return BTreeMap::new(),
    };
    BTreeMap::from([(setting.to_owned(), "32M".to_owned())])
}

/// The second compiler of a virtual machine and the threads of its collector pay off after minutes, and no test takes
/// that long. Nor does a test need to verify the classes of a release.
pub fn warm_up_soon(database: &str, launch: &mut Launch) {
    if matches!(database, "cassandra" | "opensearch") {
        let soon = "-XX:+UseSerialGC\n-XX:TieredStopAtLevel=1\n-XX:+UnlockDiagnosticVMOptions\n-XX:-BytecodeVerificationRemote";
        replace(launch, "-XX:+UseG1GC", soon);
    }
}

/// Replaces `right` by `wrong` in the files of `launch`.
pub fn replace(launch: &mut Launch, right: &str, wrong: &str) {
    let mut made = false;
    for step in &mut launch.steps {
        let Step::Write { content, .. } = step else { continue };
        let text = match &*content {
            Content::Text(text) => text.clone(),
            Content::Secret(secret) => String::from_utf8_lossy(secret.expose()).into_owned(),
        };
        if text.contains(right) {
            made = true;
            let text = text.replace(right, wrong);
            *content = match content {
                Content::Text(_) => Content::Text(text),
                Content::Secret(_) => Content::Secret(Secret::new(text)),
            };
        }
    }
    for argument in launch.server.iter_mut().flat_map(|server| &mut server.arguments) {
        made |= argument.contains(right);
        *argument = argument.replace(right, wrong);
    }
    assert!(made, "no file and no argument of the server holds {right:?}");
}
