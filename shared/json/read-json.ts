/**
 * Reads JSON text. It throws what JSON.parse throws.
 *
 * The engine's reader can give a wrong name to a member: it takes the characters of an escaped name as they are written for a name that
 * objects of the same shape have had ("L\n" is read as `L\`; nodejs/node issue 63785). What an escaped name is read as would then depend
 * on what was read before, and hashes and signatures with it. A text that holds such a name is read here.
 */
export function readJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  return escapedName.test(text) ? rebuilt(text) : value
}

/** The last escape of a string, its end and a colon. It also matches inside of some strings, which costs time and nothing else. */
const escapedName = /\\.[^"\\]*"[ \t\r\n]*:/

type Members = { [name: string]: unknown }

/** What a walk over a text comes by; each may throw. */
export interface Passed {
  /** A member, before it is set. */
  member?: (object: Members, name: string) => void
  /** A name, a text, a number or a word, as it is read and as it is written. */
  scalar?: (value: unknown, written: string) => void
  /** A number, as it is read and as it is written; what it gives is set in its place. */
  number?: (value: number, written: string) => unknown
}

/** The value of a text that is JSON: the engine reads the scalars and the names, each by itself. */
export function rebuilt(text: string, passed?: Passed): unknown {
  let root: unknown
  let name: string | undefined
  const open: (unknown[] | Members)[] = []
  const put = (value: unknown) => {
    const parent = open.at(-1)
    if (parent === undefined) root = value
    else if (Array.isArray(parent)) parent.push(value)
    else if (name === undefined) name = String(value)
    else {
      passed?.member?.(parent, name)
      setMember(parent, name, value)
      name = undefined
    }
  }
  for (let at = 0; at < text.length; ) {
    const first = text[at]
    if (first === '{' || first === '[') {
      const container = first === '{' ? {} : []
      put(container)
      open.push(container)
      at += 1
    } else if (first === '}' || first === ']') {
      open.pop()
      at += 1
    } else if (first === undefined || ' \t\r\n,:'.includes(first)) at += 1
    else {
      const end = first === '"' ? endOfString(text, at) : endOfLiteral(text, at)
      const written = text.slice(at, end)
      const value: unknown = JSON.parse(written)
      passed?.scalar?.(value, written)
      put(typeof value === 'number' && passed?.number ? passed.number(value, written) : value)
      at = end
    }
  }
  return root
}

/** An assignment to __proto__ would set the prototype instead of a member. */
function setMember(object: Members, name: string, value: unknown) {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}

function endOfString(text: string, start: number) {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function endOfLiteral(text: string, start: number) {
  let at = start + 1
  while (at < text.length && !' \t\r\n,:]}'.includes(text[at] ?? '')) at += 1
  return at
}
