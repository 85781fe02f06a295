//! A subscription of Amazon SNS from end to end: signed, and confirmed with a request of the server's own to Amazon's
//! host and to no other. The test runs itself again in a network of its own, in which Amazon's names lead to a host of
//! its own; what that host presents is trusted through `SSL_CERT_FILE`, as any other program would be told.

use std::cell::RefCell;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cases::stage::Stage;
use crate::harness::{PATIENCE, Request, Server, wait_until};

/// Set in the run inside.
const INSIDE: &str = "HOOKSTEAD_TEST_INSIDE";

/// An address that nobody may take for a private one.
const ADDRESS: &str = "93.184.215.14";

/// Amazon's host, and one beside it that has a certificate just as good.
const PINNED: &str = "sns.eu-west-1.amazonaws.com";
const OTHER: &str = "evil.eu-west-1.amazonaws.com";

const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:orders";

#[test]
fn a_subscription_is_confirmed_at_the_pinned_host_alone() {
    if env::var_os(INSIDE).is_some() {
        return confirmed_at_the_pinned_host_alone();
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let hosts = folder.path().join("hosts");
    let names = format!("127.0.0.1 localhost\n{ADDRESS} {PINNED} {OTHER}\n");
    fs::write(&hosts, names).expect("a file can be written");
    // Who may not make namespaces as he is may perhaps as root of one for users.
    let ran = inside(&["-n", "-m"], &hosts).or_else(|_| inside(&["-r", "-n", "-m"], &hosts));
    assert_eq!(ran, Ok(()), "`unshare` with a network needs root, or namespaces for users");
}

/// Runs the test in namespaces of its own. What it said, if it failed.
fn inside(namespaces: &[&str], hosts: &Path) -> Result<(), String> {
    let script = format!(
        "ip link set lo up && ip addr add {ADDRESS}/32 dev lo && mount --bind \"$0\" /etc/hosts && exec \"$@\""
    );
    let output = Command::new("unshare")
        .args(namespaces)
        .args(["sh", "-c", &script])
        .arg(hosts)
        .arg(env::current_exe().expect("this program has a path"))
        .args([
            "--exact",
            "subscription::a_subscription_is_confirmed_at_the_pinned_host_alone",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .expect("unshare starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let ran = output.status.success() && said.contains("1 passed");
    if ran { Ok(()) } else { Err(said) }
}

fn confirmed_at_the_pinned_host_alone() {
    let amazon = Amazon::start();
    let stage = Stage::at(now())
        .variable("SSL_CERT_FILE", &certs("ca.pem").to_string_lossy())
        .toml(&format!("[sources.aws-sns]\nconf = {{ topic_arn = {TOPIC:?} }}\n"));
    let server = stage.serve();

    // The first one waits for the certificate that it is signed with, as Amazon's retry does.
    let subscription = amazon.subscription(PINNED, TOPIC, "abc");
    let mut status = 0;
    let mut confirmed = || {
        status = post(&server, &subscription);
        assert!([200, 503].contains(&status), "{status}");
        status == 200
    };
    wait_until(&mut confirmed, || "the subscription is answered".to_owned());
    amazon.expect(PINNED, "/signer.pem");
    amazon.expect(PINNED, "/?Action=ConfirmSubscription&Token=abc");

    for (host, topic, expected) in
        [(OTHER, TOPIC, 202), (PINNED, "arn:aws:sns:eu-west-1:210987654321:orders", 401)]
    {
        assert_eq!(post(&server, &amazon.subscription(host, topic, "no")), expected, "{host}, {topic}");
    }
    let mut forged = amazon.subscription(PINNED, TOPIC, "no");
    forged["Token"] = "another".into();
    assert_eq!(post(&server, &forged), 401, "what the signature is not for");
    // One that may be confirmed comes, and its request is the next: none was made for the others.
    assert_eq!(post(&server, &amazon.subscription(PINNED, TOPIC, "def")), 200);
    amazon.expect(PINNED, "/?Action=ConfirmSubscription&Token=def");
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    i64::try_from(since.as_secs()).expect("a time")
}

fn certs(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../hookstead/tests/it/sinks/certs", file].iter().collect()
}

fn post(server: &Server, message: &Value) -> u16 {
    let request = Request::new("POST", "/in/aws-sns", "localhost");
    let request = request.with("Content-Type", "text/plain; charset=UTF-8");
    let mut connection = server.connect();
    let request = request.with_body(message.to_string().as_bytes());
    connection.send(&request.bytes()).expect("it can be sent");
    connection.receive().expect("an answer").expect("an answer before the end").status
}

/// Amazon's host, and the key that it signs with.
struct Amazon {
    host: Child,
    asked: Receiver<String>,
    /// What it said last that was expected.
    last: RefCell<String>,
    folder: TempDir,
}

impl Amazon {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (key, signer) = (folder.path().join("signer.key"), folder.path().join("signer.pem"));
        openssl(
            &["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=signer"],
            |made| made.arg("-keyout").arg(&key).arg("-out").arg(&signer),
        );
        let mut host = Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/subscription/host.py"))
            .args([ADDRESS.as_ref(), certs("published.pem").as_os_str(), certs("published.key").as_os_str()])
            .arg(&signer)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let stdout = BufReader::new(host.stdout.take().expect("stdout is a pipe"));
        let (say, asked) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        let amazon = Self { host, asked, last: RefCell::default(), folder };
        amazon.expect_line("ready");
        amazon
    }

    fn expect(&self, host: &str, target: &str) {
        self.expect_line(&format!("{host} {target}"));
    }

    /// The next thing that the host says. It may have been asked the same twice: Amazon sends again what was not answered
    /// in time, and so does the test.
    fn expect_line(&self, expected: &str) {
        let mut last = self.last.borrow_mut();
        loop {
            match self.asked.recv_timeout(PATIENCE) {
                Ok(line) if line != expected && line == *last => {}
                line => break assert_eq!(line.as_deref(), Ok(expected), "after {last:?}"),
            }
        }
        expected.clone_into(&mut last);
    }

    /// A message that asks for a subscription to be confirmed at a host, and is signed.
    fn subscription(&self, host: &str, topic: &str, token: &str) -> Value {
        let confirm = format!("https://{host}/?Action=ConfirmSubscription&Token={token}");
        let signed = [
            ("Message", "You have chosen to subscribe to the topic."),
            ("MessageId", "165545c9-2a5c-472c-8df2-7ff2be2b3b1b"),
            ("SubscribeURL", &confirm),
            ("Timestamp", "2026-01-01T00:00:00.000Z"),
            ("Token", token),
            ("TopicArn", topic),
            ("Type", "SubscriptionConfirmation"),
        ];
        let content: String = signed.iter().map(|(name, value)| format!("{name}\n{value}\n")).collect();
        let mut message: Value =
            signed.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        message["SignatureVersion"] = "2".into();
        message["SigningCertURL"] = format!("https://{PINNED}/signer.pem").into();
        message["Signature"] = STANDARD.encode(self.sign(&content)).into();
        message
    }

    fn sign(&self, content: &str) -> Vec<u8> {
        let file = self.folder.path().join("content");
        fs::File::create(&file)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .expect("a file can be written");
        let key = self.folder.path().join("signer.key");
        openssl(&["dgst", "-sha256", "-sign"], |sign| sign.arg(key).arg(file))
    }
}

impl Drop for Amazon {
    fn drop(&mut self) {
        self.host.kill().expect("an own child can be killed");
        self.host.wait().expect("an own child can be awaited");
    }
}

fn openssl(arguments: &[&str], more: impl FnOnce(&mut Command) -> &mut Command) -> Vec<u8> {
    let mut openssl = Command::new("openssl");
    let output = more(openssl.args(arguments)).output().expect("openssl starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
