//! Working out a copied stack, on the watchdog.

use super::arena::Sample;
use crate::ids::CodeAddress;
use crate::slots::record::DEPTH;
use crate::sys::elf;
use framehop::{
    x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64},
    ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _,
};
use std::borrow::Cow;

/// Unwinds copied stacks with the unwind tables of the modules that are loaded.
pub struct Unwinder {
    unwinder: UnwinderX86_64<Cow<'static, [u8]>>,
    cache: CacheX86_64,
    generation: Option<u64>,
}

impl Default for Unwinder {
    fn default() -> Self {
        Unwinder { unwinder: UnwinderX86_64::new(), cache: CacheX86_64::new(), generation: None }
    }
}

impl Unwinder {
    fn refresh(&mut self) {
        let generation = elf::generation();
        if self.generation == Some(generation) {
            return;
        }
        self.generation = Some(generation);
        self.unwinder = UnwinderX86_64::new();
        for m in elf::modules() {
            let range = |start: usize, len: usize| {
                let start = start.wrapping_sub(m.bias) as u64;
                start..start + len as u64
            };
            let (hdr_at, hdr) = m.eh_frame_hdr;
            let (eh_at, eh) = m.eh_frame;
            let info = ExplicitModuleSectionInfo {
                base_svma: 0,
                text_svma: Some(range(m.text.start, m.text.end - m.text.start)),
                eh_frame_hdr_svma: Some(range(hdr_at, hdr.len())),
                eh_frame_hdr: Some(hdr),
                eh_frame_svma: Some(range(eh_at, eh.len())),
                eh_frame: Some(eh),
                ..ExplicitModuleSectionInfo::default()
            };
            self.unwinder.add_module(Module::new(
                m.path,
                m.range.start as u64..m.range.end as u64,
                m.bias as u64,
                info,
            ));
        }
    }

    /// The addresses of a sample, innermost first, and whether outer ones are missing.
    pub fn addresses(&mut self, sample: &Sample) -> (Vec<CodeAddress>, bool) {
        self.innermost(sample, DEPTH * 4)
    }

    /// The same, and no more than `most`: in a build without optimisation a frame takes 50 µs.
    pub fn innermost(&mut self, sample: &Sample, most: usize) -> (Vec<CodeAddress>, bool) {
        self.refresh();
        let registers = UnwindRegsX86_64::new(sample.ip, sample.sp, sample.bp);
        let stack = &sample.stack[..sample.stack_len];
        let base = sample.sp;
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = address.checked_sub(base).ok_or(())? as usize;
            let bytes = stack.get(at..at + 8).ok_or(())?;
            Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let mut out = Vec::with_capacity(64);
        let mut frames =
            self.unwinder.iter_frames(sample.ip, registers, &mut self.cache, &mut read);
        loop {
            match frames.next() {
                Ok(Some(FrameAddress::InstructionPointer(ip))) => {
                    out.push(CodeAddress::Instruction(ip as usize))
                }
                Ok(Some(FrameAddress::ReturnAddress(ra))) => {
                    out.push(CodeAddress::Return(u64::from(ra) as usize))
                }
                Ok(None) => return (out, false),
                // The copy ends below the thread's first frames: they are nobody's code.
                Err(_) => return (out, sample.cut),
            }
            if out.len() >= most {
                return (out, true);
            }
        }
    }
}
