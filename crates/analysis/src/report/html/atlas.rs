//! The atlas as one page that sorts and filters itself: without a script, so that the strictest policy allows it.
//!
//! Rows have one CSS order for each way of sorting, and one class for each product and protection. Radio buttons select
//! among them with `:has()`. Without styles, the page is the table in its first order.

use maud::{Markup, PreEscaped, html};

use super::{
    marks::{class, mark},
    markup::{at, breakable, concat, heads, is_empty, notes, section, wide},
    page,
};
use crate::{
    Outcome,
    atlas::{Atlas, AtlasProfile, AtlasRow, KINDS, Measured, Place},
    report::atlas::{
        CostSource, HOW, RUN_FACTS, RunLine, SOURCES, TITLE, added, answer, controls, cost, counted, hosts, over_hosts,
        product, rank, run_line, sources,
    },
};

/// Styles for this page only.
const STYLE: &str = "\
    .choose{display:flex;flex-wrap:wrap;gap:.1rem .9rem;margin:.3rem 0;padding:0;border:0;font-size:.88rem}\
    .choose legend{float:left;margin-right:.9rem;color:var(--soft)}\
    .choose label{display:inline-flex;gap:.3rem;align-items:center}\
    .atlas,.atlas thead{display:block}.atlas tbody{display:flex;flex-direction:column}\
    .atlas tr{display:grid;grid-template-columns:minmax(0,1.1fr) repeat(4,minmax(0,1fr));gap:0 1rem}\
    .atlas tbody tr{border-top:1px solid var(--line)}.atlas small{white-space:normal}\
    .atlas td,.atlas tbody th{padding:.4rem 0;overflow-wrap:anywhere}.atlas td>div+div{margin-top:.5rem}\
    .atlas td span,.atlas th span{display:block}.atlas .mark span{display:inline}\
    .atlas b{color:var(--tone,var(--ink))}.atlas .costs{--tone:var(--cost)}.atlas .nil{--tone:var(--nil)}\
    .atlas .gains{--tone:var(--gain)}.atlas .noisy{--tone:var(--noise)}\
    .part{margin-right:.7rem}.part i{display:inline-block;width:.7rem;height:.7rem;margin-right:.3rem}\
    .atlas td.empty{color:var(--soft);font-size:.84rem}\
    @media(max-width:56rem){.atlas thead{display:none}.atlas tbody tr{display:block;padding:.5rem 0}\
    .atlas td{display:grid;grid-template-columns:8.5rem minmax(0,1fr);gap:0 .6rem;padding:.2rem 0}\
    .atlas td::before{content:attr(data-of);color:var(--soft);font-size:.8rem}.atlas td>div{grid-column:2}}\
    @media print{.choose{display:none}}";

/// The page on `atlas`.
pub fn atlas(atlas: &Atlas) -> String {
    let products = distinct(atlas.rows.iter().map(|row| row.product.clone()));
    let protections = distinct(atlas.rows.iter().flat_map(|row| row.protections.clone()));
    let header = html! {
        h1 { (TITLE) }
        p.answer { (answer(atlas)) }
        p.legend { (hosts(atlas)) }
        @if let Some(controls) = controls(atlas) { p.legend { (controls) } }
    };
    let how = HOW.map(emphasised);
    let body = html! {
        style { (PreEscaped(STYLE)) (rules(products.len(), protections.len())) }
        (section("how", "How to read this", "", &notes(how)))
        (section("costs", "Costs", "", &html! {
            (choice("Order", "o", &orders()))
            (choice("Product", "p", &all_or(&products)))
            (choice("Protection", "k", &all_or(&protections)))
            (table(atlas, &products, &protections))
        }))
        @let sources = concat(sources(atlas).iter().map(source));
        @if !is_empty(&sources) { (section("sources", SOURCES, "", &sources)) }
        @if !atlas.unmeasured.is_empty() {
            (section("open", "Not yet measured", "", &notes(atlas.unmeasured.iter().map(|(product, protections)| {
                format!("{product}: {}", protections.join(", "))
            }))))
        }
        (section("runs", "Runs", "", &runs(atlas)))
    };
    page(TITLE, &header, &body, "tithe atlas page")
}

/// `line` with its words between asterisks emphasised.
fn emphasised(line: &str) -> Markup {
    html! {
        @for (index, words) in line.split('*').enumerate() { @if index % 2 == 1 { em { (words) } } @else { (words) } }
    }
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

fn orders() -> Vec<String> {
    let costs = KINDS.iter().map(|kind| format!("cost of {}", kind.title()));
    std::iter::once("product".to_owned()).chain(costs).collect()
}

fn all_or(names: &[String]) -> Vec<String> {
    std::iter::once("all".to_owned()).chain(names.iter().cloned()).collect()
}

/// Radio buttons, the first of them chosen.
fn choice(legend: &str, id: &str, names: &[String]) -> Markup {
    html! {
        fieldset.choose {
            legend { (legend) }
            @for (index, name) in names.iter().enumerate() {
                label { input type="radio" name=(id) id={ (id) (index) } checked[index == 0]; (name) } " "
            }
        }
    }
}

/// What the radio buttons do.
fn rules(products: usize, protections: usize) -> String {
    let rows = |button: &str| format!("body:has(#{button}:checked) .atlas tbody tr");
    let orders = (1..=KINDS.len()).map(|order| format!("{}{{order:var(--o{order})}}", rows(&format!("o{order}"))));
    let only = |id: &'static str, count: usize| {
        let buttons = (1..=count).map(move |index| format!("{id}{index}"));
        buttons.map(move |button| format!("{}:not(.{button}){{display:none}}", rows(&button)))
    };
    orders.chain(only("p", products)).chain(only("k", protections)).collect()
}

fn table(atlas: &Atlas, products: &[String], protections: &[String]) -> Markup {
    let ranks: Vec<Vec<usize>> = (0..KINDS.len()).map(|column| ranks(&atlas.rows, column)).collect();
    html! {
        table.atlas role="table" {
            thead role="rowgroup" {
                tr role="row" {
                    th scope="col" role="columnheader" { "protection" }
                    @for kind in KINDS { th scope="col" role="columnheader" { (kind.title()) } }
                }
            }
            tbody role="rowgroup" {
                @for (index, row) in atlas.rows.iter().enumerate() {
                    @let order = |(column, ranks): (usize, &Vec<usize>)| format!("--o{}:{};", column + 1, ranks[index]);
                    @let order: String = ranks.iter().enumerate().map(order).collect();
                    tr role="row" class=(classes(row, products, protections)) style=(order) {
                        th scope="row" role="rowheader" { (breakable(&row.arm)) span { small { (product(row)) } } }
                        @for (kind, it) in KINDS.iter().zip(&row.places) { (place(atlas, kind.title(), it)) }
                    }
                }
            }
        }
    }
}

/// The classes by which a row is selected.
fn classes(row: &AtlasRow, products: &[String], protections: &[String]) -> String {
    let product = products.iter().position(|it| *it == row.product).map(|index| format!("p{}", index + 1));
    let of_row = protections.iter().enumerate().filter(|(_, it)| row.protections.contains(it));
    product.into_iter().chain(of_row.map(|(index, _)| format!("k{}", index + 1))).collect::<Vec<_>>().join(" ")
}

/// The place of each row when the most expensive of a column is first.
fn ranks(rows: &[AtlasRow], column: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|one, other| rank(&rows[*other].places[column]).total_cmp(&rank(&rows[*one].places[column])));
    let mut ranks = vec![0; rows.len()];
    order.into_iter().enumerate().for_each(|(rank, row)| ranks[row] = rank);
    ranks
}

fn place(atlas: &Atlas, title: &str, place: &Place) -> Markup {
    match place {
        Place::Empty(why) => html! { td.empty role="cell" data-of=(title) { div { (why) } } },
        Place::Measured(all) => html! {
            td role="cell" data-of=(title) { @for measured in all { (one(atlas, measured)) } }
        },
    }
}

fn one(atlas: &Atlas, measured: &Measured) -> Markup {
    let (lead, rest) = cost(measured);
    let judged = measured.verdict().unwrap_or(Outcome::TooNoisy);
    let further = [added(measured), over_hosts(measured)];
    html! {
        div.(class(judged)) {
            @if !measured.name.is_empty() { span { small { (measured.name) } } }
            b { (lead) } @if !rest.is_empty() { " " small { (rest) } }
            @for words in further.iter().filter(|words| !words.is_empty()) { span { small { (words) } } }
            span {
                (mark("good", "✓", &counted(measured)))
                @for run in &measured.runs {
                    @let kept = &atlas.runs[*run];
                    " " small { a href={ "atlas/" (kept.file) } {
                        (kept.run.host()) " · " (kept.run.date()) " · " (kept.run.commit)
                    } }
                }
            }
        }
    }
}

/// One of the highest costs: its parts as a bar, and as a list.
fn source(source: &CostSource<'_>) -> Markup {
    html! {
        h3 { (source.name) ": " (source.cost) }
        @if let Some(profile) = source.profile { (bar(profile, &source.name)) }
        p.legend {
            (source.sum)
            @for (index, part) in source.parts.iter().enumerate() {
                " " span.part { i aria-hidden="true" style=(fill("background", index)) {} (part) }
            }
            @if !source.beside.is_empty() { " " (source.beside) }
        }
    }
}

/// The parts as shares of their sum, in the order and the colours of the list.
fn bar(profile: &AtlasProfile, name: &str) -> Markup {
    let added = profile.parts.iter().map(|(_, more)| more.estimate.max(0.0));
    let scale = BAR / profile.sum.estimate.max(added.clone().sum());
    let starts = added.clone().scan(0.0, |end, more| Some(std::mem::replace(end, *end + more)));
    html! {
        svg viewBox={ "0 0 " (BAR) " 12" } role="img" aria-label={ "Parts of the cost of " (name) ", listed below" } {
            rect width=(BAR) height="12" style="fill:var(--line)" {}
            @for (index, (from, more)) in starts.zip(added).enumerate() {
                rect x=(at(from * scale)) width=(at(more * scale)) height="12" style=(fill("fill", index)) {}
            }
        }
    }
}

/// The width of a bar in its own units.
const BAR: f64 = 600.0;

/// The colour of the part at `index`: one of the five of the style sheet.
fn fill(property: &str, index: usize) -> String {
    format!("{property}:var(--s{})", index % 5)
}

fn runs(atlas: &Atlas) -> Markup {
    let table = html! {
        table.data {
            (heads(["run", "experiment"].into_iter().chain(RUN_FACTS)))
            tbody {
                @for (index, kept) in atlas.runs.iter().enumerate() {
                    @let RunLine { number, path, experiment, facts } = run_line(index, kept);
                    tr {
                        th scope="row" { a href=(path) { (number) } }
                        td { (experiment) }
                        @for fact in facts { td { (fact) } }
                    }
                }
            }
        }
    };
    wide("runs", &table)
}

#[cfg(test)]
mod tests {
    use crate::{atlas::sample, report::html::POLICY};

    #[test]
    fn the_page_needs_nothing_else_and_nothing_foreign_is_markup() {
        let page = super::atlas(&sample::full());
        assert!(page.contains(POLICY) && !page.contains("<script") && !page.contains("src="));
        assert!(!page.contains("<6>") && page.contains("Redis &lt;6&gt;"));
        // Every radio button that selects something has its rule, and every row its classes.
        for id in ["o1", "o4", "p1", "k1"] {
            assert!(page.contains(&format!("id=\"{id}\"")) && page.contains(&format!("#{id}:checked")), "{id}");
        }
        assert_eq!(page.matches("--o4:").count(), page.matches("<tr role=\"row\" class=").count());
    }
}
