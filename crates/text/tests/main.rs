//! Files as people have them, and files that nobody should have.

mod hostile;
mod real;
