//! Copies that go elsewhere: into a bucket of moto's S3 and to a mail server of aiosmtpd, both
//! started here. `YORE_TEST_AWAY` names the directory in which Python finds them.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::Home;

/// Where the packages are, unless there are none.
fn packages() -> Option<PathBuf> {
    let found = std::env::var_os("YORE_TEST_AWAY").map(PathBuf::from);
    if found.is_none() {
        println!("NOT RUN: YORE_TEST_AWAY is not set");
    }
    found
}

fn python(packages: &Path) -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", packages);
    command
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let ended = self.0.kill().and_then(|()| self.0.wait());
        drop(ended);
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A bucket named `vault` in an S3 that checks who asks.
fn bucket(packages: &Path) -> (Running, u16) {
    let port = free_port();
    let server = python(packages)
        .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Running(server);
    wait_for("moto does not answer", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    assert!(objects(packages, port, "s3.create_bucket(Bucket='vault'); print('[]')").is_empty());
    (server, port)
}

/// Runs a line of boto3 and returns the list it prints.
fn objects(packages: &Path, port: u16, line: &str) -> Vec<String> {
    let script = format!(
        "import boto3, json\ns3 = boto3.client('s3', endpoint_url='http://127.0.0.1:{port}', \
         aws_access_key_id='id', aws_secret_access_key='secret', region_name='us-east-1')\n{line}"
    );
    let told = python(packages).args(["-c", &script]).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).unwrap()
}

const LIST: &str =
    "print(json.dumps([o['Key'] for o in s3.list_objects_v2(Bucket='vault').get('Contents', [])]))";

/// A mail server that keeps letters in a folder.
fn post(packages: &Path, folder: &Path, tls: &[&str]) -> (Running, u16) {
    let port = free_port();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/away/post.py");
    let mut server = python(packages)
        .arg(script)
        .arg(port.to_string())
        .arg(folder)
        .args(tls)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (Running(server), port)
}

fn letters(folder: &Path) -> Vec<Vec<u8>> {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()).collect();
    names.sort();
    names.iter().map(|name| std::fs::read(name).unwrap()).collect()
}

fn copies(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|end| end == "yore")).collect()
}

/// How the copies of a home fare at a destination.
fn fares(home: &Home, to: &str) -> Value {
    home.json(&["backup", "schedule"])["deliveries"][to].clone()
}

#[test]
fn omp_090_copies_go_to_a_bucket_by_mail_and_to_a_command() {
    let Some(packages) = packages() else { return };
    let (home, folder, mail) =
        (Home::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    home.remember(&["kept in every copy"]);
    let (_s3, s3) = bucket(&packages);
    let (_smtp, smtp) = post(&packages, mail.path(), &[]);
    let taken = home.path("taken");
    let config = format!(
        "[backup]\nevery = \"daily\"\nto = {:?}\nbucket = \"http://127.0.0.1:{s3}/vault/copies\"\n\
         command = \"cat > {}\"\n\n[backup.mail]\nserver = \"smtp://127.0.0.1:{smtp}\"\n\
         from = \"yore@example.org\"\nto = \"me@example.org\"\n",
        folder.path(),
        taken.display(),
    );
    home.configure(&config);
    // The keys are wrong at first: it is told, the others go on, and it is made up for.
    let mut server = home.serve_with(&[]);
    wait_for("no failure is told", || fares(&home, "bucket")["failed"].as_object().cloned());
    let told = fares(&home, "bucket")["failed"]["why"].to_string();
    assert!(told.contains("AWS_ACCESS_KEY_ID is not set"), "{told}");
    wait_for("no letter came", || (!letters(mail.path()).is_empty()).then_some(()));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.out.contains("bucket: failed"), "{doctor:?}");
    assert_eq!(server.stop(), 0);
    let keys = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let mut server = home.serve_with(&keys);
    wait_for("nothing came into the bucket", || {
        (fares(&home, "bucket")["done"].as_array()?.len() == 1).then_some(())
    });
    assert!(fares(&home, "bucket")["failed"].is_null());
    assert_eq!(server.stop(), 0);

    let [copy] = &copies(folder.path())[..] else { panic!("one copy is made") };
    let bytes = std::fs::read(copy).unwrap();
    let name = copy.file_name().unwrap().to_str().unwrap();
    assert_eq!(objects(&packages, s3, LIST), [format!("copies/{name}")]);
    assert_eq!(std::fs::read(&taken).unwrap(), bytes, "the command got it as its input");
    let [letter] = &letters(mail.path())[..] else { panic!("one letter is sent") };
    let script = "import email, sys, email.policy\n\
        m = email.message_from_bytes(open(sys.argv[1], 'rb').read(), policy=email.policy.default)\n\
        a = list(m.iter_attachments())[0]\n\
        open(sys.argv[2], 'wb').write(a.get_content())\n\
        print(m['to'], a.get_filename(), 'encrypted' in m.get_body().get_content())";
    let (kept, out) = (home.path("letter.eml"), home.path("from-mail"));
    std::fs::write(&kept, letter).unwrap();
    let read = python(&packages).args(["-c", script]).arg(&kept).arg(&out).output().unwrap();
    let read = String::from_utf8_lossy(&read.stdout).replace(['<', '>'], "");
    assert_eq!(read.trim(), format!("me@example.org {name} True"));
    assert_eq!(std::fs::read(&out).unwrap(), bytes);

    // What came back from the bucket restores the vault.
    let back = home.path("back.yore");
    let get = format!("s3.download_file('vault', 'copies/{name}', {back:?}); print('[]')");
    objects(&packages, s3, &get);
    home.remember(&["said after the copy"]);
    home.ok(&["restore", "--yes", back.to_str().unwrap()]);
    assert_eq!(home.all(), ["kept in every copy"]);
}

#[test]
fn omp_090_letters_go_under_tls_with_a_password() {
    let Some(packages) = packages() else { return };
    let certificates = tempfile::tempdir().unwrap();
    let file = |name: &str| certificates.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost", "-keyout", &key, "-out", &certificate])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("NOT RUN: openssl is not installed");
        return;
    }
    for (scheme, how) in [("smtp", "asked"), ("smtps", "first")] {
        let (home, folder, mail) =
            (Home::new(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        home.remember(&["kept"]);
        let (_server, port) = post(&packages, mail.path(), &[&certificate, &key, how]);
        let config = format!(
            "[backup]\nevery = \"weekly\"\nto = {:?}\n\n[backup.mail]\n\
             server = \"{scheme}://localhost:{port}\"\nfrom = \"yore@example.org\"\n\
             to = \"me@example.org\"\nuser = \"me\"\nattach = 10\nca = {certificate:?}\n\
             link = \"https://files.example.org/{{file}}\"\n",
            folder.path(),
        );
        home.configure(&config);
        let mut server = home.serve_with(&[("YORE_MAIL_PASSWORD", "wrong")]);
        wait_for("no failure is told", || fares(&home, "mail")["failed"].as_object().cloned());
        let told = fares(&home, "mail")["failed"]["why"].to_string();
        assert!(told.contains("answered 535"), "{told}");
        assert_eq!(server.stop(), 0);
        let mut server = home.serve_with(&[("YORE_MAIL_PASSWORD", "secret")]);
        wait_for("no letter came", || (!letters(mail.path()).is_empty()).then_some(()));
        assert_eq!(server.stop(), 0);
        let [letter] = &letters(mail.path())[..] else { panic!("one letter is sent") };
        let letter = String::from_utf8_lossy(letter).into_owned();
        assert!(!letter.contains("attachment"), "it is larger than what is attached");
        let said: String = letter
            .split("base64\r\n\r\n")
            .nth(1)
            .unwrap()
            .chars()
            .take_while(|c| *c != '-')
            .filter(|c| !c.is_whitespace())
            .collect();
        let said = yore_canon::encode::from_base64(&said).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("https://files.example.org/yore-"), "{said}");
    }
}
