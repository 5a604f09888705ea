import type { ToolCall } from '../execution/models/model.ts'
import type { DeltaSink } from '../execution/turn.ts'

/** Between two answers of one turn, where the first came with calls. */
const BETWEEN = '\n\n'
/** Beyond so many pieces they are merged, so that a long turn can be replayed to a late reader. */
const SMALL_PIECES = 1024
const GATHERED = 256

export interface TurnText extends DeltaSink {
  /** Emits all text that was not emitted yet; returns the text of the turn. */
  finish(): { text: string; toolCalls: readonly ToolCall[] }
  /** Another claim of the same run: its recorded answers will be said again. */
  resume(): void
}

export interface TurnTextDeps {
  /** The next piece; `seq` 1 begins the text of the turn anew. */
  tell: (seq: number, piece: string) => void
  /** What was told is void. */
  takeBack: () => void
  /** Only the last answer is the text of the turn: the ones before it did not fit the schema. */
  lastOnly: boolean
  /** Another process has had the turn before: what it may have told is void. */
  anew?: boolean
}

/** What a turn says, as pieces that joined are its text, whatever attempts, restarts and calls lie between. */
export function turnText({ tell, takeBack, lastOnly, anew = false }: TurnTextDeps): TurnText {
  let recorded = ''
  let told = ''
  let seq = 0
  let gathering = ''
  /** Half of a surrogate pair has no UTF-8 form of its own. */
  let half = ''
  let speaking = false
  let toolCalls: ToolCall[] = []

  function flush(): void {
    if (gathering === '') return
    told += gathering
    tell(++seq, gathering)
    gathering = ''
  }

  function say(text: string): void {
    gathering += text
    if (seq < SMALL_PIECES || gathering.length >= GATHERED) flush()
  }

  /** What was told becomes the beginning of `text`, or is taken back. */
  function settle(text: string): void {
    half = ''
    flush()
    const isVoid = anew || !text.startsWith(told)
    anew = false
    if (isVoid) {
      takeBack()
      told = ''
      seq = 0
      // Nothing takes its place yet, and readers must not go on showing it.
      if (text === '') tell(++seq, '')
    }
    gathering = text.slice(told.length)
    flush()
  }

  return {
    begin() {
      if (lastOnly) recorded = ''
      settle(recorded)
      speaking = false
    },
    delta(text) {
      if (text === '') return
      if (!speaking && recorded !== '') say(BETWEEN)
      speaking = true
      const whole = half + text
      half = /[\uD800-\uDBFF]$/.test(whole) ? whole.slice(-1) : ''
      say(half === '' ? whole : whole.slice(0, -1))
    },
    said(answer) {
      toolCalls.push(...answer.toolCalls)
      if (lastOnly || recorded === '') recorded = answer.text
      else if (answer.text !== '') recorded += BETWEEN + answer.text
      // A recorded answer is said again after a restart, when more than that may have been told already.
      if (recorded.startsWith(told + gathering)) settle(recorded)
    },
    finish() {
      settle(recorded)
      return { text: recorded, toolCalls }
    },
    resume() {
      recorded = ''
      toolCalls = []
    },
  }
}
