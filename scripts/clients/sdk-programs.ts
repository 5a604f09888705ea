/** Versions that were tried. */
export const SDKS_OF_NPM = {
  '@openai/agents': '0.20.0',
  '@langchain/openai': '1.6.0',
  '@langchain/anthropic': '1.5.11',
  '@langchain/core': '1.4.0',
  zod: '4.6.7',
} as const
export const SDKS_OF_PYPI = {
  openai: '3.57.0',
  anthropic: '2.14.0',
  'openai-agents': '0.24.0',
  'pydantic-ai-slim': '2.68.0',
  'langchain-openai': '1.7.4',
  'langchain-anthropic': '1.7.10',
} as const

export const SDKS_OF_GO = {
  'github.com/openai/openai-go/v3': 'v3.98.0',
  'github.com/anthropics/anthropic-sdk-go': 'v1.84.0',
} as const
export const SDKS_OF_MAVEN = {
  'com.openai:openai-java': '4.101.0',
  'com.anthropic:anthropic-java': '3.14.0',
  'dev.langchain4j:langchain4j-open-ai': '1.19.0',
  'dev.langchain4j:langchain4j-anthropic': '1.19.0',
} as const

export interface SdkProgram {
  name: string
  language: 'js' | 'py'
  /** Prints one line for each thing it tries. */
  source: string
}

const LOOK = `
import { tool } from '@langchain/core/tools'
import { HumanMessage, ToolMessage } from '@langchain/core/messages'
import { z } from 'zod'
const form = z.object({ answer: z.string() })
const look = tool(async ({ q }) => (q === 'note.txt' ? 'forty-two' : 'nothing'), { name: 'look', description: 'Looks.', schema: z.object({ q: z.string() }) })
const say = (what, value) => console.log(what + ': ' + (typeof value === 'string' ? value : JSON.stringify(value)))
const textOf = message => (typeof message.content === 'string' ? message.content : message.content.map(part => part.text ?? '').join(''))
async function tryAll(model, name) {
  say(name + ' invoke', textOf(await model.invoke('What does note.txt say?')))
  let streamed = ''
  for await (const piece of await model.stream('What does note.txt say?')) streamed += textOf(piece)
  say(name + ' stream', streamed)
  const bound = model.bindTools([look])
  const asked = [new HumanMessage('What does note.txt say?')]
  const first = await bound.invoke(asked)
  const call = first.tool_calls[0]
  say(name + ' tool', { name: call.name, args: call.args })
  const told = new ToolMessage({ tool_call_id: call.id, content: await look.invoke(call.args) })
  say(name + ' loop', textOf(await bound.invoke([...asked, first, told])))
}
`

const LOOK_PY = `
import os
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel
class Form(BaseModel):
    """What the note says."""
    answer: str
@tool
def look(q: str) -> str:
    """Looks."""
    return 'forty-two' if q == 'note.txt' else 'nothing'
ask = [HumanMessage('What does note.txt say?')]
def try_all(model, name):
    print(name + ' invoke:', model.invoke(ask).text)
    print(name + ' stream:', ''.join(piece.text for piece in model.stream(ask)))
    bound = model.bind_tools([look])
    first = bound.invoke(ask)
    call = first.tool_calls[0]
    print(name + ' tool:', call['name'], call['args'])
    told = ToolMessage(look.invoke(call['args']), tool_call_id=call['id'])
    print(name + ' loop:', bound.invoke([*ask, first, told]).text)
`

export const SDK_PROGRAMS: readonly SdkProgram[] = [
  {
    name: '@openai/agents',
    language: 'js',
    source: `
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import { z } from 'zod'
const look = tool({ name: 'look', description: 'Looks.', parameters: z.object({ q: z.string() }), execute: async ({ q }) => (q === 'note.txt' ? 'forty-two' : 'nothing') })
for (const useResponses of [true, false]) {
  const modelProvider = new OpenAIProvider({ baseURL: process.env.BASE + '/v1', apiKey: process.env.OPENAI_API_KEY, useResponses })
  const runner = new Runner({ modelProvider, tracingDisabled: true })
  const agent = new Agent({ name: 'reader', instructions: 'Read.', model: 'large', tools: [look] })
  const name = useResponses ? 'responses' : 'chat'
  const first = await runner.run(agent, 'What does note.txt say?')
  console.log(name + ' loop:', first.finalOutput)
  const next = await runner.run(agent, [...first.history, { role: 'user', content: 'Once more.' }])
  console.log(name + ' next turn:', next.finalOutput)
  const streamed = await runner.run(agent, 'What does note.txt say?', { stream: true })
  let text = ''
  for await (const piece of streamed.toTextStream()) text += piece
  await streamed.completed
  console.log(name + ' stream:', text)
  if (useResponses) continue
  const form = new Agent({ name: 'form', instructions: 'Fill.', model: 'large', outputType: z.object({ answer: z.string() }) })
  console.log(name + ' form:', JSON.stringify((await runner.run(form, 'What does note.txt say?')).finalOutput))
}
`,
  },
  {
    name: 'openai-agents',
    language: 'py',
    source: `
import asyncio, os
from agents import Agent, OpenAIProvider, RunConfig, Runner, function_tool
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel
class Form(BaseModel):
    answer: str
@function_tool
def look(q: str) -> str:
    """Looks."""
    return 'forty-two' if q == 'note.txt' else 'nothing'
async def main():
    for use_responses in (True, False):
        provider = OpenAIProvider(base_url=os.environ['BASE'] + '/v1', api_key='sk-test', use_responses=use_responses)
        config = RunConfig(model_provider=provider, tracing_disabled=True)
        agent = Agent(name='reader', instructions='Read.', model='large', tools=[look])
        name = 'responses' if use_responses else 'chat'
        first = await Runner.run(agent, 'What does note.txt say?', run_config=config)
        print(name + ' loop:', first.final_output)
        again = [*first.to_input_list(), {'role': 'user', 'content': 'Once more.'}]
        print(name + ' next turn:', (await Runner.run(agent, again, run_config=config)).final_output)
        streamed = Runner.run_streamed(agent, 'What does note.txt say?', run_config=config)
        text = ''
        async for event in streamed.stream_events():
            if event.type == 'raw_response_event' and isinstance(event.data, ResponseTextDeltaEvent):
                text += event.data.delta
        print(name + ' stream:', text)
        if use_responses:
            continue
        form = Agent(name='form', instructions='Fill.', model='large', output_type=Form)
        print(name + ' form:', (await Runner.run(form, 'What does note.txt say?', run_config=config)).final_output)
asyncio.run(main())
`,
  },
  {
    name: '@langchain/openai',
    language: 'js',
    source: `${LOOK}
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
const configuration = { baseURL: process.env.BASE + '/v1' }
const chat = new ChatOpenAI({ model: 'large', configuration, maxRetries: 0 })
await tryAll(chat, 'chat')
say('chat form', await chat.withStructuredOutput(form).invoke('What does note.txt say?'))
await tryAll(new ChatOpenAI({ model: 'large', configuration, maxRetries: 0, useResponsesApi: true }), 'responses')
say('embeddings', await new OpenAIEmbeddings({ configuration, model: 'text-embedding-3-small', encodingFormat: 'float' }).embedQuery('forty-two'))
`,
  },
  {
    name: '@langchain/anthropic',
    language: 'js',
    source: `${LOOK}
import { ChatAnthropic } from '@langchain/anthropic'
const messages = new ChatAnthropic({ model: 'large', anthropicApiUrl: process.env.BASE, maxTokens: 200, maxRetries: 0 })
await tryAll(messages, 'messages')
say('messages form', await messages.withStructuredOutput(form).invoke('What does note.txt say?'))
`,
  },
  {
    name: 'openai',
    language: 'py',
    source: `
import io, json, os
from openai import OpenAI
from pydantic import BaseModel
client = OpenAI(base_url=os.environ['BASE'] + '/v1', max_retries=0)
class Form(BaseModel):
    answer: str
ask = [{'role': 'user', 'content': 'What does note.txt say?'}]
schema = {'type': 'object', 'properties': {'q': {'type': 'string'}}}
tools = [{'type': 'function', 'function': {'name': 'look', 'parameters': schema}}]
print('chat:', client.chat.completions.create(model='large', messages=ask).choices[0].message.content)
text = ''
for piece in client.chat.completions.create(model='large', messages=ask, stream=True, stream_options={'include_usage': True}):
    text += (piece.choices[0].delta.content or '') if piece.choices else f' ({piece.usage.total_tokens} tokens)'
print('chat stream:', text)
first = client.chat.completions.create(model='large', messages=ask, tools=tools).choices[0].message
print('chat tool:', first.tool_calls[0].function.name, first.tool_calls[0].function.arguments)
told = [*ask, first, {'role': 'tool', 'tool_call_id': first.tool_calls[0].id, 'content': 'forty-two'}]
print('chat loop:', client.chat.completions.create(model='large', messages=told, tools=tools).choices[0].message.content)
print('chat form:', client.chat.completions.parse(model='large', messages=ask, response_format=Form).choices[0].message.parsed)
look = [{'type': 'function', 'name': 'look', 'parameters': schema, 'strict': False}]
one = client.responses.create(model='large', input=ask, tools=look)
call = next(item for item in one.output if item.type == 'function_call')
print('responses tool:', call.name, call.arguments)
back = [{'type': 'function_call_output', 'call_id': call.call_id, 'output': 'forty-two'}]
print('responses loop:', client.responses.create(model='large', previous_response_id=one.id, input=back, tools=look).output_text)
with client.responses.stream(model='large', input=[*ask, *one.output, *back], tools=look) as stream:
    for event in stream:
        pass
    print('responses stream:', stream.get_final_response().output_text)
print('embeddings:', client.embeddings.create(model='text-embedding-3-small', input='forty-two', encoding_format='float').data[0].embedding)
file = client.files.create(file=('batch.jsonl', io.BytesIO(b'{"custom_id": "1"}')), purpose='batch')
print('files:', client.files.retrieve(file.id).filename)
batch = client.batches.create(input_file_id=file.id, endpoint='/v1/chat/completions', completion_window='24h')
print('batches:', client.batches.retrieve(batch.id).status)
`,
  },
  {
    name: 'anthropic',
    language: 'py',
    source: `
import io
import os
from anthropic import Anthropic
from pydantic import BaseModel
client = Anthropic(base_url=os.environ['BASE'], max_retries=0)
class Form(BaseModel):
    answer: str
ask = [{'role': 'user', 'content': 'What does note.txt say?'}]
tools = [{'name': 'look', 'input_schema': {'type': 'object', 'properties': {'q': {'type': 'string'}}}}]
base = {'model': 'large', 'max_tokens': 200}
print('messages:', client.messages.create(messages=ask, **base).content[0].text)
with client.messages.stream(messages=ask, **base) as stream:
    print('messages stream:', ''.join(stream.text_stream), stream.get_final_message().usage.output_tokens)
first = client.messages.create(messages=ask, tools=tools, **base)
use = first.content[-1]
print('messages tool:', use.name, use.input)
result = {'role': 'user', 'content': [{'type': 'tool_result', 'tool_use_id': use.id, 'content': 'forty-two'}]}
told = [*ask, {'role': 'assistant', 'content': first.content}, result]
print('messages loop:', client.messages.create(messages=told, tools=tools, **base).content[0].text)
print('messages form:', client.messages.parse(messages=ask, output_format=Form, **base).parsed_output)
print('count:', client.messages.count_tokens(model='large', messages=ask).input_tokens)
batch = client.messages.batches.create(requests=[{'custom_id': '1', 'params': {'messages': ask, **base}}])
print('batches:', client.messages.batches.retrieve(batch.id).processing_status)
file = client.beta.files.upload(file=('note.txt', io.BytesIO(b'forty-two'), 'text/plain'))
print('files:', client.beta.files.retrieve_metadata(file.id).filename, client.beta.files.delete(file.id).type)
`,
  },
  {
    name: 'pydantic-ai-slim',
    language: 'py',
    source: `
import os
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
class Form(BaseModel):
    answer: str
openai = OpenAIProvider(base_url=os.environ['BASE'] + '/v1', api_key='sk-test')
anthropic = AnthropicProvider(base_url=os.environ['BASE'], api_key='sk-ant-test')
models = {'chat': OpenAIChatModel('large', provider=openai), 'messages': AnthropicModel('large', provider=anthropic)}
def look(q: str) -> str:
    """Looks."""
    return 'forty-two' if q == 'note.txt' else 'nothing'
for name, model in models.items():
    print(name + ' loop:', Agent(model, tools=[look]).run_sync('What does note.txt say?').output)
    print(name + ' form:', Agent(model, output_type=Form).run_sync('What does note.txt say?').output)
responses = OpenAIResponsesModel('large', provider=openai)
print('responses loop:', Agent(responses, tools=[look]).run_sync('What does note.txt say?').output)
`,
  },
  {
    name: 'langchain-openai',
    language: 'py',
    source: `${LOOK_PY}
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
base = {'model': 'large', 'base_url': os.environ['BASE'] + '/v1', 'max_retries': 0}
chat = ChatOpenAI(**base)
try_all(chat, 'chat')
print('chat form:', chat.with_structured_output(Form).invoke(ask))
try_all(ChatOpenAI(use_responses_api=True, **base), 'responses')
embeddings = OpenAIEmbeddings(**{**base, 'model': 'text-embedding-3-small'}, check_embedding_ctx_length=False)
print('embeddings:', embeddings.embed_query('forty-two'))
`,
  },
  {
    name: 'langchain-anthropic',
    language: 'py',
    source: `${LOOK_PY}
from langchain_anthropic import ChatAnthropic
messages = ChatAnthropic(model='large', base_url=os.environ['BASE'], max_tokens=200, max_retries=0)
try_all(messages, 'messages')
print('messages form:', messages.with_structured_output(Form).invoke(ask))
print('count:', messages.get_num_tokens_from_messages(ask))
`,
  },
]
