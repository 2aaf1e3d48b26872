//! Compliance flags that protect somebody: in the model they are labels, so that they decide who
//! sees a thing.

use serde_json::Value;
use yore_domain::class::Governance;
use yore_domain::regulated::Regulated;

use crate::json::Object;

/// The format's members for what a law protects.
pub const PROTECTED: [(&str, Regulated); 3] = [
    ("x_contains_phi", Regulated::Phi),
    ("x_contains_npi", Regulated::Npi),
    ("x_child_user", Regulated::Child),
];

/// Turns the flags of a document into labels.
pub(super) fn labels_in(object: &mut Object, governance: &mut Governance) {
    for (name, sort) in PROTECTED {
        if object.get(name) == Some(&Value::Bool(true)) {
            object.shift_remove(name);
            raise(governance, sort);
        }
    }
}

/// Adds the label of something that a law protects.
pub(super) fn raise(governance: &mut Governance, sort: Regulated) {
    let label = sort.label();
    if !governance.labels.contains(&label) {
        governance.labels.push(label);
    }
}

/// Turns labels into the flags of a document.
pub(super) fn labels_out(governance: &Governance, object: &mut Object) {
    for (name, sort) in PROTECTED {
        if governance.labels.contains(&sort.label()) {
            object.insert(name.into(), true.into());
        }
    }
}
