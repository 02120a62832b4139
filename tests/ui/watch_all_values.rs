stallhound::watch_all!(threshold);
stallhound::watch_all!(threshold = );
stallhound::watch_all!(threshold = , require = true);
stallhound::watch_all!(threshold = 5);
stallhound::watch_all!(threshold = 5ms);
stallhound::watch_all!(busy_threshold = std::time::Duration::from_millis(5));
stallhound::watch_all!(level = 3);
stallhound::watch_all!(level = allow);
stallhound::watch_all!(level = "forbid");
stallhound::watch_all!(require = "true");
stallhound::watch_all!(require);

fn main() {}
