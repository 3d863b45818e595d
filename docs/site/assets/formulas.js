// Renders the formulas of a page with KaTeX. Arithmatex has marked those of the text and kept their delimiters, \( \) and \[ \];
// headings appear again in the navigation, without marks.
const show = (source, element) => {
  const displayMode = source.startsWith("\\[");
  katex.render(source.replace(/^\\[[(]|\\[\])]$/g, ""), element, { displayMode, throwOnError: false });
};

document.addEventListener("DOMContentLoaded", () => {
  for (const element of document.querySelectorAll(".arithmatex")) show(element.textContent.trim(), element);
  for (const entry of document.querySelectorAll(".md-nav .md-ellipsis, .md-footer .md-ellipsis, .md-header .md-ellipsis")) {
    const parts = entry.textContent.split(/(\\\(.*?\\\))/);
    if (parts.length === 1) continue;
    entry.replaceChildren(...parts.map((part) => {
      const span = document.createElement("span");
      if (part.startsWith("\\(")) show(part, span);
      else span.textContent = part;
      return span;
    }));
  }
});
