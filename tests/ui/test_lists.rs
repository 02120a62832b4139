#[stallhound::test(level = warn, level = deny)]
async fn ours_twice() {}

#[stallhound::test(flavor = "local", flavor = "local")]
async fn tokios_twice() {}

#[stallhound::test(threshold = "5ms" level = warn)]
async fn no_comma() {}

fn main() {}
