//! Files that operators on the CPU spill to: they have no names.
//!
//! A file is unlinked when it is made, so that its space is free once its last handle is closed: also that of a process
//! that crashes or is killed. Nothing is made before the first spill.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use datafusion::object_store::PutPayload;
use futures::Stream;

type Bytes = <PutPayload as IntoIterator>::Item;

/// Bytes that are read from a file at a time.
const READ_BYTES: usize = 128 << 10;

/// Makes files to spill to in one folder, up to so many bytes together.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PathBuf,
    bytes_max: u64,
    bytes: Arc<AtomicU64>,
}

impl Spill {
    /// Files in `folder`, or in the system's for temporary files.
    pub(crate) fn new(folder: Option<&Path>, bytes_max: u64) -> Spill {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
        Spill { folder, bytes_max, bytes: Arc::default() }
    }

    fn file(&self) -> io::Result<Nameless> {
        let file = Arc::new(tempfile::tempfile_in(&self.folder)?);
        Ok(Nameless { file, size: Arc::default(), bytes: self.bytes.clone(), bytes_max: self.bytes_max })
    }

    /// Most bytes in all files together.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Whether files can be made there.
    ///
    /// # Errors
    /// Why they cannot.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.file().map(|_| ())
    }
}

impl TempFileFactory for Spill {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.folder.display()));
        Ok(Arc::new(self.file().map_err(failed)?))
    }
}

/// A file without a name; its bytes count until it is dropped.
struct Nameless {
    file: Arc<File>,
    size: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
}

impl Drop for Nameless {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.size.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl SpillFile for Nameless {
    fn size(&self) -> Option<u64> {
        Some(self.size.load(Ordering::Relaxed))
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let pieces = futures::stream::try_unfold((self.file.clone(), 0), |(file, offset)| async move {
            let read = tokio::task::spawn_blocking(move || piece(&file, offset).map(|piece| (file, piece)));
            let (file, piece) = read.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))??;
            let next = offset + piece.len() as u64;
            Ok((!piece.is_empty()).then(|| (Bytes::from(piece), (file, next))))
        });
        Ok(Box::pin(pieces))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let writer = Writer {
            file: self.file.clone(),
            size: self.size.clone(),
            bytes: self.bytes.clone(),
            bytes_max: self.bytes_max,
        };
        Ok(Box::new(writer))
    }
}

/// What a file holds at a place, some of it; nothing at its end. Writers do not move this place.
fn piece(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; READ_BYTES];
    let mut filled = 0;
    while filled < piece.len() {
        match file.read_at(&mut piece[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    piece.truncate(filled);
    Ok(piece)
}

struct Writer {
    file: Arc<File>,
    size: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len() as u64;
        let all = self.bytes.fetch_add(count, Ordering::Relaxed) + count;
        self.size.fetch_add(count, Ordering::Relaxed);
        if all > self.bytes_max {
            let limit = self.bytes_max;
            let text =
                format!("{all} bytes to spill are more than datafusion.runtime.max_temp_directory_size, {limit}");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        (&*self.file).write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_and_the_folder_stays_empty() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(Some(folder.path()), 1 << 20);
        let file = spill.create_temp_file("a sort").unwrap();
        let text: Vec<u8> = (0..300_000_u32).map(|place| (place % 251) as u8).collect();
        let mut writer = file.open_writer().unwrap();
        for part in text.chunks(70_001) {
            writer.write_all(part).unwrap();
            // A reader beside the writer, which goes on where it was.
            assert!(file.read_stream().unwrap().try_next().await.unwrap().is_some());
        }
        let read: Vec<Bytes> = file.read_stream().unwrap().try_collect().await.unwrap();
        assert_eq!(read.concat(), text);
        assert_eq!(file.size(), Some(300_000));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn bytes_have_a_limit_and_count_while_their_file_is_there() {
        let spill = Spill::new(None, 100);
        let first = spill.create_temp_file("").unwrap();
        first.open_writer().unwrap().write_all(&[1; 80]).unwrap();
        let second = spill.create_temp_file("").unwrap();
        let error = second.open_writer().unwrap().write_all(&[1; 80]).unwrap_err().to_string();
        assert!(error.contains("160 bytes") && error.contains("max_temp_directory_size"), "{error}");
        drop((first, second));
        let third = spill.create_temp_file("").unwrap();
        third.open_writer().unwrap().write_all(&[1; 80]).unwrap();
    }
}
