//! Servers as tests have them: with small logs, and sooner warm than those that are measured.

use std::collections::BTreeMap;

use tithe_machine::{
    launch::{Content, Launch, Step},
    secret::Secret,
};

/// Settings by which the logs of a server of `database` are small: they go with the data where these are copied and
/// searched, and half a gigabyte takes longer than all else of a test.
pub fn small_logs(database: &str) -> BTreeMap<String, String> {
    let setting = match database {
        "mariadb" => "innodb_log_file_size",
        "mysql" => "innodb_redo_log_capacity",
        _ => return BTreeMap::new(),
    };
    BTreeMap::from([(setting.to_owned(), "32M".to_owned())])
}

/// What the second compiler of Cassandra's virtual machine makes pays after minutes, as do the threads of its
/// collector, and no test takes that long. Nor has any to verify the classes of a release.
pub fn warm_up_soon(database: &str, launch: &mut Launch) {
    if database == "cassandra" {
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
