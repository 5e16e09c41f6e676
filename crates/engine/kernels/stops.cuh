// Scans that stop where a row finds no room in a sink, and go on in a later launch, once there is more
// (crates/engine/src/codegen/stops.rs). Each warp leaves where it stands: what it draws next, and of a step that it has
// not ended the rows that are left. A row enters its sink in one step that may fail before anything is changed, so that
// no row enters twice.

// Words of a warp's state, zero before the first launch.
enum WcState {
    // 1 + the next ticket, or round of vectors; 1 + the ticket of a step that has not ended, or 1 within a vector.
    WC_NEXT, WC_CURRENT,
    // First row of the step; rows in the queue.
    WC_BASE, WC_QUEUED,
    // Matches of the queue's next rows that lanes have taken together, and the lanes that have not taken theirs.
    WC_CALL, WC_LANES,
    // The vectors of a round that are left, a bit each.
    WC_VECTORS,
    WC_STATE_WORDS = 8
};

// Words of 32 bits of `control` behind error, flags and cancel: whether a scan has stopped, then the pipelines that
// have found no room, a bit each.
#define WC_STOP_WORD 6
#define WC_FULL_WORD 7

// Tells that a pipeline has found no room, and stops the scans that resume.
WC_DEVICE void wc_no_room(uint64_t* control, uint32_t pipeline) {
    atomicOr((uint32_t*)control + WC_FULL_WORD + pipeline / 32, 1u << pipeline % 32);
    atomicOr((uint32_t*)control + WC_STOP_WORD, 1u);
}

// wc_ask and wc_draw of scans that stop.
WC_DEVICE uint32_t wc_ask_room(const uint64_t* control, uint32_t lane) {
    return lane - 1 <= WC_STOP_WORD ? wc_load_relaxed((const uint32_t*)control + lane - 1) : 0;
}
WC_DEVICE uint32_t wc_draw_room(const uint64_t* control, uint32_t* counter, uint32_t lane) {
    return lane == 0 ? wc_count(counter) : wc_ask_room(control, lane);
}

// Whether the run is lost or has stopped before. All lanes ask together.
WC_DEVICE bool wc_has_stopped(const uint64_t* control, uint32_t lane) {
    return __any_sync(WC_FULL_MASK, wc_ask_room(control, lane) != 0);
}

// The slot of a row, by its distance from the first row of any step.
template <int SLOTS> WC_DEVICE uint32_t wc_slot_of(uint32_t row) {
    const uint32_t of_step = row % (32u * SLOTS);
    return of_step / 128u * 4u + of_step % 4u;
}
