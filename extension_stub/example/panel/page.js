// @ts-check
/**
 * Making and finding elements of the page. Texts are set as texts: what a model says is no markup.
 */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Partial<HTMLElementTagNameMap[Tag]>} [properties]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/**
 * @param {string} text
 * @param {() => unknown} onClick
 * @param {string} [label] for who cannot see what it stands beside
 */
export function button(text, onClick, label) {
  const element = make('button', { type: 'button', textContent: text });
  if (label !== undefined) element.setAttribute('aria-label', label);
  element.addEventListener('click', onClick);
  return element;
}

/**
 * @template {HTMLElement} [Kind=HTMLElement]
 * @param {string} selector
 * @returns {Kind}
 */
export function find(selector) {
  const element = document.querySelector(selector);
  if (!element) throw new Error(`The page has no ${selector}.`);
  return /** @type {Kind} */ (element);
}
