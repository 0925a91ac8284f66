//! A file system of its own, ext4 in a file, that can be cut off from its disk.
//!
//! Cut off means the shutdown of ext4 for tests: data that was not written by then never is, the journal included, and
//! everything fails until it is mounted again, which replays the journal. Guarantees: it is unmounted when its value is
//! dropped. Non-goals: its content.
#![allow(unsafe_code, reason = "nothing wraps the one system call that shuts a file system down")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::ioctl::{Opcode, Setter, ioctl, opcode};

/// Size of the image, a few log segments; the file is sparse.
const IMAGE_BYTES: u64 = 4 << 30;
/// `EXT4_IOC_SHUTDOWN`, as in `fs/ext4/ext4.h` of Linux.
const SHUTDOWN: Opcode = opcode::read::<u32>(b'X', 125);
/// `EXT4_GOING_FLAGS_NOLOGFLUSH`: the journal is not flushed before.
const WITHOUT_FLUSH: u32 = 2;

/// A mounted file system.
pub(crate) struct Ext4 {
    image: PathBuf,
    point: PathBuf,
    is_mounted: bool,
}

impl Ext4 {
    /// Creates a file system in a new file and mounts it; the error is the reason where this machine does not permit
    /// it.
    pub(crate) fn new(image: &Path, point: &Path) -> Result<Self, String> {
        let file = File::create(image).map_err(|error| error.to_string())?;
        file.set_len(IMAGE_BYTES).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(point).map_err(|error| error.to_string())?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(image))?;
        let mut made = Self { image: image.to_owned(), point: point.to_owned(), is_mounted: false };
        made.mount()?;
        Ok(made)
    }

    /// Mounts it, which replays the journal.
    pub(crate) fn mount(&mut self) -> Result<(), String> {
        run(Command::new("mount")
            .args(["-t", "ext4", "-o", "loop"])
            .arg(&self.image)
            .arg(&self.point))?;
        self.is_mounted = true;
        Ok(())
    }

    /// Unmounts it; no file on it may be open.
    pub(crate) fn unmount(&mut self) -> Result<(), String> {
        run(Command::new("umount").arg(&self.point))?;
        self.is_mounted = false;
        Ok(())
    }

    /// Cuts it off from its disk.
    pub(crate) fn cut(&self) -> Result<(), String> {
        let root = File::open(&self.point).map_err(|error| error.to_string())?;
        // SAFETY: this call of ext4 reads one u32, which is what the setter points it to.
        let done = unsafe { ioctl(&root, Setter::<SHUTDOWN, u32>::new(WITHOUT_FLUSH)) };
        done.map_err(|error| format!("shutting the file system down: {error}"))
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        if self.is_mounted {
            // The test is over, passed or not; a failure to unmount is logged and ignored.
            if let Err(why) = self.unmount() {
                eprintln!("{} stays mounted: {why}", self.point.display());
            }
        }
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
