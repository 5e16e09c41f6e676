//! Names of cases, their data, and what the paper measured.

/// Tuples drawn alike over all dimensions: `D<dimensions>C<cardinality>T<tuples>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) dimensions: usize,
    /// Values of each dimension.
    pub(super) cardinality: u32,
    pub(super) tuples: usize,
    /// Queries of a batch.
    pub(super) queries: usize,
}

impl Shape {
    const fn new(dimensions: usize, cardinality: u32, thousands: usize) -> Shape {
        Shape { dimensions, cardinality, tuples: thousands * 1000, queries: 10_000 }
    }

    fn name(&self) -> String {
        format!("D{}C{}T{}K", self.dimensions, self.cardinality, self.tuples / 1000)
    }

    /// The same with fewer tuples and queries.
    pub(super) fn divided(self, by: u32) -> Shape {
        Shape { tuples: self.tuples / by as usize, queries: self.queries / by as usize, ..self }
    }
}

/// What is measured of tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// A tree of them.
    Build,
    /// As many tuples again into their tree.
    Update,
    /// Queries on the popular path.
    OnPath,
    /// Queries off the popular path.
    Online,
}

/// Cases over one set of tuples.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) shape: Shape,
    pub(super) jobs: Vec<Job>,
    /// Whether it runs only if it is named.
    pub(super) is_named_only: bool,
}

/// The shape of queries and of the largest build of the paper.
const LARGEST: Shape = Shape::new(15, 160, 600);
/// The shape of the update with a figure in the paper's text.
const UPDATED: Shape = Shape::new(15, 40, 300);
/// Tuples that are measured only if they are named.
const MANY: Shape = Shape::new(10, 160, 100_000);

impl Group {
    /// All groups, in the order they run.
    pub(super) fn all() -> Vec<Group> {
        let group = |shape: Shape, jobs: &[Job]| Group { shape, jobs: jobs.to_vec(), is_named_only: shape == MANY };
        // Figure 1: by tuples, dimensions, cardinality.
        let by_tuples = (1..6).map(|hundreds| Shape::new(15, 160, hundreds * 100)).chain([LARGEST]);
        let by_dimensions = [6, 9, 12, 18].map(|dimensions| Shape::new(dimensions, 160, 400));
        let by_cardinality = [20, 40, 80, 320].map(|cardinality| Shape::new(15, cardinality, 400));
        let built = by_tuples.chain(by_dimensions).chain(by_cardinality);
        let mut groups: Vec<Group> = built.map(|shape| group(shape, &[Job::Build])).collect();
        // Figure 2: by dimensions and cardinality.
        let by_dimensions = [6, 9, 12, 18].map(|dimensions| Shape::new(dimensions, 40, 300));
        let by_cardinality = [20, 80, 160, 320].map(|cardinality| Shape::new(15, cardinality, 300));
        let updated = [UPDATED].into_iter().chain(by_dimensions).chain(by_cardinality);
        groups.extend(updated.map(|shape| group(shape, &[Job::Update])));
        groups.push(group(LARGEST, &[Job::OnPath, Job::Online]));
        groups.push(group(MANY, &[Job::Build]));
        groups
    }

    /// The name of a case.
    pub(super) fn case(&self, job: Job) -> String {
        match job {
            Job::Build if self.is_named_only => "build/100M".to_string(),
            Job::Build => format!("build/{}", self.shape.name()),
            Job::Update => format!("update/{}", self.shape.name()),
            Job::OnPath => "on-path/10k".to_string(),
            Job::Online => "online/10k".to_string(),
        }
    }

    /// Milliseconds in the paper (section 6.6, a GeForce 8800 GTX), and at most here; none of a part of the data.
    pub(super) fn figures_of(&self, job: Job, divide: u32) -> [Option<f64>; 2] {
        match (job, self.shape) {
            _ if divide > 1 => [None, None],
            (Job::Build, LARGEST) => [Some(2684.0), Some(3.0)],
            (Job::Build, MANY) => [None, Some(300.0)],
            (Job::Update, UPDATED) => [Some(1922.0), Some(5.0)],
            (Job::OnPath, _) => [Some(8.1), Some(0.15)],
            (Job::Online, _) => [Some(3760.0), Some(20.0)],
            (Job::Build | Job::Update, _) => [None, None],
        }
    }
}
