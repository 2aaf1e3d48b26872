//! Sends a letter with a file, by SMTP. TLS always, except to a server on the same machine.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, BufWriter,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use yore_canon::encode::base64;
use yore_domain::Timestamp;

use crate::error::{Error, Result};

/// The variable that holds the password.
const PASSWORD: &str = "YORE_MAIL_PASSWORD";
/// How long a letter may take; servers look through large ones before they answer.
const TIME: Duration = Duration::from_secs(600);
/// Bytes that become one line of 76 characters, and how many lines are written at once.
const LINE: usize = 57;
const LINES: usize = 1024;
/// What parts of a letter stand between; no base64 holds it.
const BETWEEN: &str = "=_yore_copy";

/// Where letters go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// The server: `smtp://host:587` (STARTTLS) or `smtps://host:465`.
    pub server: String,
    /// Who sends.
    pub from: String,
    /// Who receives.
    pub to: String,
    /// The name to sign in with; `YORE_MAIL_PASSWORD` holds the password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Bytes up to which a copy is attached; of a larger one the letter says where it is.
    /// Default: 20 MiB.
    #[serde(default = "attached")]
    pub attach: u64,
    /// Where a copy that is not attached can be fetched; `{file}` stands for its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// A PEM file of the only authorities to trust. Default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

const fn attached() -> u64 {
    20 << 20
}

/// What stands in a letter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Letter<'a> {
    pub(crate) subject: &'a str,
    pub(crate) text: &'a str,
    /// A file to attach, under its own name.
    pub(crate) file: Option<&'a Path>,
    pub(crate) at: Timestamp,
}

struct Server {
    host: String,
    port: u16,
    /// Whether TLS comes first; otherwise it is asked for.
    implicit: bool,
}

impl Server {
    fn is_near(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|host| host.is_loopback())
    }
}

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}
/// Reads lines and collects writes; the reader lies outside so that what it holds can be seen.
type Stream = BufReader<BufWriter<Box<dyn Wire>>>;

fn wire(stream: impl Wire + 'static) -> Stream {
    BufReader::new(BufWriter::new(Box::new(stream)))
}

impl Mail {
    /// Refuses what could not work.
    pub(crate) fn check(&self) -> Result<()> {
        self.server()?;
        for address in [&self.from, &self.to] {
            let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | ',');
            if !address.contains('@') || address.contains(odd) || !address.is_ascii() {
                return Err(Error::Config(format!("backup.mail: {address} is not an address")));
            }
        }
        Ok(())
    }

    fn server(&self) -> Result<Server> {
        let wrong = || {
            Error::Config("backup.mail.server must be smtp://host:port or smtps://host:port".into())
        };
        let uri: Uri = self.server.parse().map_err(|_| wrong())?;
        let (implicit, port) = match uri.scheme_str() {
            Some("smtp") => (false, 587),
            Some("smtps") => (true, 465),
            Some(_) | None => return Err(wrong()),
        };
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        Ok(Server { host, port: uri.port_u16().unwrap_or(port), implicit })
    }

    fn tls(&self) -> io::Result<TlsConnector> {
        let mut roots = RootCertStore::empty();
        match &self.ca {
            Some(path) => {
                for found in CertificateDer::pem_file_iter(path).map_err(io::Error::other)? {
                    roots.add(found.map_err(io::Error::other)?).map_err(io::Error::other)?;
                }
            }
            None => {
                let system = rustls_native_certs::load_native_certs().certs;
                roots.add_parsable_certificates(system);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    }

    /// Sends a letter. It is sent when the server took it upon itself.
    pub(crate) async fn send(&self, letter: Letter<'_>) -> io::Result<()> {
        let server = self.server().map_err(io::Error::other)?;
        let sent = tokio::time::timeout(TIME, Box::pin(self.deliver(&server, letter)));
        sent.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn deliver(&self, server: &Server, letter: Letter<'_>) -> io::Result<()> {
        let stream = TcpStream::connect((server.host.as_str(), server.port)).await?;
        let name = || ServerName::try_from(server.host.clone()).map_err(io::Error::other);
        let mut stream: Stream = if server.implicit {
            let tls = self.tls()?.connect(name()?, stream).await?;
            wire(tls)
        } else {
            wire(stream)
        };
        expect(&mut stream, 220).await?;
        let mut offered = ask(&mut stream, "EHLO yore", 250).await?;
        if !server.implicit {
            if offers(&offered, "STARTTLS") {
                ask(&mut stream, "STARTTLS", 220).await?;
                // What was said before in clear must not count as said under TLS.
                if !stream.buffer().is_empty() {
                    return Err(io::Error::other("the mail server spoke out of turn"));
                }
                let tls = self.tls()?.connect(name()?, stream.into_inner().into_inner()).await?;
                stream = wire(tls);
                offered = ask(&mut stream, "EHLO yore", 250).await?;
            } else if !server.is_near() {
                return Err(io::Error::other("the mail server offers no TLS"));
            }
        }
        if let Some(user) = &self.user {
            let password = std::env::var(PASSWORD)
                .map_err(|_| io::Error::other(format!("{PASSWORD} is not set")))?;
            if !offers(&offered, "AUTH") {
                return Err(io::Error::other("the mail server asks for no password"));
            }
            let proof = base64(format!("\0{user}\0{password}").as_bytes());
            ask(&mut stream, &format!("AUTH PLAIN {proof}"), 235).await?;
        }
        ask(&mut stream, &format!("MAIL FROM:<{}>", self.from), 250).await?;
        ask(&mut stream, &format!("RCPT TO:<{}>", self.to), 250).await?;
        ask(&mut stream, "DATA", 354).await?;
        self.write(&mut stream, letter).await?;
        stream.write_all(b"\r\n.\r\n").await?;
        stream.flush().await?;
        expect(&mut stream, 250).await?;
        // It is sent; how the conversation ends changes nothing.
        let end = ask(&mut stream, "QUIT", 221).await;
        drop(end);
        Ok(())
    }

    async fn write(&self, stream: &mut Stream, letter: Letter<'_>) -> io::Result<()> {
        let Letter { subject, text, file, at } = letter;
        let id = yore_canon::hash::Sha256::of(format!("{subject}{text}{at}")).to_hex();
        let head = format!(
            "From: <{}>\r\nTo: <{}>\r\nSubject: {subject}\r\nDate: {}\r\nMessage-ID: <{}@yore>\r\n\
             MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"{BETWEEN}\"\r\n\r\n\
             --{BETWEEN}\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Transfer-Encoding: base64\r\n\r\n",
            self.from,
            self.to,
            dated(at),
            &id[..32],
        );
        stream.write_all(head.as_bytes()).await?;
        lines(stream, text.as_bytes()).await?;
        if let Some(path) = file {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            let head = format!(
                "--{BETWEEN}\r\nContent-Type: application/octet-stream\r\n\
                 Content-Disposition: attachment; filename=\"{name}\"\r\n\
                 Content-Transfer-Encoding: base64\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
            let mut file = std::fs::File::open(path)?;
            loop {
                let mut part = Vec::new();
                (&mut file).take((LINE * LINES) as u64).read_to_end(&mut part)?;
                if part.is_empty() {
                    break;
                }
                lines(stream, &part).await?;
            }
        }
        stream.write_all(format!("--{BETWEEN}--").as_bytes()).await
    }
}

/// Writes bytes as lines of base64, none of which begins with a dot.
async fn lines(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    for line in bytes.chunks(LINE) {
        stream.write_all(base64(line).as_bytes()).await?;
        stream.write_all(b"\r\n").await?;
    }
    Ok(())
}

fn offers(answer: &str, what: &str) -> bool {
    answer.lines().any(|line| {
        let offered = line.get(4..).unwrap_or_default();
        offered.split_ascii_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case(what))
    })
}

async fn ask(stream: &mut Stream, line: &str, wanted: u16) -> io::Result<String> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await?;
    stream.flush().await?;
    expect(stream, wanted).await
}

/// Reads an answer of one or more lines; one with another number is a failure.
async fn expect(stream: &mut Stream, wanted: u16) -> io::Result<String> {
    let mut answer = String::new();
    loop {
        let mut line = String::new();
        let mut limited = tokio::io::AsyncReadExt::take(&mut *stream, 4096);
        limited.read_line(&mut line).await?;
        let more = line.as_bytes().get(3) == Some(&b'-');
        let number: u16 = line.get(..3).and_then(|number| number.parse().ok()).unwrap_or(0);
        if number != wanted {
            // The words of a server may repeat what it was told, so only the number is told on.
            return Err(io::Error::other(format!("the mail server answered {number}")));
        }
        answer.push_str(&line);
        if !more || answer.len() > 64 << 10 {
            return Ok(answer);
        }
    }
}

/// A time as letters have it: `Fri, 15 Jan 2027 08:00:00 +0000`.
fn dated(at: Timestamp) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = at.to_string();
    let day = usize::try_from(at.millis().div_euclid(86_400_000).rem_euclid(7)).unwrap_or(0);
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or("00");
    let month: usize = part(5..7).parse().unwrap_or(1);
    let month = MONTHS.get(month.wrapping_sub(1)).unwrap_or(&"Jan");
    format!("{}, {} {month} {} {} +0000", DAYS[day], part(8..10), part(0..4), part(11..19))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(server: &str, to: &str) -> Mail {
        Mail {
            server: server.into(),
            from: "yore@example.org".into(),
            to: to.into(),
            user: None,
            attach: attached(),
            link: None,
            ca: None,
        }
    }

    #[test]
    fn times_are_written_as_letters_have_them() {
        let at = Timestamp::from_millis(1_800_000_000_000);
        assert_eq!(dated(at), "Fri, 15 Jan 2027 08:00:00 +0000");
    }

    #[test]
    fn what_could_not_work_is_refused() {
        assert!(mail("smtp://mail.example.org", "me@example.org").check().is_ok());
        assert!(mail("smtps://[::1]:465", "me@example.org").check().is_ok());
        for server in ["mail.example.org", "http://mail.example.org", "smtp://"] {
            assert!(mail(server, "me@example.org").check().is_err(), "{server}");
        }
        for to in ["me", "me@x>\r\nBcc: <a@b", "a@b, c@d"] {
            assert!(mail("smtp://mail.example.org", to).check().is_err(), "{to}");
        }
    }
}
