//! Calls on file names, directories, file locks, pipes, and starts of processes.

use super::*;
use std::os::fd::AsRawFd;

type Stat = libc::stat;

fn seen(s: &Stat) -> String {
    format!("{:o} size {} links {}", s.st_mode, s.st_size, s.st_nlink)
}

fn blank() -> Stat {
    unsafe { std::mem::zeroed() }
}

/// A directory of the scenario's own, gone at the end.
struct Dir(CString, c_int);

impl Dir {
    fn new(name: &str) -> Dir {
        let path = temp(name);
        let _ = std::fs::remove_dir_all(path.to_str().unwrap());
        std::fs::create_dir(path.to_str().unwrap()).unwrap();
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let fd = unsafe { libc::open(path.as_ptr(), flags) };
        assert!(fd >= 0);
        Dir(path, fd)
    }

    fn at(&self, name: &str) -> CString {
        CString::new(format!("{}/{name}", self.0.to_str().unwrap())).unwrap()
    }

    fn with(&self, name: &str, bytes: &[u8]) -> CString {
        let path = self.at(name);
        std::fs::write(path.to_str().unwrap(), bytes).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        unsafe { libc::close(self.1) };
        let _ = std::fs::remove_dir_all(self.0.to_str().unwrap());
    }
}

pub fn stats(lib: Lib, log: &mut String) {
    let d = Dir::new("stats");
    let f = d.with("file", b"12345");
    unsafe { libc::symlink(c"file".as_ptr(), d.at("link").as_ptr()) };
    let long = CString::new(format!("/{}", "x".repeat(300))).unwrap();
    let fd = unsafe { libc::open(f.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    let pipe = pipe(0);
    macro_rules! by_path {
        ($($name:literal)*) => { $(
            for path in [&f, &d.at("link"), &d.0, &d.at("none"), &d.at("file/below"), &long, &c"".to_owned(), &c"/proc/self/stat".to_owned()] {
                let mut s = blank();
                let rc = call!(log, lib, $name, (*const i8, *mut Stat) -> c_int, path.as_ptr(), &mut s);
                note!(log, "{rc} {:o} {}", s.st_mode, s.st_nlink);
            }
        )* };
    }
    by_path!("stat" "stat64" "lstat" "lstat64");
    macro_rules! by_version {
        ($($name:literal)*) => { $(
            for (version, path) in [(1, &f), (0, &f), (1, &d.at("none")), (9, &f)] {
                let mut s = blank();
                let rc = call!(log, lib, $name, (c_int, *const i8, *mut Stat) -> c_int, version, path.as_ptr(), &mut s);
                note!(log, "{rc} {}", seen(&s));
            }
        )* };
    }
    by_version!("__xstat" "__xstat64" "__lxstat" "__lxstat64");
    macro_rules! by_number {
        ($($name:literal)*) => { $(
            for fd in [fd, d.1, pipe.0, -1, 900] {
                let mut s = blank();
                let rc = call!(log, lib, $name, (c_int, *mut Stat) -> c_int, fd, &mut s);
                note!(log, "{rc} {:o}", s.st_mode);
            }
        )* };
    }
    by_number!("fstat" "fstat64");
    macro_rules! by_version_and_number {
        ($($name:literal)*) => { $(
            for (version, fd) in [(1, fd), (1, -1), (9, fd)] {
                let mut s = blank();
                let rc = call!(log, lib, $name, (c_int, c_int, *mut Stat) -> c_int, version, fd, &mut s);
                note!(log, "{rc} {}", seen(&s));
            }
        )* };
    }
    by_version_and_number!("__fxstat" "__fxstat64");
    let empty = libc::AT_EMPTY_PATH;
    for (at, name, flags) in [
        (d.1, c"file", 0),
        (d.1, c"link", libc::AT_SYMLINK_NOFOLLOW),
        (fd, c"", empty),
        (pipe.0, c"", empty),
        (fd, c"", 0),
        (-1, c"file", 0),
        (d.1, c"none", 0),
        (fd, c"file", 0),
        (d.1, c"file", 1 << 30),
    ] {
        macro_rules! below {
            ($($call:literal)*) => { $(
                let mut s = blank();
                let rc = call!(log, lib, $call, (c_int, *const i8, *mut Stat, c_int) -> c_int, at, name.as_ptr(), &mut s, flags);
                note!(log, "{rc} {}", seen(&s));
            )* };
        }
        below!("fstatat" "fstatat64");
        macro_rules! old_below {
            ($($call:literal)*) => { $(
                let mut s = blank();
                let rc = call!(log, lib, $call, (c_int, c_int, *const i8, *mut Stat, c_int) -> c_int, 1, at, name.as_ptr(), &mut s, flags);
                note!(log, "{rc} {}", seen(&s));
            )* };
        }
        old_below!("__fxstatat" "__fxstatat64");
        let mut x: libc::statx = unsafe { std::mem::zeroed() };
        let rc = call!(log, lib, "statx", (c_int, *const i8, c_int, c_uint, *mut libc::statx) -> c_int,
            at, name.as_ptr(), flags, libc::STATX_BASIC_STATS, &mut x);
        note!(log, "{rc} {:o} size {} links {}", x.stx_mode, x.stx_size, x.stx_nlink);
    }
    // As std asks whether there is a `statx` at all.
    let rc = call!(log, lib, "statx", (c_int, *const i8, c_int, c_uint, *mut libc::statx) -> c_int,
        0, null(), 0, libc::STATX_BASIC_STATS, null_mut());
    note!(log, "{rc}");
    let rc = call!(log, lib, "stat", (*const i8, *mut Stat) -> c_int, null(), &mut blank());
    note!(log, "{rc}");
    let rc = call!(log, lib, "fstat", (c_int, *mut Stat) -> c_int, fd, null_mut());
    note!(log, "{rc}");
    for path in [&f, &d.at("none"), &d.at("file/below")] {
        for mode in [libc::F_OK, libc::R_OK, libc::X_OK, 99] {
            macro_rules! accesses {
                ($($call:literal)*) => { $(
                    let rc = call!(log, lib, $call, (*const i8, c_int) -> c_int, path.as_ptr(), mode);
                    note!(log, "{rc}");
                )* };
            }
            accesses!("access" "eaccess" "euidaccess");
        }
    }
    for (at, name, flags) in
        [(d.1, c"file", 0), (d.1, c"none", 0), (-1, c"file", 0), (d.1, c"file", libc::AT_EACCESS)]
    {
        let rc = call!(log, lib, "faccessat", (c_int, *const i8, c_int, c_int) -> c_int, at, name.as_ptr(), libc::R_OK, flags);
        note!(log, "{rc}");
    }
    macro_rules! systems {
        ($(($path:literal, $number:literal, $t:ty))*) => { $(
            for path in [&f, &d.at("none")] {
                let mut s: $t = unsafe { std::mem::zeroed() };
                let rc = call!(log, lib, $path, (*const i8, *mut $t) -> c_int, path.as_ptr(), &mut s);
                note!(log, "{rc} {} {}", s.f_bsize, s.f_blocks);
            }
            for fd in [fd, -1] {
                let mut s: $t = unsafe { std::mem::zeroed() };
                let rc = call!(log, lib, $number, (c_int, *mut $t) -> c_int, fd, &mut s);
                note!(log, "{rc} {} {}", s.f_bsize, s.f_blocks);
            }
        )* };
    }
    systems!(("statfs", "fstatfs", libc::statfs)("statfs64", "fstatfs64", libc::statfs64)(
        "statvfs",
        "fstatvfs",
        libc::statvfs
    )("statvfs64", "fstatvfs64", libc::statvfs64));
    unsafe { libc::close(fd) };
}

/// What a directory holds, in order.
fn list(d: &Dir) -> Vec<(String, u64, bool)> {
    use std::os::unix::fs::MetadataExt;
    let mut all: Vec<_> = std::fs::read_dir(d.0.to_str().unwrap())
        .unwrap()
        .map(|e| {
            let e = e.unwrap();
            let m = e.metadata().unwrap();
            (e.file_name().into_string().unwrap(), m.nlink(), m.is_symlink())
        })
        .collect();
    all.sort();
    all
}

pub fn changes(lib: Lib, log: &mut String) {
    let d = Dir::new("changes");
    let f = d.with("file", b"12345");
    let at = |name: &str| d.at(name);
    macro_rules! one {
        ($name:literal, $path:expr $(, $t:ty = $arg:expr)*) => {{
            let rc = call!(log, lib, $name, (*const i8 $(, $t)*) -> c_int, $path.as_ptr() $(, $arg)*);
            note!(log, "{rc} {:?}", list(&d));
        }};
    }
    macro_rules! below {
        ($name:literal, $path:expr $(, $t:ty = $arg:expr)*) => {{
            for at in [d.1, -1] {
                let rc = call!(log, lib, $name, (c_int, *const i8 $(, $t)*) -> c_int, at, $path.as_ptr() $(, $arg)*);
                note!(log, "{rc} {:?}", list(&d));
            }
        }};
    }
    macro_rules! two {
        ($name:literal, $one:expr, $other:expr) => {{
            let rc = call!(log, lib, $name, (*const i8, *const i8) -> c_int, $one.as_ptr(), $other.as_ptr());
            note!(log, "{rc} {:?}", list(&d));
        }};
    }
    one!("mkdir", at("a"), libc::mode_t = 0o755);
    one!("mkdir", at("a"), libc::mode_t = 0o755);
    one!("mkdir", at("none/a"), libc::mode_t = 0o755);
    below!("mkdirat", c"b", libc::mode_t = 0o755);
    two!("link", f, at("hard"));
    two!("link", at("none"), at("hard2"));
    let rc = call!(log, lib, "linkat", (c_int, *const i8, c_int, *const i8, c_int) -> c_int, d.1, c"file".as_ptr(), d.1, c"hard3".as_ptr(), 0);
    note!(log, "{rc} {:?}", list(&d));
    two!("symlink", c"file", at("soft"));
    two!("symlink", c"file", at("soft"));
    for at in [d.1, -1] {
        let rc = call!(log, lib, "symlinkat", (*const i8, c_int, *const i8) -> c_int, c"file".as_ptr(), at, c"soft2".as_ptr());
        note!(log, "{rc} {:?}", list(&d));
    }
    for name in ["soft", "file", "none"] {
        let mut buf = [0u8; 8];
        let b: *mut i8 = buf.as_mut_ptr().cast();
        let rc = call!(log, lib, "readlink", (*const i8, *mut i8, size_t) -> ssize_t, at(name).as_ptr(), b, 3);
        note!(log, "{rc} {buf:?}");
        let rc = call!(log, lib, "__readlink_chk", (*const i8, *mut i8, size_t, size_t) -> ssize_t, at(name).as_ptr(), b, 8, 8);
        note!(log, "{rc} {buf:?}");
        let name = CString::new(name).unwrap();
        let rc = call!(log, lib, "readlinkat", (c_int, *const i8, *mut i8, size_t) -> ssize_t, d.1, name.as_ptr(), b, 8);
        note!(log, "{rc} {buf:?}");
        let rc = call!(log, lib, "__readlinkat_chk", (c_int, *const i8, *mut i8, size_t, size_t) -> ssize_t, d.1, name.as_ptr(), b, 8, 8);
        note!(log, "{rc} {buf:?}");
    }
    for name in ["soft", "none", "a/../file", "file/.."] {
        let path = at(name);
        let mut room = [0i8; libc::PATH_MAX as usize];
        let text = |p: *const i8| match p.is_null() {
            true => "null".to_owned(),
            false => unsafe { CStr::from_ptr(p) }.to_str().unwrap().to_owned(),
        };
        let p = call!(log, lib, "realpath", (*const i8, *mut i8) -> *mut i8, path.as_ptr(), room.as_mut_ptr());
        note!(log, "{} own {}", text(p), p == room.as_mut_ptr());
        // Only the newer of glibc's two versions allocates.
        let p =
            call!(log, lib, "realpath", (*const i8, *mut i8) -> *mut i8, path.as_ptr(), null_mut());
        note!(log, "{}", text(p));
        unsafe { libc::free(p.cast()) };
        let p = call!(log, lib, "__realpath_chk", (*const i8, *mut i8, size_t) -> *mut i8, path.as_ptr(), room.as_mut_ptr(), room.len());
        note!(log, "{} own {}", text(p), p == room.as_mut_ptr());
        let p = call!(log, lib, "canonicalize_file_name", (*const i8) -> *mut i8, path.as_ptr());
        note!(log, "{}", text(p));
        unsafe { libc::free(p.cast()) };
    }
    let p = call!(log, lib, "realpath", (*const i8, *mut i8) -> *mut i8, null(), null_mut());
    note!(log, "{}", p.is_null());
    two!("rename", at("hard"), at("moved"));
    two!("rename", at("none"), at("moved"));
    let rc = call!(log, lib, "renameat", (c_int, *const i8, c_int, *const i8) -> c_int, d.1, c"moved".as_ptr(), d.1, c"again".as_ptr());
    note!(log, "{rc} {:?}", list(&d));
    for flags in [libc::RENAME_NOREPLACE, 0, 99] {
        let rc = call!(log, lib, "renameat2", (c_int, *const i8, c_int, *const i8, c_uint) -> c_int, d.1, c"again".as_ptr(), d.1, c"file".as_ptr(), flags);
        note!(log, "{rc} {:?}", list(&d));
    }
    two!("rename", at("hard3"), at("a/inside"));
    one!("rmdir", at("a"));
    one!("unlink", at("a/inside"));
    one!("rmdir", at("a"));
    one!("unlink", at("b"));
    one!("remove", at("b"));
    one!("remove", at("soft"));
    one!("remove", at("soft"));
    below!("unlinkat", c"soft2", c_int = 0);
    below!("unlinkat", c"soft2", c_int = 99);
    let f = d.with("file", b"12345");
    let fd = unsafe { libc::open(f.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    macro_rules! state {
        ($rc:expr) => {{
            let rc = $rc;
            let mut s = blank();
            unsafe { libc::fstat(fd, &mut s) };
            note!(log, "{rc} {} {} {} {}", seen(&s), s.st_blocks, s.st_atime, s.st_mtime);
        }};
    }
    let past = [libc::timespec { tv_sec: 1_000, tv_nsec: 0 }; 2];
    let earlier = [libc::timeval { tv_sec: 2_000, tv_usec: 0 }; 2];
    state!(call!(log, lib, "futimens", (c_int, *const libc::timespec) -> c_int, fd, past.as_ptr()));
    macro_rules! lengths {
        ($(($path:literal, $number:literal))*) => { $(
            for len in [3, 9, -1] {
                call!(log, lib, $path, (*const i8, i64) -> c_int, f.as_ptr(), len);
                unsafe { libc::futimens(fd, past.as_ptr()) };
                state!(0);
                call!(log, lib, $number, (c_int, i64) -> c_int, fd, len + 1);
                unsafe { libc::futimens(fd, past.as_ptr()) };
                state!(0);
            }
            let rc = call!(log, lib, $path, (*const i8, i64) -> c_int, at("none").as_ptr(), 1);
            note!(log, "{rc}");
            let rc = call!(log, lib, $number, (c_int, i64) -> c_int, -1, 1);
            note!(log, "{rc}");
        )* };
    }
    lengths!(("truncate", "ftruncate")("truncate64", "ftruncate64"));
    macro_rules! room {
        ($($name:literal)*) => { $(
            let rc = call!(log, lib, $name, (c_int, c_int, i64, i64) -> c_int, fd, libc::FALLOC_FL_KEEP_SIZE, 0, 4096);
            note!(log, "{rc}");
            let rc = call!(log, lib, $name, (c_int, c_int, i64, i64) -> c_int, fd, 0, 0, -1);
            note!(log, "{rc}");
        )* };
    }
    room!("fallocate" "fallocate64");
    macro_rules! posix_room {
        ($($name:literal)*) => { $(
            for (fd, len) in [(fd, 4096), (fd, 0), (-1, 5)] {
                let rc = call!(log, lib, $name, (c_int, i64, i64) -> c_int, fd, 0, len);
                note!(log, "{rc}");
            }
        )* };
    }
    posix_room!("posix_fallocate" "posix_fallocate64");
    state!(
        call!(log, lib, "utimensat", (c_int, *const i8, *const libc::timespec, c_int) -> c_int, d.1, c"file".as_ptr(), past.as_ptr(), 0)
    );
    state!(
        call!(log, lib, "utimensat", (c_int, *const i8, *const libc::timespec, c_int) -> c_int, d.1, c"none".as_ptr(), past.as_ptr(), 0)
    );
    state!(
        call!(log, lib, "utimensat", (c_int, *const i8, *const libc::timespec, c_int) -> c_int, fd, null(), past.as_ptr(), 0)
    );
    state!(
        call!(log, lib, "utimes", (*const i8, *const libc::timeval) -> c_int, f.as_ptr(), earlier.as_ptr())
    );
    let old = libc::utimbuf { actime: 3_000, modtime: 4_000 };
    state!(call!(log, lib, "utime", (*const i8, *const libc::utimbuf) -> c_int, f.as_ptr(), &old));
    state!(call!(log, lib, "chmod", (*const i8, libc::mode_t) -> c_int, f.as_ptr(), 0o600));
    state!(call!(log, lib, "fchmod", (c_int, libc::mode_t) -> c_int, fd, 0o640));
    for flags in [0, libc::AT_SYMLINK_NOFOLLOW, 1 << 30] {
        state!(
            call!(log, lib, "fchmodat", (c_int, *const i8, libc::mode_t, c_int) -> c_int, d.1, c"file".as_ptr(), 0o644, flags)
        );
    }
    let same = c_uint::MAX; // leave as it is
    state!(call!(log, lib, "chown", (*const i8, c_uint, c_uint) -> c_int, f.as_ptr(), same, same));
    state!(
        call!(log, lib, "lchown", (*const i8, c_uint, c_uint) -> c_int, at("none").as_ptr(), same, same)
    );
    state!(call!(log, lib, "fchown", (c_int, c_uint, c_uint) -> c_int, fd, same, same));
    state!(
        call!(log, lib, "fchownat", (c_int, *const i8, c_uint, c_uint, c_int) -> c_int, d.1, c"file".as_ptr(), same, same, 0)
    );
    unsafe { libc::close(fd) };
}

pub fn directories(lib: Lib, log: &mut String) {
    let d = Dir::new("directories");
    for name in ["one", "two", "three"] {
        d.with(name, b"x");
    }
    let name = |entry: *mut c_void| match entry.is_null() {
        true => None,
        false => Some(
            unsafe { CStr::from_ptr((*entry.cast::<libc::dirent64>()).d_name.as_ptr()) }
                .to_str()
                .unwrap()
                .to_owned(),
        ),
    };
    let open = |log: &mut String| {
        let p = call!(log, lib, "opendir", (*const i8) -> *mut libc::DIR, d.0.as_ptr());
        note!(log, "{}", p.is_null());
        p
    };
    macro_rules! entries {
        ($($call:literal)*) => { $(
            let stream = open(log);
            let mut names = Vec::new();
            loop {
                let entry = call!(log, lib, $call, (*mut libc::DIR) -> *mut c_void, stream);
                let Some(n) = name(entry) else { break };
                names.push(n);
            }
            names.sort();
            note!(log, "{names:?}");
            let rc = call!(log, lib, "closedir", (*mut libc::DIR) -> c_int, stream);
            note!(log, "{rc}");
        )* };
    }
    entries!("readdir" "readdir64");
    macro_rules! entries_into {
        ($($call:literal)*) => { $(
            let stream = open(log);
            let mut names = Vec::new();
            loop {
                let mut entry: libc::dirent64 = unsafe { std::mem::zeroed() };
                let mut found = null_mut();
                let rc = call!(log, lib, $call, (*mut libc::DIR, *mut libc::dirent64, *mut *mut c_void) -> c_int, stream, &mut entry, &mut found);
                note!(log, "{rc}");
                let Some(n) = name(found) else { break };
                names.push(n);
            }
            names.sort();
            note!(log, "{names:?}");
            unsafe { libc::closedir(stream) };
        )* };
    }
    entries_into!("readdir_r" "readdir64_r");
    for path in [c"/nonexistent/x", c"/etc/passwd"] {
        let p = call!(log, lib, "opendir", (*const i8) -> *mut libc::DIR, path.as_ptr());
        note!(log, "{}", p.is_null());
    }
    let mut buf = [0u8; 4096];
    let fd = unsafe { libc::dup(d.1) };
    let rc = call!(log, lib, "getdents64", (c_int, *mut c_void, size_t) -> ssize_t, fd, buf.as_mut_ptr().cast(), buf.len());
    note!(log, "{rc}");
    let rc = call!(log, lib, "getdents64", (c_int, *mut c_void, size_t) -> ssize_t, -1, buf.as_mut_ptr().cast(), buf.len());
    note!(log, "{rc}");
    let p = call!(log, lib, "fdopendir", (c_int) -> *mut libc::DIR, fd);
    note!(log, "{}", p.is_null());
    unsafe { libc::closedir(p) };
    let pipe = pipe(0);
    for fd in [-1, pipe.0] {
        let p = call!(log, lib, "fdopendir", (c_int) -> *mut libc::DIR, fd);
        note!(log, "{}", p.is_null());
    }
}

fn lock_of(kind: c_int) -> libc::flock {
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock
}

pub fn file_locks(lib: Lib, log: &mut String) {
    let d = Dir::new("locks");
    let path = d.with("file", b"12345");
    let open = || unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    let (one, other) = (open(), open());
    macro_rules! flock {
        ($fd:expr, $operation:expr) => {{
            let rc = call!(log, lib, "flock", (c_int, c_int) -> c_int, $fd, $operation);
            note!(log, "{rc}");
        }};
    }
    flock!(one, libc::LOCK_SH);
    flock!(other, libc::LOCK_SH);
    flock!(other, libc::LOCK_EX | libc::LOCK_NB);
    flock!(other, libc::LOCK_UN);
    flock!(one, libc::LOCK_EX);
    flock!(other, libc::LOCK_SH | libc::LOCK_NB);
    flock!(one, 0);
    flock!(-1, libc::LOCK_EX);
    // Somebody lets go of it a little later.
    late(
        log,
        || unsafe { assert_eq!(libc::flock(one, libc::LOCK_UN), 0) },
        |log| {
            let rc = call!(log, lib, "flock", (c_int, c_int) -> c_int, other, libc::LOCK_EX);
            note!(log, "{rc}");
        },
    );
    flock!(other, libc::LOCK_UN);
    macro_rules! by_fcntl {
        ($($name:literal)*) => { $(
            let mut lock = lock_of(libc::F_WRLCK);
            for command in [libc::F_OFD_SETLKW, libc::F_OFD_SETLK] {
                let rc = call!(log, lib, $name, (c_int, c_int, *mut libc::flock) -> c_int, one, command, &mut lock);
                note!(log, "{rc}");
                let rc = call!(log, lib, $name, (c_int, c_int, *mut libc::flock) -> c_int, other, libc::F_OFD_SETLK, &mut lock);
                note!(log, "{rc}");
            }
            late(
                log,
                || unsafe { assert_eq!(libc::fcntl(one, libc::F_OFD_SETLK, &mut lock_of(libc::F_UNLCK)), 0) },
                |log| {
                    let mut lock = lock_of(libc::F_WRLCK);
                    let rc = call!(log, lib, $name, (c_int, c_int, *mut libc::flock) -> c_int, other, libc::F_OFD_SETLKW, &mut lock);
                    note!(log, "{rc}");
                },
            );
            let mut lock = lock_of(libc::F_UNLCK);
            let rc = call!(log, lib, $name, (c_int, c_int, *mut libc::flock) -> c_int, other, libc::F_OFD_SETLKW, &mut lock);
            note!(log, "{rc}");
            for (fd, command) in [(one, libc::F_SETLKW), (-1, libc::F_SETLKW), (-1, libc::F_OFD_SETLKW)] {
                let mut lock = lock_of(libc::F_WRLCK);
                let rc = call!(log, lib, $name, (c_int, c_int, *mut libc::flock) -> c_int, fd, command, &mut lock);
                note!(log, "{rc}");
            }
            assert_eq!(unsafe { libc::fcntl(one, libc::F_SETLK, &mut lock_of(libc::F_UNLCK)) }, 0);
            let mut lock = lock_of(99);
            let rc = call!(log, lib, $name, (c_int, c_int, *mut libc::flock) -> c_int, one, libc::F_SETLKW, &mut lock);
            note!(log, "{rc}");
            let rc = call!(log, lib, $name, (c_int, c_int, *mut libc::flock) -> c_int, one, libc::F_SETLKW, null_mut());
            note!(log, "{rc}");
        )* };
    }
    by_fcntl!("fcntl" "fcntl64");
    macro_rules! by_lockf {
        ($($name:literal)*) => { $(
            for command in [libc::F_LOCK, libc::F_TLOCK, libc::F_TEST, libc::F_ULOCK, 77] {
                let rc = call!(log, lib, $name, (c_int, c_int, i64) -> c_int, one, command, 0);
                note!(log, "{rc}");
            }
            let rc = call!(log, lib, $name, (c_int, c_int, i64) -> c_int, -1, libc::F_LOCK, 0);
            note!(log, "{rc}");
        )* };
    }
    by_lockf!("lockf" "lockf64");
    unsafe {
        libc::close(one);
        libc::close(other);
    }
}

/// Runs `wait` while another thread does `f` some milliseconds later; it must not come back before.
fn late(log: &mut String, f: impl FnOnce() + Send, wait: impl FnOnce(&mut String)) {
    let done = AtomicBool::new(false);
    let flag = &done;
    std::thread::scope(|scope| {
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            begun.recv().unwrap();
            std::thread::sleep(Duration::from_millis(15));
            flag.store(true, Ordering::SeqCst);
            f();
        });
        begin.send(()).unwrap();
        wait(log);
        note!(log, "waited {}", flag.load(Ordering::SeqCst));
    });
}

pub fn pipes(lib: Lib, log: &mut String) {
    let mut ends = [-1; 2];
    let rc = call!(log, lib, "pipe", (*mut c_int) -> c_int, ends.as_mut_ptr());
    note!(log, "{rc} {}", ends[0] >= 0 && ends[1] > ends[0]);
    let p = Pipe(ends[0], ends[1]);
    for flags in [libc::O_CLOEXEC, libc::O_NONBLOCK, 1 << 30] {
        let mut ends = [-1; 2];
        let rc = call!(log, lib, "pipe2", (*mut c_int, c_int) -> c_int, ends.as_mut_ptr(), flags);
        let mode =
            unsafe { (libc::fcntl(ends[0], libc::F_GETFL), libc::fcntl(ends[0], libc::F_GETFD)) };
        note!(log, "{rc} {mode:?}");
        drop(Pipe(ends[0], ends[1]));
    }
    let mut buf = [0u8; 8];
    let b: *mut c_void = buf.as_mut_ptr().cast();
    late(
        log,
        || feed(p.1, b"late"),
        |log| {
            let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, p.0, b, 8);
            note!(log, "{rc}");
        },
    );
    note!(log, "{buf:?}");
    let part = libc::iovec { iov_base: b, iov_len: 8 };
    late(
        log,
        || feed(p.1, b"again"),
        |log| {
            let rc = call!(log, lib, "readv", (c_int, *const libc::iovec, c_int) -> ssize_t, p.0, &part, 1);
            note!(log, "{rc}");
        },
    );
    // Full, until somebody reads.
    let size = unsafe { libc::fcntl(p.1, libc::F_SETPIPE_SZ, 4096) };
    feed(p.1, &vec![7; size as usize]);
    let reader = p.0;
    let drain = move || {
        let mut all = vec![0u8; size as usize];
        let n = unsafe { libc::read(reader, all.as_mut_ptr().cast(), all.len()) };
        assert_eq!(n, size as isize);
    };
    late(log, drain, |log| {
        let rc = call!(log, lib, "write", (c_int, *const c_void, size_t) -> ssize_t, p.1, c"after".as_ptr().cast(), 5);
        note!(log, "{rc}");
    });
    let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, p.0, b, 8);
    note!(log, "{rc} {buf:?}");
    // From pipe to pipe.
    let q = pipe(0);
    feed(p.1, b"12345678");
    let nonblock = libc::SPLICE_F_NONBLOCK;
    let rc = call!(log, lib, "tee", (c_int, c_int, size_t, c_uint) -> ssize_t, p.0, q.1, 4, 0);
    note!(log, "{rc}");
    let rc = call!(log, lib, "splice", (c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> ssize_t, p.0, null_mut(), q.1, null_mut(), 100, nonblock);
    note!(log, "{rc}");
    let rc = call!(log, lib, "splice", (c_int, *mut i64, c_int, *mut i64, size_t, c_uint) -> ssize_t, p.0, null_mut(), q.1, null_mut(), 100, nonblock);
    note!(log, "{rc}");
    let rc =
        call!(log, lib, "tee", (c_int, c_int, size_t, c_uint) -> ssize_t, p.0, q.1, 4, nonblock);
    note!(log, "{rc}");
    let rc = call!(log, lib, "tee", (c_int, c_int, size_t, c_uint) -> ssize_t, p.0, p.1, 4, 0);
    note!(log, "{rc}");
    let text = libc::iovec { iov_base: c"pages".as_ptr() as *mut c_void, iov_len: 5 };
    let rc = call!(log, lib, "vmsplice", (c_int, *const libc::iovec, size_t, c_uint) -> ssize_t, q.1, &text, 1, 0);
    note!(log, "{rc}");
    let rc = call!(log, lib, "vmsplice", (c_int, *const libc::iovec, size_t, c_uint) -> ssize_t, -1, &text, 1, nonblock);
    note!(log, "{rc}");
    let mut all = [0u8; 32];
    let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, q.0, all.as_mut_ptr().cast(), 32);
    note!(log, "{rc} {all:?}");
    // Nobody at the other end.
    let q = pipe(0);
    unsafe { libc::close(q.1) };
    let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, q.0, b, 8);
    note!(log, "{rc}");
    let q = pipe(0);
    unsafe { libc::close(q.0) };
    let rc = call!(log, lib, "write", (c_int, *const c_void, size_t) -> ssize_t, q.1, c"x".as_ptr().cast(), 1);
    note!(log, "{rc}");
}

pub fn events(lib: Lib, log: &mut String) {
    let fd = call!(log, lib, "eventfd", (c_uint, c_int) -> c_int, 3, libc::EFD_CLOEXEC);
    let mut count = 0u64;
    let at: *mut c_void = (&mut count as *mut u64).cast();
    let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, fd, at, 8);
    note!(log, "{rc} {count}");
    late(
        log,
        || feed(fd, &7u64.to_ne_bytes()),
        |log| {
            let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, fd, at, 8);
            note!(log, "{rc}");
        },
    );
    note!(log, "{count}");
    let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, fd, at, 4);
    note!(log, "{rc}");
    unsafe { libc::close(fd) };
    let rc = call!(log, lib, "eventfd", (c_uint, c_int) -> c_int, 3, 1 << 30);
    note!(log, "{rc}");
    let fd = call!(log, lib, "timerfd_create", (c_int, c_int) -> c_int, libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC);
    let soon = libc::itimerspec { it_interval: ts(0), it_value: ts(5 * MS) };
    assert_eq!(unsafe { libc::timerfd_settime(fd, 0, &soon, null_mut()) }, 0);
    let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, fd, at, 8);
    note!(log, "{rc} {count}");
    unsafe { libc::close(fd) };
    let rc = call!(log, lib, "timerfd_create", (c_int, c_int) -> c_int, 99, 0);
    note!(log, "{rc}");
    let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe { libc::sigaddset(&mut mask, libc::SIGUSR2) };
    let fd = call!(log, lib, "signalfd", (c_int, *const libc::sigset_t, c_int) -> c_int, -1, &mask, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC);
    let rc = call!(log, lib, "read", (c_int, *mut c_void, size_t) -> ssize_t, fd, at, 8);
    note!(log, "{rc}");
    let rc =
        call!(log, lib, "signalfd", (c_int, *const libc::sigset_t, c_int) -> c_int, 900, &mask, 0);
    note!(log, "{rc}");
    unsafe { libc::close(fd) };
    let fd = call!(log, lib, "inotify_init1", (c_int) -> c_int, libc::IN_CLOEXEC);
    note!(log, "{}", fd >= 0);
    unsafe { libc::close(fd) };
    let rc = call!(log, lib, "inotify_init1", (c_int) -> c_int, 1 << 30);
    note!(log, "{rc}");
    // The other end of a FIFO comes a little later.
    let d = Dir::new("fifo");
    let path = d.at("fifo");
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    let other = path.clone();
    late(
        log,
        move || {
            let file = std::fs::File::options().write(true).open(other.to_str().unwrap()).unwrap();
            assert!(file.as_raw_fd() >= 0);
        },
        |log| {
            let fd = call!(log, lib, "open", (*const i8, c_int, libc::mode_t) -> c_int, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0);
            note!(log, "{}", fd >= 0);
            unsafe { libc::close(fd) };
        },
    );
}

pub fn starts(lib: Lib, log: &mut String) {
    let args = [
        c"sh".as_ptr() as *mut i8,
        c"-c".as_ptr() as *mut i8,
        c"exit 7".as_ptr() as *mut i8,
        null_mut(),
    ];
    let env: [*mut i8; 2] = [c"PATH=/bin:/usr/bin".as_ptr() as *mut i8, null_mut()];
    let ended = |pid: c_int| {
        let mut status = 0;
        let rc = unsafe { libc::waitpid(pid, &mut status, 0) };
        format!("own child {} status {status:x}", rc == pid)
    };
    macro_rules! start {
        ($name:literal, $program:expr) => {{
            let mut pid = -5;
            let rc = call!(log, lib, $name, (*mut c_int, *const i8, *const c_void, *const c_void, *const *mut i8, *const *mut i8) -> c_int,
                &mut pid, $program.as_ptr(), null(), null(), args.as_ptr(), env.as_ptr());
            match rc {
                0 => note!(log, "0 {}", ended(pid)),
                rc => note!(log, "{rc}"),
            }
        }};
    }
    start!("posix_spawn", c"/bin/sh");
    start!("posix_spawn", c"sh");
    start!("posix_spawn", c"/nonexistent/program");
    start!("posix_spawnp", c"sh");
    start!("posix_spawnp", c"no-such-program-anywhere");
    // Only the older of glibc's two versions runs a text without a first line that says by whom.
    let d = Dir::new("starts");
    let script = d.with("script", b"exit 3\n");
    unsafe { libc::chmod(script.as_ptr(), 0o700) };
    start!("posix_spawn", script);
    let pid = call!(log, lib, "fork", () -> libc::pid_t);
    if pid == 0 {
        unsafe { libc::syscall(libc::SYS_exit_group, 9) };
    }
    note!(log, "{} {}", pid > 0, ended(pid));
}
