//! Measures of all rules and types on a device: components by the algorithm that was chosen.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::accumulation::DeviceMonoid;
use super::contract::DeviceContraction;
use super::cost::DeviceChoice;
use super::error::DeviceError;
use super::plan::{DevicePlan, Wanted};
use super::sums::DeviceSums;
use crate::aggregate::{Area, ByRank, Component, ComponentSums, Extreme, Narrow, Reducer, Summand, Wide};
use crate::facts::{Large, Precise};

/// The components of one measure of an area.
pub(super) struct DeviceReducer<'a> {
    pub(super) contraction: &'a DeviceContraction,
    /// The algorithm that adds up sums in place of contraction, where one is.
    pub(super) other: Option<&'a dyn DeviceSums>,
    /// The choice, which may have the plan of the measure's values.
    pub(super) choice: &'a DeviceChoice,
    pub(super) area: &'a Area,
    pub(super) cancelled: &'a Arc<AtomicBool>,
}

impl DeviceReducer<'_> {
    /// Contracts a component: the sums of a plan, or nothing without a filled target.
    fn contracted<T>(
        &self,
        component: &Component<'_>,
        wanted: Wanted,
        empty: T,
        result: impl Fn(&DevicePlan) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        if let Some(plan) = self.choice.plan(component.measure).filter(|_| component.is_values()) {
            return result(plan);
        }
        match self.contraction.plan(component, wanted, self.cancelled)? {
            Some(plan) => result(&plan),
            None => Ok(empty),
        }
    }
}

impl DeviceReducer<'_> {
    /// The sums of a component with room beyond the largest double.
    fn large_sums(&self, component: &Component<'_>) -> Result<ByRank<Large>, DeviceError> {
        let contraction = self.contraction;
        let Some(mut plan) = contraction.plan(component, Wanted::Sums, self.cancelled)? else { return Ok(Vec::new()) };
        plan.accumulation.enlarge()?;
        let cells = contraction.cells_by(&plan, self.cancelled)?;
        Ok(cells.by_rank(|parts| Large(precise(parts))))
    }
}

/// The number of a pair of doubles.
fn precise([high, low]: [u64; 2]) -> Precise {
    Precise::of_parts(f64::from_bits(high), f64::from_bits(low))
}

impl Reducer for DeviceReducer<'_> {
    type Error = DeviceError;

    fn sums(&mut self, component: &Component<'_>) -> Result<ComponentSums, DeviceError> {
        if let Some(other) = self.other {
            if component.summand == Summand::Doubles {
                let sums = other.double_sums(self.area, component.measure, self.cancelled)?;
                return ComponentSums::roomy(sums, || Ok(Vec::new()));
            }
            let cells = other.sums(self.area, component.measure, self.cancelled)?;
            return Ok(ComponentSums::Narrow(
                cells.ranks.into_iter().zip(cells.sums.into_iter().map(Narrow)).collect(),
            ));
        }
        let empty = match component.summand {
            Summand::Doubles => ComponentSums::Precise(Vec::new()),
            _ => ComponentSums::Narrow(Vec::new()),
        };
        self.contracted(component, Wanted::Sums, empty, |plan| {
            let cells = self.contraction.cells_by(plan, self.cancelled)?;
            let wide = |[low, high]: [u64; 2]| Wide((u128::from(high) << 64 | u128::from(low)) as i128);
            Ok(match plan.accumulation.monoid {
                DeviceMonoid::Narrow => ComponentSums::Narrow(cells.by_rank(|sum| Narrow(sum[0] as i64))),
                DeviceMonoid::Wide => ComponentSums::Wide(cells.by_rank(wide)),
                DeviceMonoid::Precise => ComponentSums::roomy(cells.by_rank(precise), || self.large_sums(component))?,
                DeviceMonoid::Greatest => unreachable!("sums are wanted"),
            })
        })
    }

    fn extremes<const GREATEST: bool>(
        &mut self,
        component: &Component<'_>,
    ) -> Result<ByRank<Extreme<GREATEST>>, DeviceError> {
        if let Some(other) = self.other {
            other.facts().check_decimal_sum(component.measure)?;
        }
        let wanted = if GREATEST { Wanted::Greatest } else { Wanted::Least };
        self.contracted(component, wanted, Vec::new(), |plan| {
            let cells = self.contraction.cells_by(plan, self.cancelled)?;
            Ok(cells.by_rank(|sum| Extreme::of_word(sum[0])))
        })
    }
}
