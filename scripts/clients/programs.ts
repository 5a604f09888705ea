/** Versions that were tried; `--newest` takes what the registry has today. */
export const PACKAGES: Readonly<Record<string, string>> = {
  '@openai/codex': '0.171.0',
  '@openai/agents': '0.20.0',
  ai: '7.0.173',
  '@ai-sdk/openai': '4.0.118',
  openai: '7.57.0',
  zod: '4.6.7',
}

/** A program that asks for the note and runs one tool for it; prints what it was told in the end. */
export interface Program {
  name: string
  /** The source of a module; undefined for Codex, which is a program of its own. */
  source?: string
  /** It keeps nothing at the provider and brings no tool that runs there, so that other hosts can take its requests. */
  crosses?: boolean
}

const tool = `
const MODEL = process.env.MODEL
const ASK = 'What does note.txt say? Use the tool.'
const look = async ({ q }) => (q === 'note.txt' ? 'forty-two' : 'nothing')
`

export const PROGRAMS: readonly Program[] = [
  { name: 'codex exec', crosses: true },
  {
    name: '@openai/agents',
    source: `${tool}
import { Agent, run, tool, setTracingDisabled } from '@openai/agents'
import { z } from 'zod'
setTracingDisabled(true)
const looks = tool({ name: 'look', description: 'Looks.', parameters: z.object({ q: z.string() }), execute: look })
const agent = new Agent({ name: 'reader', instructions: 'Be short.', model: MODEL, tools: [looks] })
console.log((await run(agent, ASK)).finalOutput)
`,
  },
  {
    name: '@openai/agents, streamed, by the id of the last response',
    source: `${tool}
import { Agent, run, tool, setTracingDisabled } from '@openai/agents'
import { z } from 'zod'
setTracingDisabled(true)
const looks = tool({ name: 'look', description: 'Looks.', parameters: z.object({ q: z.string() }), execute: look })
const agent = new Agent({ name: 'reader', instructions: 'Be short.', model: MODEL, tools: [looks] })
const first = await run(agent, ASK, { stream: true })
await first.completed
const second = await run(agent, 'And again?', { previousResponseId: first.lastResponseId, stream: true })
await second.completed
console.log(second.finalOutput)
`,
  },
  {
    name: 'ai, generateText',
    source: `${tool}
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL })
const tools = { look: tool({ description: 'Looks.', inputSchema: z.object({ q: z.string() }), execute: look }) }
console.log((await generateText({ model: openai(MODEL), prompt: ASK, tools, stopWhen: stepCountIs(5) })).text)
`,
  },
  {
    name: 'ai, streamText, nothing kept',
    crosses: true,
    source: `${tool}
import { createOpenAI } from '@ai-sdk/openai'
import { stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL })
const tools = { look: tool({ description: 'Looks.', inputSchema: z.object({ q: z.string() }), execute: look }) }
const providerOptions = { openai: { store: false, include: ['reasoning.encrypted_content'] } }
const result = streamText({ model: openai(MODEL), prompt: ASK, tools, stopWhen: stepCountIs(5), providerOptions })
let text = ''
for await (const piece of result.textStream) text += piece
console.log(text)
`,
  },
]
