use std::io::Write;

use super::*;

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder
}

fn paths(source: &Source) -> Vec<&str> {
    source.files().iter().map(File::path).collect()
}

#[test]
fn numbered_parts_come_in_the_order_of_their_numbers() {
    let folder = folder(&[("c-10.json", b""), ("c-9.json", b""), ("c-1.json", b""), ("b", b"")]);
    let source = Source::open(&[folder.path().to_owned()], Limits::default()).unwrap();
    assert_eq!(paths(&source), ["b", "c-1.json", "c-9.json", "c-10.json"]);
}

#[test]
fn files_folders_and_zips_are_one_list() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.add_directory("inner", options).unwrap();
    zip.start_file("inner/a.json", options).unwrap();
    zip.write_all(b"[1]").unwrap();
    let zip = zip.finish().unwrap().into_inner();
    let folder = folder(&[("x.zip", &zip), ("sub/b.json", b"[2]"), (".git/c.json", b"[3]")]);
    let source = Source::open(&[folder.path().to_owned()], Limits::default()).unwrap();
    assert_eq!(paths(&source), ["inner/a.json", "sub/b.json"]);
    let a = source.named("a.json").next().unwrap();
    assert_eq!((a.folder(), a.bytes(10).unwrap()), ("inner", b"[1]".to_vec()));
    assert!(a.bytes(2).is_err(), "over the limit");
    assert!(!a.was_named());
    assert_eq!(source.total(), 6);
    assert_eq!(source.progress().load(Ordering::Relaxed), 6, "three bytes, read twice");
    let blob = source.blob(a).unwrap();
    assert_eq!((blob.hash, blob.size), (BlobHash::of(b"[1]"), 3));
}

#[test]
fn a_stream_of_zstd_that_explodes_is_stopped() {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let bomb = ruzstd::encoding::compress_to_vec(&vec![b' '; 8 << 20][..], level);
    let folder = folder(&[("a.jsonl.zst", &bomb)]);
    let tight = Limits { ratio: 10, ..Limits::default() };
    let source = Source::open(&[folder.path().to_owned()], tight).unwrap();
    let read = source.files()[0].bytes(64 << 20);
    assert!(read.unwrap_err().to_string().contains("far more than it should"));
    let wide = Limits { ratio: 1 << 20, ..Limits::default() };
    let source = Source::open(&[folder.path().to_owned()], wide).unwrap();
    assert_eq!(source.files()[0].bytes(64 << 20).unwrap().len(), 8 << 20);
}
