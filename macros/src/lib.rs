//! The attribute macros of stallhound.
