//! The page in a real browser: headless Chromium lays it out, and a script that only the test adds looks at it.

use std::{path::PathBuf, process::Command};

use tithe_analysis::{
    assess::assess,
    report::html::{self, Story},
};

use crate::synthetic::Invented;

/// Says what it finds in the page's title, which is then read from the dumped document.
const LOOK: &str = r#"<script>
const all = (what) => [...document.querySelectorAll(what)];
const wide = all('body *').filter((it) => !it.closest('.wide, pre, .defs, .sr')
  && it.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
document.title = 'seen ' + JSON.stringify({
  overflow: wide.map((it) => it.tagName + '.' + it.className).slice(0, 3),
  charts: all('.forest svg .point, .forest svg .fog').length,
  panels: all('.panel svg path').length > 0,
  unnamed: all('svg[role=img]').filter((it) => !it.getAttribute('aria-label')).length,
  unreachable: all('.wide, pre').filter((it) => it.tabIndex < 0).length,
  loaded: performance.getEntriesByType('resource').filter((it) => !it.name.startsWith('data:')).length,
});
</script>"#;

fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = std::env::split_paths(&folders)
        .flat_map(|folder| ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name)));
    names.into_iter().find(|path| path.exists())
}

/// The page's title after the look, in a window of `width`.
fn look(chromium: &PathBuf, width: u32) -> String {
    let records = Invented::default().records();
    let page = html::render(&assess(&records), &Story::of(&records, "title = \"a\""));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{}-{width}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("report.html");
    std::fs::write(&file, page.replace("</body>", &format!("{LOOK}</body>"))).expect("the page");
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("chromium starts");
    let _ = std::fs::remove_dir_all(&folder);
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    let title = document.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    title.unwrap_or_else(|| panic!("no title: {}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn the_page_fits_a_desktop_and_a_phone_and_loads_nothing() {
    let Some(chromium) = chromium() else {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "chromium is not installed");
        eprintln!("SKIPPED: no chromium on this machine, so the page was not looked at in a browser");
        return;
    };
    for width in [1280, 500] {
        let seen = look(&chromium, width);
        let json =
            seen.strip_prefix("seen ").unwrap_or_else(|| panic!("the look failed: {seen}")).replace("&quot;", "\"");
        let seen: serde_json::Value = serde_json::from_str(&json).expect("what was seen");
        assert_eq!(seen["overflow"], serde_json::json!([]), "at {width}");
        assert!(seen["charts"].as_u64().is_some_and(|charts| charts > 0), "{seen}");
        assert_eq!(seen["panels"], true, "{seen}");
        for name in ["unnamed", "unreachable", "loaded"] {
            assert_eq!(seen[name], 0, "{name} at {width}: {seen}");
        }
    }
}
