//! OpenSearch on stage: requests of its administrator, which an entry takes back itself.

use tithe_databases::opensearch::OpenSearch;
use tithe_machine::launch::Address;
use tithe_plugin::{database::Database as _, setup::Setup};

use super::{Deception, Sandbox, Stage, all_hold, attached};
use crate::{how, key_value};

/// The account with all rights.
pub const ADMINISTRATOR: &str = "tithe-administrator";

struct OnStage;

/// Tries all entries on `good`, which runs already: a virtual machine takes long to start.
pub fn all_hold_on(good: Sandbox) {
    let text = include_str!("../../../deceptions/opensearch.toml");
    let mut good = Some(good);
    all_hold(&OpenSearch, text, 12, |_, _| good.take(), |_| Box::new(OnStage));
}

/// Makes these requests as the administrator.
pub fn say(sandbox: &Sandbox, requests: &[String]) -> Result<(), String> {
    if requests.is_empty() {
        return Ok(());
    }
    let server = attached(sandbox, &url(sandbox, ADMINISTRATOR));
    let session = OpenSearch.connect(&server, &Setup::bare(), &how(true)).map_err(|fault| fault.to_string())?;
    let mut session = key_value(session);
    requests
        .iter()
        .try_for_each(|request| session.run_statement(request).map_err(|fault| format!("`{request}`: {fault}")))
}

impl Stage for OnStage {
    fn arrange(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<String, String> {
        say(sandbox, &entry.statements)?;
        Ok(url(sandbox, if entry.asks.is_empty() { ADMINISTRATOR } else { &entry.asks }))
    }

    fn clear(&mut self, sandbox: &Sandbox, entry: &Deception) -> Result<(), String> {
        say(sandbox, &entry.undo)
    }
}

/// The URL of `user`, with the certificate that the server demands.
pub fn url(sandbox: &Sandbox, user: &str) -> String {
    let Address::Tcp { port, .. } = sandbox.server.address else { panic!("a port") };
    let credentials = &sandbox.setup.credentials;
    format!(
        "opensearchs://{user}:{}@127.0.0.1:{port}?ca={}&cert={}&key={}",
        credentials.password.expose_text(),
        credentials.authority.display(),
        credentials.client_certificate.display(),
        credentials.client_key.display()
    )
}
