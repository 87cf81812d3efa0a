use std::time::Duration;

use serde_json::{json, Map, Value};

/// Selected requests and their fault. A list that is not set selects everything, except that of
/// subresources: without it, requests for subresources are not selected.
#[derive(Clone, Debug)]
pub struct Fault(Map<String, Value>);

impl Fault {
    fn new(effect: Value) -> Self {
        Fault(Map::from_iter([("effect".to_string(), effect)]))
    }

    /// The request fails with a Status. Its reason and message depend on the code.
    pub fn status(code: u16) -> Self {
        Self::new(json!({"type": "status", "code": code}))
    }

    /// The request fails with this Status.
    pub fn status_with(code: u16, reason: &str, message: &str) -> Self {
        Self::new(json!({"type": "status", "code": code, "reason": reason, "message": message}))
    }

    /// The request fails with 429, and Retry-After in whole seconds.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        Self::new(json!({"type": "status", "code": 429, "retryAfterSeconds": retry_after_seconds}))
    }

    /// The request waits.
    pub fn delay(time: Duration) -> Self {
        Self::new(json!({"type": "delay", "duration": format!("{}ms", time.as_millis())}))
    }

    /// The connection ends without a response, and the request has no effect.
    pub fn hang_up() -> Self {
        Self::new(json!({"type": "hangUp"}))
    }

    /// The connection ends without a response, and the request takes effect.
    pub fn lose_answer() -> Self {
        Self::new(json!({"type": "loseAnswer"}))
    }

    /// Gets and lists return the state at a resourceVersion; watches send no events until the fault is removed.
    pub fn stale_view(resource_version: &str) -> Self {
        Self::new(json!({"type": "staleView", "resourceVersion": resource_version}))
    }

    /// The events of a watch wait until the fault is removed.
    pub fn hold_events() -> Self {
        Self::new(json!({"type": "holdEvents"}))
    }

    fn with<const N: usize>(mut self, name: &str, values: [&str; N]) -> Self {
        self.0.insert(name.to_string(), json!(values.to_vec()));
        self
    }

    /// Verbs of Kubernetes, also read and write.
    pub fn verbs<const N: usize>(self, verbs: [&str; N]) -> Self {
        self.with("verbs", verbs)
    }

    /// API groups; "" is the core group.
    pub fn groups<const N: usize>(self, groups: [&str; N]) -> Self {
        self.with("groups", groups)
    }

    /// Plurals, such as configmaps.
    pub fn resources<const N: usize>(self, resources: [&str; N]) -> Self {
        self.with("resources", resources)
    }

    /// Names such as status; "" is the object itself, and "*" is all.
    pub fn subresources<const N: usize>(self, subresources: [&str; N]) -> Self {
        self.with("subresources", subresources)
    }

    pub fn namespaces<const N: usize>(self, namespaces: [&str; N]) -> Self {
        self.with("namespaces", namespaces)
    }

    pub fn names<const N: usize>(self, names: [&str; N]) -> Self {
        self.with("names", names)
    }

    pub fn users<const N: usize>(self, users: [&str; N]) -> Self {
        self.with("users", users)
    }

    /// Prefixes of the header User-Agent.
    pub fn user_agents<const N: usize>(self, prefixes: [&str; N]) -> Self {
        self.with("userAgents", prefixes)
    }

    /// The number of first requests without the fault.
    pub fn skip(mut self, requests: u32) -> Self {
        self.0.insert("skip".to_string(), json!(requests));
        self
    }

    /// The number of requests with the fault; the default is 1.
    pub fn times(mut self, requests: u32) -> Self {
        self.0.insert("times".to_string(), json!(requests));
        self
    }

    /// All requests have the fault.
    pub fn always(mut self) -> Self {
        self.0.insert("times".to_string(), json!(-1));
        self
    }

    pub(crate) fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }
}
