//! Names of tests, kept in a static arena: threads inherit their creator's label as one number.

use crate::ids::ScopeId;
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

/// A name is kept as its scope (an atomic word), its length, and its bytes.
#[repr(align(4))]
struct Arena(UnsafeCell<[u8; ARENA]>);
// SAFETY: a byte is written once, by the thread that reserved its range with `USED`, before the
// range's `Label` is handed to anybody. The word of the scope is only touched as an atomic.
unsafe impl Sync for Arena {}

const LENGTH: usize = 4;
const HEAD: usize = 6;

static NAMES: Arena = Arena(UnsafeCell::new([0; ARENA]));
/// First free byte, a multiple of 4; the first 4 are never used, so that label 0 means none.
static USED: AtomicUsize = AtomicUsize::new(4);
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
    let need = (HEAD + bytes.len()).next_multiple_of(4);
    // Relaxed: the number is all that is shared here.
    let at = USED.fetch_add(need, Ordering::Relaxed);
    if at + need > ARENA {
        return Label::NONE;
    }
    // SAFETY: `at..at + need` is inside the arena and reserved for this call alone.
    unsafe {
        let base = NAMES.0.get() as *mut u8;
        (base.add(at + LENGTH) as *mut [u8; 2]).write((bytes.len() as u16).to_le_bytes());
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(at + HEAD), bytes.len());
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    // Whoever gets this number gets it through a slot's or record's release store.
    Label(at as u32)
}

/// The name behind a label.
pub fn name(label: Label) -> Option<&'static str> {
    if label == Label::NONE || label.0 as usize >= ARENA - HEAD {
        return None;
    }
    // SAFETY: a label other than 0 is the start of a range that `intern` filled before.
    unsafe {
        let base = NAMES.0.get() as *const u8;
        let at = base.add(label.0 as usize);
        let len = u16::from_le_bytes((at.add(LENGTH) as *const [u8; 2]).read());
        let bytes = core::slice::from_raw_parts(at.add(HEAD), len as usize);
        core::str::from_utf8(bytes).ok()
    }
}

fn scope_of(label: Label) -> Option<&'static AtomicU32> {
    if label == Label::NONE || label.0 as usize >= ARENA - HEAD {
        return None;
    }
    // SAFETY: a label other than 0 is the start of an entry, aligned as the arena is, whose first
    // word nobody touches but as an atomic.
    Some(unsafe { &*((NAMES.0.get() as *const u8).add(label.0 as usize) as *const AtomicU32) })
}

/// The scope that all threads with this label belong to, if they have none of their own.
#[inline]
pub fn scope(label: Label) -> ScopeId {
    scope_of(label).map_or(ScopeId::PROCESS, |scope| ScopeId(scope.load(Ordering::Relaxed)))
}

/// Gives the label to a scope, unless it has one. `true`: it was given.
pub fn claim(label: Label, scope: ScopeId) -> bool {
    exchange(label, ScopeId::PROCESS, scope)
}

/// Takes back what [`claim`] gave.
pub fn release(label: Label, scope: ScopeId) {
    exchange(label, scope, ScopeId::PROCESS);
}

fn exchange(label: Label, from: ScopeId, to: ScopeId) -> bool {
    // Relaxed: the number is all that is shared here.
    scope_of(label).is_some_and(|word| {
        word.compare_exchange(from.0, to.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    })
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
        assert_eq!(scope(a), ScopeId::PROCESS);
        assert!(claim(a, ScopeId(7)) && !claim(a, ScopeId(8)), "the first one has it");
        assert_eq!((scope(a), scope(b)), (ScopeId(7), ScopeId::PROCESS));
        release(a, ScopeId(8));
        assert_eq!((scope(a), name(a)), (ScopeId(7), Some("suite::first")));
        release(a, ScopeId(7));
        assert_eq!(scope(a), ScopeId::PROCESS);
        assert!(!claim(Label::NONE, ScopeId(7)));
        let long = "ü".repeat(LONGEST);
        let c = name(intern(&long)).unwrap();
        assert!(c.len() <= LONGEST && long.ends_with(c));
    }
}
