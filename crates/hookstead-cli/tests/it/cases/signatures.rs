//! Themes headers and signature-format: which spellings of a signature count, and which never do.

use super::case::{Case, wire};
use super::play::{body, play};
use super::stage::Stage;

#[test]
fn b040_repeated_headers_are_refused_in_either_order() {
    let played = play("B040");
    played.refusals(&["part-repeated", "part-repeated", "part-repeated"]);
    assert_eq!(played.replies[0].body, played.replies[1].body);
}

#[test]
fn b041_a_folded_header_is_refused() {
    let case = Case::get("B041");
    let stage = Stage::at(case.now()).source(&case.sources()[0]);
    let server = stage.serve();
    let mut connection = server.connect();
    let reply = connection.exchange(&case.requests()[0].bytes).expect("an answer");
    assert_eq!(reply.status, 400, "{reply}");
    assert_eq!(connection.rest().expect("the end"), b"");
    assert!(server.admin().events().is_empty());
}

#[test]
fn b042_a_blank_after_the_prefix() {
    play("B042").ids(&["sp-1", "sp-2"]);
}

/// The sender of the case is Mercado Pago, which has a record.
#[test]
fn b049_a_manifest_of_query_header_and_time_is_signed() {
    let case = Case::get("B049");
    let stage = Stage::at(case.now())
        .variable("MP", "hookbox-test-secret-01")
        .toml("[sources.mp]\nprovider = \"mercadopago\"\nsecret = { env = \"MP\" }\n");
    let server = stage.serve();
    let reply = server.connect().exchange(&case.requests()[0].bytes).expect("an answer");
    assert!((200..300).contains(&reply.status), "{reply}");
    let events = server.admin().events();
    assert_eq!((events.len(), &events[0]["provider_event_id"]), (1, &"mp-1".into()));
    let event = server.admin().get("/v1/events/mp:mp-1").json();
    assert_eq!(event["query"], "data.id=ORD01ABC&type=order", "for whoever has to check it again");
    let shown = stage.run(&["events", "show", "mp:mp-1"]).stdout;
    assert!(shown.contains("data.id=ORD01ABC&type=order"), "{shown}");
    let page = include_str!("../../../../../docs/providers/mercadopago.md");
    assert!(page.contains("Of the body nothing is signed"));
}

/// The sender of the case is a route of Mailgun, which has a record of its own.
#[test]
fn b071_the_fields_of_a_multipart_form_are_read_and_its_bytes_are_kept() {
    let case = Case::get("B071");
    let stage = Stage::at(case.now())
        .variable("MAILGUN", "hookbox-test-secret-01")
        .toml("[sources.mailgun]\nprovider = \"mailgun-routes\"\nidentity = \"{form.token}\"\nsecret = { env = \"MAILGUN\" }\n");
    let server = stage.serve();
    let request = &case.requests()[0];
    let reply = server.connect().exchange(&request.bytes).expect("an answer");
    assert_eq!(reply.status, 200, "what its record wants: {reply}");
    let mut admin = server.admin();
    let events = admin.events();
    assert_eq!((events.len(), &events[0]["provider_event_id"]), (1, &"t".repeat(50).into()));
    assert_eq!(Some(body(&mut admin, &events[0])), request.body);
    let page = include_str!("../../../../../docs/providers/mailgun-routes.md");
    assert!(page.contains("Only a time and a one-use token are signed"));
}

#[test]
fn b045_base64_with_either_alphabet_and_with_or_without_padding() {
    let played = play("B045");
    played.ids(&["b64-a", "b64-b", "b64-c", "b64-d"]);
    let short = [("X-Event-Id", "b64-e"), ("X-Signature", "sdhC9rp0R1+nc1zfeu08FUyqMvX8Zt/HzS+FB2cvyg==")];
    let request = wire("POST", "/in/gen", &short, b"{\"id\":\"b64-2\"}");
    let reply = played.server.connect().exchange(&request).expect("an answer");
    assert_eq!(reply.status, 401, "31 bytes are no digest: {reply}");
}

#[test]
fn b047_every_v1_entry_is_tried_and_other_versions_are_skipped() {
    play("B047").ids(&["msg_rot_1"]).refusals(&["signature-malformed"]);
}

#[test]
fn b050_an_empty_body_has_a_signature() {
    let played = play("B050");
    played.ids(&["em-1"]).refusals(&["signature-differs"]);
    assert_eq!(played.events[0]["bytes"], 0);
}
