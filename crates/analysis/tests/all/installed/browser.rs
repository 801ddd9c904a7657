//! The page in a real browser: headless Chromium lays it out, and a script that only the test adds examines it.
//!
//! Pages are in frames, because they may be narrower than a browser's smallest window. All pages for the same reader
//! share one browser, because its start takes longer than the examination.

use std::{collections::BTreeMap, path::PathBuf, process::Command, sync::OnceLock};

use serde::Deserialize;
use tithe_analysis::{
    Analysis, Outcome,
    assess::assess,
    report::{
        html::{self, PageData},
        number,
    },
};

use crate::synthetic::Invented;

const STYLE: &str = include_str!("../../../src/report/html/style.css");

/// Reports its findings to the window, under the name of its frame. The window's title is read from the dumped
/// document.
const LOOK: &str = r##"<script>
const all = (what, where = document) => [...where.querySelectorAll(what)];
const style = (it) => getComputedStyle(it);
const wide = all('body *').filter((it) => !it.closest('.wide, pre, .defs, .sr')
  && it.getBoundingClientRect().right > document.documentElement.clientWidth + 1);

// Contrast as in WCAG 2.2, 1.4.3: the colour of every text against what is painted behind it.
const channels = (colour) => {
  const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
  return [r, g, b, a];
};
const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
const light = ([r, g, b]) => {
  const linear = (it) => (it /= 255) <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4;
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
};
const upwards = (it) => it ? [it, ...upwards(it.parentElement)] : [];
const behind = (it) => upwards(it).reverse()
  .reduce((below, each) => over(channels(style(each).backgroundColor), below), [255, 255, 255, 1]);
const faint = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.data.trim(), it = walker.currentNode.parentElement;
  if (!text || it.closest('script, style, title, .sr')) continue;
  const own = channels(it.closest('svg') ? style(it).fill : style(it).color);
  own[3] *= upwards(it).reduce((all, each) => all * Number(style(each).opacity), 1);
  const ground = behind(it.closest('svg') ? it.closest('svg').parentElement : it);
  const [low, high] = [light(over(own, ground)), light(ground)].sort((a, b) => a - b);
  const ratio = (high + 0.05) / (low + 0.05), size = parseFloat(style(it).fontSize);
  const needed = size >= 24 || (size >= 18.66 && Number(style(it).fontWeight) >= 700) ? 3 : 4.5;
  if (ratio < needed) faint.push(`${ratio.toFixed(2)} ${text.slice(0, 30)}`);
}

// Every point of the chart of costs stands where the axis above it puts the figure beside it.
const cost = (name) => Math.log(name.startsWith('×') ? Number(name.slice(1))
  : 1 + Number(name.replace('−', '-').replace('%', '')) / 100);
const misplaced = [];
for (const row of all('.forest tbody tr:not(.cell)')) {
  all('td', row).forEach((place, column) => {
    const point = place.querySelector('.point'), figure = place.querySelector('b');
    if (!point || !figure) return;
    const ticks = all('text', all('.forest thead svg')[column]).map((it) => [Number(it.getAttribute('x')), cost(it.textContent)]);
    const [[x0, y0], [x1, y1]] = [ticks[0], ticks[ticks.length - 1]];
    const expected = x0 + (cost(figure.textContent) - y0) / (y1 - y0) * (x1 - x0);
    if (Math.abs(expected - Number(point.getAttribute('cx'))) > 2) misplaced.push(figure.textContent);
  });
}

// The first screen: points stand where the axis puts their figures, and no text lies over another.
const overlapping = [];
for (const plot of all('.plot')) {
  const ticks = all('thead text', plot).map((it) => [parseFloat(it.getAttribute('x')), it.textContent === '0' ? 0 : cost(it.textContent)]);
  const [[x0, y0], [x1, y1]] = [ticks[0], ticks[ticks.length - 1]];
  for (const row of all('tbody tr', plot)) {
    const point = row.querySelector('.point'), figure = row.querySelector('b');
    const bound = figure && figure.textContent.startsWith('at most');
    if (point && figure && !bound) {
      const expected = x0 + (cost(figure.textContent.replace('(', '')) - y0) / (y1 - y0) * (x1 - x0);
      if (Math.abs(expected - parseFloat(point.getAttribute('cx'))) > 2) misplaced.push(`first screen: ${figure.textContent}`);
    }
    const boxes = all('th, td', row).map((it) => {
      const range = document.createRange();
      range.selectNodeContents(it);
      return it.className === 'dots' ? it.getBoundingClientRect() : range.getBoundingClientRect();
    });
    boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
      if (a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 1 && b.bottom > a.top + 1) {
        overlapping.push(row.textContent.slice(0, 40));
      }
    }));
  }
}

// No word of an arm's name continues on the next line.
const broken = [];
for (const it of all('.plot tbody th')) {
  const texts = document.createTreeWalker(it, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) broken.push(word[0]);
    }
  }
}

// Texts of drawings keep apart, and are large enough to be read.
const tiny = [];
for (const svg of all('svg').filter((it) => !it.parentElement.closest('svg'))) {
  const texts = all('text', svg).filter((it) => it.textContent.trim());
  for (const it of texts) {
    const size = parseFloat(style(it).fontSize) * (it.getScreenCTM()?.d ?? 1);
    if (size < 10.9) tiny.push(`${size.toFixed(1)} px: ${it.textContent}`);
  }
  const boxes = texts.map((it) => it.getBoundingClientRect());
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
    if (a.right > b.left + 1 && b.right > a.left + 1 && a.bottom > b.top + 3 && b.bottom > a.top + 3) {
      overlapping.push(`${texts[i].textContent} over ${texts[i + 1 + j].textContent}`);
    }
  }));
}
const drawn = all('.plot .dots svg').map((it) => it.getBoundingClientRect().width);

// What the Tab key must reach, and whether it is seen to be there.
const unreachable = all('a[href], summary, .wide, pre').filter((it) => {
  if (it.closest('details:not([open])') && it.tagName !== 'SUMMARY') return false;
  it.focus();
  return it.tabIndex < 0 || document.activeElement !== it || style(it).outlineStyle === 'none';
});
parent.found(window.name, {
  width: innerWidth,
  paper: light(behind(document.body)),
  overflow: wide.map((it) => it.tagName + '.' + it.className).slice(0, 3),
  sideways: Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
  faint: faint.slice(0, 5),
  misplaced,
  overlapping: overlapping.slice(0, 3),
  broken: broken.slice(0, 3),
  tiny: tiny.slice(0, 3),
  plots: all('.plot').map((it) => Math.round(it.getBoundingClientRect().top + scrollY)),
  drawing: Math.round(Math.min(...drawn, 10000)),
  points: all('.plot svg .point').length,
  rows: all('.plot tbody tr').map((row) => row.textContent),
  panels: all('.panel svg path').length,
  scrolled: all('.wide').filter((it) => !it.closest('details') && it.scrollWidth > it.clientWidth + 1)
    .map((it) => it.getAttribute('aria-label') ?? 'unnamed'),
  without_table: all('.panels').filter((it) => !it.parentElement.querySelector('table.data')).length,
  unnamed: all('svg').filter((it) => !it.parentElement.closest('svg') && !it.getAttribute('aria-label') && it.getAttribute('aria-hidden') !== 'true').length,
  unreachable: unreachable.map((it) => it.outerHTML.slice(0, 60)),
  loaded: performance.getEntriesByType('resource').filter((it) => !it.name.startsWith('data:')).length,
});
</script>"##;

/// The findings of [`LOOK`], and the browser's console messages.
#[derive(Debug, Deserialize)]
struct Seen {
    /// Width of the page, CSS pixels.
    width: u32,
    /// Relative luminance of the page's background, 0 to 1.
    paper: f64,
    /// Elements that are cut off on the right.
    overflow: Vec<String>,
    /// How far the whole page can be scrolled sideways, CSS pixels: tables and charts scroll in their own frames.
    sideways: usize,
    /// Texts with too little contrast.
    faint: Vec<String>,
    /// Figures whose point is in the wrong place.
    misplaced: Vec<String>,
    /// Rows of the first screen and texts of drawings with overlapping texts.
    overlapping: Vec<String>,
    /// Words of arms' names on the first screen that are split over two lines.
    broken: Vec<String>,
    /// Texts of drawings that are smaller than 11 CSS pixels.
    tiny: Vec<String>,
    /// Start of the first screen's plots, CSS pixels from the top.
    plots: Vec<u32>,
    /// Width of the narrowest drawing of the first screen, CSS pixels.
    drawing: u32,
    points: usize,
    /// The text of every row of the first screen.
    rows: Vec<String>,
    panels: usize,
    /// Frames with hidden content that are not folded.
    scrolled: Vec<String>,
    without_table: usize,
    unnamed: usize,
    unreachable: Vec<String>,
    loaded: usize,
    #[serde(skip)]
    console: Vec<String>,
}

impl Seen {
    /// Everything that is wrong with the page, as texts.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (what, found) in [
            ("cut off", &self.overflow),
            ("faint", &self.faint),
            ("misplaced", &self.misplaced),
            ("over each other", &self.overlapping),
            ("broken", &self.broken),
            ("too small", &self.tiny),
            ("not reached by the keyboard", &self.unreachable),
            ("in the console", &self.console),
        ] {
            faults.extend(found.iter().map(|found| format!("{what}: {found}")));
        }
        for (what, number) in [
            ("charts without a table", self.without_table),
            ("unnamed drawings", self.unnamed),
            ("loaded", self.loaded),
            ("wider than its window, pixels", self.sideways),
        ] {
            if number > 0 {
                faults.push(format!("{what}: {number}"));
            }
        }
        faults
    }
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut names = std::env::split_paths(&folders)
        .flat_map(|folder| ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name)));
    let found = names.find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "chromium is not installed");
        eprintln!("SKIPPED: no chromium on this machine, so the page was not checked in a browser");
    }
    found
}

/// Collects the reports of the frames; the title holds them once all have reported.
const WINDOW: &str = "<script>
const seen = {};
function found(name, what) {
  seen[name] = what;
  if (Object.keys(seen).length === FRAMES) document.title = 'seen ' + JSON.stringify(seen);
}
</script>";

/// The findings for each page at its width, for a reader whose system is dark or light. Console messages are attributed
/// to all pages.
fn look(chromium: &PathBuf, pages: &[(&str, u32)], dark: bool) -> Vec<Seen> {
    static LOOKS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = LOOKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("frame.html");
    let frame = |(number, (page, width)): (usize, &(&str, u32))| {
        // The examination is a script, which the page's policy would block.
        let looking = format!("{}; script-src 'unsafe-inline'", html::POLICY);
        let inner = page
            .replace(html::POLICY, &looking)
            .replace("</body>", &format!("{LOOK}</body>"))
            .replace('&', "&amp;")
            .replace('"', "&quot;");
        format!(
            "<iframe name=\"{number}\" width=\"{width}\" height=\"900\" style=\"border:0\" srcdoc=\"{inner}\"></iframe>"
        )
    };
    let frames: String = pages.iter().enumerate().map(frame).collect();
    let window = WINDOW.replace("FRAMES", &pages.len().to_string());
    let document = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\"><title>nothing</title>\
         {window}{frames}"
    );
    std::fs::write(&file, document).expect("the page");
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom"])
        .args(["--enable-logging=stderr", "--window-size=1400,1000"])
        .args(dark.then_some("--force-dark-mode"))
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("chromium starts");
    let _ = std::fs::remove_dir_all(&folder);
    let (document, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let title = document.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let json = title.and_then(|title| title.strip_prefix("seen ")).unwrap_or_else(|| panic!("no look: {log}"));
    let json = json.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let console: Vec<String> = log.lines().filter(|line| line.contains(":CONSOLE:")).map(str::to_owned).collect();
    let seen: BTreeMap<usize, Seen> = serde_json::from_str(&json).unwrap_or_else(|problem| panic!("{problem}: {json}"));
    assert_eq!(seen.len(), pages.len());
    seen.into_values().map(|seen| Seen { console: console.clone(), ..seen }).collect()
}

fn invented() -> (Analysis, String) {
    let records = Invented::default().records();
    let analysis = assess(&records);
    let page = html::render(&analysis, &PageData::of(&records, "title = \"a\""));
    (analysis, page)
}

/// Widths at which the invented page is checked.
const WIDTHS: [u32; 4] = [360, 390, 1280, 1600];

/// A table that is wider than any window, with words for screen readers only.
const WIDE_TABLE: &str = "<div class=\"wide\" tabindex=\"0\"><div style=\"width:3000px;text-align:right\"><span class=\"sr\">flag</span></div></div>";

/// The findings for the invented page at each of [`WIDTHS`], and finally for the same with [`WIDE_TABLE`], light and
/// dark. Tests share them.
fn looks(chromium: &PathBuf) -> &'static [(bool, Vec<Seen>); 2] {
    static LOOKS: OnceLock<[(bool, Vec<Seen>); 2]> = OnceLock::new();
    LOOKS.get_or_init(|| {
        let (_, page) = invented();
        let wide = page.replace("</main>", &format!("{WIDE_TABLE}</main>"));
        let pages: Vec<(&str, u32)> =
            WIDTHS.map(|width| (page.as_str(), width)).into_iter().chain([(wide.as_str(), 1280)]).collect();
        [false, true].map(|dark| (dark, look(chromium, &pages, dark)))
    })
}

#[test]
fn the_page_is_whole_on_every_screen_by_day_and_by_night() {
    let Some(chromium) = chromium() else { return };
    let (analysis, _) = invented();
    let looks =
        looks(&chromium).iter().flat_map(|(dark, seen)| WIDTHS.into_iter().zip(seen).map(move |it| (it, *dark)));
    for ((width, seen), dark) in looks {
        assert_eq!(seen.width, width);
        assert_eq!(seen.faults(), Vec::<String>::new(), "{width}, dark: {dark}");
        assert_eq!(seen.paper < 0.2, dark, "{}", seen.paper);
        assert_eq!(seen.paper > 0.8, !dark, "{}", seen.paper);
        assert!(seen.points > 0 && seen.panels > 0, "{seen:?}");
        for arm in analysis.cells.iter().flat_map(|cell| &cell.arms) {
            // If no cost was found, its bound is shown; the tests of the page cover that.
            let told = arm.estimates.iter().filter(|it| it.primary && it.verdict == Outcome::Costs);
            for estimate in told {
                let figure = number::cost(&estimate.effect, estimate.verdict);
                let row = |row: &&String| row.contains(&arm.name) && row.contains(&figure.lead);
                assert!(
                    seen.rows.iter().any(|it| row(&it)),
                    "{} of {} is not in {:?}",
                    figure.lead,
                    arm.name,
                    seen.rows
                );
            }
        }
    }
}

/// At every width the picture begins on the first screen, and is wide enough to be read.
#[test]
fn the_first_screen_answers_at_every_width() {
    let Some(chromium) = chromium() else { return };
    // On a narrower telephone the answer in words comes first.
    let at_least_390 = WIDTHS.into_iter().enumerate().skip(1);
    let seen = looks(&chromium)
        .iter()
        .flat_map(|(_, seen)| at_least_390.clone().map(move |(index, width)| (width, &seen[index])));
    for (width, seen) in seen {
        assert_eq!(seen.plots.len(), 1, "{width}: {seen:?}");
        assert!(seen.plots[0] < 450, "{width}: the plot begins at {}", seen.plots[0]);
        assert_eq!(seen.scrolled, Vec::<String>::new(), "{width}: cut off");
        assert!(seen.drawing >= 96, "{width}: a drawing is {} wide", seen.drawing);
    }
}

#[test]
fn a_long_name_of_an_arm_breaks_between_its_words() {
    let Some(chromium) = chromium() else { return };
    let mut records = Invented::default().records();
    records.plan.experiment.arms[1].name = "TLS+pgaudit:log=read,write+columns:share=0.5".to_owned();
    let page = html::render(&assess(&records), &PageData::of(&records, "title = \"a\""));
    for seen in look(&chromium, &WIDTHS.map(|width| (page.as_str(), width)), false) {
        assert_eq!(seen.faults(), Vec::<String>::new(), "{}", seen.width);
    }
}

#[test]
fn every_kind_of_page_is_whole() {
    let Some(chromium) = chromium() else { return };
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/golden");
    let files = std::fs::read_dir(golden).expect("golden pages").flatten().map(|entry| entry.path());
    let pages: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|it| it == "html")).collect();
    assert!(pages.len() > 4, "{pages:?}");
    // Golden files have a placeholder instead of the style sheet, which the layout needs.
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a page").replace("\nstyle.css\n", STYLE);
    let texts: Vec<String> = pages.iter().map(read).collect();
    for (widths, dark) in [([1280, 1600], false), ([390, 360], true)] {
        let looks: Vec<(&str, u32)> =
            texts.iter().flat_map(|text| widths.map(|width| (text.as_str(), width))).collect();
        for (number, seen) in look(&chromium, &looks, dark).into_iter().enumerate() {
            let path = pages[number / widths.len()].display();
            assert_eq!(seen.width, looks[number].1);
            assert_eq!(seen.faults(), Vec::<String>::new(), "{path}, {}, dark: {dark}", seen.width);
        }
    }
}

#[test]
fn what_is_wrong_with_a_page_is_seen() {
    let Some(chromium) = chromium() else { return };
    let (_, page) = invented();
    let bad = "<script>console.error('an error')</script><p style=\"color:#999;background:#aaa\">hardly read</p>\
               <svg role=\"img\"></svg><svg aria-hidden=\"true\" height=\"20\"><text x=\"20\" y=\"12\" style=\"font-size:9px\">a</text>\
               <text x=\"20\" y=\"12\">b</text></svg><p style=\"width:3000px\">too wide</p><a href=\"#x\" tabindex=\"-1\">skipped</a>";
    let moved = with_points_moved(&page);
    assert_ne!(moved, page);
    let spoilt = page.replace("</main>", &format!("{bad}</main>"));
    let seen = look(&chromium, &[(&spoilt, 1280), (&moved, 1280)], false);
    let faults = seen[0].faults().join("\n");
    for word in [
        "an error",
        "hardly read",
        "unnamed drawings: 1",
        "cut off: P",
        "skipped",
        "wider than",
        "9.0 px: a",
        "a over b",
    ] {
        assert!(faults.contains(word), "{word} is not in {faults}");
    }
    assert!(!seen[1].misplaced.is_empty());
}

/// A chart of costs may be wider than the window, and its figures have additional words for screen readers.
#[test]
fn what_a_wide_table_says_to_readers_of_screens_stays_in_its_frame() {
    let Some(chromium) = chromium() else { return };
    for (dark, seen) in looks(&chromium) {
        assert_eq!(seen[WIDTHS.len()].faults(), Vec::<String>::new(), "dark: {dark}");
    }
}

/// The page with every point of the chart of costs at the left edge.
fn with_points_moved(page: &str) -> String {
    let mut parts = page.split("<circle class=\"point\" cx=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |page, rest| {
        let end = rest.find('"').unwrap_or(0);
        format!("{page}<circle class=\"point\" cx=\"5{}", &rest[end..])
    })
}
