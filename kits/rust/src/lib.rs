//! A Kubernetes API server for tests: start, fork, inject faults.
//!
//! The program anykind is found in the environment variable `ANYKIND` or in `PATH`. It stores objects in
//! memory and listens on a free port of this machine.
//!
//! ```no_run
//! use anykind_testkit::{Fault, Server};
//!
//! # fn main() -> Result<(), anykind_testkit::Error> {
//! let server = Server::options().crds("config/crd").start()?;
//! let fork = server.fork()?;
//! let fault = fork.inject(&Fault::status(409).verbs(["update"]).resources(["configmaps"]))?;
//! // Run the code under test with fork.kubeconfig().
//! assert_eq!(fault.count()?, 1);
//! # Ok(())
//! # }
//! ```

mod endpoint;
mod error;
mod fault;
mod server;

pub use endpoint::{Endpoint, Injected};
pub use error::Error;
pub use fault::Fault;
pub use server::{Fork, Options, Server};
