use super::*;

fn fingerprint(words: &str, key: &[u8]) -> Fingerprint {
    Fingerprint {
        workload: 0,
        paths: vec!["data".to_owned(), "log".to_owned()],
        words: words.to_owned(),
        keys: vec![Secret::new(key)],
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
        self.data_sets.restore(fingerprint, &self.folder.join(server))
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
    context.data_sets.let_go(|workload| workload == 1);
    assert_eq!(context.restore(&plain, "two"), Ok(None));
    assert_eq!(context.sets(), Vec::<PathBuf>::new());
}

#[test]
fn half_a_set_and_one_that_is_not_what_it_was_are_not_used() {
    let mut context = CheckContext::new("half");
    let plain = fingerprint("plain", b"k");
    // The marker cannot be written: a folder stands in its place.
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
fn all_epochs_have_one_password_and_key() {
    let mut data_sets = DataSets::new(Path::new("/nowhere"));
    let fresh = || Credentials::without_files(Secret::random(16), Secret::random(32));
    let (mut first, mut second) = (fresh(), fresh());
    data_sets.share_secrets(&mut first);
    data_sets.share_secrets(&mut second);
    assert!(first.password == second.password && first.key == second.key);
}
