//! Themes forward-http and forward-security: what goes out, where it may go, and what a target can do to us.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::case::{hmac_hex, text, wire};
use super::owed::{SECRET, delivery, post, stage, wait_for};
use crate::harness::{Admin, Target};

fn push_to(target: &Target) -> String {
    format!(
        "[destinations.app]\npush = \"{}/x\"\nallow_private = true\nretry = [\"0s\", \"1h\", \"1h\"]\n",
        target.url()
    )
}

fn tried(delivery: &Value) -> bool {
    delivery["attempts"] == 1 && delivery["state"] == "waiting"
}

#[test]
fn b187_a_redirect_is_not_followed() {
    let inner = Target::answering(200, b"the inside");
    for status in [302, 307] {
        for place in [inner.url(), "http://169.254.169.254/".to_owned()] {
            let target = Target::answering(200, b"");
            let answer = format!("HTTP/1.1 {status} X\r\nlocation: {place}\r\ncontent-length: 0\r\n\r\n");
            target.answer_raw(answer.as_bytes());
            let stage = stage(&push_to(&target));
            let server = stage.serve();
            post(&server, "one", b"x");
            let failed = wait_for(&mut server.admin(), "one", "app", tried);
            let error = text(&failed["log"][0]["error"]);
            assert!(error.contains(&format!("redirect not followed ({status})")), "{failed}");
            assert_eq!(target.got().len(), 1);
        }
    }
    assert!(inner.got().is_empty(), "{:?}", inner.got());
}

#[test]
fn b189_no_spelling_of_an_inner_address_is_taken() {
    let hosts = [
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fd00::1]",
        "[fe80::1%eth0]",
        "[fe80::1]",
        "0.0.0.0",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "100.64.0.1",
        "192.0.0.1",
        "localhost",
        "localhost.",
        "ip6-localhost",
        "LOCALHOST",
        "app.localhost",
    ];
    for host in hosts {
        let stage = stage("");
        let url = format!("http://{host}/hook");
        let refused = stage.run(&["destinations", "add", "app", "--push", &url]);
        assert_eq!(refused.exit_code, Some(5), "{host}: {refused:?}");
        assert!(
            refused.stderr.contains("nothing was changed") && refused.stderr.contains("  fix "),
            "{refused:?}"
        );
        let table = stage.toml(&format!("[destinations.app]\npush = \"{url}\"\n"));
        assert_eq!(table.refused_start().exit_code, Some(5), "{host}");
    }
}

#[test]
fn b190_who_may_look_may_send_nothing_anywhere() {
    let target = Target::answering(200, b"");
    let stage = stage(&push_to(&target));
    let server = stage.serve();
    post(&server, "one", b"x");
    let mut admin = server.admin();
    wait_for(&mut admin, "one", "app", |delivery| delivery["state"] == "done");
    let token = stage.run(&["token", "create", "--role", "read"]);
    let mut viewer = Admin::new(server.admin_address(), token.stdout.trim());
    let asked = json!({"to": "app"});
    assert_eq!(viewer.post("/v1/events/gen:one/redeliver", &asked).status, 403);
    assert_eq!(viewer.post("/v1/redeliveries", &asked).status, 403);
    // Nobody, not even the owner, names an address in a request: where a push goes is configuration.
    for field in ["url", "push", "target"] {
        let asked = json!({"to": "app", field: "http://10.0.0.1/"});
        assert_eq!(admin.post("/v1/events/gen:one/redeliver", &asked).status, 400, "{field}");
    }
    assert_eq!(target.got().len(), 1);
}

#[test]
fn b193_the_target_is_named_by_its_own_host() {
    let target = Target::answering(200, b"");
    let stage = stage(&push_to(&target));
    let server = stage.serve();
    // `wire` writes `Host: hook.example`.
    post(&server, "one", b"x");
    let pushed = target.wait_for(1).remove(0);
    assert_eq!(pushed.line, "POST /x HTTP/1.1");
    assert_eq!(pushed.header("host"), target.url().strip_prefix("http://"), "{pushed:?}");
    let event = server.admin().get("/v1/events/gen:one").json();
    let headers = event["headers"].as_array().expect("the header fields").clone();
    assert!(
        headers.contains(&json!({"name": "host", "value": "hook.example"}))
            || headers.contains(&json!({"name": "Host", "value": "hook.example"})),
        "{headers:?}"
    );
}

#[test]
fn b194_an_answer_of_any_size_is_counted_and_cut() {
    let large = vec![b'x'; 50 << 20];
    let target = Target::answering(200, b"");
    let stage = stage(&push_to(&target));
    let server = stage.serve();
    let mut admin = server.admin();

    target.answer(200, &large);
    post(&server, "long", b"x");
    let done = wait_for(&mut admin, "long", "app", |delivery| delivery["state"] == "done");
    let kept = text(&done["log"][0]["excerpt"]).len();
    assert!((1..=16 << 10).contains(&kept), "{kept} bytes are kept");

    // No length: it goes on for as long as somebody reads.
    target.answer_raw(&[b"HTTP/1.1 500 X\r\n\r\n", large.as_slice()].concat());
    post(&server, "endless", b"x");
    let failed = wait_for(&mut admin, "endless", "app", tried);
    assert_eq!(failed["log"][0]["status"], 500, "{}", failed["log"][0]["error"]);

    let fields: String = (0..5_000).map(|number| format!("x-{number}: {}\r\n", "y".repeat(1_000))).collect();
    target.answer_raw(format!("HTTP/1.1 200 X\r\n{fields}content-length: 0\r\n\r\n").as_bytes());
    post(&server, "heads", b"x");
    let failed = wait_for(&mut admin, "heads", "app", tried);
    assert_eq!(failed["log"][0]["rule"], "answer-invalid", "{}", failed["log"][0]["error"]);
}

/// A target with TLS, as its own process: it prints its port, and answers every request with 200.
const TLS_TARGET: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200); self.send_header("content-length", "0"); self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A CA and three certificates of it, made in June 2025: right, expired by the time of the cases, and of another host.
const CERTIFICATES: &str = r#"
exec 2>/dev/null
june() { faketime -m -f '@2025-06-01 00:00:00' openssl "$@"; }
key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
june req -x509 $key -keyout ca.key -out ca.pem -subj /CN=test-ca -days 3650
make() {
    june req $key -keyout $1.key -out $1.csr -subj /CN=$1
    printf 'subjectAltName=DNS:%s\nextendedKeyUsage=serverAuth\n' $2 > $1.ext
    june x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $1.crt -extfile $1.ext -days $3
    cat $1.key $1.crt > $1.pem
}
make right localhost 3650
make expired localhost 30
make other elsewhere.example 3650
"#;

struct TlsTarget {
    child: Child,
    port: String,
}

impl TlsTarget {
    fn start(certificate: &std::path::Path) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", TLS_TARGET]).arg(certificate);
        // A refused handshake is what is tested; its traces are noise.
        command.stdout(Stdio::piped()).stdin(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("python3 starts");
        let mut port = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut port).expect("a line");
        Self { child, port: port.trim().to_owned() }
    }
}

impl Drop for TlsTarget {
    fn drop(&mut self) {
        self.child.kill().expect("an own child can be killed");
        self.child.wait().expect("an own child can be awaited");
    }
}

#[test]
fn b196_a_private_ca_is_named_and_a_tls_failure_is_an_attempt_that_says_why() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = Command::new("sh").args(["-euc", CERTIFICATES]).current_dir(folder.path()).status();
    assert!(made.expect("a shell").success(), "openssl makes certificates");
    assert!(fs::exists(folder.path().join("other.pem")).expect("a folder"));
    let names = ["right", "expired", "other"];
    let targets = names.map(|name| TlsTarget::start(&folder.path().join(format!("{name}.pem"))));
    let ca = folder.path().join("ca.pem");
    let keys = "allow_private = true\nretry = [\"0s\", \"1h\", \"1h\"]\n";
    let table = |(name, target): (&&str, &TlsTarget)| {
        let url = format!("https://localhost:{}/x", target.port);
        format!("[destinations.{name}]\npush = \"{url}\"\nca_file = \"{}\"\n{keys}", ca.display())
    };
    let mut tables: String = names.iter().zip(&targets).map(table).collect();
    tables += &format!("[destinations.unknown]\npush = \"https://localhost:{}/x\"\n{keys}", targets[0].port);
    let stage = stage(&tables);
    let server = stage.serve();
    let signature = hmac_hex(SECRET, b"x");
    let headers = [("X-Event-Id", "one"), ("X-Signature", signature.as_str())];
    let reply = server.connect().exchange(&wire("POST", "/in/gen", &headers, b"x")).expect("an answer");
    assert_eq!(reply.status, 202, "{reply}");
    let mut admin = server.admin();
    wait_for(&mut admin, "one", "right", |delivery| delivery["state"] == "done");
    for (name, reason) in [("expired", "expired"), ("other", "localhost"), ("unknown", "not trusted")] {
        wait_for(&mut admin, "one", name, tried);
        let failed = delivery(&mut admin, "one", name);
        let attempt = &failed["log"][0];
        assert_eq!(attempt["rule"], "tls-failed", "{name}: {attempt}");
        assert!(text(&attempt["error"]).contains(reason), "{name}: {attempt}");
    }
}
