import type { ToolCall } from '../../../shared/dialects/candidate.ts'
import { tryParse } from '../../../shared/dialects/json-value.ts'
import { text } from '../../../shared/wire/bounds.ts'
import { flag, uniqueList } from '../../config/table-fields.ts'
import { type DeclaredTools, declaredTools, type ToolCheck } from '../declared-tools.ts'
import { defineGate } from '../define-gate.ts'
import { fail, type GateVerdict, isTruncated, PASS } from '../gate.ts'
import type { RegexAnswer, RegexJob } from '../regex-runner.ts'
import { checkValue, sizeOf } from '../schema-value.ts'

export interface Tools {
  /** null allows every tool. */
  readonly allow: readonly string[] | null
  readonly deny: readonly string[]
  readonly requireKnown: boolean
}

/**
 * Each tool call names a tool of the request and carries arguments its schema takes. Reasons hold no names: those of the
 * calls are the model's words, those of the schemas the client's. A schema that cannot be used makes the gate abstain,
 * which is no error of the gate: a client could switch it off for others.
 */
export const toolArgs = defineGate({
  kind: 'tool-args',
  about: "Each tool call names a tool of the request and has arguments that the tool's schema takes.",
  keys: {
    allow: uniqueList(text(1, 256)).optional(),
    deny: uniqueList(text(1, 256)).optional(),
    require_known: flag.default(true),
  },
  words: {
    allow: { about: 'The only tools that may be called.', unset: 'all' },
    deny: { about: 'Tools that may not be called.', unset: 'none' },
    require_known: 'Whether a tool that the request does not have fails.',
  },
  resolve: ({ allow = null, deny = [], require_known }): Tools => ({ allow, deny, requireKnown: require_known }),
  build: (config, { regexRunner }) => ({
    async run(input, signal) {
      const { toolCalls } = input.choice
      if (toolCalls.length === 0) return PASS
      if (isTruncated(input)) return fail('truncated')
      const tools = declaredTools(input.request)
      const run: Run | undefined = regexRunner && (job => regexRunner.run(job, signal, input.tenantId))
      let unsure: GateVerdict | undefined
      for (const [i, call] of toolCalls.entries()) {
        const answer = await checkCall(config, tools, run, call)
        if (answer.verdict === 'fail') return fail(`call ${i}: ${answer.reason}`)
        if (answer.verdict === 'error') unsure ??= { verdict: 'abstain', reason: `call ${i}: ${answer.reason}` }
      }
      return unsure ?? PASS
    },
  }),
})

const no = (reason: string): RegexAnswer => ({ verdict: 'fail', reason })
const unsure = (reason: string): RegexAnswer => ({ verdict: 'error', reason })

/** Where what can take long runs, within the time of the gate. */
type Run = (job: RegexJob) => Promise<RegexAnswer>

async function checkCall(
  { allow, deny, requireKnown }: Tools,
  tools: DeclaredTools,
  run: Run | undefined,
  call: ToolCall,
): Promise<RegexAnswer> {
  if (deny.includes(call.name)) return no('denied tool')
  if (allow !== null && !allow.includes(call.name)) return no('tool not allowed')
  const check = tools.find(call.name)
  if (check === undefined && requireKnown) return no('unknown tool')
  if (check?.kind === 'text') return { verdict: 'pass' }
  // Hosts write a call without arguments as an empty text too.
  const text = call.arguments.trim() === '' ? '{}' : call.arguments
  const value = tryParse(text)
  if (value === undefined) return no('arguments are not JSON')
  const answer = await checkArguments(check, run, text, value)
  return answer.verdict === 'fail' ? no(`arguments do not match the schema (${keywordOf(answer.reason)})`) : answer
}

/** Every part of a schema over every value: some 50 ms at most on the thread that serves requests. */
const MOST_STEPS = 200_000

async function checkArguments(
  check: ToolCheck | undefined,
  run: Run | undefined,
  text: string,
  value: unknown,
): Promise<RegexAnswer> {
  switch (check?.kind) {
    case 'schema': {
      const { inline, schema, draft } = check
      const isQuick = inline !== undefined && inline.size * sizeOf(value, MOST_STEPS / inline.size) <= MOST_STEPS
      if (isQuick) return checkValue(inline.validator, value)
      return run === undefined
        ? unsure('this host cannot run the schema of the tool in bounded time')
        : run({ kind: 'schema', schema, draft, value: text })
    }
    case 'bad_schema':
      return unsure('bad_tool_schema')
    default:
      return { verdict: 'pass' }
  }
}

/** Only the keyword: the rest of the place names the client's properties. */
const keywordOf = (reason: string): string => /^schema: (\w+)/.exec(reason)?.[1] ?? 'schema'
