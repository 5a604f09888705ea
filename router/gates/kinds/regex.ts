import { z } from 'zod'
import { expected, text } from '../../../shared/wire/bounds.ts'
import { whole } from '../../config/table-fields.ts'
import { countChars, firstChars } from '../characters.ts'
import { defineGate, type GateContext } from '../define-gate.ts'
import { verdictOf } from '../verdict.ts'

export interface Patterns {
  readonly must: readonly string[]
  readonly mustNot: readonly string[]
  readonly flags: string
  /** Only this many characters from the beginning are looked at; null looks at the whole text. */
  readonly window: number | null
}

const patterns = z.array(text(1, 10_000), { error: expected('an array of patterns') })

/**
 * Patterns that the text must and must not match. Only in a runner that can be stopped: JavaScript patterns can backtrack
 * for hours, no time-out reaches them on their own thread, and a check for "safe" patterns is wrong in both directions.
 * A host without worker threads therefore refuses this kind when the config is loaded.
 */
export const regex = defineGate({
  kind: 'regex',
  about: 'The text matches patterns, or does not. One pattern at least is needed.',
  keys: {
    must: patterns.default([]),
    must_not: patterns.default([]),
    flags: text(0, 8).default('u'),
    window: whole(1, 100_000_000).optional(),
  },
  words: {
    must: 'Patterns that must match.',
    must_not: 'Patterns that must not match.',
    flags: 'Flags of the patterns: some of i, m, s and one of u, v.',
    window: { about: 'Looks at the first so many characters only.', unset: 'all of them' },
  },
  resolve({ must, must_not, flags, window = null }, context): Patterns {
    checkPatterns({ must, must_not }, flags, context)
    return { must, mustNot: must_not, flags, window }
  },
  build({ must, mustNot, flags, window }, { regexRunner }) {
    if (regexRunner === undefined)
      return {
        code: 'host',
        message:
          'a pattern can take any time, and this host has no worker threads to stop it: use an http gate or run on Node',
      }
    return {
      async run({ choice, tenantId }, signal) {
        const text = window === null ? choice.text : firstChars(choice.text, window)
        return verdictOf(await regexRunner.run({ kind: 'patterns', text, must, mustNot, flags }, signal, tenantId))
      },
    }
  },
  onPrefix({ must, window }) {
    if (window === null || must.length > 0) return undefined
    return {
      stateOf({ text }, known) {
        // An abstention is ignored: the gate is fail-open.
        if (known !== undefined) return known === 'fail' ? 'failed' : 'passed'
        return isWindowFull(text, window) ? 'ready' : 'open'
      },
    }
  },
})

function checkPatterns(lists: { must: string[]; must_not: string[] }, flags: string, context: GateContext): void {
  if (!/^[imsuv]*$/.test(flags) || compileError('', flags) !== undefined) {
    context.report(['flags'], 'expected some of i, m, s and one of u, v, each once')
    return
  }
  if (lists.must.length + lists.must_not.length === 0 && !context.bad.has('must') && !context.bad.has('must_not'))
    context.report(['must'], 'a regex gate takes at least one pattern in "must" or "must_not"')
  for (const [key, list] of Object.entries(lists)) {
    list.forEach((pattern, i) => {
      const error = compileError(pattern, flags)
      if (error !== undefined) context.report([key, i], error)
    })
  }
}

function compileError(pattern: string, flags: string): string | undefined {
  try {
    new RegExp(pattern, flags)
    return undefined
  } catch (error) {
    // The engine's message repeats the pattern; what is wrong with it stands after the last colon.
    const text = error instanceof Error ? error.message : String(error)
    return `not a regular expression: ${text.slice(text.lastIndexOf(': ') + 2).toLowerCase()}`
  }
}

/** A text that ends in the first half of a character does not have that character yet. */
function isWindowFull(text: string, window: number): boolean {
  const last = text.charCodeAt(text.length - 1)
  const whole = last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text
  return countChars(whole, window) >= window
}
