//! A bad network: what goes through it breaks off after any number of bytes.
//!
//! Some connections are dropped in order, some are reset. A socket that is closed while something
//! in it was not read resets its connection; so what a client says is looked at and passed on, and
//! only taken out of the socket where the connection is to end in order.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::random::Random;
use super::wire::Address;

/// The longest request that can be looked at without taking it, which is far more than any is.
const LARGEST: usize = 64 << 10;
/// How long a connection may last.
const PATIENCE: Duration = Duration::from_secs(30);

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Whole,
    /// The request breaks off after so many bytes.
    InRequest(usize),
    /// The answer breaks off after so many bytes.
    InAnswer(usize),
}

/// A listener that passes connections on, most of the time.
#[derive(Debug)]
pub(super) struct Proxy {
    /// Where clients find it.
    pub(super) address: String,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where the server is found: the address of the moment.
    target: Address,
    broken: AtomicUsize,
    closed: AtomicBool,
}

impl Proxy {
    pub(super) fn start(random: &mut Random) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let state = Arc::new(State::default());
        let (shared, mut random) = (Arc::clone(&state), random.fork());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(std::result::Result::ok) {
                if shared.closed.load(Ordering::SeqCst) {
                    return;
                }
                let fate = match random.below(10) {
                    0 | 1 => Fate::InRequest(usize::try_from(random.below(900)).unwrap_or(0)),
                    2 | 3 => Fate::InAnswer(usize::try_from(random.below(700)).unwrap_or(0)),
                    _ => Fate::Whole,
                };
                let (state, reset) = (Arc::clone(&shared), random.one_in(2));
                std::thread::spawn(move || pass(&state, &stream, fate, reset));
            }
        });
        Ok(Self { address, state })
    }

    /// Says where the server is now.
    pub(super) fn lead_to(&self, address: &str) {
        self.state.target.set(address);
    }

    /// How many connections it broke.
    pub(super) fn broken(&self) -> usize {
        self.state.broken.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        // It looks whether it is closed when somebody comes.
        drop(TcpStream::connect(&self.address));
    }
}

/// Passes a connection on until its fate is met. Whatever fails ends the connection.
fn pass(state: &State, client: &TcpStream, fate: Fate, reset: bool) {
    let Ok(server) = TcpStream::connect(state.target.get()) else { return };
    let ended = exchange(client, &server, fate, reset);
    if fate != Fate::Whole && ended.is_ok() {
        state.broken.fetch_add(1, Ordering::SeqCst);
    }
}

fn exchange(
    mut client: &TcpStream,
    mut server: &TcpStream,
    fate: Fate,
    reset: bool,
) -> std::io::Result<()> {
    for stream in [client, server] {
        stream.set_read_timeout(Some(PATIENCE))?;
    }
    let most = match fate {
        Fate::InRequest(bytes) => bytes,
        Fate::Whole | Fate::InAnswer(_) => usize::MAX,
    };
    forward(client, server, most)?;
    if fate == Fate::Whole || !reset {
        // Nothing is left unread, so the connection ends in order.
        client.set_nonblocking(true)?;
        let mut taken = [0; 4096];
        while client.read(&mut taken).is_ok_and(|count| count > 0) {}
        client.set_nonblocking(false)?;
    }
    if matches!(fate, Fate::InRequest(_)) {
        return Ok(());
    }
    let mut left = match fate {
        Fate::InAnswer(bytes) => bytes,
        Fate::Whole | Fate::InRequest(_) => usize::MAX,
    };
    let mut piece = [0; 4096];
    while left > 0 {
        let room = left.min(piece.len());
        let count = server.read(&mut piece[..room])?;
        if count == 0 {
            break;
        }
        client.write_all(&piece[..count])?;
        left -= count;
    }
    if fate == Fate::Whole {
        client.shutdown(Shutdown::Write)?;
    }
    Ok(())
}

/// Passes a request on, up to so many bytes, without taking it.
fn forward(client: &TcpStream, mut server: &TcpStream, most: usize) -> std::io::Result<()> {
    let (mut seen, mut passed) = (vec![0; LARGEST], 0);
    let begun = Instant::now();
    while passed < most && begun.elapsed() < PATIENCE {
        let there = client.peek(&mut seen)?;
        let end = there.min(most);
        if end > passed {
            server.write_all(&seen[passed..end])?;
            passed = end;
        }
        if there == 0 || whole(&seen[..there]) {
            break;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    Ok(())
}

/// Whether a request is there to its end.
fn whole(request: &[u8]) -> bool {
    let Some(cut) = request.windows(4).position(|at| at == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..cut]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0_usize);
    request.len() >= cut + 4 + length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers every request with the same.
    fn server(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut request = [0; 1024];
                drop(stream.read(&mut request));
                drop(stream.write_all(answer));
            }
        });
        address
    }

    fn through(fate: Fate, reset: bool) -> std::io::Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (inside, _) = listener.accept().unwrap();
        client.write_all(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi").unwrap();
        let state = State::default();
        state.target.set(&server(b"HTTP/1.1 200 OK\r\n\r\nwhole"));
        pass(&state, &inside, fate, reset);
        drop(inside);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).map(|_| answer)
    }

    #[test]
    fn a_connection_is_passed_on_dropped_or_reset() {
        assert!(through(Fate::Whole, false).unwrap().ends_with(b"whole"));
        assert_eq!(through(Fate::InAnswer(4), false).unwrap(), b"HTTP");
        assert_eq!(through(Fate::InRequest(4), false).unwrap(), b"");
        let error = through(Fate::InRequest(4), true).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(through(Fate::InAnswer(4), true).is_err(), "what was sent may be lost with it");
    }

    #[test]
    fn a_request_is_whole_with_its_body() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi";
        assert!(whole(request) && !whole(&request[..request.len() - 1]));
        assert!(whole(b"GET / HTTP/1.1\r\n\r\n") && !whole(b"GET / HTTP/1.1\r\n"));
    }
}
