//! Lengths of time, sizes and percentages as people write them.

/// Seconds in `5 min`, `90 s`, `20 ms`, `1.5 h`; `None` if it is no length of time.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number * scale)
}

/// Bytes in `512 MiB`, `1.5 GB`; `None` if it is no size.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    // Rounds a fraction of a byte down; sizes beyond 16 EiB saturate and are refused as too large.
    Some((number * scale) as u64)
}

/// The ratio of `1%` or `0.5 %` as a natural logarithm: ln(1 + p/100), so that 1 % is 0.00995.
///
/// Costs are ratios and are averaged as logarithms; a cost of p percent lies at ln(1 + p/100).
pub(super) fn ln_ratio(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    (unit == "%").then(|| (number / 100.0).ln_1p())
}

/// The share of `+26.5%`, `-3 %` or `20%`: 0.265, -0.03, 0.2.
pub(super) fn signed_share(text: &str) -> Option<f64> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, unit) = split(digits)?;
    (unit == "%").then_some(sign * number / 100.0)
}

/// A decimal number and what follows it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(seconds("5 min"), Some(300.0));
        assert_eq!(seconds("90s"), Some(90.0));
        assert_eq!(seconds(" 1.5 h "), Some(5400.0));
        assert_eq!(seconds("20 ms"), Some(0.02));
        for bad in ["", "min", "5", "5 m", "-5 s", "5 s 3", "1..2 s", "∞ s", "5 мин"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("512 MiB"), Some(512 << 20));
        assert_eq!(bytes("1.5GB"), Some(1_500_000_000));
        assert_eq!(
            ["2 kB", "2 MB", "2 KiB", "2 GiB"].map(bytes),
            [Some(2000), Some(2_000_000), Some(2048), Some(2 << 30)]
        );
        for bad in ["", "512", "512 mb", "-1 MB", "1 MB 2"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn percentages_are_natural_log_ratios() {
        assert_eq!(ln_ratio("0%"), Some(0.0));
        assert_eq!(ln_ratio("1 %"), Some(0.01f64.ln_1p()));
        assert_eq!(ln_ratio("100%"), Some(std::f64::consts::LN_2));
        for bad in ["", "%", "1", "1 percent", "-1%", "1%%"] {
            assert_eq!(ln_ratio(bad), None, "{bad}");
        }
    }

    #[test]
    fn changes_have_a_sign() {
        assert_eq!(["+25%", "-3 %", "50%"].map(signed_share), [Some(0.25), Some(-0.03), Some(0.5)]);
        for bad in ["", "+", "--3%", "+-3%", "−3%", "3"] {
            assert_eq!(signed_share(bad), None, "{bad}");
        }
    }
}
