use super::*;

fn holds(words: &str, key: &[u8]) -> Holds {
    Holds {
        workload: 0,
        paths: vec!["data".to_owned(), "log".to_owned()],
        words: words.to_owned(),
        keys: vec![Secret::new(key)],
    }
}

/// The folder of a server that has stopped, and one for another server.
struct Scene {
    folder: PathBuf,
    kept: Kept,
}

impl Scene {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tithe-test-kept-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for server in ["one", "two"] {
            fs::create_dir_all(folder.join(server)).expect("a folder");
        }
        fs::create_dir(folder.join("one/data")).expect("a folder");
        fs::write(folder.join("one/data/rows"), "1 2 3").expect("a file");
        Self { kept: Kept::new(&folder), folder }
    }

    fn keep(&mut self, holds: &Holds) -> Result<(), Fault> {
        self.kept.keep(holds, "plain", &self.folder.join("one"))
    }

    fn restore(&self, holds: &Holds, server: &str) -> Result<Option<String>, Fault> {
        self.kept.restore(holds, &self.folder.join(server))
    }

    /// The folders of kept sets, complete or not.
    fn sets(&self) -> Vec<PathBuf> {
        let sandbox = self.kept.sandbox.as_ref().expect("a sandbox").folder();
        let entries = fs::read_dir(sandbox).expect("the sandbox").flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.kept.sandbox = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_kept_set_is_copied_to_whoever_stores_the_same_and_to_nobody_else() {
    let mut scene = Scene::new("copied");
    let plain = holds("plain", b"k");
    assert_eq!(scene.restore(&plain, "two"), Ok(None));
    scene.keep(&plain).expect("kept");
    assert!(!scene.folder.join("one/data").exists(), "the server goes on with a copy like all others");
    for server in ["one", "two"] {
        let origin = scene.restore(&plain, server).expect("a copy").expect("what is kept");
        assert!(origin.starts_with("loaded by plain, copied ("), "{origin}");
        let rows = fs::read_to_string(scene.folder.join(server).join("data/rows")).expect("the copy");
        assert_eq!(rows, "1 2 3");
    }
    for other in [holds("checksums", b"k"), holds("plain", b"another")] {
        assert_eq!(scene.restore(&other, "two"), Ok(None));
    }
    scene.kept.let_go(|workload| workload == 1);
    assert_eq!(scene.restore(&plain, "two"), Ok(None));
    assert_eq!(scene.sets(), Vec::<PathBuf>::new());
}

#[test]
fn half_a_set_and_one_that_is_not_what_it_was_are_not_used() {
    let mut scene = Scene::new("half");
    let plain = holds("plain", b"k");
    // The marker cannot be written: a folder stands in its place.
    fs::create_dir(scene.folder.join("one").join(MARKER)).expect("a folder");
    let set = Holds { paths: vec!["data".to_owned(), MARKER.to_owned()], ..plain.clone() };
    assert!(matches!(scene.keep(&set), Err(Fault::Machine(_))));
    assert_eq!(scene.restore(&set, "two"), Ok(None));
    assert!(scene.sets().iter().all(|path| path.extension().is_some_and(|end| end == "part")), "{:?}", scene.sets());

    fs::create_dir(scene.folder.join("one/data")).expect("a folder");
    scene.keep(&plain).expect("kept");
    let whole = scene.sets().into_iter().find(|path| path.extension().is_none()).expect("a whole set");
    fs::write(whole.join(MARKER), "checksums").expect("another marker");
    let Err(Fault::Machine(told)) = scene.restore(&plain, "two") else { panic!("it is another set") };
    assert!(told.contains("does not hold what it should"), "{told}");
}

#[test]
fn all_epochs_have_one_password_and_key() {
    let mut kept = Kept::new(Path::new("/nowhere"));
    let fresh = || Materials::without_files(Secret::random(16), Secret::random(32));
    let (mut first, mut second) = (fresh(), fresh());
    kept.share_secrets(&mut first);
    kept.share_secrets(&mut second);
    assert!(first.password == second.password && first.key == second.key);
}
