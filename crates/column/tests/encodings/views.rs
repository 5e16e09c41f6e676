//! Kernels decode what the CPU encoded: every encoding through its view, whole vectors in steps of each length and
//! single rows, on the emulated device.

use std::collections::BTreeMap;

use warpcube_column::format::{Alp, Delta, Encoding, Nsf, Nsv, OffsetBits, Packed, encode};
use warpcube_column::{Constant, PLAIN_LIBRARY, Storage, decoding_library};
use warpcube_gpu::{DeviceBuffer, LaneOrder, LaunchShape, Params, Program};

use crate::data::*;

const BUDGET: u64 = 64 << 20;
/// Values of a lane's steps.
const SLOTS: [usize; 3] = [8, 16, 32];

/// A segment with an encoding.
pub struct Case {
    pub name: String,
    pub segment: Segment,
    pub bytes: Vec<u8>,
    pub encoding: Encoding,
}

/// Encodings of a segment; each gives a program text of its own, so that they are few.
fn encodings(segment: &Segment) -> Vec<Encoding> {
    let (plain, storage) = (segment.plain(), segment.storage);
    let mut all = vec![Encoding::Rle];
    if storage.is_float() {
        let integers = Packed { width: 17, reference: None, patches: true };
        let fixed = Alp { exponent: 14, factor: 12, integers };
        let shared = Packed { width: 14, reference: Some(0), patches: true };
        for alp in [fixed, Alp { exponent: 3, factor: 0, integers: shared }] {
            all.push(Encoding::Alp(alp));
        }
        return all;
    }
    let most = 8 * storage.width() as u32;
    for (width, reference) in [(most.min(5), None), (most.min(12), Some(3u64.wrapping_neg())), (0, Some(7))] {
        let packed = Packed { width, reference, patches: true };
        all.push(Encoding::Packed(packed));
    }
    let whole = Packed { width: most, reference: Some(1), patches: false };
    all.push(Encoding::Packed(whole));
    let fits = |bits: u32| OffsetBits::of(&plain, Some(0)).wider_than(bits) == 0;
    if storage.width() < 8 || fits(32) {
        let nsv = Nsv { reference: if storage.width() < 8 { 5 } else { 0 } };
        all.push(Encoding::Nsv(nsv));
    }
    for bytes in [1, 2, 4, 8].into_iter().filter(|bytes| *bytes <= storage.width() as u32) {
        let nsf = Nsf { bytes };
        all.push(Encoding::Nsf(nsf));
    }
    all.extend([Encoding::GpuFor, Encoding::GpuDfor]);
    let fitting = Delta::fit(&plain).unwrap();
    let word = 8 * storage.width().max(4) as u32;
    let wider = Delta { width: fitting.width.max(17), ..fitting };
    for delta in [fitting, wider, Delta { width: word, differences: word }] {
        all.push(Encoding::Delta(delta));
    }
    all
}

fn cases(storage: Storage) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |distribution, nulls, rows| {
        let segment = Segment::draw(storage, distribution, nulls, rows, rows as u64 + 17);
        for encoding in encodings(&segment) {
            // Not all widths hold all values.
            let Ok(bytes) = encode(&encoding, &segment.plain()) else { continue };
            let name = format!("{encoding} of {rows} rows, {distribution:?}, nulls {nulls:?}");
            let segment = Segment::draw(storage, distribution, nulls, rows, rows as u64 + 17);
            cases.push(Case { name, segment, bytes, encoding });
        }
    };
    for distribution in DISTRIBUTIONS {
        for (nulls, rows) in [(Nulls::None, 3_000), (Nulls::Some, 1_025), (Nulls::None, 1)] {
            add(distribution, nulls, rows);
        }
    }
    for rows in [1_023, 1_024, 6_000] {
        add(Distribution::MostlySmall, Nulls::Some, rows);
        add(Distribution::Sorted, Nulls::All, rows);
    }
    cases
}

/// A kernel for each view: steps of every length to memory, then all rows one by one.
fn text(storage: Storage, views: &BTreeMap<String, usize>) -> String {
    let c_type = storage.c_name();
    let mut text = format!(
        "struct DecodeParams {{ const char* segment; uint64_t rows, stride; {c_type}* values; uint64_t reference; \
         double factor, inverse; }};\n"
    );
    text.push_str(&format!(
        "template <int SLOTS, typename View> WC_DEVICE void decode(const View& view, {c_type}* values, uint32_t rows) {{
            const uint32_t lane = wc_lane();
            for (uint32_t base = wc_warp() * 32 * SLOTS; base < rows; base += blockDim.x * SLOTS) {{
                {c_type} own[SLOTS];
                wc_view_load<SLOTS>(view, own, base, lane);
                for (int k = 0; k < SLOTS; ++k) values[base + wc_slot_row(k, lane)] = own[k];
            }}
        }}\n"
    ));
    for (view, number) in views {
        let constants = match view.split('<').next().unwrap() {
            "WcPackedView" | "WcPatched" | "WcNsv" => ", p.reference",
            "WcAlp" => ", p.reference, p.factor, p.inverse",
            _ => "",
        };
        let steps: String = SLOTS
            .iter()
            .enumerate()
            .map(|(at, slots)| format!("    decode<{slots}>(view, p.values + {at} * p.stride, (uint32_t)p.rows);\n"))
            .collect();
        text.push_str(&format!(
            "WC_KERNEL(decode_{number}, DecodeParams, 64, 1) {{
    if (p.rows == 0) return;
    const {view} view(p.segment, (uint32_t)p.rows{constants});
{steps}    {c_type}* const single = p.values + {} * p.stride;
    for (uint32_t row = threadIdx.x; row < p.rows; row += blockDim.x) single[row] = view.get(row);
}}\n",
            SLOTS.len()
        ));
    }
    text
}

/// Decodes segments on devices and compares all their rows.
pub fn decodes(storage: Storage, cases: &[Case]) {
    let devices = [LaneOrder::Forward, LaneOrder::Seeded(5)].map(|order| device(order, BUDGET));
    let mut views: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases {
        let next = views.len();
        views.entry(case.encoding.view(storage.c_name()).c_type).or_insert(next);
    }
    let text = text(storage, &views);
    let program = Program::new("decoding", format!("{PLAIN_LIBRARY}{}{text}", decoding_library(&text).concat()));
    let width = storage.width();
    for case in cases {
        let Case { name, segment, bytes, encoding } = case;
        let stride = segment.rows.next_multiple_of(1_024);
        let view = encoding.view(storage.c_name());
        let mut constants = view.constants.iter();
        let word = constants.next().map_or(0, |constant| match constant {
            Constant::Word(value) => *value,
            Constant::Float(_) => panic!("references come first"),
        });
        let floats: Vec<f64> = constants
            .map(|constant| match constant {
                Constant::Float(value) => *value,
                Constant::Word(_) => panic!("one reference at most"),
            })
            .chain([1.0, 1.0])
            .collect();
        for device in &devices {
            let module = device.compile(&program).unwrap();
            let kernel = module.kernel(&format!("decode_{}", views[&view.c_type])).unwrap();
            let mut stream = device.stream().unwrap();
            let source = device.buffer(bytes.len(), "a segment").unwrap();
            stream.upload(&source, 0, bytes).unwrap();
            let target: DeviceBuffer = device.buffer((SLOTS.len() + 1) * stride * width, "values").unwrap();
            let params = Params::new().buffer(&source).u64(segment.rows as u64).u64(stride as u64);
            let params = params.buffer(&target).u64(word).f64(floats[0]).f64(floats[1]);
            let shape = LaunchShape { grid: 1, block: 64, shared_bytes: 0 };
            stream.launch(&kernel, shape, &params).unwrap();
            let mut found = vec![0u8; target.bytes()];
            stream.download(&target, 0, &mut found).unwrap();
            for (way, values) in found.chunks_exact(stride * width).enumerate() {
                // What is behind the last row may be looked up by its value, which has to be one that there is.
                let step =
                    SLOTS.get(way).filter(|_| matches!(encoding, Encoding::Delta(_))).map_or(1, |slots| 32 * slots);
                for row in segment.rows..segment.rows.next_multiple_of(step) {
                    let own = &values[row * width..(row + 1) * width];
                    let is_one = |valid: usize| segment.values[valid * width..(valid + 1) * width] == *own;
                    // Zeros where a vector has no valid row: the first code of a dictionary.
                    let is_known = (0..segment.rows).any(|row| segment.is_valid(row) && is_one(row));
                    assert!(is_known || own.iter().all(|byte| *byte == 0), "{name}: row {row} is behind the last one");
                }
                let way = SLOTS.get(way).map_or("one by one".into(), |slots| format!("in steps of {slots}"));
                for row in (0..segment.rows).filter(|row| segment.is_valid(*row)) {
                    let own = row * width..(row + 1) * width;
                    assert!(values[own.clone()] == segment.values[own], "{name}: row {row} {way}");
                }
            }
        }
    }
}

macro_rules! storages {
    ($($name:ident: $storage:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            decodes(Storage::$storage, &cases(Storage::$storage));
        }
    )*};
}

storages! {
    bytes_with_a_sign: I8,
    shorts: I16,
    integers: I32,
    long_integers: I64,
    bytes: U8,
    shorts_without_a_sign: U16,
    codes: U32,
    long_integers_without_a_sign: U64,
    floats: F32,
    doubles: F64,
    truths: Bool,
}
