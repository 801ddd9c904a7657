//! Finds the server on this machine that a connection leads to.
//!
//! A server that Tithe did not start is found through a connection to it. The kernel lists both ends of a connection
//! within one network (proc(5), `/proc/net/tcp`) with the inode of each socket, and a process's open files show its
//! sockets. If these files may not be read, the process named by the server itself is accepted, provided that two facts
//! visible to every user match: its program, and the user that owns the socket.
//!
//! For a Unix socket the kernel directly reports the process that listens there (unix(7), `SO_PEERCRED`).
//!
//! Not covered: servers in a network of their own, such as containers. If a pooler or a forwarded port holds the other
//! end, the server behind it cannot be found from here.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    os::fd::BorrowedFd,
    path::PathBuf,
};

use rustix::net::AddressFamily;

use crate::{
    proc::{parent_of, processes, value},
    remote::{Ends, Known},
};

/// Both ends of the connected socket `descriptor`.
///
/// # Errors
/// A message if they are unknown.
pub fn ends(descriptor: BorrowedFd<'_>) -> Result<Ends, String> {
    let stream = descriptor.try_clone_to_owned().map(TcpStream::from);
    let ends = stream.and_then(|stream| Ok(Ends { client: stream.local_addr()?, server: stream.peer_addr()? }));
    ends.map_err(|error| format!("its connection does not show where it leads ({error})"))
}

/// True if `process` runs the program of a server that is `known`.
fn runs(known: Known<'_>, process: i32) -> bool {
    program_of(process).is_some_and(|program| known.programs.contains(&program.as_str()))
}

/// The main process of the server that the connected socket `descriptor` leads to.
///
/// # Errors
/// Why it cannot be seen: the text after "cannot be seen:".
pub fn server_of(descriptor: BorrowedFd<'_>, known: Known<'_>) -> Result<i32, String> {
    if let Some(listening) = listening(descriptor) {
        return at_socket(listening, known);
    }
    let ends = ends(descriptor)?;
    server_at(ends, known)?
        .ok_or_else(|| "it is on another machine, or in a container with a network of its own".to_owned())
}

/// The process that listens at the other end of `descriptor`, if that is a Unix socket.
fn listening(descriptor: BorrowedFd<'_>) -> Option<i32> {
    let local = rustix::net::getsockname(descriptor).ok()?;
    let peer = || rustix::net::sockopt::socket_peercred(descriptor).ok();
    (local.address_family() == AddressFamily::UNIX).then(peer)?.map(|peer| peer.pid.as_raw_nonzero().get())
}

/// The main process of the server that `listening` belongs to.
fn at_socket(listening: i32, known: Known<'_>) -> Result<i32, String> {
    if !runs(known, listening) {
        let program = program_of(listening).unwrap_or_default();
        return Err(format!("`{program}` listens at its socket and forwards connections"));
    }
    if known.serving.is_some_and(|said| !runs(known, said)) {
        return Err("its processes are numbered in a container of its own".to_owned());
    }
    Ok(main_process(listening, known))
}

/// The files of the server on this machine that the connected socket `descriptor` leads to: its process, and the root
/// of its own paths, which differs from ours if it is in a container.
///
/// # Errors
/// Why they cannot be seen, and what to change.
pub fn files_of_server(descriptor: BorrowedFd<'_>, programs: &[&str]) -> Result<(i32, PathBuf), String> {
    let unseen = |why: String| {
        format!("the server's files cannot be seen: {why}; run Tithe on its machine, as root or as the server's user")
    };
    let process = server_of(descriptor, Known { programs, serving: None }).map_err(unseen)?;
    let root = PathBuf::from(format!("/proc/{process}/root"));
    let looked = fs::read_dir(&root).and_then(|_| fs::read_dir(format!("/proc/{process}/fd")));
    looked.map_err(|error| unseen(format!("process {process}: {error}")))?;
    Ok((process, root))
}

/// The main process on this machine of the server at one of the `ends` of a connection, wherever its client is; `None`
/// if this network does not have the connection.
///
/// # Errors
/// As [`server_of`].
pub fn server_at(ends: Ends, known: Known<'_>) -> Result<Option<i32>, String> {
    let end = |address: SocketAddr| (address.ip().to_canonical(), address.port());
    let Some(socket) = other_end(end(ends.client), end(ends.server)) else { return Ok(None) };
    process_of(&socket, known).map(Some)
}

/// The main process of the server that has `socket`.
fn process_of(socket: &Socket, known: Known<'_>) -> Result<i32, String> {
    let holders = holders(socket.inode);
    let serving = match (holders.first(), known.serving) {
        // When a server begins to serve a connection, its main process may hold it as well.
        (Some(_), Some(said)) if holders.contains(&said) => said,
        (Some(holder), _) => *holder,
        (None, said) => believed(socket, said, known)?,
    };
    if !runs(known, serving) {
        let program = program_of(serving).unwrap_or_default();
        return Err(format!("its connections end in `{program}`, which passes them on"));
    }
    if known.serving.is_some_and(|said| said != serving) {
        return Err("its processes are numbered in a container of its own".to_owned());
    }
    Ok(main_process(serving, known))
}

/// Address and port of one end of a connection.
type End = (IpAddr, u16);

/// A socket in the kernel's list.
#[derive(Debug, PartialEq, Eq)]
struct Socket {
    inode: u64,
    user: u64,
}

/// The socket at the other end of the connection from `ours` to `theirs`; `None` if it is not in this network.
fn other_end(ours: End, theirs: End) -> Option<Socket> {
    tables().find_map(|table| {
        let mut listed = table.lines().filter_map(entry);
        listed.find(|(local, remote, _)| (*local, *remote) == (theirs, ours)).map(|(_, _, socket)| socket)
    })
}

/// A TCP socket of a server on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerSocket {
    /// Its own address.
    pub local: SocketAddr,
    /// The other end of a connection; `None` if it listens.
    pub remote: Option<SocketAddr>,
}

/// The TCP sockets of `processes` that listen or are connected, as far as this user may see them.
pub fn sockets_of(processes: &[i32]) -> Vec<ServerSocket> {
    let inodes: Vec<u64> = processes.iter().flat_map(|process| open_sockets(*process)).collect();
    let socket = |line: &str| {
        let (local, remote, socket) = entry(line)?;
        let remote = match line.split_ascii_whitespace().nth(3)? {
            LISTEN => None,
            ESTABLISHED => Some(remote.into()),
            _ => return None,
        };
        inodes.contains(&socket.inode).then(|| ServerSocket { local: local.into(), remote })
    };
    tables().flat_map(|table| table.lines().filter_map(socket).collect::<Vec<_>>()).collect()
}

/// True if `process` has a socket that listens on `port`.
pub fn listens(process: i32, port: u16) -> bool {
    let waits = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, _, LISTEN, _, _, _, _, _, inode, ..] = fields[..] else { return None };
        (end(local)?.1 == port).then(|| inode.parse::<u64>().ok())?
    };
    let inodes: Vec<u64> = tables().flat_map(|table| table.lines().filter_map(waits).collect::<Vec<_>>()).collect();
    open_sockets(process).any(|inode| inodes.contains(&inode))
}

/// The state of a listening socket in the kernel's list.
const LISTEN: &str = "0A";

/// The state of a connected one.
const ESTABLISHED: &str = "01";

/// The kernel's lists of the sockets of this network.
fn tables() -> impl Iterator<Item = String> {
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|path| fs::read_to_string(path).ok())
}

/// Inodes of the sockets that `process` has open, as far as this user may see them.
fn open_sockets(process: i32) -> impl Iterator<Item = u64> {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| {
        let to = fs::read_link(file.path()).ok()?;
        to.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

/// A line of `/proc/net/tcp`: both ends, and the socket at the first.
fn entry(line: &str) -> Option<(End, End, Socket)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, local, remote, _, _, _, _, user, _, inode, ..] = fields[..] else { return None };
    Some((end(local)?, end(remote)?, Socket { inode: inode.parse().ok()?, user: user.parse().ok()? }))
}

/// An address of 4 or 16 bytes, in words of this machine's order, and a port, all hexadecimal.
fn end(text: &str) -> Option<End> {
    let (address, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let words: Vec<[u8; 4]> = (0..address.len()).step_by(8).map(word).collect::<Option<_>>()?;
    let address = match words[..] {
        [word] => IpAddr::V4(Ipv4Addr::from(word)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?)).to_canonical(),
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

/// The processes that have the socket `inode` open, as far as this user may see them.
fn holders(inode: u64) -> Vec<i32> {
    processes().filter(|process| open_sockets(*process).any(|open| open == inode)).collect()
}

/// The process `said` by the server to serve the connection, if it runs the server's program for the user that owns
/// `socket`.
fn believed(socket: &Socket, said: Option<i32>, known: Known<'_>) -> Result<i32, String> {
    let user_of = |process: i32| value(&fs::read_to_string(format!("/proc/{process}/status")).ok()?, "Uid:");
    said.filter(|said| runs(known, *said) && user_of(*said) == Some(socket.user)).ok_or_else(|| {
        format!(
            "its processes are those of user {}, whose open files this user may not read: run tithe as root or as \
             that user",
            socket.user
        )
    })
}

/// The topmost process of the server that `serving` belongs to.
fn main_process(serving: i32, known: Known<'_>) -> i32 {
    let mut main = serving;
    while let Some(parent) = parent_of(main).filter(|parent| runs(known, *parent)) {
        main = parent;
    }
    main
}

fn program_of(process: i32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{process}/comm")).ok()?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        net::TcpListener,
        os::{
            fd::AsFd as _,
            unix::net::{UnixListener, UnixStream},
        },
    };

    use super::*;

    const HERE: &str = "127.0.0.1:0";

    fn own_process() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn a_server_is_found_by_a_connection_to_it() {
        for here in [HERE, "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(here) else { continue };
            let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
            let _served = listener.accept().expect("accepted");
            let program = program_of(own_process()).expect("a name");
            let found = |programs: &[&str], serving| server_of(stream.as_fd(), Known { programs, serving });
            // The process that started the tests may run the same program; it is only known to be an ancestor.
            let main = main_process(own_process(), Known { programs: &[&program], serving: None });
            assert_eq!(found(&[&program], None), Ok(main));
            assert_eq!(found(&[&program], Some(own_process())), Ok(main));
            let passed_on = format!("its connections end in `{program}`, which passes them on");
            assert_eq!(found(&["another"], None), Err(passed_on));
            let numbered = "its processes are numbered in a container of its own".to_owned();
            assert_eq!(found(&[&program], Some(1)), Err(numbered));
        }
    }

    #[test]
    fn the_sockets_of_processes_are_listed() {
        let listener = TcpListener::bind(HERE).expect("a port");
        let at = listener.local_addr().expect("an address");
        let client = TcpStream::connect(at).expect("connected");
        let (_served, from) = listener.accept().expect("accepted");
        assert_eq!(from, client.local_addr().expect("an address"));
        let seen = sockets_of(&[own_process()]);
        let ends = [(at, None), (at, Some(from)), (from, Some(at))];
        assert!(ends.iter().all(|(local, remote)| seen.contains(&ServerSocket { local: *local, remote: *remote })));
        assert_eq!(sockets_of(&[]), []);
    }

    #[test]
    fn a_server_is_known_from_its_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let _listener = UnixListener::bind(&path).expect("a socket");
        let stream = UnixStream::connect(&path).expect("connected");
        let program = program_of(own_process()).expect("a name");
        let found = |programs: &[&str], serving| server_of(stream.as_fd(), Known { programs, serving });
        let main = main_process(own_process(), Known { programs: &[&program], serving: None });
        assert_eq!(found(&[&program], None), Ok(main));
        assert_eq!(found(&[&program], Some(own_process())), Ok(main));
        assert!(found(&["another"], None).expect_err("another").contains("forwards connections"));
        assert!(found(&[&program], Some(1)).expect_err("another").contains("container"));
    }

    #[test]
    fn what_is_no_connection_leads_nowhere() {
        let listener = TcpListener::bind(HERE).expect("a port");
        let told = server_of(listener.as_fd(), Known { programs: &[], serving: None }).expect_err("no other end");
        assert!(told.starts_with("its connection does not show where it leads"), "{told}");
    }

    #[test]
    fn a_process_is_believed_where_program_and_user_agree() {
        let process = own_process();
        let program = program_of(process).expect("a name");
        let user = value(&fs::read_to_string("/proc/self/status").expect("a status"), "Uid:").expect("a user");
        let known = Known { programs: &[&program], serving: None };
        let of_user = |user| Socket { inode: 0, user };
        assert_eq!(believed(&of_user(user), Some(process), known), Ok(process));
        for (user, said, known) in [
            (user + 1, Some(process), known),
            (user, None, known),
            (user, Some(process), Known { programs: &["another"], serving: None }),
        ] {
            let told = believed(&of_user(user), said, known).expect_err("not believed");
            assert!(told.contains("run tithe as root or as that user"), "{told}");
        }
    }

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line =
            "   1: 0100007F:1538 0100007F:D3A0 01 00000000:00000000 00:00000000 00000000   106        0 4711 1 0";
        let local = (IpAddr::from([127, 0, 0, 1]), 5432);
        let remote = (IpAddr::from([127, 0, 0, 1]), 54176);
        let expected = cfg!(target_endian = "little").then_some((local, remote, Socket { inode: 4711, user: 106 }));
        assert_eq!(entry(line).filter(|_| expected.is_some()), expected);
        // An IPv4 address within IPv6, as in a server that listens for both.
        let mapped = end("0000000000000000FFFF00000100007F:1538");
        assert!(cfg!(target_endian = "big") || mapped == Some(local), "{mapped:?}");
        for wrong in
            ["", "sl local_address", "   1: 0100007F:1538", "1: 0100:1 0100:2 01 0 0 0 1 0 2", "a b c d e f g h i é:é"]
        {
            assert_eq!(entry(wrong), None, "{wrong}");
        }
    }
}
