//! An encryptor for WiredTiger, which the engine calls for every page and every journal record.
//!
//! The engine gets it from an extension while it opens (see `extension.c`), and returns it when it closes. Panics do
//! not cross the interface: one that occurs becomes an error of the engine, like a refused page.

pub mod cipher;
pub mod keystore;
pub mod locked;
mod portable;

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    fs::File,
    io::Write,
    os::fd::AsRawFd,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
    sync::{Arc, OnceLock},
};

use aes::Aes256;
use rustix::fs::{MemfdFlags, memfd_create};
use tithe_machine::fault::Fault;

use self::{
    cipher::{Aes, Cbc, Gcm, Key, Nothing, PageCipher, Refusal},
    portable::PortableAes256,
};
use super::{ffi, messages::Messages};

/// The name of the encryptor in the engine's configuration.
pub const NAME: &str = "tithe";

/// Calls the encryptor and encrypts nothing.
pub const NONE: &str = "none";

/// Every cipher that encrypts.
pub const CIPHERS: [&str; 3] = ["aes-256-cbc", "aes-256-cbc-hmac", "aes-256-gcm"];

/// What computes AES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    /// The processor's instructions, if it has them.
    Processor,
    /// Portable code, whatever the processor has.
    Portable,
}

/// The suffix of a cipher that is computed in portable code. The stored form is the same.
const PORTABLE: &str = "/portable";

/// The name of an arm's cipher: `cipher`, and how it is carried out.
pub fn arm_cipher(cipher: &str, implementation: Implementation) -> String {
    match implementation {
        Implementation::Processor => cipher.to_owned(),
        Implementation::Portable => format!("{cipher}{PORTABLE}"),
    }
}

/// Takes the name of an arm's cipher apart.
pub fn cipher_and_implementation(arm_cipher: &str) -> (&str, Implementation) {
    match arm_cipher.strip_suffix(PORTABLE) {
        Some(cipher) => (cipher, Implementation::Portable),
        None => (arm_cipher, Implementation::Processor),
    }
}

/// The cipher with the name of an arm's, under `data_key`.
///
/// # Errors
/// [`Fault::Refused`] if there is none of this name, or if no memory can be locked for its keys.
pub fn page_cipher(arm_cipher: &str, data_key: &Key) -> Result<Arc<dyn PageCipher>, Fault> {
    match cipher_and_implementation(arm_cipher) {
        (name, Implementation::Processor) => carried_out_by::<Aes256>(name, data_key),
        (name, Implementation::Portable) => carried_out_by::<PortableAes256>(name, data_key),
    }
}

fn carried_out_by<A: Aes + 'static>(name: &str, data_key: &Key) -> Result<Arc<dyn PageCipher>, Fault> {
    Ok(match name {
        "aes-256-cbc" => Arc::new(Cbc::<A>::new(data_key, false)?),
        "aes-256-cbc-hmac" => Arc::new(Cbc::<A>::new(data_key, true)?),
        "aes-256-gcm" => Arc::new(Gcm::<A>::new(data_key)?),
        NONE => Arc::new(Nothing),
        _ => return Err(Fault::Refused(format!("there is no cipher `{name}`; {} are", CIPHERS.join(", ")))),
    })
}

/// The structure that the engine holds: its own structure comes first, so that a pointer to it points to all of it.
#[repr(C)]
struct Encryptor {
    functions: ffi::Encryptor,
    cipher: Arc<dyn PageCipher>,
    messages: Arc<Messages>,
}

thread_local! {
    /// The encryptor that the hook gives to the engine that this thread is opening.
    static OFFERED: RefCell<Option<Box<Encryptor>>> = const { RefCell::new(None) };
}

/// Calls `open`, which opens an engine in this thread; the engine's extension gets `cipher`.
pub fn offering<T>(cipher: Arc<dyn PageCipher>, messages: Arc<Messages>, open: impl FnOnce() -> T) -> T {
    let functions = ffi::Encryptor { encrypt, decrypt, sizing, customize: ptr::null(), terminate };
    OFFERED.set(Some(Box::new(Encryptor { functions, cipher, messages })));
    let result = open();
    OFFERED.take();
    result
}

/// The path from which the engine loads the extension.
///
/// # Errors
/// If the kernel provides no memory for it, or it cannot be loaded.
pub fn extension() -> Result<&'static str, Fault> {
    static LOADED: OnceLock<Result<String, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| load_extension().map_err(|error| error.to_string()));
    loaded.as_deref().map_err(|error| Fault::machine("the encryptor's extension", error))
}

/// Writes the extension to memory with a file name, loads it and sets its pointer. Neither is ever freed.
fn load_extension() -> Result<String, Box<dyn std::error::Error>> {
    const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/extension.so"));
    let mut file = File::from(memfd_create("tithe-extension", MemfdFlags::CLOEXEC)?);
    file.write_all(OBJECT)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the object is `extension.c`: it runs no code when it is loaded, and its pointer has this type. The engine
    // loads the same file, and so gets the same object.
    unsafe {
        let object = libloading::Library::new(&path)?;
        let pointer = object.get::<*mut ffi::ExtensionInit>(c"tithe_hook")?;
        **pointer = hook;
        std::mem::forget(object);
    }
    std::mem::forget(file);
    Ok(path)
}

unsafe extern "C" fn hook(connection: *mut ffi::Connection, _configuration: *mut c_void) -> c_int {
    let Some(encryptor) = OFFERED.take() else { return ffi::ERROR };
    let encryptor = Box::into_raw(encryptor);
    // SAFETY: the engine calls this with the connection that it is opening. It takes the encryptor and keeps it until
    // it calls `terminate`; if it does not take it, the encryptor is ours again.
    unsafe {
        let status = ((*connection).add_encryptor)(connection, c"tithe".as_ptr(), encryptor.cast(), ptr::null());
        if status != ffi::OK {
            drop(Box::from_raw(encryptor));
        }
        status
    }
}

unsafe extern "C" fn encrypt(
    encryptor: *mut ffi::Encryptor,
    _session: *mut ffi::Session,
    source: *mut u8,
    source_length: usize,
    target: *mut u8,
    target_length: usize,
    length: *mut usize,
) -> c_int {
    // SAFETY: the engine passes the encryptor that it was given, and buffers of the stated lengths.
    unsafe {
        transform(encryptor, (source, source_length), (target, target_length), length, |cipher, plain, stored| {
            cipher.encrypt(plain, stored)
        })
    }
}

unsafe extern "C" fn decrypt(
    encryptor: *mut ffi::Encryptor,
    _session: *mut ffi::Session,
    source: *mut u8,
    source_length: usize,
    target: *mut u8,
    target_length: usize,
    length: *mut usize,
) -> c_int {
    // SAFETY: as `encrypt`.
    unsafe {
        transform(encryptor, (source, source_length), (target, target_length), length, |cipher, stored, plain| {
            cipher.decrypt(stored, plain)
        })
    }
}

/// Calls `work` on the two buffers.
///
/// # Safety
/// `encryptor` is one that [`hook`] gave to the engine; both buffers exist, do not overlap, and nothing else uses them.
unsafe fn transform(
    encryptor: *mut ffi::Encryptor,
    (source, source_length): (*mut u8, usize),
    (target, target_length): (*mut u8, usize),
    length: *mut usize,
    work: impl FnOnce(&dyn PageCipher, &[u8], &mut [u8]) -> Result<usize, Refusal>,
) -> c_int {
    // SAFETY: by the conditions of this function; the functions are the first member of the encryptor.
    let (encryptor, source, target) = unsafe {
        let encryptor = &*encryptor.cast::<Encryptor>();
        (encryptor, bytes(source, source_length), slice::from_raw_parts_mut(target, target_length))
    };
    let done = catch_unwind(AssertUnwindSafe(|| work(encryptor.cipher.as_ref(), source, target)));
    match done {
        Ok(Ok(written)) => {
            // SAFETY: the engine expects the length here.
            unsafe { *length = written };
            ffi::OK
        }
        Ok(Err(refusal)) => {
            encryptor.messages.add(refusal.words().to_owned());
            ffi::ERROR
        }
        Err(_) => {
            encryptor.messages.add("the encryptor panicked".to_owned());
            ffi::ERROR
        }
    }
}

/// A slice, also if the engine passes no address for zero bytes.
///
/// # Safety
/// As [`slice::from_raw_parts`] if `length` is not 0.
unsafe fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    // SAFETY: by the condition of this function.
    if length == 0 { &[] } else { unsafe { slice::from_raw_parts(start, length) } }
}

unsafe extern "C" fn sizing(
    encryptor: *mut ffi::Encryptor,
    _session: *mut ffi::Session,
    expansion: *mut usize,
) -> c_int {
    // SAFETY: the engine passes the encryptor that it was given, and expects the number here.
    unsafe { *expansion = (*encryptor.cast::<Encryptor>()).cipher.overhead() };
    ffi::OK
}

unsafe extern "C" fn terminate(encryptor: *mut ffi::Encryptor, _session: *mut ffi::Session) -> c_int {
    // SAFETY: the engine returns the encryptor that it was given, once, and does not use it again.
    drop(unsafe { Box::from_raw(encryptor.cast::<Encryptor>()) });
    ffi::OK
}

#[cfg(test)]
mod tests;
