import { StepFailure } from '../../execution/failure.ts'

export interface Deadlines {
  /** From the call to the head of its answer. */
  firstByteMs: number
  /** Between two pieces of an answer. */
  idleMs: number
  /** Between two pieces that say something: a comment, a ping and an empty delta do not. */
  contentMs: number
}

/** A model may think for minutes before it says a word. */
export const DEADLINES: Deadlines = { firstByteMs: 300_000, idleMs: 120_000, contentMs: 600_000 }

/** A timer that is so late says that this process itself stood still: it was suspended, or its machine was. */
const STOOD_STILL_MS = 1000
/** So long what arrived meanwhile has to be read. */
const CATCH_UP_MS = 1000

/** A signal that ends with the caller's, or when the other side is silent for too long or says nothing for even longer. */
export function watchSilence(outer: AbortSignal, { firstByteMs, idleMs, contentMs }: Deadlines, who: string) {
  const stop = new AbortController()
  const onOuter = () => stop.abort(outer.reason)
  if (outer.aborted) onOuter()
  outer.addEventListener('abort', onOuter, { once: true })
  const timers: Partial<Record<'silent' | 'wordless', ReturnType<typeof setTimeout>>> = {}
  const after = (which: keyof typeof timers, ms: number, what: string) => {
    clearTimeout(timers[which])
    const due = performance.now() + ms
    const giveUp = () => stop.abort(new StepFailure('timeout', `${who} ${what} ${ms} ms`, { transient: true }))
    timers[which] = setTimeout(() => {
      if (performance.now() - due < STOOD_STILL_MS) giveUp()
      else timers[which] = setTimeout(giveUp, CATCH_UP_MS)
    }, ms)
  }
  const said = () => after('wordless', contentMs, 'kept its answer open and said nothing for')
  after('silent', firstByteMs, 'sent no answer in')
  return {
    signal: stop.signal,
    alive(): void {
      if (timers.wordless === undefined) said()
      after('silent', idleMs, 'said nothing more for')
    },
    said,
    giveUp: (reason: StepFailure) => stop.abort(reason),
    /** The call is over, and whatever of it is still open is closed. */
    end(): void {
      clearTimeout(timers.silent)
      clearTimeout(timers.wordless)
      outer.removeEventListener('abort', onOuter)
      stop.abort(new Error('the call is over'))
    },
  }
}

/** Shorter answers are not given up for the room of others. */
const MOST_SPARED_BYTES = 256 * 1024

export type AnswerRoom = ReturnType<typeof answerRoom>

/** Answers that are read at a time hold at most so many bytes together: where they would hold more, the longest of them is given up. */
export function answerRoom(most: number) {
  const open = new Set<{ bytes: number; giveUp: (most: number) => void }>()
  let together = 0
  return {
    enter(giveUp: (most: number) => void) {
      const own = { bytes: 0, giveUp }
      open.add(own)
      const leave = (one = own) => {
        if (open.delete(one)) together -= one.bytes
      }
      return {
        add(bytes: number): void {
          if (!open.has(own)) return
          own.bytes += bytes
          together += bytes
          if (together <= most) return
          let longest = own
          for (const one of open) if (one.bytes > longest.bytes) longest = one
          if (longest.bytes <= MOST_SPARED_BYTES) return
          leave(longest)
          longest.giveUp(most)
        },
        leave: () => leave(),
      }
    },
  }
}
