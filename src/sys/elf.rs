//! The program's loaded modules, and where their unwind tables are.
//!
//! Not for handlers or interposed functions: `dl_iterate_phdr` takes the loader's lock.

use std::borrow::Cow;

/// A byte range of this process' memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: usize,
    pub end: usize,
}

/// One loaded module.
#[derive(Clone, Debug)]
pub struct Module {
    pub path: String,
    /// Difference between where it lies and what its own tables say.
    pub bias: usize,
    /// From its first to its last mapped byte.
    pub range: Range,
    /// The executable segment.
    pub text: Range,
    /// `.eh_frame_hdr`: a copy, or the program's own, which stays mapped.
    pub eh_frame_hdr: (usize, Cow<'static, [u8]>),
    /// `.eh_frame` up to the end of its segment, likewise.
    pub eh_frame: (usize, Cow<'static, [u8]>),
}

/// How many modules were loaded and unloaded since the start: the list is stale once it changes.
pub fn generation() -> u64 {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: libc hands a valid `info`; `data` is the `u64` below.
        unsafe {
            *(data as *mut u64) = (*info).dlpi_adds.wrapping_add((*info).dlpi_subs << 32);
        }
        1
    }
    let mut value = 0u64;
    // SAFETY: the callback matches, `value` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), &mut value as *mut u64 as *mut libc::c_void) };
    value
}

/// All modules with unwind tables.
pub fn modules() -> Vec<Module> {
    let mut list: Vec<Module> = Vec::new();
    // SAFETY: the callback matches, `list` outlives the call.
    unsafe {
        libc::dl_iterate_phdr(Some(each), &mut list as *mut Vec<Module> as *mut libc::c_void)
    };
    list
}

unsafe extern "C" fn each(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: libc hands valid structures while it holds the loader's lock, and the segments it
    // lists are mapped for as long; `data` is the list of `modules`.
    unsafe {
        let list = &mut *(data as *mut Vec<Module>);
        let info = &*info;
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
        let bias = info.dlpi_addr as usize;
        let mut range = Range { start: usize::MAX, end: 0 };
        let mut text = Range { start: 0, end: 0 };
        let mut hdr = None;
        for h in headers {
            let start = bias.wrapping_add(h.p_vaddr as usize);
            let end = start.wrapping_add(h.p_memsz as usize);
            match h.p_type {
                libc::PT_LOAD => {
                    range.start = range.start.min(start);
                    range.end = range.end.max(end);
                    if h.p_flags & libc::PF_X != 0 {
                        text = Range { start, end };
                    }
                }
                libc::PT_GNU_EH_FRAME => hdr = Some(Range { start, end }),
                _ => {}
            }
        }
        let Some(hdr) = hdr else { return 0 };
        let Some(eh_start) = eh_frame_start(hdr) else { return 0 };
        // Without section headers the length of `.eh_frame` is not known; its end mark is before
        // the end of the segment's file-backed part.
        let Some(segment_end) = headers.iter().find_map(|h| {
            let start = bias.wrapping_add(h.p_vaddr as usize);
            let end = start.wrapping_add(h.p_filesz as usize);
            (h.p_type == libc::PT_LOAD && (start..end).contains(&eh_start)).then_some(end)
        }) else {
            return 0;
        };
        let path = if info.dlpi_name.is_null() {
            String::new()
        } else {
            core::ffi::CStr::from_ptr(info.dlpi_name).to_string_lossy().into_owned()
        };
        // The program itself has no name, is never unloaded, and may have tables of megabytes.
        let stays = path.is_empty();
        let bytes = |r: Range| {
            let mapped: &'static [u8] =
                core::slice::from_raw_parts(r.start as *const u8, r.end - r.start);
            if stays {
                Cow::Borrowed(mapped)
            } else {
                Cow::Owned(mapped.to_vec())
            }
        };
        list.push(Module {
            path,
            bias,
            range,
            text,
            eh_frame_hdr: (hdr.start, bytes(hdr)),
            eh_frame: (eh_start, bytes(Range { start: eh_start, end: segment_end })),
        });
    }
    0
}

/// Reads the pointer to `.eh_frame` out of `.eh_frame_hdr` (LSB 5.0, "Exception Frame Header").
///
/// # Safety
///
/// - `hdr` is mapped.
unsafe fn eh_frame_start(hdr: Range) -> Option<usize> {
    if hdr.end < hdr.start + 8 {
        return None;
    }
    // SAFETY: eight bytes are inside of `hdr`.
    unsafe {
        let p = hdr.start as *const u8;
        let (version, encoding) = (*p, *p.add(1));
        // DW_EH_PE_pcrel | DW_EH_PE_sdata4 is what every linker in use writes.
        if version != 1 || encoding != 0x1b {
            return None;
        }
        let offset = (p.add(4) as *const i32).read_unaligned();
        Some((hdr.start + 4).wrapping_add_signed(offset as isize))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn own_code_and_libc_are_found() {
        let modules = super::modules();
        let own = super::modules as *const () as usize;
        let me = modules.iter().find(|m| (m.range.start..m.range.end).contains(&own)).unwrap();
        assert!((me.text.start..me.text.end).contains(&own));
        assert!(me.eh_frame.1.len() > 1000);
        assert!(modules.iter().any(|m| m.path.contains("libc.so")));
        assert_eq!(super::generation(), super::generation());
    }
}
