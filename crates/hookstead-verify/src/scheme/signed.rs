//! What all schemes with a signature share: where the signatures are, and what is signed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Locator, Match};
use crate::record::raw;
use crate::template::{Context, Pieces, Template, Unresolved, Variable};
use crate::verdict::{Fault, Reason};

/// A place for signatures and the contents, any of which may be what was signed.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub(crate) locator: Locator,
    /// Never empty.
    pub(crate) contents: Vec<Template>,
}

impl Signed {
    /// Compiles `sig` and `content`.
    pub(crate) fn compile(raw: &raw::Scheme, lets: &BTreeMap<String, Template>) -> Result<Self, String> {
        let locator = Locator::compile(raw.sig.as_ref().ok_or("this kind needs `sig`")?)?;
        let contents = raw.content.as_ref().ok_or("this kind needs `content`")?.get_ref();
        let template = |text: &String| {
            text.parse::<Template>()
                .map_err(|error| error.to_string())
                .and_then(|template| template.bind(lets))
        };
        let contents = contents.0.iter().map(template).collect::<Result<Vec<_>, _>>()?;
        for slot in contents.iter().flat_map(Template::slots) {
            if let Variable::Signature(field) = &slot.variable
                && !locator.has_field(field)
            {
                return Err(format!(
                    "`{}` needs a signature list with named or positional fields",
                    slot.name
                ));
            }
        }
        Ok(Self { locator, contents })
    }

    /// Tries every group of candidates over every content, whether one has matched already or not. `which` says
    /// which key made one of the candidates over these bytes.
    pub(crate) fn find(
        &self,
        context: &Context<'_>,
        mut which: impl FnMut(&Pieces<'_>, &[Cow<'_, [u8]>]) -> Option<usize>,
    ) -> Result<Match, Fault> {
        let texts = self.locator.texts(context)?;
        let mut found = None;
        let mut signed = false;
        let mut unresolved = None;
        for group in self.locator.groups(&texts, context)? {
            let context = context.with_fields(&group.fields);
            for content in &self.contents {
                match content.resolve(&context) {
                    Ok(content) => {
                        signed = true;
                        let key = which(&content, &group.candidates);
                        found = found.or(key.map(|key| Match::with_fields(key, &group.fields)));
                    }
                    Err(missing) => unresolved = Some(missing),
                }
            }
        }
        match (found, unresolved) {
            (Some(found), _) => Ok(found),
            (None, Some(missing)) if !signed => Err(fault(missing)),
            (None, _) => Err(self.locator.fault(Reason::SignatureDiffers)),
        }
    }

    /// The first content, which is the one that we sign.
    pub(crate) fn content<'r>(&'r self, context: &Context<'r>) -> Result<Pieces<'r>, Fault> {
        let content = self.contents.first().map(|content| content.resolve(context));
        Ok(content.transpose().map_err(fault)?.unwrap_or_default())
    }
}

pub(crate) fn fault(unresolved: Unresolved) -> Fault {
    match unresolved {
        Unresolved::Absent(part) if part == "url" => Fault::new(Reason::UrlMissing, part),
        Unresolved::Absent(part) => Fault::new(Reason::PartMissing, part),
        Unresolved::Repeated(part) => Fault::new(Reason::PartRepeated, part),
    }
}
