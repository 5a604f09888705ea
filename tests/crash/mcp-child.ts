import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeEnv } from '../../node-agent/env.ts'
import { engineLimits } from '../../runtime/execution/engine-deps.ts'
import type { StdioTransportOf } from '../../runtime/execution/mcp/deps.ts'
import { pinStore } from '../../runtime/execution/mcp/pin-store.ts'
import { engineFixture, says, script } from '../../runtime/execution/testing/engine-fixture.ts'
import { nodeEgress } from '../../shared/host/node-egress.ts'
import { openDb } from '../../shared/host/open-libsql.ts'
import { readAllowEntry } from '../../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../../shared/http/outbound/outbound-rule.ts'
import { silentLog } from '../../shared/log/log.ts'
import { testOnlyChildProcess } from '../mcp/real-servers.ts'
import { RUN_ID } from './run-id.ts'

/**
 * One life of a process whose run makes one call of a real MCP server, and that kills itself before the call is sent or when
 * its answer has come. Without a moment it lives until the run has ended or waits for a human.
 */
const [folder = '.', given = '{}', kill] = process.argv.slice(2)
const { server, call, node } = JSON.parse(given) as {
  /** The variables of a node: commands run in its sandbox, in place of a child of this process. */
  node?: Record<string, string>
  server: { name: string; url?: string }
  call: { name: string; arguments: Record<string, unknown> }
}

function moment(when: 'before-call' | 'after-call' | 'after-pin'): void {
  if (kill === when) process.kill(process.pid, 'SIGKILL')
}

interface Message {
  method?: string
  params?: { _meta?: Record<string, unknown> }
}

/** The call is written down where it leaves this process. */
function sending({ method, params }: Message): boolean {
  if (method !== 'tools/call') return false
  moment('before-call')
  appendFileSync(join(folder, 'calls.log'), `${String(params?._meta?.['waybill/idempotencyKey'])}\n`)
  return true
}

const egress = nodeEgress({
  rule: outboundRule(server.url === undefined ? [] : [readAllowEntry(new URL(server.url).host)!]),
})

const watchedChild: StdioTransportOf = async (run, command) => {
  const transport = await testOnlyChildProcess(run, command)
  const send = transport.send.bind(transport)
  let called = false
  transport.send = async (message, options) => {
    called = sending(message as Message)
    await send(message, options)
  }
  let receive: typeof transport.onmessage
  Object.defineProperty(transport, 'onmessage', {
    get: () => receive,
    set(handler: typeof transport.onmessage) {
      receive = (message, extra) => {
        if (called) moment('after-call')
        handler?.(message, extra)
      }
    },
  })
  return transport
}

/** The sandboxes of a node, whose pipes are watched as the child is. */
async function watchedSandboxes(vars: Record<string, string>) {
  const { nodeSandboxes } = await import('../../node-agent/sandboxes.ts')
  const all = nodeSandboxes({ env: nodeEnv.parse(vars), workspaces: join(folder, 'workspaces'), log: silentLog() })
  async function* watched(stdout: AsyncIterable<Uint8Array>, called: () => boolean) {
    for await (const chunk of stdout) {
      if (called()) moment('after-call')
      yield chunk
    }
  }
  const open: typeof all.open = async run => {
    const fixture = await all.open(run)
    return {
      ...fixture,
      async pipe(argv) {
        const pipe = await fixture.pipe(argv)
        let called = false
        return {
          ended: pipe.ended,
          kill: pipe.kill,
          stdout: watched(pipe.stdout, () => called),
          get unread() {
            return pipe.unread
          },
          write(bytes) {
            called = sending(JSON.parse(new TextDecoder().decode(bytes)) as Message)
            pipe.write(bytes)
          },
        }
      },
    }
  }
  return { ...all, open }
}
const sandboxes = node && (await watchedSandboxes(node))

// Kept apart from the engine's connection, as on a node that was given a store of its own.
const pins = await openDb(join(folder, 'run.db'))
const kept = pinStore(pins)
const watchedPins: typeof kept = {
  ...kept,
  async keep(...pin) {
    const found = await kept.keep(...pin)
    moment('after-pin')
    return found
  },
}
const fixture = await engineFixture({
  url: join(folder, 'run.db'),
  owner: `pid:${process.pid}`,
  isGone: owner => owner !== `pid:${process.pid}`,
  limits: { ...engineLimits, recoveryMs: 100 },
  manifest: {
    mcpServers: [{ ...server, allow: [call.name] }],
    ...(node && { isolation: 'runc', limits: { memoryMb: 1024, diskMb: 64 } }),
  },
  ...(sandboxes && { sandboxes }),
  ask: script([says('', [{ name: `mcp__${server.name}__${call.name}`, arguments: call.arguments }]), says('done')]),
  mcp: {
    async fetch(url, init) {
      const called = init.method === 'POST' && sending(JSON.parse(String(init.body)) as Message)
      const answer = await egress.fetch(url, init)
      if (!called) return answer
      const body = await answer.text()
      moment('after-call')
      return new Response(body, answer)
    },
    pins: watchedPins,
    ...(!sandboxes && { stdioTransportOf: watchedChild }),
  },
})
await fixture.create({ prompt: 'go' }, { id: RUN_ID })
await fixture.engine.start()
await fixture.until(RUN_ID, ['succeeded', 'failed', 'cancelled', 'waiting'])
await fixture.close()
await sandboxes?.close()
pins.close()
await egress.close()
