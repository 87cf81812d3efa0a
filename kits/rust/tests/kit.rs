use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anykind_testkit::{Error, Fault, Server};
use serde_json::{json, Value};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// Returns the Status of an error with this code.
fn rejected(result: Result<Value, Error>, want: u16) -> Value {
    match result {
        Err(Error::Api { code, status }) if code == want => status,
        other => panic!("{other:?}, want {want}"),
    }
}

#[test]
fn definitions_are_served() {
    let file = env::temp_dir().join(format!("crd-{}.json", std::process::id()));
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    fs::write(&file, crd.to_string()).unwrap();
    let server = Server::options().crds(&file).start().unwrap();
    fs::remove_file(&file).unwrap();
    let widget = |name: &str, size: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}});
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(
        server
            .request("POST", widgets, Some(&widget("a", json!(1))))
            .unwrap()["spec"],
        json!({"size": 1})
    );
    let status = rejected(
        server.request("POST", widgets, Some(&widget("b", json!("large")))),
        422,
    );
    assert_eq!(status["reason"], "Invalid");
}

#[test]
fn forks_and_faults() {
    let server = Server::start().unwrap();
    let fork = server.fork().unwrap();
    let other = server.fork().unwrap();
    let kubeconfig = fs::read_to_string(fork.kubeconfig()).unwrap();
    assert!(kubeconfig.contains(fork.url()) && fork.url() != server.url());

    let fault = fork
        .inject(
            &Fault::status_with(409, "Conflict", "not now")
                .verbs(["create"])
                .resources(["configmaps"]),
        )
        .unwrap();
    let status = rejected(
        fork.request("POST", CONFIG_MAPS, Some(&config_map("a"))),
        409,
    );
    assert_eq!(status["message"], "not now");
    fork.request("POST", CONFIG_MAPS, Some(&config_map("a")))
        .unwrap();
    assert_eq!(fault.count().unwrap(), 1);
    fault.remove().unwrap();
    assert!(fork.faults().unwrap().is_empty());
    for apart in [&*server, &*other] {
        rejected(apart.request("GET", &format!("{CONFIG_MAPS}/a"), None), 404);
    }

    for (name, fault, exists) in [
        ("hung-up", Fault::hang_up(), false),
        ("lost", Fault::lose_answer(), true),
    ] {
        fork.inject(&fault.verbs(["create"]).resources(["configmaps"]))
            .unwrap();
        let lost = fork.request("POST", CONFIG_MAPS, Some(&config_map(name)));
        assert!(matches!(lost, Err(Error::Connection(_))), "{lost:?}");
        assert_eq!(
            fork.request("GET", &format!("{CONFIG_MAPS}/{name}"), None)
                .is_ok(),
            exists
        );
    }
    fork.inject(&Fault::delay(Duration::from_millis(200)).resources(["secrets"]))
        .unwrap();
    let began = Instant::now();
    fork.request("GET", "/api/v1/secrets", None).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(200));
    fork.inject(&Fault::too_many_requests(1).resources(["secrets"]).always())
        .unwrap();
    rejected(fork.request("GET", "/api/v1/secrets", None), 429);
    fork.clear_faults().unwrap();
    fork.request("GET", "/api/v1/secrets", None).unwrap();
    match fork.inject(&Fault::hang_up().verbs(["POST"])) {
        Err(Error::Api { code: 422, status }) => {
            assert_eq!(status["details"]["causes"][0]["field"], "verbs[0]")
        }
        other => panic!("{other:?}"),
    }

    fork.stop().unwrap();
    drop(other);
    assert_eq!(
        server.request("GET", "/forks", None).unwrap()["items"],
        json!([])
    );
}

#[test]
fn stop_removes_the_files() {
    let server = Server::start().unwrap();
    let directory = server.log().parent().unwrap().to_path_buf();
    let url = server.url().to_string();
    server.stop();
    assert!(!directory.exists());
    assert!(!listens(&url));
}

#[test]
fn failed_starts_have_the_reason() {
    let err = Server::options().arg("--no-such-flag").start().unwrap_err();
    assert!(
        err.to_string().contains("unknown flag: --no-such-flag"),
        "{err}"
    );
    let err = Server::options()
        .program("/no-such-program")
        .start()
        .unwrap_err();
    assert!(err.to_string().contains("install anykind"), "{err}");
}

/// The process that `a_killed_process_ends_its_server` kills.
#[test]
#[ignore]
fn wait_to_be_killed() {
    let server = Server::start().unwrap();
    println!("started {} {}", server.url(), server.log().display());
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_process_ends_its_server() {
    let mut test = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "wait_to_be_killed", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let line = lines
        .into_iter()
        .find(|line| line.contains("started "))
        .unwrap();
    let words: Vec<_> = line.split_once("started ").unwrap().1.split(' ').collect();
    test.kill().unwrap();
    test.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while listens(words[0]) {
        assert!(Instant::now() < deadline, "the server still listens");
    }
    fs::remove_dir_all(std::path::Path::new(words[1]).parent().unwrap()).unwrap();
}

fn listens(url: &str) -> bool {
    TcpStream::connect(url.trim_start_matches("https://")).is_ok()
}
