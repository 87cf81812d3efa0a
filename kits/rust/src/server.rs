use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, BufRead, BufReader};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, mem};

use serde_json::json;

use crate::{Endpoint, Error};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    crds: Option<PathBuf>,
    program: Option<PathBuf>,
    args: Vec<String>,
}

impl Options {
    /// File or folder with CustomResourceDefinitions.
    pub fn crds(mut self, path: impl Into<PathBuf>) -> Self {
        self.crds = Some(path.into());
        self
    }

    /// Path of the program; the default is the environment variable ANYKIND, then anykind in PATH.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// A further flag of anykind serve.
    pub fn arg(mut self, flag: impl Into<String>) -> Self {
        self.args.push(flag.into());
        self
    }

    /// Start the server, and return when it is ready.
    pub fn start(self) -> Result<Server, Error> {
        let directory = Directory::new()?;
        let token = random();
        let tokens = directory.0.join("tokens.csv");
        fs::write(
            &tokens,
            format!("{token},anykind-kit,anykind-kit,system:masters\n"),
        )?;
        let log = directory.0.join("server.log");
        let program = self
            .program
            .or_else(|| env::var_os("ANYKIND").map(PathBuf::from))
            .unwrap_or_else(|| "anykind".into());
        let mut command = Command::new(&program);
        command.args([
            "serve",
            "--in-memory",
            "--secure-port",
            "0",
            "--fault-injection",
            "--stop-with-stdin",
            "--data-dir",
        ]);
        command
            .arg(&directory.0)
            .arg("--token-auth-file")
            .arg(&tokens);
        if let Some(crds) = &self.crds {
            command.arg("--crds").arg(crds);
        }
        command
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?);
        let child = command.spawn().map_err(|err| {
            Error::Start(format!(
                "{}: {err}: install anykind, or set the environment variable ANYKIND",
                program.display()
            ))
        })?;
        let mut process = Process(child);
        let (url, stdout) = process.ready(&log)?;
        let config = fs::read_to_string(directory.0.join("admin.kubeconfig"))?;
        let ca_data = after(&config, "certificate-authority-data: ")
            .unwrap_or_default()
            .to_string();
        let ca = fs::read_to_string(directory.0.join("pki/ca.crt"))?;
        let endpoint = Endpoint::new(url, ca, &ca_data, token, &directory.0, "anykind")?;
        Ok(Server {
            endpoint,
            ca_data,
            forks: AtomicU64::new(0),
            log,
            _stdout: stdout,
            _process: process,
            _directory: directory,
        })
    }
}

/// A running server. It ends when it is dropped, and with this process.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    ca_data: String,
    forks: AtomicU64,
    log: PathBuf,
    // Fields are dropped in this order: the process ends before its files are removed.
    _process: Process,
    _stdout: BufReader<ChildStdout>,
    _directory: Directory,
}

impl Server {
    /// Start a server with the default settings.
    pub fn start() -> Result<Self, Error> {
        Options::default().start()
    }

    pub fn options() -> Options {
        Options::default()
    }

    /// Path of the log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Copy the server in a millisecond. Neither sees the changes of the other.
    pub fn fork(&self) -> Result<Fork, Error> {
        let name = format!("test-{}", self.forks.fetch_add(1, Ordering::Relaxed) + 1);
        let made = self.request("POST", "/forks", Some(&json!({"name": name})))?;
        let url = format!(
            "{}{}",
            self.url(),
            made["path"].as_str().unwrap_or_default()
        );
        let endpoint = Endpoint::new(
            url,
            self.ca().into(),
            &self.ca_data,
            self.token().into(),
            &self._directory.0,
            &name,
        )?;
        Ok(Fork {
            endpoint,
            name,
            server: self.endpoint.clone(),
        })
    }

    /// Stop the server, and remove its files, as drop does.
    pub fn stop(self) {}
}

impl Deref for Server {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// A copy of a server. It is deleted when it is dropped.
#[derive(Debug)]
pub struct Fork {
    endpoint: Endpoint,
    name: String,
    server: Endpoint,
}

impl Fork {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Delete the fork with its objects. Drop ignores an error.
    pub fn stop(self) -> Result<(), Error> {
        let result = self.delete();
        mem::forget(self);
        result
    }

    fn delete(&self) -> Result<(), Error> {
        self.server
            .request("DELETE", &format!("/forks/{}", self.name), None)?;
        Ok(fs::remove_file(self.kubeconfig())?)
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        let _ = self.delete();
    }
}

impl Deref for Fork {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// A process that ends when it is dropped.
#[derive(Debug)]
struct Process(Child);

impl Process {
    /// Wait for the line with the URL, which the server prints when it is ready.
    fn ready(&mut self, log: &Path) -> Result<(String, BufReader<ChildStdout>), Error> {
        let mut stdout = BufReader::new(self.0.stdout.take().expect("the output is a pipe"));
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = stdout.read_line(&mut line).map(|_| (line, stdout));
            let _ = send.send(read);
        });
        let (line, stdout) = receive
            .recv_timeout(START_TIMEOUT)
            .map_err(|_| Error::Start(format!("it is not ready after {START_TIMEOUT:?}")))??;
        match after(&line, "listens on ") {
            Some(url) => Ok((url.to_string(), stdout)),
            None => {
                self.end();
                Err(Error::Start(line + &fs::read_to_string(log)?))
            }
        }
    }

    /// Close the standard input, and wait. The server ends with its input.
    fn end(&mut self) {
        drop(self.0.stdin.take());
        let deadline = Instant::now() + STOP_TIMEOUT;
        while let Ok(None) = self.0.try_wait() {
            if Instant::now() >= deadline {
                let _ = self.0.kill();
                let _ = self.0.wait();
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// A directory that is removed when it is dropped.
#[derive(Debug)]
struct Directory(PathBuf);

impl Directory {
    fn new() -> io::Result<Self> {
        let path = env::temp_dir().join(format!("anykind-{}", random()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the word after a text.
fn after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_whitespace().next()
}

/// Returns 128 random bits. The keys of a RandomState come from the operating system.
fn random() -> String {
    let keys = RandomState::new();
    format!("{:016x}{:016x}", keys.hash_one(0), keys.hash_one(1))
}
