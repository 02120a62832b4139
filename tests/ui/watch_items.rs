#[stallhound::watch]
struct NoFunction;

#[stallhound::watch]
const fn constant() {}

#[stallhound::watch]
#[stallhound::watch]
fn twice() {}

#[stallhound::watch]
#[stallhound::test]
async fn above_our_test() {}

#[stallhound::test]
#[stallhound::watch]
async fn below_our_test() {}

trait Tests {
    #[stallhound::watch]
    fn no_body();
}

fn main() {}
