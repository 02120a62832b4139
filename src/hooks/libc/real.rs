//! libc's own functions behind ours, found once.
//!
//! Calls: `dlsym`, in the constructor; for a function that is called earlier, at its first call.

use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of one real function.
pub struct Real {
    address: AtomicUsize,
    name: &'static core::ffi::CStr,
}

/// Looked for and not there.
const MISSING: usize = 1;

impl Real {
    pub const fn new(name: &'static core::ffi::CStr) -> Real {
        Real { address: AtomicUsize::new(0), name }
    }

    /// Its address; `None` where this libc has no such function.
    #[inline(always)]
    pub fn address(&self) -> Option<usize> {
        // Relaxed: the address is all there is.
        let address = self.address.load(Ordering::Relaxed);
        if address > MISSING {
            Some(address)
        } else {
            self.not_found(address)
        }
    }

    #[cold]
    #[inline(never)]
    fn not_found(&self, address: usize) -> Option<usize> {
        (address != MISSING).then(|| self.find()).flatten()
    }

    /// Looks it up in the objects behind this one.
    #[cold]
    pub fn find(&self) -> Option<usize> {
        self.find_behind(super::table::own_address(self.name).unwrap_or(0))
    }

    /// The same where the address of our own definition is known. Of several versions it is the
    /// newest, the one that programs are linked with today.
    #[cold]
    pub fn find_behind(&self, own: usize) -> Option<usize> {
        // SAFETY: a null-terminated name.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize;
        let address = if found == 0 || found == own { MISSING } else { found };
        self.address.store(address, Ordering::Relaxed);
        (address != MISSING).then_some(address)
    }
}

/// A C function's return type, made from a kernel's answer or a plain error.
pub trait Return: Copy {
    fn from_kernel(result: isize) -> Self;
}

impl Return for i32 {
    fn from_kernel(result: isize) -> i32 {
        crate::sys::raw::to_libc(result) as i32
    }
}
impl Return for isize {
    fn from_kernel(result: isize) -> isize {
        crate::sys::raw::to_libc(result)
    }
}
impl Return for i64 {
    fn from_kernel(result: isize) -> i64 {
        crate::sys::raw::to_libc(result) as i64
    }
}
impl Return for u32 {
    fn from_kernel(result: isize) -> u32 {
        crate::sys::raw::to_libc(result) as u32
    }
}
impl Return for () {
    fn from_kernel(_: isize) {}
}
impl<T> Return for *mut T {
    fn from_kernel(result: isize) -> *mut T {
        if crate::sys::raw::to_libc(result) == -1 {
            core::ptr::null_mut()
        } else {
            result as *mut T
        }
    }
}
