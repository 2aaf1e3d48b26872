//! What a form or the query of an address says.

/// Names with values, as they came; a name may come several times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    pub(crate) fn read(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// The first value of a name, without space around it; absent when nothing was filled in.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name)?;
        Some(found.1.trim()).filter(|value| !value.is_empty())
    }

    /// The first value as it was typed, but with the line ends of a text area made plain.
    pub(crate) fn text(&self, name: &str) -> String {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.replace("\r\n", "\n")).unwrap_or_default()
    }

    /// All values of a name that say something.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let values = self.0.iter().filter(move |(key, _)| key == name);
        values.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The parts of a list that was typed with commas.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let parts = self.get(name).unwrap_or_default().split(',').map(str::trim);
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }
}

/// Writes names with values as the query of an address.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        written.append_pair(name, value);
    }
    written.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_typed() {
        let form = Form::read(b"a=1&a=2&b=+x+y+&c=&d=one%2C+two%2C%2C&t=l1%0D%0Al2");
        assert_eq!(form.get("a"), Some("1"));
        assert_eq!(form.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(form.get("b"), Some("x y"));
        assert_eq!(form.get("c"), None);
        assert_eq!(form.list("d"), ["one", "two"]);
        assert_eq!(form.text("t"), "l1\nl2");
        assert_eq!(query(&[("q", "a b&c"), ("empty", "")]), "q=a+b%26c");
    }
}
