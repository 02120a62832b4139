//! The pages of the categories stand in one place, `src/report/pages.rs`; what is made of them must
//! be as they are. `STALLHOUND_WRITE_PAGES=1` writes it anew.

use stallhound::categories::page;
use stallhound::evidence::Category;
use stallhound::report::pages::{document, table};
use std::path::{Path, PathBuf};

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Holds a file against what it should be, or writes it.
fn hold(path: &str, wanted: &str) {
    let found = std::fs::read_to_string(at(path)).expect("a text");
    if found == wanted {
        return;
    }
    if std::env::var_os("STALLHOUND_WRITE_PAGES").is_some() {
        return std::fs::write(at(path), wanted).expect("written");
    }
    let differs = found.lines().zip(wanted.lines()).position(|(a, b)| a != b);
    panic!(
        "{path} is not what src/report/pages.rs says, from line {:?} on; \
         STALLHOUND_WRITE_PAGES=1 cargo test --test pages writes it anew",
        differs.map(|n| n + 1)
    );
}

#[test]
fn the_page_of_the_crate_docs_is_the_data() {
    hold("docs/categories.md", &document());
}

#[test]
fn the_table_of_the_readme_is_the_data() {
    let readme = std::fs::read_to_string(at("README.md")).expect("the README");
    let head = "| category | what | in a task |\n|---|---|---|\n";
    let begin = readme.find(head).expect("the README's table") + head.len();
    let end = begin + readme[begin..].find("\n\n").expect("its end") + 1;
    hold("README.md", &format!("{}{}{}", &readme[..begin], table(), &readme[end..]));
}

/// The pages state the limits in words; here they are held to the figures.
#[test]
fn the_pages_state_the_limits_in_force() {
    let limits = stallhound::config::Limits::default_for(false);
    for category in Category::ALL {
        let rule = limits.rule(category);
        let judged = page(category).judged;
        let says = |t: Option<stallhound::ids::Nanos>, word: &str| match t.map(|t| t.0 / 1_000_000)
        {
            None => !judged.contains(word),
            Some(0) => judged.contains(&format!("{word} always")),
            Some(ms) => judged.contains(word) && judged.contains(&format!("over {ms} ms")),
        };
        if category == Category::Busy {
            assert!(judged.contains("warn over half, deny over 50 ms"), "{judged}");
            continue;
        }
        assert!(says(rule.deny_over, "deny"), "{category:?}: {judged}, {rule:?}");
        assert!(says(rule.warn_over, "warn"), "{category:?}: {judged}, {rule:?}");
    }
}

/// The names of the table of calls stand on the pages as far as people write them.
#[test]
fn every_category_is_in_the_readme_and_on_the_page() {
    let readme = std::fs::read_to_string(at("README.md")).expect("the README");
    let pages = std::fs::read_to_string(at("docs/categories.md")).expect("the page");
    for category in Category::ALL {
        let word = category.word();
        assert!(readme.contains(&format!("| `{word}` |")), "{word}");
        assert!(pages.contains(&format!("\n## {word}\n")), "{word}");
    }
}
