stallhound::watch_all!(off);

#[stallhound::test(off = true)]
async fn has_no_value() {}

#[stallhound::test(off, threshold = "5ms")]
async fn before_a_setting() {}

#[stallhound::watch(allow(file), off)]
fn after_a_setting() {}

fn main() {}
