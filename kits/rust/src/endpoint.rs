use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use native_tls::{Certificate, TlsConnector};
use serde_json::{json, Value};

use crate::{Error, Fault};

/// A server or a fork.
#[derive(Clone, Debug)]
pub struct Endpoint {
    url: String,
    ca: String,
    token: String,
    kubeconfig: PathBuf,
    agent: ureq::Agent,
}

impl Endpoint {
    /// ca_data is the certificate in base64, as in a kubeconfig.
    pub(crate) fn new(
        url: String,
        ca: String,
        ca_data: &str,
        token: String,
        directory: &Path,
        name: &str,
    ) -> Result<Self, Error> {
        let kubeconfig = directory.join(format!("{name}.kubeconfig"));
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": ca_data}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        });
        fs::write(&kubeconfig, config.to_string())?;
        let tls = TlsConnector::builder()
            .disable_built_in_roots(true)
            .add_root_certificate(Certificate::from_pem(ca.as_bytes())?)
            .build()?;
        // A new connection for each request: ureq repeats requests whose connection has been used before and is lost.
        let agent = ureq::AgentBuilder::new()
            .tls_connector(Arc::new(tls))
            .max_idle_connections(0)
            .build();
        Ok(Endpoint {
            url,
            ca,
            token,
            kubeconfig,
            agent,
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The CA certificate, PEM.
    pub fn ca(&self) -> &str {
        &self.ca
    }

    /// Bearer token of an administrator.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Path of a kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Send a request as the administrator, and return the decoded answer.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let request = self
            .agent
            .request(method, &format!("{}{path}", self.url))
            .set("Authorization", &format!("Bearer {}", self.token))
            .set("Accept", "application/json");
        let answer = match body {
            Some(body) => request.send_json(body),
            None => request.call(),
        };
        match answer {
            Ok(answer) => Ok(answer.into_json()?),
            Err(ureq::Error::Status(code, answer)) => Err(Error::Api {
                code,
                status: answer.into_json().unwrap_or_default(),
            }),
            Err(err) => Err(Error::Connection(err.to_string())),
        }
    }

    pub fn inject(&self, fault: &Fault) -> Result<Injected, Error> {
        let made = self.request("POST", "/faults", Some(&fault.to_json()))?;
        let id = made["id"].as_str().unwrap_or_default();
        Ok(Injected {
            server: self.clone(),
            path: format!("/faults/{id}"),
        })
    }

    /// All faults, with their counts.
    pub fn faults(&self) -> Result<Vec<Value>, Error> {
        let list = self.request("GET", "/faults", None)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// End all faults.
    pub fn clear_faults(&self) -> Result<(), Error> {
        self.request("DELETE", "/faults", None).map(drop)
    }
}

/// A fault of a server. It stays until it is removed, or its server ends.
#[derive(Clone, Debug)]
pub struct Injected {
    server: Endpoint,
    path: String,
}

impl Injected {
    /// The number of affected requests.
    pub fn count(&self) -> Result<u64, Error> {
        Ok(self.server.request("GET", &self.path, None)?["count"]
            .as_u64()
            .unwrap_or_default())
    }

    pub fn remove(&self) -> Result<(), Error> {
        self.server.request("DELETE", &self.path, None).map(drop)
    }
}
