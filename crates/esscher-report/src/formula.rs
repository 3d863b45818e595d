//! Formulas in LaTeX as readable Unicode, for places that cannot typeset: a reading aid, not a renderer.

/// A formula in one line of Unicode: `\sigma^2 \le L^{-1}` becomes `σ² ≤ L⁻¹`. Unknown commands keep their name.
pub(crate) fn unicode(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let mut reader = Reader { characters: &characters, position: 0 };
    let text = reader.until_closing(0);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Nesting beyond this is copied as it stands, so that no input can exhaust the stack.
const DEEPEST: usize = 40;

struct Reader<'a> {
    characters: &'a [char],
    position: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let found = self.characters.get(self.position).copied();
        self.position += usize::from(found.is_some());
        found
    }

    /// Everything up to the brace that closes this group, or to the end.
    fn until_closing(&mut self, depth: usize) -> String {
        let mut text = String::new();
        while let Some(character) = self.next() {
            match character {
                '}' if depth > 0 => break,
                '}' => {}
                '{' if depth < DEEPEST => text.push_str(&self.until_closing(depth + 1)),
                '\\' => text.push_str(&self.command(depth)),
                '^' => text.push_str(&raised(&self.argument(depth))),
                '_' => text.push_str(&lowered(&self.argument(depth))),
                '-' => text.push('−'),
                '~' | '&' => text.push(' '),
                '\'' => text.push('′'),
                other => text.push(other),
            }
        }
        text
    }

    /// A group in braces, a command, or one character.
    fn argument(&mut self, depth: usize) -> String {
        while self.characters.get(self.position) == Some(&' ') {
            self.position += 1;
        }
        match self.next() {
            Some('{') if depth < DEEPEST => self.until_closing(depth + 1),
            Some('\\') if depth < DEEPEST => self.command(depth + 1),
            Some('-') => "−".to_string(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    fn command(&mut self, depth: usize) -> String {
        let start = self.position;
        while self.characters.get(self.position).is_some_and(char::is_ascii_alphabetic) {
            self.position += 1;
        }
        if start == self.position {
            // A command of one sign: a space, a line break, or an escaped character.
            return match self.next() {
                Some(',' | ';' | ':' | ' ' | '\\') => " ".to_string(),
                Some('!') | None => String::new(),
                Some('|') => "‖".to_string(),
                Some(other) => other.to_string(),
            };
        }
        let name: String = self.characters[start..self.position].iter().collect();
        match name.as_str() {
            "frac" | "tfrac" | "dfrac" => {
                let above = self.argument(depth);
                let below = self.argument(depth);
                format!("{}/{}", grouped(&above), grouped(&below))
            }
            "sqrt" => format!("√{}", grouped(&self.argument(depth))),
            "hat" | "widehat" => format!("{}\u{302}", self.argument(depth)),
            "bar" | "overline" => format!("{}\u{304}", self.argument(depth)),
            "tilde" | "widetilde" => format!("{}\u{303}", self.argument(depth)),
            "text" | "mathrm" | "mathbf" | "mathit" | "mathsf" | "mathtt" | "boldsymbol" | "mathcal"
            | "mathscr" | "operatorname" | "textbf" | "textit" | "emph" => self.argument(depth),
            "mathbb" => double_struck(&self.argument(depth)),
            "left" | "right" | "big" | "Big" | "bigl" | "bigr" | "Bigl" | "Bigr" | "displaystyle"
            | "limits" => String::new(),
            "quad" | "qquad" => "  ".to_string(),
            other => symbol(other).map_or_else(|| other.to_string(), String::from),
        }
    }
}

fn grouped(text: &str) -> String {
    if text.chars().count() <= 1 || text.chars().all(char::is_alphanumeric) {
        text.to_string()
    } else {
        format!("({text})")
    }
}

fn raised(text: &str) -> String {
    shifted(text, superscript_character).unwrap_or_else(|| format!("^{}", grouped(text)))
}

/// Text as a subscript: in signs of Unicode if it has them all, otherwise after an underscore.
pub(crate) fn lowered(text: &str) -> String {
    shifted(text, subscript_character).unwrap_or_else(|| format!("_{}", grouped(text)))
}

fn shifted(text: &str, character: fn(char) -> Option<char>) -> Option<String> {
    text.chars().map(character).collect()
}

/// The raised form of a character, where Unicode has one that fonts hold.
pub(crate) fn superscript_character(character: char) -> Option<char> {
    Some(match character {
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4'..='9' => char::from_u32(u32::from(character) - u32::from('4') + u32::from('⁴'))?,
        '+' => '⁺',
        '-' | '−' => '⁻',
        '(' => '⁽',
        ')' => '⁾',
        'n' => 'ⁿ',
        'i' => 'ⁱ',
        'T' | '⊤' => 'ᵀ',
        _ => return None,
    })
}

fn subscript_character(character: char) -> Option<char> {
    Some(match character {
        '0'..='9' => char::from_u32(u32::from(character) - u32::from('0') + u32::from('₀'))?,
        '+' => '₊',
        '-' | '−' => '₋',
        'i' => 'ᵢ',
        'j' => 'ⱼ',
        _ => return None,
    })
}

fn double_struck(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            'C' => 'ℂ',
            'N' => 'ℕ',
            'P' => 'ℙ',
            'Q' => 'ℚ',
            'R' => 'ℝ',
            'Z' => 'ℤ',
            other => other,
        })
        .collect()
}

/// The symbols that formulas of this field use, with the command that writes each; the first command is the usual one.
pub(crate) const SYMBOLS: &[(&str, char)] = &[
    ("alpha", 'α'),
    ("beta", 'β'),
    ("gamma", 'γ'),
    ("delta", 'δ'),
    ("varepsilon", 'ε'),
    ("epsilon", 'ε'),
    ("zeta", 'ζ'),
    ("eta", 'η'),
    ("theta", 'θ'),
    ("iota", 'ι'),
    ("kappa", 'κ'),
    ("lambda", 'λ'),
    ("mu", 'μ'),
    ("nu", 'ν'),
    ("xi", 'ξ'),
    ("pi", 'π'),
    ("rho", 'ρ'),
    ("sigma", 'σ'),
    ("tau", 'τ'),
    ("varphi", 'φ'),
    ("phi", 'φ'),
    ("chi", 'χ'),
    ("psi", 'ψ'),
    ("omega", 'ω'),
    ("Gamma", 'Γ'),
    ("Delta", 'Δ'),
    ("Theta", 'Θ'),
    ("Lambda", 'Λ'),
    ("Xi", 'Ξ'),
    ("Pi", 'Π'),
    ("Sigma", 'Σ'),
    ("Phi", 'Φ'),
    ("Psi", 'Ψ'),
    ("Omega", 'Ω'),
    ("le", '≤'),
    ("leq", '≤'),
    ("ge", '≥'),
    ("geq", '≥'),
    ("ne", '≠'),
    ("neq", '≠'),
    ("approx", '≈'),
    ("sim", '∼'),
    ("propto", '∝'),
    ("equiv", '≡'),
    ("ll", '≪'),
    ("gg", '≫'),
    ("times", '×'),
    ("cdot", '·'),
    ("pm", '±'),
    ("infty", '∞'),
    ("nabla", '∇'),
    ("partial", '∂'),
    ("sum", '∑'),
    ("prod", '∏'),
    ("int", '∫'),
    ("in", '∈'),
    ("to", '→'),
    ("rightarrow", '→'),
    ("mapsto", '↦'),
    ("top", '⊤'),
    ("otimes", '⊗'),
    ("odot", '⊙'),
    ("langle", '⟨'),
    ("rangle", '⟩'),
    ("ell", 'ℓ'),
    ("dots", '…'),
    ("ldots", '…'),
    ("cdots", '…'),
    ("circ", '∘'),
    ("star", '⋆'),
    ("prime", '′'),
    ("forall", '∀'),
    ("exists", '∃'),
];

fn symbol(command: &str) -> Option<char> {
    match command {
        "lVert" | "rVert" | "Vert" => Some('‖'),
        "lvert" | "rvert" | "vert" | "mid" => Some('|'),
        "lbrace" => Some('{'),
        "rbrace" => Some('}'),
        _ => SYMBOLS.iter().find(|(name, _)| *name == command).map(|(_, character)| *character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_formulas_read_well() {
        for (source, expected) in [
            (r"\sigma^2 \le L^{-1}", "σ² ≤ L⁻¹"),
            (r"\frac{1}{2}", "1/2"),
            (r"\frac{a+b}{\sqrt{L}}", "(a+b)/(√L)"),
            (r"\mathbb{R}^d", "ℝ^d"),
            (r"T[\mu](z) = V\,\nabla\Lambda_\mu(Uz)", "T[μ](z) = V ∇Λ_μ(Uz)"),
            (r"\lVert x_i \rVert", "‖ xᵢ ‖"),
            (r"\unknown{x}", "unknownx"),
        ] {
            assert_eq!(unicode(source), expected, "{source}");
        }
    }

    #[test]
    fn broken_formulas_are_no_trouble() {
        for source in ["{", "}", "^", "_", "\\", r"\frac", r"\sqrt{", "}}{{", "^^^^"] {
            unicode(source);
        }
        unicode(&"{".repeat(100_000));
        unicode(&"^{".repeat(100_000));
        unicode(&r"\frac".repeat(100_000));
    }
}
