//! The decision where and how an area is aggregated, with what cost models predict and why.

use std::fmt;

use crate::algorithm::AlgorithmName;

/// The decision of an aggregation. Cost models decide by their own algorithms `A`; reports have the names of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<A = AlgorithmName> {
    /// The place.
    pub place: Place,
    /// The algorithm: of a cost model that by the first measure.
    pub algorithm: A,
    /// Predictions of the algorithms that the cost model chose among; none for an algorithm that was named.
    pub predicted: Vec<Prediction<A>>,
    /// Why this algorithm.
    pub reason: String,
    /// Predicted milliseconds of all measures; 0 without a prediction.
    pub ms: f64,
    /// Milliseconds before them, to load and compile what the place lacks.
    pub load_ms: f64,
    /// Targets of the area, filled or not.
    pub targets: u128,
}

/// Where an aggregation runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    /// The device; none is the CPU.
    pub device: Option<String>,
    /// Why there, where estimates chose.
    pub reason: Option<String>,
    /// Why the CPU, where a device was asked.
    pub refused: Option<String>,
    /// Milliseconds by estimate that a device would have saved, where estimates chose the CPU.
    pub saved_ms: f64,
}

/// A cost model's prediction for one algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction<A = AlgorithmName> {
    /// The algorithm.
    pub algorithm: A,
    /// Predicted additions.
    pub additions: f64,
    /// Predicted cost: on the CPU the additions to an array that take as long, on a device milliseconds from resident
    /// facts to filled cells.
    pub cost: f64,
}

impl<A: Into<AlgorithmName> + fmt::Display + Copy> Decision<A> {
    /// The algorithm that the caller names.
    pub(crate) fn asked_for(algorithm: A, targets: u128) -> Decision<A> {
        let (place, reason) = (Place::default(), format!("{algorithm} was asked for"));
        Decision { place, algorithm, predicted: Vec::new(), reason, ms: 0.0, load_ms: 0.0, targets }
    }

    /// The same decision by the names of all algorithms.
    pub(crate) fn by_name(self) -> Decision {
        let Decision { place, algorithm, predicted, reason, ms, load_ms, targets } = self;
        let prediction = |Prediction { algorithm, additions, cost }| {
            let of_model: A = algorithm;
            Prediction { algorithm: of_model.into(), additions, cost }
        };
        let predicted = predicted.into_iter().map(prediction).collect();
        Decision { place, algorithm: algorithm.into(), predicted, reason, ms, load_ms, targets }
    }
}

impl Place {
    /// A device, without a choice.
    pub fn on(device: String) -> Place {
        Place { device: Some(device), ..Place::default() }
    }

    /// Name of the device, or the CPU.
    pub fn name(&self) -> &str {
        self.device.as_deref().unwrap_or("the CPU")
    }
}

impl Decision {
    /// Why this algorithm and this place, in one line.
    pub fn reasons(&self) -> String {
        let refused = self.place.refused.iter().map(|reason| format!("not on the device: {reason}"));
        let reasons = std::iter::once(&self.reason).chain(&self.place.reason).cloned().chain(refused);
        reasons.collect::<Vec<_>>().join("; ")
    }

    /// Algorithm and place with the reason of each, and a line a prediction.
    pub(crate) fn explained(&self) -> String {
        let place = self.place.device.as_ref().map_or(String::new(), |device| format!(" on {device}"));
        let mut text = format!("Algorithm: {}{place} ({})\n", self.algorithm, self.reason);
        text.extend(self.place.reason.iter().map(|reason| format!("  {reason}\n")));
        let names = self.predicted.iter().map(|prediction| prediction.algorithm.to_string());
        let width = names.clone().map(|name| name.len()).max().unwrap_or_default();
        text.extend(names.zip(&self.predicted).map(|(name, Prediction { algorithm, additions, cost })| {
            let cost = match algorithm {
                AlgorithmName::Cpu(_) => format!("cost {cost:.0}"),
                AlgorithmName::Device(_) => format!("{cost:.3} ms"),
            };
            format!("  {name:width$} {additions:>16.0} additions, {cost}\n")
        }));
        text
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} on {}, {} targets ({})", self.algorithm, self.place.name(), self.targets, self.reasons())
    }
}
