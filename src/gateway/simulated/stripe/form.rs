//! The form encoding of Stripe's requests.

/// The fields of a form, sorted: their order on the wire does not matter to an idempotency key.
#[derive(Debug)]
pub(in super::super) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads a body; bytes that are no form give fields nobody asks for.
    pub(in super::super) fn parse(body: &[u8]) -> Self {
        let mut fields: Vec<(String, String)> = form_urlencoded::parse(body).into_owned().collect();
        fields.sort();
        Self(fields)
    }

    /// The first value of a field.
    pub(in super::super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// Whether a field says `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// The names before any bracket.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(field, _)| field.split('[').next().unwrap_or_default())
    }

    /// The pairs `name[key]=value` of one name.
    pub(super) fn map(&self, name: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(move |(field, value)| {
            let key = field.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?;
            Some((key, value.as_str()))
        })
    }

    /// The same text for the same fields.
    pub(in super::super) fn canonical(&self) -> Vec<u8> {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish().into_bytes()
    }
}
