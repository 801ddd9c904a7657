//! The table of the ten security features and the products, from the pages in `docs/inspect`.

use std::fs;

use expect_test::expect_file;

use super::root;

/// The products in the order of the table; another page in the folder fails the test.
const PRODUCTS: [&str; 9] =
    ["postgres", "mariadb", "mysql", "redis", "memcached", "etcd", "cassandra", "opensearch", "mongodb"];

const HEAD: &str = "# Ten security features, as `tithe inspect` sees them

What `inspect` reports of the *good* server of each product in the tests; its page has the details. MongoDB's is a stand-in.

";

/// The rows of a page: what each is about, and the state of the good server.
fn rows(page: &str) -> Vec<(String, String)> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows =
        page.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|line| (cells(line)[1].clone(), cells(line)[2].clone())).collect()
}

#[test]
fn the_table_of_features_is_made_of_the_pages_of_all_products() {
    let folder = root().join("docs/inspect");
    let pages = fs::read_dir(&folder).expect("pages").flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = pages.map(|name| name.to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "README.md");
    let mut known = PRODUCTS.map(|product| format!("{product}.md"));
    known.sort();
    names.sort();
    assert_eq!(names, known);
    let pages = PRODUCTS.map(|product| fs::read_to_string(folder.join(format!("{product}.md"))).expect("a page"));
    let titles = pages.each_ref().map(|page| {
        let title = page.lines().next().and_then(|line| line.strip_prefix("# A good and a bad ")).expect("a title");
        title.trim_start_matches("Apache ").to_owned()
    });
    let links: Vec<String> =
        titles.iter().zip(PRODUCTS).map(|(title, product)| format!("[{title}]({product}.md)")).collect();
    let mut text = format!("{HEAD}||{}|\n|---{}|\n", links.join("|"), "|---".repeat(PRODUCTS.len()));
    let columns = pages.each_ref().map(|page| rows(page));
    for (row, (title, _)) in columns[0].iter().enumerate() {
        assert!(columns.iter().all(|column| column[row].0 == *title), "{title}");
        let states: Vec<&str> = columns.iter().map(|column| column[row].1.as_str()).collect();
        text += &format!("|{title}|{}|\n", states.join("|"));
    }
    assert_eq!(columns[0].len(), 10);
    expect_file![folder.join("README.md")].assert_eq(&text);
}
