//! Do the keys stay out of swap?

use std::fs;

use tithe_machine::{fault::Fault, sight::Sight};
use tithe_plugin::evidence::{CheckEntry, Evidence, Scene};

use crate::wiredtiger::{encryptor::locked::is_locked, opened};

/// Asks the kernel whether the pages that hold the arm's keys are locked. Its control is its own stack, which must not
/// be. Id `keys-locked`.
pub struct KeysLocked;

impl Evidence for KeysLocked {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("keys-locked").own_control()
    }

    fn claim(&self) -> String {
        "the keys that the engine works with are on locked pages".to_owned()
    }

    fn look(&self, scene: &mut Scene<'_>) -> Result<Sight, Fault> {
        let Some(cipher) = opened(scene.server, scene.setup)?.engine.cipher() else {
            return Ok(Sight::Exposed("there are no keys".to_owned()));
        };
        let read = |path: &str| fs::read_to_string(path).map_err(|error| Fault::machine(path, error));
        let (smaps, status) = (read("/proc/self/smaps")?, read("/proc/self/status")?);
        let here = &raw const status as usize;
        if is_locked(&smaps, &(here..here + 1)) {
            return Ok(Sight::Unknown("the stack is locked too, so this tells nothing".to_owned()));
        }
        let addresses = cipher.addresses();
        let locked = addresses.iter().filter(|range| is_locked(&smaps, range)).count();
        let total = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap_or("").trim();
        let quotation = format!("{locked} of {} keys are on locked pages; VmLck is {total}", addresses.len());
        Ok(if locked == addresses.len() { Sight::Protected(quotation) } else { Sight::Exposed(quotation) })
    }
}
