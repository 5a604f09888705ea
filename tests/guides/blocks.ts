export interface Block {
  /** Where its fence opens, counted from 1. */
  line: number
  text: string
  use: Use
}

/** What becomes of a block: it is run, it is compared with what the run before it printed, it is a file, or it is only shown. */
export type Use =
  | { kind: 'run' }
  | { kind: 'prints' }
  | { kind: 'file'; name: string }
  | { kind: 'shown'; reason: string }

const FENCE = /^(?<indent> *)(?<marks>`{3,})(?<info>.*)$/
const NOT_RUN = /^<!-- not run: (?<reason>.+) -->$/

/**
 * The fenced blocks of a document. A `sh` block is run. A `text` or `json` block after one is what that one prints. A block with
 * `file=NAME` after its language is that file. In a `console` block the lines behind `$ ` are run and the others are printed.
 * A `mermaid` block is a drawing. Anything else has to say why it is not run, in a comment on the line before: `<!-- not run: … -->`.
 */
export function blocksOf(markdown: string): Block[] {
  const lines = markdown.split('\n')
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; at++) {
    const { indent = '', marks, info = '' } = FENCE.exec(lines[at]!)?.groups ?? {}
    if (marks === undefined) continue
    const end = lines.findIndex((line, index) => index > at && line.trim() === marks)
    if (end === -1) throw new Error(`line ${at + 1}: this block has no end; close it with ${marks}`)
    const body = lines.slice(at + 1, end).map(line => line.slice(line.startsWith(indent) ? indent.length : 0))
    const reason = NOT_RUN.exec(lines[at - 1]?.trim() ?? '')?.groups?.reason
    blocks.push(...read(at + 1, info.trim(), body, reason, blocks.at(-1)))
    at = end
  }
  return blocks
}

function read(line: number, info: string, body: string[], reason: string | undefined, before?: Block): Block[] {
  const text = body.join('\n')
  if (reason !== undefined) return [{ line, text, use: { kind: 'shown', reason } }]
  const [language = '', ...words] = info.split(/\s+/)
  const name = words.find(word => word.startsWith('file='))?.slice('file='.length)
  if (name !== undefined) return [{ line, text, use: { kind: 'file', name } }]
  if (language === 'mermaid') return [{ line, text, use: { kind: 'shown', reason: 'a drawing' } }]
  if (language === 'sh') return [{ line, text, use: { kind: 'run' } }]
  if (language === 'console') return conversation(line, body)
  if ((language === 'text' || language === 'json') && before?.use.kind === 'run') {
    return [{ line, text, use: { kind: 'prints' } }]
  }
  throw new Error(
    `line ${line}: a block "${info}" is neither run nor compared nor a file; say why in a comment <!-- not run: … --> before it`,
  )
}

function conversation(line: number, body: string[]): Block[] {
  const blocks: Block[] = []
  for (const [index, said] of body.entries()) {
    const kind = said.startsWith('$ ') ? 'run' : 'prints'
    const text = kind === 'run' ? said.slice(2) : said
    const last = blocks.at(-1)
    if (kind === 'prints' && last?.use.kind === 'prints') last.text += `\n${text}`
    else blocks.push({ line: line + 1 + index, text, use: { kind } })
  }
  return blocks
}
