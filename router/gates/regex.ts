import { firstChars } from './characters.ts'
import type { GateRun } from './gate.ts'
import type { RegexConfig } from './gate-config.ts'
import type { RegexRunner } from './regex-runner.ts'
import { verdictOf } from './schema.ts'

/**
 * Patterns that the text must and must not match. Only in a runner that can be stopped: JavaScript patterns can backtrack
 * for hours, no time-out reaches them on their own thread, and a check for "safe" patterns is wrong in both directions.
 * A host without worker threads therefore refuses this kind when the config is loaded.
 */
export function regexGate({ must, mustNot, flags, window }: RegexConfig, runner: RegexRunner): GateRun {
  return async ({ choice: { text } }, signal) =>
    verdictOf(await runner.run({ kind: 'patterns', text: inWindow(text, window), must, mustNot, flags }, signal))
}

const inWindow = (text: string, window: number | null): string => (window === null ? text : firstChars(text, window))

/** What is wrong with the patterns, if anything. */
export function patternProblem({ must, mustNot, flags }: RegexConfig): string | undefined {
  if (must.length + mustNot.length === 0) return 'it has no patterns: give "must", "must_not" or both'
  for (const [name, patterns] of Object.entries({ must, must_not: mustNot })) {
    for (const [i, pattern] of patterns.entries()) {
      try {
        new RegExp(pattern, flags)
      } catch (error) {
        return `${name}[${i}] is not a regular expression: ${error instanceof Error ? error.message : String(error)}`
      }
    }
  }
  return undefined
}
