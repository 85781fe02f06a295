//! Conditions on a request: which variant of a scheme applies, whether this is a handshake.
//!
//! A condition only selects; it proves nothing. So parts of values are compared without regard to case.

use std::collections::BTreeMap;

use crate::record::raw;
use crate::request::Lookup;
use crate::template::{Context, Variable};
use crate::wire::json::Pointer;

/// A compiled condition: all parts must hold; without parts it always holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct When {
    methods: Vec<String>,
    present: Vec<Variable>,
    absent: Vec<Variable>,
    equals: Vec<(Variable, Vec<String>)>,
    prefixes: Vec<(Variable, String)>,
    contained: Vec<(Variable, String)>,
    empty: Vec<Pointer>,
}

impl When {
    /// Compiles a record's condition.
    pub(crate) fn compile(raw: &raw::When) -> Result<Self, String> {
        let variables =
            |names: &[String]| names.iter().map(|name| variable(name)).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            methods: raw.method.0.clone(),
            present: variables(&raw.present)?,
            absent: variables(&raw.absent)?,
            equals: raw
                .equals
                .iter()
                .map(|(name, values)| Ok((variable(name)?, values.0.clone())))
                .collect::<Result<_, String>>()?,
            prefixes: parts(&raw.prefix)?,
            contained: parts(&raw.contains)?,
            empty: raw.empty.iter().map(|pointer| Pointer::parse(pointer)).collect::<Result<_, _>>()?,
        })
    }

    /// The methods that it asks for; none for any.
    pub(crate) fn methods(&self) -> &[String] {
        &self.methods
    }

    /// Whether all parts hold for this request.
    pub(crate) fn holds(&self, context: &Context<'_>) -> bool {
        let method = context.request.method;
        (self.methods.is_empty() || self.methods.iter().any(|allowed| allowed == method))
            && self.present.iter().all(|variable| is_present(variable, context))
            && !self.absent.iter().any(|variable| is_present(variable, context))
            && self.equals.iter().all(|(variable, values)| {
                matches(variable, context, |found| values.iter().any(|value| value.as_bytes() == found))
            })
            && self.prefixes.iter().all(|(variable, prefix)| {
                matches(variable, context, |found| {
                    found.get(..prefix.len()).is_some_and(|start| is_same(start, prefix))
                })
            })
            && self.contained.iter().all(|(variable, part)| {
                matches(variable, context, |found| {
                    part.is_empty() || found.windows(part.len()).any(|window| is_same(window, part))
                })
            })
            && self
                .empty
                .iter()
                .all(|pointer| pointer.items(&context.document(), 0).is_some_and(|items| items.is_empty()))
    }
}

fn is_same(found: &[u8], text: &str) -> bool {
    found.eq_ignore_ascii_case(text.as_bytes())
}

fn parts(raw: &BTreeMap<String, String>) -> Result<Vec<(Variable, String)>, String> {
    raw.iter().map(|(name, part)| Ok((variable(name)?, part.clone()))).collect()
}

/// An empty value is absent, a repeated one present.
fn is_present(variable: &Variable, context: &Context<'_>) -> bool {
    match variable.resolve(context) {
        Lookup::Absent => false,
        Lookup::One(value) => !value.is_empty(),
        Lookup::Repeated => true,
    }
}

fn matches(variable: &Variable, context: &Context<'_>, test: impl Fn(&[u8]) -> bool) -> bool {
    matches!(variable.resolve(context), Lookup::One(value) if test(&value))
}

fn variable(name: &str) -> Result<Variable, String> {
    match Variable::parse(name)? {
        Variable::Signature(_) => Err(format!("`{name}` is known only after the variant is chosen")),
        variable => Ok(variable),
    }
}
