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

/** A signal that ends with the caller's, or when the other side is silent for too long or says nothing for even longer. */
export function watchSilence(outer: AbortSignal, { firstByteMs, idleMs, contentMs }: Deadlines, who: string) {
  const stop = new AbortController()
  const onOuter = () => stop.abort(outer.reason)
  if (outer.aborted) onOuter()
  outer.addEventListener('abort', onOuter, { once: true })
  const late = (what: string) => () => stop.abort(new StepFailure('timeout', `${who} ${what}`, { transient: true }))
  let timer = setTimeout(late(`sent no answer in ${firstByteMs} ms`), firstByteMs)
  let wordless: ReturnType<typeof setTimeout> | undefined
  const said = () => {
    clearTimeout(wordless)
    wordless = setTimeout(late(`kept its answer open and said nothing for ${contentMs} ms`), contentMs)
  }
  return {
    signal: stop.signal,
    alive(): void {
      if (wordless === undefined) said()
      clearTimeout(timer)
      timer = setTimeout(late(`said nothing more for ${idleMs} ms`), idleMs)
    },
    said,
    /** The call is over, and whatever of it is still open is closed. */
    end(): void {
      clearTimeout(timer)
      clearTimeout(wordless)
      outer.removeEventListener('abort', onOuter)
      stop.abort(new Error('the call is over'))
    },
  }
}
