//! Names of the algorithms.

use std::fmt;
use std::str::FromStr;

/// How the top k are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// A threshold from a sample, one filtering pass, a selection among the candidates; radix select where the sample
    /// misled. One read of the keys on every distribution.
    #[default]
    Threshold,
    /// All keys are sorted with their rows, and the first k taken (paper 003, 4.2.2). The same time for every k, ten
    /// times that of a threshold and more; scratch memory of two copies of all keys and rows.
    SortAndChoose,
    /// The k-th key digit by digit, most significant first (paper 003, 4.2.2). Two to four reads of 32-bit keys.
    RadixSelect,
    /// The k-th key by equal buckets between minimum and maximum (paper 003, 4.2.2). Fast for k = 1 and for few
    /// distinct keys.
    BucketSelect,
    /// A heap for each thread in shared memory (paper 003, 4.3.1 and 4.4.1). Good for k up to some 16; slow on
    /// ascending keys.
    HeapShared,
    /// A list for each thread in registers (paper 003, appendix A). Good for k up to some 8.
    HeapRegisters,
    /// Bitonic Top-K (paper 003, 4.3.2 and 4.4.3), up to one of its optimisations. The same time for all keys.
    Bitonic(BitonicLevel),
}

/// The optimisations of Bitonic Top-K, each with all before it, in the order of the paper's ablation (003, 4.4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BitonicLevel {
    /// One kernel a comparison distance, all in device memory.
    Global,
    /// One kernel an operator (local sort, merge, rebuild); distances within an operator in shared memory.
    Shared,
    /// Operators fused into kernels that reduce by the number of keys a thread: 8 keys a thread.
    Fused,
    /// Several distances at once in registers.
    Combined,
    /// The first distances in registers before shared memory is written.
    SortedFirst,
    /// Shared memory padded by one slot in 32, and 16 keys a thread.
    Padded,
    /// Threads of a warp take their chunks in turned order, which leaves no bank conflicts and needs no padding.
    Permuted,
    /// After a reduction half of the threads keep as many keys a thread as before.
    Reassigned,
}

impl BitonicLevel {
    /// All levels, in their order.
    pub const ALL: [BitonicLevel; 8] = [
        BitonicLevel::Global,
        BitonicLevel::Shared,
        BitonicLevel::Fused,
        BitonicLevel::Combined,
        BitonicLevel::SortedFirst,
        BitonicLevel::Padded,
        BitonicLevel::Permuted,
        BitonicLevel::Reassigned,
    ];

    fn name(self) -> &'static str {
        match self {
            BitonicLevel::Global => "bitonic_global",
            BitonicLevel::Shared => "bitonic_shared",
            BitonicLevel::Fused => "bitonic_fused",
            BitonicLevel::Combined => "bitonic_combined",
            BitonicLevel::SortedFirst => "bitonic_sorted_first",
            BitonicLevel::Padded => "bitonic_padded",
            BitonicLevel::Permuted => "bitonic_permuted",
            BitonicLevel::Reassigned => "bitonic",
        }
    }
}

impl Algorithm {
    /// The algorithms that are compared, Bitonic Top-K with all optimisations.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Threshold,
        Algorithm::SortAndChoose,
        Algorithm::RadixSelect,
        Algorithm::BucketSelect,
        Algorithm::HeapShared,
        Algorithm::HeapRegisters,
        Algorithm::Bitonic(BitonicLevel::Reassigned),
    ];
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::Threshold => "threshold",
            Algorithm::SortAndChoose => "sort_and_choose",
            Algorithm::RadixSelect => "radix_select",
            Algorithm::BucketSelect => "bucket_select",
            Algorithm::HeapShared => "heap_shared",
            Algorithm::HeapRegisters => "heap_registers",
            Algorithm::Bitonic(level) => level.name(),
        })
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Algorithm, String> {
        let levels = BitonicLevel::ALL.into_iter().map(Algorithm::Bitonic);
        let mut all = Algorithm::ALL.into_iter().chain(levels);
        all.find(|algorithm| algorithm.to_string() == name)
            .ok_or_else(|| format!("no algorithm of top-k is named {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for algorithm in Algorithm::ALL.into_iter().chain(BitonicLevel::ALL.map(Algorithm::Bitonic)) {
            assert_eq!(algorithm.to_string().parse::<Algorithm>(), Ok(algorithm));
        }
        assert!("quick".parse::<Algorithm>().is_err());
    }

    #[test]
    fn every_algorithm_of_the_paper_has_a_name() {
        let names = "threshold sort_and_choose radix_select bucket_select heap_shared heap_registers bitonic_global \
                     bitonic_shared bitonic_fused bitonic_combined bitonic_sorted_first bitonic_padded \
                     bitonic_permuted bitonic";
        let parsed: Vec<Algorithm> = names.split_whitespace().map(|name| name.parse().unwrap()).collect();
        let all = Algorithm::ALL.into_iter().chain(BitonicLevel::ALL.map(Algorithm::Bitonic));
        assert!(all.into_iter().all(|algorithm| parsed.contains(&algorithm)));
        assert_eq!(parsed[0], Algorithm::default());
    }
}
