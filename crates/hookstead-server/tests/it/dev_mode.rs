//! Without any configuration.

use std::os::unix::fs::PermissionsExt;

use hookstead::DestinationKind;
use hookstead::sink::push::Reach;
use hookstead::verify::{Provider, Registry, SignRequest};
use hookstead_server::config::{ConfigSource, DEV_DESTINATIONS_FILE, Environment, Mode, Overrides};
use hookstead_server::dev::DevSecrets;
use hookstead_server::{Config, Server};

use crate::harness::{Running, unix_time};

fn overrides() -> Overrides {
    let any = Some("127.0.0.1:0".to_owned());
    Overrides { intake: any.clone(), admin: any, ..Overrides::default() }
}

async fn start() -> Running {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let environment: Environment = [("HOME", home)].into_iter().collect();
    let source = ConfigSource { overrides: overrides(), environment, folder: folder.path().to_path_buf() };
    let mut config = Config::load(&source).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.mode, Mode::Dev);
    // How much space is free is the machine's matter.
    config.store.min_free = 0;
    Running { server: Server::start(config).await.unwrap(), folder }
}

#[tokio::test]
async fn everything_is_made_in_the_data_folder_for_its_owner_alone() {
    let running = start().await;
    let data = running.folder.path().join(".local/share/hookstead");
    assert_eq!(running.server.facts().data, data);
    let mode = |name: &str| std::fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    for file in ["admin.token", "dev-secrets.toml", "hookstead.db"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
}

#[tokio::test]
async fn every_provider_is_really_verified_and_shows_up_with_its_first_event() {
    let running = start().await;
    let secrets = DevSecrets::open(&running.server.facts().data).unwrap();
    let mut events = 0;
    // A public key, or an id of the account, is nothing that dev mode could make up.
    let asks = |provider: &Provider| provider.conf().any(|(_, _, is_needed)| is_needed);
    let providers = Registry::builtin().iter().filter(|provider| provider.shares_secret() && !asks(provider));
    for provider in providers {
        let name = provider.name();
        let unsigned = format!(
            "POST /in/{name} HTTP/1.1\r\nHost: a\r\nX-Delivery-ID: a\r\nX-Timestamp: {}\r\nContent-Length: 2\r\n\r\n{{}}",
            unix_time()
        );
        let reply = running.send(unsigned.as_bytes()).await;
        assert_eq!(reply.status, 401, "{name}: {reply:?}");
        assert_eq!(sources(&running).await, events, "{name} is no source before its first event");

        let reply = running.send(&sample(&running, name, secrets.get(name).unwrap())).await;
        assert!([200, 202, 204].contains(&reply.status), "{name}: {reply:?}");
        events += 1;
        assert_eq!(sources(&running).await, events, "{name}");
    }
    assert!(events >= 180, "{events}");
    let unverified = running.send(b"POST /in/none HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx").await;
    assert_eq!(unverified.status, 404, "no source without a check");
}

async fn sources(running: &Running) -> usize {
    running.admin("/v1/sources").await.json()["sources"].as_array().unwrap().len()
}

/// A signed sample of a provider as the bytes of a request.
fn sample(running: &Running, name: &str, secret: &hookstead::verify::Secret) -> Vec<u8> {
    let provider = Registry::builtin().get(name).unwrap();
    let sample = &provider.samples()[0];
    let url = format!("http://{}/in/{name}", running.server.facts().intake);
    let now_unix_micros = unix_time() * 1_000_000;
    let event_id = sample.event_id(1);
    let body = sample.render(&event_id, now_unix_micros);
    let signed = provider
        .sign(&SignRequest {
            method: "POST",
            url: &url,
            body: &body,
            content_type: &sample.content_type,
            event_id: &event_id,
            event_type: Some(&sample.event),
            secret: Some(secret),
            now_unix_micros,
        })
        .unwrap();
    let target = &signed.url[format!("http://{}", running.server.facts().intake).len()..];
    let mut request = format!("POST {target} HTTP/1.1\r\nHost: localhost\r\n").into_bytes();
    for (name, value) in &signed.headers {
        request.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    request.extend(format!("Content-Length: {}\r\n\r\n", signed.body.len()).into_bytes());
    request.extend(&signed.body);
    request
}

#[test]
fn an_open_listener_needs_a_configuration() {
    let mut overrides = overrides();
    overrides.intake = Some("0.0.0.0:4665".to_owned());
    let environment = [("HOME", "/home/a")].into_iter().collect();
    let source = ConfigSource { overrides, environment, folder: "/nowhere".into() };
    let errors = Config::load(&source).unwrap_err().to_string();
    assert!(errors.contains("open to the network") && errors.contains("option --intake"), "{errors}");
}

fn at_home(home: &std::path::Path) -> ConfigSource {
    let environment = [("HOME", home.to_str().unwrap())].into_iter().collect();
    ConfigSource { overrides: overrides(), environment, folder: home.to_path_buf() }
}

fn keep(home: &std::path::Path, text: &str) {
    let data = home.join(".local/share/hookstead");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join(DEV_DESTINATIONS_FILE), text).unwrap();
}

#[test]
fn destinations_of_dev_mode_may_be_on_this_machine_and_no_further() {
    let home = tempfile::tempdir().unwrap();
    keep(home.path(), "[destinations.app]\npush = \"http://localhost:3000/hooks\"\nsources = [\"stripe\"]\n");
    let config = Config::load(&at_home(home.path())).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((config.mode, config.destinations.len()), (Mode::Dev, 1));
    let DestinationKind::Push(push) = &config.destinations[0].kind else { panic!("{config:?}") };
    assert_eq!(push.url.reach(), Reach::Loopback);
    for (wrong, said) in [
        ("[destinations.app]\npush = \"http://10.0.0.1/\"\n", "a private address (10.0.0.0/8)"),
        ("[destinations.app]\npush = \"http://169.254.169.254/\"\n", "metadata service"),
        ("[destinations.app]\npull = true\nsources = [\"strip\"]\n", "did you mean `stripe`?"),
        ("[sources.stripe]\n", "this file holds the destinations of dev mode, and nothing else"),
    ] {
        keep(home.path(), wrong);
        let errors = Config::load(&at_home(home.path())).unwrap_err();
        assert!(errors.to_string().contains(said), "{errors}");
        assert!(errors.to_string().contains(DEV_DESTINATIONS_FILE), "{errors}");
    }
}

#[tokio::test]
async fn a_reload_takes_the_destinations_of_dev_mode_over_and_leaves_its_sources() {
    let running = start().await;
    let secret = DevSecrets::open(&running.server.facts().data).unwrap();
    let stripe = sample(&running, "stripe", secret.get("stripe").unwrap());
    keep(running.folder.path(), "[destinations.app]\npull = true\n");
    let token = running.token();
    let reply = running.admin_post(&token, "/v1/reload", b"").await;
    assert_eq!((reply.status, &reply.json()["destinations"][0]), (200, &"app".into()), "{reply:?}");
    assert_eq!(sources(&running).await, 0, "no source that nobody uses");
    assert_eq!(running.send(&stripe).await.status, 202);
    let claimed = running.admin_post(&token, "/v1/destinations/app/claim", b"").await.json();
    assert_eq!(claimed["leases"][0]["source"], "stripe", "{claimed}");
}
