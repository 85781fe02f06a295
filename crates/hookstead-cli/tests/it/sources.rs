//! `hookstead sources`: the configuration file is changed with care, and what is no signing secret is refused.

mod faults;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::harness::send_signal;
use crate::terminal::{BINARY, Terminal};

const CONFIG: &str = "# ours\n[sources.github] # the code\nsecret = { env = \"OLD\" }\n";

fn terminal() -> Terminal {
    let mut terminal = Terminal::new();
    terminal.write("hookstead.toml", CONFIG);
    terminal.set("OLD", "the-old-secret-0123456789");
    terminal.set("NEW", "the-new-secret-0123456789");
    terminal.set("API_KEY", "sk_live_0123456789abcdef");
    terminal
}

fn file(terminal: &Terminal) -> String {
    fs::read_to_string(terminal.path("hookstead.toml")).expect("the configuration")
}

#[test]
fn a_source_is_added_to_the_file_and_to_the_running_server() {
    let terminal = terminal();
    let server = terminal.serve();
    let add = ["sources", "add", "shop", "--provider", "gitea", "--generate", "shop-secret", "--json"];
    let added = terminal.ok(&add).json();
    assert_eq!((&added["provider"], &added["reloaded"]), (&json!("gitea"), &json!(true)));
    assert!(file(&terminal).starts_with(CONFIG), "{}", file(&terminal));
    terminal.ok(&["send", "gitea", "--source", "shop"]);
    assert_eq!(server.admin().events().len(), 1);

    let listed = terminal.ok(&["sources", "list", "--json"]).json();
    assert_eq!(listed[0]["secrets"], json!(["{ env = \"OLD\" }"]));
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    terminal.ends(&add, 5);
}

#[test]
fn what_a_provider_needs_beside_the_secret_is_asked_for_and_written() {
    let terminal = terminal();
    let ran = terminal.ends(&["sources", "add", "aws-sns"], 5);
    assert!(ran.stderr.contains("`topic_arn`") && ran.stderr.contains("nothing was changed"), "{ran:?}");
    assert!(ran.stderr.contains("hookstead sources add aws-sns .. --conf topic_arn=VALUE"), "{ran:?}");
    terminal.ends(&["sources", "add", "aws-sns", "--conf", "topic_arn"], 2);
    // One that the provider does not know, beside the one that it needs.
    let unknown = ["sources", "add", "aws-sns", "--conf", "topic_arn=any", "--conf", "topic=x"];
    let ran = terminal.ends(&unknown, 5);
    assert!(ran.stderr.contains("topic") && file(&terminal) == CONFIG, "{ran:?}");
    let twice = ["sources", "add", "aws-sns", "--conf", "topic_arn=any", "--conf", "topic_arn=x"];
    let ran = terminal.ends(&twice, 5);
    assert!(
        ran.stderr.contains("error[conf-twice]: `topic_arn` is given twice; nothing was changed"),
        "{ran:?}"
    );

    terminal.ok(&["sources", "add", "aws-sns", "--conf", "topic_arn=any"]);
    assert!(file(&terminal).contains("conf = { topic_arn = \"any\" }"), "{}", file(&terminal));
    terminal.ok(&["config", "check"]);
}

#[test]
fn what_is_no_signing_secret_is_refused_and_nothing_is_changed() {
    let terminal = terminal();
    let ran = terminal.ends(&["sources", "add", "stripe", "--env", "API_KEY"], 5);
    assert!(ran.stderr.contains("a Stripe API key") && ran.stderr.contains("nothing was changed"), "{ran:?}");
    terminal.ends(&["sources", "add", "stripe", "--env", "NOT_SET"], 5);
    let ran = terminal.ends(&["sources", "add", "stripe"], 2);
    assert!(ran.stderr.contains("no terminal to ask at") && ran.stderr.contains("--secret-stdin"), "{ran:?}");
    assert!(ran.stderr.contains("Workbench") && !ran.stderr.contains("--secret-generate"), "{ran:?}");
    terminal.ends(&["sources", "add", "strpe", "--env", "NEW"], 3);
    terminal.ends(&["sources", "rotate", "github", "--env", "API_KEY"], 5);
    // A name that cannot be one, after its secret was made: the file goes as well.
    terminal.ends(&["sources", "add", "a b", "--provider", "gitea", "--generate", "made"], 5);
    assert!(!terminal.path("made").exists());
    // Where the provider makes it, one that is made here could be entered nowhere.
    let ran = terminal.ends(&["sources", "add", "stripe", "--generate", "made"], 5);
    assert!(
        ran.stderr.contains("Stripe makes the secret itself") && ran.stderr.contains("Workbench"),
        "{ran:?}"
    );
    assert!(!terminal.path("made").exists());
    assert_eq!(file(&terminal), CONFIG);
    assert_eq!(Terminal::new().ends(&["sources", "add", "github"], 5).stdout, "");
}

#[test]
fn a_secret_is_rotated_with_an_overlap() {
    let terminal = terminal();
    terminal.ok(&["sources", "rotate", "github", "--add", "--env", "NEW"]);
    let both =
        CONFIG.replace("secret = { env = \"OLD\" }", "secrets = [{ env = \"NEW\" }, { env = \"OLD\" }]");
    assert_eq!(file(&terminal), both);
    let server = terminal.serve();
    for variable in ["OLD", "NEW"] {
        terminal.ok(&["send", "github", "--secret-env", variable]);
    }
    let rotated = terminal.ok(&["sources", "rotate", "github", "--env", "NEW", "--json"]).json();
    assert_eq!((&rotated["secrets"], &rotated["reloaded"]), (&json!(["{ env = \"NEW\" }"]), &json!(true)));
    assert_eq!(file(&terminal), CONFIG.replace("OLD", "NEW"));
    // The old one is no secret any more.
    terminal.ends(&["send", "github", "--secret-env", "OLD"], 5);
    assert_eq!(server.admin().events().len(), 2);
}

#[test]
fn a_coding_stays_beside_its_secret() {
    let mut terminal = terminal();
    terminal.set("TEXT", "whsec_aG9va3N0ZWFkLWEta2V5LW9mLTMyLWJ5dGVzLi4u");
    terminal.ok(&[
        "sources",
        "add",
        "sw",
        "--provider",
        "standardwebhooks",
        "--env",
        "TEXT",
        "--decode",
        "utf8",
    ]);
    let secrets = || {
        let listed = terminal.ok(&["sources", "list", "--json"]).json();
        let listed =
            listed.as_array().expect("a list").iter().find(|source| source["source"] == "sw").cloned();
        listed.expect("the source")["secrets"].clone()
    };
    let utf8 = "{ env = \"TEXT\", decode = \"utf8\" }";
    assert_eq!(secrets(), json!([utf8]));
    assert!(terminal.ok(&["config", "show"]).stdout.contains(utf8));

    let rotated = ["sources", "rotate", "sw", "--add", "--env", "TEXT", "--decode", "base64", "--json"];
    let base64 = "{ env = \"TEXT\", decode = \"base64\" }";
    assert_eq!(terminal.ok(&rotated).json()["secrets"], json!([base64, utf8]));
    assert_eq!(secrets(), json!([base64, utf8]));
    // Without a word for it, the new secret is read like the first of the old ones.
    terminal.ok(&["sources", "rotate", "sw", "--generate", "made"]);
    let made = terminal.path("made").display().to_string();
    assert_eq!(secrets(), json!([format!("{{ file = {made:?}, decode = \"base64\" }}")]));

    let before = file(&terminal);
    let ran = terminal.ends(&["sources", "rotate", "sw", "--env", "TEXT", "--decode", "hex"], 5);
    assert!(ran.stderr.contains("hex digits"), "{ran:?}");
    let ran = terminal.ends(&["sources", "rotate", "sw", "--env", "TEXT", "--decode", "literal"], 2);
    assert!(ran.stderr.contains("utf8, base64, hex"), "{ran:?}");
    let replaced =
        piped(&terminal, &["sources", "secret", "sw", "--stdin"], "whsec_no*base64*in*it*at*all*0123456789");
    assert_eq!(replaced.status.code(), Some(5));
    piped(&terminal, &["sources", "secret", "sw", "--stdin"], "aG9va3N0ZWFkLWEta2V5LW9mLTMyLWJ5dGVzLi4u");
    assert_eq!(file(&terminal), before);
}

/// What a pasted secret is told from in everything that is printed.
const PASTED: &str = "a-pasted-secret-0123456789";

/// A source whose secret is in a file, beside one whose secret is in a variable.
fn with_secret_file() -> Terminal {
    let mut terminal = terminal();
    terminal.set("FIRST", "the-first-secret-0123456789");
    terminal.set("PASTED", PASTED);
    let config = format!("{CONFIG}[sources.gitea]\nsecret = {{ file = \"gitea-secret\" }}\n");
    terminal.write("hookstead.toml", &config);
    terminal.write("gitea-secret", "the-first-secret-0123456789\n");
    terminal
}

fn secret_file(terminal: &Terminal) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = terminal.path("gitea-secret");
    let mode = fs::metadata(&path).expect("the file of the secret").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its owner reads it");
    fs::read_to_string(&path).expect("the secret")
}

/// Runs a command with this on stdin.
fn piped(terminal: &Terminal, arguments: &[&str], stdin: &str) -> Output {
    let mut command = terminal.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    child.stdin.take().expect("a pipe").write_all(stdin.as_bytes()).expect("it reads stdin");
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_secret_is_replaced_from_stdin_in_its_file_and_in_the_running_server() {
    let terminal = with_secret_file();
    let server = terminal.serve();
    let ran = piped(&terminal, &["sources", "secret", "gitea", "--stdin", "--json"], &format!("{PASTED}\n"));
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert_eq!(secret_file(&terminal), PASTED);
    let told: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!((&told["reloaded"], &told["generated"]), (&json!(true), &json!(false)));
    assert!(!format!("{ran:?}").contains(PASTED), "the secret is not printed");
    terminal.ends(&["send", "gitea", "--secret-env", "FIRST"], 5);
    terminal.ok(&["send", "gitea", "--secret-env", "PASTED"]);

    let made = terminal.ok(&["sources", "secret", "gitea", "--generate", "--json"]);
    let secret = secret_file(&terminal);
    assert!(secret != PASTED && secret.len() >= 32 && !made.stdout.contains(&secret), "{made:?}");
    terminal.ends(&["send", "gitea", "--secret-env", "PASTED"], 5);
    terminal.ok(&["send", "gitea"]);
    assert_eq!(server.admin().events().len(), 2);
}

/// A relative name is read from the folder of the configuration as it is named, by the server and by the verb.
#[test]
fn the_secret_beside_a_link_to_the_configuration_is_the_one_that_is_replaced() {
    let terminal = with_secret_file();
    let real = terminal.path("real");
    fs::create_dir(&real).expect("a new folder");
    let named = terminal.path("hookstead.toml");
    fs::rename(&named, real.join("hookstead.toml")).expect("a file can be moved");
    std::os::unix::fs::symlink(real.join("hookstead.toml"), &named).expect("a new link");
    fs::write(real.join("gitea-secret"), "of somebody else").expect("a new file");
    let server = terminal.serve();
    let ran = piped(&terminal, &["sources", "secret", "gitea", "--stdin"], PASTED);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert_eq!(secret_file(&terminal), PASTED);
    assert_eq!(fs::read_to_string(real.join("gitea-secret")).expect("it is there"), "of somebody else");
    terminal.ok(&["send", "gitea", "--secret-env", "PASTED"]);
    assert_eq!(server.admin().events().len(), 1);
    assert!(named.is_symlink(), "the link stays one");
}

#[test]
fn what_can_be_no_secret_does_not_get_into_its_file() {
    let terminal = with_secret_file();
    let before = secret_file(&terminal);
    let secret = ["sources", "secret", "gitea", "--stdin"];
    for (wrong, said) in [
        ("sk_live_0123456789abcdef", "a Stripe API key"),
        ("ghp_0123456789abcdef", "a GitHub personal access token"),
        ("", "is empty"),
        ("short", "fewer than"),
        ("with-a-stray-line-feed\n\n", "the secret"),
    ] {
        let ran = piped(&terminal, &secret, wrong);
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(5), "{wrong:?}: {told}");
        assert!(
            told.contains(said) && told.contains("nothing was changed") && told.contains("fix"),
            "{told}"
        );
        assert!(wrong.len() < 6 || !told.contains(wrong), "the secret is not printed: {told}");
        assert_eq!(secret_file(&terminal), before, "{wrong:?}");
    }
    // No terminal to ask at, no file to write to, no source.
    terminal.ends(&["sources", "secret", "gitea"], 2);
    let ran = terminal.ends(&["sources", "secret", "github", "--generate"], 5);
    assert!(ran.stderr.contains("environment variable `OLD`"), "{ran:?}");
    terminal.ends(&["sources", "secret", "gitlab", "--generate"], 3);
    assert_eq!(secret_file(&terminal), before);
}

/// The first secret is put back where a second source that has the same file cannot use the new one.
#[test]
fn a_secret_that_another_source_cannot_use_is_taken_back() {
    let terminal = with_secret_file();
    let config = file(&terminal);
    terminal.write(
        "hookstead.toml",
        &format!("{config}[sources.svix]\nsecret = {{ file = \"gitea-secret\" }}\n"),
    );
    terminal.write("gitea-secret", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=");
    let before = secret_file(&terminal);
    let ran = piped(&terminal, &["sources", "secret", "gitea", "--stdin"], "never*base64*0123456789");
    assert_eq!(ran.status.code(), Some(5), "{ran:?}");
    assert_eq!(secret_file(&terminal), before);
}

/// A verb at a terminal that shows what is typed, unless the program keeps it from that: `script` makes it.
struct Screen {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    shown: Vec<u8>,
}

impl Screen {
    fn of(terminal: &Terminal, verb: &str) -> Self {
        let verb = format!("{BINARY} {verb}");
        let plain = terminal.command([verb.as_str()]);
        let variables = plain.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut script = Command::new("script");
        script.args(["-q", "-e", "-c", &verb, "/dev/null"]).env_clear().envs(variables);
        script.env("SHELL", "/bin/sh").env("PATH", "/usr/bin:/bin").current_dir(terminal.path(""));
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().expect("`script` starts");
        let (keys, screen) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Self { child, keys, screen, shown: Vec::new() }
    }

    /// Reads until this is shown.
    fn until(&mut self, text: &str) -> &mut Self {
        let from = self.shown.len();
        while !self.text()[from..].contains(text) {
            let mut byte = [0];
            let read = self.screen.read(&mut byte).expect("a screen");
            assert_eq!(read, 1, "before `{text}`: {}", self.text());
            self.shown.extend(byte);
        }
        self
    }

    fn text(&self) -> String {
        // What is cut within a letter is whole with its next byte.
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    fn types(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).expect("keys");
        self
    }

    /// Waits for its end: its exit code, and all that was shown.
    fn end(mut self) -> (Option<i32>, String) {
        self.screen.read_to_end(&mut self.shown).expect("the rest");
        (self.child.wait().expect("it ends").code(), self.text())
    }
}

fn typed(terminal: &Terminal, line: &str) -> (Option<i32>, String) {
    let mut screen = Screen::of(terminal, "sources secret gitea");
    screen.until("not shown: ").types(line);
    screen.end()
}

#[test]
fn a_secret_is_asked_for_at_a_terminal_that_does_not_show_it() {
    let terminal = with_secret_file();
    let before = secret_file(&terminal);
    // Ctrl-C, Ctrl-D at once, and Ctrl-D when all is taken back: gitea's secret is made if nothing is typed.
    for keys in ["half-a-secret\x03", "\x04", "half-a-secret\x15\x04"] {
        let (exit_code, shown) = typed(&terminal, keys);
        assert_eq!((exit_code, secret_file(&terminal)), (Some(130), before.clone()), "{keys:?}: {shown}");
        assert!(!shown.contains("half") && shown.contains("nothing was changed"), "{keys:?}: {shown}");
    }

    let (exit_code, shown) = typed(&terminal, &format!("{PASTED}x\x7f\r"));
    assert_eq!((exit_code, secret_file(&terminal)), (Some(0), PASTED.to_owned()), "{shown}");
    assert!(!shown.contains("pasted") && shown.contains("changed"), "{shown}");
}

/// Adds a source and waits; what is said of it until then is read.
fn waiting(terminal: &Terminal, name: &str) -> (Child, BufReader<ChildStdout>) {
    let secret = format!("{name}-secret");
    let add = ["sources", "add", name, "--provider", "gitea", "--generate", &secret, "--wait"];
    let mut child = terminal
        .command(add)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("waiting") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).expect("a line"), 0, "it ended");
    }
    (child, lines)
}

#[test]
fn the_first_event_of_a_new_source_is_waited_for() {
    let terminal = terminal();
    let add = ["sources", "add", "late", "--provider", "gitea", "--generate", "late", "--wait"];
    // There is nobody who could tell of an event.
    terminal.ends(&add, 6);
    assert_eq!(file(&terminal), CONFIG);
    terminal.ends(&[&add[..], &["--timeout", "2h"]].concat(), 2);

    let server = terminal.serve();
    let (mut child, mut lines) = waiting(&terminal, "shop");
    // An event of another source is not the one.
    terminal.ok(&["send", "github"]);
    terminal.ok(&["send", "gitea", "--source", "shop"]);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let mut told = String::new();
    lines.read_to_string(&mut told).expect("the rest");
    let event = terminal.ok(&["events", "show", "@", "--json"]).json();
    assert_eq!(event["source"], "shop");
    assert!(told.contains(event["short_id"].as_str().expect("its short id")), "{told}");

    let (mut child, _lines) = waiting(&terminal, "given-up");
    send_signal("INT", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let ran = terminal.ends(&[&add[..], &["--timeout", "1s"]].concat(), 7);
    assert!(ran.stderr.contains("`late` is added"), "{ran:?}");
    assert!(file(&terminal).contains("[sources.given-up]") && file(&terminal).contains("[sources.late]"));
    drop(server);
}

#[test]
fn a_source_is_added_at_a_terminal_with_its_secret_its_steps_and_its_first_event() {
    let mut terminal = terminal();
    terminal.set("PASTED", PASTED);
    let server = terminal.serve();
    let mut screen = Screen::of(&terminal, "sources add slack --timeout 1m");
    screen.until("your app, Basic Information, Signing Secret").until("not shown: ");
    screen.types(&format!("{PASTED}\r")).until("waiting");
    let told = screen.text();
    assert!(told.contains("1. Get the signing secret of Slack") && told.contains("(done)"), "{told}");
    let address = format!("3. Register the address at Slack: http://{}/in/slack", server.intake());
    assert!(told.contains(&address), "{told}");
    terminal.ok(&["send", "slack", "--secret-env", "PASTED"]);
    let (exit_code, shown) = screen.end();
    let event = terminal.ok(&["events", "show", "@", "--json"]).json();
    assert_eq!((exit_code, &event["source"]), (Some(0), &json!("slack")), "{shown}");
    assert!(shown.contains(event["short_id"].as_str().expect("its short id")), "{shown}");
    assert!(!shown.contains("pasted"), "{shown}");
    assert_eq!(fs::read_to_string(terminal.path("slack.secret")).expect("the secret"), PASTED);
}

#[test]
fn what_is_begun_at_a_terminal_can_be_given_up_at_each_step() {
    let terminal = terminal();
    let mut screen = Screen::of(&terminal, "sources add slack");
    screen.until("not shown: ").types("half-a-secret\x03");
    let (exit_code, shown) = screen.end();
    assert_eq!((exit_code, file(&terminal)), (Some(130), CONFIG.to_owned()), "{shown}");
    assert!(shown.contains("nothing was changed") && !shown.contains("half"), "{shown}");
    let mut screen = Screen::of(&terminal, "sources add gitea");
    screen.until("empty to have one made").until("not shown: ").types("\x04");
    let (exit_code, shown) = screen.end();
    assert_eq!((exit_code, file(&terminal)), (Some(130), CONFIG.to_owned()), "{shown}");
    assert!(!terminal.path("gitea.secret").exists(), "{shown}");
    // Without a server there is nobody to wait for, and it is added all the same. Nothing typed: one is made.
    let mut screen = Screen::of(&terminal, "sources add gitea");
    screen.until("empty to have one made").until("not shown: ").types("\r");
    let (exit_code, shown) = screen.end();
    assert_eq!(exit_code, Some(0), "{shown}");
    let secret = fs::read_to_string(terminal.path("gitea.secret")).expect("the secret");
    assert!(secret.len() >= 32 && !shown.contains(&secret) && shown.contains("enter it at Gitea"), "{shown}");
    assert!(shown.contains("no server runs"), "{shown}");

    let _server = terminal.serve();
    let mut screen = Screen::of(&terminal, "sources add telegram");
    screen.until("not shown: ").types("\r").until("waiting").types("\x03");
    let (exit_code, shown) = screen.end();
    assert_eq!(exit_code, Some(130), "{shown}");
    assert!(shown.contains("`telegram` is added and stays"), "{shown}");
    let mut screen = Screen::of(&terminal, "sources add webex --no-wait");
    screen.until("not shown: ").types("\r");
    let (exit_code, shown) = screen.end();
    assert_eq!(exit_code, Some(0), "{shown}");
    assert!(file(&terminal).contains("[sources.telegram]") && file(&terminal).contains("[sources.webex]"));
}

#[test]
fn a_secret_comes_from_stdin_into_a_file_of_its_own() {
    let terminal = terminal();
    let ran =
        piped(&terminal, &["sources", "add", "slack", "--secret-stdin", "--json"], &format!("{PASTED}\n"));
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let told: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert!(told["written"].as_str().is_some_and(|file| file.ends_with("slack.secret")), "{told}");
    assert_eq!(told["generated"], Value::Null);
    assert!(!format!("{ran:?}").contains(PASTED), "the secret is not printed");
    let ran = piped(
        &terminal,
        &["sources", "rotate", "slack", "--add", "--secret-stdin", "--json"],
        "another-secret-0123456789",
    );
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(terminal.path("slack-2.secret")).expect("it"), "another-secret-0123456789");
    // What is refused leaves no file.
    let ran = piped(&terminal, &["sources", "add", "shopify", "--secret-stdin"], "sk_live_0123456789abcdef");
    assert_eq!(ran.status.code(), Some(5), "{ran:?}");
    assert!(!terminal.path("shopify.secret").exists());
    // A key of the provider's own, a provider that hands its secret over, one that publishes its keys.
    terminal.ends(&["sources", "add", "discord", "--secret-generate"], 2);
    terminal.ok(&["sources", "add", "asana", "--identity", "body"]);
    assert!(!file(&terminal).contains("asana.secret"));
}

#[test]
fn what_is_refused_is_told_with_its_fix_to_whoever_waits() {
    let terminal = terminal();
    terminal.ends(&["sources", "refusals", "github"], 6);
    let _server = terminal.serve();
    let (mut child, mut lines) = waiting(&terminal, "shop");
    // Signed with the secret of somebody else.
    let wrong = ["send", "gitea", "--source", "shop", "--secret-env", "OLD"];
    terminal.ends(&wrong, 5);
    let mut line = String::new();
    while !line.starts_with("refused") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).expect("a line"), 0, "it ended");
    }
    assert!(line.contains("signature-differs") && line.contains("hookstead sources secret shop"), "{line}");
    terminal.ok(&["send", "gitea", "--source", "shop"]);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));

    terminal.ends(&wrong, 5);
    let told = terminal.ok(&["sources", "refusals", "shop", "--json"]).json();
    assert_eq!(
        (&told["refusals"][0]["code"], &told["refusals"][0]["count"]),
        (&json!("signature-differs"), &json!(2))
    );
    let ran = terminal.ok(&["sources", "refusals", "shop"]);
    assert!(ran.stdout.contains("2 times in a row"), "{ran:?}");
    assert!(terminal.ok(&["sources", "refusals", "github"]).stderr.contains("refused nothing"));
    terminal.ends(&["sources", "refusals", "nobody"], 3);
}
