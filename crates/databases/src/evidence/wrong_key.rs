//! Does anything but the key open stored data? What the attempts have shown, for every embedded database.

use tithe_machine::{fault::Fault, observation::Observation};

/// The observation of `attempts` to open the data without its key: each with what was read, or with the refusal.
///
/// # Errors
/// The first fault that is no refusal.
pub fn of_attempts<'a>(
    attempts: impl IntoIterator<Item = (&'a str, Result<String, Fault>)>,
) -> Result<Observation, Fault> {
    let (mut seen, mut opened) = (Vec::new(), false);
    for (attempt, outcome) in attempts {
        match outcome {
            Ok(read) => {
                opened = true;
                seen.push(format!("{attempt}: {read}"));
            }
            Err(Fault::Refused(reason)) => seen.push(format!("{attempt}: {reason}")),
            Err(other) => return Err(other),
        }
    }
    let quotation = seen.join("; ");
    Ok(if opened { Observation::Exposed(quotation) } else { Observation::Protected(quotation) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_attempt_that_succeeds_exposes_the_data() {
        let refused = || ("without a key", Err(Fault::Refused("no database".to_owned())));
        let read = ("with a wrong key", Ok("3 tables read".to_owned()));
        let protected = Observation::Protected("without a key: no database".to_owned());
        assert_eq!(of_attempts([refused()]), Ok(protected));
        let exposed = "without a key: no database; with a wrong key: 3 tables read";
        assert_eq!(of_attempts([refused(), read]), Ok(Observation::Exposed(exposed.to_owned())));
        let broken = Fault::Machine("the disk is full".to_owned());
        assert_eq!(of_attempts([refused(), ("with a wrong key", Err(broken.clone()))]), Err(broken));
    }
}
