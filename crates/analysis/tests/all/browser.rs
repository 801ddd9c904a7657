//! The page in a real browser: headless Chromium lays it out, and a script that only the test adds looks at it.

use std::{path::PathBuf, process::Command};

use tithe_analysis::{
    assess::assess,
    report::{
        html::{self, Story},
        number,
    },
};

use crate::synthetic::Invented;

/// Says what it finds in the page's title, which is then read from the dumped document.
const LOOK: &str = r#"<script>
const all = (what) => [...document.querySelectorAll(what)];
const wide = all('body *').filter((it) => !it.closest('.wide, pre, .defs, .sr')
  && it.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
const rgb = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
const luminance = (colour) => rgb(colour).slice(0, 3).map((part) => part / 255)
  .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
const paper = (it) => { for (; it; it = it.parentElement) {
  const colour = getComputedStyle(it).backgroundColor; if ((rgb(colour)[3] ?? 1) > 0) return colour; } };
const contrast = (it) => {
  const ink = it.closest('svg') ? getComputedStyle(it).fill : getComputedStyle(it).color;
  const both = [luminance(ink), luminance(paper(it))].sort((a, b) => b - a);
  return (both[0] + 0.05) / (both[1] + 0.05); };
const texts = all('body *').filter((it) => it.checkVisibility() && !it.closest('title, defs')
  && [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
document.title = 'seen ' + JSON.stringify({
  texts: texts.length,
  faint: texts.filter((it) => contrast(it) < 4.5).map((it) => it.tagName + '.' + it.className + ' ' + it.textContent).slice(0, 3),
  dark: luminance(getComputedStyle(document.body).backgroundColor) < 0.2,
  costs: all('.forest td b').map((it) => it.textContent),
  unlabelled: all('.wide').filter((it) => !it.getAttribute('aria-label')).length
    + all('th').filter((it) => !it.scope).length + (document.documentElement.lang === 'en' ? 0 : 1), + JSON.stringify({
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

/// What the look saw of `page`, in a window of `width`.
fn look(chromium: &PathBuf, page: &str, width: u32, dark: bool) -> serde_json::Value {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{}-{width}-{dark}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("report.html");
    std::fs::write(&file, page.replace("</body>", &format!("{LOOK}</body>"))).expect("the page");
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom"])
        .args(["--enable-logging=stderr", &format!("--window-size={width},900")])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("chromium starts");
    let _ = std::fs::remove_dir_all(&folder);
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("CONSOLE"), "the console has something to say: {errors}");
    let title = document.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let title = title.unwrap_or_else(|| panic!("no title: {errors}"));
    let seen = title.strip_prefix("seen ").unwrap_or_else(|| panic!("the look failed: {title}"));
    let json = seen.replace("&quot;", "\"").replace("&lt;", "<").replace("&amp;", "&");
    serde_json::from_str(&json).expect("what was seen")
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn the_page_can_be_read_on_a_desktop_and_a_phone_by_day_and_by_night() {
    let Some(chromium) = chromium() else {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "chromium is not installed");
        eprintln!("SKIPPED: no chromium on this machine, so the page was not looked at in a browser");
        return;
    };
    let records = Invented::default().records();
    let analysis = assess(&records);
    let page = html::render(&analysis, &Story::of(&records, "title = \"a\""));
    let primary = analysis.cells[0].arms[1].estimates.iter().find(|estimate| estimate.primary).expect("a primary cost");
    let figure = number::cost(&primary.effect, primary.verdict).lead;
    for (width, dark) in [(1280, false), (1280, true), (500, false), (500, true)] {
        let seen = look(&chromium, &page, width, dark);
        assert_eq!(seen["overflow"], serde_json::json!([]), "at {width}");
        assert_eq!(seen["faint"], serde_json::json!([]), "at {width}, dark: {dark}");
        assert_eq!(seen["dark"], dark, "{seen}");
        assert_eq!(seen["costs"][0], figure, "{seen}");
        assert!(seen["charts"].as_u64().is_some_and(|charts| charts > 0), "{seen}");
        assert!(seen["texts"].as_u64().is_some_and(|texts| texts > 50), "{seen}");
        assert_eq!(seen["panels"], true, "{seen}");
        for name in ["unnamed", "unlabelled", "unreachable", "loaded"] {
            assert_eq!(seen[name], 0, "{name} at {width}: {seen}");
        }
    }
}
