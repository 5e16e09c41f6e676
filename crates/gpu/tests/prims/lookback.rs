//! Look-back over descriptors that the test writes, further than the emulated device's few resident blocks reach.

use warpcube_gpu::Params;

use crate::common::noise;
use crate::emulated_support::{ORDERS, Rig, kernel, orders, shape};

/// One block looks back from the last tile; the second block, if there is one, announces the tiles before, latest
/// first, word by word. The state is the last item and a sum of 124 bits of all, so order and all words count.
const TEXT: &str = concat!(
    "#define WC_IN uint64_t\n#define WC_SUM uint64_t\n#define WC_WIDEN(x) (x)\n",
    include_str!("../../kernels/prims/tile.cuh"),
    include_str!("../../kernels/prims/lookback.cuh"),
    include_str!("../../kernels/prims/monoid.cuh"),
    r#"
struct Both {
    static const int WORDS = 3;
    uint64_t items, last, sum;
    static WC_INLINE Both none() { return Both{0, 0, 0}; }
    static WC_INLINE Both join(const Both& a, const Both& b) {
        return Both{a.items + b.items, b.items != 0 ? b.last : a.last, a.sum + b.sum};
    }
    static WC_INLINE Both join_lanes(const Both& state, uint32_t last) {
        const uint32_t nearest = wc_nearest(state.items != 0, last);
        const uint64_t items = wc_lanes_count(state.items, last), sum = wc_lanes_total(state.sum);
        return Both{items, __shfl_sync(WC_FULL_MASK, state.last, (int)nearest), sum};
    }
    WC_INLINE void pack(uint64_t (&words)[WORDS]) const {
        words[0] = items;
        words[1] = last;
        words[2] = sum & WC_STATE_MASK;
    }
    static WC_INLINE Both unpack(const uint64_t (&words)[WORDS]) { return Both{words[0], words[1], words[2]}; }
};
typedef WcPart<uint64_t> Sum;
struct P {
    char* counts; char* sums; char* boths; const uint64_t* items; uint64_t* out; uint64_t tiles; uint64_t known;
};

template <typename State> WC_DEVICE void announce(char* scratch, uint64_t tile, const State& state, uint32_t meaning) {
    uint64_t words[State::WORDS];
    state.pack(words);
    for (int i = State::WORDS - 1; i >= 0; --i) {
        uint64_t* word = (uint64_t*)(scratch + WC_SCRATCH_HEAD) + tile * State::WORDS + i;
        wc_store_relaxed(word, words[i] | (uint64_t)meaning << WC_STATE_BITS);
        wc_backoff();
    }
}

WC_KERNEL(look_back, P, 32, 1) {
    if (blockIdx.x == 0) {
        const uint64_t item = p.items[p.tiles];
        const WcCount count = wc_look_back(p.counts, p.tiles, WcCount{item & 0xffff});
        const Sum sum = wc_look_back(p.sums, p.tiles, Sum{item});
        const Both both = wc_look_back(p.boths, p.tiles, Both{1, p.tiles, item & 0xffff});
        p.out[wc_lane() * 5] = count.count;
        p.out[wc_lane() * 5 + 1] = sum.part;
        p.out[wc_lane() * 5 + 2] = both.items;
        p.out[wc_lane() * 5 + 3] = both.last;
        p.out[wc_lane() * 5 + 4] = both.sum;
    } else if (wc_lane() == 0) {
        for (uint64_t tile = p.tiles; tile-- > 0;) {
            const bool up_to = tile == p.known || tile == 0;
            const uint64_t from = up_to ? 0 : tile;
            Both both = Both::none();
            uint64_t sum = 0;
            for (uint64_t i = from; i <= tile; ++i) {
                both = Both::join(both, Both{i % 3 == 0 ? 0ull : 1ull, i, p.items[i] & 0xffff});
                sum += p.items[i];
            }
            // Some tiles are announced alone before all up to them are.
            const uint32_t meaning = up_to ? WC_TILE_UP_TO : WC_TILE_ALONE;
            if (up_to && tile > 0) {
                const Both own = {tile % 3 == 0 ? 0ull : 1ull, tile, p.items[tile] & 0xffff};
                announce(p.boths, tile, own, WC_TILE_ALONE);
            }
            announce(p.counts, tile, WcCount{both.sum}, meaning);
            announce(p.sums, tile, Sum{sum}, meaning);
            announce(p.boths, tile, both, meaning);
        }
    }
}
"#
);

#[test]
fn the_state_of_all_tiles_before_is_found_however_far_back_it_is_known() {
    for order in orders(&ORDERS) {
        let mut rig = Rig::new(order);
        let look_back = kernel(&rig.device, "look_back", TEXT);
        for (tiles, known) in [(1, 0), (31, 0), (32, 0), (33, 1), (64, 31), (65, 0), (200, 199), (300, 2), (300, 171)] {
            let items: Vec<u64> = noise(tiles).take(tiles as usize + 1).collect();
            let input = rig.upload(&items);
            let scratch = [1, 2, 3].map(|words| rig.upload(&vec![0u64; 8 + words * (tiles as usize + 1)]));
            let out = rig.upload(&[0u64; 5 * 32]);
            let params = Params::new().buffer(&scratch[0]).buffer(&scratch[1]).buffer(&scratch[2]).buffer(&input);
            let params = params.buffer(&out).u64(tiles).u64(known);
            let launched = rig.stream.launch(&look_back, shape(2, 32, 0), &params);
            assert!(launched.is_ok(), "{tiles} tiles known up to {known} in {order:?}: {launched:?}");
            let before = &items[..tiles as usize];
            let low: u64 = before.iter().map(|item| item & 0xffff).sum();
            let sum = before.iter().fold(0u64, |sum, item| sum.wrapping_add(*item));
            let mut marked = (0..tiles).filter(|tile| tile % 3 != 0);
            let expected = [low, sum, marked.clone().count() as u64, marked.next_back().unwrap_or(0), low];
            let found: Vec<u64> = rig.download(&out);
            let case = format!("{tiles} tiles known up to {known} in {order:?}");
            assert!(found.chunks(5).all(|lane| lane == expected), "{case}: {found:?} instead of {expected:?}");
            // The look-back has announced all up to its own tile.
            let counts: Vec<u64> = rig.download(&scratch[0]);
            let up_to = low + (items[tiles as usize] & 0xffff);
            assert_eq!(counts[8 + tiles as usize], up_to | 2 << 62, "{case}");
            let sums: Vec<u64> = rig.download(&scratch[1]);
            let up_to = sum.wrapping_add(items[tiles as usize]);
            assert_eq!(sums[8 + 2 * tiles as usize..], [(up_to & ((1 << 62) - 1)) | 2 << 62, up_to >> 62 | 2 << 62]);
        }
    }
}
