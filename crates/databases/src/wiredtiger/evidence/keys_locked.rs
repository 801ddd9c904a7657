//! Do the keys stay out of swap?

use std::fs;

use tithe_machine::{fault::Fault, observation::Observation};
use tithe_plugin::evidence::{Check, CheckContext, CheckEntry};

use crate::wiredtiger::{encryptor::locked::is_locked, opened};

/// Asks the kernel whether the pages that hold the arm's keys are locked. Its control is its own stack, which must not
/// be. Id `keys-locked`.
pub struct KeysLocked;

impl Check for KeysLocked {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("keys-locked").own_control()
    }

    fn claim(&self) -> String {
        "the keys that the engine works with are on locked pages".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let Some(cipher) = opened(context.server, context.setup)?.engine.cipher() else {
            return Ok(Observation::Exposed("there are no keys".to_owned()));
        };
        let read = |path: &str| fs::read_to_string(path).map_err(|error| Fault::machine(path, error));
        let (smaps, status) = (read("/proc/self/smaps")?, read("/proc/self/status")?);
        let here = &raw const status as usize;
        if is_locked(&smaps, &(here..here + 1)) {
            return Ok(Observation::Unknown("the stack is locked too, so this shows nothing".to_owned()));
        }
        let addresses = cipher.addresses();
        let locked = addresses.iter().filter(|range| is_locked(&smaps, range)).count();
        let total = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap_or("").trim();
        let quotation = format!("{locked} of {} keys are on locked pages; VmLck is {total}", addresses.len());
        Ok(if locked == addresses.len() { Observation::Protected(quotation) } else { Observation::Exposed(quotation) })
    }
}
