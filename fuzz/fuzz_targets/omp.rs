//! Archives: any bytes are verified or refused, and what was verified can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yore_archive::omp::Reader;
use yore_archive::{Limits, Sink};

fuzz_target!(|data: &[u8]| {
    let limits = Limits { inflated: 64 << 20, piece: 1 << 20, ..Limits::default() };
    let Ok(reader) = Reader::of_bytes(data.to_vec(), limits) else { return };
    reader.read(&mut Sink::new(&mut |_| Ok(()))).expect("invariant: the archive was verified");
});
