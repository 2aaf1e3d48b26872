//! How streams are packed.

use std::io::Read as _;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use super::object::{Object, is_blank, unhexed};

/// Undoes one filter, up to so many bytes; nothing for one that is not known, as of pictures.
pub(crate) fn undone(
    name: &[u8],
    parameters: &Object,
    packed: &[u8],
    room: usize,
) -> Option<Vec<u8>> {
    Some(match name {
        b"FlateDecode" | b"Fl" => predicted(inflated(packed, room), parameters),
        b"ASCIIHexDecode" | b"AHx" => {
            let end = memchr::memchr(b'>', packed).unwrap_or(packed.len());
            unhexed(&packed[..end])
        }
        b"ASCII85Decode" | b"A85" => ascii85(packed),
        b"LZWDecode" | b"LZW" => predicted(lzw(packed, room), parameters),
        _ => return None,
    })
}

/// A stream that is damaged gives what comes before the damage.
fn inflated(packed: &[u8], room: usize) -> Vec<u8> {
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(packed).take(room as u64).read_to_end(&mut plain);
    if read.is_err() && plain.is_empty() {
        let headless = packed.get(2..).unwrap_or_default();
        let read = DeflateDecoder::new(headless).take(room as u64).read_to_end(&mut plain);
        drop(read);
    }
    plain
}

fn ascii85(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut group: Vec<u8> = Vec::with_capacity(5);
    for byte in packed.iter().filter(|byte| !is_blank(**byte)) {
        match byte {
            b'z' if group.is_empty() => plain.extend([0; 4]),
            b'!'..=b'u' => {
                group.push(byte - b'!');
                if group.len() == 5 {
                    plain.extend(of_five(&group));
                    group.clear();
                }
            }
            _ => break,
        }
    }
    if group.len() > 1 {
        let kept = group.len() - 1;
        group.resize(5, 84);
        plain.extend(&of_five(&group)[..kept]);
    }
    plain
}

fn of_five(group: &[u8]) -> [u8; 4] {
    let value = group
        .iter()
        .fold(0u32, |value, digit| value.wrapping_mul(85).wrapping_add(u32::from(*digit)));
    value.to_be_bytes()
}

/// LZW with the early change that PDF has by default.
fn lzw(packed: &[u8], room: usize) -> Vec<u8> {
    const CLEAR: usize = 256;
    const END: usize = 257;
    let mut plain: Vec<u8> = Vec::new();
    // Each entry is a piece of what was written already.
    let mut table: Vec<(usize, usize)> = Vec::new();
    let (mut bits, mut held, mut width) = (0u32, 0u32, 9u32);
    let mut last: Option<(usize, usize)> = None;
    for byte in packed {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        if held < width {
            continue;
        }
        held -= width;
        let code = (bits >> held & ((1 << width) - 1)) as usize;
        bits &= (1 << held) - 1;
        if code == END || plain.len() > room {
            break;
        }
        if code == CLEAR {
            table.clear();
            (width, last) = (9, None);
            continue;
        }
        let from = plain.len();
        if code < CLEAR {
            plain.push(u8::try_from(code).unwrap_or_default());
        } else if let Some((begin, end)) = table.get(code - 258).copied() {
            plain.extend_from_within(begin..end);
        } else if let Some((begin, end)) = last {
            plain.extend_from_within(begin..end);
            plain.push(plain[begin]);
        } else {
            break;
        }
        if let Some((begin, end)) = last
            && table.len() < 4096 - 258
        {
            // The piece before and the first byte of this one lie next to each other.
            table.push((begin, end + 1));
        }
        last = Some((from, plain.len()));
        width = match table.len() + 258 + 1 {
            0..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        };
    }
    plain.truncate(room);
    plain
}

/// Undoes the differences between rows that PNG filters make.
fn predicted(plain: Vec<u8>, parameters: &Object) -> Vec<u8> {
    if parameters.get("Predictor").count().is_none_or(|kind| kind < 10) {
        return plain;
    }
    let of =
        |name: &str, usual: usize| parameters.get(name).count().unwrap_or(usual).clamp(1, 65_536);
    let bits = of("Colors", 1) * of("BitsPerComponent", 8);
    let pixel = (bits / 8).max(1);
    let width = (of("Columns", 1) * bits).div_ceil(8);
    let mut rows: Vec<u8> = Vec::with_capacity(plain.len());
    let mut above = vec![0u8; width];
    for packed in plain.chunks(width + 1) {
        let [kind, values @ ..] = packed else { break };
        let mut row = values.to_vec();
        row.resize(width, 0);
        for place in 0..width {
            let left = if place >= pixel { row[place - pixel] } else { 0 };
            let corner = if place >= pixel { above[place - pixel] } else { 0 };
            let up = above[place];
            let guess = match kind {
                1 => left,
                2 => up,
                3 => u8::midpoint(left, up),
                4 => paeth(left, up, corner),
                _ => 0,
            };
            row[place] = row[place].wrapping_add(guess);
        }
        rows.extend(&row[..values.len()]);
        above = row;
    }
    rows
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let guess = i16::from(left) + i16::from(up) - i16::from(corner);
    let off = |one: u8| (guess - i16::from(one)).abs();
    if off(left) <= off(up) && off(left) <= off(corner) {
        left
    } else if off(up) <= off(corner) {
        up
    } else {
        corner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_filters_are_undone() {
        assert_eq!(undone(b"ASCIIHexDecode", &Object::Null, b"48 69>", 9).unwrap(), b"Hi");
        let packed = br"<+ohcCLqR/Eb0&0DImm2Er~>";
        let plain = undone(b"ASCII85Decode", &Object::Null, packed, 99).unwrap();
        assert_eq!(plain, b"The kestrel nests");
        let packed = [0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01];
        let plain = undone(b"LZWDecode", &Object::Null, &packed, 99).unwrap();
        assert_eq!(plain, [45, 45, 45, 45, 45, 65, 45, 45, 45, 66]);
        assert!(undone(b"DCTDecode", &Object::Null, b"", 9).is_none());
    }
}
