//! Which loaded file an address lies in, by `/proc/self/maps`.
//!
//! libc's frames are never looked up: with the system's debug information installed that costs
//! 0.4 s, and nobody reads them.
#![forbid(unsafe_code)]

/// The executable mappings of this process, in order of address.
#[derive(Debug, Default)]
pub struct Modules {
    ranges: Vec<(usize, usize, String)>,
}

impl Modules {
    /// Reads the mappings as they are now. Empty where they cannot be read.
    pub fn read() -> Modules {
        std::fs::read_to_string("/proc/self/maps")
            .map_or_else(|_| Modules::default(), |t| Self::parse(&t))
    }

    fn parse(text: &str) -> Modules {
        let mut ranges: Vec<_> = text.lines().filter_map(Self::line).collect();
        ranges.sort();
        Modules { ranges }
    }

    fn line(line: &str) -> Option<(usize, usize, String)> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let executable = fields.next()?.contains('x');
        let path = fields.skip(3).collect::<Vec<_>>().join(" ");
        let number = |t| usize::from_str_radix(t, 16).ok();
        executable.then_some((number(start)?, number(end)?, path))
    }

    /// The file mapped at an address; empty for anonymous memory.
    pub fn path(&self, address: usize) -> Option<&str> {
        let i = self.ranges.partition_point(|r| r.0 <= address).checked_sub(1)?;
        let (_, end, path) = &self.ranges[i];
        (address < *end).then_some(path)
    }

    /// The file's name, if it is the C library's, the loader's or the kernel's: nothing in it is
    /// worth a look-up.
    pub fn system(&self, address: usize) -> Option<&str> {
        let path = self.path(address)?;
        let name = path.rsplit('/').next()?;
        let system = ["libc.so", "libc-", "libpthread", "ld-linux", "libm.so", "libm-", "libgcc_s"]
            .iter()
            .any(|begin| name.starts_with(begin));
        (system || name == "[vdso]" || name == "[vsyscall]").then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_find_their_file() {
        let m = Modules::parse(
            "1000-2000 r--p 00000000 08:01 1 /bin/a\n2000-3000 r-xp 00000000 08:01 1 /bin/a b\n\
             5000-6000 r-xp 00000000 08:01 2 /lib/libc.so.6\n7000-7100 r-xp 00000000 00:00 0 [vdso]\n",
        );
        assert_eq!(m.path(0x1500), None, "not executable");
        assert_eq!(m.path(0x2fff), Some("/bin/a b"));
        assert_eq!(m.path(0x3000), None);
        assert_eq!(m.system(0x2500), None);
        assert_eq!(m.system(0x5500), Some("libc.so.6"));
        assert_eq!(m.system(0x7000), Some("[vdso]"));
        let own = Modules::read();
        let here = super::Modules::read as fn() -> Modules as usize;
        assert!(own.path(here).is_some_and(|p| p.contains("stallhound")), "{:?}", own.path(here));
    }
}
