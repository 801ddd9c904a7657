//! The properties of workloads: the files that they come from, and what is kept of them.

use std::io::{self, ErrorKind};

use tithe_model::{catalogue::WorkloadEntry, experiment::Workload, parse::parse};

use crate::{SHORT, catalogue, render};

/// The workload of [`SHORT`] with `source` in place of its own, in a build whose kind of workload has a `change`.
fn workload(
    source: &str,
    change: impl FnOnce(&mut WorkloadEntry),
    read: &dyn Fn(&str) -> io::Result<Vec<u8>>,
) -> Result<Workload, String> {
    let mut catalogue = catalogue::catalogue();
    change(&mut catalogue.workloads[0]);
    let text = SHORT.replace("ycsb = \"c\"", source);
    match parse(&text, &catalogue, read) {
        Ok(mut experiment) => Ok(experiment.workloads.remove(0)),
        Err(found) => Err(render(&text, &found)),
    }
}

/// A script or the path of a log has to be kept as it is: it was checked for passwords when it was read.
#[test]
fn passwords_in_properties_are_not_kept() {
    let pairs: [(&str, &str, bool, bool); 12] = [
        ("threads", "8", false, false),
        ("password", "x", true, true),
        ("db.PassWord", "x", true, true),
        ("clientSecret", "x", true, true),
        ("mysql.pwd", "x", true, true),
        ("cosmos.primary_key", "x", true, true),
        ("jdbc", "jdbc:a://u:p@h/d", true, true),
        ("endpoint", "http://{host}/a", false, false),
        ("endpoints", "http://{host}/a http://u:p@h", true, true),
        ("log", "a://b", true, false),
        ("script", "SELECT 'a://b'", true, false),
        ("script_passwords", "SELECT 1", true, false),
    ];
    let written: Vec<String> = pairs.iter().map(|(name, value, ..)| format!("{name:?} = {value:?}")).collect();
    let kept = |source: &str, change: fn(&mut WorkloadEntry)| {
        let source = format!("ycsb = \"{source}\"\nproperties = {{ {} }}", written.join(", "));
        workload(&source, change, &catalogue::read).expect("a workload").properties
    };
    let usual = kept("c", |_| {});
    let scripted = kept("mine.log", |kind| (kind.scripts, kind.by_path) = ("script", "log"));
    for (name, value, is_secret, is_secret_beside_scripts) in pairs {
        let shown = |is_secret: bool| if is_secret { "***" } else { value };
        assert_eq!(usual[name], shown(is_secret), "{name}");
        assert_eq!(scripted[name], shown(is_secret_beside_scripts), "{name}");
    }
}

#[test]
fn files_have_numbers_and_weights_and_the_last_one_wins() {
    let told = |is_weighted: bool| {
        let change = |kind: &mut WorkloadEntry| {
            kind.weighted = is_weighted;
            kind.read = |file| {
                let told = format!("{} {:?}, {} bytes", file.name, file.weight, file.bytes.len());
                Ok([(format!("file {}", file.number), told.clone()), ("last".to_owned(), told)].into())
            };
        };
        let read = |path: &str| Ok(vec![0; path.len()]);
        let of = workload("ycsb_file = [\"a@3\", \"bb.x\", \"c@d\"]", change, &read).expect("a workload");
        let properties: Vec<String> = of.properties.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        (of.name, properties)
    };
    let weighted = ["file 1: a Some(3), 1 bytes", "file 2: bb.x None, 4 bytes", "file 3: c@d None, 3 bytes"];
    let others = ["file 1: a@3 None, 3 bytes", weighted[1], weighted[2]];
    let last = "last: c@d None, 3 bytes".to_owned();
    for (is_weighted, name, files) in [(true, "a", weighted), (false, "a@3", others)] {
        let expected: Vec<String> = files.map(str::to_owned).into_iter().chain([last.clone()]).collect();
        assert_eq!(told(is_weighted), (name.to_owned(), expected));
    }
}

#[test]
fn a_folder_in_place_of_a_file_is_named() {
    let said = |kind: ErrorKind| workload("ycsb_file = \"d\"", |_| {}, &|_| Err(kind.into())).expect_err("no file");
    let folder = "7:13 the file `d` cannot be read: it is a folder (name the file in it)\n";
    assert_eq!(said(ErrorKind::IsADirectory), folder);
    let refused = "7:13 the file `d` cannot be read: permission denied (the path is relative to the folder of the \
                   experiment file)\n";
    assert_eq!(said(ErrorKind::PermissionDenied), refused);
}
