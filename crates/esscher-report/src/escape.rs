//! Text made safe for the languages that it is written into.

use crate::literal::visible;

/// Text inside XML or HTML, in content or in quoted attributes. What XML forbids and what would steer a reader is shown.
pub(crate) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in visible(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// JSON inside a script element: nothing in it can end the element or open a comment.
pub(crate) fn json_in_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_means_itself() {
        assert_eq!(xml("<a b=\"c\" d='e'>&\0"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\\u{0}");
        assert_eq!(json_in_html("\"</script><!--\""), "\"\\u003c/script\\u003e\\u003c!--\"");
    }
}
