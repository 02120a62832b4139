stallhound::watch_all!(allow);
stallhound::watch_all!(allow = file);
stallhound::watch_all!(allow());
stallhound::watch_all!(allow(disc));
stallhound::watch_all!(allow(file, 5));
stallhound::watch_all!(allow(file sync));
stallhound::watch_all!(allow(file, sync, file));
stallhound::watch_all!(allow(file), deny(file));
stallhound::watch_all!(warn("disc"));
stallhound::watch_all!(warn(io-wait, io_wait));
stallhound::watch_all!(deny(sleep), deny(net));
stallhound::watch_all!(forbid(sleep));

fn main() {}
