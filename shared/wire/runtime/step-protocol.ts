import { z } from 'zod'
import { expected, freeForm, int, num, shape, text } from '../bounds.ts'
import { effects } from './tool.ts'

/** docs/spec/runtime.md §3, "Step protocol for code agents": what the program in a sandbox may send. */
const stepName = shape(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'a name of letters, digits, . _ or -, up to 100')

export const codeStepBegin = z.strictObject({
  name: stepName,
  input: z.unknown().optional(),
  /** What a crash in the middle of the step means; its function runs again unless it is `once` or `unknown`. */
  effect: z.enum(effects).default('idempotent'),
})
export const codeStepComplete = z.strictObject({ output: z.unknown().optional() })
export const codeStepFail = z.strictObject({ error: text(0, 10_000), transient: z.boolean().default(false) })

const message = z.strictObject({ role: z.enum(['user', 'assistant']), content: text(0, 1_000_000) })
export const codeModel = z
  .strictObject({
    prompt: text(1, 1_000_000).optional(),
    messages: z.array(message).min(1).max(1000).optional(),
    /** Absent: the manifest's system prompt. */
    system: text(0, 200_000).optional(),
    maxOutputTokens: int(16, 200_000).optional(),
    temperature: num(0, 2).optional(),
  })
  .refine(({ prompt, messages }) => (prompt === undefined) !== (messages === undefined), {
    path: ['prompt'],
    error: 'expected either prompt or messages',
  })
export type CodeModel = z.output<typeof codeModel>

export const codeTool = z.strictObject({ name: text(1, 200), arguments: freeForm.default({}) })
export const codeApproval = z.strictObject({ prompt: text(1, 10_000) })
export const codeSleep = z
  .strictObject({
    seconds: num(0, 31_536_000).optional(),
    until: z.iso.datetime({ offset: true, error: expected('a time in ISO 8601') }).optional(),
  })
  .refine(({ seconds, until }) => (seconds === undefined) !== (until === undefined), {
    path: ['seconds'],
    error: 'expected either seconds or until',
  })
export const codeFinish = z.strictObject({ output: z.unknown().optional() })
