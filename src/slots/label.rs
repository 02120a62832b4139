//! Names of tests, kept in a static arena: threads inherit their creator's label as one number.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A test's name, by its place in the arena. 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Label(pub u32);

impl Label {
    pub const NONE: Label = Label(0);
}

const ARENA: usize = 1 << 20;
/// Names of tests are module paths; anything longer loses its beginning.
const LONGEST: usize = 1 << 10;

struct Arena(UnsafeCell<[u8; ARENA]>);
// SAFETY: a byte is written once, by the thread that reserved its range with `USED`, before the
// range's `Label` is handed to anybody.
unsafe impl Sync for Arena {}

static NAMES: Arena = Arena(UnsafeCell::new([0; ARENA]));
/// First free byte; byte 0 is never used, so that label 0 means none.
static USED: AtomicUsize = AtomicUsize::new(1);
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Copies a name into the arena. `Label::NONE` once the arena is full.
pub fn intern(name: &str) -> Label {
    let mut bytes = name.as_bytes();
    if bytes.len() > LONGEST {
        let mut from = bytes.len() - LONGEST;
        while from < bytes.len() && !name.is_char_boundary(from) {
            from += 1;
        }
        bytes = &bytes[from..];
    }
    let need = bytes.len() + 2;
    // Relaxed: the number is all that is shared here.
    let at = USED.fetch_add(need, Ordering::Relaxed);
    if at + need > ARENA {
        return Label::NONE;
    }
    // SAFETY: `at..at + need` is inside the arena and reserved for this call alone.
    unsafe {
        let base = NAMES.0.get() as *mut u8;
        (base.add(at) as *mut [u8; 2]).write_unaligned((bytes.len() as u16).to_le_bytes());
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(at + 2), bytes.len());
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    // Whoever gets this number gets it through a slot's or record's release store.
    Label(at as u32)
}

/// The name behind a label.
pub fn name(label: Label) -> Option<&'static str> {
    if label == Label::NONE || label.0 as usize >= ARENA - 2 {
        return None;
    }
    // SAFETY: a label other than 0 is the start of a range that `intern` filled before.
    unsafe {
        let base = NAMES.0.get() as *const u8;
        let len =
            u16::from_le_bytes((base.add(label.0 as usize) as *const [u8; 2]).read_unaligned());
        let bytes = core::slice::from_raw_parts(base.add(label.0 as usize + 2), len as usize);
        core::str::from_utf8(bytes).ok()
    }
}

/// How many names were interned.
pub fn count() -> u32 {
    COUNT.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let a = intern("suite::first");
        let b = intern("suite::zweitens_ü");
        assert_eq!(name(a), Some("suite::first"));
        assert_eq!(name(b), Some("suite::zweitens_ü"));
        assert_eq!(name(Label::NONE), None);
        let long = "ü".repeat(LONGEST);
        let c = name(intern(&long)).unwrap();
        assert!(c.len() <= LONGEST && long.ends_with(c));
    }
}
