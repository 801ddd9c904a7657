//! Lengths of fields from a histogram, in the format of YCSB's file.

use super::ThreadLocalRandom;

/// Lengths by the frequencies of a histogram: `site.ycsb.generator.HistogramGenerator`.
#[derive(Debug, Clone)]
pub struct Histogram {
    block: i64,
    buckets: Vec<i64>,
    area: i32,
}

impl Histogram {
    /// Bucket `i` stands for the length `(i + 1) * block` with the frequency `buckets[i]`, the last bucket for
    /// one block less.
    ///
    /// # Errors
    /// The problem: no bucket, a negative frequency, or frequencies that add up to 0 or above 2^31 - 1.
    pub fn new(block: i64, buckets: Vec<i64>) -> Result<Self, String> {
        if block < 0 || buckets.iter().any(|&count| count < 0) {
            return Err("it has a negative number".to_owned());
        }
        let area: i128 = buckets.iter().map(|&count| i128::from(count)).sum();
        match i32::try_from(area) {
            Ok(area) if area > 0 => Ok(Self { block, buckets, area }),
            _ => Err(format!("its frequencies add up to {area}, not to 1..=2147483647")),
        }
    }

    /// Reads YCSB's file: `BlockSize`, a tab and a number on the first line, then lines of bucket, tab, frequency.
    ///
    /// # Errors
    /// The problem, with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate();
        let pair = |line: &str| {
            let (name, number) = line.split_once('\t')?;
            Some((name.to_owned(), number.split('\t').next()?.parse::<i32>().ok()?))
        };
        let block = match lines.next().and_then(|(_, line)| pair(line)) {
            Some((name, block)) if name == "BlockSize" => i64::from(block),
            _ => return Err("its first line is not \"BlockSize\", a tab and a number".to_owned()),
        };
        let mut buckets = Vec::new();
        for (index, line) in lines {
            match pair(line) {
                Some((bucket, count)) if bucket.parse() == Ok(buckets.len()) => buckets.push(i64::from(count)),
                _ => return Err(format!("line {} is not bucket {}, a tab and a number", index + 1, buckets.len())),
            }
        }
        Self::new(block, buckets)
    }

    /// The largest length that can be drawn.
    pub fn longest(&self) -> i64 {
        self.block * (self.buckets.len() as i64 - 1)
    }

    /// The next length.
    pub fn next(&self, random: &mut ThreadLocalRandom) -> i64 {
        let mut number = i64::from(random.next_int_below(self.area));
        let last = self.buckets.len() - 1;
        for (index, count) in self.buckets[..last].iter().enumerate() {
            number -= count;
            if number <= 0 {
                return (index as i64 + 1) * self.block;
            }
        }
        last as i64 * self.block
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_is_read_as_ycsb_reads_it() {
        let histogram = Histogram::parse("BlockSize\t10\n0\t1\n1\t0\n2\t3\n").unwrap();
        assert_eq!((histogram.block, &histogram.buckets[..], histogram.area), (10, &[1, 0, 3][..], 4));
        assert_eq!(histogram.longest(), 20);
    }

    #[test]
    fn problems_name_their_line() {
        let problem = |text| Histogram::parse(text).unwrap_err();
        assert_eq!(problem(""), "its first line is not \"BlockSize\", a tab and a number");
        assert_eq!(problem("BlockSize\t10\n1\t5\n"), "line 2 is not bucket 0, a tab and a number");
        assert_eq!(problem("BlockSize\t10\n0\t0\n"), "its frequencies add up to 0, not to 1..=2147483647");
        assert_eq!(problem("BlockSize\t10\n0\t-1\n"), "it has a negative number");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(BlockSize\t|[0-3]\t|-?[0-9]{1,10}|\n|[ -~])*") {
            let _ = Histogram::parse(&text);
        }

        #[test]
        fn no_length_is_longer_than_the_longest(
            block: i32,
            counts in proptest::collection::vec(0i32..9, 1..6),
            seed: u64,
        ) {
            let lines = counts.iter().enumerate().map(|(bucket, count)| format!("{bucket}\t{count}\n"));
            let text = format!("BlockSize\t{block}\n{}", lines.collect::<String>());
            let is_one = block >= 0 && counts.iter().any(|count| *count > 0);
            prop_assert_eq!(Histogram::parse(&text).is_ok(), is_one);
            if let Ok(histogram) = Histogram::parse(&text) {
                let mut random = ThreadLocalRandom::new(seed);
                let lengths: Vec<i64> = (0..50).map(|_| histogram.next(&mut random)).collect();
                prop_assert!(lengths.iter().all(|length| (0..=histogram.longest()).contains(length)), "{:?}", lengths);
            }
        }
    }
}
