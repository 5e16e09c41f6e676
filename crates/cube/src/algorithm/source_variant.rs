//! Choices of the source-based algorithm, and the names they make.

use std::fmt;
use std::str::FromStr;

/// Most parallel hash functions: those that Meinke measured (5.2).
pub const HASH_FUNCTIONS_MAX: u32 = 12_288;

/// Preaggregation: how the lanes of a warp add up values for one target before they reach a hash table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Preaggregation {
    /// Each lane adds its value.
    None,
    /// Lanes with the target of the first lane leave their values in shared memory, and that lane adds the sum
    /// (Meinke 4.2.1).
    FirstShared,
    /// The same by shuffles (Meinke 5.4.1).
    Shuffle,
    /// Lanes compare with the lane of their number modulo the number of targets of lane 0's cell (Meinke 4.3.4).
    /// For expansions that give neighbouring lanes the targets of one cell.
    Strided,
    /// Lanes of equal targets find each other by one instruction, and the first of each group adds the sum.
    Match,
}

/// How a cell reaches its targets, which are one or thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expansion {
    /// A thread has one cell and adds it to one target after the other; lanes with fewer targets wait (Meinke 4.2).
    Thread,
    /// A block counts the targets of its cells; each thread finds its cell by an upper-bound search in their prefix
    /// sums.
    Balanced,
    /// Parents count targets, and each launches a child kernel of as many blocks as its targets fill (Meinke 4.3).
    /// The host launches parents in batches of 2,048, so that no more children are pending.
    Children,
    /// The same with children of one block, which walks over the targets (Meinke 5.5.1).
    ChildBlocks,
    /// As [`Expansion::Children`], but the host launches the blocks of all children of a batch as one kernel. For
    /// devices whose kernels launch none.
    HostChildren,
    /// As [`Expansion::ChildBlocks`], launched by the host.
    HostChildBlocks,
}

/// Where the aggregation map lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MapPlace {
    /// Constant memory: the parameters of the kernel, which take 32,764 bytes at most.
    Constant,
    /// Shared memory: each block copies the map, 64 KiB at most.
    Shared,
    /// Global memory: maps that are too large for the place asked for.
    Global,
}

/// A variant of the source-based algorithm. Its name is `gpu-source/<preaggregation>/<expansion>/<map>/h<functions>`;
/// the map is left out where it lies in constant memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceVariant {
    /// Preaggregation of a warp.
    pub preaggregation: Preaggregation,
    /// How cells reach their targets.
    pub expansion: Expansion,
    /// Where the aggregation map lies.
    pub map: MapPlace,
    /// Parallel hash functions, each with a hash table of its own: from 1 to [`HASH_FUNCTIONS_MAX`]. As many are used
    /// as the memory budget has room for.
    pub hash_functions: u32,
}

impl Preaggregation {
    /// All preaggregations.
    pub const ALL: [Preaggregation; 5] = [
        Preaggregation::None,
        Preaggregation::FirstShared,
        Preaggregation::Shuffle,
        Preaggregation::Strided,
        Preaggregation::Match,
    ];

    /// The name within a variant's.
    pub fn name(self) -> &'static str {
        match self {
            Preaggregation::None => "none",
            Preaggregation::FirstShared => "first-shared",
            Preaggregation::Shuffle => "shuffle",
            Preaggregation::Strided => "strided",
            Preaggregation::Match => "match",
        }
    }
}

impl Expansion {
    /// All expansions.
    pub const ALL: [Expansion; 6] = [
        Expansion::Thread,
        Expansion::Balanced,
        Expansion::Children,
        Expansion::ChildBlocks,
        Expansion::HostChildren,
        Expansion::HostChildBlocks,
    ];

    /// The name within a variant's.
    pub fn name(self) -> &'static str {
        match self {
            Expansion::Thread => "thread",
            Expansion::Balanced => "balanced",
            Expansion::Children => "children",
            Expansion::ChildBlocks => "child-blocks",
            Expansion::HostChildren => "host-children",
            Expansion::HostChildBlocks => "host-child-blocks",
        }
    }

    /// True if kernels launch kernels (CUDA Dynamic Parallelism).
    pub fn launches(self) -> bool {
        matches!(self, Expansion::Children | Expansion::ChildBlocks)
    }

    /// True if children have as many blocks as their targets fill.
    pub(crate) fn has_grids(self) -> bool {
        matches!(self, Expansion::Children | Expansion::HostChildren)
    }
}

impl MapPlace {
    /// All places.
    pub const ALL: [MapPlace; 3] = [MapPlace::Constant, MapPlace::Shared, MapPlace::Global];

    /// The name within a variant's.
    pub fn name(self) -> &'static str {
        match self {
            MapPlace::Constant => "constant",
            MapPlace::Shared => "shared",
            MapPlace::Global => "global",
        }
    }
}

impl SourceVariant {
    /// The form of names.
    pub const FORM: &str = "gpu-source/<preaggregation>/<expansion>[/<map>]/h<functions>";

    /// The possible parts of a name, in words.
    pub fn parts() -> String {
        let or = |names: &[&str]| match names {
            [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
            [] => String::new(),
        };
        format!(
            "preaggregation is {}, expansion is {}, map is {}, and functions is from 1 to {HASH_FUNCTIONS_MAX}",
            or(&Preaggregation::ALL.map(Preaggregation::name)),
            or(&Expansion::ALL.map(Expansion::name)),
            or(&MapPlace::ALL.map(MapPlace::name))
        )
    }

    /// Every pair of preaggregation and expansion, with maps in constant memory.
    pub fn pairs(hash_functions: u32) -> Vec<SourceVariant> {
        let pair = |preaggregation, expansion| SourceVariant {
            preaggregation,
            expansion,
            map: MapPlace::Constant,
            hash_functions,
        };
        let of = |expansion| Preaggregation::ALL.into_iter().map(move |preaggregation| pair(preaggregation, expansion));
        Expansion::ALL.into_iter().flat_map(of).filter(|variant| variant.reason().is_none()).collect()
    }

    /// Why there is no such variant; nothing if there is.
    fn reason(self) -> Option<String> {
        if self.preaggregation == Preaggregation::Strided && self.expansion == Expansion::Thread {
            return Some("strided preaggregation compares targets of one cell, which one thread has".to_string());
        }
        let functions = self.hash_functions;
        let fits = (1..=HASH_FUNCTIONS_MAX).contains(&functions);
        (!fits).then(|| format!("{functions} hash functions, and there are from 1 to {HASH_FUNCTIONS_MAX}"))
    }
}

impl fmt::Display for SourceVariant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourceVariant { preaggregation, expansion, map, hash_functions } = self;
        write!(out, "gpu-source/{}/{}/", preaggregation.name(), expansion.name())?;
        if *map != MapPlace::Constant {
            write!(out, "{}/", map.name())?;
        }
        write!(out, "h{hash_functions}")
    }
}

/// A name of no algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no aggregation algorithm of the device is named {name}: {reason}")]
pub struct UnknownVariant {
    /// The name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl FromStr for SourceVariant {
    type Err = UnknownVariant;

    fn from_str(name: &str) -> Result<SourceVariant, UnknownVariant> {
        let unknown = |reason: String| UnknownVariant { name: name.to_string(), reason };
        let form = format!("{} is the form", SourceVariant::FORM);
        let parts: Vec<&str> = name.split('/').collect();
        let (preaggregation, expansion, map, functions) = match parts[..] {
            ["gpu-source", preaggregation, expansion, functions] => (preaggregation, expansion, "constant", functions),
            ["gpu-source", preaggregation, expansion, map, functions] => (preaggregation, expansion, map, functions),
            _ => return Err(unknown(form)),
        };
        let functions = functions.strip_prefix('h').and_then(|number| number.parse().ok());
        let variant = SourceVariant {
            preaggregation: find("preaggregation", &Preaggregation::ALL, Preaggregation::name, preaggregation)
                .map_err(unknown)?,
            expansion: find("expansion", &Expansion::ALL, Expansion::name, expansion).map_err(unknown)?,
            map: find("map", &MapPlace::ALL, MapPlace::name, map).map_err(unknown)?,
            hash_functions: functions.ok_or_else(|| unknown(form))?,
        };
        variant.reason().map_or(Ok(variant), |reason| Err(unknown(reason)))
    }
}

fn find<T: Copy>(what: &str, all: &[T], name: fn(T) -> &'static str, asked: &str) -> Result<T, String> {
    let found = all.iter().copied().find(|one| name(*one) == asked);
    let names = || all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("no {what} is named {asked}; there are {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_as_they_print() {
        for variant in SourceVariant::pairs(64) {
            for map in MapPlace::ALL {
                let variant = SourceVariant { map, ..variant };
                assert_eq!(variant.to_string().parse(), Ok(variant));
            }
        }
        let name = "gpu-source/shuffle/balanced/h64";
        assert_eq!(name.parse::<SourceVariant>().unwrap().to_string(), name);
        assert_eq!(SourceVariant::pairs(1).len(), 29);
    }

    #[test]
    fn other_names_are_refused_with_the_reason() {
        let reason = |name: &str| name.parse::<SourceVariant>().unwrap_err().reason;
        let form = "gpu-source/<preaggregation>/<expansion>[/<map>]/h<functions> is the form";
        assert_eq!(reason("gpu-source/none"), form);
        assert_eq!(reason("gpu-source/none/thread/64"), form);
        let expected = "no expansion is named threads; there are thread, balanced, children, child-blocks, \
                        host-children, host-child-blocks";
        assert_eq!(reason("gpu-source/none/threads/h64"), expected);
        assert_eq!(reason("gpu-source/none/thread/h0"), "0 hash functions, and there are from 1 to 12288");
        assert!(reason("gpu-source/strided/thread/h1").starts_with("strided preaggregation"));
    }
}
