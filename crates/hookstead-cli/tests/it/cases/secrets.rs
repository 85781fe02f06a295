//! Theme secrets: a secret that cannot be right is a mistake of the configuration, told before anything arrives.

use serde_json::{Value, json};

use super::case::{Case, CaseRequest, text};
use super::play::play;
use super::stage::{Printed, Stage};

/// The exit code of a configuration that is refused.
const REFUSED: i32 = 5;

#[test]
fn b053_a_secret_with_a_version_before_it() {
    play("B053").ids(&["msg_v1w_1"]);
}

#[test]
fn b051_each_secret_is_read_in_its_own_way() {
    play("B051").ids(&["msg_kd_1", "msg_kd_2"]);
    // Without a coding beside it, a secret is read as the record says: the second is then signed with no key of ours.
    let case = Case::get("B051");
    let mut sketch = case.sources().remove(0);
    for secret in sketch["secrets"].as_array_mut().expect("a list of secrets") {
        *secret = secret["value"].clone();
    }
    let stage = Stage::at(case.now()).source(&sketch);
    let server = stage.serve();
    let mut status =
        |request: &CaseRequest| server.connect().exchange(&request.bytes).expect("an answer").status;
    let statuses: Vec<u16> = case.requests().iter().map(&mut status).collect();
    assert_eq!(statuses, [202, 401]);
}

/// What a coding cannot be read from is found at the start, whichever secret it stands beside.
#[test]
fn b051_a_secret_that_is_not_of_its_coding_is_refused_at_the_start() {
    let case = Case::get("B051");
    let sketch = &case.sources()[0];
    let literal = sketch["secrets"][1].clone();
    let not_base64 = json!({ "value": "whsec_not*base64*at*all*0123456789", "encoding": "base64" });
    let not_hex = json!({ "value": "whsec_0123456789abcdefg0123456789abcdef", "encoding": "hex" });
    for wrong in [not_base64, not_hex] {
        check_refused(&case, &with_secrets(sketch, &json!([literal, wrong])), &["whsec_"]);
    }
}

#[test]
fn b055_secrets_that_decode_to_nothing_or_to_little() {
    let case = Case::get("B055");
    let sketch = &case.sources()[0];
    for secret in sketch["secrets"].as_array().expect("a list of secrets") {
        check_refused(&case, &with_secrets(sketch, &json!([secret])), &["!!!!", "xyz!", "YQ=="]);
    }
    // The forged request, at a source whose secret is in order.
    let stage = Stage::at(case.now())
        .source(&with_secrets(sketch, &json!(["whsec_aG9va2JveC1zdGFuZGFyZC1rZXktMDEyMzQ1Njc4OSE="])));
    let server = stage.serve();
    let reply = server.connect().exchange(&case.requests()[0].bytes).expect("an answer");
    assert_eq!(reply.status, 401, "{reply}");
    assert!(server.admin().events().is_empty());
}

#[test]
fn b057_no_secret_is_no_permission() {
    let case = Case::get("B057");
    let sketch = &case.sources()[0];
    for secrets in [json!([]), json!([""]), json!([" "])] {
        check_refused(&case, &with_secrets(sketch, &secrets), &[]);
    }
    let unset = "[sources.gh]\nprovider = \"github\"\nsecret = { env = \"NEVER_SET_BY_ANYONE\" }\n";
    let stage = Stage::at(case.now()).toml(unset);
    for printed in [stage.run(&["config", "check"]), stage.refused_start()] {
        assert_eq!(printed.exit_code, Some(REFUSED), "{printed:?}");
        assert!(printed.stderr.contains("NEVER_SET_BY_ANYONE"), "{printed:?}");
    }
}

fn with_secrets(sketch: &Value, secrets: &Value) -> Value {
    let mut sketch = sketch.clone();
    sketch["secrets"] = secrets.clone();
    sketch
}

/// Neither the check nor the server takes it; both name the source, and nothing of a secret.
fn check_refused(case: &Case, sketch: &Value, never_shown: &[&str]) {
    let stage = Stage::at(case.now()).source(sketch);
    for printed in [stage.run(&["config", "check"]), stage.refused_start()] {
        assert_eq!(printed.exit_code, Some(REFUSED), "{}: {printed:?}", case.id());
        let told = told(&printed);
        // By its table or by its variable, whichever is to blame.
        let name = text(&sketch["name"]);
        let names = [format!("[sources.{name}]"), format!("CASE_{}_0", name.to_uppercase())];
        assert!(names.iter().any(|name| told.contains(name)), "{}: {told}", case.id());
        assert!(told.contains("secret"), "{}: {told}", case.id());
        for part in never_shown {
            assert!(!told.contains(part), "{}: {told}", case.id());
        }
    }
}

fn told(printed: &Printed) -> String {
    format!("{}{}", printed.stdout, printed.stderr)
}
