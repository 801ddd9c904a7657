//! The cost of an operation of the simulated database on simulated time.

use std::sync::atomic::Ordering;

use tithe_machine::clock::VirtualTime;

use super::Model;

/// Share of a plain operation's processor time that the client uses; the costs of protections are in the server.
const CLIENT_SHARE: f64 = 0.1;
/// How long a stalled operation waits for a processor, ns.
const STALL_NS: u64 = 5_000_000;

impl Model {
    /// The same on the start with this number: the whole server is slower or faster for as long as the start lasts.
    pub(super) fn on_start(self, start: u64) -> Self {
        // Two servers that vary independently differ by √2 times as much as each.
        let of_one = self.luck * std::f64::consts::FRAC_1_SQRT_2;
        Self { service_ns: self.service_ns * lognormal(of_one, mix(start ^ mix(self.luck_seed))), ..self }
    }

    /// Lets one operation pass on the simulated time of `lane`, after `done` others since the server's start. Apart
    /// from stalls, all of its time is processor time.
    pub(super) fn pass(&self, time: &VirtualTime, lane: u64, done: u64) {
        let now = time.now.load(Ordering::Relaxed);
        let random = mix(now ^ mix(lane));
        let plain = self.service_ns * lognormal(self.noise, random) * self.drift(now) * self.uncompiled(done);
        let client = (plain * CLIENT_SHARE) as u64;
        let server = (plain * (self.cost - CLIENT_SHARE)) as u64;
        let wait = if fraction(mix(random)) < self.stalls { STALL_NS } else { 0 };
        time.client_cpu.fetch_add(client, Ordering::Relaxed);
        time.server_cpu.fetch_add(server, Ordering::Relaxed);
        time.wait.fetch_add(wait, Ordering::Relaxed);
        time.now.fetch_add(client + server + wait, Ordering::Relaxed);
    }

    /// How much slower everything is after `done` operations since a start, because not everything is compiled yet: the
    /// rest halves with every fixed number of operations, linearly in between.
    fn uncompiled(&self, done: u64) -> f64 {
        let (halvings, within) = (done / self.slow_operations, done % self.slow_operations);
        let left = self.slow_start * 0.5_f64.powi(halvings.min(1000) as i32);
        1.0 + left * (1.0 - within as f64 / self.slow_operations as f64 / 2.0)
    }

    /// How much slower everything is at the moment `now`, because of a simulated program: half of the effect oscillates
    /// with a period of 7 s, the other half switches in steps of 11 s.
    pub(super) fn drift(&self, now: u64) -> f64 {
        const SWELL_NS: u64 = 7_000_000_000;
        const STEP_NS: u64 = 11_000_000_000;
        let phase = (now % SWELL_NS) as f64 / SWELL_NS as f64;
        let swell = 1.0 - (2.0 * phase - 1.0).abs();
        let step = (mix(now / STEP_NS) & 1) as f64;
        1.0 + self.drift * (swell + step) / 2.0
    }
}

/// Approximately lognormal: the first three terms of the exponential of `spread` times a sum of four uniform numbers,
/// which is approximately normal. It uses only additions and multiplications, so every machine gets the same bits.
fn lognormal(spread: f64, random: u64) -> f64 {
    let sum: f64 = (0..4).map(|part| (random >> (16 * part) & 0xffff) as f64 / 65_536.0).sum();
    // The sum has mean 2 and variance 4/12.
    let exponent = spread * (sum - 2.0) * 3f64.sqrt();
    1.0 + exponent + exponent * exponent / 2.0
}

/// A number in 0–1.
pub(super) fn fraction(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a well mixed
/// number from any number.
pub(super) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
