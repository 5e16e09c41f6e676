//! Device functions that read encoded segments, for kernels of all crates.
//!
//! The header of a layout loads whole vectors of a warp and gets single rows. A program gets the headers that it uses.

use crate::format::{Alp, Encoding, Packed};

/// The map of rows to the lanes of a warp, and loads of plain columns; the base of all other headers.
pub const PLAIN_LIBRARY: &str = include_str!("../../kernels/plain.cuh");

/// Packed columns, and the sums of references and offsets that most headers use.
const PACKED: &str = include_str!("../../kernels/packed.cuh");
/// The other headers, each with the names that mark its use, in their order in a program.
const HEADERS: [(&[&str], &str); 7] = [
    (&["WcNsf<", "WcNsv<"], include_str!("../../kernels/nullsupp.cuh")),
    (&["WcRle<"], include_str!("../../kernels/runs.cuh")),
    (&["WcGpuFor<", "WcGpuDfor<"], include_str!("../../kernels/blocks.cuh")),
    (&["WcDelta<"], include_str!("../../kernels/delta.cuh")),
    (&["WcPackedView<", "WcPatched<", "WcAlp<"], include_str!("../../kernels/patches.cuh")),
    (&["WcAlp<"], include_str!("../../kernels/alp.cuh")),
    (&["WcTexts "], include_str!("../../kernels/texts.cuh")),
];

/// The headers of encoded columns that a program's text uses; their place is between [`PLAIN_LIBRARY`] and the text.
pub fn decoding_library(text: &str) -> Vec<&'static str> {
    let marks = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
    let own: Vec<_> = HEADERS.iter().filter(|(names, _)| marks(names)).map(|(_, header)| *header).collect();
    let packed = !own.is_empty() || marks(&["WcPacked<", "wc_packed_get<"]);
    packed.then_some(PACKED).into_iter().chain(own).collect()
}

/// A constant of a view.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constant {
    /// A `uint64_t`.
    Word(u64),
    /// A `double`.
    Float(f64),
}

impl Constant {
    /// The type of the constant in kernel source.
    pub fn c_type(self) -> &'static str {
        match self {
            Constant::Word(_) => "uint64_t",
            Constant::Float(_) => "double",
        }
    }
}

/// The device type that reads segments of a layout, constructed from the address of a segment, its rows and the
/// constants. `fetch` loads the bytes of a lane's values of a step and `decode` decodes them; `wc_view_load` does both.
/// `get` reads a single value.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Name of the type.
    pub c_type: String,
    /// Constants after address and rows.
    pub constants: Vec<Constant>,
}

impl Encoding {
    /// The view of segments whose values, or codes, have the type `value`.
    pub fn view(&self, value: &str) -> View {
        let word = |reference: Option<u64>| vec![Constant::Word(reference.unwrap_or_default())];
        let (c_type, constants) = match self.stored() {
            Encoding::Plain | Encoding::Dictionary(_) => (format!("WcPlain<{value}>"), Vec::new()),
            Encoding::Packed(packed) => {
                let Packed { width, reference, patches } = *packed;
                let name = if patches { "WcPatched" } else { "WcPackedView" };
                (format!("{name}<{value}, {width}, {}>", reference.is_none()), word(reference))
            }
            Encoding::Nsf(nsf) => (format!("WcNsf<{value}, {}>", nsf.bytes), Vec::new()),
            Encoding::Nsv(nsv) => (format!("WcNsv<{value}>"), word(Some(nsv.reference))),
            Encoding::Rle => (format!("WcRle<{value}>"), Vec::new()),
            Encoding::GpuFor => (format!("WcGpuFor<{value}>"), Vec::new()),
            Encoding::GpuDfor => (format!("WcGpuDfor<{value}>"), Vec::new()),
            Encoding::Delta(delta) => (format!("WcDelta<{value}, {}, {}>", delta.width, delta.differences), Vec::new()),
            Encoding::Bytes(_) => ("WcTexts".into(), Vec::new()),
            Encoding::Alp(alp) => {
                let Alp { integers: Packed { width, reference, patches }, .. } = *alp;
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
    fn programs_get_the_headers_that_they_use() {
        assert_eq!(decoding_library("wc_load_slots<8>(d0, c0 + base, lane);").concat(), "");
        assert_eq!(decoding_library("WcPacked<12, 8> d0;"), [PACKED]);
        let alp = decoding_library("const WcAlp<double, 12, true, true> c0(pointers[0], rows_here);").concat();
        assert!(alp.starts_with(PACKED) && alp.contains("struct WcPatches") && alp.contains("struct WcAlp "));
        assert!(!alp.contains("struct WcRle"));
    }
}
