stallhound::allowance! { below = "store::", allow(file), reason = "an empty part" }
stallhound::allowance! { below = "store::Lease<T>::take", allow(file), reason = "brackets" }
stallhound::allowance! { below = ["store::a", "my-store::b"], warn(file), reason = "a hyphen" }
stallhound::allowance! { below = "*", allow(all), reason = "everything" }
stallhound::allowance! { below = "store::take", allow(files), reason = "no such category" }
stallhound::allowance! { below = "store::take", allow(file), reason = "" }
stallhound::allowance! { below = "store::take", allow(file), only(task), reason = "no such place" }
stallhound::allowance! { below = "store::take", allow(file) }
stallhound::allowance! { below = "store::take", reason = "no category" }
stallhound::allowance! {}
stallhound::allowance! { below = [], allow(file), reason = "nothing" }
stallhound::allowance! { below = store::take, allow(file), reason = "no quotes" }
stallhound::allowance! { below = "store::take", allow(file), warn(sync), reason = "both" }
stallhound::allowance! { path = "store::take", allow(file), reason = "no such part" }
stallhound::allowance! { below = "store::take", allow(), reason = "no word" }
stallhound::allowance! { below = "store::take", allow(file), reason = " \t" }

fn main() {}
