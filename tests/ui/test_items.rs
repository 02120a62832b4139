#[stallhound::test]
fn not_async() {}

#[stallhound::test]
#[test]
async fn second_test_attribute() {}

#[stallhound::test]
#[tokio::test]
async fn also_tokios() {}

#[stallhound::test]
struct NoFunction;

fn main() {}
