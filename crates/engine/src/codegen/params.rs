//! The members of a kernel's parameter struct: each is named in the source and filled at launch.

use std::fmt::Write;
use std::ops::Range;

use warpcube_column::Constant;

use crate::arena::Region;

/// What a member is filled with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    /// A pointer to a region of the statement's arena.
    Region(Region),
    /// A pointer so many bytes into a region.
    Within(Region, usize),
    /// A pointer into a region of so many bytes a chunk, to those of the first chunk of the launch.
    Chunk(Region, usize),
    /// A pointer into a region of so many bytes a launch of the pipeline, to those of the launch.
    Launch(Region, usize),
    /// Chunks, tickets or vectors of the launch.
    Count(Counted),
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A double.
    F64(f64),
}

/// What is counted of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Chunks,
    Tickets,
    Vectors,
}

/// The parameter struct of one kernel; every member has 8 bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParamList {
    /// Number of the first member.
    first: usize,
    members: Vec<(String, Argument)>,
}

impl ParamList {
    /// An empty list whose members are numbered from `first` on.
    pub(crate) fn numbered_from(first: usize) -> ParamList {
        ParamList { first, members: Vec::new() }
    }

    /// Number of the next member.
    pub(crate) fn next(&self) -> usize {
        self.first + self.members.len()
    }

    /// Whether members of these numbers have the types of the other list's, which are as many.
    pub(crate) fn is_typed_as(&self, numbers: Range<usize>, other: &ParamList) -> bool {
        let own = self.members.get(numbers).unwrap_or_default().iter().map(|(c_type, _)| c_type);
        own.eq(other.members.iter().map(|(c_type, _)| c_type))
    }

    /// Takes over the numbers of another list, for its own members of the same numbers; pointers stay.
    pub(crate) fn take_numbers(&mut self, other: ParamList) {
        for (member, (_, value)) in self.members.iter_mut().skip(other.first).zip(other.members) {
            let is_pointer = |value: &Argument| {
                use Argument::{Chunk, Launch, Region, Within};
                matches!(value, Region(_) | Within(_, _) | Chunk(_, _) | Launch(_, _))
            };
            if !is_pointer(&value) {
                member.1 = value;
            }
        }
    }

    /// A member for `argument` of a C type (a pointer or an 8-byte number), its expression in the kernel.
    pub(crate) fn add(&mut self, c_type: &str, argument: Argument) -> String {
        // Equal constants must not share a member: source text would then depend on their values, and every new
        // combination would compile anew. Zones are distinct by shape alone and may be shared.
        let known = match &argument {
            Argument::Region(_) | Argument::Chunk(_, _) | Argument::Launch(_, _) => {
                self.members.iter().position(|(known, value)| known == c_type && *value == argument)
            }
            _ => None,
        };
        let index = known.unwrap_or_else(|| {
            self.members.push((c_type.to_string(), argument));
            self.members.len() - 1
        });
        format!("p.m{}", self.first + index)
    }

    /// A member for a constant that a column is read with.
    pub(crate) fn constant(&mut self, c_type: &str, constant: Constant) -> String {
        match constant {
            Constant::Word(value) => self.add(c_type, Argument::U64(value)),
            Constant::Float(value) => self.add(c_type, Argument::F64(value)),
        }
    }

    /// The struct's declaration.
    pub(crate) fn declaration(&self, name: &str) -> String {
        let mut text = format!("struct {name} {{\n");
        for (number, (c_type, _)) in (self.first..).zip(&self.members) {
            let _ = writeln!(text, "    {c_type} m{number};");
        }
        text.push_str("};\n");
        text
    }

    /// The values in member order.
    pub(crate) fn arguments(&self) -> impl ExactSizeIterator<Item = &Argument> {
        self.members.iter().map(|(_, argument)| argument)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_constants_keep_members_of_their_own() {
        let mut params = ParamList::default();
        assert_eq!(params.add("int64_t", Argument::I64(1)), "p.m0");
        assert_eq!(params.add("int64_t", Argument::I64(1)), "p.m1");
        assert_eq!(params.declaration("P"), "struct P {\n    int64_t m0;\n    int64_t m1;\n};\n");
    }

    #[test]
    fn numbers_of_another_list_take_the_places_of_their_members() {
        let mut params = ParamList::default();
        params.add("uint64_t", Argument::U64(7));
        params.add("int64_t", Argument::I64(1));
        let mut others = ParamList::numbered_from(1);
        assert_eq!((others.add("int64_t", Argument::I64(2)), others.next()), ("p.m1".to_string(), 2));
        assert!(params.is_typed_as(1..2, &others) && !params.is_typed_as(0..1, &others));
        assert!(!params.is_typed_as(0..2, &others) && !params.is_typed_as(1..3, &others));
        params.take_numbers(others);
        assert_eq!(params.arguments().collect::<Vec<_>>(), [&Argument::U64(7), &Argument::I64(2)]);
    }
}
