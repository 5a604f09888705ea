/** The lines of a start-up file are not what this program left: it changes nothing rather than guess. */
export class BlockError extends Error {
  override name = 'BlockError'
}

/** How a file was before the block came, so that taking it out gives the very same bytes back. */
interface Before {
  newFile: boolean
  /** Folders that were made for the file. */
  newFolders: number
  /** The last line had no end, and got one. */
  openLine: boolean
}

interface Block {
  start: number
  end: number
  before: Before
}

export interface Removed {
  /** Undefined when the file itself came with the block and holds nothing else. */
  text: string | undefined
  /** Folders above the file that came with it. */
  newFolders: number
}

const BEGIN = '# >>> waybill router >>>'
const END = '# <<< waybill router <<<'
// An editor may have changed the line ends of the whole file.
const MARK = /^# (?:>>> waybill router >>>(?: \((.*)\))?|<<< waybill router <<<)\r?$/gm

/**
 * A text with the lines between our marks, at its end or in the place of the ones before. Texts hold one character for each byte of the
 * file, so that whatever else is in it comes through; `undefined` is a file that is not there.
 */
export function withBlock(text: string | undefined, lines: readonly string[], newFolders = 0): string {
  const [old, second] = blocksOf(text ?? '')
  if (second !== undefined)
    throw new BlockError('holds the lines of `router onboard` twice: run `router offboard` first')
  if (text !== undefined && old !== undefined)
    return text.slice(0, old.start) + blockText(lines, old.before) + text.slice(old.end)
  const openLine = text !== undefined && text !== '' && !text.endsWith('\n')
  return `${text ?? ''}${openLine ? '\n' : ''}${blockText(lines, { newFile: text === undefined, newFolders, openLine })}`
}

/** A text without our lines; the same text when there are none. */
export function withoutBlock(text: string): Removed {
  let rest = text
  let from: Before | undefined
  for (const { start, end, before } of blocksOf(text).reverse()) {
    const [above, below] = [rest.slice(0, start), rest.slice(end)]
    // Where something follows by now, the line end that we gave keeps the two apart.
    const closed = before.openLine && below === '' && above.endsWith('\n')
    rest = (closed ? above.slice(0, -1) : above) + below
    from = before
  }
  if (from?.newFile && rest === '') return { text: undefined, newFolders: from.newFolders }
  return { text: rest, newFolders: 0 }
}

export function hasBlock(text: string): boolean {
  return blocksOf(text).length > 0
}

function blockText(lines: readonly string[], before: Before): string {
  return [beginLine(before), ...lines, END, ''].join('\n')
}

function beginLine({ newFile, newFolders, openLine }: Before): string {
  const notes = [
    ...(newFile ? ['new file'] : []),
    ...(newFolders > 0 ? [`${newFolders} new folders`] : []),
    ...(openLine ? ['line end added'] : []),
  ]
  return notes.length === 0 ? BEGIN : `${BEGIN} (${notes.join(', ')})`
}

function blocksOf(text: string): Block[] {
  const found: Block[] = []
  let open: Omit<Block, 'end'> | undefined
  for (const { 0: line, 1: notes = '', index } of text.matchAll(MARK)) {
    const begins = line.startsWith(BEGIN)
    if (begins === (open !== undefined))
      throw new BlockError(`holds a "${begins ? BEGIN : END}" without its counterpart: repair it by hand`)
    if (open === undefined) open = { start: index, before: beforeOf(notes) }
    else {
      // With its line end, unless it was the last and lost it.
      found.push({ ...open, end: Math.min(text.length, index + line.length + 1) })
      open = undefined
    }
  }
  if (open !== undefined) throw new BlockError(`holds a "${BEGIN}" without its counterpart: repair it by hand`)
  return found
}

function beforeOf(notes: string): Before {
  return {
    newFile: notes.includes('new file'),
    newFolders: Number(/(\d+) new folders/.exec(notes)?.[1] ?? 0),
    openLine: notes.includes('line end added'),
  }
}
