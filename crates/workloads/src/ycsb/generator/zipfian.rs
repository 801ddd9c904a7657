//! Zipfian generators: few items are popular, most are not.
//!
//! The method is that of Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly Generating
//! Billion-Record Synthetic Databases", SIGMOD 1994, with the constant 0.99 throughout.

use super::{ThreadLocalRandom, fnv_hash};

/// The skew, theta in Gray et al.
const THETA: f64 = 0.99;

/// The first item is the most popular: `site.ycsb.generator.ZipfianGenerator`.
#[derive(Debug, Clone)]
pub struct Zipfian {
    base: i64,
    items: i64,
    /// Items that `zeta` sums over; it can grow beyond `items`, which stays unchanged.
    counted: i64,
    zeta: f64,
    zeta_of_two: f64,
    alpha: f64,
    eta: f64,
    /// Below this the scaled draw means the second item.
    second: f64,
}

impl Zipfian {
    /// Items `low..=high`. Sums over all of them: about 20 ns an item.
    pub fn new(low: i64, high: i64) -> Self {
        Self::with_zeta(low, high, zeta(0, high - low + 1, 0.0))
    }

    fn with_zeta(low: i64, high: i64, zeta_of_all: f64) -> Self {
        let items = high - low + 1;
        let mut generator = Self {
            base: low,
            items,
            counted: items,
            zeta: zeta_of_all,
            zeta_of_two: zeta(0, 2, 0.0),
            alpha: 1.0 / (1.0 - THETA),
            eta: 0.0,
            second: 1.0 + 0.5_f64.powf(THETA),
        };
        generator.set_eta();
        generator
    }

    /// The next item.
    #[inline]
    pub fn next(&self, random: &mut ThreadLocalRandom) -> i64 {
        self.draw(self.items, random)
    }

    /// The next item of `items`, if the set has grown to that; never removes items.
    #[inline]
    fn next_of(&mut self, items: i64, random: &mut ThreadLocalRandom) -> i64 {
        if items > self.counted {
            self.zeta = zeta(self.counted, items, self.zeta);
            self.counted = items;
            self.set_eta();
        }
        self.draw(items, random)
    }

    #[inline]
    fn draw(&self, items: i64, random: &mut ThreadLocalRandom) -> i64 {
        let u = random.next_double();
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            return self.base;
        }
        if scaled < self.second {
            return self.base + 1;
        }
        self.base + (items as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as i64
    }

    /// YCSB keeps the first number of items here even if the set has grown.
    fn set_eta(&mut self) {
        self.eta = (1.0 - (2.0 / self.items as f64).powf(1.0 - THETA)) / (1.0 - self.zeta_of_two / self.zeta);
    }
}

/// Adds the terms of items `from..to` to `sum`.
fn zeta(from: i64, to: i64, sum: f64) -> f64 {
    (from..to).fold(sum, |sum, item| sum + 1.0 / ((item + 1) as f64).powf(THETA))
}

/// Popular items spread over the whole set: `site.ycsb.generator.ScrambledZipfianGenerator`.
///
/// It draws from 10^10 items, whatever the size of the set, and maps them onto it by a hash. So the skew does not
/// depend on the size of the set, and is a little less than its constant.
#[derive(Debug, Clone)]
pub struct ScrambledZipfian {
    low: i64,
    count: i64,
    inner: Zipfian,
}

impl ScrambledZipfian {
    /// Items `low..=high`.
    pub fn new(low: i64, high: i64) -> Self {
        const ITEMS: i64 = 10_000_000_000;
        const ZETA_OF_ITEMS: f64 = 26.469_028_201_783_02;
        Self { low, count: high - low + 1, inner: Zipfian::with_zeta(0, ITEMS, ZETA_OF_ITEMS) }
    }

    /// The next item.
    #[inline]
    pub fn next(&self, random: &mut ThreadLocalRandom) -> i64 {
        self.low + fnv_hash(self.inner.next(random)) % self.count
    }
}

/// The newest item is the most popular: `site.ycsb.generator.SkewedLatestGenerator`.
#[derive(Debug, Clone)]
pub struct Latest {
    inner: Zipfian,
}

impl Latest {
    /// For a set whose newest item is `newest` now. Sums over all of them: about 20 ns an item.
    pub fn new(newest: i64) -> Self {
        Self { inner: Zipfian::new(0, newest - 1) }
    }

    /// The next item, if the newest is `newest`. Takes about 20 ns more for each item since the draw before.
    #[inline]
    pub fn next(&mut self, newest: i64, random: &mut ThreadLocalRandom) -> i64 {
        newest - self.inner.next_of(newest, random)
    }
}
