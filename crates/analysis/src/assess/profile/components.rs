//! Descriptions of functions: the table of components.
//!
//! In the kernel the component is searched from the innermost function outwards: a copy of bytes belongs to the system
//! call that asked for it. In user space callers are unreliable, so only the innermost function counts.

use tithe_model::profile::{Function, KERNEL};

/// Prefixes of names of kernel functions, with their component. The first matching row counts, for the innermost
/// function that matches any row.
const IN_KERNEL: &[(&str, &[&str])] = &[
    ("file encryption (fscrypt)", &["fscrypt_"]),
    ("disk encryption (dm-crypt)", &["crypt_", "kcryptd", "dmcrypt"]),
    (
        "encryption",
        &[
            "crypto_", "aes", "_aes", "__aes", "gcm", "xts", "skcipher", "aead", "chacha", "poly1305", "ghash",
            "sha256", "sha512",
        ],
    ),
    ("pipes", &["pipe_", "anon_pipe"]),
    ("local sockets", &["unix_"]),
    (
        "network",
        &[
            "tcp_",
            "__tcp",
            "ip_",
            "__ip_",
            "ip6_",
            "ipv6",
            "inet",
            "sock_",
            "__sock",
            "sk_",
            "__sk_",
            "skb",
            "__skb",
            "net_rx",
            "__net",
            "netif",
            "dev_",
            "__dev",
            "loopback",
            "nf_",
            "xfrm",
            "lock_sock",
            "release_sock",
            "bpf_skops",
            "__sys_sendto",
            "__sys_recvfrom",
            "process_backlog",
            "validate_xmit",
            "eth_",
            "simple_copy_to_iter",
        ],
    ),
    ("locks (futex)", &["futex", "do_futex", "__futex"]),
    (
        "scheduling",
        &[
            "schedule",
            "__schedule",
            "finish_task_switch",
            "try_to_wake_up",
            "ttwu",
            "__wake_up",
            "pick_",
            "__pick",
            "enqueue_",
            "dequeue_",
            "update_curr",
            "update_load",
            "ep_",
            "do_epoll",
            "__x64_sys_epoll",
            "do_sys_poll",
            "do_poll",
            "select_task",
            "switch_mm",
            "__switch_to",
            "psi_",
            "available_idle",
            "hrtimer_nanosleep",
            "do_nanosleep",
            "set_next_entity",
            "place_entity",
            "prepare_to_wait",
            "finish_wait",
        ],
    ),
    (
        "file system and storage",
        &[
            "vfs_",
            "ext4",
            "__ext4",
            "jbd2",
            "filemap",
            "generic_file",
            "generic_perform",
            "xfs_",
            "btrfs",
            "ovl_",
            "fuse_",
            "iomap",
            "blk_",
            "__blk",
            "bio_",
            "submit_bio",
            "virtblk",
            "do_sys_open",
            "path_",
            "link_path",
            "do_filp",
            "fdatasync",
            "file_write_and_wait",
            "shmem_",
            "ksys_",
            "fcntl",
            "flock",
            "posix_lock",
            "do_lock_file",
            "__fget",
            "fput",
            "simple_write",
        ],
    ),
    (
        "memory",
        &[
            "handle_mm_fault",
            "__handle_mm_fault",
            "do_user_addr_fault",
            "exc_page_fault",
            "asm_exc_page_fault",
            "do_mmap",
            "mmap_",
            "unmap_",
            "zap_",
            "do_madvise",
            "madvise",
            "mprotect",
            "brk",
            "do_anonymous_page",
            "clear_page",
            "tlb_",
            "flush_tlb",
        ],
    ),
    (
        "interrupts and timers",
        &[
            "asm_sysvec",
            "sysvec",
            "asm_common_interrupt",
            "common_interrupt",
            "handle_softirqs",
            "__do_softirq",
            "irq_",
            "hrtimer",
            "tick_",
        ],
    ),
    (
        "entering and leaving the kernel",
        &[
            "entry_",
            "do_syscall",
            "syscall_",
            "x64_sys_call",
            "__x64_sys",
            "exit_to_user",
            "srso_",
            "clear_bhb",
            "__do_sys",
        ],
    ),
];

/// Prefixes of object names, parts of the names of their functions, and the component. The first matching row counts;
/// an empty part matches every function.
const IN_USER_SPACE: &[(&str, &[&str], &str)] = &[
    ("libcrypto", &[""], "cryptography (OpenSSL)"),
    ("libssl", &[""], "TLS (OpenSSL)"),
    ("libgcrypt", &[""], "cryptography (libgcrypt)"),
    ("libgnutls", &[""], "TLS (GnuTLS)"),
    ("libwolfssl", &[""], "TLS (wolfSSL)"),
    ("libc.so", &["mem", "__mem", "str", "__str"], "copying and comparing (C library)"),
    ("libc.so", &["malloc", "free", "calloc", "realloc", "_int_malloc", "_int_free"], "memory (C library)"),
    ("libc.so", &[""], "C library"),
    ("ld-linux", &[""], "C library"),
    ("libm.so", &[""], "C library"),
    ("libpthread", &[""], "C library"),
    ("[vdso]", &[""], "reading the clock"),
    ("libz.so", &[""], "compression"),
    ("liblz4", &[""], "compression"),
    ("libzstd", &[""], "compression"),
    ("pgaudit", &[""], "pgaudit"),
    ("known_cost", &[""], "known_cost"),
    ("server_audit", &[""], "server_audit"),
    ("tithe", &["ring_core", "ring::"], "cryptography (ring)"),
    ("tithe", &["rustls"], "TLS (rustls)"),
    ("tithe", &["wiredtiger::encryptor"], "WiredTiger's encryptor"),
    ("tithe", &["aes_siv", "cmac", "sm4", "tithe_plugin::columns"], "column encryption"),
    // Of columns and of WiredTiger's encryptor.
    (
        "tithe",
        &["aes_gcm", "polyval", "ghash", "aes::", "ctr::", "cbc::", "hmac::", "sha2::"],
        "cryptography (RustCrypto)",
    ),
    // SQLite is written in C, whose names have no paths.
    ("tithe", &["::"], "Tithe's client"),
    (
        "tithe",
        &[
            "sqlite3mc",
            "mcrypto",
            "Rijndael",
            "aegis",
            "ascon",
            "chacha20",
            "poly1305",
            "AES_",
            "aesEncrypt",
            "aesDecrypt",
            "aesGen",
            "fastpbkdf2",
            "sha1_",
            "sha256_",
            "sha512_",
            "RC4",
            "keccak",
            "encrypt128",
            "decrypt128",
            "encrypt256",
            "decrypt256",
            "aeshardware",
            "Cipher",
            "Codec",
            "blake2",
            // The rounds of its MD5.
            "body",
            "xor128",
            "state128",
            "state256",
        ],
        "SQLite's cipher",
    ),
    ("tithe", &["sqlite3", "vdbe", "btree", "pager", "pcache", "wal", "unix"], "SQLite"),
    ("tithe", &[""], "Tithe's client"),
    ("redis-", &[""], "Redis"),
    ("valkey", &[""], "Valkey"),
    ("mariadbd", &[""], "MariaDB"),
    ("mysqld", &[""], "MySQL"),
    ("mongod", &[""], "MongoDB"),
    ("libjvm", &[""], "Java virtual machine"),
    ("[generated code]", &[""], "compiled Java and other generated code"),
];

/// The component of a stack, innermost function first.
pub(super) fn component(stack: &[&Function]) -> String {
    let Some(first) = stack.first() else { return "unknown".to_owned() };
    if first.object != KERNEL {
        return in_user_space(first);
    }
    let in_kernel = stack.iter().take_while(|function| function.object == KERNEL);
    let words = in_kernel.filter_map(|function| of_kernel(function.name.as_deref()?)).next();
    format!("kernel: {}", words.unwrap_or("other"))
}

fn of_kernel(name: &str) -> Option<&'static str> {
    let fits = |(_, beginnings): &&(&str, &[&str])| beginnings.iter().any(|beginning| name.starts_with(beginning));
    IN_KERNEL.iter().find(fits).map(|(words, _)| *words)
}

fn in_user_space(function: &Function) -> String {
    let name = function.name.as_deref().unwrap_or_default();
    let fits = |(object, parts, _): &&(&str, &[&str], &str)| {
        function.object.starts_with(object) && parts.iter().any(|part| name.contains(part))
    };
    IN_USER_SPACE.iter().find(fits).map_or_else(|| function.object.clone(), |(.., words)| (*words).to_owned())
}

/// Components of protections, and the protection with the option that can reduce them.
const LEVERS: &[(&str, &str, &str)] = &[
    ("pgaudit", "pgaudit", "pgaudit:log=write"),
    ("pgaudit", "kernel: pipes", "pgaudit:log=write"),
    ("server-audit", "server_audit", "server-audit:events=QUERY_DML_NO_SELECT"),
    ("page-encryption", "SQLite's cipher", "page-encryption:cipher=aegis"),
    ("tls", "cryptography (OpenSSL)", "tls:suite=aes-128-gcm"),
    ("tls", "cryptography (ring)", "tls:suite=aes-128-gcm"),
    ("columns", "column encryption", "columns:share=0.5"),
    ("columns", "cryptography (RustCrypto)", "columns:share=0.5"),
];

/// How to reduce `component` for an arm with `protections`; empty if unknown.
pub(super) fn lever(protections: &[String], component: &str) -> String {
    let fits = |(protection, of, arm): &&(&str, &str, &str)| {
        *of == component
            && protections.iter().any(|name| name == protection)
            && !protections.contains(&(*arm).to_owned())
    };
    LEVERS.iter().find(fits).map(|(.., arm)| (*arm).to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(stack: &[(&str, &str)]) -> String {
        let function = |(object, name): &(&str, &str)| Function {
            object: (*object).to_owned(),
            name: (!name.is_empty()).then(|| (*name).to_owned()),
        };
        let stack: Vec<Function> = stack.iter().map(function).collect();
        component(&stack.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_copy_in_the_kernel_belongs_to_whoever_asked_for_it() {
        let outer = [(KERNEL, "do_syscall_64"), (KERNEL, "entry_SYSCALL_64_after_hwframe"), ("libc.so.6", "write")];
        let below = |inner: &[&'static str]| {
            let inner = inner.iter().map(|name| (KERNEL, *name));
            told(&inner.chain(outer).collect::<Vec<_>>())
        };
        assert_eq!(below(&["rep_movs_alternative", "tcp_sendmsg_locked", "ksys_write"]), "kernel: network");
        assert_eq!(below(&["rep_movs_alternative", "anon_pipe_write", "vfs_write"]), "kernel: pipes");
        assert_eq!(below(&["_raw_spin_unlock", "try_to_wake_up", "tcp_rcv"]), "kernel: scheduling");
        assert_eq!(below(&[]), "kernel: entering and leaving the kernel");
        assert_eq!(told(&[(KERNEL, "")]), "kernel: other");
    }

    #[test]
    fn in_user_space_the_function_that_ran_decides() {
        assert_eq!(told(&[("libcrypto.so.3", ""), ("libssl.so.3", "SSL_write")]), "cryptography (OpenSSL)");
        assert_eq!(told(&[("libc.so.6", "__memmove_avx")]), "copying and comparing (C library)");
        assert_eq!(told(&[("tithe", "sqlite3VdbeExec")]), "SQLite");
        assert_eq!(told(&[("tithe", "aesDecryptCBC")]), "SQLite's cipher");
        for own in ["tithe_harness::load", "<&std::os::unix::net::stream::UnixStream>::write", "tithe_plugin::Cipher"] {
            assert_eq!(told(&[("tithe", own)]), "Tithe's client", "{own}");
        }
        let cipher = "tithe_databases::wiredtiger::encryptor::cipher::Cbc<A>::encrypt";
        assert_eq!(told(&[("tithe", cipher)]), "WiredTiger's encryptor");
        assert_eq!(told(&[("tithe", "<cbc::Decryptor<aes::Aes256> as Blocks>::run")]), "cryptography (RustCrypto)");
        assert_eq!(told(&[("tithe", "sha2::sha256::x86_sha::compress")]), "cryptography (RustCrypto)");
        assert_eq!(told(&[("tithe", "tithe_plugin::columns::open")]), "column encryption");
        assert_eq!(told(&[("libother.so", "f")]), "libother.so");
        assert_eq!(told(&[]), "unknown");
    }

    #[test]
    fn a_lever_is_of_the_protection_and_is_not_the_arm_itself() {
        let lever = |protection: &str, component| lever(&[protection.to_owned()], component);
        assert_eq!(lever("pgaudit", "kernel: pipes"), "pgaudit:log=write");
        assert_eq!(lever("tls", "cryptography (ring)"), "tls:suite=aes-128-gcm");
        assert_eq!((lever("tls", "kernel: pipes"), lever("pgaudit", "C library")), (String::new(), String::new()));
    }
}
