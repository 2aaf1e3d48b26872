//! Whole exports and archives, read from files.

mod given;
mod hostile;
mod rebuilt;
mod samples;
