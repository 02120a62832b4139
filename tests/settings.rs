//! What a line of settings says about itself and its crate.

#[path = "../macros/src/categories.rs"]
mod categories;

use std::time::Duration;

use stallhound::__private::{configure, settings, Settings};

static PLAIN: Settings = settings!();
static LINE: u32 = line!() - 1;

static ALL: Settings = configure! {
    (settings!()) threshold = "5ms", busy_threshold = "1.5s", level = warn, require = true
};

static LISTS: Settings = configure! {
    (settings!()) warn(sync, "io-wait"), allow(file), deny(sleep, net),
};

static DENY: Settings = configure! { (settings!()) level = "deny" };

#[test]
fn names_the_users_crate_and_line() {
    assert_eq!(PLAIN.crate_name, "settings");
    assert_eq!(PLAIN.manifest_dir, env!("CARGO_MANIFEST_DIR"));
    assert!(PLAIN.test_target);
    assert_eq!(PLAIN.debug_assertions, cfg!(debug_assertions));
    assert_eq!(PLAIN.file, file!());
    assert_eq!(PLAIN.line, LINE);
}

#[test]
fn says_nothing_that_was_not_written() {
    assert_eq!(PLAIN.threshold, None);
    assert_eq!(PLAIN.busy_threshold, None);
    assert_eq!(PLAIN.warn, None);
    assert!(!PLAIN.require);
    assert!(!PLAIN.should_panic && !PLAIN.off);
    assert!(PLAIN.allowed.is_empty() && PLAIN.noted.is_empty() && PLAIN.denied.is_empty());
}

#[test]
fn takes_lists_of_categories() {
    assert_eq!(LISTS.allowed, ["file"]);
    assert_eq!(LISTS.noted, ["sync", "io-wait"]);
    assert_eq!(LISTS.denied, ["sleep", "net"]);
}

#[test]
fn the_macros_know_every_category() {
    let all = stallhound::Category::ALL.map(|category| category.word());
    assert_eq!(categories::CATEGORIES, all);
}

#[test]
fn takes_every_argument() {
    assert_eq!(ALL.threshold, Some(Duration::from_millis(5)));
    assert_eq!(ALL.busy_threshold, Some(Duration::from_millis(1500)));
    assert_eq!(ALL.warn, Some(true));
    assert!(ALL.require);
    assert_eq!(DENY.warn, Some(false));
}
