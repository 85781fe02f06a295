//! The contract of a signed-webhook receiver, checked from outside by its own script.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use crate::harness::{KeptAddress, Project, SECRET, SOURCE, Server, StoreKind};

#[test]
fn the_receiver_follows_the_contract_on_sqlite() {
    check_contract(StoreKind::Sqlite);
}

#[test]
fn the_receiver_follows_the_contract_on_files() {
    check_contract(StoreKind::Files);
}

fn check_contract(store: StoreKind) {
    // Clients that stall are cut as they are where nothing is configured.
    let mut project = Project::new().on(store).limit("header_time", "\"5s\"");
    // The script knows one address: a restart must come back to it.
    let kept = KeptAddress::new();
    let address = kept.address();
    project.listen_at(&address);
    let server = project.serve();

    let doorbell = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut script = conformance(&address, &restart_command(&doorbell));
    let restarter = restart_on_request(doorbell, project, server);

    let output = BufReader::new(script.stdout.take().expect("stdout is a pipe"));
    let lines: Vec<String> = output.lines().map(|line| line.expect("the script prints text")).collect();
    let status = script.wait().expect("the script can be awaited");
    ring("stop", &restarter.address);
    let restarts = restarter.thread.join().expect("no restart failed");

    println!("{}", lines.join("\n"));
    let verdict = lines.last().expect("the script prints a verdict");
    assert!(status.success() && verdict.ends_with(" 0 failed"), "{verdict}\n{}", failures(&lines));
    assert_eq!(restarts, 2, "the rule about restarts must have killed the server twice");
}

fn failures(lines: &[String]) -> String {
    lines.iter().filter(|line| line.contains("FAIL")).cloned().collect::<Vec<_>>().join("\n")
}

fn conformance(address: &str, restart: &str) -> Child {
    let mut script = Command::new("python3");
    script.arg(beside("conformance.py")).arg(format!("http://{address}"));
    script.args(["--secret", SECRET, "--path", "/in/{source}", "--source", SOURCE, "--dups", "reject"]);
    for allowed in ["R1=405", "R17=413", "R17b=413", "R19=413"] {
        script.args(["--allow", allowed]);
    }
    script.args(["--restart-cmd", restart]).stdout(Stdio::piped());
    script.spawn().expect("python3 starts; if it is missing, run `cargo xtask setup`")
}

fn restart_command(doorbell: &TcpListener) -> String {
    let port = doorbell.local_addr().expect("a bound socket has an address").port();
    format!("python3 '{}' {port}", beside("restart.py").display())
}

fn beside(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(file)
}

struct Restarter {
    address: String,
    /// Ends with the number of restarts.
    thread: JoinHandle<u32>,
}

/// Kills and restarts the server for every connection that asks for it, until one says `stop`.
fn restart_on_request(doorbell: TcpListener, project: Project, server: Server) -> Restarter {
    let address = doorbell.local_addr().expect("a bound socket has an address").to_string();
    let thread = std::thread::spawn(move || {
        let mut server = server;
        for restarts in 0.. {
            let (mut caller, _) = doorbell.accept().expect("a connection");
            let mut request = String::new();
            BufReader::new(&caller).read_line(&mut request).expect("a request");
            if request == "stop\n" {
                return restarts;
            }
            server.kill9();
            server = project.serve();
            caller.write_all(b"ready\n").expect("the script still waits");
        }
        unreachable!("the script restarts a few times only")
    });
    Restarter { address, thread }
}

fn ring(word: &str, address: &str) {
    let mut doorbell = TcpStream::connect(address).expect("the restarting thread listens");
    writeln!(doorbell, "{word}").expect("the restarting thread reads");
}
