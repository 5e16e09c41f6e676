//! Device functions that read columns, for kernels of other crates.
//!
//! Each layout has a header that loads whole vectors of a warp and gets single rows; programs get those they use.

use crate::encoding::{Alp, Packed};
use crate::layout::Layout;

/// Where rows lie in a warp, and loads of plain columns: what all others rest on.
pub const PLAIN_LIBRARY: &str = include_str!("../kernels/plain.cuh");

/// Packed columns, and the sums of references and offsets that most others rest on.
const PACKED: &str = include_str!("../kernels/packed.cuh");
/// Headers besides, each with the names that mark its use, in the order in which they go into a program.
const HEADERS: [(&[&str], &str); 6] = [
    (&["WcNsf<", "WcNsv<"], include_str!("../kernels/nullsupp.cuh")),
    (&["WcRle<"], include_str!("../kernels/runs.cuh")),
    (&["WcGpuFor<", "WcGpuDfor<"], include_str!("../kernels/blocks.cuh")),
    (&["WcDelta<"], include_str!("../kernels/delta.cuh")),
    (&["WcPackedView<", "WcPatched<", "WcAlp<"], include_str!("../kernels/patches.cuh")),
    (&["WcAlp<"], include_str!("../kernels/alp.cuh")),
];

/// What a program's text calls to read encoded columns; goes behind [`PLAIN_LIBRARY`] and before the text.
pub fn decoding_library(text: &str) -> String {
    let marks = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    let own: String = HEADERS.iter().filter(|(names, _)| marks(names)).map(|(_, header)| *header).collect();
    let packed = !own.is_empty() || marks(&["WcPacked<", "wc_packed_get<"]);
    format!("{}{own}", if packed { PACKED } else { "" })
}

/// What a view takes as a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constant {
    /// A `uint64_t`.
    Word(u64),
    /// A `double`.
    Float(f64),
}

/// The device type that reads segments of a layout: it is made of a segment's address, the segment's rows and the
/// constants. `fetch` asks for a lane's values of a step and `decode` makes them, `wc_view_load` does both; `get` is a
/// single value.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Name of the type.
    pub c_type: String,
    /// What it is made of besides.
    pub constants: Vec<Constant>,
}

impl Layout {
    /// The view of segments whose values have the type `value`.
    pub fn view(self, value: &str) -> View {
        let word = |reference: Option<u64>| vec![Constant::Word(reference.unwrap_or_default())];
        let (c_type, constants) = match self {
            Layout::Plain => (format!("WcPlain<{value}>"), Vec::new()),
            Layout::Packed(Packed { width, reference, patches }) => {
                let name = if patches { "WcPatched" } else { "WcPackedView" };
                (format!("{name}<{value}, {width}, {}>", reference.is_none()), word(reference))
            }
            Layout::Nsf(nsf) => (format!("WcNsf<{value}, {}>", nsf.bytes), Vec::new()),
            Layout::Nsv(nsv) => (format!("WcNsv<{value}>"), word(Some(nsv.reference))),
            Layout::Rle => (format!("WcRle<{value}>"), Vec::new()),
            Layout::GpuFor => (format!("WcGpuFor<{value}>"), Vec::new()),
            Layout::GpuDfor => (format!("WcGpuDfor<{value}>"), Vec::new()),
            Layout::Delta(delta) => (format!("WcDelta<{value}, {}, {}>", delta.width, delta.differences), Vec::new()),
            Layout::Alp(alp) => {
                let Alp { integers: Packed { width, reference, patches }, .. } = alp;
                let (factor, inverse) = alp.factors();
                let mut constants = word(reference);
                constants.extend([factor, inverse].map(Constant::Float));
                (format!("WcAlp<{value}, {width}, {}, {patches}>", reference.is_none()), constants)
            }
        };
        View { c_type, constants }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_what_they_use() {
        assert_eq!(decoding_library("wc_load_slots<8>(d0, c0 + base, lane);"), "");
        assert_eq!(decoding_library("WcPacked<12, 8> d0;"), PACKED);
        let alp = decoding_library("const WcAlp<double, 12, true, true> c0(pointers[0], rows_here);");
        assert!(alp.starts_with(PACKED) && alp.contains("struct WcPatches") && alp.contains("struct WcAlp "));
        assert!(!alp.contains("struct WcRle"));
    }
}
