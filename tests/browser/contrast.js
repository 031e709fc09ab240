// The contrast of every text and every cell of a matrix to what is painted below it, by WCAG 2.2.
// The whole page has to be in the viewport: what is below a point is asked of the browser.
() => {
  const channels = (color) => {
    const [r, g, b, a = 1] = (color.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
    return color === "none" || color === "transparent" ? [0, 0, 0, 0] : [r, g, b, a];
  };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const drawn = (element) => element instanceof SVGElement && !(element instanceof SVGSVGElement);
  const painted = (element) => {
    const style = getComputedStyle(element);
    return channels(drawn(element) ? style.fill : style.backgroundColor);
  };
  const below = (element, x, y) => {
    const stack = document.elementsFromPoint(x, y);
    const at = stack.indexOf(element);
    const rest = at < 0 ? stack : stack.slice(at + (element.tagName === "text" || element.tagName === "rect" ? 1 : 0));
    const ground = rest.find((entry) => entry.tagName !== "text" && painted(entry)[3] > 0.99);
    return ground ? painted(ground) : [255, 255, 255, 1];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!node.data.trim() || ["TITLE", "CAPTION"].includes(element.tagName.toUpperCase()) || element.closest("caption,.skip")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getClientRects()[0];
    if (!box || !box.width) continue;
    const style = getComputedStyle(element);
    const ink = channels(drawn(element) ? style.fill : style.color);
    found.push({kind: "text", what: node.data.trim().slice(0, 60), ratio: ratio(ink, below(element, box.x + 1, box.y + box.height / 2))});
  }
  for (const cell of document.querySelectorAll("svg .heard, svg .leak, svg .idle, svg .pad, svg .deaf")) {
    const box = cell.getBoundingClientRect();
    if (!box.width) continue;
    const style = getComputedStyle(cell);
    const ink = channels(cell.classList.contains("deaf") ? style.stroke : style.fill);
    const page = cell.closest("figure, body");
    found.push({kind: "picture", what: cell.getAttribute("class"), ratio: ratio(ink, painted(page))});
  }
  return found;
}
