//! A separator between signed values: which values may not hold it, so that a signed text can be cut into values in
//! one way only.
//!
//! A signature covers the text that the values were joined to, and not where one ends and the next begins. Whoever
//! chooses one of the values could write the separator into it, and show the same signed text cut in another place:
//! an id, a topic or a type of his own. It knows nothing of what the values mean.

use crate::record::raw;
use crate::scheme::Scheme;
use crate::template::{Context, Slot, Template, Unresolved, Variable};
use crate::verdict::{Fault, Reason};

/// The values of a content that may not hold its separator.
#[derive(Debug, Clone)]
pub(crate) struct Separator {
    text: Vec<u8>,
    bound: Vec<Slot>,
}

impl Separator {
    /// Compiles `separator` for the contents of a scheme. Every value is bound unless the record calls it free, so
    /// that one which is added to the content later is not forgotten here.
    pub(crate) fn compile(raw: &raw::Separator, scheme: &Scheme) -> Result<Self, String> {
        let text = raw.text.clone().into_bytes();
        let separates = |content: &Template| content.has_literal(&text);
        if scheme.contents().is_empty() || !scheme.contents().iter().all(separates) {
            return Err(format!("the separator {:?} is not in `content`", raw.text));
        }
        let free = raw.free.0.iter().map(|name| Variable::parse(name)).collect::<Result<Vec<_>, _>>()?;
        let slots: Vec<&Slot> = scheme.contents().iter().flat_map(Template::slots).collect();
        if let Some(index) = free.iter().position(|free| !slots.iter().any(|slot| slot.variable == *free)) {
            return Err(format!("`{}` is free of the separator, but not in `content`", raw.free.0[index]));
        }
        let is_bound = |slot: &&Slot| slot.variable != Variable::LineFeed && !free.contains(&slot.variable);
        Ok(Self { text, bound: slots.into_iter().filter(is_bound).cloned().collect() })
    }

    /// Refuses a request in which one of the bound values holds the separator. What is absent holds nothing.
    pub(crate) fn check(&self, context: &Context<'_>) -> Result<(), Fault> {
        for slot in &self.bound {
            match slot.resolve(context) {
                Ok(value) if self.is_in(&value) => return Err(Fault::new(Reason::CheckDiffers, &*slot.name)),
                Ok(_) | Err(Unresolved::Absent(_)) => {}
                Err(Unresolved::Repeated(part)) => return Err(Fault::new(Reason::PartRepeated, part)),
            }
        }
        Ok(())
    }

    fn is_in(&self, value: &[u8]) -> bool {
        value.windows(self.text.len()).any(|window| window == self.text)
    }
}
