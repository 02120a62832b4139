#[stallhound::watch(treshold = "5ms")]
fn misspelled() {}

#[stallhound::watch(flavor = "local")]
async fn tokios() {}

#[stallhound::watch(threshold = 5)]
fn number() {}

#[stallhound::watch(level = "allow")]
fn level() {}

#[stallhound::watch(stallhound = 1)]
fn package() {}

#[stallhound::watch(off, off)]
fn off_twice() {}

fn main() {}
