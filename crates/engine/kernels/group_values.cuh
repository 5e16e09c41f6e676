
// Values read back from the cells of groups.

// The double of an image that wc_order gives.
WC_DEVICE double wc_of_order(int64_t image) {
    return __longlong_as_double(image ^ (int64_t)((uint64_t)(image >> 63) >> 1));
}
