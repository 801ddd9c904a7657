//! Which implementation of a cipher the kernel uses, and whether it uses the processor's own instructions.

use std::fs;

/// An implementation of a cipher in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// What it implements: `xts(aes)`.
    pub name: String,
    /// Its own name: `xts-aes-aesni`.
    pub driver: String,
    /// The kernel uses the implementation with the highest priority.
    pub priority: i64,
}

/// Parts of the names of implementations that run on the processor's instructions for a cipher, or on a device made for
/// it, over the architectures of Linux (`arch/*/crypto`, `drivers/crypto`).
const FAST: [&str; 17] = [
    "aesni", "vaes", "-avx", "-sse", "-ce", "neonbs", "ppc", "p8_aes", "s390", "sparc64", "zvk", "padlock", "qat",
    "ccp", "caam", "ccree", "safexcel",
];

impl Driver {
    /// True when it uses ordinary instructions although the processor may have special ones for the cipher.
    pub fn slow(&self) -> bool {
        !FAST.iter().any(|part| self.driver.contains(part))
    }

    /// `xts(aes) by xts-aes-aesni`, with a warning if it is slow.
    pub fn in_words(&self) -> String {
        let warning = if self.slow() { ", which uses no AES instructions of the processor" } else { "" };
        format!("{} by {}{warning}", self.name, self.driver)
    }
}

/// The implementation of `name` that the kernel of this machine uses; `None` before its first use.
pub fn driver(name: &str) -> Option<Driver> {
    chosen(&fs::read_to_string("/proc/crypto").unwrap_or_default(), name)
}

/// The implementation of `name` with the highest priority in the text of `/proc/crypto`.
fn chosen(text: &str, name: &str) -> Option<Driver> {
    let block = |block: &str| {
        let entry = |key: &str| {
            let (_, value) =
                block.lines().filter_map(|line| line.split_once(':')).find(|(found, _)| found.trim() == key)?;
            Some(value.trim().to_owned())
        };
        Some(Driver { name: entry("name")?, driver: entry("driver")?, priority: entry("priority")?.parse().ok()? })
    };
    text.split("\n\n").filter_map(block).filter(|driver| driver.name == name).max_by_key(|driver| driver.priority)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "name         : xts(aes)\ndriver       : xts(ecb(aes-fixed-time))\npriority     : 101\n\n\
                        name         : xts(aes)\ndriver       : xts-aes-aesni\nmodule       : aesni_intel\npriority     : 401\n\n\
                        name         : cbc(aes)\ndriver       : cbc(ecb(aes-generic))\npriority     : 100\n";

    #[test]
    fn the_highest_priority_is_what_the_kernel_uses() {
        let driver = |name| chosen(TEXT, name).map(|driver| driver.in_words());
        assert_eq!(driver("xts(aes)").as_deref(), Some("xts(aes) by xts-aes-aesni"));
        assert_eq!(
            driver("cbc(aes)").as_deref(),
            Some("cbc(aes) by cbc(ecb(aes-generic)), which uses no AES instructions of the processor")
        );
        assert_eq!(driver("gcm(aes)"), None);
    }

    #[test]
    fn the_first_of_the_slow_ones_is_told_from_the_fast() {
        let slow = |driver: &str| Driver { name: String::new(), driver: driver.to_owned(), priority: 0 }.slow();
        assert!(["xts(ecb(aes-fixed-time))", "xts(ecb(aes-generic))"].iter().all(|driver| slow(driver)));
        // POWER8, a network processor of NXP, VIA.
        assert!(["p8_aes_xts", "xts-aes-caam-qi2", "xts(ecb-aes-padlock)"].iter().all(|driver| !slow(driver)));
        let fast = ["xts-aes-aesni", "xts-aes-vaes-avx10_256", "xts-aes-ce", "xts-aes-neonbs", "xts-serpent-avx2"];
        assert!(!fast.iter().any(|driver| slow(driver)));
    }

    proptest! {
        #[test]
        fn order_of_blocks_and_foreign_lines_do_not_matter(
            mut priorities in proptest::collection::vec(-1000i64..1000, 1..8), noise in "[a-z :]{0,30}",
        ) {
            let block = |priority: &i64| format!("name : x\ndriver : d{priority}\n{noise}:\npriority : {priority}\n");
            let text = priorities.iter().map(block).collect::<Vec<_>>().join("\n");
            priorities.sort_unstable();
            let best = priorities.last().map(|priority| format!("d{priority}"));
            prop_assume!(!["name", "driver", "priority"].contains(&noise.split(':').next().unwrap_or_default().trim()));
            prop_assert_eq!(chosen(&text, "x").map(|driver| driver.driver), best);
        }

        #[test]
        fn any_text_is_read(text in "(name|driver|priority|[ -~\\n])*") {
            let found = chosen(&text, "xts(aes)");
            prop_assert!(found.is_none_or(|driver| driver.name == "xts(aes)"));
        }
    }
}
