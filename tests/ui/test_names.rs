#[stallhound::test(treshold = "5ms")]
async fn misspelled() {}

#[stallhound::test(flavor = "multi_thread", workers = 2)]
async fn known_to_neither() {}

#[stallhound::test(multi_thread)]
async fn bare_word() {}

#[stallhound::test("5ms")]
async fn no_name() {}

fn main() {}
