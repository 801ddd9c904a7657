//! Quantities in words: counts, rates, lengths of time, sizes and levels with their units.
//!
//! Plan, evidence, progress and report use these functions, so that the same quantity looks the same everywhere. The
//! report writes what needs more than one number, such as a cost with its interval.

/// The sign of a number below zero, as wide as a plus.
pub const MINUS: char = '−';

/// A whole number with thousands separated: `24,310`.
pub fn count(number: u64) -> String {
    group(&number.to_string())
}

/// A rate per second that the user chose: thousands separated, with all its decimals: `2,000`, `12.5`.
pub fn rate(per_second: f64) -> String {
    group(&per_second.to_string())
}

/// A percentage, from a formatted number: `12.2 %`. Every percentage that a reader sees has this form.
pub fn percentage(number: &str) -> String {
    format!("{number} %")
}

/// A length of time in seconds, rounded for reading, not for computing: `40 s`, `6 min`, `1 h 20 min`.
pub fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round();
    if !seconds.is_finite() {
        "∞".to_owned()
    } else if seconds < 99.5 {
        format!("{seconds:.0} s")
    } else if minutes < 60.0 {
        format!("{minutes:.0} min")
    } else {
        format!("{} h {:.0} min", fixed((minutes / 60.0).floor(), 0), minutes % 60.0)
    }
}

/// A length of time in seconds that the user chose or that is a limit: `20 ms`, `1.5 s`, `1 min 40 s`.
pub fn precise_duration(seconds: f64) -> String {
    let round = |value: f64| (value * 10.0).round() / 10.0;
    if seconds < 0.9995 {
        return format!("{} ms", round(seconds * 1e3));
    }
    if seconds < 99.95 {
        return format!("{} s", round(seconds));
    }
    let whole = seconds.round() as u64;
    let parts = [(whole / 3600, "h"), (whole / 60 % 60, "min"), (whole % 60, "s")];
    let parts = parts.iter().filter(|(count, _)| *count > 0).take(2);
    parts.map(|(count, unit)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ")
}

/// A moment in UTC as RFC 3339 writes it, from seconds since 1970: `2026-03-03T02:07:09Z`.
///
/// The date by Howard Hinnant's `civil_from_days`, whose years begin in March, so that a leap day is the last of its
/// year.
pub fn moment(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400 + 719_468, unix_s % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * months + 2) / 5 + 1, if months < 10 { months + 3 } else { months - 9 });
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let [hours, minutes, seconds] = [second / 3600, second / 60 % 60, second % 60];
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

/// Bytes in files and on wires, in powers of ten: `812 B`, `3.4 kB`, `38.1 MB`, `1.2 GB`.
pub fn size(bytes: u64) -> String {
    match decimal_unit(bytes as f64) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit),
        None => format!("{bytes} B"),
    }
}

/// Bytes that are only a guess, in powers of ten, rounded to meaningful digits: `5.0 MB`, `48 MB`.
pub fn rough_size(bytes: f64) -> String {
    let (unit, name) = decimal_unit(bytes).unwrap_or((1.0, "B"));
    let decimals = usize::from(bytes / unit < 10.0);
    format!("{:.decimals$} {name}", bytes / unit)
}

/// The largest power of a thousand bytes that is not above `bytes`, with its name; `None` below one kilobyte.
fn decimal_unit(bytes: f64) -> Option<(f64, &'static str)> {
    [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")].into_iter().find(|(unit, _)| bytes >= *unit)
}

/// Bytes of memory, in binary units: `23.4 GiB`.
pub fn memory(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    if gib >= 1.0 {
        format!("{} GiB", fixed(gib, decimals(gib)))
    } else {
        format!("{} MiB", fixed(gib * 1024.0, decimals(gib * 1024.0)))
    }
}

/// A level in the unit that is easiest to read: `1.53 ms`, `9,216 bytes/op`.
pub fn amount(value: f64, unit: &str) -> String {
    let (divisor, unit) = readable(value.abs(), unit);
    with_unit(fixed(value / divisor, decimals(value / divisor)), &unit)
}

/// The divisor and the unit in which `size` is easiest to read: microseconds become ms and s, bytes become kB, MB and
/// GB.
pub fn readable(size: f64, unit: &str) -> (f64, String) {
    let steps: &[(f64, f64, &str)] = match unit.split('/').next() {
        Some("µs") => &[(1e6, 1e6, "s"), (1e3, 1e3, "ms")],
        Some("bytes") => &[(1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (1e4, 1e3, "kB")],
        _ => &[],
    };
    let Some((_, divisor, larger)) = steps.iter().find(|(from, ..)| size >= *from) else {
        return (1.0, unit.to_owned());
    };
    let per = unit.split_once('/').map(|(_, per)| format!("/{per}")).unwrap_or_default();
    (*divisor, format!("{larger}{per}"))
}

/// A formatted number followed by its unit; without a unit, the number alone.
pub fn with_unit(text: String, unit: &str) -> String {
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// Decimals that leave three significant digits, at most six.
pub fn decimals(value: f64) -> usize {
    let size = value.abs();
    if size >= 100.0 || size == 0.0 || !size.is_finite() {
        return 0;
    }
    (2.0 - size.log10().floor()).clamp(0.0, 6.0) as usize
}

/// `value` with `decimals` decimals, thousands separated, no negative zero.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "?"
        } else if value < 0.0 {
            "−∞"
        } else {
            "∞"
        }
        .to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let negative = value < 0.0 && text.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let sign = if negative { MINUS.to_string() } else { String::new() };
    format!("{sign}{}", group(&text))
}

/// A comma before every third digit of the whole number, from the right; decimals stay unchanged.
fn group(number: &str) -> String {
    let (digits, decimals) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + decimals
}

/// Bytes in a server's setting of memory, as PostgreSQL and MariaDB write them: `256MB`, `256M`, `1G`; a number alone
/// is in units of `alone` bytes. `None` for anything else.
pub fn setting_bytes(text: &str, alone: u64) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let scale = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" => alone,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_keep_what_was_chosen() {
        assert_eq!(
            [0.5, 2.0, 9.75, 10.0, 12.5, 2000.0, 1_234_567.25].map(rate).join("; "),
            "0.5; 2; 9.75; 10; 12.5; 2,000; 1,234,567.25"
        );
    }

    #[test]
    fn times_are_rounded_to_what_one_plans_with() {
        let all: Vec<String> = [4.4, 99.4, 99.5, 3569.0, 3570.0, 3600.0, 4800.0, f64::INFINITY].map(duration).to_vec();
        assert_eq!(all.join("; "), "4 s; 99 s; 2 min; 59 min; 1 h 0 min; 1 h 0 min; 1 h 20 min; ∞");
    }

    #[test]
    fn chosen_times_keep_what_was_chosen() {
        let all = [0.0005, 0.02, 0.9994, 0.9995, 1.5, 99.9, 99.95, 100.0, 300.0, 7500.0, 7265.0].map(precise_duration);
        assert_eq!(
            all.join("; "),
            "0.5 ms; 20 ms; 999.4 ms; 1 s; 1.5 s; 99.9 s; 1 min 40 s; 1 min 40 s; 5 min; 2 h 5 min; 2 h 1 min"
        );
    }

    // Expected values: `date --utc --date @…` of GNU coreutils.
    #[test]
    fn moments_are_read_off_a_calendar() {
        let moments = [0, 951_782_399, 951_782_400, 951_868_800, 1_772_503_629, 4_107_542_400].map(moment);
        assert_eq!(
            moments.join(" "),
            "1970-01-01T00:00:00Z 2000-02-28T23:59:59Z 2000-02-29T00:00:00Z 2000-03-01T00:00:00Z \
             2026-03-03T02:07:09Z 2100-03-01T00:00:00Z"
        );
        assert!(moment(u64::MAX).ends_with('Z'));
    }

    #[test]
    fn sizes_are_in_powers_of_ten_and_memory_in_powers_of_two() {
        let sizes = [0, 999, 1000, 38_125_000, 1_200_000_000, 2_500_000_000_000].map(size);
        assert_eq!(sizes.join("; "), "0 B; 999 B; 1.0 kB; 38.1 MB; 1.2 GB; 2.5 TB");
        let guesses = [5.0, 812.0, 5e6, 48e6, 1.5e9, 20e12].map(rough_size);
        assert_eq!(guesses.join("; "), "5.0 B; 812 B; 5.0 MB; 48 MB; 1.5 GB; 20 TB");
        let memories = [200 << 20, 8 << 30, 25_125_000_000].map(memory);
        assert_eq!(memories.join("; "), "200 MiB; 8.00 GiB; 23.4 GiB");
    }

    #[test]
    fn amounts_choose_their_unit() {
        assert_eq!(amount(2_500_000.0, "µs"), "2.50 s");
        assert_eq!(amount(9216.0, "bytes/op"), "9,216 bytes/op");
        assert_eq!(amount(15_100_000.0, "bytes"), "15.1 MB");
        assert_eq!(amount(0.0342, "switches/op"), "0.0342 switches/op");
        assert_eq!(amount(0.0, "bytes/op"), "0 bytes/op");
        assert_eq!(amount(3.0, ""), "3.00");
    }

    #[test]
    fn no_number_is_a_negative_zero_and_none_is_lost() {
        let all = [-0.004, -1234.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(|value| fixed(value, 2));
        assert_eq!(all.join("; "), "0.00; −1,234.50; ?; ∞; −∞");
    }

    proptest! {
        #[test]
        fn grouping_only_adds_commas(number: u64) {
            let text = count(number);
            prop_assert_eq!(text.replace(',', ""), number.to_string());
            prop_assert!(text.split(',').skip(1).all(|group| group.len() == 3));
            prop_assert!(text.split(',').next().is_some_and(|group| (1..=3).contains(&group.len())));
        }
    }

    #[test]
    fn percentages_have_one_form() {
        assert_eq!(percentage("12.2"), "12.2 %");
        assert_eq!([0.0, -0.0].map(|value| fixed(value, 1)), ["0.0", "0.0"]);
    }

    #[test]
    fn settings_of_memory_are_read_as_servers_read_them() {
        assert_eq!(setting_bytes("256MB", 8192), Some(256 << 20));
        assert_eq!(setting_bytes("1G", 1), Some(1 << 30));
        assert_eq!(setting_bytes("16384", 8192), Some(128 << 20));
        for (unit, scale) in [("k", 10), ("kB", 10), ("M", 20), ("mb", 20), ("g", 30), (" GB ", 30)] {
            assert_eq!(setting_bytes(&format!(" 3{unit}"), 8192), Some(3 << scale), "{unit}");
        }
        for bad in ["", "MB", "-1MB", "1.5GB", "99999999999G"] {
            assert_eq!(setting_bytes(bad, 1), None, "{bad}");
        }
    }
}
