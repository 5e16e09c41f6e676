//! How kernels read a column: vectors loaded whole, single rows gathered; plain or packed.

use warpcube_column::encoding::{GROUP_ROWS, Packed};
use warpcube_column::{Layout, ResidentColumn, Storage};

use crate::codegen::params::{Argument, ParamList};

/// Values of a packed column that a lane unpacks together: steps have at least as many.
pub(crate) const GROUP_SLOTS: usize = GROUP_ROWS / 32;

/// How a column's values lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Form {
    /// Machine type of the values.
    pub(crate) storage: Storage,
    /// Layout of its segments.
    pub(crate) layout: Layout,
}

impl Form {
    /// The form of a resident column.
    pub(crate) fn of(column: &ResidentColumn) -> Form {
        Form { storage: column.storage(), layout: column.layout() }
    }

    /// Bytes a value takes in memory, references apart.
    pub(crate) fn bytes(self) -> f64 {
        // A column of one value takes next to nothing.
        self.layout.bytes_per_value(self.storage.width()).max(1.0 / 64.0)
    }

    /// Bytes of registers that a loaded value takes.
    pub(crate) fn register_bytes(self) -> f64 {
        match self.layout {
            Layout::Plain => self.storage.width().max(4) as f64,
            Layout::Packed(packed) => f64::from(packed.width.next_multiple_of(4)) / 8.0,
        }
    }

    /// Whether a lane's values come in groups of eight.
    pub(crate) fn is_packed(self) -> bool {
        matches!(self.layout, Layout::Packed(_))
    }
}

/// The texts by which one column of a pipeline is read.
#[derive(Debug, Clone)]
pub(crate) struct ColumnReader {
    column: usize,
    form: Form,
    nullable: bool,
    /// The reference of all vectors: a parameter, or zero.
    reference: Option<String>,
}

impl ColumnReader {
    /// The reader of a column; what it needs as a constant becomes a parameter.
    pub(crate) fn new(column: usize, form: Form, nullable: bool, params: &mut ParamList) -> ColumnReader {
        let reference = match form.layout {
            Layout::Packed(Packed { reference: Some(0), .. }) => Some("0".into()),
            Layout::Packed(Packed { reference: Some(value), .. }) => Some(params.add("uint64_t", Argument::U64(value))),
            _ => None,
        };
        ColumnReader { column, form, nullable, reference }
    }

    /// Declares the column's pointers for one chunk of `rows_here` rows.
    pub(crate) fn pointers(&self) -> String {
        let ColumnReader { column, nullable, .. } = self;
        let at = column * 2;
        let c_type = match self.form.layout {
            Layout::Plain => self.form.storage.c_name(),
            Layout::Packed(_) => "char",
        };
        let mut text = format!("        const {c_type}* const c{column} = (const {c_type}*)pointers[{at}];\n");
        text.push_str(&format!("        (void)c{column};\n"));
        if let Layout::Packed(Packed { width, reference: None, .. }) = self.form.layout {
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

    /// Declares what holds the vectors of a step, by the name `prefix` and the column's number.
    pub(crate) fn declaration(&self, prefix: &str, slots: usize) -> String {
        let ColumnReader { column, form, .. } = self;
        let mut text = match form.layout {
            Layout::Plain => format!("            {} {prefix}{column}[{slots}];\n", form.storage.c_name()),
            Layout::Packed(packed) => format!("            WcPacked<{}, {slots}> {prefix}{column};\n", packed.width),
        };
        if self.has_references() {
            text.push_str(&format!("            {} {prefix}f{column};\n", self.sum_type()));
        }
        if self.nullable {
            text.push_str(&format!("            uint32_t {prefix}n{column};\n"));
        }
        text
    }

    /// Loads the vectors of the step at `base`.
    pub(crate) fn load(&self, prefix: &str, base: &str, slots: usize) -> String {
        let column = self.column;
        let mut text = match self.form.layout {
            Layout::Plain => {
                format!("            wc_load_slots<{slots}>({prefix}{column}, c{column} + {base}, lane);\n")
            }
            Layout::Packed(_) => format!("            {prefix}{column}.load(c{column}, {base}, lane);\n"),
        };
        if self.has_references() {
            text.push_str(&format!("            {prefix}f{column} = wc_load_cached(f{column} + {base} / 1024);\n"));
        }
        if self.nullable {
            let load = format!("wc_load_valid<{slots}>(n{column}, {base}, lane)");
            text.push_str(&format!("            {prefix}n{column} = {load};\n"));
        }
        text
    }

    /// Moves vectors loaded as `from` to `to`.
    pub(crate) fn move_on(&self, from: &str, to: &str, slots: usize) -> String {
        let column = self.column;
        let mut text = match self.form.layout {
            Layout::Plain => {
                format!("            for (int k = 0; k < {slots}; ++k) {to}{column}[k] = {from}{column}[k];\n")
            }
            Layout::Packed(_) => format!("            {to}{column} = {from}{column};\n"),
        };
        if self.has_references() {
            text.push_str(&format!("            {to}f{column} = {from}f{column};\n"));
        }
        if self.nullable {
            text.push_str(&format!("            {to}n{column} = {from}n{column};\n"));
        }
        text
    }

    /// Gives what was loaded as `from` another name.
    pub(crate) fn alias(&self, from: &str, to: &str) -> String {
        let column = self.column;
        let mut names = vec![format!("{column}")];
        names.extend(self.has_references().then(|| format!("f{column}")));
        names.extend(self.nullable.then(|| format!("n{column}")));
        names.iter().map(|name| format!("            auto& {to}{name} = {from}{name};\n")).collect()
    }

    /// The loaded value in slot `k`, in storage type.
    pub(crate) fn value(&self, prefix: &str) -> String {
        let column = self.column;
        match self.form.layout {
            Layout::Plain => format!("{prefix}{column}[k]"),
            Layout::Packed(_) => {
                let reference = self.reference_or(&format!("{prefix}f{column}"));
                format!("{prefix}{column}.value<{}>(k, {reference})", self.form.storage.c_name())
            }
        }
    }

    /// The value of the row `row` of the chunk, in storage type.
    pub(crate) fn gather(&self) -> String {
        let column = self.column;
        match self.form.layout {
            Layout::Plain => format!("wc_load_cached(c{column} + row)"),
            Layout::Packed(packed) => {
                let reference = self.reference_or(&format!("wc_load_cached(f{column} + row / 1024)"));
                let c_type = self.form.storage.c_name();
                format!("wc_packed_get<{}, {c_type}>(c{column}, row, {reference})", packed.width)
            }
        }
    }

    /// The type that offsets and references are added in, and that references are stored in.
    fn sum_type(&self) -> &'static str {
        if self.form.storage.width() == 8 { "uint64_t" } else { "uint32_t" }
    }

    fn has_references(&self) -> bool {
        matches!(self.form.layout, Layout::Packed(Packed { reference: None, .. }))
    }

    fn reference_or(&self, own: &str) -> String {
        match &self.reference {
            Some(parameter) => format!("({}){parameter}", self.sum_type()),
            None => own.to_string(),
        }
    }
}
