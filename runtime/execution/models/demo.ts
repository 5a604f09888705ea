import { tryParse } from '../../../shared/dialects/json-value.ts'
import type { FoundModel, Message, ModelAnswer, ModelRequest, ToolCall } from './model.ts'
import { readArguments } from './tool-arguments.ts'

/**
 * A model that is none: deterministic, offline, free, and marked as simulated in every record. It repeats the message; lines
 * of the form `/call <tool> <arguments as JSON>` make it call tools first, one line per turn, and `/call*20 …` repeats a line.
 */
export function demoModel(): FoundModel {
  return { id: 'demo/echo', ask: async (request, { onDelta }) => answer(request, onDelta), prices: async () => () => 0 }
}

function answer({ messages }: ModelRequest, onDelta?: (text: string) => void): ModelAnswer {
  const opening = messages.findLastIndex(message => message.role === 'user')
  const asked = messages[opening]
  const said = asked?.role === 'user' ? asked.text : ''
  const script = readScript(said)
  const turn = turnOf(messages.length - opening)
  const call = callAt(script, turn)
  const last = messages.at(-1)
  const heard =
    last?.role === 'tool' ? last.results.reduce((sum, result) => sum + result.content.length, 0) : said.length
  const toolCalls: ToolCall[] = call ? [{ arguments: call.arguments, id: `call_${turn + 1}`, name: call.name }] : []
  const text = call ? '' : reply(said, script, last)
  if (text !== '') onDelta?.(text)
  return {
    text,
    toolCalls,
    stop: call ? 'tools' : 'end',
    provider: 'demo',
    model: 'demo/echo',
    simulated: true,
    spent: { tokensIn: Math.ceil(heard / 4), tokensOut: Math.ceil((text.length + 8) / 4), costNano: 0 },
  }
}

interface ScriptLine {
  times: number
  name: string
  arguments: Record<string, unknown>
}

const LINE = /^\/call(?:\*(\d{1,4}))? ([\w.-]{1,128})(?: (\{.*\}))?$/

function readScript(text: string): ScriptLine[] {
  if (!text.includes('/call')) return []
  return text.split('\n').flatMap(line => {
    const [, times = '1', name, json = '{}'] = LINE.exec(line.trim()) ?? []
    if (name === undefined) return []
    return tryParse(json) === undefined ? [] : [{ times: Number(times), name, arguments: readArguments(json) }]
  })
}

function callAt(script: readonly ScriptLine[], turn: number): Omit<ToolCall, 'id'> | undefined {
  let before = 0
  for (const { times, name, arguments: given } of script) {
    before += times
    if (turn < before) return { arguments: given, name }
  }
  return undefined
}

/** Each turn with calls left two messages behind, so the place in the script is known without reading them. */
function turnOf(messagesSinceAsked: number): number {
  return Math.floor((messagesSinceAsked - 1) / 2)
}

function reply(said: string, script: readonly ScriptLine[], last: Message | undefined): string {
  if (script.length === 0) return `Simulated answer, no model was asked. You said: ${said}`
  const result = last?.role === 'tool' ? last.results.map(one => one.content).join('\n') : ''
  return `Simulated answer, no model was asked. The last tool said: ${result}`
}
