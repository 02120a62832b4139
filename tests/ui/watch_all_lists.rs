stallhound::watch_all!(threshold = "5ms", threshold = "6ms");
stallhound::watch_all!(level = warn, require = true, level = deny);
stallhound::watch_all!(threshold = "5ms" require = true);
stallhound::watch_all!(threshold = "5ms"; require = true);
stallhound::watch_all!(,);

fn main() {}
