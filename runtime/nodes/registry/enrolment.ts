import { isLoopback } from '../../../shared/http/bind.ts'
import { toBase64Url, toHex } from '../../../shared/sign/bytes.ts'
import { verifySignature } from '../../../shared/sign/ed25519.ts'
import { sha256Hex } from '../../../shared/sign/sha256.ts'
import type { EnrolRequest, RefreshRequest } from '../../../shared/tunnel/gateway.gen.ts'
import { refreshMessage, TunnelRefusal } from '../../../shared/tunnel/protocol.ts'
import { newBoxKeys, sealTo } from '../../../shared/tunnel/sealed-payload.ts'
import { ENROL_TOKEN } from '../../../shared/wire/runtime/node.ts'
import { poolKeyAad } from '../sealed-payloads.ts'
import type { NodeRow } from './node.ts'
import type { Enrolled, NodeStore } from './store.ts'

export const ENROL_MS = 3_600_000
const ACCESS_MS = 3_600_000
const SKEW_MS = 60_000
const NONCE_BYTES = { least: 16, most: 64 }

export interface EnrolmentDeps {
  store: NodeStore
  now: () => Date
  /** Asks a node of that pool that is here to seal the pool's key to a newcomer; undefined when none is here. */
  poolKeyFor: (tenantId: string, pool: string, boxKey: Uint8Array) => Promise<Uint8Array | undefined>
}

/** A text that is shown once and stored as its hash. */
export function newToken(prefix: string): { token: string; hash: string } {
  const token = prefix + toBase64Url(crypto.getRandomValues(new Uint8Array(32)))
  return { token, hash: sha256Hex(token) }
}

const denied = () =>
  new TunnelRefusal('unauthenticated', 'the enrolment token is not valid: it is wrong, used or expired')

/** How a node becomes known, and how it proves afterwards that it is the one (docs/spec/runtime.md §14). */
export function enrolment({ store, now, poolKeyFor }: EnrolmentDeps) {
  function access(): { token: string; hash: string; expiresMs: number; expiresUnix: bigint } {
    const expiresMs = now().getTime() + ACCESS_MS
    return { ...newToken('wb_access_'), expiresMs, expiresUnix: BigInt(Math.floor(expiresMs / 1000)) }
  }

  /**
   * The first node of a pool is given a key that is made here and forgotten; every further one gets it from a node that has it.
   */
  async function poolKey(node: NodeRow, boxKey: Uint8Array<ArrayBuffer>) {
    const place = poolKeyAad(node.tenantId, node.pool)
    if (await store.poolKey(node.tenantId, node.pool)) {
      const sealed = await poolKeyFor(node.tenantId, node.pool, boxKey)
      if (sealed) return { sealed, publicKey: undefined }
      throw new TunnelRefusal(
        'not_ready',
        `the key of pool ${node.pool} is with its nodes, and none of them is connected: start one of them and try again`,
      )
    }
    const { publicKey, privateKey } = await newBoxKeys()
    return { sealed: await sealTo(boxKey, privateKey, place), publicKey }
  }

  /** Of several first nodes of a pool, one gives it its key; the others come again and get that one. */
  async function admit(node: NodeRow, hash: string, said: Omit<Enrolled, 'newPoolKey'>) {
    for (let tries = 1; ; tries++) {
      const { sealed, publicKey } = await poolKey(node, Uint8Array.from(said.boxKey))
      const given = access()
      try {
        const enrolled = { ...said, newPoolKey: publicKey }
        if (!(await store.enrol(node, hash, enrolled, given, now().getTime()))) throw denied()
        return { sealed, given }
      } catch (error) {
        const outrun = publicKey !== undefined && (await store.poolKey(node.tenantId, node.pool)) !== undefined
        if (!outrun || tries === 2) throw error
      }
    }
  }

  return {
    async enrol({ token, signKey, boxKey, version, os, arch }: EnrolRequest) {
      if (!ENROL_TOKEN.test(token)) throw denied()
      if (signKey.length !== 32 || boxKey.length !== 32) {
        throw new TunnelRefusal('bad_frame', 'expected two public keys of 32 bytes')
      }
      const hash = sha256Hex(token)
      const node = await store.byEnrolHash(hash, now().getTime())
      if (!node) throw denied()
      const text = (value: string) => value.slice(0, 64).toWellFormed().replaceAll('\0', '')
      const said = { signKey, boxKey, version: text(version), os: text(os), arch: text(arch) }
      const { given, sealed } = await admit(node, hash, said)
      return {
        nodeId: node.id,
        tenantId: node.tenantId,
        pool: node.pool,
        poolKeySealed: sealed,
        accessToken: given.token,
        expiresUnix: given.expiresUnix,
      }
    },

    async refresh({ nodeId, atUnix, nonce, signature }: RefreshRequest) {
      const nowMs = now().getTime()
      const atMs = Number(atUnix) * 1000
      const node = await store.get(nodeId)
      if (node === undefined) throw new TunnelRefusal('removed', REMOVED)
      const fine =
        node.signKey !== undefined &&
        nonce.length >= NONCE_BYTES.least &&
        nonce.length <= NONCE_BYTES.most &&
        (await verifySignature(node.signKey, Uint8Array.from(signature), refreshMessage(nodeId, Number(atUnix), nonce)))
      if (!fine) throw new TunnelRefusal('unauthenticated', 'this is not signed by the key of that node')
      if (Math.abs(nowMs - atMs) > SKEW_MS) {
        throw new TunnelRefusal('unauthenticated', clockIsOff(Math.round((atMs - nowMs) / 1000)))
      }
      const given = access()
      const used = { text: toHex(nonce), atMs, forgetBeforeMs: nowMs - 2 * SKEW_MS }
      if (!(await store.refresh(nodeId, used, given, nowMs))) {
        throw new TunnelRefusal('unauthenticated', 'this proof was used before')
      }
      return { accessToken: given.token, expiresUnix: given.expiresUnix }
    },

    /** The node that an access token stands for, and until when. */
    async nodeOf(token: string | undefined): Promise<{ node: NodeRow; expiresMs: number }> {
      const found = token === undefined ? undefined : await store.nodeOfToken(sha256Hex(token), now().getTime())
      if (found) return found
      throw new TunnelRefusal('unauthenticated', 'the access token is not valid: it is missing, unknown or expired')
    },
  }
}

const REMOVED =
  'the control plane has no such node: it was removed, and executes nothing more. Announce a new one, with a data folder of its own; or PLATFORM_CONTROL_URL names another control plane'
const EVERY_ADDRESS = ['0.0.0.0', '[::]']

/** What starts a node with its enrolment token, for a person to paste; an address that only the person knows is left to fill in. */
export function joinCommand(endpoint: string | undefined, token: string): string {
  return `${control(endpoint)} PLATFORM_ENROL_TOKEN=${token} npx --no-install node-agent run`
}

function control(endpoint: string | undefined): string {
  if (endpoint === undefined) return `PLATFORM_CONTROL_URL='<the tunnel address of the control plane>'`
  const { protocol, hostname } = new URL(endpoint)
  const url = EVERY_ADDRESS.includes(hostname)
    ? `'${endpoint.replace(hostname, '<address of the control plane>')}'`
    : endpoint
  const isPlain = protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))
  return `PLATFORM_CONTROL_URL=${url}${isPlain ? ' PLATFORM_TUNNEL_INSECURE=1' : ''}`
}

/** Says which clock is where, since it is not known which of them is wrong. */
const clockIsOff = (aheadS: number) =>
  `the node's clock is ${Math.abs(aheadS)} s ${aheadS > 0 ? 'ahead of' : 'behind'} that of the control plane: set both right`
