stallhound::watch_all!(treshold = "5ms");
stallhound::watch_all!(threshold = "5ms", flavor = "multi_thread");
stallhound::watch_all!(stallhound = hound);
stallhound::watch_all!("5ms");
stallhound::watch_all!(Self = 1);

fn main() {}
