/**
 * What is run inside of pages, in a world of its own: the page's scripts cannot change what these see of the language and the
 * document's methods. Each is a function, by its source. What comes back is bounded here and read with a schema there.
 */
export const READ = `function (most) {
  const text = document.body ? document.body.innerText : ''
  return { url: location.href.slice(0, 2048), title: document.title.slice(0, 500), text: text.slice(0, most), cut: text.length > most }
}`

/** Where a click lands: in the middle of what is seen of the element. A link opens here and not in a window that does not exist. */
export const LOCATE = `function (selector) {
  const element = document.querySelector(selector)
  if (!element) return { found: false }
  element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })
  for (const one of [element.closest('a'), element.form]) if (one) one.removeAttribute('target')
  const box = element.getBoundingClientRect()
  return { found: true, seen: box.width > 0 && box.height > 0, x: box.left + box.width / 2, y: box.top + box.height / 2 }
}`

/** Ready to be typed into, with what stands in it selected; a list is set to the option of that value or text. */
export const FOCUS = `function (selector, text) {
  const element = document.querySelector(selector)
  if (!element) return { found: false }
  element.scrollIntoView({ block: 'center', behavior: 'instant' })
  if (element instanceof HTMLSelectElement) {
    const option = [...element.options].find(one => one.value === text || one.text.trim() === text)
    if (!option) return { found: true, chosen: false }
    element.value = option.value
    element.dispatchEvent(new Event('input', { bubbles: true }))
    element.dispatchEvent(new Event('change', { bubbles: true }))
    return { found: true, chosen: true }
  }
  if (element.form) element.form.removeAttribute('target')
  element.focus()
  if (element.select) element.select()
  return { found: true, focused: document.activeElement === element }
}`

export const EXTRACT = `function (selector, attribute, mostItems, mostText) {
  const all = [...document.querySelectorAll(selector)]
  const items = []
  let left = mostText
  for (const element of all.slice(0, mostItems)) {
    const absolute = attribute === 'href' || attribute === 'src' ? element[attribute] : undefined
    const value = attribute ? (typeof absolute === 'string' ? absolute : element.getAttribute(attribute)) : element.innerText
    const text = String(value ?? element.textContent ?? '')
    items.push(text.slice(0, left))
    left -= text.length
    if (left <= 0) break
  }
  return { count: all.length, items, cut: left < 0 || items.length < all.length }
}`
