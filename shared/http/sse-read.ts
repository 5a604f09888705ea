/** One event of a stream: the exact bytes that carried it, and what they say. */
export interface SseFrame {
  /** From the end of the frame before to the end of the blank line; all frames joined are the stream. */
  readonly raw: Uint8Array
  /** The last `event:` line; undefined when there was none or it was empty. */
  readonly event: string | undefined
  /** The `data:` lines joined by a line feed; undefined for a frame of comments only. */
  readonly data: string | undefined
  /** The data held bytes that are not UTF-8; they were replaced by U+FFFD. */
  readonly badUtf8: boolean
}

export interface SseReaderOptions {
  /** A frame that grows beyond this stops the reader. */
  readonly maxFrameBytes: number
}

/** `data:` lines of a frame: to know where one stands takes many times the bytes of one that is empty. */
const MOST_LINES = 250_000
const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const BOM = [0xef, 0xbb, 0xbf] as const

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { ignoreBOM: true })

interface Line {
  readonly start: number
  readonly end: number
}

/**
 * Reads server-sent events from bytes as they come, by the WHATWG rules for lines and fields; `id` and `retry` are ignored.
 * A frame is given out at the last byte of its blank line: after a CR it does not wait for a possible LF, which then opens
 * the bytes of the next frame. Each byte is looked at once, and an unfinished frame is kept in a buffer that doubles.
 */
export function sseReader({ maxFrameBytes }: SseReaderOptions) {
  let held: Uint8Array = new Uint8Array(0)
  /** The unfinished frame: a part of `held`, or of the chunk that is being read. */
  let view: Uint8Array = held
  let scanned = 0
  let lineStart = 0
  let hasLines = false
  let hasFields = false
  let afterCr = false
  let atStreamStart = true
  let failed = false
  let event: Line | undefined
  let data: Line[] = []

  /** Keeps the rest of the view in `held`, so that the next chunk can follow it. */
  function keep(rest: Uint8Array): void {
    if (rest.length > held.length) held = new Uint8Array(Math.max(rest.length, 256))
    held.set(rest)
    view = held.subarray(0, rest.length)
  }

  function append(chunk: Uint8Array): void {
    const length = view.length + chunk.length
    if (length > held.length) {
      const larger = new Uint8Array(Math.max(length, held.length * 2))
      larger.set(view)
      held = larger
    }
    held.set(chunk, view.length)
    view = held.subarray(0, length)
  }

  function endLine(end: number): void {
    const start = lineStart
    hasLines = true
    let colon = start
    while (colon < end && view[colon] !== COLON) colon += 1
    if (colon === start) return
    hasFields = true
    if (isField(view, start, colon, 'data')) data.push(valueAfter(view, colon, end))
    else if (isField(view, start, colon, 'event')) event = valueAfter(view, colon, end)
  }

  function takeFrame(start: number, end: number, copy: boolean): SseFrame {
    const raw = copy ? view.slice(start, end) : view.subarray(start, end)
    const name = event === undefined ? '' : decode(view.subarray(event.start, event.end)).text
    const text = data.length === 0 ? undefined : decode(joinLines(view, data))
    event = undefined
    data = []
    hasLines = false
    hasFields = false
    return { raw, event: name === '' ? undefined : name, data: text?.text, badUtf8: text?.bad ?? false }
  }

  return {
    /** The frames that this chunk completes. After a failure there are none. */
    push(chunk: Uint8Array): SseFrame[] {
      if (failed || chunk.length === 0) return []
      const copy = view.length > 0
      if (copy) append(chunk)
      else view = chunk
      const frames: SseFrame[] = []
      let frameStart = 0
      if (atStreamStart) {
        const start = afterMark(view)
        if (start === undefined) {
          if (!copy) keep(view)
          return frames
        }
        scanned = lineStart = start
        atStreamStart = false
      }
      const bytes = view
      for (let at = scanned; at < bytes.length; at += 1) {
        const b = bytes[at]!
        if (b > CR || (b !== LF && b !== CR)) continue
        if (at + 1 - frameStart > maxFrameBytes) break
        if (b === LF && afterCr && at === lineStart) {
          lineStart = at + 1
          afterCr = false
          continue
        }
        afterCr = b === CR
        if (at > lineStart) endLine(at)
        else if (hasLines) {
          frames.push(takeFrame(frameStart, at + 1, copy))
          frameStart = at + 1
        }
        lineStart = at + 1
      }
      const rest = view.length - frameStart
      if (rest > maxFrameBytes || data.length > MOST_LINES) {
        failed = true
        view = held = new Uint8Array(0)
        data = []
        return frames
      }
      scanned = rest
      lineStart -= frameStart
      if (frameStart > 0) {
        data = data.map(line => moved(line, frameStart))
        event &&= moved(event, frameStart)
      }
      if (!copy || frameStart > 0) keep(view.subarray(frameStart))
      return frames
    },

    /** A frame grew beyond the limit, or has too many lines; nothing more will be read. */
    get tooLarge(): boolean {
      return failed
    },

    /** To be asked after the last chunk: bytes of a frame that never saw its blank line. */
    rest(): { readonly bytes: Uint8Array; readonly incomplete: boolean } {
      const partial = view.subarray(lineStart)
      const incomplete = failed || hasFields || (partial.length > 0 && partial[0] !== COLON)
      return { bytes: view.slice(), incomplete }
    },
  }
}

/** Where the text of a stream starts: behind a byte-order mark, or at 0. Undefined while the bytes may be the first of a mark. */
function afterMark(view: Uint8Array): number | undefined {
  let at = 0
  while (at < BOM.length && at < view.length && view[at] === BOM[at]) at += 1
  if (at === BOM.length) return at
  return at === view.length ? undefined : 0
}

/** The value of a field: what follows its colon and one space. */
function valueAfter(view: Uint8Array, colon: number, end: number): Line {
  const start = Math.min(colon + 1, end)
  return { start: start < end && view[start] === SPACE ? start + 1 : start, end }
}

const moved = ({ start, end }: Line, by: number): Line => ({ start: start - by, end: end - by })

function isField(view: Uint8Array, start: number, end: number, name: 'data' | 'event'): boolean {
  if (end - start !== name.length) return false
  for (let i = 0; i < name.length; i += 1) if (view[start + i] !== name.charCodeAt(i)) return false
  return true
}

/** The value bytes of one line as they are, of several with a line feed between. */
function joinLines(view: Uint8Array, lines: readonly Line[]): Uint8Array {
  const first = lines[0]!
  if (lines.length === 1) return view.subarray(first.start, first.end)
  const joined = new Uint8Array(lines.reduce((sum, line) => sum + line.end - line.start + 1, -1))
  let at = 0
  for (const line of lines) {
    if (at > 0 || line !== first) joined[at++] = LF
    joined.set(view.subarray(line.start, line.end), at)
    at += line.end - line.start
  }
  return joined
}

function decode(bytes: Uint8Array): { text: string; bad: boolean } {
  try {
    return { text: strict.decode(bytes), bad: false }
  } catch {
    return { text: lenient.decode(bytes), bad: true }
  }
}
