//! A server's side of the protocol, for tests: it reads requests and answers as a test says.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

/// Answers the requests of one client until it leaves. `answer` gets the words of a request and gives the reply as it
/// is sent.
///
/// # Errors
/// If the connection breaks.
pub fn serve(stream: &TcpStream, mut answer: impl FnMut(&[&str]) -> String) -> io::Result<()> {
    let (mut input, mut output, mut line) = (BufReader::new(stream), stream, String::new());
    let mut number = |input: &mut BufReader<&TcpStream>| -> io::Result<Option<usize>> {
        line.clear();
        Ok(if input.read_line(&mut line)? == 0 { None } else { line[1..].trim().parse().ok() })
    };
    while let Some(count) = number(&mut input)? {
        let mut words = Vec::new();
        for _ in 0..count {
            let mut word = vec![0; number(&mut input)?.unwrap_or_default() + 2];
            input.read_exact(&mut word)?;
            words.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        output.write_all(answer(&words).as_bytes())?;
    }
    Ok(())
}
