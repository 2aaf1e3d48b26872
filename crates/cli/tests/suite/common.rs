//! Runs the binary in surroundings of its own: nothing of the machine's is read or written.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// A home with a data directory.
pub(crate) struct Home {
    dir: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// A command with this home's surroundings, on its data directory.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        // Another build of the command can be put to the same test.
        let other = std::env::var("YORE_TEST_BINARY");
        self.outside(other.as_deref().unwrap_or(env!("CARGO_BIN_EXE_yore")), args)
    }

    /// Another program with this home's surroundings.
    pub(crate) fn outside(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("YORE_") {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .env("HOME", self.dir.path())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("share"))
            .env("YORE_DATA", self.data())
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        ended(self.command(args).output().unwrap())
    }

    /// Runs a command that must do well; returns its standard output.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {ended:?}");
        ended.out
    }

    /// Runs a command with `--json` that must do well; returns the one document it wrote.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let out = self.ok(&[args, &["--json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
    }

    /// Runs a command with bytes on its standard input.
    pub(crate) fn piped(&self, args: &[&str], input: &[u8]) -> Ended {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // The command may stop reading early, which is its right.
        let writer = std::thread::spawn(move || stdin.write_all(&input).is_ok());
        let ended = ended(child.wait_with_output().unwrap());
        writer.join().unwrap();
        ended
    }

    /// Runs a command that must fail with this exit code and say all of this.
    #[track_caller]
    pub(crate) fn fails(&self, args: &[&str], code: i32, words: &[&str]) -> Ended {
        let ended = self.run(args);
        check(&ended, code, words);
        ended
    }

    /// Stores a memory; returns its id.
    #[track_caller]
    pub(crate) fn remember(&self, args: &[&str]) -> String {
        let done = self.json(&[&["remember"], args].concat());
        done["memories"][0]["memory"].as_str().unwrap().to_owned()
    }

    /// The texts a recall finds, best first.
    #[track_caller]
    pub(crate) fn recall(&self, args: &[&str]) -> Vec<String> {
        let found = self.json(&[&["recall"], args].concat());
        let results = found["results"].as_array().unwrap();
        results.iter().map(|hit| text_in(&hit["found"]).to_owned()).collect()
    }

    /// The texts of all memories.
    #[track_caller]
    pub(crate) fn all(&self) -> Vec<String> {
        let out = self.ok(&["list", "--all", "--json"]);
        let rows = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| row["head"]["body"]["text"].as_str().unwrap().to_owned()).collect()
    }

    /// Starts a server on free ports.
    pub(crate) fn serve(&self) -> Server {
        self.serve_at("127.0.0.1:0")
    }

    /// Starts a server on free ports that writes its log into a file.
    pub(crate) fn serve_logging(&self, level: &str, log: &Path) -> Server {
        let mut command = self.serving("127.0.0.1:0");
        command.env("YORE_LOG", level).stderr(std::fs::File::create(log).unwrap());
        started(command)
    }

    /// Starts a server on free ports that believes the grants of an issuer.
    pub(crate) fn serve_trusting(&self, issuer: &str) -> Server {
        let mut command = self.serving("127.0.0.1:0");
        command.env("YORE_ISSUERS", issuer);
        started(command)
    }

    /// Starts a server on free ports with these variables, and no keys of a bucket but theirs.
    pub(crate) fn serve_with(&self, variables: &[(&str, &str)]) -> Server {
        let mut command = self.serving("127.0.0.1:0");
        command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
        command.envs(variables.iter().copied());
        started(command)
    }

    /// Writes the configuration.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.path("config").join("yore");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// Starts a server that speaks plain HTTP at an address.
    pub(crate) fn serve_at(&self, address: &str) -> Server {
        started(self.serving(address))
    }

    fn serving(&self, address: &str) -> Command {
        self.command(&["serve", "--json", "--listen", address, "--tls-listen", "127.0.0.1:0"])
    }
}

/// Waits until a server is ready.
pub(crate) fn started(mut command: Command) -> Server {
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready = serde_json::from_str(&line).unwrap_or_else(|error| {
        let mut err = String::new();
        if let Some(mut log) = child.stderr.take() {
            std::io::Read::read_to_string(&mut log, &mut err).unwrap();
        }
        panic!("{error}: {line:?} {err}")
    });
    // A server that logs into a full pipe would wait for a reader.
    if let Some(mut log) = child.stderr.take() {
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    }
    Server { child, ready }
}

fn text_in(found: &Value) -> &str {
    let memory = found.get("memory").or_else(|| found.get("Memory")).unwrap_or(found);
    memory["version"]["body"]["text"].as_str().unwrap_or_else(|| panic!("{found}"))
}

#[track_caller]
pub(crate) fn check(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code, code, "{ended:?}");
    for word in words {
        assert!(ended.err.contains(word), "no {word:?} in {ended:?}");
    }
    assert!(!ended.err.contains("panicked"), "{ended:?}");
}

pub(crate) fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A running server; it is killed when a test forgets to stop it.
pub(crate) struct Server {
    child: Child,
    /// What it said when it was ready.
    pub(crate) ready: Value,
}

impl Server {
    pub(crate) fn url(&self) -> String {
        self.ready["http"].as_str().unwrap().to_owned()
    }

    /// Kills it, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and returns its exit code.
    pub(crate) fn stop(&mut self) -> i32 {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < deadline, "the server did not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// Asks a server something over plain HTTP; returns the status and the body.
pub(crate) fn ask(url: &str, token: &str, request: &str, body: &str) -> (u16, String) {
    let (head, body) = exchange(url, token, request, "", body);
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

/// The same with more lines of the head; returns the answer's head and body.
pub(crate) fn exchange(
    url: &str,
    token: &str,
    request: &str,
    more: &str,
    body: &str,
) -> (String, String) {
    use std::io::Read;
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    // A machine that many share may take its time; a server that hangs is noticed all the same.
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let bearer = match token {
        "" => String::new(),
        token => format!("authorization: Bearer {token}\r\n"),
    };
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\n{bearer}{more}content-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Posts JSON to a server; returns the JSON it answers.
pub(crate) fn post(url: &str, token: &str, path: &str, body: &str) -> Value {
    let (_, body) = ask(url, token, &format!("POST {path}"), body);
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
}

/// All files below a directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}
