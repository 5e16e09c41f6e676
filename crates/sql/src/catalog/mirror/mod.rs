//! Files elsewhere, in a bucket of S3 or on a web server, as files of this machine.
//!
//! What reads files finds, sniffs and lists them on this machine. So each file elsewhere that a location means gets a
//! place in a hidden folder, under its own path: `….elsewhere.…/content/fetched/7/s3/bucket/k=1/a.parquet`. Text and
//! Arrow files are copied there whole, since they are read whole. In the place of a Parquet file lies a file of its
//! size without bytes, and the database's store ([`super::DataFileStore`]) fetches the ranges that are read.
//!
//! The files of a location at one moment are a set. A set never changes: a later look that finds another file, tag,
//! time or size makes another one, in a folder of its own, so that all that is remembered of files by their paths is
//! right. A file that has changed since its set was made is not read ([`Mirror::get`]).
//!
//! Invariant: nothing but the store reads the place of a Parquet file.

mod answers;
mod clients;
mod copies;
mod place;

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use datafusion::catalog::Session;
use datafusion::object_store::{
    Attribute, GetOptions, GetResult, GetResultPayload, ObjectMeta, ObjectStore, Result as StoreResult,
};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use warpcube_palo::catalog::MarkedFolder;

use self::answers::{as_stores, patiently, refused};
use self::clients::Clients;
use self::copies::Copy;
pub(super) use self::copies::LeftOut;
use self::place::Place;
use super::snapshot::FileIdentity;
use crate::error::{Result, SqlError};
use crate::formats::{FileType, unknown_extension};
use crate::locations::{COPIED, FETCHED, mirrored, shown};
use crate::settings::Settings;

/// Files copied at once.
const AT_ONCE: usize = 8;
/// How long a set is kept that no table has and no statement has asked for.
const KEPT: Duration = Duration::from_secs(3600);
/// How long one of files that have changed is: for the statements that read it.
const KEPT_OF_BEFORE: Duration = Duration::from_secs(600);

/// The files elsewhere that a database has looked at.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    clients: Clients,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    folder: Option<MarkedFolder>,
    sets: Vec<Arc<MirrorSet>>,
    /// Text files without some of their lines.
    copies: Vec<Copy>,
    /// Number of sets and copies that were made.
    made: u64,
}

/// The files that a location meant at a moment.
#[derive(Debug)]
pub(super) struct MirrorSet {
    place: Place,
    number: u64,
    store: Arc<dyn ObjectStore>,
    /// The format that was named.
    named: Option<&'static str>,
    /// Whether they are Parquet files.
    is_parquet: bool,
    files: Vec<ObjectMeta>,
    /// Of [`MirrorSet::files`], by their places.
    places: HashMap<PathBuf, usize>,
    folder: PathBuf,
    used: Mutex<Instant>,
}

impl Drop for MirrorSet {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Mirror {
    /// The files of a location as they are now: those of the format that is named, or is told by the extension of the
    /// first one that tells it.
    ///
    /// # Errors
    /// [`SqlError::FileMissing`], [`SqlError::FileNone`], [`SqlError::FileFormat`], [`SqlError::FileElsewhere`].
    pub(super) async fn open(
        &self,
        state: &dyn Session,
        location: &str,
        stored_as: Option<&str>,
    ) -> Result<Arc<MirrorSet>> {
        let place = Place::parse(location)?;
        let store = self.clients.of(&place)?;
        let found = place.look(store.as_ref()).await?;
        let Some(first) = found.first() else {
            return Err(SqlError::FileNone { path: place.url(), reason: "no file matches this pattern".into() });
        };
        let named = stored_as.and_then(FileType::by_name).map(|kind| kind.name);
        let Some(format) = named.or_else(|| found.iter().find_map(kind_of)) else {
            return Err(unknown_extension(&format!("{}://{}/{}", place.scheme, place.authority, first.location)));
        };
        let (files, is_parquet) = (of_kind(found, &place, named), format == "PARQUET");
        if let Some(known) = self.known(&place, is_parquet).filter(|known| known.files == files) {
            return Ok(known);
        }
        let is_fetched = is_parquet && place.gives_ranges(store.as_ref(), &files[0]).await?;
        let (number, folder) = self.next_folder(state, is_fetched)?;
        let before = self.known(&place, is_parquet);
        let (places, used) = (HashMap::new(), Mutex::new(Instant::now()));
        let mut set = MirrorSet { place, number, store, named, is_parquet, files, places, folder, used };
        let bring = |at: usize| {
            let (set, before) = (&set, before.as_deref());
            async move {
                let path = set.place_of(&set.files[at]);
                set.bring(&set.files[at], &path, is_fetched, before).await?;
                Ok::<_, SqlError>((path, at))
            }
        };
        let brought = futures::stream::iter((0..set.files.len()).map(bring)).buffer_unordered(AT_ONCE);
        let places = brought.try_collect().await?;
        set.places = places;
        let set = Arc::new(set);
        self.state.lock().sets.push(set.clone());
        Ok(set)
    }

    /// The last set of a location.
    fn known(&self, place: &Place, is_parquet: bool) -> Option<Arc<MirrorSet>> {
        let state = self.state.lock();
        let known = state.sets.iter().rev().find(|set| set.place == *place && set.is_parquet == is_parquet)?;
        *known.used.lock() = Instant::now();
        Some(known.clone())
    }

    /// The number and the folder of the next set; drops sets that are of no use any more.
    fn next_folder(&self, state: &dyn Session, is_fetched: bool) -> Result<(u64, PathBuf)> {
        let settings = state.config_options().extensions.get::<Settings>();
        let parent = settings.and_then(|settings| settings.database.spill_folder.clone());
        let parent = parent.unwrap_or_else(std::env::temp_dir);
        let mut own = self.state.lock();
        own.sets = kept(std::mem::take(&mut own.sets), Instant::now());
        let folder = match &own.folder {
            Some(folder) => folder.content(),
            None => {
                let parent = std::path::absolute(&parent).and_then(|path| fs::create_dir_all(&path).map(|()| path));
                let made = parent.and_then(|parent| {
                    MarkedFolder::remove_left(&parent);
                    MarkedFolder::new(&parent, OsStr::new("elsewhere"))
                });
                let made = made.map_err(|error| SqlError::FileAccess(format!("a folder for copies: {error}")))?;
                own.folder.insert(made).content()
            }
        };
        own.made += 1;
        let kind = if is_fetched { FETCHED } else { COPIED };
        Ok((own.made, folder.join(kind).join(own.made.to_string())))
    }

    /// Fetches a file, or a range of it, whose place is `path`.
    ///
    /// # Errors
    /// Those of the server, and one of a file that is not the one that its set was made of.
    pub(super) async fn get(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let number = mirrored(path).map(|file| file.set);
        let set = self.state.lock().sets.iter().find(|set| Some(set.number) == number).cloned();
        let found = set.as_ref().and_then(|set| Some((set, &set.files[*set.places.get(path)?])));
        let Some((set, file)) = found else {
            let reason = "it is not known any more; run the statement again".into();
            return Err(as_stores(SqlError::FileElsewhere { url: shown(path), reason }));
        };
        *set.used.lock() = Instant::now();
        set.get(file, options).await.map_err(as_stores)
    }

    /// Forgets all files, and removes their places.
    pub(crate) fn close(&self) {
        *self.state.lock() = State::default();
    }
}

impl MirrorSet {
    /// The location as that of files of this machine.
    pub(super) fn location(&self) -> String {
        let Place { scheme, authority, path, .. } = &self.place;
        format!("{}/{scheme}/{authority}/{path}", self.folder.display())
    }

    /// The files as they were when the set was made.
    pub(super) fn seen(&self) -> impl Iterator<Item = FileIdentity> {
        self.files.iter().cloned().map(FileIdentity::listed)
    }

    /// The files as they are now.
    ///
    /// # Errors
    /// [`SqlError::FileMissing`], [`SqlError::FileElsewhere`].
    pub(super) async fn look(&self) -> Result<Vec<FileIdentity>> {
        *self.used.lock() = Instant::now();
        let found = self.place.look(self.store.as_ref()).await?;
        Ok(of_kind(found, &self.place, self.named).into_iter().map(FileIdentity::listed).collect())
    }

    fn place_of(&self, file: &ObjectMeta) -> PathBuf {
        let Place { scheme, authority, .. } = &self.place;
        self.folder.join(scheme).join(authority).join(file.location.as_ref())
    }

    fn url_of(&self, file: &ObjectMeta) -> String {
        format!("{}://{}/{}", self.place.scheme, self.place.authority, file.location)
    }

    /// Makes the place of a file. One that was copied `before` is not copied again.
    async fn bring(&self, file: &ObjectMeta, path: &Path, is_fetched: bool, before: Option<&MirrorSet>) -> Result<()> {
        let failed = |error: io::Error| SqlError::FileAccess(format!("a copy of {}: {error}", self.url_of(file)));
        fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
        let known = before.filter(|before| before.files.contains(file)).map(|before| before.place_of(file));
        if !is_fetched && known.is_some_and(|known| fs::hard_link(known, path).is_ok()) {
            return Ok(());
        }
        let mut new = File::create_new(path).map_err(failed)?;
        if is_fetched {
            new.set_len(file.size).map_err(failed)?;
        } else {
            let mut pieces = self.get(file, GetOptions::default()).await?.into_stream();
            let mut bytes = 0;
            while let Some(piece) = pieces.try_next().await.map_err(|error| refused(self.url_of(file), &error))? {
                bytes += piece.len() as u64;
                new.write_all(&piece).map_err(failed)?;
            }
            if bytes != file.size {
                let reason = format!("it has ended after {bytes} of its {} bytes", file.size);
                return Err(SqlError::FileElsewhere { url: self.url_of(file), reason });
            }
        }
        new.set_modified(SystemTime::from(file.last_modified)).map_err(failed)
    }

    /// Asks for a file of the set.
    async fn get(&self, file: &ObjectMeta, options: GetOptions) -> Result<GetResult> {
        let url = self.url_of(file);
        let got = patiently(self.store.get_opts(&self.place.key(file), options)).await;
        let mut got = got.map_err(|error| refused(url.clone(), &error))?;
        if !is_same(file, &got.meta) {
            let reason = "it has changed since the statement looked at it; run the statement again".into();
            return Err(SqlError::FileElsewhere { url, reason });
        }
        let encoding = got.attributes.get(&Attribute::ContentEncoding).map(|encoding| encoding.to_string());
        if let Some(encoding) = encoding.filter(|encoding| encoding != "identity") {
            let reason =
                format!("it is sent in the encoding {encoding}, which is not taken off; send the bytes as they are");
            return Err(SqlError::FileElsewhere { url, reason });
        }
        got.meta = file.clone();
        let GetResultPayload::Stream(pieces) = got.payload else { return Ok(got) };
        let pieces = futures::stream::try_unfold((pieces, url), |(mut pieces, url)| async move {
            let piece = patiently(pieces.try_next()).await;
            let piece = piece.map_err(|error| as_stores(refused(url.clone(), &error)))?;
            Ok(piece.map(|piece| (piece, (pieces, url))))
        });
        got.payload = GetResultPayload::Stream(pieces.boxed());
        Ok(got)
    }
}

/// The sets that are of use, in their order.
fn kept(sets: Vec<Arc<MirrorSet>>, now: Instant) -> Vec<Arc<MirrorSet>> {
    let mut locations = HashSet::new();
    let mut kept = Vec::new();
    for set in sets.into_iter().rev() {
        let longest = if locations.insert((set.place.clone(), set.is_parquet)) { KEPT } else { KEPT_OF_BEFORE };
        let unused = now.saturating_duration_since(*set.used.lock());
        if Arc::strong_count(&set) > 1 || unused < longest {
            kept.push(set);
        }
    }
    kept.reverse();
    kept
}

/// The format that a file's name tells.
fn kind_of(file: &ObjectMeta) -> Option<&'static str> {
    FileType::by_extension(file.location.as_ref()).map(|(kind, _)| kind.name)
}

/// The files of a folder without those that are no tables, or that are not of the named kind, where some are; all that
/// a pattern matches.
fn of_kind(files: Vec<ObjectMeta>, place: &Place, named: Option<&'static str>) -> Vec<ObjectMeta> {
    if place.is_pattern() {
        return files;
    }
    let is_meant = |file: &ObjectMeta| kind_of(file).is_some_and(|kind| named.is_none_or(|named| named == kind));
    match files.iter().any(is_meant) {
        true => files.into_iter().filter(is_meant).collect(),
        false => files,
    }
}

/// Whether what a server sends is of the file that was looked at, by what it tells at both times.
fn is_same(looked_at: &ObjectMeta, sent: &ObjectMeta) -> bool {
    let strong = |tag: &str| tag.trim_start_matches("W/").trim_matches('"').to_string();
    let tags = (looked_at.e_tag.as_deref().map(strong), sent.e_tag.as_deref().map(strong));
    looked_at.size == sent.size
        && match tags {
            (Some(before), Some(now)) => before == now,
            // Lists tell milliseconds, answers seconds.
            _ => looked_at.last_modified.timestamp() == sent.last_modified.timestamp(),
        }
}

#[cfg(test)]
mod tests {
    use datafusion::object_store::memory::InMemory;

    use super::*;

    #[test]
    fn sets_are_kept_while_they_are_of_use() {
        let folder = tempfile::tempdir().unwrap();
        let set = |number: u64, location: &str| {
            Arc::new(MirrorSet {
                place: Place::parse(location).unwrap(),
                number,
                store: Arc::new(InMemory::new()),
                named: None,
                is_parquet: false,
                files: Vec::new(),
                places: HashMap::new(),
                folder: folder.path().join(number.to_string()),
                used: Mutex::new(Instant::now()),
            })
        };
        let held = set(3, "s3://c/x.csv");
        let sets = vec![set(1, "s3://a/x.csv"), set(2, "s3://a/x.csv"), held.clone(), set(4, "s3://b/x.csv")];
        let numbers = |sets: &[Arc<MirrorSet>]| sets.iter().map(|set| set.number).collect::<Vec<_>>();
        let sets = kept(sets, Instant::now());
        assert_eq!(numbers(&sets), [1, 2, 3, 4]);
        // The first one has a successor.
        let sets = kept(sets, Instant::now() + 2 * KEPT_OF_BEFORE);
        assert_eq!(numbers(&sets), [2, 3, 4]);
        assert_eq!(numbers(&kept(sets, Instant::now() + 2 * KEPT)), [3]);
    }
}
