//! The members of a kernel's parameter struct: each is named in the source and filled at launch.

use warpcube_column::Constant;

use crate::arena::Zone;

/// What a member is filled with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    /// A pointer to a zone of the statement's arena.
    Zone(Zone),
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A double.
    F64(f64),
}

/// The parameter struct of one kernel; every member has 8 bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParamList {
    members: Vec<(String, String, Argument)>,
}

impl ParamList {
    /// A member for `argument` of a C type (a pointer or an 8-byte number), its expression in the kernel.
    pub(crate) fn add(&mut self, c_type: &str, argument: Argument) -> String {
        let known = self.members.iter().position(|(known, _, value)| known == c_type && *value == argument);
        // Equal constants must not share a member: source text would then depend on their values, and every new
        // combination would compile anew. Zones are distinct by shape alone and may be shared.
        let index = match (known, &argument) {
            (Some(index), Argument::Zone(_)) => index,
            _ => {
                self.members.push((c_type.to_string(), format!("m{}", self.members.len()), argument));
                self.members.len() - 1
            }
        };
        format!("p.{}", self.members[index].1)
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
        for (c_type, member, _) in &self.members {
            text.push_str(&format!("    {c_type} {member};\n"));
        }
        text.push_str("};\n");
        text
    }

    /// The values in member order.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.members.iter().map(|(_, _, argument)| argument)
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
}
