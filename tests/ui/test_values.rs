#[stallhound::test(threshold = 5)]
async fn number() {}

#[stallhound::test(busy_threshold = "5m")]
async fn unit() {}

#[stallhound::test(level = "allow")]
async fn level() {}

#[stallhound::test(require = 1)]
async fn require() {}

#[stallhound::test(stallhound = 1)]
async fn package() {}

#[stallhound::test(stallhound = "not a path")]
async fn package_in_quotes() {}

#[stallhound::test(crate = tokio)]
async fn runtime() {}

#[stallhound::test(flavor)]
async fn flavor() {}

fn main() {}
