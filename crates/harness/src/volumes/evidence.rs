//! Evidence that a volume was encrypted.

use std::{
    fs::{self, File},
    io::{self, Read},
};

use rustix::{
    fs::{SeekFrom, seek},
    io::Errno,
};
use tithe_machine::{
    fault::Fault,
    observation::Observation,
    sandbox::{copy, volume_builder::Layout},
};
use tithe_model::quantity;
use tithe_plugin::{
    checks::{
        canary::{Canaries, Source, TOKEN_BYTES, Targets, key_value},
        needles::{Needles, Tally},
        scan::{Places, files_of, scan},
    },
    evidence::{Check, CheckContext, CheckEntry},
    volume::VolumeSpec,
};

use super::cipher;

fn spec_of<'a>(context: &'a CheckContext<'_>) -> Result<&'a VolumeSpec, Fault> {
    context.setup.volume.as_ref().ok_or_else(|| Fault::Machine("the arm has no volume".to_owned()))
}

/// Writes canaries through the measured path and one file of its own, and searches for them in the image, which is the
/// disk. The mounted view must show its own file, or nothing is proven. Id `raw-image`.
pub struct RawImage;

impl RawImage {
    fn compare(
        context: &CheckContext<'_>,
        layout: &Layout,
        canaries: &Canaries,
        token: &[u8],
    ) -> Result<Observation, Fault> {
        copy::sync(&layout.folder).map_err(|error| Fault::machine("cannot sync the volume", error))?;
        let below = layout.below();
        if below.exists() {
            copy::sync(&below).map_err(|error| Fault::machine("cannot sync the volume", error))?;
        }
        let tokens = canaries.tokens(&Targets::Everything);
        let needles = Needles::new(tokens.iter().map(|token| ("canary", *token)).chain([("file", token)]));
        let image = File::open(layout.image()).map_err(|error| Fault::machine("the image of the volume", error))?;
        let (disk, bytes) = needles
            .count_in(&mut Written::new(image))
            .map_err(|error| Fault::machine("the image of the volume", error))?;
        if disk.hits() > 0 {
            return Ok(Observation::Exposed(format!("in the raw image: {}", disk.describe())));
        }
        let mut files = files_of(context.server, Places::FILES);
        files.extend(tithe_plugin::checks::scan::files_below(&layout.folder));
        Ok(nothing_found(bytes, &scan(&needles, files).total(), tokens.len()))
    }
}

/// The result of a search for `of` canaries that found nothing in the `bytes` written to the image; `view` is what it
/// found in the mounted file system.
fn nothing_found(bytes: u64, view: &Tally, of: usize) -> Observation {
    if bytes == 0 {
        return Observation::Unknown("nothing is written to the raw image".to_owned());
    }
    if view.distinct("file") == 0 {
        return Observation::Unknown("the marker file is not readable in the mounted view either".to_owned());
    }
    Observation::Protected(format!(
        "none of {of} canaries and no marker file in {} written to the raw image; in the mounted view {} of {of} and \
         the file",
        quantity::size(bytes),
        view.distinct("canary")
    ))
}

impl Check for RawImage {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("raw-image")
    }

    fn claim(&self) -> String {
        "no key, field value or file is readable in the raw image of the volume".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        spec_of(context)?;
        let layout = Layout::of(&context.server.folder);
        let canaries = Canaries::new(context, "raw-image");
        let mut session = key_value(context.connect()?)?;
        canaries.write(session.as_mut())?;
        drop(session);
        context.database.quiesce(context.server, context.setup, context.table)?;

        let token = Source::new(context, "raw-image-file").text(TOKEN_BYTES);
        let marker = layout.folder.join(format!("tithe-marker-{:016x}", context.nonce));
        fs::write(&marker, &token).map_err(|error| Fault::machine("cannot write the marker file", error))?;
        let observation = Self::compare(context, &layout, &canaries, &token);
        fs::remove_file(&marker).map_err(|error| Fault::machine("cannot remove the marker file", error))?;
        observation
    }
}

/// Reads the written parts of a sparse file, and skips the holes.
struct Written {
    file: File,
    /// End of the current stretch of data.
    end: u64,
    at: u64,
}

impl Written {
    fn new(file: File) -> Self {
        Self { file, end: 0, at: 0 }
    }

    /// Moves to the next data; `false` at the end of the file.
    fn advance(&mut self) -> io::Result<bool> {
        let Some(start) = self.seek(SeekFrom::Data(self.at))? else { return Ok(false) };
        self.end = self.seek(SeekFrom::Hole(start))?.unwrap_or(start);
        self.at = seek(&self.file, SeekFrom::Start(start))?;
        Ok(self.end > self.at)
    }

    /// `None` if there are no more data.
    fn seek(&self, from: SeekFrom) -> io::Result<Option<u64>> {
        match seek(&self.file, from) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Written {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.end && !self.advance()? {
            return Ok(0);
        }
        let room = buffer.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let read = self.file.read(&mut buffer[..room])?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reads from the disk's header how it is encrypted. Id `volume-header`.
pub struct Header;

impl Check for Header {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("volume-header").own_control()
    }

    fn claim(&self) -> String {
        "what is on the disk names the cipher and key length that were asked for".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let spec = spec_of(context)?;
        spec.kind.header(spec, &Layout::of(&context.server.folder))
    }
}

/// Judges what a tool did with a `wrong` key and with the `right` one. It refuses a key with this exit `status`; any
/// other failure, of the machine for example, proves nothing.
pub fn keys_tried(status: u8, wrong: Result<(), Fault>, right: Result<(), Fault>) -> Observation {
    match (wrong, right) {
        (Ok(()), _) => Observation::Exposed("a wrong key opens it".to_owned()),
        (Err(fault), _) if !fault.to_string().contains(&format!("(exit status: {status})")) => {
            Observation::Unknown(format!("trying a wrong key failed: {fault}"))
        }
        (Err(_), Err(fault)) => Observation::Unknown(format!("its own key does not open it: {fault}")),
        (Err(fault), Ok(())) => {
            let words = match fault {
                Fault::Refused(words) => words,
                other => other.to_string(),
            };
            Observation::Protected(format!("a wrong key: {words}; its own key opens it"))
        }
    }
}

/// Tries a wrong key, and the right one for its control. Id `volume-key`.
pub struct WrongKey;

impl Check for WrongKey {
    fn entry(&self) -> CheckEntry {
        CheckEntry::claim("volume-key").own_control()
    }

    fn claim(&self) -> String {
        "the volume opens with its own key and not with another".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let spec = spec_of(context)?;
        spec.kind.wrong_key(spec, &Layout::of(&context.server.folder))
    }
}

/// Reports which implementation of the cipher the kernel uses. A disclosure: a slow one makes the volume look more
/// expensive than it is elsewhere. Id [`tithe_model::record::CIPHER_DRIVER`].
pub struct CipherDriver;

impl Check for CipherDriver {
    fn entry(&self) -> CheckEntry {
        CheckEntry::disclosure(tithe_model::record::CIPHER_DRIVER).own_control()
    }

    fn claim(&self) -> String {
        "the kernel encrypts with instructions that the processor has for it".to_owned()
    }

    fn observe(&self, context: &mut CheckContext<'_>) -> Result<Observation, Fault> {
        let name = spec_of(context).ok().and_then(|spec| spec.kind.kernel_cipher(spec)).unwrap_or_default();
        Ok(match cipher::driver(&name) {
            Some(driver) if driver.slow() => Observation::Exposed(driver.in_words()),
            Some(driver) => Observation::Protected(driver.in_words()),
            None => Observation::Unknown(format!("/proc/crypto does not list {name}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use expect_test::expect;

    use super::*;

    #[test]
    fn only_a_refusal_of_the_wrong_key_proves_that_one_is_needed() {
        let failed = |words: &str| Err(Fault::Machine(words.to_owned()));
        let judged = |wrong, right| format!("{:?}", keys_tried(12, wrong, right));
        let all = [
            judged(failed("it failed (exit status: 12)"), Ok(())),
            judged(Ok(()), Ok(())),
            judged(Ok(()), failed("it failed (exit status: 12)")),
            judged(failed("it failed (exit status: 1)"), Ok(())),
            judged(failed("Input/output error"), Ok(())),
            judged(failed("it failed (exit status: 12)"), failed("Input/output error")),
        ];
        expect![[r#"
            Protected("a wrong key: it failed (exit status: 12); its own key opens it")
            Exposed("a wrong key opens it")
            Exposed("a wrong key opens it")
            Unknown("trying a wrong key failed: it failed (exit status: 1)")
            Unknown("trying a wrong key failed: Input/output error")
            Unknown("its own key does not open it: Input/output error")"#]]
        .assert_eq(&all.join("\n"));
    }

    #[test]
    fn an_image_without_data_and_a_view_without_the_file_show_nothing() {
        let (canary, file) = (b"a canary of twenty-four.", b"a marker of twenty-four.");
        let seen = |bytes: u64, view: &[u8]| {
            let needles = Needles::new([("canary", &canary[..]), ("file", &file[..])]);
            nothing_found(bytes, &needles.count(view), 9)
        };
        let both = [&canary[..], &file[..]].concat();
        let words = "none of 9 canaries and no marker file in 4.1 kB written to the raw image; in the mounted view \
                     1 of 9 and the file";
        assert_eq!(seen(4096, &both), Observation::Protected(words.to_owned()));
        for (bytes, view) in [(0, &both[..]), (4096, &canary[..]), (4096, &[][..])] {
            assert!(matches!(seen(bytes, view), Observation::Unknown(_)), "{bytes}");
        }
    }

    #[test]
    fn holes_are_passed_over_and_data_are_not() {
        let path = std::env::temp_dir().join(format!("tithe-test-volumes-sparse-{}", std::process::id()));
        let file = File::create(&path).expect("a file");
        file.set_len(64 << 20).expect("a length");
        file.write_all_at(b"first", 1 << 20).expect("written");
        file.write_all_at(b"second", 40 << 20).expect("written");
        let mut text = Vec::new();
        Written::new(File::open(&path).expect("the file")).read_to_end(&mut text).expect("read");
        let found = |needle: &[u8]| text.windows(needle.len()).any(|window| window == needle);
        assert!(found(b"first") && found(b"second"));
        assert!(text.len() < 64 << 20, "{} bytes", text.len());
        fs::remove_file(&path).expect("removed");
    }
}
