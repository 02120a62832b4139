//! The process' detector: arming, scopes, and turning evidence into reports. Together with the
//! other front ends the only place that knows all stages.
#![forbid(unsafe_code)]

use crate::__private::Settings;
use crate::bless::{Home, Ledger};
use crate::capture;
use crate::config::{self, Level, Limits, Switch, Wishes};
use crate::evidence::{Capabilities, Category, Evidence, Frame, Harness, RawStack, Stack};
use crate::hooks::libc::{births, observe, reentry, start, table as calls};
use crate::hooks::tokio as ask;
use crate::ids::{CodeAddress, Nanos, ScopeId, ThreadNo};
use crate::known::Run;
use crate::report::build::Names;
use crate::report::model::{Finding, Report, BY_LEVEL};
use crate::slots::record::{Addresses, CallId, RawFacts};
use crate::slots::{label, queue, table};
use crate::symbolize::{Grounds, Package, Symbolizer};
use crate::sys::{clock, output, schedstat};
use crate::watchdog::thread::{Duties, Shared};
use crate::watchdog::watch::{Announcement, Floors, Watch};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// What the process needs once anything is armed.
struct Detector {
    shared: Arc<Shared>,
    capabilities: Capabilities,
    armed_at: Nanos,
    /// Only `cargo test -- --list` is wanted: nothing may be said.
    listing: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Settings of `watch_all!`, if it armed the process.
    process: Option<Limits>,
    /// Where `watch_all!` stands.
    line: Option<&'static Settings>,
    // No hash map: its seed would be the thread's first (`hooks::libc::births::descent`).
    scopes: BTreeMap<ScopeId, Limits>,
    packages: Vec<Package>,
    /// Reports that could not fail their own test.
    deferred: Vec<Report>,
    /// Reports that fail nothing and that nobody has seen.
    kept: Vec<Report>,
    /// Arming went wrong in a way that must fail the process.
    broken: Vec<String>,
    symbolizer: Option<Symbolizer>,
    ledger: Ledger,
    /// Calls and holds that could not be judged, in reports that are done.
    unjudged: u64,
    /// Somebody asked for `require`.
    required: bool,
    /// What was built without debug assertions: most likely by the profile `release`.
    optimised: bool,
    /// A guarded test ran on a thread of its name: libtest's.
    libtest: bool,
    /// Guarded tests that began and that can have findings.
    guarded: u64,
    /// Something was watched outside of guarded tests: how many tests did that, nobody says.
    by_hand: bool,
    /// Findings of scopes that were closed.
    told: u64,
}

impl State {
    /// The settings of a scope; `None`: nobody set any.
    fn limits(&self, scope: ScopeId) -> Option<Limits> {
        self.scopes.get(&scope).copied().or(self.process)
    }

    /// Whether any finding could fail anything, by the settings in force.
    fn can_fail(&self) -> bool {
        let denies = |limits: &Limits| {
            Category::ALL.into_iter().any(|category| limits.ceiling(category) == Level::Deny)
        };
        self.process.iter().chain(self.scopes.values()).any(denies)
    }

    fn symbolizer(&mut self) -> &mut Symbolizer {
        let packages = &self.packages;
        self.symbolizer
            .get_or_insert_with(|| Symbolizer::new(Grounds { packages: packages.clone() }))
    }

    /// Holds a judged report against the known findings.
    fn sort_out(&mut self, report: &mut Report) {
        self.ledger.note(report);
        self.ledger.sort_out(report, switch() == Switch::Bless);
    }
}

static DETECTOR: OnceLock<Option<Detector>> = OnceLock::new();
static NEXT_SCOPE: AtomicU32 = AtomicU32::new(1);
static SAID_BROKEN: AtomicBool = AtomicBool::new(false);

fn lock(detector: &Detector) -> MutexGuard<'_, State> {
    detector.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The value of `STALLHOUND`, read once. A wrong one is said once, and means what the code says.
fn switch() -> Switch {
    static SWITCH: OnceLock<Switch> = OnceLock::new();
    *SWITCH.get_or_init(|| {
        let value = std::env::var_os("STALLHOUND").map(|v| v.to_string_lossy().into_owned());
        match config::parse_switch(value.as_deref()) {
            Ok(switch) => switch,
            Err(error) => {
                if !listing() {
                    say(&format!("stallhound: {error}\n"));
                }
                Switch::Invalid
            }
        }
    })
}

/// Whether the test binary was only asked what it has.
fn listing() -> bool {
    std::env::args_os().skip(1).any(|a| a == "--list")
}

/// One block of text on the standard error stream, written at once.
fn say(text: &str) {
    output::stderr(text.as_bytes());
}

/// The detector, if it was started here. A child of the armed process has none: its memory may be
/// locked for good by threads that the child does not have.
fn running() -> Option<&'static Detector> {
    DETECTOR.get().and_then(Option::as_ref).filter(|_| !start::in_child())
}

/// The detector; it is started by the first caller. `None`: `STALLHOUND=off`, no support, or a
/// child of the armed process.
fn detector() -> Option<&'static Detector> {
    if start::in_child() {
        return None;
    }
    DETECTOR
        .get_or_init(|| {
            if switch() == Switch::Off {
                births::turn_off();
                return None;
            }
            Some(begin())
        })
        .as_ref()
}

fn begin() -> Detector {
    observe::install_tracer(capture::own::stack);
    let floors = Floors { busy: Nanos(u64::MAX), asleep: Nanos(u64::MAX) };
    let shared = Arc::new(Shared::new(Watch::new(name_of, floors)));
    let capabilities = prove(&shared);
    let started = crate::watchdog::thread::start(
        shared.clone(),
        Duties {
            prepare: births::learn_std_start,
            turn: start::serve,
            announce,
            enlist: births::is_ours,
        },
    )
    .is_ok();
    births::settle();
    let mut broken = Vec::new();
    if !started {
        broken.push("its watchdog thread could not be started".to_owned());
    }
    // The std start routine is known once the watchdog runs; it is what tells test threads.
    start::install_gate(at_exit);
    Detector {
        shared,
        capabilities,
        armed_at: clock::now(),
        listing: listing(),
        state: Mutex::new(State { broken, ..State::default() }),
    }
}

/// Proves that interception and sampling work, without a runtime.
fn prove(shared: &Shared) -> Capabilities {
    shared.lock().look_for_tracer();
    let sampling = capture::handler::install(read_facts) && sample_self(shared);
    Capabilities {
        interception: calls::in_force(),
        sampling,
        schedstat: schedstat::of(crate::sys::thread::own_tid()).is_some(),
    }
}

/// Asks the calling thread for a sample and looks whether it came with this very stack.
fn sample_self(shared: &Shared) -> bool {
    let Some(slot) = table::own() else { return false };
    let mut buffer = capture::arena::Buffer::new();
    buffer.reset(0);
    let at: *mut capture::arena::Buffer = &mut *buffer;
    if !slot.request_sample(at as *mut ()) {
        return false;
    }
    // A signal that a thread sends to itself is handled before the call returns.
    crate::sys::thread::signal(crate::sys::thread::own_tid(), crate::sys::signal::SAMPLE);
    if !buffer.is_full() {
        slot.withdraw_sample(at as *mut ());
        return false;
    }
    shared.lock().try_unwind(&buffer)
}

/// What the signal handler reads from tokio.
fn read_facts(units: u8) -> (RawFacts, Option<u8>, u8) {
    let (facts, left) = ask::facts_in_handler();
    let taken = left.map_or(0, |left| ask::take(left, units));
    (facts, left, taken)
}

fn name_of(call: CallId) -> (&'static str, Option<Category>) {
    let Some(row) = calls::ROWS.get(call.0 as usize) else { return ("?", None) };
    (row.name, Category::ALL.into_iter().find(|c| c.word() == row.category))
}

/// What a front end asks for, and for whose code.
#[derive(Clone, Debug)]
pub struct Request {
    package: Package,
    debug_assertions: bool,
    wishes: Wishes,
    require: bool,
    home: Home,
}

impl Request {
    /// As a macro's line in the code says.
    pub fn of(settings: &Settings) -> Request {
        Request {
            package: Package {
                crate_name: settings.crate_name.to_owned(),
                manifest_dir: PathBuf::from(settings.manifest_dir),
                test_target: settings.test_target,
            },
            debug_assertions: settings.debug_assertions,
            wishes: settings.wishes(),
            require: settings.require,
            home: Home::of(settings),
        }
    }

    /// Of a function of ours, which knows no more of its caller's crate than cargo and the
    /// executable's name tell: `cargo test` runs it in the package, whose profile is most likely
    /// the one we were built in too.
    pub fn by_hand(wishes: Wishes, require: bool) -> Request {
        static PACKAGE: OnceLock<Package> = OnceLock::new();
        let package = PACKAGE.get_or_init(|| unwatched(this_package)).clone();
        let debug_assertions = cfg!(debug_assertions);
        let home = Home::by_hand(&package.manifest_dir, &package.crate_name, debug_assertions);
        Request { package, debug_assertions, wishes, require, home }
    }
}

fn this_package() -> Package {
    let program = std::env::current_exe().ok();
    let stem = program.as_deref().and_then(|p| p.file_stem()?.to_str()).unwrap_or_default();
    // cargo adds a hash to what it builds for itself.
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let name = match stem.rsplit_once('-') {
        Some((name, hash)) if is_hash(hash) => name,
        _ => stem,
    };
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    Package {
        crate_name: name.replace('-', "_"),
        manifest_dir: folder
            .or_else(|| std::env::current_dir().ok())
            .unwrap_or_else(|| PathBuf::from(".")),
        test_target: false,
    }
}

/// Runs our own work on a thread of the program's, where it is nobody's finding.
pub fn unwatched<R>(f: impl FnOnce() -> R) -> R {
    reentry::unwatched(f)
}

impl Detector {
    fn enlist(&self, state: &mut State, request: &Request, limits: Limits) {
        state.ledger.open(&request.home);
        state.required |= request.require;
        state.optimised = !request.debug_assertions;
        if !state.packages.contains(&request.package) {
            state.packages.push(request.package.clone());
            state.symbolizer = None;
        }
        let mut watch = self.shared.lock();
        watch.floors.busy = watch.floors.busy.min(limits.busy_threshold);
        watch.floors.asleep = watch.floors.asleep.min(limits.threshold);
        drop(watch);
        if request.require || !self.listing {
            self.say_what_is_missing(state, request.require);
        }
    }

    /// Says once what does not work here; with `require` it fails the process.
    fn say_what_is_missing(&self, state: &mut State, require: bool) {
        let c = self.capabilities;
        let missing = [
            (c.interception, "interception (its definitions of libc's functions are not the ones this program calls)"),
            (c.sampling, "sampling (its signal is blocked or taken)"),
            (c.schedstat, "run-queue statistics (/proc/self/task/*/schedstat)"),
        ];
        let missing: Vec<_> = missing.iter().filter(|m| !m.0).map(|m| m.1).collect();
        if missing.is_empty() {
            return;
        }
        let text = format!("not working here: {}", missing.join("; "));
        if require && !state.broken.contains(&text) {
            state.broken.push(text.clone());
        }
        if !self.listing && !SAID_BROKEN.swap(true, Ordering::Relaxed) {
            say(&format!("stallhound: {text}\n"));
        }
    }

    fn evidence(&self, scopes: &[ScopeId], take: bool) -> Evidence {
        let mut watch = self.shared.lock();
        watch.settle();
        let mut evidence = Evidence {
            capabilities: Capabilities {
                sampling: self.capabilities.sampling && !watch.taken,
                ..self.capabilities
            },
            calls_in_polls: observe::counters().0,
            allowed: observe::counters().1,
            lost: queue::lost() + watch.collected.lost + table::unwatched() as u64,
            tests_seen: label::count() as u64,
            armed_at: self.armed_at,
            ..Evidence::default()
        };
        for scope in scopes {
            let (calls, holds) =
                if take { watch.collected.take(*scope) } else { watch.collected.copy(*scope) };
            evidence.calls.extend(calls);
            evidence.holds.extend(holds);
            let (calls, holds) = watch.unfinished(*scope);
            evidence.calls.extend(calls);
            evidence.holds.extend(holds);
        }
        evidence
    }

    /// Judges evidence: looks up names, classifies, groups.
    fn judge(&self, state: &mut State, mut evidence: Evidence) -> Report {
        let (scopes, process, libtest) = (state.scopes.clone(), state.process, state.libtest);
        // Which other tests began after the first scope armed the process is chance.
        if process.is_none() {
            let known = if state.by_hand { 0 } else { state.guarded };
            evidence.tests_seen = evidence.tests_seen.min(known);
        }
        let symbolizer = state.symbolizer();
        // Names cost half a second in a build without optimisation: only where there is anything
        // to name.
        let first_test = births::first_test_stack()
            .filter(|_| !(evidence.calls.is_empty() && evidence.holds.is_empty()));
        evidence.harness = if libtest { Harness::Libtest } else { harness(symbolizer, first_test) };
        let default = Limits::default_for(cfg!(debug_assertions));
        let limits = |scope| scopes.get(&scope).copied().or(process).unwrap_or(default);
        crate::report::build::build(&evidence, symbolizer, &limits, cores())
    }
}

/// Which harness made the first test's thread.
fn harness(symbolizer: &mut Symbolizer, first_test: Option<&'static Addresses>) -> Harness {
    match first_test {
        Some(stack) => {
            let raw = crate::watchdog::collect::raw_stack(stack);
            crate::symbolize::harness_of(&symbolizer.resolve(&raw))
        }
        None => Harness::Process,
    }
}

impl Names for Symbolizer {
    fn resolve(&mut self, stack: &RawStack) -> Stack {
        Symbolizer::resolve(self, stack)
    }
    fn source_line(&mut self, file: &str, line: u32) -> Option<String> {
        Symbolizer::source_line(self, file, line)
    }
    fn display_path(&self, file: &str) -> String {
        Symbolizer::display_path(self, file)
    }
    fn plain_function(&mut self, frame: &Frame) -> Option<String> {
        Symbolizer::plain_function(self, frame)
    }
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Arms the whole process, for one `watch_all!` line.
pub fn arm_process(settings: &'static Settings) {
    reentry::unwatched(|| {
        let Some(detector) = detector() else { return };
        let mut state = lock(detector);
        if let Some(first) = state.line.filter(|first| !same_line(first, settings)) {
            let text = format!(
                "watch_all! stands twice in this program: {}:{} and {}:{}; keep one of them",
                first.file, first.line, settings.file, settings.line
            );
            if !detector.listing {
                say(&format!("stallhound: {text}\n"));
            }
            state.broken.push(text);
            return;
        }
        state.line = Some(settings);
        let request = Request::of(settings);
        let base = Limits::default_for(request.debug_assertions);
        let limits = base.with(&request.wishes, switch());
        state.process = Some(limits);
        detector.enlist(&mut state, &request, limits);
        detector.shared.lock().whole = true;
        reentry::arm_process();
    });
}

fn same_line(a: &Settings, b: &Settings) -> bool {
    (a.file, a.line, a.crate_name) == (b.file, b.line, b.crate_name)
}

/// Whose doings a scope is about, besides the polls and threads that [`Open`] is told to enter.
pub enum Covers<'a> {
    /// The test that the calling thread runs, and all threads that carry its name: those made
    /// before included. Where the thread has no name of a test, it gets this one.
    Test(&'a str),
    /// Nothing else; what is found is booked on this name, or as it would be without the scope.
    Nothing(Option<&'a str>),
}

/// A scope: settings of its own, and a report of its own.
#[derive(Debug)]
#[must_use]
pub struct Open {
    scope: ScopeId,
    /// A label that belongs to the scope.
    claimed: Option<label::Label>,
    /// The thread whose label was changed, and what it was before.
    renamed: Option<(ThreadNo, label::Label)>,
}

/// Opens a scope. `None`: nothing is watched here.
///
/// What `request` leaves out is as it is where the calling thread stands: in an open scope, or in
/// the process that `watch_all!` armed.
pub fn open(request: &Request, covers: Covers<'_>) -> Option<Open> {
    reentry::unwatched(|| {
        let off = request.wishes.level == Some(Level::Allow);
        // Where nobody watches there is nothing to turn off.
        let detector = if off { running()? } else { detector()? };
        let slot = table::own()?;
        let scope = ScopeId(NEXT_SCOPE.fetch_add(1, Ordering::Relaxed));
        let mut state = lock(detector);
        let base =
            state.limits(slot.scope()).unwrap_or(Limits::default_for(request.debug_assertions));
        let limits = base.with(&request.wishes, switch());
        detector.enlist(&mut state, request, limits);
        match covers {
            Covers::Test(name) => {
                let name = name.split_once("::").map(|(_, name)| name);
                state.libtest |= std::thread::current().name() == name;
                state.guarded += u64::from(!off);
            }
            Covers::Nothing(_) => state.by_hand |= !state.scopes.contains_key(&slot.scope()),
        }
        state.scopes.insert(scope, limits);
        drop(state);
        reentry::open_scope();
        let mut open = Open { scope, claimed: None, renamed: None };
        let own_name = births::label(slot) != label::Label::NONE;
        let (new_name, claims) = match covers {
            Covers::Test(name) => ((!own_name).then_some(name), true),
            Covers::Nothing(name) => (name, false),
        };
        if let Some(name) = new_name {
            // A label says where in its crate a test is; the crate is known.
            let short = name.split_once("::").map_or(name, |(_, name)| name);
            open.renamed = births::set_label(short).map(|before| (slot.no(), before));
        }
        if claims && label::claim(slot.label(), scope) {
            open.claimed = Some(slot.label());
        }
        observe::rouse();
        Some(open)
    })
}

/// While it lives the thread that made it, and the threads which that one makes, belong to a scope.
pub struct OnThread {
    before: ScopeId,
    /// Of one thread.
    _here: PhantomData<*const ()>,
}

impl Drop for OnThread {
    fn drop(&mut self) {
        if let Some(slot) = table::own() {
            slot.enter_scope(self.before);
        }
    }
}

/// While it lives, which is during one poll, what the thread does belongs to a scope.
pub struct InPoll {
    before: ScopeId,
    _here: PhantomData<*const ()>,
}

impl Drop for InPoll {
    fn drop(&mut self) {
        if let Some(slot) = table::own() {
            slot.leave_poll(self.before);
        }
    }
}

impl Open {
    /// The calling thread belongs to it, as long as the result lives.
    #[must_use]
    pub fn enter_thread(&self) -> Option<OnThread> {
        let slot = table::own()?;
        Some(OnThread { before: slot.enter_scope(self.scope), _here: PhantomData })
    }

    /// A poll of a future that belongs to it begins on the calling thread.
    #[must_use]
    pub fn enter_poll(&self) -> Option<InPoll> {
        let slot = table::own()?;
        Some(InPoll { before: slot.enter_poll(self.scope), _here: PhantomData })
    }

    /// Ends the scope and judges what happened in it.
    pub fn close(self) -> Report {
        self.close_and(|detector, state, evidence| {
            let mut report = detector.judge(state, evidence);
            state.unjudged += report.summary.unjudged;
            state.sort_out(&mut report);
            state.told += report.findings.len() as u64;
            report
        })
    }

    /// As [`Open::close`], for a report that is handed out. Notes that would be findings if the
    /// level were not `warn` are said at the end of the run too: whoever asks whether the report is
    /// clean does not see them.
    pub fn hand_out(self) -> Report {
        let report = self.close();
        let by_level = |note: &&Finding| note.reason.as_deref() == Some(BY_LEVEL);
        let notes: Vec<Finding> = report.notes.iter().filter(by_level).cloned().collect();
        if report.is_clean() && !notes.is_empty() {
            unwatched(|| keep(Report { notes, ..Report::default() }));
        }
        report
    }

    /// Ends the scope and judges what happened in it, with and without allowances.
    pub fn close_twice(self) -> (Report, Report) {
        let scope = self.scope;
        self.close_and(|detector, state, evidence| {
            let report = detector.judge(state, evidence.clone());
            if let Some(limits) = state.scopes.get_mut(&scope) {
                limits.allowances = false;
            }
            (report, detector.judge(state, evidence))
        })
    }

    fn close_and<R: Default>(self, judge: impl FnOnce(&Detector, &mut State, Evidence) -> R) -> R {
        reentry::unwatched(|| {
            let Some(detector) = running() else { return R::default() };
            let mut evidence = detector.evidence(&[self.scope], true);
            // The process' counters are not this scope's.
            evidence.calls_in_polls = evidence.calls.iter().map(|c| c.count).sum();
            evidence.allowed = 0;
            evidence.tests_seen = 0;
            judge(detector, &mut lock(detector), evidence)
        })
    }
}

impl Drop for Open {
    /// What was not judged until here is judged, with the scope's settings, at the process' end.
    fn drop(&mut self) {
        if let Some(label) = self.claimed {
            label::release(label, self.scope);
        }
        if let (Some((thread, before)), Some(slot)) = (self.renamed, table::own()) {
            if slot.no() == thread {
                slot.set_label(before);
            }
        }
        reentry::close_scope();
    }
}

/// Keeps a report for the end of the process, which it fails.
pub fn defer(report: Report) {
    if let Some(detector) = running() {
        lock(detector).deferred.push(report);
    }
}

/// Keeps a report that fails nothing for the report at the end of the process.
pub fn keep(report: Report) {
    if let Some(detector) = running() {
        lock(detector).kept.push(report);
    }
}

/// What the process scope saw so far, judged; nothing is taken away.
pub fn snapshot() -> Report {
    reentry::unwatched(|| match running() {
        Some(detector) => {
            let evidence = detector.evidence(&[ScopeId::PROCESS], false);
            let mut state = lock(detector);
            let mut report = detector.judge(&mut state, evidence);
            state.sort_out(&mut report);
            report
        }
        None => Report::default(),
    })
}

/// How often the watchdog woke up so far.
pub fn wakeups() -> u64 {
    running().map_or(0, |d| d.shared.wakeups())
}

/// Why arming must fail a test that requires it, if it must.
pub fn broken() -> Option<String> {
    let detector = running()?;
    let state = lock(detector);
    (!state.broken.is_empty()).then(|| state.broken.join("; "))
}

/// The exit gate: prints the process' report and says with which code to end.
fn at_exit(code: i32) -> i32 {
    reentry::unwatched(|| {
        let Some(detector) = running() else { return code };
        detector.shared.stop();
        if detector.listing {
            return code;
        }
        let mut state = lock(detector);
        let mut scopes: Vec<ScopeId> = state.scopes.keys().copied().collect();
        if state.process.is_some() {
            scopes.push(ScopeId::PROCESS);
        }
        let evidence = detector.evidence(&scopes, true);
        reentry::disarm();
        let mut report = detector.judge(&mut state, evidence);
        state.unjudged += report.summary.unjudged;
        state.sort_out(&mut report);
        report.summary.told = state.told;
        let run = detector.ran(&mut state, &report, code);
        let bless = switch() == Switch::Bless;
        let known = state.ledger.close(bless, &run);
        if !bless {
            report.gone = state.ledger.gone(&run);
        }
        crate::report::gather::gather(&mut report, std::mem::take(&mut state.kept), cores());
        let style = style();
        let mut text = crate::report::text::render(&report, &style);
        let mut failed = !report.is_clean() || known.failed && state.can_fail();
        for deferred in &state.deferred {
            text.push_str(&crate::report::text::render(deferred, &style));
            failed |= !deferred.is_clean();
        }
        let mut said = String::new();
        if state.unjudged > 0 {
            let text = without_symbols(state.unjudged, state.optimised);
            if state.required {
                state.broken.push(text);
            } else {
                said.push_str(&format!("stallhound: {text}\n"));
            }
        }
        text.push_str(&said);
        for broken in &state.broken {
            text.push_str(&format!("stallhound: failing because of `require`: {broken}\n"));
            failed = true;
        }
        text.push_str(&known.text);
        if !text.is_empty() {
            // One block; it begins on a line of its own whatever the harness printed.
            say(&format!("\n{text}"));
        }
        if failed && code == 0 {
            FAILED
        } else {
            code
        }
    })
}

/// That a program without symbols was watched, and what to do.
fn without_symbols(calls: u64, optimised: bool) -> String {
    let profile = if optimised { "release" } else { "dev" };
    format!(
        "{} could not be judged: the binary has no symbols; set `strip = false` and `debug = \
         \"line-tables-only\"` in [profile.{profile}]",
        crate::report::units::count(calls, "call")
    )
}

impl Detector {
    /// What this process ran, as far as known findings go by it.
    fn ran(&self, state: &mut State, report: &Report, code: i32) -> Run {
        // Names cost half a second: only where something could be gone.
        let first_test = births::first_test_stack().filter(|_| state.ledger.wants_harness());
        let harness = match first_test {
            _ if state.libtest => Harness::Libtest,
            Some(_) => harness(state.symbolizer(), first_test),
            None => Harness::Process,
        };
        // A test that ends the process does so on its own thread, and a code other than 0 says
        // that a test stopped half-way.
        let on_main = crate::sys::thread::own_tid().0 as u32 == std::process::id();
        let sees = report.summary.interception && report.summary.sampling;
        let whole = code == 0 && on_main && sees && report.summary.lost == 0;
        let arguments: Vec<String> =
            std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
        state.ledger.ran(harness, whole, &arguments)
    }
}

/// The exit code of a process with findings: libtest's own for failed tests.
pub const FAILED: i32 = 101;

/// How reports look on this process' standard error stream.
pub fn style() -> crate::report::text::Style {
    crate::report::text::Style::detect(output::stderr_is_terminal(), &|name| {
        std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
    })
}

/// Says that polls do not come back. Runs on a thread of its own, which may take its time for names:
/// the poll has been held for over a second already.
fn announce(announcements: Vec<Announcement>) {
    let Some(detector) = running() else { return };
    let mut state = lock(detector);
    for a in announcements {
        let evidence = Evidence {
            calls: vec![evidence_of(&a)],
            capabilities: detector.capabilities,
            ..Evidence::default()
        };
        let report = detector.judge(&mut state, evidence);
        if let Some(finding) = report.findings.first().or(report.notes.first()) {
            say(&crate::report::text::hold_line(finding, a.held));
        }
    }
}

/// An announcement is judged like the call or hold it is about, so that it names the same line.
fn evidence_of(a: &Announcement) -> crate::evidence::CallEvidence {
    crate::evidence::CallEvidence {
        category: Category::Sleep,
        function: a.call.unwrap_or("poll"),
        who: a.who.clone(),
        object: crate::evidence::Object::None,
        stack: a
            .stack
            .clone()
            .unwrap_or(RawStack { addresses: Vec::<CodeAddress>::new(), truncated: true }),
        at: Nanos::ZERO,
        count: 1,
        total: a.held,
        max: a.held,
        cpu: None,
        excused: Nanos::ZERO,
        requested: Some(a.held),
        summed: None,
        running: true,
    }
}
