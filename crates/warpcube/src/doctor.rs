//! `warpcube doctor`: which GPUs there are, what is missing to use them, and how to repair it.
//!
//! No GPU at all is no defect: the CPU then does all, and the exit code is 0. A GPU that cannot be used is one, and the
//! exit code is 1.

use std::path::{Path, PathBuf};

use serde::Serialize;
use warpcube_gpu::cuda::{cache_folder, nvrtc, private_folder};
use warpcube_gpu::{Device, GpuError};

use crate::console;
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
    /// The CUDA version that the driver implements, which is not the number of the driver itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda_version: Option<String>,
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
    /// The commit the program was built from, if it was built from one.
    commit: Option<&'static str>,
    /// The version of NVIDIA's kernel driver, where one is loaded and tells it.
    driver: Option<String>,
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
    let text = match json {
        true => serde_json::to_string_pretty(&findings).map_err(|error| CliError::Data(error.to_string()))? + "\n",
        false => text(&findings),
    };
    console::print(&text)?;
    Ok(usize::from(findings.is_defect()))
}

impl Findings {
    /// Whether there is a GPU and none can be used.
    fn is_defect(&self) -> bool {
        !self.usable && !self.gpus.is_empty()
    }
}

fn examine() -> Findings {
    let gpus = Device::cuda_count().map(|count| (0..count).map(gpu).collect());
    Findings { driver: driver(), ..judge(gpus, nvrtc::location(None), cache_folder()) }
}

/// How the driver is installed.
const DRIVERS: &str = "Debian: 'sudo apt install nvidia-driver', Ubuntu: 'sudo ubuntu-drivers install', Fedora: 'sudo \
                       dnf install akmod-nvidia', others: https://www.nvidia.com/drivers";

/// GPUs, NVRTC and the kernel cache's folder, each with its problem if it has one.
fn judge(
    gpus: Result<Vec<Gpu>, GpuError>,
    compiler: Result<(String, (i32, i32)), GpuError>,
    folder: Option<PathBuf>,
) -> Findings {
    let mut problems = Vec::new();
    let gpus = match gpus {
        Ok(gpus) => {
            if gpus.is_empty() {
                problems.push("the driver is there and finds no GPU; look at what 'nvidia-smi' says".into());
            }
            gpus
        }
        Err(error) => {
            problems.push(match error {
                GpuError::Unavailable { .. } => format!("{error} ({DRIVERS})"),
                _ => error.to_string(),
            });
            Vec::new()
        }
    };
    problems.extend(gpus.iter().filter_map(|gpu| Some(format!("GPU {}: {}", gpu.ordinal, gpu.problem.as_ref()?))));
    let nvrtc = match compiler {
        Ok((path, (major, minor))) => Some(Compiler { path, version: format!("{major}.{minor}") }),
        Err(error) => {
            problems.push(error.to_string());
            None
        }
    };
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
    let (version, commit) = (env!("CARGO_PKG_VERSION"), option_env!("WARPCUBE_COMMIT"));
    Findings { version, commit, driver: None, gpus, nvrtc, cache_folder, usable, problems }
}

fn driver() -> Option<String> {
    let text = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(text.trim().to_string()).filter(|version| !version.is_empty())
}

fn gpu(ordinal: usize) -> Gpu {
    let opened = Device::cuda(ordinal, None).and_then(|device| Ok((device.info().clone(), device.memory()?)));
    match opened {
        Ok((info, (free, total))) => Gpu {
            ordinal,
            name: Some(info.name),
            memory_bytes: Some(total),
            free_bytes: Some(free),
            cuda_version: Some(info.driver),
            compute_capability: Some(format!("{}.{}", info.compute_capability.0, info.compute_capability.1)),
            problem: compiler_problem(info.compute_capability),
        },
        Err(error) => Gpu {
            ordinal,
            name: None,
            memory_bytes: None,
            free_bytes: None,
            cuda_version: None,
            compute_capability: None,
            problem: Some(repaired(&error)),
        },
    }
}

/// Why the NVRTC that was found does not compile for the GPU, if so; a missing NVRTC is reported once for all GPUs.
fn compiler_problem((major, minor): (u32, u32)) -> Option<String> {
    nvrtc::location(None).ok()?;
    nvrtc::location(Some(major * 10 + minor)).err().map(|error| error.to_string())
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
    let Err(error) = tried else {
        return private_folder(folder).err().map(|reason| {
            format!(
                "compiled kernels are not kept: {reason}; what is kept runs on the device: mend that, or name another \
                 folder in WARPCUBE_CACHE (queries run, the first of each shape slower)"
            )
        });
    };
    Some(format!(
        "compiled kernels are not kept: {}: {error}; make it writable (chmod u+rwx) or name another in WARPCUBE_CACHE \
         (queries run, the first of each shape slower)",
        folder.display()
    ))
}

/// The findings for people.
fn text(findings: &Findings) -> String {
    let mut text = String::new();
    let mut line = |line: String| text.push_str(&(line + "\n"));
    let commit = findings.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    line(format!("Warpcube {}{commit}", findings.version));
    if findings.gpus.is_empty() {
        line("GPU           none".into());
    }
    for gpu in &findings.gpus {
        let gibibytes = |bytes: Option<u64>| bytes.unwrap_or(0) as f64 / f64::from(1 << 30);
        match &gpu.name {
            Some(name) => line(format!(
                "GPU {}         {name}, {:.1} GiB of {:.1} GiB free, compute capability {}, driver for CUDA {}",
                gpu.ordinal,
                gibibytes(gpu.free_bytes),
                gibibytes(gpu.memory_bytes),
                gpu.compute_capability.as_deref().unwrap_or("?"),
                gpu.cuda_version.as_deref().unwrap_or("?"),
            )),
            None => line(format!("GPU {}         cannot be opened", gpu.ordinal)),
        }
    }
    if let Some(driver) = &findings.driver {
        line(format!("Driver        {driver}"));
    }
    match &findings.nvrtc {
        Some(compiler) => line(format!("NVRTC         {} in {}", compiler.version, compiler.path)),
        None => line("NVRTC         not found".into()),
    }
    line(format!("Kernel cache  {}", findings.cache_folder.as_deref().unwrap_or("none")));
    for problem in &findings.problems {
        line(format!("! {problem}"));
    }
    let end = match (findings.usable, findings.gpus.is_empty()) {
        (true, _) => "Queries run on the GPU.",
        (false, true) => "Queries run on the CPU: all answers are the same, only slower.",
        (false, false) => "Queries run on the CPU until the GPU can be used: see above.",
    };
    line(end.into());
    text
}

#[cfg(test)]
mod tests {
    use super::{Findings, Gpu, text};
    use crate::error::Result;
    use warpcube_gpu::GpuError;

    fn h200(problem: Option<&str>) -> Gpu {
        Gpu {
            ordinal: 0,
            name: problem.is_none().then(|| "NVIDIA H200".to_string()),
            memory_bytes: Some(140 << 30),
            free_bytes: Some(139 << 30),
            cuda_version: Some("13.0".into()),
            compute_capability: Some("9.0".into()),
            problem: problem.map(str::to_string),
        }
    }

    fn no_compiler() -> GpuError {
        let reason = "tried libnvrtc.so.13: cannot open shared object file".to_string();
        GpuError::CompilerUnavailable { reason, repair: "install it with 'pip install nvidia-cuda-nvrtc'".into() }
    }

    fn no_gpu() -> GpuError {
        let reason = "the driver library libcuda.so was not found".to_string();
        GpuError::Unavailable { reason, repair: "install the NVIDIA driver, or use --device cpu".into() }
    }

    fn compiler() -> Result<(String, (i32, i32)), GpuError> {
        Ok(("/opt/libnvrtc.so.13".into(), (13, 0)))
    }

    /// As [`super::judge`], with a cache folder of its own.
    fn judge(gpus: Result<Vec<Gpu>, GpuError>, compiler: Result<(String, (i32, i32)), GpuError>) -> Findings {
        let folder = tempfile::tempdir().unwrap();
        super::judge(gpus, compiler, Some(folder.path().to_path_buf()))
    }

    #[test]
    fn a_gpu_without_nvrtc_is_a_defect_with_its_repair() {
        let found = judge(Ok(vec![h200(None)]), Err(no_compiler()));
        assert!(!found.usable && found.is_defect());
        assert_eq!(found.problems.len(), 1);
        let text = text(&Findings { driver: Some("580.159.04".into()), ..found });
        assert!(text.contains("GPU 0         NVIDIA H200, 139.0 GiB of 140.0 GiB free"), "{text}");
        assert!(text.contains("\nDriver        580.159.04\n"), "{text}");
        assert!(text.contains(", driver for CUDA 13.0\n"), "{text}");
        assert!(text.contains("NVRTC         not found\n"), "{text}");
        assert!(text.contains("! GPU-002 ") && text.contains("'pip install nvidia-cuda-nvrtc'"), "{text}");
        assert!(text.ends_with("Queries run on the CPU until the GPU can be used: see above.\n"), "{text}");
    }

    #[test]
    fn nvrtc_without_a_gpu_is_no_defect_and_says_why_there_is_none() {
        let found = judge(Err(no_gpu()), compiler());
        assert!(!found.usable && !found.is_defect());
        let text = text(&found);
        assert!(text.contains("GPU           none\nNVRTC         13.0 in /opt/libnvrtc.so.13\n"), "{text}");
        assert!(text.contains("! GPU-001 ") && text.contains("install the NVIDIA driver"), "{text}");
        assert!(text.ends_with("Queries run on the CPU: all answers are the same, only slower.\n"), "{text}");
        let found = judge(Ok(Vec::new()), compiler());
        assert!(found.problems[0].contains("'nvidia-smi'") && !found.is_defect(), "{:?}", found.problems);
    }

    #[test]
    fn a_gpu_that_cannot_be_opened_is_a_defect_unless_another_can() {
        let taken = h200(Some("GPU-004 out of device memory; see which programs use it with 'nvidia-smi'"));
        let found = judge(Ok(vec![taken]), compiler());
        assert!(found.is_defect() && found.problems[0].starts_with("GPU 0: GPU-004 "), "{:?}", found.problems);
        let found = judge(Ok(vec![h200(Some("taken")), h200(None)]), compiler());
        assert!(found.usable && !found.is_defect());
        assert!(text(&found).ends_with("Queries run on the GPU.\n"));
    }

    #[test]
    fn kernels_that_cannot_be_kept_are_told_and_no_defect() {
        let found = super::judge(Ok(vec![h200(None)]), compiler(), None);
        assert!(found.usable && found.problems[0].contains("WARPCUBE_CACHE"), "{:?}", found.problems);
        let found = super::judge(Ok(vec![h200(None)]), compiler(), Some("/dev/null/kernels".into()));
        assert!(found.usable && found.problems[0].contains("/dev/null/kernels"), "{:?}", found.problems);
    }
}
