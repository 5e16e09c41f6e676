//! Readers: the kernel text that loads whole vectors of a column and gathers single rows.
//!
//! Plain vectors are loaded into arrays. Packed vectors without patches stay packed in registers until the use of a
//! value. A view for each chunk reads all other layouts: it fetches a step and decodes it into an array. A column with
//! a lookup is read as codes; a code becomes a value at its use. Strings as bytes are got row by row.

use super::kernels::{Constant, View};
use super::segment::ResidentColumn;
use crate::format::{Delta, Encoding, GROUP_ROWS, Packed};
use crate::units::{Storage, VECTOR_ROWS};

/// Bytes of a read of device memory.
pub const LINE_BYTES: f64 = 64.0;

/// Values of a packed column that a lane unpacks together: the fewest of a step.
pub const GROUP_SLOTS: usize = GROUP_ROWS / 32;

/// Values of a lane in a tile of GPU-DFOR.
pub const TILE_SLOTS: usize = 16;

/// The properties of a resident column that select its reader.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnLayout {
    /// Machine type of the values.
    pub storage: Storage,
    /// Encoding of stored values, or of their codes.
    segments: Encoding,
    /// Address of the distinct values of a dictionary column.
    lookup: Option<u64>,
    /// Number of distinct values at this address.
    pub codes: usize,
    /// Average bytes of a value.
    bytes: f64,
    /// Whether values are in ascending order.
    sorted: bool,
    /// Distance of plain values, in values.
    stride: usize,
}

/// The form of loaded values.
enum Access {
    /// Arrays of values.
    Arrays,
    /// Packed words; a value is unpacked at its use.
    Words(Packed),
    /// Steps of a view, decoded as a whole.
    View,
    /// Strings, got row by row.
    Texts,
}

impl ColumnLayout {
    /// The layout of a resident column.
    pub fn of(column: &ResidentColumn) -> ColumnLayout {
        ColumnLayout {
            storage: column.storage(),
            segments: column.encoding().stored().clone(),
            lookup: column.lookup().map(|values| values.pointer().word()),
            codes: column.lookup().map_or(0, |values| values.bytes() / column.storage().width()),
            bytes: column.bytes_per_value(),
            sorted: column.facts().is_sorted(),
            stride: 1,
        }
    }

    /// The layout of plain values that are no column, each so many values behind the one before: the cells of groups.
    pub fn plain(storage: Storage, stride: usize) -> ColumnLayout {
        let bytes = storage.width() as f64;
        ColumnLayout { storage, segments: Encoding::Plain, lookup: None, codes: 0, bytes, sorted: false, stride }
    }

    /// Bytes of a value in memory, without references.
    pub fn bytes(&self) -> f64 {
        // A column of a single value has a width of 0 bits.
        self.bytes.max(1.0 / 64.0)
    }

    /// Bytes of a value for reads of single rows: a line of memory holds the rows that decode one of them.
    pub fn gathered_bytes(&self) -> f64 {
        let rows = match &self.segments {
            // On average the differences of half a tile, or the lengths of half a vector.
            Encoding::GpuDfor => 256.0,
            Encoding::Nsv(_) => 512.0,
            _ => return self.bytes(),
        };
        self.bytes().min(LINE_BYTES / rows)
    }

    /// Whether the layout has vector bounds: a reference or a line for each vector, and offsets of at most 32 bits.
    pub fn has_bounds(&self) -> bool {
        match &self.segments {
            Encoding::Packed(packed) => packed.reference.is_none() && packed.width <= 32,
            Encoding::Delta(delta) => delta.distance(self.stored()).max(delta.differences) <= 32,
            _ => false,
        }
    }

    /// Whether a filter on the column drops mostly whole vectors.
    pub fn is_clustered(&self) -> bool {
        self.sorted && self.lookup.is_none() && self.has_bounds()
    }

    /// Bytes of registers of a loaded value.
    pub fn register_bytes(&self) -> f64 {
        match self.access() {
            Access::Words(packed) => f64::from(packed.width.next_multiple_of(4)) / 8.0,
            Access::View => match &self.segments {
                Encoding::Delta(delta) => f64::from(delta.width.next_multiple_of(4)) / 8.0,
                _ => self.stored().width().max(4) as f64,
            },
            Access::Texts => 0.0,
            Access::Arrays => self.stored().width().max(4) as f64,
        }
    }

    /// Whether a lane loads values in groups of eight.
    pub fn is_packed(&self) -> bool {
        !matches!(self.access(), Access::Arrays)
    }

    /// Whether steps shorter than [`TILE_SLOTS`] decode parts of a tile twice.
    pub fn is_tiled(&self) -> bool {
        self.segments == Encoding::GpuDfor
    }

    /// Whether steps are decoded as a whole.
    pub fn is_viewed(&self) -> bool {
        matches!(self.access(), Access::View)
    }

    fn access(&self) -> Access {
        match &self.segments {
            Encoding::Plain => Access::Arrays,
            Encoding::Bytes(_) => Access::Texts,
            Encoding::Packed(packed) if !packed.patches => Access::Words(*packed),
            _ => Access::View,
        }
    }

    /// The packing and the reference of integers or codes, if offsets of less than 32 bits can be compared alone.
    pub fn packed(&self) -> Option<(Packed, i128)> {
        let Access::Words(packed) = self.access() else { return None };
        let reference = packed.reference.filter(|_| (1..32).contains(&packed.width))?;
        Some((packed, if self.stored().is_signed() { (reference as i64).into() } else { reference.into() }))
    }

    /// Whether the loaded value of a NULL is zero.
    pub fn is_zero_where_null(&self) -> bool {
        let is_zero = match self.access() {
            Access::Arrays => true,
            Access::Words(packed) => packed.reference == Some(0),
            Access::View | Access::Texts => false,
        };
        is_zero && self.lookup.is_none()
    }

    /// Whether stored values are codes.
    pub fn is_coded(&self) -> bool {
        self.lookup.is_some()
    }

    /// Most values between the bounds of a packed vector.
    pub fn vector_values_max(&self) -> Option<u64> {
        match &self.segments {
            Encoding::Packed(packed) if packed.width < 64 => Some(1 << packed.width),
            _ => None,
        }
    }

    /// Type of a value in kernel source.
    pub fn value_type(&self) -> &'static str {
        if matches!(self.segments, Encoding::Bytes(_)) { "WcText" } else { self.storage.c_name() }
    }

    /// Machine type of stored values, or of their codes.
    fn stored(&self) -> Storage {
        if self.lookup.is_some() { Storage::U32 } else { self.storage }
    }
}

/// The kernel text that reads one column of a pipeline.
#[derive(Debug, Clone)]
pub struct ColumnReader {
    column: usize,
    layout: ColumnLayout,
    nullable: bool,
    /// The reference of all vectors of packed words: a parameter, or zero.
    reference: Option<String>,
    /// Type and constants of the view.
    view: String,
    constants: String,
    /// Address of the distinct values.
    lookup: Option<String>,
}

impl ColumnReader {
    /// The reader of a column; `add` adds a kernel parameter with its C type, and returns its expression.
    pub fn new(
        column: usize,
        layout: ColumnLayout,
        nullable: bool,
        mut add: impl FnMut(&str, Constant) -> String,
    ) -> ColumnReader {
        let (mut reference, mut view, mut constants) = (None, String::new(), String::new());
        match layout.access() {
            Access::Arrays | Access::Texts => {}
            Access::Words(packed) => {
                reference = packed
                    .reference
                    .map(|value| if value == 0 { "0".into() } else { add("uint64_t", Constant::Word(value)) });
            }
            Access::View => {
                let View { c_type, constants: needed } = layout.segments.view(layout.stored().c_name());
                view = c_type;
                needed
                    .into_iter()
                    .for_each(|constant| constants.push_str(&format!(", {}", add(constant.c_type(), constant))));
            }
        }
        let lookup =
            layout.lookup.map(|address| add(&format!("const {}*", layout.storage.c_name()), Constant::Word(address)));
        ColumnReader { column, layout, nullable, reference, view, constants, lookup }
    }

    /// The layout that it reads.
    pub fn layout(&self) -> &ColumnLayout {
        &self.layout
    }

    /// Declares the pointers of the column for a chunk of `rows_here` rows.
    pub fn pointers(&self) -> String {
        let ColumnReader { column, nullable, .. } = self;
        let at = column * 2;
        let mut text = match self.layout.access() {
            Access::View => {
                let (c_type, constants) = (&self.view, &self.constants);
                format!("        const {c_type} c{column}((const char*)pointers[{at}], rows_here{constants});\n")
            }
            Access::Arrays => {
                let c_type = self.layout.stored().c_name();
                format!("        const {c_type}* const c{column} = (const {c_type}*)pointers[{at}];\n")
            }
            Access::Words(_) => format!("        const char* const c{column} = (const char*)pointers[{at}];\n"),
            Access::Texts => {
                format!("        const WcTexts c{column}((const char*)pointers[{at}], rows_here);\n")
            }
        };
        text.push_str(&format!("        (void)c{column};\n"));
        if let Some(Packed { width, .. }) = self.with_references() {
            let (word, offset) = (self.sum_type(), format!("(uint64_t)((rows_here + 1023) / 1024) * {}", 128 * width));
            text.push_str(&format!("        const {word}* const f{column} = (const {word}*)(c{column} + {offset});\n"));
            text.push_str(&format!("        (void)f{column};\n"));
        }
        if *nullable {
            text.push_str(&format!(
                "        const uint32_t* const n{column} = (const uint32_t*)pointers[{}];\n        (void)n{column};\n",
                at + 1
            ));
        }
        text
    }

    /// Declares the loaded vectors of a step; names are `prefix` and the number of the column.
    pub fn declaration(&self, prefix: &str, slots: usize) -> String {
        let ColumnReader { column, layout, .. } = self;
        let values = match layout.access() {
            Access::Arrays => format!("            {} {prefix}{column}[{slots}];\n", layout.stored().c_name()),
            Access::View => format!("            {}::Step<{slots}> {prefix}{column};\n", self.view),
            Access::Words(packed) => format!("            WcPacked<{}, {slots}> {prefix}{column};\n", packed.width),
            Access::Texts => String::new(),
        };
        let references = format!("            {} {prefix}f{column};\n", self.sum_type());
        self.join(values, &references, &format!("            uint32_t {prefix}n{column};\n"))
    }

    /// Loads the vectors of the step at `base`, of which single values may be read `again` soon.
    pub fn load(&self, prefix: &str, base: &str, slots: usize, again: bool) -> String {
        let column = self.column;
        let values = match self.layout.access() {
            Access::Arrays => match self.layout.stride {
                1 => format!("            wc_load_slots<{slots}>({prefix}{column}, c{column} + {base}, lane);\n"),
                stride => {
                    let first = format!("c{column} + (uint64_t){base} * {stride}");
                    format!("            wc_load_apart<{slots}, {stride}>({prefix}{column}, {first}, lane);\n")
                }
            },
            Access::Words(_) => {
                let again = if again { "<true>" } else { "" };
                format!("            {prefix}{column}.load{again}(c{column}, {base}, lane);\n")
            }
            Access::View => format!("            c{column}.fetch({prefix}{column}, {base}, lane);\n"),
            Access::Texts => String::new(),
        };
        let references = format!("            {prefix}f{column} = wc_load_cached(f{column} + {base} / 1024);\n");
        let load = format!("wc_load_valid<{slots}>(n{column}, {base}, lane)");
        self.join(values, &references, &format!("            {prefix}n{column} = {load};\n"))
    }

    /// Moves loaded vectors from prefix `from` to prefix `to`.
    pub fn move_step(&self, from: &str, to: &str, slots: usize) -> String {
        let column = self.column;
        let values = match self.layout.access() {
            Access::Arrays => {
                format!("            for (int k = 0; k < {slots}; ++k) {to}{column}[k] = {from}{column}[k];\n")
            }
            Access::Words(_) | Access::View => format!("            {to}{column} = {from}{column};\n"),
            Access::Texts => String::new(),
        };
        let references = format!("            {to}f{column} = {from}f{column};\n");
        self.join(values, &references, &format!("            {to}n{column} = {from}n{column};\n"))
    }

    /// The text of values, then those of references and validity if the column has them.
    fn join(&self, mut values: String, references: &str, validity: &str) -> String {
        if self.with_references().is_some() {
            values.push_str(references);
        }
        if self.nullable {
            values.push_str(validity);
        }
        values
    }

    /// Declares the prefix `to` as an alias of `from`.
    pub fn alias(&self, from: &str, to: &str) -> String {
        let column = self.column;
        let mut names = vec![format!("{column}")];
        names.extend(self.with_references().map(|_| format!("f{column}")));
        names.extend(self.nullable.then(|| format!("n{column}")));
        names.iter().map(|name| format!("            auto& {to}{name} = {from}{name};\n")).collect()
    }

    /// Decodes the loaded step of a view; behind a test, only if a lane reads values.
    pub fn decode(&self, prefix: &str, slots: usize, test: &str) -> String {
        let (column, c_type) = (self.column, self.layout.stored().c_name());
        match self.layout.is_viewed() {
            true => format!(
                "            {c_type} w{column}[{slots}]{};\n            \
                 {test}c{column}.decode(w{column}, {prefix}{column}, base, lane);\n",
                if test.is_empty() { "" } else { " = {}" }
            ),
            false => String::new(),
        }
    }

    /// The loaded value in slot `k`, in storage type.
    pub fn value(&self, prefix: &str) -> String {
        self.lookup(self.code(prefix))
    }

    /// The stored value in slot `k`: the code if there is a lookup.
    pub fn code(&self, prefix: &str) -> String {
        let column = self.column;
        match self.layout.access() {
            Access::Arrays => format!("{prefix}{column}[k]"),
            Access::View => format!("w{column}[k]"),
            Access::Texts => format!("c{column}"),
            Access::Words(_) => {
                let reference = self.reference_or(&format!("{prefix}f{column}"));
                format!("{prefix}{column}.value<{}>(k, {reference})", self.layout.stored().c_name())
            }
        }
    }

    /// The bounds of a vector of the chunk.
    pub fn bounds(&self, vector: &str) -> String {
        let column = self.column;
        match self.with_references() {
            Some(Packed { width, .. }) => {
                let c_type = self.layout.stored().c_name();
                format!("wc_bounds<{width}>(({c_type})wc_load_cached(f{column} + {vector}))")
            }
            None => format!("c{column}.bounds({vector})"),
        }
    }

    /// A word of 32 bits with the offset in slot `k` in its high bits and any low bits.
    pub fn top(&self, prefix: &str) -> String {
        format!("{prefix}{}.top(k)", self.column)
    }

    /// Bytes of the packed values of a vector at the start of a segment; `None` for other layouts.
    pub fn vector_bytes(&self) -> Option<usize> {
        match &self.layout.segments {
            Encoding::Packed(Packed { width, .. }) | Encoding::Delta(Delta { width, .. }) if *width > 0 => {
                Some(VECTOR_ROWS / 8 * *width as usize)
            }
            _ => None,
        }
    }

    /// Whether the column has validity words.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// The value of row `row` of the chunk, in storage type.
    pub fn gather(&self) -> String {
        let column = self.column;
        self.lookup(match self.layout.access() {
            Access::Arrays => match self.layout.stride {
                1 => format!("wc_load_cached(c{column} + row)"),
                stride => format!("wc_load_cached(c{column} + (uint64_t)row * {stride})"),
            },
            Access::Words(packed) => {
                let reference = self.reference_or(&format!("wc_load_cached(f{column} + row / 1024)"));
                let c_type = self.layout.stored().c_name();
                format!("wc_packed_get<{}, {c_type}>(c{column}, row, {reference})", packed.width)
            }
            Access::View | Access::Texts => format!("c{column}.get(row)"),
        })
    }

    /// The value of a code if there is a lookup, else the code itself.
    pub fn lookup(&self, code: String) -> String {
        match &self.lookup {
            Some(values) => format!("wc_load_cached({values} + {code})"),
            None => code,
        }
    }

    /// The type of references and of their sums with offsets.
    fn sum_type(&self) -> &'static str {
        if self.layout.stored().width() == 8 { "uint64_t" } else { "uint32_t" }
    }

    /// The packing of words with a reference for each vector.
    fn with_references(&self) -> Option<Packed> {
        match self.layout.access() {
            Access::Words(packed) => Some(packed).filter(|packed| packed.reference.is_none()),
            _ => None,
        }
    }

    fn reference_or(&self, own: &str) -> String {
        match &self.reference {
            Some(parameter) => format!("({}){parameter}", self.sum_type()),
            None => own.to_string(),
        }
    }
}
