import { sha256Hex } from '../../shared/sign/sha256.ts'
import type { ControlFrame, NodeFrame } from '../../shared/tunnel/gateway.gen.ts'
import { TunnelRefusal } from '../../shared/tunnel/protocol.ts'
import type { NodeGateway } from '../nodes/gateway/gateway.ts'
import type { Places, ShardService } from './places.ts'
import type { Shown } from './request-route.ts'

export interface ShardedGatewayDeps {
  places: Places
  shards: () => readonly ShardService[]
}

interface Stream {
  tenantId: string
  shard: string
  stop: AbortController
}

/** One tunnel for the nodes of all shards. Those of a tenant that is being moved are sent away, and find it where it is then. */
export function shardedGateway({ places, shards }: ShardedGatewayDeps): NodeGateway {
  const streams = new Set<Stream>()
  places.onMoves(moves => {
    for (const { tenantId, from, state } of moves) {
      if (state !== 'fencing' && state !== 'switched') continue
      for (const stream of streams) {
        if (stream.tenantId === tenantId && stream.shard === from) stream.stop.abort(moving())
      }
    }
  })

  async function gatewayOf(shown: Shown, value: string) {
    const tenantId = await places.tenantOf(shown, value)
    const place = tenantId === undefined ? undefined : await places.shardOf(tenantId)
    if (place?.fenced === true) throw moving()
    const all = shards()
    const shard = place === undefined ? all.find(({ open }) => open) : all.find(({ name }) => name === place.shard)
    if (shard?.open === undefined)
      throw new TunnelRefusal('not_ready', 'the store of this node does not answer: dial again')
    return { gateway: shard.open.runtime.nodes.gateway, tenantId: place?.tenantId ?? '', shard: shard.name }
  }

  return {
    enrol: async request => (await gatewayOf('enrolToken', sha256Hex(request.token))).gateway.enrol(request),
    refresh: async request => (await gatewayOf('nodeId', request.nodeId)).gateway.refresh(request),

    async *connect(token, frames): AsyncGenerator<ControlFrame> {
      const { gateway, tenantId, shard } = await gatewayOf('nodeToken', sha256Hex(token ?? ''))
      const stop = new AbortController()
      const stream = { tenantId, shard, stop }
      streams.add(stream)
      try {
        yield* gateway.connect(token, untilStopped(frames, stop.signal))
      } finally {
        streams.delete(stream)
      }
    },

    async close() {
      await Promise.all(shards().map(async ({ open }) => open?.runtime.nodes.gateway.close()))
    },
  }
}

const moving = () => new TunnelRefusal('closing', 'the tenant of this node is being moved: dial again')

/** The frames of a node until it is sent away: then the reading fails, which ends the stream as a lost connection does. */
async function* untilStopped(frames: AsyncIterable<NodeFrame>, signal: AbortSignal): AsyncGenerator<NodeFrame> {
  const reader = frames[Symbol.asyncIterator]()
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  stopped.catch(() => undefined)
  signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  try {
    for (;;) {
      const next = await Promise.race([reader.next(), stopped])
      if (next.done) return
      yield next.value
    }
  } finally {
    void reader.return?.().catch(() => undefined)
  }
}
