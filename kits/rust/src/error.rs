use std::{fmt, io};

use serde_json::Value;

/// An error of a server or of its start.
#[derive(Debug)]
pub enum Error {
    /// The server did not start. The text has its log.
    Start(String),
    /// The server rejected a request, with the code of HTTP and a Status.
    Api {
        code: u16,
        status: Value,
    },
    /// The request has no answer.
    Connection(String),
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Start(text) => write!(f, "anykind serve did not start: {text}"),
            Error::Api { code, status } => write!(
                f,
                "{code}: {}",
                status["message"].as_str().unwrap_or_default()
            ),
            Error::Connection(text) => f.write_str(text),
            Error::Io(err) => err.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(err: io::Error) -> Self {
        Error::Io(err)
    }
}

impl From<native_tls::Error> for Error {
    fn from(err: native_tls::Error) -> Self {
        Error::Connection(err.to_string())
    }
}
