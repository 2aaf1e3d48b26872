//! Whatever a file does, reading it ends soon, within its bounds, and without a panic.

use std::io::{Cursor, Write as _};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use yore_text::{Bounds, text_of};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn zipped(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).expect("a new entry");
        zip.write_all(content).expect("room in memory");
    }
    zip.finish().expect("room in memory").into_inner()
}

fn read(bytes: &[u8], bounds: &Bounds) -> String {
    let begun = Instant::now();
    let text = text_of(bytes, "application/octet-stream", bounds).unwrap_or_default();
    let most = bounds.time + Duration::from_secs(5);
    assert!(begun.elapsed() < most, "it took {:?}", begun.elapsed());
    assert!(text.len() <= bounds.text);
    text
}

#[test]
fn a_bomb_is_unpacked_only_so_far() {
    let zeros = vec![b' '; 64 << 20];
    let words = b"<w:t>needle</w:t>".repeat(1 << 20);
    let bomb = zipped(&[
        ("word/document.xml", &zeros),
        ("word/footnotes.xml", &zeros),
        ("word/header1.xml", &words),
    ]);
    assert!(bomb.len() < 1 << 20, "it is small");
    let bounds = Bounds { unpacked: 24 << 20, part: 8 << 20, ..Bounds::default() };
    assert_eq!(read(&bomb, &bounds), "", "the words lie behind what may be unpacked");
    let text = read(&bomb, &Bounds::default());
    assert_eq!(text.len(), Bounds::default().text);
}

#[test]
fn a_bomb_in_a_pdf_is_unpacked_only_so_far() {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&b"(a) Tj ".repeat(8 << 20)).unwrap();
    let once = packed.finish().unwrap();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&once).unwrap();
    let twice = packed.finish().unwrap();
    let mut file = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
        2 0 obj<</Kids[3 0 R 3 0 R 2 0 R 4 0 R]>>endobj\n\
        3 0 obj<</Type/Page/Contents[5 0 R 5 0 R 5 0 R 5 0 R]>>endobj\n\
        4 0 obj<</Type/Page/Parent 2 0 R/Contents 5 0 R>>endobj\n\
        5 0 obj<</Filter[/FlateDecode/FlateDecode]>>stream\n"
        .to_vec();
    file.extend(&twice);
    file.extend(b"\nendstream endobj");
    let bounds = Bounds { time: Duration::from_secs(3), ..Bounds::default() };
    read(&file, &bounds);
}

#[test]
fn nesting_a_million_deep_is_read() {
    let deep = 1_000_000;
    for file in [
        zipped(&[("word/document.xml", "<w:p>".repeat(deep).as_bytes())]),
        zipped(&[("content.xml", format!("<body>{}", "<p>x".repeat(deep)).as_bytes())]),
        format!("<html>{}needle", "<div>".repeat(deep)).into_bytes(),
        format!("%PDF-1.4\n1 0 obj {}", "[".repeat(deep)).into_bytes(),
        format!("%PDF-1.4\n1 0 obj {}", "<</A".repeat(deep)).into_bytes(),
        format!("%PDF-1.4\n1 0 obj {}", "(".repeat(deep)).into_bytes(),
        format!("%PDF-1.4\n{}", "1 0 obj ".repeat(deep)).into_bytes(),
        format!("%PDF-1.4\n{}", "1 0 obj<<>>stream ".repeat(deep)).into_bytes(),
    ] {
        read(&file, &Bounds::default());
    }
}

#[test]
fn a_tree_that_bites_its_tail_ends() {
    let file = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
        2 0 obj<</Kids[2 0 R 3 0 R]/Resources 2 0 R>>endobj\n\
        3 0 obj<</Type/Page/Contents 4 0 R/Resources<</XObject<</F 4 0 R>>/Font<</G 3 0 R>>>>>>endobj\n\
        4 0 obj<</Subtype/Form/Length 5 0 R>>stream\n/G 1 Tf (needle) Tj /F Do /F Do /F Do\nendstream\n\
        5 0 obj 5 0 R endobj";
    assert!(read(file, &Bounds::default()).contains("needle"));
}

#[test]
fn an_encrypted_pdf_stays_closed() {
    let file = b"%PDF-1.4\n1 0 obj<</Type/Page/Contents 2 0 R>>endobj 2 0 obj<<>>stream\n(x) Tj\n\
        endstream trailer<</Encrypt 3 0 R>>";
    assert_eq!(read(file, &Bounds::default()), "");
}

const FILES: [&[u8]; 6] = [
    include_bytes!("files/standard.pdf"),
    include_bytes!("files/embedded.pdf"),
    include_bytes!("files/letter.docx"),
    include_bytes!("files/table.xlsx"),
    include_bytes!("files/letter.odt"),
    include_bytes!("files/page.html"),
];

/// How many mutations are tried.
fn cases() -> u32 {
    if std::env::var_os("YORE_FULL").is_some() { 100_000 } else { 400 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_file_is_read_or_not(
        which in 0..FILES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<prop::sample::Index>(),
        doubled in any::<bool>(),
    ) {
        let mut file = FILES[which].to_vec();
        for (place, byte) in &changes {
            let place = place.index(file.len());
            file[place] = *byte;
        }
        if changes.len() % 3 == 0 {
            file.truncate(cut.index(file.len()) + 1);
        }
        if doubled {
            file.extend_from_within(..);
        }
        read(&file, &Bounds { time: Duration::from_secs(2), ..Bounds::default() });
    }

    #[test]
    fn random_objects_are_read_or_not(
        words in prop::collection::vec(prop::sample::select(vec![
            "1 0 obj", "2 0 obj", "3 0 obj", "<<", ">>", "[", "]", "(", ")", "<", ">", "stream\n",
            "endstream", "endobj", "/Type", "/Page", "/Pages", "/Catalog", "/Kids", "/Contents",
            "/Font", "/F", "/Resources", "1 0 R", "2 0 R", "3 0 R", "/Length", "-1", "9e99", "7",
            "/ObjStm", "/N", "/First", "/Filter", "/LZWDecode", "/ASCII85Decode", "BT", "/F 9 Tf",
            "Tj", "TJ", "'", "\"", "ID", "EI", "Do", "cm", "q", "Q", "beginbfrange", "endbfrange",
        ]), 0..200),
    ) {
        let file = format!("%PDF-1.4 {}", words.join(" "));
        read(file.as_bytes(), &Bounds { time: Duration::from_secs(2), ..Bounds::default() });
    }
}
