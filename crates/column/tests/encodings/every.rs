//! Every encoding of a segment, with fitting parameters and with the narrowest ones.

use warpcube_column::Storage;
use warpcube_column::format::{Alp, Delta, Dictionary, Encoding, Nsf, Nsv, OffsetBits, Packed, ladder};

use crate::data::Segment;

/// Every encoding that applies to a segment.
pub fn encodings(segment: &Segment) -> Vec<Encoding> {
    let plain = segment.plain();
    let mut all = vec![Encoding::Plain];
    for reference in [None, Some(3u64.wrapping_neg())] {
        let bits = OffsetBits::of(&plain, reference);
        for patches in [false, true] {
            let fitting = bits.fit(segment.storage, reference, patches);
            all.push(Encoding::Packed(fitting));
            all.push(Encoding::Packed(Packed { patches: true, width: fitting.width.min(4), ..fitting }));
        }
    }
    if plain.storage().width() < 8 {
        all.extend([0, 3].map(|reference| Encoding::Nsv(Nsv { reference })));
    }
    let valid = (0..segment.rows).filter(|row| segment.is_valid(*row));
    let extended: Vec<u64> = valid.map(|row| extended(segment, row)).collect();
    let nsf = extended.iter().map(|value| Nsf::fit(segment.storage, *value, *value)).max_by_key(|nsf| nsf.bytes);
    all.push(Encoding::Nsf(nsf.unwrap_or(Nsf { bytes: 1 })));
    all.extend([Encoding::Rle, Encoding::GpuFor, Encoding::GpuDfor]);
    all.extend(Delta::fit(&plain).map(Encoding::Delta));
    let distinct = Dictionary::distinct(&plain, usize::MAX).unwrap();
    let codes = Packed { width: ladder(64 - (distinct.len() as u64).leading_zeros()), reference: None, patches: false };
    for codes in [Encoding::Packed(codes), Encoding::Rle, Encoding::GpuDfor, Encoding::Nsv(Nsv { reference: 0 })] {
        all.push(Encoding::Dictionary(Dictionary::new(segment.storage, distinct.clone(), codes).unwrap()));
    }
    if segment.storage.is_float() {
        let fitting = Alp::fit(&plain).unwrap();
        let integers = Packed { width: 3, reference: Some(0), patches: true };
        all.extend(fitting.map(Encoding::Alp));
        all.push(Encoding::Alp(Alp { exponent: 14, factor: 12, integers }));
    }
    all
}

/// The value of a row, sign-extended to 64 bits for signed storages.
pub fn extended(segment: &Segment, row: usize) -> u64 {
    let bits = segment.bits(row);
    match segment.storage {
        Storage::I8 => bits as i8 as u64,
        Storage::I16 => bits as i16 as u64,
        Storage::I32 => bits as i32 as u64,
        _ => bits,
    }
}
