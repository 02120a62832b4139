use crate::evidence::*;
use std::path::PathBuf;
#[derive(Clone, PartialEq)]
pub struct Package {
    pub crate_name: String,
    pub manifest_dir: PathBuf,
    pub test_target: bool,
}
pub struct Grounds {
    pub packages: Vec<Package>,
}
pub struct Symbolizer;
impl Symbolizer {
    pub fn new(_: Grounds) -> Self {
        Symbolizer
    }
    pub fn resolve(&mut self, r: &RawStack) -> Stack {
        let mut v = vec![];
        for a in &r.addresses {
            backtrace::resolve((a.lookup() + 1) as *mut _, |s| {
                v.push(Frame {
                    function: s.name().map(|n| format!("{n:#}")).unwrap_or_default(),
                    symbol: String::new(),
                    file: s.filename().map(|f| f.display().to_string()),
                    line: s.lineno(),
                    column: s.colno(),
                    inlined: false,
                    origin: Origin::Foreign,
                })
            })
        }
        Stack { frames: v, truncated: r.truncated }
    }
}
pub fn harness_of(_: &Stack) -> Harness {
    Harness::Libtest
}
