//! Files that are damaged, or made to do harm.
