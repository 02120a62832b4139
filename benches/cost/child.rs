//! The bench runs itself as a child process, armed or not, and talks to it line by line.

use crate::{arming_child, calls, counted, idle, polls, runtimes};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// First argument of a child.
pub const ROLE: &str = "as-child";

/// What a child does, by name.
pub fn run(what: &str, rest: &[String]) {
    match what {
        "arming" => arming_child::run(),
        "calls" => calls::child(rest),
        "counted" => counted::child(rest),
        "idle" => idle::child(rest),
        "polls" => polls::child(),
        "runtimes" => runtimes::child(rest),
        other => panic!("no child called {other}"),
    }
}

/// Whether a child shall be watched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    Armed,
    Off,
}

/// Arms this process as a `watch_all!` line does, but when asked to.
pub fn arm() {
    static SETTINGS: stallhound::__private::Settings =
        stallhound::__private::settings!().warn(true);
    stallhound::__private::arm(&SETTINGS);
}

/// This very program, as a child.
pub fn command(what: &str, watched: Watched) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args([ROLE, what]);
    set(&mut command, watched);
    command
}

/// Lets `STALLHOUND` say whether a program is watched.
pub fn set(command: &mut Command, watched: Watched) {
    match watched {
        Watched::Armed => command.env_remove("STALLHOUND"),
        Watched::Off => command.env("STALLHOUND", "off"),
    };
}

/// What a child that ends on its own says on its standard output, number by number.
pub fn numbers(command: &mut Command) -> Vec<f64> {
    let output = command.stderr(Stdio::inherit()).output().expect("the child to run");
    assert!(output.status.success(), "{command:?}: {}", output.status);
    parse(&String::from_utf8_lossy(&output.stdout))
}

fn parse(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

/// A child that waits for lines and answers each with one of numbers.
pub struct Talk {
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Talk {
    pub fn begin(command: &mut Command) -> Talk {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the child to start");
        let to = process.stdin.take();
        let from = BufReader::new(process.stdout.take().expect("a pipe"));
        Talk { process, to, from }
    }

    pub fn ask(&mut self, line: &str) -> Vec<f64> {
        writeln!(self.to.as_mut().expect("an open pipe"), "{line}").expect("the child to listen");
        let mut answer = String::new();
        self.from.read_line(&mut answer).expect("the child to answer");
        parse(&answer)
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.process.wait();
    }
}

/// The other side of [`Talk`]: answers every line until there are no more.
pub fn listen(mut answer: impl FnMut(&str) -> Vec<f64>) {
    let mut line = String::new();
    while std::io::stdin().read_line(&mut line).is_ok_and(|n| n > 0) {
        let words: Vec<String> = answer(line.trim()).iter().map(f64::to_string).collect();
        println!("{}", words.join(" "));
        line.clear();
    }
}
