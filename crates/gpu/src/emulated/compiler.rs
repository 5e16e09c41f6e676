//! Shared objects of kernels, built by the host's C++ compiler and cached on disk by content.
//!
//! The folder holds the headers of `kernels/`, the runtime library and one object a program. A file's name has a hash
//! of its inputs (text, flags, compiler version), files appear by renaming and never change: any number of processes
//! may share the folder. Programs that are asked for together are compiled in one run of the compiler; their objects
//! are then links to one file, in which each program has a namespace and symbols of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::{env, fs, io};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::runtime::Runtime;
use crate::error::{GpuError, Result};
use crate::program::{PRELUDE, Program, hexadecimal};
use crate::trust::{is_own_file, private_folder, publish, temporary, write_new};

/// Headers that kernels include.
const HEADERS: [(&str, &str); 5] = [
    ("emulator.h", include_str!("../../kernels/emulator.h")),
    ("emulator_abi.h", include_str!("../../kernels/emulator_abi.h")),
    ("emulator_collectives.h", include_str!("../../kernels/emulator_collectives.h")),
    ("emulator_intrinsics.h", include_str!("../../kernels/emulator_intrinsics.h")),
    ("emulator_memory.h", include_str!("../../kernels/emulator_memory.h")),
];

/// Sources of the runtime, which also includes `emulator_abi.h`.
const RUNTIME: [(&str, &str); 6] = [
    ("emulator.cc", include_str!("../../kernels/emulator.cc")),
    ("emulator_checks.h", include_str!("../../kernels/emulator_checks.h")),
    ("emulator_fiber.h", include_str!("../../kernels/emulator_fiber.h")),
    ("emulator_lanes.h", include_str!("../../kernels/emulator_lanes.h")),
    ("emulator_runtime.h", include_str!("../../kernels/emulator_runtime.h")),
    ("emulator_switch.h", include_str!("../../kernels/emulator_switch.h")),
];

/// Flags of kernels and runtime alike.
const FLAGS: [&str; 8] = [
    "-std=c++17",
    "-g1",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    // Objects link only the libraries they need.
    "-Wl,--as-needed",
];

/// Flags of kernels: arithmetic as on a GPU, and checks that call `emulator_checks.h`. Standard libraries are named
/// below, so that the compiler does not link its own library of check handlers.
const KERNEL_FLAGS: [&str; 7] = [
    "-Og",
    "-w",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fsanitize=null,alignment,bounds,shift-exponent,integer-divide-by-zero,signed-integer-overflow",
    "-nodefaultlibs",
    "-DWARPCUBE_EMULATED",
];
const KERNEL_LIBRARIES: [&str; 3] = ["-lm", "-lgcc", "-lc"];

const REPAIR: &str = "install it ('apt-get install g++' on Debian and Ubuntu, 'dnf install gcc-c++' on Fedora), or \
                      name another one in CXX";

/// Programs that are compiled together at most, and runs of the compiler side by side.
const UNIT_PROGRAMS_MAX: usize = 24;
const UNITS_AT_ONCE: usize = 2;

/// A compiler, its folder and the runtime built by it.
pub(super) struct Toolchain {
    compiler: Compiler,
    folder: PathBuf,
    include: PathBuf,
    library: PathBuf,
    sanitize: bool,
    /// Hash of all inputs of an object except the program.
    identity: String,
    runtime: Runtime,
    /// Objects of programs compiled together that no request has taken yet.
    fresh: Mutex<HashSet<PathBuf>>,
}

/// By folder and use of the address sanitizer.
type Toolchains = HashMap<(PathBuf, bool), Arc<Toolchain>>;

#[derive(Debug, Clone)]
struct Compiler {
    command: Vec<String>,
    version: String,
}

impl Toolchain {
    /// The toolchain of a folder, prepared once a process.
    pub(super) fn get(folder: Option<&Path>, sanitize: bool) -> Result<Arc<Toolchain>> {
        static TOOLCHAINS: LazyLock<Mutex<Toolchains>> = LazyLock::new(Mutex::default);
        let folder = match folder {
            Some(folder) => folder.to_path_buf(),
            None => default_folder()?,
        };
        let mut toolchains = TOOLCHAINS.lock();
        let key = (folder.clone(), sanitize);
        if let Some(toolchain) = toolchains.get(&key) {
            return Ok(toolchain.clone());
        }
        let toolchain = Arc::new(Toolchain::prepare(folder, sanitize)?);
        toolchains.insert(key, toolchain.clone());
        Ok(toolchain)
    }

    fn prepare(folder: PathBuf, sanitize: bool) -> Result<Toolchain> {
        let unusable = |reason: String| GpuError::Unavailable {
            reason: format!("the emulated device needs a folder of its own for compiled kernels: {reason}"),
            repair: "name one that only you can write in WARPCUBE_EMULATOR_CACHE".into(),
        };
        let folder = std::path::absolute(&folder).map_err(|error| unusable(error.to_string()))?;
        private_folder(&folder).map_err(unusable)?;
        let compiler = compiler()?;
        let mut hasher = Sha256::new();
        for (name, text) in HEADERS.iter().chain(&RUNTIME) {
            hasher.update(format!("{name}|{}|{text}", text.len()));
        }
        hasher.update(format!("{compiler:?}|{sanitize}|{FLAGS:?}|{KERNEL_FLAGS:?}|{KERNEL_LIBRARIES:?}"));
        let identity = hexadecimal(hasher, 12);
        let include = folder.join(format!("include-{identity}"));
        let io_error = |error: io::Error| unusable(format!("{}: {error}", include.display()));
        private_folder(&include).map_err(unusable)?;
        for (name, text) in HEADERS.iter().chain(&RUNTIME) {
            let path = include.join(name);
            if !is_own_file(&path) {
                publish(&path, &[text.as_bytes()]).map_err(io_error)?;
            }
        }
        let name = format!("libwarpcube_emulator-{identity}.so");
        let library = folder.join(&name);
        if !is_own_file(&library) {
            let mut arguments = vec!["-O2".to_string(), format!("-Wl,-soname,{name}"), "-pthread".into()];
            arguments.extend(common_flags(sanitize));
            arguments.push(include.join("emulator.cc").display().to_string());
            compiler.build(&library, &arguments, &[], "the emulated device's runtime")?;
        }
        let runtime = Runtime::load(&library)?;
        let fresh = Mutex::default();
        Ok(Toolchain { compiler, folder, include, library, sanitize, identity, runtime, fresh })
    }

    /// First line of the compiler's version text.
    pub(super) fn compiler_version(&self) -> &str {
        self.compiler.version.lines().next().unwrap_or_default()
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The file of a program's object. The name is part of the object: errors show places in the source by it.
    fn path(&self, program: &Program) -> PathBuf {
        let mut hasher = Sha256::new();
        hasher.update(format!("{}|{}|{}", self.identity, program.name(), program.hash()));
        self.folder.join(format!("{}.so", hexadecimal(hasher, 20)))
    }

    /// True if the program was compiled before.
    pub(super) fn has_object(&self, program: &Program) -> bool {
        is_own_file(&self.path(program))
    }

    /// The program's object; the flag is true if the compiler ran for it.
    pub(super) fn object(&self, program: &Program) -> Result<(PathBuf, bool)> {
        let object = self.path(program);
        if is_own_file(&object) {
            let is_fresh = self.fresh.lock().remove(&object);
            return Ok((object, is_fresh));
        }
        let span = tracing::info_span!("compile", program = program.name(), emulated = true);
        span.in_scope(|| self.build(&object, &[program])).map(|()| (object, true))
    }

    /// Compiles programs that have no object yet, several a run of the compiler. What fails is left to
    /// [`Toolchain::object`], which names the program.
    pub(super) fn compile_together(&self, programs: &[Program]) {
        let mut by_options: BTreeMap<Vec<String>, Vec<&Program>> = BTreeMap::new();
        for program in programs.iter().filter(|program| !self.has_object(program)) {
            let alike = by_options.entry(definitions(program)).or_default();
            if !alike.contains(&program) {
                alike.push(program);
            }
        }
        let units: Vec<&[&Program]> = by_options.values().flat_map(|alike| alike.chunks(UNIT_PROGRAMS_MAX)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.compile_unit(unit);
            }
        };
        std::thread::scope(|scope| {
            (1..units.len().min(UNITS_AT_ONCE)).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }

    /// Compiles the programs of one unit, whose object each of them has under its own name.
    fn compile_unit(&self, unit: &[&Program]) {
        let [first, rest @ ..] = unit else { return };
        let object = self.path(first);
        let span = tracing::info_span!("compile", program = first.name(), programs = unit.len(), emulated = true);
        if rest.is_empty() || span.in_scope(|| self.build(&object, unit)).is_err() {
            return;
        }
        self.fresh.lock().insert(object.clone());
        for program in rest {
            let path = self.path(program);
            if fs::hard_link(&object, &path).is_ok() {
                self.fresh.lock().insert(path);
            }
        }
    }

    /// Builds an object of programs with the same options. Of these, this compiler gets definitions (`-D`, `-U`) only.
    fn build(&self, object: &Path, programs: &[&Program]) -> Result<()> {
        let name = programs[0].name();
        let source = temporary(object, "cc");
        write_new(&source, &[self.text(programs).as_bytes()]).map_err(|error| GpuError::Compile {
            program: name.to_string(),
            log: format!("{}: {error}", source.display()),
        })?;
        let mut arguments: Vec<String> = common_flags(self.sanitize);
        arguments.extend(KERNEL_FLAGS.map(String::from));
        arguments.extend(definitions(programs[0]));
        arguments.extend([format!("-I{}", self.include.display()), source.display().to_string()]);
        arguments.extend([self.library.display().to_string(), "-Wl,-rpath,$ORIGIN".into()]);
        let built = self.compiler.build(object, &arguments, &KERNEL_LIBRARIES, name);
        let _ = fs::remove_file(&source);
        built
    }

    /// The prelude, then each program in a namespace of its own, whose macros end with it.
    fn text(&self, programs: &[&Program]) -> String {
        let mut text = format!("#line 1 \"prelude.cuh\"\n{PRELUDE}\n");
        for program in programs {
            let (own, name, source) = (symbol_part(&self.path(program)), program.name(), program.source());
            text += &format!("#define WC_PROGRAM {own}\nnamespace {own} {{\n#line 1 \"{name}.cu\"\n{source}\n}}\n");
            let macros: BTreeSet<&str> = source.lines().filter_map(defined).collect();
            macros.into_iter().chain(["WC_PROGRAM"]).for_each(|name| text += &format!("#undef {name}\n"));
        }
        text
    }
}

/// The part of the symbols of a program that tells it from others in its object.
pub(super) fn symbol_part(object: &Path) -> String {
    format!("wc{}", object.file_stem().unwrap_or_default().to_string_lossy())
}

/// The options that define macros.
fn definitions(program: &Program) -> Vec<String> {
    program.options().iter().filter(|option| option.starts_with("-D") || option.starts_with("-U")).cloned().collect()
}

/// The macro that a line defines.
fn defined(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
    rest.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

impl Compiler {
    /// Runs the compiler and renames its output to `target`.
    fn build(&self, target: &Path, arguments: &[String], libraries: &[&str], program: &str) -> Result<()> {
        let output = temporary(target, "so");
        let failed = |log: String| GpuError::Compile { program: program.to_string(), log };
        let result = Command::new(&self.command[0])
            .args(&self.command[1..])
            .args(arguments)
            .args(libraries)
            .arg("-o")
            .arg(&output)
            .output()
            .map_err(|error| failed(format!("{}: {error}", self.command[0])))?;
        if !result.status.success() {
            let _ = fs::remove_file(&output);
            return Err(failed(String::from_utf8_lossy(&result.stderr).into_owned()));
        }
        let own = fs::Permissions::from_mode(0o700);
        let placed = fs::set_permissions(&output, own).and_then(|()| fs::rename(&output, target));
        placed.map_err(|error| failed(format!("{}: {error}", target.display())))
    }
}

fn common_flags(sanitize: bool) -> Vec<String> {
    let address = sanitize.then_some("-fsanitize=address");
    FLAGS.into_iter().chain(address).map(String::from).collect()
}

/// The compiler of this process: `CXX` or `g++`.
fn compiler() -> Result<Compiler> {
    static COMPILER: OnceLock<Result<Compiler>> = OnceLock::new();
    COMPILER.get_or_init(|| find_compiler(env::var("CXX").ok().as_deref())).clone()
}

fn find_compiler(from_environment: Option<&str>) -> Result<Compiler> {
    let named = from_environment.filter(|name| !name.trim().is_empty()).unwrap_or("g++");
    let command: Vec<String> = named.split_whitespace().map(String::from).collect();
    let missing = |reason: String| GpuError::CompilerUnavailable {
        reason: format!("the emulated device needs a C++ compiler, '{named}' does not run: {reason}"),
        repair: REPAIR.into(),
    };
    let output = Command::new(&command[0])
        .args(&command[1..])
        .arg("--version")
        .output()
        .map_err(|error| missing(error.to_string()))?;
    if !output.status.success() {
        return Err(missing(String::from_utf8_lossy(&output.stderr).trim().to_string()));
    }
    Ok(Compiler { command, version: String::from_utf8_lossy(&output.stdout).into_owned() })
}

fn default_folder() -> Result<PathBuf> {
    if let Some(folder) = env::var_os("WARPCUBE_EMULATOR_CACHE").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let cache = dirs::cache_dir().ok_or_else(|| GpuError::Unavailable {
        reason: "the emulated device found no cache folder of this user".into(),
        repair: "name one in WARPCUBE_EMULATOR_CACHE".into(),
    })?;
    Ok(cache.join("warpcube").join("emulated"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_compiler_is_named_with_its_repair() {
        let error = find_compiler(Some("no-such-compiler --flag")).unwrap_err();
        assert!(matches!(&error, GpuError::CompilerUnavailable { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("no-such-compiler") && text.contains("apt-get install g++"), "{text}");
    }
}
