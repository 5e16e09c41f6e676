//! A digest of cuboids that does not depend on the order of dimensions and groups.

use std::collections::BTreeMap;

use warpcube_arrays::cube_operator::Cuboid;
use warpcube_arrays::key::Key;
use warpcube_arrays::random::mixed;

/// Number of groups and the sum of their hashes, of each cuboid by the mask of its dimensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Digest {
    cuboids: BTreeMap<u32, (u64, u64)>,
}

impl Digest {
    /// Adds the groups of a cuboid that have at least so many rows.
    pub(super) fn add<K: Key>(&mut self, cuboid: &Cuboid<'_, K, i64>, having: u64) {
        let mask = cuboid.dimensions.iter().fold(0, |mask, dimension| mask | 1 << dimension);
        let (mut groups, mut sum) = (0, 0u64);
        let mut tuple = vec![0; cuboid.dimensions.len()];
        for (group, key) in cuboid.keys.iter().enumerate() {
            if cuboid.counts[group] < having {
                continue;
            }
            cuboid.layout.unpack_to(*key, &mut tuple);
            let coordinates = cuboid.dimensions.iter().zip(&tuple);
            let place =
                |(dimension, coordinate): (&usize, &u32)| mixed((*dimension as u64) << 32 | u64::from(*coordinate));
            let hash = coordinates.map(place).fold(0, u64::wrapping_add);
            let components =
                [cuboid.counts[group] as i64, cuboid.sums[group], cuboid.least[group], cuboid.largest[group]];
            let hash = components.iter().fold(hash, |hash, component| mixed(hash ^ *component as u64));
            (groups, sum) = (groups + 1, sum.wrapping_add(hash));
        }
        // A cuboid that comes twice does not pass for one that comes once.
        let of = self.cuboids.entry(mask).or_default();
        *of = (of.0 + groups, of.1.wrapping_add(sum));
        if of.0 == 0 {
            self.cuboids.remove(&mask);
        }
    }

    /// Cuboids with a group.
    pub(super) fn cuboids(&self) -> usize {
        self.cuboids.len()
    }

    /// Groups of all cuboids.
    pub(super) fn groups(&self) -> u64 {
        self.cuboids.values().map(|of| of.0).sum()
    }
}

#[cfg(test)]
mod tests {
    use warpcube_arrays::key::KeyLayout;

    use super::*;

    #[test]
    fn orders_do_not_matter_and_all_else_does() {
        let layout = KeyLayout::new(&[4, 4]).unwrap();
        let digest = |dimensions: &[usize], keys: &[u64], sums: &[i64], having| {
            let mut digest = Digest::default();
            let ones = [1, 2];
            let cuboid =
                Cuboid { dimensions, layout: &layout, keys, counts: &[1, 2], sums, least: &ones, largest: &ones };
            digest.add(&cuboid, having);
            digest
        };
        let one = digest(&[3, 7], &[0x12, 0x45], &[5, 6], 0);
        assert_eq!(one, digest(&[7, 3], &[0x21, 0x54], &[5, 6], 1));
        assert_eq!((one.groups(), one.cuboids()), (2, 1));
        for other in [
            digest(&[7, 3], &[0x12, 0x45], &[5, 6], 0),
            digest(&[3, 7], &[0x12, 0x45], &[6, 5], 0),
            digest(&[3, 7], &[0x12, 0x46], &[5, 6], 0),
            digest(&[3, 7], &[0x12, 0x45], &[5, 6], 2),
        ] {
            assert_ne!(one, other);
        }
        assert_eq!(digest(&[3, 7], &[0x12, 0x45], &[5, 6], 3), Digest::default());
    }
}
