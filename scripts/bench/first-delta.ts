import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chatFrames } from '../../tests/upstream/answers.ts'
import { type Bench, type Figure, quantile } from './harness.ts'
import { benchRuntime } from './runtime/server.ts'

const TURNS = 50

export const firstDeltaBench: Bench = {
  title: 'The first words of an answer',
  about: `Turns of a session, one after the other: from the moment a provider writes the first token of its answer to the moment a client that reads the session's stream has it as message_delta, over HTTP on both sides, with the published runtime in its own process.`,
  unit: 'turns/s',
  rounds: 5,
  expectations: [
    { says: 'milliseconds to the first message_delta, median', value: ({ figures }) => figures[0]!.value, atMost: 15 },
    { says: 'milliseconds to the first message_delta, 95 %', value: ({ figures }) => figures[1]!.value, atMost: 15 },
  ],
  async prepare() {
    let asked: (answer: ServerResponse) => void = () => {}
    const provider = createServer((request, response) => {
      request.resume().on('end', () => asked(response))
    })
    await new Promise<void>(resolve => provider.listen(0, '127.0.0.1', resolve))
    const { port } = provider.address() as AddressInfo
    const server = await benchRuntime({ PLATFORM_OUTBOUND_ALLOW: '127.0.0.1' })
    await server.post('/v1/settings/llm-providers', {
      provider: 'openai',
      apiKey: 'sk-bench',
      baseUrl: `http://127.0.0.1:${port}`,
    })
    await server.post('/v1/agents', { name: 'friend', manifest: { model: 'openai/gpt-4.1-mini' } })
    const { id } = await server.post<{ id: string }>('/v1/sessions', { agentName: 'friend' })
    let heard: (text: string) => void = () => {}
    void server.call('GET', `/v1/sessions/${id}/events`, undefined, text => heard(text)).catch(() => undefined)
    const until = (what: string) =>
      new Promise<number>(resolve => {
        heard = text => {
          if (text.includes(what)) resolve(performance.now())
        }
      })
    const times: number[] = []

    async function turn(): Promise<void> {
      const answering = new Promise<ServerResponse>(resolve => {
        asked = resolve
      })
      const reply = server.post(`/v1/sessions/${id}/messages`, { content: 'go' })
      const answer = await answering
      const [opening = '', first = '', ...rest] = chatFrames(['x', 'y'], { usage: true })
      answer.writeHead(200, { 'content-type': 'text/event-stream' }).write(opening)
      // The line is open, as it is while a model thinks.
      await new Promise(resolve => setTimeout(resolve, 5))
      const delta = until('event: message_delta')
      const from = performance.now()
      answer.write(first)
      times.push((await delta) - from)
      const done = until('event: message_completed')
      answer.end(rest.join(''))
      await Promise.all([done, reply])
    }

    return {
      variants: [
        {
          name: 'turns of a session',
          async round() {
            const started = performance.now()
            for (let at = 0; at < TURNS; at++) await turn()
            return (TURNS * 1000) / (performance.now() - started)
          },
        },
      ],
      async figures(): Promise<Figure[]> {
        times.sort((a, b) => a - b)
        return [
          { name: 'to the first message_delta, median', value: quantile(times, 0.5), unit: 'ms' },
          { name: 'to the first message_delta, 95 %', value: quantile(times, 0.95), unit: 'ms' },
          { name: 'to the first message_delta, longest', value: quantile(times, 1), unit: 'ms' },
        ]
      },
      async close() {
        await server.close()
        provider.closeAllConnections()
        await new Promise(resolve => provider.close(resolve))
      },
    }
  },
}
