//! `warpcube doctor`: which GPUs there are, what is missing to use them, and how to repair it.
//!
//! No GPU at all is no defect: the CPU then does all, and the exit code is 0. A GPU that cannot be used is one, and the
//! exit code is 1.

use std::path::Path;

use serde::Serialize;
use warpcube_gpu::cuda::{cache_folder, nvrtc};
use warpcube_gpu::{Device, GpuError};

use crate::error::{CliError, Result};

/// A GPU.
#[derive(Debug, Serialize)]
struct Gpu {
    ordinal: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compute_capability: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The CUDA run-time compiler.
#[derive(Debug, Serialize)]
struct Compiler {
    path: String,
    version: String,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Findings {
    version: &'static str,
    gpus: Vec<Gpu>,
    nvrtc: Option<Compiler>,
    cache_folder: Option<String>,
    /// Whether queries will run on a GPU.
    usable: bool,
    /// What keeps them from it, each with its repair.
    problems: Vec<String>,
}

/// Writes what is found; gives 1 if there is a GPU that cannot be used, 0 otherwise.
pub(crate) fn run(json: bool) -> Result<usize> {
    let findings = examine();
    match json {
        true => {
            let text = serde_json::to_string_pretty(&findings).map_err(|error| CliError::Data(error.to_string()))?;
            println!("{text}");
        }
        false => print(&findings),
    }
    let defect = !findings.usable && !findings.gpus.is_empty();
    Ok(usize::from(defect))
}

fn examine() -> Findings {
    let mut problems = Vec::new();
    let count = Device::cuda_count().unwrap_or_else(|error| {
        problems.push(error.to_string());
        0
    });
    if count == 0 && problems.is_empty() {
        problems.push("the driver is there and finds no GPU; look at what 'nvidia-smi' says".into());
    }
    let gpus: Vec<Gpu> = (0..count).map(gpu).collect();
    problems.extend(gpus.iter().filter_map(|gpu| Some(format!("GPU {}: {}", gpu.ordinal, gpu.problem.as_ref()?))));
    let nvrtc = match nvrtc::location() {
        Ok((path, (major, minor))) => Some(Compiler { path, version: format!("{major}.{minor}") }),
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    };
    let folder = cache_folder();
    match &folder {
        None => problems.push(
            "compiled kernels are not kept: there is no cache folder; name one in WARPCUBE_CACHE (queries run, the \
             first of each shape slower)"
                .into(),
        ),
        Some(folder) => problems.extend(unwritable(folder)),
    }
    let usable = nvrtc.is_some() && gpus.iter().any(|gpu| gpu.problem.is_none());
    let cache_folder = folder.map(|folder| folder.display().to_string());
    Findings { version: env!("CARGO_PKG_VERSION"), gpus, nvrtc, cache_folder, usable, problems }
}

fn gpu(ordinal: usize) -> Gpu {
    let opened = Device::cuda(ordinal, None).and_then(|device| Ok((device.info().clone(), device.memory()?)));
    match opened {
        Ok((info, (free, total))) => Gpu {
            ordinal,
            name: Some(info.name),
            memory_bytes: Some(total),
            free_bytes: Some(free),
            driver: Some(info.driver),
            compute_capability: Some(format!("{}.{}", info.compute_capability.0, info.compute_capability.1)),
            problem: None,
        },
        Err(error) => Gpu {
            ordinal,
            name: None,
            memory_bytes: None,
            free_bytes: None,
            driver: None,
            compute_capability: None,
            problem: Some(repaired(&error)),
        },
    }
}

fn repaired(error: &GpuError) -> String {
    match error {
        GpuError::OutOfMemory { .. } => format!("{error}; see which programs use it with 'nvidia-smi'"),
        other => other.to_string(),
    }
}

/// Why kernels cannot be kept in the folder, if so.
fn unwritable(folder: &Path) -> Option<String> {
    let tried = std::fs::create_dir_all(folder).and_then(|()| {
        let probe = folder.join(format!("probe-{}", std::process::id()));
        std::fs::write(&probe, b"")?;
        std::fs::remove_file(&probe)
    });
    let error = tried.err()?;
    Some(format!(
        "compiled kernels are not kept: {}: {error}; make it writable (chmod u+rwx) or name another in WARPCUBE_CACHE \
         (queries run, the first of each shape slower)",
        folder.display()
    ))
}

fn print(findings: &Findings) {
    println!("Warpcube {}", findings.version);
    if findings.gpus.is_empty() {
        println!("GPU           none");
    }
    for gpu in &findings.gpus {
        let gibibytes = |bytes: Option<u64>| bytes.unwrap_or(0) as f64 / f64::from(1 << 30);
        match &gpu.name {
            Some(name) => println!(
                "GPU {}         {name}, {:.1} GiB of {:.1} GiB free, compute capability {}, driver {}",
                gpu.ordinal,
                gibibytes(gpu.free_bytes),
                gibibytes(gpu.memory_bytes),
                gpu.compute_capability.as_deref().unwrap_or("?"),
                gpu.driver.as_deref().unwrap_or("?"),
            ),
            None => println!("GPU {}         cannot be opened", gpu.ordinal),
        }
    }
    match &findings.nvrtc {
        Some(compiler) => println!("NVRTC         {} in {}", compiler.version, compiler.path),
        None => println!("NVRTC         not found"),
    }
    println!("Kernel cache  {}", findings.cache_folder.as_deref().unwrap_or("none"));
    for problem in &findings.problems {
        println!("! {problem}");
    }
    println!(
        "{}",
        match (findings.usable, findings.gpus.is_empty()) {
            (true, _) => "Queries run on the GPU.",
            (false, true) => "Queries run on the CPU: all answers are the same, only slower.",
            (false, false) => "Queries run on the CPU until the GPU can be used: see above.",
        }
    );
}
