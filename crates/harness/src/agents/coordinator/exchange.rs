//! Clock readings, and the messages to agents about servers and keys.

use std::{fs, path::Path, time::Duration};

use tithe_machine::{fault::Fault, launch::Address, secret::Secret};

use crate::{
    agents::{
        link::Link,
        message::{Hello, Keys, Place, Target},
        offset::Offset,
    },
    load::frame::StartedArm,
};

/// Exchanges of readings before a frame.
pub(super) const BEFORE: usize = 16;

/// Exchanges after a frame.
pub(super) const AFTER: usize = 8;

/// How often the exchanges are repeated if their bound is too wide: on a busy machine a whole round can be delayed.
const ROUNDS: usize = 4;

/// How long one exchange may take.
const WITHIN: Duration = Duration::from_secs(1);

/// The best of several rounds of `exchanges` with this agent, until its clock is known within `enough_ns`; `None` if it
/// does not answer.
pub(super) fn offset_within(
    link: &dyn Link,
    hello: &Hello,
    exchanges: usize,
    enough_ns: u64,
) -> Result<Option<Offset>, Fault> {
    let mut best: Option<Offset> = None;
    for _ in 0..ROUNDS {
        let Some(offset) = offset(link, hello, exchanges)? else { return Ok(best) };
        best = best.into_iter().chain([offset]).min_by_key(|offset| offset.delay_ns);
        if best.is_some_and(|best| best.bound_ns <= enough_ns) {
            break;
        }
    }
    Ok(best)
}

/// By how much the clock of this agent is ahead, from this number of exchanges; `None` if it does not answer.
pub(super) fn offset(link: &dyn Link, hello: &Hello, exchanges: usize) -> Result<Option<Offset>, Fault> {
    let subject = hello.clock();
    let mut readings = Vec::with_capacity(exchanges);
    for _ in 0..exchanges {
        let Some(exchange) = link.ask_time(&subject, WITHIN)? else { return Ok(None) };
        readings.push(exchange);
    }
    Ok(Offset::best(&readings))
}

/// Where other machines find the servers of `arms`.
pub(super) fn targets(arms: &[StartedArm]) -> Result<Vec<Target>, Fault> {
    let target = |arm: &StartedArm| {
        let at = match &arm.server.address {
            Address::Tcp { host, port } => Place::Tcp { host: host.clone(), port: *port },
            Address::Attached(url) => Place::Url(url.expose().to_owned()),
            Address::Nowhere => Place::Nowhere,
            Address::File(_) | Address::Relayed { .. } => {
                return Err(Fault::Refused("agents reach servers over the network alone".to_owned()));
            }
        };
        let column_key = arm.setup.columns.as_ref().map(|columns| columns.key.expose_hex());
        Ok(Target { at, space: arm.setup.space.clone(), data: arm.data, column_key })
    };
    arms.iter().map(target).collect()
}

/// Certificates and keys of the clients, PEM; empty if there are none.
pub(super) struct Pems {
    authority: Secret,
    certificate: Secret,
    key: Secret,
}

/// Those of `arms`, which all have the credentials of their epoch.
pub(super) fn keys(arms: &[StartedArm]) -> Result<Pems, Fault> {
    let text = |path: &Path| match path.as_os_str().is_empty() {
        true => Ok(Secret::new([])),
        false => fs::read(path).map(Secret::new).map_err(|error| Fault::machine(path.display(), error)),
    };
    let Some(arm) = arms.first() else { return Err(Fault::Refused("there is no arm".to_owned())) };
    let credentials = &arm.setup.credentials;
    Ok(Pems {
        authority: text(&credentials.authority)?,
        certificate: text(&credentials.client_certificate)?,
        key: text(&credentials.client_key)?,
    })
}

impl Pems {
    /// With the passwords and data keys of `arms`.
    pub fn with(&self, arms: &[StartedArm]) -> Keys {
        let Some(credentials) = arms.first().map(|arm| &arm.setup.credentials) else { return Keys::default() };
        let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
        Keys {
            password: credentials.password.expose_hex(),
            key: credentials.key.expose_hex(),
            second_key: credentials.second_key.expose_hex(),
            authority: text(&self.authority),
            client_certificate: text(&self.certificate),
            client_key: text(&self.key),
        }
    }
}

#[cfg(test)]
mod tests {
    use tithe_machine::{credentials::Credentials, launch::Server};
    use tithe_model::experiment::Url;
    use tithe_plugin::setup::{Columns, Setup};

    use super::*;
    use crate::agents::{
        message::write,
        tests::{hello, local::Hub},
    };

    /// An arm at `address` on the data of the third, whose columns have `column_key`.
    fn arm(address: Address, column_key: Option<&[u8]>) -> StartedArm {
        let columns = column_key.map(|key| Columns::of_share(1.0, Secret::new(key)));
        let setup = Setup { space: "shop".to_owned(), columns, ..Setup::bare() };
        let server = Server::at(address);
        StartedArm { server, data: 2, shares_server: false, setup, on: Vec::new(), off: Vec::new() }
    }

    #[test]
    fn agents_are_told_where_servers_are_and_which_key_opens_their_columns() {
        let arms = [
            arm(Address::Tcp { host: "db".to_owned(), port: 5432 }, None),
            arm(Address::Attached(Url::new("x://u:word@a")), Some(&[7, 8])),
            arm(Address::Nowhere, None),
        ];
        let told = write(&targets(&arms).expect("they are in a network")).expect("JSON");
        expect_test::expect![[
            r#"[{"at":{"tcp":{"host":"db","port":5432}},"space":"shop","data":2,"column_key":null},{"at":{"url":"x://u:word@a"},"space":"shop","data":2,"column_key":"0708"},{"at":"nowhere","space":"shop","data":2,"column_key":null}]"#
        ]]
        .assert_eq(&String::from_utf8_lossy(&told));
        for address in [Address::File("/a".into()), Address::Relayed { url: Url::new("x://a"), port: 1 }] {
            let refused = targets(&[arm(Address::Nowhere, None), arm(address, None)]).err().map(|why| why.to_string());
            assert_eq!(refused.as_deref(), Some("refused: agents reach servers over the network alone"));
        }
    }

    #[test]
    fn agents_get_the_keys_of_clients_and_no_other_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, name).expect("written");
            path
        };
        let [password, key, second_key] = [1_u8, 2, 3].map(|byte| Secret::new([byte]));
        let with = |client_key| {
            let mut arm = arm(Address::Nowhere, None);
            arm.setup.credentials = Credentials {
                authority: file("authority"),
                client_certificate: file("certificate"),
                client_key,
                server_key: file("server"),
                second_key: second_key.clone(),
                ..Credentials::without_files(password.clone(), key.clone())
            };
            let arms = [arm];
            keys(&arms).and_then(|pems| write(&pems.with(&arms)))
        };
        let told = |client_key| String::from_utf8_lossy(&with(client_key).expect("JSON")).into_owned();
        let expected = |client_key: &str| {
            format!(
                r#"{{"password":"01","key":"02","second_key":"03","authority":"authority","client_certificate":"certificate","client_key":"{client_key}"}}"#
            )
        };
        assert_eq!(told(file("client")), expected("client"));
        assert_eq!(told(Default::default()), expected(""), "clients without certificates have none");
        assert!(with(folder.path().join("missing")).is_err());
        assert!(keys(&[]).is_err());
    }

    #[test]
    fn rounds_end_when_the_clock_is_known_well_enough_and_the_shortest_way_counts() {
        let shortest = |ways: &[u64], enough_ns: u64| {
            let hub = Hub::default();
            hub.exchange_in(&ways.iter().map(|way_ns| Some(*way_ns)).collect::<Vec<_>>());
            let offset = offset_within(&hub.link(0), &hello("a"), 2, enough_ns).expect("a link");
            offset.map(|offset| offset.delay_ns)
        };
        // Four rounds of two exchanges; the error of each is half of its way at most.
        let ways = [800, 600, 200, 400, 300, 500, 1000, 100];
        assert_eq!([300, 299, 100, 99].map(|enough_ns| shortest(&ways, enough_ns)), [600, 200, 200, 100].map(Some));
        assert_eq!(shortest(&[800, 600, 200, 400, 300, 500, 1000, 900], 99), Some(200), "later ones were longer");
        assert_eq!(shortest(&ways[..6], 99), Some(200), "it went away meanwhile");
        assert_eq!(shortest(&[], 99), None);
    }
}
