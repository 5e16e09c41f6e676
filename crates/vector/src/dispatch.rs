//! One body, compiled for the baseline and for AVX2; a call takes the best one that the machine has.

/// Declares a function whose body is compiled for several instruction sets.
macro_rules! dispatch {
    ($(#[$attribute:meta])* pub fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        pub fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn with_avx2($($argument: $type),*) $(-> $result)? {
                    body($($argument),*)
                }
                if crate::dispatch::has_avx2() {
                    // SAFETY: the machine has all instructions that the function was compiled for.
                    return unsafe { with_avx2($($argument),*) };
                }
            }
            body($($argument),*)
        }
    };
}
pub(crate) use dispatch;

/// Whether the machine has AVX2 and the instructions that came with it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}
