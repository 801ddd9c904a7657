//! Do the server's logs repeat values, keys or passwords?

use tithe_model::record::Role;

use crate::{
    evidence::{Control, Evidence, Scene, Sight, canary::Targets},
    fault::Fault,
};

/// Makes the server write `token` into its log, however the product does that.
pub type Plant = fn(scene: &Scene<'_>, token: &str) -> Result<(), Fault>;

/// Looks for canaries, the data key and the password in the server's logs, in the clear, in hexadecimal and in
/// base64. Its control is a token that `plant` makes the server log, and that must be found. Id `logs-free`.
pub struct LogsFree {
    role: Role,
    targets: Targets,
    plant: Plant,
}

impl LogsFree {
    /// A check of the logs for `targets` and secrets: a claim or a disclosure.
    pub fn new(role: Role, targets: Targets, plant: Plant) -> Self {
        Self { role, targets, plant }
    }
}

impl Evidence for LogsFree {
    fn id(&self) -> &'static str {
        "logs-free"
    }

    fn claim(&self) -> String {
        format!("{:?}", self.targets)
    }

    fn role(&self) -> Role {
        self.role
    }

    fn control(&self) -> Control {
        Control::Own
    }

    fn look(&self, scene: &mut Scene<'_>) -> Sight {
        let _ = (self.plant)(scene, "");
        Sight::Unknown(String::new())
    }
}
