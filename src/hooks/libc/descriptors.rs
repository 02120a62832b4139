//! What each file descriptor is, one byte each, so that a read on a non-blocking socket costs a
//! load and not two system calls. Filled on demand, cleared by the calls that change it.
//!
//! Calls: `sys::descriptor`.

use crate::sys::descriptor::{self, Kind};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

const SIZE: usize = 1 << 16;
static CACHE: [AtomicU8; SIZE] = [const { AtomicU8::new(0) }; SIZE];
/// Some descriptor was duplicated: a change of mode may concern others too.
static SHARED: AtomicBool = AtomicBool::new(false);

const KIND: u8 = 0b0111;
const NONBLOCKING: u8 = 0b1000;
/// An epoll descriptor that a scheduler waits on, outside of any poll.
const DRIVER: u8 = 0b1_0000;
/// Reads and writes neither wait nor are timed.
const HARMLESS: u8 = 0b10_0000;

/// Kind and mode of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    pub kind: Kind,
    pub nonblocking: bool,
}

fn decode(byte: u8) -> Option<Mode> {
    let kind = match byte & KIND {
        1 => Kind::File,
        2 => Kind::Stream,
        3 => Kind::Datagram,
        4 => Kind::Other,
        5 => Kind::Pipe,
        6 => Kind::Standard,
        _ => return None,
    };
    Some(Mode { kind, nonblocking: byte & NONBLOCKING != 0 })
}

/// What is known without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Reads and writes neither wait nor are timed: most calls of an async program end here.
    Harmless,
    Mode(Mode),
    Nothing,
}

#[inline(always)]
pub fn known(fd: i32) -> Known {
    // Relaxed: a hint; what is reported is asked again.
    let byte = CACHE.get(fd as usize).map_or(0, |cell| cell.load(Ordering::Relaxed));
    if byte & HARMLESS != 0 {
        return Known::Harmless;
    }
    decode(byte).map_or(Known::Nothing, Known::Mode)
}

/// Asks the kernel and remembers. `None`: not open.
pub fn ask(fd: i32) -> Option<Mode> {
    let kind = descriptor::kind(fd)?;
    let nonblocking = kind != Kind::File && descriptor::nonblocking(fd);
    if let Some(cell) = CACHE.get(fd as usize) {
        let driver = cell.load(Ordering::Relaxed) & DRIVER;
        let mode = match (nonblocking, kind) {
            (true, _) => NONBLOCKING | HARMLESS,
            (false, Kind::Other) => HARMLESS,
            (false, _) => 0,
        };
        cell.store(kind as u8 | mode | driver, Ordering::Relaxed);
    }
    Some(Mode { kind, nonblocking })
}

/// The descriptor was closed, opened or changed.
#[inline(always)]
pub fn forget(fd: i32) {
    if let Some(cell) = CACHE.get(fd as usize) {
        if cell.load(Ordering::Relaxed) != 0 {
            cell.store(0, Ordering::Relaxed);
        }
    }
}

/// The mode of a descriptor's open file changed: with duplicates about, that of others too.
pub fn mode_changed(fd: i32) {
    if SHARED.load(Ordering::Relaxed) {
        forget_range(0, i32::MAX);
    } else {
        forget(fd);
    }
}

/// `fd` is a new name of another descriptor's open file.
pub fn duplicated(fd: i32) {
    SHARED.store(true, Ordering::Relaxed);
    if fd >= 0 {
        forget(fd);
    }
}

pub fn forget_range(first: i32, last: i32) {
    let first = first.max(0) as usize;
    let last = (last.max(0) as usize).min(SIZE - 1);
    for cell in CACHE.iter().take(last + 1).skip(first) {
        if cell.load(Ordering::Relaxed) & !DRIVER != 0 {
            cell.fetch_and(DRIVER, Ordering::Relaxed);
        }
    }
}

/// Whether a scheduler was seen waiting on this epoll descriptor.
#[inline(always)]
pub fn is_driver(fd: i32) -> bool {
    CACHE.get(fd as usize).is_some_and(|c| c.load(Ordering::Relaxed) & DRIVER != 0)
}

/// A scheduler waits on this epoll descriptor.
pub fn learn_driver(fd: i32) {
    if let Some(cell) = CACHE.get(fd as usize) {
        cell.fetch_or(DRIVER, Ordering::Relaxed);
    }
}

/// The descriptor is closed, or new: no scheduler waits on it.
#[inline(always)]
pub fn forget_driver(fd: i32) {
    if let Some(cell) = CACHE.get(fd as usize) {
        if cell.load(Ordering::Relaxed) & DRIVER != 0 {
            cell.fetch_and(!DRIVER, Ordering::Relaxed);
        }
    }
}
