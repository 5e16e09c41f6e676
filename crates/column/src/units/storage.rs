//! Machine types of columns on the device.

use arrow::datatypes::DataType;

/// The machine type of a column's values on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer; dates in days.
    I32,
    /// 64-bit signed integer; dates in milliseconds, timestamps, decimals of up to 64 bits.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer; dictionary codes of strings.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// A byte, 0 or 1.
    Bool,
}

impl Storage {
    /// All of them. Files name one by its place here.
    pub const ALL: [Storage; 11] = [
        Storage::I8,
        Storage::I16,
        Storage::I32,
        Storage::I64,
        Storage::U8,
        Storage::U16,
        Storage::U32,
        Storage::U64,
        Storage::F32,
        Storage::F64,
        Storage::Bool,
    ];

    /// The storage of an Arrow type; `None` if columns of the type stay on the CPU.
    pub fn of(data_type: &DataType) -> Option<Storage> {
        Some(match data_type {
            DataType::Int8 => Storage::I8,
            DataType::Int16 => Storage::I16,
            DataType::Int32 | DataType::Date32 => Storage::I32,
            DataType::Int64 | DataType::Date64 | DataType::Timestamp(_, _) | DataType::Decimal128(_, _) => Storage::I64,
            DataType::UInt8 => Storage::U8,
            DataType::UInt16 => Storage::U16,
            DataType::UInt32 => Storage::U32,
            DataType::UInt64 => Storage::U64,
            DataType::Float32 => Storage::F32,
            DataType::Float64 => Storage::F64,
            DataType::Boolean => Storage::Bool,
            other if is_string(other) => Storage::U32,
            _ => return None,
        })
    }

    /// Bytes of a value.
    pub fn width(self) -> usize {
        match self {
            Storage::I8 | Storage::U8 | Storage::Bool => 1,
            Storage::I16 | Storage::U16 => 2,
            Storage::I32 | Storage::U32 | Storage::F32 => 4,
            Storage::I64 | Storage::U64 | Storage::F64 => 8,
        }
    }

    /// The type's name in kernel source.
    pub fn c_name(self) -> &'static str {
        match self {
            Storage::I8 => "int8_t",
            Storage::I16 => "int16_t",
            Storage::I32 => "int32_t",
            Storage::I64 => "int64_t",
            Storage::U8 | Storage::Bool => "uint8_t",
            Storage::U16 => "uint16_t",
            Storage::U32 => "uint32_t",
            Storage::U64 => "uint64_t",
            Storage::F32 => "float",
            Storage::F64 => "double",
        }
    }

    /// Whether values are floating point.
    pub fn is_float(self) -> bool {
        matches!(self, Storage::F32 | Storage::F64)
    }

    /// Whether values are signed integers.
    pub fn is_signed(self) -> bool {
        matches!(self, Storage::I8 | Storage::I16 | Storage::I32 | Storage::I64)
    }

    /// Bytes of a word: the width, at least 4. Encodings compute differences in words.
    pub fn word_bytes(self) -> usize {
        self.width().max(4)
    }
}

/// Whether a type is a string type or a dictionary of strings, with codes as values.
pub fn is_string(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_string(values),
        _ => false,
    }
}
