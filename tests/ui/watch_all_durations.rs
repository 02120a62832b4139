stallhound::watch_all!(threshold = "");
stallhound::watch_all!(threshold = "5");
stallhound::watch_all!(threshold = "5m");
stallhound::watch_all!(threshold = "5 ms");
stallhound::watch_all!(threshold = "-5ms");
stallhound::watch_all!(threshold = "five ms");
stallhound::watch_all!(threshold = "1.2.3s");
stallhound::watch_all!(threshold = "0.5ns");
stallhound::watch_all!(threshold = "0ms");
stallhound::watch_all!(busy_threshold = "99999999999s");

fn main() {}
