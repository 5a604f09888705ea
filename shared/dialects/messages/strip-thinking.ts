import { type CutItem, cutsOf, withoutSpans } from '../json-cut.ts'
import { atArray, atObject, eachItem, eachMember, keyTable, readName, readSpan, wholeObject } from '../json-members.ts'
import type { Cursor, Span } from '../json-scan.ts'

const TOP = keyTable(['messages'])
const MESSAGE = keyTable(['content'])
const BLOCK = keyTable(['type'])
const THINKING = keyTable(['thinking', 'redacted_thinking'])

/**
 * The body of a messages request without the thinking of earlier turns; every other byte stays. A turn that held nothing
 * else goes with it, since the dialect has no empty turns.
 */
export function withoutThinking(body: Uint8Array): Uint8Array {
  const cuts: Span[] = []
  wholeObject(body, c =>
    eachMember(c, TOP, key => {
      if (key !== 'messages' || !atArray(c)) return
      const turns: CutItem[] = []
      const inside: Span[][] = []
      eachItem(c, () => {
        const start = c.at
        const blocks = atObject(c) ? thinkingIn(c) : []
        if (c.at === start) readSpan(c)
        const drop = blocks.length > 0 && blocks.every(block => block.drop)
        turns.push({ start, end: c.at, drop })
        inside.push(drop ? [] : cutsOf(blocks))
      })
      cuts.push(...cutsOf(turns), ...inside.flat())
    }),
  )
  return withoutSpans(
    body,
    cuts.sort((a, b) => a.start - b.start),
  )
}

/** The blocks of a turn, with those of thinking to be dropped. */
function thinkingIn(c: Cursor): CutItem[] {
  let blocks: CutItem[] = []
  eachMember(c, MESSAGE, key => {
    if (key !== 'content') return
    blocks = []
    if (!atArray(c)) return
    eachItem(c, () => {
      const start = c.at
      let drop = false
      if (atObject(c)) {
        eachMember(c, BLOCK, name => {
          if (name === 'type') drop = readName(c, THINKING) !== undefined
        })
      } else readSpan(c)
      blocks.push({ start, end: c.at, drop })
    })
  })
  return blocks
}
