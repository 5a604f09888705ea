export type Inline =
  | { is: 'text' | 'code'; text: string }
  | { is: 'strong' | 'em'; inside: Inline[] }
  | { is: 'link'; href: string; inside: Inline[] }
  | { is: 'image'; text: string; href: string }

export type Block =
  | { is: 'paragraph' | 'quote'; inside: Inline[] }
  | { is: 'heading'; level: number; inside: Inline[] }
  | { is: 'code'; language: string; text: string }
  | { is: 'list'; ordered: boolean; items: Inline[][] }
  | { is: 'rule' }

/** A mark without its end is looked for no farther, so that a text of marks alone is read in one pass. */
const LOOK_AHEAD = 1000
const MOST_DEPTH = 4

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,30})\s*$/
const HEADING = /^ {0,3}(#{1,6}) (.*)$/
const ITEM = /^ {0,8}(?:([-*+])|(\d{1,9})[.)]) (.*)$/
const QUOTE = /^ {0,3}> ?(.*)$/
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/

/** The part of Markdown that models write, as a tree. Nothing in it is markup: HTML stays the text that it is. */
export function markdownBlocks(text: string): Block[] {
  const lines = text.split('\n')
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!
    const [, fence, language = ''] = FENCE.exec(line) ?? []
    if (fence !== undefined) {
      let to = at + 1
      while (to < lines.length && !closes(lines[to]!, fence)) to++
      blocks.push({ is: 'code', language, text: lines.slice(at + 1, to).join('\n') })
      at = to + 1
      continue
    }
    if (line.trim() === '') {
      at++
      continue
    }
    const [block, next] = lineBlock(lines, at)
    blocks.push(block)
    at = next
  }
  return blocks
}

function closes(line: string, fence: string): boolean {
  const own = line.trim()
  return own.startsWith(fence) && own.replaceAll(fence[0]!, '') === ''
}

/** The block that begins with a line which is not empty, and the line behind it. */
function lineBlock(lines: readonly string[], at: number): [Block, number] {
  const line = lines[at]!
  const heading = HEADING.exec(line)
  if (heading) return [{ is: 'heading', level: heading[1]!.length, inside: inline(heading[2]!) }, at + 1]
  if (RULE.test(line)) return [{ is: 'rule' }, at + 1]
  const item = ITEM.exec(line)
  if (item) return list(lines, at, item[2] !== undefined)
  const isQuote = QUOTE.test(line)
  let to = at
  while (to < lines.length && (isQuote ? QUOTE.test(lines[to]!) : to === at || isPlain(lines[to]!))) to++
  const own = lines.slice(at, to).map(one => (isQuote ? (QUOTE.exec(one)?.[1] ?? '') : one))
  return [{ is: isQuote ? 'quote' : 'paragraph', inside: inline(own.join('\n')) }, to]
}

function list(lines: readonly string[], from: number, ordered: boolean): [Block, number] {
  const items: string[] = []
  let at = from
  for (; at < lines.length; at++) {
    const line = lines[at]!
    const item = ITEM.exec(line)
    if (item && (item[2] !== undefined) === ordered) items.push(item[3]!)
    else if (!item && /^ {2,}\S/.test(line)) items[items.length - 1] += `\n${line.trim()}`
    else break
  }
  return [{ is: 'list', ordered, items: items.map(text => inline(text)) }, at]
}

const isPlain = (line: string): boolean =>
  line.trim() !== '' && ![FENCE, HEADING, ITEM, QUOTE, RULE].some(form => form.test(line))

/** Marks inside of a line, each with what it encloses. */
export function inline(text: string, depth = 0): Inline[] {
  const found: Inline[] = []
  let plain = 0
  let at = 0
  const take = (one: Inline, to: number) => {
    if (at > plain) found.push({ is: 'text', text: text.slice(plain, at) })
    found.push(one)
    plain = to
    at = to
  }
  while (at < text.length) {
    const mark = depth < MOST_DEPTH ? readMark(text, at, depth) : undefined
    if (mark) take(...mark)
    else at++
  }
  if (plain < text.length) found.push({ is: 'text', text: text.slice(plain) })
  return found
}

function readMark(text: string, at: number, depth: number): [Inline, number] | undefined {
  switch (text[at]) {
    case '`': {
      const end = near(text, '`', at + 1)
      return end > at + 1 ? [{ is: 'code', text: text.slice(at + 1, end) }, end + 1] : undefined
    }
    case '*':
    case '_':
      return emphasis(text, at, depth)
    case '!':
    case '[':
      return link(text, at, depth)
    default:
      return undefined
  }
}

function emphasis(text: string, at: number, depth: number): [Inline, number] | undefined {
  const letter = text[at]!
  const isStrong = text[at + 1] === letter
  const mark = isStrong ? letter + letter : letter
  const from = at + mark.length
  // Inside of a word it is part of a name, as in snake_case or 2*3.
  if (/\s/.test(text[from] ?? ' ') || (at > 0 && /\w/.test(text[at - 1]!))) return undefined
  const end = near(text, mark, from)
  if (end <= from || /\s/.test(text[end - 1]!) || /\w/.test(text[end + mark.length] ?? ' ')) return undefined
  const inside = inline(text.slice(from, end), depth + 1)
  return [{ is: isStrong ? 'strong' : 'em', inside }, end + mark.length]
}

function link(text: string, at: number, depth: number): [Inline, number] | undefined {
  const isImage = text[at] === '!'
  const from = at + (isImage ? 2 : 1)
  if (isImage && text[at + 1] !== '[') return undefined
  const end = near(text, '](', from)
  const close = end === -1 ? -1 : near(text, ')', end + 2)
  if (close === -1) return undefined
  const words = text.slice(from, end)
  const href = text.slice(end + 2, close).trim()
  if (words.includes('\n\n') || /\s/.test(href)) return undefined
  if (isImage) return [{ is: 'image', text: words, href }, close + 1]
  // Only where a browser cannot be made to run something.
  if (!/^https?:\/\/[^\s]/i.test(href)) return undefined
  return [{ is: 'link', href, inside: inline(words, depth + 1) }, close + 1]
}

/** Where something stands in the next characters, or -1. */
function near(text: string, what: string, from: number): number {
  const found = text.slice(from, from + LOOK_AHEAD).indexOf(what)
  return found === -1 ? -1 : from + found
}
