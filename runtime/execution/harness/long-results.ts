import { utf8 } from '../../../shared/sign/bytes.ts'
import { canonicalize } from '../../../shared/sign/jcs.ts'
import { StepFailure } from '../failure.ts'
import { type History, outputOf } from '../journal/history.ts'
import { withoutImages } from '../models/model.ts'
import type { ExposedTool } from '../tools/exposed-tool.ts'

export const READ_RESULT = 'read_result'

/** Where nothing is known about a model's window, most have at least this. */
export const DEFAULT_CONTEXT = 128_000
const CHARS_PER_TOKEN = 4
/** Of the window, for all results of one turn: with it a conversation that is nearly full can still be shortened in one call. */
const SHARE = 0.15
const LEAST_CHARS = 2000
const MOST_CHARS = 100_000
const HEAD = 2 / 3

/** So many characters of each result of a turn with so many calls go to the model. */
export function roomOf(contextTokens = DEFAULT_CONTEXT, calls = 1): number {
  const share = Math.floor((contextTokens * CHARS_PER_TOKEN * SHARE) / Math.max(1, calls))
  return Math.min(MOST_CHARS, Math.max(LEAST_CHARS, share))
}

/** What of a long result goes to the model: its head and its tail, and how the rest is read. */
export function cut(content: string, result: string, room: number): string {
  if (content.length <= room) return content
  const head = content.slice(0, Math.floor(room * HEAD)).toWellFormed()
  const tail = content.slice(content.length - Math.floor(room * (1 - HEAD))).toWellFormed()
  const bytes = utf8(content).length
  const lines = content.split('\n').length
  const left = bytes - utf8(head).length - utf8(tail).length
  return `${head}\n[… ${left} of ${bytes} bytes (${lines} lines) left out: ${READ_RESULT} with result "${result}" reads any part …]\n${tail}`
}

const decoder = new TextDecoder()

/** The text of a result as the model was to get it: the same after a restart, which reads its members in the order of the journal. */
export const textOf = (output: unknown): string => (typeof output === 'string' ? output : canonicalize(output))

/** Reads parts of results that were too long to be given whole. They stand in the journal, so a restart reads the same. */
export function readResultTool({ steps }: History, room: number): ExposedTool {
  const whole = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
  return {
    name: READ_RESULT,
    kind: 'tool',
    family: 'tools',
    needsApproval: false,
    description: `Reads a part of an earlier result that was too long to be given whole: lines, or bytes where its lines are long. Gives at most ${room} characters.`,
    parameters: {
      type: 'object',
      properties: {
        result: { type: 'string', description: 'Which result, as the note in it says.' },
        fromLine: { ...whole, description: 'The first line, counted from 1.' },
        lines: { ...whole, description: 'How many lines.' },
        fromByte: { ...whole, minimum: 0, description: 'The first byte, counted from 0.' },
        bytes: { ...whole, description: 'How many bytes.' },
      },
      required: ['result'],
      additionalProperties: false,
    },
    effect: () => 'read',
    onInterrupted: () => 'retry',
    async call({ result, fromLine, lines, fromByte, bytes }) {
      const state = steps.get(String(result))
      if (state?.is !== 'completed') throw new StepFailure('not_found', `there is no result ${String(result)}`)
      const whole = await outputOf(state)
      const output = String(result).startsWith('mcp-') ? withoutImages(whole).output : whole
      const text = textOf(output)
      if (fromLine !== undefined || lines !== undefined) {
        const all = text.split('\n')
        const from = typeof fromLine === 'number' ? fromLine : 1
        const wanted = all.slice(from - 1, typeof lines === 'number' ? from - 1 + lines : undefined)
        return {
          output: { fromLine: from, ofLines: all.length, text: wanted.join('\n').slice(0, room).toWellFormed() },
        }
      }
      const all = utf8(text)
      const from = typeof fromByte === 'number' ? fromByte : 0
      const part = decoder.decode(all.subarray(from, typeof bytes === 'number' ? from + bytes : undefined))
      return { output: { fromByte: from, ofBytes: all.length, text: part.slice(0, room).toWellFormed() } }
    },
  }
}
