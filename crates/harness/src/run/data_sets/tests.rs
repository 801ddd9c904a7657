use super::*;

fn fingerprint(words: &str, key: &[u8]) -> Fingerprint {
    Fingerprint {
        workload: 0,
        paths: vec!["data".to_owned(), "log".to_owned()],
        words: words.to_owned(),
        keys: vec![Secret::new(key)],
        on_volume: None,
    }
}

/// The folder of a server that has stopped, and one for another server.
struct CheckContext {
    folder: PathBuf,
    data_sets: DataSets,
}

impl CheckContext {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tithe-test-kept-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for server in ["one", "two"] {
            fs::create_dir_all(folder.join(server)).expect("a folder");
        }
        fs::create_dir(folder.join("one/data")).expect("a folder");
        fs::write(folder.join("one/data/rows"), "1 2 3").expect("a file");
        Self { data_sets: DataSets::new(&folder), folder }
    }

    fn keep(&mut self, fingerprint: &Fingerprint) -> Result<(), Fault> {
        self.data_sets.keep(fingerprint, "plain", &self.folder.join("one"))
    }

    fn restore(&self, fingerprint: &Fingerprint, server: &str) -> Result<Option<String>, Fault> {
        let folder = self.folder.join(server);
        let below = |name: &str| vec![folder.join(name)];
        let paths = Paths { data: below("data"), journal: below("binlog"), logs: below("server.log") };
        self.data_sets.restore(fingerprint, &folder, &paths)
    }

    /// The folders of kept sets, complete or not.
    fn sets(&self) -> Vec<PathBuf> {
        let sandbox = self.data_sets.sandbox.as_ref().expect("a sandbox").folder();
        let entries = fs::read_dir(sandbox).expect("the sandbox").flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect()
    }
}

impl Drop for CheckContext {
    fn drop(&mut self) {
        self.data_sets.sandbox = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_data_set_is_copied_to_whoever_stores_the_same_and_to_nobody_else() {
    let mut context = CheckContext::new("copied");
    let plain = fingerprint("plain", b"k");
    assert_eq!(context.restore(&plain, "two"), Ok(None));
    context.keep(&plain).expect("kept");
    assert!(!context.folder.join("one/data").exists(), "the server goes on with a copy like all others");
    for server in ["one", "two"] {
        let origin = context.restore(&plain, server).expect("a copy").expect("what is kept");
        assert!(origin.starts_with("loaded by plain, copied ("), "{origin}");
        let rows = fs::read_to_string(context.folder.join(server).join("data/rows")).expect("the copy");
        assert_eq!(rows, "1 2 3");
    }
    for other in [fingerprint("checksums", b"k"), fingerprint("plain", b"another")] {
        assert_eq!(context.restore(&other, "two"), Ok(None));
    }
    context.data_sets.discard(|workload| workload == 1);
    assert_eq!(context.restore(&plain, "two"), Ok(None));
    assert_eq!(context.sets(), Vec::<PathBuf>::new());
}

#[test]
fn data_are_put_back_in_place_of_what_was_written_since() {
    let mut context = CheckContext::new("back");
    let plain = fingerprint("plain", b"k");
    context.keep(&plain).expect("kept");
    let at = |name: &str| context.folder.join("one").join(name);
    for round in ["first", "second"] {
        context.restore(&plain, "one").expect("a copy").expect("what is kept");
        let written = ["data/rows", "data/more", "log", "binlog/1", "server.log", "password"];
        assert_eq!(
            written.map(|name| at(name).exists()),
            [true, false, false, false, round == "second", round == "second"]
        );
        assert_eq!(fs::read_to_string(at("data/rows")).expect("the copy"), "1 2 3");
        fs::create_dir(at("binlog")).expect("a folder");
        written.iter().for_each(|name| fs::write(at(name), round).expect("a file"));
    }
    // A path elsewhere does not belong to this server alone.
    let foreign = Paths { data: vec![context.folder.join("two")], ..Paths::default() };
    context.data_sets.restore(&plain, &context.folder.join("one"), &foreign).expect("a copy");
    assert!(context.folder.join("two").exists());
}

#[test]
fn folders_above_a_set_belong_to_whom_the_server_does() {
    let mut context = CheckContext::new("above");
    let set = Fingerprint { paths: vec!["node/data".to_owned()], ..fingerprint("plain", b"k") };
    let folder = context.folder.clone();
    fs::create_dir(folder.join("one/node")).expect("a folder");
    fs::rename(folder.join("one/data"), folder.join("one/node/data")).expect("moved");
    let owner =
        if rustix::process::geteuid().is_root() { 65_534 } else { fs::metadata(&folder).expect("a folder").uid() };
    chown(folder.join("two"), Some(owner), None).expect("given away");
    context.keep(&set).expect("kept");
    context.restore(&set, "two").expect("a copy").expect("what is kept");
    assert_eq!(fs::read_to_string(folder.join("two/node/data/rows")).expect("the copy"), "1 2 3");
    assert_eq!(fs::metadata(folder.join("two/node")).expect("a folder").uid(), owner);
}

#[test]
fn what_is_on_a_volume_stays_there_and_is_nobody_elses() {
    let mut context = CheckContext::new("volume");
    let on_volume = |arm, epoch| Fingerprint { on_volume: Some((arm, epoch)), ..fingerprint("plain", b"k") };
    context.keep(&on_volume(1, 0)).expect("kept");
    assert!(context.data_sets.sandbox.is_none(), "no place outside the volume is made for it");
    for other in [on_volume(2, 0), on_volume(1, 1), fingerprint("plain", b"k")] {
        assert_eq!(context.restore(&other, "two"), Ok(None));
    }
    context.restore(&on_volume(1, 0), "one").expect("a copy").expect("what is kept");
    assert_eq!(fs::read_to_string(context.folder.join("one/data/rows")).expect("the copy"), "1 2 3");
    assert_eq!(fs::read_to_string(context.folder.join("one/kept-set/data/rows")).expect("the set"), "1 2 3");
}

#[test]
fn half_a_set_and_one_that_is_not_what_it_was_are_not_used() {
    let mut context = CheckContext::new("half");
    let plain = fingerprint("plain", b"k");
    // The marker cannot be written: there is a folder in its place.
    fs::create_dir(context.folder.join("one").join(MARKER)).expect("a folder");
    let set = Fingerprint { paths: vec!["data".to_owned(), MARKER.to_owned()], ..plain.clone() };
    assert!(matches!(context.keep(&set), Err(Fault::Machine(_))));
    assert_eq!(context.restore(&set, "two"), Ok(None));
    assert!(
        context.sets().iter().all(|path| path.extension().is_some_and(|end| end == "part")),
        "{:?}",
        context.sets()
    );

    fs::create_dir(context.folder.join("one/data")).expect("a folder");
    context.keep(&plain).expect("kept");
    let whole = context.sets().into_iter().find(|path| path.extension().is_none()).expect("a whole set");
    fs::write(whole.join(MARKER), "checksums").expect("another marker");
    let Err(Fault::Machine(told)) = context.restore(&plain, "two") else { panic!("it is another set") };
    assert!(told.contains("does not hold what it should"), "{told}");
}

#[test]
fn sets_are_kept_if_another_arm_epoch_or_cell_has_the_same() {
    let (plain, other) = (fingerprint("plain", b"k"), fingerprint("checksums", b"k"));
    let on_volume = |arm| Some(Fingerprint { on_volume: Some((arm, 0)), ..plain.clone() });
    let [one, two] = [&plain, &other].map(|of| Some(of.clone()));
    // The arms of an epoch, and whether sets are kept: for nothing further, for a later epoch, because one is kept.
    for (all, shared) in [
        (vec![None, None], [false, false, false]),
        (vec![one.clone(), None], [false, true, true]),
        (vec![one.clone(), two.clone()], [false, true, true]),
        (vec![two.clone(), None, two.clone()], [true, true, true]),
        (vec![two, None], [false, true, false]),
        (vec![on_volume(0), on_volume(0)], [false, false, false]),
        (vec![one, on_volume(1)], [false, true, true]),
    ] {
        let is_kept = |of: &Fingerprint| *of == plain;
        let fresh = [false, true].map(|later| is_shared(&all, later, |_| false));
        assert_eq!([fresh[0], fresh[1], is_shared(&all, false, is_kept)], shared, "{all:?}");
    }
}

/// A stopped server in `folder`, with data in two places and one elsewhere.
fn server(folder: &Path) -> Server {
    let data = ["base/1", "base/2"].map(|name| folder.join(name));
    let paths = Paths { data: data.into(), journal: vec![folder.join("wal"), "/elsewhere/wal".into()], logs: vec![] };
    let address = tithe_machine::launch::Address::Nowhere;
    Server { address, process: None, paths, remote: None, folder: folder.to_owned() }
}

#[test]
fn the_folder_of_a_server_has_data_where_sets_and_paths_are() {
    let server = server(Path::new("/s"));
    let set = Fingerprint { paths: vec!["node/data".to_owned(), "log".to_owned()], ..fingerprint("plain", b"k") };
    let DataFolder { folder, data } = set.data_folder(&server);
    let names: Vec<_> = data.iter().filter_map(|name| name.to_str()).collect();
    assert_eq!((folder, names), (Path::new("/s"), vec!["base", "log", "node", "wal"]));
}

#[test]
fn places_are_exchanged_among_all_arms_and_never_with_a_volume() {
    let context = CheckContext::new("places");
    let servers = ["one", "two"].map(|name| server(&context.folder.join(name)));
    let plain = fingerprint("plain", b"k");
    let on_volume = Fingerprint { on_volume: Some((1, 0)), ..plain.clone() };
    let has_data = || ["one", "two"].map(|name| context.folder.join(name).join("data/rows").exists());
    let exchanged = |second: &Fingerprint, places: &[usize]| {
        DataSets::exchange(&[(&plain, &servers[0]), (second, &servers[1])], places).expect("the disk has room");
        has_data()
    };
    assert_eq!(exchanged(&on_volume, &[1, 0]), [true, false]);
    assert_eq!(exchanged(&plain, &[1, 0, 2]), [true, false], "one of three arms has no data here");
    assert_eq!(exchanged(&plain, &[1, 0]), [false, true]);
}

#[test]
fn all_epochs_have_one_password_and_key() {
    let mut data_sets = DataSets::new(Path::new("/nowhere"));
    let fresh = || Credentials::without_files(Secret::random(16), Secret::random(32));
    let (mut first, mut second) = (fresh(), fresh());
    data_sets.share_secrets(&mut first);
    data_sets.share_secrets(&mut second);
    assert!(first.password == second.password && first.key == second.key);
}
